//! Tests candidates against the property: in parallel, with the result of testing one after the other.

use std::collections::BTreeSet;

use rayon::prelude::*;
use xxhash_rust::xxh3::Xxh3Default;

use super::Search;
use crate::shrink::{CostCounts, CostKind, PropertyCheck, RecordCandidate, ShrinkEdit, ShrinkError, ShrinkStep};
use hitreg_log::record::{ArrivalRecord, Session, States};
use hitreg_log::trace::Digest;
use hitreg_log::units::Micros;

/// The result of testing a candidate.
enum ProbeResult {
    /// The candidate is not smaller, or is known not to show the property.
    Skipped,
    /// The candidate does not show the property.
    Fails(Digest),
    /// The candidate shows the property.
    Shows(Box<Session>, CostCounts),
}

impl<E: std::error::Error + Send + 'static> Search<'_, E> {
    /// Takes the first of `count` candidates that is smaller and still shows the property, and returns its index.
    /// `make` creates each candidate's input from the current session.
    ///
    /// Tests `at_once` candidates at a time. Results after the first success are dropped, so that the
    /// outcome does not depend on the number of threads.
    pub(super) fn take_first(
        &mut self,
        kind: CostKind,
        count: usize,
        make: &(dyn Fn(&Session, usize) -> Session + Sync),
    ) -> Result<Option<usize>, ShrinkError<E>> {
        let at_once = self.at_once.max(1);
        for begin in (0..count).step_by(at_once) {
            let batch = begin..count.min(begin + at_once);
            let (tests, failed, counts) = ((self.edit, self.record, self.still), &self.failed, self.counts);
            let (current, can_begin) = (&self.current, self.can_begin);
            let try_one = |index| {
                let mut candidate = make(current, index);
                if !can_begin {
                    candidate.states = States::default();
                }
                probe(tests, failed, counts, &candidate)
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
                        self.tell(kind, true);
                        return Ok(Some(index));
                    }
                }
            }
            self.tell(kind, false);
        }
        Ok(None)
    }

    fn tell(&mut self, kind: CostKind, smaller: bool) {
        (self.progress)(&ShrinkStep { kind, smaller, left: self.counts, probes: self.probes });
    }
}

/// Tests one candidate's input against a session of `counts`.
fn probe<E: std::error::Error + 'static>(
    (edit, record, still): (ShrinkEdit, &RecordCandidate<'_, E>, &PropertyCheck<'_, E>),
    failed: &BTreeSet<Digest>,
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
