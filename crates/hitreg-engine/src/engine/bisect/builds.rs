//! Finds the first build in a list that plays a log differently.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::StepProgress;
use super::ahead::ProbePool;
use super::judge::{BuildAnswer, BuildJudge};
use super::result::{BisectResult, SearchVerdict};
use super::search::Bisector;
use crate::build::{Build, StopSignal, UntestableBuild};
use crate::engine::{EngineError, check};
use hitreg_log::trace::Trace;

/// A search in a list of builds. It assumes that the first is good and the last is bad.
#[derive(Clone, Copy, Debug)]
pub struct BuildSearch<'a> {
    /// At least two builds, oldest first.
    pub builds: &'a [PathBuf],
    /// Try the first and the last build before any other. Without this, an end is tried only if the answer depends on
    /// it.
    pub verify_ends: bool,
    /// The number of builds that run at the same time, including speculative ones.
    pub jobs: usize,
}

impl BuildSearch<'_> {
    /// Runs the search, and calls `steps` after each judged build.
    ///
    /// # Errors
    /// Fails if a build does not exist, the judge's command cannot be run, or the job was stopped. A log that a build
    /// cannot play is not an error.
    pub fn run(&self, judge: &BuildJudge<'_>, steps: &StepProgress<'_>) -> Result<BisectResult, EngineError> {
        let builds: Vec<Build> = self.builds.iter().map(|path| Build::at(path)).collect::<Result<_, _>>()?;
        let probe = |at: &usize, stop: &StopSignal, _| probe(&judge.under(stop), &builds[*at]);
        std::thread::scope(|scope| {
            let ahead = ProbePool::new(scope, &probe, judge.stop(), judge.room(self.jobs));
            let (line, traces) = (Bisector::new(builds.len()), BTreeMap::new());
            let tried = Vec::new();
            BuildBisection { search: self, builds: &builds, judge, ahead, line, traces, tried, asked: 0, steps }.run()
        })
    }
}

/// The result of running one build.
enum BuildProbe {
    /// The trace of the log, or why there is none. The search compares it.
    Trace(Result<Trace, UntestableBuild>),
    /// The answer of the judge's command.
    Answer(BuildAnswer),
}

fn probe(judge: &BuildJudge<'_>, build: &Build) -> Result<BuildProbe, EngineError> {
    Ok(match judge.ask(build.path())? {
        Some(answer) => BuildProbe::Answer(answer),
        None => BuildProbe::Trace(judge.trace(build)?),
    })
}

struct BuildBisection<'a, 'scope, 'env> {
    search: &'a BuildSearch<'a>,
    builds: &'a [Build],
    judge: &'a BuildJudge<'a>,
    ahead: ProbePool<'scope, 'env, usize, Result<BuildProbe, EngineError>>,
    line: Bisector,
    /// The traces that the search asked for and still needs.
    traces: BTreeMap<usize, Result<Trace, UntestableBuild>>,
    tried: Vec<(String, BuildAnswer)>,
    /// The number of builds that the search asked for, including the reference build.
    asked: usize,
    steps: &'a StepProgress<'a>,
}

impl BuildBisection<'_, '_, '_> {
    fn run(mut self) -> Result<BisectResult, EngineError> {
        let last = self.builds.len() - 1;
        if self.judge.compares() {
            self.probe(0)?;
            if let Some(Err(untestable)) = self.traces.get(&0) {
                let found = self.so_far(SearchVerdict::Untestable);
                return Ok(found.rests_on(&self.name(0), "the reference for all others", untestable));
            }
        }
        if self.search.verify_ends {
            for (end, expected) in [(0, BuildAnswer::Good), (last, BuildAnswer::Bad)] {
                let answer = self.answer(end)?;
                if answer != expected {
                    return Ok(self.end_is_otherwise(end, &answer));
                }
            }
        }
        let (mut tried, most) = (0, u64::from(self.builds.len().ilog2()));
        while let Some(at) = self.line.next() {
            match self.answer(at)? {
                BuildAnswer::Good => self.line.good(at),
                BuildAnswer::Bad => self.line.bad(at),
                BuildAnswer::Untestable(_) => self.line.skip(at),
            }
            let ends = [0, self.line.last_good(), self.line.first_bad()];
            self.traces.retain(|held, _| ends.contains(held));
            tried += 1;
            (self.steps)(tried, most);
        }
        if !self.search.verify_ends {
            // An end that was only assumed must be tried before it becomes part of the answer.
            for (end, expected) in
                [(self.line.last_good(), BuildAnswer::Good), (self.line.first_bad(), BuildAnswer::Bad)]
            {
                let unseen = (end == 0 && !self.judge.compares()) || end == last;
                let answer = if unseen { self.answer(end)? } else { expected.clone() };
                if answer != expected {
                    return Ok(self.end_is_otherwise(end, &answer));
                }
            }
        }
        self.found()
    }

    fn answer(&mut self, at: usize) -> Result<BuildAnswer, EngineError> {
        let answer = match self.probe(at)? {
            Some(answer) => answer,
            None => match (self.traces.get(&0), self.traces.get(&at)) {
                (Some(Ok(good)), Some(Ok(trace))) => self.judge.compare(good, trace)?,
                (Some(Err(untestable)), _) | (_, Some(Err(untestable))) => BuildAnswer::Untestable(untestable.clone()),
                (None, _) | (_, None) => BuildAnswer::Untestable(UntestableBuild::because("it has no trace")),
            },
        };
        self.tried.push((self.name(at), answer.clone()));
        Ok(answer)
    }

    /// Waits for the probe of one build, while speculative probes run beside it. Returns its answer, or `None` if its
    /// trace still has to be compared.
    fn probe(&mut self, at: usize) -> Result<Option<BuildAnswer>, EngineError> {
        if self.traces.contains_key(&at) {
            return Ok(None);
        }
        // Finished probes need no slot.
        let next = self.line.ahead(self.judge.room(self.search.jobs + self.ahead.waiting()));
        let probed = self.ahead.get(&at, &next);
        self.asked += 1;
        check(self.judge.stop())?;
        match probed? {
            BuildProbe::Answer(answer) => Ok(Some(answer)),
            BuildProbe::Trace(trace) => {
                self.traces.insert(at, trace);
                Ok(None)
            }
        }
    }

    fn found(mut self) -> Result<BisectResult, EngineError> {
        let candidates: Vec<String> = self.line.candidates().map(|at| self.name(at)).collect();
        let verdict = if candidates.len() == 1 { SearchVerdict::Found } else { SearchVerdict::Range };
        let (good, bad) = (self.line.last_good(), self.line.first_bad());
        let mut trace = |at| self.traces.remove(&at).map_or_else(|| self.judge.trace(&self.builds[at]), Ok);
        let traces = [trace(good)?, trace(bad)?];
        check(self.judge.stop())?;
        let (first_bad, last_good) = (Some(self.name(bad)), Some(self.name(good)));
        let mut found = BisectResult { first_bad, last_good, candidates, ..self.so_far(verdict) };
        if let [Ok(good), Ok(bad)] = &traces {
            found.compare(good, bad);
        }
        Ok(found)
    }

    fn end_is_otherwise(&self, end: usize, answer: &BuildAnswer) -> BisectResult {
        match answer {
            BuildAnswer::Good => {
                BisectResult { last_good: Some(self.name(end)), ..self.so_far(SearchVerdict::NoneIsBad) }
            }
            BuildAnswer::Bad => {
                BisectResult { first_bad: Some(self.name(end)), ..self.so_far(SearchVerdict::AllAreBad) }
            }
            BuildAnswer::Untestable(why) => {
                self.so_far(SearchVerdict::Untestable).rests_on(&self.name(end), "which decides the answer", why)
            }
        }
    }

    fn so_far(&self, verdict: SearchVerdict) -> BisectResult {
        let in_vain = self.ahead.begun().saturating_sub(self.asked);
        BisectResult { speculative: Some(in_vain), ..BisectResult::of(verdict, &self.tried) }
    }

    fn name(&self, at: usize) -> String {
        self.search.builds[at].display().to_string()
    }
}
