//! The first pass over the logs of a session's sides: how far each clock is from the server's, and what the second pass has to know.
//! The logs are read side by side, so that it takes the same memory however long they are.

use super::bounds::Bounds;
use super::offset::Bound;
use super::plan::{Logs, NoPlan};
use super::sides::{Sides, is_in_time};
use super::way::Way;
use super::{MergeError, Offset, first_unknown, judged, offset};
use crate::record::{Header, Stretch, TickRecord, UnknownColumn, UnknownKind, UnknownRecords};
use crate::units::{CommandSeq, Micros, PlayerId, Tick};

/// A log whose stretches go further back behind those before them is merged as a whole.
const BACK_MOST: Micros = Micros::from_s(30);
/// The same in ticks.
const TICKS_BACK_MOST: u32 = 4096;
/// A client's log is read on when so many snapshots have been sent since the last one that is known to have arrived.
const SNAPSHOTS_AHEAD: usize = 1024;

/// What of a log has been seen.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Seen {
    /// How many chunks it has.
    pub(super) chunks: usize,
    /// The newest time so far.
    pub(super) newest: Option<Micros>,
    /// How far back in time a chunk goes behind those before it.
    pub(super) back: Micros,
    has_ended: bool,
}

/// What the server's log says of a player, and the player's own.
#[derive(Clone, Debug)]
struct OfPlayer {
    has_frames: bool,
    is_heard: bool,
    is_reached: bool,
    up: Way,
    down: Way,
    above: Bounds,
    below: Bounds,
    /// When the first packet reached the server that is not in the client's log.
    unknown_at: Option<Micros>,
    /// The newest usercmd of the last packet that was sent.
    last_sent: Option<CommandSeq>,
}

/// What is known of the logs so far.
pub(super) struct Survey<'a> {
    pub(super) sides: Sides,
    headers: &'a [&'a Header],
    pub(super) logs: Vec<Seen>,
    players: Vec<OfPlayer>,
    /// The first tick, and the last.
    pub(super) ticks: Option<(TickRecord, TickRecord)>,
    /// The first tick that something is of.
    first_named: Option<Tick>,
    /// How many ticks a chunk goes back behind the last of those before it.
    pub(super) ticks_back: u32,
    /// What a later version recorded, without its rows.
    pub(super) unknown: Vec<UnknownRecords>,
}

impl<'a> Survey<'a> {
    /// Reads all logs to their ends.
    pub(super) fn of<L: Logs>(headers: &'a [&'a Header], logs: &mut L) -> Result<Survey<'a>, NoPlan<L::Error>> {
        let sides = Sides::of(headers)?;
        let player = OfPlayer {
            has_frames: false,
            is_heard: false,
            is_reached: false,
            up: Way::default(),
            down: Way::default(),
            above: Bounds::above(),
            below: Bounds::below(),
            unknown_at: None,
            last_sent: None,
        };
        let mut survey = Survey {
            headers,
            logs: vec![Seen::default(); headers.len()],
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
        if survey.first_named.is_none_or(is_known) { Ok(survey) } else { Err(NoPlan::Whole) }
    }

    /// Reads on in one log.
    fn read<L: Logs>(&mut self, logs: &mut L, log: usize) -> Result<(), NoPlan<L::Error>> {
        let Some(stretch) = logs.next(log).map_err(NoPlan::Read)? else {
            self.logs[log].has_ended = true;
            return self.end(log).ok_or(NoPlan::Whole);
        };
        if !stretch.times().all(is_in_time) {
            return Err(MergeError::OutOfTime { log }.into());
        }
        let stretch = self.sides.share(log, stretch);
        self.add(log, &stretch).ok_or(NoPlan::Whole)
    }

    /// Takes in what a log says next. `None` where it cannot be merged in windows.
    fn add(&mut self, log: usize, stretch: &Stretch) -> Option<()> {
        let headers = self.headers;
        let kinds = &headers[self.sides.server].unknown;
        for records in &stretch.unknown {
            // What has no time of its own stands at the beginning of a log that is written as a whole.
            let times = kinds.iter().find(|kind| kind.name == records.kind).and_then(|kind| records.times(kind))?;
            times.iter().all(|at| is_in_time(Micros(*at))).then_some(())?;
            self.note_unknown(records);
        }
        self.logs[log].add(stretch, kinds)?;
        match self.sides.player_of(log) {
            Some(player) => self.players[player].add_client(stretch, player),
            None => self.add_server(stretch),
        }
    }

    fn note_unknown(&mut self, records: &UnknownRecords) {
        let empty = |column: &UnknownColumn| UnknownColumn { is_float: column.is_float, values: Vec::new() };
        match self.unknown.iter_mut().find(|known| known.kind == records.kind) {
            Some(known) => {
                let both = known.columns.iter_mut().zip(&records.columns);
                both.for_each(|(known, column)| known.is_float |= column.is_float);
            }
            None => self.unknown.push(UnknownRecords {
                kind: records.kind.clone(),
                columns: records.columns.iter().map(empty).collect(),
                ..UnknownRecords::default()
            }),
        }
    }

    fn add_server(&mut self, stretch: &Stretch) -> Option<()> {
        let executed = stretch.players.iter().flat_map(|player| &player.executed).map(|executed| executed.tick);
        let named = executed.chain(stretch.states.keys().iter().map(|key| key.tick)).min();
        if let (Some(named), Some((_, last))) = (named, self.ticks) {
            self.ticks_back = self.ticks_back.max(last.tick.0.saturating_sub(named.0));
            (self.ticks_back <= TICKS_BACK_MOST).then_some(())?;
        }
        self.first_named = [self.first_named, named].into_iter().flatten().min();
        for tick in &stretch.ticks {
            let (first, last) = self.ticks.map_or((*tick, None), |(first, last)| (first, Some(last)));
            // Of ticks that follow one another it is known which there are.
            let follows = |last: TickRecord| last.tick.0.checked_add(1) == Some(tick.tick.0) && last.at <= tick.at;
            last.is_none_or(follows).then_some(())?;
            self.ticks = Some((first, *tick));
        }
        for ((of, log), records) in self.players.iter_mut().zip(&self.sides.clients).zip(&stretch.players) {
            of.has_frames |= !records.frames.is_empty();
            of.is_heard |= !records.heard.is_empty();
            if log.is_some() {
                of.is_reached |= !records.reached.is_empty();
                records.snapshots.iter().try_for_each(|sent| of.down.send(sent.seq.0, sent.at)).ok()?;
                records.reached.iter().try_for_each(|arrival| of.up.arrive(*arrival)).ok()?;
                of.look_up()?;
            }
        }
        Some(())
    }

    /// A log has ended.
    fn end(&mut self, log: usize) -> Option<()> {
        match self.sides.player_of(log) {
            Some(player) => {
                let of = &mut self.players[player];
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

    /// How far each client's clock is from the server's.
    pub(super) fn offsets(&self) -> Result<Vec<Option<Offset>>, MergeError> {
        let is_heard_only = |player: usize| !self.players[player].has_frames && self.players[player].is_heard;
        self.sides.check_missing(is_heard_only)?;
        let of = |((player, log), of): ((u16, &Option<usize>), &OfPlayer)| match log {
            Some(log) => {
                let found = offset::between(of.above.kept(), of.below.kept());
                judged(found, of.is_reached, (*log, PlayerId(player)))
            }
            None => Ok(None),
        };
        (0..).zip(&self.sides.clients).zip(&self.players).map(of).collect()
    }

    /// The first packet up to the last tick that reached the server and is in no client's log, with the client and its log.
    pub(super) fn first_unknown(&self, last: Micros) -> Option<(Micros, PlayerId, usize)> {
        let of =
            |((player, log), of): ((u16, &Option<usize>), &OfPlayer)| Some((of.unknown_at?, PlayerId(player), (*log)?));
        first_unknown((0..).zip(&self.sides.clients).zip(&self.players).filter_map(of), last)
    }

    /// The newest usercmd that each client is known to have sent.
    pub(super) fn last_sent(&self) -> Vec<Option<CommandSeq>> {
        self.players.iter().map(|player| player.last_sent).collect()
    }
}

impl OfPlayer {
    /// Whether its log has to be read before the server's is.
    fn is_behind(&self) -> bool {
        self.up.waits_for_sender() || self.down.on_its_way() > SNAPSHOTS_AHEAD
    }

    fn add_client(&mut self, stretch: &Stretch, player: usize) -> Option<()> {
        let records = stretch.players.get(player)?;
        records.sent.iter().try_for_each(|packet| self.up.send(packet.number, packet.at)).ok()?;
        records.received.iter().try_for_each(|arrival| self.down.arrive(*arrival)).ok()?;
        self.last_sent = records.sent.last().map(|packet| packet.newest).or(self.last_sent);
        self.look_up()
    }

    /// Looks up what arrived.
    fn look_up(&mut self) -> Option<()> {
        while let Some((arrival, sent_at)) = self.up.next().ok()? {
            match sent_at {
                Some(sent_at) => self.above.add(Bound::above(sent_at, arrival.at)).ok()?,
                None => self.unknown_at = self.unknown_at.or(Some(arrival.at)),
            }
        }
        while let Some((arrival, sent_at)) = self.down.next().ok()? {
            if let Some(sent_at) = sent_at {
                self.below.add(Bound::below(sent_at, arrival.at)).ok()?;
            }
        }
        Some(())
    }
}

impl Seen {
    /// Takes in when the records of the next chunk were. `None` where it goes too far back.
    pub(super) fn add(&mut self, stretch: &Stretch, kinds: &[UnknownKind]) -> Option<()> {
        self.chunks += 1;
        let unknown = stretch.unknown.iter().filter_map(|records| {
            kinds.iter().find(|kind| kind.name == records.kind).and_then(|kind| records.times(kind))
        });
        let times = stretch.times().chain(unknown.flatten().map(|at| Micros(*at)));
        let span = times.fold(None, |span: Option<(Micros, Micros)>, at| {
            let (first, last) = span.unwrap_or((at, at));
            Some((first.min(at), last.max(at)))
        });
        if let Some((first, last)) = span {
            self.back = self.newest.map_or(self.back, |newest| self.back.max(newest - first));
            self.newest = self.newest.max(Some(last));
        }
        (self.back <= BACK_MOST).then_some(())
    }
}
