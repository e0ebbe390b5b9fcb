//! A client that goes on from what another wrote down: as that one does, whatever it was in the middle of; and not from what no
//! client has written.

use std::collections::VecDeque;
use std::sync::Arc;

use hitreg::client::Client;
use hitreg::game::Effect;
use hitreg::history::Frame;
use hitreg::pipeline::{ClientPipeline, Setup};
use hitreg::state::{KnownFrames, Restorer, StateValue, StateWriter};
use hitreg::units::{CommandSeq, Micros, PlayerId};
use hitreg::usercmd::{Input, Usercmd, buttons};

use crate::client::ClientBench;
use crate::disc::{Disc, DiscRules, Discs};

fn saved(client: &Client<Discs>) -> Vec<u8> {
    let mut to = StateWriter::new(None);
    assert!(client.save(&mut to), "it does not adapt to its line");
    to.into_bytes()
}

fn restore(client: &mut Client<Discs>, bytes: &[u8]) -> Result<(), String> {
    let known = KnownFrames::default();
    let mut from = Restorer::new(bytes, &known);
    client.restore(&mut from).and_then(|()| from.end()).map_err(|error| error.to_string())
}

/// A frame of a session in which something of everything happens, and what came of it.
fn goes_through(desk: &mut ClientBench, frame: u32) -> String {
    let at_ms = i64::from(frame) * 16;
    let mut came_of_it = String::new();
    // Usercmds are acked after five frames. For some seconds nothing is; once the own disc is held up by something.
    if frame.is_multiple_of(3) && !(200..800).contains(&frame) {
        let held_up = if (40..60).contains(&frame) { 7.0 } else { 0.0 };
        desk.refire_ms = if frame == 90 { 150 } else { 0 };
        let (ack, other) = (frame.saturating_sub(5), 500.0 - frame as f32);
        let told = desk.told(at_ms, ack, ack as f32 * 1.6 - held_up, other);
        came_of_it += &format!("{told:?}");
    }
    let fires = if frame % 40 > 30 { buttons::ATTACK } else { 0 };
    let input = Input { forwardmove: 100.0, msec: 16, buttons: fires, ..Input::default() };
    let ran = desk.acts(at_ms, input);
    let client = &desk.client;
    came_of_it + &format!("{ran} {:?} {:?} {:?}", client.predicted(), client.drawn(), client.drawn_at())
}

#[test]
fn a_restored_client_goes_on_as_the_one_that_was_saved() {
    let modes = [
        vec![],
        vec!["client.clock=adopt", "client.redundancy=4"],
        vec!["client.clock=drift", "interpolation.mode=last-rendered"],
        vec!["interpolation.mode=category", "prediction.push_latency_ms=-2000"],
        vec!["client.clock=calibrated", "client.lead_ms=100", "server.schedule=tick"],
    ];
    for (mode, drawn_in_the_way) in modes.iter().flat_map(|mode| [(mode, false), (mode, true)]) {
        let desk = || ClientBench::new(DiscRules { drawn_in_the_way, ..DiscRules::default() }, mode);
        let mut whole = desk();
        let mut others: Vec<(u32, ClientBench)> = Vec::new();
        for frame in 1..1_000 {
            if [1, 2, 7, 44, 58, 91, 112, 230, 700, 799, 900].contains(&frame) {
                let mut other = desk();
                let bytes = saved(&whole.client);
                restore(&mut other.client, &bytes).expect("its own state");
                assert!(saved(&other.client) == bytes, "{mode:?}, frame {frame}: it has become another");
                other.snapshots = whole.snapshots;
                others.push((frame, other));
            }
            let came_of_it = goes_through(&mut whole, frame);
            for (from, other) in &mut others {
                assert_eq!(goes_through(other, frame), came_of_it, "{mode:?}, from {from} on, frame {frame}");
            }
        }
    }
}

/// The window of a new client, but for what is said here.
fn window(forgotten: u64, seqs: impl IntoIterator<Item = u32>, valid: usize, waiting: u32) -> Vec<u8> {
    let mut to = StateWriter::<Disc>::new(None);
    let command =
        |seq| Usercmd { seq: CommandSeq(seq), lerp_msec: 0, server_time: Micros::ZERO, input: Input::default() };
    forgotten.put(&mut to);
    seqs.into_iter().map(|seq| (command(seq), Micros::ZERO)).collect::<VecDeque<_>>().put(&mut to);
    (None::<Arc<Frame<Disc>>>, None::<Disc>, (0u32, 0u32)).put(&mut to);
    (None::<Usercmd>, CommandSeq(0)).put(&mut to);
    (valid, CommandSeq(0), 0u32).put(&mut to);
    Vec::<(CommandSeq, Effect)>::new().put(&mut to);
    // Each with no body, nothing that it met and no effects.
    let entries = (1..=waiting).map(|seq| ((command(seq), None::<Disc>), (Vec::<u8>::new(), Vec::<u8>::new())));
    entries.collect::<Vec<_>>().put(&mut to);
    to.into_bytes()
}

#[test]
fn a_window_that_no_client_has_is_refused() {
    let new = || {
        let setup =
            Setup { rules: Arc::new(DiscRules::default()), settings: Arc::default(), seed: hitreg::units::Seed(1) };
        Client::<Discs>::new(setup, PlayerId(0))
    };
    let bytes = saved(&new());
    // After the window comes its redundancy, of which there is nothing: it does not adapt.
    let mut after = StateWriter::<Disc>::new(None);
    (None::<u32>, VecDeque::<(u32, Micros)>::new(), None::<(u32, u16)>).put(&mut after);
    let after = after.into_bytes();
    let before = bytes.strip_suffix(&*after).and_then(|bytes| bytes.strip_suffix(&*window(0, [], 0, 0)));
    let before = before.expect("a new client's window comes before its redundancy");
    let is_taken = |window: Vec<u8>| restore(&mut new(), &[before, &window, &after].concat()).is_ok();
    assert!(is_taken(window(0, [], 0, 0)) && is_taken(window(0, [7, 8, 9], 0, 0)));
    assert!(!is_taken(window(0, [7, 9], 0, 0)), "one is left out");
    // No client remembers more than 512.
    assert!(is_taken(window(509, [600, 601, 602], 0, 0)) && is_taken(window(0, 1..=512, 0, 0)));
    assert!(!is_taken(window(510, [600, 601, 602], 0, 0)) && !is_taken(window(1, 1..=512, 0, 0)));
    assert!(is_taken(window(0, [], 1, 1)) && is_taken(window(0, [], 0, 512)));
    assert!(!is_taken(window(0, [], 1, 0)) && !is_taken(window(0, [], 0, 513)));
}
