//! `hitreg keyframes`: a log with the states from which a part of it is replayed.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::figures::{bytes, counted, share};
use super::output::Output;
use super::outputs::OutPath;
use super::trouble::Trouble;
use super::{Outcome, files};
use crate::engine::{Games, StreamError};
use crate::log::{Options, RewriteError, write_keyframes};
use crate::replay::{Due, Options as ReplayOptions};
use crate::store::{self, Kind};
use crate::units::Micros;

/// Give a log keyframes, so that a part of it is replayed at once
///
/// The log is replayed once, and every so many seconds the whole state of that replay is written down: the server's world, what it
/// knows of its clients, the clients, and what is on its way between them. `replay --from` begins at the last one before the time asked
/// for, and `verify` holds each against its own replay. Records stay as they are, and older versions pass keyframes over.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg keyframes match.hitlog -o match-k.hitlog
  hitreg replay match-k.hitlog --from 40:00 --to 40:30")]
pub(super) struct Args {
    /// The log
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// Where the log with keyframes goes
    #[arg(short, long, value_name = "LOG")]
    output: OutPath,
    /// How many seconds one is from the next
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = clap::value_parser!(u32).range(1..=3600))]
    every: u32,
}

#[derive(Serialize)]
struct Report<'a> {
    #[serde(serialize_with = "crate::store::shown::path")]
    path: &'a Path,
    #[serde(serialize_with = "crate::store::shown::path")]
    output: &'a Path,
    keyframes: usize,
    size_bytes: u64,
    /// How much more than without them.
    more_bytes: u64,
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> Result<Outcome, Trouble> {
    let target = output.files.target(&args.output, Kind::Log)?;
    let engine = files::engine(games);
    let cannot = |why: &str| Trouble::file(&args.log, why);
    let log = engine.survey(&args.log)?.ok_or_else(|| cannot("it is read twice: give a file"))?;
    if !log.streams(&ReplayOptions::default()) {
        return Err(cannot("it cannot be replayed as it is read (docs/format.md), so that no keyframes can be made"));
    }
    let due = Due::Every(Micros::from_s(args.every.into()));
    let keyframes = engine.keyframes(&log, &due).map_err(|error| match error {
        StreamError::Read(error) => error.into(),
        StreamError::Replay(error) => Trouble::file(&args.log, error),
    })?;
    if keyframes.is_empty() {
        return Err(cannot(
            "its state cannot be written down: it is too short, is drawn by category, steers its clocks, or depends on the bytes \
             of its datagrams",
        ));
    }
    let (mut wrong, from) = (None, store::open(&args.log)?);
    let saved = store::save(&target, |out| match write_keyframes(from, out, &keyframes, Options::live()) {
        Ok(_) => Ok(()),
        Err(RewriteError::Write(error)) => Err(error),
        Err(error) => {
            wrong = Some(error);
            Err(std::io::Error::other("it cannot be written again").into())
        }
    });
    if let Some(error) = wrong {
        return Err(Trouble::file(&args.log, error));
    }
    saved?;
    let (before, after) = (files::size_bytes(&args.log), files::size_bytes(&args.output));
    let report = Report {
        path: &args.log,
        output: &args.output,
        keyframes: keyframes.len(),
        size_bytes: after,
        more_bytes: after.saturating_sub(before),
    };
    output.show(&report, |page| {
        page.heading(&report.path.display().to_string());
        page.pair("keyframes", &counted(report.keyframes as u64, "keyframe"));
        let more = share(report.more_bytes, report.size_bytes);
        page.pair("written to", &format!("{} ({}, {more} more)", report.output.display(), bytes(report.size_bytes)));
    })?;
    Ok(Outcome::Done)
}
