//! `hitreg bisect`: finds where two runs diverge, and the build or commit that introduced it.

use std::ffi::OsString;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::builds::{BuildArgs, TimeLimitArgs, parse_jobs, parse_seconds};
use super::diff::{BUILD_CONTRACT, print_contract, print_last_words, trace_outcome};
use super::figures::counted;
use super::page::{Bad, Good, Page, Unsure};
use super::progress::Progress;
use super::replay_args::{CompareArgs, SideArgs};
use super::trouble::{engine_with_notes, note_gaps};
use super::{CommandError, CommandOutcome, CommandResult, Output, OutputPath};
use crate::build::condition::Condition;
use crate::build::{BuildRequest, BuildRunner, Cache, OneSidedLog};
use crate::diff::DiffScope;
use crate::engine::bisect::{
    BisectResult, BuildJudge, BuildSearch, GitSearch, OlderBranch, SearchVerdict, SkippedCandidate, StepProgress,
    bisect_ticks, body_argument, step,
};
use crate::engine::{Engine, EngineError, Games};
use crate::replay::foreign_trace_memory;
use crate::report::{bisect_page, diff_answer};
use crate::store::shown::shell_path;
use crate::store::{self, FileType};
use crate::units::{CommandSeq, EntityId, PlayerId};

/// Find where two runs diverge: the tick and field, the build, or the commit
///
/// Each subcommand exits with 0 if it finds nothing, 1 if it finds the divergence, 125 if it cannot judge, and 128 on
/// trouble. So each can be the command of `git bisect run`.
#[derive(clap::Subcommand)]
pub(super) enum BisectCommand {
    Ticks(Box<TicksArgs>),
    Builds(BuildsArgs),
    Git(GitArgs),
}

pub(super) fn run(games: &Games, command: &BisectCommand, output: &mut Output) -> CommandResult {
    match command {
        BisectCommand::Ticks(args) => run_ticks(games, args, output),
        BisectCommand::Builds(args) => run_builds(games, args, output),
        BisectCommand::Git(args) => run_git(games, args, output),
    }
}

/// Find the first tick, entity and field where two runs differ, and the cause
///
/// The sides are chosen as in `hitreg diff`. For a single log, this build's replay is compared with the recorded
/// session. One pass reads every tick, because a divergence can disappear again. If both sides replay one log, both
/// builds run that tick's usercmds again from the last common state.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg bisect ticks match.hitlog
  hitreg bisect ticks old.hittrace new.hittrace
  hitreg bisect ticks match.hitlog --a ./old-build --b ./new-build --on state

With git bisect:
  git bisect run sh -c 'make || exit 125
      hitreg bisect ticks match.hitlog --b ./game'")]
pub(super) struct TicksArgs {
    #[command(flatten)]
    sides: SideArgs,
    #[command(flatten)]
    compare: CompareArgs,
    #[command(flatten)]
    build_options: BuildArgs,
}

fn run_ticks(games: &Games, args: &TicksArgs, output: &mut Output) -> CommandResult {
    let sides = args.sides.sides(output.files.force)?;
    let runner = args.build_options.runner(games, sides.run_builds(), output)?;
    let bisected = bisect_ticks(&Engine { runner, ..engine_with_notes(games) }, &sides, &args.compare.options())?;
    note_gaps(&bisected.gaps);
    output.show(&bisected, |page| {
        page.pair("A", &bisected.a);
        page.pair("B", &bisected.b);
        page.pair_if("players", bisected.players.as_deref());
        page.blank();
        page.append(bisect_page(&bisected.found));
    })?;
    Ok(trace_outcome(bisected.found.verdict))
}

/// Find the first build in a list that plays a log differently from the first one
///
/// List the builds from oldest to newest. Like git bisect, hitreg assumes that the first build is good and the last is
/// bad. It runs an end only if the answer depends on it, or with --verify-ends. For 64 builds, it runs at most seven
/// besides the first. It skips a build that crashes, hangs or writes no valid trace. If the answer lies among skipped builds, it
/// lists all candidates.
///
/// With more than one core, builds that the search may need next run in parallel, except with --while.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg bisect builds match.hitlog build-01 build-02 build-03 build-04
  hitreg bisect builds match.hitlog --on hits $(ls -tr builds/*)
  hitreg bisect builds match.hitlog builds/* --while '{build} verify {}'")]
pub(super) struct BuildsArgs {
    /// The log
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// The builds, oldest first
    #[arg(value_name = "BUILD", required = true, num_args = 2..)]
    builds: Vec<PathBuf>,
    /// Check first that the first build is good and the last is bad
    #[arg(long)]
    verify_ends: bool,
    /// Number of builds to run in parallel [default: number of cores, or 1 with --while]
    #[arg(long, value_name = "N", value_parser = parse_jobs)]
    jobs: Option<NonZero<usize>>,
    #[command(flatten)]
    search: SearchArgs,
    #[command(flatten)]
    build_options: BuildArgs,
}

fn run_builds(games: &Games, args: &BuildsArgs, output: &mut Output) -> CommandResult {
    let usual_jobs = || if args.search.condition.is_some() { 1 } else { rayon::current_num_threads() };
    let jobs = args.jobs.map_or_else(usual_jobs, NonZero::get);
    let search = BuildSearch { builds: &args.builds, verify_ends: args.verify_ends, jobs };
    let runner = || args.build_options.build_runner(games);
    let run = |judge: &BuildJudge<'_>, steps: &StepProgress<'_>| search.run(judge, steps);
    args.search.run(games, CandidateKind::Build, &args.log, runner, output, run)
}

/// The default time limit of a build command.
const BUILD_TIME_LIMIT: Duration = Duration::from_secs(3600);

/// Find the commit that changed how a game plays a log
///
/// Commits are built in separate worktrees in the cache folder. Your checkout, index and HEAD do not change, so you can
/// keep working. hitreg assumes that GOOD is good and BAD is bad, and builds about 7 of 100 commits. It skips a commit
/// that does not build, or whose build cannot play the log. It never takes a trace from the cache.
///
/// A branch that began before GOOD lacks GOOD's own changes. hitreg searches such a branch only if it began at a commit
/// that is good too, and says so if it did not.
///
/// To resume an interrupted search, run the same command again.
#[derive(clap::Args)]
#[command(
    override_usage = "hitreg bisect git [OPTIONS] --build-cmd <CMD> --artifact <PATH>\n       <LOG> <GOOD..BAD>",
    after_long_help = "\
Examples:
  hitreg bisect git match.hitlog v1.0..HEAD \\
      --build-cmd 'cargo build --release' --artifact target/release/game
  hitreg bisect git match.hitlog v1.0..HEAD --on hits \\
      --build-cmd make --artifact game
  hitreg bisect git match.hitlog v1.0.. --build-cmd make --artifact game \\
      --while '{build} verify {}'"
)]
pub(super) struct GitArgs {
    /// The log
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// The range of commits
    #[arg(value_name = "GOOD..BAD")]
    range: String,
    /// Shell command that builds a commit; it runs at the top of a worktree
    #[arg(long, value_name = "CMD")]
    build_cmd: String,
    /// Path of the built program, relative to the top of the worktree
    #[arg(long, value_name = "PATH")]
    artifact: OsString,
    /// The repository
    #[arg(long, value_name = "FOLDER", default_value = ".")]
    repo: PathBuf,
    /// Time limit of the build command; a commit that takes longer is untestable [default: 3600]
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    build_time_limit: Option<Duration>,
    /// Number of commits to build in parallel, each in its own worktree. Most build commands already use all cores
    #[arg(long, value_name = "N", value_parser = parse_jobs, default_value = "1")]
    jobs: NonZero<usize>,
    /// Start over, without the results of an earlier run of this search
    #[arg(long)]
    restart: bool,
    /// Folder for worktrees and answers of the search [default: hitreg in the user's cache folder]
    #[arg(long, value_name = "FOLDER")]
    cache: Option<PathBuf>,
    #[command(flatten)]
    search: SearchArgs,
    #[command(flatten)]
    limit: TimeLimitArgs,
}

fn run_git(games: &Games, args: &GitArgs, output: &mut Output) -> CommandResult {
    let search = GitSearch {
        repository: &args.repo,
        range: &args.range,
        build_cmd: &args.build_cmd,
        artifact: Path::new(&args.artifact),
        build_time_limit: args.build_time_limit.unwrap_or(BUILD_TIME_LIMIT),
        jobs: args.jobs.get(),
        folder: &args.cache.clone().unwrap_or_else(Cache::usual_folder),
        restart: args.restart,
        search_key: &format!("{}, {} s for a log", args.search.search_key(), args.limit.get().as_secs_f64()),
    };
    let runner = || args.limit.runner(games);
    let run = |judge: &BuildJudge<'_>, steps: &StepProgress<'_>| search.run(judge, steps);
    args.search.run(games, CandidateKind::Commit, &args.log, runner, output, run)
}

/// What makes a build or commit bad.
#[derive(clap::Args)]
struct SearchArgs {
    /// Shell command that decides instead of comparing traces. {} is replaced by the log, {build} by the build, both
    /// quoted. Exit code 0 means good, 1 bad, 2 to 125 untestable; others stop the search
    #[arg(long = "while", value_name = "CMD", conflicts_with_all = ["on", "tolerance", "overlap"])]
    condition: Option<String>,
    #[command(flatten)]
    compare: CompareArgs,
}

impl SearchArgs {
    /// Runs a search for the first bad build or commit, and shows the result.
    fn run(
        &self,
        games: &Games,
        kind: CandidateKind,
        log: &Path,
        runner: impl FnOnce() -> Result<BuildRunner, CommandError>,
        output: &mut Output,
        search: impl FnOnce(&BuildJudge<'_>, &StepProgress<'_>) -> Result<BisectResult, EngineError>,
    ) -> CommandResult {
        store::check_regular(log)?;
        // The session is dropped before the search.
        let (log_digest, trace_bytes, side) = {
            let log = engine_with_notes(games).read_log(log)?;
            (log.digest, foreign_trace_memory(&log.session), OneSidedLog::of(&log.session))
        };
        let request = BuildRequest { log, log_digest, options: &[], side };
        let condition = self.condition.as_deref().map(Condition::new);
        let judge = BuildJudge::new(condition, self.compare.options(), runner()?, request, trace_bytes)?;
        let progress = Progress::of_things("bisecting", 0);
        let found = search(&judge, &|done, of| progress.done(done, of))?;
        drop(progress);
        output.show(&found, |page| print_found(&found, page, kind, log, self))?;
        Ok(search_outcome(&found))
    }

    /// A text of these options that distinguishes one search from another.
    fn search_key(&self) -> String {
        format!("{:?} {}", self.condition, self.compare.search_key())
    }

    /// The meaning of a bad build or commit, as text.
    fn meaning(&self, kind: CandidateKind) -> String {
        match &self.condition {
            Some(command) => format!("`{command}` exits with 1"),
            None => {
                format!("{} from the good {}'s (--on {})", self.compare.meaning(), kind.name(), self.compare.on.name())
            }
        }
    }
}

fn search_outcome(found: &BisectResult) -> CommandOutcome {
    match found.verdict {
        SearchVerdict::Found | SearchVerdict::Range | SearchVerdict::AllAreBad => CommandOutcome::Differs,
        SearchVerdict::NoneIsBad => CommandOutcome::Done,
        SearchVerdict::Untestable => CommandOutcome::Untestable,
    }
}

/// What a search tries.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CandidateKind {
    Build,
    Commit,
}

impl CandidateKind {
    fn name(self) -> &'static str {
        match self {
            CandidateKind::Build => "build",
            CandidateKind::Commit => "commit",
        }
    }
}

/// Prints the result of a search in a log.
fn print_found(found: &BisectResult, page: &mut Page, kind: CandidateKind, log: &Path, search: &SearchArgs) {
    let what = kind.name();
    let named = |name: &str| name_of(found, name);
    let first_bad = found.first_bad.as_deref().map_or("-".to_owned(), named);
    match found.verdict {
        SearchVerdict::Found => {
            let short = found.first_bad.as_deref().map_or("-", |name| short(found, name));
            page.styled(Bad, &format!("{short} is the first bad {what}"));
            page.pair_if("subject", found.subject.as_deref());
        }
        SearchVerdict::Range => {
            let among = found.candidates.len();
            page.styled(Unsure, &format!("The first bad {what} is one of these {among}; some cannot be judged"));
            for name in &found.candidates {
                page.paragraph(2, &named(name));
            }
            page.pair("known bad", &first_bad);
        }
        SearchVerdict::NoneIsBad => page.styled(Good, &format!("No {what} is bad: the last plays like the first")),
        SearchVerdict::AllAreBad => page.styled(Bad, &format!("Every {what} is bad, also the first")),
        SearchVerdict::Untestable => page.styled(Unsure, "untestable"),
    }
    if let Some(reason) = &found.untestable {
        page.paragraph(2, reason);
        print_last_words(page, &found.last_words);
        match (&search.condition, kind) {
            (Some(command), CandidateKind::Build) => {
                let command = command.replace("{build}", "BUILD").replace("{}", &shell_path(log));
                print_contract(page, &command, "It must exit with 0 (good) or 1 (bad).");
            }
            (None, CandidateKind::Build) => print_contract(page, "BUILD replay LOG -o test.hittrace", BUILD_CONTRACT),
            (_, CandidateKind::Commit) => {}
        }
    }
    page.pair_if("last good", found.last_good.as_deref().map(named).as_deref());
    for OlderBranch { base, tip } in &found.unsearched {
        let [base, tip] = [base, tip].map(|commit| short(found, commit));
        let what = format!("It also contains {base}..{tip}, a branch from before GOOD. {base} is not good itself, so");
        page.paragraph(2, &format!("{what} these commits were not searched. To search them, name this range"));
    }
    page.pair("bad means", &search.meaning(kind));
    let resumed = found.resumed.map_or(String::new(), |before| format!(", {before} of them in an earlier run"));
    let skipped = found.skipped.len() as u64;
    if found.probes > 0 {
        page.pair("tried", &format!("{}{resumed}; {} untestable", counted(found.probes as u64, what), skipped));
    }
    for SkippedCandidate { name, why } in &found.skipped {
        page.paragraph(2, &format!("{}: {}", named(name), why.reason));
        print_last_words(page, &why.last_words);
    }
    if let Some(diff) = &found.diff {
        page.heading("What changed: A is the last good, B the first bad");
        page.append(diff_answer(diff, DiffScope::Any));
    }
}

/// The name of a build or commit in the output: for a commit, its short hash and its subject.
fn name_of(found: &BisectResult, name: &str) -> String {
    match found.subjects.get(name) {
        Some(subject) => format!("{} {subject}", short(found, name)),
        None => name.to_owned(),
    }
}

/// Shortens a commit's hash to 10 digits, as git does in a large repository.
fn short<'a>(found: &BisectResult, name: &'a str) -> &'a str {
    const DIGITS: usize = 10;
    if found.subjects.contains_key(name) { name.get(..DIGITS).unwrap_or(name) } else { name }
}

// `bisect ticks` calls `BUILD step` in two builds to compare their results. It is not meant for users, so help does not
// list it.

/// Run one usercmd of a log on one body
#[derive(clap::Args)]
#[command(hide = true)]
pub(super) struct StepArgs {
    /// The log
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// Whose usercmd
    #[arg(long)]
    player: u16,
    /// Its number
    #[arg(long)]
    command: u32,
    /// An entity's body as cells: numbers of 32 bits, in the order of the log's fields. The player's own body is
    /// required
    #[arg(long, value_name = "ENTITY=CELL,CELL", value_parser = body_argument)]
    body: Vec<(EntityId, Vec<u32>)>,
    /// Output file for the resulting body, as JSON
    #[arg(short, long, value_name = "FILE")]
    output: OutputPath,
}

pub(super) fn run_step(games: &Games, args: &StepArgs, output: &mut Output) -> CommandResult {
    let target = output.files.target(&args.output, FileType::Answer)?;
    let log = engine_with_notes(games).read_log(&args.log)?;
    let game = games.of(&log.session).map_err(|error| CommandError::file(&args.log, error))?;
    let (player, command) = (PlayerId(args.player), CommandSeq(args.command));
    let entities = args.body.iter().cloned().collect();
    let after =
        step(game, &log.session, player, command, &entities).map_err(|error| CommandError::file(&args.log, error))?;
    store::save_bytes(&target, after.as_bytes())?;
    Ok(CommandOutcome::Done)
}
