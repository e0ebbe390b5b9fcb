//! Records a Quake III session through a proxy.

use super::import::header;
use super::listener::{DeliveryTime, Listener};
use super::server_log::ServerLog;
use crate::bsp::quake3::map_from;
use hitreg_log::record::{Origin, Record, SessionHeader};
use hitreg_netcode::protocol::{HeardCounts, PassingDatagram, SessionListener};

/// Observes clients and a server of protocol 71.
pub struct Quake3Listener {
    listener: Listener,
    /// A map, or an archive that contains the session's map.
    maps: Option<Vec<u8>>,
    is_begun: bool,
    /// Why the log has no map.
    warning: Option<String>,
}

impl Quake3Listener {
    /// Returns an observer that takes the level's map from a `.bsp` or a `.pk3`. Without a map it cannot check
    /// predictions.
    pub fn new(maps: Option<Vec<u8>>) -> Quake3Listener {
        Quake3Listener { listener: Listener::new(ServerLog::default()), maps, is_begun: false, warning: None }
    }
}

impl SessionListener for Quake3Listener {
    fn hear(&mut self, passing: &PassingDatagram<'_>, out: &mut dyn FnMut(Record)) {
        let onward = passing.released.map_or(DeliveryTime::Lost, DeliveryTime::At);
        self.listener.hear(passing.at, passing.client, passing.direction, passing.bytes, onward, out);
    }

    fn header(&mut self) -> Option<Result<SessionHeader, String>> {
        let mut rules = self.listener.rules().filter(|_| !self.is_begun)?.clone();
        self.is_begun = true;
        if let Some(maps) = self.maps.take() {
            match map_from(&maps, &rules.map_name) {
                Ok(map) => rules.map = Some(map),
                // The session cannot be played again, so it is recorded without its map.
                Err(error) => self.warning = Some(format!("no predictions: --map: {error}")),
            }
        }
        // The players are not known yet, so the header lists every possible one.
        let places: Vec<u16> = (0..rules.places).collect();
        let origin = Origin::Imported { format: "quake3-proxy".to_owned() };
        Some(header(&rules, &places, origin).map_err(|error| error.to_string()))
    }

    fn heard(&self) -> HeardCounts {
        let counts = self.listener.counts();
        HeardCounts {
            datagrams: counts.datagrams,
            undecoded: counts.undecoded,
            players: self.listener.players().count() as u64,
            usercmds: counts.usercmds,
            snapshots: counts.snapshots,
            after_level: counts.after_level,
        }
    }

    fn warning(&self) -> Option<String> {
        self.warning.clone()
    }

    fn finish(&mut self, out: &mut dyn FnMut(Record)) {
        self.listener.finish(out);
    }
}
