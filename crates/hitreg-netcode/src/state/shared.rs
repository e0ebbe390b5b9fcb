//! Values that a state holds many times, such as the bodies that both ends of every connection know.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{StateValue, StateWriter};

/// Values that are stored once and referenced by index, each as its bytes.
#[derive(Clone, Debug, Default)]
pub struct SharedValues {
    pub(super) values: Vec<Arc<[u8]>>,
    index: BTreeMap<Arc<[u8]>, usize>,
}

impl SharedValues {
    /// Adds all values in `value` that can be shared, so that a state does not store them.
    pub fn add(&mut self, value: &impl StateValue) {
        let mut to = StateWriter::new(std::mem::take(self));
        value.put(&mut to);
        *self = to.into_shared();
    }

    pub(super) fn index_of(&mut self, value: &[u8]) -> usize {
        if let Some(index) = self.index.get(value) {
            return *index;
        }
        let (value, index): (Arc<[u8]>, _) = (value.into(), self.values.len());
        self.values.push(Arc::clone(&value));
        self.index.insert(value, index);
        index
    }
}

/// The newest value of each length. A value is stored as the difference from the one before it of the same length, most
/// of whose bits it shares.
#[derive(Default)]
pub(super) struct Predecessors(BTreeMap<usize, Arc<[u8]>>);

impl Predecessors {
    pub(super) fn of(values: &[Arc<[u8]>]) -> Predecessors {
        Predecessors(values.iter().map(|value| (value.len(), Arc::clone(value))).collect())
    }

    /// Returns the bits in which a value differs from its predecessor, or the value with these differences.
    pub(super) fn differences(&self, value: &[u8]) -> Vec<u8> {
        let before = self.0.get(&value.len()).into_iter().flat_map(|before| before.iter().copied());
        value.iter().zip(before.chain(std::iter::repeat(0))).map(|(byte, before)| byte ^ before).collect()
    }

    pub(super) fn push(&mut self, value: &Arc<[u8]>) {
        self.0.insert(value.len(), Arc::clone(value));
    }
}
