//! A game's rules in a log's header: the bytes, and a cache of the parsed rules.

use std::any::Any;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use serde::de::{Deserialize, DeserializeOwned, Deserializer};
use serde::ser::{Serialize, Serializer};
use serde_bytes::ByteBuf;

use crate::serial::{ReadError, from_msgpack};

/// A game's rules in MessagePack, maps included. All clones share one parsed copy, because preparing a map takes longer
/// than replaying a second of a session.
#[derive(Clone, Default)]
pub struct StoredRules {
    bytes: Vec<u8>,
    read: Arc<OnceLock<Arc<dyn Any + Send + Sync>>>,
}

impl StoredRules {
    /// Returns the parsed rules; parses them on the first call only.
    ///
    /// # Errors
    /// When the bytes do not hold such rules.
    pub fn read<R: DeserializeOwned + Send + Sync + 'static>(&self) -> Result<Arc<R>, ReadError> {
        if let Some(Ok(known)) = self.read.get().map(|known| Arc::clone(known).downcast()) {
            return Ok(known);
        }
        let rules: Arc<R> = Arc::new(from_msgpack(&self.bytes)?);
        // Another thread may have parsed them in the meantime.
        let known = self.read.get_or_init(|| Arc::clone(&rules) as _);
        Ok(Arc::clone(known).downcast().unwrap_or(rules))
    }
}

impl From<Vec<u8>> for StoredRules {
    fn from(bytes: Vec<u8>) -> StoredRules {
        StoredRules { bytes, read: Arc::default() }
    }
}

impl Serialize for StoredRules {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(&self.bytes)
    }
}

impl<'de> Deserialize<'de> for StoredRules {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<StoredRules, D::Error> {
        ByteBuf::deserialize(from).map(|bytes| bytes.into_vec().into())
    }
}

impl Deref for StoredRules {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes
    }
}

impl PartialEq for StoredRules {
    fn eq(&self, other: &StoredRules) -> bool {
        self.bytes == other.bytes
    }
}

impl std::fmt::Debug for StoredRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} bytes", self.bytes.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rules_are_parsed_once() {
        let rules = StoredRules::from(rmp_serde::to_vec(&vec![3u32, 4]).expect("MessagePack"));
        let copy = rules.clone();
        let (one, other) = (rules.read::<Vec<u32>>().expect("numbers"), copy.read::<Vec<u32>>().expect("numbers"));
        assert!(Arc::ptr_eq(&one, &other));
        assert_eq!(*rules.read::<Vec<u64>>().expect("they are these, too"), [3, 4]);
        assert!(rules.read::<String>().is_err());
        let others = StoredRules::from(rmp_serde::to_vec(&vec![5u32]).expect("MessagePack"));
        assert_eq!(*others.read::<Vec<u32>>().expect("a number"), [5]);
    }
}
