//! The games of id Software in hitreg: [`quakeworld`] and [`quake3`], the importers of their recordings ([`mod@import`]) and the
//! network protocols that a proxy understands ([`protocols`]).

mod bsp;
mod clock;
pub mod import;
pub mod quake3;
pub mod quakeworld;

/// The network protocols of other games that a proxy understands, by name.
pub mod protocols {
    use std::path::Path;

    use crate::bsp::MapError;
    use crate::bsp::quake3::check_maps;
    use crate::import::ImportFileError;
    use crate::quake3::Quake3Listener;
    use hitreg_netcode::protocol::SessionListener;

    /// Creates a listener, given the map that will be played, or an archive that holds it.
    type NewListener = fn(Option<&Path>) -> Result<Box<dyn SessionListener>, ImportFileError>;

    /// All protocols by name. A new protocol needs an entry here, and a [`SessionListener`] implementation in its game's
    /// module.
    const PROTOCOLS: [(&str, NewListener); 1] = [("quake3", |map| {
        let maps = map.map(hitreg_log::store::read_bytes).transpose()?;
        if let (Some(path), Some(maps)) = (map, &maps) {
            let fault = |error: MapError| ImportFileError::Quake3 { path: path.to_owned(), source: error.into() };
            check_maps(maps).map_err(fault)?;
        }
        Ok(Box::new(Quake3Listener::new(maps)))
    })];

    /// Returns the names of all protocols.
    pub fn protocols() -> impl Iterator<Item = &'static str> {
        PROTOCOLS.iter().map(|(name, _)| *name)
    }

    /// Creates a listener for a protocol; `None` if the name is unknown. `map` is the map that will be played, or an archive
    /// that holds it.
    ///
    /// # Errors
    /// When the map or archive cannot be read.
    pub fn listener(name: &str, map: Option<&Path>) -> Option<Result<Box<dyn SessionListener>, ImportFileError>> {
        PROTOCOLS.iter().find(|(known, _)| *known == name).map(|(_, listener)| listener(map))
    }
}
