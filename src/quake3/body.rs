//! Every entity of a recording as one kind of body, whose cells are the fields that the protocol sends: a player's own
//! playerState, or the entityState that others are told. What both have stands once.

use glam::Vec3;

use super::protocol::{
    ENTITY, ENTITY_CELLS, EntityCells, LIST_LENGTH, PLAYER, PLAYER_CELLS, PLAYER_LISTS, PlayerCells, Wire, entity,
    is_same, player, player_list,
};
use super::trajectory;
use crate::game::{BadCells, Body, CellKind, Class, ClassId, Field, Meaning, Scope};

/// What every body has: name, kind, meaning.
#[rustfmt::skip]
const HEAD: [(&str, CellKind, Scope, Meaning); 12] = [
    ("origin.x", CellKind::F32, Scope::Movement, Meaning::Position),
    ("origin.y", CellKind::F32, Scope::Movement, Meaning::Position),
    ("origin.z", CellKind::F32, Scope::Movement, Meaning::Position),
    ("velocity.x", CellKind::F32, Scope::Movement, Meaning::Velocity),
    ("velocity.y", CellKind::F32, Scope::Movement, Meaning::Velocity),
    ("velocity.z", CellKind::F32, Scope::Movement, Meaning::Velocity),
    ("viewangles.x", CellKind::F32, Scope::Status, Meaning::Angle),
    ("viewangles.y", CellKind::F32, Scope::Status, Meaning::Angle),
    ("viewangles.z", CellKind::F32, Scope::Status, Meaning::Angle),
    ("teleports", CellKind::U32, Scope::Status, Meaning::Counter),
    ("alive", CellKind::U32, Scope::Status, Meaning::Flag),
    ("own", CellKind::U32, Scope::Status, Meaning::Flag),
];
const VELOCITY: usize = 3;
const VIEWANGLES: usize = 6;
const TELEPORTS: usize = 9;
const ALIVE: usize = 10;
const OWN: usize = 11;

/// The cell of a body that each cell of a playerState is, and of an entityState; and how many cells there are.
const PLAYER_AT: [usize; PLAYER_CELLS] = places().0;
const ENTITY_AT: [usize; ENTITY_CELLS] = places().1;
const CELLS: usize = places().2;

const fn places() -> ([usize; PLAYER_CELLS], [usize; ENTITY_CELLS], usize) {
    let mut next = HEAD.len();
    let mut players = [0; PLAYER_CELLS];
    let mut index = 0;
    while index < PLAYER_CELLS {
        players[index] = match index < PLAYER.len() {
            true => head_place(PLAYER[index].0),
            false => HEAD.len(),
        };
        if players[index] == HEAD.len() {
            players[index] = next;
            next += 1;
        }
        index += 1;
    }
    let mut entities = [0; ENTITY_CELLS];
    index = 0;
    while index < ENTITY_CELLS {
        let mut same = 0;
        while same < PLAYER.len() && !is_same(PLAYER[same].0, ENTITY[index].0) {
            same += 1;
        }
        entities[index] = next;
        if same < PLAYER.len() {
            entities[index] = players[same];
        } else {
            next += 1;
        }
        index += 1;
    }
    (players, entities, next)
}

const fn head_place(name: &str) -> usize {
    let mut index = 0;
    while index < HEAD.len() && !is_same(HEAD[index].0, name) {
        index += 1;
    }
    index
}

/// A player or any other entity. Cells that it has no use for are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyRow([u32; CELLS]);

impl Default for BodyRow {
    fn default() -> BodyRow {
        BodyRow([0; CELLS])
    }
}

/// A bit of `e_flags`: a body that lies there.
const DEAD: u32 = 1;
/// A bit of `e_flags` that changes whenever the body is put elsewhere.
const TELEPORT: u32 = 4;
/// A `pm_type`: the player is dead.
const PM_DEAD: u32 = 3;

impl BodyRow {
    /// A player's own.
    pub(crate) fn of_player(cells: &PlayerCells) -> BodyRow {
        let mut body = BodyRow::default();
        for (place, cell) in PLAYER_AT.iter().zip(cells) {
            body.0[*place] = *cell;
        }
        body.0[OWN] = 1;
        body.0[TELEPORTS] = cells[player("e_flags")] & TELEPORT;
        body.0[ALIVE] = u32::from(cells[player("pm_type")] != PM_DEAD);
        body
    }

    /// What others are told of an entity, at a server time in ms.
    pub(crate) fn of_entity(cells: &EntityCells, server_time: i32) -> BodyRow {
        let mut body = BodyRow::default();
        for (place, cell) in ENTITY_AT.iter().zip(cells) {
            body.0[*place] = *cell;
        }
        let (origin, velocity) = trajectory::place(cells, server_time);
        body.put(0, origin);
        body.put(VELOCITY, velocity);
        body.put(VIEWANGLES, trajectory::angles(cells, server_time));
        body.0[TELEPORTS] = cells[entity("e_flags")] & TELEPORT;
        body.0[ALIVE] = u32::from(cells[entity("e_flags")] & DEAD == 0);
        body
    }

    /// A player's cell, by its place among [`PlayerCells`].
    #[cfg(test)]
    pub(crate) fn player(&self, cell: usize) -> u32 {
        self.0[PLAYER_AT[cell]]
    }

    /// An entity's cell, by its place among [`EntityCells`].
    #[cfg(test)]
    pub(crate) fn entity(&self, cell: usize) -> u32 {
        self.0[ENTITY_AT[cell]]
    }

    /// Whether it is a playerState.
    pub(crate) fn is_own(&self) -> bool {
        self.0[OWN] != 0
    }

    pub(crate) fn get(&self, place: usize) -> Vec3 {
        Vec3::from_array([0, 1, 2].map(|axis| f32::from_bits(self.0[place + axis])))
    }

    pub(crate) fn put(&mut self, place: usize, value: Vec3) {
        for (cell, value) in self.0[place..].iter_mut().zip(value.to_array()) {
            *cell = value.to_bits();
        }
    }

    /// The classes of logs: what a player is told of himself, and what all are told of others.
    pub(crate) fn classes() -> Vec<Class> {
        let all = BodyRow::fields();
        let of = |places: &[usize]| {
            let head = 0..HEAD.len();
            let rest = places.iter().copied().filter(|place| *place >= HEAD.len());
            head.chain(rest).map(|place| all[place].clone()).collect()
        };
        vec![Class::new("player", of(&PLAYER_AT)), Class::new("entity", of(&ENTITY_AT))]
    }

    /// Its place among the classes.
    pub(crate) fn class(&self) -> ClassId {
        ClassId(if self.is_own() { 0 } else { 1 })
    }

    /// Its cells as its class has them.
    pub(crate) fn row(&self) -> Vec<u32> {
        let places: &[usize] = if self.is_own() { &PLAYER_AT } else { &ENTITY_AT };
        let rest = places.iter().filter(|place| **place >= HEAD.len()).map(|place| self.0[*place]);
        self.0[..HEAD.len()].iter().copied().chain(rest).collect()
    }
}

impl Body for BodyRow {
    const CELLS: usize = CELLS;

    fn fields() -> Vec<Field> {
        let none = || Field::new("", CellKind::U32, Scope::Status);
        let mut fields: Vec<Field> = std::iter::repeat_with(none).take(CELLS).collect();
        for (place, (name, kind, scope, meaning)) in HEAD.iter().enumerate() {
            fields[place] = Field::new(*name, *kind, *scope).meaning(*meaning);
        }
        let players = PLAYER_AT.iter().zip(&PLAYER);
        for (place, (name, wire, meaning)) in players.chain(ENTITY_AT.iter().zip(&ENTITY)) {
            if fields[*place].name.is_empty() {
                fields[*place] = Field::new(*name, kind_of(*wire), Scope::Status).meaning(*meaning);
            }
        }
        for (list, (name, wire)) in PLAYER_LISTS.iter().enumerate() {
            for index in 0..LIST_LENGTH {
                let place = PLAYER_AT[player_list(list) + index];
                fields[place] = Field::new(format!("{name}.{index}"), kind_of(*wire), Scope::Status);
            }
        }
        fields
    }

    fn write(&self, cells: &mut [u32]) {
        cells.copy_from_slice(&self.0);
    }

    fn read(cells: &[u32]) -> Result<BodyRow, BadCells> {
        let what = || "the number of cells of a body".to_owned();
        let cells = cells.try_into().map_err(|_| BadCells { what: what(), found: cells.len() as u32 })?;
        Ok(BodyRow(cells))
    }

    fn origin(&self) -> Vec3 {
        self.get(0)
    }

    fn velocity(&self) -> Vec3 {
        self.get(VELOCITY)
    }

    fn viewangles(&self) -> Vec3 {
        self.get(VIEWANGLES)
    }

    fn moved_to(&self, origin: Vec3) -> BodyRow {
        let mut moved = *self;
        moved.put(0, origin);
        moved
    }

    fn teleports(&self) -> u32 {
        self.0[TELEPORTS]
    }

    fn is_alive(&self) -> bool {
        self.0[ALIVE] != 0
    }

    fn strip_client_only(&mut self) {}

    fn adopt_client_only(&mut self, _predicted: &BodyRow) {}
}

fn kind_of(wire: Wire) -> CellKind {
    match wire {
        Wire::Float => CellKind::F32,
        Wire::Bits(_) => CellKind::U32,
        Wire::Signed(_) => CellKind::I32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_become_bodies_and_come_back() {
        let player: PlayerCells = std::array::from_fn(|cell| 1000 + cell as u32);
        let body = BodyRow::of_player(&player);
        assert!((0..PLAYER_CELLS).all(|cell| body.player(cell) == player[cell]));
        let entity: EntityCells = std::array::from_fn(|cell| 3000 + cell as u32);
        let body = BodyRow::of_entity(&entity, 0);
        assert!((0..ENTITY_CELLS).all(|cell| body.entity(cell) == entity[cell]));
        let fields = BodyRow::fields();
        let mut names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), fields.len(), names[0].is_empty()), (CELLS, CELLS, false), "each name once");
        for (class, body) in BodyRow::classes().iter().zip([BodyRow::of_player(&player), body]) {
            assert_eq!((class.fields.len(), &*class.fields[1].name), (body.row().len(), "origin.y"));
        }
    }
}
