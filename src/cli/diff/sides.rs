//! The two sides of a comparison: where each one's trace comes from.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::running::{Running, build_at};
use crate::bisect::recorded;
use crate::build::{Request, Runner, Untestable};
use crate::cli::files::{self, Log};
use crate::cli::games::Games;
use crate::cli::interrupt;
use crate::cli::trouble::Trouble;
use crate::diff::Side;
use crate::log::{FileKind, Options as LogOptions};
use crate::replay::{Mode, Options, Replayed, own_settings};
use crate::settings::Settings;
use crate::store;
use crate::trace::Trace;

/// What is compared with what.
#[derive(clap::Args)]
pub(in crate::cli) struct Sides {
    /// A trace, or a log to be replayed
    #[arg(value_name = "LOG|A")]
    first: PathBuf,
    /// The trace or log of side B [default: the same log]
    #[arg(value_name = "B")]
    second: Option<PathBuf>,
    #[command(flatten)]
    ways: Ways,
    /// Run this build's server, and let a client replay what it sends
    #[arg(long, value_name = "BUILD", help_heading = "The two sides")]
    server_build: Option<PathBuf>,
    /// Side B's client on that server; side A's is the server build's own, or --a
    #[arg(long, value_name = "BUILD", help_heading = "The two sides", conflicts_with = "b")]
    client_build: Option<PathBuf>,
}

/// How each side replays its log.
#[derive(clap::Args)]
pub(in crate::cli) struct Ways {
    /// The build of side A: any program that understands `replay LOG -o TRACE` [default: this one]
    #[arg(long, value_name = "BUILD", help_heading = "The two sides")]
    a: Option<PathBuf>,
    /// The build of side B [default: this one]
    #[arg(long, value_name = "BUILD", help_heading = "The two sides")]
    b: Option<PathBuf>,
    /// A setting of side A; may be given more than once
    #[arg(long, value_name = "KEY=VALUE", help_heading = "The two sides")]
    a_set: Vec<String>,
    /// A setting of side B; may be given more than once
    #[arg(long, value_name = "KEY=VALUE", help_heading = "The two sides")]
    b_set: Vec<String>,
    /// A preset for side A in place of the log's settings
    #[arg(long, value_name = "NAME", help_heading = "The two sides")]
    a_preset: Option<String>,
    /// A preset for side B in place of the log's settings
    #[arg(long, value_name = "NAME", help_heading = "The two sides")]
    b_preset: Option<String>,
    /// Replay open loop: clients alone, on the recorded snapshots
    #[arg(long, help_heading = "The two sides")]
    open: bool,
}

/// The two traces, or which side has none.
pub(in crate::cli) struct Traces {
    /// What the sides are, for people.
    pub(in crate::cli) names: [String; 2],
    pub(in crate::cli) made: Result<[Trace; 2], Missing>,
    /// One side is what the log itself says, which is less than a replay.
    pub(in crate::cli) overlap_only: bool,
}

/// A side without a trace.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct Missing {
    verdict: &'static str,
    /// `a` or `b`.
    side: &'static str,
    /// Which build it was.
    build: String,
    #[serde(rename = "untestable")]
    reason: String,
    last_words: Vec<String>,
}

/// A file that one side begins with.
enum Source {
    Trace(PathBuf, Trace),
    Log(PathBuf, Box<Log>),
}

/// How one side replays its log.
struct Way<'a> {
    build: Option<&'a Path>,
    preset: Option<&'a str>,
    set: &'a [String],
    open: bool,
}

impl Sides {
    /// Makes both sides' traces, at the same time.
    pub(in crate::cli) fn traces(&self, games: &Games, running: &Running) -> Result<Traces, Trouble> {
        let runner = running.runner()?;
        if self.server_build.is_some() || self.client_build.is_some() {
            return self.across(games, &runner);
        }
        let a = Source::read(&self.first)?;
        let b = self.second.as_deref().map(Source::read).transpose()?;
        let (way_a, way_b) = (self.ways.a(), self.ways.b());
        way_a.check(&a)?;
        match &b {
            Some(b) => way_b.check(b)?,
            None if way_a.is_plain() && way_b.is_plain() => return against_itself(games, &runner, a),
            None => way_b.check(&a)?,
        }
        let of_b = b.as_ref().unwrap_or(&a);
        let (made_a, made_b) =
            rayon::join(|| way_a.trace(games, &runner, &a, "a"), || way_b.trace(games, &runner, of_b, "b"));
        interrupt::check(&runner.stop)?;
        both([way_a.name(&a), way_b.name(of_b)], made_a?, made_b?)
    }

    /// A client on another build's server: the server build's run is recorded, and its snapshots replayed by each client.
    fn across(&self, games: &Games, runner: &Runner) -> Result<Traces, Trouble> {
        if self.second.is_some() {
            return Err(Trouble::Request("--server-build and --client-build need one log, not two files".into()));
        }
        let Source::Log(path, log) = Source::read(&self.first)? else {
            return Err(Trouble::file(&self.first, "this is a trace: --server-build and --client-build need a log"));
        };
        let server = Way { build: self.server_build.as_deref(), open: false, ..self.ways.a() };
        for build in [server.build, self.client_build.as_deref()].into_iter().flatten() {
            build_at(build)?;
        }
        let folder = tempfile::tempdir().map_err(|error| Trouble::Request(format!("no temporary folder: {error}")))?;
        let between = folder.path().join("server.hitlog");
        let rerecorded = server.rerecord(games, runner, &path, &log, &between)?;
        interrupt::check(&runner.stop)?;
        if let Err(untestable) = rerecorded {
            let build = build_name(server.build);
            let reason = format!("as the server, {}", untestable.reason);
            let missing = Missing::new("a", build, Untestable { reason, ..untestable });
            let names = [build_name(self.server_build.as_deref()), build_name(self.client_build.as_deref())];
            return Ok(Traces { names, made: Err(missing), overlap_only: false });
        }
        let log = Source::read(&between)?;
        let a = Way { build: self.ways.a.as_deref().or(server.build), open: true, ..self.ways.a() };
        let b = Way { build: self.client_build.as_deref(), open: true, ..self.ways.b() };
        let (made_a, made_b) = rayon::join(|| a.trace(games, runner, &log, "a"), || b.trace(games, runner, &log, "b"));
        interrupt::check(&runner.stop)?;
        let name = |way: &Way<'_>| {
            let (client, server) = (build_name(way.build), build_name(server.build));
            format!("the client of {client} on the server of {server}, {}", path.display())
        };
        both([name(&a), name(&b)], made_a?, made_b?)
    }

    /// One side's trace of the log that both sides replay, with one setting changed; `None` when it has none then.
    pub(in crate::cli) fn with_setting(
        &self,
        games: &Games,
        runner: &Runner,
        side: Side,
        pair: String,
    ) -> Result<Option<Trace>, Trouble> {
        let source = Source::read(&self.first)?;
        let (way, name) = match side {
            Side::A => (self.ways.a(), "a"),
            Side::B => (self.ways.b(), "b"),
        };
        let set = [way.set, &[pair]].concat();
        Ok(Way { set: &set, ..way }.trace(games, runner, &source, name)?.ok())
    }

    /// The log that both sides replay, and each one's build; `None` when they do not, or one of them is no replay.
    pub(in crate::cli) fn one_log(&self) -> Option<(&Path, [Option<&Path>; 2])> {
        let across = self.server_build.is_some() || self.client_build.is_some();
        let replays = !(across || self.second.is_some() || self.ways.are_plain());
        replays.then_some((self.first.as_path(), [self.ways.a.as_deref(), self.ways.b.as_deref()]))
    }
}

impl Ways {
    /// Whether both sides are the same: this build, under the log's own settings.
    pub(in crate::cli) fn are_plain(&self) -> bool {
        self.a().is_plain() && self.b().is_plain()
    }

    /// Both sides' traces of one log.
    pub(in crate::cli) fn traces(&self, games: &Games, runner: &Runner, path: &Path) -> Result<Traces, Trouble> {
        let source = Source::read(path)?;
        let (a, b) = (self.a(), self.b());
        a.check(&source)?;
        b.check(&source)?;
        let (made_a, made_b) =
            rayon::join(|| a.trace(games, runner, &source, "a"), || b.trace(games, runner, &source, "b"));
        interrupt::check(&runner.stop)?;
        both([a.name(&source), b.name(&source)], made_a?, made_b?)
    }

    fn a(&self) -> Way<'_> {
        Way { build: self.a.as_deref(), preset: self.a_preset.as_deref(), set: &self.a_set, open: self.open }
    }

    fn b(&self) -> Way<'_> {
        Way { build: self.b.as_deref(), preset: self.b_preset.as_deref(), set: &self.b_set, open: self.open }
    }
}

/// A log alone: what it says happened, against this build's replay of it.
fn against_itself(games: &Games, runner: &Runner, source: Source) -> Result<Traces, Trouble> {
    let Source::Log(path, log) = &source else {
        return Err(Trouble::Request("a single trace has nothing to be compared with: name a second one".into()));
    };
    let says = recorded(&log.session).map_err(|error| Trouble::file(path, error))?;
    let plain = Way { build: None, preset: None, set: &[], open: false };
    let names = [format!("{}, as recorded", path.display()), plain.name(&source)];
    let replayed = plain.trace(games, runner, &source, "b")?;
    Ok(Traces { names, made: replayed.map(|replayed| [says, replayed]), overlap_only: true })
}

fn both(names: [String; 2], a: Result<Trace, Missing>, b: Result<Trace, Missing>) -> Result<Traces, Trouble> {
    Ok(Traces { names, made: a.and_then(|a| Ok([a, b?])), overlap_only: false })
}

impl Source {
    fn read(path: &Path) -> Result<Source, Trouble> {
        let (bytes, kind) = files::read(path)?;
        match kind {
            FileKind::Trace => Ok(Source::Trace(path.to_owned(), files::trace_in(path, &bytes)?)),
            // Whoever reads logs says best what is wrong with a file that is none.
            FileKind::Log | FileKind::Other => Ok(Source::Log(path.to_owned(), Box::new(files::log_in(path, &bytes)?))),
        }
    }
}

impl Way<'_> {
    fn is_plain(&self) -> bool {
        self.build.is_none() && self.preset.is_none() && self.set.is_empty() && !self.open
    }

    /// Says what nobody can do before anything is run.
    fn check(&self, source: &Source) -> Result<(), Trouble> {
        match source {
            Source::Trace(path, _) if !self.is_plain() => {
                let what = "this is a trace, which has been replayed already: builds and settings need a log";
                Err(Trouble::file(path, what))
            }
            Source::Trace(..) => Ok(()),
            Source::Log(_, log) => {
                self.settings(log)?;
                self.build.map_or(Ok(()), |build| build_at(build).map(drop))
            }
        }
    }

    fn name(&self, source: &Source) -> String {
        match source {
            Source::Trace(path, _) => path.display().to_string(),
            Source::Log(path, _) => {
                let preset = self.preset.map(|name| format!(" --preset {name}")).unwrap_or_default();
                let set: String = self.set.iter().map(|pair| format!(" --set {pair}")).collect();
                format!("{} by {}{preset}{set}", path.display(), build_name(self.build))
            }
        }
    }

    fn trace(
        &self,
        games: &Games,
        runner: &Runner,
        source: &Source,
        side: &'static str,
    ) -> Result<Result<Trace, Missing>, Trouble> {
        match (source, self.build) {
            (Source::Trace(_, trace), _) => Ok(Ok(trace.clone())),
            (Source::Log(path, log), build) => {
                let made = match build {
                    None => self.in_process(games, log)?,
                    Some(build) => {
                        let options = self.options();
                        let request = Request { log: path, log_digest: log.digest, options: &options };
                        runner.trace(&build_at(build)?, &request)
                    }
                };
                Ok(made.map_err(|untestable| Missing::new(side, build_name(build), untestable)))
            }
        }
    }

    fn rerecord(
        &self,
        games: &Games,
        runner: &Runner,
        path: &Path,
        log: &Log,
        to: &Path,
    ) -> Result<Result<(), Untestable>, Trouble> {
        let Some(build) = self.build else {
            let settings = self.settings(log)?;
            let game = games.of(&log.session).map_err(|error| error.to_string());
            let again =
                game.and_then(|game| game.rerecord(&log.session, settings.as_ref()).map_err(|error| error.to_string()));
            return match again {
                Ok(again) => Ok(Ok(store::save_log(to, &again, LogOptions::whole())?)),
                Err(reason) => Ok(Err(Untestable::because(reason))),
            };
        };
        let options = self.options();
        let request = Request { log: path, log_digest: log.digest, options: &options };
        Ok(runner.rerecord(&build_at(build)?, &request, to))
    }

    fn in_process(&self, games: &Games, log: &Log) -> Result<Result<Trace, Untestable>, Trouble> {
        let mode = if self.open { Mode::Open } else { Mode::Auto };
        let options = Options { mode, settings: self.settings(log)?, ..Options::default() };
        let game = games.of(&log.session).map_err(|error| error.to_string());
        let replayed =
            game.and_then(|game| game.replay(&log.session, &options, &mut |_| {}).map_err(|error| error.to_string()));
        Ok(match replayed {
            Ok(Replayed { mut trace, .. }) => {
                trace.header.log_digest = log.digest.to_string();
                Ok(trace)
            }
            Err(reason) => Err(Untestable::because(reason)),
        })
    }

    /// The settings of this side, where they are not the log's own.
    fn settings(&self, log: &Log) -> Result<Option<Settings>, Trouble> {
        if self.preset.is_none() && self.set.is_empty() {
            return Ok(None);
        }
        let recorded = own_settings(&log.session.header)?;
        let mut settings = match self.preset {
            Some(name) => recorded.under_preset(name)?,
            None => recorded,
        };
        for pair in self.set {
            settings.set_pair(pair)?;
        }
        Ok(Some(settings))
    }

    /// The same for a child: nothing beyond the contract unless something was asked for.
    fn options(&self) -> Vec<String> {
        let mut options = Vec::new();
        if let Some(name) = self.preset {
            options.extend(["--preset".to_owned(), name.to_owned()]);
        }
        options.extend(self.set.iter().flat_map(|pair| ["--set".to_owned(), pair.clone()]));
        if self.open {
            options.extend(["--mode".to_owned(), "open".to_owned()]);
        }
        options
    }
}

impl Missing {
    fn new(side: &'static str, build: String, untestable: Untestable) -> Missing {
        let Untestable { reason, last_words } = untestable;
        Missing { verdict: "untestable", side, build, reason, last_words }
    }

    /// Why, in one line.
    pub(in crate::cli) fn line(&self) -> String {
        format!("untestable: {}", self.who_and_why())
    }

    /// Which build, and why.
    pub(in crate::cli) fn who_and_why(&self) -> String {
        format!("{}: {}", self.build, self.reason)
    }

    pub(in crate::cli) fn last_words(&self) -> &[String] {
        &self.last_words
    }
}

fn build_name(build: Option<&Path>) -> String {
    build.map_or("this build".to_owned(), |path| path.display().to_string())
}
