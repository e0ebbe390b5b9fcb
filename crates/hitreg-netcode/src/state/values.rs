//! Serialisation of the basic values of states.

use std::collections::VecDeque;
use std::sync::Arc;

use glam::Vec3;

use super::NumberKind;
use super::{StateError, StateReader, StateValue, StateWriter, check, value, variants};
use crate::game::{Body, Category, Effect, Touch};
use crate::history::{Frame, History};
use crate::packet::{ClientPacket, Echo, ReceivedPacket, Snapshot};
use crate::wire::Wrapping16;
use hitreg_log::record::OutOfSequence;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq, Tick};
use hitreg_log::usercmd::{Input, OwnCells, Usercmd};

macro_rules! numbers {
    ($($type:ident $method:ident),*) => { $(
        impl StateValue for $type {
            fn put(&self, to: &mut StateWriter) {
                to.$method((*self).into());
            }
            fn get(from: &mut StateReader) -> Result<Self, StateError> {
                $type::try_from(from.$method()?).map_err(|_| StateError::Invalid(stringify!($type)))
            }
        }
    )* };
}
numbers!(u8 byte, u16 number, u32 number, u64 number, i16 signed, i32 signed, i64 signed);

macro_rules! near {
    ($($type:ident($inner:ty) $kind:ident),*) => { $(
        impl StateValue for $type {
            fn put(&self, to: &mut StateWriter) {
                to.near_number(NumberKind::$kind, self.0.into());
            }
            fn get(from: &mut StateReader) -> Result<Self, StateError> {
                let number = <$inner>::try_from(from.near_number(NumberKind::$kind)?);
                number.map($type).map_err(|_| StateError::Invalid(stringify!($type)))
            }
        }
    )* };
}
near!(Micros(i64) Time, CommandSeq(u32) Command, SnapshotSeq(u32) Snapshot, Tick(u32) Tick);

/// Values that are stored as other values.
macro_rules! stored_as {
    ($($type:ty = $stored:ty: |$value:ident| $put:expr, |$read:ident| $get:expr;)*) => { $(
        impl StateValue for $type {
            fn put(&self, to: &mut StateWriter) {
                let $value = self;
                <$stored>::put(&$put, to);
            }
            fn get(from: &mut StateReader) -> Result<Self, StateError> {
                let $read = <$stored>::get(from)?;
                $get.ok_or(StateError::Invalid(stringify!($type)))
            }
        }
    )* };
}
stored_as! {
    usize = u64: |value| *value as u64, |read| usize::try_from(read).ok();
    bool = u8: |value| u8::from(*value), |read| (read <= 1).then_some(read == 1);
    EntityId = u16: |value| value.0, |read| Some(EntityId(read));
    PlayerId = u16: |value| value.0, |read| Some(PlayerId(read));
    Wrapping16 = u16: |value| value.0, |read| Some(Wrapping16(read));
    Vec3 = [f32; 3]: |value| value.to_array(), |read| Some(Vec3::from_array(read));
    String = Vec<u8>: |value| value.clone().into_bytes(), |read| String::from_utf8(read).ok();
    Category = u8: |value| *value as u8, |read| Category::ALL.get(usize::from(read)).copied();
}

impl StateValue for f32 {
    fn put(&self, to: &mut StateWriter) {
        to.word(self.to_bits());
    }
    fn get(from: &mut StateReader) -> Result<Self, StateError> {
        from.word().map(f32::from_bits)
    }
}

impl StateValue for f64 {
    fn put(&self, to: &mut StateWriter) {
        let bits = self.to_bits();
        to.word(bits as u32);
        to.word((bits >> 32) as u32);
    }
    fn get(from: &mut StateReader) -> Result<Self, StateError> {
        let low = from.word()?;
        Ok(f64::from_bits(u64::from(from.word()?) << 32 | u64::from(low)))
    }
}

impl<T: StateValue> StateValue for Option<T> {
    fn put(&self, to: &mut StateWriter) {
        self.is_some().put(to);
        self.iter().for_each(|value| value.put(to));
    }
    fn get(from: &mut StateReader) -> Result<Self, StateError> {
        bool::get(from)?.then(|| T::get(from)).transpose()
    }
}

impl<T: StateValue, const N: usize> StateValue for [T; N] {
    fn put(&self, to: &mut StateWriter) {
        self.iter().for_each(|value| value.put(to));
    }
    fn get(from: &mut StateReader) -> Result<Self, StateError> {
        let values = (0..N).map(|_| T::get(from)).collect::<Result<Vec<T>, _>>()?;
        values.try_into().map_err(|_| StateError::Cut)
    }
}

macro_rules! lists {
    ($($list:ident),*) => { $(
        impl<T: StateValue> StateValue for $list<T> {
            fn put(&self, to: &mut StateWriter) {
                to.number(self.len() as u64);
                self.iter().for_each(|value| value.put(to));
            }
            fn get(from: &mut StateReader) -> Result<Self, StateError> {
                let count = from.count(size_of::<T>())?;
                (0..count).map(|_| T::get(from)).collect()
            }
        }
    )* };
}
lists!(Vec, VecDeque);

impl<K: StateValue + Ord, V: StateValue> StateValue for SortedMap<K, V> {
    fn put(&self, to: &mut StateWriter) {
        to.number(self.len() as u64);
        for (key, value) in self {
            key.put(to);
            value.put(to);
        }
    }
    fn get(from: &mut StateReader) -> Result<Self, StateError> {
        Vec::<(K, V)>::get(from).map(SortedMap::from_iter)
    }
}

macro_rules! tuples {
    ($($(($type:ident $place:tt))*;)*) => { $(
        impl<$($type: StateValue),*> StateValue for ($($type,)*) {
            fn put(&self, to: &mut StateWriter) {
                $( self.$place.put(to); )*
            }
            fn get(from: &mut StateReader) -> Result<Self, StateError> {
                Ok(($($type::get(from)?,)*))
            }
        }
    )* };
}
tuples! {
    (A 0) (B 1);
    (A 0) (B 1) (C 2);
}

/// The cells of a body.
impl StateValue for Arc<[u32]> {
    fn put(&self, to: &mut StateWriter) {
        to.shared(NumberKind::Body, |to| self.iter().for_each(|cell| to.word(*cell)));
    }
    fn get(from: &mut StateReader) -> Result<Self, StateError> {
        from.shared(NumberKind::Body, |from| {
            from.charge(from.left_bytes())?;
            (0..from.left_bytes() / size_of::<u32>()).map(|_| from.word()).collect()
        })
    }
}

impl<B: Body> StateValue for B {
    fn put(&self, to: &mut StateWriter) {
        Arc::<[u32]>::from(self.to_cells()).put(to);
    }
    fn get(from: &mut StateReader) -> Result<Self, StateError> {
        Ok(B::read(&Arc::<[u32]>::get(from)?)?)
    }
}

impl<B: Body> StateValue for Arc<Frame<B>> {
    fn put(&self, to: &mut StateWriter) {
        let Frame { tick, server_time, entities } = &**self;
        to.shared_frame(self, |to| {
            (*tick, *server_time).put(to);
            entities.put(to);
        });
    }
    fn get(from: &mut StateReader) -> Result<Self, StateError> {
        from.shared(NumberKind::Frame, |from| {
            let (tick, server_time, entities) = <(_, _, Vec<(EntityId, B)>)>::get(from)?;
            check(entities.is_sorted_by(|(a, _), (b, _)| a < b), "Frame")?;
            Ok(Arc::new(Frame { tick, server_time, entities }))
        })
    }
}

/// Values that are stored once and referenced by index, from the names of all their fields.
macro_rules! stored_once {
    ($($type:ident { $($field:ident),* })*) => { $(
        impl StateValue for $type {
            fn put(&self, to: &mut StateWriter) {
                let $type { $($field,)* } = self;
                to.shared(NumberKind::$type, |to| {
                    $( $field.put(to); )*
                });
            }
            fn get(from: &mut StateReader) -> Result<Self, StateError> {
                from.shared(NumberKind::$type, |from| Ok($type { $($field: StateValue::get(from)?,)* }))
            }
        }
    )* };
}
stored_once! {
    Usercmd { seq, lerp_msec, server_time, input }
    Effect { kind, entity, at, predictable }
}

impl<B: Body> StateValue for History<B> {
    fn put(&self, to: &mut StateWriter) {
        self.frames().put(to);
    }
    fn get(from: &mut StateReader) -> Result<Self, StateError> {
        History::of(StateValue::get(from)?).ok_or(StateError::Invalid("History"))
    }
}

impl StateValue for OwnCells {
    fn put(&self, to: &mut StateWriter) {
        to.words(self.stored());
    }
    fn get(from: &mut StateReader) -> Result<Self, StateError> {
        from.words().map(|cells| OwnCells::new(&cells))
    }
}

variants!(Touch {
    0 => Player(entity),
    1 => Mover(entity),
    2 => Teleporter,
    3 => WaterEdge,
});
value!(Input { msec, viewangles, forwardmove, sidemove, upmove, buttons, impulse, own });
value!(ClientPacket { number, ack, commands });
value!(ReceivedPacket { packet, received_before });
value!(Echo { packet, held_ms, lost });
value!(OutOfSequence { command, difference });
value!(Snapshot<B: Body> { seq, ack, frame, effects, choked, helper_ms, warnings, echo, extra });
