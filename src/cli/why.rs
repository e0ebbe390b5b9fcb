//! `hitreg why`: explains and draws one shot or one correction.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Serialize;

use super::diff::running::TimeLimitArgs;
use super::diff::show_untestable;
use super::output::Output;
use super::outputs::OutputPath;
use super::trouble::CommandError;
use super::what_if::WhatIfArgs;
use super::{CommandResult, files, moment, replay};
use crate::engine::{EngineError, Games, LogFile, Playable, rejudged};
use crate::log::FileKind;
use crate::recorded::all_records;
use crate::replay::ReplayOptions;
use crate::report::{why_answer, why_page, why_svg};
use crate::store::{self, FileType, TraceFile};
use crate::trace::schema::shots;
use crate::trace::{Table, Trace, TraceSource, select_rows};
use crate::units::Micros;
use crate::why::{RejudgedShot, ShotName, Why, WhyQuery, near, player, shots_of};

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
  hitreg why match.hitlog p0#95 --build ./game     as another build replays it
  hitreg export match.hitlog --table shots         list all shots")]
pub(super) struct Args {
    /// A log, or a trace
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The shot: p0#95, or p0#95.1 for the second shot of a usercmd; or a player, like --player
    #[arg(value_name = "SHOT", conflicts_with = "player")]
    shot: Option<PathBuf>,
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
    svg: Option<OutputPath>,
    /// The build that replays the log [default: this one; for another game, the log's own records]
    #[arg(long, value_name = "BUILD")]
    build: Option<PathBuf>,
    #[command(flatten)]
    limit: TimeLimitArgs,
    #[command(flatten)]
    what_if: WhatIfArgs,
}

#[derive(Serialize)]
struct WhyReport<'a> {
    path: String,
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
    svg: Option<String>,
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

/// The file, and the named shot or player. They may be given in either order.
fn in_order(args: &Args) -> Result<(&PathBuf, Option<ShotOrPlayer>), CommandError> {
    let Some(second) = &args.shot else { return Ok((&args.file, None)) };
    let name = |path: &Path| path.to_string_lossy().parse::<ShotOrPlayer>();
    match (name(second), name(&args.file)) {
        (Ok(named), _) => Ok((&args.file, Some(named))),
        (Err(_), Ok(named)) => Ok((second, Some(named))),
        (Err(error), Err(_)) => {
            let (file, typed) = (args.file.display(), second.display());
            let next = match typed.to_string().starts_with(|first: char| first.is_ascii_digit()) {
                true => format!(". For the shot nearest to a time, run: hitreg why {file} --at {typed}"),
                false => format!(". To list the shots of p0, run: hitreg why {file} p0"),
            };
            Err(CommandError::request(format!("{error}{next}")))
        }
    }
}

/// What is asked; the player alone if a list of its shots is what can be answered.
fn asked(args: &Args, named: Option<ShotOrPlayer>) -> Result<Result<WhyQuery, u32>, CommandError> {
    let player = match named {
        Some(ShotOrPlayer::Player(player)) => Some(player),
        _ => args.player,
    };
    let asked = match (named, args.at, args.correction) {
        (Some(ShotOrPlayer::Shot(name)), None, None) => WhyQuery::Shot(name),
        (Some(ShotOrPlayer::Shot(_)), ..) => {
            return Err(CommandError::request("a shot has been named: leave out --at and --correction"));
        }
        (_, Some(at), _) => WhyQuery::At { at_us: at.0, player },
        (_, None, Some(number)) => {
            let player = player.ok_or_else(|| {
                CommandError::request("--correction needs a player: hitreg why FILE p2 --correction 3, for example")
            })?;
            WhyQuery::Correction { player, number }
        }
        (_, None, None) => match player {
            Some(player) => return Ok(Err(player)),
            None => {
                return Err(CommandError::request(format!(
                    "name a shot (p0#95), a player (p0), a time (--at 1.55s) or a correction (p0 --correction 3). To list \
                     the shots of p0, run: hitreg why {} p0",
                    args.file.display()
                )));
            }
        },
    };
    Ok(Ok(asked))
}

/// An answer to a player without a shot: the names of its shots.
fn which_shot(path: &Path, trace: &Trace, player: u32) -> CommandError {
    const MOST: usize = 12;
    let names: Vec<String> = shots_of(trace, player).iter().map(ToString::to_string).collect();
    let Some(first) = names.first() else {
        return CommandError::file(path, format!("p{player} did not shoot: name another player, or --correction N"));
    };
    let more = names.len().saturating_sub(MOST);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    let list = names[..names.len().min(MOST)].join(", ");
    let command = format!("hitreg why {} {first}", path.display());
    CommandError::file(path, format!("p{player} fired {list}{rest}. Name one of these shots: {command}"))
}

pub(super) fn run(games: &Games, args: &Args, output: &mut Output) -> CommandResult {
    let target = output.files.target_if(&args.svg, FileType::Svg)?;
    let (path, named) = in_order(args)?;
    let asked = asked(args, named)?;
    let find = |trace: &Trace| match &asked {
        Ok(asked) => Why::of(trace, asked).map_err(|error| CommandError::file(path, error)),
        Err(player) => Err(which_shot(path, trace, *player)),
    };
    let mut names = None;
    let (trace, changed, why, rejudged) = if store::kind_of(path)? == FileKind::Trace {
        if !args.what_if.is_plain() || args.build.is_some() {
            return Err(EngineError::Replayed { path: path.clone() }.into());
        }
        let trace = rows_for(games, path, &asked)?;
        let why = find(&trace)?;
        (trace, Vec::new(), why, Vec::new())
    } else {
        let log = files::read_log(games, path)?;
        files::note_hole(path, log.session.first_hole());
        names = Some(log.session.header.clone());
        match (&args.build, games.of(&log.session)) {
            (None, Ok(game)) => {
                let (options, changed) = args.what_if.options(&log.session.header)?;
                let options = ReplayOptions { memory: games.memory(), ..options };
                let (replayed, _) = replay::replay(game, path, &log.session, &options)?;
                let mut why = find(&replayed.trace)?;
                // Under changed settings the packets would differ. With rejudging, they stay as recorded.
                if let (Why::Shot(shot), true) = (&mut why, changed.is_empty() || options.judged_under.is_some()) {
                    shot.know_log(&log.session);
                }
                let rejudged = otherwise(game, path, &log, &options, (&replayed.trace, &why))?;
                (replayed.trace, changed, why, rejudged)
            }
            (build, game) => {
                let changed = args.what_if.changed();
                let trace = match (build, game) {
                    (Some(build), _) => {
                        let (spec, runner) = (args.what_if.by_build(build), args.limit.runner(games)?);
                        match spec.trace_of(&files::engine(games), &runner, path)? {
                            Ok(trace) => trace,
                            Err(missing) => return show_untestable(&missing, output),
                        }
                    }
                    (None, Err(error)) if !args.what_if.is_plain() => return Err(CommandError::file(path, error)),
                    _ => all_records(&log.session),
                };
                let mut why = find(&trace)?;
                if let (Why::Shot(shot), true) = (&mut why, changed.is_empty()) {
                    shot.know_log(&log.session);
                }
                (trace, changed, why, Vec::new())
            }
        }
    };
    let settings = &trace.header.settings;
    if let Some(target) = &target {
        let svg = why_svg(&why, settings).ok_or_else(|| {
            CommandError::file(path, "there is nothing to draw: the trace lacks positions. Leave out --svg")
        })?;
        store::save_bytes(target, svg.as_bytes())?;
    }
    let report = WhyReport {
        path: path.display().to_string(),
        game: &trace.header.game,
        mode: &trace.header.mode,
        settings_changed: &changed,
        what_if: args.what_if.question().name(),
        answer: why_answer(&why, settings),
        why: &why,
        rejudged: &rejudged,
        svg: args.svg.as_ref().map(|svg| svg.display().to_string()),
    };
    output.show(&report, |page| {
        if !changed.is_empty() {
            page.pair("settings", &changed.join(" "));
            page.pair("what-if", &format!("{}. {}.", report.what_if, args.what_if.question().meaning()));
            page.blank();
        }
        if let Some(names) = names.and_then(|header| header.names_of(why.players())) {
            page.pair("players", &names);
            page.blank();
        }
        page.append(why_page(&why, settings, &rejudged));
        if let Some(path) = &report.svg {
            page.blank();
            page.line(&format!("Drawing written to {path}"));
        }
    })
}

/// The rows of a trace that answer the question.
fn rows_for(games: &Games, path: &Path, asked: &Result<WhyQuery, u32>) -> Result<Trace, CommandError> {
    let file = TraceFile::open(path)?;
    let unread = |error: String| CommandError::Request(error);
    let all = |rows: &Table| (0..rows.rows() as u32).collect();
    let table = select_rows(&file, shots::NAME, (&[], None), &all).map_err(unread)?;
    let fired = Trace { header: file.header().clone(), tables: vec![table] };
    let Ok(asked) = asked else { return Ok(fired) };
    match asked.shot(&fired).map_err(|error| CommandError::file(path, error))? {
        Some(shot) => Ok(near(&file, shot).map_err(unread)?.into_owned()),
        None => Ok(store::read_trace_within(games.memory(), path)?),
    }
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
