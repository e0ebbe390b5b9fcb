//! Why a prediction missed. Every cause comes with its evidence: something that the recording says, or a hypothesis under
//! which the movement code reproduces the recorded state.

use serde::{Deserialize, Serialize};

use super::demo::EffectKind;

/// Why a prediction and the recorded state differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Cause {
    /// The server never got some usercmds and ran what it put in their place.
    InputLost,
    /// The server ran usercmds later than the client's clock has it, or not at all while paused.
    InputLate,
    /// A teleporter.
    Teleport,
    /// The player died, lies dead, or came to life.
    SpawnOrDeath,
    /// Something hurt or pushed the player.
    DamageOrKnockback,
    /// Another player was in the way.
    OtherPlayer,
    /// A door, lift or train was in the way, or carried the player.
    Mover,
    /// The surface of a liquid was crossed.
    WaterEdge,
    /// The wire's rounding of the state that the prediction starts from.
    Quantisation,
    /// None of these could be shown.
    Unknown,
}

impl Cause {
    /// Every cause, in order.
    pub const ALL: [Cause; 10] = [
        Cause::InputLost,
        Cause::InputLate,
        Cause::Teleport,
        Cause::SpawnOrDeath,
        Cause::DamageOrKnockback,
        Cause::OtherPlayer,
        Cause::Mover,
        Cause::WaterEdge,
        Cause::Quantisation,
        Cause::Unknown,
    ];

    /// The cause in words, as tables print it.
    pub const fn name(self) -> &'static str {
        match self {
            Cause::InputLost => "input lost",
            Cause::InputLate => "input late or choked",
            Cause::Teleport => "teleport",
            Cause::SpawnOrDeath => "spawn or death",
            Cause::DamageOrKnockback => "damage or knockback",
            Cause::OtherPlayer => "other player",
            Cause::Mover => "mover",
            Cause::WaterEdge => "water edge",
            Cause::Quantisation => "quantisation",
            Cause::Unknown => "unknown",
        }
    }

    /// Whether it lies outside of what movement code could know from the state and the usercmds.
    pub const fn is_outside(self) -> bool {
        !matches!(self, Cause::Quantisation | Cause::WaterEdge | Cause::Unknown)
    }
}

/// What shows a cause.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Evidence {
    /// The server reported damage with the packet.
    DamageMessage {
        /// Points the armour took.
        armor: u8,
        /// Points the health took.
        health: u8,
    },
    /// Something went off or drew blood near enough, and the velocity changed away from it, without damage.
    PushedFrom {
        /// What.
        kind: EffectKind,
        /// How far from the player, in units.
        distance: f32,
        /// How much the velocity differs, in units/s.
        speed: f32,
    },
    /// The server's mark of death changed, or is set.
    DeathMark {
        /// Dead in the state predicted from.
        was: bool,
        /// Dead in the recorded state.
        is: bool,
    },
    /// The player moved farther than speed allows.
    Jump {
        /// How far, in units.
        units: f32,
        /// How far the faster of both speeds would lead, in units.
        reachable: f32,
        /// The server also turned the view.
        turned: bool,
    },
    /// The game was paused or over.
    Halted,
    /// The prediction ran into another player.
    TouchedPlayer {
        /// Slot.
        slot: u8,
    },
    /// The prediction ran into a brush model, or was carried by it.
    TouchedMover {
        /// Submodel number.
        model: u16,
    },
    /// The water level at the start, as predicted and as recorded.
    WaterLevels {
        /// In the state predicted from.
        from: u8,
        /// Predicted.
        predicted: u8,
        /// At the recorded origin.
        recorded: u8,
    },
    /// The movement code gives exactly the recorded state if this is so.
    Reproduced {
        /// What was assumed.
        hypothesis: Hypothesis,
    },
    /// Nothing was found.
    None,
}

/// Something that the recording does not say, but that can be tried.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub enum Hypothesis {
    /// Some packets did not arrive, and the server ran its last command for each beyond two, then the two backups, then
    /// the command of the packet that did.
    Lost {
        /// An earlier burst, where two are needed.
        first: Option<Burst>,
        /// The burst, or the later of two.
        last: Burst,
    },
    /// The player's corpse lay still already, which the game slows.
    Corpse,
    /// The state predicted from was this one, which the wire cannot tell from the one assumed.
    StartsAt {
        /// Units.
        origin: [f32; 3],
        /// Units/s.
        velocity: [f32; 3],
    },
    /// The other players had come this far on their way from where the packet before showed them (0) to where this one
    /// does (1), or beyond.
    PlayersOnTheirWay {
        /// Of that way.
        share: f32,
    },
    /// The other players were not in the way at all.
    NoPlayers,
    /// Jump was held, or let go, against what was predicted.
    JumpHeld(bool),
    /// The player could steer, or could not, against what was predicted.
    Steering(bool),
}

/// Packets that were lost in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Burst {
    /// How many.
    pub lost: u16,
    /// The first command whose packet arrived after them, counted from 0 in the prediction.
    pub arrived: u16,
}
