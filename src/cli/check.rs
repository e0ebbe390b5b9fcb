//! `hitreg check`: tests a build against the contract of builds.

use std::path::PathBuf;

use serde::Serialize;

use super::diff::running::TimeLimitArgs;
use super::figures::counted;
use super::output::Output;
use super::page::{BAD, FAINT, GOOD, Page, TextSpan};
use super::{CommandOutcome, CommandResult, files};
use crate::build::Build;
use crate::engine::{ContractPoint, Engine, EngineError, Games, PointResult, check_contract};

/// Test whether a program is a build that hitreg can use
///
/// It runs the program on a log that the program should replay, on changed and damaged copies of it, and with arguments
/// that the program does not know. For each point, it shows what the program did.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg check ./game match.hitlog

A point is ok, wrong, or absent: something optional that some commands need.
The exit code is 1 if a point is wrong. docs/builds.md has the contract.")]
pub(super) struct Args {
    /// The build
    #[arg(value_name = "BUILD")]
    build: PathBuf,
    /// A log that the build should replay as recorded
    #[arg(value_name = "LOG")]
    log: PathBuf,
    #[command(flatten)]
    limit: TimeLimitArgs,
}

#[derive(Serialize)]
struct ContractReport {
    build: String,
    log: String,
    ok: usize,
    wrong: usize,
    absent: usize,
    points: Vec<ContractPoint>,
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let build = Build::at(&args.build).map_err(EngineError::from)?;
    let engine = Engine { runner: args.limit.runner(games)?, ..files::engine(games) };
    let points = check_contract(&engine, &build, &args.log)?;
    let of = |result| points.iter().filter(|point| point.result == result).count();
    let [ok, wrong, absent] = [PointResult::Ok, PointResult::Wrong, PointResult::Absent].map(of);
    let report = ContractReport {
        build: args.build.display().to_string(),
        log: args.log.display().to_string(),
        ok,
        wrong,
        absent,
        points,
    };
    output.show(&report, |page| print(page, &report))?;
    Ok(if wrong > 0 { CommandOutcome::Differs } else { CommandOutcome::Done })
}

fn print(page: &mut Page, report: &ContractReport) {
    let build = &report.build;
    match report.wrong {
        0 => page.styled(GOOD, &format!("{build} keeps the contract of builds")),
        wrong => {
            page.styled(BAD, &format!("{build} breaks the contract of builds in {}", counted(wrong as u64, "point")))
        }
    }
    page.blank();
    for point in &report.points {
        let (style, word) = match point.result {
            PointResult::Ok => (GOOD, "ok"),
            PointResult::Wrong => (BAD, "wrong"),
            PointResult::Absent => (FAINT, "absent"),
        };
        page.parts(vec![TextSpan::styled(style, format!("  {word:<8}")), point.point.into()]);
        page.paragraph(10, &point.what);
    }
}
