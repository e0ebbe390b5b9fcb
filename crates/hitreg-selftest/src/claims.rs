//! Claims: the statements of the founding documents, each as a measurement. The documents are Bernier 2001, the latency
//! compensation page, and the NeREIDS live protocol.
//!
//! A claim consists of a file in `claims` of this crate and a measure. The file holds the statement, its source, a scene for
//! the real pipelines, the expected figures, and how to switch off the claimed mechanism. The measure reads only what
//! the pipelines put out. A claim that holds without its mechanism would prove nothing; a test checks that there is
//! none.

/// A claim of a theme. Its file in `claims` has the same name. A measure after `played` gets the session of the scene. A
/// measure after `of` gets the sessions of these variants of the scene. Any other measure plays its sessions itself.
macro_rules! claim {
    ($theme:ident, $name:literal, played $measure:path) => {
        claim!($theme, $name, |experiment| Ok($measure(&experiment.play()?)))
    };
    ($theme:ident, $name:literal, of [$($variant:literal),+] $measure:path) => {
        claim!($theme, $name, |experiment| Ok($measure([$(&experiment.play_variant($variant)?),+])))
    };
    ($theme:ident, $name:literal, $measure:expr) => {
        $crate::claims::Claim {
            name: $name,
            theme: $crate::claims::Theme::$theme,
            text: include_str!(concat!("../../claims/", $name, ".toml")),
            measure: $measure,
        }
    };
}

mod bitfield;
mod categories;
mod compensation;
mod display;
mod experiment;
mod nereids;
pub(crate) mod partial;
mod prediction;
mod script;
mod server;
mod watch;

use std::borrow::Borrow;

use serde::Serialize;

use crate::claims::experiment::Experiment;
use crate::claims::script::{ExpectedFigure, Script};
use hitreg_arena::MapTextError;
use hitreg_log::units::Micros;
use hitreg_netcode::session::SynthError;
use hitreg_netcode::settings::SettingError;

/// One statement of a founding document.
#[derive(Debug)]
pub struct Claim {
    /// The name of the claim and of its file.
    pub name: &'static str,
    /// The theme.
    pub theme: Theme,
    text: &'static str,
    measure: fn(&Experiment) -> Result<NamedFigures, ClaimError>,
}

/// The themes of claims, in the order in which they are listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Theme {
    /// Clients without prediction, prediction, weapons.
    Prediction,
    /// How the others are drawn.
    Display,
    /// Which player a shot hits.
    LagCompensation,
    /// Update rate, choke, clocks.
    Server,
    /// The NeREIDS live protocol.
    Nereids,
}

/// Whether a claim is measured with its mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MechanismState {
    /// With the mechanism.
    On,
    /// Without it; the claim must then fail.
    Off,
}

/// A measured claim.
#[derive(Clone, Debug, Serialize)]
pub struct ClaimResult {
    /// The claim's name.
    pub name: &'static str,
    /// The theme.
    pub theme: Theme,
    /// The statement.
    pub claim: String,
    /// The document and the place in it.
    pub source: String,
    /// How the claim is measured.
    pub how: String,
    /// The mechanism behind the claim.
    pub mechanism: String,
    /// How the mechanism is switched off.
    pub off: String,
    /// The expected and measured figures.
    pub figures: Vec<Figure>,
    /// Whether every figure is as expected.
    pub holds: bool,
}

/// One figure of a claim.
#[derive(Clone, Debug, Serialize)]
pub struct Figure {
    /// The name.
    pub figure: String,
    /// Its unit; empty for counts.
    pub unit: String,
    /// The document's value with its tolerance: `500 ± 20`, `at least 3`.
    pub expected: String,
    /// The reason for the tolerance.
    pub because: String,
    /// The measured value; `None` when it never occurred.
    pub measured: Option<f64>,
    /// Whether the value is as expected.
    pub holds: bool,
}

/// The errors of a claim's file.
#[derive(Debug, thiserror::Error)]
pub enum ClaimError {
    /// The text is not a valid claim.
    #[error("it is no claim: {0}")]
    Syntax(String),
    /// A setting is not available.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// The map is invalid.
    #[error("its map: {0}")]
    Map(#[from] MapTextError),
    /// Bots cannot play the scene.
    #[error(transparent)]
    Bots(#[from] SynthError),
    /// The measure needs a scene, but the claim has none.
    #[error("it has no scene to play")]
    NoScene,
    /// The measure needs a variant that the claim does not have.
    #[error("it has no variant `{0}`")]
    NoVariant(String),
    /// A variant changes the input of a player that the scene does not have.
    #[error("it has no player `{0}`")]
    NoPlayer(String),
    /// The claim expects a figure that the measure does not return.
    #[error("nothing measures `{0}`")]
    NoFigure(String),
    /// An expected figure has no bounds.
    #[error("`{0}` needs `is`, `at_least` or `at_most`")]
    NoBounds(String),
}

/// The measured figures by name.
type NamedFigures = Vec<(&'static str, Option<f64>)>;

fn count(number: usize) -> Option<f64> {
    Some(number as f64)
}

/// Percent.
fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| 100.0 * part as f64 / whole as f64)
}

fn greatest<T: Borrow<f64>>(values: impl IntoIterator<Item = T>) -> Option<f64> {
    values.into_iter().map(|value| *value.borrow()).reduce(f64::max)
}

fn least<T: Borrow<f64>>(values: impl IntoIterator<Item = T>) -> Option<f64> {
    values.into_iter().map(|value| *value.borrow()).reduce(f64::min)
}

fn median<T: Borrow<f64>>(values: impl IntoIterator<Item = T>) -> Option<f64> {
    let mut sorted: Vec<f64> = values.into_iter().map(|value| *value.borrow()).collect();
    sorted.sort_unstable_by(f64::total_cmp);
    hitreg_log::stats::percentile(&sorted, 50.0)
}

/// Returns the absolute changes between successive values.
fn changes(values: &[f64]) -> Vec<f64> {
    values.windows(2).map(|pair| (pair[1] - pair[0]).abs()).collect()
}

/// Returns the intervals between successive times, in ms.
fn intervals_ms(times: impl IntoIterator<Item = Micros>) -> Vec<f64> {
    let times: Vec<Micros> = times.into_iter().collect();
    times.windows(2).map(|pair| (pair[1] - pair[0]).as_ms_f64()).collect()
}

/// Returns all claims, by theme.
pub fn all() -> impl Iterator<Item = &'static Claim> {
    [
        prediction::CLAIMS,
        display::CLAIMS,
        compensation::CLAIMS,
        server::CLAIMS,
        nereids::CLAIMS,
        bitfield::CLAIMS,
        nereids::REDUNDANCY_CLAIMS,
        categories::CLAIMS,
    ]
    .into_iter()
    .flatten()
}

impl Claim {
    /// Measures the claim.
    ///
    /// # Errors
    /// When its file is invalid.
    pub fn check(&self, mechanism: MechanismState) -> Result<ClaimResult, ClaimError> {
        self.check_as(self.text, mechanism)
    }

    /// Measures the claim with another text.
    fn check_as(&self, text: &str, mechanism: MechanismState) -> Result<ClaimResult, ClaimError> {
        let script: Script = toml::from_str(text).map_err(|error| ClaimError::Syntax(error.to_string()))?;
        let experiment = Experiment { script: script.clone(), is_off: mechanism == MechanismState::Off };
        let measured = (self.measure)(&experiment)?;
        let figures: Vec<Figure> =
            script.expect.iter().map(|expect| expect.compare(&measured)).collect::<Result<_, _>>()?;
        Ok(ClaimResult {
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

    /// Returns the statement and its source, without measuring.
    ///
    /// # Errors
    /// When the claim's file is invalid.
    pub fn statement(&self) -> Result<(String, String), ClaimError> {
        let script: Script = toml::from_str(self.text).map_err(|error| ClaimError::Syntax(error.to_string()))?;
        Ok((script.claim, script.source))
    }
}

impl Theme {
    /// Returns the theme as a heading.
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

impl ExpectedFigure {
    fn compare(&self, measured: &NamedFigures) -> Result<Figure, ClaimError> {
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
