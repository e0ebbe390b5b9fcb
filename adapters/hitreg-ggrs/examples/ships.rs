//! Two ships on a line, over UDP: `ships play PLAYER PORT PEER LOG` and `ships replay LOG -o TRACE`.

use std::error::Error;
use std::process::ExitCode;
use std::time::Duration;

use hitreg_ggrs::ggrs::{
    Config, InputStatus, PlayerType, PredictRepeatLast, SessionBuilder, SessionState, UdpNonBlockingSocket,
};
use hitreg_ggrs::hitreg_log::record::Class;
use hitreg_ggrs::hitreg_log::recorder::{Recorder, RecorderOptions};
use hitreg_ggrs::{EntityFields, Fields, GgrsRecorder, RecordedGame};

pub(crate) const HZ: u32 = 60;
pub(crate) const DRAG: &str = "ships.drag";

#[derive(Clone, Copy, Default, PartialEq, serde::Serialize, serde::Deserialize)]
pub(crate) struct Pad {
    pub(crate) thrust: i8,
    pub(crate) brake: bool,
}
hitreg_ggrs::fields!(Pad { thrust: i8, brake: bool });

#[derive(Clone, Default)]
pub(crate) struct Ship {
    pub(crate) x: f32,
    pub(crate) vx: f32,
    pub(crate) bumps: u32,
}
hitreg_ggrs::fields!(Ship { x: f32 as Position "origin.x", vx: f32 as Velocity "velocity.x", bumps: u32 as Counter });

#[derive(Clone)]
pub(crate) struct Ships {
    pub(crate) ships: Vec<Ship>,
    drag: f32,
}

impl Ships {
    pub(crate) fn new(drag: &str) -> Ships {
        let ship = |x| Ship { x, ..Ship::default() };
        Ships { ships: [-40.0, 40.0].map(ship).into(), drag: drag.parse().unwrap_or(0.98) }
    }
}

pub(crate) struct Net;

impl Config for Net {
    type Input = Pad;
    type InputPredictor = PredictRepeatLast;
    type State = Ships;
    type Address = std::net::SocketAddr;
}

impl RecordedGame for Ships {
    type Config = Net;
    const NAME: &'static str = "ships";

    fn save(&self) -> Ships {
        self.clone()
    }

    fn load(&mut self, state: &Ships) {
        self.clone_from(state);
    }

    fn advance(&mut self, inputs: &[(Pad, InputStatus)]) {
        for (ship, (pad, status)) in self.ships.iter_mut().zip(inputs) {
            let brake = if pad.brake || *status == InputStatus::Disconnected { 0.5 } else { 1.0 };
            ship.vx = (ship.vx + f32::from(pad.thrust) * 2.0) * self.drag * brake;
            ship.x += ship.vx / HZ as f32;
            if ship.x.abs() > 50.0 {
                (ship.x, ship.vx, ship.bumps) = (ship.x.clamp(-50.0, 50.0), -ship.vx, ship.bumps + 1);
            }
        }
    }

    fn classes() -> Vec<Class> {
        vec![Class::new("ship", Ship::fields())]
    }

    fn bodies(&self) -> Vec<EntityFields> {
        (0..).zip(&self.ships).map(|(player, ship)| EntityFields::new(player, 0, ship)).collect()
    }

    fn restore(&mut self, body: &EntityFields) -> bool {
        self.ships[usize::from(body.entity)].set(&body.values);
        true
    }
}

/// A bot's input.
pub(crate) fn pad(player: usize, frame: i32) -> Pad {
    let phase = frame / 9 + 2 * player as i32;
    Pad { thrust: (phase % 3 - 1) as i8, brake: phase % 7 == 6 }
}

fn play(player: usize, port: u16, peer: &str, path: &str) -> Result<(), Box<dyn Error>> {
    let mut game = Ships::new("0.98");
    let about = hitreg_ggrs::describe::<Ships>(2, HZ).setting(DRAG, "0.98");
    let recorder = Recorder::create(path.as_ref(), about, RecorderOptions::default())?;
    let mut recorder = GgrsRecorder::new(recorder, HZ);
    let mut session = SessionBuilder::<Net>::new()
        .with_input_delay(2)
        .add_player(PlayerType::Local, player)?
        .add_player(PlayerType::Remote(peer.parse()?), 1 - player)?
        .start_p2p_session(UdpNonBlockingSocket::bind_to_port(port)?)?;
    while session.current_frame() < 10 * HZ as i32 {
        session.poll_remote_clients();
        if session.current_state() == SessionState::Running {
            session.add_local_input(player, pad(player, session.current_frame()))?;
            let requests = session.advance_frame()?;
            recorder.handle(&mut game, &session, requests)?;
        }
        std::thread::sleep(Duration::from_secs(1) / HZ);
    }
    let written = recorder.finish()?;
    println!("{path}: {} records", written.records);
    Ok(())
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let (result, code) = if let ["play", player @ ("0" | "1"), port, peer, path] = args[..] {
        let port = port.parse().unwrap_or(7000);
        (play(usize::from(player == "1"), port, peer, path).map_err(|error| error.to_string()), 1)
    } else {
        let replayed =
            hitreg_ggrs::replay(std::env::args_os().skip(1), |play| Ships::new(play.setting(DRAG).unwrap_or_default()));
        let code = replayed.as_ref().map_or_else(|error| error.exit_code(), |()| 0);
        (replayed.map_err(|error| error.to_string()), code)
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("ships: {message}");
            ExitCode::from(code)
        }
    }
}
