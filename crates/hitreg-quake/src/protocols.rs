//! The network protocols of other games that a proxy understands, by name.

use std::path::Path;

use hitreg_log::store::StoreError;
use hitreg_netcode::protocol::SessionListener;

/// The facts about a session that a listener gets in advance.
#[derive(Clone, Copy, Debug, Default)]
pub struct ProtocolContext<'a> {
    /// The map that will be played, or an archive that holds it.
    pub map: Option<&'a Path>,
}

/// A protocol's name, and the constructor of its listener.
struct Protocol {
    name: &'static str,
    listener: fn(&ProtocolContext<'_>) -> Result<Box<dyn SessionListener>, StoreError>,
}

/// All protocols. A new protocol needs a line here, and a [`SessionListener`] implementation in its game's module.
const PROTOCOLS: &[Protocol] = &[Protocol {
    name: "quake3",
    listener: |known| {
        let map = known.map.map(hitreg_log::store::read_bytes).transpose()?;
        Ok(Box::new(crate::quake3::Quake3Listener::new(map)))
    },
}];

/// Returns the names of all protocols.
pub fn protocols() -> impl Iterator<Item = &'static str> {
    PROTOCOLS.iter().map(|protocol| protocol.name)
}

/// Creates a listener for a protocol; `None` if the name is unknown.
///
/// # Errors
/// When the map or archive cannot be read.
pub fn listener(name: &str, known: &ProtocolContext<'_>) -> Option<Result<Box<dyn SessionListener>, StoreError>> {
    PROTOCOLS.iter().find(|protocol| protocol.name == name).map(|protocol| (protocol.listener)(known))
}
