//! The `views` table: where each client drew each other entity. Where drawing goes by category, it also says by which,
//! and has the own avatar, too.

use std::collections::VecDeque;

use glam::Vec3;

use crate::game::{Body, Placed};
use crate::trace::Table;
use crate::trace::schema::views::{Row, Writer};
use crate::units::{CommandSeq, EntityId, Micros, PlayerId};

/// So many usercmds of a player may wait to be run before what was on its screen is forgotten: some minutes.
const SCREENS: usize = 1 << 14;

#[derive(Debug)]
pub(super) struct Views {
    rows: Writer,
    /// For each player, what was on its screen while it made each of its usercmds that have not been run.
    screens: Vec<Screens>,
}

/// What was on one player's screen.
#[derive(Clone, Debug, Default)]
struct Screens {
    /// Each usercmd, and where what was drawn begins, among all that ever was.
    of_command: VecDeque<(u32, usize)>,
    drawn: VecDeque<(EntityId, Vec3)>,
    /// How much has been forgotten.
    forgotten: usize,
}

impl Views {
    pub(super) fn new(players: usize) -> Views {
        Views { rows: Writer::default(), screens: vec![Screens::default(); players] }
    }

    /// What was on the screen, in ascending order of entity.
    pub(super) fn push<B: Body>(
        &mut self,
        player: PlayerId,
        command: CommandSeq,
        drawn_at: Micros,
        screen: &[(EntityId, &Placed<B>)],
    ) {
        let screens = &mut self.screens[usize::from(player.0)];
        screens.of_command.push_back((command.0, screens.forgotten + screens.drawn.len()));
        for (entity, placed) in screen {
            let (angles, origin) = (placed.body.viewangles(), placed.body.origin());
            screens.drawn.push_back((*entity, origin));
            self.rows.push(Row {
                player: player.0.into(),
                command: command.0,
                drawn_at_us: placed.by.map_or(drawn_at, |by| by.at).0,
                entity: entity.0.into(),
                origin,
                pitch: angles.x,
                yaw: angles.y,
                how: placed.how as u8,
                category: placed.by.map(|by| by.category as u8),
            });
        }
    }

    /// Forgets what was on screens so long ago that its usercmds will not be run.
    pub(super) fn forget(&mut self) {
        for screens in &mut self.screens {
            while screens.of_command.len() > SCREENS {
                screens.forget_first();
            }
        }
    }

    /// A usercmd was run, and all before it: nobody asks any more for what was on the screen then.
    pub(super) fn ran(&mut self, player: PlayerId, command: CommandSeq) {
        let screens = &mut self.screens[usize::from(player.0)];
        while screens.of_command.front().is_some_and(|(seq, _)| *seq < command.0) {
            screens.forget_first();
        }
    }

    /// Who was drawn on a player's screen while a usercmd was made, and where.
    pub(super) fn of(&self, player: PlayerId, command: CommandSeq) -> impl Iterator<Item = (EntityId, Vec3)> + '_ {
        let Screens { of_command, drawn, forgotten } = &self.screens[usize::from(player.0)];
        let range = match of_command.binary_search_by_key(&command.0, |(seq, _)| *seq) {
            Ok(index) => {
                let end = of_command.get(index + 1).map_or(drawn.len(), |(_, start)| start - forgotten);
                of_command[index].1 - forgotten..end
            }
            Err(_) => 0..0,
        };
        drawn.range(range).copied()
    }

    pub(super) fn rows(&self) -> usize {
        self.rows.rows()
    }

    /// The rows so far.
    pub(super) fn take(&mut self) -> Table {
        self.rows.take(Vec::new())
    }
}

impl Screens {
    fn forget_first(&mut self) {
        let Some((_, start)) = self.of_command.pop_front() else { return };
        let end = self.of_command.front().map_or(self.forgotten + self.drawn.len(), |(_, start)| *start);
        self.drawn.drain(..end - start);
        self.forgotten = end;
    }
}
