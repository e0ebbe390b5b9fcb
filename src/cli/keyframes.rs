//! `hitreg keyframes`: adds keyframes to a log, from which a part can be replayed. Also adds keyframes to new
//! recordings.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::figures::{counted, duration, share};
use super::output::FileSize;
use super::progress::Progress;
use super::trouble::engine_with_notes;
use super::{CommandError, CommandResult, Output, OutputPath};
use crate::engine::{Engine, Games, SurveyedLog};
use crate::log::{RewriteError, WriterOptions, write_keyframes};
use crate::record::Keyframe;
use crate::replay::{KeyframeSchedule, ReplayOptions};
use crate::store::{self, FileType, Target};
use crate::units::Micros;

/// Add keyframes to a log, so that a replay can start in the middle
///
/// The log is replayed once. Every few seconds, a keyframe stores the complete state of server, clients and packets in
/// flight. `replay --from` starts at a keyframe at least 4 s before the requested time. `verify` replays from two
/// keyframes in parallel. Records do not change. `record synth` and `record live` add keyframes to sessions of a minute
/// or more.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg keyframes match.hitlog -o match-k.hitlog
  hitreg replay match-k.hitlog --from 40:00 --to 40:30")]
pub(super) struct Args {
    /// The log
    #[arg(value_name = "LOG")]
    log: PathBuf,
    /// The log with keyframes to write
    #[arg(short, long, value_name = "LOG")]
    output: OutputPath,
    /// Interval between keyframes
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = clap::value_parser!(u32).range(INTERVAL_S_MIN as i64..=3600))]
    every: u32,
}

#[derive(Serialize)]
struct KeyframesReport {
    path: String,
    output: String,
    keyframes: usize,
    size_bytes: FileSize,
    /// The growth of the file in bytes; `None` for a stream.
    more_bytes: Option<u64>,
}

/// What a recording has of keyframes.
#[derive(clap::Args)]
pub(super) struct KeyframeArgs {
    /// Interval between keyframes [default: 10 for sessions of a minute or more, else none]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(INTERVAL_S_MIN as i64..=3600))]
    keyframes: Option<u32>,
    /// Write no keyframes; `hitreg keyframes` can add them later
    #[arg(long, conflicts_with = "keyframes")]
    no_keyframes: bool,
}

/// Shorter recordings get no keyframes by default, because replaying them from the beginning is fast.
const KEYFRAMED_LENGTH_MIN: Micros = Micros::from_s(60);
const USUAL_EVERY_S: u32 = 10;
/// The shortest interval between keyframes.
const INTERVAL_S_MIN: u32 = 1;

impl KeyframeArgs {
    /// Refuses requested keyframes that a session of this length, or a log that goes to a stream, cannot have.
    pub(super) fn check(&self, log: &Target, length: Micros, output: &Output) -> Result<(), CommandError> {
        let Some(every) = self.keyframes.filter(|_| output.is_typed("keyframes")) else { return Ok(()) };
        if log.is_stream() {
            return Err(CommandError::request(
                "--keyframes needs a file, because the log is read again: give -o a file",
            ));
        }
        match length < Micros::from_s(every.into()) {
            true => {
                Err(CommandError::Request(format!("--keyframes {every}: {}", too_short(length, every, "--keyframes"))))
            }
            false => Ok(()),
        }
    }

    /// Adds keyframes to a finished log of this length, and returns how many. Usual ones are left out where the log cannot
    /// have any.
    ///
    /// # Errors
    /// When the log cannot have the requested keyframes. It stays, without them.
    pub(super) fn add(
        &self,
        games: &Games,
        log: &Target,
        length: Micros,
        output: &Output,
    ) -> Result<usize, CommandError> {
        let usual = (!self.no_keyframes && length >= KEYFRAMED_LENGTH_MIN).then_some(USUAL_EVERY_S);
        let Some(every) = self.keyframes.or(usual) else { return Ok(0) };
        // A stream cannot be read again.
        if log.is_stream() {
            return Ok(0);
        }
        let engine = engine_with_notes(games);
        let surveyed = engine.survey(log.path())?;
        match make(&engine, &surveyed, every)? {
            Ok(keyframes) => {
                write(log.path(), &keyframes, &log.replaceable())?;
                Ok(keyframes.len())
            }
            // Keyframes of the config file are left out, like usual ones, where the log cannot have any.
            Err(_) if !output.is_typed("keyframes") => Ok(0),
            Err(why) => Err(CommandError::file(log.path(), format!("recorded, but without keyframes: {why}"))),
        }
    }
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let target = output.files.target(&args.output, FileType::Log)?;
    let engine = engine_with_notes(games);
    let cannot = |why: &str| CommandError::file(&args.log, why);
    let log = engine.survey(&args.log)?;
    let keyframes = make(&engine, &log, args.every)?.map_err(|why| cannot(&why))?;
    write(&args.log, &keyframes, &target)?;
    let (before, after) = (FileSize::of(&args.log).0, FileSize::of(&args.output));
    let report = KeyframesReport {
        path: args.log.display().to_string(),
        output: args.output.display().to_string(),
        keyframes: keyframes.len(),
        size_bytes: after,
        more_bytes: after.0.zip(before).map(|(after, before)| after.saturating_sub(before)),
    };
    output.show(&report, |page| {
        page.heading(&report.path);
        page.pair("keyframes", &counted(report.keyframes as u64, "keyframe"));
        let more = report.more_bytes.zip(report.size_bytes.0);
        let more = more.map_or(String::new(), |(more, size)| format!(", {} more", share(more, size)));
        page.pair("written to", &format!("{} ({}{more})", report.output, report.size_bytes));
    })
}

/// The keyframes of a log, or why it has none.
fn make(engine: &Engine<'_>, log: &SurveyedLog, every_s: u32) -> Result<Result<Vec<Keyframe>, String>, CommandError> {
    // Only a build that plays the game can make keyframes, whatever the interval.
    if let Err(other_game) = engine.games.of_header(&log.header) {
        return Ok(Err(other_game.to_string()));
    }
    if !log.streams_closed(&ReplayOptions::default()) {
        let what = "this log cannot have keyframes, because its replay cannot be streamed (docs/long-logs.md)";
        return Ok(Err(what.to_owned()));
    }
    if log.survey.first_gap().is_some() {
        return Ok(Err("this log cannot have keyframes, because records are missing from it".to_owned()));
    }
    if let Some(player) = log.survey.first_heard_player() {
        let what = "this log cannot have keyframes, because it has only what the server received from";
        return Ok(Err(format!("{what} p{player}: merge the log of that client, too")));
    }
    let length = log.survey.duration();
    if length < Micros::from_s(every_s.into()) {
        return Ok(Err(too_short(length, every_s, "--every")));
    }
    let progress = Progress::of_session("writing keyframes", length);
    let due = KeyframeSchedule::Every(Micros::from_s(every_s.into()));
    let keyframes = engine.keyframes(log, &due, &mut |at| progress.reached(at))?;
    Ok(match keyframes.is_empty() {
        true => Err(format!(
            "this log cannot have keyframes: the game `{}` or its server does not save its state",
            log.header.game
        )),
        false => Ok(keyframes),
    })
}

fn too_short(length: Micros, every_s: u32, option: &str) -> String {
    let length_in_words = duration(length);
    match length < Micros::from_s(INTERVAL_S_MIN.into()) {
        true => format!(
            "the session is {length_in_words} long, too short for keyframes: the first is after at least \
             {INTERVAL_S_MIN} s"
        ),
        false => format!(
            "the session is {length_in_words} long, and the first keyframe is after {every_s} s: use a shorter \
             interval, such as {option} {INTERVAL_S_MIN}"
        ),
    }
}

/// Writes a copy of a log with these keyframes.
fn write(log: &Path, keyframes: &[Keyframe], target: &Target) -> Result<(), CommandError> {
    let (mut wrong, from) = (None, store::open(log)?);
    let saved = store::save(target, |out| match write_keyframes(from, out, keyframes, WriterOptions::live()) {
        Ok(_) => Ok(()),
        Err(RewriteError::Write(error)) => Err(error),
        Err(error) => {
            wrong = Some(error);
            Err(std::io::Error::other("the log cannot be rewritten").into())
        }
    });
    match wrong {
        Some(error) => Err(CommandError::file(log, error)),
        None => Ok(saved?),
    }
}
