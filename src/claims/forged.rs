//! A session in which player 0's packets are forged on their way: its usercmds claim to be older than they are.
//!
//! The same server and clients as everywhere, on links of constant delay, driven by the millisecond.

use std::collections::VecDeque;

use super::ClaimError;
use super::hands::Scripted;
use super::stage::{Prepared, placed};
use super::watch::Seen;
use crate::arena::Arena;
use crate::client::Client;
use crate::game::Game;
use crate::packet::{ClientPacket, Snapshot};
use crate::pipeline::{ClientPipeline, Event, ServerPipeline, Setup};
use crate::server::Server;
use crate::session::{InputSource, Observer, Screen, Shown};
use crate::units::{Micros, PlayerId, Seed};

type Body = <Arena as Game>::Body;

/// Plays a prepared scene whose player 0 stamps its usercmds with times that are so much too old.
///
/// # Errors
/// When the players cannot be placed.
pub(super) fn play(prepared: &Prepared, too_old: Micros) -> Result<Seen, ClaimError> {
    let Prepared { settings, rules, scene } = prepared;
    let setup = Setup { rules: rules.clone(), settings: settings.clone(), seed: Seed(scene.seed) };
    let players = scene.players.len() as u16;
    let mut server = Server::<Arena>::new(setup.clone(), players);
    server.begin_from(Arena::begin(rules, setup.seed, &placed(rules, scene)).ok_or(ClaimError::NoScene)?);
    let mut clients: Vec<Client<Arena>> = (0..players).map(|p| Client::new(setup.clone(), PlayerId(p))).collect();
    let delay = |player: PlayerId| Micros::from_ms_f64(scene.players[usize::from(player.0)].link.delay_ms);
    let scripts = scene.players.iter().map(|p| (p.hands.clone(), Micros::from_ms_f64(p.first_frame_ms)));
    let mut hands = Scripted::new(scripts.collect(), settings.client.cmd_hz);
    let mut frames: Vec<Option<Micros>> = (0..players).map(|p| hands.next_frame(PlayerId(p))).collect();
    let mut up: VecDeque<(Micros, PlayerId, ClientPacket)> = VecDeque::new();
    let mut down: VecDeque<(Micros, PlayerId, Snapshot<Body>)> = VecDeque::new();
    let mut seen = Seen::default();
    let mut turns = 1;
    for now in (1..=(scene.seconds * 1000.0) as i64).map(Micros::from_ms) {
        for (at, player, packet) in take_due(&mut up, now) {
            server.handle_packet(at, player, packet);
        }
        if now >= settings.server.tick_hz.turn(turns) {
            turns += 1;
            let ticked = server.tick(now);
            while let Some(event) = server.poll_event() {
                if let Event::Judged(judged) = event {
                    Observer::<Arena>::judged(&mut seen, now, ticked.tick, &judged);
                }
            }
            while let Some((player, snapshot)) = server.poll_snapshot() {
                Observer::<Arena>::snapshot_sent(&mut seen, player, now, &snapshot, snapshot.nominal_bytes());
                down.push_back((now + delay(player), player, snapshot));
            }
        }
        for (at, player, snapshot) in take_due(&mut down, now) {
            clients[usize::from(player.0)].handle_snapshot(at, &snapshot);
        }
        for (player, client) in (0..players).map(PlayerId).zip(&mut clients) {
            let due = &mut frames[usize::from(player.0)];
            while let Some(at) = due.filter(|at| *at <= now) {
                client.look(at);
                let screen = Screen { player, own: client.predicted(), others: client.drawn() };
                let input = hands.input(at, &screen);
                let mut commanded = client.command(at, &input);
                let shown = Shown { drawn: client.drawn(), drawn_at: client.drawn_at() };
                seen.frame(player, at, &commanded, &shown);
                if player == PlayerId(0) {
                    for command in &mut commanded.packet.commands {
                        command.server_time = command.server_time - too_old;
                    }
                }
                up.push_back((at + delay(player), player, commanded.packet));
                *due = hands.next_frame(player);
            }
        }
    }
    seen.meant = hands.meant;
    Ok(seen)
}

/// What arrives by now, in the order of arrival.
fn take_due<T>(queue: &mut VecDeque<(Micros, PlayerId, T)>, now: Micros) -> Vec<(Micros, PlayerId, T)> {
    let (mut due, later): (Vec<_>, Vec<_>) = queue.drain(..).partition(|(at, ..)| *at <= now);
    queue.extend(later);
    due.sort_by_key(|(at, player, _)| (*at, *player));
    due
}
