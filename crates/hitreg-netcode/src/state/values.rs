//! Serialisation of the basic values of states.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use glam::Vec3;

use super::saver::DeltaKind;
use super::{Restorer, StateError, StateValue, StateWriter, value};
use crate::game::{Body, Effect, Touch};
use crate::history::{Frame, History};
use crate::packet::{ClientPacket, Echo, Snapshot};
use crate::wire::Wrapping16;
use hitreg_log::record::OutOfSequence;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq, Tick};
use hitreg_log::usercmd::{Input, OwnCells, Usercmd};

macro_rules! numbers {
    ($($type:ty),*) => { $(
        impl<B: Body> StateValue<B> for $type {
            fn put(&self, to: &mut StateWriter<'_, B>) {
                to.number(*self as u64);
            }
            fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
                let found = from.number()?;
                <$type>::try_from(found).map_err(|_| StateError::Value { what: stringify!($type), found })
            }
        }
    )* };
}
numbers!(u8, u16, u32, u64, usize);

macro_rules! near {
    ($($type:ident($inner:ty) $near:ident),*) => { $(
        impl<B: Body> StateValue<B> for $type {
            fn put(&self, to: &mut StateWriter<'_, B>) {
                to.near_number(DeltaKind::$near, self.0.into());
            }
            fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
                let found = from.near_number(DeltaKind::$near)?;
                let wrong = |_| StateError::Value { what: stringify!($type), found: found as u64 };
                <$inner>::try_from(found).map($type).map_err(wrong)
            }
        }
    )* };
}
near!(Micros(i64) Time, CommandSeq(u32) Command, SnapshotSeq(u32) Snapshot, Tick(u32) Tick);

macro_rules! ids {
    ($($type:ident),*) => { $(
        impl<B: Body> StateValue<B> for $type {
            fn put(&self, to: &mut StateWriter<'_, B>) {
                self.0.put(to);
            }
            fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
                StateValue::<B>::get(from).map($type)
            }
        }
    )* };
}
ids!(EntityId, PlayerId, Wrapping16);

impl<B: Body> StateValue<B> for bool {
    fn put(&self, to: &mut StateWriter<'_, B>) {
        to.byte((*self).into());
    }
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
        match from.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            found => Err(StateError::Value { what: "a flag", found: found.into() }),
        }
    }
}

impl<B: Body> StateValue<B> for i16 {
    fn put(&self, to: &mut StateWriter<'_, B>) {
        to.signed((*self).into());
    }
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
        let found = from.signed()?;
        i16::try_from(found).map_err(|_| StateError::Value { what: "i16", found: found as u64 })
    }
}

impl<B: Body> StateValue<B> for f64 {
    fn put(&self, to: &mut StateWriter<'_, B>) {
        let bits = self.to_bits();
        to.word(bits as u32);
        to.word((bits >> 32) as u32);
    }
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
        let low = from.word()?;
        Ok(f64::from_bits(u64::from(from.word()?) << 32 | u64::from(low)))
    }
}

impl<B: Body> StateValue<B> for f32 {
    fn put(&self, to: &mut StateWriter<'_, B>) {
        to.word(self.to_bits());
    }
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
        from.word().map(f32::from_bits)
    }
}

impl<B: Body> StateValue<B> for Vec3 {
    fn put(&self, to: &mut StateWriter<'_, B>) {
        self.to_array().iter().for_each(|axis| axis.put(to));
    }
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
        Ok(Vec3::new(StateValue::<B>::get(from)?, StateValue::<B>::get(from)?, StateValue::<B>::get(from)?))
    }
}

impl<B: Body, T: StateValue<B>> StateValue<B> for Option<T> {
    fn put(&self, to: &mut StateWriter<'_, B>) {
        self.is_some().put(to);
        if let Some(value) = self {
            value.put(to);
        }
    }
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
        let is_some = <bool as StateValue<B>>::get(from)?;
        is_some.then(|| T::get(from)).transpose()
    }
}

impl<B: Body, T: StateValue<B>> StateValue<B> for Vec<T> {
    fn put(&self, to: &mut StateWriter<'_, B>) {
        to.number(self.len() as u64);
        self.iter().for_each(|value| value.put(to));
    }
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
        let count = from.count(size_of::<T>())?;
        (0..count).map(|_| T::get(from)).collect()
    }
}

impl<B: Body, T: StateValue<B>> StateValue<B> for VecDeque<T> {
    fn put(&self, to: &mut StateWriter<'_, B>) {
        to.number(self.len() as u64);
        self.iter().for_each(|value| value.put(to));
    }
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
        <Vec<T> as StateValue<B>>::get(from).map(VecDeque::from)
    }
}

impl<B: Body, K: StateValue<B> + Ord, V: StateValue<B>> StateValue<B> for BTreeMap<K, V> {
    fn put(&self, to: &mut StateWriter<'_, B>) {
        to.number(self.len() as u64);
        for (key, value) in self {
            key.put(to);
            value.put(to);
        }
    }
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
        <Vec<(K, V)> as StateValue<B>>::get(from).map(|pairs| pairs.into_iter().collect())
    }
}

impl<B: Body, T: StateValue<B>, U: StateValue<B>> StateValue<B> for (T, U) {
    fn put(&self, to: &mut StateWriter<'_, B>) {
        self.0.put(to);
        self.1.put(to);
    }
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
        Ok((T::get(from)?, U::get(from)?))
    }
}

impl<B: Body, T: StateValue<B>, U: StateValue<B>, V: StateValue<B>> StateValue<B> for (T, U, V) {
    fn put(&self, to: &mut StateWriter<'_, B>) {
        self.0.put(to);
        self.1.put(to);
        self.2.put(to);
    }
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
        Ok((T::get(from)?, U::get(from)?, V::get(from)?))
    }
}

impl<B: Body> StateValue<B> for B {
    fn put(&self, to: &mut StateWriter<'_, B>) {
        to.body(self);
    }
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
        from.body()
    }
}

impl<B: Body> StateValue<B> for Arc<Frame<B>> {
    fn put(&self, to: &mut StateWriter<'_, B>) {
        to.frame(self);
    }
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
        from.frame()
    }
}

impl<B: Body> StateValue<B> for Usercmd {
    fn put(&self, to: &mut StateWriter<'_, B>) {
        to.command(self);
    }
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
        from.command()
    }
}

impl<B: Body> StateValue<B> for Touch {
    fn put(&self, to: &mut StateWriter<'_, B>) {
        match self {
            Touch::Player(entity) => (0u8, *entity).put(to),
            Touch::Mover(entity) => (1u8, *entity).put(to),
            Touch::Teleporter => to.byte(2),
            Touch::WaterEdge => to.byte(3),
        }
    }
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
        match from.byte()? {
            0 => Ok(Touch::Player(StateValue::<B>::get(from)?)),
            1 => Ok(Touch::Mover(StateValue::<B>::get(from)?)),
            2 => Ok(Touch::Teleporter),
            3 => Ok(Touch::WaterEdge),
            found => Err(StateError::Value { what: "what a body met", found: found.into() }),
        }
    }
}

impl<B: Body> StateValue<B> for Snapshot<B> {
    fn put(&self, to: &mut StateWriter<'_, B>) {
        let Snapshot { seq, ack, frame, effects, choked, helper_ms, warnings, echo, extra } = self;
        (*seq, *ack).put(to);
        frame.put(to);
        effects.put(to);
        (*choked, *helper_ms).put(to);
        warnings.put(to);
        echo.put(to);
        extra.put(to);
    }
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
        let (seq, ack) = StateValue::<B>::get(from)?;
        let (frame, effects) = (from.frame()?, StateValue::<B>::get(from)?);
        let (choked, helper_ms) = StateValue::<B>::get(from)?;
        let (warnings, echo, extra) = StateValue::<B>::get(from)?;
        Ok(Snapshot { seq, ack, frame, effects, choked, helper_ms, warnings, echo, extra })
    }
}

impl<B: Body> StateValue<B> for History<B> {
    fn put(&self, to: &mut StateWriter<'_, B>) {
        self.frames().put(to);
    }
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
        let frames: VecDeque<_> = StateValue::<B>::get(from)?;
        let found = frames.len() as u64;
        History::of(frames).ok_or(StateError::Value { what: "the frames of a history", found })
    }
}

impl<B: Body> StateValue<B> for OwnCells {
    fn put(&self, to: &mut StateWriter<'_, B>) {
        to.number(self.stored().len() as u64);
        self.stored().iter().for_each(|cell| to.word(*cell));
    }
    fn get(from: &mut Restorer<'_, B>) -> Result<Self, StateError> {
        let count = from.count(size_of::<u32>())?;
        Ok(OwnCells::new(&(0..count).map(|_| from.word()).collect::<Result<Vec<u32>, _>>()?))
    }
}

value!(Input { msec, viewangles, forwardmove, sidemove, upmove, buttons, impulse, own });
value!(Effect { kind, entity, at, predictable });
value!(ClientPacket { number, ack, commands });
value!(Echo { packet, held_ms, lost });
value!(OutOfSequence { command, difference });
