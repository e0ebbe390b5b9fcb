//! The three ways to run a session under other settings than its own. They give different counts of hits, so pages name
//! the way beside each count (docs/what-if.md).

use crate::units::named;

named! {
    /// How to apply other settings to a session.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum WhatIf {
        /// The recorded input runs through pipelines with the other settings.
        #[default]
        Replay = "replay",
        /// The session runs under its own settings, and each of its shots is also judged under the other settings.
        Rejudge = "rejudge",
        /// Bots play the session again under the other settings, from many seeds.
        Rerecord = "rerecord",
    }
}

/// The settings and groups of settings that only affect the judging of shots. [`WhatIf::Rejudge`] accepts only these.
pub const REJUDGED: [&str; 2] = ["lag_compensation.", "interpolation.lerp_ms"];

impl WhatIf {
    /// Returns the meaning of its counts of hits: sentences without the last period.
    pub fn meaning(self) -> &'static str {
        match self {
            WhatIf::Replay => {
                "Same input, other settings. Players aimed under the recorded settings, so hits favour those"
            }
            WhatIf::Rejudge => "Only the hit test changed. Deaths and later events are as recorded",
            WhatIf::Rerecord => "Bots play again under each setting, over the recorded links, from several seeds",
        }
    }
}
