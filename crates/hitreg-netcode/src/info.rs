//! The figures of a log that need no replay: players, duration and connections.

mod number_set;

pub(crate) use number_set::NumberSet;

use serde::Serialize;

use crate::settings::Settings;
use hitreg_log::record::{
    GapRecord, Origin, Outline, PlayerOutline, Session, SessionHeader, UnknownKind, lowest_and_highest, widest,
};
use hitreg_log::round_trips::SnapshotRoundTrips;
use hitreg_log::sorted::SortedMap;
use hitreg_log::stats::CountedValues;
use hitreg_log::traffic::{Packet, PacketReader, SnapshotNumbers};
use hitreg_log::units::Micros;

/// Whether the session comes from a game with its own netcode, whose settings, fields and kinds of records only its own
/// builds know. A log of one of hitreg's pipelines has all of the pipeline's settings.
pub fn is_foreign(header: &SessionHeader) -> bool {
    !header.settings.iter().any(|(key, _)| key != TICK_HZ && Settings::is_known(key))
}

/// The one hitreg setting that a foreign game's log may have.
const TICK_HZ: &str = "server.tick_hz";

/// What a later version recorded and this build skips, as text: settings, columns and kinds of records. Classes of
/// entities, fields of usercmds and declared kinds of records belong to the game and are not checked here.
pub fn passed_over(header: &SessionHeader) -> Vec<String> {
    if is_foreign(header) {
        return Vec::new();
    }
    let settings = Settings::unknown(&header.settings).map(|(key, value)| format!("setting {key}={value}"));
    let unknown = header.unknown.iter().filter(|kind| !kind.is_custom());
    settings.chain(unknown.map(UnknownKind::to_string)).collect()
}

/// The figures of a log.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionInfo {
    /// The name of the game.
    pub game: String,
    /// The name of the map.
    pub map: String,
    /// Where the session came from: `synthetic`, `live`, or the format that was imported.
    pub origin: String,
    /// The side that the log holds (`server`, or a client by its player); `None` if it holds all sides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub side: Option<String>,
    /// The session id, equal in the logs of all sides of a session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// The preset of the settings.
    pub preset: Option<String>,
    /// The number of players that the header lists, including spectators, bots and unused places.
    pub players: usize,
    /// Time from the first client frame, snapshot arrival or tick to the last, in microseconds. A part of a session begins
    /// with its first tick, because its first usercmds may be older. Without these records, the time from the first record
    /// to the last.
    pub duration_us: i64,
    /// Server ticks; 0 in an imported recording.
    pub ticks: usize,
    /// Usercmds of all players: from client frames, or as the server received them if the log holds only the server.
    pub usercmds: usize,
    /// The usercmds with the attack button pressed.
    pub usercmds_firing: usize,
    /// Usercmds with bytes of the application; left out if there are none.
    #[serde(skip_serializing_if = "is_zero")]
    pub usercmds_with_bytes: usize,
    /// The number of these bytes.
    #[serde(skip_serializing_if = "is_zero")]
    pub usercmd_bytes: usize,
    /// Packets from the server to all recorded players.
    pub packets: PacketCounts,
    /// Packets to the server; unknown in an imported recording, which does not record arrivals.
    pub packets_up: PacketCounts,
    /// Time from making a usercmd to receiving its ack, over all recorded players.
    pub rtt_ms: Percentiles,
    /// The figures of each player with records: the client's own, or the server's about it.
    pub by_player: Vec<PlayerFigures>,
    /// The number of records of each kind, by the kind's name in the format.
    pub records: SortedMap<String, usize>,
    /// Time spans with missing records.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gaps: Vec<GapFigures>,
}

/// A time span with missing records.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GapFigures {
    /// Start, in microseconds of session time.
    pub from_us: i64,
    /// End, in microseconds of session time.
    pub to_us: i64,
    /// The player whose records are missing; `None` if records of any player may be.
    pub player: Option<u16>,
    /// The reason: `damaged`, `overrun`, `paused`, `disconnected` or `began_late`.
    pub why: &'static str,
}

/// The figures of one recorded player.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlayerFigures {
    /// The player's name in the log.
    pub name: String,
    /// The number of client frames, or of usercmds that the server received if the log holds only the server.
    pub usercmds: usize,
    /// Packets from the server.
    pub packets: PacketCounts,
    /// Packets to the server.
    pub packets_up: PacketCounts,
    /// Time from making a usercmd to receiving its ack.
    pub rtt_ms: Percentiles,
}

/// Counts of the packets of one direction; each is `None` if the log does not hold it. A log of one side holds what that
/// side sent or received, and not both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PacketCounts {
    /// Packets that the sender numbered.
    pub sent: Option<u64>,
    /// Packets that arrived, each counted once.
    pub received: Option<u64>,
    /// Packets that never arrived although a later one did. Choked updates do not count.
    pub lost: Option<u64>,
    /// Updates that the server held back because the client's rate was used up. A QuakeWorld server gives them numbers
    /// too.
    pub choked: Option<u64>,
}

/// Nearest-rank percentiles; each is `None` if there is no measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Percentiles {
    /// The 5th percentile.
    pub p5: Option<f64>,
    /// The median.
    pub p50: Option<f64>,
    /// The 95th percentile.
    pub p95: Option<f64>,
    /// The 99th percentile.
    pub p99: Option<f64>,
}

/// Collects the figures of a log, chunk by chunk.
#[derive(Debug)]
pub struct InfoBuilder {
    counts: SortedMap<String, usize>,
    players: Vec<ConnectionBuilder>,
    packets: PacketReader,
    ticks: Option<(Micros, Micros)>,
    /// The times of chunks without client frames, snapshot arrivals and ticks.
    other_times: Option<(Micros, Micros)>,
    gaps: Vec<GapFigures>,
}

impl InfoBuilder {
    /// The figures of a log before its first chunk.
    pub fn new(header: &SessionHeader) -> InfoBuilder {
        let players = header.players.iter().map(|_| ConnectionBuilder::default()).collect();
        let packets = PacketReader::new(header);
        InfoBuilder { counts: SortedMap::new(), players, packets, ticks: None, other_times: None, gaps: Vec::new() }
    }

    /// Adds the next chunk.
    pub fn add(&mut self, outline: Outline) {
        for (name, count) in &outline.counts {
            *self.counts.entry(name.clone()).or_default() += count;
        }
        self.players.iter_mut().zip(&outline.players).for_each(|(player, more)| player.add(more));
        self.packets.add_outline(&outline, &mut |packet| add_packet(&mut self.players, &packet));
        self.ticks = longer(self.ticks, outline.ticks);
        self.other_times = widest(self.other_times.into_iter().chain(outline.other_times));
        let figures = |gap: &GapRecord| GapFigures {
            from_us: gap.from.0,
            to_us: gap.to.0,
            player: gap.player.map(|player| player.0),
            why: gap.why.name(),
        };
        self.gaps.extend(outline.gaps.iter().map(figures));
    }

    /// All round trips of all recorded players, in milliseconds.
    pub fn round_trips_ms(&self) -> impl Iterator<Item = f32> + '_ {
        let times = self.players.iter().flat_map(|player| player.round_trips_us.iter());
        times.flat_map(|(us, count)| std::iter::repeat_n((f64::from(us) / 1000.0) as f32, count as usize))
    }

    /// The figures, after all chunks.
    pub fn info(&mut self, header: &SessionHeader) -> SessionInfo {
        let choked_are_numbered = SnapshotNumbers::of(header) != SnapshotNumbers::Sent;
        let packets = std::mem::replace(&mut self.packets, PacketReader::new(header));
        packets.end(&mut |packet| add_packet(&mut self.players, &packet));
        let spans = self.players.iter().flat_map(|player| player.spans).chain([self.ticks]).flatten();
        let played = lowest_and_highest(spans.flat_map(|(first, last)| [first, last]));
        let begins_at = self.ticks.map(|(first, _)| first).filter(|_| header.begins_inside());
        let duration = played.map(|(first, last)| (begins_at.unwrap_or(first), last)).or(self.other_times);
        let mut rtt_us = CountedValues::default();
        let recorded = self.players.iter().filter(|player| player.is_recorded());
        recorded.for_each(|player| rtt_us.add_counted(player.round_trips_us.iter()));
        let (usercmds, usercmds_firing) =
            self.players.iter().map(ConnectionBuilder::usercmds).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        let recorded = self.players.iter().zip(&header.players).filter(|(player, _)| player.is_recorded());
        let mut by_player: Vec<PlayerFigures> =
            recorded.map(|(player, info)| player.figures(&info.name, choked_are_numbered)).collect();
        // A client that recorded what it received also recorded what it sent. The server recorded the packets of all.
        let has_server = by_player.iter().any(|player| player.packets_up.received.is_some());
        for PlayerFigures { packets, packets_up, .. } in &mut by_player {
            packets.complete(packets_up.sent.is_some() && has_server);
            packets_up.complete(has_server);
        }
        SessionInfo {
            game: header.game.clone(),
            map: header.map.clone(),
            origin: match &header.origin {
                Origin::Synthetic => "synthetic".to_owned(),
                Origin::Live => "live".to_owned(),
                Origin::Imported { format } => format.clone(),
            },
            side: header.side.map(|side| match side.player {
                None => "server".to_owned(),
                Some(player) => format!("client of player {player}"),
            }),
            session: header.side.map(|side| side.session.to_string()),
            preset: header.preset.clone(),
            players: header.players.len(),
            duration_us: duration.map_or(0, |(first, last)| (last - first).0),
            ticks: self.counts.get("ticks").copied().unwrap_or(0),
            usercmds,
            usercmds_firing,
            usercmds_with_bytes: self.players.iter().map(|player| player.with_bytes).sum(),
            usercmd_bytes: self.players.iter().map(|player| player.bytes).sum(),
            packets: PacketCounts::total(by_player.iter().map(|player| player.packets)),
            packets_up: PacketCounts::total(by_player.iter().map(|player| player.packets_up)),
            rtt_ms: Percentiles::of_us(&rtt_us),
            by_player,
            records: self.counts.clone(),
            gaps: std::mem::take(&mut self.gaps),
        }
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl SessionInfo {
    /// The figures of a session.
    pub fn of(session: &Session) -> SessionInfo {
        let mut figures = InfoBuilder::new(&session.header);
        figures.add(Outline::of(session));
        figures.info(&session.header)
    }
}

impl Percentiles {
    /// The percentiles, in milliseconds, of times in microseconds.
    fn of_us(times: &CountedValues) -> Percentiles {
        let at = |percent| times.percentile(percent).map(|us| f64::from(us) / 1000.0);
        Percentiles { p5: at(5.0), p50: at(50.0), p95: at(95.0), p99: at(99.0) }
    }
}

impl PacketCounts {
    /// Sets the counts of a receiver whose records the log has, and that received none of the sent packets.
    fn complete(&mut self, has_receiver: bool) {
        if has_receiver && self.sent.is_some() && self.received.is_none() {
            (self.received, self.lost) = (Some(0), Some(0));
        }
    }

    /// The counts of all players for whom both ends are known, or of all players if there are none.
    fn total(players: impl Iterator<Item = PacketCounts> + Clone) -> PacketCounts {
        let is_complete = |counts: &PacketCounts| counts.sent.is_some() && counts.received.is_some();
        let has_complete = players.clone().any(|counts| is_complete(&counts));
        players.filter(|counts| !has_complete || is_complete(counts)).fold(PacketCounts::default(), PacketCounts::plus)
    }

    fn plus(self, other: PacketCounts) -> PacketCounts {
        let sum = |a: Option<u64>, b: Option<u64>| a.zip(b).map(|(a, b)| a + b).or(a).or(b);
        PacketCounts {
            sent: sum(self.sent, other.sent),
            received: sum(self.received, other.received),
            lost: sum(self.lost, other.lost),
            choked: sum(self.choked, other.choked),
        }
    }
}

fn add_packet(players: &mut [ConnectionBuilder], packet: &Packet) {
    let Some(ConnectionBuilder { up, down, .. }) = players.get_mut(packet.player as usize) else { return };
    if packet.is_up { up.add(packet) } else { down.add(packet) }
}

/// The state of a connection so far.
#[derive(Debug, Default)]
struct ConnectionBuilder {
    frames: usize,
    firing: usize,
    with_bytes: usize,
    bytes: usize,
    /// Usercmds that the server received; used if the client's own records are missing.
    heard: NumberSet,
    heard_firing: usize,
    /// The times of the first and last frame, and of the first and last snapshot.
    spans: [Option<(Micros, Micros)>; 2],
    up: PacketTotals,
    down: PacketTotals,
    choked: u64,
    round_trips_us: CountedValues,
    acks: SnapshotRoundTrips,
}

/// The packets of one direction. Packets whose records may be missing in a gap do not count.
#[derive(Debug, Default)]
struct PacketTotals {
    /// The packets that arrived, whether or not the log has their sending.
    came: NumberSet,
    sent: u64,
    received: u64,
    lost: u64,
}

impl ConnectionBuilder {
    /// Adds the connection's part of the next chunk.
    fn add(&mut self, outline: &PlayerOutline) {
        self.frames += outline.frames.len();
        self.firing += outline.firing;
        self.with_bytes += outline.bytes.len();
        self.bytes += outline.bytes.iter().map(|bytes| *bytes as usize).sum::<usize>();
        for (number, fires) in &outline.heard {
            self.heard_firing += usize::from(self.heard.insert(*number) && *fires);
        }
        let span = |of: &[(u32, Micros)]| of.first().zip(of.last()).map(|((_, first), (_, last))| (*first, *last));
        for (known, more) in self.spans.iter_mut().zip([span(&outline.frames), span(&outline.received)]) {
            *known = longer(*known, more);
        }
        let reached = outline.reached.iter().map(|(number, _)| number);
        self.up.came.extend(reached.chain(&outline.heard_packets).copied());
        self.down.came.extend(outline.received.iter().map(|(number, _)| *number));
        self.choked += outline.choked.iter().map(|choked| u64::from(*choked)).sum::<u64>();
        let ConnectionBuilder { acks, round_trips_us, .. } = self;
        acks.add(outline, &mut |_, took| round_trips_us.add(took.0 as f32));
    }

    fn is_recorded(&self) -> bool {
        self.frames > 0 || self.down.came.count() > 0 || self.down.sent > 0 || self.heard.count() > 0
    }

    /// How many usercmds the player made, and how many with the attack button pressed.
    fn usercmds(&self) -> (usize, usize) {
        if self.frames > 0 { (self.frames, self.firing) } else { (self.heard.count(), self.heard_firing) }
    }

    fn figures(&self, name: &str, choked_are_numbered: bool) -> PlayerFigures {
        // A QuakeWorld server also numbers the updates that it holds back.
        let numbered = if choked_are_numbered { self.choked } else { 0 };
        let down = self.down.counts();
        PlayerFigures {
            name: name.to_owned(),
            usercmds: self.usercmds().0,
            packets: PacketCounts {
                sent: down.sent.map(|sent| sent + numbered),
                choked: down.sent.map(|_| self.choked),
                ..down
            },
            packets_up: self.up.counts(),
            rtt_ms: Percentiles::of_us(&self.round_trips_us),
        }
    }
}

impl PacketTotals {
    fn add(&mut self, packet: &Packet) {
        self.sent += u64::from(!packet.is_in_gap);
        self.received += u64::from(packet.took_us.is_some());
        self.lost += u64::from(packet.is_missing);
    }

    fn counts(&self) -> PacketCounts {
        let sent = Some(self.sent).filter(|sent| *sent > 0);
        let received = if sent.is_some() { self.received } else { self.came.count() as u64 };
        let received = Some(received).filter(|received| *received > 0);
        PacketCounts { sent, received, lost: sent.and(received).map(|_| self.lost), choked: None }
    }
}

/// From the beginning of the first span to the end of the later one.
pub(super) fn longer<T>(known: Option<(T, T)>, later: Option<(T, T)>) -> Option<(T, T)> {
    match (known, later) {
        (Some((first, _)), Some((_, last))) => Some((first, last)),
        (known, later) => known.or(later),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::record::{
        ArrivalRecord, FrameRecord, HeardRecord, PacketRecord, PlayerInfo, Presence, PresenceRecord, Record,
        SnapshotRecord,
    };
    use hitreg_log::units::{CommandSeq, PlayerId, Seed, SnapshotSeq, Tick};
    use hitreg_log::usercmd::{Usercmd, buttons};

    /// Ten frames 10 ms apart, each with a snapshot 40 ms later. The third snapshot is lost, the fifth arrives twice,
    /// and the last is in flight.
    fn session() -> Session {
        let player = |name: &str, recorded| PlayerInfo { name: name.into(), recorded };
        let mut session = Session::new(SessionHeader {
            game: "test".into(),
            rules: Vec::new().into(),
            map: "nowhere".into(),
            seed: Seed(1),
            settings: Vec::new(),
            preset: Some("half-life".into()),
            players: vec![player("p0", true), player("p1", false)],
            origin: Origin::Synthetic,
            side: None,
            classes: Vec::new(),
            usercmd: hitreg_log::record::usercmd_fields(),
            usercmd_bytes: false,
            unknown: Vec::new(),
        });
        let me = PlayerId(0);
        let mut add = |record| session.push(record).expect("it fits");
        for n in 1..=10u32 {
            let sent = Micros::from_ms(i64::from(n) * 10);
            let mut command: Usercmd = Usercmd { seq: CommandSeq(n), ..Usercmd::default() };
            command.input.buttons = if n == 7 { buttons::ATTACK } else { 0 };
            add(Record::Frame(me, FrameRecord { at: sent, command, ..FrameRecord::default() }));
            let arrived = sent + Micros::from_ms(40 + i64::from(n));
            let snapshot = SnapshotRecord {
                seq: SnapshotSeq(n),
                tick: Tick(n),
                at: sent + Micros::from_ms(20),
                server_time: sent,
                ack: CommandSeq(n),
                bytes: 100,
                choked: u8::from(n == 4),
                entities: Vec::new(),
                effects: Vec::new(),
                extra: Vec::new(),
                timing: None,
            };
            add(Record::Snapshot(me, snapshot));
            let arrivals = match n {
                3 | 10 => 0,
                5 => 2,
                _ => 1,
            };
            for copy in 0..arrivals {
                add(Record::Received(me, ArrivalRecord { number: n, at: arrived + Micros(copy) }));
            }
        }
        session
    }

    fn counted(sent: u64, received: u64, lost: u64, choked: u64) -> PacketCounts {
        PacketCounts { sent: Some(sent), received: Some(received), lost: Some(lost), choked: Some(choked) }
    }

    #[test]
    fn a_log_of_the_server_counts_sent_and_received_packets() {
        let mut session = session();
        let frames = std::mem::take(&mut session.players[0].frames);
        session.players[0].received.clear();
        for (number, frame) in (1..).zip(&frames[..8]) {
            let (at, commands) = (frame.at, vec![frame.command.clone()]);
            session.players[0].heard.push(HeardRecord {
                number,
                at,
                ack: SnapshotSeq(0),
                received_before: 0,
                commands,
            });
        }
        let info = SessionInfo::of(&session);
        assert_eq!(info.packets, PacketCounts { sent: Some(10), choked: Some(1), ..PacketCounts::default() });
        assert_eq!(info.packets_up, PacketCounts { received: Some(8), ..PacketCounts::default() });
        assert_eq!((info.by_player.len(), info.by_player[0].usercmds), (1, 8));
    }

    #[test]
    fn packets_are_sent_received_lost_or_in_flight() {
        let info = SessionInfo::of(&session());
        assert_eq!(info.packets, counted(10, 8, 1, 1));
        assert_eq!(info.packets_up, PacketCounts::default());
        assert_eq!((info.players, info.by_player.len()), (2, 1));
        assert_eq!((info.usercmds, info.usercmds_firing), (10, 1));
    }

    #[test]
    fn choked_quakeworld_packets_are_not_lost() {
        let mut session = session();
        session.header.origin = Origin::Imported { format: "qwd".to_owned() };
        // A demo has only the packets that arrived.
        session.players[0].snapshots.remove(2);
        assert_eq!(SessionInfo::of(&session).packets, counted(10, 8, 0, 1));
    }

    #[test]
    fn round_trips_are_measured_at_the_acked_usercmd() {
        let rtt = SessionInfo::of(&session()).rtt_ms;
        let expected = Percentiles { p5: Some(41.0), p50: Some(45.0), p95: Some(49.0), p99: Some(49.0) };
        assert_eq!(rtt, expected);
    }

    /// A player leaves for 20 s. The server first acks the last usercmd before that, once before usercmds begin again.
    #[test]
    fn an_absence_is_no_round_trip() {
        let away = Micros::from_s(20);
        let rejoins = |first_again: u32, acks: &[u32], has_presence: bool| {
            let mut session = session();
            let player = &mut session.players[0];
            let presence = [(Presence::Left, Micros::from_ms(160)), (Presence::Joined, away)];
            if has_presence {
                player.presence = presence.map(|(change, at)| PresenceRecord { tick: Tick(16), at, change }).into();
            }
            for n in 0..10 {
                let at = away + Micros::from_ms(10 * i64::from(n) + 10);
                let command = Usercmd { seq: CommandSeq(first_again + n), ..Usercmd::default() };
                player.frames.push(FrameRecord { at, command, ..FrameRecord::default() });
            }
            for (seq, ack) in (11..).zip(acks) {
                let at = away + Micros::from_ms(10 * i64::from(seq) - 80);
                let snapshot = player.snapshots[0].clone();
                player.snapshots.push(SnapshotRecord { seq: SnapshotSeq(seq), at, ack: CommandSeq(*ack), ..snapshot });
                player.received.push(ArrivalRecord { number: seq, at: at + Micros::from_ms(20) });
            }
            SessionInfo::of(&session).rtt_ms.p99
        };
        // Numbers go on, and begin again. Usercmd 11 is made 60 ms before its ack arrives.
        assert_eq!(rejoins(11, &[10, 10, 11, 12], true), Some(60.0));
        assert_eq!(rejoins(1, &[1, 2, 3, 4], true), Some(49.0));
        assert_eq!(rejoins(1, &[1, 2, 3, 4], false), Some(49.0));
    }

    /// Usercmds whose recorded times are not in the order of their numbers keep their round trips.
    #[test]
    fn usercmds_out_of_order_have_round_trips() {
        let mut session = session();
        session.players[0].frames.swap(4, 5);
        let acked = |session: &Session| {
            let mut figures = InfoBuilder::new(&session.header);
            figures.add(Outline::of(session));
            figures.round_trips_ms().count()
        };
        assert_eq!(acked(&session), 8);
    }

    /// Other records count only in a log without frames, arrivals and ticks.
    #[test]
    fn the_duration_of_a_log_without_frames_is_that_of_its_other_records() {
        let mut session = session();
        let played = SessionInfo::of(&session).duration_us;
        let join = |ms| PresenceRecord { tick: Tick(0), at: Micros::from_ms(ms), change: Presence::Joined };
        session.players[1].presence = vec![join(-500), join(9_500)];
        assert_eq!(SessionInfo::of(&session).duration_us, played);
        session.players[0].frames.clear();
        session.players[0].received.clear();
        assert_eq!(SessionInfo::of(&session).duration_us, 10_000_000);
        session.players[1].presence.clear();
        assert_eq!(SessionInfo::of(&session).duration_us, 90_000, "from the first snapshot to the last");
    }

    #[test]
    fn an_empty_session_has_figures_too() {
        let empty = SessionInfo::of(&Session::new(session().header));
        assert_eq!((empty.usercmds, empty.packets, empty.rtt_ms), (0, PacketCounts::default(), Percentiles::default()));
        assert_eq!(empty.duration_us, 0);
    }

    /// Ticks, packets and snapshots have the same numbers, 10 ms apart. Packets take 2 ms.
    fn numbered(is_recorded: impl Fn(u32) -> bool, has_arrival: impl Fn(u32) -> bool) -> Session {
        let mut session = Session::new(session().header);
        let records = &mut session.players[0];
        for number in (1..=100).filter(|number| is_recorded(*number)) {
            let at = Micros::from_ms(i64::from(number) * 10);
            records.sent.push(PacketRecord { number, at, ..PacketRecord::default() });
            let snapshot = SnapshotRecord { seq: SnapshotSeq(number), at, ..SnapshotRecord::default() };
            records.snapshots.push(snapshot);
            if has_arrival(number) {
                let arrival = ArrivalRecord { number, at: at + Micros::from_ms(2) };
                records.reached.push(arrival);
                records.received.push(arrival);
            }
        }
        session
    }

    /// The counts of sent and lost packets, which are equal in both directions.
    fn sent_and_lost(session: &Session) -> [Option<u64>; 2] {
        let SessionInfo { packets, packets_up, .. } = SessionInfo::of(session);
        let [down, up] = [packets, packets_up].map(|counts| [counts.sent, counts.lost]);
        assert_eq!(down, up);
        down
    }

    #[test]
    fn gaps_in_a_receivers_recording_are_losses() {
        assert_eq!(sent_and_lost(&numbered(|number| number % 10 != 5, |_| true)), [Some(100), Some(10)]);
    }

    /// The records of packets 30 to 69 and of their arrivals are missing, except those of some packets.
    #[test]
    fn packets_in_a_gap_are_not_lost() {
        let in_gap = |number: u32| (30..70).contains(&number);
        let counts = |sent: &[u32], arrived: &[u32]| {
            let mut session = numbered(
                |number| number != 20 && (!in_gap(number) || sent.contains(&number)),
                |number| number != 90 && (!in_gap(number) || arrived.contains(&number)),
            );
            let [from, to] = [29, 70].map(|number| Micros::from_ms(number * 10 + 5));
            session.gaps.push(GapRecord { from, to, ..GapRecord::default() });
            sent_and_lost(&session)
        };
        // Of the others, packet 20 has no record, and packet 90 has no arrival.
        assert_eq!(counts(&[], &[]), [Some(60), Some(2)]);
        assert_eq!(counts(&[50], &[50]), [Some(61), Some(2)]);
        assert_eq!(counts(&[40, 41, 60], &[40, 60]), [Some(62), Some(2)], "the arrival of packet 41 is missing");
        let all: Vec<u32> = (30..70).collect();
        assert_eq!(counts(&all, &[50]), [Some(61), Some(2)]);
    }
}
