//! Inputs and bodies of a game as fields of a log: for adapters, whose games are Rust types.

use std::ops::Range;

use crate::hash::StateHasher;
use crate::record::{
    CellKind, ClassId, FieldSchema, OwnValue, Scope, Session, TextCode, TickRecord, cells_of, usercmd_fields,
};
use crate::recorder::{PushError, Stream};
use crate::sorted::SortedMap;
use crate::units::EntityId;
use crate::usercmd::Usercmd;

/// A type whose members are fields of a log: an input, or the state of an entity. The macro [`fields!`](macro@crate::fields)
/// implements it for structs. Plain integers have one field, `input`.
pub trait Fields {
    /// Returns the declarations.
    fn fields() -> Vec<FieldSchema>;

    /// Returns the values, one for each field.
    fn values(&self) -> Vec<OwnValue>;

    /// Sets the members from values, one for each field.
    fn set(&mut self, values: &[OwnValue]);
}

/// A type that a field can hold. Texts are not supported.
pub trait FieldValue: Copy + Into<OwnValue> {
    /// The type of the field.
    const KIND: CellKind;

    /// Returns the value from a log. A value of another type becomes 0.
    fn from_own(value: OwnValue) -> Self;
}

macro_rules! integers {
    ($($type:ty, $kind:ident;)*) => { $(
        impl FieldValue for $type {
            const KIND: CellKind = CellKind::$kind;

            fn from_own(value: OwnValue) -> $type {
                value.integer().map_or(0, |number| number as $type)
            }
        }

        impl Fields for $type {
            fn fields() -> Vec<FieldSchema> {
                vec![FieldSchema::new("input", Self::KIND, Scope::Movement)]
            }

            fn values(&self) -> Vec<OwnValue> {
                vec![(*self).into()]
            }

            fn set(&mut self, values: &[OwnValue]) {
                *self = values.first().map_or(0, |value| Self::from_own(*value));
            }
        }
    )* };
}
integers! {
    u8, U32;
    u16, U32;
    u32, U32;
    u64, U64;
    i8, I32;
    i16, I32;
    i32, I32;
    i64, I64;
}

macro_rules! others {
    ($($type:ty, $kind:ident, $value:pat => $from:expr;)*) => { $(
        impl FieldValue for $type {
            const KIND: CellKind = CellKind::$kind;

            fn from_own(value: OwnValue) -> $type {
                if let $value = value { $from } else { <$type>::default() }
            }
        }
    )* };
}
others! {
    bool, Bool, OwnValue::Number(number) => number != 0;
    f32, F32, OwnValue::Float(float) => float;
    f64, F64, OwnValue::Double(double) => double;
}

/// Implements [`Fields`] for a struct, by the types of its members. A member that is not listed is not recorded.
///
/// A member may have a meaning and a name: [`Meaning`](crate::record::Meaning) says what hitreg's pages do with the
/// field, and some names have a meaning of their own, such as `origin.x`.
///
/// ```
/// #[derive(Clone, Copy, Default, PartialEq)]
/// struct Pad { thrust: i8, fire: bool }
/// hitreg_log::fields!(Pad { thrust: i8, fire: bool });
///
/// #[derive(Default)]
/// struct Ship { x: f32, spin: f32 }
/// hitreg_log::fields!(Ship { x: f32 as Position "origin.x", spin: f32 as Angle });
///
/// use hitreg_log::fields::Fields;
/// let mut copy = Ship::default();
/// copy.set(&Ship { x: 1.5, spin: 90.0 }.values());
/// assert_eq!((copy.x, copy.spin), (1.5, 90.0));
/// assert_eq!(Ship::fields()[0].name, "origin.x");
/// ```
#[macro_export]
macro_rules! fields {
    ($type:ty { $($member:ident: $kind:ty $(as $meaning:ident $($name:literal)?)?),* $(,)? }) => {
        impl $crate::fields::Fields for $type {
            fn fields() -> Vec<$crate::record::FieldSchema> {
                use $crate::record::{FieldSchema, Scope};
                vec![$({
                    // The last name counts: the declared one, if there is one.
                    let names = [stringify!($member) $($(, $name)?)?];
                    FieldSchema::new(names[names.len() - 1], <$kind as $crate::fields::FieldValue>::KIND, Scope::Movement)
                        $(.meaning($crate::record::Meaning::$meaning))?
                }),*]
            }

            fn values(&self) -> Vec<$crate::record::OwnValue> {
                vec![$(self.$member.into()),*]
            }

            fn set(&mut self, values: &[$crate::record::OwnValue]) {
                let mut values = values.iter();
                $(
                    if let Some(value) = values.next() {
                        self.$member = <$kind as $crate::fields::FieldValue>::from_own(*value);
                    }
                )*
            }
        }
    };
}

/// An entity after a tick.
#[derive(Clone, Debug, PartialEq)]
pub struct EntityFields {
    /// The number of the entity; a player's number for players.
    pub entity: u16,
    /// The index of its class in the description.
    pub class: u16,
    /// The values of its fields.
    pub values: Vec<OwnValue>,
}

impl EntityFields {
    /// Returns an entity with the values of a struct.
    pub fn new(entity: u16, class: u16, fields: &impl Fields) -> EntityFields {
        EntityFields { entity, class, values: fields.values() }
    }

    /// Returns a recorded state of a session, by its index.
    ///
    /// # Panics
    /// When the session has no such state.
    pub fn of_state(session: &Session, state: usize) -> EntityFields {
        let key = session.states.keys()[state];
        let cells = session.states.cells_of(state);
        let fields = &session.header.classes[usize::from(key.class.0)].fields;
        let values = cells_of(fields).map(|(field, place)| own_value(field.kind, field.kind.number(&cells[place])));
        EntityFields { entity: key.entity.0, class: key.class.0, values: values.collect() }
    }

    /// Returns the hash of a state that consists of these bodies, in any order. It covers the bodies sorted by entity and
    /// class. For each body it takes the entity and the class as 32-bit words, then the [number](CellKind::number) of each
    /// value as 64 bits, all little-endian.
    pub fn hash_all(bodies: &[EntityFields]) -> u64 {
        let mut sorted: Vec<&EntityFields> = bodies.iter().collect();
        sorted.sort_by_key(|body| (body.entity, body.class));
        let mut hasher = StateHasher::new();
        for body in sorted {
            hasher.words(&[body.entity.into(), body.class.into()]);
            body.values.iter().for_each(|value| hasher.bytes(&value.number().to_le_bytes()));
        }
        hasher.finish()
    }
}

impl Stream {
    /// Pushes the end of a tick, and then its bodies. If one of the bodies does not fit the description, nothing is
    /// pushed.
    ///
    /// # Errors
    /// As [`Stream::tick`]; also when the values of a body do not match the fields of its class.
    pub fn tick_with_bodies(&mut self, end: TickRecord, bodies: &[EntityFields]) -> Result<(), PushError> {
        let state = |body: &EntityFields| {
            self.state_of_values(end.tick, EntityId(body.entity), ClassId(body.class), &body.values)
        };
        let states = bodies.iter().map(state).collect::<Result<_, _>>()?;
        self.tick_with_states(end, states)
    }
}

fn own_value(kind: CellKind, number: i64) -> OwnValue {
    match kind {
        CellKind::F32 => OwnValue::Float(f32::from_bits(number as u32)),
        CellKind::F64 => OwnValue::Double(f64::from_bits(number as u64)),
        CellKind::Text => OwnValue::Text(TextCode(number as u64)),
        CellKind::U64 => OwnValue::Unsigned(number as u64),
        CellKind::I32 | CellKind::U32 | CellKind::I64 | CellKind::Bool => OwnValue::Number(number),
    }
}

/// Reads a game's inputs from usercmds of a log, whose fields may be those of another version of the game.
#[derive(Debug)]
pub struct InputReader {
    /// The fields of the log that belong to the game, by name.
    places: SortedMap<String, (CellKind, Range<usize>)>,
}

impl InputReader {
    /// Returns a reader for a log with these usercmd fields.
    pub fn new(usercmd: &[FieldSchema]) -> InputReader {
        let own = cells_of(&usercmd[usercmd_fields().len().min(usercmd.len())..]);
        InputReader { places: own.map(|(field, place)| (field.name.clone(), (field.kind, place))).collect() }
    }

    /// Returns the value of a field; `None` if the log has no field of this name and type.
    pub fn value(&self, command: &Usercmd, name: &str, kind: CellKind) -> Option<OwnValue> {
        let (_, place) = self.places.get(name).filter(|(known, _)| *known == kind)?;
        Some(own_value(kind, command.input.own.number(kind, place.clone())))
    }

    /// Returns the input. Fields that the log lacks keep the default.
    pub fn read<I: Fields + Default>(&self, command: &Usercmd) -> I {
        let mut input = I::default();
        let defaults = input.values();
        let values: Vec<OwnValue> = I::fields()
            .iter()
            .zip(defaults)
            .map(|(field, default)| self.value(command, &field.name, field.kind).unwrap_or(default))
            .collect();
        input.set(&values);
        input
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Class, StateRecord};
    use crate::recorder::{Description, Recorder, RecorderOptions};
    use crate::units::Tick;
    use crate::usercmd::{Input, OwnCells};

    #[derive(Debug, Default, PartialEq)]
    struct Everything {
        a: u8,
        b: i16,
        c: u64,
        d: i64,
        e: f32,
        f: f64,
        g: bool,
    }
    fields!(Everything { a: u8, b: i16, c: u64, d: i64, e: f32 as Velocity, f: f64 as Position "origin.x", g: bool });

    #[test]
    fn values_return_to_their_members() {
        let all = Everything { a: 255, b: -1, c: u64::MAX, d: i64::MIN, e: -0.5, f: 0.1, g: true };
        let mut copy = Everything::default();
        copy.set(&all.values());
        assert_eq!(copy, all);
        let kinds: Vec<_> = Everything::fields().iter().map(|field| field.kind.name()).collect();
        assert_eq!(kinds, ["u32", "i32", "u64", "i64", "f32", "f64", "bool"]);
        assert_eq!((&*Everything::fields()[5].name, Everything::fields()[4].unit()), ("origin.x", "units/s"));
    }

    #[test]
    fn an_integer_is_an_input() {
        let mut input = 0u16;
        input.set(&513u16.values());
        assert_eq!((input, &*u16::fields()[0].name), (513, "input"));
        input.set(&[]);
        assert_eq!(input, 0);
    }

    #[test]
    fn a_body_is_read_from_its_state_and_hashed_with_its_number() {
        let class = Class::new("all", Everything::fields());
        let (header, _) = Description::new("mygame").player("p0").class(class).into_header().unwrap();
        let mut session = Session::new(header);
        let cells = [255, u32::MAX, 0, 0, 0, 0, (-0.5f32).to_bits(), 0, 0, 1];
        session.states.push(StateRecord::shared(Tick(1), EntityId(3), Vec::new()).key(), &cells);
        let all = Everything { a: 255, b: -1, e: -0.5, g: true, ..Everything::default() };
        let body = EntityFields::of_state(&session, 0);
        assert_eq!(body, EntityFields::new(3, 0, &all));
        let hash = |body: &EntityFields| EntityFields::hash_all(std::slice::from_ref(body));
        let others = [
            EntityFields { entity: 4, ..body.clone() },
            EntityFields { class: 1, ..body.clone() },
            EntityFields::new(3, 0, &7u8),
        ];
        assert!(others.iter().all(|other| hash(other) != hash(&body)));
        // A playback restores bodies in the order of the log, and a game may hold them in another.
        let [first, second, third] = others;
        assert_eq!(
            EntityFields::hash_all(&[first.clone(), second.clone(), third.clone()]),
            EntityFields::hash_all(&[third, first, second])
        );
    }

    #[test]
    fn a_tick_with_a_body_that_does_not_fit_is_not_pushed() {
        let about = Description::new("mygame").player("p0").class(Class::new("all", u8::fields()));
        let recorder = Recorder::to(std::io::sink(), about, RecorderOptions::patient()).unwrap();
        let end = TickRecord { tick: Tick(1), ..TickRecord::default() };
        let bodies = [EntityFields::new(0, 0, &7u8), EntityFields { entity: 1, class: 0, values: Vec::new() }];
        let mut stream = recorder.stream();
        assert!(stream.tick_with_bodies(end, &bodies).is_err());
        assert_eq!(stream.tick_with_bodies(end, &bodies[..1]), Ok(()));
        assert_eq!(recorder.finish().unwrap().records, 2);
    }

    #[derive(Debug, PartialEq)]
    struct Pad {
        turn: i8,
        power: f64,
        fire: bool,
    }
    fields!(Pad { turn: i8, power: f64, fire: bool });

    impl Default for Pad {
        fn default() -> Pad {
            Pad { turn: 0, power: 0.5, fire: false }
        }
    }

    #[test]
    fn inputs_are_read_by_the_names_of_their_fields() {
        let field = |name, kind| FieldSchema::new(name, kind, Scope::Movement);
        let mut fields = usercmd_fields();
        // The recording had another order, another type of `power`, and no `fire`.
        fields.extend([field("power", CellKind::F32), field("turn", CellKind::I32)]);
        let reader = InputReader::new(&fields);
        let usercmd = |cells: &[u32]| {
            let input = Input { own: OwnCells::new(cells), ..Input::default() };
            reader.read::<Pad>(&Usercmd { input, ..Usercmd::default() })
        };
        assert_eq!(usercmd(&[7, -3i32 as u32]), Pad { turn: -3, ..Pad::default() });
        assert_eq!(usercmd(&[]), Pad::default());
    }
}
