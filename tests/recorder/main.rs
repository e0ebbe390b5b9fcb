//! Recording through calls, as an engine does. These tests need no game, no pipeline and no feature.

mod killed;
mod merged;
#[path = "../skipped/note.rs"]
mod note;
mod parts;
mod python_log;
mod records;
mod refused;
mod slow;
mod traces;

use hitreg::record::{CellKind, Class, ClassId, FieldSchema, Meaning, Scope};
use hitreg::recorder::{Description, Stream};
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};
use hitreg::usercmd::{Input, Usercmd};

/// A session with players whose bodies have a position and health.
fn about(players: u16) -> Description {
    let x = FieldSchema::new("origin.x", CellKind::F32, Scope::Movement).meaning(Meaning::Position);
    let health = FieldSchema::new("health", CellKind::I32, Scope::Status);
    let about = Description::new("mygame").tick_hz(100).class(Class::new("player", vec![x, health]));
    (0..players).fold(about, |about, player| about.player(format!("p{player}")))
}

fn usercmd(seq: u32) -> Usercmd {
    let input = Input { msec: 10, buttons: seq as u16 & 3, forwardmove: 320.0, ..Input::default() };
    Usercmd { seq: CommandSeq(seq), server_time: at(seq), input, ..Usercmd::default() }
}

/// The time of a tick and of its usercmds.
fn at(tick: u32) -> Micros {
    Micros::from_ms(10 * i64::from(tick))
}

/// Pushes the records of one tick: a usercmd of each player, the tick, and a state of each player.
fn tick(stream: &mut Stream, players: u16, tick: u32) -> Result<(), hitreg::recorder::PushError> {
    for player in 0..players {
        stream.usercmd(PlayerId(player), at(tick), usercmd(tick))?;
    }
    end_tick(stream, players, tick)
}

/// Pushes the end of one tick, and a state of each player.
fn end_tick(stream: &mut Stream, players: u16, tick: u32) -> Result<(), hitreg::recorder::PushError> {
    stream.tick(Tick(tick), at(tick), Some(u64::from(tick)))?;
    for player in 0..players {
        let cells = [(tick as f32).to_bits(), u32::from(player)];
        stream.body(Tick(tick), EntityId(player), ClassId(0), &cells)?;
    }
    Ok(())
}
