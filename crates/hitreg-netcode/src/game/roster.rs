//! Adapts an engine's own world, whose entities have components and 64-bit ids in any order. The engine implements
//! [`EntityWorld`], which only shows its entities. A [`Roster`] gives each entity the small number that logs and
//! datagrams use.
//!
//! ```
//! use std::collections::BTreeMap;
//! use std::convert::Infallible;
//!
//! use hitreg_netcode::game::{
//!     Categorize, EntityWorld, Judge, PlayerCommand, Reconcile, Roster, Scene, Simulate, Sink, WorldSink, body, input,
//! };
//! use hitreg_netcode::glam::Vec2;
//! use hitreg_log::units::{EntityId, Micros, PlayerId, Seed};
//! use hitreg_log::usercmd::Usercmd;
//!
//! body! {
//!     /// An ant, or a crumb that ants carry about.
//!     pub struct Thing {
//!         Status id: u64,
//!         Movement origin: Vec2,
//!         Movement carries: Option<u64>,
//!     }
//! }
//!
//! input! {
//!     /// Where an ant wants to go.
//!     pub struct Feelers {
//!         msec: u8,
//!         wanted: Vec2 as Velocity,
//!     }
//! }
//!
//! /// The engine's world: not to be cloned, and in no order of ours.
//! struct Garden {
//!     things: BTreeMap<u64, Thing>,
//!     ants: Vec<u64>,
//! }
//!
//! impl Garden {
//!     fn walk(&mut self, player: PlayerId, command: &Usercmd<Feelers>) {
//!         let ant = self.things.get_mut(&self.ants[usize::from(player.0)]).expect("every player has an ant");
//!         ant.origin += command.input.wanted * (f32::from(command.input.msec) / 1000.0);
//!         let (carries, origin) = (ant.carries, ant.origin);
//!         if let Some(crumb) = carries.and_then(|crumb| self.things.get_mut(&crumb)) {
//!             crumb.origin = origin;
//!         }
//!     }
//! }
//!
//! impl EntityWorld for Garden {
//!     type Body = Thing;
//!
//!     fn visit(&self, see: &mut dyn FnMut(Option<PlayerId>, Thing)) {
//!         for (id, thing) in &self.things {
//!             let player = self.ants.iter().position(|ant| ant == id);
//!             see(player.map(|player| PlayerId(player as u16)), *thing);
//!         }
//!     }
//! }
//!
//! struct Ants;
//!
//! impl Simulate for Ants {
//!     const NAME: &'static str = "ants";
//!     type Rules = ();
//!     type World = Roster<Garden>;
//!     type Body = Thing;
//!     type Input = Feelers;
//!     type Fire = Infallible;
//!
//!     fn spawn((): &(), _: Seed, players: u16) -> Roster<Garden> {
//!         let ants: Vec<u64> = (0..players).map(|player| (1 << 40) + u64::from(player)).collect();
//!         let things = ants.iter().map(|id| (*id, Thing { id: *id, ..Thing::default() })).collect();
//!         Roster::new(Garden { things, ants }, players)
//!     }
//!
//!     fn entities(world: &Roster<Garden>) -> &[(EntityId, Thing)] {
//!         world.entities()
//!     }
//!
//!     fn run(run: &PlayerCommand<'_, Ants>, world: &mut Roster<Garden>, _: &mut impl Sink<Infallible>) {
//!         world.change(|garden, _| garden.walk(run.player, run.command));
//!     }
//!
//!     /// A client's prediction: the same, in a garden of what it knows.
//!     fn step_body(
//!         (): &(),
//!         scene: &Scene<'_, Thing>,
//!         body: &Thing,
//!         command: &Usercmd<Feelers>,
//!         _: &mut impl Sink<Infallible>,
//!     ) -> Thing {
//!         let mut garden = Garden { things: BTreeMap::from([(body.id, *body)]), ants: vec![0; 1 + usize::from(scene.player.0)] };
//!         garden.ants[usize::from(scene.player.0)] = body.id;
//!         garden.walk(scene.player, command);
//!         garden.things[&body.id]
//!     }
//!
//!     fn step_world((): &(), world: &mut Roster<Garden>, _: Micros, _: &mut impl WorldSink) {
//!         world.tick(|garden, _| garden.things.retain(|_, thing| thing.origin.x < 1000.0));
//!     }
//!
//!     fn save(world: &Roster<Garden>, words: &mut Vec<u32>) {
//!         world.save(words);
//!     }
//! }
//!
//! impl Judge for Ants {}
//! impl Categorize for Ants {}
//! impl Reconcile for Ants {}
//! # let world = Ants::spawn(&(), Seed(1), 2);
//! # assert_eq!(world.names().entity((1 << 40) + 1), Some(EntityId(1)));
//! ```

use std::cell::OnceCell;
use std::collections::VecDeque;

use super::{BadCells, Body, FIRST_LOCAL_ENTITY};
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{EntityId, PlayerId};

/// For how many ticks a number is not reused: longer than any history of snapshots.
const REST_TICKS: u32 = 1_024;

/// An engine's world, as a recording sees it.
pub trait EntityWorld: Send + 'static {
    /// An entity's [id](Body::id) and its components. Any component may be absent.
    type Body: Body + Default;

    /// Shows every entity that has state to record, in any order, with the player whose avatar it is, if any. Ids are
    /// the engine's own and not 0. A player without an avatar (dead, spectating) shows no entity.
    fn visit(&self, see: &mut dyn FnMut(Option<PlayerId>, Self::Body));

    /// Appends state that can change a later tick and that no entity shows: random numbers, timers, free ids.
    fn hidden(&self, _words: &mut Vec<u32>) {}
}

/// An engine's world, with the numbers of its entities.
///
/// A player's avatar has the player's number. Every other entity gets a number at the end of the tick that created it,
/// and keeps the number until it is gone. If an id disappears and returns in a later tick, it is another entity. A
/// number rests for 1,024 ticks before its next use, so that no client confuses two entities. It is used earlier only
/// if all numbers are taken or resting.
#[derive(Debug)]
pub struct Roster<W: EntityWorld> {
    world: W,
    names: EntityNumbers,
    /// A cache of the present entities; each change empties it.
    seen: OnceCell<Vec<(EntityId, W::Body)>>,
}

/// The mapping between entities and their numbers.
#[derive(Debug)]
pub struct EntityNumbers {
    players: u16,
    of: SortedMap<u64, EntityId>,
    /// Numbers of removed entities, each with the tick at which it becomes free, in ascending order of that tick.
    resting: VecDeque<(u32, EntityId)>,
    /// The lowest number that was never used.
    unused: u16,
    tick: u32,
}

impl<W: EntityWorld> Roster<W> {
    /// Creates a world before its first tick, with `players` players.
    ///
    /// # Panics
    /// Under the conditions of [`Roster::tick`].
    pub fn new(world: W, players: u16) -> Roster<W> {
        let names = EntityNumbers { players, of: SortedMap::new(), resting: VecDeque::new(), unused: players, tick: 0 };
        let mut roster = Roster { world, names, seen: OnceCell::new() };
        roster.tick(|_, _| ());
        roster
    }

    /// The engine's world.
    pub fn world(&self) -> &W {
        &self.world
    }

    /// The entities' numbers.
    pub fn names(&self) -> &EntityNumbers {
        &self.names
    }

    /// The entities in ascending order of number, for [`Simulate::entities`](super::Simulate::entities). A player
    /// without an avatar has the default body. Entities created since the last tick are not included.
    pub fn entities(&self) -> &[(EntityId, W::Body)] {
        self.seen.get_or_init(|| self.names.in_order(shown(&self.world)))
    }

    /// Changes the world within a tick, for usercmds and shots.
    pub fn change<R>(&mut self, change: impl FnOnce(&mut W, &EntityNumbers) -> R) -> R {
        self.seen.take();
        change(&mut self.world, &self.names)
    }

    /// Advances the world by one tick and numbers new entities. For
    /// [`Simulate::step_world`](super::Simulate::step_world).
    ///
    /// # Panics
    /// When the world cannot be numbered: an id of 0, one id twice, two avatars of one player, an unknown player, or
    /// 61,440 entities.
    pub fn tick<R>(&mut self, step: impl FnOnce(&mut W, &EntityNumbers) -> R) -> R {
        let result = step(&mut self.world, &self.names);
        let shown = shown(&self.world);
        self.names.settle(&shown);
        self.seen = OnceCell::from(self.names.in_order(shown));
        result
    }

    /// Writes the whole state for [`Simulate::save`](super::Simulate::save): the numbers, every entity, and the hidden
    /// state.
    pub fn save(&self, words: &mut Vec<u32>) {
        let entities = self.entities();
        let EntityNumbers { players, resting, unused, tick, .. } = &self.names;
        words.extend([u32::from(*players), u32::from(*unused), resting.len() as u32, entities.len() as u32]);
        for (free_at, number) in resting {
            words.extend([free_at.saturating_sub(*tick), u32::from(number.0)]);
        }
        for (number, body) in entities {
            words.push(u32::from(number.0));
            body.append_to(words);
        }
        self.world.hidden(words);
    }

    /// Reads the words of [`Roster::save`]. `restore` builds the engine's world from its entities and from the hidden
    /// state. Each entity comes with the player whose avatar it is.
    ///
    /// # Errors
    /// When [`Roster::save`] did not write the words, or when `restore` fails.
    pub fn load(
        words: &[u32],
        restore: impl FnOnce(&[(Option<PlayerId>, W::Body)], &[u32]) -> Result<W, BadCells>,
    ) -> Result<Roster<W>, BadCells> {
        let short = || BadCells { what: "the number of words of a world".to_owned(), found: words.len() as u32 };
        let number = |word: u32| {
            u16::try_from(word).map_err(|_| BadCells { what: "an entity's number".to_owned(), found: word })
        };
        let (&[players, unused, resting, entities], rest) = words.split_first_chunk().ok_or_else(short)?;
        let (resting, rest) = rest.split_at_checked(2 * resting as usize).ok_or_else(short)?;
        let width = 1 + W::Body::CELLS;
        let (entities, hidden) = rest.split_at_checked(width * entities as usize).ok_or_else(short)?;
        let players = number(players)?;
        let mut names = EntityNumbers {
            players,
            of: SortedMap::new(),
            resting: resting
                .chunks_exact(2)
                .map(|row| Ok((row[0], EntityId(number(row[1])?))))
                .collect::<Result<_, _>>()?,
            unused: number(unused)?,
            tick: 0,
        };
        let mut bodies = Vec::new();
        for row in entities.chunks_exact(width) {
            let (number, body) = (number(row[0])?, W::Body::read(&row[1..])?);
            if body.id() != 0 {
                names.of.insert(body.id(), EntityId(number));
                bodies.push(((number < players).then_some(PlayerId(number)), body));
            }
        }
        Ok(Roster { world: restore(&bodies, hidden)?, names, seen: OnceCell::new() })
    }
}

impl EntityNumbers {
    /// The number of an entity; `None` before the end of the tick that created it.
    pub fn entity(&self, id: u64) -> Option<EntityId> {
        self.of.get(&id).copied()
    }

    /// The id of the entity that has a number.
    pub fn id(&self, number: EntityId) -> Option<u64> {
        self.of.iter().find(|(_, of)| **of == number).map(|(id, _)| *id)
    }

    /// Updates the numbers at the end of a tick.
    fn settle<B: Body>(&mut self, shown: &[(Option<PlayerId>, B)]) {
        self.tick += 1;
        let before = std::mem::take(&mut self.of);
        let mut new = Vec::new();
        for (player, body) in shown {
            let id = body.id();
            assert!(id != 0, "an entity's id is 0, which is nobody's");
            assert!(
                player.is_none_or(|player| player.0 < self.players),
                "entity {id} is the avatar of a player that is not there"
            );
            let stays = before.get(&id).filter(|number| number.0 >= self.players).copied();
            match player.map(PlayerId::entity).or(stays) {
                Some(number) => assert!(self.of.insert(id, number).is_none(), "two entities have the id {id}"),
                None => new.push(id),
            }
        }
        let is_still_had = |id: &u64, number: &EntityId| self.of.get(id) == Some(number);
        let mut free: Vec<EntityId> = before
            .iter()
            .filter(|(id, number)| number.0 >= self.players && !is_still_had(id, number))
            .map(|(_, number)| *number)
            .collect();
        free.sort_unstable();
        self.resting.extend(free.into_iter().map(|number| (self.tick + REST_TICKS, number)));
        // Sorted, so that the numbers do not depend on the engine's order.
        new.sort_unstable();
        for id in new {
            let number = self.free_number();
            assert!(self.of.insert(id, number).is_none(), "two entities have the id {id}");
        }
    }

    /// Returns a free number: first one whose rest is over, then one that was never used, then the one that has rested
    /// longest.
    fn free_number(&mut self) -> EntityId {
        let is_rested = self.resting.front().is_some_and(|(free_at, _)| *free_at <= self.tick);
        if !is_rested && self.unused < FIRST_LOCAL_ENTITY.0 {
            self.unused += 1;
            return EntityId(self.unused - 1);
        }
        let (_, number) = self.resting.pop_front().expect("a world has at most 61,440 entities");
        number
    }

    /// The bodies in ascending order of number, with one for every player. Entities without a number are left out.
    fn in_order<B: Body + Default>(&self, shown: Vec<(Option<PlayerId>, B)>) -> Vec<(EntityId, B)> {
        let mut bodies: Vec<(EntityId, B)> = (0..self.players).map(|player| (EntityId(player), B::default())).collect();
        let mut others = Vec::with_capacity(shown.len());
        for (player, body) in shown {
            match player {
                Some(player) => {
                    let place = &mut bodies[usize::from(player.0)].1;
                    assert!(place.id() == 0, "player {player} has two avatars: {} and {}", place.id(), body.id());
                    *place = body;
                }
                // A former avatar gets a number at the end of the tick.
                None => {
                    others.extend(self.entity(body.id()).filter(|n| n.0 >= self.players).map(|number| (number, body)))
                }
            }
        }
        others.sort_unstable_by_key(|(number, _)| *number);
        bodies.extend(others);
        bodies
    }
}

fn shown<W: EntityWorld>(world: &W) -> Vec<(Option<PlayerId>, W::Body)> {
    let mut shown = Vec::new();
    world.visit(&mut |player, body| shown.push((player, body)));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::body;

    body! {
        struct RosterBody {
            Status id: u64,
            Status worth: u32,
        }
    }

    /// Entities in this order, each with the player whose avatar it is.
    struct Heap(Vec<(Option<u16>, u64)>);

    impl EntityWorld for Heap {
        type Body = RosterBody;

        fn visit(&self, see: &mut dyn FnMut(Option<PlayerId>, RosterBody)) {
            for (player, id) in &self.0 {
                see(player.map(PlayerId), RosterBody { id: *id, worth: *id as u32 });
            }
        }

        fn hidden(&self, words: &mut Vec<u32>) {
            words.push(self.0.len() as u32);
        }
    }

    const FAR: u64 = 7 << 50;

    fn numbers(roster: &Roster<Heap>) -> Vec<(u16, u64)> {
        roster.entities().iter().map(|(number, body)| (number.0, body.id)).collect()
    }

    fn after(roster: &mut Roster<Heap>, now: &[(Option<u16>, u64)]) -> Vec<(u16, u64)> {
        roster.tick(|heap, _| heap.0 = now.to_vec());
        numbers(roster)
    }

    #[test]
    fn numbers_stay_and_rest_before_reuse() {
        let mut roster = Roster::new(Heap(vec![(None, FAR + 9), (Some(1), 5), (None, FAR)]), 2);
        assert_eq!(numbers(&roster), [(0, 0), (1, 5), (2, FAR), (3, FAR + 9)]);
        // Numbers depend neither on the order in which entities are shown nor on removed entities.
        assert_eq!(
            after(&mut roster, &[(None, FAR + 1), (None, FAR + 9)]),
            [(0, 0), (1, 0), (3, FAR + 9), (4, FAR + 1)]
        );
        // An id that returns after a removal is another entity.
        assert_eq!(after(&mut roster, &[(None, FAR), (None, FAR + 9)])[2..], [(3, FAR + 9), (5, FAR)]);
        for _ in 0..REST_TICKS {
            after(&mut roster, &[(None, FAR + 9)]);
        }
        // The rest of 2 and 4 is over; the rest of 5 is not.
        let now: Vec<_> = (20..24).map(|id| (None, id)).chain([(None, FAR + 9)]).collect();
        assert_eq!(after(&mut roster, &now)[2..], [(2, 20), (3, FAR + 9), (4, 21), (5, 22), (6, 23)]);
    }

    #[test]
    fn avatars_have_their_players_numbers() {
        let mut roster = Roster::new(Heap(vec![(Some(0), 8), (None, 9)]), 1);
        assert_eq!(numbers(&roster), [(0, 8), (1, 9)]);
        // Within a tick, new entities have no number, and neither has a former avatar.
        roster.change(|heap, _| heap.0 = vec![(None, 8), (Some(0), 9), (None, 10)]);
        assert_eq!(numbers(&roster), [(0, 9)]);
        roster.tick(|_, _| ());
        assert_eq!(numbers(&roster), [(0, 9), (2, 8), (3, 10)]);
        assert_eq!((roster.names().entity(9), roster.names().id(EntityId(2))), (Some(EntityId(0)), Some(8)));
        assert_eq!(after(&mut roster, &[(None, 8)]), [(0, 0), (2, 8)]);
        assert!(!roster.entities()[0].1.is_alive());
    }

    #[test]
    fn a_loaded_roster_continues_as_the_saved_one() {
        let mut roster = Roster::new(Heap((10..1_500).map(|id| (None, FAR * id)).collect()), 1);
        after(&mut roster, &[(Some(0), 3), (None, 4), (None, FAR * 12)]);
        let mut words = Vec::new();
        roster.save(&mut words);
        let restore = |bodies: &[(Option<PlayerId>, RosterBody)], hidden: &[u32]| {
            assert_eq!(hidden, [3]);
            Ok(Heap(bodies.iter().map(|(player, body)| (player.map(|p| p.0), body.id)).collect()))
        };
        let mut again = Roster::load(&words, restore).expect("what was saved");
        let mut same = Vec::new();
        again.save(&mut same);
        assert_eq!(same, words);
        for last in 0..REST_TICKS + 2 {
            let now = [(Some(0), 3), (None, 4), (None, FAR * 12), (None, 50 + u64::from(last))];
            assert_eq!(after(&mut again, &now), after(&mut roster, &now));
        }
        for cut in [0, 3, 9, words.len() - 2] {
            assert!(Roster::<Heap>::load(&words[..cut], |_, _| Ok(Heap(Vec::new()))).is_err(), "{cut}");
        }
    }

    #[test]
    #[should_panic(expected = "two entities have the id 4")]
    fn one_id_is_one_entity() {
        let _ = Roster::new(Heap(vec![(None, 4), (None, 4)]), 1);
    }

    #[test]
    #[should_panic(expected = "player 0 has two avatars: 4 and 5")]
    fn one_player_has_one_avatar() {
        let _ = Roster::new(Heap(vec![(Some(0), 4), (Some(0), 5)]), 1);
    }
}
