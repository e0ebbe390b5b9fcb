//! Walks on the built-in map: players climb its stairs and ramps, and its walls stop them.

use glam::Vec3;
use hitreg::arena::{
    Arena, ArenaBody, ArenaFire, ArenaMap, ArenaRules, Solid, SolidHull, SweepContact, VIEW_HEIGHT_STANDING_UNITS,
};
use hitreg::game::{Effect, Scene, Simulate, Sink, Touch as Met};
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, Seed};
use hitreg::usercmd::{Input, Usercmd, buttons};

/// Records touched entities and the number of shots, and ignores effects.
#[derive(Default)]
pub(crate) struct TouchRecorder {
    pub(crate) touched: Vec<Met>,
    pub(crate) effects: Vec<Effect>,
    pub(crate) fires: Vec<ArenaFire>,
}

impl Sink<ArenaFire> for TouchRecorder {
    fn effect(&mut self, effect: Effect) {
        self.effects.push(effect);
    }
    fn fire(&mut self, fire: ArenaFire) {
        self.fires.push(fire);
    }
    fn touch(&mut self, touch: Met) {
        self.touched.push(touch);
    }
}

/// One player alone on the map.
pub(crate) struct Walker {
    pub(crate) rules: ArenaRules,
    pub(crate) body: ArenaBody,
    pub(crate) notes: TouchRecorder,
    pub(crate) others: Vec<(EntityId, ArenaBody)>,
    pub(crate) weapons: bool,
    seq: u32,
}

impl Walker {
    pub(crate) fn at(x: f32, y: f32, z: f32) -> Walker {
        let body = ArenaBody {
            origin: Vec3::new(x, y, z),
            alive: true,
            view_ofs_z: VIEW_HEIGHT_STANDING_UNITS,
            ..ArenaBody::default()
        };
        let (rules, notes) = (ArenaRules::default(), TouchRecorder::default());
        Walker { rules, body, notes, others: Vec::new(), weapons: true, seq: 0 }
    }

    pub(crate) fn run(&mut self, input: Input, seconds: f32) {
        for _ in 0..(seconds * 64.0) as u32 {
            self.seq += 1;
            let command = Usercmd {
                seq: CommandSeq(self.seq),
                lerp_msec: 100,
                server_time: Micros::ZERO,
                input: Input { msec: 16, ..input.clone() },
            };
            let scene = Scene { seed: Seed(1), player: PlayerId(0), entities: &self.others, weapons: self.weapons };
            self.body = Arena::step_body(&self.rules, &scene, &self.body, &command, &mut self.notes);
        }
    }

    fn forward(&mut self, yaw: f32, pressed: u16, seconds: f32) {
        let viewangles = Vec3::new(0.0, yaw, 0.0);
        self.run(Input { viewangles, forwardmove: 400.0, buttons: pressed, ..Input::default() }, seconds);
    }
}

#[test]
fn there_are_sixteen_free_spawn_points_and_enough_brushes() {
    let map = ArenaMap::courtyard();
    assert!((60..=150).contains(&map.brushes().len()), "{} brushes", map.brushes().len());
    assert_eq!(map.spawn_points().len(), 16);
    for place in map.spawn_points() {
        assert_eq!(map.solid().inside(SolidHull::Standing, place.origin), SweepContact::Nothing, "{place:?}");
        let mut walker = Walker::at(place.origin.x, place.origin.y, place.origin.z);
        walker.run(Input::default(), 0.5);
        assert!(walker.body.on_ground, "{place:?}");
        assert!((walker.body.origin - place.origin).length() < 4.0, "{place:?} to {}", walker.body.origin);
    }
}

#[test]
fn the_stairs_lead_up_to_the_landing() {
    let mut walker = Walker::at(-896.0, 200.0, 37.0);
    walker.forward(90.0, 0, 1.6);
    assert!((walker.body.origin.z - 212.0).abs() < 0.5, "{}", walker.body.origin);
    assert!(walker.body.on_ground && walker.body.origin.y > 544.0);
}

#[test]
fn the_ramp_leads_up_to_the_landing() {
    let mut walker = Walker::at(880.0, 120.0, 37.0);
    walker.forward(90.0, 0, 1.2);
    let half_way = walker.body.origin;
    assert!(walker.body.on_ground && (60.0..180.0).contains(&half_way.z), "{half_way}");
    walker.forward(90.0, 0, 1.0);
    assert!((walker.body.origin.z - 212.0).abs() < 0.5, "{}", walker.body.origin);
}

#[test]
fn only_ducked_players_pass_the_low_passage() {
    let mut upright = Walker::at(-352.0, -470.0, 37.0);
    upright.forward(-90.0, 0, 4.0);
    assert!(upright.body.origin.y > -513.0, "{}", upright.body.origin);

    let mut ducked = Walker::at(-352.0, -470.0, 37.0);
    ducked.forward(-90.0, buttons::DUCK, 1.5);
    assert!(ducked.body.ducked, "under way");
    ducked.forward(-90.0, 0, 0.5);
    assert!(ducked.body.ducked, "players cannot stand up under a ceiling: {}", ducked.body.origin);
    ducked.forward(-90.0, buttons::DUCK, 2.0);
    assert!(ducked.body.origin.y < -690.0, "{}", ducked.body.origin);
    ducked.run(Input::default(), 0.2);
    assert!(!ducked.body.ducked);
}

#[test]
fn the_teleporter_leads_onto_the_roof() {
    let mut walker = Walker::at(960.0, -840.0, 37.0);
    let before = walker.body.teleports;
    walker.forward(-90.0, 0, 0.5);
    assert_eq!(walker.body.teleports, before + 1);
    assert!(walker.body.origin.z > 200.0 && walker.body.origin.y > 800.0, "{}", walker.body.origin);
    assert!(walker.notes.touched.contains(&Met::Teleporter));
}

#[test]
fn walls_stop_people() {
    let mut walker = Walker::at(0.0, -180.0, 37.0);
    walker.forward(0.0, buttons::JUMP, 5.0);
    let origin = walker.body.origin;
    assert!(origin.x > 300.0 && origin.x < 512.0, "{origin}");
}

#[test]
fn only_living_players_block_the_way() {
    let wall = ArenaBody { origin: Vec3::new(0.0, -180.0, 36.03), alive: true, ..ArenaBody::default() };
    let run = |other: ArenaBody, collision: bool| {
        let mut walker = Walker::at(-150.0, -180.0, 37.0);
        walker.rules.player_collision = collision;
        walker.others = vec![(EntityId(0), walker.body), (EntityId(1), other)];
        walker.forward(0.0, 0, 2.0);
        walker
    };
    let stopped = run(wall, true);
    assert!((stopped.body.origin.x + 32.0).abs() < 0.1, "{}", stopped.body.origin);
    assert!(stopped.notes.touched.contains(&Met::Player(EntityId(1))));
    let over_the_dead = run(ArenaBody { alive: false, ..wall }, true);
    assert!(over_the_dead.body.origin.x > 100.0 && over_the_dead.notes.touched.is_empty());
    assert!(run(wall, false).body.origin.x > 100.0);
}

#[test]
fn a_teleporter_waits_until_its_destination_is_free() {
    let end = ArenaMap::courtyard().teleporters()[0].to.origin;
    let mut walker = Walker::at(960.0, -840.0, 37.0);
    walker.others = vec![(EntityId(1), ArenaBody { origin: end, alive: true, ..ArenaBody::default() })];
    walker.forward(-90.0, 0, 0.5);
    assert_eq!(walker.body.teleports, 0);
    walker.others.clear();
    walker.forward(-90.0, 0, 0.1);
    assert_eq!(walker.body.teleports, 1);
}

#[test]
fn dead_players_do_nothing() {
    let mut walker = Walker::at(0.0, -180.0, 37.0);
    walker.body.alive = false;
    walker.forward(0.0, buttons::ATTACK | buttons::JUMP, 1.0);
    assert_eq!(walker.body.origin.truncate(), Vec3::new(0.0, -180.0, 0.0).truncate());
    assert!(walker.notes.fires.is_empty());
}

#[test]
fn usercmds_without_weapons_change_no_weapon_state() {
    let mut walker = Walker::at(0.0, -180.0, 37.0);
    walker.weapons = false;
    walker.body.clip.pistol = 3;
    walker.body.next_attack_ms = 50;
    let before = walker.body;
    walker.run(Input { impulse: 2, buttons: buttons::ATTACK, ..Input::default() }, 1.0);
    let after = walker.body;
    assert!(walker.notes.fires.is_empty());
    assert_eq!((after.clip, after.next_attack_ms, after.next_weapon), (before.clip, 50, before.next_weapon));
}

#[test]
fn eye_height_follows_the_hull_and_shots_leave_from_there() {
    let mut walker = Walker::at(-480.0, 480.0, 37.0);
    walker.run(Input::default(), 0.2);
    assert_eq!((walker.body.view_ofs_z, walker.body.eye().z - walker.body.origin.z), (28.0, 28.0));
    let mut seen = Vec::new();
    for _ in 0..40 {
        walker.run(Input { buttons: buttons::DUCK, ..Input::default() }, 1.0 / 64.0);
        assert_eq!(walker.body.eye().z, walker.body.origin.z + walker.body.view_ofs_z);
        seen.push(walker.body.eye().z);
    }
    assert!(walker.body.ducked);
    assert!(seen.windows(2).all(|pair| pair[1] <= pair[0] + 0.1), "{seen:?}");
    assert_eq!(walker.body.view_ofs_z, 12.0);
}
