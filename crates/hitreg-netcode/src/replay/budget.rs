//! Counts what a replay produces. A replay with its rows in memory has the memory limit; every replay has limits on usercmds
//! in one second and usercmds without an ack. The limits on work are absolute and far above honest sessions.

use std::cell::Cell;

use super::ReplayError;
use super::tables::has_corrections;
use crate::game::{Body, Game};
use crate::pipeline::TickEvent;
use crate::session::{Observer, SessionEvent};
use hitreg_log::memory::MemoryLimit;
use hitreg_log::record::Session;
use hitreg_log::trace::schema::{TableSchema, TableSet, bodies, executed, frames, ticks, views};
use hitreg_log::units::{ClockTime, Micros, PlayerId};

/// The most usercmds of one player in one second. Games make up to 1,000.
pub(super) const FRAMES_PER_SECOND_MAX: u32 = 20_000;
/// The most unacked usercmds that a replay keeps, beyond the first 1,024 of each player.
pub(super) const UNACKED_MAX: usize = 1 << 18;

/// The most ticks of a streamed replay, times the players: 36 hours of 64 players at 128 ticks a second.
pub(super) const PLAYER_TICKS_MAX: u64 = 1 << 30;
/// The most usercmds of a streamed replay, times the players, all of whom each usercmd draws: nine hours of 64 players at 128
/// usercmds a second.
pub(super) const VIEWS_MAX: u64 = 1 << 34;

/// The approximate size of a row of each kind, in bytes. Rows with bodies also have cells.
const FRAME: usize = 128;
const VIEW: usize = 48;
const TICK: usize = 32;
const BODY: usize = 8;
const EXECUTED: usize = 16;
const SHOT: usize = 256;
const EFFECT: usize = 48;
const SNAPSHOT: usize = 64;
/// One cell, with its share of the copy while rows become columns.
const CELL: usize = 6;
/// An unacked usercmd, with the body after it and its packets. The first [`UNACKED_FEW`] of each player are free.
const UNACKED: usize = 768;
const UNACKED_FEW: usize = 1024;
/// The memory that a client needs for each other player while it runs.
const OTHER_PLAYER_BYTES: usize = 1600;
/// A packet or a snapshot in the network tables.
const SENT_ROW: usize = 96;

/// Counts the output of a replay, and stops a replay that exceeds its limits.
#[derive(Debug)]
pub(super) struct ReplayBudget {
    /// Bytes of rows and of pipeline state.
    bytes: Cell<usize>,
    /// The number of unacked usercmds that count.
    unacked: Cell<usize>,
    /// The first player with too many usercmds in a second, and when.
    crowded: Cell<Option<(PlayerId, Micros)>>,
    /// The most bytes; `None` for a streamed replay.
    most: Option<MemoryLimit>,
    /// The tables whose rows are kept.
    wanted: TableSet,
}

impl ReplayBudget {
    /// Returns the budget of a streamed replay.
    pub(super) fn streaming() -> ReplayBudget {
        let (bytes, unacked, crowded) = (Cell::new(0), Cell::new(0), Cell::new(None));
        ReplayBudget { bytes, unacked, crowded, most: None, wanted: TableSet::ALL }
    }

    /// Of a replay of a session in memory, whose rows of these tables stay in memory beside it.
    pub(super) fn holding(session: &Session, wanted: TableSet, limit: MemoryLimit) -> ReplayBudget {
        ReplayBudget { bytes: Cell::new(session.bytes()), most: Some(limit), wanted, ..ReplayBudget::streaming() }
    }

    /// Checks an estimate before the replay begins. `ticks` is the number of ticks to run.
    ///
    /// # Errors
    /// When the estimate exceeds the limit.
    pub(super) fn begin<G: Game>(&self, session: &Session, ticks: usize) -> Result<(), ReplayError> {
        let Some(limit) = self.most else { return Ok(()) };
        let trace = trace_bytes_of(session, ticks, G::Body::CELLS, self.wanted);
        Ok(limit.check(session.bytes().saturating_add(trace))?)
    }

    fn add(&self, bytes: usize) {
        self.bytes.set(self.bytes.get().saturating_add(bytes));
    }

    /// Adds what rows of a table take where they are kept.
    fn add_rows(&self, table: &TableSchema, bytes: usize) {
        if self.wanted.has(table) {
            self.add(bytes);
        }
    }

    /// Whether the replay exceeded a limit and must stop.
    pub(super) fn is_exceeded(&self) -> bool {
        self.most.is_some_and(|most| self.bytes.get() > most.bytes())
            || self.unacked.get() > UNACKED_MAX
            || self.crowded.get().is_some()
    }

    /// Checks at the end whether the replay exceeded a limit.
    ///
    /// # Errors
    /// When the replay exceeded a limit. The error names it.
    pub(super) fn check(&self) -> Result<(), ReplayError> {
        if let Some((player, at)) = self.crowded.get() {
            return Err(ReplayError::TooManyFrames { player, at: ClockTime(at) });
        }
        if self.unacked.get() > UNACKED_MAX {
            return Err(ReplayError::TooManyUnacked);
        }
        Ok(self.most.map_or(Ok(()), |most| most.check(self.bytes.get()))?)
    }
}

/// An estimate by counts of the memory of a session's trace with this number of ticks, in bytes.
pub(super) fn trace_bytes_of(session: &Session, ticks: usize, cells: usize, wanted: TableSet) -> usize {
    let frames = session.players.iter().map(|player| player.frames.len().max(player.heard.len())).sum();
    trace_bytes(session.players.len(), frames, ticks, cells, wanted)
}

/// An estimate by counts of what a trace takes in memory: `frames` of all players, `cells` of each body.
pub(super) fn trace_bytes(players: usize, frames: usize, ticks: usize, cells: usize, wanted: TableSet) -> usize {
    let of = |table: &TableSchema, bytes: usize| if wanted.has(table) { bytes } else { 0 };
    // Each frame draws all others, and is acked by a snapshot or carried by a packet about once.
    let of_frame = of(&frames::SCHEMA, FRAME + CELL * cells)
        + of(&executed::SCHEMA, EXECUTED)
        + of(&views::SCHEMA, players.saturating_sub(1) * VIEW)
        + if has_corrections(wanted) { SNAPSHOT } else { 0 };
    let of_tick = of(&ticks::SCHEMA, TICK) + of(&bodies::SCHEMA, players * (BODY + CELL * cells));
    let of_rows = frames.saturating_mul(of_frame).saturating_add(ticks.saturating_mul(of_tick));
    of_rows.saturating_add(players * players * OTHER_PLAYER_BYTES)
}

/// Checks the work of a replay that streams, which has no memory limit, by its counts.
///
/// # Errors
/// When a limit is exceeded.
pub(super) fn check_work(players: usize, frames: u64, ticks: u64) -> Result<(), ReplayError> {
    let players = players as u64;
    if ticks.saturating_mul(players) > PLAYER_TICKS_MAX {
        return Err(ReplayError::TooManyTicks { ticks, players });
    }
    if frames.saturating_mul(players) > VIEWS_MAX {
        return Err(ReplayError::TooManyUsercmds { usercmds: frames, players });
    }
    Ok(())
}

/// An observer that counts events into a budget and passes them on.
pub(super) struct BudgetObserver<'a, O: ?Sized> {
    pub(super) budget: &'a ReplayBudget,
    pub(super) observer: &'a mut O,
    /// The counts of each player so far.
    players: Vec<FrameCounts>,
}

/// Counts of one player's frames.
#[derive(Clone, Copy, Debug, Default)]
struct FrameCounts {
    /// Frames since the player last received a snapshot.
    unacked: usize,
    /// A second of the session, and the number of frames in it.
    in_second: (i64, u32),
}

impl<'a, O: ?Sized> BudgetObserver<'a, O> {
    pub(super) fn new(budget: &'a ReplayBudget, observer: &'a mut O) -> Self {
        BudgetObserver { budget, observer, players: Vec::new() }
    }

    /// Counts a frame. The client keeps its usercmd until a snapshot acks it, and the link keeps packets until they
    /// arrive.
    fn count_frame(&mut self, player: PlayerId, at: Micros) {
        let second = at.0.div_euclid(1_000_000);
        let counts = self.counts(player);
        counts.in_second = match counts.in_second {
            (of, frames) if of == second => (of, frames + 1),
            _ => (second, 1),
        };
        counts.unacked += 1;
        let FrameCounts { unacked, in_second: (_, frames) } = *counts;
        if unacked > UNACKED_FEW {
            self.budget.add(UNACKED);
            self.budget.unacked.set(self.budget.unacked.get() + 1);
        }
        if frames > FRAMES_PER_SECOND_MAX && self.budget.crowded.get().is_none() {
            self.budget.crowded.set(Some((player, at)));
        }
    }

    fn counts(&mut self, player: PlayerId) -> &mut FrameCounts {
        let index = usize::from(player.0);
        if index >= self.players.len() {
            self.players.resize(index + 1, FrameCounts::default());
        }
        &mut self.players[index]
    }

    fn count_ack(&mut self, player: PlayerId) {
        let kept = std::mem::take(&mut self.counts(player).unacked).saturating_sub(UNACKED_FEW);
        self.budget.unacked.set(self.budget.unacked.get().saturating_sub(kept));
    }
}

impl<G: Game, O: Observer<G> + ?Sized> Observer<G> for BudgetObserver<'_, O> {
    fn needs_drawing(&mut self, at: Micros) -> bool {
        self.observer.needs_drawing(at)
    }

    /// A session over its budget gets no more input.
    fn is_over(&self) -> bool {
        self.budget.is_exceeded()
    }

    fn event(&mut self, at: Micros, event: &SessionEvent<'_, G>) {
        let budget = self.budget;
        match event {
            SessionEvent::Frame { player, output, screen } => {
                self.count_frame(*player, at);
                budget.add(output.shots.len() * SHOT + output.effects.len() * EFFECT);
                budget.add_rows(&frames::SCHEMA, FRAME + CELL * G::Body::CELLS);
                budget.add_rows(&views::SCHEMA, screen.drawn.len() * VIEW);
            }
            SessionEvent::PacketSent { .. } | SessionEvent::SnapshotSent { .. } => budget.add(SENT_ROW),
            SessionEvent::PacketReached { .. } => {}
            SessionEvent::Server { event: TickEvent::Presence { .. }, .. } => {}
            SessionEvent::Server { event: TickEvent::Executed { .. }, .. } => {
                budget.add_rows(&executed::SCHEMA, EXECUTED)
            }
            SessionEvent::Server { event: TickEvent::Judged(_) | TickEvent::Impact { .. }, .. } => budget.add(SHOT),
            SessionEvent::Ticked { world, .. } => {
                budget.add_rows(&ticks::SCHEMA, TICK);
                budget.add_rows(&bodies::SCHEMA, G::entities(world).len() * (BODY + CELL * G::Body::CELLS));
            }
            SessionEvent::SnapshotReceived { player, snapshot, .. } => {
                self.count_ack(*player);
                budget.add(snapshot.effects.len() * EFFECT);
                if has_corrections(budget.wanted) {
                    budget.add(SNAPSHOT);
                }
            }
        }
        self.observer.event(at, event);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    use crate::game::Simulate;
    use crate::link::{LinkModel, Loss};
    use crate::rink::{Rink, Skater};
    use crate::session::record_synthetic;
    use crate::session::scenario::Scenario;

    /// An independent count of the same events, with row sizes as literals.
    #[derive(Default)]
    struct Tally {
        bytes: usize,
        /// Frames of player 0 and player 1.
        frames: [usize; 2],
        kinds: [usize; 6],
    }

    impl Observer<Rink> for Tally {
        fn event(&mut self, _: Micros, event: &SessionEvent<'_, Rink>) {
            match event {
                SessionEvent::Frame { player, output, screen } => {
                    self.bytes += 128 + 6 * Skater::CELLS + 48 * screen.drawn.len();
                    self.bytes += 256 * output.shots.len() + 48 * output.effects.len();
                    self.frames[usize::from(player.0)] += 1;
                    self.kinds[0] += output.shots.len();
                    self.kinds[1] += output.effects.len();
                }
                SessionEvent::PacketSent { .. } => self.bytes += 96,
                SessionEvent::PacketReached { .. } => {}
                SessionEvent::Server { event: TickEvent::Presence { .. }, .. } => {}
                SessionEvent::Server { event: TickEvent::Executed { .. }, .. } => self.bytes += 16,
                SessionEvent::Server { event: TickEvent::Judged(_), .. } => {
                    self.bytes += 256;
                    self.kinds[2] += 1;
                }
                SessionEvent::Server { event: TickEvent::Impact { .. }, .. } => {
                    self.bytes += 256;
                    self.kinds[3] += 1;
                }
                SessionEvent::Ticked { world, .. } => {
                    self.bytes += 32 + Rink::entities(world).len() * (8 + 6 * Skater::CELLS);
                }
                SessionEvent::SnapshotSent { .. } => {
                    self.bytes += 96;
                    self.kinds[4] += 1;
                }
                SessionEvent::SnapshotReceived { snapshot, .. } => {
                    self.bytes += 64 + 48 * snapshot.effects.len();
                    self.kinds[5] += snapshot.effects.len();
                }
            }
        }
    }

    fn count(scenario: &Scenario) -> (usize, Tally) {
        let (budget, mut tally) = (ReplayBudget::streaming(), Tally::default());
        let rules = Arc::new(());
        record_synthetic::<Rink>(scenario, &rules, &mut BudgetObserver::new(&budget, &mut tally)).expect("a scenario");
        (budget.bytes.get(), tally)
    }

    #[test]
    fn all_rows_of_a_session_are_counted() {
        let (bytes, tally) = count(&Scenario { players: 2, seconds: 12.0, ..Scenario::default() });
        assert!(tally.kinds.iter().all(|number| *number > 0), "{:?} of each kind", tally.kinds);
        assert_eq!(bytes, tally.bytes);
    }

    #[test]
    fn unacked_usercmds_are_counted_beyond_the_first() {
        let deaf = LinkModel { loss: Loss::Random(1.0), ..LinkModel::default() };
        let links = vec![LinkModel::default(), deaf];
        let (bytes, tally) = count(&Scenario { players: 2, seconds: 20.0, links, ..Scenario::default() });
        let beyond = tally.frames[1].checked_sub(1024).expect("a long session");
        assert!(beyond > 100 && tally.frames[0] > 1124);
        assert_eq!(bytes, tally.bytes + 768 * beyond);
    }

    fn player(budget: &ReplayBudget, frames: impl Iterator<Item = Micros>) {
        let mut observer = ();
        let mut counted = BudgetObserver::new(budget, &mut observer);
        frames.for_each(|at| counted.count_frame(PlayerId(3), at));
    }

    #[test]
    fn refuses_usercmds_over_the_limit_in_a_second() {
        let spread = |frames: u32| (0..frames).map(|n| Micros(i64::from(n % 1_000)));
        let [most, more] = [FRAMES_PER_SECOND_MAX, FRAMES_PER_SECOND_MAX + 1].map(|frames| {
            let budget = ReplayBudget::streaming();
            player(&budget, spread(frames));
            budget.check()
        });
        assert!(most.is_ok(), "{most:?}");
        assert!(matches!(more, Err(ReplayError::TooManyFrames { player: PlayerId(3), .. })), "{more:?}");
        let budget = ReplayBudget::streaming();
        player(&budget, (0..200_000).map(|n| Micros(n * 1_000)));
        assert!(budget.check().is_ok(), "1,000 Hz for minutes without a snapshot");
    }

    #[test]
    fn refuses_usercmds_without_an_ack_over_the_limit() {
        let frames = |count: usize| (0..count as i64).map(|n| Micros(n * 1_000));
        let budget = ReplayBudget::streaming();
        player(&budget, frames(UNACKED_FEW + UNACKED_MAX));
        assert!(budget.check().is_ok());
        let budget = ReplayBudget::streaming();
        player(&budget, frames(UNACKED_FEW + UNACKED_MAX + 1));
        assert!(matches!(budget.check(), Err(ReplayError::TooManyUnacked)));
        let (budget, mut nothing) = (ReplayBudget::streaming(), ());
        let mut counted = BudgetObserver::new(&budget, &mut nothing);
        for at in frames(3 * UNACKED_MAX) {
            counted.count_frame(PlayerId(0), at);
            if at.0 % 1_000_000 == 0 {
                counted.count_ack(PlayerId(0));
            }
        }
        assert!(budget.check().is_ok() && budget.unacked.get() < UNACKED_FEW);
    }

    #[test]
    fn rows_in_memory_have_a_limit_and_streamed_rows_have_none() {
        let header = Scenario::default().header::<Rink>(&()).expect("a header");
        let session = Session::new(header);
        let budget = ReplayBudget::holding(&session, TableSet::ALL, MemoryLimit::of_bytes(1_000));
        budget.add(1_000);
        assert!(!budget.is_exceeded() && budget.check().is_ok());
        budget.add(1);
        assert!(budget.is_exceeded() && matches!(budget.check(), Err(ReplayError::NeedsMemory(_))));
        let budget = ReplayBudget::streaming();
        budget.add(usize::MAX);
        assert!(!budget.is_exceeded() && budget.check().is_ok());
    }

    #[test]
    fn estimate_by_counts_refuses_before_the_replay_begins() {
        let scenario = Scenario { players: 3, seconds: 4.0, ..Scenario::default() };
        let rules = Arc::new(());
        let session = Session::new(scenario.header::<Rink>(&rules).expect("a header"));
        let limit = MemoryLimit::of_bytes(32 << 20);
        let begin = |ticks: usize, tables: TableSet| {
            ReplayBudget::holding(&session, tables, limit).begin::<Rink>(&session, ticks)
        };
        assert!(begin(4 * 64, TableSet::ALL).is_ok());
        assert!(matches!(begin(1_500_000, TableSet::ALL), Err(ReplayError::NeedsMemory(_))));
        assert!(begin(1_500_000, TableSet::named(["executed"])).is_ok(), "rows that are not kept take nothing");
    }

    #[test]
    fn refuses_ticks_and_usercmds_of_all_players_over_the_limit() {
        let (second, hours) = (128_u64, 3600_u64);
        assert!(check_work(64, 64 * second * 9 * hours, second * 24 * hours).is_ok(), "hours of 64 players");
        assert!(check_work(64, 64 * 1_000 * 600, 1_000 * 600).is_ok(), "ten minutes at 1,000 Hz");
        assert!(check_work(256, VIEWS_MAX / 256, PLAYER_TICKS_MAX / 256).is_ok());
        let ticks = check_work(256, 0, PLAYER_TICKS_MAX / 256 + 1);
        assert!(matches!(ticks, Err(ReplayError::TooManyTicks { players: 256, .. })), "{ticks:?}");
        let usercmds = check_work(256, VIEWS_MAX / 256 + 1, 0);
        assert!(matches!(usercmds, Err(ReplayError::TooManyUsercmds { players: 256, .. })), "{usercmds:?}");
    }
}
