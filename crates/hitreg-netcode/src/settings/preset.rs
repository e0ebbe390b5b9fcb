//! Presets: named sets of settings for the systems that the founding documents describe.

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
            ("client.clock", "calibrated", "NeREIDS: the calibration helper"),
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
