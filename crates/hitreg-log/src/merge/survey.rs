//! The first pass of a merge: finds each client's clock offset and the data that the second pass needs.

use super::offset::{self, OffsetBound, OffsetBounds};
use super::packets::{MatchedArrival, NeighbourPackets, PacketMatcher};
use super::plan::UsercmdShares;
use super::{AlignedClient, MergeError, MergeErrorKind, SideIndex, SideLogs, UnknownPacket, is_in_time};
use crate::record::{
    GapRecord, PlayerRecords, RecordStream, SessionChunk, SessionHeader, TickRecord, UnknownRecords,
    lowest_and_highest, widest,
};
use crate::recorder::usercmds_as_received_of;
use crate::units::{CommandSeq, Micros, PlayerId, Tick};
use crate::usercmd::{Input, OwnCells, Usercmd};

/// The furthest, in time, that a chunk may reach back behind earlier chunks of a stream.
const TIME_OVERLAP_MAX: Micros = Micros::from_s(30);
/// The same limit in ticks.
const TICK_OVERLAP_MAX: u32 = 4096;
/// The pass reads on in a client's log when more snapshots than this were sent after the last one known to have
/// arrived.
const SNAPSHOTS_AHEAD: usize = 1024;

/// What the pass has read of a log.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LogProgress {
    /// Number of chunks.
    pub(super) chunks: usize,
    /// The newest time.
    pub(super) newest: Option<Micros>,
    /// The furthest, in time, that a chunk reaches back behind earlier chunks.
    pub(super) back: Micros,
    has_ended: bool,
}

/// Data on one player from the server's log and from the player's own.
#[derive(Clone, Debug, Default)]
pub(super) struct PlayerMerge {
    pub(super) has_frames: bool,
    is_heard: bool,
    /// Whether the server's log has any record of the player.
    pub(super) is_known: bool,
    is_reached: bool,
    is_executed: bool,
    up: PacketMatcher<Micros>,
    down: PacketMatcher<Micros>,
    /// The client's usercmds, and those that the server recorded as received.
    usercmds_up: PacketMatcher<Input>,
    /// How many usercmds are in both logs, and how many of these differ.
    compared_usercmds: usize,
    differing_usercmds: usize,
    above: OffsetBounds,
    below: OffsetBounds,
    /// Whether the client's log has usercmds, packets, and states.
    has_usercmds: bool,
    has_packets: bool,
    has_states: bool,
    /// The latest time of a client frame, and the most by which a later frame is before it.
    latest_frame: Option<Micros>,
    set_back: Micros,
    /// Whether the server received packets or usercmds that are older than the client's log.
    pub(super) begins_late: bool,
    /// Where the client's log lacks packets after its beginning.
    holes: Vec<LogHole>,
    gaps: Vec<GapRecord>,
    /// Whether the client's log lacks usercmds between others that the server received.
    lacks_usercmds: bool,
    /// The lowest numbers of a usercmd and of a packet in the server's log.
    first_usercmd: Option<CommandSeq>,
    first_reached: Option<u32>,
    /// The newest usercmd of the last packet that the client sent.
    pub(super) last_sent: Option<CommandSeq>,
    // Only in memory: the client's ticks, and the usercmds and the earliest time of each log.
    pub(super) ticks: Vec<TickRecord>,
    pub(super) usercmds: Vec<(CommandSeq, Micros)>,
    pub(super) usercmds_of_server: Vec<CommandSeq>,
    /// The newest usercmd that the server received or handled.
    pub(super) last_heard: Option<CommandSeq>,
    pub(super) first_of_client: Option<Micros>,
    pub(super) first_of_server: Option<Micros>,
}

/// Packets that the server received and that the client's log lacks, although it has earlier ones.
#[derive(Clone, Copy, Debug)]
struct LogHole {
    /// Arrival time of the first of them.
    arrived_at: Micros,
    /// The packets before and after them, with their send times. Without one after them, the log ends there.
    between: NeighbourPackets<Micros>,
}

/// What a client contributes to a merged part of a session: the records from the part's beginning on, and those before it
/// that the part refers to.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientPart {
    /// The time of the part's first record.
    pub(super) begins_at: Micros,
    /// The lowest numbers of a usercmd, of an arrival and of a snapshot in the server's log.
    pub(super) usercmd: Option<CommandSeq>,
    pub(super) packet: Option<u32>,
    pub(super) snapshot: Option<u32>,
}

/// The state of the first pass.
pub(super) struct MergeSurvey {
    pub(super) sides: SideIndex,
    /// Whether the pass reads the logs one after another and forgets nothing.
    pub(super) in_memory: bool,
    /// Whether the logs can be merged as streams.
    is_stream: bool,
    pub(super) logs: Vec<LogProgress>,
    /// The newest time of each log, on its own clock.
    pub(super) ends: Vec<Option<Micros>>,
    pub(super) players: Vec<PlayerMerge>,
    /// The first and the last tick.
    pub(super) ticks: Option<(TickRecord, TickRecord)>,
    /// The time of the first record if the server's log begins inside the session. The state that such a part begins with
    /// has earlier times.
    begins_at: Option<Micros>,
    /// All ticks; only in memory.
    all_ticks: Vec<TickRecord>,
    /// The lowest tick that a record refers to.
    first_named: Option<Tick>,
    /// The most ticks that a chunk reaches back behind the last tick of earlier chunks.
    pub(super) ticks_back: u32,
    /// Kinds and columns of unknown records, without rows.
    pub(super) unknown: Vec<UnknownRecords>,
}

impl MergeSurvey {
    /// Reads all logs to their ends: side by side if possible.
    pub(super) fn of<L: SideLogs>(
        headers: &[&SessionHeader],
        logs: &mut L,
        in_memory: bool,
    ) -> Result<MergeSurvey, L::Error> {
        let sides = SideIndex::of(headers)?;
        sides.all().for_each(|log| logs.close(log));
        let mut survey = MergeSurvey {
            logs: vec![LogProgress::default(); headers.len()],
            ends: vec![None; headers.len()],
            players: sides.clients.iter().map(|log| PlayerMerge::new(log.is_some())).collect(),
            ticks: None,
            begins_at: None,
            all_ticks: Vec::new(),
            first_named: None,
            ticks_back: 0,
            unknown: Vec::new(),
            sides,
            in_memory,
            is_stream: true,
        };
        while let Some(log) = survey.next_log() {
            survey.read(logs, log)?;
            if !survey.in_memory && !survey.is_stream {
                return MergeSurvey::of(headers, logs, true);
            }
        }
        Ok(survey)
    }

    /// Returns the log to read next.
    fn next_log(&self) -> Option<usize> {
        let is_unread = |log: &usize| !self.logs[*log].has_ended;
        let clients = self.sides.clients.iter().zip(&self.players);
        let mut behind = clients.filter_map(|(log, of)| log.filter(|log| is_unread(log) && of.is_behind()));
        let first_behind = if self.in_memory { None } else { behind.next() };
        first_behind.or_else(|| self.sides.all().find(is_unread))
    }

    /// Reads the next chunk of one log.
    pub(super) fn read<L: SideLogs>(&mut self, logs: &mut L, log: usize) -> Result<(), L::Error> {
        let Some(mut chunk) = logs.next(log)? else {
            logs.close(log);
            self.end(log);
            return Ok(());
        };
        if !chunk.time_span().is_none_or(is_in_time) {
            return Err(MergeErrorKind::OutOfTime.of(log).into());
        }
        self.ends[log] = self.ends[log].max(chunk.full_time_span().map(|(_, last)| last));
        let player = self.sides.player_of(log);
        if let Some(of) = player.map(|player| &mut self.players[player]) {
            of.has_states |= !chunk.states.is_empty();
            if self.in_memory {
                of.ticks.append(&mut chunk.ticks);
            }
        }
        let chunk = self.sides.share(log, chunk);
        for records in chunk.unknown.iter().filter(|records| !records.is_empty()) {
            // Records without times come at the start of a log that is written in one piece. The rows of several logs
            // are in the order of time only if all are known.
            let is_timed = records.times().is_some() && records.span(0..records.len()).is_none_or(is_in_time);
            self.is_stream &= is_timed && player.is_none();
            records.note_kind(&mut self.unknown);
        }
        self.is_stream &= self.logs[log].add(&chunk);
        match player {
            Some(player) => self.players[player].add_client(&chunk, player, self.in_memory),
            None => self.add_server(&chunk),
        }
        if !self.in_memory {
            self.match_packets(log);
        }
        Ok(())
    }

    fn add_server(&mut self, chunk: &SessionChunk) {
        let executed = chunk.players.iter().flat_map(|player| &player.executed).map(|executed| executed.tick);
        let named = executed.chain(chunk.states.keys().iter().map(|key| key.tick)).min();
        if let (Some(named), Some((_, last))) = (named, self.ticks) {
            self.ticks_back = self.ticks_back.max(last.tick.0.saturating_sub(named.0));
            self.is_stream &= self.ticks_back <= TICK_OVERLAP_MAX;
        }
        self.first_named = [self.first_named, named].into_iter().flatten().min();
        for tick in &chunk.ticks {
            let (first, last) = self.ticks.map_or((*tick, None), |(first, last)| (first, Some(last)));
            // The second pass requires consecutive ticks.
            let follows = |last: TickRecord| last.tick.0.checked_add(1) == Some(tick.tick.0) && last.at <= tick.at;
            self.is_stream &= last.is_none_or(follows);
            self.ticks = Some((first, *tick));
        }
        if self.in_memory {
            self.all_ticks.extend(&chunk.ticks);
        }
        let of_players = chunk.players.iter().flat_map(|of| {
            let reached = of.reached.iter().map(|arrival| arrival.at);
            reached.chain(of.snapshots.iter().map(|snapshot| snapshot.at))
        });
        let times = chunk.ticks.iter().map(|tick| tick.at).chain(of_players);
        self.begins_at = lowest_and_highest(times.chain(self.begins_at)).map(|(first, _)| first);
        for (of, records) in self.players.iter_mut().zip(&chunk.players) {
            of.add_server(records, self.in_memory);
        }
    }

    /// Notes the end of a log.
    pub(super) fn end(&mut self, log: usize) {
        self.logs[log].has_ended = true;
        match self.sides.player_of(log) {
            Some(player) => {
                let of = &mut self.players[player];
                self.is_stream &= !of.has_no_packets();
                (of.up.sends_no_more, of.down.receives_no_more) = (true, true);
                of.usercmds_up.sends_no_more = true;
            }
            None => {
                let is_known = |named: Tick| self.ticks.is_none_or(|(first, _)| first.tick <= named);
                self.is_stream &= self.first_named.is_none_or(is_known);
                for of in &mut self.players {
                    (of.down.sends_no_more, of.up.receives_no_more) = (true, true);
                    of.usercmds_up.receives_no_more = true;
                }
            }
        }
        self.match_packets(log);
    }

    /// Matches packets of the players whom a log concerns. In memory, this waits for the end of the client's log.
    fn match_packets(&mut self, log: usize) {
        let players = self.sides.player_of(log).map_or(0..self.players.len(), |player| player..player + 1);
        for of in &mut self.players[players] {
            of.look_up();
            if !self.in_memory {
                self.is_stream &= of.forget();
            }
        }
    }

    /// Returns the clients with the offsets of their clocks.
    pub(super) fn clients(&self) -> impl Iterator<Item = Result<AlignedClient, MergeError>> {
        let players = (0..).map(PlayerId).zip(self.sides.clients.iter().zip(&self.players));
        players.map(|(player, (log, of))| {
            let Some(log) = *log else { return Ok(AlignedClient { player, ..AlignedClient::default() }) };
            let offset = match of.has_no_packets() {
                true => offset::by_ticks(&of.ticks, &self.all_ticks),
                false => offset::between(&of.above, &of.below, (log, player))?,
            };
            // A client that the server never heard does not affect the session.
            if offset.is_none() && of.is_reached {
                return Err(MergeErrorKind::Unbounded { player }.of(log));
            }
            // Numbers that begin again say nothing.
            let is_comparable = !of.has_numbers_again();
            let counts =
                [of.compared_usercmds, of.differing_usercmds].map(|count| if is_comparable { count } else { 0 });
            let [compared_usercmds, differing_usercmds] = counts;
            Ok(AlignedClient {
                player,
                log: Some(log),
                offset,
                is_by_ticks: of.has_no_packets() && offset.is_some(),
                begins_late: of.begins_late && !of.has_no_packets(),
                has_states: of.has_states,
                set_back: of.set_back,
                compared_usercmds,
                differing_usercmds,
                without: None,
            })
        })
    }

    /// Returns the header of the merged session.
    pub(super) fn header(
        &self,
        server: &SessionHeader,
        clients: &[AlignedClient],
        shares: &[UsercmdShares],
    ) -> SessionHeader {
        let (unknown, usercmd_bytes) = (self.sides.kinds.clone(), self.sides.usercmd_bytes);
        let mut header = SessionHeader { side: None, unknown, usercmd_bytes, ..server.clone() };
        for (player, client) in header.players.iter_mut().zip(clients) {
            player.recorded |= client.log.is_some();
        }
        // The players with usercmds of the server's log, each with the last of them if later ones are the client's.
        let received = clients.iter().zip(shares).zip(&self.players).filter_map(|((client, shares), of)| {
            let until = match client.log {
                None => of.has_frames.then_some(None)?,
                Some(_) => Some(shares.last_as_received()?).filter(|_| !client.is_by_ticks),
            };
            Some((client.player, until))
        });
        usercmds_as_received_of(&mut header.settings, received);
        header
    }

    /// Returns whether the server's log has all input of a player: as it arrived, or because nobody was there or sent any.
    pub(super) fn has_input(&self, player: usize) -> bool {
        let of = &self.players[player];
        let records_executed = self.players.iter().any(|other| other.is_executed);
        let sent_nothing = records_executed && !of.is_executed && !of.is_reached;
        of.has_frames || of.is_heard || !of.is_known || sent_nothing
    }

    /// Returns what each client contributes, if the server's log is a part of the session.
    pub(super) fn client_parts(&self, server: &SessionHeader) -> Option<Vec<ClientPart>> {
        let begins_at = self.begins_at.filter(|_| server.begins_inside())?;
        let of = |of: &PlayerMerge| ClientPart {
            begins_at,
            usercmd: of.first_usercmd,
            packet: of.first_reached,
            snapshot: of.down.first(),
        };
        Some(self.players.iter().map(of).collect())
    }

    /// Returns the first packet of each client that the server received and that is missing after the beginning of the
    /// client's log, outside its gaps.
    pub(super) fn unknown_packets(&self) -> impl Iterator<Item = UnknownPacket> {
        let of = |((player, log), of): ((u16, &Option<usize>), &PlayerMerge)| {
            let (log, is_heard) = ((*log)?, self.has_input(player.into()));
            let gaps = FurthestGaps::of(&of.gaps);
            let is_end = |hole: &&LogHole| !hole.is_in(&gaps);
            let LogHole { arrived_at, .. } = *of.holes.iter().find(is_end).filter(|_| !of.has_no_packets())?;
            Some(UnknownPacket { arrived_at, player: PlayerId(player), log, is_heard })
        };
        (0..).zip(&self.sides.clients).zip(&self.players).filter_map(of)
    }
}

impl PlayerMerge {
    /// Returns the data before the first chunk. A missing log has ended.
    pub(super) fn new(has_log: bool) -> PlayerMerge {
        let mut of = PlayerMerge { above: OffsetBounds::above(), ..PlayerMerge::default() };
        (of.up.sends_no_more, of.down.receives_no_more) = (!has_log, !has_log);
        of.usercmds_up.sends_no_more = !has_log;
        of
    }

    /// Returns whether the client's log has usercmds but no packets: its program does not record them.
    fn has_no_packets(&self) -> bool {
        self.has_usercmds && !self.has_packets
    }

    /// Returns whether the numbers of the client's usercmds begin again.
    pub(super) fn has_numbers_again(&self) -> bool {
        self.usercmds_up.is_unordered
    }

    /// Returns whether the client's log must be read before more of the server's.
    fn is_behind(&self) -> bool {
        self.up.waits_for_sender()
            || self.usercmds_up.waits_for_sender()
            || self.down.packets_in_flight() > SNAPSHOTS_AHEAD
    }

    fn add_client(&mut self, chunk: &SessionChunk, player: usize, in_memory: bool) {
        let records = &chunk.players[player];
        self.has_usercmds |= !records.frames.is_empty();
        self.has_packets |= !records.sent.is_empty();
        for frame in &records.frames {
            let latest = *self.latest_frame.get_or_insert(frame.at);
            self.set_back = self.set_back.max(latest - frame.at);
            self.latest_frame = Some(latest.max(frame.at));
        }
        records.sent.iter().for_each(|packet| self.up.send(packet.number, packet.at));
        records.frames.iter().for_each(|frame| self.usercmds_up.send(frame.command.seq.0, without_own(&frame.command)));
        self.down.waiting.extend(records.received.iter().map(|arrival| (arrival.number, arrival.at)));
        self.gaps.extend(&chunk.gaps);
        self.last_sent = records.sent.last().map(|packet| packet.newest).or(self.last_sent);
        if in_memory {
            self.first_of_client = earliest(self.first_of_client, records);
            self.usercmds.extend(records.frames.iter().map(|frame| (frame.command.seq, frame.at)));
        }
    }

    fn add_server(&mut self, records: &PlayerRecords, in_memory: bool) {
        self.has_frames |= !records.frames.is_empty();
        self.is_heard |= !records.heard.is_empty();
        self.is_known |= !records.is_empty();
        self.is_reached |= !records.reached.is_empty();
        self.is_executed |= !records.executed.is_empty();
        records.snapshots.iter().for_each(|sent| self.down.send(sent.seq.0, sent.at));
        self.up.waiting.extend(records.reached.iter().map(|arrival| (arrival.number, arrival.at)));
        let received = records.frames.iter().map(|frame| (frame.command.seq.0, without_own(&frame.command)));
        self.usercmds_up.waiting.extend(received);
        let heard = records.frames.iter().map(|frame| frame.command.seq);
        let executed = records.executed.iter().map(|executed| executed.command);
        let first_usercmd = heard.clone().chain(executed.clone()).min();
        let first_reached = records.reached.iter().map(|arrival| arrival.number).min();
        self.first_usercmd = [self.first_usercmd, first_usercmd].into_iter().flatten().min();
        self.first_reached = [self.first_reached, first_reached].into_iter().flatten().min();
        if in_memory {
            self.last_heard = self.last_heard.max(heard.clone().chain(executed).max());
            self.first_of_server = earliest(self.first_of_server, records);
            self.usercmds_of_server.extend(heard);
        }
    }

    /// Matches arrivals with their send times.
    fn look_up(&mut self) {
        while let Some(packet) = self.up.next() {
            match packet {
                MatchedArrival::Sent { sent, arrived } => self.above.kept.push(OffsetBound::above(sent, arrived)),
                MatchedArrival::Earlier => self.begins_late = true,
                MatchedArrival::Unknown { arrived, between } => {
                    if self.holes.last().is_none_or(|last| last.between != between) {
                        self.holes.push(LogHole { arrived_at: arrived, between });
                    }
                }
            }
        }
        while let Some(packet) = self.down.next() {
            if let MatchedArrival::Sent { sent, arrived } = packet {
                self.below.kept.push(OffsetBound::below(sent, arrived));
            }
        }
        while let Some(usercmd) = self.usercmds_up.next() {
            match usercmd {
                MatchedArrival::Sent { sent, arrived } => {
                    self.compared_usercmds += 1;
                    self.differing_usercmds += usize::from(differ(&sent, &arrived));
                }
                MatchedArrival::Earlier => self.begins_late = true,
                MatchedArrival::Unknown { between: (_, after), .. } => self.lacks_usercmds |= after.is_some(),
            }
        }
    }

    /// Drops what a stream no longer needs. Returns false if the logs cannot be merged as streams: too much is left, or
    /// the server's log has usercmds from before a late log or from a gap of the client's log.
    pub(super) fn forget(&mut self) -> bool {
        let is_little = [self.up.forget(), self.down.forget(), self.usercmds_up.forget_unreceived()];
        let is_reduced = [self.above.reduce(), self.below.reduce()];
        is_little == [true; 3] && is_reduced == [true; 2] && !self.begins_late && !self.lacks_usercmds
    }
}

impl LogHole {
    /// Returns whether a gap explains the missing packets, which are evenly between those before and after them. It may be
    /// shorter by two packets at each end.
    fn is_in(&self, gaps: &FurthestGaps) -> bool {
        let (before, after) = self.between;
        before.zip(after).is_some_and(|((before, from), (after, to))| {
            let packets = i64::from(after.abs_diff(before).max(1));
            let two_packets = Micros((to - from).0.max(0) / packets * 2 + 1);
            gaps.furthest(from + two_packets) >= Some(to - two_packets)
        })
    }
}

/// The beginnings of a log's gaps, in order, each with the latest end of the gaps up to it.
struct FurthestGaps(Vec<(Micros, Micros)>);

impl FurthestGaps {
    fn of(gaps: &[GapRecord]) -> FurthestGaps {
        let mut spans: Vec<(Micros, Micros)> = gaps.iter().map(|gap| (gap.from, gap.to)).collect();
        spans.sort_unstable();
        let mut furthest = Micros(i64::MIN);
        for (_, to) in &mut spans {
            furthest = furthest.max(*to);
            *to = furthest;
        }
        FurthestGaps(spans)
    }

    /// Returns the latest end of the gaps that begin up to a time; `None` without any.
    fn furthest(&self, begin: Micros) -> Option<Micros> {
        let count = self.0.partition_point(|(from, _)| *from <= begin);
        count.checked_sub(1).map(|last| self.0[last].1)
    }
}

/// Returns the input without the cells of fields that the game declares. Codes of texts differ between logs.
fn without_own(command: &Usercmd) -> Input {
    Input { own: OwnCells::default(), ..command.input.clone() }
}

/// Returns whether a usercmd of the client's log contradicts the server's copy. A server may have angles in steps of 1/256
/// turn, and speeds in steps.
fn differ(client: &Input, server: &Input) -> bool {
    let is_far = |one: f32, other: f32, most: f32| (one - other).abs() > most;
    let angles = client.viewangles.to_array().into_iter().zip(server.viewangles.to_array());
    let turned = |(one, other): (f32, f32)| is_far((one - other + 180.0).rem_euclid(360.0), 180.0, 360.0 / 256.0);
    let speeds = |input: &Input| [input.forwardmove, input.sidemove, input.upmove];
    let moved = |(one, other): (f32, f32)| is_far(one, other, one.abs().max(other.abs()) / 16.0);
    (client.buttons, client.impulse) != (server.buttons, server.impulse)
        || angles.into_iter().any(turned)
        || speeds(client).into_iter().zip(speeds(server)).any(moved)
}

/// Returns the earliest time of a player's records and of `other`.
fn earliest(other: Option<Micros>, records: &PlayerRecords) -> Option<Micros> {
    let spans = records.streams().into_iter().filter_map(|list| list.span(0..list.len()));
    [other, widest(spans).map(|(first, _)| first)].into_iter().flatten().min()
}

impl LogProgress {
    /// Notes the times of the next chunk's records. Returns false if it reaches back too far for a stream.
    pub(super) fn add(&mut self, chunk: &SessionChunk) -> bool {
        self.chunks += 1;
        if let Some((first, last)) = chunk.full_time_span() {
            self.back = self.newest.map_or(self.back, |newest| self.back.max(newest - first));
            self.newest = self.newest.max(Some(last));
        }
        self.back <= TIME_OVERLAP_MAX
    }
}
