//! Scheduling on the tick, through both pipelines in virtual time. Usercmds wait for their tick, and late ones never
//! run. Clients adjust their clocks so that almost none is late.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::built_in::{record, replay};
use hitreg::arena::{Arena, ArenaRules, record_synthetic};
use hitreg::game::Game;
use hitreg::link::{Jitter, LinkModel, Loss};
use hitreg::log::{self, read_session, write_session};
use hitreg::packet::ClientPacket;
use hitreg::pipeline::{ClientFrameOutput, ServerPipeline, Setup, TickEvent};
use hitreg::record::{Execution, OutOfSequence};
use hitreg::replay::{ReplayMode, ReplayOptions};
use hitreg::server::Server;
use hitreg::session::scenario::Scenario;
use hitreg::session::{Observer, SessionEvent};
use hitreg::settings::Settings;
use hitreg::trace::ColumnData;
use hitreg::units::{CommandSeq, Hz, Micros, PlayerId, Seed, SnapshotSeq, Tick};
use hitreg::usercmd::{Input, Usercmd};

/// Usercmds with their time differences.
type Warned = Vec<(u32, i16)>;

const TICK: Micros = Micros::from_ms(32);

/// The fate of every usercmd, and the times of the server's warnings.
#[derive(Default)]
struct UsercmdFates {
    made: BTreeMap<(PlayerId, CommandSeq), (Micros, Micros)>,
    /// How each usercmd was executed, with its tick.
    executed: BTreeMap<(PlayerId, CommandSeq), (Execution, Tick)>,
    helpers: Vec<(Micros, i16)>,
    warnings: Vec<(Micros, OutOfSequence)>,
}

impl<G: Game> Observer<G> for UsercmdFates {
    fn event(&mut self, at: Micros, event: &SessionEvent<'_, G>) {
        match *event {
            SessionEvent::Frame { player, output: ClientFrameOutput { command, .. }, .. } => {
                self.made.insert((player, command.seq), (at, command.server_time));
            }
            SessionEvent::Server { tick, event: TickEvent::Executed { player, command, how } } => {
                self.executed.insert((*player, *command), (*how, tick));
            }
            SessionEvent::SnapshotSent { snapshot, .. } => {
                self.helpers.extend(snapshot.helper_ms.map(|helper| (at, helper)));
                self.warnings.extend(snapshot.warnings.iter().map(|warning| (at, *warning)));
            }
            _ => {}
        }
    }
}

fn play(link: LinkModel, seed: u64, settings: &[(&str, &str)]) -> UsercmdFates {
    play_for(60.0, link, seed, settings)
}

fn play_for(seconds: f64, link: LinkModel, seed: u64, settings: &[(&str, &str)]) -> UsercmdFates {
    let scenario = Scenario {
        preset: "nereids".to_owned(),
        players: 4,
        seconds,
        seed,
        settings: settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect(),
        link,
        ..Scenario::default()
    };
    let mut fates = UsercmdFates::default();
    record_synthetic(&scenario, &Arc::new(ArenaRules::default()), &mut fates).expect("a good scenario");
    fates
}

/// The time that clients need to adjust their clocks.
const CLOCKS_ADJUSTED_AT: Micros = Micros::from_s(6);

#[test]
fn input_waits_for_its_tick_and_almost_none_is_late() {
    let rough =
        LinkModel { delay_ms: 60.0, jitter: Jitter::Uniform(50.0), loss: Loss::Random(0.05), ..LinkModel::default() };
    for (link, may_miss) in [(LinkModel { delay_ms: 40.0, ..LinkModel::default() }, 0.0), (rough, 0.002)] {
        let fates = play(link, 7, &[]);
        let (mut ran, mut missed) = (0, 0);
        for (key, (at, stamp)) in &fates.made {
            let Some((how, tick)) = fates.executed.get(key).filter(|_| *at > CLOCKS_ADJUSTED_AT) else { continue };
            match how {
                Execution::Run => {
                    ran += 1;
                    let tick_at = Micros(i64::from(tick.0) * TICK.0);
                    let waited = tick_at - *stamp;
                    assert!((Micros::ZERO..TICK).contains(&waited), "{key:?} ran {waited} after its time");
                }
                _ => missed += 1,
            }
        }
        assert!(ran > 6_000, "{ran} ran");
        assert!(f64::from(missed) <= may_miss * f64::from(ran), "{missed} of {ran} missed");
        let late = fates.helpers.iter().filter(|(at, _)| *at > CLOCKS_ADJUSTED_AT);
        let off: Vec<i16> = late.map(|(_, helper)| (*helper - 146).abs()).collect();
        let far = off.iter().filter(|off| **off > 20).count();
        assert!(off.len() > 6_000 && far * 100 < off.len(), "{far} of {} helpers are far from the lead", off.len());
    }
}

#[test]
fn input_without_a_lead_is_late_and_the_server_warns() {
    let link = LinkModel { delay_ms: 40.0, jitter: Jitter::Uniform(30.0), ..LinkModel::default() };
    let fates = play(link, 7, &[("client.lead_ms", "0"), ("client.redundancy", "1")]);
    let late = fates.executed.values().filter(|(how, _)| *how == Execution::Late).count();
    assert!(late > 500, "{late} late");
    assert!(fates.warnings.iter().all(|(_, warning)| warning.difference < 0));
    assert!(fates.warnings.len() > 500, "{} warnings", fates.warnings.len());
}

/// From the first snapshot on, a client's clock never runs far ahead, whatever the round trip is: no usercmds pile up in
/// one tick.
#[test]
fn a_clock_does_not_overshoot_when_it_begins() {
    let delays = [10.0, 20.0, 50.0, 150.0, 250.0, 350.0, 450.0];
    let rates = [("31.25", "31.25"), ("64", "64"), ("128", "128"), ("128", "20"), ("64", "300")];
    for ((tick_hz, cmd_hz), delay_ms) in rates.into_iter().flat_map(|rates| delays.map(|delay| (rates, delay))) {
        for lead_ms in ["146", "1000"] {
            let settings = [
                ("server.tick_hz", tick_hz),
                ("server.update_hz", tick_hz),
                ("client.cmd_hz", cmd_hz),
                ("client.lead_ms", lead_ms),
            ];
            let what = format!("{tick_hz} Hz, {cmd_hz} usercmds/s, {delay_ms} ms, lead {lead_ms} ms");
            let fates = play_for(8.0, LinkModel { delay_ms, ..LinkModel::default() }, 7, &settings);
            let needed = lead_ms.parse::<f64>().expect("a number") + delay_ms;
            let ahead = |(at, stamp): &(Micros, Micros)| (*stamp - *at).as_ms_f64();
            let most = fates.made.values().map(ahead).fold(f64::MIN, f64::max);
            assert!(most <= needed + 50.0, "{what}: {most} ms ahead, {needed} ms needed");
            let settled = fates.made.values().filter(|(at, _)| *at > CLOCKS_ADJUSTED_AT).map(ahead);
            let least = settled.fold(f64::MAX, f64::min);
            assert!(least >= needed - 15.0, "{what}: {least} ms ahead, {needed} ms needed");
            let mut ran = BTreeMap::<(PlayerId, Tick), u32>::new();
            for ((player, command), (how, tick)) in &fates.executed {
                match how {
                    Execution::Run => *ran.entry((*player, *tick)).or_default() += 1,
                    Execution::Late => {}
                    _ => panic!("{what}: {command} of {player} was {how:?}"),
                }
            }
            let [cmd_us, tick_us] = [cmd_hz, tick_hz].map(|hz| hz.parse::<Hz>().expect("a rate").interval().0);
            let piled = ran.values().max().copied().map(i64::from);
            assert!(piled <= Some((tick_us / cmd_us).max(1) + 2), "{what}: {piled:?} ran in one tick");
        }
    }
}

/// A usercmd may be longer than a tick: a client without delay saves up for it, also without a credit.
#[test]
fn a_perfect_link_needs_no_credit() {
    let rates =
        [("64", "64"), ("66.667", "33"), ("100", "64"), ("128", "10"), ("31.25", "20"), ("10", "64"), ("64", "300")];
    for (tick_hz, cmd_hz) in rates {
        let settings = [
            ("server.command_credit_ms", "0"),
            ("server.schedule", "arrival"),
            ("server.tick_hz", tick_hz),
            ("client.cmd_hz", cmd_hz),
        ];
        let fates = play_for(15.0, LinkModel { delay_ms: 50.0, ..LinkModel::default() }, 1, &settings);
        let of = |how| fates.executed.values().filter(|(done, _)| *done == how).count();
        let (ran, refused) = (of(Execution::Run), of(Execution::OverBudget));
        assert!(ran > 100 && refused == 0, "{settings:?}: {ran} ran, {refused} refused");
    }
}

/// A client's usercmds need the time of their tick, however its clock follows the server's for drawing.
#[test]
fn usercmds_carry_the_time_of_their_tick_in_every_clock_mode() {
    let link = LinkModel { delay_ms: 60.0, ..LinkModel::default() };
    for clock in ["adopt", "drift"] {
        let share = share_run(&play(link.clone(), 7, &[("client.clock", clock)]));
        assert!(share == 1.0, "{clock}: {share} of the usercmds ran");
    }
}

/// A server with two clients. Only the first one sends.
struct ServerBench {
    server: Server<Arena>,
    now: Micros,
    tick: Micros,
    packets: u32,
}

impl ServerBench {
    fn new() -> ServerBench {
        ServerBench::with(&[])
    }

    fn with(changes: &[(&str, &str)]) -> ServerBench {
        let rules = Arc::new(ArenaRules::default());
        let mut settings = Settings::preset("nereids").expect("a preset");
        changes.iter().for_each(|(key, value)| settings.set(key, value).expect("a setting"));
        let tick = settings.server.tick_hz.interval();
        let settings = Arc::new(settings);
        let mut desk = ServerBench {
            server: Server::new(Setup { rules, settings, seed: Seed(1) }, 2),
            now: Micros::ZERO,
            tick,
            packets: 0,
        };
        for _ in 0..100 {
            desk.tick();
        }
        desk
    }

    /// Sends a packet that arrives now. Each usercmd is for a tick this far after the next.
    fn send(&mut self, commands: &[(u32, i64)]) {
        self.packets += 1;
        let commands = commands.iter().map(|(seq, ahead)| Usercmd {
            seq: CommandSeq(*seq),
            lerp_msec: 0,
            server_time: self.now + Micros((ahead + 1) * self.tick.0),
            input: Input { msec: (self.tick.0 / 1000) as u8, forwardmove: 400.0, ..Input::default() },
        });
        let packet = ClientPacket { number: self.packets, ack: SnapshotSeq(0), commands: commands.collect() };
        self.server.handle_packet(self.now, PlayerId(0), packet);
    }

    /// Runs a tick. Returns the executed usercmds, and the warnings that the server sends with it.
    fn tick(&mut self) -> (Vec<(u32, Execution)>, Warned) {
        self.now += self.tick;
        self.server.tick(self.now);
        let mut executed = Vec::new();
        while let Some(event) = self.server.poll_event() {
            if let TickEvent::Executed { command, how, .. } = event {
                executed.push((command.0, how));
            }
        }
        let mut warnings = Vec::new();
        while let Some((player, snapshot)) = self.server.poll_snapshot() {
            self.server.handle_sent(player, Arc::clone(&snapshot.frame), None);
            if player == PlayerId(0) {
                warnings.extend(snapshot.warnings.iter().map(|w| (w.command.0, w.difference)));
            }
        }
        (executed, warnings)
    }
}

#[test]
fn three_packets_lost_in_a_row_lose_no_input_and_four_do() {
    let mut desk = ServerBench::new();
    // Each packet has the newest usercmd, for three ticks ahead, and the three before it.
    let packet = |newest: u32| (0..4).rev().map(|back| (newest - back as u32, 3 - back)).collect::<Vec<_>>();
    let mut done = BTreeMap::new();
    for newest in 4..40 {
        let lost = (10..13).contains(&newest) || (20..24).contains(&newest);
        if !lost {
            desk.send(&packet(newest));
        }
        done.extend(desk.tick().0);
    }
    let missing: Vec<u32> = done.iter().filter(|(_, how)| **how != Execution::Run).map(|(seq, _)| *seq).collect();
    assert_eq!(missing, [20]);
}

#[test]
fn a_usercmd_for_a_past_tick_never_runs() {
    let mut desk = ServerBench::new();
    desk.send(&[(1, -1)]);
    assert_eq!(desk.tick(), (vec![(1, Execution::Late)], vec![(1, -1)]));
    desk.send(&[(2, -5), (3, 0)]);
    assert_eq!(desk.tick(), (vec![(2, Execution::Late), (3, Execution::Run)], vec![]));
    // A repeated late usercmd is neither executed nor reported again.
    desk.send(&[(2, -6), (3, -1)]);
    assert_eq!(desk.tick(), (vec![], vec![]));
}

#[test]
fn a_usercmd_too_far_ahead_is_accepted_later() {
    let mut desk = ServerBench::new();
    desk.send(&[(1, 33)]);
    assert_eq!(desk.tick(), (vec![], vec![(1, 33)]));
    desk.send(&[(1, 32)]);
    for _ in 0..32 {
        assert_eq!(desk.tick(), (vec![], vec![]));
    }
    assert_eq!(desk.tick(), (vec![(1, Execution::Run)], vec![]));
}

#[test]
fn an_attacker_cannot_grow_the_servers_memory() {
    let mut desk = ServerBench::new();
    for seq in 1..=5_000 {
        desk.send(&[(seq, 20)]);
    }
    let mut done = Vec::new();
    let mut warnings = 0;
    for _ in 0..30 {
        let (executed, warned) = desk.tick();
        done.extend(executed);
        warnings += warned.len();
    }
    assert!((1..=128).contains(&done.len()), "{} were kept", done.len());
    assert_eq!(warnings, 0);
    desk.send(&[(6_000, -1), (5_999, 5), (5_998, -3)]);
    desk.tick();
}

#[test]
fn input_of_a_second_ahead_is_accepted_at_every_tick_rate() {
    // NeREIDS's 32 ticks of 32 ms, in ticks of each rate.
    for (rate, most) in [("31.25", 32), ("64", 66), ("128", 132), ("256", 263), ("300", 308), ("1000", 1024)] {
        let rates = ["server.tick_hz", "server.update_hz", "client.cmd_hz"].map(|key| (key, rate));
        let mut desk = ServerBench::with(&rates);
        let difference = most as i16 + 1;
        desk.send(&[(1, most + 1)]);
        assert_eq!(desk.tick(), (vec![], vec![(1, difference)]), "{rate} Hz");
        // Each tick's usercmd arrives as early as it may, so all these ticks of input wait at the same time.
        for seq in 1..=most as u32 {
            desk.send(&[(seq, most)]);
            assert_eq!(desk.tick(), (vec![], vec![]), "{rate} Hz, usercmd {seq}");
        }
        for seq in 1..=most as u32 {
            assert_eq!(desk.tick(), (vec![(seq, Execution::Run)], vec![]), "{rate} Hz, usercmd {seq}");
        }
    }
}

/// Returns the share of the usercmds that ran, of those made after the clocks settled.
fn share_run(fates: &UsercmdFates) -> f64 {
    let ran = |key| fates.executed.get(key).is_some_and(|(how, _)| *how == Execution::Run);
    // The last second of input has no tick in the session.
    let made = fates.made.iter().filter(|(_, (at, _))| (CLOCKS_ADJUSTED_AT..Micros::from_s(58)).contains(at));
    let (ran, all) = made.fold((0, 0), |(run, all), (key, _)| (run + u32::from(ran(key)), all + 1));
    assert!(all > 5_000, "{all} made");
    f64::from(ran) / f64::from(all)
}

#[test]
fn the_server_accepts_every_lead_that_clients_steer_to() {
    let link = LinkModel { delay_ms: 60.0, ..LinkModel::default() };
    for (tick_hz, cmd_hz, lead_ms) in
        [("300", "300", "146"), ("64", "64", "600"), ("31.25", "31.25", "1000"), ("64", "1000", "146")]
    {
        let rates = [("server.tick_hz", tick_hz), ("client.cmd_hz", cmd_hz), ("client.lead_ms", lead_ms)];
        let fates = play(link.clone(), 7, &rates);
        let share = share_run(&fates);
        assert!(share == 1.0, "{rates:?}: {share} of the usercmds ran");
        let warned = fates.warnings.iter().filter(|(at, _)| *at > CLOCKS_ADJUSTED_AT).count();
        assert_eq!(warned, 0, "{rates:?}");
    }
}

#[test]
fn a_log_has_the_timing_sent_to_clients() {
    let scenario = Scenario { preset: "nereids".to_owned(), players: 2, seconds: 4.0, ..Scenario::default() };
    let session = record(&scenario, ArenaRules::default());
    let bytes = write_session(Vec::new(), &session, log::WriterOptions::whole()).expect("memory");
    let read = read_session(&bytes[..]).expect("a sound log");
    assert!(read == session);
    let timings = || read.players.iter().flat_map(|player| &player.snapshots).filter_map(|s| s.timing.as_ref());
    assert!(timings().any(|t| t.helper_ms.is_some()) && timings().any(|t| !t.warnings.is_empty()));
    // So an open-loop client adjusts its clock as it did in the session.
    let stamps = |mode| {
        let options = ReplayOptions { mode, ..ReplayOptions::default() };
        let replayed = replay(&read, &options).expect("a log of this build");
        let column = replayed.trace.table("frames").and_then(|frames| frames.column("server_time_us"));
        let Some(ColumnData::I64(stamps)) = column.map(|column| &column.data) else { panic!("no stamps") };
        let mut stamps = stamps.clone();
        // One driver reports by player, the other by time.
        stamps.sort_unstable();
        stamps
    };
    assert_eq!(stamps(ReplayMode::Open), stamps(ReplayMode::Closed));
}
