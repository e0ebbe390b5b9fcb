//! Settings whose values are words.

use super::kind::SettingText;

macro_rules! choice {
    ($(#[$doc:meta])* $name:ident { $( $(#[$variant_doc:meta])* $variant:ident = $text:literal ),* $(,)? }) => {
        hitreg_log::named! {
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq)]
            pub enum $name { $( $(#[$variant_doc])* $variant = $text, )* }
        }

        impl SettingText for $name {
            fn text(&self) -> String {
                self.name().to_owned()
            }

            fn from_text(text: &str) -> Option<$name> {
                text.parse().ok()
            }
        }
    };
}

choice! {
    /// What a client predicts.
    PredictionMode {
        /// Nothing: the client shows the acked state.
        Off = "off",
        /// Movement.
        Movement = "movement",
        /// Movement and weapons.
        Weapons = "weapons",
    }
}
choice! {
    /// Which entities a client receives.
    Zone {
        /// All entities.
        Everything = "everything",
        /// Entities that the map does not hide.
        Visible = "visible",
    }
}
choice! {
    /// The bodies among which usercmds ran, when a prediction is compared with the server's state.
    Among {
        /// The bodies that the client knew when it predicted, as in play.
        Known = "known",
        /// The bodies of the acking snapshot. The usercmds run again from the previously acked state, as on the server.
        /// The prediction in play is graded separately.
        AckingPacket = "acking-packet",
    }
}
choice! {
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
}
choice! {
    /// Which sizes are used.
    Sizes {
        /// The sizes of real datagrams, which are also made in virtual time.
        Datagrams = "datagrams",
        /// Fixed sizes for a header, an entity and a usercmd; no datagrams are made in virtual time. Logs without this
        /// setting use it.
        Nominal = "nominal",
    }
}
choice! {
    /// What is drawn when the next update has not arrived.
    OnMissing {
        /// The last state, extrapolated within the cap.
        Extrapolate = "extrapolate",
        /// The last state, unchanged.
        Hold = "hold",
    }
}
choice! {
    /// The replacement of lost usercmds.
    OnLost {
        /// Repeats the last usercmd, as Half-Life and QuakeWorld do.
        Repeat = "repeat",
        /// Runs nothing.
        Skip = "skip",
    }
}
choice! {
    /// When usercmds run.
    Schedule {
        /// In the next tick after arrival, in order of arrival (Bernier's server loop).
        Arrival = "arrival",
        /// In the tick whose time they carry. Usercmds that arrive after it are dropped, and nothing runs twice.
        Tick = "tick",
    }
}
choice! {
    /// How a client follows the server's clock.
    ClockMode {
        /// Adopts each update's time (Bernier's footnote 6).
        Adopt = "adopt",
        /// Drifts towards it, as Quake III does: reset above 500 ms, halve above 100, else +1 or -2 ms.
        Drift = "drift",
        /// Like `adopt`, but usercmds carry the time of their tick, from a clock that the server's calibration helper
        /// steers. With [`Schedule::Tick`] they carry it in all modes.
        Calibrated = "calibrated",
    }
}
choice! {
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
