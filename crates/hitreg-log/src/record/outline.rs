//! A summary of a chunk's connection records, without input and states. It suffices for connection statistics and is
//! much cheaper to read than the chunk.

use super::unknown::is_known_kind;
use super::{ArrivalRecord, GapRecord, OF_PLAYERS, OF_SESSION, PlayerRecords, Presence, PresenceRecord, Session};
use crate::sorted::SortedMap;
use crate::units::Micros;
use crate::usercmd::{Usercmd, buttons};

/// The connection records of a chunk or a log, in short.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outline {
    /// Number of records of each kind, by the kind's name in the format; kinds without records are absent.
    pub counts: SortedMap<String, usize>,
    /// Each player's connection, in the order of player numbers.
    pub players: Vec<PlayerOutline>,
    /// Times of the first and the last tick.
    pub ticks: Option<(Micros, Micros)>,
    /// Times of the first and the last record of any kind; only without client frames, snapshot arrivals and ticks.
    pub other_times: Option<(Micros, Micros)>,
    /// Spans with missing records.
    pub gaps: Vec<GapRecord>,
}

/// The connection records of one player. Tuples begin with the number of the usercmd, packet or snapshot.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlayerOutline {
    /// Client frames: usercmd number and time.
    pub frames: Vec<(u32, Micros)>,
    /// Number of client frames with the attack button down.
    pub firing: usize,
    /// Number of bytes of each usercmd that has some.
    pub bytes: Vec<u32>,
    /// Usercmds that the server heard, with repeats, and whether the attack button is down in each.
    pub heard: Vec<(u32, bool)>,
    /// Numbers of the packets whose content the server recorded.
    pub heard_packets: Vec<u32>,
    /// Packets that the client sent: number and send time.
    pub sent: Vec<(u32, Micros)>,
    /// Packets that reached the server: number and arrival time.
    pub reached: Vec<(u32, Micros)>,
    /// Snapshots: number, send time, and the usercmd that it acks.
    pub snapshots: Vec<(u32, Micros, u32)>,
    /// Number of updates that the rate limit held back before each snapshot.
    pub choked: Vec<u8>,
    /// Snapshots that reached the client: number and arrival time.
    pub received: Vec<(u32, Micros)>,
    /// When the player left.
    pub left: Vec<Micros>,
}

impl Outline {
    /// Summarises the records of a session in memory.
    pub fn of<H>(session: &Session<H>) -> Outline {
        let is_played = session.played().is_some();
        let other_times = if is_played { None } else { session.full_time_span() };
        let of_players = session.players.iter().flat_map(|player| {
            let streams = OF_PLAYERS.iter().zip(player.streams());
            streams.map(|((name, _), stream)| (*name, stream.len())).collect::<Vec<_>>()
        });
        let of_session = OF_SESSION.iter().zip(session.streams()).map(|(name, stream)| (*name, stream.len()));
        let unknown = session.unknown.iter().filter(|records| !is_known_kind(&records.kind));
        let unknown = unknown.map(|records| (records.kind.as_str(), records.len()));
        let mut outline = Outline {
            counts: SortedMap::new(),
            players: session.players.iter().map(PlayerOutline::of).collect(),
            ticks: session.ticks.first().zip(session.ticks.last()).map(|(first, last)| (first.at, last.at)),
            other_times,
            gaps: session.gaps.clone(),
        };
        let all = of_players.chain(of_session).chain([("states", session.states.len())]).chain(unknown);
        all.for_each(|(name, count)| outline.count(name, count));
        outline
    }

    /// Adds to the number of records of a kind.
    pub(crate) fn count(&mut self, kind: &str, count: usize) {
        match self.counts.get_mut(kind) {
            Some(known) => *known = known.saturating_add(count),
            None if count > 0 => drop(self.counts.insert(kind.to_owned(), count)),
            None => {}
        }
    }
}

impl PlayerOutline {
    fn of(records: &PlayerRecords) -> PlayerOutline {
        let heard = records.heard.iter().flat_map(|heard| &heard.commands);
        let arrivals = |of: &[ArrivalRecord]| of.iter().map(|arrival| (arrival.number, arrival.at)).collect();
        PlayerOutline {
            frames: records.frames.iter().map(|frame| (frame.command.seq.0, frame.at)).collect(),
            firing: records.frames.iter().filter(|frame| is_firing(&frame.command)).count(),
            bytes: records.frames.iter().map(|frame| frame.bytes.len() as u32).filter(|bytes| *bytes > 0).collect(),
            heard: heard.map(|command| (command.seq.0, is_firing(command))).collect(),
            heard_packets: records.heard.iter().map(|heard| heard.number).collect(),
            sent: records.sent.iter().map(|packet| (packet.number, packet.at)).collect(),
            reached: arrivals(&records.reached),
            snapshots: records.snapshots.iter().map(|s| (s.seq.0, s.at, s.ack.0)).collect(),
            choked: records.snapshots.iter().map(|snapshot| snapshot.choked).collect(),
            received: arrivals(&records.received),
            left: leave_times(&records.presence),
        }
    }
}

/// Returns the times at which a player left.
#[doc(hidden)]
pub fn leave_times(presence: &[PresenceRecord]) -> Vec<Micros> {
    presence.iter().filter(|record| record.change == Presence::Left).map(|record| record.at).collect()
}

fn is_firing(command: &Usercmd) -> bool {
    command.input.buttons & buttons::ATTACK != 0
}

/// Returns the span from the lowest to the highest number of some spans.
#[doc(hidden)]
pub fn widest<T: Ord + Copy>(spans: impl Iterator<Item = (T, T)>) -> Option<(T, T)> {
    spans.reduce(|(lowest, highest), (from, to)| (lowest.min(from), highest.max(to)))
}

/// Returns the lowest and the highest of some numbers.
#[doc(hidden)]
pub fn lowest_and_highest<T: Ord + Copy>(numbers: impl Iterator<Item = T>) -> Option<(T, T)> {
    widest(numbers.map(|number| (number, number)))
}
