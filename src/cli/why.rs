//! `hitreg why`: explains and draws one shot or one correction.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Serialize;

use super::output::Output;
use super::outputs::OutputPath;
use super::trouble::CommandError;
use super::what_if::WhatIfArgs;
use super::{CommandOutcome, files, moment, replay};
use crate::engine::{EngineError, Games, LogFile, Playable, rejudged};
use crate::log::FileKind;
use crate::replay::ReplayOptions;
use crate::report::{why_answer, why_page, why_svg};
use crate::store::{self, FileType};
use crate::trace::Trace;
use crate::units::Micros;
use crate::why::{RejudgedShot, ShotName, Why, WhyQuery, player};

/// Explain one shot, or one correction of a prediction
///
/// A shot is named by its player and usercmd, as `export --table shots` and the changes of `diff` have it: p0#95. The page says
/// what the shooter's screen showed and how old that was, when the usercmd ran, how far the server went back and what limited
/// it; where the target was drawn, judged, and by then; and what the shot would have been under other rules. A log
/// is replayed first; of a trace, whoever wrote it, its tables alone count, and what they do not say is `not known`.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg why match.hitlog p0#95                    one shot
  hitreg why match.hitlog --at 1.55s --player p3   p3's shot nearest to then
  hitreg why match.hitlog p2 --correction 3        a correction of p2's prediction
  hitreg why match.hittrace p0#95 --svg shot.svg
  hitreg why match.hitlog p0#95 --set lag_compensation.max_unlag_ms=100
  hitreg export match.hitlog --table shots         which shots there are")]
#[command(group = clap::ArgGroup::new("asked").args(["shot", "at", "correction"]).required(true).multiple(true))]
pub(super) struct Args {
    /// A log, or a trace
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The shot by its name: p0#95, or p0#95.1 where a usercmd fired more than once; or a player, as `--player`
    #[arg(value_name = "SHOT", conflicts_with = "player")]
    shot: Option<ShotOrPlayer>,
    /// The shot that was judged nearest to a time of the session: `40:00`, `1.55`, `1.55s`, `1550ms`
    #[arg(long, value_name = "TIME", value_parser = moment::time)]
    at: Option<Micros>,
    /// One of a player's corrections; the first is 1
    #[arg(long, value_name = "N", conflicts_with = "at")]
    correction: Option<u32>,
    /// Whose shot or correction: p3
    #[arg(long, value_name = "PLAYER", value_parser = player)]
    player: Option<u32>,
    /// Draw the same picture into this SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<OutputPath>,
    #[command(flatten)]
    what_if: WhatIfArgs,
}

#[derive(Serialize)]
struct WhyReport<'a> {
    #[serde(serialize_with = "crate::store::shown::path")]
    path: &'a Path,
    game: &'a str,
    mode: &'a str,
    /// Settings that differ from the log's own.
    settings_changed: &'a [String],
    /// How changed settings were applied.
    what_if: &'static str,
    answer: String,
    #[serde(flatten)]
    why: &'a Why,
    /// The same shot, judged again under other settings.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rejudged: &'a Vec<RejudgedShot>,
    #[serde(serialize_with = "crate::store::shown::path_if")]
    svg: Option<&'a Path>,
}

/// The argument that names a shot.
#[derive(Clone, Copy, Debug)]
enum ShotOrPlayer {
    Shot(ShotName),
    Player(u32),
}

impl FromStr for ShotOrPlayer {
    type Err = String;

    fn from_str(text: &str) -> Result<ShotOrPlayer, String> {
        let name = text.strip_prefix('p').and_then(|_| player(text).ok());
        name.map_or_else(|| text.parse().map(ShotOrPlayer::Shot), |player| Ok(ShotOrPlayer::Player(player)))
    }
}

fn asked(args: &Args) -> Result<WhyQuery, CommandError> {
    let player = match args.shot {
        Some(ShotOrPlayer::Player(player)) => Some(player),
        _ => args.player,
    };
    let asked = match (args.shot, args.at, args.correction) {
        (Some(ShotOrPlayer::Shot(name)), None, None) => WhyQuery::Shot(name),
        (Some(ShotOrPlayer::Shot(_)), ..) => {
            return Err(refused("a shot by its name needs no --at and no --correction"));
        }
        (_, Some(at), _) => WhyQuery::At { at_us: at.0, player },
        (_, None, Some(number)) => {
            let player = player.ok_or_else(|| refused("whose correction? Name the player, as p2 --correction 3"))?;
            WhyQuery::Correction { player, number }
        }
        (_, None, None) => {
            return Err(refused("name a shot (p0#95), a time (--at 1.55s) or a correction (--correction 3)"));
        }
    };
    Ok(asked)
}

fn refused(why: &str) -> CommandError {
    CommandError::Request(why.to_owned())
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> Result<CommandOutcome, CommandError> {
    let target = args.svg.as_ref().map(|path| output.files.target(path, FileType::Svg)).transpose()?;
    let asked = asked(args)?;
    let path = &args.file;
    let (file, kind) = files::read(path)?;
    let find = |trace: &Trace| Why::of(trace, &asked).map_err(|error| CommandError::file(path, error));
    let (trace, changed, why, rejudged) = if kind == FileKind::Trace {
        if !args.what_if.is_plain() {
            return Err(EngineError::Replayed { path: path.clone() }.into());
        }
        let trace = files::trace_in(path, &file)?;
        let why = find(&trace)?;
        (trace, Vec::new(), why, Vec::new())
    } else {
        let log = files::log_in(path, &file[..])?;
        files::note_hole(path, &log.session);
        let (options, changed) = args.what_if.options(&log.session.header)?;
        let game = games.of(&log.session).map_err(|error| CommandError::file(path, error))?;
        let (replayed, _) = replay::replay(game, path, &log.session, &options)?;
        let mut why = find(&replayed.trace)?;
        // Under changed settings the packets would differ. With rejudging, they stay as recorded.
        if let (Why::Shot(shot), true) = (&mut why, changed.is_empty() || options.judged_under.is_some()) {
            shot.know_log(&log.session);
        }
        let rejudged = otherwise(game, path, &log, &options, (&replayed.trace, &why))?;
        (replayed.trace, changed, why, rejudged)
    };
    let settings = &trace.header.settings;
    if let Some(target) = &target {
        let svg = why_svg(&why, settings)
            .ok_or_else(|| CommandError::file(path, "there is nothing to draw: the trace does not say where it was"))?;
        store::save_bytes(target, svg.as_bytes())?;
    }
    let report = WhyReport {
        path,
        game: &trace.header.game,
        mode: &trace.header.mode,
        settings_changed: &changed,
        what_if: args.what_if.question().name(),
        answer: why_answer(&why, settings),
        why: &why,
        rejudged: &rejudged,
        svg: args.svg.as_deref(),
    };
    output.show(&report, |page| {
        if !changed.is_empty() {
            page.pair("under", &changed.join(" "));
            page.pair("what-if", &format!("{}, {}", report.what_if, args.what_if.question().meaning()));
            page.blank();
        }
        page.append(why_page(&why, settings, &rejudged));
        if let Some(path) = report.svg {
            page.blank();
            page.line(&format!("Drawing written to {}", path.display()));
        }
    })?;
    Ok(CommandOutcome::Done)
}

/// The results of the shot under other rules.
fn otherwise(
    game: &dyn Playable,
    path: &Path,
    log: &LogFile,
    options: &ReplayOptions,
    (trace, why): (&Trace, &Why),
) -> Result<Vec<RejudgedShot>, CommandError> {
    let Why::Shot(shot) = why else { return Ok(Vec::new()) };
    let rejudged = rejudged(game, &log.session, options, trace).map_err(|error| CommandError::file(path, error))?;
    Ok(shot.otherwise(&rejudged))
}
