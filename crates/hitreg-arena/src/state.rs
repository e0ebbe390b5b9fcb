//! The authoritative state: all entities, and the server-only state of each. Also the spawning and respawning of players.

use glam::Vec3;

use crate::body::{Ammunition, ArenaBody, BodyKind};
use crate::game::ArenaEffect;
use crate::map::SpawnPoint;
use crate::pmove::VIEW_HEIGHT_STANDING_UNITS;
use crate::prop;
use crate::prop::PropState;
use crate::rules::{ArenaRules, WeaponId};
use crate::solid::SolidHull;
use hitreg_log::rng::Rng;
use hitreg_log::units::{CommandSeq, EntityId, Micros, PlayerId, Seed};
use hitreg_netcode::game::{BadCells, Body, Cells, FIRST_LOCAL_ENTITY, WorldSink};

/// Separates the random streams of respawns from those of usercmds, whose upper half is a player's number.
const RESPAWN_STREAM: u64 = 1 << 63;

/// A player who falls this far below the lowest spawn point dies, in units. This happens only on maps that leak.
const VOID_DEPTH_UNITS: f32 = 8_192.0;

/// The world of the arena.
#[derive(Clone, Debug, PartialEq)]
pub struct ArenaWorld {
    pub(crate) seed: Seed,
    pub(crate) players: u16,
    /// Players, then props, then projectiles, in ascending order of id.
    pub(crate) entities: Vec<(EntityId, ArenaBody)>,
    /// The state of each prop, in the order of the props.
    pub(crate) props: Vec<PropState>,
    /// The state of each projectile, in the order of the projectiles.
    pub(crate) flights: Vec<ProjectileFlight>,
}

/// The server-only state of a projectile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ProjectileFlight {
    pub(crate) shooter: PlayerId,
    pub(crate) command: CommandSeq,
    pub(crate) weapon: WeaponId,
    /// The time until a rocket explodes or an arrow that has hit is removed, in µs.
    pub(crate) life_us: u32,
    /// The player that an arrow will hit, and that player's life ([`ArenaBody::teleports`]).
    pub(crate) target: Option<(EntityId, u32)>,
}

impl ArenaWorld {
    /// Creates a world for a number of players, who are yet to be added.
    pub(crate) fn new(seed: Seed, players: u16) -> ArenaWorld {
        ArenaWorld { seed, players, entities: Vec::new(), props: Vec::new(), flights: Vec::new() }
    }

    /// Returns an entity by id.
    pub fn entity(&self, id: EntityId) -> Option<&ArenaBody> {
        let at = self.entities.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&self.entities[at].1)
    }

    /// The bodies of all entities, in ascending order of id; a player's index is the player's number.
    pub fn entities_mut(&mut self) -> &mut [(EntityId, ArenaBody)] {
        &mut self.entities
    }

    pub(crate) fn entity_mut(&mut self, id: EntityId) -> Option<&mut ArenaBody> {
        let at = self.entities.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&mut self.entities[at].1)
    }

    /// Returns the players in order of number. While the world is being filled, returns the players added so far.
    pub(crate) fn player_bodies(&self) -> &[(EntityId, ArenaBody)] {
        &self.entities[..usize::from(self.players).min(self.entities.len())]
    }

    /// Returns the index of the first projectile among the entities.
    pub(crate) fn first_flight(&self) -> usize {
        usize::from(self.players) + self.props.len()
    }

    /// Adds a projectile under the lowest free id. All ids are used only with about 60,000 projectiles in flight.
    pub(crate) fn launch(&mut self, flight: ProjectileFlight, body: ArenaBody) {
        let first = self.first_flight();
        let flying = &self.entities[first..];
        let place = flying.iter().zip(first..).take_while(|((id, _), number)| usize::from(id.0) == *number).count();
        let id = u16::try_from(first + place).ok().filter(|id| *id < FIRST_LOCAL_ENTITY.0);
        let Some(id) = id else { return };
        self.entities.insert(first + place, (EntityId(id), body));
        self.flights.insert(place, flight);
    }

    /// Removes the projectiles for which `is_over` returns true.
    pub(crate) fn clear_flights(&mut self, is_over: impl Fn(&ArenaBody, &ProjectileFlight) -> bool) {
        for at in (0..self.flights.len()).rev() {
            let entity = self.first_flight() + at;
            if is_over(&self.entities[entity].1, &self.flights[at]) {
                self.entities.remove(entity);
                self.flights.remove(at);
            }
        }
    }

    pub(crate) fn save(&self, words: &mut Vec<u32>) {
        words.extend([self.seed.0 as u32, (self.seed.0 >> 32) as u32]);
        words.extend([u32::from(self.players), self.props.len() as u32, self.entities.len() as u32]);
        for (id, body) in &self.entities {
            words.push(u32::from(id.0));
            body.append_to(words);
        }
        for prop in &self.props {
            words.extend([prop.wait_us, prop.turn]);
        }
        for flight in &self.flights {
            words.extend([u32::from(flight.shooter.0), flight.command.0, flight.weapon as u32, flight.life_us]);
            match flight.target {
                Some((target, life)) => words.extend([1, u32::from(target.0), life]),
                None => words.push(0),
            }
        }
    }

    pub(crate) fn load(words: &[u32]) -> Result<ArenaWorld, BadCells> {
        let mut reader = WordReader { words };
        let seed = Seed(u64::from(reader.word("seed")?) | (u64::from(reader.word("seed")?) << 32));
        let players = reader.narrow("players")?;
        let props = reader.word("props")?;
        let count = reader.word("entities")?;
        let first_flight = u32::from(players).checked_add(props).filter(|first| *first <= count);
        let first_flight = first_flight.ok_or_else(|| bad("entities", count))?;
        let mut entities: Vec<(EntityId, ArenaBody)> = Vec::new();
        for at in 0..count {
            let id = EntityId(reader.narrow("entity")?);
            let body = ArenaBody::read(reader.take(ArenaBody::CELLS, "body")?)?;
            let follows = entities.last().is_none_or(|(before, _)| *before < id);
            if !follows || (at < first_flight && u32::from(id.0) != at) {
                return Err(bad("entity", u32::from(id.0)));
            }
            let belongs = match body.kind {
                BodyKind::Player => at < u32::from(players),
                BodyKind::Rocket | BodyKind::Arrow => at >= first_flight,
                BodyKind::Tree | BodyKind::Apple | BodyKind::Bell | BodyKind::Walker => {
                    (u32::from(players)..first_flight).contains(&at)
                }
            };
            if !belongs {
                return Err(bad("kind", body.kind as u32));
            }
            entities.push((id, body));
        }
        let mut states = Vec::new();
        for _ in 0..props {
            states.push(PropState { wait_us: reader.word("wait_us")?, turn: reader.word("turn")? });
        }
        let mut flights = Vec::new();
        for _ in first_flight..count {
            let shooter = reader.narrow("shooter")?;
            if shooter >= players {
                return Err(bad("shooter", u32::from(shooter)));
            }
            let command = CommandSeq(reader.word("command")?);
            let weapon = WeaponId::get(reader.take(1, "weapon")?).map_err(|found| bad("weapon", found))?;
            let life_us = reader.word("life_us")?;
            let target = match reader.word("target")? {
                0 => None,
                1 => Some((EntityId(reader.narrow("target")?), reader.word("life of the target")?)),
                other => return Err(bad("target", other)),
            };
            flights.push(ProjectileFlight { shooter: PlayerId(shooter), command, weapon, life_us, target });
        }
        if !reader.words.is_empty() {
            return Err(bad("words after the world", reader.words.len() as u32));
        }
        Ok(ArenaWorld { seed, players, entities, props: states, flights })
    }
}

fn bad(what: &str, found: u32) -> BadCells {
    BadCells { what: what.to_owned(), found }
}

struct WordReader<'a> {
    words: &'a [u32],
}

impl<'a> WordReader<'a> {
    fn take(&mut self, count: usize, what: &str) -> Result<&'a [u32], BadCells> {
        let missing = || bad(&format!("{what}: words that are left"), self.words.len() as u32);
        let (taken, rest) = self.words.split_at_checked(count).ok_or_else(missing)?;
        self.words = rest;
        Ok(taken)
    }

    fn word(&mut self, what: &str) -> Result<u32, BadCells> {
        Ok(self.take(1, what)?[0])
    }

    fn narrow(&mut self, what: &str) -> Result<u16, BadCells> {
        u16::get(self.take(1, what)?).map_err(|found| bad(what, found))
    }
}

/// Returns the world before the first tick. Players without a free spawn point wait for one as dead players.
pub(crate) fn spawn(rules: &ArenaRules, seed: Seed, players: u16) -> ArenaWorld {
    let mut world = ArenaWorld::new(seed, players);
    for number in 0..players {
        let id = EntityId(number);
        let waiting = ArenaBody { kind: BodyKind::Player, ..ArenaBody::default() };
        let body = match free_place(rules, &world, id, 0) {
            Some(place) => ArenaBody { teleports: 0, ..appearing(rules, &waiting, place) },
            None => ArenaBody { origin: rules.map.spawn_points()[0].origin, ..waiting },
        };
        world.entities.push((id, body));
    }
    prop::place(rules, &mut world);
    world
}

/// Respawns the dead whose time has come, as soon as a spawn point is free. Kills players who have fallen out of the
/// map.
pub(crate) fn respawn(rules: &ArenaRules, world: &mut ArenaWorld, dt: Micros, out: &mut impl WorldSink) {
    let lowest = rules.map.spawn_points().iter().map(|place| place.origin.z).fold(f32::INFINITY, f32::min);
    for number in 0..usize::from(world.players) {
        let (id, body) = &mut world.entities[number];
        let id = *id;
        if body.alive {
            if body.origin.z < lowest - VOID_DEPTH_UNITS {
                body.alive = false;
                body.health = 0;
                body.respawn_us = rules.respawn_ms.saturating_mul(1_000);
                body.frags = body.frags.saturating_sub(1);
                out.effect(ArenaEffect::Death.by(id, body.origin));
            }
            continue;
        }
        body.respawn_us = body.respawn_us.saturating_sub(u32::try_from(dt.0).unwrap_or(0));
        if body.respawn_us > 0 {
            continue;
        }
        let body = *body;
        if let Some(place) = free_place(rules, world, id, body.teleports) {
            world.entities[number].1 = appearing(rules, &body, place);
            out.effect(ArenaEffect::Respawn.by(id, place.origin));
        }
    }
}

/// Returns the first free spawn point, starting from one that the seed selects.
fn free_place(rules: &ArenaRules, world: &ArenaWorld, id: EntityId, life: u32) -> Option<SpawnPoint> {
    let places = rules.map.spawn_points();
    let stream = RESPAWN_STREAM | (u64::from(id.0) << 32) | u64::from(life);
    let start = Rng::new(world.seed, stream).below(places.len() as u64) as usize;
    let is_free = |place: &SpawnPoint| {
        let hulls = SolidHull::Standing.half_extent_units() * 2.0;
        world
            .player_bodies()
            .iter()
            .all(|(_, other)| !other.is_target() || (other.origin - place.origin).abs().cmpgt(hulls).any())
    };
    (0..places.len()).map(|turn| places[(start + turn) % places.len()]).find(is_free)
}

/// Returns a new life at a place, with full health and ammunition; the score is kept.
fn appearing(rules: &ArenaRules, before: &ArenaBody, place: SpawnPoint) -> ArenaBody {
    let [pistol, shotgun, launcher] = WeaponId::ALL.map(|weapon| rules.weapon(weapon));
    ArenaBody {
        kind: BodyKind::Player,
        origin: place.origin,
        viewangles: Vec3::new(0.0, place.yaw_deg, 0.0),
        view_ofs_z: VIEW_HEIGHT_STANDING_UNITS,
        clip: Ammunition { pistol: pistol.clip, shotgun: shotgun.clip, launcher: launcher.clip },
        reserve: Ammunition { pistol: pistol.reserve, shotgun: shotgun.reserve, launcher: launcher.reserve },
        health: rules.health,
        alive: true,
        frags: before.frags,
        teleports: before.teleports.wrapping_add(1),
        ..ArenaBody::default()
    }
}
