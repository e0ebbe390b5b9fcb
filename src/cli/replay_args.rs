//! Options that say how logs are replayed and compared: settings, both sides, parts of a session, and what differs.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};

use super::CommandError;
use crate::diff::{DiffOptions, DiffScope, Tolerance};
use crate::engine::{ComparisonSpec, CrossBuild, ReplaySpec, ReplaySpecs};
use crate::record::SessionHeader;
use crate::replay::{Part, ReplayMode, ReplayOptions, WhatIf, log_settings};
use crate::settings::{KEYS, PRESETS};
use crate::trace::schema::TABLES;
use crate::units::{ClockTime, Micros, Tick};

/// How a log is replayed.
#[derive(clap::Args)]
pub(super) struct WhatIfArgs {
    /// Replay under another value of a setting; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = offered_settings(), hide_possible_values = true)]
    set: Vec<String>,
    /// Replay under a preset instead of the log's own settings
    #[arg(long, value_name = "NAME", value_parser = offered_presets(), hide_possible_values = true)]
    preset: Option<String>,
    /// How changed settings apply: `replay` runs the recorded input under them, `rejudge` changes only the hit test of
    /// each recorded shot
    #[arg(
        long,
        value_parser = one_of(OF_ONE_RUN),
        value_name = "replay|rejudge",
        hide_possible_values = true,
        default_value = "replay"
    )]
    pub(super) what_if: WhatIf,
    /// Closed loop runs server and clients; open loop runs only clients, on the recorded snapshots
    #[arg(long, value_parser = loop_mode(), value_name = "closed|open", hide_possible_values = true)]
    mode: Option<ReplayMode>,
}

/// A parser for one of these values of `--what-if`.
pub(super) fn one_of(questions: &'static [WhatIf]) -> impl TypedValueParser<Value = WhatIf> {
    PossibleValuesParser::new(questions.iter().map(|question| question.name()))
        .try_map(|name| name.parse::<WhatIf>().map_err(|_| format!("`{name}` is not a value of --what-if")))
}

fn loop_mode() -> impl TypedValueParser<Value = ReplayMode> {
    PossibleValuesParser::new(["closed", "open"])
        .map(|name| if name == "open" { ReplayMode::Open } else { ReplayMode::Closed })
}

/// The values of `--what-if` for a single replay.
const OF_ONE_RUN: &[WhatIf] = &[WhatIf::Replay, WhatIf::Rejudge];

impl WhatIfArgs {
    /// Whether the log is replayed under its own settings.
    pub(super) fn is_plain(&self) -> bool {
        self.set.is_empty() && self.preset.is_none() && self.mode.is_none() && self.what_if == WhatIf::Replay
    }

    /// The requested changes of settings, as `key=value` or `preset NAME`.
    pub(super) fn changes(&self) -> Vec<String> {
        self.preset.iter().map(|name| format!("preset {name}")).chain(self.set.iter().cloned()).collect()
    }

    /// Refuses `--what-if rejudge` without other settings.
    pub(super) fn check(&self) -> Result<(), CommandError> {
        match self.what_if == WhatIf::Rejudge && self.set.is_empty() && self.preset.is_none() {
            true => Err(CommandError::request(
                "--what-if rejudge needs other settings: add --set KEY=VALUE or --preset NAME",
            )),
            false => Ok(()),
        }
    }

    /// The options of the replay, and the changed settings as `key=value`.
    pub(super) fn options(&self, header: &SessionHeader) -> Result<(ReplayOptions, Vec<String>), CommandError> {
        self.check()?;
        let recorded =
            log_settings(header).map_err(|error| CommandError::request(format!("the log's settings: {error}")))?;
        let settings = recorded.with_changes(self.preset.as_deref(), &self.set)?;
        let changes = settings.changes_from(&recorded).into_iter();
        let changed: Vec<String> = changes.map(|(key, value)| format!("{key}={value}")).collect();
        let settings = (!changed.is_empty()).then_some(settings);
        let options = ReplayOptions { mode: self.mode.unwrap_or_default(), ..ReplayOptions::default() };
        Ok((options.under(settings, self.what_if), changed))
    }

    /// The replay by another build.
    pub(super) fn by_build(&self, build: &Path) -> ReplaySpec {
        ReplaySpec {
            build: Some(build.to_owned()),
            preset: self.preset.clone(),
            set: self.set.clone(),
            open: self.is_open(),
            what_if: self.what_if,
            ..ReplaySpec::default()
        }
    }

    /// Whether only the clients run, as requested.
    pub(super) fn is_open(&self) -> bool {
        self.mode == Some(ReplayMode::Open)
    }
}

/// What is compared with what.
#[derive(clap::Args)]
pub(super) struct SideArgs {
    /// A trace, or a log to replay
    #[arg(index = 1, value_name = "LOG|A")]
    first: PathBuf,
    /// The trace or log of side B [default: the same log]
    #[arg(index = 2, value_name = "B")]
    second: Option<PathBuf>,
    #[command(flatten)]
    replays: SideReplayArgs,
    /// Run the server of this build, and replay its packets in the clients of both sides
    #[arg(long, value_name = "BUILD", help_heading = "The two sides", conflicts_with = "open")]
    server_build: Option<PathBuf>,
    /// Side B's client on that server; side A's client is --a, or that of the server build
    #[arg(long, value_name = "BUILD", help_heading = "The two sides", conflicts_with_all = ["b", "open"])]
    client_build: Option<PathBuf>,
}

/// How each side replays its log.
#[derive(clap::Args)]
pub(super) struct SideReplayArgs {
    /// The build of side A: any program that understands `replay LOG -o TRACE` [default: this one; for another game, the
    /// log's own records]
    #[arg(long, value_name = "BUILD", help_heading = "The two sides")]
    a: Option<PathBuf>,
    /// The build of side B [default: this one]
    #[arg(long, value_name = "BUILD", help_heading = "The two sides")]
    b: Option<PathBuf>,
    /// A setting of side A; repeatable
    #[arg(long, value_name = "KEY=VALUE", help_heading = "The two sides", value_parser = offered_settings(), hide_possible_values = true)]
    a_set: Vec<String>,
    /// A setting of side B; repeatable
    #[arg(long, value_name = "KEY=VALUE", help_heading = "The two sides", value_parser = offered_settings(), hide_possible_values = true)]
    b_set: Vec<String>,
    /// Preset of side A, instead of the log's settings
    #[arg(long, value_name = "NAME", help_heading = "The two sides", value_parser = offered_presets(), hide_possible_values = true)]
    a_preset: Option<String>,
    /// Preset of side B, instead of the log's settings
    #[arg(long, value_name = "NAME", help_heading = "The two sides", value_parser = offered_presets(), hide_possible_values = true)]
    b_preset: Option<String>,
    /// How changed settings apply: `replay` runs the recorded input under them, `rejudge` changes only the hit test of
    /// each recorded shot
    #[arg(
        long,
        value_parser = one_of(OF_ONE_RUN),
        value_name = "replay|rejudge",
        hide_possible_values = true,
        default_value = "replay",
        help_heading = "The two sides"
    )]
    what_if: WhatIf,
    /// Replay open loop: only the clients run, on the recorded snapshots
    #[arg(long, help_heading = "The two sides")]
    open: bool,
}

impl SideArgs {
    /// Both sides; with `force`, also those of different sessions.
    pub(super) fn sides(&self, force: bool) -> Result<ComparisonSpec, CommandError> {
        let across = (self.server_build.is_some() || self.client_build.is_some())
            .then(|| CrossBuild { server: self.server_build.clone(), client: self.client_build.clone() });
        Ok(ComparisonSpec {
            first: self.first.clone(),
            second: self.second.clone(),
            replays: self.replays.replay_specs()?,
            across,
            compare_unrelated: force,
        })
    }

    /// The first file, if it may be a corpus, and how each of its logs is replayed on both sides. `None` if a second
    /// file or a server build needs one log.
    pub(super) fn corpus(&self) -> Option<(&Path, &SideReplayArgs)> {
        let is_of_one = self.second.is_some() || self.server_build.is_some() || self.client_build.is_some();
        (!is_of_one).then_some((self.first.as_path(), &self.replays))
    }
}

impl SideReplayArgs {
    /// These options, as on the command line.
    pub(super) fn to_words(&self) -> Vec<String> {
        let path = |path: &PathBuf| path.display().to_string();
        let build = [("--a", self.a.as_ref().map(path)), ("--b", self.b.as_ref().map(path))];
        let preset = [("--a-preset", self.a_preset.clone()), ("--b-preset", self.b_preset.clone())];
        let mut words: Vec<String> = Vec::new();
        for (name, value) in build.into_iter().chain(preset) {
            words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        }
        for (name, pairs) in [("--a-set", &self.a_set), ("--b-set", &self.b_set)] {
            words.extend(pairs.iter().flat_map(|pair| [name.to_owned(), pair.clone()]));
        }
        if self.what_if != WhatIf::Replay {
            words.extend(["--what-if".to_owned(), self.what_if.name().to_owned()]);
        }
        words.extend(self.open.then(|| "--open".to_owned()));
        words
    }

    /// The builds of both sides.
    pub(super) fn builds(&self) -> [Option<&Path>; 2] {
        [self.a.as_deref(), self.b.as_deref()]
    }

    pub(super) fn replay_specs(&self) -> Result<ReplaySpecs, CommandError> {
        let has_settings = [&self.a_preset, &self.b_preset].into_iter().any(Option::is_some)
            || [&self.a_set, &self.b_set].into_iter().any(|set| !set.is_empty());
        if self.what_if == WhatIf::Rejudge && !has_settings {
            let what = "--what-if rejudge needs other settings: add --b-set KEY=VALUE or --b-preset NAME. It cannot judge \
                        the session of one build with another";
            return Err(CommandError::request(what));
        }
        let spec = |build: &Option<PathBuf>, preset: &Option<String>, set: &[String]| ReplaySpec {
            build: build.clone(),
            preset: preset.clone(),
            set: set.to_vec(),
            open: self.open,
            what_if: self.what_if,
            ..ReplaySpec::default()
        };
        Ok(ReplaySpecs { a: spec(&self.a, &self.a_preset, &self.a_set), b: spec(&self.b, &self.b_preset, &self.b_set) })
    }
}

/// What counts as a difference.
#[derive(clap::Args)]
#[command(next_help_heading = "Comparison")]
pub(super) struct CompareArgs {
    /// Compare only this aspect: any, state, hits, corrections, views or network
    #[arg(long, value_name = "WHAT", value_parser = scope(), hide_possible_values = true, default_value = "any")]
    pub(super) on: DiffScope,
    /// Treat two numbers of a column as equal if they differ by at most NUMBER; repeatable
    #[arg(long, value_name = "COLUMN=NUMBER")]
    tolerance: Vec<Tolerance>,
    /// Compare only tables, columns and rows that both sides have, for builds that write partial traces
    #[arg(long)]
    overlap: bool,
}

impl CompareArgs {
    pub(super) fn options(&self) -> DiffOptions {
        DiffOptions {
            tolerances: self.tolerance.iter().cloned().collect(),
            on: self.on,
            overlap_only: self.overlap,
            ..DiffOptions::default()
        }
    }

    /// A phrase for the compared difference, such as `state differs`; `from` and the other side follow.
    pub(super) fn meaning(&self) -> String {
        let what = match self.on {
            DiffScope::Any => "trace differs",
            DiffScope::State => "state differs",
            DiffScope::Hits => "hits differ",
            DiffScope::Corrections => "corrections differ",
            DiffScope::Views => "views differ",
            DiffScope::Network => "network traffic differs",
        };
        let beyond = if self.tolerance.is_empty() { "" } else { ", beyond the tolerances," };
        format!("its {what}{beyond}")
    }

    /// These options, as on the command line.
    pub(super) fn to_words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if self.on != DiffScope::Any {
            words.extend(["--on".to_owned(), self.on.name().to_owned()]);
        }
        for Tolerance { column, within } in &self.tolerance {
            words.extend(["--tolerance".to_owned(), format!("{column}={within}")]);
        }
        words.extend(self.overlap.then(|| "--overlap".to_owned()));
        words
    }

    /// A text of these options that distinguishes one search from another.
    pub(super) fn search_key(&self) -> String {
        format!("{:?} {:?} {}", self.on, self.tolerance, self.overlap)
    }
}

fn scope() -> impl TypedValueParser<Value = DiffScope> {
    PossibleValuesParser::new(DiffScope::NAMES).try_map(|name| name.parse::<DiffScope>())
}

/// From when to when.
#[derive(clap::Args)]
pub(super) struct PartArgs {
    /// Start of the part, in session time: `40:00`, `75.5s`, `75500ms`, `75500000us`, or `tick:5000`
    #[arg(long, value_name = "TIME", value_parser = parse_bound, allow_hyphen_values = true)]
    from: Option<PartBound>,
    /// End of the part (exclusive)
    #[arg(long, value_name = "TIME", value_parser = parse_bound, allow_hyphen_values = true)]
    to: Option<PartBound>,
}

/// A position in a session.
#[derive(Clone, Copy, Debug, PartialEq)]
enum PartBound {
    At(Micros),
    Tick(Tick),
}

impl PartArgs {
    /// The requested part; `None` if no part is requested. `time_of` returns the time of a tick.
    pub(super) fn of(
        &self,
        time_of: impl Fn(Tick) -> Result<Option<Micros>, CommandError>,
    ) -> Result<Option<Part>, CommandError> {
        let time = |moment: Option<PartBound>, otherwise: Micros| match moment {
            None => Ok(otherwise),
            Some(PartBound::At(at)) => Ok(at),
            Some(PartBound::Tick(tick)) => time_of(tick)?.ok_or_else(|| {
                CommandError::request(format!(
                    "the session has no tick {tick} whose time is in the log: give a time (--from 8.19s)"
                ))
            }),
        };
        if self.is_whole() {
            return Ok(None);
        }
        Ok(Some(Part { from: time(self.from, Part::WHOLE.from)?, to: time(self.to, Part::WHOLE.to)? }))
    }

    /// Whether the whole session is requested.
    pub(super) fn is_whole(&self) -> bool {
        self.from.is_none() && self.to.is_none()
    }
}

/// Parses a time, or a tick such as `tick:5000`.
fn parse_bound(text: &str) -> Result<PartBound, String> {
    match text.strip_prefix("tick:") {
        Some(tick) => tick
            .parse()
            .map(|tick| PartBound::Tick(Tick(tick)))
            .map_err(|_| format!("`{text}` is not a tick: write tick:5000, for example")),
        None => parse_time(text).map(PartBound::At).map_err(|wrong| format!("{wrong}, or tick:5000")),
    }
}

/// The earliest and the latest time, as an error shows them.
const LIMITS: [ClockTime; 2] = [ClockTime(Micros(i64::MIN)), ClockTime(Micros(i64::MAX))];

/// Parses a session time: `75`, `75 s`, `1:15`, `0:01:15.5`, `75500ms` or `75500000us`, each with or without a minus
/// sign. Digits after a whole microsecond are dropped, because ticks whose times do not end there are recorded in the
/// same way.
pub(super) fn parse_time(text: &str) -> Result<Micros, String> {
    let wrong = || format!("`{text}` is not a time: write 40:00 (minutes and seconds), 75.5s, 75500ms or 75500000us");
    let (sign, length) = text.strip_prefix('-').map_or((1, text), |length| (-1, length));
    let us = sign * micros(length).ok_or_else(wrong)?;
    let [first, last] = LIMITS;
    let too_far = |_| format!("`{text}` is too far: write a time from {first} to {last}");
    i64::try_from(us).map(Micros).map_err(too_far)
}

/// Parses a time without a sign into microseconds.
fn micros(text: &str) -> Option<i128> {
    for (unit, digits) in [("ms", 3), ("us", 0), ("µs", 0)] {
        if let Some(count) = text.strip_suffix(unit) {
            return decimal(count.trim_end(), digits);
        }
    }
    let (before, last) = text.rsplit_once(':').map_or((None, text), |(before, last)| (Some(before), last));
    let Some(before) = before else {
        // Only plain seconds may have a unit.
        return decimal(last.strip_suffix('s').map_or(last, str::trim_end), 6);
    };
    let (hours, minutes) = before.split_once(':').unwrap_or(("0", before));
    let minutes = number(hours)?.saturating_mul(60).saturating_add(number(minutes)?);
    Some(minutes.saturating_mul(60_000_000).saturating_add(decimal(last, 6)?))
}

/// Parses a decimal number and multiplies it by ten to the power of `digits`. Later digits are dropped.
fn decimal(text: &str, digits: usize) -> Option<i128> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    number(decimals)?;
    let kept = &decimals[..decimals.len().min(digits)];
    let fraction = number(&format!("0{kept:0<digits$}"))?;
    Some(number(whole)?.saturating_mul(10_i128.pow(digits as u32)).saturating_add(fraction))
}

/// Parses digits. A number that does not fit becomes the largest that does.
fn number(digits: &str) -> Option<i128> {
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| digits.parse().unwrap_or(i128::MAX))
}

/// The names of the presets.
pub(super) fn offered_presets() -> SuggestedValues {
    SuggestedValues(|| PRESETS.iter().map(|preset| preset.name.to_owned()).collect())
}

/// The settings, as `KEY=`.
pub(super) fn offered_settings() -> SuggestedValues {
    SuggestedValues(|| KEYS.iter().map(|key| format!("{}=", key.name)).collect())
}

/// The keys of the settings.
pub(super) fn offered_keys() -> SuggestedValues {
    SuggestedValues(|| KEYS.iter().map(|key| key.name.to_owned()).collect())
}

/// The names of the tables in hitreg's own traces.
pub(super) fn offered_tables() -> SuggestedValues {
    SuggestedValues(|| TABLES.iter().map(|table| table.name.to_owned()).collect())
}

/// A parser that accepts any text and offers completions.
#[derive(Clone, Debug)]
pub(super) struct SuggestedValues(fn() -> Vec<String>);

impl TypedValueParser for SuggestedValues {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &std::ffi::OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new((self.0)().into_iter().map(PossibleValue::new)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_are_times_or_ticks() {
        assert_eq!(parse_bound("40:00"), Ok(PartBound::At(Micros(2_400_000_000))));
        assert_eq!(parse_bound("tick:90"), Ok(PartBound::Tick(Tick(90))));
        for wrong in ["", "1:", "tick:", "tick:-1", "x"] {
            assert!(parse_bound(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times_are_read_in_every_written_form() {
        let read = [
            ("40:00", 2_400_000_000),
            ("1:02:03.25", 3_723_250_000),
            ("75", 75_000_000),
            ("75s", 75_000_000),
            ("0.5", 500_000),
            ("1.55s", 1_550_000),
            ("1550ms", 1_550_000),
            ("0.125ms", 125),
            ("1550000us", 1_550_000),
            ("-7 µs", -7),
            ("1764000000.200 s", 1_764_000_000_200_000),
            ("1764000000200 ms", 1_764_000_000_200_000),
            ("-4.6", -4_600_000),
            ("-4.600 s", -4_600_000),
            ("-0:04.6", -4_600_000),
            ("-1:00:00", -3_600_000_000),
            ("-0.125ms", -125),
            ("2.4921875", 2_492_187),
            ("-2.4921875s", -2_492_187),
            ("0:02.4921875", 2_492_187),
            ("0.1239ms", 123),
            ("9223372036854.775807", i64::MAX),
            ("-9223372036854.775808s", i64::MIN),
            ("9223372036854775.807ms", i64::MAX),
        ];
        for (text, us) in read {
            assert_eq!(parse_time(text), Ok(Micros(us)), "{text}");
        }
        let wrong = [
            "", ":", "1:", "-", "--1", "- 1", "1:-2", "1:2:3:4", "1::2", "1e3", "x", "s", "ms", "1:00s", "1:00 s",
            "0.12345x", "1.", "1. 5",
        ];
        for wrong in wrong {
            assert!(parse_time(wrong).is_err_and(|why| why.contains("is not a time")), "{wrong}");
        }
    }

    #[test]
    fn times_outside_the_range_are_refused_as_too_far() {
        let nines = "9".repeat(60);
        let far = ["9223372036854.775808", "-9223372036854.775809", "153722867281:00", "9223372036854776ms", &nines];
        let clock = format!("{nines}:{nines}:{nines}");
        for text in far.into_iter().chain([&*clock]) {
            assert!(parse_time(text).is_err_and(|why| why.contains("is too far: write a time from -")), "{text}");
        }
    }

    #[test]
    fn every_printed_time_is_read() {
        for us in [0, 1, -1, 7_500_000, -4_600_000, 2_400_000_000, 1_764_000_000_200_000, i64::MIN, i64::MAX] {
            let at = Micros(us);
            assert_eq!(parse_time(&ClockTime(at).to_string()), Ok(at));
            let whole_ms = Micros(us / 1_000 * 1_000);
            let [seconds, ms] = [us.unsigned_abs() / 1_000_000, us.unsigned_abs() / 1_000 % 1_000];
            let sign = if us < 0 { "-" } else { "" };
            assert_eq!(parse_time(&format!("{sign}{seconds}.{ms:03} s")), Ok(whole_ms));
        }
    }
}
