//! A game with a culling server. Players walk in a yard with rolling balls, and join and leave at any time. A client
//! receives only near entities, and no pocket contents of other players. Players and balls are entities of two classes.

use std::collections::VecDeque;
use std::sync::Arc;

use glam::Vec3;
use hitreg::client::Client;
use hitreg::game::{
    BadCells, Body, Bots, Categorize, Class, ClassId, DamageShare, HitResult, Judge, PlacedBody, PlayerCommand,
    Reconcile, Scene, ShotVerdict, Simulate, Sink, WorldSink, body,
};
use hitreg::history::Frame;
use hitreg::packet::{ClientPacket, Snapshot};
use hitreg::pipeline::{Netcode, Rollbacks, ServerPipeline, Setup, TickEvent, TickOutcome};
use hitreg::record::Presence;
use hitreg::rng::Rng;
use hitreg::server::Server;
use hitreg::units::{EntityId, Micros, PlayerId, Seed};
use hitreg::usercmd::{Input, Usercmd, buttons};

/// The visible distance.
const SIGHT_UNITS: f32 = 400.0;
const BALLS: u16 = 3;
/// The impulses that join and leave.
const JOIN: u8 = 1;
const LEAVE: u8 = 2;

body! {
    /// A player or a ball.
    pub(crate) struct PlayerOrBall {
        Movement origin: Vec3,
        Movement velocity: Vec3,
        Movement viewangles: Vec3,
        Movement teleports: u32,
        Status alive: bool,
        Status pocket: u32 as Counter,
        Status spin: f32 as Angle,
        Status is_ball: bool,
    }
}

#[derive(Debug)]
pub(crate) struct Yard;

#[derive(Clone, Debug)]
pub(crate) struct Ground(Vec<(EntityId, PlayerOrBall)>);

#[derive(Clone, Debug)]
pub(crate) struct Throw {
    from: Vec3,
    yaw: f32,
    by: EntityId,
}

impl Simulate for Yard {
    const NAME: &'static str = "yard";
    type Rules = ();
    type World = Ground;
    type Body = PlayerOrBall;
    type Input = Input;
    type Fire = Throw;

    fn classes() -> Vec<Class> {
        let with = |parts: &[&str]| {
            let fields = PlayerOrBall::fields().into_iter();
            fields.filter(|field| parts.iter().any(|part| field.name.split('.').next() == Some(*part))).collect()
        };
        vec![
            Class::new("player", with(&["origin", "velocity", "viewangles", "teleports", "alive", "pocket"])),
            Class::new("ball", with(&["origin", "velocity", "alive", "spin", "is_ball"])),
        ]
    }

    fn class(body: &PlayerOrBall) -> ClassId {
        ClassId(u16::from(body.is_ball))
    }

    fn map_name((): &()) -> String {
        "yard".to_owned()
    }

    fn spawn((): &(), _: Seed, players: u16) -> Ground {
        let player =
            |p: u16| PlayerOrBall { origin: Vec3::new(250.0 * f32::from(p), 0.0, 0.0), ..PlayerOrBall::default() };
        let ball = |b: u16| PlayerOrBall {
            origin: Vec3::new(300.0 * f32::from(b), 60.0, 0.0),
            velocity: Vec3::new(90.0 - 70.0 * f32::from(b), 25.0, 0.0),
            alive: true,
            is_ball: true,
            ..PlayerOrBall::default()
        };
        let players = (0..players).map(|p| (EntityId(p), player(p)));
        Ground(players.chain((0..BALLS).map(|b| (EntityId(100 + b), ball(b)))).collect())
    }

    fn step_body(
        (): &(),
        scene: &Scene<'_, PlayerOrBall>,
        body: &PlayerOrBall,
        command: &Usercmd,
        out: &mut impl Sink<Throw>,
    ) -> PlayerOrBall {
        let input = &command.input;
        let mut next = PlayerOrBall { viewangles: input.viewangles, ..*body };
        match input.impulse {
            JOIN if !body.alive => (next.alive, next.teleports) = (true, body.teleports + 1),
            LEAVE => next.alive = false,
            _ => {}
        }
        next.velocity = Vec3::new(input.forwardmove, input.sidemove, 0.0) * f32::from(u8::from(next.alive));
        next.origin += next.velocity * (f32::from(input.msec) / 1000.0);
        if next.alive && scene.weapons && input.buttons & buttons::ATTACK != 0 {
            next.pocket += 1;
            out.fire(Throw { from: next.origin, yaw: input.viewangles.y, by: scene.player.entity() });
        }
        next
    }

    fn entities(world: &Ground) -> &[(EntityId, PlayerOrBall)] {
        &world.0
    }

    fn run(run: &PlayerCommand<'_, Yard>, world: &mut Ground, out: &mut impl Sink<Throw>) {
        run.step_in_place(&mut world.0, out);
    }

    fn step_world((): &(), world: &mut Ground, dt: Micros, _: &mut impl WorldSink) {
        for (_, ball) in world.0.iter_mut().filter(|(_, thing)| thing.is_ball) {
            ball.origin += ball.velocity * dt.as_s_f64() as f32;
            ball.velocity *= if ball.origin.length() > 900.0 { -1.0 } else { 1.0 };
        }
    }

    fn blend(from: &PlayerOrBall, to: &PlayerOrBall, fraction: f32) -> PlayerOrBall {
        PlayerOrBall { origin: from.origin.lerp(to.origin, fraction), ..*to }
    }

    fn save(world: &Ground, words: &mut Vec<u32>) {
        for (id, thing) in &world.0 {
            words.push(id.0.into());
            let start = words.len();
            words.resize(start + PlayerOrBall::CELLS, 0);
            thing.write(&mut words[start..]);
        }
    }

    fn load((): &(), words: &[u32]) -> Result<Option<Ground>, BadCells> {
        let thing = |row: &[u32]| PlayerOrBall::read(&row[1..]).map(|thing| (EntityId(row[0] as u16), thing));
        words.chunks(1 + PlayerOrBall::CELLS).map(thing).collect::<Result<_, _>>().map(|things| Some(Ground(things)))
    }

    fn effect_name(_: u8) -> &'static str {
        "none"
    }
}

impl Judge for Yard {
    fn judge((): &(), fire: &Throw, targets: &[(EntityId, PlayerOrBall)]) -> ShotVerdict {
        let ahead = Vec3::new(libm::cosf(fire.yaw.to_radians()), libm::sinf(fire.yaw.to_radians()), 0.0);
        let is_hit = |(id, body): &&(EntityId, PlayerOrBall)| {
            let to = body.origin - fire.from;
            *id != fire.by && body.alive && to.dot(ahead) > 0.0 && to.cross(ahead).length() < 20.0
        };
        match targets.iter().find(is_hit) {
            Some((target, _)) => ShotVerdict {
                reason: HitResult::Hit,
                wounds: vec![DamageShare { target: *target, hitgroup: 0, damage: 1, pellets: 1 }],
            },
            None => ShotVerdict::miss(HitResult::Missed),
        }
    }

    fn aim(fire: &Throw) -> (Vec3, Vec3) {
        (fire.from, Vec3::new(libm::cosf(fire.yaw.to_radians()), libm::sinf(fire.yaw.to_radians()), 0.0))
    }

    fn apply(
        (): &(),
        world: &mut Ground,
        _: PlayerId,
        _: &Usercmd,
        _: &Throw,
        verdict: &ShotVerdict,
        _: &mut impl WorldSink,
    ) {
        for wound in &verdict.wounds {
            if let Some((_, thing)) = world.0.iter_mut().find(|(id, _)| *id == wound.target) {
                thing.spin += 10.0 * f32::from(u8::from(thing.is_ball));
            }
        }
    }

    fn hitgroup_name(_: u8) -> &'static str {
        "thing"
    }

    fn weapon_name(_: &Throw) -> &'static str {
        "throw"
    }
}

impl Categorize for Yard {}

impl Reconcile for Yard {}

impl Netcode for Yard {
    type Server = Culling;
    type Client = Client<Yard>;
}

/// The standard server, with a filter of entities for each client.
pub(crate) struct Culling {
    server: Server<Yard>,
    is_there: Vec<bool>,
    events: VecDeque<TickEvent<Yard>>,
}

impl ServerPipeline<Yard> for Culling {
    fn new(setup: Setup<Yard>, players: u16) -> Culling {
        Culling {
            server: Server::new(setup, players),
            is_there: vec![false; usize::from(players)],
            events: VecDeque::new(),
        }
    }

    fn begin_from(&mut self, world: Ground) {
        self.server.begin_from(world);
    }

    fn handle_packet(&mut self, now: Micros, player: PlayerId, packet: ClientPacket) {
        self.server.handle_packet(now, player, packet);
    }

    fn tick(&mut self, now: Micros) -> TickOutcome {
        let ticked = self.server.tick(now);
        for (player, (was, (_, thing))) in (0..).map(PlayerId).zip(self.is_there.iter_mut().zip(&self.server.world().0))
        {
            if std::mem::replace(was, thing.alive) != thing.alive {
                let change = if thing.alive { Presence::Joined } else { Presence::Left };
                self.events.push_back(TickEvent::Presence { player, change });
            }
        }
        ticked
    }

    fn poll_snapshot(&mut self) -> Option<(PlayerId, Snapshot<PlayerOrBall>)> {
        let (viewer, mut snapshot) = self.server.poll_snapshot()?;
        let own = viewer.entity();
        let eye = snapshot.frame.get(own)?.origin;
        let seen = |(id, thing): &&(EntityId, PlayerOrBall)| {
            *id == own || (thing.alive && thing.origin.distance(eye) < SIGHT_UNITS)
        };
        let visible = |(id, thing): &(EntityId, PlayerOrBall)| match *id == own {
            true => (*id, *thing),
            false => (*id, PlayerOrBall { pocket: 0, ..*thing }),
        };
        let entities = snapshot.frame.entities.iter().filter(seen).map(visible).collect();
        snapshot.frame = Arc::new(Frame { entities, ..*snapshot.frame });
        Some((viewer, snapshot))
    }

    fn handle_sent(&mut self, player: PlayerId, frame: Arc<Frame<PlayerOrBall>>, bytes: Option<u16>) {
        self.server.handle_sent(player, frame, bytes);
    }

    fn poll_event(&mut self) -> Option<TickEvent<Yard>> {
        // A connected player has not joined yet.
        let is_news = |event: &TickEvent<Yard>| !matches!(event, TickEvent::Presence { .. });
        self.events.pop_front().or_else(|| std::iter::from_fn(|| self.server.poll_event()).find(is_news))
    }

    fn world(&self) -> &Ground {
        self.server.world()
    }

    fn check_rollback(&mut self, every: u32) -> bool {
        self.server.check_rollback(every)
    }

    fn rollbacks(&self) -> Option<Rollbacks> {
        self.server.rollbacks()
    }
}

/// Joins, wanders, throws now and then, and leaves.
pub(crate) struct Wanderer {
    rng: Rng,
    there: std::ops::Range<Micros>,
    turn_at: Micros,
    input: Input,
}

impl Bots for Yard {
    type Bot = Wanderer;

    fn bot((): &(), seed: Seed, player: PlayerId) -> Wanderer {
        let begin = Micros::from_ms(300 + 700 * i64::from(player.0));
        let there = begin..begin + Micros::from_ms(3_500);
        Wanderer { rng: Rng::new(seed, player.0.into()), there, turn_at: Micros::ZERO, input: Input::default() }
    }

    fn think(
        bot: &mut Wanderer,
        (): &(),
        own: Option<&PlayerOrBall>,
        others: &[(EntityId, PlacedBody<PlayerOrBall>)],
        now: Micros,
        msec: u8,
    ) -> Input {
        if now >= bot.turn_at {
            bot.turn_at = now + Micros::from_ms(200 + bot.rng.below(500) as i64);
            bot.input.forwardmove = bot.rng.signed_f32() * 400.0;
            bot.input.sidemove = bot.rng.signed_f32() * 200.0;
        }
        bot.input.msec = msec;
        bot.input.impulse = match (bot.there.contains(&now), own.is_some_and(|own| own.alive)) {
            (true, false) => JOIN,
            (false, true) => LEAVE,
            _ => 0,
        };
        bot.input.buttons = 0;
        if let (Some(own), Some((_, target))) = (own, others.first()) {
            let to = target.body.origin - own.origin;
            bot.input.viewangles.y = libm::atan2f(to.y, to.x).to_degrees();
            bot.input.buttons = if bot.rng.chance(0.1) { buttons::ATTACK } else { 0 };
        }
        bot.input.clone()
    }
}
