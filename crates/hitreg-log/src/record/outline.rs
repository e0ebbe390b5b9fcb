//! What a log's chunk says of its players' connections, without their input and without states: enough for its figures, and a
//! fraction of the work of reading it.

use std::collections::BTreeMap;

use super::{GapRecord, OF_PLAYERS, OF_SESSION, PlayerRecords, Session, UnknownKind};
use crate::units::Micros;
use crate::usercmd::{Usercmd, buttons};

/// What a chunk of a log, or all of it, says of connections.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outline {
    /// How many records of each kind there are, by the kinds' names in the format; kinds of which there is none are left out.
    pub counts: BTreeMap<String, usize>,
    /// Each player's part.
    pub players: Vec<OutlineOfPlayer>,
    /// When the first tick was, and the last.
    pub ticks: Option<(Micros, Micros)>,
    /// Spans of which records are missing.
    pub gaps: Vec<GapRecord>,
}

/// One player's part. Numbers are those of usercmds, packets and snapshots.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OutlineOfPlayer {
    /// The client's frames.
    pub frames: Vec<(u32, Micros)>,
    /// Those of them with the attack button down.
    pub firing: usize,
    /// The usercmds that the server heard, with repeats, and whether the attack button is down in them.
    pub heard: Vec<(u32, bool)>,
    /// The lowest number of a packet that was sent to the server, and the highest.
    pub sent: Option<(u32, u32)>,
    /// Those that reached it.
    pub reached: Vec<u32>,
    /// Snapshots, with when they were sent and which usercmd they ack.
    pub snapshots: Vec<(u32, Micros, u32)>,
    /// Updates that were held back before them.
    pub choked: u64,
    /// Those that came.
    pub received: Vec<(u32, Micros)>,
}

impl Outline {
    /// Of what is in memory.
    pub fn of<H>(session: &Session<H>, unknown: &[UnknownKind]) -> Outline {
        let of_players = session.players.iter().flat_map(|player| {
            let streams = OF_PLAYERS.iter().zip(player.streams());
            streams.map(|((name, _), stream)| (*name, stream.len())).collect::<Vec<_>>()
        });
        let of_session = OF_SESSION.iter().zip(session.streams()).map(|(name, stream)| (*name, stream.len()));
        let unknown = unknown.iter().filter(|kind| !kind.is_known_kind());
        let rows = |kind: &UnknownKind| session.unknown.iter().find(|r| r.kind == kind.name).map_or(0, |r| r.len());
        let unknown = unknown.map(|kind| (kind.name.as_str(), rows(kind)));
        let mut outline = Outline {
            counts: BTreeMap::new(),
            players: session.players.iter().map(OutlineOfPlayer::of).collect(),
            ticks: session.ticks.first().zip(session.ticks.last()).map(|(first, last)| (first.at, last.at)),
            gaps: session.gaps.clone(),
        };
        let all = of_players.chain(of_session).chain([("states", session.states.len())]).chain(unknown);
        all.for_each(|(name, count)| outline.count(name, count));
        outline
    }

    /// There are so many more records of a kind.
    pub(crate) fn count(&mut self, kind: &str, count: usize) {
        match self.counts.get_mut(kind) {
            Some(known) => *known = known.saturating_add(count),
            None if count > 0 => drop(self.counts.insert(kind.to_owned(), count)),
            None => {}
        }
    }

    /// How many things it has of players, which is what it takes in memory.
    pub(crate) fn len(&self) -> usize {
        let of = |p: &OutlineOfPlayer| {
            p.frames.len() + p.heard.len() + p.reached.len() + p.snapshots.len() + p.received.len()
        };
        self.players.iter().map(of).sum()
    }
}

impl OutlineOfPlayer {
    fn of(records: &PlayerRecords) -> OutlineOfPlayer {
        let heard = records.heard.iter().flat_map(|heard| &heard.commands);
        OutlineOfPlayer {
            frames: records.frames.iter().map(|frame| (frame.command.seq.0, frame.at)).collect(),
            firing: records.frames.iter().filter(|frame| is_firing(&frame.command)).count(),
            heard: heard.map(|command| (command.seq.0, is_firing(command))).collect(),
            sent: lowest_and_highest(records.sent.iter().map(|packet| packet.number)),
            reached: records.reached.iter().map(|arrival| arrival.number).collect(),
            snapshots: records.snapshots.iter().map(|s| (s.seq.0, s.at, s.ack.0)).collect(),
            choked: records.snapshots.iter().map(|snapshot| u64::from(snapshot.choked)).sum(),
            received: records.received.iter().map(|arrival| (arrival.number, arrival.at)).collect(),
        }
    }
}

fn is_firing(command: &Usercmd) -> bool {
    command.input.buttons & buttons::ATTACK != 0
}

/// The lowest and the highest of some numbers.
pub(crate) fn lowest_and_highest(numbers: impl Iterator<Item = u32>) -> Option<(u32, u32)> {
    numbers.fold(None, |span, number| {
        let (lowest, highest) = span.unwrap_or((number, number));
        Some((lowest.min(number), highest.max(number)))
    })
}
