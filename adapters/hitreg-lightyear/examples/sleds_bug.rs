//! The build of `sleds` with a planted bug: a system turns the sled of player 0 around when it brakes.

use std::process::ExitCode;

use bevy::prelude::*;
use hitreg_lightyear::{HitregReplay, RecordedEntity};
use lightyear::prelude::input::native::ActionState;

#[path = "sleds.rs"]
#[expect(dead_code, reason = "a whole program, of which this build uses the simulation")]
pub(crate) mod sleds;
use sleds::{DRAG, Pad, Sled, join, recorded, simulation};

fn turn_around(mut sleds: Query<(&mut Sled, &RecordedEntity, &ActionState<Pad>)>) {
    for (mut sled, number, pad) in &mut sleds {
        if number.0 == 0 && pad.brake {
            sled.vx *= -1.0;
        }
    }
}

pub(crate) fn simulation_with_bug(app: &mut App, drag: &str) {
    simulation(app, drag);
    app.add_systems(FixedPreUpdate, turn_around);
}

fn main() -> ExitCode {
    let replayed = HitregReplay::new(recorded(), join).run(std::env::args_os().skip(1), |play| {
        let mut app = App::new();
        simulation_with_bug(&mut app, play.setting(DRAG).unwrap_or_default());
        app
    });
    match replayed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("sleds_bug: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
