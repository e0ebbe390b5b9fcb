//! What can be taken out of a session one by one, and sessions without it.

mod beginning;
mod hands;
mod links;
mod time;

use std::collections::BTreeSet;

use super::Kind;
use hitreg_log::record::{PlayerRecords, Session, SnapshotRecord};
use hitreg_netcode::settings::without_players;

/// One thing that can be taken out. Players and usercmds are named by their places in the session's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Thing {
    /// A player.
    Player(usize),
    /// A tick, by its place.
    Tick(usize),
    /// What a player did in a client frame.
    Usercmd(usize, usize),
    /// The loss of a packet: the player, which way, and its number.
    Loss(usize, Direction, u32),
    /// The second arrival of a packet.
    Duplicate(usize, Direction, u32),
    /// What a packet took more or less than others.
    Delay(usize, Direction, u32),
    /// What a player pressed in a client frame.
    Button(usize, usize, Key),
    /// Where a player looked in a client frame.
    Angles(usize, usize),
    /// How a player moved in a client frame: 0 is forward, 1 to the side, 2 up.
    Move(usize, usize, usize),
}

/// Which way a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Direction {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// Something to press.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Key {
    /// The button with this bit.
    Bit(u8),
    /// The impulse, whichever it is.
    Impulse,
}

/// All things of one kind, in the order in which they are tried: time from its end, the rest from the beginning.
pub fn things(session: &Session, kind: Kind) -> Vec<Thing> {
    match kind {
        Kind::Players => (0..session.players.len()).map(Thing::Player).collect(),
        Kind::Ticks => (0..session.ticks.len()).rev().map(Thing::Tick).collect(),
        Kind::Usercmds | Kind::Buttons | Kind::Angles | Kind::Moves => hands::things(session, kind),
        Kind::Losses | Kind::Duplicates | Kind::Delays => links::things(session, kind),
    }
}

/// The input of a session without some of its things: what [`rerecord`](hitreg_netcode::replay::rerecord) makes a session of. Not
/// all players and not all ticks should be among the things, for nothing happens without.
///
/// Without its first ticks, a session begins with the players as they were last recorded by then.
pub fn without(session: &Session, things: &[Thing]) -> Session {
    let mut edited = Session { states: beginning::states(session, things), ..inputs_of(session) };
    let (mut players, mut ticks) = (BTreeSet::new(), BTreeSet::new());
    for thing in things {
        match *thing {
            Thing::Player(player) => {
                players.insert(player);
            }
            Thing::Tick(tick) => {
                ticks.insert(tick);
            }
            Thing::Usercmd(..) | Thing::Button(..) | Thing::Angles(..) | Thing::Move(..) => {
                hands::remove(&mut edited, *thing);
            }
            Thing::Loss(..) | Thing::Duplicate(..) | Thing::Delay(..) => {}
        }
    }
    links::remove(&mut edited, things);
    time::remove(&mut edited, &ticks);
    remove_players(&mut edited, &players);
    edited
}

/// What a session's replay depends on, and nothing else.
fn inputs_of(session: &Session) -> Session {
    let snapshot = |s: &SnapshotRecord| SnapshotRecord {
        entities: Vec::new(),
        effects: Vec::new(),
        extra: Vec::new(),
        timing: None,
        ..*s
    };
    let player = |p: &PlayerRecords| PlayerRecords {
        frames: p.frames.clone(),
        sent: p.sent.clone(),
        reached: p.reached.clone(),
        heard: p.heard.clone(),
        snapshots: p.snapshots.iter().map(snapshot).collect(),
        received: p.received.clone(),
        // Builds that play usercmds in the ticks in which they ran have nothing else to go by.
        executed: p.executed.clone(),
        ..PlayerRecords::default()
    };
    let mut inputs = Session::new(session.header.clone());
    inputs.players = session.players.iter().map(player).collect();
    inputs.ticks.clone_from(&session.ticks);
    inputs
}

fn remove_players(session: &mut Session, removed: &BTreeSet<usize>) {
    beginning::remove_players(&mut session.states, removed);
    without_players(&mut session.header.settings, removed);
    let mut place = 0..;
    session.header.players.retain(|_| place.next().is_none_or(|p| !removed.contains(&p)));
    let mut place = 0..;
    session.players.retain(|_| place.next().is_none_or(|p| !removed.contains(&p)));
}
