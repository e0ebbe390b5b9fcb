use super::*;
use crate::record::{PacketRecord, PlayerInfo, SnapshotRecord};
use crate::trace::schema::packets::{Row, Writer};
use crate::units::{Micros, SnapshotSeq};

/// A reader gives the packets of the whole session, wherever the log is cut into stretches.
#[test]
fn packets_read_in_stretches_are_those_of_the_session() {
    let players = ["p0", "p1"].map(|name| PlayerInfo { name: name.into(), recorded: true }).into();
    let header = SessionHeader {
        game: "disc".into(),
        rules: Vec::new().into(),
        map: String::new(),
        seed: crate::units::Seed(0),
        settings: Vec::new(),
        preset: None,
        players,
        origin: Origin::Synthetic,
        side: None,
        classes: Vec::new(),
        usercmd: Vec::new(),
        unknown: Vec::new(),
    };
    for origin in [Origin::Synthetic, Origin::Imported { format: "demo".into() }] {
        let mut session = Session::new(SessionHeader { origin, ..header.clone() });
        let mut stretches = vec![SessionStretch { players: vec![Default::default(); 2], ..Default::default() }; 20];
        for n in 0..400u32 {
            let (player, at) = ((n % 2) as usize, i64::from(n) * 900_000);
            let is_lost = n % 7 == 3 || n > 390;
            let (seq, at) = (SnapshotSeq(n * 2), Micros(at));
            let sent = SnapshotRecord { seq, at, bytes: 9, choked: u8::from(n % 11 == 0), ..Default::default() };
            let later = (n as usize / 20 + usize::from(n % 3 == 0)).min(19);
            let arrival = ArrivalRecord { number: seq.0, at: Micros(at.0 + 40_000) };
            stretches[n as usize / 20].players[player].snapshots.push(sent);
            if !is_lost {
                stretches[later].players[player].received.push(arrival);
            }
        }
        let (mut reader, mut read) = (PacketReader::new(&session.header), Vec::new());
        for stretch in &stretches {
            reader.add(stretch, &mut |packet| read.push(packet));
            session.append(stretch.clone());
        }
        reader.end(&mut |packet| read.push(packet));
        read.sort_by_key(|packet| packet.player);
        assert!(read.len() > 300 && read.iter().any(|packet| packet.took_us.is_none()));
        assert_eq!(read, of_session(&session), "{:?}", session.header.origin);
    }
}

/// Packet 2 is lost, packets 4 and 5 may have arrived in the gap, and packet 22 is in flight at the end.
#[test]
fn packets_in_flight_when_a_gap_begins_are_not_lost() {
    let us = |ms: i64| Micros::from_ms(ms);
    let sent = [(1, 0), (2, 10), (3, 20), (4, 30), (5, 40), (20, 900), (21, 910), (22, 920)];
    let sent = sent.map(|(number, ms)| PacketRecord { number, at: us(ms), ..Default::default() });
    let reached = [(1, 15), (3, 35), (21, 925)].map(|(number, ms)| ArrivalRecord { number, at: us(ms) });
    let records = PlayerRecords { sent: sent.into(), reached: reached.into(), ..Default::default() };
    let lost = |player: Option<u16>| -> Vec<i64> {
        let player = player.map(crate::units::PlayerId);
        let gaps = vec![GapRecord { from: us(40), to: us(900), player, ..Default::default() }];
        let stretch = SessionStretch { players: vec![records.clone()], gaps, ..Default::default() };
        let session = of_records(&stretch.players, &stretch.gaps, SnapshotNumbers::Sent);
        let trace = Trace { tables: vec![packet_table(&session)], ..Trace::default() };
        let stored: Result<Vec<Packet>, String> = of_packet_table(&trace).unwrap().collect();
        assert_eq!(stored.as_ref(), Ok(&session));
        let lost = session.iter().filter(|packet| packet.took_us.is_none());
        lost.map(|packet| packet.sent_us / 1_000).collect()
    };
    assert_eq!([None, Some(0), Some(1)].map(lost), [vec![10, 900], vec![10, 900], vec![10, 30, 40, 900]]);
}

#[test]
fn packets_in_flight_at_the_end_are_not_lost() {
    let mut writer = Writer::default();
    for (packet, took_ms) in [(1, 20.0), (2, f32::NAN), (3, 21.5), (4, f32::NAN)] {
        let at_us = i64::from(packet) * 1_000;
        let arrived = u32::from(!f32::is_nan(took_ms));
        writer.push(Row {
            player: 7,
            packet,
            at_us,
            arrived,
            took_ms,
            newest: packet,
            usercmds: 1,
            ack: 0,
            bytes: None,
        });
    }
    let found = of_trace(&Trace { tables: vec![writer.finish(Vec::new())], ..Trace::default() });
    let took: Vec<_> = found.iter().map(|packet| packet.took_us).collect();
    assert_eq!(took, [Some(20_000), None, Some(21_500)]);
    assert!(found.iter().all(|packet| packet.player == 7 && packet.is_up && packet.bytes.is_none()));
}
