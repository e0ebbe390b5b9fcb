//! The settings keys, with name, meaning, bounds, default and the source of the default.

use super::kind::{SettingValue, ValueKind};
use super::{
    Among, ClientSettings, ClockMode, Frames, InterpolationMode, InterpolationSettings, LagCompensation, OnLost,
    OnMissing, Players, PredictionMode, PredictionSettings, Schedule, ServerSettings, SettingError, Settings, Sizes,
    WireSettings, Zone,
};
use hitreg_log::units::Hz;

/// One setting's key.
#[derive(Debug)]
pub struct SettingKey {
    /// The dotted name.
    pub name: &'static str,
    /// The meaning.
    pub about: &'static str,
    /// The accepted values.
    pub kind: ValueKind,
    /// The default as text.
    pub default: &'static str,
    /// The source of the default.
    pub source: &'static str,
    read: fn(&Settings) -> SettingValue,
    write: fn(&mut Settings, SettingValue) -> bool,
}

impl SettingKey {
    /// Returns the value as text.
    pub fn get(&self, settings: &Settings) -> String {
        match (self.read)(settings) {
            SettingValue::Flag(flag) => flag.to_string(),
            SettingValue::Number(number) => number.to_string(),
            SettingValue::Rate(hz) => hz.to_string(),
            SettingValue::Word(word) => word.to_owned(),
        }
    }

    pub(super) fn nearest(&self, text: &str) -> Option<String> {
        self.kind.nearest(text)
    }

    pub(super) fn set(&self, settings: &mut Settings, text: &str) -> Result<(), SettingError> {
        let accepted = self.kind.parse(text).is_some_and(|value| (self.write)(settings, value));
        if accepted {
            Ok(())
        } else {
            Err(SettingError::BadValue { key: self.name, value: text.to_owned(), takes: self.kind.takes() })
        }
    }
}

macro_rules! number {
    ($name:literal, $($field:ident).+, $min:literal..=$max:literal $unit:literal, $default:literal, $about:literal, $source:literal) => {
        SettingKey {
            name: $name,
            about: $about,
            kind: ValueKind::Number { min: $min, max: $max, unit: $unit },
            default: $default,
            source: $source,
            read: |s| SettingValue::Number(s.$($field).+),
            write: |s, value| match value {
                SettingValue::Number(number) => {
                    s.$($field).+ = number;
                    true
                }
                SettingValue::Flag(_) | SettingValue::Rate(_) | SettingValue::Word(_) => false,
            },
        }
    };
}

macro_rules! rate {
    ($name:literal, $($field:ident).+, $default:literal, $about:literal, $source:literal) => {
        SettingKey {
            name: $name,
            about: $about,
            kind: ValueKind::Rate { min: 1, max: 1000 },
            default: $default,
            source: $source,
            read: |s| SettingValue::Rate(s.$($field).+),
            write: |s, value| match value {
                SettingValue::Rate(hz) => {
                    s.$($field).+ = hz;
                    true
                }
                SettingValue::Flag(_) | SettingValue::Number(_) | SettingValue::Word(_) => false,
            },
        }
    };
}

macro_rules! flag {
    ($name:literal, $($field:ident).+, $default:literal, $about:literal, $source:literal) => {
        SettingKey {
            name: $name,
            about: $about,
            kind: ValueKind::Flag,
            default: $default,
            source: $source,
            read: |s| SettingValue::Flag(s.$($field).+),
            write: |s, value| match value {
                SettingValue::Flag(flag) => {
                    s.$($field).+ = flag;
                    true
                }
                SettingValue::Number(_) | SettingValue::Rate(_) | SettingValue::Word(_) => false,
            },
        }
    };
}

macro_rules! word {
    ($name:literal, $($field:ident).+, $choice:ident, $default:literal, $about:literal, $source:literal) => {
        SettingKey {
            name: $name,
            about: $about,
            kind: ValueKind::Choice($choice::WORDS),
            default: $default,
            source: $source,
            read: |s| SettingValue::Word(s.$($field).+.word()),
            write: |s, value| match value {
                SettingValue::Word(word) => match $choice::from_word(word) {
                    Some(choice) => {
                        s.$($field).+ = choice;
                        true
                    }
                    None => false,
                },
                SettingValue::Flag(_) | SettingValue::Number(_) | SettingValue::Rate(_) => false,
            },
        }
    };
}

/// All keys, in the order in which they are listed.
pub static KEYS: &[SettingKey] = &[
    word!(
        "prediction.mode",
        prediction.mode,
        PredictionMode,
        "weapons",
        "what a client predicts for its own player",
        "Half-Life: movement and weapons in shared code"
    ),
    number!("prediction.push_latency_ms", prediction.push_latency_ms, -10000..=0 "ms", "-10000",
        "the maximum predicted time, negated; the default has no practical limit", "Bernier 2001, footnote 1"),
    number!("prediction.smooth_ms", prediction.smooth_ms, 0..=1000 "ms", "100",
        "time over which a correction is smoothed on screen", "Source: cl_smoothtime 0.1; Quake III: cg_errordecay 100"),
    number!("prediction.smooth_max_units", prediction.smooth_max_units, 0..=4096 "units", "64",
        "larger corrections are shown at once", "Half-Life client: 64 units is a teleport"),
    word!(
        "prediction.among",
        prediction.among,
        Among,
        "known",
        "the bodies among which acked predictions run, for the comparison with the server",
        "the client's knowledge in play; imports of real servers use acking-packet"
    ),
    word!(
        "interpolation.mode",
        interpolation.mode,
        InterpolationMode,
        "history",
        "how other players are drawn",
        "Bernier 2001: position history"
    ),
    number!("interpolation.lerp_ms", interpolation.lerp_ms, 0..=1000 "ms", "100",
        "how far behind the client's clock other players are drawn", "Bernier 2001: 100 ms"),
    word!(
        "interpolation.on_missing",
        interpolation.on_missing,
        OnMissing,
        "extrapolate",
        "what is drawn if the next update has not arrived",
        "Source: cl_extrapolate 1"
    ),
    number!("interpolation.ease_ms", interpolation.ease_ms, 0..=1000 "ms", "0",
        "time in which entities of category Simulated move to their updated state, such as a falling apple",
        "NeREIDS: such discrepancies \"can be smoothed out with some tricks\"; by default they are shown"),
    number!("extrapolation.max_ms", extrapolation_max_ms, 0..=1000 "ms", "100",
        "maximum extrapolation beyond the last update", "Bernier 2001: QuakeWorld's 100 ms"),
    number!("teleport.distance_units", teleport_distance_units, 1..=65536 "units", "128",
        "a larger move between two snapshots counts as a teleport", "ReHLDS: 128 units; 64 in Source"),
    flag!(
        "lag_compensation.enabled",
        lag_compensation.enabled,
        "true",
        "whether shots are judged against the positions that the shooter saw",
        "Half-Life: sv_unlag 1"
    ),
    number!("lag_compensation.max_unlag_ms", lag_compensation.max_unlag_ms, 0..=1500 "ms", "500",
        "maximum rewind of a shot", "ReHLDS: sv_maxunlag 0.5"),
    number!("lag_compensation.max_claim_error_ms", lag_compensation.max_claim_error_ms, 0..=1500 "ms", "200",
        "maximum difference between a usercmd's time and the measured latency; beyond it, the latency is used",
        "source-sdk-2013: 0.2 s"),
    rate!("server.tick_hz", server.tick_hz, "64", "simulation steps per second", "64 ticks, common in Source games"),
    rate!(
        "server.update_hz",
        server.update_hz,
        "20",
        "snapshots per second to each client",
        "Bernier 2001: 20 updates per second"
    ),
    number!("server.rate_bytes_per_s", server.rate_bytes_per_s, 500..=10000000 "bytes/s", "100000",
        "maximum rate to one client", "above what 32 players need; 2500 is Half-Life's modem setting"),
    number!("server.command_credit_ms", server.command_credit_ms, 0..=5000 "ms", "500",
        "maximum simulated time of a client ahead of the server's clock",
        "ReHLDS: clockwindow 0.5; mvdsv: 500 ms"),
    word!(
        "server.on_lost_command",
        server.on_lost_command,
        OnLost,
        "repeat",
        "what runs instead of lost usercmds",
        "Half-Life and QuakeWorld repeat the last one"
    ),
    word!(
        "server.schedule",
        server.schedule,
        Schedule,
        "arrival",
        "when usercmds run: on arrival, or on their own tick",
        "Bernier 2001: on arrival; NeREIDS: on their tick"
    ),
    word!(
        "server.zone",
        server.zone,
        Zone,
        "everything",
        "which entities a client receives: all, or only those that the map does not hide",
        "Bernier 2001: \"visible objects\"; NeREIDS: the zone of knowledge"
    ),
    number!("server.zone_units", server.zone_units, 64..=1000000 "units", "1000000",
        "maximum distance of entities that a client receives", "wider than any map"),
    rate!("client.cmd_hz", client.cmd_hz, "64", "usercmds per second", "as the tick rate"),
    word!(
        "client.frames",
        client.frames,
        Frames,
        "regular",
        "how regular the frames of a bot's client are",
        "the others are fitted to demos of real players, docs/frames.md"
    ),
    number!("client.redundancy", client.redundancy, 1..=16 "usercmds", "3",
        "usercmds in each packet: the newest, and earlier ones again", "QuakeWorld: three in a packet"),
    word!(
        "client.clock",
        client.clock,
        ClockMode,
        "adopt",
        "how the client follows the server's clock",
        "Bernier 2001, footnote 6"
    ),
    number!("client.lead_ms", client.lead_ms, 0..=1000 "ms", "146",
        "how long before its tick a calibrated client's input should arrive",
        "NeREIDS: three ticks of 32 ms for redundancy; and 50 ms for jitter"),
    flag!(
        "client.adaptive_redundancy",
        client.adaptive_redundancy,
        "false",
        "whether redundancy follows bandwidth, loss and jitter, up to client.redundancy",
        "NeREIDS plans it, and sends 4:1 until then"
    ),
    word!(
        "wire.sizes",
        wire.sizes,
        Sizes,
        "datagrams",
        "sizes used for rates and in logs: real datagrams, or nominal sizes, as in logs without this key",
        "real sizes"
    ),
    number!("wire.message_max_bytes", wire.message_max_bytes, 400..=18960 "bytes", "18960",
        "maximum size of a snapshot; other entities wait for the next one, by priority",
        "16 datagrams of 1,200 bytes"),
];

/// A zone that contains everything, in units.
pub(super) const WIDEST_ZONE: i64 = 1_000_000;
/// 64 Hz.
const COMMON_TICK: Hz = hz(64_000);
/// 20 Hz.
const BERNIERS_UPDATES: Hz = hz(20_000);

const fn hz(milli: i64) -> Hz {
    match Hz::from_milli(milli) {
        Some(hz) => hz,
        None => panic!("a rate is above 0"),
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            prediction: PredictionSettings {
                mode: PredictionMode::Weapons,
                push_latency_ms: -10_000,
                smooth_ms: 100,
                smooth_max_units: 64,
                among: Among::Known,
            },
            interpolation: InterpolationSettings {
                mode: InterpolationMode::History,
                lerp_ms: 100,
                on_missing: OnMissing::Extrapolate,
                ease_ms: 0,
            },
            extrapolation_max_ms: 100,
            teleport_distance_units: 128,
            lag_compensation: LagCompensation { enabled: true, max_unlag_ms: 500, max_claim_error_ms: 200 },
            server: ServerSettings {
                tick_hz: COMMON_TICK,
                update_hz: BERNIERS_UPDATES,
                rate_bytes_per_s: 100_000,
                command_credit_ms: 500,
                on_lost_command: OnLost::Repeat,
                schedule: Schedule::Arrival,
                zone: Zone::Everything,
                zone_units: WIDEST_ZONE,
            },
            client: ClientSettings {
                cmd_hz: COMMON_TICK,
                frames: Frames::Regular,
                redundancy: 3,
                clock: ClockMode::Adopt,
                lead_ms: 146,
                adaptive_redundancy: false,
            },
            wire: WireSettings { sizes: Sizes::Datagrams, message_max_bytes: 18_960 },
            players: Players::default(),
        }
    }
}
