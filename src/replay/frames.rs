//! The `frames` table: every client frame, with its usercmd and the own body as far as it was predicted.

use glam::Vec3;

use super::columns::{CellRows, push_all, table};
use crate::game::{Body, Field, Game};
use crate::pipeline::Commanded;
use crate::trace::{Data, Table};
use crate::units::{Micros, PlayerId};

#[derive(Debug)]
pub(super) struct Frames {
    player: Vec<u32>,
    at_us: Vec<i64>,
    command: Vec<u32>,
    msec: Vec<u32>,
    server_time_us: Vec<i64>,
    angles: [Vec<f32>; 2],
    moves: [Vec<f32>; 3],
    buttons: Vec<u32>,
    ran: Vec<u32>,
    first_effects: Vec<u32>,
    has_body: Vec<u32>,
    drawn: [Vec<f32>; 3],
    own: CellRows,
}

impl Frames {
    pub(super) fn new(fields: Vec<Field>) -> Frames {
        Frames {
            player: Vec::new(),
            at_us: Vec::new(),
            command: Vec::new(),
            msec: Vec::new(),
            server_time_us: Vec::new(),
            angles: Default::default(),
            moves: Default::default(),
            buttons: Vec::new(),
            ran: Vec::new(),
            first_effects: Vec::new(),
            has_body: Vec::new(),
            drawn: Default::default(),
            own: CellRows::new(fields),
        }
    }

    pub(super) fn push<G: Game>(&mut self, player: PlayerId, at: Micros, commanded: &Commanded<G>) {
        let input = &commanded.command.input;
        self.player.push(u32::from(player.0));
        self.at_us.push(at.0);
        self.command.push(commanded.command.seq.0);
        self.msec.push(u32::from(input.msec));
        self.server_time_us.push(commanded.command.server_time.0);
        push_all(&mut self.angles, [input.viewangles.x, input.viewangles.y]);
        push_all(&mut self.moves, [input.forwardmove, input.sidemove, input.upmove]);
        self.buttons.push(u32::from(input.buttons));
        self.ran.push(commanded.ran);
        self.first_effects.push(commanded.effects.len() as u32);
        self.has_body.push(u32::from(commanded.predicted.is_some()));
        push_all(&mut self.drawn, commanded.drawn_origin.unwrap_or(Vec3::ZERO).to_array());
        let row = self.own.next_row();
        if let Some(body) = &commanded.predicted {
            body.write(row);
        }
    }

    /// Where each of `players` players' frames are, in the order of time.
    pub(super) fn rows_by_player(&self, players: usize) -> Vec<Vec<usize>> {
        let mut rows = vec![Vec::new(); players];
        for (row, player) in self.player.iter().enumerate() {
            if let Some(rows) = rows.get_mut(*player as usize) {
                rows.push(row);
            }
        }
        rows
    }

    /// When a frame was, and the own body as its player saw it.
    pub(super) fn own<B: Body>(&self, row: usize) -> Option<(Micros, B)> {
        let cells = self.own.row(row).filter(|_| self.has_body[row] == 1)?;
        Some((Micros(self.at_us[row]), B::read(cells).ok()?))
    }

    pub(super) fn at(&self, row: usize) -> Micros {
        Micros(self.at_us[row])
    }

    pub(super) fn table(self) -> Table {
        let [pitch, yaw] = self.angles;
        let [forward, side, up] = self.moves;
        let [x, y, z] = self.drawn;
        let columns = vec![
            ("player", Data::U32(self.player)),
            ("at_us", Data::I64(self.at_us)),
            ("command", Data::U32(self.command)),
            ("msec", Data::U32(self.msec)),
            ("server_time_us", Data::I64(self.server_time_us)),
            ("pitch", Data::F32(pitch)),
            ("yaw", Data::F32(yaw)),
            ("forwardmove", Data::F32(forward)),
            ("sidemove", Data::F32(side)),
            ("upmove", Data::F32(up)),
            ("buttons", Data::U32(self.buttons)),
            ("ran", Data::U32(self.ran)),
            ("first_effects", Data::U32(self.first_effects)),
            ("has_body", Data::U32(self.has_body)),
            ("drawn.x", Data::F32(x)),
            ("drawn.y", Data::F32(y)),
            ("drawn.z", Data::F32(z)),
        ];
        table("frames", columns, self.own.columns("own."))
    }
}
