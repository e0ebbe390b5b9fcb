//! `hitreg why`: explains and draws one shot or one correction.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::Serialize;

use super::builds::TimeLimitArgs;
use super::page::Page;
use super::replay_args::{WhatIfArgs, parse_time};
use super::trouble::{engine_with_notes, note_gap};
use super::{CommandError, CommandResult, Output, OutputPath};
use crate::engine::{Engine, EngineError, ExplainedLog, ExplainingRows, Games, Playable};
use crate::log::FileKind;
use crate::recorder::last_usercmd_as_received;
use crate::replay::WhatIf;
use crate::report::{why_answer, why_page, why_svg};
use crate::store::{self, FileType, TraceFile};
use crate::trace::schema::shots;
use crate::trace::{Table, Trace, TraceHeader, TraceSource, select_rows};
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
                false => {
                    let player = typed.to_string().split('#').next().and_then(|text| player(text).ok()).unwrap_or(0);
                    format!(". To list the shots of p{player}, run: hitreg why {file} p{player}")
                }
            };
            Err(CommandError::request(format!("{error}{next}")))
        }
    }
}

/// A question about a file.
struct Question<'a> {
    path: &'a Path,
    program: &'a str,
    subject: Subject,
}

/// What a question is about.
enum Subject {
    /// One shot or correction.
    Event(WhyQuery),
    /// A player alone. The answer is an error that names its shots.
    Player(u32),
}

impl Subject {
    fn of(args: &Args, named: Option<ShotOrPlayer>) -> Result<Subject, CommandError> {
        let player = match named {
            Some(ShotOrPlayer::Player(player)) => Some(player),
            _ => args.player,
        };
        match (named, args.at, args.correction) {
            (Some(ShotOrPlayer::Shot(name)), None, None) => Ok(Subject::Event(WhyQuery::Shot(name))),
            (Some(ShotOrPlayer::Shot(_)), ..) => {
                Err(CommandError::request("a shot has been named: leave out --at and --correction"))
            }
            (_, Some(at), _) => Ok(Subject::Event(WhyQuery::At { at_us: at.0, player })),
            (_, None, Some(number)) => {
                let player = player.ok_or_else(|| {
                    CommandError::request("--correction needs a player: hitreg why FILE p2 --correction 3, for example")
                })?;
                Ok(Subject::Event(WhyQuery::Correction { player, number }))
            }
            (_, None, None) => player.map(Subject::Player).ok_or_else(|| {
                CommandError::request(format!(
                    "name a shot (p0#95), a player (p0), a time (--at 1.55s) or a correction (p0 --correction 3). To list \
                     the shots of p0, run: hitreg why {} p0",
                    args.file.display()
                ))
            }),
        }
    }
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
    let question = Question { path, program, subject: Subject::of(args, named)? };
    let Answer { trace, changed, why, rejudged } = question.answer(games, args)?;
    let settings = &trace.header.settings;
    if let Some(target) = &target {
        let svg = why_svg(&why, settings).ok_or_else(|| {
            question.error("there is nothing to draw: the trace has no line of fire, or no positions. Leave out --svg")
        })?;
        store::save_bytes(target, svg.as_bytes())?;
    }
    let (player, command) = why.usercmd();
    let report = WhyReport {
        path: path.display().to_string(),
        game: &trace.header.game,
        mode: &trace.header.mode,
        settings_changed: &changed,
        what_if: args.what_if.what_if.name(),
        answer: why_answer(&why, settings),
        why: &why,
        usercmds_as_received: last_usercmd_as_received(settings, player).is_some_and(|last| command <= last.0),
        rejudged: &rejudged,
        svg: args.svg.as_ref().map(|svg| svg.display().to_string()),
    };
    output.show(&report, |page| report.print(page, args.what_if.what_if, &trace.header))
}

impl WhyReport<'_> {
    fn print(&self, page: &mut Page, what_if: WhatIf, header: &TraceHeader) {
        if !self.settings_changed.is_empty() {
            page.pair("settings", &self.settings_changed.join(" "));
            page.pair("what-if", &format!("{}. {}.", self.what_if, what_if.meaning()));
            page.blank();
        }
        if let Some(names) = header.session.as_ref().and_then(|session| session.names_of(self.why.players())) {
            page.pair("players", &names);
            page.blank();
        }
        page.append(why_page(self.why, &header.settings, self.rejudged));
        if let Some(path) = &self.svg {
            page.blank();
            page.line(&format!("Drawing written to {path}"));
        }
    }
}

impl Question<'_> {
    fn answer(&self, games: &Games, args: &Args) -> Result<Answer, CommandError> {
        let is_trace = store::kind_of(self.path)? == FileKind::Trace;
        if is_trace && (!args.what_if.is_plain() || args.build.is_some()) {
            return Err(EngineError::already_replayed(self.path).into());
        }
        let engine = engine_with_notes(games);
        match (is_trace, &args.build) {
            (true, _) => self.answer_from_trace(&TraceFile::open(self.path)?),
            (false, None) => match games.of_header(store::open_indexed_log(self.path)?.header()) {
                Ok(game) => self.answer_from_log(&engine, game, args),
                Err(error) if !args.what_if.is_plain() => Err(self.error(error)),
                Err(_) => self.answer_from_records(&engine),
            },
            (false, Some(build)) => {
                let engine = Engine { runner: args.limit.runner(games)?, ..engine };
                self.answer_from_build(&engine, build, args)
            }
        }
    }

    fn answer_from_trace(&self, source: &dyn TraceSource) -> Result<Answer, CommandError> {
        let query = self.query(|| {
            let table = select_rows(source, shots::NAME, (&[], None), &Table::clone).map_err(CommandError::request)?;
            Ok(Trace { tables: vec![table], ..Trace::default() })
        })?;
        let near = near(source, query).map_err(CommandError::request)?;
        let trace = near.map_err(|error| self.error(error))?.into_owned();
        let why = Why::of(&trace, query).map_err(|error| self.error(error))?;
        Ok(Answer { trace, changed: Vec::new(), why, rejudged: Vec::new() })
    }

    /// Answers from the replay of a log by another build.
    fn answer_from_build(&self, engine: &Engine<'_>, build: &Path, args: &Args) -> Result<Answer, CommandError> {
        let trace = args.what_if.by_build(build).trace_of(engine, self.path)?;
        note_gap(self.path, engine.first_gap(self.path)?.as_ref());
        let mut answer = self.answer_from_trace(trace.source())?;
        answer.changed = args.what_if.changes();
        if let (Why::Shot(shot), true) = (&mut answer.why, answer.changed.is_empty()) {
            let rows = ShotRows::of(&answer.trace, shot.name());
            shot.know_log(&engine.records_around(self.path, &rows)?);
        }
        Ok(answer)
    }

    /// Answers from the replay of a log by this program.
    fn answer_from_log(&self, engine: &Engine<'_>, game: &dyn Playable, args: &Args) -> Result<Answer, CommandError> {
        let (options, changed) = args.what_if.options(store::open_indexed_log(self.path)?.header())?;
        let rejudges = options.rejudge.is_some();
        let log = ExplainedLog::new(engine, self.path, game, options)?;
        note_gap(self.path, engine.first_gap(self.path)?.as_ref());
        let query = self.query(|| Ok(log.shots()?))?;
        let ExplainingRows { trace, session, rejudged, other_corrections } = log.find(query)?;
        let mut why = Why::of_part(&trace, query, &other_corrections).map_err(|error| self.error(error))?;
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
    fn answer_from_records(&self, engine: &Engine<'_>) -> Result<Answer, CommandError> {
        let fired = engine.recorded_shots(self.path)?;
        note_gap(self.path, engine.first_gap(self.path)?.as_ref());
        let query = self.query(|| Ok(fired.clone()))?;
        let ExplainingRows { trace, session, .. } = engine.recorded_shot(self.path, &fired, query)?;
        let mut why = Why::of(&trace, query).map_err(|error| self.error(error))?;
        if let Why::Shot(shot) = &mut why {
            shot.know_log(&session);
        }
        Ok(Answer { trace, changed: Vec::new(), why, rejudged: Vec::new() })
    }

    /// The shot or correction that is asked about.
    ///
    /// # Errors
    /// Fails if only a player is named. The error names its shots.
    fn query(&self, shots: impl FnOnce() -> Result<Trace, CommandError>) -> Result<&WhyQuery, CommandError> {
        const LISTED_SHOTS_MAX: usize = 12;
        let player = match &self.subject {
            Subject::Event(query) => return Ok(query),
            Subject::Player(player) => *player,
        };
        let shots = shots_of(&shots()?, player).map_err(|error| self.error(error))?;
        let names: Vec<String> = shots.iter().map(ToString::to_string).collect();
        let more = names.len().saturating_sub(LISTED_SHOTS_MAX);
        let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
        let list = names[..names.len().min(LISTED_SHOTS_MAX)].join(", ");
        let first = names.first().map_or("", String::as_str);
        let command = format!("{} why {} {first}", self.program, self.path.display());
        Err(self.error(format!("p{player} fired {list}{rest}. Name one of these shots: {command}")))
    }

    fn error(&self, what: impl Into<Box<dyn Error + Send + Sync>>) -> CommandError {
        CommandError::file(self.path, what)
    }
}
