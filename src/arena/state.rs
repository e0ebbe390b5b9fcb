//! The authoritative state: every entity, and what the server alone knows about it.

use glam::Vec3;

use super::body::{ArenaBody, BodyKind};
use super::weapon::WeaponId;
use crate::game::{BadCells, Body, Cells};
use crate::units::{CommandSeq, EntityId, PlayerId, Seed};

/// The world of the arena.
#[derive(Clone, Debug, PartialEq)]
pub struct ArenaWorld {
    pub(crate) seed: Seed,
    pub(crate) players: u16,
    /// How many rockets have been launched in the session.
    pub(crate) launched: u32,
    /// Players, then rockets, in ascending order of id.
    pub(crate) entities: Vec<(EntityId, ArenaBody)>,
    /// What belongs to each rocket, in the order of the rockets.
    pub(crate) flights: Vec<Flight>,
}

/// A rocket's past and future.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Flight {
    pub(crate) shooter: PlayerId,
    pub(crate) command: CommandSeq,
    pub(crate) weapon: WeaponId,
    /// Until it bursts by itself, in µs.
    pub(crate) life_us: u32,
}

impl ArenaWorld {
    /// Any entity by id.
    pub fn entity(&self, id: EntityId) -> Option<&ArenaBody> {
        let at = self.entities.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&self.entities[at].1)
    }

    pub(crate) fn entity_mut(&mut self, id: EntityId) -> Option<&mut ArenaBody> {
        let at = self.entities.binary_search_by_key(&id, |(id, _)| *id).ok()?;
        Some(&mut self.entities[at].1)
    }

    /// The players in the order of their numbers; while the first of them appear, those who are there already.
    pub(crate) fn player_bodies(&self) -> &[(EntityId, ArenaBody)] {
        &self.entities[..usize::from(self.players).min(self.entities.len())]
    }

    /// Adds a rocket under the lowest free id. There is none left only with some 65,000 of them in the air.
    pub(crate) fn launch(&mut self, flight: Flight, origin: Vec3, velocity: Vec3, viewangles: Vec3) {
        let first = usize::from(self.players);
        let rockets = &self.entities[first..];
        let place = rockets.iter().zip(first..).take_while(|((id, _), number)| usize::from(id.0) == *number).count();
        let Ok(id) = u16::try_from(first + place) else { return };
        self.launched = self.launched.wrapping_add(1);
        let body = ArenaBody {
            kind: BodyKind::Rocket,
            origin,
            velocity,
            viewangles,
            teleports: self.launched,
            alive: true,
            ..ArenaBody::default()
        };
        self.entities.insert(first + place, (EntityId(id), body));
        self.flights.insert(place, flight);
    }

    pub(crate) fn save(&self, words: &mut Vec<u32>) {
        words.extend([self.seed.0 as u32, (self.seed.0 >> 32) as u32]);
        words.extend([u32::from(self.players), self.launched, self.entities.len() as u32]);
        for (id, body) in &self.entities {
            words.push(u32::from(id.0));
            let start = words.len();
            words.resize(start + ArenaBody::CELLS, 0);
            body.write(&mut words[start..]);
        }
        for flight in &self.flights {
            words.extend([u32::from(flight.shooter.0), flight.command.0, flight.weapon as u32, flight.life_us]);
        }
    }

    pub(crate) fn load(words: &[u32]) -> Result<ArenaWorld, BadCells> {
        let mut reader = Reader { words };
        let seed = Seed(u64::from(reader.word("seed")?) | (u64::from(reader.word("seed")?) << 32));
        let players = reader.narrow("players")?;
        let launched = reader.word("launched")?;
        let count = reader.word("entities")?;
        if count < u32::from(players) {
            return Err(bad("entities", count));
        }
        let mut entities: Vec<(EntityId, ArenaBody)> = Vec::new();
        for at in 0..count {
            let id = EntityId(reader.narrow("entity")?);
            let body = ArenaBody::read(reader.take(ArenaBody::CELLS, "body")?)?;
            let is_player = at < u32::from(players);
            let follows = entities.last().is_none_or(|(before, _)| *before < id);
            if !follows || (is_player && u32::from(id.0) != at) {
                return Err(bad("entity", u32::from(id.0)));
            }
            if is_player != (body.kind == BodyKind::Player) {
                return Err(bad("kind", body.kind as u32));
            }
            entities.push((id, body));
        }
        let mut flights = Vec::new();
        for _ in u32::from(players)..count {
            let shooter = reader.narrow("shooter")?;
            if shooter >= players {
                return Err(bad("shooter", u32::from(shooter)));
            }
            let command = CommandSeq(reader.word("command")?);
            let weapon = WeaponId::get(reader.take(1, "weapon")?).map_err(|found| bad("weapon", found))?;
            flights.push(Flight { shooter: PlayerId(shooter), command, weapon, life_us: reader.word("life_us")? });
        }
        if !reader.words.is_empty() {
            return Err(bad("words after the world", reader.words.len() as u32));
        }
        Ok(ArenaWorld { seed, players, launched, entities, flights })
    }
}

fn bad(what: &str, found: u32) -> BadCells {
    BadCells { what: what.to_owned(), found }
}

struct Reader<'a> {
    words: &'a [u32],
}

impl<'a> Reader<'a> {
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
