//! Reads a log chunk by chunk during its replay. It reads ahead as far as the fate of each sent packet requires.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use serde::{Deserialize, Serialize};

use super::survey::LogSurvey;
use crate::game::{Game, GameInput};
use crate::link::{Fate, Link};
use crate::packet::ReceivedPacket;
use crate::protocol::Direction;
use crate::session::{InputSource, Links, PlayerScreen};
use hitreg_log::record::{
    ArrivalRecord, ArrivalTable, FrameRecord, HeardRecord, PacketRecord, SessionChunk, SnapshotRecord, TickRecord,
    leave_times,
};
use hitreg_log::units::{CommandSeq, Micros, PlayerId, Tick};
use hitreg_log::usercmd::Input;

/// The distance to look ahead for input.
const READ_AHEAD: Micros = Micros::from_s(2);

/// The records of a log that are read but not yet used.
pub(super) struct Feed<'a> {
    chunks: &'a mut dyn Iterator<Item = SessionChunk>,
    survey: &'a LogSurvey,
    players: Vec<PlayerFeed>,
    /// When players leave, in the order of the log.
    departures: VecDeque<(Micros, PlayerId)>,
    /// The times of ticks that the replay has not asked for yet.
    ticks: VecDeque<Micros>,
    /// Tick records with uncompared hashes, and the number of compared ones.
    recorded: VecDeque<TickRecord>,
    compared: usize,
    /// Whether the replay has ticks of its own, so that the recorded ones are not kept.
    ignores_ticks: bool,
    /// The newest time read; `None` before the first chunk.
    newest: Option<Micros>,
    ended: bool,
    /// The session time that the replay has reached.
    reached_at: Micros,
    /// The last chunks as read, where keyframes are written.
    pub(super) kept_chunks: Option<KeptChunks>,
    /// The records before the keyframe at which this replay began.
    resume_point: Option<ResumePoint>,
}

#[derive(Default)]
struct PlayerFeed {
    frames: VecDeque<FrameRecord>,
    frames_left: u64,
    /// The last usercmd taken.
    last_taken: CommandSeq,
    heard: VecDeque<HeardRecord>,
    heard_left: u64,
    links: Links<RecordedLink>,
}

/// A recorded packet, and when it arrived.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct RecordedPacket {
    number: u32,
    sent_at: Micros,
    first: Option<Micros>,
    second: Option<Micros>,
}

impl RecordedPacket {
    fn new(number: u32, sent_at: Micros, Fate { first, second }: Fate) -> RecordedPacket {
        RecordedPacket { number, sent_at, first, second }
    }

    fn fate(&self) -> Fate {
        Fate { first: self.first, second: self.second }
    }
}

/// The recorded packets of one direction, in the order of sending. A replayed packet gets the fate of the last one that
/// was sent at or before its time.
#[derive(Default)]
struct RecordedLink {
    packets: VecDeque<RecordedPacket>,
    /// Whether the replay has reached the first packet's send time. The front packet is then the one whose fate applies.
    has_started: bool,
    /// Whether the front packet was restored from a keyframe. Records of packets up to it, and of its known arrivals, are
    /// then skipped.
    is_front_restored: bool,
}

/// A feed shared by the input, the links and the observer of one replay.
pub(super) type SharedFeed<'a> = Rc<RefCell<Feed<'a>>>;

impl<'a> Feed<'a> {
    pub(super) fn new(chunks: &'a mut dyn Iterator<Item = SessionChunk>, survey: &'a LogSurvey) -> SharedFeed<'a> {
        let of = |player: &super::survey::PlayerSurvey| PlayerFeed {
            frames_left: player.frames,
            heard_left: player.heard,
            ..PlayerFeed::default()
        };
        Rc::new(RefCell::new(Feed {
            chunks,
            survey,
            players: survey.players.iter().map(of).collect(),
            departures: VecDeque::new(),
            ticks: VecDeque::new(),
            recorded: VecDeque::new(),
            compared: 0,
            ignores_ticks: false,
            newest: None,
            ended: false,
            reached_at: Micros::ZERO,
            kept_chunks: None,
            resume_point: None,
        }))
    }

    /// Reads the next chunk.
    fn read(&mut self) {
        let Some(mut chunk) = self.chunks.next() else {
            self.ended = true;
            return;
        };
        let newest = chunk.time_span().map(|(_, newest)| newest);
        self.newest = self.newest.max(newest);
        if let Some(kept) = &mut self.kept_chunks {
            kept.add(&chunk, newest);
        }
        if let Some(ResumePoint { tick, taken }) = &self.resume_point {
            chunk.ticks.retain(|record| record.tick > *tick);
            for (records, taken) in chunk.players.iter_mut().zip(taken) {
                records.frames.retain(|frame| frame.command.seq > *taken);
                records.presence.retain(|record| record.tick > *tick);
            }
        }
        if !self.ignores_ticks {
            self.ticks.extend(chunk.ticks.iter().map(|tick| tick.at));
            self.recorded.extend(chunk.ticks);
        }
        for (player, (of, records)) in (0..).map(PlayerId).zip(self.players.iter_mut().zip(chunk.players)) {
            self.departures.extend(leave_times(&records.presence).into_iter().map(|at| (at, player)));
            of.frames.append(&mut records.frames.into());
            of.heard.append(&mut records.heard.into());
            of.links
                .up
                .add(records.sent.iter().map(|PacketRecord { number, at, .. }| (*number, *at)), &records.reached);
            let snapshots = records.snapshots.iter().map(|SnapshotRecord { seq, at, .. }| (seq.0, *at));
            of.links.down.add(snapshots, &records.received);
        }
    }

    /// Reads until every record up to `at` is there.
    fn read_until(&mut self, at: Micros) {
        let is_known = |newest: Micros| newest.0.saturating_sub(self.survey.chunk_overlap.0) > at.0;
        while !self.ended && !self.newest.is_some_and(is_known) {
            self.read();
        }
    }

    /// Returns the time of the next tick.
    pub(super) fn next_tick(&mut self) -> Option<Micros> {
        while self.ticks.is_empty() && !self.ended {
            self.read();
        }
        self.ticks.pop_front()
    }

    /// Passes over the recorded ticks and their hashes, for a replay at another tick rate.
    pub(super) fn ignore_ticks(&mut self) {
        self.ignores_ticks = true;
        (self.ticks, self.recorded) = Default::default();
    }

    /// Returns the recorded hash of a tick. Ticks are numbered from 1, and callers must ask for them in order.
    pub(super) fn hash_of(&mut self, tick: Tick) -> Option<u64> {
        let place = (tick.0 as usize).checked_sub(1)?;
        while self.compared < place {
            self.recorded.pop_front()?;
            self.compared += 1;
        }
        self.recorded.front().filter(|record| self.compared == place && record.tick == tick)?.hash
    }

    /// Sets the session time that the replay has reached.
    pub(super) fn reached(&mut self, at: Micros) {
        self.reached_at = at;
    }

    /// Returns the next player who has left by `at`.
    pub(super) fn next_left(&mut self, at: Micros) -> Option<PlayerId> {
        self.read_until(at);
        let place = self.departures.iter().position(|(left, _)| *left <= at)?;
        self.departures.remove(place).map(|(_, player)| player)
    }

    /// Returns the time of a player's next frame; `None` if it has none within [`READ_AHEAD`].
    pub(super) fn next_frame(&mut self, player: PlayerId) -> Option<Micros> {
        let index = usize::from(player.0);
        if self.players[index].frames.is_empty() && self.players[index].frames_left > 0 {
            self.read_until(self.reached_at + READ_AHEAD);
        }
        self.players[index].frames.front().map(|frame| frame.at)
    }

    fn take_frame(&mut self, player: PlayerId) -> Option<FrameRecord> {
        let of = &mut self.players[usize::from(player.0)];
        of.frames_left = of.frames_left.saturating_sub(1);
        let frame = of.frames.pop_front();
        of.last_taken = frame.as_ref().map_or(of.last_taken, |frame| frame.command.seq);
        frame
    }

    /// Returns the next heard packet of a player without frames; `None` if there is none within [`READ_AHEAD`].
    fn take_heard(&mut self, player: PlayerId) -> Option<(Micros, ReceivedPacket)> {
        let index = usize::from(player.0);
        if !self.survey.is_heard_only(index) {
            return None;
        }
        if self.players[index].heard.is_empty() && self.players[index].heard_left > 0 {
            self.read_until(self.reached_at + READ_AHEAD);
        }
        let of = &mut self.players[index];
        let heard = of.heard.pop_front()?;
        of.heard_left = of.heard_left.saturating_sub(1);
        Some((heard.at, ReceivedPacket::of(&heard)))
    }

    /// Whether a player has more frames later. For a player without frames: more heard packets.
    pub(super) fn has_more(&self, player: PlayerId) -> bool {
        let of = &self.players[usize::from(player.0)];
        of.frames_left > 0 || (self.survey.is_heard_only(usize::from(player.0)) && of.heard_left > 0)
    }

    /// Looks up the fate of a packet by its send time. A packet that was not recorded gets the delay of the packet sent
    /// at or just before its time, so a build or setting that sends other packets can use the recording, too.
    fn send(&mut self, player: usize, direction: Direction, at: Micros) -> Fate {
        let longest = self.survey.longest();
        self.read_until(at + longest);
        // For a packet before the first recorded one, the first is the nearest.
        while self.players[player].links.link(direction).packets.is_empty()
            && self.survey.players[player].sends(direction)
            && !self.ended
        {
            self.read();
        }
        let link = self.players[player].links.link(direction);
        link.has_started |= link.packets.front().is_some_and(|packet| packet.sent_at <= at);
        while link.has_started && link.packets.get(1).is_some_and(|packet| packet.sent_at <= at) {
            link.packets.pop_front();
        }
        let Some(sent_at) = link.packets.front().map(|packet| packet.sent_at) else { return Fate::LOST };
        self.read_until(sent_at + longest);
        let front = self.players[player].links.link(direction).packets.front();
        front.map_or(Fate::LOST, |packet| packet.fate().of_other(packet.sent_at, at))
    }
}

/// The recorded usercmds and heard packets are the input of a closed loop.
impl<G: Game> InputSource<G> for SharedFeed<'_> {
    fn next_frame(&mut self, player: PlayerId) -> Option<Micros> {
        self.borrow_mut().next_frame(player)
    }

    fn input(&mut self, _at: Micros, screen: &PlayerScreen<'_, G>) -> Input {
        self.borrow_mut().take_frame(screen.player).map_or_else(Input::default, |frame| frame.command.input)
    }

    fn needs_drawing(&self) -> bool {
        false
    }

    fn next_left(&mut self, at: Micros) -> Option<PlayerId> {
        self.borrow_mut().next_left(at)
    }

    fn next_heard(&mut self, player: PlayerId) -> Option<(Micros, ReceivedPacket)> {
        let (at, mut heard) = self.borrow_mut().take_heard(player)?;
        for command in &mut heard.packet.commands {
            command.input = G::Input::read(&command.input).write();
        }
        Some((at, heard))
    }

    fn has_more(&self, player: PlayerId) -> bool {
        self.borrow().has_more(player)
    }
}

impl RecordedLink {
    fn add(&mut self, sent: impl Iterator<Item = (u32, Micros)>, arrivals: &[ArrivalRecord]) {
        if self.packets.is_empty() && !self.is_front_restored {
            // A session in memory is one chunk, whose numbers may repeat or be out of order.
            let table = ArrivalTable::new(arrivals);
            let packet = |(number, at)| RecordedPacket::new(number, at, Fate::of(table.of(number)));
            self.packets.extend(sent.map(packet));
            return;
        }
        for (number, at) in sent {
            match self.packets.back_mut() {
                // Packets before the restored one have already been used.
                Some(last) if self.is_front_restored && number < last.number => {}
                // This chunk has the restored packet itself, with all its arrivals.
                Some(last) if self.is_front_restored && number == last.number => {
                    (last.first, last.second) = (None, None);
                    self.is_front_restored = false;
                }
                _ => self.packets.push_back(RecordedPacket::new(number, at, Fate::LOST)),
            }
        }
        for arrival in arrivals {
            // A packet that is missing here was already used.
            let Ok(place) = self.packets.binary_search_by_key(&arrival.number, |packet| packet.number) else {
                continue;
            };
            let packet = &mut self.packets[place];
            if self.is_front_restored && place == 0 && packet.fate().arrivals().any(|at| at == arrival.at) {
                continue;
            }
            let mut arrivals = [packet.first, packet.second, Some(arrival.at)];
            arrivals.sort_by_key(|at| at.map_or(i64::MAX, |at| at.0));
            [packet.first, packet.second, _] = arrivals;
        }
    }
}

/// The recent chunks, each with its number and its newest time.
pub(super) struct KeptChunks {
    next: usize,
    chunks: VecDeque<(usize, Micros, Rc<SessionChunk>)>,
    /// Keyframes before this time are done, so chunks that end earlier are not needed.
    since: Micros,
}

impl KeptChunks {
    /// Adds the next chunk as read.
    fn add(&mut self, chunk: &SessionChunk, newest: Option<Micros>) {
        let newest = newest.unwrap_or(Micros(i64::MIN));
        if !self.chunks.is_empty() || newest >= self.since {
            self.chunks.push_back((self.next, newest, Rc::new(chunk.clone())));
        }
        self.next += 1;
    }

    fn forget_before(&mut self, at: Micros) {
        while self.chunks.front().is_some_and(|(_, newest, _)| *newest < at) {
            self.chunks.pop_front();
        }
    }
}

/// The keyframe's tick, and the last usercmd that each player had used before it.
struct ResumePoint {
    tick: Tick,
    taken: Vec<CommandSeq>,
}

/// The state of a feed that the log near the keyframe does not hold.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct FeedCheckpoint {
    pub(super) players: Vec<ResumedPlayer>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct ResumedPlayer {
    frames_left: u64,
    last_taken: CommandSeq,
    /// The packet whose fate applied last, in each direction.
    fronts: [Option<RecordedPacket>; 2],
}

impl Feed<'_> {
    /// Starts to keep recent chunks; the next chunk has the number `next`.
    pub(super) fn keep_chunks(&mut self, next: usize) {
        self.kept_chunks = Some(KeptChunks { next, chunks: VecDeque::new(), since: Micros(i64::MIN) });
    }

    /// Drops the chunks that end before `at`; no later keyframe needs them.
    pub(super) fn keep_chunks_since(&mut self, at: Micros) {
        if let Some(kept) = &mut self.kept_chunks {
            kept.since = at;
            kept.forget_before(at);
        }
    }

    /// Resumes after a tick, from the state that another feed saved. The chunk numbered `next` comes next.
    pub(super) fn resume(&mut self, (tick, at): (Tick, Micros), next: usize, fed: &FeedCheckpoint) {
        for (of, fed) in self.players.iter_mut().zip(&fed.players) {
            of.frames_left = fed.frames_left;
            for (link, front) in [&mut of.links.up, &mut of.links.down].into_iter().zip(fed.fronts) {
                link.packets.extend(front);
                (link.has_started, link.is_front_restored) = (front.is_some(), front.is_some());
            }
        }
        let taken = fed.players.iter().map(|player| player.last_taken).collect();
        self.resume_point = Some(ResumePoint { tick, taken });
        (self.compared, self.reached_at) = (tick.0 as usize, at);
        self.keep_chunks(next);
    }

    /// Reads up to `at`. Returns the kept chunks that end at most `reach` earlier, and the number of the first.
    pub(super) fn chunks_near(&mut self, at: Micros, reach: Micros) -> (usize, Vec<Rc<SessionChunk>>) {
        self.read_until(at);
        let Some(kept) = &mut self.kept_chunks else { return (0, Vec::new()) };
        kept.forget_before(at - reach);
        let first = kept.chunks.front().map_or(kept.next, |(number, ..)| *number);
        (first, kept.chunks.iter().map(|(_, _, chunk)| Rc::clone(chunk)).collect())
    }

    /// Returns the feed's state for a keyframe. Returns `None` if a player is known only by heard packets, or if a
    /// packet older than `reach` is still unused.
    pub(super) fn checkpoint(&self, at: Micros, reach: Micros) -> Option<FeedCheckpoint> {
        let heard_only = (0..self.players.len()).any(|player| self.survey.is_heard_only(player));
        let is_lost = |link: &RecordedLink| {
            !link.has_started && link.packets.front().is_some_and(|packet| packet.sent_at < at - reach)
        };
        if heard_only || self.players.iter().any(|of| is_lost(&of.links.up) || is_lost(&of.links.down)) {
            return None;
        }
        let front = |link: &RecordedLink| link.packets.front().filter(|_| link.has_started).copied();
        let of = |of: &PlayerFeed| ResumedPlayer {
            frames_left: of.frames_left,
            last_taken: of.last_taken,
            fronts: [front(&of.links.up), front(&of.links.down)],
        };
        Some(FeedCheckpoint { players: self.players.iter().map(of).collect() })
    }
}

/// A recorded link that looks packets up in a feed.
pub(super) struct FeedLink<'a> {
    feed: SharedFeed<'a>,
    player: usize,
    direction: Direction,
}

impl<'a> FeedLink<'a> {
    /// A direction of a player's connection.
    pub(super) fn of(feed: &SharedFeed<'a>, player: usize, direction: Direction) -> FeedLink<'a> {
        FeedLink { feed: Rc::clone(feed), player, direction }
    }
}

impl Link for FeedLink<'_> {
    fn send(&mut self, at: Micros, _bytes: u16) -> Fate {
        self.feed.borrow_mut().send(self.player, self.direction, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rink::Rink;
    use crate::session::scenario::Scenario;
    use hitreg_log::record::PlayerRecords;
    use hitreg_log::usercmd::Usercmd;

    fn ms(ms: i64) -> Micros {
        Micros::from_ms(ms)
    }

    fn frame(seq: u32, at: Micros) -> FrameRecord {
        FrameRecord { at, command: Usercmd { seq: CommandSeq(seq), ..Usercmd::default() }, ..FrameRecord::default() }
    }

    fn packet(number: u32, at: Micros) -> PacketRecord {
        PacketRecord { number, at, newest: CommandSeq(number), count: 1, ..PacketRecord::default() }
    }

    fn tick(number: u32, at: Micros) -> TickRecord {
        TickRecord { tick: Tick(number), at, ..TickRecord::default() }
    }

    /// Chunks of one second each, with two ticks per second. Each record of the only player is in the chunk of its
    /// time.
    fn chunks(seconds: i64, of: &PlayerRecords) -> Vec<SessionChunk> {
        let within = |second: i64| move |at: Micros| (ms(1000 * second)..ms(1000 * second + 1000)).contains(&at);
        let chunk = |second: i64| {
            let is_in = within(second);
            let player = PlayerRecords {
                frames: of.frames.iter().filter(|frame| is_in(frame.at)).cloned().collect(),
                heard: of.heard.iter().filter(|heard| is_in(heard.at)).cloned().collect(),
                sent: of.sent.iter().filter(|packet| is_in(packet.at)).copied().collect(),
                reached: of.reached.iter().filter(|arrival| is_in(arrival.at)).copied().collect(),
                ..PlayerRecords::default()
            };
            let number = 2 * second as u32 + 1;
            let ticks = vec![tick(number, ms(1000 * second)), tick(number + 1, ms(1000 * second + 500))];
            SessionChunk { ticks, players: vec![player], ..SessionChunk::default() }
        };
        (0..seconds).map(chunk).collect()
    }

    fn survey(chunks: &[SessionChunk]) -> LogSurvey {
        let scenario = Scenario { players: 1, ..Scenario::default() };
        let header = scenario.header::<Rink>(&()).expect("a good scenario");
        let mut survey = LogSurvey::new(&header);
        chunks.iter().for_each(|chunk| survey.add(&header, &mut chunk.clone()));
        survey.end();
        survey
    }

    #[test]
    fn input_is_read_two_seconds_ahead() {
        let records = PlayerRecords { frames: vec![frame(1, ms(1_700)), frame(2, ms(9_000))], ..Default::default() };
        let chunks = chunks(12, &records);
        let survey = survey(&chunks);
        let read = std::cell::Cell::new(0);
        let mut counted = chunks.iter().cloned().inspect(|_| read.set(read.get() + 1));
        let feed = Feed::new(&mut counted, &survey);
        let mut feed = feed.borrow_mut();
        let player = PlayerId(0);
        assert_eq!(feed.next_frame(player), Some(ms(1_700)), "though nothing else has asked for that chunk");
        assert!(read.get() <= 3, "{} chunks", read.get());
        assert_eq!(feed.take_frame(player).map(|frame| frame.at), Some(ms(1_700)));
        assert!(feed.next_frame(player).is_none() && feed.has_more(player), "later");
        feed.reached(ms(7_500));
        assert_eq!(feed.next_frame(player), Some(ms(9_000)));
        feed.take_frame(player);
        assert!(feed.next_frame(player).is_none() && !feed.has_more(player), "never");
        assert!(read.get() <= 11, "{} chunks", read.get());
    }

    #[test]
    fn received_usercmds_are_input_only_for_players_without_frames() {
        let heard = |at| HeardRecord { at, ..HeardRecord::default() };
        let mut records = PlayerRecords { heard: vec![heard(ms(1_700)), heard(ms(9_000))], ..Default::default() };
        let player = PlayerId(0);
        let log = chunks(12, &records);
        let surveyed = survey(&log);
        let mut read = log.iter().cloned();
        let feed = Feed::new(&mut read, &surveyed);
        let mut feed = feed.borrow_mut();
        assert!(feed.has_more(player));
        assert_eq!(feed.take_heard(player).map(|(at, _)| at), Some(ms(1_700)));
        assert!(feed.take_heard(player).is_none() && feed.has_more(player));
        feed.reached(ms(7_500));
        assert_eq!(feed.take_heard(player).map(|(at, _)| at), Some(ms(9_000)));
        assert!(feed.take_heard(player).is_none() && !feed.has_more(player));

        records.frames = vec![frame(1, ms(300))];
        let log = chunks(12, &records);
        let surveyed = survey(&log);
        let mut read = log.iter().cloned();
        let feed = Feed::new(&mut read, &surveyed);
        let mut feed = feed.borrow_mut();
        assert!(feed.take_heard(player).is_none(), "its own frames say all");
        feed.take_frame(player);
        assert!(feed.take_heard(player).is_none() && !feed.has_more(player));

        let log = chunks(12, &PlayerRecords::default());
        let surveyed = survey(&log);
        assert!(!surveyed.has_input() && !surveyed.is_heard_only(0));
    }

    /// A feed gives each packet the same fate as a link over the whole log.
    #[test]
    fn fates_equal_those_of_the_whole_log() {
        let sent: Vec<PacketRecord> = (0..40).map(|n| packet(n, ms(5_300 + 70 * i64::from(n)))).collect();
        let arrival = |n: u32, late: i64| ArrivalRecord { number: n, at: sent[n as usize].at + ms(late) };
        let mut reached: Vec<ArrivalRecord> = (0..40).filter(|n| n % 5 != 3).map(|n| arrival(n, 40)).collect();
        reached.push(arrival(7, 900));
        reached.sort_by_key(|arrival| arrival.at);
        let records = PlayerRecords { sent: sent.clone(), reached: reached.clone(), ..Default::default() };
        let fate = |at: Micros| {
            let packet = &sent[sent.iter().rposition(|packet| packet.at <= at).unwrap_or(0)];
            let arrivals = reached.iter().filter(|arrival| arrival.number == packet.number);
            Fate::of(arrivals.map(|arrival| arrival.at)).of_other(packet.at, at)
        };
        let log = chunks(12, &records);
        let surveyed = survey(&log);
        for step in [11, 70, 333] {
            let mut read = log.iter().cloned();
            let feed = Feed::new(&mut read, &surveyed);
            let mut fed = FeedLink::of(&feed, 0, Direction::Up);
            for at in (0..9_500).step_by(step).map(ms) {
                assert_eq!(fed.send(at, 100), fate(at), "every {step} ms, at {at}");
            }
        }
    }

    fn restored() -> RecordedLink {
        let fate = Fate { first: Some(Micros::from_ms(30)), second: None };
        let packets = [RecordedPacket::new(5, Micros::from_ms(10), fate)].into();
        RecordedLink { packets, has_started: true, is_front_restored: true }
    }

    fn arrives(number: u32, ms: i64) -> ArrivalRecord {
        ArrivalRecord { number, at: Micros::from_ms(ms) }
    }

    fn fates(link: &RecordedLink) -> Vec<(u32, Option<i64>, Option<i64>)> {
        let ms = |at: Option<Micros>| at.map(|at| at.0 / 1_000);
        link.packets.iter().map(|packet| (packet.number, ms(packet.first), ms(packet.second))).collect()
    }

    #[test]
    fn the_fate_of_a_restored_packet_is_not_used_twice() {
        let mut link = restored();
        link.add([(6, Micros::from_ms(20))].into_iter(), &[arrives(5, 30), arrives(6, 40)]);
        assert_eq!(fates(&link), [(5, Some(30), None), (6, Some(40), None)]);
        link.add([].into_iter(), &[arrives(4, 50), arrives(5, 33)]);
        assert_eq!(fates(&link), [(5, Some(30), Some(33)), (6, Some(40), None)], "that it came twice is news");
    }

    #[test]
    fn a_chunk_with_the_packet_gives_its_complete_fate() {
        let mut link = restored();
        let sent = [(4, 5), (5, 10), (6, 20)].map(|(number, ms)| (number, Micros::from_ms(ms)));
        link.add(sent.into_iter(), &[arrives(4, 20), arrives(5, 30), arrives(5, 31)]);
        assert_eq!(fates(&link), [(5, Some(30), Some(31)), (6, None, None)]);
    }
}
