//! Usercmds arrive unchanged, bit for bit.

use glam::Vec3;
use hitreg::packet::ClientPacket;
use hitreg::units::{CommandSeq, Micros, SnapshotSeq};
use hitreg::usercmd::{Input, OwnCells, Usercmd};
use hitreg::wire::{
    ClientMessage, ClientReference, ClientRequest, CommandsError, DecodeError, PerceivedAvatar, RequestKind,
    Wrapping16, decode_commands, decode_request, encode_commands, encode_request,
};
use proptest::prelude::*;

use super::runners::Runner;

fn word() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0u32), Just(400f32.to_bits()), Just(0x8000_0000), any::<u32>()]
}

prop_compose! {
    fn usercmd()(
        words in prop::array::uniform6(word()), msec in any::<u8>(), lerp_msec in any::<u16>(), buttons in any::<u16>(),
        impulse in any::<u8>(), own in prop::collection::vec(word(), 0..5), time in any::<i64>(), shift in 0u32..64,
    ) -> Usercmd {
        let [x, y, z, forward, side, up] = words.map(f32::from_bits);
        let input = Input {
            msec, viewangles: Vec3::new(x, y, z), forwardmove: forward, sidemove: side, upmove: up, buttons, impulse, own: OwnCells::new(&own),
        };
        Usercmd { seq: CommandSeq(0), lerp_msec, server_time: Micros(time >> shift), input }
    }
}

prop_compose! {
    pub(crate) fn message()(
        commands in prop::collection::vec(usercmd(), 1..=16), first in 1u32..u32::MAX - 20, number in any::<u32>(),
        ack in any::<u32>(), before in prop_oneof![Just(u32::MAX), any::<u32>()],
        perceived in prop_oneof![
            Just(None),
            any::<u32>().prop_map(|hash| Some(PerceivedAvatar::Hash(hash))),
            prop::array::uniform3(-8_388_608i32..8_388_608).prop_map(|o| Some(PerceivedAvatar::OriginEighths(o))),
        ],
    ) -> ClientMessage {
        let commands = commands.into_iter().zip(first..).map(|(c, seq)| Usercmd { seq: CommandSeq(seq), ..c }).collect();
        let packet = ClientPacket { number, ack: SnapshotSeq(ack), commands };
        ClientMessage { packet, received_before: before, perceived }
    }
}

fn is_same(a: &ClientMessage, b: &ClientMessage) -> bool {
    let words = |c: &Usercmd| {
        let i = &c.input;
        let floats = [i.viewangles.x, i.viewangles.y, i.viewangles.z, i.forwardmove, i.sidemove, i.upmove];
        (c.seq, c.lerp_msec, c.server_time, floats.map(f32::to_bits), i.msec, i.buttons, i.impulse, i.own.clone())
    };
    let rest = |m: &ClientMessage| (m.packet.number, m.packet.ack, m.received_before, m.perceived);
    let all = |m: &ClientMessage| m.packet.commands.iter().map(words).collect::<Vec<_>>();
    rest(a) == rest(b) && all(a) == all(b)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn every_packet_survives_a_round_trip(message in message(), off in -32_000i32..32_000) {
        let datagram = encode_commands(&message).expect("the commands are consecutive");
        let near = |counter: u32| counter.saturating_add_signed(off);
        let newest = message.packet.commands.last().map_or(0, |c| c.seq.0);
        let reference = ClientReference {
            number: near(message.packet.number),
            sent: SnapshotSeq(near(message.packet.ack.0)),
            command: CommandSeq(near(newest)),
        };
        let decoded = decode_commands(&datagram, &reference).expect("it was just written");
        prop_assert!(is_same(&decoded, &message), "{:?}\n{:?}", decoded, message);
    }

    #[test]
    fn requests_survive_a_round_trip(number in any::<u16>(), a in any::<u8>(), b in any::<u8>(), text in "\\PC{0,120}") {
        let text: String = text.chars().take_while({ let mut n = 0; move |c| { n += c.len_utf8(); n <= 127 } }).collect();
        for what in [
            RequestKind::ChatOoc { channel: a, text: text.clone() },
            RequestKind::ChatIc { style: a, language: b, text: text.clone() },
            RequestKind::Game { bytes: text.clone().into_bytes() },
        ] {
            let request = ClientRequest { number: Wrapping16(number), what };
            prop_assert_eq!(decode_request(&encode_request(&request)), Ok(request));
        }
    }
}

#[test]
fn long_texts_are_truncated_between_characters() {
    let what = RequestKind::ChatOoc { channel: 0, text: "ä".repeat(100) };
    let request =
        decode_request(&encode_request(&ClientRequest { number: Wrapping16(1), what })).expect("it is complete");
    assert_eq!(request.what, RequestKind::ChatOoc { channel: 0, text: "ä".repeat(63) });
}

#[test]
fn unencodable_messages_are_refused() {
    let with = |seqs: &[u32]| {
        let commands = seqs.iter().map(|seq| Usercmd { seq: CommandSeq(*seq), ..Usercmd::default() }).collect();
        let packet = ClientPacket { number: 1, ack: SnapshotSeq(0), commands };
        encode_commands(&ClientMessage { packet, received_before: 0, perceived: None })
    };
    assert_eq!(with(&[1, 3]), Err(CommandsError::NotConsecutive { last: CommandSeq(1), next: CommandSeq(3) }));
    assert_eq!(with(&[7; 17]), Err(CommandsError::Count(17)));
    assert_eq!(with(&[]), Err(CommandsError::Count(0)));
    let datagram = with(&[3, 4]).expect("they are consecutive");
    // A datagram has the low 16 bits of a number. Near 65,000, the low bits 4 mean 65,540.
    let far = ClientReference { command: CommandSeq(65_000), ..ClientReference::default() };
    let commands = decode_commands(&datagram, &far).expect("it is complete").packet.commands;
    assert_eq!(commands[1].seq, CommandSeq(65_540));
    let cut = &datagram[..datagram.len() - 1];
    assert_eq!(decode_commands(cut, &ClientReference::default()), Err(DecodeError::TooShort));
}

#[test]
fn hashes_detect_differences_of_client_and_server() {
    let body = Runner { origin: Vec3::new(1.0, 2.0, 3.0), ..Runner::default() };
    let squinting = Runner { view_ofs_z: 28.0, ..body };
    let off = Runner { origin: Vec3::new(1.0, 2.0, 3.000_000_2), ..body };
    assert_eq!(PerceivedAvatar::hash(&body), PerceivedAvatar::hash(&squinting));
    assert_ne!(PerceivedAvatar::hash(&body), PerceivedAvatar::hash(&off));
}

#[test]
fn quantised_origins_round_to_the_nearest_eighth() {
    let origin = Vec3::new(100.06, -3.07, 1e9);
    assert_eq!(PerceivedAvatar::origin(origin), PerceivedAvatar::OriginEighths([800, -25, 8_388_352]));
    let far = Vec3::new(-1e9, -1_048_544.0, 1_048_543.0);
    assert_eq!(PerceivedAvatar::origin(far), PerceivedAvatar::OriginEighths([-8_388_352, -8_388_352, 8_388_344]));
}
