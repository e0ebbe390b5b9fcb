//! A binary search among builds or commits. Candidates that cannot be judged are skipped, as in `git bisect skip`.
//!
//! Candidates run concurrently: the one that the search waits for, and others that it may need next.

use std::any::Any;
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::Scope;

use super::{BisectResult, BuildJudge, OlderBranch, SearchVerdict, SkippedCandidate, StepProgress, TestedCandidate};
use crate::build::condition::BuildAnswer;
use crate::build::{Build, StopSignal, UntestableBuild};
use crate::{BuildOutcome, EngineError, check};
use hitreg_analysis::diff::{DiffOptions, diff};
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::Trace;

/// What a search goes through: a list of builds, or a range of commits.
pub(super) trait SearchSpace: Sync {
    /// Names a candidate.
    type Item: Ord + Clone + Send + 'static;

    /// The candidates between the good ones and `bad`, the best to try first.
    fn between(&self, bad: &Self::Item, goods: &[Self::Item]) -> Result<Vec<Self::Item>, EngineError>;

    /// The same candidates, from the oldest to the newest.
    fn in_order(&self, bad: &Self::Item, goods: &[Self::Item]) -> Result<Vec<Self::Item>, EngineError> {
        let mut all = self.between(bad, goods)?;
        all.sort();
        Ok(all)
    }

    /// The good candidate to report beside the first bad one. `goods` are in the order of the trials.
    fn last_good(&self, bad: &Self::Item, goods: &[Self::Item]) -> Result<Self::Item, EngineError>;

    /// The parents of `bad` that were not tried, and that a good candidate contains.
    fn untried_parents(&self, _: &Self::Item, _: &[Self::Item]) -> Result<Vec<Self::Item>, EngineError> {
        Ok(Vec::new())
    }

    /// The branches that `bad` contains and [`between`](Self::between) does not reach. The first of `goods` is the good
    /// end.
    fn older_branches(&self, _: &Self::Item, _: &[Self::Item]) -> Result<Vec<OlderBranch<Self::Item>>, EngineError> {
        Ok(Vec::new())
    }

    fn name(&self, item: &Self::Item) -> String;

    /// The build of a candidate. No other running probe uses the slot.
    fn build(&self, item: &Self::Item, judge: &BuildJudge<'_>, slot: usize) -> BuildOutcome<Build>;

    /// The trace of a candidate.
    fn trace(&self, item: &Self::Item, judge: &BuildJudge<'_>, slot: usize) -> BuildOutcome<Trace> {
        match self.build(item, judge, slot)? {
            Ok(build) => judge.trace(&build),
            Err(untestable) => Ok(Err(untestable)),
        }
    }

    /// Keeps what the end of the search needs of a build that the judge's command has judged.
    fn keep(&self, _: &Self::Item, _: &BuildJudge<'_>, _: &Build) -> Result<(), EngineError> {
        Ok(())
    }

    /// Runs a candidate: judges it with the judge's command, or makes its trace if there is no command.
    fn probe(&self, item: &Self::Item, judge: &BuildJudge<'_>, slot: usize) -> Result<Probe, EngineError> {
        let Some(condition) = &judge.condition else {
            return Ok(self.trace(item, judge, slot)?.map_err(BuildAnswer::Untestable));
        };
        let build = match self.build(item, judge, slot)? {
            Ok(build) => build,
            Err(untestable) => return Ok(Err(BuildAnswer::Untestable(untestable))),
        };
        let answer = condition.ask(&judge.runner, judge.request.log, Some(build.path()))?;
        self.keep(item, judge, &build)?;
        Ok(Err(answer))
    }
}

/// A trace for the search to compare, or the answer if the candidate is already judged.
type Probe = Result<Trace, BuildAnswer>;

/// Saves the answers of a search.
type SaveAnswers<'a, T> = dyn Fn(&[(T, BuildAnswer)]) -> Result<(), EngineError> + 'a;

/// A search, ready to run.
pub(super) struct CandidateSearch<'a, S: SearchSpace> {
    pub(super) space: &'a S,
    pub(super) judge: &'a BuildJudge<'a>,
    /// The number of probes that run at the same time, including speculative ones.
    pub(super) jobs: usize,
    /// The good end and the bad end.
    pub(super) ends: [S::Item; 2],
    /// Try both ends before any other candidate. Without this, an end is tried only if the answer depends on it.
    pub(super) verify_ends: bool,
    /// The answers so far, in the order of the trials.
    pub(super) answers: Vec<(S::Item, BuildAnswer)>,
    /// Receives all answers after each new one.
    pub(super) save: &'a SaveAnswers<'a, S::Item>,
    pub(super) steps: &'a StepProgress<'a>,
    /// The estimated number of steps.
    pub(super) most: u64,
}

impl<S: SearchSpace> CandidateSearch<'_, S> {
    pub(super) fn run(self) -> Result<BisectResult, EngineError> {
        let (space, judge, jobs) = (self.space, self.judge, self.jobs);
        let probe = |item: &S::Item, stop: &StopSignal, slot: usize| space.probe(item, &judge.with_stop(stop), slot);
        std::thread::scope(|scope| {
            let ahead = ProbePool::new(scope, &probe, &judge.runner.stop, judge.room(jobs));
            Bisection { search: self, ahead, traces: SortedMap::new(), probes_requested: 0 }.run()
        })
    }
}

struct Bisection<'a, 'scope, 'env, S: SearchSpace> {
    search: CandidateSearch<'a, S>,
    ahead: ProbePool<'scope, 'env, S::Item, Result<Probe, EngineError>>,
    /// The traces that the search still needs.
    traces: SortedMap<S::Item, Trace>,
    /// The number of probes that the search requested, including the reference.
    probes_requested: usize,
}

impl<S: SearchSpace> Bisection<'_, '_, '_, S> {
    fn run(mut self) -> Result<BisectResult, EngineError> {
        let [good, bad] = self.search.ends.clone();
        let mut first_bad = self.saved_bad()?;
        let compares = self.search.judge.compares();
        if compares {
            let next = self.upcoming(&first_bad)?;
            if let Some(BuildAnswer::Untestable(untestable)) = self.probe(&good, &next)? {
                return Ok(self.untestable_end(&good, "the reference for all others", untestable));
            }
        }
        if self.search.verify_ends {
            for (end, expected) in [(&good, BuildAnswer::Good), (&bad, BuildAnswer::Bad)] {
                if let Some(found) = self.check_end(end, &first_bad, &expected)? {
                    return Ok(found);
                }
            }
        }
        loop {
            self.narrow(&mut first_bad)?;
            // An end that was only assumed must be tried before it becomes part of the answer.
            let is_good_assumed = !compares && self.goods().len() == 1;
            let is_bad_assumed = first_bad == bad;
            for (end, expected, is_assumed) in
                [(&good, BuildAnswer::Good, is_good_assumed), (&bad, BuildAnswer::Bad, is_bad_assumed)]
            {
                if is_assumed && let Some(found) = self.check_end(end, &first_bad, &expected)? {
                    return Ok(found);
                }
            }
            if self.widen(&mut first_bad)? {
                continue;
            }
            let Some((item, untestable)) = self.unsteady(&first_bad)? else { return self.found(&first_bad) };
            if item == good {
                return Ok(self.untestable_end(&item, "the reference for all others", untestable));
            }
            if item == bad {
                return Ok(self.untestable_end(&item, "which decides the answer", untestable));
            }
            self.skip(&item, untestable)?;
            first_bad = self.saved_bad()?;
        }
    }

    /// Replays the log again in the reference and in the first bad candidate, and returns the one whose traces differ.
    fn unsteady(&mut self, first_bad: &S::Item) -> Result<Option<(S::Item, UntestableBuild)>, EngineError> {
        if !self.search.judge.compares() {
            return Ok(None);
        }
        // Stop speculative probes before their builds are made again.
        self.ahead.end();
        for item in [self.search.ends[0].clone(), first_bad.clone()] {
            if let Some(untestable) = self.repeat(&item)? {
                return Ok(Some((item, untestable)));
            }
        }
        Ok(None)
    }

    /// Replaces the answer of a candidate that cannot be judged after all.
    fn skip(&mut self, item: &S::Item, why: UntestableBuild) -> Result<(), EngineError> {
        self.traces.remove(item);
        for (_, answer) in self.search.answers.iter_mut().filter(|(known, _)| known == item) {
            *answer = BuildAnswer::Untestable(why.clone());
        }
        (self.search.save)(&self.search.answers)
    }

    /// The first bad candidate by the answers of an earlier run.
    fn saved_bad(&self) -> Result<S::Item, EngineError> {
        let (goods, mut first_bad) = (self.goods(), self.search.ends[1].clone());
        for (item, answer) in &self.search.answers {
            if *answer == BuildAnswer::Bad && self.search.space.between(&first_bad, &goods)?.contains(item) {
                first_bad = item.clone();
            }
        }
        Ok(first_bad)
    }

    /// Tries candidates between the good ones and `first_bad` until none is left.
    fn narrow(&mut self, first_bad: &mut S::Item) -> Result<(), EngineError> {
        loop {
            let next = self.upcoming(first_bad)?;
            let Some(item) = next.first() else { return Ok(()) };
            if self.answer(item, &next)? == BuildAnswer::Bad {
                *first_bad = item.clone();
            }
            self.step(first_bad);
        }
    }

    /// Tries what the answer assumes about other branches, and returns whether there are new candidates. Each parent of
    /// the first bad candidate must be good. A branch that began before the good end can be searched if it began with a
    /// good candidate; the good end may have changes that the branch lacks.
    fn widen(&mut self, first_bad: &mut S::Item) -> Result<bool, EngineError> {
        let (space, goods) = (self.search.space, self.goods());
        for parent in space.untried_parents(first_bad, &goods)? {
            let answer = self.answer(&parent, &[])?;
            self.step(first_bad);
            if answer == BuildAnswer::Bad {
                *first_bad = parent;
                return Ok(true);
            }
        }
        for OlderBranch { base, .. } in space.older_branches(first_bad, &goods)? {
            let is_new = self.search.answers.iter().all(|(known, _)| *known != base);
            let answer = self.answer(&base, &[])?;
            self.step(first_bad);
            if is_new && answer == BuildAnswer::Good {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reports the progress, and drops the traces that the search no longer needs.
    fn step(&mut self, first_bad: &S::Item) {
        let (good, last_good) = (&self.search.ends[0], self.goods().pop());
        self.traces.retain(|held, _| [good, first_bad].contains(&held) || Some(held) == last_good.as_ref());
        (self.search.steps)(self.search.answers.len() as u64, self.search.most);
    }

    /// Tries an end of the range, and returns the result of the search if the answer is not the expected one.
    fn check_end(
        &mut self,
        end: &S::Item,
        bad: &S::Item,
        expected: &BuildAnswer,
    ) -> Result<Option<BisectResult>, EngineError> {
        let next = self.upcoming(bad)?;
        let answer = self.answer(end, &next)?;
        if answer == *expected {
            return Ok(None);
        }
        let name = Some(self.name(end));
        Ok(Some(match answer {
            BuildAnswer::Good => BisectResult { last_good: name, ..self.so_far(SearchVerdict::NoneIsBad) },
            BuildAnswer::Bad => BisectResult { first_bad: name, ..self.so_far(SearchVerdict::AllAreBad) },
            BuildAnswer::Untestable(why) => self.untestable_end(end, "which decides the answer", why),
        }))
    }

    /// The candidate to try next, then speculative ones, up to the number of free slots.
    fn upcoming(&self, bad: &S::Item) -> Result<Vec<S::Item>, EngineError> {
        // Finished probes need no slot.
        let most = self.search.judge.room(self.search.jobs + self.ahead.done.len());
        upcoming(self.search.space, &self.search.answers, bad, self.goods(), most)
    }

    /// All candidates that are known or assumed to be good.
    fn goods(&self) -> Vec<S::Item> {
        let good = self.search.answers.iter().filter(|(_, answer)| *answer == BuildAnswer::Good);
        [&self.search.ends[0]].into_iter().chain(good.map(|(item, _)| item)).cloned().collect()
    }

    fn answer(&mut self, item: &S::Item, next: &[S::Item]) -> Result<BuildAnswer, EngineError> {
        if let Some((_, answer)) = self.search.answers.iter().find(|(known, _)| known == item) {
            return Ok(answer.clone());
        }
        let answer = match self.probe(item, next)? {
            Some(answer) => answer,
            None => match (self.traces.get(&self.search.ends[0]), self.traces.get(item)) {
                (Some(good), Some(trace)) => self.search.judge.compare(good, trace)?,
                _ => BuildAnswer::Untestable(UntestableBuild::because("there is nothing to judge it by")),
            },
        };
        self.search.answers.push((item.clone(), answer.clone()));
        (self.search.save)(&self.search.answers)?;
        Ok(answer)
    }

    /// Waits for the probe of one candidate, while speculative probes run beside it. Returns its answer, or `None` if
    /// its trace still has to be compared.
    fn probe(&mut self, item: &S::Item, next: &[S::Item]) -> Result<Option<BuildAnswer>, EngineError> {
        if self.traces.contains_key(item) {
            return Ok(None);
        }
        let probed = self.ahead.get(item, next);
        self.probes_requested += 1;
        // The result of a stopped probe is invalid and must not be saved.
        check(&self.search.judge.runner.stop)?;
        Ok(probed?.map(|trace| self.traces.insert(item.clone(), trace)).err())
    }

    fn found(mut self, first_bad: &S::Item) -> Result<BisectResult, EngineError> {
        let (space, goods) = (self.search.space, self.goods());
        let skipped = space.in_order(first_bad, &goods)?;
        let verdict = if skipped.is_empty() { SearchVerdict::Found } else { SearchVerdict::Range };
        let older = space.older_branches(first_bad, &goods)?;
        if let Some(OlderBranch { base, .. }) = older.iter().find(|branch| branch.tip == *first_bad) {
            let [base, bad] = [base, first_bad].map(|item| self.name(item));
            let what = format!(
                "BAD does not come after GOOD, and {base}, the last commit that both contain, is not good: search {base}..{bad}"
            );
            return Ok(BisectResult { untestable: Some(what), ..self.so_far(SearchVerdict::Untestable) });
        }
        let unsearched = older.iter().map(|branch| branch.map(|item| self.name(item))).collect();
        let last_good = space.last_good(first_bad, &goods)?;
        let mut found = BisectResult {
            unsearched,
            first_bad: Some(self.name(first_bad)),
            last_good: Some(self.name(&last_good)),
            candidates: skipped.iter().chain([first_bad]).map(|item| self.name(item)).collect(),
            ..self.so_far(verdict)
        };
        // Stop speculative probes before the traces are made.
        self.ahead.end();
        let judge = self.search.judge;
        let mut trace = |item: &S::Item| match self.traces.remove(item) {
            Some(trace) => Ok(Ok(trace)),
            None => space.trace(item, judge, 0),
        };
        let traces = [trace(&last_good)?, trace(first_bad)?];
        check(&judge.runner.stop)?;
        if let [Ok(good), Ok(bad)] = &traces {
            // Default options have no tolerances, so they are valid for every pair of traces.
            found.diff = diff(good, bad, &DiffOptions::default()).ok();
        }
        Ok(found)
    }

    /// Replays the log in a candidate again, and returns why the candidate cannot be judged, if its traces differ.
    fn repeat(&mut self, item: &S::Item) -> Result<Option<UntestableBuild>, EngineError> {
        let CandidateSearch { space, judge, .. } = self.search;
        if !self.traces.contains_key(item) {
            match space.trace(item, judge, 0)? {
                Ok(trace) => self.traces.insert(item.clone(), trace),
                Err(untestable) => return Ok(Some(untestable)),
            };
        }
        let repeated = self.traces.get(item).map(|first| match space.build(item, judge, 0)? {
            Ok(build) => judge.repeat(&build, first),
            Err(untestable) => Ok(Some(untestable)),
        });
        check(&judge.runner.stop)?;
        repeated.unwrap_or(Ok(None))
    }

    fn so_far(&self, verdict: SearchVerdict) -> BisectResult {
        let speculative = Some(self.ahead.begun.saturating_sub(self.probes_requested));
        let (mut tested, mut skipped) = (Vec::new(), Vec::new());
        for (item, answer) in &self.search.answers {
            if let BuildAnswer::Untestable(why) = answer {
                skipped.push(SkippedCandidate { name: self.name(item), why: why.clone() });
            }
            tested.push(TestedCandidate { name: self.name(item), answer: answer.clone() });
        }
        BisectResult { verdict, probes: tested.len(), speculative, skipped, tested, ..BisectResult::default() }
    }

    /// The result of a search with an end that could not be judged.
    fn untestable_end(&self, end: &S::Item, what: &str, why: UntestableBuild) -> BisectResult {
        let untestable = Some(format!("{}, {what}: {}", self.name(end), why.reason));
        BisectResult { untestable, last_words: why.last_words, ..self.so_far(SearchVerdict::Untestable) }
    }

    fn name(&self, item: &S::Item) -> String {
        self.search.space.name(item)
    }
}

/// Up to `most` candidates: the one to try now, then the next choice if it is bad, the next if it is good, and so on.
fn upcoming<S: SearchSpace>(
    space: &S,
    answers: &[(S::Item, BuildAnswer)],
    bad: &S::Item,
    goods: Vec<S::Item>,
    most: usize,
) -> Result<Vec<S::Item>, EngineError> {
    let mut next: Vec<S::Item> = Vec::new();
    let mut ranges = VecDeque::from([(bad.clone(), goods)]);
    while next.len() < most {
        let Some((bad, goods)) = ranges.pop_front() else { break };
        let mut left = space.between(&bad, &goods)?;
        let between = left.len();
        left.retain(|item| answers.iter().all(|(known, _)| known != item));
        let Some(item) = choose(&left, between - left.len()) else { continue };
        ranges.push_back((item.clone(), goods.clone()));
        ranges.push_back((bad, goods.into_iter().chain([item.clone()]).collect()));
        if !next.contains(item) {
            next.push(item.clone());
        }
    }
    Ok(next)
}

/// Chooses from the remaining candidates, which are sorted best first. `skipped` candidates could not be judged.
///
/// Untestable candidates tend to be neighbours, for example a range of commits that does not build. So the next best
/// candidate is a bad choice. The more were skipped, the further the choice moves into the better half of the list. Its
/// step is the golden ratio, which spreads the choices evenly.
fn choose<T>(best_first: &[T], skipped: usize) -> Option<&T> {
    let away = (skipped * 618 % 1000) * best_first.len() / 2000;
    best_first.get(away)
}

/// A function that runs one probe. The number is its slot, such as a worktree, which no other running probe uses.
type ProbeFn<'env, K, T> = dyn Fn(&K, &StopSignal, usize) -> T + Sync + 'env;

/// Runs up to `jobs` probes at a time.
struct ProbePool<'scope, 'env, K, T> {
    scope: &'scope Scope<'scope, 'env>,
    probe: &'env ProbeFn<'env, K, T>,
    stop: StopSignal,
    jobs: usize,
    running: SortedMap<K, RunningProbe>,
    /// The results that were not used yet.
    done: SortedMap<K, T>,
    /// The number of probes that were started, including speculative ones.
    begun: usize,
    ended: Sender<FinishedProbe<K, T>>,
    endings: Receiver<FinishedProbe<K, T>>,
}

struct RunningProbe {
    stop: StopSignal,
    place: usize,
}

type FinishedProbe<K, T> = (K, Result<T, Box<dyn Any + Send>>);

impl<'scope, 'env, K: Ord + Clone + Send + 'scope, T: Send + 'scope> ProbePool<'scope, 'env, K, T> {
    /// Creates an idle runner. `stop` ends all its probes.
    fn new(
        scope: &'scope Scope<'scope, 'env>,
        probe: &'env ProbeFn<'env, K, T>,
        stop: &StopSignal,
        jobs: usize,
    ) -> ProbePool<'scope, 'env, K, T> {
        let (ended, endings) = channel();
        ProbePool {
            scope,
            probe,
            stop: stop.clone(),
            jobs: jobs.max(1),
            running: SortedMap::new(),
            done: SortedMap::new(),
            begun: 0,
            ended,
            endings,
        }
    }

    /// Waits for the result of `first`, and meanwhile runs the other wanted probes in free slots. Stops running probes
    /// that are not wanted.
    fn get(&mut self, first: &K, wanted: &[K]) -> T {
        self.done.retain(|key, _| key == first || wanted.contains(key));
        loop {
            if let Some(found) = self.done.remove(first) {
                return found;
            }
            for (_, running) in self.running.iter().filter(|(key, _)| *key != first && !wanted.contains(key)) {
                running.stop.stop();
            }
            for key in std::iter::once(first).chain(wanted) {
                if self.running.len() < self.jobs && !self.running.contains_key(key) && !self.done.contains_key(key) {
                    self.begin(key);
                }
            }
            // At least one probe runs: `first`, or a stopped one that still holds its slot.
            let Ok((key, ended)) = self.endings.recv() else { unreachable!("a sender is kept for as long as this is") };
            let stopped = self.running.remove(&key).is_none_or(|running| running.stop.is_stopped());
            match ended {
                Ok(found) if !stopped || self.stop.is_stopped() => drop(self.done.insert(key, found)),
                Ok(_) => {}
                Err(panic) => resume_unwind(panic),
            }
        }
    }

    /// Stops all running probes and waits for them.
    fn end(&mut self) {
        self.stop_all();
        while !self.running.is_empty() {
            let Ok((key, _)) = self.endings.recv() else { unreachable!("a sender is kept for as long as this is") };
            self.running.remove(&key);
        }
    }

    fn begin(&mut self, key: &K) {
        let places = || self.running.values().map(|running| running.place);
        let place = (0..).find(|place| places().all(|taken| taken != *place)).unwrap_or_default();
        let stop = self.stop.part();
        self.running.insert(key.clone(), RunningProbe { stop: stop.clone(), place });
        self.begun += 1;
        let (probe, key, sender) = (self.probe, key.clone(), self.ended.clone());
        let work = move || {
            let ended = catch_unwind(AssertUnwindSafe(|| probe(&key, &stop, place)));
            // The receiver is gone if the search has ended.
            let _ = sender.send((key.clone(), ended));
        };
        let thread = std::thread::Builder::new().spawn_scoped(self.scope, work.clone());
        // If the system allows no more threads, this one runs the probe.
        thread.map_or_else(|_| work(), drop);
    }
}

impl<K, T> ProbePool<'_, '_, K, T> {
    fn stop_all(&self) {
        for running in self.running.values() {
            running.stop.stop();
        }
    }
}

impl<K, T> Drop for ProbePool<'_, '_, K, T> {
    fn drop(&mut self) {
        self.stop_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;
    use std::time::Duration;

    /// A list of numbered items.
    struct Line;

    impl SearchSpace for Line {
        type Item = usize;

        fn between(&self, bad: &usize, goods: &[usize]) -> Result<Vec<usize>, EngineError> {
            Ok(super::super::between(*bad, goods))
        }

        fn last_good(&self, _: &usize, _: &[usize]) -> Result<usize, EngineError> {
            unreachable!("nothing is run")
        }

        fn build(&self, _: &usize, _: &BuildJudge<'_>, _: usize) -> BuildOutcome<Build> {
            unreachable!("nothing is run")
        }

        fn name(&self, item: &usize) -> String {
            item.to_string()
        }
    }

    /// The answers to a search between item 0 and an end that is bad.
    struct Answered {
        bad: usize,
        goods: Vec<usize>,
        answers: Vec<(usize, BuildAnswer)>,
    }

    impl Answered {
        fn new(things: usize) -> Answered {
            Answered { bad: things - 1, goods: vec![0], answers: Vec::new() }
        }

        fn ahead(&self, most: usize) -> Vec<usize> {
            upcoming(&Line, &self.answers, &self.bad, self.goods.clone(), most).unwrap()
        }

        fn put(&mut self, at: usize, answer: BuildAnswer) {
            match &answer {
                BuildAnswer::Good => self.goods.push(at),
                BuildAnswer::Bad => self.bad = at,
                BuildAnswer::Untestable(_) => {}
            }
            self.answers.push((at, answer));
        }
    }

    /// Searches a list in which `bad` is the first bad item and some items cannot be judged.
    fn search(things: usize, bad: usize, untestable: &[usize]) -> (Vec<usize>, usize) {
        let mut line = Answered::new(things);
        while let Some(at) = line.ahead(1).pop() {
            let answer = match at {
                at if untestable.contains(&at) => BuildAnswer::Untestable(UntestableBuild::because("broken")),
                at if at < bad => BuildAnswer::Good,
                _ => BuildAnswer::Bad,
            };
            line.put(at, answer);
        }
        let mut candidates = Line.between(&line.bad, &line.goods).unwrap();
        candidates.push(line.bad);
        candidates.sort_unstable();
        (candidates, line.answers.len())
    }

    #[test]
    fn any_of_64_is_found_in_six_probes() {
        for bad in 1..64 {
            let (found, probes) = search(64, bad, &[]);
            assert_eq!(found, [bad]);
            assert!(probes <= 6, "{probes} probes for {bad}");
        }
        assert_eq!(search(2, 1, &[]), (vec![1], 0));
    }

    #[test]
    fn possible_next_probes_are_known_ahead() {
        let line = Answered::new(64);
        assert_eq!(line.ahead(7), [31, 15, 47, 7, 23, 39, 55]);
        assert_eq!((line.ahead(1), line.ahead(1000).len()), (vec![31], 62));
        for bad in 1..64 {
            let mut line = Answered::new(64);
            let mut ahead = vec![31];
            while let Some(at) = line.ahead(1).pop() {
                assert!(ahead.contains(&at));
                ahead = line.ahead(3);
                line.put(at, if at < bad { BuildAnswer::Good } else { BuildAnswer::Bad });
            }
        }
        assert!(Answered::new(2).ahead(5).is_empty());
    }

    #[test]
    fn candidates_are_the_first_bad_and_the_untestable_before_it() {
        let mut most = 0;
        for bad in 1..64 {
            for start in 1..54 {
                let broken: Vec<usize> = (start..start + 10).collect();
                let (found, probes) = search(64, bad, &broken);
                let before = broken.iter().filter(|at| **at < bad && (**at..bad).all(|i| broken.contains(&i)));
                let after = (bad..64).find(|at| !broken.contains(at)).unwrap();
                let expected: Vec<usize> = before.copied().chain(bad..=after).collect();
                assert_eq!(found, expected, "bad {bad}, broken from {start}");
                most = most.max(probes);
            }
        }
        assert!(most <= 16, "{most} probes");
    }

    /// Sleeps for `ms` milliseconds, unless it is stopped.
    fn sleep(ms: u64, stop: &StopSignal) -> Result<(), ()> {
        for _ in 0..ms {
            if stop.is_stopped() {
                return Err(());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }

    #[test]
    fn the_wanted_probe_is_awaited_and_others_are_ready_or_stopped() {
        let log: Mutex<Vec<(u64, bool)>> = Mutex::default();
        let probe = |ms: &u64, stop: &StopSignal, place: usize| {
            assert!(place < 3);
            let done = sleep(*ms, stop).is_ok();
            log.lock().unwrap().push((*ms, done));
            *ms * 10
        };
        std::thread::scope(|scope| {
            let mut ahead = ProbePool::new(scope, &probe, &StopSignal::default(), 3);
            assert_eq!(ahead.get(&60, &[1, 60_000, 2]), 600);
            assert_eq!((ahead.begun, !ahead.done.is_empty()), (4, true));
            // The result of 3 is available; probes that are not wanted are stopped.
            assert_eq!(ahead.get(&1, &[3]), 10);
            assert_eq!(ahead.get(&3, &[50_000]), 30);
        });
        let log = log.into_inner().unwrap();
        assert!(log.contains(&(60_000, false)), "{log:?}");
        assert_eq!(log.iter().filter(|(_, done)| *done).count(), 4, "{log:?}");
        assert_eq!(log.len(), if log.contains(&(50_000, false)) { 6 } else { 5 }, "{log:?}");
    }

    #[test]
    fn one_at_a_time_runs_nothing_ahead() {
        let probe = |key: &u32, _: &StopSignal, place: usize| (*key, place);
        std::thread::scope(|scope| {
            let mut ahead = ProbePool::new(scope, &probe, &StopSignal::default(), 1);
            assert_eq!(ahead.get(&7, &[8, 9]), (7, 0));
            assert_eq!((ahead.begun, ahead.done.len()), (1, 0));
        });
    }
}
