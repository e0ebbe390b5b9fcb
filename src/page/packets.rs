//! The packets of a session as a table, as a log has them and a replay's trace has not.

use crate::record::{ArrivalRecord, Fates, Session};
use crate::trace::{Column, Data, Table};

/// Every packet between the server and a recorded client, by player and direction, in the order of sending: `player`, `way`
/// (`up` to the server, `down` to the client), `sent_us`, `transit_ms` (NaN where it never arrived), `bytes`, and `choked`, how
/// many the server held back before it.
///
/// A log that was recorded on one side only does not know of packets that never came there, nor when those that did were sent.
pub fn packets(session: &Session) -> Option<Table> {
    let mut rows = Rows::default();
    for (player, records) in (0..).zip(&session.players) {
        let up = records.sent.iter().map(|sent| Sent::new(sent.number, sent.at.0, sent.bytes, 0));
        rows.add((player, 0), up, &records.reached);
        let down = records.snapshots.iter();
        let down = down.map(|sent| Sent::new(sent.seq.0, sent.at.0, sent.bytes, sent.choked));
        rows.add((player, 1), down, &records.received);
    }
    let Rows { player, way, sent_us, transit_ms, bytes, choked } = rows;
    let names = ["up", "down"].map(str::to_owned).to_vec();
    let columns = vec![
        Column::new("player", Data::U32(player)),
        Column::new("way", Data::Name { names, codes: way }),
        Column::new("sent_us", Data::I64(sent_us)).in_unit("µs"),
        Column::new("transit_ms", Data::F32(transit_ms)).in_unit("ms"),
        Column::new("bytes", Data::U32(bytes)),
        Column::new("choked", Data::U32(choked)),
    ];
    Some(Table::new("packets", columns)).filter(|table| table.rows() > 0)
}

#[derive(Default)]
struct Rows {
    player: Vec<u32>,
    way: Vec<u32>,
    sent_us: Vec<i64>,
    transit_ms: Vec<f32>,
    bytes: Vec<u32>,
    choked: Vec<u32>,
}

struct Sent {
    number: u32,
    at_us: i64,
    bytes: u32,
    choked: u32,
}

impl Sent {
    fn new(number: u32, at_us: i64, bytes: u16, choked: u8) -> Sent {
        Sent { number, at_us, bytes: bytes.into(), choked: choked.into() }
    }
}

impl Rows {
    /// Of what was sent after the last that is known to have arrived, nothing is known: it may have been on its way.
    fn add(&mut self, (player, way): (u32, u32), sent: impl Iterator<Item = Sent>, arrivals: &[ArrivalRecord]) {
        let fates = Fates::new(arrivals);
        let newest = arrivals.iter().map(|arrival| arrival.number).max().unwrap_or(0);
        for packet in sent.filter(|packet| packet.number <= newest) {
            let arrived = fates.of(packet.number).next();
            self.player.push(player);
            self.way.push(way);
            self.sent_us.push(packet.at_us);
            self.transit_ms.push(arrived.map_or(f32::NAN, |at| at.0.saturating_sub(packet.at_us) as f32 / 1e3));
            self.bytes.push(packet.bytes);
            self.choked.push(packet.choked);
        }
    }
}
