//! The tables of what clients drew: `views` and `variables`.

use std::collections::VecDeque;
use std::iter::repeat_n;
use std::ops::Range;

use super::output::LOOK_BACK_MIN;
use super::shots::ScreenEntity;
use super::tables::value;
use crate::game::{Body, Category, FieldSchema, Game, PlacedBody};
use hitreg_log::record::cells_of;
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::Table;
use hitreg_log::trace::schema::{variables, views};
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId};

/// The most unrun usercmds per player whose screens are kept, some minutes' worth.
const SCREENS_MAX: usize = 1 << 14;

/// The drawn entities in ascending order of id: the others, and the own avatar where it is drawn by category.
pub(super) struct DrawnScreen<'a, B> {
    /// The others before the own avatar; none without it.
    before: &'a [(EntityId, PlacedBody<B>)],
    own: Option<(EntityId, &'a PlacedBody<B>)>,
    after: &'a [(EntityId, PlacedBody<B>)],
}

impl<'a, B> DrawnScreen<'a, B> {
    pub(super) fn new(
        own: Option<(EntityId, &'a PlacedBody<B>)>,
        others: &'a [(EntityId, PlacedBody<B>)],
    ) -> DrawnScreen<'a, B> {
        let place = own.map_or(0, |(own, _)| others.partition_point(|(entity, _)| *entity < own));
        let (before, after) = others.split_at(place);
        DrawnScreen { before, own, after }
    }

    fn len(&self) -> usize {
        self.before.len() + usize::from(self.own.is_some()) + self.after.len()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (EntityId, &'a PlacedBody<B>)> {
        let each = |(entity, placed): &'a (EntityId, PlacedBody<B>)| (*entity, placed);
        self.before.iter().map(each).chain(self.own).chain(self.after.iter().map(each))
    }

    /// Appends one value per drawn entity to a column.
    fn put<T>(&self, to: &mut impl Extend<T>, value: impl Fn(EntityId, &PlacedBody<B>) -> T) {
        // Extends of known length are several times as fast as a chain.
        if let Some((entity, placed)) = self.own {
            to.extend(self.before.iter().map(|(entity, placed)| value(*entity, placed)));
            to.extend([value(entity, placed)]);
        }
        to.extend(self.after.iter().map(|(entity, placed)| value(*entity, placed)));
    }
}

/// The `views` table: where each client drew each other entity. With drawing by category, it also has the category and
/// the own avatar.
#[derive(Debug)]
pub(super) struct ViewTable {
    pub(super) rows: views::Writer,
    /// Whether the rows have the drawn bodies' teleport counts. A body drawn ahead of its newest update may be gone
    /// from the server at the time for which it is drawn, and another body may have its number.
    pub(super) has_teleports: bool,
    /// Per player: the screens of its usercmds that have not run.
    screens: Vec<Screens>,
}

/// The recent screens of one player.
#[derive(Clone, Debug, Default)]
struct Screens {
    /// Each usercmd, and the start of its entities in the sequence of all entities ever drawn.
    of_command: VecDeque<(u32, usize)>,
    drawn: VecDeque<ScreenEntity>,
    /// The number of forgotten entities.
    forgotten: usize,
}

impl ViewTable {
    pub(super) fn new(players: usize) -> ViewTable {
        ViewTable { rows: views::Writer::default(), has_teleports: false, screens: vec![Screens::default(); players] }
    }

    /// Adds the rows of a screen, column by column, because views are by far the most rows.
    pub(super) fn push<B: Body>(
        &mut self,
        player: PlayerId,
        command: CommandSeq,
        drawn_at: Micros,
        screen: &DrawnScreen<'_, B>,
    ) {
        let (rows, count) = (&mut self.rows, screen.len());
        rows.make_room();
        rows.rows += count;
        rows.player.extend(repeat_n(u32::from(player.0), count));
        rows.command.extend(repeat_n(command.0, count));
        screen.put(&mut rows.drawn_at_us, |_, placed| placed.by.map_or(drawn_at, |by| by.at).0);
        screen.put(&mut rows.entity, |entity, _| u32::from(entity.0));
        let [x, y, z] = &mut rows.origin;
        screen.put(x, |_, placed| placed.body.position_f32().x);
        screen.put(y, |_, placed| placed.body.position_f32().y);
        screen.put(z, |_, placed| placed.body.position_f32().z);
        screen.put(&mut rows.pitch, |_, placed| placed.body.viewangles().x);
        screen.put(&mut rows.yaw, |_, placed| placed.body.viewangles().y);
        screen.put(&mut rows.how.codes, |_, placed| placed.how as u32);
        let none = rows.category.no_value();
        screen.put(&mut rows.category.codes, |_, placed| placed.by.map_or(none, |by| by.category as u32));
        if self.has_teleports {
            screen.put(&mut rows.teleports, |_, placed| Some(placed.body.teleports()));
        }
    }

    /// Remembers the screen of a usercmd until the usercmd runs.
    pub(super) fn remember<B: Body>(&mut self, player: PlayerId, command: CommandSeq, screen: &DrawnScreen<'_, B>) {
        let screens = &mut self.screens[usize::from(player.0)];
        screens.of_command.push_back((command.0, screens.forgotten + screens.drawn.len()));
        screen.put(&mut screens.drawn, |entity, placed| ScreenEntity {
            entity,
            position: placed.body.position(),
            teleports: placed.body.teleports(),
        });
    }

    /// Forgets the oldest screens beyond the limit.
    pub(super) fn forget(&mut self) {
        for screens in &mut self.screens {
            while screens.of_command.len() > SCREENS_MAX {
                screens.forget_first();
            }
        }
    }

    /// Forgets the screens of usercmds before one that ran.
    pub(super) fn ran(&mut self, player: PlayerId, command: CommandSeq) {
        let screens = &mut self.screens[usize::from(player.0)];
        while screens.of_command.front().is_some_and(|(seq, _)| *seq < command.0) {
            screens.forget_first();
        }
    }

    /// Forgets all screens of a player.
    pub(super) fn end(&mut self, player: PlayerId) {
        self.screens[usize::from(player.0)] = Screens::default();
    }

    /// Returns the entities that a player's screen drew for a usercmd.
    pub(super) fn of(&self, player: PlayerId, command: CommandSeq) -> impl Iterator<Item = ScreenEntity> + '_ {
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
}

impl Screens {
    fn forget_first(&mut self) {
        let Some((_, start)) = self.of_command.pop_front() else { return };
        let end = self.of_command.front().map_or(self.forgotten + self.drawn.len(), |(_, start)| *start);
        self.drawn.drain(..end - start);
        self.forgotten = end;
    }
}

/// The `variables` table: what a client drew of variables whose category differs from the category of their body's
/// position. `views` has the rows of positions. The table gets a row when such a variable changes on a player's
/// screen. An entity that was off screen for longer than [`LOOK_BACK_MIN`] counts as new, so a part of a session does
/// not depend on earlier screens.
#[derive(Debug, Default)]
pub(super) struct Variables {
    pub(super) rows: variables::Writer,
    /// What each player's screen shows of each entity.
    shown: SortedMap<(PlayerId, EntityId), OwnCategoryFields>,
}

/// The fields of one entity whose category differs from the category of its position.
#[derive(Debug)]
struct OwnCategoryFields {
    /// When the entity was on the screen last.
    seen: Micros,
    /// The body's teleport count; a change means a new appearance.
    teleports: u32,
    place: Category,
    /// The index and cells of each field, and its category.
    fields: Vec<(usize, Range<usize>, Category)>,
    /// The last shown number of each field; `None` before the first.
    last: Vec<Option<i64>>,
}

impl Variables {
    pub(super) fn push<G: Game>(
        &mut self,
        (player, at): (PlayerId, Micros),
        command: CommandSeq,
        entity: EntityId,
        fields: &[FieldSchema],
        placed: &PlacedBody<G::Body>,
    ) {
        // The client's own reactive entities have one category for all their variables.
        let Some(by) = placed.by.filter(|by| by.category != Category::Reactive) else { return };
        let body = &placed.body;
        let same = |shown: &OwnCategoryFields| {
            shown.teleports == body.teleports() && shown.place == by.category && at - shown.seen <= LOOK_BACK_MIN
        };
        let new = || OwnCategoryFields::of::<G>((entity == player.entity(), at), fields, body, by.category);
        let shown = self.shown.entry((player, entity)).or_insert_with(new);
        if !same(shown) {
            *shown = new();
        }
        shown.seen = at;
        if shown.fields.is_empty() {
            return;
        }
        let cells = body.to_cells();
        for ((index, place, category), last) in shown.fields.iter().zip(&mut shown.last) {
            let field = &fields[*index];
            let number = field.kind.number(&cells[place.clone()]);
            if last.replace(number) == Some(number) {
                continue;
            }
            self.rows.push(variables::Row {
                player: player.0.into(),
                command: command.0,
                entity: entity.0.into(),
                variable: &field.name,
                category: *category as u8,
                value: value(field.kind, number),
            });
        }
    }

    /// Takes the rows so far; `None` if nothing was drawn by category.
    pub(super) fn take(&mut self) -> Option<Table> {
        (!self.shown.is_empty()).then(|| self.rows.take(Vec::new()))
    }
}

impl OwnCategoryFields {
    fn of<G: Game>(
        (own, seen): (bool, Micros),
        fields: &[FieldSchema],
        body: &G::Body,
        place: Category,
    ) -> OwnCategoryFields {
        let categories =
            (0..).zip(cells_of(fields)).map(|(index, (field, cells))| (index, cells, G::category(body, own, field)));
        let fields: Vec<_> = categories.filter(|(_, _, category)| *category != place).collect();
        OwnCategoryFields { seen, teleports: body.teleports(), place, last: vec![None; fields.len()], fields }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use glam::{DVec3, Vec3};

    use crate::game::PlacementKind;
    use crate::rink::Skater;

    #[test]
    fn only_the_oldest_screens_are_dropped() {
        let mut views = ViewTable::new(1);
        let drawn = |x: u32| {
            let body = Skater { origin: Vec3::X * x as f32, ..Skater::default() };
            [(EntityId(3), PlacedBody::new(body, PlacementKind::Held))]
        };
        let push = |views: &mut ViewTable, command: u32| {
            views.remember(PlayerId(0), CommandSeq(command), &DrawnScreen::new(None, &drawn(command)));
            views.forget();
        };
        (0..SCREENS_MAX as u32).for_each(|command| push(&mut views, command));
        let on_screen =
            |views: &ViewTable, command: u32| views.of(PlayerId(0), CommandSeq(command)).collect::<Vec<_>>();
        let at = |x: f32| [ScreenEntity { entity: EntityId(3), position: DVec3::X * f64::from(x), teleports: 0 }];
        assert_eq!(on_screen(&views, 0), at(0.0), "as many as are kept");
        push(&mut views, SCREENS_MAX as u32);
        assert_eq!(on_screen(&views, 0), []);
        assert_eq!(on_screen(&views, 1), at(1.0));
        views.ran(PlayerId(0), CommandSeq(9_000));
        assert_eq!(on_screen(&views, 8_999), []);
        assert_eq!(on_screen(&views, 9_000), at(9_000.0));
    }
}
