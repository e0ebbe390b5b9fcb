//! The statements of the founding documents, each as a measurement: Bernier 2001, the latency compensation page, and the
//! NeREIDS live protocol.
//!
//! A claim is a file in `fixtures/claims` (the statement, its source, a scene for the real pipelines, what is expected and
//! how the claimed mechanism is switched off) and a measure, which reads what the pipelines put out and nothing else.
//! A claim that holds with its mechanism switched off would show nothing; a test sees to it that none does.

/// A claim of a theme: its file in `fixtures/claims` is named as it is.
macro_rules! claim {
    ($theme:ident, $name:literal, $measure:expr) => {
        $crate::claims::Claim {
            name: $name,
            theme: $crate::claims::Theme::$theme,
            text: include_str!(concat!("../../claims/", $name, ".toml")),
            measure: $measure,
        }
    };
}

mod aiming;
mod bitfield;
mod categories;
mod compensation;
mod datagram;
mod display;
mod experiment;
mod forged;
mod nereids;
mod prediction;
mod protocol;
mod redundancy;
mod results;
mod script;
mod scripted_input;
mod updates;
mod watch;
mod without;
mod zones;

use serde::Serialize;

use experiment::Experiment;
use hitreg_arena::MapError;
use hitreg_netcode::session::SynthError;
use hitreg_netcode::settings::SettingError;
use script::{Expect, Script};

/// One statement of a founding document.
#[derive(Debug)]
pub struct Claim {
    /// Its name.
    pub name: &'static str,
    /// What it is about.
    pub theme: Theme,
    text: &'static str,
    measure: fn(&Experiment) -> Result<Figures, ClaimError>,
}

/// What claims are about, in the order in which they are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Theme {
    /// Dumb clients, prediction, weapons.
    Prediction,
    /// Where the others are drawn.
    Display,
    /// Whom a shot hits.
    LagCompensation,
    /// Update rate, choke, clock.
    Server,
    /// The NeREIDS live protocol.
    Nereids,
}

/// Whether a claim is measured with its mechanism or without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    /// As it is meant to be.
    On,
    /// Switched off, so that the claim must not hold.
    Off,
}

/// A claim and what came out.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// The claim's name.
    pub name: &'static str,
    /// What it is about.
    pub theme: Theme,
    /// The statement.
    pub claim: String,
    /// The document, and where in it.
    pub source: String,
    /// How it is measured.
    pub how: String,
    /// What brings the claimed about.
    pub mechanism: String,
    /// How that is switched off.
    pub off: String,
    /// What was expected and measured.
    pub figures: Vec<Figure>,
    /// Whether every figure is as expected.
    pub holds: bool,
}

/// One figure of a claim.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// What it is.
    pub figure: String,
    /// Its unit; empty for counts.
    pub unit: String,
    /// What the document says, with the tolerance: `500 ± 20`, `at least 3`.
    pub expected: String,
    /// Why the tolerance is what it is.
    pub because: String,
    /// What came out; `None` when it never happened.
    pub measured: Option<f64>,
    /// Whether that is as expected.
    pub holds: bool,
}

/// Why a claim cannot be measured: its file is wrong.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The text is not a claim.
    #[error("it is no claim: {0}")]
    Syntax(String),
    /// A setting is not available.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The map cannot be played on.
    #[error("its map: {0}")]
    Map(#[from] MapError),
    /// Bots cannot play it.
    #[error(transparent)]
    Bots(#[from] SynthError),
    /// It is to be played, and has nothing to play.
    #[error("it has no scene to play")]
    NoScene,
    /// The measure wants a variant that is not there.
    #[error("it has no variant `{0}`")]
    NoVariant(String),
    /// A variant changes the input of nobody.
    #[error("it has no player `{0}`")]
    NoPlayer(String),
    /// A figure is expected that is not measured.
    #[error("nothing measures `{0}`")]
    NoFigure(String),
    /// A figure is expected to be nothing in particular.
    #[error("`{0}` needs `is`, `at_least` or `at_most`")]
    NoBounds(String),
}

/// Figures by name, as a measure puts them out.
type Figures = Vec<(&'static str, Option<f64>)>;

fn count(number: usize) -> Option<f64> {
    Some(number as f64)
}

fn greatest(values: &[f64]) -> Option<f64> {
    values.iter().copied().reduce(f64::max)
}

fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    hitreg_log::stats::percentile(&sorted, 50.0)
}

/// All claims, by theme.
pub fn all() -> impl Iterator<Item = &'static Claim> {
    [
        prediction::CLAIMS,
        display::CLAIMS,
        compensation::CLAIMS,
        aiming::CLAIMS,
        updates::CLAIMS,
        zones::CLAIMS,
        nereids::CLAIMS,
        protocol::CLAIMS,
        bitfield::CLAIMS,
        redundancy::CLAIMS,
        categories::CLAIMS,
    ]
    .into_iter()
    .flatten()
}

impl Claim {
    /// Measures it.
    ///
    /// # Errors
    /// When its file is wrong.
    pub fn check(&self, mechanism: Mechanism) -> Result<Checked, ClaimError> {
        self.check_as(self.text, mechanism)
    }

    /// Measures it by a text that need not be its own.
    fn check_as(&self, text: &str, mechanism: Mechanism) -> Result<Checked, ClaimError> {
        let script: Script =
            hitreg_log::serial::from_toml(text).map_err(|error| ClaimError::Syntax(error.to_string()))?;
        let experiment = Experiment::new(script.clone(), mechanism == Mechanism::Off);
        let measured = (self.measure)(&experiment)?;
        let figures: Vec<Figure> =
            script.expect.iter().map(|expect| expect.held_against(&measured)).collect::<Result<_, _>>()?;
        Ok(Checked {
            name: self.name,
            theme: self.theme,
            holds: !figures.is_empty() && figures.iter().all(|figure| figure.holds),
            claim: script.claim,
            source: script.source,
            how: script.how,
            mechanism: script.mechanism,
            off: script.off.how,
            figures,
        })
    }

    /// The statement and its source, without measuring anything.
    ///
    /// # Errors
    /// When its file is wrong.
    pub fn statement(&self) -> Result<(String, String), ClaimError> {
        let script: Script =
            hitreg_log::serial::from_toml(self.text).map_err(|error| ClaimError::Syntax(error.to_string()))?;
        Ok((script.claim, script.source))
    }
}

impl Theme {
    /// As a heading.
    pub fn title(self) -> &'static str {
        match self {
            Theme::Prediction => "Prediction",
            Theme::Display => "Display of the others",
            Theme::LagCompensation => "Lag compensation",
            Theme::Server => "Updates and clocks",
            Theme::Nereids => "The NeREIDS live protocol",
        }
    }
}

impl Expect {
    fn held_against(&self, measured: &Figures) -> Result<Figure, ClaimError> {
        let found = measured.iter().find(|(name, _)| *name == self.figure);
        let (_, measured) = *found.ok_or_else(|| ClaimError::NoFigure(self.figure.clone()))?;
        let low = self.at_least.or(self.is.map(|is| is - self.within));
        let high = self.at_most.or(self.is.map(|is| is + self.within));
        let expected = match (self.is, self.at_least, self.at_most) {
            (Some(is), None, None) if self.within == 0.0 => format!("{is}"),
            (Some(is), None, None) => format!("{is} ± {}", self.within),
            (None, Some(least), Some(most)) => format!("{least} to {most}"),
            (None, Some(least), None) => format!("at least {least}"),
            (None, None, Some(most)) => format!("at most {most}"),
            _ => return Err(ClaimError::NoBounds(self.figure.clone())),
        };
        let holds = measured.is_some_and(|value| {
            !value.is_nan() && low.is_none_or(|low| value >= low) && high.is_none_or(|high| value <= high)
        });
        Ok(Figure {
            figure: self.figure.clone(),
            unit: self.unit.clone(),
            expected,
            because: self.because.clone(),
            measured,
            holds,
        })
    }
}
