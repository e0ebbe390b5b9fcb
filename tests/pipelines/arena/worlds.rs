//! Saved worlds: they contain all state that matters, and loading refuses invalid words.

use glam::Vec3;
use hitreg::arena::{Arena, ArenaBody, ArenaFire, ArenaMap, ArenaRules, ArenaWorld, WeaponId};
use hitreg::game::{Body, Judge, Simulate};
use hitreg::hash::hash_words;
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, Seed};
use hitreg::usercmd::Usercmd;
use proptest::prelude::*;

use super::shots::Events;

fn words(world: &ArenaWorld) -> Vec<u32> {
    let mut words = Vec::new();
    Arena::save(world, &mut words);
    words
}

/// A world with flying rockets and dead players.
fn busy_world(rules: &ArenaRules, seed: u64, players: u16, shots: &[(u16, f32, f32)]) -> ArenaWorld {
    let mut world = Arena::spawn(rules, Seed(seed), players);
    for (turn, (shooter, pitch, yaw)) in shots.iter().enumerate() {
        let shooter = PlayerId(shooter % players);
        let body = world.entity(shooter.entity()).copied().unwrap();
        let weapon = WeaponId::ALL[turn % 3];
        let fire = ArenaFire {
            shooter,
            weapon,
            flies: weapon == WeaponId::Launcher,
            muzzle: body.eye(),
            viewangles: Vec3::new(*pitch, *yaw, 0.0),
            seed: Seed(seed),
            command: CommandSeq(turn as u32),
        };
        let verdict = Arena::judge(rules, &fire, Arena::entities(&world));
        let mut events = Events::default();
        Arena::apply(rules, &mut world, shooter, &Usercmd::default(), &fire, &verdict, &mut events);
        Arena::step_world(rules, &mut world, Micros::from_ms(16), &mut events);
    }
    world
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(64) })]

    #[test]
    fn a_loaded_world_continues_as_the_saved_one(
        seed in any::<u64>(), players in 1_u16..20,
        shots in prop::collection::vec((0_u16..20, -40.0_f32..40.0, -180.0_f32..180.0), 0..40),
    ) {
        let map = if seed % 2 == 0 { ArenaMap::courtyard() } else { ArenaMap::orchard() };
        let rules = ArenaRules::new(map);
        let mut world = busy_world(&rules, seed, players, &shots);
        let mut back = Arena::load(&rules, &words(&world)).unwrap().expect("it loads worlds");
        prop_assert_eq!(&back, &world);
        for _ in 0..200 {
            Arena::step_world(&rules, &mut world, Micros::from_ms(16), &mut Events::default());
            Arena::step_world(&rules, &mut back, Micros::from_ms(16), &mut Events::default());
        }
        prop_assert_eq!(words(&back), words(&world));
    }

    #[test]
    fn changed_words_are_refused_or_load_as_written(cut in 0_usize..400, at in 0_usize..400, word in any::<u32>()) {
        let rules = ArenaRules::new(if cut % 2 == 0 { ArenaMap::courtyard() } else { ArenaMap::orchard() });
        let shots = [(0, 0.0, 0.0), (1, 0.0, 0.0), (0, 0.0, 0.0), (1, 10.0, 50.0), (0, 0.0, 0.0), (0, -20.0, 9.0)];
        let good = words(&busy_world(&rules, 1, 4, &shots));
        let short = &good[..cut.min(good.len() - 1)];
        prop_assert!(Arena::load(&rules, short).is_err());
        let mut changed = good.clone();
        let at = at % good.len();
        changed[at] = word;
        if let Ok(Some(world)) = Arena::load(&rules, &changed) {
            prop_assert_eq!(words(&world), changed);
        }
    }
}

#[test]
fn every_word_counts_in_the_hash() {
    let rules = ArenaRules::default();
    let shots = [(0, 0.0, 0.0), (1, 0.0, 0.0), (0, 0.0, 0.0)];
    let good = words(&busy_world(&rules, 1, 2, &shots));
    let hash = hash_words(&good);
    for at in 0..good.len() {
        let mut changed = good.clone();
        changed[at] ^= 1;
        assert_ne!(hash_words(&changed), hash, "word {at}");
    }
}

#[test]
fn the_hash_of_seed_7_is_unchanged() {
    let rules = ArenaRules::default();
    let shots: Vec<_> = (0..24).map(|i| (i, 2.0, f32::from(i) * 15.0)).collect();
    insta::assert_snapshot!(format!("{:016x}", hash_words(&words(&busy_world(&rules, 7, 8, &shots)))), @"6232338122446c0a");
}

#[test]
fn a_body_is_small_and_does_not_send_its_eye_height() {
    const { assert!(ArenaBody::CELLS <= 40) };
    let rules = ArenaRules::default();
    let world = Arena::spawn(&rules, Seed(1), 1);
    let mut sent = *world.entity(EntityId(0)).unwrap();
    assert_eq!(sent.view_ofs_z, 28.0);
    sent.strip_client_only();
    assert_eq!(sent.view_ofs_z, 0.0);
    assert_eq!(sent.eye(), sent.origin + Vec3::Z * 28.0);
}

#[test]
fn interpolation_of_angles_takes_the_short_way() {
    let from = ArenaBody { viewangles: Vec3::new(0.0, 170.0, 0.0), alive: true, ..ArenaBody::default() };
    let to = ArenaBody { viewangles: Vec3::new(0.0, -170.0, 0.0), origin: Vec3::X * 8.0, ducked: true, ..from };
    let half = Arena::blend(&from, &to, 0.5);
    assert_eq!((half.viewangles.y, half.origin.x, half.ducked), (180.0, 4.0, false));
    assert_eq!(Arena::blend(&from, &to, 1.0), to);
}

#[test]
fn a_player_who_leaves_the_map_dies_and_respawns() {
    let rules = ArenaRules::default();
    let mut world = Arena::spawn(&rules, Seed(1), 1);
    let fallen = ArenaBody { origin: Vec3::Z * -10_000.0, ..*world.entity(EntityId(0)).unwrap() };
    world.entities_mut()[0].1 = fallen;
    Arena::step_world(&rules, &mut world, Micros::from_ms(16), &mut Events::default());
    let dead = *world.entity(EntityId(0)).unwrap();
    assert_eq!((dead.alive, dead.frags), (false, -1));
    Arena::step_world(&rules, &mut world, Micros::from_ms(2_000), &mut Events::default());
    assert!(world.entity(EntityId(0)).unwrap().alive);
}

#[test]
fn players_wait_for_free_spawn_points() {
    let rules = ArenaRules::default();
    let mut world = Arena::spawn(&rules, Seed(1), 20);
    let alive = |world: &ArenaWorld| Arena::entities(world).iter().filter(|(_, body)| body.alive).count();
    assert_eq!(alive(&world), 16);
    let mut events = Events::default();
    Arena::step_world(&rules, &mut world, Micros::from_ms(16), &mut events);
    assert_eq!(alive(&world), 16);
    for number in 0..4 {
        let body = ArenaBody {
            origin: Vec3::new(0.0, -300.0 + 50.0 * f32::from(number), 36.0),
            ..*world.entity(EntityId(number)).unwrap()
        };
        world.entities_mut()[usize::from(number)].1 = body;
    }
    Arena::step_world(&rules, &mut world, Micros::from_ms(16), &mut events);
    assert_eq!(alive(&world), 20);
}
