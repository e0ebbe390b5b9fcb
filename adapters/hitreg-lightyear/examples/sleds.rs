//! Sleds on a line, over UDP: `sleds server PORT LOG`, `sleds client PLAYER PORT LOG` and `sleds replay LOG -o TRACE`.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use bevy::ecs::entity::MapEntities;
use bevy::prelude::*;
use bevy::state::app::StatesPlugin;
use hitreg_lightyear::hitreg_log::recorder::{Description, Recorder, RecorderOptions};
use hitreg_lightyear::{
    Components, HitregClientRecorderPlugin, HitregRecorderPlugin, HitregReplay, RecordedEntity, RecordedGame,
};
use lightyear::connection::client::Connected;
use lightyear::prelude::client::input::InputSystems;
use lightyear::prelude::input::InputConfig;
use lightyear::prelude::input::native::{ActionState, InputMarker, InputPlugin};
use lightyear::prelude::server::{ClientOf, Server};
use lightyear::prelude::*;
use serde::{Deserialize, Serialize};

pub(crate) const HZ: u32 = 60;
pub(crate) const DRAG: &str = "sleds.drag";

#[derive(Clone, Debug, Default, PartialEq, Reflect, Serialize, Deserialize)]
pub(crate) struct Pad {
    pub(crate) thrust: i8,
    pub(crate) brake: bool,
}
hitreg_lightyear::fields!(Pad { thrust: i8, brake: bool });

impl MapEntities for Pad {
    fn map_entities<M: EntityMapper>(&mut self, _: &mut M) {}
}

#[derive(Component, Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sled {
    pub(crate) x: f32,
    pub(crate) vx: f32,
    pub(crate) bumps: u32,
}
hitreg_lightyear::fields!(Sled { x: f32 as Position "origin.x", vx: f32 as Velocity "velocity.x", bumps: u32 as Counter });

impl Sled {
    fn of(player: u16) -> Sled {
        Sled { x: f32::from(player) * 80.0 - 40.0, ..Sled::default() }
    }
}

#[derive(Resource)]
struct Drag(f32);

fn fly(time: Res<Time>, drag: Res<Drag>, mut sleds: Query<(&mut Sled, &ActionState<Pad>), Without<Interpolated>>) {
    for (mut sled, pad) in &mut sleds {
        let brake = if pad.brake { 0.5 } else { 1.0 };
        sled.vx = (sled.vx + f32::from(pad.thrust) * 2.0) * drag.0 * brake;
        sled.x += sled.vx * time.delta_secs();
        if sled.x.abs() > 50.0 {
            (sled.x, sled.vx, sled.bumps) = (sled.x.clamp(-50.0, 50.0), -sled.vx, sled.bumps + 1);
        }
    }
}

/// The simulation: the same in servers, clients and replays.
pub(crate) fn simulation(app: &mut App, drag: &str) {
    app.insert_resource(Drag(drag.parse().unwrap_or(0.98))).add_systems(FixedUpdate, fly);
}

/// What logs hold.
pub(crate) fn recorded() -> RecordedGame<Pad> {
    RecordedGame::new("sleds", 2, HZ).class("sled", Components::of::<Sled>())
}

pub(crate) fn join(world: &mut World, player: u16) -> Entity {
    world.spawn(Sled::of(player)).id()
}

fn protocol(app: &mut App) {
    let config = InputConfig::<Pad> { lag_compensation: true, ..InputConfig::default() };
    app.add_plugins(InputPlugin { config });
    app.component::<RecordedEntity>().replicate();
    app.component::<Sled>().replicate().predict();
    app.interpolate_with::<Sled>(InterpolationFns::interpolate(|start: Sled, end: Sled, t| Sled {
        x: start.x + (end.x - start.x) * t,
        ..end
    }));
}

fn recorder(about: Description, log: &Path) -> Recorder {
    Recorder::create(log, about.setting(DRAG, "0.98"), RecorderOptions::default()).expect("the log can be created")
}

fn tick_duration() -> Duration {
    Duration::from_secs(1) / HZ
}

pub(crate) fn server(port: u16, log: &Path, conditioner: Option<RecvLinkConditioner>) -> App {
    use lightyear::prelude::server::{NetcodeConfig, NetcodeServer, ServerPlugins, ServerUdpIo, Start};
    let recorder = recorder(recorded().describe(), log);
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, StatesPlugin, ServerPlugins { tick_duration: tick_duration() }));
    app.add_plugins(HitregRecorderPlugin::new(recorded(), recorder));
    protocol(&mut app);
    simulation(&mut app, "0.98");
    app.add_observer(|link: On<Add, LinkOf>, mut commands: Commands| {
        commands.entity(link.entity).insert(ReplicationSender);
    });
    app.add_observer(spawn_sled);
    let address = LocalAddr(SocketAddr::from((Ipv4Addr::LOCALHOST, port)));
    let netcode = NetcodeServer::new(NetcodeConfig::default());
    let entity = app.world_mut().spawn((Server::new(conditioner), address, ServerUdpIo::default(), netcode)).id();
    app.add_systems(Startup, move |mut commands: Commands| commands.trigger(Start { entity }));
    app
}

fn spawn_sled(connected: On<Add, Connected>, clients: Query<&RemoteId, With<ClientOf>>, mut commands: Commands) {
    let Ok(&RemoteId(peer @ PeerId::Netcode(player))) = clients.get(connected.entity) else { return };
    commands.spawn((
        Sled::of(player as u16),
        RecordedEntity(player as u16),
        Replicate::to_clients(NetworkTarget::All),
        PredictionTarget::to_clients(NetworkTarget::Single(peer)),
        InterpolationTarget::to_clients(NetworkTarget::AllExceptSingle(peer)),
        ControlledBy { owner: connected.entity, lifetime: Lifetime::default() },
    ));
}

pub(crate) fn client(player: u16, port: u16, log: &Path, conditioner: Option<RecvLinkConditioner>) -> App {
    use lightyear::prelude::client::{Client, ClientPlugins, Connect, NetcodeClient, NetcodeConfig};
    let mut app = App::new();
    app.add_plugins((MinimalPlugins, StatesPlugin, ClientPlugins { tick_duration: tick_duration() }));
    let recorder = recorder(recorded().describe_client(), log);
    app.add_plugins(HitregClientRecorderPlugin::new(recorded(), player, recorder));
    protocol(&mut app);
    simulation(&mut app, "0.98");
    app.insert_resource(PredictionManager::default());
    app.add_observer(|controlled: On<Add, Controlled>, mut commands: Commands| {
        commands.entity(controlled.entity).insert(InputMarker::<Pad>::default());
    });
    let steer = move |now: Res<LocalTimeline>, mut pads: Query<&mut ActionState<Pad>, With<InputMarker<Pad>>>| {
        pads.iter_mut().for_each(|mut state| state.0 = pad(player, now.tick().0));
    };
    app.add_systems(FixedPreUpdate, steer.in_set(InputSystems::WriteClientInputs));
    let server_addr = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let auth = Authentication::Manual { server_addr, client_id: player.into(), private_key: [0; 32], protocol_id: 0 };
    let netcode = NetcodeClient::new(auth, NetcodeConfig::default()).expect("the token can be made");
    let link = Link::default().with_conditioner(conditioner);
    let own = LocalAddr(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    let client = (Client, ReplicationReceiver, link, own, PeerAddr(server_addr), netcode, UdpIo::default());
    let entity = app.world_mut().spawn(client).id();
    app.add_systems(Startup, move |mut commands: Commands| commands.trigger(Connect { entity }));
    app
}

/// A bot's input.
pub(crate) fn pad(player: u16, tick: u32) -> Pad {
    let phase = tick / 9 + 2 * u32::from(player);
    Pad { thrust: (phase % 3) as i8 - 1, brake: phase % 7 == 6 }
}

/// Ends the app after 10 seconds.
fn exit(time: Res<Time<Real>>, mut exits: MessageWriter<AppExit>) {
    if time.elapsed_secs() > 10.0 {
        exits.write(AppExit::Success);
    }
}

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let mut app = match args[..] {
        ["server", port, log] => server(port.parse().unwrap_or(7000), log.as_ref(), None),
        ["client", player, port, log] => {
            client(u16::from(player == "1"), port.parse().unwrap_or(7000), log.as_ref(), None)
        }
        _ => {
            let replayed = HitregReplay::new(recorded(), join).run(std::env::args_os().skip(1), |play| {
                let mut app = App::new();
                simulation(&mut app, play.setting(DRAG).unwrap_or_default());
                app
            });
            return replayed.map_or_else(
                |error| {
                    eprintln!("sleds: {error}");
                    ExitCode::from(error.exit_code())
                },
                |()| ExitCode::SUCCESS,
            );
        }
    };
    app.add_systems(Update, exit).run();
    ExitCode::SUCCESS
}
