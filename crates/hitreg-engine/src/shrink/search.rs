//! The search: the order of its steps, and the best session so far. It tests candidates in parallel, with the result of
//! testing one after the other.

use std::ops::Range;

use rayon::prelude::*;
use xxhash_rust::xxh3::Xxh3Default;

use super::edit::{Removable, ShrinkEdit};
use super::{
    CostCounts, CostKind, PropertyCheck, RecordCandidate, RemovedCount, ShrinkError, ShrinkResult, ShrinkStep,
};
use hitreg_log::record::{ArrivalRecord, Session, States};
use hitreg_log::sorted::SortedSet;
use hitreg_log::trace::Digest;
use hitreg_log::units::Micros;

/// The order in which kinds are reduced. Coarse kinds come first, because they make every later step cheaper.
const ORDER: [CostKind; 10] = [
    CostKind::Players,
    CostKind::Ticks,
    CostKind::Losses,
    CostKind::Duplicates,
    CostKind::Delays,
    CostKind::Usercmds,
    CostKind::Buttons,
    CostKind::Moves,
    CostKind::OwnInput,
    CostKind::Angles,
];

/// A session this short is not searched for a shorter window.
const SEARCHED_LENGTH: Micros = Micros::from_s(2);

/// The shortest window that is tested, in ticks.
const WINDOW_TICKS_MIN: usize = 32;

/// Shrinks like [`shrink`](super::shrink), with the caller's `record` in place of a game, for candidates made by `edit`. Tests
/// `parallel` candidates at a time; the result does not depend on that number.
///
/// # Errors
/// Under the conditions of [`shrink`](super::shrink).
pub(super) fn shrink_by<E: std::error::Error + Send + 'static>(
    session: &Session,
    edit: ShrinkEdit,
    record: &RecordCandidate<'_, E>,
    still: &PropertyCheck<'_, E>,
    parallel: usize,
    progress: &mut dyn FnMut(&ShrinkStep),
) -> Result<ShrinkResult, ShrinkError<E>> {
    if !still(session).map_err(ShrinkError::Property)? {
        return Err(ShrinkError::NotShown);
    }
    let again = record(session)?.ok_or(ShrinkError::NotReproduced)?;
    if again != *session && !still(&again).map_err(ShrinkError::Property)? {
        return Err(ShrinkError::NotReproduced);
    }
    let before = CostCounts::of(&again, edit);
    let can_begin = edit == ShrinkEdit::Cut || can_begin(&again, record);
    let (current, counts, failed) = (again, before, SortedSet::new());
    let mut search =
        ShrinkSearch { edit, record, still, parallel, progress, current, counts, failed, probes: 0, can_begin };
    search.run()?;
    let ShrinkSearch { current: session, counts: after, probes, .. } = search;
    let removed =
        CostKind::ALL.map(|kind| RemovedCount { kind, before: before.of_kind(kind), after: after.of_kind(kind) });
    Ok(ShrinkResult { session, removed: removed.to_vec(), probes })
}

struct ShrinkSearch<'a, E: std::error::Error + 'static> {
    edit: ShrinkEdit,
    record: &'a RecordCandidate<'a, E>,
    still: &'a PropertyCheck<'a, E>,
    /// How many candidates are tested at once.
    parallel: usize,
    progress: &'a mut dyn FnMut(&ShrinkStep),
    /// The smallest session so far that shows the property.
    current: Session,
    counts: CostCounts,
    /// Digests of inputs that do not show the property.
    failed: SortedSet<Digest>,
    probes: u64,
    /// Whether the game can begin elsewhere than at its spawn.
    can_begin: bool,
}

impl<E: std::error::Error + Send + 'static> ShrinkSearch<'_, E> {
    /// Shrinks until no single thing can be removed.
    fn run(&mut self) -> Result<(), ShrinkError<E>> {
        if self.can_begin {
            // Time comes first: the remaining players then begin at their recorded places, whichever players are
            // removed later.
            self.shorten()?;
        } else {
            // Removing a player changes everything after the spawn, and the whole session gives the most chances that
            // it still shows the property.
            self.minimise(CostKind::Players)?;
            self.shorten()?;
        }
        loop {
            for kind in ORDER {
                self.minimise(kind)?;
            }
            let mut went = false;
            for kind in ORDER {
                went |= self.pass(kind, 1)?;
            }
            if !went {
                return Ok(());
            }
        }
    }

    /// Removes chunks of one kind and halves their size, until no single thing can be removed.
    fn minimise(&mut self, kind: CostKind) -> Result<(), ShrinkError<E>> {
        let mut chunk = self.counts.of_kind(kind).max(1);
        loop {
            let went = self.pass(kind, chunk)?;
            match (chunk, went) {
                (1, false) => return Ok(()),
                (1, true) => {}
                _ => chunk = chunk.div_ceil(2),
            }
        }
    }

    /// Tries to remove every chunk of one kind, one after the other. Returns whether any was removed.
    fn pass(&mut self, kind: CostKind, chunk: usize) -> Result<bool, ShrinkError<E>> {
        let (mut begin, mut went) = (0, false);
        loop {
            let (edit, things) = (self.edit, self.edit.things(&self.current, kind));
            let chunks: Vec<&[Removable]> = things.get(begin..).unwrap_or_default().chunks(chunk).collect();
            let taken = self.take_first(kind, chunks.len(), &|session, index| edit.without(session, chunks[index]))?;
            match taken {
                // The things after the removed chunk have moved to its place.
                Some(index) => begin += index * chunk,
                None => return Ok(went),
            }
            went = true;
        }
    }

    /// Finds a short part of the session that shows the property on its own.
    fn shorten(&mut self) -> Result<(), ShrinkError<E>> {
        let whole = (self.current.clone(), self.counts);
        self.cut_the_end()?;
        self.cut_the_beginning()?;
        if self.current.duration() <= SEARCHED_LENGTH {
            return Ok(());
        }
        // Without its beginning, this part starts from other places. Another part may still show the property in fewer
        // ticks.
        let ended = (std::mem::replace(&mut self.current, whole.0), std::mem::replace(&mut self.counts, whole.1));
        if !self.find_window(ended.1.of_kind(CostKind::Ticks))? {
            (self.current, self.counts) = ended;
        }
        Ok(())
    }

    /// Cuts off the end, as close as possible after the property first shows. The interval search assumes that the
    /// property keeps showing once it has shown. If it does not, the result is still a valid cut.
    fn cut_the_end(&mut self) -> Result<(), ShrinkError<E>> {
        let mut too_few = 0;
        loop {
            let all = self.current.ticks.len();
            let span = all - too_few;
            let lengths: Vec<usize> = [too_few + span / 3, too_few + 2 * span / 3]
                .into_iter()
                .filter(|length| (too_few + 1..all).contains(length))
                .collect();
            let edit = self.edit;
            let cut = |session: &Session, index: usize| keep_ticks(edit, session, 0..lengths[index]);
            match (self.take_first(CostKind::Ticks, lengths.len(), &cut)?, lengths.last()) {
                (Some(0), _) => {}
                (Some(index), _) => too_few = lengths[index - 1],
                (None, Some(last)) => too_few = *last,
                (None, None) => return Ok(()),
            }
        }
    }

    /// Keeps the shortest end that shows the property, among lengths that are powers of two.
    fn cut_the_beginning(&mut self) -> Result<(), ShrinkError<E>> {
        let all = self.current.ticks.len();
        let lengths: Vec<usize> = (0..).map(|power| 1 << power).take_while(|length| *length < all).collect();
        let edit = self.edit;
        let cut = |session: &Session, index: usize| keep_ticks(edit, session, all - lengths[index]..all);
        self.take_first(CostKind::Ticks, lengths.len(), &cut)?;
        Ok(())
    }

    /// Keeps one of the shortest windows that show the property and have fewer than `below` ticks. Returns false if no
    /// window shows it.
    fn find_window(&mut self, below: usize) -> Result<bool, ShrinkError<E>> {
        let all = self.current.ticks.len();
        let mut windows = Vec::new();
        let mut length = WINDOW_TICKS_MIN;
        while length < below {
            windows.extend((0..all).step_by(length / 2).map(|begin| begin..(begin + length).min(all)));
            length *= 2;
        }
        let edit = self.edit;
        let cut = |session: &Session, index: usize| keep_ticks(edit, session, windows[index].clone());
        Ok(self.take_first(CostKind::Ticks, windows.len(), &cut)?.is_some())
    }
}

/// Whether the game can record the session again from its second tick on.
fn can_begin<E>(session: &Session, record: &RecordCandidate<'_, E>) -> bool
where
    E: std::error::Error + 'static,
{
    let mut cut = keep_ticks(ShrinkEdit::Rerecorded, session, 1..session.ticks.len());
    cut.ticks.truncate(1);
    !cut.states.is_empty() && record(&cut).is_ok_and(|recorded| recorded.is_some())
}

/// A session with a range of its ticks.
fn keep_ticks(edit: ShrinkEdit, session: &Session, ticks: Range<usize>) -> Session {
    let outside = (0..ticks.start).chain(ticks.end..session.ticks.len());
    edit.without(session, &outside.map(Removable::Tick).collect::<Vec<_>>())
}

/// The result of testing a candidate.
enum ProbeResult {
    /// The candidate is not smaller, or is known not to show the property.
    Skipped,
    /// The candidate does not show the property.
    Fails(Digest),
    /// The candidate shows the property.
    Shows(Box<Session>, CostCounts),
}

impl<E: std::error::Error + Send + 'static> ShrinkSearch<'_, E> {
    /// Takes the first of `count` candidates that is smaller and still shows the property, and returns its index.
    /// `make` creates each candidate's input from the current session.
    ///
    /// Tests `parallel` candidates at a time. Results after the first success are dropped, so that the
    /// outcome does not depend on the number of threads.
    fn take_first(
        &mut self,
        kind: CostKind,
        count: usize,
        make: &(dyn Fn(&Session, usize) -> Session + Sync),
    ) -> Result<Option<usize>, ShrinkError<E>> {
        let parallel = self.parallel.max(1);
        for begin in (0..count).step_by(parallel) {
            let batch = begin..count.min(begin + parallel);
            let (edit, record, still, can_begin) = (self.edit, self.record, self.still, self.can_begin);
            let (current, failed, counts) = (&self.current, &self.failed, self.counts);
            let try_one = |index| {
                let mut candidate = make(current, index);
                if !can_begin {
                    candidate.states = States::default();
                }
                probe(edit, record, still, failed, counts, &candidate)
            };
            let tried: Vec<Result<ProbeResult, ShrinkError<E>>> = batch.clone().into_par_iter().map(try_one).collect();
            for (index, probe) in batch.zip(tried) {
                match probe? {
                    ProbeResult::Skipped => {}
                    ProbeResult::Fails(inputs) => {
                        self.probes += 1;
                        self.failed.insert(inputs);
                    }
                    ProbeResult::Shows(session, counts) => {
                        self.probes += 1;
                        (self.current, self.counts) = (*session, counts);
                        self.tell(kind);
                        return Ok(Some(index));
                    }
                }
            }
            self.tell(kind);
        }
        Ok(None)
    }

    fn tell(&mut self, kind: CostKind) {
        (self.progress)(&ShrinkStep { kind, left: self.counts, probes: self.probes });
    }
}

/// Tests one candidate's input against a session of `counts`.
fn probe<E: std::error::Error + 'static>(
    edit: ShrinkEdit,
    record: &RecordCandidate<'_, E>,
    still: &PropertyCheck<'_, E>,
    failed: &SortedSet<Digest>,
    smaller_than: CostCounts,
    candidate: &Session,
) -> Result<ProbeResult, ShrinkError<E>> {
    // A session without a tick or a usercmd has nothing to replay.
    let is_empty = |session: &Session| session.ticks.is_empty() || session.players.iter().all(|p| p.frames.is_empty());
    if is_empty(candidate) {
        return Ok(ProbeResult::Skipped);
    }
    let inputs = inputs_digest(candidate);
    if failed.contains(&inputs) {
        return Ok(ProbeResult::Skipped);
    }
    let Some(session) = record(candidate)? else { return Ok(ProbeResult::Fails(inputs)) };
    let counts = CostCounts::of(&session, edit);
    if counts >= smaller_than || is_empty(&session) {
        return Ok(ProbeResult::Skipped);
    }
    if still(&session).map_err(ShrinkError::Property)? {
        Ok(ProbeResult::Shows(Box::new(session), counts))
    } else {
        Ok(ProbeResult::Fails(inputs))
    }
}

/// The digest of everything that a replay depends on, except the header, which is equal for candidates with the same
/// number of players.
fn inputs_digest(session: &Session) -> Digest {
    let mut hasher = Xxh3Default::new();
    let mut number = |number: u64| hasher.update(&number.to_le_bytes());
    session.states.cells().iter().for_each(|cell| number(u64::from(*cell)));
    number(session.ticks.len() as u64);
    session.ticks.iter().for_each(|tick| number(tick.at.0 as u64));
    for player in &session.players {
        number(player.frames.len() as u64);
        for frame in &player.frames {
            let input = &frame.command.input;
            number(frame.at.0 as u64);
            let [x, y, z] = input.viewangles.to_array();
            for value in [x, y, z, input.forwardmove, input.sidemove, input.upmove] {
                number(u64::from(value.to_bits()));
            }
            number(u64::from(input.msec) | u64::from(input.buttons) << 8 | u64::from(input.impulse) << 24);
            input.own.stored().iter().for_each(|cell| number(u64::from(*cell)));
            number(input.own.stored().len() as u64);
        }
        number(player.presence.len() as u64);
        number(player.executed.len() as u64);
        let up: Vec<(u32, Micros)> = player.sent.iter().map(|p| (p.number, p.at)).collect();
        let down: Vec<(u32, Micros)> = player.snapshots.iter().map(|s| (s.seq.0, s.at)).collect();
        for (sent, arrivals) in [(up, &player.reached), (down, &player.received)] {
            number(sent.len() as u64);
            let arrived = arrivals.iter().map(|ArrivalRecord { number, at }| (*number, *at));
            for (packet, at) in sent.into_iter().chain(arrived) {
                number(u64::from(packet));
                number(at.0 as u64);
            }
        }
    }
    Digest(hasher.digest128())
}
