//! Removes input of players.

use glam::Vec3;

use super::super::CostKind;
use super::{InputKey, Removable};
use hitreg_log::record::{Session, cells_of};
use hitreg_log::usercmd::{Input, OwnCells};

/// The things of a kind that concerns usercmds.
pub(super) fn things(session: &Session, kind: CostKind) -> Vec<Removable> {
    let own_fields = session.header.own_usercmd_fields();
    let mut things = Vec::new();
    for (player, records) in session.players.iter().enumerate() {
        for (frame, record) in records.frames.iter().enumerate() {
            let input = &record.command.input;
            match kind {
                CostKind::Usercmds if !is_idle(input) => things.push(Removable::Usercmd(player, frame)),
                CostKind::Buttons => things.extend(keys(input).map(|key| Removable::Button(player, frame, key))),
                CostKind::Angles if input.viewangles != Vec3::ZERO => things.push(Removable::Angles(player, frame)),
                CostKind::Moves => {
                    let moves = [input.forwardmove, input.sidemove, input.upmove];
                    let moved = (0..moves.len()).filter(|axis| moves[*axis] != 0.0);
                    things.extend(moved.map(|axis| Removable::Move(player, frame, axis)));
                }
                CostKind::OwnInput => {
                    let places = cells_of(&own_fields).map(|(_, place)| [place.start, place.end]);
                    let given = places.filter(|place| own_cells(&input.own, *place).any(|cell| cell != 0));
                    things.extend(given.map(|place| Removable::OwnInput(player, frame, place)));
                }
                _ => {}
            }
        }
    }
    things
}

/// Removes a player's input. Things of other kinds change nothing.
pub(super) fn remove(session: &mut Session, thing: Removable) {
    let (Removable::Usercmd(player, frame)
    | Removable::Button(player, frame, _)
    | Removable::Angles(player, frame)
    | Removable::Move(player, frame, _)
    | Removable::OwnInput(player, frame, _)) = thing
    else {
        return;
    };
    let Some(record) = session.players.get_mut(player).and_then(|p| p.frames.get_mut(frame)) else { return };
    let input = &mut record.command.input;
    match thing {
        Removable::Usercmd(..) => *input = idle(input),
        Removable::Button(.., InputKey::Bit(bit)) => input.buttons &= !(1 << bit),
        Removable::Button(.., InputKey::Impulse) => input.impulse = 0,
        Removable::Angles(..) => input.viewangles = Vec3::ZERO,
        Removable::Move(.., 0) => input.forwardmove = 0.0,
        Removable::Move(.., 1) => input.sidemove = 0.0,
        Removable::Move(..) => input.upmove = 0.0,
        Removable::OwnInput(.., [first, end]) => {
            let mut cells = input.own.stored().to_vec();
            cells.iter_mut().take(end).skip(first).for_each(|cell| *cell = 0);
            input.own = OwnCells::new(&cells);
        }
        Removable::Player(..)
        | Removable::Tick(..)
        | Removable::Loss(..)
        | Removable::Duplicate(..)
        | Removable::Delay(..) => {}
    }
}

fn is_idle(input: &Input) -> bool {
    *input == idle(input)
}

/// Only the duration and the view angles of an input.
fn idle(input: &Input) -> Input {
    Input { msec: input.msec, viewangles: input.viewangles, ..Input::default() }
}

/// The stored cells with these places.
fn own_cells(own: &OwnCells, [first, end]: [usize; 2]) -> impl Iterator<Item = u32> {
    own.stored().iter().copied().take(end).skip(first)
}

fn keys(input: &Input) -> impl Iterator<Item = InputKey> + use<> {
    let (buttons, impulse) = (input.buttons, input.impulse);
    let bits = (0..16).filter(move |bit| buttons & (1 << bit) != 0).map(InputKey::Bit);
    bits.chain((impulse != 0).then_some(InputKey::Impulse))
}
