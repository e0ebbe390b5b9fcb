//! The network protocols of other games that a proxy understands, by name.

use std::path::Path;

use hitreg_log::store::StoreError;
use hitreg_netcode::protocol::Listen;

/// What is known of a session before it is heard.
#[derive(Clone, Copy, Debug, Default)]
pub struct Known<'a> {
    /// The map that will be played, or an archive that holds it.
    pub map: Option<&'a Path>,
}

/// A protocol by name, and how somebody who hears it is made.
struct Protocol {
    name: &'static str,
    listener: fn(&Known<'_>) -> Result<Box<dyn Listen>, StoreError>,
}

/// Another one is a line here, and a [`Listen`] in the room of its game.
const PROTOCOLS: &[Protocol] = &[Protocol {
    name: "quake3",
    listener: |known| {
        let map = known.map.map(hitreg_log::store::read_bytes).transpose()?;
        Ok(Box::new(crate::quake3::Overheard::new(map)))
    },
}];

/// The names of all protocols.
pub fn protocols() -> impl Iterator<Item = &'static str> {
    PROTOCOLS.iter().map(|protocol| protocol.name)
}

/// Somebody who hears a protocol; `None` where none has that name.
///
/// # Errors
/// When a file that is needed cannot be read.
pub fn listener(name: &str, known: &Known<'_>) -> Option<Result<Box<dyn Listen>, StoreError>> {
    PROTOCOLS.iter().find(|protocol| protocol.name == name).map(|protocol| (protocol.listener)(known))
}
