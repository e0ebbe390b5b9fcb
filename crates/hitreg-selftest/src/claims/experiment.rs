//! Plays a claim's scene: the real server and clients on modelled links in virtual time, with scripted input.

use std::sync::Arc;

use glam::Vec3;

use crate::claims::ClaimError;
use crate::claims::partial::{ClientPart, PartialClient, ShotConfirmations, TrustingServer};
use crate::claims::script::{
    LinkScript, MapName, PlayerScript, RulesChange, SceneVariant, Script, ScriptedInput, ScriptedSession,
};
use crate::claims::watch::SessionWatch;
use crate::soak::FalseClaims;
use hitreg_arena::{Arena, ArenaBody, ArenaMap, ArenaRules, Muzzle, WeaponId};
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{EntityId, Micros, PlayerId, Seed};
use hitreg_netcode::game::Simulate as _;
use hitreg_netcode::link::{LinkModel, LinkWithOutages, ModelledLink};
use hitreg_netcode::pipeline::{ServerPipeline, Setup};
use hitreg_netcode::server::Server;
use hitreg_netcode::session::{Intruder, Links, Machine, Observer};
use hitreg_netcode::settings::Settings;

/// The setup of a claim: its script, played with the claimed mechanism or without.
#[derive(Clone, Debug)]
pub(super) struct Experiment {
    pub(super) script: Script,
    /// Whether the mechanism is switched off; also for mechanisms that no setting controls.
    pub(super) is_off: bool,
}

/// A scene with all changes applied.
#[derive(Clone)]
pub(super) struct PreparedExperiment {
    pub(super) settings: Arc<Settings>,
    pub(super) rules: Arc<ArenaRules>,
    pub(super) scene: ScriptedSession,
    /// What player 0's client leaves out.
    client_leaves_out: Option<ClientPart>,
}

impl Experiment {
    /// Plays the scene unchanged.
    ///
    /// # Errors
    /// When the script cannot be played.
    pub(super) fn play(&self) -> Result<SessionWatch, ClaimError> {
        self.prepare(&SceneVariant::default())?.watch()
    }

    /// Plays the scene with a client that reports to the server, by requests, which of its shots hit on its own screen.
    /// If the mechanism is switched off, the server believes the reports. Also returns the number of reports received.
    ///
    /// # Errors
    /// When the script cannot be played.
    pub(super) fn play_saying_results(&self, player: u16) -> Result<(SessionWatch, usize), ClaimError> {
        let prepared = self.prepare(&SceneVariant::default())?;
        let results = ShotConfirmations::default();
        let telling = Some((PlayerId(player), results.clone()));
        let seen = match self.is_off {
            false => prepared.watch_with::<Server<Arena>>(telling, |_| {})?,
            true => prepared.watch_with::<TrustingServer>(telling, |machine| {
                machine.server().results = results.clone();
            })?,
        };
        Ok((seen, results.heard()))
    }

    /// Plays the scene with a listener that sees all datagrams.
    ///
    /// # Errors
    /// When the script cannot be played.
    pub(super) fn play_overheard(&self, listener: Box<dyn Intruder>) -> Result<SessionWatch, ClaimError> {
        let prepared = self.prepare(&SceneVariant::default())?;
        prepared.watch_with::<Server<Arena>>(None, |machine| machine.add_intruder(listener))
    }

    /// Plays a variant of the scene.
    ///
    /// # Errors
    /// When the variant does not exist or cannot be played.
    pub(super) fn play_variant(&self, name: &str) -> Result<SessionWatch, ClaimError> {
        self.variant(name)?.watch()
    }

    /// Plays a variant of the scene in which player 0's link to the server carries `bytes_per_s` bytes per second.
    ///
    /// # Errors
    /// When the variant does not exist or cannot be played.
    pub(super) fn play_over(&self, name: &str, bytes_per_s: f64) -> Result<SessionWatch, ClaimError> {
        let mut prepared = self.variant(name)?;
        for player in prepared.scene.players.iter_mut().take(1) {
            let plain = LinkModel { delay_ms: player.link.delay_ms, ..LinkModel::default() };
            let up = player.link.up.take().unwrap_or(plain);
            player.link.up = Some(LinkModel { rate_bytes_per_s: Some(bytes_per_s), ..up });
        }
        prepared.watch()
    }

    /// Returns a variant of the scene, ready to play.
    ///
    /// # Errors
    /// When the variant does not exist, or a setting is not available.
    pub(super) fn variant(&self, name: &str) -> Result<PreparedExperiment, ClaimError> {
        let variant = self.script.variants.get(name).ok_or_else(|| ClaimError::NoVariant(name.to_owned()))?;
        self.prepare(variant)
    }

    fn prepare(&self, variant: &SceneVariant) -> Result<PreparedExperiment, ClaimError> {
        let mut scene = self.script.scene.clone().ok_or(ClaimError::NoScene)?;
        let off = &self.script.off;
        let mut settings = Settings::preset(&scene.preset)?;
        let mut rules = ArenaRules::new(map(scene.map)?);
        set_all(&mut settings, &scene.settings)?;
        set_all(&mut settings, &variant.settings)?;
        change_rules(&mut rules, &scene.rules);
        change_rules(&mut rules, &variant.rules);
        if self.is_off {
            set_all(&mut settings, &off.settings)?;
            change_rules(&mut rules, &off.rules);
        }
        for (player, link) in scene.players.iter_mut().zip(&variant.links) {
            player.link = link.clone();
        }
        for player in &mut scene.players {
            player.frame_jitter_ms = variant.frame_jitter_ms.unwrap_or(player.frame_jitter_ms);
        }
        for (name, start) in &variant.starts {
            scene.player(name)?.start = Some(*start);
        }
        for (name, input) in &variant.input {
            scene.player(name)?.input.clone_from(input);
        }
        let client_leaves_out = off.client_leaves_out.filter(|_| self.is_off).or(variant.client_leaves_out);
        Ok(PreparedExperiment { settings: Arc::new(settings), rules: Arc::new(rules), scene, client_leaves_out })
    }
}

impl ScriptedSession {
    fn player(&mut self, name: &str) -> Result<&mut PlayerScript, ClaimError> {
        let player = name.parse().ok().and_then(|index: usize| self.players.get_mut(index));
        player.ok_or_else(|| ClaimError::NoPlayer(name.to_owned()))
    }
}

impl PreparedExperiment {
    /// Plays the scene for an observer.
    ///
    /// # Errors
    /// When the players cannot be placed.
    pub(super) fn play(&self, observer: &mut dyn Observer<Arena>) -> Result<ScriptedInput, ClaimError> {
        self.played::<Server<Arena>>(observer, None, |_| {})
    }

    /// Plays the scene and returns its events.
    fn watch(&self) -> Result<SessionWatch, ClaimError> {
        self.watch_with::<Server<Arena>>(None, |_| {})
    }

    /// Like [`PreparedExperiment::played`], but returns the events.
    fn watch_with<S: ServerPipeline<Arena>>(
        &self,
        telling: Option<(PlayerId, ShotConfirmations)>,
        make_ready: impl FnOnce(&mut Machine<Arena, LinkWithOutages, PartialClient, S>),
    ) -> Result<SessionWatch, ClaimError> {
        let mut seen = SessionWatch::default();
        let input = self.played(&mut seen, telling, make_ready)?;
        let [from, to] = self.scene.inspect_ms.unwrap_or([0.0, self.scene.seconds * 1000.0]);
        seen.meant = input.meant;
        seen.players = self.scene.players.len() as u16;
        seen.inspect = (Micros::from_ms_f64(from), Micros::from_ms_f64(to));
        Ok(seen)
    }

    /// Plays the scene with a player 0 that claims to have made its usercmds so many ms later than it did.
    ///
    /// # Errors
    /// When the players cannot be placed.
    pub(super) fn stamped(&self, clock_ms: i32) -> Result<SessionWatch, ClaimError> {
        let lie = FalseClaims { clock_ms, ..FalseClaims::default() };
        PreparedExperiment { client_leaves_out: Some(ClientPart::Truth(lie)), ..self.clone() }.watch()
    }

    /// Plays the scene with another kind of server, after `make_ready` has prepared the machine.
    fn played<S: ServerPipeline<Arena>>(
        &self,
        observer: &mut dyn Observer<Arena>,
        telling: Option<(PlayerId, ShotConfirmations)>,
        make_ready: impl FnOnce(&mut Machine<Arena, LinkWithOutages, PartialClient, S>),
    ) -> Result<ScriptedInput, ClaimError> {
        let PreparedExperiment { settings, rules, scene, client_leaves_out } = self;
        let seed = Seed(scene.seed);
        let links = scene.players.iter().enumerate().map(|(p, player)| links(&player.link, seed, p as u64)).collect();
        let setup = Setup { rules: Arc::clone(rules), settings: Arc::clone(settings), seed };
        let client = |setup, player| {
            let results = telling.as_ref().filter(|(teller, _)| *teller == player).map(|(_, results)| results.clone());
            let part = client_leaves_out.filter(|_| player == PlayerId(0));
            let mut client = PartialClient::without(part, setup, player);
            client.results = results;
            client
        };
        let mut machine = Machine::<Arena, LinkWithOutages, PartialClient, S>::with_clients(&setup, links, client);
        make_ready(&mut machine);
        if scene.players.iter().any(|player| player.start.is_some()) {
            let world = Arena::begin(rules, seed, &placed(rules, scene)).ok_or(ClaimError::NoScene)?;
            machine.server().begin_from(world);
        }
        if let Some((player, results)) = &telling {
            machine.add_requests(results.told_by(*player));
        }
        let mut input = ScriptedInput::new(scene, settings);
        let end = Micros((scene.seconds * 1e6) as i64);
        let ticks = (1..).map(|n| settings.server.tick_hz.period_start(n)).take_while(|at| *at <= end);
        machine.run(ticks, &mut input, observer);
        Ok(input)
    }
}

fn map(name: MapName) -> Result<ArenaMap, ClaimError> {
    let (name, text) = match name {
        MapName::Orchard => return Ok(ArenaMap::orchard()),
        MapName::Plain => ("plain", include_str!("../../claims/plain.map")),
        MapName::Corner => ("corner", include_str!("../../claims/corner.map")),
        MapName::Teleporter => ("teleporter", include_str!("../../claims/teleporter.map")),
    };
    Ok(ArenaMap::parse(name, text.as_bytes())?)
}

/// Returns the spawned players, moved to the scene's starting places. A player who has one does not wait for a free spawn
/// point: it is spawned as the first player is.
fn placed(rules: &ArenaRules, scene: &ScriptedSession) -> Vec<(EntityId, ArenaBody)> {
    let world = Arena::spawn(rules, Seed(scene.seed), scene.players.len() as u16);
    let spawned = Arena::entities(&world);
    let place = |((id, body), player): (&(EntityId, ArenaBody), &PlayerScript)| {
        let body = match player.start {
            Some(start) => {
                let living = if body.alive { body } else { &spawned[0].1 };
                ArenaBody { origin: Vec3::from_array(start), ..*living }
            }
            None => *body,
        };
        (*id, body)
    };
    spawned.iter().zip(&scene.players).map(place).collect()
}

fn links(connection: &LinkScript, seed: Seed, player: u64) -> Links<LinkWithOutages> {
    let plain = LinkModel { delay_ms: connection.delay_ms, ..LinkModel::default() };
    let link = |model: &Option<LinkModel>, holes: &[[f64; 2]], direction| {
        let model = model.clone().unwrap_or(plain.clone());
        LinkWithOutages::new(ModelledLink::new(model, seed, player * 2 + direction), holes)
    };
    Links {
        up: link(&connection.up, &connection.lose_up_ms, 0),
        down: link(&connection.down, &connection.lose_down_ms, 1),
    }
}

fn set_all(settings: &mut Settings, changes: &SortedMap<String, String>) -> Result<(), ClaimError> {
    for (key, value) in changes {
        settings.set(key, value)?;
    }
    Ok(())
}

fn change_rules(rules: &mut ArenaRules, change: &RulesChange) {
    fn set<T: Copy>(value: &mut T, to: Option<T>) {
        if let Some(to) = to {
            *value = to;
        }
    }
    set(&mut rules.movement.maxspeed, change.maxspeed);
    set(&mut rules.movement.accelerate, change.accelerate);
    set(&mut rules.movement.friction, change.friction);
    set(&mut rules.health, change.health);
    set(&mut rules.respawn_ms, change.respawn_ms);
    set(&mut rules.knockback_units_s, change.knockback_units_s);
    set(&mut rules.player_collision, change.player_collision);
    let pistol_shot = rules.weapons[WeaponId::Pistol as usize].shot;
    let pistol = &mut rules.weapons[WeaponId::Pistol as usize];
    set(&mut pistol.interval_ms, change.pistol_interval_ms);
    set(&mut pistol.clip, change.pistol_clip);
    if let Muzzle::Bullets { damage, .. } = &mut pistol.shot {
        set(damage, change.pistol_damage);
    }
    let launcher = &mut rules.weapons[WeaponId::Launcher as usize];
    set(&mut launcher.clip, change.launcher_clip);
    set(&mut launcher.interval_ms, change.launcher_interval_ms);
    if let Muzzle::Rocket { speed_units_s, radius_units, .. } = &mut launcher.shot {
        set(speed_units_s, change.rocket_speed_units_s);
        set(radius_units, change.rocket_radius_units);
    }
    if change.launcher_hits_at_once == Some(true) {
        launcher.shot = pistol_shot;
    }
}
