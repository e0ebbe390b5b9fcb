//! The server pipeline alone: executed and refused usercmds, times of snapshots, and rewinds.

use std::sync::Arc;

use crate::disc::{Disc, DiscRules, Discs, TELEPORT};
use glam::Vec3;
use hitreg::game::{HitResult, Simulate};
use hitreg::packet::{ClientPacket, Snapshot};
use hitreg::pipeline::{JudgedShot, RewindLimit, ServerPipeline, Setup, TickEvent};
use hitreg::record::Execution;
use hitreg::server::Server;
use hitreg::settings::Settings;
use hitreg::units::{CommandSeq, Micros, PlayerId, Seed, SnapshotSeq};
use hitreg::usercmd::{Input, Usercmd, buttons};

const SHOOTER: PlayerId = PlayerId(0);
const TARGET: PlayerId = PlayerId(1);
const TICK_MS: i64 = 10;

/// A server with two players and 10 ms ticks. Each client answers at once with input of the test.
struct ServerBench {
    server: Server<Discs>,
    now: Micros,
    seqs: [u32; 2],
    packets: u32,
    snapshots: Vec<(Micros, PlayerId, Snapshot<Disc>)>,
    judged: Vec<JudgedShot<Discs>>,
    executed: Vec<(PlayerId, CommandSeq, Execution)>,
    joined: Vec<PlayerId>,
}

impl ServerBench {
    fn new(settings: &[&str]) -> ServerBench {
        let mut all = Settings::default();
        for pair in ["server.tick_hz=100", "server.update_hz=20"].iter().chain(settings) {
            all.set_pair(pair).expect("a good setting");
        }
        let rules = Arc::new(DiscRules { ghosts: true, ..DiscRules::default() });
        ServerBench {
            server: Server::new(Setup { rules, settings: Arc::new(all), seed: Seed(1) }, 2),
            now: Micros::ZERO,
            seqs: [0; 2],
            packets: 0,
            snapshots: Vec::new(),
            judged: Vec::new(),
            executed: Vec::new(),
            joined: Vec::new(),
        }
    }

    fn tick(&mut self) {
        self.now += Micros::from_ms(TICK_MS);
        self.server.tick(self.now);
        while let Some(event) = self.server.poll_event() {
            match event {
                TickEvent::Executed { player, command, how } => self.executed.push((player, command, how)),
                TickEvent::Judged(judged) => self.judged.push(judged),
                TickEvent::Presence { player, .. } => self.joined.push(player),
                TickEvent::Impact { .. } => unreachable!("discs launch nothing"),
            }
        }
        while let Some((player, snapshot)) = self.server.poll_snapshot() {
            self.server.handle_sent(player, Arc::clone(&snapshot.frame), Some(snapshot.nominal_bytes()));
            self.snapshots.push((self.now, player, snapshot));
        }
    }

    fn command(&mut self, player: PlayerId, drawn_at: Micros, input: Input) -> Usercmd {
        let seq = &mut self.seqs[usize::from(player.0)];
        *seq += 1;
        let lerp_msec = 100;
        Usercmd { seq: CommandSeq(*seq), lerp_msec, server_time: drawn_at + Micros::from_ms(100), input }
    }

    fn send(&mut self, player: PlayerId, commands: Vec<Usercmd>) {
        let ack = self.newest_sent(player);
        self.send_with(ack, player, commands);
    }

    fn newest_sent(&self, player: PlayerId) -> SnapshotSeq {
        self.snapshots.iter().rfind(|(_, of, _)| *of == player).map_or(SnapshotSeq(0), |(.., snapshot)| snapshot.seq)
    }

    fn send_with(&mut self, ack: SnapshotSeq, player: PlayerId, commands: Vec<Usercmd>) {
        self.packets += 1;
        self.server.handle_packet(self.now, player, ClientPacket { number: self.packets, ack, commands });
    }

    /// Sends a usercmd of this number that is due in the next tick.
    fn send_number(&mut self, seq: u32) {
        let server_time = self.now + Micros::from_ms(TICK_MS);
        let command = Usercmd { seq: CommandSeq(seq), server_time, lerp_msec: 0, input: walk(100.0) };
        self.send(SHOOTER, vec![command]);
    }

    fn send_and_tick(&mut self, player: PlayerId, input: Input) {
        let command = self.command(player, self.now, input);
        self.send(player, vec![command]);
    }

    fn origin(&self, player: PlayerId) -> Vec3 {
        Discs::entities(self.server.world())[usize::from(player.0)].1.origin
    }

    /// The target runs along x for a while. The shooter stands below and shoots straight up at time `drawn_at` of its
    /// screen.
    fn shoot_back(&mut self, behind_ms: i64) -> &JudgedShot<Discs> {
        for _ in 0..100 {
            self.send_and_tick(TARGET, walk(500.0));
            self.tick();
        }
        let drawn_at = self.now - Micros::from_ms(behind_ms);
        let shot =
            Input { buttons: buttons::ATTACK, viewangles: Vec3::new(0.0, 90.0, 0.0), msec: 1, ..Input::default() };
        let command = self.command(SHOOTER, drawn_at, shot);
        self.send(SHOOTER, vec![command]);
        self.tick();
        self.judged.last().expect("the shot was judged")
    }
}

fn walk(speed: f32) -> Input {
    Input { forwardmove: speed, msec: TICK_MS as u8, ..Input::default() }
}

#[test]
fn targets_are_judged_where_they_were_drawn() {
    let mut rig = ServerBench::new(&[]);
    let judged = rig.shoot_back(150);
    assert_eq!((judged.rewind.limit, judged.rewind.by), (RewindLimit::None, Micros::from_ms(150 + TICK_MS)));
    // 500 units/s for 850 ms, with a tick every 10 ms.
    let at = judged.rewind.targets[0].1.origin;
    assert!((at.x - 425.0).abs() < 1e-3, "{at}");
    assert_eq!(judged.verdict.reason, HitResult::Missed);
}

#[test]
fn without_lag_compensation_targets_are_judged_at_the_present() {
    let mut rig = ServerBench::new(&["lag_compensation.enabled=false"]);
    let judged = rig.shoot_back(150);
    assert_eq!((judged.rewind.limit, judged.rewind.by), (RewindLimit::Off, Micros::ZERO));
    assert!((judged.rewind.targets[0].1.origin.x - 500.0).abs() < 1e-3);
}

#[test]
fn rewinds_stop_at_the_limit() {
    let mut rig = ServerBench::new(&["lag_compensation.max_unlag_ms=200", "lag_compensation.max_claim_error_ms=1000"]);
    let judged = rig.shoot_back(400);
    assert_eq!((judged.rewind.limit, judged.rewind.by), (RewindLimit::MaxUnlag, Micros::from_ms(200)));
}

/// The measured round trip implies a time beyond `max_unlag_ms`, and the usercmd claims another.
#[test]
fn a_refused_claim_is_the_limit_if_it_changes_the_rewind() {
    let limit = |drawn_ms_ago| {
        let settings = ["lag_compensation.max_unlag_ms=300", "lag_compensation.max_claim_error_ms=20"];
        let mut rig = ServerBench::new(&settings);
        let walk_for = |rig: &mut ServerBench, ticks: u32| {
            for _ in 0..ticks {
                rig.send_and_tick(TARGET, walk(500.0));
                rig.tick();
            }
        };
        walk_for(&mut rig, 50);
        let ack = rig.newest_sent(SHOOTER);
        walk_for(&mut rig, 40);
        let shot = Input { buttons: buttons::ATTACK, msec: 1, ..Input::default() };
        let command = rig.command(SHOOTER, rig.now - Micros::from_ms(drawn_ms_ago), shot);
        rig.send_with(ack, SHOOTER, vec![command]);
        rig.tick();
        let rewind = &rig.judged.last().expect("the shot was judged").rewind;
        assert_eq!(rewind.by, Micros::from_ms(300));
        rewind.limit
    };
    // A claim of 350 ms would be cut to the same 300 ms.
    assert_eq!([limit(150), limit(350)], [RewindLimit::Claim, RewindLimit::MaxUnlag]);
}

#[test]
fn a_drawing_time_beyond_the_latency_is_refused() {
    let mut rig = ServerBench::new(&[]);
    // The ack of the last snapshot arrives at once, so its delay is only the time since the snapshot was sent, at most
    // 50 ms.
    rig.send_and_tick(SHOOTER, Input::default());
    let judged = rig.shoot_back(450);
    assert_eq!(judged.rewind.limit, RewindLimit::Claim);
    assert!(judged.rewind.by <= Micros::from_ms(100 + 50 + 2 * TICK_MS), "{:?}", judged.rewind.by);
}

/// A client with a true clock gains nothing by a false interpolation delay, nor one with an old clock by sending no acks.
#[test]
fn a_false_delay_and_missing_acks_give_no_further_rewind() {
    let attack = Input { buttons: buttons::ATTACK, msec: 1, ..Input::default() };
    let judged = |ack: bool, drawn_ms_ago: i64, lerp_msec: u16| {
        let mut rig = ServerBench::new(&["lag_compensation.max_unlag_ms=1000"]);
        for _ in 0..100 {
            rig.send_and_tick(TARGET, walk(500.0));
            rig.tick();
        }
        let drawn_at = rig.now - Micros::from_ms(drawn_ms_ago);
        let server_time = drawn_at + Micros::from_ms(lerp_msec.into());
        let command = Usercmd { lerp_msec, server_time, ..rig.command(SHOOTER, drawn_at, attack.clone()) };
        match ack {
            true => rig.send(SHOOTER, vec![command]),
            false => {
                let packet = ClientPacket { number: 1, ack: SnapshotSeq(0), commands: vec![command] };
                rig.server.handle_packet(rig.now, SHOOTER, packet);
            }
        }
        rig.tick();
        let rewind = &rig.judged.last().expect("the shot was judged").rewind;
        (rewind.limit, rewind.by)
    };
    // The round trip is the time since the last snapshot, at most 50 ms.
    let (limit, by) = judged(true, 500, 500);
    assert!(limit == RewindLimit::Claim && by <= Micros::from_ms(100 + 50 + TICK_MS), "{limit:?} {by:?}");
    // A client that acks nothing has seen nothing, and is judged in the present.
    assert_eq!([judged(false, 500, 100), judged(false, 100, 100)].map(|(_, by)| by), [Micros::ZERO; 2]);
}

/// The server extrapolates a target as the shooter's client did when the newest snapshot was older than the drawn time.
#[test]
fn targets_are_judged_where_they_were_extrapolated() {
    let target = |settings: &[&str]| {
        let mut rig = ServerBench::new(&[&["server.update_hz=1"], settings].concat());
        for n in 0..150 {
            rig.send_and_tick(TARGET, walk(500.0));
            let buttons = if n == 149 { buttons::ATTACK } else { 0 };
            let command = rig.command(SHOOTER, rig.now - Micros::from_ms(30), Input { buttons, msec: 1, ..walk(0.0) });
            rig.send(SHOOTER, vec![command]);
            rig.tick();
        }
        let judged = rig.judged.last().expect("the shot was judged");
        assert_eq!((judged.rewind.limit, judged.rewind.by), (RewindLimit::None, Micros::from_ms(30 + TICK_MS)));
        let x = judged.rewind.targets[0].1.origin.x;
        let newest = rig.snapshots.iter().rfind(|(.., snapshot)| snapshot.frame.server_time < rig.now);
        let (sent, _, snapshot) = newest.expect("one was sent");
        let at = snapshot.frame.get(TARGET.entity()).expect("the target").origin.x;
        (x - at, (rig.now - *sent).as_ms_f64() as f32 - 40.0)
    };
    let (ahead, drawn_ms) = target(&["extrapolation.max_ms=1000"]);
    assert!(drawn_ms > 100.0 && (ahead - drawn_ms / 2.0).abs() < 0.01, "{ahead} units, {drawn_ms} ms");
    let (ahead, _) = target(&["extrapolation.max_ms=50"]);
    assert!((ahead - 25.0).abs() < 0.01, "{ahead}");
    assert_eq!(target(&["interpolation.on_missing=hold"]).0, 0.0);
}

/// A client that stops acking does not shoot at targets of long ago. Its time is as true as before.
#[test]
fn states_older_than_the_limit_are_not_used() {
    let shot_after = |ticks: u32| {
        let mut rig = ServerBench::new(&["lag_compensation.max_unlag_ms=300", "interpolation.on_missing=hold"]);
        for _ in 0..100 {
            rig.send_and_tick(TARGET, walk(500.0));
            rig.send_and_tick(SHOOTER, Input::default());
            rig.tick();
        }
        let ack = rig.newest_sent(SHOOTER);
        for n in 0..=ticks {
            rig.send_and_tick(TARGET, walk(500.0));
            let buttons = if n == ticks { buttons::ATTACK } else { 0 };
            let command = rig.command(SHOOTER, rig.now - Micros::from_ms(150), Input { buttons, msec: 1, ..walk(0.0) });
            rig.send_with(ack, SHOOTER, vec![command]);
            rig.tick();
        }
        let rewind = &rig.judged.last().expect("the shot was judged").rewind;
        assert_eq!(rewind.by, Micros::from_ms(150 + TICK_MS));
        (rewind.limit, rig.origin(TARGET).x - rewind.targets[0].1.origin.x)
    };
    // The newest acked snapshot is 40 ms old at first, and the target moves 5 units a tick.
    assert_eq!(shot_after(3).0, RewindLimit::None);
    let (limit, behind) = shot_after(24);
    assert!(limit == RewindLimit::None && (behind - 145.0).abs() < 0.01, "{limit:?} {behind}");
    let (limit, behind) = shot_after(34);
    assert!(limit == RewindLimit::MaxUnlag && (behind - 80.0).abs() < 0.01, "{limit:?} {behind}");
}

#[test]
fn a_drawing_time_exactly_at_the_latency_is_accepted() {
    let judged = |beyond: Micros| {
        let mut rig = ServerBench::new(&["lag_compensation.max_claim_error_ms=150"]);
        for _ in 0..100 {
            rig.send_and_tick(TARGET, walk(500.0));
            rig.tick();
        }
        let (sent, ..) = *rig.snapshots.iter().rfind(|(_, player, _)| *player == SHOOTER).expect("one was sent");
        // The ack is of the last snapshot, so the round trip is the time since then.
        let drawn_at = sent - Micros::from_ms(100 + 150) - beyond;
        let shot =
            Input { buttons: buttons::ATTACK, viewangles: Vec3::new(0.0, 90.0, 0.0), msec: 1, ..Input::default() };
        let command = rig.command(SHOOTER, drawn_at, shot);
        rig.send(SHOOTER, vec![command]);
        rig.tick();
        rig.judged.last().expect("the shot was judged").rewind.limit
    };
    assert_eq!([judged(Micros::ZERO), judged(Micros(1))], [RewindLimit::None, RewindLimit::Claim]);
}

/// Packets repeat an ack until the next snapshot arrives.
#[test]
fn the_round_trip_is_measured_at_the_first_ack_of_a_snapshot() {
    let mut rig = ServerBench::new(&["server.update_hz=1", "lag_compensation.max_unlag_ms=1500"]);
    rig.tick();
    for _ in 0..90 {
        rig.send_and_tick(SHOOTER, Input::default());
        rig.tick();
    }
    let attack = Input { buttons: buttons::ATTACK, msec: 1, ..Input::default() };
    let command = rig.command(SHOOTER, rig.now - Micros::from_ms(100), attack);
    rig.send(SHOOTER, vec![command]);
    rig.tick();
    let judged = rig.judged.last().expect("the shot was judged");
    assert_eq!((judged.rewind.limit, judged.rewind.by), (RewindLimit::None, Micros::from_ms(100 + TICK_MS)));
}

/// Two packets arrive within one tick. The round trip is 340 ms at the first, 40 ms at the second.
#[test]
fn a_usercmd_is_checked_against_the_round_trip_of_its_own_packet() {
    let mut rig = ServerBench::new(&[]);
    let run_for = |rig: &mut ServerBench, ticks: u32| {
        for _ in 0..ticks {
            rig.send_and_tick(TARGET, walk(500.0));
            rig.tick();
        }
        rig.newest_sent(SHOOTER)
    };
    let old = run_for(&mut rig, 50);
    let newest = run_for(&mut rig, 30);
    let drawn_at = rig.now - Micros::from_ms(340 + 100);
    let attack = Input { buttons: buttons::ATTACK, msec: 1, ..Input::default() };
    let shot = rig.command(SHOOTER, drawn_at, attack);
    let next = rig.command(SHOOTER, rig.now, Input::default());
    rig.send_with(old, SHOOTER, vec![shot]);
    rig.send_with(newest, SHOOTER, vec![next]);
    rig.tick();
    let rewind = &rig.judged.last().expect("the shot was judged").rewind;
    assert_eq!((rewind.limit, rewind.by), (RewindLimit::None, rig.now - drawn_at));
}

#[test]
fn the_shot_of_a_stand_in_is_rewound_with_the_view_of_the_next_usercmd() {
    for schedule in ["arrival", "tick"] {
        let mut rig = ServerBench::new(&["server.command_credit_ms=1000", &format!("server.schedule={schedule}")]);
        rig.tick();
        for _ in 0..40 {
            let mut walking = rig.command(TARGET, rig.now, walk(500.0));
            walking.server_time = rig.now + Micros::from_ms(TICK_MS);
            rig.send(TARGET, vec![walking]);
            rig.tick();
        }
        let attack = Input { buttons: buttons::ATTACK, msec: 250, ..Input::default() };
        let drawn_at = rig.now + Micros::from_ms(TICK_MS - 100);
        let commands: Vec<Usercmd> = (0..3).map(|_| rig.command(SHOOTER, drawn_at, attack.clone())).collect();
        rig.send(SHOOTER, vec![commands[0].clone()]);
        rig.send(SHOOTER, vec![commands[2].clone()]);
        rig.tick();
        let [_, stand_in, next] = &*rig.judged else { panic!("{schedule}: {:?}", rig.executed) };
        assert_eq!((stand_in.command, next.command), (CommandSeq(2), CommandSeq(3)));
        assert_eq!(stand_in.rewind.by, Micros::from_ms(100), "{schedule}");
        assert_eq!(stand_in.rewind, next.rewind, "{schedule}");
        assert!(stand_in.rewind.targets[0].1.origin.x < rig.origin(TARGET).x - 40.0);
    }
}

#[test]
fn usercmds_lost_before_the_first_are_not_substituted() {
    let mut rig = ServerBench::new(&[]);
    let commands: Vec<Usercmd> = (0..3).map(|_| rig.command(SHOOTER, Micros::ZERO, walk(100.0))).collect();
    rig.send(SHOOTER, vec![commands[2].clone()]);
    rig.tick();
    let how: Vec<Execution> = rig.executed.iter().map(|(.., how)| *how).collect();
    assert_eq!(how, [Execution::Missing, Execution::Missing, Execution::Run]);
}

#[test]
fn the_time_credit_is_used_to_the_last_millisecond() {
    let mut rig = ServerBench::new(&["server.command_credit_ms=50"]);
    let commands: Vec<Usercmd> = (0..8).map(|_| rig.command(SHOOTER, Micros::ZERO, walk(100.0))).collect();
    rig.send(SHOOTER, commands);
    rig.tick();
    // The credit of 50 ms, one usercmd of 1/64 s in whole ms, and the tick's own 10 ms.
    let ran = rig.executed.iter().filter(|(.., how)| *how == Execution::Run).count();
    assert_eq!((ran, rig.executed.len(), rig.origin(SHOOTER).x), (7, 8, 7.0));
}

/// A client that claims as much time as it can gets the time of the session, one tick and one usercmd.
#[test]
fn a_client_carries_one_usercmd_beyond_its_credit() {
    let mut rig = ServerBench::new(&["server.command_credit_ms=0", "client.cmd_hz=50"]);
    let ms_run = |rig: &mut ServerBench| {
        let commands: Vec<Usercmd> =
            (0..200).map(|_| rig.command(SHOOTER, Micros::ZERO, Input { msec: 1, ..walk(100.0) })).collect();
        rig.send(SHOOTER, commands);
        rig.tick();
        rig.executed.drain(..).filter(|(.., how)| *how == Execution::Run).count()
    };
    // 20 ms for one usercmd, which may be 1 ms longer, and 10 ms for the tick.
    assert_eq!(ms_run(&mut rig), 31);
    assert_eq!([(); 50].map(|()| ms_run(&mut rig)), [10; 50]);
    // It saves up no more in five seconds without usercmds.
    (0..500).for_each(|_| rig.tick());
    assert_eq!(ms_run(&mut rig), 31);
}

/// The time of the tick itself is never cut to the credit, however long the tick or a hitch of the server was.
#[test]
fn a_client_in_step_with_the_server_is_never_refused() {
    for (hitch_ms, credit) in [(0, "server.command_credit_ms=0"), (1_500, "server.command_credit_ms=100")] {
        let mut rig = ServerBench::new(&[credit]);
        for n in 0..100 {
            // The client made usercmds while the server was busy.
            let hitch = if n == 50 { hitch_ms } else { 0 };
            rig.now += Micros::from_ms(hitch);
            let count = 1 + hitch / TICK_MS;
            let commands: Vec<Usercmd> = (0..count).map(|_| rig.command(SHOOTER, Micros::ZERO, walk(100.0))).collect();
            rig.send(SHOOTER, commands);
            rig.tick();
        }
        assert!(rig.executed.iter().all(|(.., how)| *how == Execution::Run), "{credit}");
    }
}

#[test]
fn the_time_credit_grows_with_real_time() {
    let mut rig = ServerBench::new(&["server.command_credit_ms=500"]);
    let ran = |rig: &mut ServerBench, count: u32| {
        let commands: Vec<Usercmd> = (0..count).map(|_| rig.command(SHOOTER, Micros::ZERO, walk(100.0))).collect();
        rig.send(SHOOTER, commands);
        rig.tick();
        rig.executed.drain(..).filter(|(.., how)| *how == Execution::Run).count()
    };
    // Half a second, one usercmd of 1/64 s, and the tick.
    assert_eq!(ran(&mut rig, 60), 52);
    // The machine was busy for 290 ms; with the tick's own time, that is 300 ms.
    rig.now += Micros::from_ms(290);
    assert_eq!(ran(&mut rig, 60), 30);
}

#[test]
fn a_rewind_to_the_oldest_sent_frame_is_not_limited() {
    let judged = |before: Micros| {
        let mut rig =
            ServerBench::new(&["lag_compensation.max_claim_error_ms=1500", "lag_compensation.max_unlag_ms=1500"]);
        for _ in 0..50 {
            rig.send_and_tick(TARGET, walk(500.0));
            rig.tick();
        }
        let (oldest, ..) = *rig.snapshots.iter().find(|(_, player, _)| *player == SHOOTER).expect("one was sent");
        let shot =
            Input { buttons: buttons::ATTACK, viewangles: Vec3::new(0.0, 90.0, 0.0), msec: 1, ..Input::default() };
        let command = rig.command(SHOOTER, oldest - before, shot);
        rig.send(SHOOTER, vec![command]);
        rig.tick();
        rig.judged.last().expect("the shot was judged").rewind.limit
    };
    assert_eq!([judged(Micros::ZERO), judged(Micros(1))], [RewindLimit::None, RewindLimit::Oldest]);
}

#[test]
fn a_scheduled_shot_is_judged_by_its_drawing_time() {
    let mut rig = ServerBench::new(&["server.schedule=tick", "lag_compensation.max_claim_error_ms=100"]);
    for _ in 0..50 {
        rig.tick();
    }
    let shot = Input { buttons: buttons::ATTACK, viewangles: Vec3::new(0.0, 90.0, 0.0), msec: 1, ..Input::default() };
    // A usercmd for the next tick, drawn behind a clock at the last snapshot's time by `interpolation.lerp_ms`.
    let server_time = rig.now + Micros::from_ms(TICK_MS);
    let (sent, ..) = *rig.snapshots.iter().rfind(|(_, player, _)| *player == SHOOTER).expect("one was sent");
    let lerp_msec = ((server_time - sent).0 / 1000 + 100) as u16;
    rig.send(SHOOTER, vec![Usercmd { seq: CommandSeq(1), lerp_msec, server_time, input: shot }]);
    rig.tick();
    let judged = rig.judged.last().expect("the shot was judged");
    assert_eq!((judged.rewind.limit, judged.rewind.by), (RewindLimit::None, Micros::from_ms(lerp_msec.into())));
}

#[test]
fn a_missing_usercmd_is_remembered_until_2048_newer_ones() {
    let late = |newer: u32| {
        let mut rig = ServerBench::new(&["server.on_lost_command=skip"]);
        for seq in [1, 3, 2 + newer] {
            rig.send_number(seq);
        }
        rig.tick();
        rig.executed.clear();
        rig.send_number(2);
        rig.tick();
        rig.executed
    };
    assert_eq!(late(2_048), [(SHOOTER, CommandSeq(2), Execution::Late)]);
    assert_eq!(late(2_049), []);
}

#[test]
fn a_player_joins_with_the_first_packet() {
    let mut rig = ServerBench::new(&[]);
    rig.tick();
    assert_eq!(rig.joined, []);
    for _ in 0..3 {
        rig.send_and_tick(TARGET, walk(1.0));
        rig.tick();
    }
    assert_eq!(rig.joined, [TARGET]);
}

#[test]
fn lost_usercmds_are_substituted_up_to_a_limit() {
    let stood_in = |lost: usize| {
        let mut rig = ServerBench::new(&[]);
        let commands: Vec<Usercmd> = (0..lost + 2).map(|_| rig.command(SHOOTER, Micros::ZERO, walk(100.0))).collect();
        rig.send(SHOOTER, vec![commands[0].clone()]);
        rig.send(SHOOTER, vec![commands[lost + 1].clone()]);
        rig.tick();
        rig.executed.iter().filter(|(.., how)| *how == Execution::StoodIn).count()
    };
    assert_eq!([stood_in(24), stood_in(25)], [24, 0]);
}

#[test]
fn a_rewind_of_exactly_the_maximum_is_not_limited() {
    let settings = ["lag_compensation.max_unlag_ms=200", "lag_compensation.max_claim_error_ms=1000"];
    // The server judges the shot in the tick after it was sent.
    let limit = |behind_ms| ServerBench::new(&settings).shoot_back(behind_ms).rewind.limit;
    assert_eq!([limit(200 - TICK_MS), limit(201 - TICK_MS)], [RewindLimit::None, RewindLimit::MaxUnlag]);
}

#[test]
fn missed_snapshots_are_not_sent_later() {
    let mut rig = ServerBench::new(&[]);
    (0..50).for_each(|_| rig.tick());
    // The machine was busy.
    rig.now += Micros::from_ms(500);
    let busy_until = rig.now;
    (0..50).for_each(|_| rig.tick());
    let times: Vec<Micros> = rig
        .snapshots
        .iter()
        .filter(|(at, player, _)| *player == SHOOTER && *at > busy_until)
        .map(|(at, ..)| *at)
        .collect();
    let gaps: Vec<i64> = times.windows(2).map(|pair| (pair[1] - pair[0]).0 / 1000).collect();
    assert!(gaps.len() > 5 && gaps.iter().all(|gap| (40..=50).contains(gap)), "{gaps:?}");
}

#[test]
fn delayed_updates_are_counted() {
    let mut rig = ServerBench::new(&["server.rate_bytes_per_s=500"]);
    for _ in 0..200 {
        rig.tick();
    }
    let of_shooter = rig.snapshots.iter().filter(|(_, player, _)| *player == SHOOTER);
    let choked: Vec<(i64, i64)> = of_shooter.map(|(at, _, snapshot)| (at.0 / 1000, snapshot.choked.into())).collect();
    // 90 bytes at 500 bytes/s take 180 ms. An update is due every 50 ms, and each is either sent or held back.
    assert!(choked.windows(2).all(|pair| pair[1].0 - pair[0].0 == 180), "{choked:?}");
    let due = (choked[choked.len() - 1].0 - choked[0].0) / 50;
    assert_eq!(choked[1..].iter().map(|(_, held_back)| 1 + held_back).sum::<i64>(), due, "{choked:?}");
}

#[test]
fn a_teleported_target_is_not_rewound() {
    let mut rig = ServerBench::new(&[]);
    for _ in 0..50 {
        rig.send_and_tick(TARGET, walk(100.0));
        rig.tick();
    }
    rig.send_and_tick(TARGET, Input { impulse: TELEPORT, ..walk(0.0) });
    rig.tick();
    let drawn_at = rig.now - Micros::from_ms(100);
    let shot = Input { buttons: buttons::ATTACK, msec: 1, ..Input::default() };
    let command = rig.command(SHOOTER, drawn_at, shot);
    rig.send(SHOOTER, vec![command]);
    rig.tick();
    let rewind = &rig.judged[0].rewind;
    assert_eq!(rewind.left_in_present, [TARGET.entity()]);
    assert!(rewind.targets[0].1.origin.x > 1000.0);
}

#[test]
fn claimed_durations_give_no_extra_time() {
    let mut rig = ServerBench::new(&["server.command_credit_ms=500"]);
    for _ in 0..300 {
        rig.send_and_tick(SHOOTER, Input { msec: 50, ..walk(100.0) });
        rig.tick();
    }
    // Three seconds at 100 units/s, and the credit of half a second.
    assert!(rig.origin(SHOOTER).x <= 350.0 + 5.0, "{}", rig.origin(SHOOTER));
    assert!(rig.origin(SHOOTER).x >= 300.0);
    assert!(rig.executed.iter().any(|(_, _, how)| *how == Execution::OverBudget));
}

/// Gaps in the numbers give no extra time, although the server substitutes each missing usercmd.
#[test]
fn skipped_numbers_give_no_extra_time() {
    let mut rig = ServerBench::new(&["server.command_credit_ms=500"]);
    for packet in 1..=300u32 {
        let seq = CommandSeq(packet * 20);
        let command = Usercmd { seq, server_time: rig.now, lerp_msec: 0, input: walk(100.0) };
        rig.send(SHOOTER, vec![command]);
        rig.tick();
    }
    assert!(rig.origin(SHOOTER).x <= 350.0 + 5.0, "{}", rig.origin(SHOOTER));
    assert!(rig.origin(SHOOTER).x >= 300.0);
    assert!(rig.executed.iter().any(|(_, _, how)| *how == Execution::StoodIn));
}

#[test]
fn repeated_usercmds_run_once_and_late_ones_never() {
    let mut rig = ServerBench::new(&["server.on_lost_command=skip"]);
    let commands: Vec<Usercmd> = (0..4).map(|_| rig.command(SHOOTER, Micros::ZERO, walk(100.0))).collect();
    rig.send(SHOOTER, commands[..2].to_vec());
    rig.send(SHOOTER, commands[..2].to_vec());
    rig.send(SHOOTER, vec![commands[3].clone()]);
    rig.send(SHOOTER, commands[1..3].to_vec());
    rig.tick();
    assert_eq!(rig.origin(SHOOTER).x, 3.0);
    let how: Vec<(u32, Execution)> = rig.executed.iter().map(|(_, seq, how)| (seq.0, *how)).collect();
    use Execution::{Late, Missing, Run};
    assert_eq!(how, [(1, Run), (2, Run), (3, Missing), (4, Run), (3, Late)]);
}

#[test]
fn lost_usercmds_are_substituted_by_the_last_one() {
    let mut rig = ServerBench::new(&[]);
    let commands: Vec<Usercmd> = (0..5).map(|_| rig.command(SHOOTER, Micros::ZERO, walk(100.0))).collect();
    rig.send(SHOOTER, vec![commands[0].clone()]);
    rig.send(SHOOTER, vec![commands[4].clone()]);
    rig.tick();
    assert_eq!(rig.origin(SHOOTER).x, 5.0);
    assert_eq!(rig.executed.iter().filter(|(_, _, how)| *how == Execution::StoodIn).count(), 3);
}

/// Each lost usercmd took its client at least a millisecond. A client has the time since the first tick, 64 ms at first.
#[test]
fn every_usercmd_that_a_client_had_time_for_has_an_outcome() {
    for schedule in ["arrival", "tick"] {
        let outcomes = |wait_s: i64, lost: u32| {
            let mut rig = ServerBench::new(&[&format!("server.schedule={schedule}")]);
            rig.tick();
            rig.send_number(1);
            rig.tick();
            rig.now += Micros::from_s(wait_s);
            rig.executed.clear();
            rig.send_number(lost + 2);
            rig.tick();
            rig.executed
        };
        // The waits, the time before them, and three ticks of 10 ms.
        for (wait_s, time_for) in [(0, 64 + 30), (60, 64 + 60_030), (3_600, 65_536)] {
            for lost in [time_for, time_for + 1, 1 << 20, u32::MAX - 2] {
                let outcomes = outcomes(wait_s, lost);
                let noted = lost.min(time_for);
                let expected = (lost + 2 - noted..lost + 2).map(|seq| (SHOOTER, CommandSeq(seq), Execution::Missing));
                let next = [(SHOOTER, CommandSeq(lost + 2), Execution::Run)];
                assert!(outcomes.into_iter().eq(expected.chain(next)), "{schedule}, {wait_s} s, {lost} lost");
            }
        }
    }
}

/// A client whose every packet jumps has no more outcomes than its time allows.
#[test]
fn jumps_of_numbers_cost_no_more_than_the_time_that_passes() {
    for schedule in ["arrival", "tick"] {
        for step in [1_000, 32_767, 1 << 22] {
            let mut rig = ServerBench::new(&[&format!("server.schedule={schedule}")]);
            for jump in 1..=500 {
                rig.send_number(step * jump);
                rig.tick();
            }
            let missing = rig.executed.iter().filter(|(.., how)| *how == Execution::Missing).count();
            assert_eq!(missing, 64 + 500 * TICK_MS as usize, "{schedule}, {step}");
        }
    }
}

#[test]
fn the_greatest_number_causes_no_panic() {
    let mut rig = ServerBench::new(&[]);
    for seq in [u32::MAX - 1, u32::MAX, u32::MAX] {
        let command = Usercmd { seq: CommandSeq(seq), server_time: rig.now, lerp_msec: 0, input: walk(100.0) };
        rig.send(SHOOTER, vec![command]);
        rig.tick();
    }
    assert_eq!(rig.executed.iter().filter(|(_, _, how)| *how == Execution::Run).count(), 2);
}

#[test]
fn any_claimed_time_is_handled() {
    for schedule in ["arrival", "tick"] {
        let mut rig = ServerBench::new(&[&format!("server.schedule={schedule}")]);
        let claims = [i64::MIN, i64::MIN + 1, -1, i64::MAX - 1, i64::MAX];
        for (number, claim) in (1..).zip(claims.repeat(40)) {
            let seq = CommandSeq(number);
            let input = Input { buttons: buttons::ATTACK, ..Input::default() };
            rig.send(SHOOTER, vec![Usercmd { seq, server_time: Micros(claim), lerp_msec: u16::MAX, input }]);
            rig.tick();
        }
        assert!(rig.snapshots.iter().any(|(_, player, _)| *player == SHOOTER));
    }
}

#[test]
fn updates_come_at_the_requested_frequency_within_the_rate() {
    let gaps = |settings: &[&str]| {
        let mut rig = ServerBench::new(settings);
        for _ in 0..200 {
            rig.tick();
        }
        let times: Vec<i64> =
            rig.snapshots.iter().filter(|(_, p, _)| *p == SHOOTER).map(|(at, ..)| at.0 / 1000).collect();
        let choked: u32 = rig.snapshots.iter().map(|(.., s)| u32::from(s.choked)).sum();
        (times.windows(2).map(|w| w[1] - w[0]).collect::<Vec<_>>(), choked)
    };
    let (regular, choked) = gaps(&[]);
    assert!(regular.iter().all(|gap| *gap == 50), "{regular:?}");
    assert_eq!(choked, 0);
    // 90 bytes a snapshot at 1500 bytes/s take 60 ms: a packet waits for the line, not for the next regular time.
    let (spaced, choked) = gaps(&["server.rate_bytes_per_s=1500"]);
    assert!(spaced.iter().all(|gap| *gap == 60), "{spaced:?}");
    assert!(choked > 0);
}
