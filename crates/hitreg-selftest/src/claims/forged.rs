//! A session in which player 0's packets are forged in transit: its usercmds claim to be older than they are.
//!
//! Server and clients are the usual ones, on links with constant delay, driven in steps of one millisecond.

use std::collections::VecDeque;

use glam::Vec3;

use super::ClaimError;
use super::experiment::{PreparedExperiment, placed};
use super::scripted_input::ScriptedInput;
use super::watch::SessionWatch;
use hitreg_arena::Arena;
use hitreg_log::units::{Micros, PlayerId, Seed};
use hitreg_netcode::client::Client;
use hitreg_netcode::game::Simulate;
use hitreg_netcode::packet::{ClientPacket, HeardPacket, Snapshot};
use hitreg_netcode::pipeline::{ClientPipeline, ServerPipeline, Setup};
use hitreg_netcode::server::Server;
use hitreg_netcode::session::sequence::{self, ClientEnd, ServerEnds};
use hitreg_netcode::session::{InputSource, PlayerScreen, SnapshotSize};

type ForgedBody = <Arena as Simulate>::Body;

/// Plays a prepared scene in which player 0's usercmds carry times that are too old by `too_old`.
///
/// # Errors
/// When the players cannot be placed.
pub(super) fn play(prepared: &PreparedExperiment, too_old: Micros) -> Result<SessionWatch, ClaimError> {
    let PreparedExperiment { settings, rules, scene } = prepared;
    let setup = Setup { rules: rules.clone(), settings: settings.clone(), seed: Seed(scene.seed) };
    let players = scene.players.len() as u16;
    let mut server = Server::<Arena>::new(setup.clone(), players);
    server.begin_from(Arena::begin(rules, setup.seed, &placed(rules, scene)).ok_or(ClaimError::NoScene)?);
    let mut clients: Vec<Client<Arena>> = (0..players).map(|p| Client::new(setup.clone(), PlayerId(p))).collect();
    let mut input = ScriptedInput::new(scene, settings);
    let mut frames: Vec<Option<Micros>> = (0..players).map(|p| input.next_frame(PlayerId(p))).collect();
    let delays = scene.players.iter().map(|player| Micros::from_ms_f64(player.link.delay_ms)).collect();
    let mut line = ForgedLink { delays, up: VecDeque::new(), down: VecDeque::new() };
    let mut seen = SessionWatch::default();
    let mut turns = 1;
    for now in (1..=(scene.seconds * 1000.0) as i64).map(Micros::from_ms) {
        for (at, player, packet) in take_due(&mut line.up, now) {
            let heard = HeardPacket { packet, received_before: 0 };
            sequence::packet_reached::<Arena>(&mut server, at, player, heard, &mut seen);
        }
        if now >= settings.server.tick_hz.turn(turns) {
            turns += 1;
            sequence::tick::<Arena>(&mut server, &mut line, now, &mut seen);
        }
        for (at, player, snapshot) in take_due(&mut line.down, now) {
            let client = &mut clients[usize::from(player.0)];
            sequence::snapshot_received::<Arena>(client, at, player, &snapshot, &mut seen);
        }
        for (player, client) in (0..players).map(PlayerId).zip(&mut clients) {
            let due = &mut frames[usize::from(player.0)];
            while let Some(at) = due.filter(|at| *at <= now) {
                let too_old = if player == PlayerId(0) { too_old } else { Micros::ZERO };
                let mut end = ForgingEnd { line: &mut line, player, too_old };
                let looks = (true, |screen: &PlayerScreen<'_, Arena>| input.input(at, screen));
                sequence::frame::<Arena>(client, &mut end, at, player, looks, &mut seen);
                *due = input.next_frame(player);
            }
        }
    }
    seen.meant = input.meant;
    Ok(seen)
}

/// The packets and snapshots in transit.
struct ForgedLink {
    delays: Vec<Micros>,
    up: VecDeque<(Micros, PlayerId, ClientPacket)>,
    down: VecDeque<(Micros, PlayerId, Snapshot<ForgedBody>)>,
}

impl ServerEnds<ForgedBody> for ForgedLink {
    fn pack(&mut self, _at: Micros, _player: PlayerId, _snapshot: &Snapshot<ForgedBody>) -> Option<SnapshotSize> {
        None
    }

    fn send(&mut self, at: Micros, player: PlayerId, snapshot: Snapshot<ForgedBody>) {
        self.down.push_back((at + self.delays[usize::from(player.0)], player, snapshot));
    }
}

/// A client's connection end that makes its usercmds older than they are.
struct ForgingEnd<'a> {
    line: &'a mut ForgedLink,
    player: PlayerId,
    too_old: Micros,
}

impl ClientEnd for ForgingEnd<'_> {
    fn pack(&mut self, _at: Micros, packet: &mut ClientPacket, _predicted: Option<Vec3>) -> Option<u16> {
        for command in &mut packet.commands {
            command.server_time = command.server_time - self.too_old;
        }
        None
    }

    fn send(&mut self, at: Micros, packet: ClientPacket) {
        self.line.up.push_back((at + self.line.delays[usize::from(self.player.0)], self.player, packet));
    }
}

/// Returns the transmissions that have arrived by `now`, in order of arrival.
fn take_due<T>(queue: &mut VecDeque<(Micros, PlayerId, T)>, now: Micros) -> Vec<(Micros, PlayerId, T)> {
    let (mut due, later): (Vec<_>, Vec<_>) = queue.drain(..).partition(|(at, ..)| *at <= now);
    queue.extend(later);
    due.sort_by_key(|(at, player, _)| (*at, *player));
    due
}
