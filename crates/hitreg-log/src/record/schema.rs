//! What a log says about its own numbers: entity classes and their fields, each with a meaning and a unit. Whoever reads a
//! log, compares a trace or packs a snapshot goes by what is declared here, and guesses nothing from names.

use serde::{Deserialize, Serialize};

/// How to read a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CellKind {
    /// The bits of an IEEE 754 single.
    F32,
    /// Two's complement.
    I32,
    /// Unsigned; flags and counters too.
    U32,
}

/// Who decides a field, and so how a client treats it when an ack arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Movement: predicted by every client that predicts, compared on ack.
    Movement,
    /// Weapons: predicted by clients that predict weapons, compared on ack by those.
    Weapons,
    /// Never sent: each client keeps it per command and copies it to the acked state (Bernier's eye height). Its type must
    /// have the word 0, from which a receiver sets it to its default.
    ClientOnly,
    /// The server's alone (health, score): adopted on ack, never an error of prediction. What a later version may add is
    /// read so, too.
    #[serde(other)]
    Status,
}

/// What a field measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    /// A coordinate of a place.
    Position,
    /// A component of a direction of length 1.
    Direction,
    /// An angle, which comes round again after 360 degrees. Three in a row are pitch, yaw and roll.
    Angle,
    /// A component of a velocity.
    Velocity,
    /// Something counted: that it changed says that something happened, however small the change.
    Counter,
    /// Yes or no, or several of them as bits.
    Flag,
    /// One of a few things, by number.
    Name,
    /// A time, or how long something takes.
    Time,
    /// Anything else. What a later version may add is read so, too.
    #[default]
    #[serde(other)]
    Plain,
}

impl Meaning {
    /// The unit of fields that do not say another.
    pub const fn usual_unit(self) -> &'static str {
        match self {
            Meaning::Position => "units",
            Meaning::Velocity => "units/s",
            Meaning::Angle => "degrees",
            Meaning::Time => "ms",
            Meaning::Direction | Meaning::Counter | Meaning::Flag | Meaning::Name | Meaning::Plain => "",
        }
    }

    fn is_plain(&self) -> bool {
        *self == Meaning::Plain
    }
}

/// One cell of an entity's state, or one field of a usercmd.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Field {
    /// Its name, unique within its class: `origin.x`, `next_attack_ms`.
    pub name: String,
    /// How to read it.
    pub kind: CellKind,
    /// Who decides it.
    pub scope: Scope,
    /// What it measures.
    #[serde(default, skip_serializing_if = "Meaning::is_plain")]
    pub meaning: Meaning,
    /// Its unit, where that is not the [usual one](Meaning::usual_unit) of its meaning; see [`Field::unit`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub own_unit: String,
}

impl Field {
    /// A field of which no more is known.
    pub fn new(name: impl Into<String>, kind: CellKind, scope: Scope) -> Field {
        Field { name: name.into(), kind, scope, meaning: Meaning::Plain, own_unit: String::new() }
    }

    /// The same field with a meaning, in the meaning's usual unit.
    #[must_use]
    pub fn meaning(self, meaning: Meaning) -> Field {
        Field { meaning, ..self }
    }

    /// The same field in another unit than the usual one of its meaning.
    #[must_use]
    pub fn in_unit(self, unit: &str) -> Field {
        let own_unit = if unit == self.meaning.usual_unit() { String::new() } else { unit.to_owned() };
        Field { own_unit, ..self }
    }

    /// Its unit; empty for what has none.
    pub fn unit(&self) -> &str {
        if self.own_unit.is_empty() { self.meaning.usual_unit() } else { &self.own_unit }
    }

    /// Whether it holds the same value as a field of another log or build: name, kind and scope, whatever they are said to mean.
    pub fn is_same_cell(&self, other: &Field) -> bool {
        (&self.name, self.kind, self.scope) == (&other.name, other.kind, other.scope)
    }
}

/// A class's place in [`Header::classes`](super::Header::classes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u16);

/// A kind of entity: what its states consist of. A player's state and a projectile's need not have the same fields, and
/// neither need a player's own state (Quake's playerState) and what others are told of him (entityState).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    /// Its name: `player`, `entity`.
    pub name: String,
    /// The cells of its states, in order.
    pub fields: Vec<Field>,
}

impl Class {
    /// A class.
    pub fn new(name: impl Into<String>, fields: Vec<Field>) -> Class {
        Class { name: name.into(), fields }
    }

    /// A class of some of a body's fields: those of these names, with all their parts (`origin` is `origin.x` and so on).
    ///
    /// # Panics
    /// When a name is none of the fields': the class would silently lack it.
    pub fn of(name: impl Into<String>, fields: &[Field], names: &[&str]) -> Class {
        let of = |field: &Field, name: &str| {
            field.name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        for name in names {
            assert!(fields.iter().any(|field| of(field, name)), "no field of the body is called `{name}`");
        }
        let own = fields.iter().filter(|field| names.iter().any(|name| of(field, name)));
        Class::new(name, own.cloned().collect())
    }

    /// The only class of a game whose entities all have the same fields.
    pub fn only(fields: Vec<Field>) -> Vec<Class> {
        vec![Class::new("entity", fields)]
    }
}

/// The fields of a usercmd as [`Usercmd`](crate::usercmd::Usercmd) has them, but for its number and its server time.
pub fn usercmd_fields() -> Vec<Field> {
    use CellKind::{F32, U32};
    let field = |name, kind, meaning, unit| Field::new(name, kind, Scope::Movement).meaning(meaning).in_unit(unit);
    vec![
        field("lerp_ms", U32, Meaning::Time, "ms"),
        field("msec", U32, Meaning::Time, "ms"),
        field("pitch", F32, Meaning::Angle, "degrees"),
        field("yaw", F32, Meaning::Angle, "degrees"),
        field("roll", F32, Meaning::Angle, "degrees"),
        field("forwardmove", F32, Meaning::Velocity, "units/s"),
        field("sidemove", F32, Meaning::Velocity, "units/s"),
        field("upmove", F32, Meaning::Velocity, "units/s"),
        field("buttons", U32, Meaning::Flag, ""),
        field("impulse", U32, Meaning::Name, ""),
        field("extra", U32, Meaning::Plain, ""),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_later_version_adds_is_read_as_what_says_least() {
        let future = [("name", "spin"), ("kind", "f32"), ("scope", "physics"), ("meaning", "torque"), ("note", "new")];
        let future: std::collections::BTreeMap<_, _> = future.into_iter().collect();
        let field: Field = crate::serial::from_msgpack(&rmp_serde::to_vec_named(&future).unwrap()).unwrap();
        assert_eq!(field, Field::new("spin", CellKind::F32, Scope::Status));
    }

    #[test]
    fn a_unit_is_the_meanings_own_unless_it_says_another() {
        let time = Field::new("wait", CellKind::U32, Scope::Status).meaning(Meaning::Time);
        let (us, ms) = (time.clone().in_unit("us"), time.clone().in_unit("ms"));
        assert_eq!((time.unit(), us.unit(), &*ms.own_unit), ("ms", "us", ""));
    }
}
