//! Serialises vectors as arrays of three numbers, for `#[serde(with = "...")]`.

use glam::Vec3;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

pub(crate) fn serialize<S: Serializer>(vector: &Vec3, serializer: S) -> Result<S::Ok, S::Error> {
    vector.to_array().serialize(serializer)
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec3, D::Error> {
    <[f32; 3]>::deserialize(deserializer).map(Vec3::from_array)
}
