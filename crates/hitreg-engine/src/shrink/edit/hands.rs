//! Removes input of players.

use glam::Vec3;

use super::super::Kind;
use super::{Key, Thing};
use hitreg_log::record::Session;
use hitreg_log::usercmd::Input;

/// The things of a kind that concerns usercmds.
pub(super) fn things(session: &Session, kind: Kind) -> Vec<Thing> {
    let mut things = Vec::new();
    for (player, records) in session.players.iter().enumerate() {
        for (frame, record) in records.frames.iter().enumerate() {
            let input = &record.command.input;
            match kind {
                Kind::Usercmds if !is_idle(input) => things.push(Thing::Usercmd(player, frame)),
                Kind::Buttons => things.extend(keys(input).map(|key| Thing::Button(player, frame, key))),
                Kind::Angles if input.viewangles != Vec3::ZERO => things.push(Thing::Angles(player, frame)),
                Kind::Moves => {
                    let moves = [input.forwardmove, input.sidemove, input.upmove];
                    let moved = (0..moves.len()).filter(|axis| moves[*axis] != 0.0);
                    things.extend(moved.map(|axis| Thing::Move(player, frame, axis)));
                }
                _ => {}
            }
        }
    }
    things
}

/// Removes a player's input. Things of other kinds change nothing.
pub(super) fn remove(session: &mut Session, thing: Thing) {
    let (Thing::Usercmd(player, frame)
    | Thing::Button(player, frame, _)
    | Thing::Angles(player, frame)
    | Thing::Move(player, frame, _)) = thing
    else {
        return;
    };
    let Some(record) = session.players.get_mut(player).and_then(|p| p.frames.get_mut(frame)) else { return };
    let input = &mut record.command.input;
    match thing {
        Thing::Usercmd(..) => *input = Input { msec: input.msec, viewangles: input.viewangles, ..Input::default() },
        Thing::Button(.., Key::Bit(bit)) => input.buttons &= !(1 << bit),
        Thing::Button(.., Key::Impulse) => input.impulse = 0,
        Thing::Angles(..) => input.viewangles = Vec3::ZERO,
        Thing::Move(.., 0) => input.forwardmove = 0.0,
        Thing::Move(.., 1) => input.sidemove = 0.0,
        Thing::Move(..) => input.upmove = 0.0,
        Thing::Player(..) | Thing::Tick(..) | Thing::Loss(..) | Thing::Duplicate(..) | Thing::Delay(..) => {}
    }
}

fn is_idle(input: &Input) -> bool {
    *input == Input { msec: input.msec, viewangles: input.viewangles, ..Input::default() }
}

fn keys(input: &Input) -> impl Iterator<Item = Key> + use<> {
    let (buttons, impulse) = (input.buttons, input.impulse);
    let bits = (0..16).filter(move |bit| buttons & (1 << bit) != 0).map(Key::Bit);
    bits.chain((impulse != 0).then_some(Key::Impulse))
}
