//! The cost of recording for the calling thread: `cargo bench -p hitreg-benches --bench recorder`.
//!
//! One thread and four threads push the usercmds of sixteen players, in bursts with pauses, like an engine's frames.
//! Only the calls are measured. Each figure is the median of the bursts; the limit is 100 ns.

use std::hint::black_box;
use std::time::{Duration, Instant};

use hitreg::recorder::{Description, Recorder, RecorderOptions, Stream};
use hitreg::units::{CommandSeq, Micros, PlayerId};
use hitreg::usercmd::{Input, Usercmd};

const PLAYERS: u16 = 16;
const BURSTS: u32 = 500;
/// Usercmds of each player in a burst.
const IN_A_BURST: u32 = 8;
const PAUSE: Duration = Duration::from_millis(4);
const PUSH_NS_MAX: f64 = 100.0;

fn main() {
    let mut worst = 0f64;
    for threads in [1, 4] {
        let (median, p99) = measure(threads);
        println!(
            "{PLAYERS} players from {threads} thread(s): {median:.1} ns a usercmd (median burst), {p99:.1} (99 %)"
        );
        worst = worst.max(median);
    }
    println!("bar: {PUSH_NS_MAX} ns, {}", if worst < PUSH_NS_MAX { "reached" } else { "MISSED" });
}

/// The median and the 99th percentile of a burst, in ns a usercmd.
fn measure(threads: u16) -> (f64, f64) {
    let about = (0..PLAYERS).fold(Description::new("bench"), |about, player| about.player(format!("p{player}")));
    let recorder = Recorder::to(std::io::sink(), about, RecorderOptions::default()).expect("a sink takes everything");
    let each = PLAYERS / threads;
    let mut bursts: Vec<f64> = std::thread::scope(|scope| {
        let run = |thread| {
            let stream = recorder.stream();
            scope.spawn(move || bursts(stream, thread * each..(thread + 1) * each))
        };
        let running: Vec<_> = (0..threads).map(run).collect();
        running.into_iter().flat_map(|thread| thread.join().expect("it pushes")).collect()
    });
    let written = recorder.finish().expect("a sink takes everything");
    let expected = u64::from(BURSTS * IN_A_BURST) * u64::from(PLAYERS);
    assert_eq!((written.records, written.lost_records), (expected, 0), "figures of lost records mean nothing");
    bursts.sort_unstable_by(f64::total_cmp);
    (bursts[bursts.len() / 2], bursts[bursts.len() * 99 / 100])
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures time")]
fn bursts(mut stream: Stream, players: std::ops::Range<u16>) -> Vec<f64> {
    let began = Instant::now();
    let one = |burst: u32| {
        let at = Micros(began.elapsed().as_micros() as i64);
        let timed = Instant::now();
        for command in 1..=IN_A_BURST {
            for player in players.clone() {
                let input = Input { msec: 8, forwardmove: 320.0, buttons: command as u16, ..Input::default() };
                let seq = CommandSeq(burst * IN_A_BURST + command);
                let command = Usercmd { seq, server_time: at, input, ..Usercmd::default() };
                black_box(stream.usercmd(PlayerId(player), at, black_box(command))).expect("there is room");
            }
        }
        let took = timed.elapsed().as_nanos() as f64 / f64::from(IN_A_BURST * players.len() as u32);
        std::thread::sleep(PAUSE);
        took
    };
    (0..BURSTS).map(one).collect()
}
