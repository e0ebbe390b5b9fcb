//! The settings. One declaration gives each its type, accepted values, default, meaning, and the source of the default.
//! Presets are named sets of settings for the systems that the founding documents describe.

use serde::Serialize;

use super::SettingError;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{Hz, PlayerId};

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
        match self.kind.accepts(text) && (self.write)(settings, self.kind.spelled(text)) {
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
        ///
        /// Nothing checks values that a program writes into the fields. [`Settings::set`] refuses values out of bounds.
        #[derive(Clone, Debug, Default, PartialEq, Eq)]
        pub struct Settings {
            $( $(#[$doc])* pub $group: $type, )+
            /// Single players' own settings, with keys such as `p2.interpolation.lerp_ms`. [`Settings::of_player`]
            /// applies them.
            pub players: SortedMap<PlayerId, SortedMap<&'static str, String>>,
        }

        $(
            $(#[$doc])*
            #[derive(Clone, Debug, PartialEq, Eq)]
            pub struct $type {
                $(
                    #[doc = concat!(
                        "`", stringify!($group), ".", stringify!($field), "`: ", $about, ".",
                        $(" From ", stringify!($min), " to ", stringify!($max), " ", $unit, ".",)?
                        " Source of the default: ", $source, "."
                    )]
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
                read: |settings| settings.$group.$field.to_string(),
                write: |settings, text| text.parse().map(|value| settings.$group.$field = value).is_ok(),
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
            "usercmds made until now - round trip - this value run; the default has no practical limit", "Bernier 2001, footnote 1";
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
            "maximum difference between a usercmd's time and the latency measured up to its packet; \
             beyond it, the latency is used",
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
            "what runs instead of lost usercmds, up to 24 in a row", "Half-Life and QuakeWorld repeat the last one";
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
            "how the clock with which a client draws follows the server's clock",
            "Bernier 2001, footnote 6";
        lead_ms: i64 (0..=1000 "ms") = 146,
            "how long before its tick input should arrive, with server.schedule=tick",
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

/// A named set of settings. Keys that it does not name keep their defaults.
#[derive(Debug)]
pub struct Preset {
    /// The name.
    pub name: &'static str,
    /// The system that it describes.
    pub about: &'static str,
    /// Entries of key, value and the source of the value.
    pub values: &'static [(&'static str, &'static str, &'static str)],
}

/// All presets.
pub static PRESETS: &[Preset] = &[
    Preset {
        name: "half-life",
        about: "movement and weapons predicted, position history 100 ms back, shots lag compensated",
        values: &[],
    },
    Preset {
        name: "quake3",
        about: "movement and weapons predicted, two snapshots interpolated, shots judged in the server's present",
        values: &[
            ("interpolation.mode", "two-point", "Quake III: cg.snap and cg.nextSnap"),
            ("interpolation.lerp_ms", "50", "Quake III: one snapshot at snaps 20"),
            ("lag_compensation.enabled", "false", "Bernier 2001: Quake III has none"),
            ("server.on_lost_command", "skip", "nearest to Quake III, where the next usercmd covers the gap"),
            ("client.redundancy", "2", "Quake III: cl_packetdup 1"),
            ("client.clock", "drift", "nearest to Quake III's CL_AdjustTimeDelta"),
        ],
    },
    Preset {
        name: "quakeworld",
        about: "movement predicted, the others extrapolated for at most 100 ms, shots judged in the server's present",
        values: &[
            ("prediction.mode", "movement", "QuakeWorld predicts movement alone"),
            ("interpolation.mode", "extrapolate", "Bernier 2001: QuakeWorld extrapolates"),
            ("interpolation.lerp_ms", "0", "QuakeWorld does not interpolate players"),
            ("extrapolation.max_ms", "100", "Bernier 2001: 100 ms"),
            ("lag_compensation.enabled", "false", "Bernier 2001: QuakeWorld has none"),
        ],
    },
    Preset {
        name: "nereids",
        about: "movement and weapons predicted, everybody's input run on its tick and never after, shots judged in that tick",
        values: &[
            ("prediction.mode", "weapons", "NeREIDS: Controlled moves and actions; Reactive is what one has just shot"),
            ("interpolation.mode", "category", "NeREIDS: each variable by its rendering category"),
            ("interpolation.lerp_ms", "0", "NeREIDS: Authoritative is the last update as it is"),
            ("interpolation.on_missing", "hold", "NeREIDS: Authoritative is the last update as it is"),
            ("lag_compensation.enabled", "false", "NeREIDS: no event is applied back in time"),
            ("server.tick_hz", "31.25", "NeREIDS: a tick of 32 ms"),
            ("server.update_hz", "31.25", "NeREIDS: each tick, to each client"),
            ("server.on_lost_command", "skip", "NeREIDS: a frame once computed is never rolled back"),
            ("server.schedule", "tick", "NeREIDS: input waits for its frame"),
            ("client.cmd_hz", "31.25", "NeREIDS: input on each tick"),
            ("client.redundancy", "4", "NeREIDS: 4:1, the input of the three ticks before with each"),
        ],
    },
    Preset {
        name: "dumb-client",
        about: "nothing predicted, the last snapshot drawn as it is, shots judged in the server's present",
        values: &[
            ("prediction.mode", "off", "Bernier 2001: the dumb client"),
            ("interpolation.mode", "off", "Bernier 2001: the dumb client"),
            ("interpolation.lerp_ms", "0", "Bernier 2001: the dumb client"),
            ("interpolation.on_missing", "hold", "Bernier 2001: the dumb client"),
            ("lag_compensation.enabled", "false", "Bernier 2001: the dumb client"),
        ],
    },
];

/// The values that a key accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ValueKind {
    /// `true` or `false`.
    Flag,
    /// An integer within bounds.
    Number {
        /// The minimum.
        min: i64,
        /// The maximum.
        max: i64,
        /// Its unit.
        unit: &'static str,
    },
    /// A rate in Hz within bounds, with at most three decimals.
    Rate {
        /// The minimum in whole Hz.
        min: i64,
        /// The maximum in whole Hz.
        max: i64,
        /// Hz.
        unit: &'static str,
    },
    /// A word.
    Choice {
        /// The accepted words.
        choices: &'static [&'static str],
    },
}

impl ValueKind {
    /// Returns the accepted values as text, for errors and listings: `a whole number of ms from 0 to 1000`.
    pub fn takes(self) -> String {
        match self {
            ValueKind::Flag => "true or false".to_owned(),
            ValueKind::Number { min, max, unit } => format!("a whole number of {unit} from {min} to {max}"),
            ValueKind::Rate { min, max, unit } => {
                format!("a number of {unit} from {min} to {max}, with at most three decimals")
            }
            ValueKind::Choice { choices } => format!("one of {}", choices.join(", ")),
        }
    }

    /// Returns the accepted value nearest to a text. Numbers out of bounds are clamped. Returns `None` when no value is
    /// near.
    pub(super) fn nearest(self, text: &str) -> Option<String> {
        let number = || text.parse::<f64>().ok().filter(|number| number.is_finite());
        let bounded = match self {
            ValueKind::Number { min, max, .. } => match text.parse::<i64>() {
                Ok(whole) => whole.clamp(min, max),
                Err(_) if number()? > max as f64 => max,
                Err(_) if number()? < min as f64 => min,
                Err(_) => return None,
            },
            ValueKind::Rate { min, .. } if number()? < min as f64 => min,
            ValueKind::Rate { max, .. } if number()? > max as f64 => max,
            ValueKind::Rate { .. } | ValueKind::Flag | ValueKind::Choice { .. } => {
                return self.accepts(text).then(|| text.to_owned());
            }
        };
        Some(bounded.to_string())
    }

    /// Returns a value as this kind spells it. Console variables of engines are 0 or 1.
    fn spelled(self, text: &str) -> &str {
        match (self, text) {
            (ValueKind::Flag, "1") => "true",
            (ValueKind::Flag, "0") => "false",
            (_, text) => text,
        }
    }

    pub(super) fn accepts(self, text: &str) -> bool {
        match self {
            ValueKind::Flag => self.spelled(text).parse::<bool>().is_ok(),
            ValueKind::Number { min, max, .. } => text.parse().is_ok_and(|number| (min..=max).contains(&number)),
            ValueKind::Rate { min, max, .. } => {
                text.parse::<Hz>().is_ok_and(|hz| (min * 1000..=max * 1000).contains(&hz.milli()))
            }
            ValueKind::Choice { choices } => choices.contains(&text),
        }
    }
}

macro_rules! choices {
    ($( $(#[$doc:meta])* $name:ident { $( $(#[$variant_doc:meta])* $variant:ident = $text:literal, )* } )*) => { $(
        hitreg_log::named! {
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum $name { $( $(#[$variant_doc])* $variant = $text, )* }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.name())
            }
        }
    )* };
}

choices! {
    /// What a client predicts.
    PredictionMode {
        /// Nothing: the client shows the acked state.
        Off = "off",
        /// Movement.
        Movement = "movement",
        /// Movement and weapons.
        Weapons = "weapons",
    }
    /// Which entities a client receives.
    Zone {
        /// All entities.
        Everything = "everything",
        /// Entities that the map does not hide.
        Visible = "visible",
    }
    /// The bodies among which usercmds ran, when a prediction is compared with the server's state.
    Among {
        /// The bodies that the client knew when it predicted, as in play.
        Known = "known",
        /// The bodies of the acking snapshot. The usercmds run again from the previously acked state, as on the server.
        /// The prediction in play is graded separately.
        AckingPacket = "acking-packet",
    }
    /// How a client draws the others.
    InterpolationMode {
        /// The last snapshot, unchanged.
        Off = "off",
        /// The last snapshot, extrapolated to the present.
        Extrapolate = "extrapolate",
        /// Interpolation between the last two snapshots.
        TwoPoint = "two-point",
        /// Interpolation from the last drawn position to the last snapshot.
        LastRendered = "last-rendered",
        /// Interpolation between the two snapshots of the position history around the drawn time.
        History = "history",
        /// Each field by its category, as in NeREIDS.
        Category = "category",
    }
    /// Which sizes are used.
    Sizes {
        /// The sizes of real datagrams, which are also made in virtual time.
        Datagrams = "datagrams",
        /// Fixed sizes for a header, an entity and a usercmd; no datagrams are made in virtual time. Logs without this
        /// setting use it.
        Nominal = "nominal",
    }
    /// What is drawn when the next update has not arrived.
    OnMissing {
        /// The last state, extrapolated within the cap.
        Extrapolate = "extrapolate",
        /// The last state, unchanged.
        Hold = "hold",
    }
    /// The replacement of lost usercmds.
    OnLost {
        /// Repeats the last usercmd, as Half-Life and QuakeWorld do.
        Repeat = "repeat",
        /// Runs nothing.
        Skip = "skip",
    }
    /// When usercmds run.
    Schedule {
        /// In the next tick after arrival, in order of arrival (Bernier's server loop).
        Arrival = "arrival",
        /// In the tick whose time they carry. Usercmds that arrive after it are dropped, and nothing runs twice.
        Tick = "tick",
    }
    /// How a client follows the server's clock.
    ClockMode {
        /// Adopts each update's time (Bernier's footnote 6).
        Adopt = "adopt",
        /// Drifts towards it, as Quake III does: reset above 500 ms, halve above 100, else +1 or -2 ms.
        Drift = "drift",
    }
    /// The regularity of a bot client's frames.
    Frames {
        /// Each one interval after the last.
        Regular = "regular",
        /// A computer that mostly keeps up with its frame rate cap: one frame in seventeen is late by some
        /// milliseconds, a few by more.
        Capped = "capped",
        /// On time, except for a hitch of about 36 ms in each thousand frames.
        Hitches = "hitches",
        /// A computer that does not keep up: frames are late by as much as the scene needs.
        Loaded = "loaded",
    }
}
