//! The client pipeline alone: what it predicts, whom it meets, and how it numbers what it makes.

use std::sync::Arc;

use crate::disc::{Disc, Discs, Rules};
use glam::Vec3;
use hitreg::client::Client;
use hitreg::game::{Cause, How};
use hitreg::history::Frame;
use hitreg::packet::{Echo, Snapshot};
use hitreg::pipeline::{ClientPipeline, Reconciled, Setup};
use hitreg::settings::Settings;
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, Seed, SnapshotSeq, Tick};
use hitreg::usercmd::Input;

const OTHER: EntityId = EntityId(1);

/// A client, and a server that is what the test says.
struct Desk {
    client: Client<Discs>,
    snapshots: u32,
    /// How much later the client's own clock shows what the server's does.
    behind: Micros,
}

impl Desk {
    fn new(rules: Rules, settings: &[&str]) -> Desk {
        let mut all = Settings::default();
        for pair in settings {
            all.set_pair(pair).expect("a good setting");
        }
        let setup = Setup { rules: Arc::new(rules), settings: Arc::new(all), seed: Seed(1) };
        Desk { client: Client::new(setup, PlayerId(0)), snapshots: 0, behind: Micros::ZERO }
    }

    /// A snapshot that acks `ack`, of the server's time `at_ms`, in which the own disc is at `own_x` and the other at `other_x`.
    fn told(&mut self, at_ms: i64, ack: u32, own_x: f32, other_x: f32) -> Option<Reconciled> {
        self.told_with(at_ms, ack, own_x, other_x, None)
    }

    fn told_with(&mut self, at_ms: i64, ack: u32, own_x: f32, other_x: f32, echo: Option<Echo>) -> Option<Reconciled> {
        self.snapshots += 1;
        let disc = |x, speed| {
            let (origin, velocity) = (Vec3::X * x, Vec3::X * speed);
            Disc { origin, velocity, alive: true, ..Disc::default() }
        };
        let now = Micros::from_ms(at_ms);
        let frame = Frame {
            tick: Tick(self.snapshots),
            server_time: now,
            entities: vec![(EntityId(0), disc(own_x, 100.0)), (OTHER, disc(other_x, 0.0))],
        };
        let snapshot = Snapshot {
            seq: SnapshotSeq(self.snapshots),
            ack: CommandSeq(ack),
            frame: Arc::new(frame),
            effects: Vec::new(),
            choked: 0,
            helper_ms: None,
            warnings: Vec::new(),
            echo,
            extra: Vec::new(),
        };
        self.client.handle_snapshot(now + self.behind, &snapshot)
    }

    /// A frame in which the player walks; how many usercmds ran in it.
    fn walks(&mut self, at_ms: i64, speed: f32, msec: u8) -> u32 {
        let now = Micros::from_ms(at_ms);
        self.client.look(now);
        self.client.command(now, &Input { forwardmove: speed, msec, ..Input::default() }).ran
    }

    fn x(&self) -> f32 {
        self.client.predicted().expect("there was a snapshot").origin.x
    }
}

#[test]
fn usercmds_are_numbered_from_where_it_says() {
    let mut desk = Desk::new(Rules::default(), &[]);
    desk.client.number_from(CommandSeq(77));
    let seqs: Vec<u32> = (0..3).map(|_| desk.client.command(Micros::ZERO, &Input::default()).command.seq.0).collect();
    assert_eq!(seqs, [77, 78, 79]);
}

#[test]
fn no_more_is_predicted_than_allowed_and_all_that_is() {
    let mut desk = Desk::new(Rules::default(), &["prediction.push_latency_ms=-50"]);
    desk.told(0, 0, 0.0, 900.0);
    let ran: Vec<u32> = (1..=8).map(|n| desk.walks(10 * n, 100.0, 10)).collect();
    assert_eq!(ran, [1, 1, 1, 1, 1, 0, 0, 0]);
    assert_eq!(desk.x(), 5.0);
}

#[test]
fn a_client_meets_the_others_where_it_was_told_or_where_it_draws_them() {
    let met_at = |drawn_in_the_way| {
        let mut desk = Desk::new(Rules { drawn_in_the_way, ..Rules::default() }, &["interpolation.lerp_ms=100"]);
        desk.told(0, 0, 0.0, 60.0);
        desk.told(100, 0, 0.0, 160.0);
        // The other is drawn where it was at the first snapshot, and goes on from there.
        for n in 1..40 {
            desk.walks(100 + n, 5_000.0, 1);
        }
        desk.x()
    };
    let (told, drawn) = (met_at(false), met_at(true));
    assert!((120.0..=128.0).contains(&told), "{told}");
    assert!((20.0..=70.0).contains(&drawn), "{drawn}");
}

#[test]
fn what_a_snapshot_corrects_is_run_again_once() {
    let mut desk = Desk::new(Rules::default(), &["prediction.smooth_ms=0"]);
    desk.told(0, 0, 0.0, 900.0);
    (1..=5).for_each(|n| assert_eq!(desk.walks(10 * n, 100.0, 10), 1));
    let reconciled = desk.told(60, 2, 42.0, 900.0).expect("its own body");
    let correction = reconciled.correction.expect("it was elsewhere");
    assert_eq!((correction.command, correction.reran, desk.x()), (CommandSeq(2), 3, 45.0));
    assert_eq!(reconciled.round_trip, Some(Micros::from_ms(40)));
    assert_eq!(desk.walks(60, 100.0, 10), 4, "the three that ran again, and the new one");
    let reconciled = desk.told(70, 3, 43.0, 900.0).expect("its own body");
    assert!(reconciled.correction.is_none() && reconciled.comparison.is_some());
    assert!(desk.told(80, 3, 43.0, 900.0).expect("its own body").comparison.is_none(), "nothing new was acked");
}

#[test]
fn a_client_of_which_much_is_lost_repeats_more() {
    let carried = |lost: u16| {
        let mut desk = Desk::new(Rules::default(), &["client.redundancy=4", "client.adaptive_redundancy=true"]);
        let mut all = 0;
        let mut counted = 0;
        for frame in 1..=1_000i64 {
            let now = Micros::from_ms(frame * 16);
            let commanded = desk.client.command(now, &Input { msec: 16, ..Input::default() });
            desk.client.handle_sent(&commanded.packet, 90);
            let number = commanded.packet.number;
            if number.is_multiple_of(10) {
                // Each ten packets, so many of them were lost.
                let lost = (number / 10) as u16 * lost;
                let echo = Echo { packet: (number - 2) as u16, held_ms: 0, lost };
                desk.told_with(frame * 16, number - 5, 0.0, 900.0, Some(echo));
            }
            if frame > 700 {
                all += commanded.packet.commands.len();
                counted += 1;
            }
        }
        all as f64 / f64::from(counted)
    };
    let (clean, lossy) = (carried(0), carried(2));
    assert!(lossy > clean + 0.5, "{clean} and {lossy} usercmds in a packet");
}

#[test]
fn what_has_reached_the_last_update_rests_there() {
    let mut desk = Desk::new(Rules::default(), &["interpolation.mode=last-rendered", "interpolation.lerp_ms=100"]);
    desk.told(0, 0, 0.0, 60.0);
    desk.walks(50, 0.0, 1);
    desk.told(100, 0, 0.0, 100.0);
    let mut drawn = |at_ms| {
        desk.walks(at_ms, 0.0, 1);
        desk.client.drawn().iter().map(|(_, placed)| (placed.body.origin.x, placed.how)).next().expect("the other")
    };
    assert_eq!(drawn(100), (60.0, How::Interpolated));
    assert_eq!(drawn(150), (80.0, How::Interpolated));
    assert_eq!([drawn(200), drawn(260)], [(100.0, How::Held); 2]);
}

#[test]
fn whom_only_the_server_met_is_the_cause() {
    let mut desk = Desk::new(Rules::default(), &[]);
    desk.told(0, 0, 0.0, 900.0);
    (1..=5).for_each(|n| assert_eq!(desk.walks(100 * n, 100.0, 100), 1));
    // By then the other stands in the way: the last two usercmds came to nothing, as if they had been lost.
    let reconciled = desk.told(600, 5, 30.0, 70.0).expect("its own body");
    let correction = reconciled.correction.expect("it was elsewhere");
    assert_eq!((correction.cause, correction.evidence), (Cause::OtherPlayer, "touched"));
}

#[test]
fn usercmds_for_ticks_begin_a_lead_after_the_servers_time() {
    let settings = ["client.clock=calibrated", "client.lead_ms=100", "server.schedule=tick", "server.tick_hz=100"];
    let mut desk = Desk::new(Rules::default(), &settings);
    // The client's own time is another: its first update comes 700 ms after its start, and is of the server's start.
    desk.behind = Micros::from_ms(700);
    desk.told(0, 0, 0.0, 900.0);
    let made = desk.client.command(Micros::from_ms(700), &Input::default()).command;
    assert_eq!(made.server_time, Micros::from_ms(100));
}
