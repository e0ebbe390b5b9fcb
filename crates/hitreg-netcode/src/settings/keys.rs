//! The settings. One declaration gives each its type, accepted values, default, meaning, and the source of the default.

use super::kind::{SettingText, ValueKind};
use super::{
    Among, ClockMode, Frames, InterpolationMode, OnLost, OnMissing, Players, PredictionMode, Schedule, SettingError,
    Sizes, Zone,
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

/// Returns the accepted values of a setting by its type.
macro_rules! kind {
    (bool) => {
        ValueKind::Flag
    };
    (Hz) => {
        ValueKind::Rate { min: 1, max: 1000, unit: "Hz" }
    };
    (i64 $min:literal..=$max:literal $unit:literal) => {
        ValueKind::Number { min: $min, max: $max, unit: $unit }
    };
    ($choice:ident) => {
        ValueKind::Choice { choices: $choice::NAMES }
    };
}

/// Declares all settings in groups: [`Settings`] with a structure for each group, the defaults, and [`KEYS`]. A setting
/// has a type, the bounds and the unit of a number, a default, a meaning, and the source of the default.
macro_rules! settings {
    ($(
        $(#[$doc:meta])* $group:ident: $type:ident {
            $(
                $field:ident: $value:ident $(($min:literal..=$max:literal $unit:literal))? = $default:expr,
                $about:literal, $source:literal;
            )+
        }
    )+) => {
        /// All settings, typed. [`KEYS`] holds the meaning of each and the source of its default.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Settings {
            $( $(#[$doc])* pub $group: $type, )+
            /// Single players' own settings, with keys such as `p2.interpolation.lerp_ms`. [`Settings::of_player`]
            /// applies them.
            pub players: Players,
        }

        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $type {
                $(
                    #[doc = concat!("`", stringify!($group), ".", stringify!($field), "`: ", $about, ".")]
                    pub $field: $value,
                )+
            }

            impl Default for $type {
                fn default() -> $type {
                    $type { $($field: $default,)+ }
                }
            }
        )+

        /// All keys, in the order in which they are listed.
        pub static KEYS: &[SettingKey] = &[$($(
            SettingKey {
                name: concat!(stringify!($group), ".", stringify!($field)),
                about: $about,
                kind: kind!($value $($min..=$max $unit)?),
                source: $source,
                read: |settings| settings.$group.$field.text(),
                write: |settings, text| settings.$group.$field.replace(text),
            },
        )+)+];
    };
}

/// A zone that contains everything, in units.
pub(super) const WIDEST_ZONE: i64 = 1_000_000;
/// 64 Hz.
const COMMON_TICK: Hz = Hz::from_milli(64_000).expect("a rate is above 0");
/// 20 Hz.
const BERNIERS_UPDATES: Hz = Hz::from_milli(20_000).expect("a rate is above 0");

settings! {
    /// Settings of prediction.
    prediction: PredictionSettings {
        mode: PredictionMode = PredictionMode::Weapons,
            "what a client predicts for its own player", "Half-Life: movement and weapons in shared code";
        push_latency_ms: i64 (-10000..=0 "ms") = -10_000,
            "the maximum predicted time, negated; the default has no practical limit", "Bernier 2001, footnote 1";
        smooth_ms: i64 (0..=1000 "ms") = 100,
            "time over which a correction is smoothed on screen",
            "Source: cl_smoothtime 0.1; Quake III: cg_errordecay 100";
        smooth_max_units: i64 (0..=4096 "units") = 64,
            "larger corrections are shown at once", "Half-Life client: 64 units is a teleport";
        among: Among = Among::Known,
            "the bodies among which acked predictions run, for the comparison with the server",
            "the client's knowledge in play; imports of real servers use acking-packet";
    }
    /// Settings of drawing the others.
    interpolation: InterpolationSettings {
        mode: InterpolationMode = InterpolationMode::History,
            "how other players are drawn", "Bernier 2001: position history";
        lerp_ms: i64 (0..=1000 "ms") = 100,
            "how far behind the client's clock other players are drawn", "Bernier 2001: 100 ms";
        on_missing: OnMissing = OnMissing::Extrapolate,
            "what is drawn if the next update has not arrived", "Source: cl_extrapolate 1";
        ease_ms: i64 (0..=1000 "ms") = 0,
            "time in which entities of category Simulated move to their updated state, such as a falling apple",
            "NeREIDS: such discrepancies \"can be smoothed out with some tricks\"; by default they are shown";
    }
    /// Settings of extrapolation.
    extrapolation: ExtrapolationSettings {
        max_ms: i64 (0..=1000 "ms") = 100,
            "maximum extrapolation beyond the last update", "Bernier 2001: QuakeWorld's 100 ms";
    }
    /// Settings of teleports.
    teleport: TeleportSettings {
        distance_units: i64 (1..=65536 "units") = 128,
            "a larger move between two snapshots counts as a teleport", "ReHLDS: 128 units; 64 in Source";
    }
    /// Settings of lag compensation.
    lag_compensation: LagCompensation {
        enabled: bool = true,
            "whether shots are judged against the positions that the shooter saw", "Half-Life: sv_unlag 1";
        max_unlag_ms: i64 (0..=1500 "ms") = 500,
            "maximum rewind of a shot, and maximum age of the snapshot that its shooter drew", "ReHLDS: sv_maxunlag 0.5";
        max_claim_error_ms: i64 (0..=1500 "ms") = 200,
            "maximum difference between a usercmd's time and the measured latency; beyond it, the latency is used",
            "source-sdk-2013: 0.2 s";
    }
    /// Settings of the server.
    server: ServerSettings {
        tick_hz: Hz = COMMON_TICK,
            "simulation steps per second", "64 ticks, common in Source games";
        update_hz: Hz = BERNIERS_UPDATES,
            "snapshots per second to each client", "Bernier 2001: 20 updates per second";
        rate_bytes_per_s: i64 (500..=10000000 "bytes/s") = 100_000,
            "maximum rate to one client", "above what 32 players need; 2500 is Half-Life's modem setting";
        command_credit_ms: i64 (0..=5000 "ms") = 500,
            "unused simulated time that a client may save up beyond one usercmd; input delayed for longer is refused",
            "ReHLDS: clockwindow 0.5; mvdsv: 500 ms";
        on_lost_command: OnLost = OnLost::Repeat,
            "what runs instead of lost usercmds", "Half-Life and QuakeWorld repeat the last one";
        schedule: Schedule = Schedule::Arrival,
            "when usercmds run: on arrival, or on their own tick", "Bernier 2001: on arrival; NeREIDS: on their tick";
        zone: Zone = Zone::Everything,
            "which entities a client receives: all, or only those that the map does not hide",
            "Bernier 2001: \"visible objects\"; NeREIDS: the zone of knowledge";
        zone_units: i64 (64..=1000000 "units") = WIDEST_ZONE,
            "maximum distance of entities that a client receives", "wider than any map";
    }
    /// Settings of clients.
    client: ClientSettings {
        cmd_hz: Hz = COMMON_TICK,
            "usercmds per second", "as the tick rate";
        frames: Frames = Frames::Regular,
            "how regular the frames of a bot's client are",
            "the others are fitted to demos of real players, docs/frames.md";
        redundancy: i64 (1..=16 "usercmds") = 3,
            "usercmds in each packet: the newest, and earlier ones again", "QuakeWorld: three in a packet";
        clock: ClockMode = ClockMode::Adopt,
            "how the client follows the server's clock; usercmds with server.schedule=tick are always calibrated",
            "Bernier 2001, footnote 6";
        lead_ms: i64 (0..=1000 "ms") = 146,
            "how long before its tick a calibrated client's input should arrive",
            "NeREIDS: three ticks of 32 ms for redundancy; and 50 ms for jitter";
        adaptive_redundancy: bool = false,
            "whether redundancy follows bandwidth, loss and jitter, up to client.redundancy",
            "NeREIDS plans it, and sends 4:1 until then";
    }
    /// Settings of the transport of packets and snapshots.
    wire: WireSettings {
        sizes: Sizes = Sizes::Datagrams,
            "sizes used for rates and in logs: real datagrams, or nominal sizes, as in logs without this key",
            "real sizes";
        message_max_bytes: i64 (400..=18960 "bytes") = 18_960,
            "maximum size of a snapshot; other entities wait for the next one, by priority",
            "16 datagrams of 1,200 bytes";
    }
}
