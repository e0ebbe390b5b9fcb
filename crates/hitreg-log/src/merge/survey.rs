//! The first pass of a streaming merge. It finds each client's clock offset and the data that the second pass needs. It
//! reads the logs in parallel, so that memory use does not depend on their length.

use super::bounds::OffsetBounds;
use super::end::UnknownPacket;
use super::offset::OffsetBound;
use super::packets::PacketMatcher;
use super::plan::{PlanFailure, SideLogs};
use super::sides::{SideIndex, is_in_time};
use super::{MergeError, Offset, judged, offset};
use crate::record::{RecordStream, SessionHeader, SessionStretch, TickRecord, UnknownColumn, UnknownRecords};
use crate::recorder::usercmds_as_received_of;
use crate::units::{CommandSeq, Micros, PlayerId, Tick};

/// The furthest, in time, that a chunk may reach back behind earlier chunks. Other logs are merged in memory.
const BACK_MOST: Micros = Micros::from_s(30);
/// The same limit in ticks.
const TICKS_BACK_MOST: u32 = 4096;
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
struct PlayerMerge {
    has_frames: bool,
    is_heard: bool,
    /// Whether the server's log has any record of the player.
    is_known: bool,
    is_reached: bool,
    up: PacketMatcher,
    down: PacketMatcher,
    above: OffsetBounds,
    below: OffsetBounds,
    /// Whether the client's log has usercmds, and packets.
    has_usercmds: bool,
    has_packets: bool,
    /// Whether the server received packets that are older than the client's log.
    begins_late: bool,
    /// Arrival time of the first packet that is missing after the beginning of the client's log.
    unknown_at: Option<Micros>,
    /// The newest usercmd of the last packet that the client sent.
    last_sent: Option<CommandSeq>,
}

/// The state of the first pass.
pub(super) struct MergeSurvey {
    pub(super) sides: SideIndex,
    pub(super) logs: Vec<LogProgress>,
    /// The newest time of each log, on its own clock.
    pub(super) ends: Vec<Option<Micros>>,
    players: Vec<PlayerMerge>,
    /// The first and the last tick.
    pub(super) ticks: Option<(TickRecord, TickRecord)>,
    /// The lowest tick that a record refers to.
    first_named: Option<Tick>,
    /// The most ticks that a chunk reaches back behind the last tick of earlier chunks.
    pub(super) ticks_back: u32,
    /// Kinds and columns of unknown records, without rows.
    pub(super) unknown: Vec<UnknownRecords>,
}

impl MergeSurvey {
    /// Reads all logs to their ends.
    pub(super) fn of<L: SideLogs>(
        headers: &[&SessionHeader],
        logs: &mut L,
    ) -> Result<MergeSurvey, PlanFailure<L::Error>> {
        let sides = SideIndex::of(headers)?;
        let player = PlayerMerge { above: OffsetBounds::above(), ..PlayerMerge::default() };
        let mut survey = MergeSurvey {
            logs: vec![LogProgress::default(); headers.len()],
            ends: vec![None; headers.len()],
            players: vec![player; sides.clients.len()],
            ticks: None,
            first_named: None,
            ticks_back: 0,
            unknown: Vec::new(),
            sides,
        };
        let clients: Vec<(usize, usize)> =
            survey.sides.clients.iter().enumerate().filter_map(|(player, log)| Some((player, (*log)?))).collect();
        while !survey.logs[survey.sides.server].has_ended {
            survey.read(logs, survey.sides.server)?;
            for &(player, log) in &clients {
                while !survey.logs[log].has_ended && survey.players[player].is_behind() {
                    survey.read(logs, log)?;
                }
            }
        }
        for (_, log) in clients {
            while !survey.logs[log].has_ended {
                survey.read(logs, log)?;
            }
        }
        let is_known = |named: Tick| survey.ticks.is_none_or(|(first, _)| first.tick <= named);
        if survey.first_named.is_none_or(is_known) { Ok(survey) } else { Err(PlanFailure::Whole) }
    }

    /// Reads the next stretch of one log.
    fn read<L: SideLogs>(&mut self, logs: &mut L, log: usize) -> Result<(), PlanFailure<L::Error>> {
        let Some(stretch) = logs.next(log).map_err(PlanFailure::Read)? else {
            self.logs[log].has_ended = true;
            return self.end(log).ok_or(PlanFailure::Whole);
        };
        if !stretch.time_span().is_none_or(is_in_time) {
            return Err(MergeError::OutOfTime { log }.into());
        }
        // Rows of clients' own kinds and logs without packets are merged in memory.
        let has_own = |records: &UnknownRecords| !records.is_empty() && self.sides.own_kind(records).is_some();
        if self.sides.player_of(log).is_some() && stretch.unknown.iter().any(has_own) {
            return Err(PlanFailure::Whole);
        }
        self.ends[log] = self.ends[log].max(stretch.full_time_span().map(|(_, last)| last));
        let stretch = self.sides.share(log, stretch);
        self.add(log, &stretch).ok_or(PlanFailure::Whole)
    }

    /// Processes the next stretch of a log. `None` if the logs cannot be merged as streams.
    fn add(&mut self, log: usize, stretch: &SessionStretch) -> Option<()> {
        for records in &stretch.unknown {
            // Records without times come at the start of a log that is written in one piece.
            records.times()?;
            records.span(0..records.len()).is_none_or(is_in_time).then_some(())?;
            note_unknown(&mut self.unknown, records);
        }
        self.logs[log].add(stretch)?;
        match self.sides.player_of(log) {
            Some(player) => self.players[player].add_client(stretch, player),
            None => self.add_server(stretch),
        }
    }

    fn add_server(&mut self, stretch: &SessionStretch) -> Option<()> {
        let executed = stretch.players.iter().flat_map(|player| &player.executed).map(|executed| executed.tick);
        let named = executed.chain(stretch.states.keys().iter().map(|key| key.tick)).min();
        if let (Some(named), Some((_, last))) = (named, self.ticks) {
            self.ticks_back = self.ticks_back.max(last.tick.0.saturating_sub(named.0));
            (self.ticks_back <= TICKS_BACK_MOST).then_some(())?;
        }
        self.first_named = [self.first_named, named].into_iter().flatten().min();
        for tick in &stretch.ticks {
            let (first, last) = self.ticks.map_or((*tick, None), |(first, last)| (first, Some(last)));
            // The second pass requires consecutive ticks.
            let follows = |last: TickRecord| last.tick.0.checked_add(1) == Some(tick.tick.0) && last.at <= tick.at;
            last.is_none_or(follows).then_some(())?;
            self.ticks = Some((first, *tick));
        }
        for ((of, log), records) in self.players.iter_mut().zip(&self.sides.clients).zip(&stretch.players) {
            of.has_frames |= !records.frames.is_empty();
            of.is_heard |= !records.heard.is_empty();
            of.is_known |= !records.is_empty();
            if log.is_some() {
                of.is_reached |= !records.reached.is_empty();
                records.snapshots.iter().try_for_each(|sent| of.down.send(sent.seq.0, sent.at)).ok()?;
                records.reached.iter().try_for_each(|arrival| of.up.arrive(*arrival)).ok()?;
                of.look_up()?;
            }
        }
        Some(())
    }

    /// Notes the end of a log.
    fn end(&mut self, log: usize) -> Option<()> {
        match self.sides.player_of(log) {
            Some(player) => {
                let of = &mut self.players[player];
                (of.has_packets || !of.has_usercmds).then_some(())?;
                of.up.end_sending();
                of.look_up()?;
                of.down.end_receiving();
            }
            None => {
                for of in &mut self.players {
                    of.down.end_sending();
                    of.look_up()?;
                    of.up.end_receiving();
                }
            }
        }
        Some(())
    }

    /// Returns the offset of each client's clock from the server's.
    pub(super) fn offsets(&self) -> Result<Vec<Option<Offset>>, MergeError> {
        let has_input = |player: usize| {
            let of = &self.players[player];
            of.has_frames || of.is_heard || !of.is_known
        };
        self.sides.check_missing(has_input)?;
        let of = |((player, log), of): ((u16, &Option<usize>), &PlayerMerge)| match log {
            Some(log) => {
                let found = offset::between(&of.above.kept, &of.below.kept);
                judged(found, of.is_reached, (*log, PlayerId(player)))
            }
            None => Ok(None),
        };
        (0..).zip(&self.sides.clients).zip(&self.players).map(of).collect()
    }

    /// Returns the header of the merged session.
    pub(super) fn header(&self, server: &SessionHeader) -> SessionHeader {
        let mut header = self.sides.header(server);
        let players = (0..).map(PlayerId).zip(self.players.iter().zip(&self.sides.clients));
        let received = players.filter(|(_, (of, log))| log.is_none() && of.has_frames);
        usercmds_as_received_of(&mut header.settings, received.map(|(player, _)| player));
        header
    }

    /// Whether a client's log begins late. The earlier usercmds are then in the server's log, which streams do not share.
    pub(super) fn begins_late(&self) -> bool {
        self.players.iter().any(|player| player.begins_late)
    }

    /// Returns the first packet of each client that the server received and that is missing after the beginning of the
    /// client's log.
    pub(super) fn unknown_packets(&self) -> impl Iterator<Item = UnknownPacket> {
        let of = |((player, log), of): ((u16, &Option<usize>), &PlayerMerge)| {
            Some(UnknownPacket { arrived_at: of.unknown_at?, player: PlayerId(player), log: (*log)? })
        };
        (0..).zip(&self.sides.clients).zip(&self.players).filter_map(of)
    }

    /// Returns the newest usercmd that each client is known to have sent.
    pub(super) fn last_sent(&self) -> Vec<Option<CommandSeq>> {
        self.players.iter().map(|player| player.last_sent).collect()
    }
}

/// Adds the kind and the columns of records to those that are known.
fn note_unknown(known: &mut Vec<UnknownRecords>, records: &UnknownRecords) {
    let empty = |column: &UnknownColumn| UnknownColumn { form: column.form, values: Vec::new() };
    match known.iter_mut().find(|known| known.kind == records.kind) {
        Some(known) => {
            let both = known.columns.iter_mut().zip(&records.columns);
            both.for_each(|(known, column)| known.see(column.form));
        }
        None => known.push(UnknownRecords {
            kind: records.kind.clone(),
            columns: records.columns.iter().map(empty).collect(),
            time_column: records.time_column,
            ..UnknownRecords::default()
        }),
    }
}

impl PlayerMerge {
    /// Returns whether the client's log must be read before more of the server's.
    fn is_behind(&self) -> bool {
        self.up.waits_for_sender() || self.down.packets_in_flight() > SNAPSHOTS_AHEAD
    }

    fn add_client(&mut self, stretch: &SessionStretch, player: usize) -> Option<()> {
        let records = stretch.players.get(player)?;
        self.has_usercmds |= !records.frames.is_empty();
        self.has_packets |= !records.sent.is_empty();
        records.sent.iter().try_for_each(|packet| self.up.send(packet.number, packet.at)).ok()?;
        records.received.iter().try_for_each(|arrival| self.down.arrive(*arrival)).ok()?;
        self.last_sent = records.sent.last().map(|packet| packet.newest).or(self.last_sent);
        self.look_up()
    }

    /// Matches arrivals with their send times.
    fn look_up(&mut self) -> Option<()> {
        while let Some((arrival, sent_at)) = self.up.next().ok()? {
            match sent_at {
                Some(sent_at) => self.above.add(OffsetBound::above(sent_at, arrival.at)).ok()?,
                None if self.up.begins_after(arrival.number) => self.begins_late = true,
                None => self.unknown_at = self.unknown_at.or(Some(arrival.at)),
            }
        }
        while let Some((arrival, sent_at)) = self.down.next().ok()? {
            if let Some(sent_at) = sent_at {
                self.below.add(OffsetBound::below(sent_at, arrival.at)).ok()?;
            }
        }
        Some(())
    }
}

impl LogProgress {
    /// Notes the times of the next chunk's records. `None` if it reaches back too far.
    pub(super) fn add(&mut self, stretch: &SessionStretch) -> Option<()> {
        self.chunks += 1;
        if let Some((first, last)) = stretch.full_time_span() {
            self.back = self.newest.map_or(self.back, |newest| self.back.max(newest - first));
            self.newest = self.newest.max(Some(last));
        }
        (self.back <= BACK_MOST).then_some(())
    }
}
