//! Records a session in virtual time into the logs of its sides, as `hitreg serve` and `hitreg join` leave them.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use hitreg::arena::{Arena, ArenaRules, record_synthetic};
use hitreg::link::{Jitter, LinkModel, Loss};
use hitreg::record::{Origin, Record, RecordType, RecordedSide, SessionHeader, SessionId};
use hitreg::session::scenario::Scenario;
use hitreg::session::{RecordSink, SessionRecorder};
use hitreg::store::{FileType, Recording, StoreError, Targets};
use hitreg::units::{Micros, PlayerId};

/// The logs of the server and the clients.
struct Sides {
    server: Recording,
    clients: Vec<Recording>,
    failed: Option<StoreError>,
}

/// The difference between a client's clock and the server's.
fn clock(player: PlayerId) -> Micros {
    Micros(i64::from(player.0) * 7_654_321 - 60_000_000)
}

impl RecordSink for Sides {
    fn record(&mut self, mut record: Record) {
        let by = |player: PlayerId| Micros::ZERO - clock(player);
        let client = match &mut record {
            Record::Frame(player, frame) => Some((*player, frame.move_by(by(*player)))),
            Record::Predicted(player, shot) => Some((*player, shot.move_by(by(*player)))),
            Record::Sent(player, packet) => Some((*player, packet.move_by(by(*player)))),
            Record::Received(player, arrival) => Some((*player, arrival.move_by(by(*player)))),
            _ => None,
        };
        let to = match client {
            Some((player, ())) => &mut self.clients[usize::from(player.0)],
            None => &mut self.server,
        };
        if let Err(error) = to.push(record) {
            self.failed.get_or_insert(error);
        }
    }
}

/// Records a session and writes `server.hitlog`, `client0.hitlog` and so on into a folder.
pub(crate) fn write(seconds: f64, players: u16, folder: &Path) -> Result<(), Box<dyn Error>> {
    let link = LinkModel {
        delay_ms: 40.0,
        jitter: Jitter::Exponential(5.0),
        loss: Loss::Random(0.01),
        ..LinkModel::default()
    };
    let scenario = Scenario { players, seconds, link, ..Scenario::default() };
    let rules = Arc::new(ArenaRules::default());
    let header = SessionHeader { origin: Origin::Live, ..scenario.header::<Arena>(&rules)? };
    let targets = Targets::default().replacing_recordings();
    let begin = |name: String, player| {
        let header = SessionHeader { side: Some(RecordedSide { session: SessionId(1), player }), ..header.clone() };
        Recording::begin(&targets.file(&folder.join(name), FileType::Log)?, &header)
    };
    let clients = (0..players).map(|player| begin(format!("client{player}.hitlog"), Some(PlayerId(player))));
    let mut sides = Sides {
        clients: clients.collect::<Result<_, _>>()?,
        server: begin("server.hitlog".into(), None)?,
        failed: None,
    };
    let mut recorder = SessionRecorder::new(&mut sides).with_heard((0..players).map(PlayerId));
    record_synthetic(&scenario, &rules, &mut recorder)?;
    sides.server.finish()?;
    sides.clients.into_iter().try_for_each(Recording::finish)?;
    sides.failed.map_or(Ok(()), |error| Err(error.into()))
}
