//! The things that can be removed from a session, and sessions without them.

mod beginning;
mod cut;
mod hands;
mod links;
mod time;

use super::CostKind;
use hitreg_log::record::{PlayerRecords, Session, SnapshotRecord};
use hitreg_log::sorted::SortedSet;
use hitreg_netcode::settings::without_players;

/// One thing that can be removed. Players and usercmds are named by their indices in the session's lists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Removable {
    /// A player.
    Player(usize),
    /// A tick, by its index.
    Tick(usize),
    /// A player's input in a client frame.
    Usercmd(usize, usize),
    /// The loss of a packet: player, direction and packet number.
    Loss(usize, PacketDirection, u32),
    /// The second arrival of a packet.
    Duplicate(usize, PacketDirection, u32),
    /// The difference of a packet's delay from the median.
    Delay(usize, PacketDirection, u32),
    /// A key that a player pressed in a client frame.
    Button(usize, usize, InputKey),
    /// A player's view angles in a client frame.
    Angles(usize, usize),
    /// A player's move in a client frame: 0 is forward, 1 sideways, 2 up.
    Move(usize, usize, usize),
    /// An input field that the game declares, in a player's client frame, by the places of its cells: first and end.
    OwnInput(usize, usize, [usize; 2]),
}

impl Removable {
    /// The index of the player that this removes.
    fn player(&self) -> Option<usize> {
        if let Removable::Player(player) = self { Some(*player) } else { None }
    }
}

/// The direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PacketDirection {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    Down,
}

/// A button or impulse.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InputKey {
    /// The button with this bit.
    Bit(u8),
    /// The impulse, whatever its number.
    Impulse,
}

/// How a candidate is made from a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShrinkEdit {
    /// Only the input remains, and the game records the rest again.
    Rerecorded,
    /// Every kind of record remains, cut to the part: for builds that replay a log and cannot record it again.
    Cut,
}

impl ShrinkEdit {
    /// All things of one kind that can be removed, in the order in which they are tried: ticks from the end, everything
    /// else from the beginning.
    pub fn things(self, session: &Session, kind: CostKind) -> Vec<Removable> {
        match (kind, self) {
            (CostKind::Players, ShrinkEdit::Rerecorded) => (0..session.players.len()).map(Removable::Player).collect(),
            (CostKind::Players, ShrinkEdit::Cut) => cut::players(session),
            (CostKind::Ticks, _) => (0..session.ticks.len()).rev().map(Removable::Tick).collect(),
            (CostKind::Usercmds | CostKind::Buttons | CostKind::Angles | CostKind::Moves | CostKind::OwnInput, _) => {
                hands::things(session, kind)
            }
            (CostKind::Losses | CostKind::Duplicates | CostKind::Delays, ShrinkEdit::Rerecorded) => {
                links::things(session, kind)
            }
            (CostKind::Losses | CostKind::Duplicates | CostKind::Delays, ShrinkEdit::Cut) => Vec::new(),
        }
    }

    /// A session without some of its things. At least one player and one tick should remain.
    ///
    /// For [`ShrinkEdit::Rerecorded`] it is only the input from which
    /// [`rerecord`](hitreg_netcode::replay::rerecord) makes a session. Without its first ticks, it begins with the last
    /// recorded states of the players before the first remaining tick.
    pub fn without(self, session: &Session, things: &[Removable]) -> Session {
        match self {
            ShrinkEdit::Rerecorded => inputs_without(session, things),
            ShrinkEdit::Cut => cut::without(session, things),
        }
    }
}

fn inputs_without(session: &Session, things: &[Removable]) -> Session {
    let mut edited = Session { states: beginning::states(session, things), ..inputs_of(session) };
    things.iter().for_each(|thing| hands::remove(&mut edited, *thing));
    links::remove(&mut edited, things);
    time::remove(&mut edited, &removed_ticks(things));
    remove_players(&mut edited, &things.iter().filter_map(Removable::player).collect());
    edited
}

/// The indices of the ticks among things.
fn removed_ticks(things: &[Removable]) -> SortedSet<usize> {
    things.iter().filter_map(|thing| if let Removable::Tick(tick) = thing { Some(*tick) } else { None }).collect()
}

/// A copy of a session that holds only what its replay depends on.
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
        // Needed by builds that run usercmds in the ticks in which they were recorded.
        executed: p.executed.clone(),
        ..PlayerRecords::default()
    };
    let mut inputs = Session::new(session.header.clone());
    inputs.players = session.players.iter().map(player).collect();
    inputs.ticks.clone_from(&session.ticks);
    inputs.texts.clone_from(&session.texts);
    inputs
}

fn remove_players(session: &mut Session, removed: &SortedSet<usize>) {
    beginning::remove_players(&mut session.states, removed);
    without_players(&mut session.header.settings, removed);
    let kept: Vec<usize> = (0..session.header.players.len()).filter(|p| !removed.contains(p)).collect();
    let mut place = 0..;
    session.header.players.retain(|_| place.next().is_none_or(|p| !removed.contains(&p)));
    // A name that is only the player's number follows it.
    for (number, (player, before)) in session.header.players.iter_mut().zip(kept).enumerate() {
        if player.name == format!("p{before}") {
            player.name = format!("p{number}");
        }
    }
    let mut place = 0..;
    session.players.retain(|_| place.next().is_none_or(|p| !removed.contains(&p)));
}
