//! `hitreg why`: explains and draws one shot or one correction.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Serialize;

use super::builds::TimeLimitArgs;
use super::replay_args::{WhatIfArgs, parse_time};
use super::trouble::{engine_with_notes, note_hole};
use super::{CommandError, CommandResult, Output, OutputPath};
use crate::engine::{Engine, EngineError, ExplainedLog, ExplainingRows, Games, Playable};
use crate::log::FileKind;
use crate::recorder::last_usercmd_as_received;
use crate::report::{why_answer, why_page, why_svg};
use crate::store::{self, FileType, TraceFile};
use crate::trace::schema::shots;
use crate::trace::{Table, Trace, TraceSource, select_rows};
use crate::units::Micros;
use crate::why::{RejudgedShot, ShotName, ShotRows, Why, WhyError, WhyQuery, near, player, shots_of};

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
    /// The shot judged nearest to this session time: `40:00`, `1.55s`, `1550ms`, `1550000us`, `-0.5`
    #[arg(long, value_name = "TIME", value_parser = parse_time, allow_hyphen_values = true)]
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
    /// Whether the time of the usercmd (`made`) is its arrival at the server.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    usercmds_as_received: bool,
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
    type Err = WhyError;

    fn from_str(text: &str) -> Result<ShotOrPlayer, WhyError> {
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
fn which_shot((path, program): (&Path, &str), trace: &Trace, player: u32) -> CommandError {
    const MOST: usize = 12;
    let names: Vec<String> = match shots_of(trace, player) {
        Ok(shots) => shots.iter().map(ToString::to_string).collect(),
        Err(error) => return CommandError::file(path, error),
    };
    let more = names.len().saturating_sub(MOST);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    let list = names[..names.len().min(MOST)].join(", ");
    let command = format!("{program} why {} {}", path.display(), names.first().map_or("", String::as_str));
    CommandError::file(path, format!("p{player} fired {list}{rest}. Name one of these shots: {command}"))
}

/// What answers the question.
struct Answer {
    /// The rows that explain it.
    trace: Trace,
    changed: Vec<String>,
    why: Why,
    rejudged: Vec<RejudgedShot>,
}

pub(super) fn run(games: &Games, args: &Args, program: &str, output: &mut Output) -> CommandResult {
    let target = output.files.target_if(&args.svg, FileType::Svg)?;
    let (path, named) = in_order(args)?;
    let asked = asked(args, named)?;
    let is_trace = store::kind_of(path)? == FileKind::Trace;
    if is_trace && (!args.what_if.is_plain() || args.build.is_some()) {
        return Err(EngineError::replayed(path).into());
    }
    let engine = engine_with_notes(games);
    let answer = match (is_trace, &args.build) {
        (true, _) => of_source((path, program), &TraceFile::open(path)?, &asked)?,
        (false, None) => match games.of_header(store::open_indexed_log(path)?.header()) {
            Ok(game) => of_log(&engine, (path, program), game, args, &asked)?,
            Err(error) if !args.what_if.is_plain() => return Err(CommandError::file(path, error)),
            Err(_) => of_records(&engine, (path, program), &asked)?,
        },
        (false, Some(build)) => {
            let spec = args.what_if.by_build(build);
            let engine = Engine { runner: args.limit.runner(games)?, ..engine };
            let made = spec.trace_of(&engine, path)?;
            note_hole(path, engine.first_gap(path)?.as_ref());
            let mut answer = of_source((path, program), made.source(), &asked)?;
            answer.changed = args.what_if.changed();
            if let (Why::Shot(shot), true) = (&mut answer.why, answer.changed.is_empty()) {
                let rows = ShotRows::of(&answer.trace, shot.name());
                shot.know_log(&engine.records_around(path, &rows)?);
            }
            answer
        }
    };
    let Answer { trace, changed, why, rejudged } = answer;
    let settings = &trace.header.settings;
    if let Some(target) = &target {
        let svg = why_svg(&why, settings).ok_or_else(|| {
            CommandError::file(
                path,
                "there is nothing to draw: the trace has no line of fire, or no positions. Leave out --svg",
            )
        })?;
        store::save_bytes(target, svg.as_bytes())?;
    }
    let report = WhyReport {
        path: path.display().to_string(),
        game: &trace.header.game,
        mode: &trace.header.mode,
        settings_changed: &changed,
        what_if: args.what_if.what_if.name(),
        answer: why_answer(&why, settings),
        why: &why,
        usercmds_as_received: {
            let (player, command) = why.usercmd();
            last_usercmd_as_received(settings, player).is_some_and(|last| command <= last.0)
        },
        rejudged: &rejudged,
        svg: args.svg.as_ref().map(|svg| svg.display().to_string()),
    };
    output.show(&report, |page| {
        if !changed.is_empty() {
            page.pair("settings", &changed.join(" "));
            page.pair("what-if", &format!("{}. {}.", report.what_if, args.what_if.what_if.meaning()));
            page.blank();
        }
        if let Some(names) = trace.header.session.as_ref().and_then(|session| session.names_of(why.players())) {
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

/// Answers from a trace.
fn of_source(
    (path, program): (&Path, &str),
    source: &dyn TraceSource,
    asked: &Result<WhyQuery, u32>,
) -> Result<Answer, CommandError> {
    let asked = match asked {
        Ok(asked) => asked,
        Err(player) => {
            let table = select_rows(source, shots::NAME, (&[], None), &Table::clone).map_err(CommandError::request)?;
            return Err(which_shot((path, program), &Trace { tables: vec![table], ..Trace::default() }, *player));
        }
    };
    let not_found = |error| CommandError::file(path, error);
    let trace = near(source, asked).map_err(CommandError::request)?.map_err(not_found)?.into_owned();
    let why = Why::of(&trace, asked).map_err(not_found)?;
    Ok(Answer { trace, changed: Vec::new(), why, rejudged: Vec::new() })
}

/// Answers from the replay of a log.
fn of_log(
    engine: &Engine<'_>,
    (path, program): (&Path, &str),
    game: &dyn Playable,
    args: &Args,
    asked: &Result<WhyQuery, u32>,
) -> Result<Answer, CommandError> {
    let (options, changed) = args.what_if.options(store::open_indexed_log(path)?.header())?;
    let rejudges = options.rejudge.is_some();
    let log = ExplainedLog::new(engine, path, game, options)?;
    note_hole(path, engine.first_gap(path)?.as_ref());
    let asked = match asked {
        Ok(asked) => asked,
        Err(player) => return Err(which_shot((path, program), &log.shots()?, *player)),
    };
    let not_found = |error| CommandError::file(path, error);
    let ExplainingRows { trace, session, rejudged, other_corrections } = log.find(asked)?;
    let mut why = Why::of_part(&trace, asked, &other_corrections).map_err(not_found)?;
    let mut otherwise = Vec::new();
    if let Why::Shot(shot) = &mut why {
        // Under changed settings the packets would differ. With rejudging, they stay as recorded.
        if changed.is_empty() || rejudges {
            shot.know_log(&session);
        }
        otherwise = shot.otherwise(&rejudged);
    }
    Ok(Answer { trace, changed, why, rejudged: otherwise })
}

/// Answers from the records of a log of another game.
fn of_records(
    engine: &Engine<'_>,
    (path, program): (&Path, &str),
    asked: &Result<WhyQuery, u32>,
) -> Result<Answer, CommandError> {
    let fired = engine.recorded_shots(path)?;
    note_hole(path, engine.first_gap(path)?.as_ref());
    let asked = match asked {
        Ok(asked) => asked,
        Err(player) => return Err(which_shot((path, program), &fired, *player)),
    };
    let not_found = |error| CommandError::file(path, error);
    let ExplainingRows { trace, session, .. } = engine.recorded_shot(path, &fired, asked)?;
    let mut why = Why::of(&trace, asked).map_err(not_found)?;
    if let Why::Shot(shot) = &mut why {
        shot.know_log(&session);
    }
    Ok(Answer { trace, changed: Vec::new(), why, rejudged: Vec::new() })
}
