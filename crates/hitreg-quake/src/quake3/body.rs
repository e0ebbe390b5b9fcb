//! A body that covers every entity of a recording. Its cells are the fields that the protocol sends: of a player's own
//! playerState, or of the entityState that other players receive. Fields that both have share one cell.

use glam::{DVec3, Vec3};

use super::movement::{PmoveSettings, Quake3PlayerState, flag, kind};
use super::protocol::{
    ENTITY, ENTITY_CELLS, EntityCells, FieldEncoding, LIST_LENGTH, PLAYER, PLAYER_CELLS, PLAYER_LISTS, PlayerCells,
    Quake3Snapshot, Quake3Usercmd, entity, is_same, player, player_list,
};
use hitreg_log::usercmd::Input;
use hitreg_netcode::game::{
    BadCells, Body, CellKind, Class, ClassId, FieldSchema, GameInput as _, Meaning, Scope, input,
};

/// Fields of every body: name, type, scope and meaning.
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

/// Body cell of each playerState cell and of each entityState cell, and the number of body cells.
const PLAYER_AT: [usize; PLAYER_CELLS] = places().0;
const ENTITY_AT: [usize; ENTITY_CELLS] = places().1;
const CELLS: usize = SETTINGS_AT + SETTINGS.len();

/// Fields of a player's own state: the server's settings of movement, which it may change during a level.
const SETTINGS: [(&str, Meaning); 4] = [
    ("pmove_fixed_ms", Meaning::Plain),
    ("pmove_float", Meaning::Flag),
    ("no_bunny", Meaning::Flag),
    ("fast_water", Meaning::Flag),
];
const SETTINGS_AT: usize = places().2;

const fn places() -> ([usize; PLAYER_CELLS], [usize; ENTITY_CELLS], usize) {
    let mut next = HEAD.len();
    let mut players = [0; PLAYER_CELLS];
    let mut index = 0;
    while index < PLAYER_CELLS {
        players[index] = if index < PLAYER.len() { head_place(PLAYER[index].0) } else { HEAD.len() };
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

/// The state of a player or another entity. Unused cells are 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quake3Body([u32; CELLS]);

impl Default for Quake3Body {
    fn default() -> Quake3Body {
        Quake3Body([0; CELLS])
    }
}

/// Bit of `e_flags`: a dead body.
const DEAD: u32 = 1;
/// Bit of `e_flags` that toggles with each teleport.
const TELEPORT: u32 = 4;
/// Number of bits of a body's `teleports` below the number of earlier clients.
const TELEPORT_BITS: u32 = 3;

const DELTA_ANGLES: [usize; 3] = [player("delta_angles.x"), player("delta_angles.y"), player("delta_angles.z")];
/// Cells among the powerups.
const FLIGHT: usize = player_list(3) + 6;
const INVULNERABILITY: usize = player_list(3) + 14;
/// Limit of coordinates and speeds, above any real value, in units and units/s.
const COORDINATE_MAX: f32 = 1e6;

impl Quake3Body {
    /// Returns the body of a player's own state under the server's settings. `previous` is the number of earlier clients
    /// in its slot.
    pub(crate) fn of_player(cells: &PlayerCells, settings: PmoveSettings, previous: u32) -> Quake3Body {
        let mut body = Quake3Body::default();
        let PmoveSettings { float, fixed_ms, no_bunny, fast_water } = settings;
        body.0[SETTINGS_AT..].copy_from_slice(&[fixed_ms as u32, float.into(), no_bunny.into(), fast_water.into()]);
        for (place, cell) in PLAYER_AT.iter().zip(cells) {
            body.0[*place] = *cell;
        }
        body.0[OWN] = 1;
        body.0[TELEPORTS] = teleports(cells[player("e_flags")], previous);
        body.0[ALIVE] = u32::from(cells[player("pm_type")] < kind::SPECTATOR && !body.is_followed());
        body
    }

    /// Returns the body of an entity as other players receive it, at a server time in ms. `previous` is the number of
    /// earlier clients in its slot.
    pub(crate) fn of_entity(cells: &EntityCells, server_time: i32, previous: u32) -> Quake3Body {
        let mut body = Quake3Body::default();
        for (place, cell) in ENTITY_AT.iter().zip(cells) {
            body.0[*place] = *cell;
        }
        let (origin, velocity) = place_at(cells, server_time);
        body.put(0, origin);
        body.put(VELOCITY, velocity);
        body.put(VIEWANGLES, angles_at(cells, server_time));
        body.0[TELEPORTS] = teleports(cells[entity("e_flags")], previous);
        body.0[ALIVE] = u32::from(cells[entity("e_flags")] & DEAD == 0);
        body
    }

    /// Returns a player's cell, by its index in [`PlayerCells`].
    pub(crate) fn player(&self, cell: usize) -> u32 {
        self.0[PLAYER_AT[cell]]
    }

    /// Returns an entity's cell, by its index in [`EntityCells`].
    pub(crate) fn entity(&self, cell: usize) -> u32 {
        self.0[ENTITY_AT[cell]]
    }

    /// Returns whether it is a playerState.
    pub(crate) fn is_own(&self) -> bool {
        self.0[OWN] != 0
    }

    /// Returns the number of earlier clients in the player's slot.
    pub(crate) fn previous_clients(&self) -> u32 {
        self.0[TELEPORTS] >> TELEPORT_BITS
    }

    /// Returns whether it is the state of a player whom a spectator follows, in place of the spectator's own.
    fn is_followed(&self) -> bool {
        self.is_own() && self.player(player("pm_flags")) & flag::FOLLOW != 0
    }

    /// Returns the number of the player whose state it is.
    pub(crate) fn client(&self) -> u32 {
        self.player(player("client_num"))
    }

    /// Returns whether position and velocity are finite and within limits, so that movement can run.
    pub(crate) fn is_finite(&self) -> bool {
        are_near((self.position_f32(), self.velocity()))
    }

    pub(crate) fn set_velocity(&mut self, velocity: Vec3) {
        self.put(VELOCITY, velocity);
    }

    pub(crate) fn set_viewangles(&mut self, angles: Vec3) {
        self.put(VIEWANGLES, angles);
    }

    /// Returns the settings of movement of a player's own body.
    pub(crate) fn settings(&self) -> PmoveSettings {
        let [fixed_ms, flags @ ..] = [0, 1, 2, 3].map(|setting| self.0[SETTINGS_AT + setting]);
        let [float, no_bunny, fast_water] = flags.map(|flag| flag != 0);
        PmoveSettings { float, fixed_ms: fixed_ms as i32, no_bunny, fast_water }
    }

    /// Returns a player's own body in the form that movement uses.
    pub(crate) fn player_state(&self) -> Quake3PlayerState {
        let number = |cell: usize| self.player(cell) as i32;
        let grapple = [player("grapple_point.x"), player("grapple_point.y"), player("grapple_point.z")];
        Quake3PlayerState {
            command_time: number(player("command_time")),
            origin: self.position_f32(),
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

    /// Returns the body after movement changed it to `state`.
    pub(crate) fn moved(&self, state: &Quake3PlayerState) -> Quake3Body {
        let mut body = self.moved_to(state.origin.as_dvec3());
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

    /// Returns the classes of logs: a player's own state, and the state that other players receive.
    pub(crate) fn classes() -> Vec<Class> {
        let all = Quake3Body::fields();
        let of = |is_own| class_places(is_own).map(|place| all[place].clone()).collect();
        vec![Class::new("player", of(true)), Class::new("entity", of(false))]
    }

    /// Returns the index of its class.
    pub(crate) fn class(&self) -> ClassId {
        ClassId(if self.is_own() { 0 } else { 1 })
    }

    /// Returns its cells in the order of its class.
    pub(crate) fn row(&self) -> Vec<u32> {
        class_places(self.is_own()).map(|place| self.0[place]).collect()
    }
}

/// Returns the body cells of the class `player` (`is_own`) or `entity`.
fn class_places(is_own: bool) -> impl Iterator<Item = usize> {
    let (places, settings): (&[usize], _) = match is_own {
        true => (&PLAYER_AT, SETTINGS_AT..CELLS),
        false => (&ENTITY_AT, CELLS..CELLS),
    };
    (0..HEAD.len()).chain(places.iter().copied().filter(|place| *place >= HEAD.len())).chain(settings)
}

impl Body for Quake3Body {
    const CELLS: usize = CELLS;

    fn fields() -> Vec<FieldSchema> {
        let none = || FieldSchema::new("", CellKind::U32, Scope::Status);
        let mut fields: Vec<FieldSchema> = std::iter::repeat_with(none).take(CELLS).collect();
        for (place, (name, kind, scope, meaning)) in HEAD.iter().enumerate() {
            fields[place] = FieldSchema::new(*name, *kind, *scope).meaning(*meaning);
        }
        let players = PLAYER_AT.iter().zip(&PLAYER);
        for (place, (name, wire, meaning)) in players.chain(ENTITY_AT.iter().zip(&ENTITY)) {
            if fields[*place].name.is_empty() {
                fields[*place] = FieldSchema::new(*name, kind_of(*wire), Scope::Status).meaning(*meaning);
            }
        }
        for (place, (name, meaning)) in (SETTINGS_AT..).zip(SETTINGS) {
            fields[place] = FieldSchema::new(name, CellKind::U32, Scope::Status).meaning(meaning);
        }
        for (list, (name, wire)) in PLAYER_LISTS.iter().enumerate() {
            for index in 0..LIST_LENGTH {
                let place = PLAYER_AT[player_list(list) + index];
                fields[place] = FieldSchema::new(format!("{name}.{index}"), kind_of(*wire), Scope::Status);
            }
        }
        fields
    }

    fn write(&self, cells: &mut [u32]) {
        cells.copy_from_slice(&self.0);
    }

    fn read(cells: &[u32]) -> Result<Quake3Body, BadCells> {
        let what = || "the number of cells of a body".to_owned();
        let cells = cells.try_into().map_err(|_| BadCells { what: what(), found: cells.len() as u32 })?;
        Ok(Quake3Body(cells))
    }

    fn position(&self) -> DVec3 {
        self.position_f32().as_dvec3()
    }

    fn position_f32(&self) -> Vec3 {
        self.get(0)
    }

    fn velocity(&self) -> Vec3 {
        self.get(VELOCITY)
    }

    fn viewangles(&self) -> Vec3 {
        self.get(VIEWANGLES)
    }

    fn moved_to(&self, position: DVec3) -> Quake3Body {
        let mut moved = *self;
        moved.put(0, position.as_vec3());
        moved
    }

    fn teleports(&self) -> u32 {
        self.0[TELEPORTS]
    }

    /// A spectator who follows another player has no body.
    fn is_absent(&self) -> bool {
        self.is_followed()
    }

    fn is_alive(&self) -> bool {
        self.0[ALIVE] != 0
    }

    fn strip_client_only(&mut self) {}

    fn adopt_client_only(&mut self, _predicted: &Quake3Body) {}
}

/// Returns a number that changes with each teleport, and with each client of a slot.
fn teleports(e_flags: u32, previous: u32) -> u32 {
    e_flags & TELEPORT | previous << TELEPORT_BITS
}

fn kind_of(wire: FieldEncoding) -> CellKind {
    match wire {
        FieldEncoding::Float => CellKind::F32,
        FieldEncoding::Bits(_) => CellKind::U32,
        FieldEncoding::Signed(_) => CellKind::I32,
    }
}

const LINEAR: u32 = 2;
const LINEAR_STOP: u32 = 3;
const SINE: u32 = 4;
const GRAVITY: u32 = 5;
const GRAVITY_UNITS: f32 = 800.0;

/// Returns position and velocity at a server time in ms.
fn place_at(cells: &EntityCells, server_time: i32) -> (Vec3, Vec3) {
    let read = |at: [usize; 3]| Vec3::from_array(at.map(|cell| f32::from_bits(cells[cell])));
    let base = read([entity("pos.base.x"), entity("pos.base.y"), entity("pos.base.z")]);
    let delta = read([entity("pos.delta.x"), entity("pos.delta.y"), entity("pos.delta.z")]);
    let time = (cells[entity("pos.time")], cells[entity("pos.duration")]);
    evaluate(cells[entity("pos.kind")], time, base, delta, server_time)
}

/// Returns whether position and velocity are finite and within limits.
fn are_near((origin, velocity): (Vec3, Vec3)) -> bool {
    [origin, velocity].iter().all(|vector| vector.is_finite() && vector.abs().max_element() < COORDINATE_MAX)
}

/// Returns the first entity of a snapshot for player `own` that has an impossible position or velocity.
pub(crate) fn misplaced_entity(snapshot: &Quake3Snapshot, own: u16) -> Option<u16> {
    if !Quake3Body::of_player(&snapshot.player, PmoveSettings::default(), 0).is_finite() {
        return Some(own);
    }
    let mut others = snapshot.entities.iter().filter(|(number, _)| *number != own);
    others.find(|(_, cells)| !are_near(place_at(cells, snapshot.server_time))).map(|(number, _)| *number)
}

/// Returns the angles at a server time in ms, in degrees.
fn angles_at(cells: &EntityCells, server_time: i32) -> Vec3 {
    let read = |at: [usize; 3]| Vec3::from_array(at.map(|cell| f32::from_bits(cells[cell])));
    let base = read([entity("apos.base.x"), entity("apos.base.y"), entity("apos.base.z")]);
    let delta = read([entity("apos.delta.x"), entity("apos.delta.y"), entity("apos.delta.z")]);
    let time = (cells[entity("apos.time")], cells[entity("apos.duration")]);
    evaluate(cells[entity("apos.kind")], time, base, delta, server_time).0
}

fn evaluate(kind: u32, (start, duration): (u32, u32), base: Vec3, delta: Vec3, server_time: i32) -> (Vec3, Vec3) {
    let passed_ms = server_time.wrapping_sub(start as i32);
    let passed_s = passed_ms as f32 * 0.001;
    match kind {
        LINEAR => (base + delta * passed_s, delta),
        LINEAR_STOP => {
            let whole_ms = duration as i32;
            let gone_s = passed_ms.min(whole_ms).max(0) as f32 * 0.001;
            let still = passed_ms >= whole_ms;
            (base + delta * gone_s, if still { Vec3::ZERO } else { delta })
        }
        SINE => {
            let turn = std::f32::consts::TAU * passed_ms as f32 / (duration as i32).max(1) as f32;
            let rate = std::f32::consts::TAU * 1000.0 / (duration as i32).max(1) as f32;
            (base + delta * libm::sinf(turn), delta * libm::cosf(turn) * rate)
        }
        GRAVITY => {
            let fallen = Vec3::new(0.0, 0.0, 0.5 * GRAVITY_UNITS * passed_s * passed_s);
            (base + delta * passed_s - fallen, delta - Vec3::new(0.0, 0.0, GRAVITY_UNITS * passed_s))
        }
        // At rest, or updated by each snapshot, as for players.
        _ => (base, delta),
    }
}

input! {
    /// A Quake III usercmd.
    pub struct Quake3Input {
        msec: u8,
        viewangles: Vec3,
        forwardmove: f32,
        sidemove: f32,
        upmove: f32,
        buttons: u16,
        /// The selected weapon.
        impulse: u8,
        /// The server time in the usercmd as sent. Movement runs up to it.
        sent_time_ms: i32 as Time,
    }
}

/// Converts a usercmd. Angles are 65,536ths of a turn, which degrees represent exactly.
pub(crate) fn input_of(cmd: &Quake3Usercmd, msec: i64) -> Input {
    let input = Quake3Input {
        msec: msec.clamp(0, 255) as u8,
        viewangles: Vec3::from_array(cmd.angles.map(|angle| f32::from(angle as i16) * (360.0 / 65_536.0))),
        forwardmove: f32::from(cmd.forward),
        sidemove: f32::from(cmd.right),
        upmove: f32::from(cmd.up),
        buttons: cmd.buttons,
        impulse: cmd.weapon,
        sent_time_ms: cmd.server_time,
    };
    input.write()
}

/// Converts a usercmd back to the protocol's units, which movement uses.
pub(crate) fn command_of(input: &Quake3Input) -> Quake3Usercmd {
    let angle = |degrees: f32| libm::roundf(degrees * (65_536.0 / 360.0)) as i32 as u16;
    Quake3Usercmd {
        server_time: input.sent_time_ms,
        angles: input.viewangles.to_array().map(angle),
        forward: input.forwardmove as i8,
        right: input.sidemove as i8,
        up: input.upmove as i8,
        buttons: input.buttons,
        weapon: input.impulse,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_survive_a_round_trip_through_bodies() {
        let player: PlayerCells = std::array::from_fn(|cell| 1000 + cell as u32);
        let settings = PmoveSettings { float: true, fixed_ms: 9, no_bunny: false, fast_water: true };
        let body = Quake3Body::of_player(&player, settings, 2);
        assert_eq!(body.settings(), settings);
        assert_eq!((body.previous_clients(), body.teleports() & 7), (2, player[super::player("e_flags")] & TELEPORT));
        assert!((0..PLAYER_CELLS).all(|cell| body.player(cell) == player[cell]));
        let entity: EntityCells = std::array::from_fn(|cell| 3000 + cell as u32);
        let body = Quake3Body::of_entity(&entity, 0, 2);
        assert!((0..ENTITY_CELLS).all(|cell| body.entity(cell) == entity[cell]));
        let fields = Quake3Body::fields();
        let mut names: Vec<&str> = fields.iter().map(|field| &*field.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!((names.len(), fields.len(), names[0].is_empty()), (CELLS, CELLS, false), "each name once");
        for (class, body) in Quake3Body::classes().iter().zip([Quake3Body::of_player(&player, settings, 2), body]) {
            assert_eq!((class.fields.len(), &*class.fields[1].name), (body.row().len(), "origin.y"));
        }
    }

    #[test]
    fn positions_follow_from_trajectories() {
        let (base, delta) = (Vec3::new(1.0, 2.0, 3.0), Vec3::new(10.0, 0.0, -20.0));
        let at = |kind, ms| evaluate(kind, (1000, 2000), base, delta, ms).0;
        assert_eq!(at(0, 9000), base);
        assert_eq!(at(LINEAR, 1500), Vec3::new(6.0, 2.0, -7.0));
        assert_eq!(at(LINEAR_STOP, 9000), Vec3::new(21.0, 2.0, -37.0), "it stops after its time");
        assert_eq!(at(GRAVITY, 2000), Vec3::new(11.0, 2.0, -417.0));
        assert!((at(SINE, 1500).x - 11.0).abs() < 1e-4, "a quarter of the way is its end");
    }
}
