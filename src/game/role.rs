//! What the cells of a body mean to those who are told about them.

use super::{Field, Scope};

/// What a cell means to those who are told about it. The protocol's bits are in order of importance, 7 first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Bit 7: who controls it, or what an AI decided.
    Controller,
    /// Bit 6: an event of the game (teleports, dying, coming back).
    Event,
    /// Bit 5: a value of the game (health, ammunition, timers of weapons).
    Value,
    /// Bit 4: an action that does not move it.
    Action,
    /// Bit 3: velocity and position.
    Movement,
    /// Bit 2: a part of an action, a sound, an effect.
    SubAction,
    /// Bit 1: the movement style.
    Style,
    /// Bit 1, and how orientation is written: on the ground when it is not 0.
    Ground,
    /// The pitch, a float. On the ground it is the head's alone, and bit 0's; elsewhere the body's, and bit 1's.
    Pitch,
    /// Bit 1: the rotation about the up axis, a float.
    Yaw,
    /// Bit 1: the roll, a float.
    Roll,
    /// Bit 0: anything else about the head.
    Head,
}

impl Role {
    /// The role of a field by its name, and where the name says nothing by its scope.
    pub fn by_default(field: &Field) -> Role {
        let name = field.name.as_str();
        let says = |words: &[&str]| words.iter().any(|word| name.contains(word));
        match name {
            "viewangles.x" => Role::Pitch,
            "viewangles.y" => Role::Yaw,
            "viewangles.z" => Role::Roll,
            "on_ground" => Role::Ground,
            _ if says(&["controller", "decision"]) => Role::Controller,
            _ if says(&["teleport", "alive", "respawn", "event"]) => Role::Event,
            _ if says(&["action", "sequence", "animation"]) => Role::Action,
            _ if says(&["origin", "velocity"]) => Role::Movement,
            _ if says(&["sound", "effect", "step_"]) => Role::SubAction,
            _ if says(&["duck", "water", "movetype", "style", "stance", "ground"]) => Role::Style,
            _ if says(&["head"]) => Role::Head,
            _ => match field.scope {
                Scope::Movement => Role::Movement,
                Scope::Weapons | Scope::Status | Scope::ClientOnly => Role::Value,
            },
        }
    }

    /// The bit of the update bitfield, from 7, the most important, to 0.
    pub fn bit(self) -> usize {
        match self {
            Role::Controller => 7,
            Role::Event => 6,
            Role::Value => 5,
            Role::Action => 4,
            Role::Movement => 3,
            Role::SubAction => 2,
            Role::Style | Role::Ground | Role::Pitch | Role::Yaw | Role::Roll => 1,
            Role::Head => 0,
        }
    }
}
