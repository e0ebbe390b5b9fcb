//! What the cells of a body mean to the clients that they are sent to.

use super::{Field, Meaning, Scope};

/// What a cell means to the clients that it is sent to. The protocol's bits are in order of importance, 7 first.
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
    /// Bit 1: which way it is turned. The first three floats in a row are pitch, yaw and roll; on the ground the pitch is the
    /// head's alone, and bit 0's.
    Orientation,
    /// Bit 0: anything else about the head.
    Head,
}

impl Role {
    /// The role of a field by what it means, and where that says nothing by its scope.
    pub fn by_default(field: &Field) -> Role {
        match (field.meaning, field.scope) {
            (Meaning::Angle, _) => Role::Orientation,
            (Meaning::Position | Meaning::Velocity | Meaning::Direction, _) => Role::Movement,
            (Meaning::Flag, Scope::Movement) => Role::Style,
            (Meaning::Flag | Meaning::Counter, _) => Role::Event,
            (Meaning::Name | Meaning::Time | Meaning::Plain, Scope::Movement) => Role::Movement,
            (Meaning::Name | Meaning::Time | Meaning::Plain, _) => Role::Value,
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
            Role::Style | Role::Ground | Role::Orientation => 1,
            Role::Head => 0,
        }
    }
}
