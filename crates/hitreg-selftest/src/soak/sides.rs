//! Splits a session into the logs of its sides, each with its own clock, and merges them again.

use super::SoakCoverage;
use super::SoakProperty::Merge;
use super::check::{CheckResult, as_recorded, broken, replayed};
use super::disk::unlike;
use super::play::SoakSession;
use hitreg_log::merge::{AlignedClient, MergeError, merge};
use hitreg_log::record::{ClockOwner, RecordedSide, Session, SessionHeader, SessionId};
use hitreg_log::rng::Rng;
use hitreg_log::units::{Micros, PlayerId, Tick};
use hitreg_netcode::replay::ReplayOptions;

pub(super) fn check(played: &SoakSession, rng: &mut Rng, exercised: &mut SoakCoverage) -> CheckResult {
    let session = &played.seen();
    let clocks: Vec<Micros> =
        session.players.iter().map(|_| Micros(rng.below(20_000_000_000) as i64 - 10_000_000_000)).collect();
    let mut sides = sides(&played.session, &clocks);
    // One client's log may be missing.
    let lost =
        (session.players.len() > 1 && rng.chance(0.3)).then(|| 1 + rng.below(session.players.len() as u64) as usize);
    let lost = lost.filter(|side| !played.session.players[side - 1].heard.is_empty());
    if let Some(lost) = lost {
        sides.remove(lost);
    }
    let turn = rng.below(sides.len() as u64) as usize;
    sides.rotate_left(turn);
    let merged = match merge(sides) {
        Ok(merged) => merged,
        // A player who was heard but received nothing has no reference for its clock.
        Err(MergeError::Unbounded { player, .. }) if session.players[usize::from(player.0)].received.is_empty() => {
            return Ok(());
        }
        Err(error) => return Err(broken(Merge, error.to_string())),
    };
    if merged.cut.is_some() || merged.clients.len() != session.players.len() {
        return Err(broken(Merge, "the session is cut, and no log was"));
    }
    let mut back = merged.session.clone();
    for (player, (client, clock)) in back.players.iter_mut().zip(merged.clients.iter().zip(&clocks)) {
        match client.offset {
            Some(found) if found.error.is_none_or(|error| (found.offset - *clock).0.abs() > error.0) => {
                let said = format!("player {}'s clock is {} µs off, and {:?} was found", client.player, clock.0, found);
                return Err(broken(Merge, said));
            }
            Some(found) => player.move_by(ClockOwner::Client, *clock - found.offset),
            None => {}
        }
    }
    let heard = |player: &PlayerId| !session.players[usize::from(player.0)].reached.is_empty();
    let shift =
        |(client, clock): (&AlignedClient, &Micros)| client.offset.map_or(Micros::ZERO, |found| found.offset - *clock);
    let shifts = merged.clients.iter().zip(&clocks).map(shift).map(|by| by.0.abs());
    let sure = shifts.max().unwrap_or_default();
    let (back, whole_session) = (without_end(&back, sure), without_end(session, sure));
    let all_heard = (0..session.players.len()).all(|player| heard(&PlayerId(player as u16)));
    if lost.is_none() && all_heard && back != whole_session {
        return Err(broken(Merge, unlike(&back, &whole_session)));
    }
    // A player who was never heard leaves nothing to compare.
    if back.players.iter().all(|player| player.frames.is_empty() && player.heard.is_empty()) {
        return Ok(());
    }
    let again = replayed(&merged.session, &ReplayOptions::default(), Merge)?;
    as_recorded(Merge, session, &again)?;
    exercised.held(Merge);
    Ok(())
}

/// Returns a session without its last `us` µs. Merging sets clocks from the traffic, with an error of up to half a
/// round trip. A client's records near the last tick may therefore come after it.
fn without_end(session: &Session, us: i64) -> Session {
    let mut session = session.clone();
    let end = session.ticks.last().map_or(Micros::ZERO, |last| last.at - Micros(us));
    let last = session.ticks.iter().rev().find(|tick| tick.at <= end).map_or(Tick(0), |tick| tick.tick);
    session.end_at(last, end);
    session
}

/// Returns the server's log, then the clients' logs. Each client's clock is slow by the given time.
fn sides(session: &Session, clocks: &[Micros]) -> Vec<Session> {
    let side = |player| {
        let side = RecordedSide { session: SessionId(7), player };
        Session::new(SessionHeader { side: Some(side), ..session.header.clone() })
    };
    let mut server = side(None);
    server.ticks.clone_from(&session.ticks);
    server.states = session.states.clone();
    let mut all = Vec::new();
    for (index, (records, clock)) in session.players.iter().zip(clocks).enumerate() {
        server.players[index].take(ClockOwner::Server, records.clone());
        let player = PlayerId(index as u16);
        let mut client = side(Some(player));
        client.players[index].take(ClockOwner::Client, records.clone());
        client.players[index].move_by(ClockOwner::Client, Micros::ZERO - *clock);
        all.push(client);
    }
    all.insert(0, server);
    all
}
