//! Another build of the discs, in which one bit of one field is wrong once.

use glam::Vec3;
use hitreg::game::{
    BadCells, Body, Bots, Categorize, Judge, PlacedBody, PlayerCommand, Reconcile, Scene, ShotVerdict, Simulate, Sink,
    WorldSink,
};
use hitreg::units::{EntityId, Micros, PlayerId, Seed};
use hitreg::usercmd::{Input, Usercmd};

use crate::disc::{self, Disc, DiscLine, Discs, Plane, Zigzag};

#[derive(Debug)]
pub(crate) struct Bugged;

#[derive(serde::Serialize, serde::Deserialize, Default, Debug)]
pub(crate) struct BuggedRules {
    pub(crate) discs: disc::DiscRules,
    pub(crate) bug: Option<Bug>,
}

/// The place of the flipped bit.
#[derive(serde::Serialize, serde::Deserialize, Clone, Copy, Debug)]
pub(crate) enum Bug {
    /// In the shared code, when it runs this usercmd.
    Usercmd { player: u16, command: u32, cell: usize, bit: u32 },
    /// In the server's work after the usercmds of this tick.
    Tick { tick: u32, entity: u16, cell: usize, bit: u32 },
}

pub(crate) fn flipped(body: &Disc, cell: usize, bit: u32) -> Disc {
    let mut cells = vec![0; Disc::CELLS];
    body.write(&mut cells);
    cells[cell] ^= 1 << bit;
    Disc::read(&cells).expect("a cell in which any bit may be set")
}

impl Simulate for Bugged {
    const NAME: &'static str = Discs::NAME;
    type Rules = BuggedRules;
    type World = Plane;
    type Body = Disc;
    type Input = Input;
    type Fire = DiscLine;

    fn map_name(rules: &BuggedRules) -> String {
        Discs::map_name(&rules.discs)
    }

    fn spawn(rules: &BuggedRules, seed: Seed, players: u16) -> Plane {
        Discs::spawn(&rules.discs, seed, players)
    }

    fn step_body(
        rules: &BuggedRules,
        scene: &Scene<'_, Disc>,
        body: &Disc,
        usercmd: &Usercmd,
        out: &mut impl Sink<DiscLine>,
    ) -> Disc {
        let next = Discs::step_body(&rules.discs, scene, body, usercmd, out);
        match rules.bug {
            Some(Bug::Usercmd { player, command, cell, bit })
                if (player, command) == (scene.player.0, usercmd.seq.0) =>
            {
                flipped(&next, cell, bit)
            }
            _ => next,
        }
    }

    fn entities(world: &Plane) -> &[(EntityId, Disc)] {
        Discs::entities(world)
    }

    fn run(run: &PlayerCommand<'_, Bugged>, world: &mut Plane, out: &mut impl Sink<DiscLine>) {
        run.step_in_place(&mut world.entities, out);
    }

    fn step_world(rules: &BuggedRules, world: &mut Plane, dt: Micros, out: &mut impl WorldSink) {
        Discs::step_world(&rules.discs, world, dt, out);
        if let Some(Bug::Tick { tick, entity, cell, bit }) = rules.bug
            && world.forgotten == tick
        {
            let body = &mut world.entities[usize::from(entity)].1;
            *body = flipped(body, cell, bit);
        }
    }

    fn blend(from: &Disc, to: &Disc, fraction: f32) -> Disc {
        Discs::blend(from, to, fraction)
    }

    fn save(world: &Plane, words: &mut Vec<u32>) {
        Discs::save(world, words);
    }

    fn load(rules: &BuggedRules, words: &[u32]) -> Result<Option<Plane>, BadCells> {
        Discs::load(&rules.discs, words)
    }

    fn effect_name(kind: u8) -> &'static str {
        Discs::effect_name(kind)
    }
}

impl Judge for Bugged {
    fn judge(rules: &BuggedRules, fire: &DiscLine, targets: &[(EntityId, Disc)]) -> ShotVerdict {
        Discs::judge(&rules.discs, fire, targets)
    }

    fn aim(fire: &DiscLine) -> (Vec3, Vec3) {
        Discs::aim(fire)
    }

    fn is_projectile(fire: &DiscLine) -> bool {
        Discs::is_projectile(fire)
    }

    fn apply(
        rules: &BuggedRules,
        world: &mut Plane,
        player: PlayerId,
        command: &Usercmd,
        fire: &DiscLine,
        verdict: &ShotVerdict,
        out: &mut impl WorldSink,
    ) {
        Discs::apply(&rules.discs, world, player, command, fire, verdict, out);
    }

    fn hitgroup_name(hitgroup: u8) -> &'static str {
        Discs::hitgroup_name(hitgroup)
    }

    fn weapon_name(fire: &DiscLine) -> &'static str {
        Discs::weapon_name(fire)
    }
}

impl Categorize for Bugged {}

impl Reconcile for Bugged {
    fn on_ground(body: &Disc) -> bool {
        Discs::on_ground(body)
    }

    fn was_hurt(before: &Disc, after: &Disc) -> bool {
        Discs::was_hurt(before, after)
    }
}

impl hitreg::pipeline::Netcode for Bugged {
    type Server = hitreg::server::Server<Bugged>;
    type Client = hitreg::client::Client<Bugged>;
}

impl Bots for Bugged {
    type Bot = Zigzag;

    fn bot(rules: &BuggedRules, seed: Seed, player: PlayerId) -> Zigzag {
        Discs::bot(&rules.discs, seed, player)
    }

    fn think(
        bot: &mut Zigzag,
        rules: &BuggedRules,
        own: Option<&Disc>,
        others: &[(EntityId, PlacedBody<Disc>)],
        now: Micros,
        msec: u8,
    ) -> Input {
        Discs::think(bot, &rules.discs, own, others, now, msec)
    }
}
