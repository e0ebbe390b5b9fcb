//! `hitreg bisect builds`: the first of a line of builds that plays a log otherwise.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::found::{Found, Verdict};
use super::judge::{Answer, Judge, Sought};
use super::search::Line;
use crate::build::{Build, Request, Untestable};
use crate::cli::diff::running::{Running, build_at};
use crate::cli::output::Output;
use crate::cli::progress::Progress;
use crate::cli::trouble::Trouble;
use crate::cli::{Outcome, files};
use crate::trace::Trace;

/// Find the first of a line of builds that plays a log otherwise than the first build
///
/// The builds come oldest first. The first is taken for good and the last for bad, as git bisect takes its ends; an end is
/// tried only if the answer rests on it, or with --verify-ends. Of 64 builds 6 are tried. A build that crashes, hangs or writes
/// rubbish is skipped; when the answer lies among skipped builds, all that it may be are named.
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
    let bisection =
        Bisection { args, builds: &builds, judge, traces: BTreeMap::new(), tried: Vec::new(), progress: &progress };
    let found = bisection.run()?;
    drop(progress);
    output.show(&found, |page| found.print(page, "build"))?;
    Ok(found.outcome())
}

struct Bisection<'a> {
    args: &'a Args,
    builds: &'a [Build],
    judge: Judge<'a>,
    /// The traces that have been made, of those that are still needed.
    traces: BTreeMap<usize, Result<Trace, Untestable>>,
    tried: Vec<(String, Answer)>,
    progress: &'a Progress,
}

impl Bisection<'_> {
    fn run(mut self) -> Result<Found, Trouble> {
        let last = self.builds.len() - 1;
        let mut line = Line::new(self.builds.len());
        if self.judge.compares() {
            self.make_first_traces(&line);
            if let Some(Err(untestable)) = self.traces.get(&0) {
                let reason = format!("{}, with which all others are compared: {untestable}", self.name(0));
                return Ok(self.cannot_say(&reason));
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
        while let Some(at) = line.next() {
            match self.answer(at)? {
                Answer::Good => line.good(at),
                Answer::Bad => line.bad(at),
                Answer::Untestable(_) => line.skip(at),
            }
            self.traces.retain(|held, _| *held == 0 || *held == line.last_good() || *held == line.first_bad());
            self.progress.one_done();
        }
        if !self.args.verify_ends {
            // An end that nobody has looked at is no answer.
            for (end, expected) in [(line.last_good(), Answer::Good), (line.first_bad(), Answer::Bad)] {
                let unseen = (end == 0 && !self.judge.compares()) || end == last;
                let answer = if unseen { self.answer(end)? } else { expected.clone() };
                if answer != expected {
                    return Ok(self.end_is_otherwise(end, &answer));
                }
            }
        }
        Ok(self.found(&line))
    }

    /// The trace of the good end is needed anyway, and so is the first probe's: they are made at the same time.
    fn make_first_traces(&mut self, line: &Line) {
        let trace = |at: usize| self.judge.trace(&self.builds[at]);
        let first_probe = line.next();
        let (good, probe) = rayon::join(|| trace(0), || first_probe.map(trace));
        self.traces.insert(0, good);
        self.traces.extend(first_probe.zip(probe));
    }

    fn answer(&mut self, at: usize) -> Result<Answer, Trouble> {
        let answer = match self.judge.ask(self.builds[at].path())? {
            Some(answer) => answer,
            None => {
                self.make_trace(at);
                match (self.traces.get(&0), self.traces.get(&at)) {
                    (Some(Ok(good)), Some(Ok(trace))) => self.judge.compare(good, trace)?,
                    (Some(Err(untestable)), _) | (_, Some(Err(untestable))) => Answer::Untestable(untestable.clone()),
                    (None, _) | (_, None) => Answer::Untestable(Untestable::because("there is no trace of it")),
                }
            }
        };
        self.tried.push((self.name(at), answer.clone()));
        Ok(answer)
    }

    fn make_trace(&mut self, at: usize) {
        let (judge, build) = (&self.judge, &self.builds[at]);
        self.traces.entry(at).or_insert_with(|| judge.trace(build));
    }

    fn found(mut self, line: &Line) -> Found {
        let candidates: Vec<String> = line.candidates().map(|at| self.name(at)).collect();
        let verdict = if candidates.len() == 1 { Verdict::Found } else { Verdict::Range };
        let (good, bad) = (line.last_good(), line.first_bad());
        self.make_trace(good);
        self.make_trace(bad);
        let mut found = Found {
            first_bad: Some(self.name(bad)),
            last_good: Some(self.name(good)),
            candidates,
            ..Found::of(verdict, &self.tried)
        };
        if let (Some(Ok(good)), Some(Ok(bad))) = (self.traces.get(&good), self.traces.get(&bad)) {
            found.compare(good, bad);
        }
        found
    }

    fn end_is_otherwise(&self, end: usize, answer: &Answer) -> Found {
        match answer {
            Answer::Good => Found { last_good: Some(self.name(end)), ..Found::of(Verdict::NoneIsBad, &self.tried) },
            Answer::Bad => Found { first_bad: Some(self.name(end)), ..Found::of(Verdict::AllAreBad, &self.tried) },
            Answer::Untestable(why) => {
                self.cannot_say(&format!("{}, on which the answer rests: {why}", self.name(end)))
            }
        }
    }

    fn cannot_say(&self, reason: &str) -> Found {
        Found { untestable: Some(reason.to_owned()), ..Found::of(Verdict::Untestable, &self.tried) }
    }

    fn name(&self, at: usize) -> String {
        self.args.builds[at].display().to_string()
    }
}
