//! The things that can be removed from a session, and sessions without them.

use glam::Vec3;

use super::CostKind;
use hitreg_log::record::{
    ArrivalRecord, ArrivalTable, PlayerRecords, Session, SnapshotRecord, StateKey, States, cells_of,
};
use hitreg_log::sorted::SortedSet;
use hitreg_log::stats::percentile;
use hitreg_log::units::{EntityId, Micros, Tick};
use hitreg_log::usercmd::{Input, OwnCells};
use hitreg_netcode::link::Fate;
use hitreg_netcode::protocol::Direction;
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
    Loss(usize, Direction, u32),
    /// The second arrival of a packet.
    Duplicate(usize, Direction, u32),
    /// The difference of a packet's delay from the median.
    Delay(usize, Direction, u32),
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
            (CostKind::Players, ShrinkEdit::Cut) => players_with_records(session),
            (CostKind::Ticks, _) => (0..session.ticks.len()).rev().map(Removable::Tick).collect(),
            (CostKind::Usercmds | CostKind::Buttons | CostKind::Angles | CostKind::Moves | CostKind::OwnInput, _) => {
                input_things(session, kind)
            }
            (CostKind::Losses | CostKind::Duplicates | CostKind::Delays, ShrinkEdit::Rerecorded) => {
                link_things(session, kind)
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
            ShrinkEdit::Cut => part_without(session, things),
        }
    }
}

fn inputs_without(session: &Session, things: &[Removable]) -> Session {
    let mut edited = Session { states: first_states(session, things), ..inputs_of(session) };
    things.iter().for_each(|thing| remove_input(&mut edited, *thing));
    remove_link_things(&mut edited, things);
    remove_ticks(&mut edited, &removed_ticks(things));
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
    remove_players_of_states(&mut session.states, removed);
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

/// The states of tick 0 for a session without some of its ticks. They are the last recorded states of the players
/// before the first remaining tick, or else the session's own first states.
fn first_states(session: &Session, removed: &[Removable]) -> States {
    let ticks = removed_ticks(removed);
    // Indices count from 0 and ticks from 1, so the number of removed ticks is the number of the last removed tick.
    let gone = (0..).take_while(|place| ticks.contains(place)).count();
    let players = session.players.len();
    let whole = |tick: &Tick| players_of(session, *tick).count() == players;
    let last = session.states.keys().partition_point(|key| key.tick.0 as usize <= gone);
    let recorded = session.states.keys()[..last].iter().rev().map(|key| key.tick).find(whole);
    let mut states = States::default();
    for (key, cells) in recorded.into_iter().flat_map(|tick| players_of(session, tick)) {
        states.push(StateKey { tick: Tick(0), ..key }, cells);
    }
    states
}

/// The recorded players of a tick, in the states for all viewers. Other entities (projectiles) cannot be restored at a
/// session's beginning.
fn players_of(session: &Session, tick: Tick) -> impl Iterator<Item = (StateKey, &[u32])> {
    let is_player = |key: &StateKey| key.viewer.is_none() && usize::from(key.entity.0) < session.players.len();
    session.states.of_tick(tick).filter(move |(key, _)| is_player(key))
}

/// Removes players from the first states. The numbers of later players move down.
fn remove_players_of_states(states: &mut States, removed: &SortedSet<usize>) {
    let was = std::mem::take(states);
    for (key, cells) in was.of_tick(Tick(0)).filter(|(key, _)| !removed.contains(&usize::from(key.entity.0))) {
        let before = removed.range(..usize::from(key.entity.0)).count() as u16;
        states.push(StateKey { entity: EntityId(key.entity.0 - before), ..key }, cells);
    }
}

/// The players that have records.
fn players_with_records(session: &Session) -> Vec<Removable> {
    let players = session.players.iter().enumerate().filter(|(_, player)| !player.is_empty());
    players.map(|(index, _)| Removable::Player(index)).collect()
}

/// The part of a session without some of its things, for builds that cannot record a log again. It keeps every kind of
/// record.
///
/// Only the first and the last ticks can be removed. Ticks, usercmds and players keep their numbers, because records of
/// the game's own may name them. The link is what was recorded: the ticks in which usercmds ran do not depend on it.
fn part_without(session: &Session, things: &[Removable]) -> Session {
    let is_removed = removed_ticks(things);
    let mut kept = (0..session.ticks.len()).filter(|index| !is_removed.contains(index));
    let (first, last) = (kept.next().unwrap_or(session.ticks.len()), kept.next_back());
    let number = |index: usize| session.ticks.get(index).map_or(Tick(0), |tick| tick.tick);
    let after = first.checked_sub(1).map_or(Tick(0), number);
    let mut edited = session.part(after, number(last.unwrap_or(first)));
    things.iter().for_each(|thing| remove_input(&mut edited, *thing));
    things.iter().filter_map(Removable::player).for_each(|player| edited.empty_player(player));
    edited
}

/// The things of a kind that concerns usercmds.
fn input_things(session: &Session, kind: CostKind) -> Vec<Removable> {
    let own_fields = session.header.own_usercmd_fields();
    let mut things = Vec::new();
    for (player, records) in session.players.iter().enumerate() {
        for (frame, record) in records.frames.iter().enumerate() {
            let input = &record.command.input;
            match kind {
                CostKind::Usercmds if *input != idle(input) => things.push(Removable::Usercmd(player, frame)),
                CostKind::Buttons => things.extend(keys(input).map(|key| Removable::Button(player, frame, key))),
                CostKind::Angles if input.viewangles != Vec3::ZERO => things.push(Removable::Angles(player, frame)),
                CostKind::Moves => {
                    let moves = [input.forwardmove, input.sidemove, input.upmove];
                    let moved = (0..moves.len()).filter(|axis| moves[*axis] != 0.0);
                    things.extend(moved.map(|axis| Removable::Move(player, frame, axis)));
                }
                CostKind::OwnInput => {
                    let places = cells_of(&own_fields).map(|(_, place)| [place.start, place.end]);
                    let given = places.filter(|place| own_cells(&input.own, *place).any(|cell| cell != 0));
                    things.extend(given.map(|place| Removable::OwnInput(player, frame, place)));
                }
                _ => {}
            }
        }
    }
    things
}

/// Removes a player's input. Things of other kinds change nothing.
fn remove_input(session: &mut Session, thing: Removable) {
    let (Removable::Usercmd(player, frame)
    | Removable::Button(player, frame, _)
    | Removable::Angles(player, frame)
    | Removable::Move(player, frame, _)
    | Removable::OwnInput(player, frame, _)) = thing
    else {
        return;
    };
    let Some(record) = session.players.get_mut(player).and_then(|p| p.frames.get_mut(frame)) else { return };
    let input = &mut record.command.input;
    match thing {
        Removable::Usercmd(..) => *input = idle(input),
        Removable::Button(.., InputKey::Bit(bit)) => input.buttons &= !(1 << bit),
        Removable::Button(.., InputKey::Impulse) => input.impulse = 0,
        Removable::Angles(..) => input.viewangles = Vec3::ZERO,
        Removable::Move(.., 0) => input.forwardmove = 0.0,
        Removable::Move(.., 1) => input.sidemove = 0.0,
        Removable::Move(..) => input.upmove = 0.0,
        Removable::OwnInput(.., [first, end]) => {
            let mut cells = input.own.stored().to_vec();
            cells.iter_mut().take(end).skip(first).for_each(|cell| *cell = 0);
            input.own = OwnCells::new(&cells);
        }
        Removable::Player(..)
        | Removable::Tick(..)
        | Removable::Loss(..)
        | Removable::Duplicate(..)
        | Removable::Delay(..) => {}
    }
}

/// Only the duration and the view angles of an input.
fn idle(input: &Input) -> Input {
    Input { msec: input.msec, viewangles: input.viewangles, ..Input::default() }
}

/// The stored cells with these places.
fn own_cells(own: &OwnCells, [first, end]: [usize; 2]) -> impl Iterator<Item = u32> {
    own.stored().iter().copied().take(end).skip(first)
}

fn keys(input: &Input) -> impl Iterator<Item = InputKey> + use<> {
    let (buttons, impulse) = (input.buttons, input.impulse);
    let bits = (0..16).filter(move |bit| buttons & (1 << bit) != 0).map(InputKey::Bit);
    bits.chain((impulse != 0).then_some(InputKey::Impulse))
}

/// Removes ticks, by their indices, with everything that was done and sent since the tick before. Everything later
/// moves to an earlier time. A remaining packet keeps its delay.
fn remove_ticks(session: &mut Session, removed: &SortedSet<usize>) {
    if removed.is_empty() {
        return;
    }
    let cut = TimeCut::new(session.ticks.iter().map(|t| t.at).collect(), removed);
    let gone: SortedSet<_> =
        removed.iter().filter_map(|place| session.ticks.get(*place)).map(|tick| tick.tick).collect();
    for player in &mut session.players {
        player.executed.retain(|executed| !gone.contains(&executed.tick));
        player.frames.retain_mut(|frame| move_to(cut.of_client(frame.at), &mut frame.at));
        let was: Vec<(u32, Micros)> = player.sent.iter().map(|p| (p.number, p.at)).collect();
        player.sent.retain_mut(|packet| move_to(cut.of_client(packet.at), &mut packet.at));
        player.reached = arrivals(&was, &player.reached, |at| cut.of_client(at));
        player.heard.retain_mut(|heard| move_to(cut.of_client(heard.at), &mut heard.at));
        let was: Vec<(u32, Micros)> = player.snapshots.iter().map(|s| (s.seq.0, s.at)).collect();
        player.snapshots.retain_mut(|snapshot| move_to(cut.of_server(snapshot.at), &mut snapshot.at));
        player.received = arrivals(&was, &player.received, |at| cut.of_server(at));
    }
    session.ticks.retain_mut(|tick| move_to(cut.of_server(tick.at), &mut tick.at));
}

/// The removed time spans. Span i ends with tick i; the last span is open and begins at the last tick.
struct TimeCut {
    ticks: Vec<Micros>,
    /// How far each span moves to an earlier time; `None` for removed spans.
    sooner: Vec<Option<Micros>>,
}

impl TimeCut {
    fn new(ticks: Vec<Micros>, removed: &SortedSet<usize>) -> TimeCut {
        // The span before the first tick is as long as the span after it, so that the next tick takes the first tick's
        // time.
        let width = |span: usize| match (ticks.get(span.max(1)), ticks.get(span.max(1) - 1)) {
            (Some(end), Some(begin)) => *end - *begin,
            _ => Micros::ZERO,
        };
        let mut gone = Micros::ZERO;
        let sooner = (0..=ticks.len()).map(|span| {
            if removed.contains(&span) {
                gone += width(span);
                None
            } else {
                Some(gone)
            }
        });
        TimeCut { sooner: sooner.collect(), ticks }
    }

    /// How far an action of a client moves. At the time of a tick, clients act after it.
    fn of_client(&self, at: Micros) -> Option<Micros> {
        self.sooner[self.ticks.partition_point(|tick| *tick <= at)]
    }

    /// How far an action of the server moves; the server acts in its ticks.
    fn of_server(&self, at: Micros) -> Option<Micros> {
        self.sooner[self.ticks.partition_point(|tick| *tick < at)]
    }
}

/// Moves a time; false if its span was removed.
fn move_to(sooner: Option<Micros>, at: &mut Micros) -> bool {
    if let Some(sooner) = sooner {
        *at = *at - sooner;
    }
    sooner.is_some()
}

/// The arrivals of the remaining packets, moved with their sending.
fn arrivals(
    was_sent: &[(u32, Micros)],
    was: &[ArrivalRecord],
    sooner: impl Fn(Micros) -> Option<Micros>,
) -> Vec<ArrivalRecord> {
    let fates = ArrivalTable::new(was);
    let mut arrivals = Vec::with_capacity(was.len());
    for &(number, sent) in was_sent {
        if let Some(sooner) = sooner(sent) {
            arrivals.extend(fates.of(number).map(|at| ArrivalRecord { number, at: at - sooner }));
        }
    }
    arrivals.sort_by_key(|a| (a.at, a.number));
    arrivals
}

const DIRECTIONS: [Direction; 2] = [Direction::Up, Direction::Down];

/// The things of a kind that concerns packets.
fn link_things(session: &Session, kind: CostKind) -> Vec<Removable> {
    let mut things = Vec::new();
    for (player, records) in session.players.iter().enumerate() {
        for direction in DIRECTIONS {
            let lane = LinkDirection::of(records, direction, session.ticks.last().map(|t| t.at));
            for (index, packet) in lane.packets.iter().enumerate() {
                let (fate, number) = (packet.fate, packet.number);
                let is_lost = || fate.first.is_none() && lane.delay_if_not_lost(index).is_some();
                things.extend(match kind {
                    CostKind::Losses if is_lost() => Some(Removable::Loss(player, direction, number)),
                    CostKind::Duplicates if fate.second.is_some() => {
                        Some(Removable::Duplicate(player, direction, number))
                    }
                    CostKind::Delays if lane.is_uneven(packet) => Some(Removable::Delay(player, direction, number)),
                    _ => None,
                });
            }
        }
    }
    things
}

/// Removes losses, duplicates and delays. Things of other kinds change nothing.
fn remove_link_things(session: &mut Session, things: &[Removable]) {
    let link_things =
        things.iter().filter(|t| matches!(t, Removable::Loss(..) | Removable::Duplicate(..) | Removable::Delay(..)));
    let removed: SortedSet<Removable> = link_things.copied().collect();
    if removed.is_empty() {
        return;
    }
    let end = session.ticks.last().map(|t| t.at);
    for (player, records) in session.players.iter_mut().enumerate() {
        for direction in DIRECTIONS {
            let lane = LinkDirection::of(records, direction, end);
            let mut arrivals = Vec::new();
            for (index, packet) in lane.packets.iter().enumerate() {
                let fate = lane.fate_without(index, player, &removed);
                arrivals.extend(fate.arrivals().map(|at| ArrivalRecord { number: packet.number, at }));
            }
            arrivals.sort_by_key(|a| (a.at, a.number));
            match direction {
                Direction::Up => records.reached = arrivals,
                Direction::Down => records.received = arrivals,
            }
        }
    }
}

/// One direction of one player's connection.
struct LinkDirection {
    direction: Direction,
    packets: Vec<LinkPacket>,
    /// The median delay; `None` if no packet arrives.
    median: Option<Micros>,
    /// The time of the session's end.
    end: Option<Micros>,
}

struct LinkPacket {
    number: u32,
    sent: Micros,
    fate: Fate,
}

impl LinkPacket {
    fn delay(&self) -> Option<Micros> {
        self.fate.first.map(|first| first - self.sent)
    }
}

impl LinkDirection {
    fn of(records: &PlayerRecords, direction: Direction, end: Option<Micros>) -> LinkDirection {
        let (sent, arrivals): (Vec<(u32, Micros)>, _) = match direction {
            Direction::Up => (records.sent.iter().map(|p| (p.number, p.at)).collect(), &records.reached),
            Direction::Down => (records.snapshots.iter().map(|s| (s.seq.0, s.at)).collect(), &records.received),
        };
        let fates = ArrivalTable::new(arrivals);
        let packet = |(number, sent)| LinkPacket { number, sent, fate: Fate::of(fates.of(number)) };
        let packets: Vec<LinkPacket> = sent.into_iter().map(packet).collect();
        let mut delays: Vec<Micros> = packets.iter().filter_map(LinkPacket::delay).collect();
        delays.sort_unstable();
        let median = percentile(&delays, 50.0);
        LinkDirection { direction, packets, median, end }
    }

    /// The delay that a lost packet would have had: the delay of the previous packet that arrived, else of the next. It
    /// arrives at the latest together with the next packet. `None` for a packet that no later packet overtook, because
    /// it may still be in flight.
    fn delay_if_not_lost(&self, index: usize) -> Option<Micros> {
        let (before, after) = self.packets.split_at(index);
        let (later, later_delay) = after.iter().find_map(|p| Some((p, p.delay()?)))?;
        let in_line = later.sent + later_delay - self.packets[index].sent;
        Some(before.iter().rev().find_map(LinkPacket::delay).unwrap_or(later_delay).min(in_line))
    }

    /// Whether a packet's delay differs from the median, and the packet would also arrive with the median.
    fn is_uneven(&self, packet: &LinkPacket) -> bool {
        match (packet.delay(), self.median) {
            (Some(delay), Some(median)) => delay != median && self.in_time(packet, median),
            _ => false,
        }
    }

    /// Whether a packet with this delay arrives before the session's end.
    fn in_time(&self, packet: &LinkPacket, delay: Micros) -> bool {
        match self.direction {
            Direction::Up => self.end.is_some_and(|end| packet.sent + delay <= end),
            Direction::Down => self.end.is_some_and(|end| packet.sent + delay < end),
        }
    }

    fn fate_without(&self, index: usize, player: usize, removed: &SortedSet<Removable>) -> Fate {
        let packet = &self.packets[index];
        let mut fate = packet.fate;
        if removed.contains(&Removable::Loss(player, self.direction, packet.number)) {
            fate.first = self.delay_if_not_lost(index).map(|delay| packet.sent + delay);
        }
        if removed.contains(&Removable::Duplicate(player, self.direction, packet.number)) {
            fate.second = None;
        }
        if let (Some(median), Some(delay)) = (self.median, packet.delay())
            && removed.contains(&Removable::Delay(player, self.direction, packet.number))
        {
            fate.first = Some(packet.sent + median);
            fate.second = fate.second.map(|second| second - delay + median);
        }
        fate
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::record::PacketRecord;
    use hitreg_log::units::{CommandSeq, SnapshotSeq};

    fn states(rows: &[(u32, u16, u32)]) -> States {
        let mut states = States::default();
        for &(tick, entity, cell) in rows {
            let key = StateKey { tick: Tick(tick), entity: EntityId(entity), ..StateKey::default() };
            states.push(key, &[cell]);
        }
        states
    }

    #[test]
    fn players_are_renumbered_after_a_removal() {
        let mut begin = states(&[(0, 0, 10), (0, 1, 11), (0, 2, 12)]);
        remove_players_of_states(&mut begin, &SortedSet::from([1]));
        assert_eq!(begin, states(&[(0, 0, 10), (0, 1, 12)]));
    }

    fn cut(removed: &[usize]) -> TimeCut {
        let ticks = [10, 20, 30, 40].map(Micros).to_vec();
        TimeCut::new(ticks, &removed.iter().copied().collect())
    }

    #[test]
    fn records_before_a_cut_stay_and_later_ones_move_forward() {
        let cut = cut(&[1, 2]);
        let moved: Vec<Option<i64>> =
            [5, 10, 15, 29, 30, 39].map(|at| cut.of_client(Micros(at)).map(|sooner| at - sooner.0)).to_vec();
        assert_eq!(moved, [Some(5), None, None, None, Some(10), Some(19)]);
    }

    #[test]
    fn a_tick_is_removed_with_the_span_before_it() {
        let cut = cut(&[1]);
        let moved: Vec<Option<i64>> =
            [10, 20, 30].map(|at| cut.of_server(Micros(at)).map(|sooner| at - sooner.0)).to_vec();
        assert_eq!(moved, [Some(10), None, Some(20)]);
    }

    #[test]
    fn a_session_without_its_beginning_keeps_its_start_time() {
        let cut = cut(&[0, 1]);
        assert_eq!(cut.of_server(Micros(30)).map(|sooner| 30 - sooner.0), Some(10));
        assert_eq!(cut.of_client(Micros(5)), None);
    }

    fn lane(delays_ms: &[Option<i64>], end_ms: i64) -> LinkDirection {
        let mut records = PlayerRecords::default();
        for (index, delay) in delays_ms.iter().enumerate() {
            let (number, at) = (index as u32 + 1, Micros::from_ms(index as i64 * 10));
            let (newest, ack) = (CommandSeq(number), SnapshotSeq(0));
            records.sent.push(PacketRecord { number, at, newest, count: 1, ack, bytes: 58 });
            records.reached.extend(delay.map(|d| ArrivalRecord { number, at: at + Micros::from_ms(d) }));
        }
        LinkDirection::of(&records, Direction::Up, Some(Micros::from_ms(end_ms)))
    }

    #[test]
    fn a_restored_packet_has_the_delay_of_its_neighbour() {
        let lane = lane(&[None, Some(40), None, Some(60), None, Some(35)], 1000);
        let delays: Vec<Option<i64>> = [0, 2, 4].map(|i| lane.delay_if_not_lost(i).map(|d| d.0 / 1000)).to_vec();
        assert_eq!(delays, [Some(40), Some(40), Some(45)], "the last is not to come behind the one after it");
    }

    #[test]
    fn packets_after_the_last_arrival_may_be_in_flight() {
        assert_eq!(lane(&[Some(40), None], 1000).delay_if_not_lost(1), None);
    }

    #[test]
    fn an_uneven_delay_becomes_the_median() {
        let lane = lane(&[Some(40), Some(45), Some(40)], 1000);
        let removed = SortedSet::from([Removable::Delay(0, Direction::Up, 2)]);
        assert_eq!(lane.fate_without(1, 0, &removed).first, Some(Micros::from_ms(50)));
        assert_eq!(lane.fate_without(1, 1, &removed).first, Some(Micros::from_ms(55)), "that is another player's");
        assert!(lane.is_uneven(&lane.packets[1]) && !lane.is_uneven(&lane.packets[0]));
    }
}
