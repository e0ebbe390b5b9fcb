//! A client that continues from the saved state of another behaves like it, at any moment. It refuses states that no
//! client saves.

use std::collections::VecDeque;
use std::sync::Arc;

use hitreg::client::Client;
use hitreg::game::Effect;
use hitreg::history::Frame;
use hitreg::pipeline::{ClientPipeline, Setup};
use hitreg::state::{SharedValues, StateReader, StateValue, StateWriter};
use hitreg::units::{CommandSeq, Micros, PlayerId, SnapshotSeq};
use hitreg::usercmd::{Input, Usercmd, buttons};

use crate::client::ClientBench;
use crate::disc::{Disc, DiscRules, Discs};

fn save_client(client: &Client<Discs>) -> Vec<u8> {
    let mut to = StateWriter::new(SharedValues::default());
    assert!(client.save(&mut to), "it does not adapt to its line");
    to.into_bytes()
}

fn restore(client: &mut Client<Discs>, bytes: &[u8], known: SharedValues) -> Result<(), String> {
    let restored = StateReader::new(bytes, known).and_then(|mut from| {
        client.restore(&mut from)?;
        from.end()
    });
    restored.map_err(|error| error.to_string())
}

/// Runs one frame of a session with all kinds of events. Returns the result.
fn run_frame(desk: &mut ClientBench, frame: u32) -> String {
    let at_ms = i64::from(frame) * 16;
    let mut came_of_it = String::new();
    // Usercmds are acked after five frames, except for some seconds without acks. Once, an obstacle stops the own disc.
    if frame.is_multiple_of(3) && !(200..800).contains(&frame) {
        let held_up = if (40..60).contains(&frame) { 7.0 } else { 0.0 };
        desk.refire_ms = if frame == 90 { 150 } else { 0 };
        let (ack, other) = (frame.saturating_sub(5), 500.0 - frame as f32);
        let outcome = desk.snapshot(at_ms, ack, ack as f32 * 1.6 - held_up, other);
        came_of_it += &format!("{outcome:?}");
    }
    let fires = if frame % 40 > 30 { buttons::ATTACK } else { 0 };
    let input = Input { forwardmove: 100.0, msec: 16, buttons: fires, ..Input::default() };
    let ran = desk.act(at_ms, input);
    let client = &desk.client;
    came_of_it + &format!("{ran} {:?} {:?} {:?}", client.predicted(), client.drawn(), client.drawn_at())
}

#[test]
fn a_restored_client_continues_as_the_saved_one() {
    let modes = [
        vec![],
        vec!["client.clock=adopt", "client.redundancy=4"],
        vec!["client.clock=drift", "interpolation.mode=last-rendered"],
        vec!["interpolation.mode=category", "prediction.push_latency_ms=-2000"],
        vec!["client.lead_ms=100", "server.schedule=tick"],
    ];
    for (mode, drawn_in_the_way) in modes.iter().flat_map(|mode| [(mode, false), (mode, true)]) {
        let desk = || ClientBench::new(DiscRules { drawn_in_the_way, ..DiscRules::default() }, mode);
        let mut whole = desk();
        let mut others: Vec<(u32, ClientBench)> = Vec::new();
        for frame in 1..1_000 {
            if [1, 2, 7, 44, 58, 91, 112, 230, 700, 799, 900].contains(&frame) {
                let mut other = desk();
                let bytes = save_client(&whole.client);
                restore(&mut other.client, &bytes, SharedValues::default()).expect("its own state");
                assert!(save_client(&other.client) == bytes, "{mode:?}, frame {frame}: it has become another");
                other.snapshots = whole.snapshots;
                others.push((frame, other));
            }
            let came_of_it = run_frame(&mut whole, frame);
            for (from, other) in &mut others {
                assert_eq!(run_frame(other, frame), came_of_it, "{mode:?}, from {from} on, frame {frame}");
            }
        }
    }
}

fn command(seq: u32) -> Usercmd {
    Usercmd { seq: CommandSeq(seq), lerp_msec: 0, server_time: Micros::ZERO, input: Input::default() }
}

/// The usercmds that the tests below refer to.
fn commands() -> SharedValues {
    let mut known = SharedValues::default();
    (1..=2_100).for_each(|seq| known.add(&command(seq)));
    known
}

/// Returns a state without new shared values.
fn state(put: impl FnOnce(&mut StateWriter)) -> Vec<u8> {
    let mut to = StateWriter::new(commands());
    put(&mut to);
    let bytes = to.into_bytes();
    assert_eq!(bytes[0], 0, "it has shared values");
    bytes[1..].to_vec()
}

/// The window of a new client, except for these values.
fn window(recent: impl IntoIterator<Item = u32>, valid: usize, waiting: u32) -> Vec<u8> {
    state(|to| {
        (None::<Disc>, CommandSeq(0), CommandSeq(0)).put(to);
        (None::<Arc<Frame<Disc>>>, (0u32, 0u32)).put(to);
        None::<Usercmd>.put(to);
        // Each entry has no body, no collisions and no effects.
        let entries = (1..=waiting).map(|seq| ((command(seq), None::<Disc>), (Vec::<u8>::new(), Vec::<u8>::new())));
        entries.collect::<Vec<_>>().put(to);
        (CommandSeq(0), valid, CommandSeq(0)).put(to);
        (0u32, Vec::<(CommandSeq, Effect)>::new(), Vec::<Effect>::new()).put(to);
        recent.into_iter().map(|seq| (command(seq), Micros::ZERO)).collect::<VecDeque<_>>().put(to);
    })
}

#[test]
fn an_invalid_window_is_refused() {
    let new = || {
        let setup =
            Setup { rules: Arc::new(DiscRules::default()), settings: Arc::default(), seed: hitreg::units::Seed(1) };
        Client::<Discs>::new(setup, PlayerId(0))
    };
    // The clocks, the history and the newest snapshot come before the window.
    let before = state(|to| {
        (None::<Micros>, None::<Micros>).put(to);
        (None::<u8>, Micros::ZERO, Micros::ZERO).put(to);
        (Vec::<u8>::new(), SnapshotSeq(0)).put(to);
    });
    let before = [&[0], &before[..]].concat();
    let bytes = save_client(&new());
    let after = bytes.strip_prefix(&before[..]).and_then(|bytes| bytes.strip_prefix(&window([], 0, 0)[..]));
    let after = after.expect("a new client's window follows its newest snapshot");
    let is_taken = |window: Vec<u8>| restore(&mut new(), &[&before, &window, after].concat(), commands()).is_ok();
    assert!(is_taken(window([], 0, 0)) && is_taken(window([7, 8, 9], 0, 0)));
    assert!(!is_taken(window([7, 9], 0, 0)), "one is left out");
    // A client keeps at most 2,048 usercmds.
    assert!(is_taken(window(1..=2_048, 0, 0)) && !is_taken(window(1..=2_049, 0, 0)));
    assert!(is_taken(window([], 1, 1)) && is_taken(window([], 0, 2_048)));
    assert!(!is_taken(window([], 1, 0)) && !is_taken(window([], 0, 2_049)));
}
