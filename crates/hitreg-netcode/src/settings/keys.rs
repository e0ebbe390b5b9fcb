//! The settings keys, with name, meaning, bounds and the source of the default.

use super::kind::{SettingText, ValueKind};
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
    /// The source of the default.
    pub source: &'static str,
    read: fn(&Settings) -> String,
    write: fn(&mut Settings, &str) -> bool,
}

impl SettingKey {
    /// Returns the value as text.
    pub fn get(&self, settings: &Settings) -> String {
        (self.read)(settings)
    }

    /// Returns the default as text.
    pub fn default(&self) -> String {
        self.get(&Settings::default())
    }

    pub(super) fn set(&self, settings: &mut Settings, text: &str) -> Result<(), SettingError> {
        match self.kind.accepts(text) && (self.write)(settings, text) {
            true => Ok(()),
            false => Err(SettingError::BadValue { key: self.name, value: text.to_owned(), takes: self.kind.takes() }),
        }
    }
}

macro_rules! kind {
    (flag) => {
        ValueKind::Flag
    };
    (Hz) => {
        ValueKind::Rate { min: 1, max: 1000 }
    };
    (one of $choice:ident) => {
        ValueKind::Choice($choice::NAMES)
    };
    ($min:literal..=$max:literal $unit:literal) => {
        ValueKind::Number { min: $min, max: $max, unit: $unit }
    };
}

/// Lists keys: each with its name, its field, the accepted values, the meaning, and the source of the default.
macro_rules! keys {
    ($($name:literal, $($field:ident).+, ($($kind:tt)+), $about:literal, $source:literal;)+) => {
        &[$(SettingKey {
            name: $name,
            about: $about,
            kind: kind!($($kind)+),
            source: $source,
            read: |settings| settings.$($field).+.text(),
            write: |settings, text| settings.$($field).+.replace(text),
        }),+]
    };
}

/// All keys, in the order in which they are listed.
pub static KEYS: &[SettingKey] = keys! {
    "prediction.mode", prediction.mode, (one of PredictionMode),
        "what a client predicts for its own player", "Half-Life: movement and weapons in shared code";
    "prediction.push_latency_ms", prediction.push_latency_ms, (-10000..=0 "ms"),
        "the maximum predicted time, negated; the default has no practical limit", "Bernier 2001, footnote 1";
    "prediction.smooth_ms", prediction.smooth_ms, (0..=1000 "ms"),
        "time over which a correction is smoothed on screen", "Source: cl_smoothtime 0.1; Quake III: cg_errordecay 100";
    "prediction.smooth_max_units", prediction.smooth_max_units, (0..=4096 "units"),
        "larger corrections are shown at once", "Half-Life client: 64 units is a teleport";
    "prediction.among", prediction.among, (one of Among),
        "the bodies among which acked predictions run, for the comparison with the server",
        "the client's knowledge in play; imports of real servers use acking-packet";
    "interpolation.mode", interpolation.mode, (one of InterpolationMode),
        "how other players are drawn", "Bernier 2001: position history";
    "interpolation.lerp_ms", interpolation.lerp_ms, (0..=1000 "ms"),
        "how far behind the client's clock other players are drawn", "Bernier 2001: 100 ms";
    "interpolation.on_missing", interpolation.on_missing, (one of OnMissing),
        "what is drawn if the next update has not arrived", "Source: cl_extrapolate 1";
    "interpolation.ease_ms", interpolation.ease_ms, (0..=1000 "ms"),
        "time in which entities of category Simulated move to their updated state, such as a falling apple",
        "NeREIDS: such discrepancies \"can be smoothed out with some tricks\"; by default they are shown";
    "extrapolation.max_ms", extrapolation_max_ms, (0..=1000 "ms"),
        "maximum extrapolation beyond the last update", "Bernier 2001: QuakeWorld's 100 ms";
    "teleport.distance_units", teleport_distance_units, (1..=65536 "units"),
        "a larger move between two snapshots counts as a teleport", "ReHLDS: 128 units; 64 in Source";
    "lag_compensation.enabled", lag_compensation.enabled, (flag),
        "whether shots are judged against the positions that the shooter saw", "Half-Life: sv_unlag 1";
    "lag_compensation.max_unlag_ms", lag_compensation.max_unlag_ms, (0..=1500 "ms"),
        "maximum rewind of a shot", "ReHLDS: sv_maxunlag 0.5";
    "lag_compensation.max_claim_error_ms", lag_compensation.max_claim_error_ms, (0..=1500 "ms"),
        "maximum difference between a usercmd's time and the measured latency; beyond it, the latency is used",
        "source-sdk-2013: 0.2 s";
    "server.tick_hz", server.tick_hz, (Hz),
        "simulation steps per second", "64 ticks, common in Source games";
    "server.update_hz", server.update_hz, (Hz),
        "snapshots per second to each client", "Bernier 2001: 20 updates per second";
    "server.rate_bytes_per_s", server.rate_bytes_per_s, (500..=10000000 "bytes/s"),
        "maximum rate to one client", "above what 32 players need; 2500 is Half-Life's modem setting";
    "server.command_credit_ms", server.command_credit_ms, (0..=5000 "ms"),
        "maximum simulated time of a client ahead of the server's clock", "ReHLDS: clockwindow 0.5; mvdsv: 500 ms";
    "server.on_lost_command", server.on_lost_command, (one of OnLost),
        "what runs instead of lost usercmds", "Half-Life and QuakeWorld repeat the last one";
    "server.schedule", server.schedule, (one of Schedule),
        "when usercmds run: on arrival, or on their own tick", "Bernier 2001: on arrival; NeREIDS: on their tick";
    "server.zone", server.zone, (one of Zone),
        "which entities a client receives: all, or only those that the map does not hide",
        "Bernier 2001: \"visible objects\"; NeREIDS: the zone of knowledge";
    "server.zone_units", server.zone_units, (64..=1000000 "units"),
        "maximum distance of entities that a client receives", "wider than any map";
    "client.cmd_hz", client.cmd_hz, (Hz),
        "usercmds per second", "as the tick rate";
    "client.frames", client.frames, (one of Frames),
        "how regular the frames of a bot's client are",
        "the others are fitted to demos of real players, docs/frames.md";
    "client.redundancy", client.redundancy, (1..=16 "usercmds"),
        "usercmds in each packet: the newest, and earlier ones again", "QuakeWorld: three in a packet";
    "client.clock", client.clock, (one of ClockMode),
        "how the client follows the server's clock", "Bernier 2001, footnote 6";
    "client.lead_ms", client.lead_ms, (0..=1000 "ms"),
        "how long before its tick a calibrated client's input should arrive",
        "NeREIDS: three ticks of 32 ms for redundancy; and 50 ms for jitter";
    "client.adaptive_redundancy", client.adaptive_redundancy, (flag),
        "whether redundancy follows bandwidth, loss and jitter, up to client.redundancy",
        "NeREIDS plans it, and sends 4:1 until then";
    "wire.sizes", wire.sizes, (one of Sizes),
        "sizes used for rates and in logs: real datagrams, or nominal sizes, as in logs without this key", "real sizes";
    "wire.message_max_bytes", wire.message_max_bytes, (400..=18960 "bytes"),
        "maximum size of a snapshot; other entities wait for the next one, by priority", "16 datagrams of 1,200 bytes";
};

/// A zone that contains everything, in units.
pub(super) const WIDEST_ZONE: i64 = 1_000_000;
/// 64 Hz.
const COMMON_TICK: Hz = Hz::from_milli(64_000).expect("a rate is above 0");
/// 20 Hz.
const BERNIERS_UPDATES: Hz = Hz::from_milli(20_000).expect("a rate is above 0");

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
