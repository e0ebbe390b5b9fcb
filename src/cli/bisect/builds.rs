//! `hitreg bisect builds`: the first of a line of builds that plays a log otherwise.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::PathBuf;

use super::ahead::Ahead;
use super::found::{Found, Verdict};
use super::judge::{Answer, Judge, Sought};
use super::search::Line;
use crate::build::{Build, Request, Stop, Untestable};
use crate::cli::diff::running::{Running, build_at, parse_jobs};
use crate::cli::output::Output;
use crate::cli::progress::Progress;
use crate::cli::trouble::Trouble;
use crate::cli::{Outcome, files, interrupt};
use crate::trace::Trace;

/// Find the first of a line of builds that plays a log otherwise than the first build
///
/// The builds come oldest first. The first is taken for good and the last for bad, as git bisect takes its ends; an end is
/// tried only if the answer rests on it, or with --verify-ends. Of 64 builds 6 are tried. A build that crashes, hangs or writes
/// rubbish is skipped; when the answer lies among skipped builds, all that it may be are named.
///
/// With more than one core, builds that the search may need next run beside the one that it waits for.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg bisect builds match.hitlog build-01 build-02 build-03 build-04
  hitreg bisect builds match.hitlog --on hits $(ls -tr builds/*)
  hitreg bisect builds match.hitlog builds/* --while '{build} verify {}'")]
pub(super) struct Args {
    /// The log
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// The builds, oldest first
    #[arg(value_name = "BUILD", required = true, num_args = 2..)]
    builds: Vec<PathBuf>,
    /// Try the first and the last build before anything else
    #[arg(long)]
    verify_ends: bool,
    /// How many builds run at the same time [default: as many as there are cores]
    #[arg(long, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<NonZero<usize>>,
    #[command(flatten)]
    sought: Sought,
    #[command(flatten)]
    running: Running,
}

pub(super) fn run(args: &Args, output: &mut Output) -> Result<Outcome, Trouble> {
    let log = files::read_log(&args.log)?;
    let builds: Vec<Build> = args.builds.iter().map(|path| build_at(path)).collect::<Result<_, _>>()?;
    let request = Request { log: &args.log, log_digest: log.digest, options: &[] };
    let judge = args.sought.judge(&args.running, request)?;
    let progress = Progress::of_things("bisecting", u64::from(builds.len().ilog2()));
    let jobs = args.jobs.map_or_else(rayon::current_num_threads, NonZero::get);
    let probe = |at: &usize, stop: &Stop, _| probe(&judge.under(stop), &builds[*at]);
    let found = std::thread::scope(|scope| {
        let ahead = Ahead::new(scope, &probe, judge.stop(), jobs);
        let line = Line::new(builds.len());
        let traces = BTreeMap::new();
        let (judge, progress) = (&judge, &progress);
        Bisection { args, builds: &builds, judge, ahead, jobs, line, traces, tried: Vec::new(), asked: 0, progress }
            .run()
    })?;
    drop(progress);
    output.show(&found, |page| found.print(page, "build"))?;
    Ok(found.outcome())
}

/// What is known of one build.
enum Probed {
    /// What it makes of the log; the search compares it.
    Trace(Result<Trace, Untestable>),
    /// What a command says of it.
    Answer(Answer),
}

fn probe(judge: &Judge<'_>, build: &Build) -> Result<Probed, Trouble> {
    Ok(match judge.ask(build.path())? {
        Some(answer) => Probed::Answer(answer),
        None => Probed::Trace(judge.trace(build)),
    })
}

struct Bisection<'a, 'scope, 'env> {
    args: &'a Args,
    builds: &'a [Build],
    judge: &'a Judge<'a>,
    ahead: Ahead<'scope, 'env, usize, Result<Probed, Trouble>>,
    jobs: usize,
    line: Line,
    /// The traces that the search has asked for, of those that are still needed.
    traces: BTreeMap<usize, Result<Trace, Untestable>>,
    tried: Vec<(String, Answer)>,
    /// How many builds the search has asked for, the first one among them, with which others are compared.
    asked: usize,
    progress: &'a Progress,
}

impl Bisection<'_, '_, '_> {
    fn run(mut self) -> Result<Found, Trouble> {
        let last = self.builds.len() - 1;
        if self.judge.compares() {
            self.probe(0)?;
            if let Some(Err(untestable)) = self.traces.get(&0) {
                let found = self.so_far(Verdict::Untestable);
                return Ok(found.rests_on(&self.name(0), "with which all others are compared", untestable));
            }
        }
        if self.args.verify_ends {
            for (end, expected) in [(0, Answer::Good), (last, Answer::Bad)] {
                let answer = self.answer(end)?;
                if answer != expected {
                    return Ok(self.end_is_otherwise(end, &answer));
                }
            }
        }
        while let Some(at) = self.line.next() {
            match self.answer(at)? {
                Answer::Good => self.line.good(at),
                Answer::Bad => self.line.bad(at),
                Answer::Untestable(_) => self.line.skip(at),
            }
            let ends = [0, self.line.last_good(), self.line.first_bad()];
            self.traces.retain(|held, _| ends.contains(held));
            self.progress.one_done();
        }
        if !self.args.verify_ends {
            // An end that nobody has looked at is no answer.
            for (end, expected) in [(self.line.last_good(), Answer::Good), (self.line.first_bad(), Answer::Bad)] {
                let unseen = (end == 0 && !self.judge.compares()) || end == last;
                let answer = if unseen { self.answer(end)? } else { expected.clone() };
                if answer != expected {
                    return Ok(self.end_is_otherwise(end, &answer));
                }
            }
        }
        self.found()
    }

    fn answer(&mut self, at: usize) -> Result<Answer, Trouble> {
        let answer = match self.probe(at)? {
            Some(answer) => answer,
            None => match (self.traces.get(&0), self.traces.get(&at)) {
                (Some(Ok(good)), Some(Ok(trace))) => self.judge.compare(good, trace)?,
                (Some(Err(untestable)), _) | (_, Some(Err(untestable))) => Answer::Untestable(untestable.clone()),
                (None, _) | (_, None) => Answer::Untestable(Untestable::because("there is no trace of it")),
            },
        };
        self.tried.push((self.name(at), answer.clone()));
        Ok(answer)
    }

    /// Waits for one build, while others that may be needed next run beside it. Its answer, or `None` when its trace is to be
    /// compared.
    fn probe(&mut self, at: usize) -> Result<Option<Answer>, Trouble> {
        if self.traces.contains_key(&at) {
            return Ok(None);
        }
        // What is known already needs no place.
        let next = self.line.ahead(self.jobs + self.ahead.waiting());
        let probed = self.ahead.get(&at, &next);
        self.asked += 1;
        interrupt::check(self.judge.stop())?;
        match probed? {
            Probed::Answer(answer) => Ok(Some(answer)),
            Probed::Trace(trace) => {
                self.traces.insert(at, trace);
                Ok(None)
            }
        }
    }

    fn found(mut self) -> Result<Found, Trouble> {
        let candidates: Vec<String> = self.line.candidates().map(|at| self.name(at)).collect();
        let verdict = if candidates.len() == 1 { Verdict::Found } else { Verdict::Range };
        let (good, bad) = (self.line.last_good(), self.line.first_bad());
        let mut trace = |at| self.traces.remove(&at).unwrap_or_else(|| self.judge.trace(&self.builds[at]));
        let traces = [trace(good), trace(bad)];
        interrupt::check(self.judge.stop())?;
        let (first_bad, last_good) = (Some(self.name(bad)), Some(self.name(good)));
        let mut found = Found { first_bad, last_good, candidates, ..self.so_far(verdict) };
        if let [Ok(good), Ok(bad)] = &traces {
            found.compare(good, bad);
        }
        Ok(found)
    }

    fn end_is_otherwise(&self, end: usize, answer: &Answer) -> Found {
        match answer {
            Answer::Good => Found { last_good: Some(self.name(end)), ..self.so_far(Verdict::NoneIsBad) },
            Answer::Bad => Found { first_bad: Some(self.name(end)), ..self.so_far(Verdict::AllAreBad) },
            Answer::Untestable(why) => {
                self.so_far(Verdict::Untestable).rests_on(&self.name(end), "on which the answer rests", why)
            }
        }
    }

    fn so_far(&self, verdict: Verdict) -> Found {
        let in_vain = self.ahead.begun().saturating_sub(self.asked);
        Found { speculative: Some(in_vain), ..Found::of(verdict, &self.tried) }
    }

    fn name(&self, at: usize) -> String {
        self.args.builds[at].display().to_string()
    }
}
