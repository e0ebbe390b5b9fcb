//! Shots: hit targets and hitgroups, obstacles, and the effects of hits.

use glam::Vec3;
use hitreg::arena::{Arena, ArenaBody, ArenaFire, ArenaRules, ArenaWorld, Hitgroup, WeaponId};
use hitreg::game::{Effect, HitResult, Judge, ShotVerdict, Simulate, WorldSink};
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, Seed};
use hitreg::usercmd::{Input, Usercmd, buttons};

use super::course::Walker;

/// Records the events of a world.
#[derive(Default)]
pub(crate) struct Events {
    pub(crate) effects: Vec<Effect>,
    pub(crate) impacts: Vec<(PlayerId, CommandSeq, ShotVerdict)>,
}

impl WorldSink for Events {
    fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
    fn impact(&mut self, shooter: PlayerId, command: CommandSeq, _weapon: &'static str, verdict: ShotVerdict) {
        self.impacts.push((shooter, command, verdict));
    }
}

fn command(seq: u32) -> Usercmd {
    Usercmd { seq: CommandSeq(seq), ..Usercmd::default() }
}

fn shot(weapon: WeaponId, muzzle: Vec3, viewangles: Vec3) -> ArenaFire {
    let flies = weapon == WeaponId::Launcher;
    ArenaFire { shooter: PlayerId(0), weapon, flies, muzzle, viewangles, seed: Seed(5), command: CommandSeq(9) }
}

fn body_at(origin: Vec3) -> ArenaBody {
    ArenaBody { origin, alive: true, health: 100, ..ArenaBody::default() }
}

/// In the courtyard, with a free line of fire along +x.
const MUZZLE: Vec3 = Vec3::new(-480.0, 380.0, 64.0);

#[test]
fn bullets_hit_the_nearest_living_other() {
    let rules = ArenaRules::default();
    let fire = shot(WeaponId::Pistol, MUZZLE, Vec3::ZERO);
    let near = (EntityId(2), body_at(Vec3::new(-300.0, 380.0, 36.0)));
    let far = (EntityId(1), body_at(Vec3::new(-200.0, 380.0, 36.0)));
    let me = (EntityId(0), body_at(Vec3::new(-470.0, 380.0, 36.0)));
    let hit = Arena::judge(&rules, &fire, &[me, far, near]);
    assert_eq!(hit.reason, HitResult::Hit);
    assert_eq!((hit.wounds[0].target, hit.wounds[0].damage), (EntityId(2), 36), "three times 12 for the head");
    assert_eq!(hit.wounds[0].hitgroup, Hitgroup::Head as u8);

    let ducked = (EntityId(2), ArenaBody { ducked: true, origin: near.1.origin - Vec3::Z * 18.0, ..near.1 });
    assert_eq!(Arena::judge(&rules, &fire, &[me, ducked]).reason, HitResult::Missed, "over a ducked head");
    let dead = (EntityId(2), ArenaBody { alive: false, ..near.1 });
    assert_eq!(Arena::judge(&rules, &fire, &[dead, far].map(|x| x)).wounds[0].target, EntityId(1));
}

#[test]
fn a_blocked_shot_differs_from_a_miss() {
    let rules = ArenaRules::default();
    let outside = (EntityId(1), body_at(Vec3::new(-700.0, 380.0, 36.0)));
    let west = shot(WeaponId::Pistol, MUZZLE, Vec3::new(0.0, 180.0, 0.0));
    assert_eq!(Arena::judge(&rules, &west, &[outside]).reason, HitResult::HitWorld);
    let east = shot(WeaponId::Pistol, MUZZLE, Vec3::ZERO);
    assert_eq!(Arena::judge(&rules, &east, &[outside]).reason, HitResult::Missed);
}

#[test]
fn pellets_come_from_the_usercmd_and_add_up() {
    let rules = ArenaRules::default();
    let fire = shot(WeaponId::Shotgun, MUZZLE, Vec3::new(2.0, 0.0, 0.0));
    let close = [(EntityId(1), body_at(MUZZLE + Vec3::new(40.0, 0.0, -12.0)))];
    let verdict = Arena::judge(&rules, &fire, &close);
    assert_eq!(verdict.wounds.len(), 1);
    assert_eq!(verdict.wounds[0].pellets, 4);
    assert!(verdict.wounds[0].damage >= 80);
    assert_eq!(verdict, Arena::judge(&rules, &fire, &close));
    let far = [(EntityId(1), body_at(MUZZLE + Vec3::new(500.0, 0.0, -30.0)))];
    let spread: Vec<u8> = (1..60)
        .map(|seq| ArenaFire { command: CommandSeq(seq), ..fire })
        .map(|fire| Arena::judge(&rules, &fire, &far).wounds.iter().map(|wound| wound.pellets).sum())
        .collect();
    assert!(spread.contains(&4) || spread.contains(&3), "{spread:?}");
    assert!(spread.contains(&1) || spread.contains(&0), "{spread:?}");
}

#[test]
fn hits_hurt_push_kill_and_bring_back() {
    let rules = ArenaRules::default();
    let mut world = Arena::spawn(&rules, Seed(3), 2);
    let mut events = Events::default();
    let target = world.entity(EntityId(1)).copied().unwrap();
    let fire = shot(WeaponId::Pistol, target.origin - Vec3::X * 20.0, Vec3::ZERO);
    for shots in 1..=9 {
        let verdict = Arena::judge(&rules, &fire, Arena::entities(&world));
        Arena::apply(&rules, &mut world, PlayerId(0), &command(shots), &fire, &verdict, &mut events);
    }
    let killed = world.entity(EntityId(1)).unwrap();
    assert!(!killed.alive && killed.health == 100 - 9 * 12);
    assert_eq!(killed.velocity.x, 9.0 * 60.0);
    assert_eq!(world.entity(EntityId(0)).unwrap().frags, 1);
    let names: Vec<_> = events.effects.iter().map(|effect| Arena::effect_name(effect.kind)).collect();
    assert!(names.contains(&"death") && names.contains(&"pain") && names.contains(&"hit tone"));

    for _ in 0..126 {
        Arena::step_world(&rules, &mut world, Micros::from_ms(16), &mut events);
    }
    let back = world.entity(EntityId(1)).unwrap();
    assert!(back.alive && back.health == 100 && back.teleports == target.teleports + 1);
    assert_eq!(back.clip.pistol, 17);
}

fn rocket_flight(world: &mut ArenaWorld, rules: &ArenaRules, fire: &ArenaFire) -> Events {
    let mut events = Events::default();
    let launched = ShotVerdict { reason: HitResult::Launched, wounds: Vec::new() };
    Arena::apply(rules, world, PlayerId(0), &command(77), fire, &launched, &mut events);
    for _ in 0..300 {
        Arena::step_world(rules, world, Micros::from_ms(16), &mut events);
    }
    events
}

#[test]
fn rockets_fly_hit_in_the_present_and_hurt_around() {
    let rules = ArenaRules::default();
    let mut world = Arena::spawn(&rules, Seed(3), 3);
    let put = |world: &mut ArenaWorld, player: u16, origin: Vec3| {
        let body = ArenaBody { origin, ..*world.entity(EntityId(player)).unwrap() };
        world.entities_mut()[usize::from(player)].1 = body;
    };
    put(&mut world, 0, Vec3::new(-480.0, 380.0, 36.0));
    put(&mut world, 1, Vec3::new(-200.0, 380.0, 36.0));
    put(&mut world, 2, Vec3::new(-200.0, 460.0, 36.0));
    let fire = shot(WeaponId::Launcher, MUZZLE, Vec3::ZERO);
    assert!(Arena::is_projectile(&fire));
    let events = rocket_flight(&mut world, &rules, &fire);
    let [(shooter, seq, verdict)] = &events.impacts[..] else { panic!("{:?}", events.impacts) };
    assert_eq!((*shooter, *seq, verdict.reason), (PlayerId(0), CommandSeq(77), HitResult::Hit));
    let damages: Vec<_> = verdict.wounds.iter().map(|wound| (wound.target.0, wound.damage)).collect();
    assert_eq!(damages[0], (1, 100));
    assert_eq!(damages[1].0, 2);
    assert!((20..90).contains(&damages[1].1), "{damages:?}");
    assert_eq!(world.entity(EntityId(3)), None, "the rocket is gone");
}

#[test]
fn a_rocket_at_the_shooters_feet_pushes_and_is_not_a_hit() {
    let rules = ArenaRules::default();
    let mut world = Arena::spawn(&rules, Seed(3), 1);
    let at = world.entity(EntityId(0)).unwrap().origin;
    let fire = shot(WeaponId::Launcher, at + Vec3::Z * 28.0, Vec3::new(90.0, 0.0, 0.0));
    let events = rocket_flight(&mut world, &rules, &fire);
    assert_eq!(events.impacts[0].2.reason, HitResult::Missed);
    let me = world.entity(EntityId(0)).unwrap();
    assert!((100 - 60..100).contains(&me.health), "{}", me.health);
    assert!(me.velocity.z > 150.0, "{}", me.velocity);
}

#[test]
fn weapons_fire_reload_and_switch_by_their_times() {
    let mut walker = Walker::at(-480.0, 480.0, 37.0);
    walker.body.clip.pistol = 2;
    walker.body.reserve.pistol = 5;
    let attack = Input { buttons: buttons::ATTACK, ..Input::default() };
    walker.run(attack.clone(), 0.6);
    assert_eq!(walker.notes.fires.len(), 2, "one at once, one after 300 ms");
    walker.run(attack.clone(), 2.4);
    assert_eq!(walker.body.clip.pistol + walker.body.reserve.pistol + walker.notes.fires.len() as u16, 7);
    assert!(walker.notes.fires.len() > 2, "reloaded without input");

    walker.body.clip.shotgun = 8;
    let fired = walker.notes.fires.len();
    walker.run(Input { impulse: 2, ..attack.clone() }, 1.0 / 64.0);
    walker.run(attack.clone(), 0.5);
    assert_eq!((walker.body.weapon, walker.notes.fires.len()), (WeaponId::Shotgun, fired), "still deploying");
    walker.run(attack, 0.3);
    assert_eq!(walker.notes.fires.len(), fired + 1);
    let names: Vec<_> = walker.notes.effects.iter().map(|effect| Arena::effect_name(effect.kind)).collect();
    for name in ["pistol", "reload", "switch", "shotgun"] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
}
