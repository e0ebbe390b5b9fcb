//! Tests of OpenArena's protocol: encoded messages decode to the same values, a generated session becomes a log, and
//! arbitrary bytes do no harm.

mod capture_writer;

use std::cell::Cell;
use std::io::{Read, Write};

use glam::Vec3;
use proptest::prelude::*;

use super::body::{Quake3Body, Quake3Input};
use super::import::{RecordingKind, header, import, survey};
use super::listener::{Quake3Listener, ServerLog};
use super::movement::PmoveSettings;
use super::protocol::{
    ENTITY, ENTITY_CELLS, EntityCells, Gamestate, HuffmanReader, NO_ENTITY, PLAYER, PLAYER_CELLS, PLAYER_LISTS,
    PlayerCells, Quake3Usercmd, encode, entity, hash_of_command, player, player_list, read_entity, read_player,
    read_usercmd,
};
use super::recording::CaptureReader;
use super::{Quake3, Quake3Rules, box_of};
use capture_writer::{CaptureWriter, HuffmanWriter, cut_to_wire, own_state, write_entity, write_player, write_usercmd};
use hitreg_log::record::{Record, Session};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};
use hitreg_netcode::game::{Body as _, GameInput as _, Reconcile as _, StateRows};
use hitreg_netcode::protocol::{Direction, PassingDatagram, SessionListener as _};

#[test]
fn the_huffman_code_equals_the_engines() {
    // Frequent bytes have short codewords. The sum over all codewords leaves room for the one unused codeword.
    let length = |byte| encode(byte).1;
    assert_eq!((length(0), length(1), length(2), length(0xf7)), (2, 5, 7, 11));
    let room: f64 = (0..=255).map(|byte| 0.5f64.powi(length(byte) as i32)).sum();
    assert!(room < 1.0 && room > 0.999, "{room}");
    assert!(HuffmanReader::new(&[]).byte().is_err());
}

proptest! {
    #[test]
    fn numbers_survive_a_round_trip(numbers in prop::collection::vec((any::<u32>(), 1u32..=32), 0..60)) {
        let mut bits = HuffmanWriter::default();
        numbers.iter().for_each(|(value, width)| bits.bits(value & u32::MAX >> (32 - width), *width));
        let mut reader = HuffmanReader::new(&bits.bytes);
        for (value, width) in numbers {
            prop_assert_eq!(reader.bits(width).unwrap(), value & u32::MAX >> (32 - width));
        }
    }

    #[test]
    fn states_survive_a_round_trip(
        from in prop::collection::vec(any::<u32>(), PLAYER_CELLS),
        to in prop::collection::vec(any::<u32>(), PLAYER_CELLS),
        same in prop::collection::vec(any::<bool>(), PLAYER_CELLS),
    ) {
        let cut = |cells: &[u32]| {
            let mut player: PlayerCells = cells.try_into().unwrap();
            cut_to_wire(&PLAYER, &mut player);
            for (list, (_, wire)) in PLAYER_LISTS.iter().enumerate() {
                let fields = [("", *wire, hitreg_log::record::Meaning::Plain); 16];
                cut_to_wire(&fields, &mut player[player_list(list)..][..16]);
            }
            player
        };
        let mixed: Vec<u32> = (0..PLAYER_CELLS).map(|cell| if same[cell] { from[cell] } else { to[cell] }).collect();
        let (before, after) = (cut(&from), cut(&mixed));
        let mut bits = HuffmanWriter::default();
        write_player(&mut bits, &before, &after);
        prop_assert_eq!(read_player(&mut HuffmanReader::new(&bits.bytes), &before).unwrap(), after);
        let cut = |cells: &[u32]| {
            let mut entity: EntityCells = cells[..ENTITY_CELLS].try_into().unwrap();
            cut_to_wire(&ENTITY, &mut entity);
            entity
        };
        let (before, after) = (cut(&from), cut(&mixed));
        let mut bits = HuffmanWriter::default();
        write_entity(&mut bits, &before, Some(&after));
        write_entity(&mut bits, &before, None);
        let reader = &mut HuffmanReader::new(&bits.bytes);
        prop_assert_eq!(read_entity(reader, &before).unwrap(), Some(after));
        prop_assert_eq!(read_entity(reader, &before).unwrap(), None);
    }

    #[test]
    fn usercmds_survive_a_round_trip(key: u32, times in prop::collection::vec(any::<(i32, [u16; 3], i8, u16, u8)>(), 1..8)) {
        let command = |(server_time, angles, speed, buttons, weapon): (i32, [u16; 3], i8, u16, u8)| {
            let speed = speed.max(-127);
            Quake3Usercmd { server_time, angles, forward: speed, right: -speed, up: speed / 2, buttons, weapon }
        };
        let commands: Vec<Quake3Usercmd> = times.into_iter().map(command).collect();
        let mut bits = HuffmanWriter::default();
        let mut from = Quake3Usercmd::default();
        for to in &commands {
            write_usercmd(&mut bits, key, &from, to);
            from = *to;
        }
        let reader = &mut HuffmanReader::new(&bits.bytes);
        let mut from = Quake3Usercmd::default();
        for to in commands {
            from = read_usercmd(reader, key, &from).unwrap();
            prop_assert_eq!(from, to);
        }
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(at in 0usize..4000, with: Vec<u8>, cut in 0usize..8000) {
        let scribe = played().0;
        for (source, mut bytes) in [(RecordingKind::Capture, scribe.capture), (RecordingKind::Demo, scribe.demo)] {
            for (place, byte) in with.iter().enumerate() {
                let place = at + place * 7;
                if let Some(byte_there) = bytes.get_mut(place) {
                    *byte_there = *byte;
                }
            }
            bytes.truncate(cut.max(8));
            // Decoding may fail or return less, but it terminates.
            let _ = survey(source, &bytes[..], &ServerLog::default());
        }
    }
}

#[test]
fn command_hashes_cover_32_characters_as_on_the_wire() {
    assert_eq!(hash_of_command(b""), 0);
    assert_eq!(hash_of_command(b"cs 1 \xe4%"), hash_of_command(b"cs 1 .."), "as the wire carries them");
    assert_ne!(hash_of_command(b"cs 1 a"), hash_of_command(b"cs 1 b"));
    let long = [b'x'; 40];
    assert_eq!(hash_of_command(&long), hash_of_command(&long[..32]));
}

const INFO: [(u16, &str); 2] =
    [(0, "\\mapname\\q3test\\gamename\\ours\\sv_maxclients\\4"), (1, "\\sv_fps\\20\\pmove_float\\1")];

/// The settings of movement in [`INFO`].
const FLOAT: PmoveSettings = PmoveSettings { float: true, fixed_ms: 0, no_bunny: false, fast_water: false };

/// Writes a session of one running client (player 2): a snapshot every 50 ms and three usercmds in between, each sent
/// twice. The third snapshot is never acked. Returns the usercmds and the states of each snapshot.
fn session() -> (Vec<u8>, Vec<Quake3Usercmd>, Vec<PlayerCells>) {
    let (scribe, commands, states) = played();
    (scribe.capture, commands, states)
}

fn played() -> (CaptureWriter, Vec<Quake3Usercmd>, Vec<PlayerCells>) {
    let mut other = NO_ENTITY;
    other[entity("pos.base.x")] = 640.5f32.to_bits();
    other[entity("weapon")] = 5;
    let baselines = [(70, other)];
    let mut scribe = CaptureWriter::new();
    let long = "x".repeat(4000);
    let strings = [&INFO[..], &[(300, &long)]].concat();
    let gamestate = scribe.gamestate(2, &strings, &baselines);
    scribe.pass(5);
    scribe.client(gamestate, &[]);
    let (mut commands, mut states) = (Vec::<Quake3Usercmd>::new(), Vec::new());
    for tick in 0..10i32 {
        let time = 5000 + 50 * tick;
        let newest = commands.last().map_or(0, |cmd| cmd.server_time);
        let own = own_state(newest, [tick as f32, 0.25, -3.0]);
        let mut moved = other;
        moved[entity("pos.base.y")] = (tick as f32 * 8.5).to_bits();
        let seen = if tick == 6 { vec![] } else { vec![(1, moved), (70, other)] };
        if tick == 4 {
            scribe.say(b"print \"hello 100%\"");
        }
        let message = scribe.snapshot(time, own, &seen, &baselines);
        states.push(own);
        for part in 0..3 {
            scribe.pass(16);
            let server_time = time + 16 * part + 1;
            let angles = [part as u16, tick as u16 * 3000, 0];
            let cmd = Quake3Usercmd {
                server_time,
                angles,
                forward: 127,
                up: -20,
                buttons: (part == 1).into(),
                ..Quake3Usercmd::default()
            };
            let twice: Vec<Quake3Usercmd> = commands.last().copied().into_iter().chain([cmd]).collect();
            commands.push(cmd);
            scribe.client(if tick == 2 { message - 1 } else { message }, &twice);
        }
        scribe.pass(2);
    }
    (scribe, commands, states)
}

fn session_of(capture: &[u8], log: &ServerLog) -> Session {
    session_from(RecordingKind::Capture, capture, log)
}

fn session_from(source: RecordingKind, bytes: &[u8], log: &ServerLog) -> Session {
    let overview = survey(source, bytes, log).expect("a recording");
    let header = header(&overview.rules, &overview.players, source.origin()).expect("a header");
    let mut session = Session::new(header);
    import(source, bytes, log, &mut |record: Record| session.push(record).expect("it fits")).expect("an import");
    session.put_in_order();
    session
}

#[test]
fn a_capture_becomes_a_session() {
    let (capture, commands, states) = session();
    let overview = survey(RecordingKind::Capture, &capture[..], &ServerLog::default()).expect("a capture");
    let counts = overview.counts;
    assert_eq!((counts.undecoded, counts.stale, counts.parts, counts.usercmds, counts.snapshots), (0, 0, 3, 30, 10));
    assert_eq!(counts.acked_by_time, 9, "the first snapshot acks nothing");
    assert_eq!((&*overview.rules.game, overview.rules.places, overview.players), ("ours", 4, vec![2]));
    let session = session_of(&capture, &ServerLog::default());
    assert_eq!((session.players.len(), session.header.map.as_str()), (4, "q3test"));
    let records = &session.players[2];
    assert!(
        records
            .frames
            .iter()
            .map(|frame| Quake3Input::read(&frame.command.input).sent_time_ms)
            .eq(commands.iter().map(|c| c.server_time))
    );
    let input = &records.frames[4].command.input;
    assert_eq!((input.forwardmove, input.upmove, input.buttons, input.msec), (127.0, -20.0, 1, 16));
    assert_eq!(input.viewangles.y, 3000.0 * 360.0 / 65_536.0);
    let (first, second) = (&records.snapshots[0], &records.snapshots[1]);
    assert_eq!((first.tick, second.tick, first.ack, second.ack), (Tick(1), Tick(2), CommandSeq(0), CommandSeq(3)));
    assert_eq!(second.server_time, records.snapshots[0].at + Micros::from_ms(50));
    assert_eq!(second.entities, [1, 2, 70].map(EntityId));
    assert_eq!(records.snapshots[6].entities, [EntityId(2)]);
    let received: Vec<u32> = records.received.iter().map(|arrival| arrival.number - first.seq.0).collect();
    assert_eq!(received, [0, 1, 3, 4, 5, 6, 7, 8, 9], "what is never acked was lost");
    for (snapshot, own) in records.snapshots.iter().zip(&states) {
        let (class, cells) =
            session.states.sent(snapshot.tick, PlayerId(2), EntityId(2)).next().expect("the own state");
        assert_eq!((class.0, cells), (0, &Quake3Body::of_player(own, FLOAT, 0).row()[..]));
    }
    let (class, cells) = session.states.sent(Tick(4), PlayerId(2), EntityId(1)).next().expect("another");
    let y = session.header.classes[1].fields.iter().position(|field| field.name == "origin.y").expect("a field");
    assert_eq!((class.0, cells[y], cells[0]), (1, 25.5f32.to_bits(), 640.5f32.to_bits()));
    assert_eq!(Quake3Body::fields().len(), Quake3Body::CELLS);
}

/// A proxy knows which datagrams arrived and does not need acks.
#[test]
fn a_demo_becomes_a_session_of_its_client() {
    let (scribe, ..) = played();
    let log = ServerLog::default();
    let demo = session_from(RecordingKind::Demo, &scribe.demo, &log);
    let capture = session_of(&scribe.capture, &log);
    let (of_demo, of_capture) = (&demo.players[2], &capture.players[2]);
    assert_eq!((of_demo.frames.len(), of_demo.snapshots.len()), (0, 10));
    for (one, other) in of_demo.snapshots.iter().zip(&of_capture.snapshots) {
        let since_first = other.server_time - of_capture.snapshots[0].server_time;
        assert_eq!((one.seq, one.tick, one.server_time), (other.seq, other.tick, since_first));
        assert_eq!((one.at, one.ack, &one.entities), (one.server_time, CommandSeq(0), &other.entities));
    }
    assert!(of_demo.received.iter().map(|a| a.at).eq(of_demo.snapshots.iter().map(|s| s.at)), "when it is known of");
    assert_eq!(demo.states, capture.states);
    // A repeated message counts once.
    let (mut twice, mut at) = (Vec::new(), 0);
    while let Some(length) = scribe.demo[at..].get(4..8).and_then(|bytes| bytes.first_chunk()) {
        let end = at + 8 + u32::from_le_bytes(*length) as usize;
        twice.extend(scribe.demo[at..end].repeat(2));
        at = end;
    }
    assert_eq!(session_from(RecordingKind::Demo, &twice, &log), demo);
    // A truncated demo gives the messages before the end.
    let cut = survey(RecordingKind::Demo, &scribe.demo[..scribe.demo.len() - 3], &log).expect("a demo");
    assert_eq!((cut.counts.snapshots, cut.cut.is_some(), cut.counts.undecoded), (9, true, 0));
    let none = survey(RecordingKind::Demo, &b"no demo at all"[..], &log).expect_err("nothing").to_string();
    assert!(none.contains("this is not a demo"), "{none}");
}

#[test]
fn a_proxy_counts_forwarded_and_lost_datagrams() {
    let (capture, ..) = session();
    let mut overheard = Quake3Listener::new(None);
    // Server browsers are no clients.
    for client in 100..400 {
        let bytes = b"\xff\xff\xff\xffgetinfo xxx".to_vec();
        let passing =
            PassingDatagram { at: Micros::ZERO, client, direction: Direction::Up, bytes, released: Some(Micros::ZERO) };
        overheard.hear(&passing, &mut |record| panic!("{record:?}"));
    }
    let mut session: Option<Session> = None;
    let mut capture = CaptureReader::new(&capture[..]).expect("a capture");
    let (mut begun, mut passed, mut kept) = (0, 0, 0);
    while let Some(captured) = capture.read().expect("a capture") {
        let at = Micros((captured.at_ns / 1_000) as i64);
        // Every third snapshot and every fifth packet is lost.
        let mut made = Vec::new();
        let (direction, bytes) = (captured.direction, &captured.bytes);
        let mut hear = |released| {
            let mut once = Vec::new();
            let passing = PassingDatagram { at, client: captured.client, direction, bytes: bytes.clone(), released };
            overheard.hear(&passing, &mut |record| once.push(record));
            once
        };
        let is_kept = match direction {
            Direction::Up => passed % 5 == 4,
            Direction::Down => passed % 3 == 2,
        };
        passed += 1;
        made.extend(hear((!is_kept).then_some(at + Micros::from_ms(20))));
        let snapshots = made.iter().filter(|record| matches!(record, Record::Snapshot(..))).count();
        let received = made.iter().filter(|record| matches!(record, Record::Received(..))).count();
        assert_eq!(received, if is_kept { 0 } else { snapshots });
        kept += usize::from(is_kept && snapshots > 0);
        if let Some(header) = overheard.header() {
            begun += 1;
            session = Some(Session::new(header.expect("a header")));
        }
        let Some(session) = &mut session else {
            assert!(made.is_empty(), "nothing is recorded before it is known what is played");
            continue;
        };
        made.into_iter().for_each(|record| session.push(record).expect("it fits"));
    }
    let session = session.expect("a session");
    assert!(begun == 1 && kept > 0);
    let records = &session.players[2];
    assert_eq!(records.frames.len(), 30);
    assert_eq!(records.received.len() + kept, records.snapshots.len());
    assert!(!records.reached.is_empty() && records.reached.len() < records.sent.len());
    let sent = |number| records.sent.iter().find(|packet| packet.number == number).expect("it was sent").at;
    assert!(records.reached.iter().all(|arrival| arrival.at - sent(arrival.number) == Micros::from_ms(20)));
    assert_eq!(overheard.heard().usercmds, 30);
    assert_eq!((overheard.heard().after_level, overheard.warning()), (0, None));
}

/// A map that cannot be read costs the predictions, not the recording.
#[test]
fn a_proxy_without_the_played_map_records_and_warns() {
    let mut listener = Quake3Listener::new(Some(b"no map".to_vec()));
    let (bytes, ..) = session();
    let mut capture = CaptureReader::new(&bytes[..]).expect("a capture");
    let header = std::iter::from_fn(|| capture.read().expect("a capture")).find_map(|captured| {
        let (client, direction, bytes) = (captured.client, captured.direction, captured.bytes);
        listener.hear(&PassingDatagram { at: Micros::ZERO, client, direction, bytes, released: None }, &mut |_| {});
        listener.header()
    });
    let header = header.expect("the level is known").expect("a header");
    assert!(header.settings.iter().any(|(name, value)| &**name == "prediction.mode" && &**value == "off"));
    assert!(listener.warning().expect("a warning").contains("not a Quake III map"));
}

#[test]
fn another_level_and_damaged_datagrams_are_skipped_and_counted() {
    let (mut capture, ..) = session();
    let whole = survey(RecordingKind::Capture, &capture[..], &ServerLog::default()).expect("a capture").counts;
    // The last byte of the eighth datagram.
    let mut at = 8;
    for _ in 0..7 {
        at += 13 + usize::from(u16::from_le_bytes([capture[at + 11], capture[at + 12]]));
    }
    capture[at + 13 + 6] ^= 0x10;
    let overview = survey(RecordingKind::Capture, &capture[..], &ServerLog::default()).expect("a capture");
    assert_eq!((overview.counts.undecoded, overview.undecoded.len()), (1, 1), "{:?}", overview.undecoded);
    let cut = survey(RecordingKind::Capture, &capture[..capture.len() - 3], &ServerLog::default()).expect("a capture");
    assert!(cut.cut.is_some() && cut.counts.datagrams + 1 == whole.datagrams);
    assert!(
        survey(RecordingKind::Capture, &capture[..8], &ServerLog::default())
            .expect_err("nothing")
            .to_string()
            .contains("before its clients")
    );

    let mut scribe = CaptureWriter::new();
    let first = scribe.gamestate(0, &INFO, &[]);
    scribe.client(first, &[Quake3Usercmd { server_time: 10, ..Quake3Usercmd::default() }]);
    scribe.snapshot(100, own_state(10, [0.0; 3]), &[], &[]);
    scribe.set_feed(99);
    let second = scribe.gamestate(0, &INFO, &[]);
    scribe.client(second, &[Quake3Usercmd { server_time: 10, ..Quake3Usercmd::default() }]);
    scribe.snapshot(50, own_state(10, [0.0; 3]), &[], &[]);
    let counts = survey(RecordingKind::Capture, &scribe.capture[..], &ServerLog::default()).expect("a capture").counts;
    assert_eq!((counts.undecoded, counts.usercmds, counts.snapshots, counts.after_level), (0, 1, 1, 2));
}

/// A body at no place would make the whole log unusable.
#[test]
fn a_snapshot_with_an_impossible_place_is_left_out() {
    let mut scribe = CaptureWriter::new();
    scribe.gamestate(0, &INFO, &[]);
    let mut lost = NO_ENTITY;
    lost[entity("pos.base.x")] = f32::NAN.to_bits();
    scribe.snapshot(100, own_state(10, [0.0; 3]), &[], &[]);
    scribe.snapshot(150, own_state(10, [0.0, 2e6, 0.0]), &[], &[]);
    scribe.snapshot(200, own_state(10, [0.0; 3]), &[(5, lost)], &[]);
    scribe.snapshot(250, own_state(10, [0.0; 3]), &[(5, NO_ENTITY)], &[]);
    let overview = survey(RecordingKind::Capture, &scribe.capture[..], &ServerLog::default()).expect("a capture");
    assert_eq!((overview.counts.undecoded, overview.counts.snapshots), (2, 2));
    let why: Vec<String> = overview.undecoded.iter().map(ToString::to_string).collect();
    assert!(why[0].ends_with("the position or velocity of entity 0 is impossible"), "{why:?}");
    assert!(why[1].ends_with("the position or velocity of entity 5 is impossible"), "{why:?}");
}

/// A damaged time of one datagram moves no other. Times that do not fit the server's clock are noticed.
#[test]
fn damaged_times_of_a_capture_are_replaced_and_counted() {
    let (capture, ..) = session();
    let with_times = |change: &dyn Fn(usize, u64) -> u64| {
        let (mut changed, mut at, mut number) = (capture.clone(), 8, 0);
        while at < capture.len() {
            let time = u64::from_le_bytes(*capture[at..].first_chunk().expect("a time"));
            changed[at..at + 8].copy_from_slice(&change(number, time).to_le_bytes());
            at += 13 + usize::from(u16::from_le_bytes([capture[at + 11], capture[at + 12]]));
            number += 1;
        }
        let overview = survey(RecordingKind::Capture, &changed[..], &ServerLog::default()).expect("a capture");
        let session = session_of(&changed, &ServerLog::default());
        (overview.repaired_times, overview.clock_error, session.duration())
    };
    let (repaired, clock_error, duration) = with_times(&|_, time| time);
    assert_eq!((repaired, duration), (0, session_of(&capture, &ServerLog::default()).duration()));
    let hours = 1_000 * 3_600 * 1_000_000_000;
    assert_eq!(with_times(&|number, time| time + if number == 20 { hours } else { 0 }), (1, clock_error, duration));
    let (repaired, after_step, shorter) = with_times(&|number, time| time + if number < 20 { hours } else { 0 });
    assert!(repaired == 1 && after_step < Micros::from_ms(100) && duration - shorter < Micros::from_ms(20));
    let (_, coarse, _) = with_times(&|_, time| time / 1_000);
    assert!(coarse > Micros::from_ms(400), "{coarse:?}");
}

/// Plays for one second in a slot: a usercmd and a snapshot that acks it every 100 ms, from this server time on.
fn play(scribe: &mut CaptureWriter, slot: u8, server_time: i32) {
    let mut message = scribe.gamestate(slot, &INFO, &[]);
    for time in (server_time..server_time + 1000).step_by(100) {
        scribe.client(message, &[Quake3Usercmd { server_time: time, ..Quake3Usercmd::default() }]);
        scribe.pass(40);
        message = scribe.snapshot(time + 50, own_state(time, [time as f32, 0.0, 0.0]), &[], &[]);
        scribe.pass(60);
    }
    scribe.client(message, &[Quake3Usercmd { server_time: server_time + 1000, ..Quake3Usercmd::default() }]);
}

/// Checks that a slot's numbers go on over `connections` sessions of [`play`], and that all of it is imported.
fn assert_goes_on(session: &Session, slot: usize, connections: u32) {
    let records = &session.players[slot];
    let numbers = |count: u32| (1..=count).collect::<Vec<_>>();
    assert_eq!(records.frames.iter().map(|f| f.command.seq.0).collect::<Vec<_>>(), numbers(11 * connections));
    assert_eq!(records.sent.iter().map(|p| p.number).collect::<Vec<_>>(), numbers(11 * connections));
    assert_eq!(records.sent.iter().map(|p| p.newest.0).collect::<Vec<_>>(), numbers(11 * connections));
    // Each connection begins with a gamestate, a message without a snapshot. The log has it in the first connection only.
    let messages: Vec<u32> = (2..connections * 10 + 2).collect();
    assert_eq!(records.snapshots.iter().map(|snapshot| snapshot.seq.0).collect::<Vec<_>>(), messages);
    assert_eq!(records.received.iter().map(|arrival| arrival.number).collect::<Vec<_>>(), messages);
    // Each snapshot acks the usercmd before it, and each packet acks the message before it.
    let acks: Vec<u32> = (0..connections).flat_map(|connection| connection * 11 + 1..connection * 11 + 11).collect();
    assert_eq!(records.snapshots.iter().map(|snapshot| snapshot.ack.0).collect::<Vec<_>>(), acks);
    let acked: Vec<u32> = (0..connections).flat_map(|connection| connection * 10 + 1..connection * 10 + 12).collect();
    assert_eq!(records.sent.iter().map(|packet| packet.ack.0).collect::<Vec<_>>(), acked);
}

/// A slot has one client after another, and a client comes back in another slot. The log has all of it.
#[test]
fn a_client_in_the_slot_of_one_that_left_goes_on_with_its_numbers() {
    let mut scribe = CaptureWriter::new();
    play(&mut scribe, 1, 1000);
    scribe.connect(7, 0x1234_5677);
    play(&mut scribe, 1, 3000);
    scribe.connect(0, 0x7654_3211);
    play(&mut scribe, 3, 5000);
    let counts = survey(RecordingKind::Capture, &scribe.capture[..], &ServerLog::default()).expect("a capture").counts;
    assert_eq!((counts.undecoded, counts.usercmds, counts.snapshots, counts.after_level), (0, 33, 30, 0));
    let session = session_of(&scribe.capture, &ServerLog::default());
    assert_goes_on(&session, 1, 2);
    assert_goes_on(&session, 3, 1);
    // Nothing is drawn or predicted from one client to the next.
    let teleports = |tick| session.states.sent(tick, PlayerId(1), EntityId(1)).next().expect("the own state").1[9];
    let counts: Vec<u32> = session.players[1].snapshots.iter().map(|snapshot| teleports(snapshot.tick)).collect();
    assert_eq!(counts, [[0; 10], [8; 10]].concat());
}

/// A client that comes back into its slot counts its messages and packets from 1 again. The log goes on.
#[test]
fn a_client_that_connects_again_goes_on_with_its_numbers() {
    let mut scribe = CaptureWriter::new();
    play(&mut scribe, 2, 1000);
    for (challenge, server_time) in [(0x1234_5677, 3000), (0x7654_3211, 6000)] {
        scribe.connect(0, challenge);
        play(&mut scribe, 2, server_time);
    }
    let counts = survey(RecordingKind::Capture, &scribe.capture[..], &ServerLog::default()).expect("a capture").counts;
    assert_eq!((counts.undecoded, counts.usercmds, counts.snapshots, counts.after_level), (0, 33, 30, 0));
    assert_goes_on(&session_of(&scribe.capture, &ServerLog::default()), 2, 3);
}

/// A silent client gets no gamestate of the next level, but snapshots of it. The level changes or restarts while the client
/// plays, and while it enters. Flag 2: not in the game; flag 4: changes with each level and restart.
#[test]
fn snapshots_of_a_silent_client_end_with_the_level() {
    let sent = [(&[2, 2, 0, 0, 4, 4, 2, 2, 0, 4][..], 4), (&[2, 2, 6, 6, 4], 0), (&[2, 4, 4, 0], 3)];
    for (flags, in_game) in sent {
        let mut scribe = CaptureWriter::new();
        scribe.gamestate(1, &INFO, &[]);
        for (time, flags) in (100..).step_by(50).zip(flags) {
            scribe.flags = *flags;
            scribe.snapshot(time, own_state(90, [0.0; 3]), &[], &[]);
        }
        let counts = survey(RecordingKind::Capture, &scribe.capture[..], &ServerLog::default()).expect("it").counts;
        assert_eq!(counts.snapshots, in_game, "{flags:?}");
        assert_eq!(counts.after_level > 0, flags.len() > 4, "{flags:?}");
    }
}

/// The server changes settings of movement during a level. Each state has the settings that its client knows.
#[test]
fn states_follow_changed_settings_of_movement() {
    let mut scribe = CaptureWriter::new();
    scribe.gamestate(1, &INFO, &[]);
    let changes: [Option<&[u8]>; 5] = [
        None,
        Some(b"cs 1 \"\\sv_fps\\20\\pmove_fixed\\1\\pmove_msec\\11\""),
        None,
        Some(b"cs 0 \"\\dmflags\\128\""),
        Some(b"cs 1 \"\\sv_fps\\20\\pmove_float\\1\""),
    ];
    for (time, change) in (100..).step_by(50).zip(changes) {
        change.into_iter().for_each(|command| scribe.say(command));
        scribe.snapshot(time, own_state(90, [0.0; 3]), &[], &[]);
    }
    let session = session_of(&scribe.capture, &ServerLog::default());
    let rows = StateRows::new::<Quake3>(&session.header.classes).expect("the same classes");
    let settings = |tick| {
        let (class, cells) = session.states.sent(tick, PlayerId(1), EntityId(1)).next().expect("the own state");
        rows.read::<Quake3>(class, cells).expect("a state").expect("a body").settings()
    };
    let fixed = PmoveSettings { float: false, fixed_ms: 11, ..FLOAT };
    let expected =
        [FLOAT, fixed, fixed, PmoveSettings { no_bunny: true, ..fixed }, PmoveSettings { no_bunny: true, ..FLOAT }];
    let found: Vec<PmoveSettings> =
        session.players[1].snapshots.iter().map(|snapshot| settings(snapshot.tick)).collect();
    assert_eq!(found, expected);
}

/// Player 0 hits twice. The server log names the victims, and the line of another shooter is not used.
#[test]
fn hits_are_matched_with_lines_of_the_server_log() {
    let mut scribe = CaptureWriter::new();
    let first = scribe.gamestate(0, &INFO, &[]);
    let fire = |server_time| Quake3Usercmd { server_time, buttons: 1, ..Quake3Usercmd::default() };
    scribe.client(first, &[fire(90), Quake3Usercmd { server_time: 95, ..Quake3Usercmd::default() }]);
    let state = |time, hits: u32, health: u32| {
        let mut own = own_state(time, [0.0; 3]);
        own[player_list(1) + 1] = hits;
        own[player_list(1) + 7] = (health << 8) | 3;
        own
    };
    scribe.snapshot(100, state(95, 5, 0), &[], &[]);
    scribe.snapshot(150, state(95, 7, 62), &[], &[]);
    scribe.snapshot(200, state(95, 7, 62), &[], &[]);
    let log = b"90: client:1 health:9 damage:1 armor:0\n100: client:3 health:62 damage:30 armor:0\n\
        100: client:1 health:72 damage:10 armor:0\n100: client:1 health:62 damage:11 armor:0\n\
        120: client:2 health:50 damage:7 armor:14\n250: client:2 health:43 damage:5 armor:9\n";
    let session = session_of(&scribe.capture, &ServerLog::parse(log));
    let hit =
        |shot: &hitreg_log::record::ShotRecord| (shot.command.0, shot.index, shot.target.map(|id| id.0), shot.damage);
    let judged: Vec<_> = session.players[0].judged.iter().map(hit).collect();
    assert_eq!(judged, [(1, 0, Some(1), 10), (1, 1, Some(1), 11)]);
    let hurt = |d: &hitreg_log::record::DamageRecord| (d.tick.0, d.victim.0, d.attacker.map(|id| id.0), d.amount);
    let damage: Vec<_> = session.damage.iter().map(hurt).collect();
    assert_eq!(damage, [(2, 3, None, 30), (2, 1, Some(0), 10), (2, 1, Some(0), 11), (2, 2, None, 7)]);
    let armour: Vec<_> = session.damage.iter().map(|hurt| hurt.armour).collect();
    assert_eq!(armour, [0, 0, 0, 14].map(Some));
    // The first and the last line are from before and after the recording.
    let overview = survey(RecordingKind::Capture, &scribe.capture[..], &ServerLog::parse(log)).expect("good");
    let counts = overview.counts;
    assert_eq!([counts.logged, counts.logged_with_shooter, counts.logged_outside], [4, 2, 2]);
}

/// Player 1 plays, follows two others, and plays again. Their hits are not its hits, and their movement is not predicted.
#[test]
fn a_spectator_has_no_hits_and_no_predictions_of_the_players_it_follows() {
    let mut scribe = CaptureWriter::new();
    let first = scribe.gamestate(1, &INFO, &[]);
    scribe.client(first, &[Quake3Usercmd { server_time: 90, ..Quake3Usercmd::default() }]);
    let state = |slot: u32, hits: u32, x: f32| {
        let mut own = own_state(95, [x, 0.0, 0.0]);
        own[player("client_num")] = slot;
        own[player("pm_flags")] = if slot == 1 { 0 } else { 4096 };
        own[player_list(1) + 1] = hits;
        own
    };
    let shown = [(1, 5), (1, 7), (2, 20), (2, 21), (3, 40), (1, 40), (1, 41)];
    for (time, (slot, hits)) in (100..).step_by(50).zip(shown) {
        scribe.snapshot(time, state(slot, hits, time as f32), &[], &[]);
        scribe.pass(50);
    }
    let session = session_of(&scribe.capture, &ServerLog::default());
    let records = &session.players[1];
    let hits_at = |place: usize| records.judged.iter().filter(|hit| hit.at == records.snapshots[place].at).count();
    assert_eq!((records.judged.len(), hits_at(1), hits_at(6)), (3, 2, 1));
    let body = |slot, x| Quake3Body::of_player(&state(slot, 0, x), FLOAT, 0);
    assert_eq!(
        [1, 2].map(|slot| (body(slot, 0.0).is_absent(), body(slot, 0.0).is_alive())),
        [(false, true), (true, false)]
    );
    let grade = |from: u32, to: u32| Quake3::grade(&body(from, 0.0), &body(to, 9.0));
    assert_eq!(
        [(1, 1), (1, 2), (2, 2), (2, 3), (2, 1)].map(|(from, to)| grade(from, to).is_some()),
        [true, false, false, false, false]
    );
}

#[test]
fn victims_are_known_from_events_without_a_log() {
    let mut scribe = CaptureWriter::new();
    let first = scribe.gamestate(0, &INFO, &[]);
    scribe.client(first, &[Quake3Usercmd { server_time: 90, buttons: 1, ..Quake3Usercmd::default() }]);
    let event = |kind: u32, cells: [(&'static str, u32); 2]| {
        let mut event = NO_ENTITY;
        event[entity("kind")] = 13 + kind;
        cells.iter().for_each(|(name, value)| event[entity(name)] = *value);
        event
    };
    let flesh = |shooter, victim| event(48, [("other_entity_num", shooter), ("event_parm", victim)]);
    let death = |shooter, victim| event(60, [("other_entity_num2", shooter), ("other_entity_num", victim)]);
    let mut snapshot = |time, hits: u32, events: &[(u16, EntityCells)]| {
        let mut own = own_state(90, [0.0; 3]);
        own[player_list(1) + 1] = hits;
        scribe.snapshot(time, own, events, &[]);
    };
    snapshot(100, 0, &[]);
    // A bullet of another player and one of this player; both events stay visible for a while.
    snapshot(150, 1, &[(70, flesh(4, 2)), (71, flesh(0, 3))]);
    snapshot(200, 2, &[(70, flesh(4, 2)), (71, flesh(0, 3)), (72, flesh(0, 5)), (73, death(0, 5))]);
    snapshot(250, 3, &[(72, flesh(0, 5)), (73, death(0, 5))]);
    snapshot(300, 4, &[(74, death(0, 6)), (75, death(0, 0))]);
    let session = session_of(&scribe.capture, &ServerLog::default());
    let hits = session.players[0].judged.iter().map(|hit| (hit.command.0, hit.index, hit.target.map(|id| id.0)));
    assert_eq!(hits.collect::<Vec<_>>(), [(1, 0, Some(3)), (1, 1, Some(5)), (1, 2, None), (1, 3, Some(6))]);
}

/// Records come out while the recording is still being read, so memory use does not depend on its length.
#[test]
fn recordings_are_imported_as_streams() {
    struct CountingReader<'a>(&'a [u8], &'a Cell<usize>);
    impl Read for CountingReader<'_> {
        fn read(&mut self, to: &mut [u8]) -> std::io::Result<usize> {
            // Reads return a few bytes at a time, so that code cannot assume complete reads.
            let most = to.len().min(100);
            let read = self.0.read(&mut to[..most])?;
            self.1.set(self.1.get() + read);
            Ok(read)
        }
    }
    let (scribe, none) = (played().0, ServerLog::default());
    for (source, bytes) in [(RecordingKind::Capture, &scribe.capture), (RecordingKind::Demo, &scribe.demo)] {
        let (mut whole, mut parts, mut at) = (Vec::new(), Vec::new(), Vec::new());
        import(source, &bytes[..], &none, &mut |record| whole.push(record)).expect("a recording");
        let read = Cell::new(0);
        let took = &mut |record| {
            parts.push(record);
            at.push(read.get());
        };
        import(source, CountingReader(bytes, &read), &none, took).expect("a recording");
        assert!(parts == whole && !whole.is_empty(), "{source:?}");
        assert!(at.windows(2).filter(|pair| pair[0] < pair[1]).count() > 3, "they do not come at the end: {at:?}");
    }
}

/// A truncated compressed capture is read up to the truncation, like a plain one.
#[test]
fn a_truncated_packed_capture_is_read() {
    let (scribe, none) = (played().0, ServerLog::default());
    let mut records = Vec::new();
    import(RecordingKind::Capture, &scribe.capture[..], &none, &mut |record| records.push(record)).expect("a capture");
    let mut packer = zstd::stream::write::Encoder::new(Vec::new(), 0).expect("memory");
    for part in scribe.capture.chunks(500) {
        packer.write_all(part).expect("memory");
        packer.flush().expect("memory");
    }
    let packed = packer.finish().expect("memory");
    for short in [packed.len() / 2, packed.len() / 4] {
        let (mut some, cut) = (Vec::new(), &packed[..packed.len() - short]);
        import(RecordingKind::Capture, cut, &none, &mut |record| some.push(record)).expect("what there is");
        let overview = survey(RecordingKind::Capture, cut, &none).expect("what there is");
        assert!(overview.cut.is_some() && some.len() > 10 && some.len() < records.len(), "{short}: {}", some.len());
    }
    // Everything is present except the end marker.
    let overview = survey(RecordingKind::Capture, &packed[..packed.len() - 1], &none).expect("what there is");
    assert_eq!(overview.cut, Some(scribe.capture.len() as u64));
    let nothing = survey(RecordingKind::Capture, &packed[..10], &none).expect_err("nothing of it is there");
    assert!(nothing.to_string().contains("incomplete frame"), "{nothing}");
}

/// The seed input of the fuzz targets is such a session.
#[test]
fn the_seed_input_of_the_fuzz_targets_is_current() {
    let scribe = played().0;
    for (name, made) in [("captures", scribe.capture), ("client-demos", scribe.demo)] {
        let kept = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/fuzz").join(name).join("000");
        if std::fs::read(&kept).ok().as_ref() != Some(&made) {
            let written = std::env::temp_dir().join(format!("hitreg-{name}-{}", std::process::id()));
            std::fs::write(&written, made).expect("written");
            panic!("{} differs from the current result, which is in {}", kept.display(), written.display());
        }
    }
}

#[test]
fn a_box_is_packed_into_one_number() {
    let (mins, maxs) = box_of(15 | 24 << 8 | 64 << 16);
    assert_eq!((mins, maxs), (Vec3::new(-15.0, -15.0, -24.0), Vec3::new(15.0, 15.0, 32.0)));
}

#[test]
fn settings_come_from_two_strings() {
    let mut gamestate = Gamestate::default();
    gamestate.strings.insert(0, b"\\sv_maxclients\\16\\mapname\\oa_dm1\\dmflags\\136".to_vec());
    gamestate.strings.insert(1, b"\\sv_fps\\40\\pmove_fixed\\1\\pmove_msec\\11\\pmove_float\\1".to_vec());
    let rules = Quake3Rules::of(&gamestate);
    assert_eq!((&*rules.map_name, rules.places, rules.server_hz, rules.unlagged), ("oa_dm1", 16, 40, false));
    let settings = PmoveSettings { float: true, fixed_ms: 11, no_bunny: true, fast_water: false };
    assert_eq!(PmoveSettings::of(&gamestate), settings);
    gamestate.strings.insert(1, b"sv_fps\\0".to_vec());
    assert_eq!(Quake3Rules::of(&gamestate).server_hz, 1, "what is out of bounds is taken to them");
    gamestate.strings.insert(1, b"\\pmove_fixed\\1\\pmove_msec\\2".to_vec());
    assert_eq!(PmoveSettings::of(&gamestate).fixed_ms, 8, "what is out of bounds is taken to them");
}
