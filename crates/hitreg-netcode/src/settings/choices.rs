//! Settings that are one of a few words.

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $( $(#[$variant_doc:meta])* $variant:ident = $text:literal ),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[$variant_doc])* $variant, )* }

        impl $name {
            /// The words that name the choices.
            pub const WORDS: &'static [&'static str] = &[ $( $text ),* ];

            pub(crate) fn word(self) -> &'static str {
                match self { $( $name::$variant => $text, )* }
            }

            pub(crate) fn from_word(word: &str) -> Option<$name> {
                match word { $( $text => Some($name::$variant), )* _ => None }
            }
        }
    };
}

choice! {
    /// What a client predicts.
    PredictionMode {
        /// Nothing: the dumb client shows the acked state.
        Off = "off",
        /// Movement.
        Movement = "movement",
        /// Movement and weapons.
        Weapons = "weapons",
    }
}
choice! {
    /// Which entities a client is told of.
    Zone {
        /// All of them.
        Everything = "everything",
        /// Those that the map does not hide.
        Visible = "visible",
    }
}
choice! {
    /// Among which bodies the usercmds have run whose outcome is held against the server's word.
    Among {
        /// Those that the client knew when it predicted them: as a client in play could know.
        Known = "known",
        /// Those of the snapshot that acks them, run again from the state acked before: as the server ran them. What the
        /// client had predicted in play is judged beside it.
        AckingPacket = "acking-packet",
    }
}
choice! {
    /// From what a client draws the others.
    InterpolationMode {
        /// The last snapshot as it is.
        Off = "off",
        /// The last snapshot carried on to the present.
        Extrapolate = "extrapolate",
        /// The last two snapshots.
        TwoPoint = "two-point",
        /// From where it was drawn last to the last snapshot.
        LastRendered = "last-rendered",
        /// The two of the position history that straddle the time drawn.
        History = "history",
        /// Each variable by its category, as NeREIDS does.
        Category = "category",
    }
}
choice! {
    /// Which sizes count.
    Sizes {
        /// Those of the datagrams, which are made in virtual time as they are live.
        Datagrams = "datagrams",
        /// So much for a header, an entity, a usercmd; no datagrams are made in virtual time. The rule of logs from before
        /// there was this setting.
        Nominal = "nominal",
    }
}
choice! {
    /// What is drawn when the next update is not there yet.
    OnMissing {
        /// The last state carried on, within the cap.
        Extrapolate = "extrapolate",
        /// The last state as it is.
        Hold = "hold",
    }
}
choice! {
    /// What runs in place of usercmds that never came.
    OnLost {
        /// The last one again, as Half-Life and QuakeWorld do.
        Repeat = "repeat",
        /// Nothing.
        Skip = "skip",
    }
}
choice! {
    /// When usercmds run.
    Schedule {
        /// In the tick after they arrive, in the order of arrival (Bernier's server loop).
        Arrival = "arrival",
        /// In the tick whose time is on them. Those that come when it is over are dropped, and nothing runs twice.
        Tick = "tick",
    }
}
choice! {
    /// How a client follows the server's clock.
    ClockMode {
        /// Takes each update's time as it comes (Bernier's footnote 6).
        Adopt = "adopt",
        /// Drifts towards it, as Quake III does: reset above 500 ms, halve above 100, else +1 or -2 ms.
        Drift = "drift",
        /// As adopt, and usercmds carry the time of the tick that they are for, by a clock that the server's calibration
        /// helper steers.
        Calibrated = "calibrated",
    }
}
choice! {
    /// How regularly a bot's client makes its frames.
    Frames {
        /// Each an interval after the last.
        Regular = "regular",
        /// By a computer that mostly keeps up with its cap on frames: one in seventeen is late by some milliseconds, few by much.
        Capped = "capped",
        /// On time, but for a hitch of some 36 ms in each thousand frames.
        Hitches = "hitches",
        /// By a computer that does not keep up: late by as much as the scene asks for.
        Loaded = "loaded",
    }
}
