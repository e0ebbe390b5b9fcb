//! What must be known of a log before it is replayed stretch by stretch: where it ends, how far ahead its replay has to
//! look, and what its records say of each other. One pass over the log tells, in memory that does not grow with it.

mod near;

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use hitreg_log::record::{
    CellKind, Header, Holds, PlayerRecords, StateKey, States, Stretch, TickRecord, sent_differently,
};
use hitreg_log::trace::schema::TableSet;
use hitreg_log::units::{CommandSeq, Micros, Tick};
pub(crate) use near::Near;
use near::{Bounds, LONGEST_FLIGHT, Ways};

/// What one pass over a log tells.
#[derive(Clone, Debug)]
pub struct Survey {
    /// Each player's part.
    pub(super) players: Vec<OfPlayer>,
    /// What its ticks are.
    pub ticks: Ticks,
    /// The states that the session begins with.
    pub(super) beginning: States,
    /// The fields of which one viewer was sent other values than the others.
    pub hidden: BTreeSet<String>,
    /// The newest time so far, and the oldest.
    span: Option<(Micros, Micros)>,
    /// From the first frame, arrival or tick to the last, as [`Session::duration`](hitreg_log::record::Session::duration) has it.
    played: Option<(Micros, Micros)>,
    /// How far back in time a chunk goes behind those before it.
    pub(super) back: Micros,
    /// What is known of how far from each other in it things stand that belong together.
    bounds: Bounds,
    /// Whether there was a float in a state that is a number, and whether there was one at all.
    floats: (bool, bool),
    /// Why it cannot be replayed stretch by stretch.
    whole: bool,
    /// Whether a part of it is missing.
    has_gaps: bool,
}

/// What of it a replay needs that begins in the middle.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Gist {
    /// Frames, heard packets, and whether anything was sent each way.
    players: Vec<(u64, u64, bool, bool)>,
    played: Option<(Micros, Micros)>,
    back: Micros,
    longest: Micros,
}

impl Gist {
    pub(super) fn players(&self) -> usize {
        self.players.len()
    }
}

/// How many records a player has, and what is on its links.
#[derive(Clone, Debug, Default)]
pub(super) struct OfPlayer {
    pub(super) frames: u64,
    pub(super) heard: u64,
    active: u64,
    usercmds: u64,
    ways: Ways,
    /// The first usercmd that it made, and the last.
    pub(super) made: Option<[CommandSeq; 2]>,
    /// Whether it was shown anything.
    was_shown: bool,
}

/// The ticks of a log.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ticks {
    /// How many there are.
    pub count: u64,
    /// Those with a state hash.
    pub with_hash: u64,
    /// Whether any of these is another than 0.
    pub has_hashes: bool,
    /// The first two in a row that are not in order.
    pub out_of_order: Option<[Tick; 2]>,
    last: Option<TickRecord>,
}

impl Survey {
    /// Of a log of which no chunk has been seen.
    pub fn new(header: &Header) -> Survey {
        let as_they_arrived = header.side.is_some_and(|side| side.player.is_some());
        Survey {
            players: vec![OfPlayer::default(); header.players.len()],
            ticks: Ticks::default(),
            beginning: States::default(),
            hidden: BTreeSet::new(),
            span: None,
            played: None,
            back: Micros::ZERO,
            bounds: Bounds::new(as_they_arrived),
            floats: (false, false),
            whole: header.holds() != Holds::Whole || header.side.is_some(),
            has_gaps: false,
        }
    }

    pub(super) fn gist(&self) -> Gist {
        let of = |player: &OfPlayer| {
            let [up, down] = player.sends();
            (player.frames, player.heard, up, down)
        };
        Gist {
            players: self.players.iter().map(of).collect(),
            played: self.played,
            back: self.back,
            longest: self.longest(),
        }
    }

    /// Of a log that streams, as far as a keyframe of it says.
    pub(super) fn of_gist(gist: Gist) -> Survey {
        let of = |(frames, heard, up, down): (u64, u64, bool, bool)| OfPlayer {
            frames,
            heard,
            ways: Ways::that_send([up, down]),
            ..OfPlayer::default()
        };
        let bound = |span: Micros| span.clamp(Micros::ZERO, LONGEST_FLIGHT);
        Survey {
            players: gist.players.into_iter().map(of).collect(),
            ticks: Ticks::default(),
            beginning: States::default(),
            hidden: BTreeSet::new(),
            span: gist.played,
            played: gist.played,
            back: gist.back.max(Micros::ZERO),
            bounds: Bounds::of_part(bound(gist.longest)),
            floats: (false, false),
            whole: false,
            has_gaps: false,
        }
    }

    /// Takes the next chunk in.
    pub fn add(&mut self, header: &Header, chunk: &mut Stretch) {
        chunk.states.put_in_order();
        self.look_at_times(chunk);
        // What is missing is judged by what is around it, and what the session begins with stands at its beginning.
        self.has_gaps |= !chunk.gaps.is_empty();
        let begins = |key: &StateKey| key.tick == Tick(0);
        self.whole |= self.ticks.count > 0 && chunk.states.keys().iter().any(begins);
        for tick in &chunk.ticks {
            self.ticks.add(tick);
        }
        for (of, records) in self.players.iter_mut().zip(&chunk.players) {
            of.add(records);
            of.ways.add(records, &mut self.bounds);
        }
        self.bounds.end_of_chunk(&chunk.states, &chunk.players);
        self.look_at_states(header, chunk);
    }

    fn look_at_times(&mut self, chunk: &Stretch) {
        let of_chunk = chunk.times().fold(None, wider);
        if let (Some((first, _)), Some((_, newest))) = (of_chunk, self.span) {
            self.back = self.back.max(newest - first);
        }
        self.span = [of_chunk.map(|(first, _)| first), of_chunk.map(|(_, last)| last)]
            .into_iter()
            .flatten()
            .fold(self.span, wider);
        let frames = chunk.players.iter().flat_map(|p| [p.frames.first(), p.frames.last()]).flatten().map(|f| f.at);
        let arrivals =
            chunk.players.iter().flat_map(|p| [p.received.first(), p.received.last()]).flatten().map(|a| a.at);
        let ticks = [chunk.ticks.first(), chunk.ticks.last()].into_iter().flatten().map(|t| t.at);
        self.played = frames.chain(arrivals).chain(ticks).fold(self.played, wider);
    }

    fn look_at_states(&mut self, header: &Header, chunk: &Stretch) {
        self.begin_with(chunk);
        for (key, cells) in chunk.states.iter() {
            if self.floats.0 {
                break;
            }
            let fields = header.classes.get(usize::from(key.class.0)).map_or(&[][..], |class| &class.fields);
            let floats = fields.iter().zip(cells).filter(|(field, _)| field.kind == CellKind::F32);
            for (_, cell) in floats {
                self.floats = (self.floats.0 || !f32::from_bits(*cell).is_nan(), true);
            }
        }
        self.hidden.extend(sent_differently(&header.classes, &chunk.states).into_iter().map(str::to_owned));
    }

    /// Takes the states in that the session begins with.
    pub fn begin_with(&mut self, chunk: &Stretch) {
        chunk
            .states
            .iter()
            .filter(|(key, _)| key.tick == Tick(0))
            .for_each(|(key, cells)| self.beginning.push(key, cells));
    }

    /// All chunks have been seen.
    pub fn end(&mut self) {
        self.beginning.put_in_order();
    }

    /// From the first record to the last.
    pub fn duration(&self) -> Micros {
        self.played.map_or(Micros::ZERO, |(first, last)| last - first)
    }

    /// When the first record was, and the last.
    pub fn played(&self) -> Option<(Micros, Micros)> {
        self.played
    }

    /// Whether the log can be replayed closed loop without being in memory as a whole: it holds the server and its clients, none
    /// of its parts is missing, and what happened to a packet stands near it.
    pub fn streams(&self) -> bool {
        !self.whole && !self.has_gaps && self.bounds.all_is_known
    }

    /// How far ahead and back in it whoever goes through what its clients were shown looks; `None` where a part is missing, or that cannot be told.
    pub(crate) fn near(&self) -> Option<Near> {
        self.bounds.near.filter(|_| !self.has_gaps)
    }

    /// What the chunks alone take, in bytes, however little they hold, where the log is read once for each player who plays.
    pub fn pass_bytes(&self) -> u64 {
        let playing = self.players.iter().filter(|player| player.made.is_some()).count() as u64;
        let chunk_bytes = (self.players.len() * size_of::<PlayerRecords>()) as u64;
        playing.saturating_mul(chunk_bytes).saturating_mul(self.bounds.chunks().into())
    }

    /// An estimate by counts of what the trace of a replay with these tables takes in memory.
    pub fn trace_bytes(&self, tables: TableSet) -> usize {
        let wanted = super::tables::Wanted::of(tables);
        let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        super::budget::trace_bytes(
            self.players.len(),
            count(self.frames()),
            count(self.ticks.count),
            super::SOME_CELLS,
            wanted,
        )
    }

    /// For how long a packet or snapshot was on its way at most.
    pub(super) fn longest(&self) -> Micros {
        self.bounds.longest
    }

    /// Whether anything was heard of a player of whom nothing else is known.
    pub(super) fn hears(&self) -> bool {
        (0..self.players.len()).any(|player| self.is_heard_only(player))
    }

    /// Whether anybody was shown anything.
    pub(super) fn was_shown(&self) -> bool {
        self.players.iter().any(|player| player.was_shown)
    }

    /// Frames of all players; of those who were only heard, packets.
    pub(super) fn frames(&self) -> u64 {
        self.players.iter().map(|player| player.frames.max(player.heard)).sum()
    }

    /// Usercmds of all players.
    pub fn usercmds(&self) -> u64 {
        self.players.iter().map(|player| player.usercmds).sum()
    }

    /// Those with a key down, a button pressed, an impulse, or input of the game's own.
    pub fn active_usercmds(&self) -> u64 {
        self.players.iter().map(|player| player.active).sum()
    }

    /// Whether there are states, and not one float of them is a number.
    pub fn is_all_nan(&self) -> bool {
        self.floats == (false, true)
    }

    /// Whether anybody has input, or was heard.
    pub(super) fn has_input(&self) -> bool {
        self.players.iter().any(|player| player.frames + player.heard > 0)
    }

    pub(super) fn is_heard_only(&self, player: usize) -> bool {
        self.players.get(player).is_some_and(|player| player.frames == 0 && player.heard > 0)
    }
}

fn wider(span: Option<(Micros, Micros)>, at: Micros) -> Option<(Micros, Micros)> {
    let (first, last) = span.unwrap_or((at, at));
    Some((first.min(at), last.max(at)))
}

impl Ticks {
    fn add(&mut self, tick: &TickRecord) {
        let disorder = self.last.filter(|last| tick.tick <= last.tick || tick.at < last.at);
        self.out_of_order = self.out_of_order.or(disorder.map(|last| [last.tick, tick.tick]));
        self.count += 1;
        self.with_hash += u64::from(tick.hash.is_some());
        self.has_hashes |= tick.hash.is_some_and(|hash| hash != 0);
        self.last = Some(*tick);
    }
}

impl OfPlayer {
    /// Whether anything was sent, to the server and to the client.
    pub(super) fn sends(&self) -> [bool; 2] {
        self.ways.send()
    }

    fn add(&mut self, records: &PlayerRecords) {
        self.frames += records.frames.len() as u64;
        self.heard += records.heard.len() as u64;
        self.was_shown |= !records.received.is_empty();
        if let [first, .., last] | [first @ last] = &records.frames[..] {
            let first = self.made.map_or(first.command.seq, |[first, _]| first);
            self.made = Some([first, last.command.seq]);
        }
        for command in records.usercmds() {
            self.usercmds += 1;
            self.active += u64::from(command.input.is_active());
        }
    }
}
