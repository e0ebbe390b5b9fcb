//! `hitreg replay` of several logs: a row for each log, and their traces in a folder.

use serde::Serialize;

use super::{Args, ReplayReport, ReplayShots, played};
use crate::cli::CommandResult;
use crate::cli::each_log::EachLog;
use crate::cli::figures::{count, counted, duration};
use crate::cli::output::{Output, OutputFormat};
use crate::cli::outputs::OutputPath;
use crate::cli::page::Page;
use crate::cli::trouble::CommandError;
use crate::engine::Games;
use crate::store::{FileType, Target};
use crate::summary::Coverage;
use crate::units::Micros;

/// The result of one log.
struct ReplayedLog {
    path: String,
    length: Micros,
    exercised: Coverage,
    /// Whether a server or the game judged the shots.
    judges_shots: bool,
    states: String,
    /// The report in JSON, if it was requested.
    report: Option<serde_json::Value>,
}

#[derive(Serialize)]
struct CorpusReplayReport<'a> {
    /// The reports of the logs.
    logs: Vec<&'a serde_json::Value>,
    /// One sentence for each log that could not be replayed, and for each bad line of a manifest.
    problems: Vec<String>,
}

/// The most logs in the table. JSON has all.
const LISTED_LOGS: usize = 20;

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let corpus = args.corpus.corpus(&args.logs)?;
    let mut targets = |folder: &Option<OutputPath>, ending: &str, kind: FileType| match folder {
        Some(folder) => output.files.target_of_each(folder, (&corpus.logs, ending), &kind).map(Some),
        None => Ok(None),
    };
    let traces = targets(&args.output, "hittrace", FileType::Trace)?;
    let records = targets(&args.record, "hitlog", FileType::Log)?;
    let format = output.format();
    let needs_server = args.server_option(output);
    let of = |targets: &Option<Vec<Target>>, number: usize| targets.as_ref().map(|targets| targets[number].clone());
    let replayed = EachLog::run("replaying", &corpus, args.workers.threads(), &|number, log| {
        args.check_open_loop(log, needs_server)?;
        let (trace, record) = (of(&traces, number), of(&records, number));
        let report = played::play(games, args, (log, false), trace.as_ref(), record.as_ref())?;
        let of_json =
            |report: &ReplayReport| serde_json::to_value(report).map_err(|error| CommandError::Output(error.into()));
        Ok(ReplayedLog {
            path: report.path.clone(),
            length: report.session_us,
            exercised: report.exercised,
            judges_shots: matches!(report.shots, ReplayShots::Judged(_)),
            states: states(&report),
            report: (format == OutputFormat::Json).then(|| of_json(&report)).transpose()?,
        })
    })?;
    let report = CorpusReplayReport {
        logs: replayed.done().filter_map(|log| log.report.as_ref()).collect(),
        problems: replayed.problems(),
    };
    output.show(&report, |page| print(page, &replayed, &report.problems, args))?;
    Ok(replayed.report())
}

/// How the states compare with the recorded ones.
fn states(report: &ReplayReport) -> String {
    match report.hashes.first_difference_tick {
        _ if report.hashes.compared == 0 => "not compared".to_owned(),
        None => "as recorded".to_owned(),
        Some(tick) => format!("differ at tick {tick}"),
    }
}

fn print(page: &mut Page, replayed: &EachLog<ReplayedLog>, problems: &[String], args: &Args) {
    let logs: Vec<&ReplayedLog> = replayed.done().collect();
    let failed = match problems.len() as u64 {
        0 => String::new(),
        problems => format!(", {}", counted(problems, "problem")),
    };
    page.heading(&format!("{} replayed{failed}", counted(logs.len() as u64, "log")));
    let row = |name: &str, length: Micros, of: &Coverage, judges_shots: bool, states: &str| {
        let known = |number: Option<u64>| number.map_or("-".to_owned(), count);
        let judged = |shots: Option<u64>| known(shots.filter(|_| judges_shots));
        let counts = [count(of.usercmds), known(of.corrections), judged(of.shots), judged(of.hits)];
        [name.to_owned(), duration(length)].into_iter().chain(counts).chain([states.to_owned()])
    };
    let mut rows: Vec<Vec<String>> = logs
        .iter()
        .take(LISTED_LOGS)
        .map(|log| row(&log.path, log.length, &log.exercised, log.judges_shots, &log.states).collect())
        .collect();
    let mut all = (Micros(0), Coverage::default());
    for log in &logs {
        all.0 = Micros(all.0.0 + log.length.0);
        all.1.add(&log.exercised);
    }
    let judges_shots = logs.iter().any(|log| log.judges_shots);
    rows.push(row("all", all.0, &all.1, judges_shots, "").collect());
    page.table(&["", ">length", ">usercmds", ">corrections", ">shots", ">hits", "states"], rows);
    if let Some(more @ 1..) = logs.len().checked_sub(LISTED_LOGS) {
        page.faint(2, &format!("and {} not listed (--format json has all)", counted(more as u64, "log")));
    }
    for (what, folder) in [("Traces", &args.output), ("Logs", &args.record)] {
        if let Some(folder) = folder {
            page.blank();
            page.line(&format!("{what} written to {}", folder.display()));
        }
    }
}
