//! `hitreg diff CORPUS`: compares two sides over many logs.

use std::path::Path;

use super::Args;
use super::sides::SideReplayArgs;
use crate::build::Build;
use crate::cli::corpus::{CorpusBar, finish, summary_of};
use crate::cli::output::Output;
use crate::cli::trouble::CommandError;
use crate::cli::{CommandResult, files, interrupt};
use crate::corpus::{ComparedCorpus, CorpusRun, LogRow, NO_CACHE, command_line, is_corpus};
use crate::engine::{Engine, EngineError, Games};
use crate::report::{corpus_page, verdict_line};
use crate::trace::schema::{corrections, shots};

/// The corpus to compare, and how each log is replayed; `None` if the command compares two files, or one log. One log
/// is a corpus if an option of a corpus was typed.
pub(super) fn of<'a>(args: &'a Args, output: &Output) -> Result<Option<(&'a Path, &'a SideReplayArgs)>, CommandError> {
    let given = [&args.corpus.given()[..], &[args.workers.given()], &args.results.given()].concat();
    let is_asked = given.into_iter().any(|(name, is_given)| output.is_typed(name, is_given));
    let corpus = args.sides.corpus().filter(|(path, _)| is_asked || is_corpus(path));
    match corpus {
        None if is_asked => Err(CommandError::request(
            "the options of a corpus, such as --results or --max, need one folder, pattern or log: leave them out, or the \
             second file or server build",
        )),
        corpus => Ok(corpus),
    }
}

pub(super) fn run(
    games: &Games,
    args: &Args,
    (path, ways): (&Path, &SideReplayArgs),
    program: &str,
    output: &mut Output,
) -> CommandResult {
    output.check_text_option("summary", args.summary)?;
    let of_one = [("verbose", args.verbose), ("why", args.why.is_some()), ("junit", args.junit.is_some())];
    if let Some((name, _)) = of_one.into_iter().find(|(name, given)| output.is_typed(name, *given)) {
        return Err(CommandError::request(format!(
            "--{name} needs one log: the page of a corpus names the logs to look at"
        )));
    }
    let markdown = args.results.checks.target(output)?;
    let reports = args.results.reports(output)?;
    let mut replays = ways.ways()?;
    let mut runner = args.running.runner(games, replays.run_builds(), output)?;
    if args.results.keep() {
        // The logs that are being judged are completed.
        runner.stop = interrupt::stop()?;
    }
    let diff = args.looking.options();
    replays.ask_for(diff.on.tables().with(&shots::SCHEMA).with(&corrections::SCHEMA));
    let corpus = args.corpus.corpus(&[path.to_owned()])?;
    let [a, b] = ways.builds().map(|path| path.map(Build::at).transpose().map_err(EngineError::from));
    let build = |build: Option<&Build>| args.results.build(build, args.running.runs_again());
    let ((_, digest_a), (name, digest)) = (build(a?.as_ref())?, build(b?.as_ref())?);
    let mut words = [ways.words(), args.looking.typed_words()].concat();
    words.extend((replays.run_builds() && args.running.runs_again()).then(|| NO_CACHE.to_owned()));
    let options = command_line(&words);
    let command = |log: &str| {
        let first = ["diff", log].map(str::to_owned);
        format!("{program} {}", command_line(&first.into_iter().chain(words.iter().cloned()).collect::<Vec<_>>()))
    };
    let engine = Engine { runner, ..files::engine(games) };
    let judge = ComparedCorpus {
        engine: &engine,
        replays: &replays,
        diff: &diff,
        about: LogRow {
            command: "diff".to_owned(),
            build: name,
            build_digest: digest.clone().unwrap_or_default(),
            options,
            ..LogRow::default()
        },
        depends_on: digest.and(digest_a),
        command: &command,
    };
    let results = args.results.folder(args.corpus.share()?)?;
    let progress = CorpusBar::new("comparing", corpus.logs.len());
    let run = CorpusRun { threads: args.workers.threads(), results, stop: &engine.runner.stop };
    let judged = run.judge(&corpus.logs, &judge, &|log| progress.log_judged(log))?;
    drop(progress);
    let mut summary = summary_of(&judged, &corpus.problems);
    summary.problems.extend(args.results.write_reports(reports.as_ref(), &summary)?);
    finish(summary, &args.results.checks, markdown.as_ref(), output, |page, summary| match args.summary {
        true => page.line(&verdict_line(&summary.logs)),
        false => page.append(corpus_page(summary)),
    })
}
