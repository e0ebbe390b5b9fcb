//! The build of `ships` with a planted bug: the brake of player 0 also turns the ship around.

use std::process::ExitCode;

use hitreg_ggrs::ggrs::InputStatus;
use hitreg_ggrs::hitreg_log::record::Class;
use hitreg_ggrs::{EntityFields, RecordedGame};

#[path = "ships.rs"]
#[expect(dead_code, reason = "a whole program, of which this build uses the game")]
pub(crate) mod ships;
use ships::{DRAG, Net, Pad, Ships};

pub(crate) struct ShipsWithBug(pub(crate) Ships);

impl RecordedGame for ShipsWithBug {
    type Config = Net;
    const NAME: &'static str = Ships::NAME;

    fn save(&self) -> Ships {
        self.0.save()
    }

    fn load(&mut self, state: &Ships) {
        self.0.load(state);
    }

    fn advance(&mut self, inputs: &[(Pad, InputStatus)]) {
        if inputs[0].0.brake {
            self.0.ships[0].vx *= -1.0;
        }
        self.0.advance(inputs);
    }

    fn classes() -> Vec<Class> {
        Ships::classes()
    }

    fn bodies(&self) -> Vec<EntityFields> {
        self.0.bodies()
    }

    fn restore(&mut self, body: &EntityFields) -> bool {
        self.0.restore(body)
    }
}

fn main() -> ExitCode {
    let replayed = hitreg_ggrs::replay(std::env::args_os().skip(1), |play| {
        ShipsWithBug(Ships::new(play.setting(DRAG).unwrap_or_default()))
    });
    match replayed {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("ships_bug: {error}");
            ExitCode::from(error.exit_code())
        }
    }
}
