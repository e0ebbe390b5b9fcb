//! The schema of a log's numbers: entity classes and their fields, each with a meaning and a unit. Readers of logs,
//! trace comparison and snapshot packing use these declarations and never interpret names.

use std::ops::RangeInclusive;

use serde::{Deserialize, Serialize};

use super::NumberForm;
use crate::units::named;

named! {
    /// The type of a field or column.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "snake_case")]
    pub enum CellKind {
        /// An IEEE 754 single.
        F32 = "f32",
        /// A signed 32-bit integer in two's complement.
        I32 = "i32",
        /// An unsigned 32-bit integer; also flags and counters.
        U32 = "u32",
        /// An IEEE 754 double.
        F64 = "f64",
        /// A signed 64-bit integer in two's complement.
        I64 = "i64",
        /// An unsigned 64-bit integer; also ids and hashes.
        U64 = "u64",
        /// 0 or 1.
        Bool = "bool",
        /// A text, as its [code](super::TextCode).
        Text = "text",
    }
}

impl CellKind {
    /// Returns the number of 32-bit cells of a value. A 64-bit value has two: the low word, then the high word.
    pub const fn cells(self) -> usize {
        match self {
            CellKind::F32 | CellKind::I32 | CellKind::U32 | CellKind::Bool => 1,
            CellKind::F64 | CellKind::I64 | CellKind::U64 | CellKind::Text => 2,
        }
    }

    /// Returns the form of the values as numbers.
    pub const fn form(self) -> NumberForm {
        match self {
            CellKind::F32 => NumberForm::F32,
            CellKind::F64 => NumberForm::F64,
            CellKind::I32 | CellKind::U32 | CellKind::I64 | CellKind::U64 | CellKind::Bool | CellKind::Text => {
                NumberForm::Integer
            }
        }
    }

    /// Returns the integers that the type has, a flag as 0 or 1; `None` for floats and texts.
    pub(crate) fn integers(self) -> Option<RangeInclusive<i128>> {
        match self {
            CellKind::I32 => Some(i32::MIN.into()..=i32::MAX.into()),
            CellKind::U32 => Some(0..=u32::MAX.into()),
            CellKind::I64 => Some(i64::MIN.into()..=i64::MAX.into()),
            CellKind::U64 => Some(0..=u64::MAX.into()),
            CellKind::Bool => Some(0..=1),
            CellKind::F32 | CellKind::F64 | CellKind::Text => None,
        }
    }

    /// Returns a value as a number: integers as such, `u64` and floats as their bits, texts as their
    /// codes. Missing cells are 0.
    pub fn number(self, cells: &[u32]) -> i64 {
        let cell = |place: usize| cells.get(place).copied().unwrap_or(0);
        match self {
            CellKind::F32 | CellKind::U32 | CellKind::Bool => i64::from(cell(0)),
            CellKind::I32 => i64::from(cell(0) as i32),
            CellKind::F64 | CellKind::I64 | CellKind::U64 | CellKind::Text => {
                (u64::from(cell(0)) | u64::from(cell(1)) << 32) as i64
            }
        }
    }

    /// Writes a [number](CellKind::number) as cells. Returns `false` if the type does not have it.
    pub fn put(self, number: i64, cells: &mut Vec<u32>) -> bool {
        let word = match self {
            CellKind::F32 | CellKind::U32 => u32::try_from(number).ok(),
            CellKind::I32 => i32::try_from(number).ok().map(|number| number as u32),
            CellKind::Bool => u32::try_from(number).ok().filter(|number| *number <= 1),
            CellKind::F64 | CellKind::I64 | CellKind::U64 | CellKind::Text => {
                cells.extend([number as u32, (number >> 32) as u32]);
                return true;
            }
        };
        cells.extend(word);
        word.is_some()
    }
}

/// Who determines a field's value, and therefore what a client does with it on an ack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Movement: every predicting client predicts it and compares it on an ack.
    Movement,
    /// Weapons: clients that predict weapons predict it and compare it on an ack.
    Weapons,
    /// Never sent: each client stores it per command and copies it to the acked state (Bernier's eye height). The
    /// all-zero word must be valid for its type; a receiver then sets its default.
    ClientOnly,
    /// Server only (health, score): clients adopt it on an ack, and it never counts as a prediction error. Readers also
    /// use this scope for names that a later version adds.
    #[serde(other)]
    Status,
}

/// The quantity that a field measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    /// A coordinate of a position.
    Position,
    /// A component of a unit vector.
    Direction,
    /// An angle in degrees, which wraps at 360. Three consecutive angles are pitch, yaw and roll.
    Angle,
    /// A component of a velocity.
    Velocity,
    /// A counter: any change means that an event happened, whatever its size.
    Counter,
    /// A flag, or a set of flags as bits.
    Flag,
    /// An enumeration value.
    Name,
    /// A point in time or a duration.
    Time,
    /// Anything else. Readers also use this meaning for names that a later version adds.
    #[default]
    #[serde(other)]
    Plain,
}

impl Meaning {
    /// Returns the unit of fields that declare none.
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

/// One field of an entity's state or of a usercmd, or one column of a custom kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FieldSchema {
    /// Name, unique within its class: `origin.x`, `next_attack_ms`.
    pub name: String,
    /// The type of the values.
    pub kind: CellKind,
    /// Who determines the value.
    pub scope: Scope,
    /// The measured quantity.
    #[serde(default, skip_serializing_if = "Meaning::is_plain")]
    pub meaning: Meaning,
    /// The unit, if it differs from the [usual one](Meaning::usual_unit) of the meaning; see [`FieldSchema::unit`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub own_unit: String,
}

impl FieldSchema {
    /// Returns a field of plain meaning without a unit.
    pub fn new(name: impl Into<String>, kind: CellKind, scope: Scope) -> FieldSchema {
        FieldSchema { name: name.into(), kind, scope, meaning: Meaning::Plain, own_unit: String::new() }
    }

    /// Returns the field with a meaning, in the meaning's usual unit.
    #[must_use]
    pub fn meaning(self, meaning: Meaning) -> FieldSchema {
        FieldSchema { meaning, ..self }
    }

    /// Returns the field in another unit than the usual one of its meaning.
    #[must_use]
    pub fn in_unit(self, unit: &str) -> FieldSchema {
        let own_unit = if unit == self.meaning.usual_unit() { String::new() } else { unit.to_owned() };
        FieldSchema { own_unit, ..self }
    }

    /// Returns the unit; empty for dimensionless fields.
    pub fn unit(&self) -> &str {
        if self.own_unit.is_empty() { self.meaning.usual_unit() } else { &self.own_unit }
    }

    /// Returns whether another log's or build's field holds the same value: same name, kind and scope, whatever the
    /// meaning.
    pub fn is_same_cell(&self, other: &FieldSchema) -> bool {
        (&self.name, self.kind, self.scope) == (&other.name, other.kind, other.scope)
    }
}

/// Index of a class in [`SessionHeader::classes`](super::SessionHeader::classes).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassId(pub u16);

/// A kind of entity and the fields of its states. Players and projectiles can have different fields. So can a player's
/// own state (Quake's playerState) and the state that others receive of that player (entityState).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Class {
    /// Name of the class: `player`, `entity`.
    pub name: String,
    /// The fields of its states, in the order of the cells. A field has one cell or two, by its [kind](CellKind::cells).
    pub fields: Vec<FieldSchema>,
}

/// Returns each field with the place of its cells in a state.
pub fn cells_of(fields: &[FieldSchema]) -> impl Iterator<Item = (&FieldSchema, std::ops::Range<usize>)> {
    fields.iter().scan(0, |next, field| {
        let begin = *next;
        *next += field.kind.cells();
        Some((field, begin..*next))
    })
}

/// Returns for each float of a state whether it is NaN.
#[doc(hidden)]
pub fn floats_of<'c>(fields: &'c [FieldSchema], cells: &'c [u32]) -> impl Iterator<Item = bool> + 'c {
    cells_of(fields).filter_map(move |(field, place)| {
        let number = field.kind.number(cells.get(place)?);
        match field.kind.form() {
            NumberForm::Integer => None,
            NumberForm::F32 => Some(f32::from_bits(number as u32).is_nan()),
            NumberForm::F64 => Some(f64::from_bits(number as u64).is_nan()),
        }
    })
}

impl Class {
    /// Returns the number of cells of a state.
    pub fn cells(&self) -> usize {
        self.fields.iter().map(|field| field.kind.cells()).sum()
    }

    /// Returns a class with these fields.
    pub fn new(name: impl Into<String>, fields: Vec<FieldSchema>) -> Class {
        Class { name: name.into(), fields }
    }

    /// Returns a class with the named fields of a body. A name covers all components: `origin` includes `origin.x` and
    /// so on.
    ///
    /// # Panics
    /// When a name matches no field, because the class would silently lack it.
    pub fn of(name: impl Into<String>, fields: &[FieldSchema], names: &[&str]) -> Class {
        let of = |field: &FieldSchema, name: &str| {
            field.name.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        for name in names {
            assert!(fields.iter().any(|field| of(field, name)), "no field of the body is called `{name}`");
        }
        let own = fields.iter().filter(|field| names.iter().any(|name| of(field, name)));
        Class::new(name, own.cloned().collect())
    }

    /// Returns the single class of a game whose entities all have the same fields.
    pub fn only(fields: Vec<FieldSchema>) -> Vec<Class> {
        vec![Class::new("entity", fields)]
    }
}

/// Returns the fields of a [`Usercmd`](crate::usercmd::Usercmd) except its number and its server time.
pub fn usercmd_fields() -> Vec<FieldSchema> {
    use CellKind::{F32, U32};
    // Each has the usual unit of its meaning.
    let field = |name, kind, meaning| FieldSchema::new(name, kind, Scope::Movement).meaning(meaning);
    vec![
        field("lerp_ms", U32, Meaning::Time),
        field("msec", U32, Meaning::Time),
        field("pitch", F32, Meaning::Angle),
        field("yaw", F32, Meaning::Angle),
        field("roll", F32, Meaning::Angle),
        field("forwardmove", F32, Meaning::Velocity),
        field("sidemove", F32, Meaning::Velocity),
        field("upmove", F32, Meaning::Velocity),
        field("buttons", U32, Meaning::Flag),
        field("impulse", U32, Meaning::Name),
    ]
}

/// Returns whether every log has a column of this name for its usercmds.
pub(crate) fn is_usercmd_column(name: &str) -> bool {
    ["seq", "at_us", "server_time_us"].contains(&name) || usercmd_fields().iter().any(|field| field.name == name)
}

/// Returns whether the usercmds of every log or the `frames` of every trace have a column of this name.
pub(crate) fn is_frames_column(name: &str) -> bool {
    let schema = &crate::trace::schema::frames::SCHEMA;
    is_usercmd_column(name)
        || schema.fields.is_some_and(|prefix| name.starts_with(prefix))
        || schema.columns.iter().any(|column| name.split('.').next() == Some(column.name))
}

/// A game's field has the name of a column that hitreg adds to its table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{owner} has a field called `{name}`, and the table `{table}` has another column of that name: rename the field"
)]
pub struct TakenName {
    owner: String,
    name: String,
    table: &'static str,
}

impl TakenName {
    /// Checks the names of a game's fields. `own_usercmd` are the usercmd fields that only this game has.
    ///
    /// # Errors
    /// When a field cannot become a column of its table.
    pub fn check(classes: &[Class], own_usercmd: &[FieldSchema]) -> Result<(), TakenName> {
        let bodies = &crate::trace::schema::bodies::SCHEMA;
        let is_taken = |field: &&FieldSchema| bodies.columns.iter().any(|column| column.name == field.name);
        for class in classes {
            if let Some(field) = class.fields.iter().find(is_taken) {
                let owner = format!("class `{}`", class.name);
                return Err(TakenName { owner, name: field.name.clone(), table: bodies.name });
            }
        }
        match own_usercmd.iter().find(|field| is_frames_column(&field.name)) {
            Some(field) => Err(TakenName {
                owner: "a usercmd".to_owned(),
                name: field.name.clone(),
                table: crate::trace::schema::frames::NAME,
            }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_scopes_and_meanings_of_later_versions_get_defaults() {
        let future = [("name", "spin"), ("kind", "f32"), ("scope", "physics"), ("meaning", "torque"), ("note", "new")];
        let future: crate::sorted::SortedMap<_, _> = future.into_iter().collect();
        let field: FieldSchema = crate::serial::from_msgpack(&rmp_serde::to_vec_named(&future).unwrap()).unwrap();
        assert_eq!(field, FieldSchema::new("spin", CellKind::F32, Scope::Status));
    }

    #[test]
    fn cells_hold_every_value_of_a_type() {
        use CellKind::{Bool, F32, F64, I32, I64, U32, U64};
        let bits = |value: f64| value.to_bits() as i64;
        let cases = [
            (I32, vec![i64::from(i32::MIN), -1, 0, i64::from(i32::MAX)]),
            (U32, vec![0, i64::from(u32::MAX)]),
            (F32, vec![i64::from((-0.5f32).to_bits()), i64::from(u32::MAX)]),
            (F64, vec![bits(-0.0), bits(0.1), bits(f64::NAN), -1]),
            (I64, vec![i64::MIN, -1, i64::MAX]),
            (U64, vec![u64::MAX as i64, 1 << 40]),
            (Bool, vec![0, 1]),
        ];
        assert_eq!(
            cases.each_ref().map(|(kind, _)| *kind).iter().filter(|kind| CellKind::ALL.contains(kind)).count(),
            7
        );
        for (kind, numbers) in cases {
            for number in numbers {
                let mut cells = Vec::new();
                assert!(kind.put(number, &mut cells), "{kind:?} {number}");
                assert_eq!((kind.number(&cells), cells.len()), (number, kind.cells()), "{kind:?}");
            }
        }
        for (kind, number) in [(I32, 1 << 31), (U32, -1), (F32, 1 << 32), (Bool, 2), (Bool, -1)] {
            assert!(!kind.put(number, &mut Vec::new()), "{kind:?} {number}");
        }
    }

    #[test]
    fn a_field_has_the_unit_of_its_meaning_by_default() {
        let time = FieldSchema::new("wait", CellKind::U32, Scope::Status).meaning(Meaning::Time);
        let (us, ms) = (time.clone().in_unit("us"), time.clone().in_unit("ms"));
        assert_eq!((time.unit(), us.unit(), &*ms.own_unit), ("ms", "us", ""));
    }
}
