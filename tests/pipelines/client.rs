//! The client pipeline alone: predictions, collisions with other players, and numbers of usercmds and shots.

use std::sync::Arc;

use crate::disc::{DOUBLE, Disc, DiscRules, Discs};
use glam::Vec3;
use hitreg::client::Client;
use hitreg::game::{Cause, Explanation, PlacementKind, PredictionGrade, evidence};
use hitreg::history::Frame;
use hitreg::packet::{Echo, Snapshot};
use hitreg::pipeline::{ClientPipeline, ReconcileOutcome, Setup};
use hitreg::settings::Settings;
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, Seed, SnapshotSeq, Tick};
use hitreg::usercmd::{Input, buttons};

const OTHER: EntityId = EntityId(1);

/// A client, and a server whose snapshots the test writes.
pub(crate) struct ClientBench {
    pub(crate) client: Client<Discs>,
    pub(crate) snapshots: u32,
    /// The difference between the server's clock and the client's.
    behind: Micros,
    draws: bool,
    /// The server's value for the client's own disc.
    pub(crate) refire_ms: u32,
}

impl ClientBench {
    pub(crate) fn new(rules: DiscRules, settings: &[&str]) -> ClientBench {
        let mut all = Settings::default();
        for pair in settings {
            all.set_pair(pair).expect("a good setting");
        }
        let setup = Setup { rules: Arc::new(rules), settings: Arc::new(all), seed: Seed(1) };
        ClientBench {
            client: Client::new(setup, PlayerId(0)),
            snapshots: 0,
            behind: Micros::ZERO,
            draws: true,
            refire_ms: 0,
        }
    }

    /// A snapshot with an ack and the server's time, in which the own disc is at `own_x` and the other at `other_x`.
    pub(crate) fn snapshot(&mut self, at_ms: i64, ack: u32, own_x: f32, other_x: f32) -> Option<ReconcileOutcome> {
        self.snapshot_with(at_ms, ack, own_x, other_x, None)
    }

    fn snapshot_with(
        &mut self,
        at_ms: i64,
        ack: u32,
        own_x: f32,
        other_x: f32,
        echo: Option<Echo>,
    ) -> Option<ReconcileOutcome> {
        self.snapshots += 1;
        let disc = |x, speed, refire_ms| {
            let (origin, velocity) = (Vec3::X * x, Vec3::X * speed);
            Disc { origin, velocity, refire_ms, alive: true, ..Disc::default() }
        };
        let now = Micros::from_ms(at_ms);
        let frame = Frame {
            tick: Tick(self.snapshots),
            server_time: now,
            entities: vec![(EntityId(0), disc(own_x, 100.0, self.refire_ms)), (OTHER, disc(other_x, 0.0, 0))],
        };
        let snapshot =
            Snapshot { echo, ..Snapshot::new(SnapshotSeq(self.snapshots), CommandSeq(ack), Arc::new(frame)) };
        self.client.handle_snapshot(now + self.behind, &snapshot)
    }

    /// Runs a frame in which the player walks. Returns the number of usercmds.
    fn walk(&mut self, at_ms: i64, speed: f32, msec: u8) -> u32 {
        self.act(at_ms, Input { forwardmove: speed, msec, ..Input::default() })
    }

    pub(crate) fn act(&mut self, at_ms: i64, input: Input) -> u32 {
        let now = Micros::from_ms(at_ms);
        match self.draws {
            true => self.client.draw_others(now),
            false => self.client.skip_drawing(now),
        }
        self.client.command(now, &input).ran
    }

    fn x(&self) -> f32 {
        self.client.predicted().expect("there was a snapshot").origin.x
    }
}

#[test]
fn usercmds_are_numbered_from_the_given_number() {
    let mut desk = ClientBench::new(DiscRules::default(), &[]);
    desk.client.number_from(CommandSeq(77));
    let seqs: Vec<u32> = (0..3).map(|_| desk.client.command(Micros::ZERO, &Input::default()).command.seq.0).collect();
    assert_eq!(seqs, [77, 78, 79]);
}

/// Usercmds are acked 100 ms after they were made, five with each snapshot. Half of that time is predicted.
#[test]
fn the_limit_of_prediction_advances_in_each_frame() {
    let mut desk = ClientBench::new(DiscRules::default(), &["prediction.push_latency_ms=-50"]);
    desk.snapshot(0, 0, 0.0, 900.0);
    let frames = (1..=100).map(|n| {
        if n > 10 && n % 5 == 1 {
            desk.snapshot(10 * n, n as u32 - 10, (n - 10) as f32, 900.0);
        }
        (desk.walk(10 * n, 100.0, 10), n as f32 - desk.x())
    });
    let (ran, behind): (Vec<u32>, Vec<f32>) = frames.unzip();
    // The round trip is not known before the first ack. The limit then waits until it passes what has run.
    assert_eq!((&ran[..10], &ran[10..15], &ran[15..]), (&[1; 10][..], &[0; 5][..], &[1; 85][..]));
    assert!(behind[15..].iter().all(|behind| *behind == 5.0), "{behind:?}");
}

/// The client runs such a usercmd when it has its first body. By then, its screen shows a target.
#[test]
fn a_shot_before_the_first_snapshot_is_heard_but_not_predicted() {
    let mut desk = ClientBench::new(DiscRules::default(), &[]);
    let shoots = Input { msec: 10, buttons: buttons::ATTACK, ..Input::default() };
    let before = desk.client.command(Micros::from_ms(10), &shoots);
    desk.snapshot(15, 0, 0.0, 100.0);
    desk.client.draw_others(Micros::from_ms(20));
    let after = desk.client.command(Micros::from_ms(20), &Input { msec: 10, ..Input::default() });
    assert_eq!([before.shots.len(), after.shots.len()], [0, 0]);
    assert_eq!((before.effects.len(), after.effects.len(), after.ran), (0, 1, 2));
}

#[test]
fn predictions_collide_with_received_or_drawn_positions() {
    let met_at = |drawn_in_the_way, draws| {
        let mut desk =
            ClientBench::new(DiscRules { drawn_in_the_way, ..DiscRules::default() }, &["interpolation.lerp_ms=100"]);
        desk.draws = draws;
        desk.snapshot(0, 0, 0.0, 60.0);
        desk.snapshot(100, 0, 0.0, 160.0);
        // The other disc is drawn at its first position, and moves from there.
        for n in 1..40 {
            desk.walk(100 + n, 5_000.0, 1);
        }
        desk.x()
    };
    let (received, drawn) = (met_at(false, true), met_at(true, true));
    assert!((120.0..=128.0).contains(&received), "{received}");
    assert!((20.0..=70.0).contains(&drawn), "{drawn}");
    assert_eq!((met_at(false, false), met_at(true, false)), (received, drawn), "also if no screen is drawn");
}

/// A client draws after it has read all packets, so of two packets in one client frame only the later one is drawn.
#[test]
fn draws_and_meets_the_later_of_two_snapshots_of_one_time() {
    for mode in ["off", "extrapolate", "two-point", "history", "last-rendered"] {
        let settings = format!("interpolation.mode={mode}");
        let mut desk = ClientBench::new(DiscRules::default(), &[&settings, "interpolation.lerp_ms=0"]);
        desk.snapshot(0, 0, 0.0, 600.0);
        desk.walk(0, 0.0, 1);
        desk.snapshot(100, 1, 0.0, 60.0);
        desk.snapshot(100, 1, 0.0, 64.0);
        for at_ms in 100..140 {
            desk.walk(at_ms, 1_000.0, 1);
        }
        let drawn: Vec<f32> = desk.client.drawn().iter().map(|(_, placed)| placed.body.origin.x).collect();
        assert_eq!(drawn, [64.0], "{mode}");
        assert_eq!(desk.x(), 64.0 - 2.0 * 16.0, "{mode}: the discs touch");
    }
}

#[test]
fn a_corrected_usercmd_is_rerun_once() {
    let mut desk = ClientBench::new(DiscRules::default(), &["prediction.smooth_ms=0"]);
    desk.snapshot(0, 0, 0.0, 900.0);
    (1..=5).for_each(|n| assert_eq!(desk.walk(10 * n, 100.0, 10), 1));
    let reconciled = desk.snapshot(60, 2, 42.0, 900.0).expect("its own body");
    let correction = reconciled.correction.expect("it was elsewhere");
    assert_eq!((correction.command, correction.reran, desk.x()), (CommandSeq(2), 3, 45.0));
    assert_eq!(reconciled.round_trip, Some(Micros::from_ms(40)));
    assert_eq!(desk.walk(60, 100.0, 10), 4, "the three that ran again, and the new one");
    let reconciled = desk.snapshot(70, 3, 43.0, 900.0).expect("its own body");
    assert!(reconciled.correction.is_none() && reconciled.comparison.is_some());
    assert!(desk.snapshot(80, 3, 43.0, 900.0).expect("its own body").comparison.is_none(), "nothing new was acked");
}

#[test]
fn an_exact_prediction_has_no_wrong_field() {
    let grade = |refire_ms| {
        let mut desk = ClientBench { refire_ms, ..ClientBench::new(DiscRules::default(), &[]) };
        desk.snapshot(0, 0, 0.0, 900.0);
        desk.refire_ms = 0;
        desk.walk(10, 100.0, 10);
        let reconciled = desk.snapshot(60, 1, 1.0, 900.0).expect("its own body");
        let wrong = reconciled.correction.map_or(0, |correction| correction.errors.len());
        (reconciled.comparison.expect("an ack").grade, wrong)
    };
    assert_eq!(grade(0), (PredictionGrade::Exact, 0));
    assert_eq!(grade(150), (PredictionGrade::Near, 1), "place and speed are the same");
}

#[test]
fn a_client_with_many_losses_repeats_more() {
    let carried = |lost: u16| {
        let mut desk =
            ClientBench::new(DiscRules::default(), &["client.redundancy=4", "client.adaptive_redundancy=true"]);
        let mut all = 0;
        let mut counted = 0;
        for frame in 1..=1_000i64 {
            let now = Micros::from_ms(frame * 16);
            let commanded = desk.client.command(now, &Input { msec: 16, ..Input::default() });
            desk.client.handle_sent(&commanded.packet, 90);
            let number = commanded.packet.number;
            if number.is_multiple_of(10) {
                // The number of lost packets among each ten.
                let lost = (number / 10) as u16 * lost;
                let echo = Echo { packet: (number - 2) as u16, held_ms: 0, lost };
                desk.snapshot_with(frame * 16, number - 5, 0.0, 900.0, Some(echo));
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
fn redundancy_on_a_slow_line_fits_the_sent_bytes() {
    let carried = |bytes: u16| {
        let mut desk =
            ClientBench::new(DiscRules::default(), &["client.redundancy=4", "client.adaptive_redundancy=true"]);
        let mut all = 0;
        for frame in 1..=880i64 {
            let now = Micros::from_ms(frame * 16);
            let commanded = desk.client.command(now, &Input { msec: 16, ..Input::default() });
            desk.client.handle_sent(&commanded.packet, bytes);
            let number = commanded.packet.number;
            // The queue grows until the client has stepped down from four usercmds to one.
            let frames_ago = if (200..470).contains(&frame) { 2 + (frame as u32 - 200) / 15 } else { 2 };
            if number.is_multiple_of(5) {
                let echo = Echo { packet: (number - frames_ago) as u16, held_ms: 0, lost: 0 };
                desk.snapshot_with(frame * 16, number - frames_ago, 0.0, 900.0, Some(echo));
            }
            all += if frame > 830 { commanded.packet.commands.len() } else { 0 };
        }
        all / 50
    };
    // The estimate is 85 % of a packet with one usercmd, and grows by 10 % a second. It has room for two usercmds that are
    // small beside the header long before it has room for two large ones.
    assert_eq!([carried(17 + 4 * 64), carried(17 + 4 * 4)], [1, 2]);
}

#[test]
fn a_view_after_the_last_update_stays_there() {
    let mut desk =
        ClientBench::new(DiscRules::default(), &["interpolation.mode=last-rendered", "interpolation.lerp_ms=100"]);
    desk.snapshot(0, 0, 0.0, 60.0);
    desk.walk(50, 0.0, 1);
    desk.snapshot(100, 0, 0.0, 100.0);
    let mut drawn = |at_ms| {
        desk.walk(at_ms, 0.0, 1);
        desk.client.drawn().iter().map(|(_, placed)| (placed.body.origin.x, placed.how)).next().expect("the other")
    };
    assert_eq!(drawn(100), (60.0, PlacementKind::Interpolated));
    assert_eq!(drawn(150), (80.0, PlacementKind::Interpolated));
    assert_eq!([drawn(200), drawn(260)], [(100.0, PlacementKind::Held); 2]);
}

/// The other disc is drawn half-way to its last place when it moves on. Snapshots 0 and 1 are 100 units apart.
#[test]
fn a_teleport_is_a_move_between_snapshots_wherever_the_entity_is_drawn() {
    let settings = ["interpolation.mode=last-rendered", "interpolation.lerp_ms=100", "teleport.distance_units=128"];
    let drawn_towards = |x| {
        let mut desk = ClientBench::new(DiscRules::default(), &settings);
        desk.snapshot(0, 0, 0.0, 0.0);
        desk.walk(0, 0.0, 1);
        desk.snapshot(100, 0, 0.0, 100.0);
        (100..=150).for_each(|at_ms| assert_eq!(desk.walk(at_ms, 0.0, 1), 1));
        desk.snapshot(150, 0, 0.0, x);
        desk.walk(150, 0.0, 1);
        desk.client.drawn().iter().map(|(_, placed)| placed.how).next()
    };
    assert_eq!(drawn_towards(200.0), Some(PlacementKind::Interpolated), "150 units from where it is drawn");
    assert_eq!(drawn_towards(-40.0), Some(PlacementKind::Teleported), "90 units from where it is drawn");
}

/// A client keeps 2,048 usercmds. The server's body after an older one has no prediction.
#[test]
fn an_ack_of_dropped_usercmds_is_not_compared() {
    for among in ["known", "acking-packet"] {
        let among = format!("prediction.among={among}");
        let mut desk = ClientBench::new(DiscRules::default(), &["prediction.push_latency_ms=-2000", &among]);
        desk.snapshot(0, 0, 0.0, 9_000.0);
        (1..=2_148).for_each(|n| assert!(desk.walk(n, 1_000.0, 1) <= 1));
        // The first hundred were dropped. The server has moved the disc by 1 unit for each.
        for ack in [40, 99] {
            let outcome = desk.snapshot(2_200, ack, ack as f32, 9_000.0).expect("its own body");
            assert!(outcome.comparison.is_none() && outcome.correction.is_none(), "{ack}: {outcome:?}");
            assert_eq!(desk.x(), ack as f32, "nothing is predicted");
        }
        // The body of a repeated ack is compared, as it always is.
        let pushed = desk.snapshot(2_210, 99, 98.0, 9_000.0).expect("its own body");
        assert_eq!(pushed.comparison.map(|comparison| comparison.commands), Some(0));
        // The server acks the newest dropped usercmd. All others follow it.
        let outcome = desk.snapshot(2_220, 100, 100.0, 9_000.0).expect("its own body");
        assert!(outcome.comparison.is_none() && outcome.correction.is_none(), "{outcome:?}");
        assert_eq!(desk.x(), 2_048.0, "all that had run before run again");
        let outcome = desk.snapshot(2_230, 110, 110.0, 9_000.0).expect("its own body");
        let comparison = outcome.comparison.expect("it was predicted");
        assert_eq!((comparison.error_units, comparison.commands), (0.0, 10));
    }
}

#[test]
fn a_collision_only_on_the_server_is_the_cause() {
    let corrected = |skips_causes| {
        let mut desk = ClientBench::new(DiscRules::default(), &[]);
        if skips_causes {
            desk.client.skip_causes();
        }
        desk.snapshot(0, 0, 0.0, 900.0);
        (1..=5).for_each(|n| assert_eq!(desk.walk(100 * n, 100.0, 100), 1));
        // Meanwhile the other disc blocks the way: the last two usercmds have no effect, as if lost.
        let reconciled = desk.snapshot(600, 5, 30.0, 70.0).expect("its own body");
        assert_eq!(desk.x(), 30.0);
        reconciled.correction.expect("it was elsewhere").explanation
    };
    assert_eq!(corrected(false), Explanation::new(Cause::OtherPlayer, evidence::REPRODUCED));
    assert_eq!(corrected(true), Explanation::new(Cause::Unknown, evidence::NOT_EXAMINED));
}

/// The other disc blocks the last usercmd on the client. The server repeats the first usercmd instead of the second.
#[test]
fn a_lost_usercmd_explains_more_than_a_touch() {
    let cause = |own_x| {
        let mut desk = ClientBench::new(DiscRules::default(), &[]);
        desk.snapshot(0, 0, 0.0, 85.0);
        (1..).zip([100.0, 300.0, 50.0, 100.0]).for_each(|(n, speed)| assert_eq!(desk.walk(100 * n, speed, 100), 1));
        let reconciled = desk.snapshot(500, 4, own_x, 85.0).expect("its own body");
        let correction = reconciled.correction.expect("it was elsewhere");
        [correction.explanation, correction.if_all_ran]
    };
    let touched = Explanation::new(Cause::OtherPlayer, evidence::TOUCHED);
    assert_eq!(cause(35.0), [Explanation::new(Cause::InputLost, evidence::REPRODUCED), touched]);
    assert_eq!(cause(36.0), [touched; 2]);
}

/// The game does not report what blocks the way, and lost usercmds would explain the server's place just as well.
#[test]
fn usercmds_that_give_the_servers_body_when_run_again_are_not_lost() {
    let mut desk = ClientBench::new(DiscRules { quiet: true, ..DiscRules::default() }, &[]);
    desk.snapshot(0, 0, 0.0, 900.0);
    (1..=5).for_each(|n| assert_eq!(desk.walk(100 * n, 100.0, 100), 1));
    let reconciled = desk.snapshot(600, 5, 30.0, 70.0).expect("its own body");
    let correction = reconciled.correction.expect("it was elsewhere");
    assert_eq!(correction.explanation, Explanation::UNKNOWN);
}

/// Both snapshots show the other disc out of reach. It crossed the way between them.
#[test]
fn a_collision_between_two_snapshots_is_the_cause() {
    let cause = |other_x, own_x| {
        let mut desk = ClientBench::new(DiscRules::default(), &[]);
        desk.snapshot(0, 0, 0.0, 450.0);
        (1..).zip([60.0, 60.0, 60.0, 60.0, 100.0]).for_each(|(n, speed)| assert_eq!(desk.walk(100 * n, speed, 100), 1));
        let reconciled = desk.snapshot(600, 5, own_x, other_x).expect("its own body");
        let correction = reconciled.correction.expect("it was elsewhere");
        correction.explanation
    };
    // When the last usercmd ran, the other was at 50, and prevented the last 10 units.
    assert_eq!(cause(-50.0, 24.0), Explanation::new(Cause::OtherPlayer, evidence::REPRODUCED));
    // The other did not move evenly.
    assert_eq!(cause(-50.0, 25.5), Explanation::new(Cause::OtherPlayer, evidence::TOUCHED));
    assert_eq!(cause(250.0, 25.5), Explanation::UNKNOWN);
}

#[test]
fn any_one_lost_usercmd_of_ten_is_found() {
    let mut desk = ClientBench::new(DiscRules::default(), &["prediction.push_latency_ms=-2000"]);
    desk.snapshot(0, 0, 0.0, 9_000.0);
    // Steps are powers of two, so each set of lost usercmds gives another position.
    let speeds = (0..8).map(|n| 8.0 * f32::from(1u16 << n)).chain([100.0, 4_096.0]);
    (1..).zip(speeds).for_each(|(n, speed)| assert_eq!(desk.walk(125 * n, speed, 125), 1));
    let reconciled = desk.snapshot(1_500, 10, 255.0 + 12.5, 9_000.0).expect("its own body");
    let correction = reconciled.correction.expect("the last was lost");
    assert_eq!(correction.explanation, Explanation::new(Cause::InputLost, evidence::REPRODUCED));
}

/// The server replaces a lost usercmd by the one before it, in the same ack or in the ack before.
#[test]
fn a_lost_usercmd_that_the_server_replaced_is_found() {
    for acked in [1, 2] {
        let mut desk = ClientBench::new(DiscRules::default(), &[]);
        desk.snapshot(0, 0, 0.0, 9_000.0);
        desk.walk(100, 300.0, 100);
        desk.walk(200, 100.0, 100);
        let exact = desk.snapshot(250, acked, if acked == 1 { 30.0 } else { 40.0 }, 9_000.0);
        assert!(acked == 1 || exact.is_some_and(|exact| exact.correction.is_none()));
        desk.walk(300, 700.0, 100);
        let reconciled = desk.snapshot(400, 3, 50.0, 9_000.0).expect("its own body");
        let correction = reconciled.correction.expect("the third was lost");
        assert_eq!(correction.explanation, Explanation::new(Cause::InputLost, evidence::REPRODUCED));
    }
}

#[test]
fn the_search_continues_while_it_finds_causes() {
    let mut desk = ClientBench::new(DiscRules::default(), &[]);
    desk.snapshot(0, 0, 0.0, 9_000.0);
    let causes = (1..=1_100i64).map(|n| {
        desk.walk(10 * n, 100.0, 10);
        let reconciled = desk.snapshot(10 * n + 5, n as u32, 0.0, 9_000.0).expect("its own body");
        reconciled.correction.expect("each is lost").explanation.cause
    });
    assert_eq!(causes.filter(|cause| *cause == Cause::InputLost).count(), 1_100);
}

#[test]
fn only_effects_of_lost_usercmds_are_cut() {
    let mut desk = ClientBench::new(DiscRules::default(), &["prediction.push_latency_ms=-2000"]);
    desk.snapshot(0, 0, 0.0, 9_000.0);
    let shot = |speed| Input { forwardmove: speed, msec: 250, buttons: buttons::ATTACK, ..Input::default() };
    assert_eq!([desk.act(250, shot(100.0)), desk.act(500, shot(300.0))], [1, 1]);
    desk.refire_ms = 200;
    let reconciled = desk.snapshot(700, 2, 25.0, 9_000.0).expect("its own body");
    let correction = reconciled.correction.expect("the second was lost");
    assert_eq!(correction.explanation, Explanation::new(Cause::InputLost, evidence::REPRODUCED));
    assert_eq!(correction.cancelled_effects.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(), [CommandSeq(2)]);
}

#[test]
fn effects_that_a_rerun_lacks_are_cut() {
    let cut = |refire_ms| {
        let mut desk = ClientBench::new(DiscRules::default(), &["prediction.push_latency_ms=-2000"]);
        desk.snapshot(0, 0, 0.0, 9_000.0);
        let acts = |buttons| Input { forwardmove: 100.0, msec: 250, buttons, ..Input::default() };
        let ran = [0, buttons::ATTACK, buttons::ATTACK].map(|buttons| desk.act(250, acts(buttons)));
        assert_eq!(ran, [1, 1, 1]);
        // After the first usercmd, the server's refire time differs from the client's.
        desk.refire_ms = refire_ms;
        let correction =
            desk.snapshot(800, 1, 25.0, 9_000.0).and_then(|r| r.correction).expect("it knew of no such wait");
        assert_eq!(correction.reran, 2);
        correction.cancelled_effects.iter().map(|(seq, _)| seq.0).collect::<Vec<_>>()
    };
    assert_eq!([cut(200), cut(400), cut(1_000)], [vec![], vec![2], vec![2, 3]]);
}

/// A client keeps 2,048 usercmds. It predicts nothing from a base whose next usercmd it has dropped.
#[test]
fn a_client_predicts_after_silence_from_usercmds_that_it_still_has() {
    let mut desk = ClientBench::new(DiscRules::default(), &["prediction.push_latency_ms=-10000"]);
    desk.snapshot(0, 0, 0.0, 90_000.0);
    let walk = |desk: &mut ClientBench, numbers: std::ops::RangeInclusive<i64>| {
        numbers.map(|n| desk.walk(4 * n, 100.0, 4)).sum::<u32>()
    };
    assert_eq!(walk(&mut desk, 1..=10), 10);
    let after_ten = desk.x();
    assert_eq!(walk(&mut desk, 11..=11), 1);
    assert!(desk.snapshot(50, 10, after_ten, 90_000.0).is_some_and(|found| found.correction.is_none()));
    assert_eq!(walk(&mut desk, 12..=2_058), 2_047);
    let mut acked = |walked: i64, ack, own_x| {
        walk(&mut desk, 2_059..=2_058 + walked);
        let found = desk.snapshot(8_300, ack, own_x, 90_000.0).expect("its own body");
        (found.correction.map(|found| found.reran), (desk.x() - own_x).round())
    };
    // All usercmds after the tenth are kept. Each moves the disc by 0.4 units.
    assert_eq!(acked(0, 10, 50.0), (Some(2_048), 819.0));
    // The eleventh is dropped.
    assert_eq!(acked(1, 10, 60.0), (Some(0), 0.0));
    // The server has run the dropped usercmd, so the others follow. The last one waits for its frame.
    assert_eq!(acked(0, 11, 60.0), (None, 819.0));
    assert_eq!(acked(0, 59, 70.0), (Some(1_999), 800.0));
}

#[test]
fn two_shots_of_one_usercmd_have_their_own_index() {
    let mut desk = ClientBench::new(DiscRules::default(), &[]);
    desk.snapshot(0, 0, 0.0, 900.0);
    let shot = Input { msec: 10, impulse: DOUBLE, buttons: buttons::ATTACK, ..Input::default() };
    let commanded = desk.client.command(Micros::from_ms(10), &shot);
    let which: Vec<_> = commanded.shots.iter().map(|shot| (shot.command.0, shot.index)).collect();
    assert_eq!(which, [(1, 0), (1, 1)]);
}

#[test]
fn scheduled_usercmds_begin_a_lead_after_the_servers_time() {
    let settings = ["client.lead_ms=100", "server.schedule=tick", "server.tick_hz=100"];
    let mut desk = ClientBench::new(DiscRules::default(), &settings);
    // The client's clock differs: its first update arrives 700 ms after its start and has the server's start time.
    desk.behind = Micros::from_ms(700);
    desk.snapshot(0, 0, 0.0, 900.0);
    let made = desk.client.command(Micros::from_ms(700), &Input::default()).command;
    assert_eq!(made.server_time, Micros::from_ms(100));
}
