//! The settings of a session: typed values under dotted names, each with bounds, a default and the source of the
//! default. A log carries all of them; a replay may change some.

mod choices;
mod engine_names;
mod keys;
mod kind;
mod known;
mod nearest;
mod players;
mod preset;

pub use choices::{
    Among, ClockMode, Frames, InterpolationMode, OnLost, OnMissing, PredictionMode, Schedule, Sizes, Zone,
};
pub use engine_names::{ENGINE_NAMES, EngineName, engine_names};
pub use keys::{KEYS, Key};
pub use kind::Kind;
pub(crate) use players::is_of_players;
pub use players::{Players, without_players};
pub use preset::{PRESETS, Preset};

use engine_names::our_name;
use hitreg_log::record::split_of_player;
use hitreg_log::units::{Hz, PlayerId};
use nearest::nearest;

/// Keys that logs of format 2.1 did not have at first; what they are by default is what there was without them.
const LATER: &[&str] = &["client.frames", "interpolation.ease_ms", "server.zone", "server.zone_units"];

/// Every setting, typed. [`KEYS`] says what each means and where its default comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// How a client runs ahead of the server.
    pub prediction: Prediction,
    /// How a client draws the others.
    pub interpolation: Interpolation,
    /// How far drawing may run ahead of what is known, in ms.
    pub extrapolation_max_ms: i64,
    /// A body that moves farther than this between two snapshots was teleported, in units.
    pub teleport_distance_units: i64,
    /// How the server judges shots.
    pub lag_compensation: LagCompensation,
    /// How the server runs.
    pub server: Server,
    /// How clients run.
    pub client: Client,
    /// How packets and snapshots travel.
    pub wire: Wire,
    /// What single players have otherwise, by the keys' own names: `p2.interpolation.lerp_ms`. [`Settings::of_player`] has it
    /// applied.
    pub players: Players,
}

/// How a client runs ahead of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prediction {
    /// What is predicted.
    pub mode: PredictionMode,
    /// Bernier's `pushlatency`: minus the most milliseconds that are predicted.
    pub push_latency_ms: i64,
    /// How long a correction takes to fade from view, in ms.
    pub smooth_ms: i64,
    /// A correction larger than this is shown at once, in units.
    pub smooth_max_units: i64,
    /// Among which bodies an acked prediction is held against the truth.
    pub among: Among,
}

/// How a client draws the others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpolation {
    /// From what.
    pub mode: InterpolationMode,
    /// How far behind the client's clock, in ms.
    pub lerp_ms: i64,
    /// What is drawn when the next update is not there yet.
    pub on_missing: OnMissing,
    /// How long what is Simulated takes from where it was drawn to where an update has it, in ms.
    pub ease_ms: i64,
}

/// How the server judges shots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LagCompensation {
    /// Whether against the past that the shooter saw.
    pub enabled: bool,
    /// How far back at most, in ms.
    pub max_unlag_ms: i64,
    /// How far a usercmd's time may be from what the measured latency implies, in ms.
    pub max_claim_error_ms: i64,
}

/// How the server runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Server {
    /// Ticks per second.
    pub tick_hz: Hz,
    /// Snapshots per second to each client.
    pub update_hz: Hz,
    /// Bytes per second to each client.
    pub rate_bytes_per_s: i64,
    /// How much simulated time a client may be ahead of the server's clock, in ms.
    pub command_credit_ms: i64,
    /// What runs in place of usercmds that never came.
    pub on_lost_command: OnLost,
    /// When usercmds run.
    pub schedule: Schedule,
    /// Which entities a client is told of.
    pub zone: Zone,
    /// None that is farther from the client's avatar than this, in units.
    pub zone_units: i64,
}

/// How clients run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Client {
    /// Usercmds per second.
    pub cmd_hz: Hz,
    /// How regularly a bot's client makes its frames.
    pub frames: Frames,
    /// Usercmds in each packet: the newest and repeats of those before it.
    pub redundancy: i64,
    /// How the client follows the server's clock.
    pub clock: ClockMode,
    /// How long before its tick a calibrated client's input is to arrive, in ms.
    pub lead_ms: i64,
    /// Whether the redundancy follows bandwidth, loss and jitter; [`Client::redundancy`] is then the most.
    pub adaptive_redundancy: bool,
}

/// How packets and snapshots travel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wire {
    /// Which sizes count: for the server's rate, for redundancy, and in logs.
    pub sizes: Sizes,
    /// No snapshot is longer than so many bytes; what does not fit waits for the next one.
    pub message_max_bytes: i64,
}

/// A setting that is not available.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// No such key.
    #[error("no setting is called `{key}`{hint}; `hitreg settings` lists them all")]
    UnknownKey {
        /// The word given.
        key: String,
        /// The nearest key, ready to be read.
        hint: String,
    },
    /// Not a `key=value`.
    #[error("`{text}` is not of the form key=value, such as interpolation.lerp_ms=100")]
    NotAPair {
        /// The words given.
        text: String,
    },
    /// A key that is the same for all players.
    #[error("`{key}` is the same for all players: {own} may be one player's own", own = players::OWN.join("*, "))]
    NotOfPlayers {
        /// The key.
        key: String,
    },
    /// A player that the session does not have.
    #[error("there is no player p{player} to set anything for: the session has {}", named(*players))]
    NoSuchPlayer {
        /// The player.
        player: PlayerId,
        /// How many there are.
        players: usize,
    },
    /// A value that the key cannot have.
    #[error("`{key}` cannot be `{value}`: it takes {takes}")]
    BadValue {
        /// The key.
        key: &'static str,
        /// The value given.
        value: String,
        /// What it takes.
        takes: String,
    },
    /// No such preset.
    #[error("no preset is called `{name}`{hint}; there are {known}")]
    UnknownPreset {
        /// The word given.
        name: String,
        /// The nearest name, ready to be read.
        hint: String,
        /// All names.
        known: String,
    },
}

fn named(players: usize) -> String {
    match players {
        0 => "none".to_owned(),
        1 => "one player, p0".to_owned(),
        _ => format!("{players} players, p0 to p{}", players - 1),
    }
}

impl Server {
    /// Whether there is anything that a client may not be told of.
    pub(crate) fn bounds_zones(&self) -> bool {
        self.zone != Zone::Everything || self.zone_units < keys::WIDEST_ZONE
    }
}

impl Settings {
    /// The settings of a preset.
    ///
    /// # Errors
    /// When no preset has that name.
    pub fn preset(name: &str) -> Result<Settings, SettingError> {
        let mut settings = Settings::default();
        settings.apply_preset(name)?;
        Ok(settings)
    }

    /// The settings of a preset in place of these, but for how packets travel: that is the recording's business and no
    /// preset's.
    ///
    /// # Errors
    /// When no preset has that name.
    pub fn under_preset(&self, name: &str) -> Result<Settings, SettingError> {
        Ok(Settings { wire: self.wire.clone(), ..Settings::preset(name)? })
    }

    /// The keys of which these settings and others have different values.
    pub fn keys_unlike(&self, other: &Settings) -> Vec<String> {
        let (own, others) = (self.to_pairs(), other.to_pairs());
        let lacking = |from: &[(String, String)], pairs: &[(String, String)]| -> Vec<String> {
            pairs.iter().filter(|pair| !from.contains(pair)).map(|(key, _)| key.clone()).collect()
        };
        let mut unlike = lacking(&others, &own);
        unlike.extend(lacking(&own, &others).into_iter().filter(|key| !own.iter().any(|(other, _)| other == key)));
        unlike
    }

    /// How far behind its clock a client draws the others, in ms: nothing where it does not interpolate.
    pub fn drawn_behind_ms(&self) -> i64 {
        match self.interpolation.mode {
            InterpolationMode::TwoPoint | InterpolationMode::LastRendered | InterpolationMode::History => {
                self.interpolation.lerp_ms
            }
            InterpolationMode::Off | InterpolationMode::Extrapolate | InterpolationMode::Category => 0,
        }
    }

    /// Whether clients run weapons in their prediction.
    pub fn predicts_weapons(&self) -> bool {
        self.prediction.mode == PredictionMode::Weapons
    }

    /// Sets what a preset says, and leaves the rest as it is.
    ///
    /// # Errors
    /// When no preset has that name.
    pub fn apply_preset(&mut self, name: &str) -> Result<(), SettingError> {
        let preset = PRESETS.iter().find(|p| p.name == name).ok_or_else(|| SettingError::UnknownPreset {
            name: name.to_owned(),
            hint: nearest(name, PRESETS.iter().map(|p| p.name)),
            known: PRESETS.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
        })?;
        for (key, value, _) in preset.values {
            self.set(key, value)?;
        }
        Ok(())
    }

    /// Sets one key from text.
    ///
    /// # Errors
    /// When there is no such key, or it cannot have that value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingError> {
        if let Some((player, key)) = split_of_player(key) {
            return self.set_of_player(player, key, value);
        }
        let found = KEYS.iter().find(|k| k.name == key).ok_or_else(|| SettingError::UnknownKey {
            key: key.to_owned(),
            hint: our_name(key).unwrap_or_else(|| nearest(key, KEYS.iter().map(|k| k.name))),
        })?;
        found.set(self, value)
    }

    /// The value that a key takes which is nearest to a text; `None` where there is no such key, or nothing is near.
    pub fn nearest(key: &str, text: &str) -> Option<String> {
        KEYS.iter().find(|known| known.name == key)?.nearest(text)
    }

    /// Sets one key from `key=value`.
    ///
    /// # Errors
    /// As [`Settings::set`], and when there is no `=`.
    pub fn set_pair(&mut self, pair: &str) -> Result<(), SettingError> {
        let (key, value) = Settings::pair(pair)?;
        self.set(key, value)
    }

    /// The key and the value of `key=value`, whatever they are.
    ///
    /// # Errors
    /// When there is no `=`.
    pub fn pair(text: &str) -> Result<(&str, &str), SettingError> {
        let pair = text.split_once('=').ok_or_else(|| SettingError::NotAPair { text: text.to_owned() })?;
        Ok((pair.0.trim(), pair.1.trim()))
    }

    /// All settings as text, in the order of [`KEYS`], and then those of single players; what a log carries. Without those of
    /// `LATER` that are as in logs from before them, which stay the same bytes so.
    pub fn to_pairs(&self) -> Vec<(String, String)> {
        let pairs = KEYS.iter().map(|key| (key, key.get(self)));
        let told = pairs.filter(|(key, value)| !LATER.contains(&key.name) || value != key.default);
        told.map(|(key, value)| (key.name.to_owned(), value)).chain(self.players.pairs()).collect()
    }

    /// Settings from a log's pairs. Keys that the log does not have keep their defaults; but a log that does not say whose
    /// sizes count is from before datagrams were made in virtual time, and keeps to the nominal ones. Keys that this build
    /// does not know are passed over; [`Settings::unknown`] names them.
    ///
    /// # Errors
    /// When a key that this build knows has a value that it does not know.
    pub fn from_pairs(pairs: &[(String, String)]) -> Result<Settings, SettingError> {
        let mut settings = Settings::default();
        settings.wire.sizes = Sizes::Nominal;
        for (key, value) in pairs {
            if Settings::is_known(key) {
                settings.set(key, value)?;
            }
        }
        Ok(settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_setting_survives_the_way_through_text() {
        for preset in PRESETS {
            let settings = Settings::preset(preset.name).expect(preset.name);
            assert_eq!(Settings::from_pairs(&settings.to_pairs()), Ok(settings));
        }
    }

    #[test]
    fn the_default_is_what_the_keys_say() {
        let settings = Settings::default();
        for key in KEYS {
            assert_eq!(key.get(&settings), key.default, "{}", key.name);
        }
    }

    #[test]
    fn wrong_keys_and_values_are_told_what_would_be_right() {
        let mut settings = Settings::default();
        let unknown = settings.set("interpolation.lerp", "100").unwrap_err().to_string();
        assert!(unknown.contains("did you mean `interpolation.lerp_ms`?"), "{unknown}");
        let range = settings.set_pair("server.tick_hz=0").unwrap_err().to_string();
        assert_eq!(
            range,
            "`server.tick_hz` cannot be `0`: it takes a number of Hz from 1 to 1000, with at most three decimals"
        );
        let word = settings.set_pair("interpolation.mode=linear").unwrap_err().to_string();
        assert!(word.contains("off, extrapolate, two-point, last-rendered, history"), "{word}");
        assert_eq!(settings, Settings::default());
    }
}
