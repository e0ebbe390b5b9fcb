//! What the cells of a body mean to the clients that receive them.

use super::{FieldSchema, Meaning, Scope};

/// What a cell means to the clients that receive it. The protocol's bits are in order of importance; 7 is the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellRole {
    /// Bit 7: the entity's controller, or an AI's decision.
    Controller,
    /// Bit 6: an event of the game (teleport, death, respawn).
    Event,
    /// Bit 5: a value of the game (health, ammunition, timers of weapons).
    Value,
    /// Bit 4: an action without movement.
    Action,
    /// Bit 3: velocity and position.
    Movement,
    /// Bit 2: a part of an action, a sound, an effect.
    SubAction,
    /// Bit 1: the movement style.
    Style,
    /// Bit 1; also selects how the orientation is written. Not 0 means on the ground.
    Ground,
    /// Bit 1: the orientation. The first three floats in a row are pitch, yaw and roll. On the ground, the pitch
    /// belongs to the head alone and uses bit 0.
    Orientation,
    /// Bit 0: anything else about the head.
    Head,
}

impl CellRole {
    /// Derives a field's role from its meaning, and from its scope if the meaning is not enough.
    pub fn by_default(field: &FieldSchema) -> CellRole {
        match (field.meaning, field.scope) {
            (Meaning::Angle, _) => CellRole::Orientation,
            (Meaning::Position | Meaning::Velocity | Meaning::Direction, _) => CellRole::Movement,
            (Meaning::Flag, Scope::Movement) => CellRole::Style,
            (Meaning::Flag | Meaning::Counter, _) => CellRole::Event,
            (Meaning::Name | Meaning::Time | Meaning::Plain, Scope::Movement) => CellRole::Movement,
            (Meaning::Name | Meaning::Time | Meaning::Plain, _) => CellRole::Value,
        }
    }

    /// The bit in the update bitfield, from 7 (most important) to 0.
    pub fn bit(self) -> usize {
        match self {
            CellRole::Controller => 7,
            CellRole::Event => 6,
            CellRole::Value => 5,
            CellRole::Action => 4,
            CellRole::Movement => 3,
            CellRole::SubAction => 2,
            CellRole::Style | CellRole::Ground | CellRole::Orientation => 1,
            CellRole::Head => 0,
        }
    }
}
