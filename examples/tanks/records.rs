//! What a log of the game holds. Recording and replaying push the same records.

use hitreg::record::{CellKind, Class, ClassId, FieldSchema, Meaning, OwnValue, Scope, Session, TextCode, cells_of};
use hitreg::recorder::{Description, PushError, Stream};
use hitreg::units::{EntityId, Micros, Tick};
use hitreg::usercmd::Usercmd;

use super::{PLAYERS, Thing, ThingKind, World};

pub(crate) const GAME: &str = "tanks";
pub(crate) const FRICTION: f64 = 2.0;

const CLASSES: [(&str, ThingKind); 4] =
    [("shell", ThingKind::Shell), ("mine", ThingKind::Mine), ("crate", ThingKind::Crate), ("flag", ThingKind::Flag)];

fn position(axis: &str) -> FieldSchema {
    FieldSchema::new(format!("origin.{axis}"), CellKind::F64, Scope::Movement).meaning(Meaning::Position)
}

pub(crate) fn describe() -> Description {
    let field = |name, kind, scope| FieldSchema::new(name, kind, scope);
    let tank = vec![
        position("x"),
        position("y"),
        field("velocity.x", CellKind::F64, Scope::Movement).meaning(Meaning::Velocity),
        field("velocity.y", CellKind::F64, Scope::Movement).meaning(Meaning::Velocity),
        field("turret", CellKind::F64, Scope::Movement).meaning(Meaning::Angle),
        field("refire_ticks", CellKind::U32, Scope::Weapons),
        field("health", CellKind::I32, Scope::Status).in_unit("health points"),
        field("id", CellKind::U64, Scope::Status),
        field("weapon", CellKind::Text, Scope::Weapons),
    ];
    let mut about = Description::new(GAME)
        .tick_hz(50)
        .setting("tanks.friction", FRICTION.to_string())
        .map("plain", Vec::new())
        .y_down()
        .class(Class::new("tank", tank));
    for (name, _) in CLASSES {
        let velocity = ["velocity.x", "velocity.y"].map(|name| field(name, CellKind::F64, Scope::Movement));
        let status = ["owner", "command", "ticks_left"].map(|name| field(name, CellKind::U32, Scope::Status));
        let fields = [position("x"), position("y")].into_iter().chain(velocity).chain(status);
        about = about.class(Class::new(name, fields.collect()));
    }
    about = (0..PLAYERS).fold(about, |about, player| about.player(format!("p{player}")));
    about
        .usercmd_field(field("aim", CellKind::F64, Scope::Movement).meaning(Meaning::Angle))
        .usercmd_field(field("taunt", CellKind::Text, Scope::Status))
        .kind("counts", vec![("things".to_owned(), CellKind::U32)])
}

/// Pushes the end of a tick: its hash, all bodies, and a row of the game's own.
pub(crate) fn push_tick(stream: &mut Stream, world: &World, at: Micros) -> Result<(), PushError> {
    let tick = Tick(world.tick);
    let mut hash = 0xcbf2_9ce4_8422_2325u64;
    for tank in world.tanks.iter().filter(|tank| tank.is_present) {
        for bits in [tank.x.to_bits(), tank.y.to_bits(), tank.health as u64, u64::from(tank.refire_ticks)] {
            hash = (hash ^ bits).wrapping_mul(0x100_0000_01b3);
        }
    }
    stream.tick(tick, at, Some(hash))?;
    for (player, tank) in (0..).zip(&world.tanks).filter(|(_, tank)| tank.is_present) {
        let weapon = super::weapon(tank, stream)?;
        let values = [
            tank.x.into(),
            tank.y.into(),
            tank.vx.into(),
            tank.vy.into(),
            tank.turret_degrees.into(),
            tank.refire_ticks.into(),
            tank.health.into(),
            tank.id.into(),
            weapon.into(),
        ];
        stream.body_values(tick, EntityId(player), ClassId(0), &values)?;
    }
    for thing in &world.things {
        let values: [OwnValue; 7] = [
            thing.x.into(),
            thing.y.into(),
            thing.vx.into(),
            thing.vy.into(),
            u32::from(thing.owner).into(),
            thing.command.into(),
            thing.ticks_left.into(),
        ];
        stream.body_values(tick, EntityId(thing.entity), class_of(thing.kind), &values)?;
    }
    stream.row(0, 0, at, &[(world.things.len() as u32).into()])
}

fn class_of(kind: ThingKind) -> ClassId {
    let place = (1..).zip(CLASSES).find(|(_, (_, known))| *known == kind);
    ClassId(place.map_or(0, |(class, _)| class))
}

/// Restores a body at the beginning of a log that begins within a session.
pub(crate) fn restore(world: &mut World, session: &Session, state: usize) {
    let key = session.states.keys()[state];
    let cells = session.states.cells_of(state);
    let numbers: Vec<i64> = cells_of(&session.header.classes[usize::from(key.class.0)].fields)
        .map(|(field, place)| field.kind.number(&cells[place]))
        .collect();
    let float = |field: usize| f64::from_bits(numbers[field] as u64);
    if state == 0 {
        world.things.clear();
    }
    world.next_entity = world.next_entity.max(key.entity.0 + 1);
    if key.class == ClassId(0) {
        let tank = &mut world.tanks[usize::from(key.entity.0)];
        (tank.x, tank.y, tank.vx, tank.vy, tank.turret_degrees) = (float(0), float(1), float(2), float(3), float(4));
        (tank.refire_ticks, tank.health, tank.id) = (numbers[5] as u32, numbers[6] as i32, numbers[7] as u64);
        tank.weapon = super::weapon_of(session.texts.get(TextCode(numbers[8] as u64)));
        return;
    }
    world.things.push(Thing {
        entity: key.entity.0,
        kind: CLASSES[usize::from(key.class.0) - 1].1,
        x: float(0),
        y: float(1),
        vx: float(2),
        vy: float(3),
        owner: numbers[4] as u16,
        command: numbers[5] as u32,
        ticks_left: numbers[6] as u32,
    });
}

/// The game's own field of a usercmd.
pub(crate) fn aim(command: &Usercmd) -> f64 {
    f64::from_bits(command.input.own.number(CellKind::F64, 0..2) as u64)
}
