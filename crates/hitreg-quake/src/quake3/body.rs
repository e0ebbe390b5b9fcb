//! Every entity of a recording as one kind of body, whose cells are the fields that the protocol sends: a player's own
//! playerState, or the entityState that others are told. What both have stands once.

use glam::Vec3;

use super::movement::PlayerState;
use super::protocol::{
    ENTITY, ENTITY_CELLS, EntityCells, LIST_LENGTH, PLAYER, PLAYER_CELLS, PLAYER_LISTS, PlayerCells, Wire, entity,
    is_same, player, player_list,
};
use super::trajectory;
use hitreg_netcode::game::{BadCells, Body, CellKind, Class, ClassId, Field, Meaning, Scope};

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

const DELTA_ANGLES: [usize; 3] = [player("delta_angles.x"), player("delta_angles.y"), player("delta_angles.z")];
/// Among the powerups.
const FLIGHT: usize = player_list(3) + 6;
const INVULNERABILITY: usize = player_list(3) + 14;
/// Farther than any map reaches, and faster than anything moves.
const FARTHEST: f32 = 1e6;

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
    pub(crate) fn player(&self, cell: usize) -> u32 {
        self.0[PLAYER_AT[cell]]
    }

    /// An entity's cell, by its place among [`EntityCells`].
    pub(crate) fn entity(&self, cell: usize) -> u32 {
        self.0[ENTITY_AT[cell]]
    }

    /// Whether it is a playerState.
    pub(crate) fn is_own(&self) -> bool {
        self.0[OWN] != 0
    }

    /// Whose state it is: a player who watches is told that of somebody else.
    pub(crate) fn client(&self) -> u32 {
        self.player(player("client_num"))
    }

    /// False for places and speeds that are none, on which movement could not be run.
    pub(crate) fn is_finite(&self) -> bool {
        let near = |vector: Vec3| vector.is_finite() && vector.abs().max_element() < FARTHEST;
        near(self.origin()) && near(self.velocity())
    }

    pub(crate) fn set_velocity(&mut self, velocity: Vec3) {
        self.put(VELOCITY, velocity);
    }

    pub(crate) fn set_viewangles(&mut self, angles: Vec3) {
        self.put(VIEWANGLES, angles);
    }

    /// A player's own body as movement knows it.
    pub(crate) fn player_state(&self) -> PlayerState {
        let number = |cell: usize| self.player(cell) as i32;
        let grapple = [player("grapple_point.x"), player("grapple_point.y"), player("grapple_point.z")];
        PlayerState {
            command_time: number(player("command_time")),
            origin: self.origin(),
            velocity: self.velocity(),
            viewangles: self.viewangles(),
            delta_angles: DELTA_ANGLES.map(|cell| self.player(cell) as u16),
            kind: self.player(player("pm_type")),
            flags: self.player(player("pm_flags")),
            time_ms: number(player("pm_time")),
            speed: number(player("speed")),
            gravity: number(player("gravity")),
            ground: self.player(player("ground_entity_num")),
            viewheight: number(player("viewheight")),
            health: number(player_list(0)),
            flies: self.player(FLIGHT) != 0,
            is_invulnerable: self.player(INVULNERABILITY) != 0,
            grapple: Vec3::from_array(grapple.map(|cell| f32::from_bits(self.player(cell)))),
        }
    }

    /// The same body after movement has led it to `state`.
    pub(crate) fn moved(&self, state: &PlayerState) -> BodyRow {
        let mut body = self.moved_to(state.origin);
        body.set_velocity(state.velocity);
        body.set_viewangles(state.viewangles);
        let numbers = [
            (player("command_time"), state.command_time as u32),
            (player("pm_flags"), state.flags),
            (player("pm_time"), state.time_ms as u32),
            (player("ground_entity_num"), state.ground),
            (player("viewheight"), state.viewheight as u32),
        ];
        let turned = DELTA_ANGLES.into_iter().zip(state.delta_angles.map(u32::from));
        for (cell, value) in numbers.into_iter().chain(turned) {
            body.0[PLAYER_AT[cell]] = value;
        }
        body
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
