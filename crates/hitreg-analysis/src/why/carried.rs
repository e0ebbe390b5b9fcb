//! The parts of a shot that only the log knows: the packets of its usercmd, and the snapshots between which its target
//! was drawn.

use std::cmp::Reverse;

use serde::Serialize;

use super::ShotExplanation;
use hitreg_log::record::{ArrivalTable, PlayerRecords, Session, SnapshotRecord};
use hitreg_log::units::{EntityId, Micros};

/// The packets that carried a usercmd.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct UsercmdPath {
    /// The time at which the first packet with the usercmd was sent.
    pub sent_us: i64,
    /// The time at which the first of them arrived; `None` if none did or arrivals were not recorded.
    pub arrived_us: Option<i64>,
    /// Whether all of them were lost: none arrived, and a later packet did.
    pub is_lost: bool,
    /// The number of packets that carried it.
    pub packets: u32,
}

/// The snapshots between which a target was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DrawnSnapshots {
    /// The last snapshot at or before the drawn time.
    pub before: ReceivedSnapshot,
    /// The first snapshot after the drawn time; `None` if the client did not have one yet.
    pub after: Option<ReceivedSnapshot>,
    /// The drawn time as a fraction of the time between both snapshots, from 0 to 1.
    pub fraction: Option<f32>,
}

/// A snapshot that the client had received.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReceivedSnapshot {
    /// Its sequence number.
    pub seq: u32,
    /// The tick whose state it contains.
    pub tick: u32,
    /// Its server time, in microseconds.
    pub server_time_us: i64,
}

impl ShotExplanation {
    /// Adds the log's data. The trace must be a replay under the log's own settings.
    pub fn know_log(&mut self, session: &Session) {
        let Some(records) = session.players.get(self.shooter as usize) else { return };
        let made_us = self.made.as_ref().and_then(|made| made.at_us);
        self.carried = carried(records, recorded_number(records, self.command, made_us));
        self.drawn_from = match interpolation_mode(session, self.shooter) {
            None | Some("history") => self.drawn_from(records),
            Some(_) => None,
        };
    }

    /// The snapshots around the drawn time. Clients that interpolate in the position history draw between these.
    fn drawn_from(&self, records: &PlayerRecords) -> Option<DrawnSnapshots> {
        let entity = EntityId::named(self.about.as_deref()?)?;
        let (drawn_us, made_us) = (self.drawn.as_ref()?.at_us?, self.made?.at_us?);
        let arrivals = ArrivalTable::new(&records.received);
        let had = |snapshot: &&SnapshotRecord| {
            let arrived = arrivals.of(snapshot.seq.0).next();
            arrived.is_some_and(|at| at <= Micros(made_us)) && snapshot.entities.contains(&entity)
        };
        let [mut before, mut after]: [Option<&SnapshotRecord>; 2] = [None, None];
        for snapshot in records.snapshots.iter().filter(had) {
            if snapshot.server_time.0 <= drawn_us {
                before =
                    before.into_iter().chain([snapshot]).max_by_key(|snapshot| (snapshot.server_time, snapshot.seq));
            } else {
                after = after
                    .into_iter()
                    .chain([snapshot])
                    .min_by_key(|snapshot| (snapshot.server_time, Reverse(snapshot.seq)));
            }
        }
        let [before, after] = [before, after].map(|snapshot| snapshot.map(ReceivedSnapshot::of));
        let before = before?;
        let span =
            after.map(|after| after.server_time_us.saturating_sub(before.server_time_us)).filter(|span| *span > 0);
        let fraction = span.map(|span| drawn_us.saturating_sub(before.server_time_us) as f32 / span as f32);
        Some(DrawnSnapshots { before, after, fraction })
    }
}

/// The setting of a player, or of all players; `None` if the log has no such setting.
fn interpolation_mode(session: &Session, player: u32) -> Option<&str> {
    const KEY: &str = "interpolation.mode";
    let own = format!("p{player}.{KEY}");
    let value = |key: &str| session.header.settings.iter().find(|(known, _)| known == key);
    value(&own).or_else(|| value(KEY)).map(|(_, value)| value.as_str())
}

impl ReceivedSnapshot {
    fn of(snapshot: &SnapshotRecord) -> ReceivedSnapshot {
        ReceivedSnapshot { seq: snapshot.seq.0, tick: snapshot.tick.0, server_time_us: snapshot.server_time.0 }
    }
}

/// The number of a replay's usercmd in the log. After a missing part, a replay has other numbers, but the same times.
fn recorded_number(records: &PlayerRecords, command: u32, made_us: Option<i64>) -> u32 {
    let frame = records.frames.iter().find(|frame| Some(frame.at.0) == made_us);
    frame.map_or(command, |frame| frame.command.seq.0)
}

fn carried(records: &PlayerRecords, command: u32) -> Option<UsercmdPath> {
    let fates = ArrivalTable::new(&records.reached);
    let carries = |newest: u32, count: u8| newest >= command && newest - command < u32::from(count);
    let with = records.sent.iter().filter(|packet| carries(packet.newest.0, packet.count));
    let with: Vec<_> = with.collect();
    let newest = records.reached.iter().map(|arrival| arrival.number).max();
    let arrived_us = with.iter().filter_map(|packet| fates.of(packet.number).next()).map(|at| at.0).min();
    Some(UsercmdPath {
        sent_us: with.iter().map(|packet| packet.at.0).min()?,
        arrived_us,
        is_lost: arrived_us.is_none() && newest.is_some_and(|newest| with.iter().all(|packet| packet.number < newest)),
        packets: with.len() as u32,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::record::{ArrivalRecord, FrameRecord, PacketRecord};
    use hitreg_log::units::CommandSeq;
    use hitreg_log::usercmd::Usercmd;

    /// A replay numbers the usercmds after a gap on from those before it.
    #[test]
    fn a_usercmd_after_a_gap_is_found_by_its_time() {
        let frame = |seq: u32| {
            let input = Usercmd { seq: CommandSeq(seq), ..Usercmd::default() };
            FrameRecord { at: Micros(i64::from(seq) * 10), command: input }
        };
        let records = PlayerRecords { frames: [1, 2, 9].map(frame).to_vec(), ..PlayerRecords::default() };
        let number = |command: u32, made_us: Option<i64>| recorded_number(&records, command, made_us);
        assert_eq!([number(3, Some(90)), number(2, Some(20)), number(3, None)], [9, 2, 3]);
    }

    #[test]
    fn a_usercmd_is_lost_only_if_a_later_packet_arrived() {
        let sent = |number: u32| PacketRecord {
            number,
            at: Micros(i64::from(number)),
            newest: CommandSeq(number),
            count: 1,
            bytes: 40,
            ack: hitreg_log::units::SnapshotSeq(0),
        };
        let records = PlayerRecords {
            sent: (1..=3).map(sent).collect(),
            reached: vec![ArrivalRecord { number: 2, at: Micros(9) }],
            ..PlayerRecords::default()
        };
        let is_lost = |command| carried(&records, command).map(|path| path.is_lost);
        assert_eq!([1, 2, 3].map(is_lost), [Some(true), Some(false), Some(false)]);
    }
}
