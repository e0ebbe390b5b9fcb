//! `hitreg why`: explains and draws one shot or one correction.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Serialize;

use super::output::Output;
use super::outputs::OutPath;
use super::trouble::Trouble;
use super::what_if::WhatIf;
use super::{Outcome, files, moment, replay};
use crate::engine::{EngineError, Games, LogFile, Playable, rejudged};
use crate::log::FileKind;
use crate::replay::Options;
use crate::report::{why_answer, why_page, why_svg};
use crate::store::{self, Kind};
use crate::trace::Trace;
use crate::units::Micros;
use crate::why::{Asked, Otherwise, ShotName, Why, player};

/// Explain one shot, or one correction of a prediction
///
/// A shot is named by its player and usercmd, such as p0#95; `export --table shots` lists them. The page shows what the
/// shooter saw and how old that was, when the server ran the usercmd, how far it rewound, and the rewind limit. It
/// shows where the target was drawn, judged, and when the shot ran, and the result under other rules. A log is replayed
/// first. A trace is explained from its tables, and missing values are `not known`.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg why match.hitlog p0#95                    one shot
  hitreg why match.hitlog --at 1.55s --player p3   p3's shot nearest to 1.55 s
  hitreg why match.hitlog p2 --correction 3        p2's third correction
  hitreg why match.hittrace p0#95 --svg shot.svg
  hitreg why match.hitlog p0#95 --set lag_compensation.max_unlag_ms=100
  hitreg export match.hitlog --table shots         list all shots")]
#[command(group = clap::ArgGroup::new("asked").args(["shot", "at", "correction"]).required(true).multiple(true))]
pub(super) struct Args {
    /// A log, or a trace
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The shot: p0#95, or p0#95.1 for the second shot of a usercmd; or a player, like --player
    #[arg(value_name = "SHOT", conflicts_with = "player")]
    shot: Option<Named>,
    /// The shot judged nearest to this session time: `40:00`, `1.55`, `1.55s`, `1550ms`
    #[arg(long, value_name = "TIME", value_parser = moment::time)]
    at: Option<Micros>,
    /// The N-th correction of a player; the first is 1
    #[arg(long, value_name = "N", conflicts_with = "at")]
    correction: Option<u32>,
    /// The player of the shot or correction, such as p3
    #[arg(long, value_name = "PLAYER", value_parser = player)]
    player: Option<u32>,
    /// Write the picture as an SVG file
    #[arg(long, value_name = "FILE")]
    svg: Option<OutPath>,
    #[command(flatten)]
    what_if: WhatIf,
}

#[derive(Serialize)]
struct Report<'a> {
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
    rejudged: &'a Vec<Otherwise>,
    #[serde(serialize_with = "crate::store::shown::path_if")]
    svg: Option<&'a Path>,
}

/// The argument that names a shot.
#[derive(Clone, Copy, Debug)]
enum Named {
    Shot(ShotName),
    Player(u32),
}

impl FromStr for Named {
    type Err = String;

    fn from_str(text: &str) -> Result<Named, String> {
        let name = text.strip_prefix('p').and_then(|_| player(text).ok());
        name.map_or_else(|| text.parse().map(Named::Shot), |player| Ok(Named::Player(player)))
    }
}

fn asked(args: &Args) -> Result<Asked, Trouble> {
    let player = match args.shot {
        Some(Named::Player(player)) => Some(player),
        _ => args.player,
    };
    let asked = match (args.shot, args.at, args.correction) {
        (Some(Named::Shot(name)), None, None) => Asked::Shot(name),
        (Some(Named::Shot(_)), ..) => return Err(refused("a shot by its name needs no --at and no --correction")),
        (_, Some(at), _) => Asked::At { at_us: at.0, player },
        (_, None, Some(number)) => {
            let player = player.ok_or_else(|| refused("whose correction? Name the player, as p2 --correction 3"))?;
            Asked::Correction { player, number }
        }
        (_, None, None) => {
            return Err(refused("name a shot (p0#95), a time (--at 1.55s) or a correction (--correction 3)"));
        }
    };
    Ok(asked)
}

fn refused(why: &str) -> Trouble {
    Trouble::Request(why.to_owned())
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> Result<Outcome, Trouble> {
    let target = args.svg.as_ref().map(|path| output.files.target(path, Kind::Svg)).transpose()?;
    let asked = asked(args)?;
    let path = &args.file;
    let (file, kind) = files::read(path)?;
    let find = |trace: &Trace| Why::of(trace, &asked).map_err(|error| Trouble::file(path, error));
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
        let game = games.of(&log.session).map_err(|error| Trouble::file(path, error))?;
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
            .ok_or_else(|| Trouble::file(path, "there is nothing to draw: the trace does not say where it was"))?;
        store::save_bytes(target, svg.as_bytes())?;
    }
    let report = Report {
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
            page.pair("settings", &changed.join(" "));
            page.pair("what-if", &format!("{}. {}.", report.what_if, args.what_if.question().meaning()));
            page.blank();
        }
        page.append(why_page(&why, settings, &rejudged));
        if let Some(path) = report.svg {
            page.blank();
            page.line(&format!("Drawing written to {}", path.display()));
        }
    })?;
    Ok(Outcome::Done)
}

/// The results of the shot under other rules.
fn otherwise(
    game: &dyn Playable,
    path: &Path,
    log: &LogFile,
    options: &Options,
    (trace, why): (&Trace, &Why),
) -> Result<Vec<Otherwise>, Trouble> {
    let Why::Shot(shot) = why else { return Ok(Vec::new()) };
    let rejudged = rejudged(game, &log.session, options, trace).map_err(|error| Trouble::file(path, error))?;
    Ok(shot.otherwise(&rejudged))
}
