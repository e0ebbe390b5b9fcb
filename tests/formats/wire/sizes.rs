//! Sizes of datagrams. Each limit is slightly above the measured size, so that growth fails the test.

use hitreg::packet::ClientPacket;
use hitreg::units::{CommandSeq, Micros, SnapshotSeq};
use hitreg::usercmd::{Input, Usercmd};
use hitreg::wire::{ClientMessage, PerceivedAvatar, SEAL_BYTES, encode_commands};

use super::runners::{RunnerCrowd, TICK};
use super::snapshots::{LinkedPair, LossyLink};

fn mean(sizes: &[usize]) -> f64 {
    sizes.iter().sum::<usize>() as f64 / sizes.len() as f64
}

#[test]
fn snapshots_of_sixteen_players() {
    for (every, bound) in [(1, 500.0), (3, 500.0)] {
        let mut field = RunnerCrowd::new(5, 16);
        let mut pair = LinkedPair::new(16, LossyLink::new(5, 0.0, 6 / every));
        // Each direction takes up to six ticks, so acks are about seven ticks old: 110 ms.
        let mut sizes = Vec::new();
        let mut deferred = 0;
        for seq in 1..2_000 {
            (0..every).for_each(|_| field.step());
            let (encoded, _) = pair.step(seq, &field.snapshot(seq), 1200);
            if seq > 100 {
                sizes.push(encoded.datagram.len() + SEAL_BYTES);
                deferred += encoded.deferred.len();
            }
        }
        let most = sizes.iter().max().expect("there are some");
        eprintln!("16 moving players, snapshot at every tick / {every}: mean {:.1} bytes, most {most}", mean(&sizes));
        assert_eq!(deferred, 0);
        assert!(mean(&sizes) < bound, "{}", mean(&sizes));
    }
}

#[test]
fn client_packets() {
    let mut field = RunnerCrowd::new(6, 1);
    let mut commands: Vec<Usercmd> = Vec::new();
    for tick in 1..2_000u32 {
        field.step();
        let input = field.input(0);
        let input = Input {
            msec: [15, 16][tick as usize % 2],
            viewangles: input.viewangles,
            forwardmove: input.forwardmove,
            sidemove: input.sidemove,
            buttons: input.buttons,
            ..Input::default()
        };
        let server_time = Micros(i64::from(tick) * TICK.0 + 3_600_000_000);
        commands.push(Usercmd { seq: CommandSeq(tick), lerp_msec: 100, server_time, input });
    }
    for (redundancy, bound) in [(1, 42.0), (2, 51.0), (3, 60.0), (4, 69.0)] {
        let size = |window: &[Usercmd]| {
            let packet = ClientPacket { number: 9, ack: SnapshotSeq(900), commands: window.to_vec() };
            let perceived = Some(PerceivedAvatar::Hash(0x1234_5678));
            let message = ClientMessage { packet, received_before: u32::MAX, perceived };
            encode_commands(&message).expect("the commands are consecutive").len() + SEAL_BYTES
        };
        let sizes: Vec<usize> = commands.windows(redundancy).map(size).collect();
        let most = sizes.iter().max().expect("there are some");
        eprintln!("client packet at {redundancy}:1: mean {:.1} bytes, most {most}", mean(&sizes));
        assert!(mean(&sizes) < bound, "{}", mean(&sizes));
    }
}
