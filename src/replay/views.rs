//! The `views` table: where each client drew each other entity. Where drawing goes by category, it also says by which,
//! and has the own avatar, too.

use glam::Vec3;

use crate::game::{Body, Placed};
use crate::trace::Table;
use crate::trace::schema::views::{Row, Writer};
use crate::units::{CommandSeq, EntityId, Micros, PlayerId};

#[derive(Debug)]
pub(super) struct Views {
    rows: Writer,
    /// For each player, where the views of each of its usercmds begin and end.
    of_command: Vec<Vec<(u32, usize, usize)>>,
}

impl Views {
    pub(super) fn new(players: usize) -> Views {
        Views { rows: Writer::default(), of_command: vec![Vec::new(); players] }
    }

    /// What was on the screen, in ascending order of entity.
    pub(super) fn push<B: Body>(
        &mut self,
        player: PlayerId,
        command: CommandSeq,
        drawn_at: Micros,
        screen: &[(EntityId, &Placed<B>)],
    ) {
        let start = self.rows.entity.len();
        for (entity, placed) in screen {
            let angles = placed.body.viewangles();
            self.rows.push(Row {
                player: player.0.into(),
                command: command.0,
                drawn_at_us: placed.by.map_or(drawn_at, |by| by.at).0,
                entity: entity.0.into(),
                origin: placed.body.origin(),
                pitch: angles.x,
                yaw: angles.y,
                how: placed.how as u8,
                category: placed.by.map(|by| by.category as u8),
            });
        }
        self.of_command[usize::from(player.0)].push((command.0, start, self.rows.entity.len()));
    }

    /// Who was drawn on a player's screen while a usercmd was made, and where.
    pub(super) fn of(&self, player: PlayerId, command: CommandSeq) -> impl Iterator<Item = (EntityId, Vec3)> + '_ {
        let frames = &self.of_command[usize::from(player.0)];
        let range = match frames.binary_search_by_key(&command.0, |(seq, _, _)| *seq) {
            Ok(index) => frames[index].1..frames[index].2,
            Err(_) => 0..0,
        };
        let [x, y, z] = &self.rows.origin;
        range.map(move |i| (EntityId(self.rows.entity[i] as u16), Vec3::new(x[i], y[i], z[i])))
    }

    pub(super) fn table(self) -> Table {
        self.rows.finish(Vec::new())
    }
}
