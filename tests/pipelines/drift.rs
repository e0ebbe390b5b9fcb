//! A game whose world is that of an engine (hecs): ships among more than a thousand rocks on a plane. It reuses 64-bit
//! ids, and components come and go. Usercmds push entities in the way. A destroyed ship's player waits for a new ship.

use std::collections::VecDeque;

use hecs::{Entity, EntityBuilder};
use hitreg::client::Client;
use hitreg::game::{
    BadCells, Body, Bots, Categorize, Class, ClassId, DamageShare, Effect, EntityWorld, HitResult, Judge, PlacedBody,
    PlayerCommand, Reconcile, Roster, Scene, ShotVerdict, Simulate, Sink, Touch, WorldSink, body, cells,
};
use hitreg::glam::{Quat, Vec2, Vec3};
use hitreg::pipeline::Netcode;
use hitreg::rng::Rng;
use hitreg::server::Server;
use hitreg::units::{EntityId, Micros, PlayerId, Seed};
use hitreg::usercmd::{Input, Usercmd, buttons};

pub(crate) const ROCKS: usize = 1_200;
/// The first entity id.
pub(crate) const FIRST_ID: u64 = 1 << 40;
/// The greatest distance of rocks from the middle on each axis, in units.
const FIELD_UNITS: f32 = 1_500.0;
/// The distance below which ships and rocks collide, in units.
const REACH_UNITS: f32 = 24.0;
/// A shot's line hits within this distance, in units.
const RADIUS_UNITS: f32 = 16.0;
const REFIRE_MS: u16 = 200;
const SHIELD_MS: u16 = 600;
const HULL: u8 = 2;
/// How long a player waits for a new ship, in ticks.
const WAIT_TICKS: u32 = 20;
/// The rotation of a moving rock in one tick.
const TURN: Quat = Quat::from_xyzw(0.0, 0.0, 0.005, 0.999_987_5);

cells! {
    pub(crate) enum DriftKind { Ship, Rock }
}
cells! {
    pub(crate) struct Gun {
        ready_ms: u16 as Time,
        shots: u32 as Counter,
    }
}
cells! {
    pub(crate) struct Shield {
        left_ms: u16 as Time,
    }
}
cells! {
    pub(crate) struct Stone {
        marks: [u8; 3],
        turned: Quat,
    }
}

body! {
    /// A ship or a rock as sent to clients.
    pub(crate) struct ShipOrRock {
        Status id: u64,
        Status kind: DriftKind,
        Movement origin: Vec2,
        Movement velocity: Vec2,
        Movement viewangles: f32,
        Weapons gun: Option<Gun>,
        Status hull: Option<u8>,
        Status shield: Option<Shield>,
        Status stone: Option<Stone>,
    }
}

/// Components without cells of their own.
struct Id(u64);
#[derive(PartialEq)]
struct Pilot(PlayerId);
struct Heading(f32);
struct DriftHull(u8);
#[derive(Clone, Copy)]
struct ShipPlace {
    at: Vec2,
    speed: Vec2,
}

/// The engine's world. It cannot be cloned.
pub(crate) struct Space {
    ecs: hecs::World,
    /// The lowest unused id, and the ids of removed entities.
    unused: u64,
    free: VecDeque<u64>,
    chance: u64,
    ticks: u32,
    /// The ticks until the next ship, for each player.
    waiting: Vec<u32>,
    forgets: bool,
}

#[derive(serde::Serialize, serde::Deserialize, Clone, Default, Debug)]
pub(crate) struct DriftRules {
    /// Leaves the state of the random numbers out of the save, as a game with a bug would.
    pub(crate) forgets: bool,
    /// Refuses to load saved worlds.
    pub(crate) only_forward: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct Shot {
    from: Vec2,
    ahead: Vec2,
    by: EntityId,
}

impl Space {
    fn empty(players: usize, chance: u64, rules: &DriftRules) -> Space {
        Space {
            ecs: hecs::World::new(),
            unused: FIRST_ID,
            free: VecDeque::new(),
            chance,
            ticks: 0,
            waiting: vec![0; players],
            forgets: rules.forgets,
        }
    }

    fn put(&mut self, player: Option<PlayerId>, thing: &ShipOrRock) {
        let mut entity = EntityBuilder::new();
        entity
            .add(Id(thing.id))
            .add(ShipPlace { at: thing.origin, speed: thing.velocity })
            .add(Heading(thing.viewangles));
        if let Some(player) = player {
            entity.add(Pilot(player));
        }
        if let Some(gun) = thing.gun {
            entity.add(gun);
        }
        if let Some(hull) = thing.hull {
            entity.add(DriftHull(hull));
        }
        if let Some(shield) = thing.shield {
            entity.add(shield);
        }
        if let Some(stone) = thing.stone {
            entity.add(stone);
        }
        self.ecs.spawn(entity.build());
    }

    fn new_id(&mut self) -> u64 {
        self.free.pop_front().unwrap_or_else(|| {
            self.unused += 1;
            self.unused - 1
        })
    }

    fn below(&mut self, end: usize) -> usize {
        self.chance = self.chance.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.chance >> 33) as usize % end
    }

    fn random_place(&mut self) -> Vec2 {
        let mut coordinate = || (self.below(3_000) as f32 / 3_000.0 - 0.5) * 2.0 * FIELD_UNITS;
        Vec2::new(coordinate(), coordinate())
    }

    fn add_rock(&mut self) {
        let (id, origin, mark) = (self.new_id(), self.random_place(), self.below(256) as u8);
        let stone = Stone { marks: [mark, mark ^ 0xff, 7], turned: Quat::IDENTITY };
        self.put(None, &ShipOrRock { id, kind: DriftKind::Rock, origin, stone: Some(stone), ..ShipOrRock::default() });
    }

    fn launch(&mut self, player: PlayerId) {
        let origin = Vec2::new(150.0 * f32::from(player.0), 0.0) + self.random_place() / 30.0;
        let shield = Some(Shield { left_ms: SHIELD_MS });
        let gun = Some(Gun::default());
        let ship = ShipOrRock { id: self.new_id(), origin, gun, hull: Some(HULL), shield, ..ShipOrRock::default() };
        self.put(Some(player), &ship);
    }

    /// Moves a player's ship, and pushes the entities in its way.
    fn steer(&mut self, player: PlayerId, command: &Usercmd, weapons: bool, bump: f32) -> (Option<Shot>, bool) {
        let input = &command.input;
        let seconds = f32::from(input.msec) / 1000.0;
        let ships = self.ecs.query_mut::<(Entity, &Pilot, &mut ShipPlace, &mut Heading, &mut Gun)>();
        let Some((ship, _, place, heading, gun)) = ships.into_iter().find(|ship| *ship.1 == Pilot(player)) else {
            return (None, false);
        };
        heading.0 = input.viewangles.y;
        place.speed += (Vec2::new(input.forwardmove, input.sidemove) - place.speed) * (4.0 * seconds).min(1.0);
        place.at += place.speed * seconds;
        let mut shot = None;
        if weapons {
            gun.ready_ms = gun.ready_ms.saturating_sub(input.msec.into());
            if input.buttons & buttons::ATTACK != 0 && gun.ready_ms == 0 {
                (gun.ready_ms, gun.shots) = (REFIRE_MS, gun.shots + 1);
                shot = Some(Shot { from: place.at, ahead: ahead(heading.0), by: player.entity() });
            }
        }
        let mut moved = *place;
        let mut rocks: Vec<(&Id, &mut ShipPlace)> =
            self.ecs.query_mut::<hecs::With<(&Id, &mut ShipPlace), &Stone>>().into_iter().collect();
        rocks.retain(|(_, rock)| rock.at.distance(moved.at) < REACH_UNITS);
        // The engine's order of entities is arbitrary.
        rocks.sort_by_key(|(id, _)| id.0);
        let met = !rocks.is_empty();
        for (_, rock) in rocks {
            let away = (moved.at - rock.at).normalize_or(Vec2::X);
            moved.speed -= away * moved.speed.dot(away).min(0.0) * (1.0 + bump);
            rock.speed -= away * 40.0;
        }
        *self.ecs.get::<&mut ShipPlace>(ship).expect("it was just there") = moved;
        (shot, met)
    }

    fn step(&mut self, dt: Micros) {
        self.ticks += 1;
        let (seconds, ms) = (dt.as_s_f64() as f32, (dt.0 / 1000) as u16);
        for (place, stone) in self.ecs.query_mut::<(&mut ShipPlace, &mut Stone)>() {
            if place.speed.length_squared() > 1.0 {
                place.at += place.speed * seconds;
                place.speed *= 0.98;
                stone.turned = (stone.turned * TURN).normalize();
            }
        }
        let mut over = Vec::new();
        for (entity, shield) in self.ecs.query_mut::<(Entity, &mut Shield)>() {
            shield.left_ms = shield.left_ms.saturating_sub(ms);
            if shield.left_ms == 0 {
                over.push(entity);
            }
        }
        for entity in over {
            self.ecs.remove_one::<Shield>(entity).expect("it has one");
        }
        if self.ticks.is_multiple_of(128) {
            let ships: Vec<Entity> = self.ecs.query_mut::<hecs::With<Entity, &Pilot>>().into_iter().collect();
            for ship in ships {
                self.ecs.insert_one(ship, Shield { left_ms: SHIELD_MS }).expect("it is there");
            }
        }
        match self.ticks % 8 {
            0 => {
                let rocks = self.ecs.query_mut::<hecs::With<(&Id, Entity), &Stone>>();
                let mut rocks: Vec<(u64, Entity)> = rocks.into_iter().map(|(id, entity)| (id.0, entity)).collect();
                rocks.sort_unstable_by_key(|(id, _)| *id);
                let (id, rock) = rocks[self.below(rocks.len())];
                self.ecs.despawn(rock).expect("it is there");
                self.free.push_back(id);
            }
            4 => self.add_rock(),
            _ => {}
        }
        for player in 0..self.waiting.len() {
            let left = self.waiting[player];
            self.waiting[player] = left.saturating_sub(1);
            if left == 1 {
                self.launch(PlayerId(player as u16));
            }
        }
    }

    /// Applies a hit.
    fn hit(&mut self, id: u64, ahead: Vec2) {
        let things = self
            .ecs
            .query_mut::<(&Id, Entity, Option<&Pilot>, Option<&mut DriftHull>, Option<&Shield>, &mut ShipPlace)>();
        let Some((_, entity, pilot, hull, shield, place)) = things.into_iter().find(|thing| thing.0.0 == id) else {
            return;
        };
        let Some((hull, Pilot(player))) = hull.zip(pilot) else {
            place.speed += ahead * 60.0;
            return;
        };
        if shield.is_some() {
            self.ecs.remove_one::<Shield>(entity).expect("it has one");
            return;
        }
        hull.0 -= 1;
        if hull.0 == 0 {
            self.waiting[usize::from(player.0)] = WAIT_TICKS;
            self.ecs.despawn(entity).expect("it is there");
            self.free.push_back(id);
        }
    }
}

impl EntityWorld for Space {
    type Body = ShipOrRock;

    fn visit(&self, see: &mut dyn FnMut(Option<PlayerId>, ShipOrRock)) {
        type Parts<'a> = (&'a Id, &'a ShipPlace, &'a Heading, Option<&'a Pilot>);
        type More<'a> = (Option<&'a Gun>, Option<&'a DriftHull>, Option<&'a Shield>, Option<&'a Stone>);
        for ((id, place, heading, pilot), (gun, hull, shield, stone)) in
            self.ecs.query::<(Parts<'_>, More<'_>)>().iter()
        {
            let thing = ShipOrRock {
                id: id.0,
                kind: if stone.is_some() { DriftKind::Rock } else { DriftKind::Ship },
                origin: place.at,
                velocity: place.speed,
                viewangles: heading.0,
                gun: gun.copied(),
                hull: hull.map(|hull| hull.0),
                shield: shield.copied(),
                stone: stone.copied(),
            };
            see(pilot.map(|pilot| pilot.0), thing);
        }
    }

    fn hidden(&self, words: &mut Vec<u32>) {
        let chance = if self.forgets { 1 } else { self.chance };
        let wide = [self.unused, chance].into_iter().chain(self.free.iter().copied());
        words.push(self.ticks);
        words.extend(&self.waiting);
        words.extend(wide.flat_map(|wide| [wide as u32, (wide >> 32) as u32]));
    }
}

/// A game with a version: how strongly ships bounce off, in thousandths.
#[derive(Debug)]
pub(crate) struct Drift<const BUMP: u32>;

impl<const BUMP: u32> Drift<BUMP> {
    const BUMP: f32 = BUMP as f32 / 1000.0;
}

impl<const BUMP: u32> Simulate for Drift<BUMP> {
    const NAME: &'static str = "drift";
    type Rules = DriftRules;
    type World = Roster<Space>;
    type Body = ShipOrRock;
    type Input = Input;
    type Fire = Shot;

    fn classes() -> Vec<Class> {
        let (fields, both) = (ShipOrRock::fields(), ["id", "kind", "origin", "velocity", "viewangles"]);
        let with = |more: &[&'static str]| [&both, more].concat();
        vec![
            Class::of("ship", &fields, &with(&["gun", "hull", "shield"])),
            Class::of("rock", &fields, &with(&["stone"])),
        ]
    }

    fn class(body: &ShipOrRock) -> ClassId {
        ClassId(body.kind as u16)
    }

    fn spawn(rules: &DriftRules, seed: Seed, players: u16) -> Roster<Space> {
        let mut space = Space::empty(players.into(), seed.0, rules);
        (0..ROCKS).for_each(|_| space.add_rock());
        (0..players).for_each(|player| space.launch(PlayerId(player)));
        Roster::new(space, players)
    }

    fn entities(world: &Roster<Space>) -> &[(EntityId, ShipOrRock)] {
        world.entities()
    }

    fn run(run: &PlayerCommand<'_, Self>, world: &mut Roster<Space>, out: &mut impl Sink<Shot>) {
        let (shot, _) = world.change(|space, _| space.steer(run.player, run.command, true, Self::BUMP));
        if let Some(shot) = shot {
            out.effect(Effect { kind: 0, entity: shot.by, at: shot.from.extend(0.0), predictable: true });
            out.fire(shot);
        }
    }

    /// Runs in a world of the entities that the client knows.
    fn step_body(
        rules: &DriftRules,
        scene: &Scene<'_, ShipOrRock>,
        body: &ShipOrRock,
        command: &Usercmd,
        out: &mut impl Sink<Shot>,
    ) -> ShipOrRock {
        if !body.is_alive() {
            return *body;
        }
        let mut space = Space::empty(1 + usize::from(scene.player.0), 0, rules);
        space.put(Some(scene.player), body);
        let is_near = |thing: &ShipOrRock| {
            thing.kind == DriftKind::Rock && thing.origin.distance(body.origin) < 4.0 * REACH_UNITS
        };
        for (_, rock) in scene.entities.iter().filter(|(_, thing)| is_near(thing)) {
            space.put(None, rock);
        }
        let (shot, met) = space.steer(scene.player, command, scene.weapons, Self::BUMP);
        if met {
            out.touch(Touch::Mover(scene.player.entity()));
        }
        if let Some(shot) = shot {
            out.effect(Effect { kind: 0, entity: shot.by, at: shot.from.extend(0.0), predictable: true });
            out.fire(shot);
        }
        let mut own = *body;
        space.visit(&mut |player, thing| {
            if player.is_some() {
                own = thing;
            }
        });
        own
    }

    fn step_world(_: &DriftRules, world: &mut Roster<Space>, dt: Micros, _: &mut impl WorldSink) {
        world.tick(|space, _| space.step(dt));
    }

    fn save(world: &Roster<Space>, words: &mut Vec<u32>) {
        world.save(words);
    }

    fn load(rules: &DriftRules, words: &[u32]) -> Result<Option<Roster<Space>>, BadCells> {
        if rules.only_forward {
            return Ok(None);
        }
        let restore = |bodies: &[(Option<PlayerId>, ShipOrRock)], hidden: &[u32]| {
            let players = words[0] as usize;
            let short = || BadCells { what: "the hidden words of a space".to_owned(), found: hidden.len() as u32 };
            let mut space = Space::empty(players, 0, rules);
            let (waiting, wide) = hidden.get(1..).and_then(|rest| rest.split_at_checked(players)).ok_or_else(short)?;
            let mut wide = wide.chunks_exact(2).map(|pair| u64::from(pair[1]) << 32 | u64::from(pair[0]));
            (space.ticks, space.waiting) = (hidden[0], waiting.to_vec());
            space.unused = wide.next().ok_or_else(short)?;
            space.chance = wide.next().ok_or_else(short)?;
            space.free = wide.collect();
            for (player, thing) in bodies {
                space.put(*player, thing);
            }
            Ok(space)
        };
        Roster::load(words, restore).map(Some)
    }

    fn effect_name(_: u8) -> &'static str {
        "shot"
    }
}

impl<const BUMP: u32> Judge for Drift<BUMP> {
    fn judge(_: &DriftRules, fire: &Shot, targets: &[(EntityId, ShipOrRock)]) -> ShotVerdict {
        let distance = |thing: &ShipOrRock| (thing.origin - fire.from).dot(fire.ahead);
        let is_hit = |(id, thing): &&(EntityId, ShipOrRock)| {
            let aside = (thing.origin - fire.from).perp_dot(fire.ahead).abs();
            *id != fire.by && thing.is_alive() && distance(thing) > 0.0 && aside < RADIUS_UNITS
        };
        let nearest = targets.iter().filter(is_hit).min_by(|a, b| distance(&a.1).total_cmp(&distance(&b.1)));
        match nearest {
            Some((target, _)) => ShotVerdict {
                reason: HitResult::Hit,
                wounds: vec![DamageShare { target: *target, hitgroup: 0, damage: 1, pellets: 1 }],
            },
            None => ShotVerdict::miss(HitResult::Missed),
        }
    }

    fn aim(fire: &Shot) -> (Vec3, Vec3) {
        (fire.from.extend(0.0), fire.ahead.extend(0.0))
    }

    fn apply(
        _: &DriftRules,
        world: &mut Roster<Space>,
        _: PlayerId,
        _: &Usercmd,
        fire: &Shot,
        verdict: &ShotVerdict,
        _: &mut impl WorldSink,
    ) {
        world.change(|space, names| {
            for id in verdict.wounds.iter().filter_map(|wound| names.id(wound.target)) {
                space.hit(id, fire.ahead);
            }
        });
    }
}

impl<const BUMP: u32> Categorize for Drift<BUMP> {}
impl<const BUMP: u32> Reconcile for Drift<BUMP> {}

impl<const BUMP: u32> Netcode for Drift<BUMP> {
    type Server = Server<Self>;
    type Client = Client<Self>;
}

/// Flies around and shoots at the nearest ship.
pub(crate) struct Flyer {
    rng: Rng,
    turn_at: Micros,
    input: Input,
}

impl<const BUMP: u32> Bots for Drift<BUMP> {
    type Bot = Flyer;

    fn bot(_: &DriftRules, seed: Seed, player: PlayerId) -> Flyer {
        Flyer { rng: Rng::new(seed, player.0.into()), turn_at: Micros::ZERO, input: Input::default() }
    }

    fn think(
        bot: &mut Flyer,
        _: &DriftRules,
        own: Option<&ShipOrRock>,
        others: &[(EntityId, PlacedBody<ShipOrRock>)],
        now: Micros,
        msec: u8,
    ) -> Input {
        if now >= bot.turn_at {
            bot.turn_at = now + Micros::from_ms(200 + bot.rng.below(400) as i64);
            bot.input.forwardmove = bot.rng.signed_f32() * 300.0;
            bot.input.sidemove = bot.rng.signed_f32() * 300.0;
        }
        bot.input.msec = msec;
        bot.input.buttons = 0;
        let Some(own) = own else { return bot.input.clone() };
        let ships = others
            .iter()
            .map(|(_, placed)| &placed.body)
            .filter(|body| body.kind == DriftKind::Ship && body.is_alive());
        let to = |body: &ShipOrRock| body.origin - own.origin;
        if let Some(ship) = ships.min_by(|a, b| to(a).length().total_cmp(&to(b).length())) {
            bot.input.viewangles.y = libm::atan2f(to(ship).y, to(ship).x).to_degrees();
            bot.input.buttons = if bot.rng.chance(0.3) { buttons::ATTACK } else { 0 };
        }
        bot.input.clone()
    }
}

fn ahead(yaw: f32) -> Vec2 {
    let yaw = yaw.to_radians();
    Vec2::new(libm::cosf(yaw), libm::sinf(yaw))
}
