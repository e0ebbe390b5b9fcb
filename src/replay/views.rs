//! The `views` table: where each client drew each other entity. Where drawing goes by category, it also says by which,
//! and has the own avatar, too.

use glam::Vec3;

use super::columns::{Names, push_all, table};
use crate::game::{Body, Category, How, Placed};
use crate::trace::{Data, Table};
use crate::units::{CommandSeq, EntityId, Micros, PlayerId};

#[derive(Debug)]
pub(super) struct Views {
    player: Vec<u32>,
    command: Vec<u32>,
    drawn_at_us: Vec<i64>,
    entity: Vec<u32>,
    place: [Vec<f32>; 3],
    angles: [Vec<f32>; 2],
    how: Names,
    /// By which category; empty where drawing knows none.
    category: Names,
    /// For each player, where the views of each of its usercmds begin and end.
    of_command: Vec<Vec<(u32, usize, usize)>>,
}

impl Views {
    pub(super) fn new(players: usize) -> Views {
        Views {
            player: Vec::new(),
            command: Vec::new(),
            drawn_at_us: Vec::new(),
            entity: Vec::new(),
            place: Default::default(),
            angles: Default::default(),
            how: Names::known(&How::NAMES),
            category: Names::known(&Category::NAMES),
            of_command: vec![Vec::new(); players],
        }
    }

    /// What was on the screen, in ascending order of entity.
    pub(super) fn push<B: Body>(
        &mut self,
        player: PlayerId,
        command: CommandSeq,
        drawn_at: Micros,
        screen: &[(EntityId, &Placed<B>)],
    ) {
        let start = self.entity.len();
        for (entity, placed) in screen {
            self.push_row(player, command, drawn_at, *entity, placed);
        }
        self.of_command[usize::from(player.0)].push((command.0, start, self.entity.len()));
    }

    fn push_row<B: Body>(
        &mut self,
        player: PlayerId,
        command: CommandSeq,
        drawn_at: Micros,
        entity: EntityId,
        placed: &Placed<B>,
    ) {
        self.player.push(u32::from(player.0));
        self.command.push(command.0);
        self.drawn_at_us.push(placed.by.map_or(drawn_at, |by| by.at).0);
        self.entity.push(u32::from(entity.0));
        push_all(&mut self.place, placed.body.origin().to_array());
        let angles = placed.body.viewangles();
        push_all(&mut self.angles, [angles.x, angles.y]);
        self.how.push_code(placed.how as u8);
        if let Some(by) = placed.by {
            self.category.push_code(by.category as u8);
        }
    }

    /// Who was drawn on a player's screen while a usercmd was made, and where.
    pub(super) fn of(&self, player: PlayerId, command: CommandSeq) -> impl Iterator<Item = (EntityId, Vec3)> + '_ {
        let frames = &self.of_command[usize::from(player.0)];
        let range = match frames.binary_search_by_key(&command.0, |(seq, _, _)| *seq) {
            Ok(index) => frames[index].1..frames[index].2,
            Err(_) => 0..0,
        };
        let [x, y, z] = &self.place;
        range.map(move |i| (EntityId(self.entity[i] as u16), Vec3::new(x[i], y[i], z[i])))
    }

    pub(super) fn table(self) -> Table {
        let [x, y, z] = self.place;
        let [pitch, yaw] = self.angles;
        let mut columns = vec![
            ("player", Data::U32(self.player)),
            ("command", Data::U32(self.command)),
            ("drawn_at_us", Data::I64(self.drawn_at_us)),
            ("entity", Data::U32(self.entity)),
            ("origin.x", Data::F32(x)),
            ("origin.y", Data::F32(y)),
            ("origin.z", Data::F32(z)),
            ("pitch", Data::F32(pitch)),
            ("yaw", Data::F32(yaw)),
            ("how", self.how.data()),
        ];
        let category = self.category.data();
        if !category.is_empty() {
            columns.push(("category", category));
        }
        table("views", columns, Vec::new())
    }
}
