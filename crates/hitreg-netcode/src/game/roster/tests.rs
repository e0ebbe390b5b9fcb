//! Numbers of entities: assigned, kept and reused.

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
    assert_eq!(after(&mut roster, &[(None, FAR + 1), (None, FAR + 9)]), [(0, 0), (1, 0), (3, FAR + 9), (4, FAR + 1)]);
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
