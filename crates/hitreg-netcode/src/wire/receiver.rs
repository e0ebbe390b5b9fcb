//! The client's decoder: it restores the snapshots exactly, in whatever order the datagrams arrive.
//!
//! An entity that a datagram omits keeps the state from the newest earlier datagram that carried it.

use std::collections::VecDeque;
use std::sync::Arc;

use super::bits::BitReader;
use super::entity::{BodyLayout, get_base};
use super::message::{AckedSnapshot, FrameInfo, OpenedMessage, open_message};
use super::notice::{OutOfSeqWarning, get_effect, get_entity, kind};
use super::{DecodeError, ENTITIES_MAX, ReceivedSet, WINDOW};
use crate::game::{Body, Effect};
use crate::history::Frame;
use crate::packet::{Echo, Snapshot};
use crate::state::{state, value};
use hitreg_log::record::OutOfSequence;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{CommandSeq, EntityId, SnapshotSeq};

/// Decodes the messages that the server sends to one client. It holds at most [`ENTITIES_MAX`] entities, with the
/// states of the last [`WINDOW`] snapshots for each.
#[derive(Clone, Debug)]
pub struct Receiver<B> {
    layout: BodyLayout,
    rings: SortedMap<EntityId, StateRing<B>>,
    /// The received snapshots among the last [`WINDOW`], unsorted.
    known: VecDeque<AckedSnapshot>,
    newest: SnapshotSeq,
}

/// The decoded contents of a message from the server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerDatagram<B> {
    /// The snapshot.
    pub snapshot: Snapshot<B>,
    /// Usercmds of the client that the server could not use.
    pub warnings: Vec<OutOfSeqWarning>,
    /// Newly known entities, with the connection that controls each; `None` means that an AI controls it.
    pub definitions: Vec<(EntityId, Option<u16>)>,
}

/// The outcome of decoding.
#[derive(Clone, Debug, PartialEq)]
pub enum DecodeOutcome<B> {
    /// A new snapshot.
    New(Box<ServerDatagram<B>>),
    /// A snapshot that already arrived.
    Duplicate,
    /// A snapshot so old that the receiver may have dropped the states it is coded against.
    TooOld,
}

/// The contents of the submessages, collected before the receiver changes its own state.
struct DecodedSnapshot<B> {
    states: SortedMap<EntityId, Option<B>>,
    effects: Vec<Effect>,
    warnings: Vec<OutOfSeqWarning>,
    definitions: Vec<(EntityId, Option<u16>)>,
    echo: Option<Echo>,
    /// An entity whose definition was read, and whose state must follow.
    defined: Option<EntityId>,
}

state!(Receiver<B: Body> { rings, known, newest } but { layout } if is_valid);

/// A receiver for a new connection.
impl<B: Body> Default for Receiver<B> {
    fn default() -> Receiver<B> {
        Receiver {
            layout: BodyLayout::new::<B>(),
            rings: SortedMap::new(),
            known: VecDeque::new(),
            newest: SnapshotSeq(0),
        }
    }
}

impl<B: Body> Receiver<B> {
    /// Returns the received snapshots, which the client acks with each packet.
    pub fn received(&self) -> ReceivedSet {
        let bit = |known: &AckedSnapshot| match self.newest.0.checked_sub(known.seq.0) {
            Some(distance @ 1..=32) => 1 << (distance - 1),
            _ => 0,
        };
        ReceivedSet { newest: self.newest, before: self.known.iter().map(bit).fold(0, |all, one| all | one) }
    }

    /// Returns the number of entity states held.
    pub fn states_held(&self) -> usize {
        self.rings.values().map(|ring| ring.states.len()).sum()
    }

    /// Decodes a message whose seal was checked. `newest_command` is the client's newest usercmd; it is used to widen
    /// the 16-bit ack.
    ///
    /// # Errors
    /// When the message is not valid. The receiver is then unchanged.
    pub fn decode(&mut self, datagram: &[u8], newest_command: CommandSeq) -> Result<DecodeOutcome<B>, DecodeError> {
        let known = |seq| self.known.iter().find(|known| known.seq == seq).copied();
        let opened = open_message(datagram, self.newest, newest_command, known)?;
        let OpenedMessage { info, usual_distance, submessages, mut from } = opened;
        if self.newest.0.saturating_sub(info.seq.0) >= WINDOW {
            return Ok(DecodeOutcome::TooOld);
        }
        if known(info.seq).is_some() {
            return Ok(DecodeOutcome::Duplicate);
        }
        let mut draft = DecodedSnapshot {
            states: SortedMap::new(),
            effects: Vec::new(),
            warnings: Vec::new(),
            definitions: Vec::new(),
            echo: None,
            defined: None,
        };
        for _ in 0..submessages {
            self.get_submessage(&mut from, &info, usual_distance, &mut draft)?;
        }
        draft.check_defined(None)?;
        from.finish()?;
        let appear = draft.states.keys().filter(|id| !self.rings.contains_key(id)).count();
        if self.rings.len() + appear > ENTITIES_MAX {
            return Err(DecodeError::TooManyEntities);
        }
        Ok(DecodeOutcome::New(Box::new(self.accept(&info, draft))))
    }

    fn is_valid(&self) -> bool {
        let is_in_window =
            |known: &AckedSnapshot| self.newest.0.checked_sub(known.seq.0).is_some_and(|back| back < WINDOW);
        self.known.len() <= WINDOW as usize
            && self.known.iter().all(is_in_window)
            && self.rings.len() <= ENTITIES_MAX
            && self.rings.values().all(|ring| ring.is_valid(self.newest))
    }

    fn get_submessage(
        &self,
        from: &mut BitReader<'_>,
        info: &FrameInfo,
        usual_distance: Option<u32>,
        draft: &mut DecodedSnapshot<B>,
    ) -> Result<(), DecodeError> {
        let kind = from.get(4)?;
        match kind {
            kind::ENTITY_DEFINITION => {
                draft.check_defined(None)?;
                let id = get_entity(from)?;
                let controller = Some(from.get_u16()?).filter(|connection| *connection != 0);
                draft.defined = Some(id);
                draft.definitions.push((id, controller));
                return Ok(());
            }
            kind::ENTITY_UPDATE => {
                let id = get_entity(from)?;
                let mut cells = if draft.defined.is_some() {
                    draft.check_defined(Some(id))?;
                    draft.defined = None;
                    vec![0; B::CELLS]
                } else {
                    let base = SnapshotSeq(info.seq.0.saturating_sub(get_base(from, usual_distance)?));
                    let state = self.rings.get(&id).and_then(|ring| ring.carried_by(base));
                    state.ok_or(DecodeError::MissingBase { entity: id, base })?.to_cells()
                };
                self.layout.get_update(from, &mut cells)?;
                let mut body = B::read(&cells).map_err(|cells| DecodeError::BadBody { entity: id, cells })?;
                body.strip_client_only();
                draft.insert(id, Some(body))?;
            }
            kind::ENTITY_REMOVAL => {
                let id = get_entity(from)?;
                draft.insert(id, None)?;
            }
            kind::PACKET_ECHO => draft.echo = Some(Echo::get(from)?),
            kind::OUT_OF_SEQ_WARNING => draft.warnings.push(OutOfSeqWarning::get(from)?),
            kind::EFFECT => {
                let carried = |id| draft.states.get(&id).and_then(|body| body.as_ref()).map(B::position_f32);
                let effect = get_effect(from, carried)?;
                draft.effects.push(effect);
            }
            unknown => return Err(DecodeError::UnknownSubmessage(unknown as u8)),
        }
        draft.check_defined(None)
    }

    /// Applies a fully checked message.
    fn accept(&mut self, info: &FrameInfo, draft: DecodedSnapshot<B>) -> ServerDatagram<B> {
        for (id, state) in draft.states {
            self.rings.entry(id).or_default().insert(info.seq, state);
        }
        self.newest = self.newest.max(info.seq);
        let newest = self.newest;
        self.known.push_back(AckedSnapshot { seq: info.seq, tick: info.tick, server_time: info.server_time });
        self.known.retain(|known| newest.0.saturating_sub(known.seq.0) < WINDOW);
        let entities = self.rings.iter().filter_map(|(id, ring)| Some((*id, ring.at(info.seq)?.clone()))).collect();
        self.rings.retain(|_, ring| ring.forget(newest));
        let frame = Frame { tick: info.tick, server_time: info.server_time, entities };
        let out_of_sequence = |warning: &OutOfSeqWarning| {
            let command = CommandSeq(warning.index.unwrap_near(info.ack.0)?);
            Some(OutOfSequence { command, difference: warning.difference })
        };
        let warnings = draft.warnings.iter().filter_map(out_of_sequence).collect();
        let snapshot = Snapshot {
            effects: draft.effects,
            choked: info.choked,
            helper_ms: info.helper_ms,
            warnings,
            echo: draft.echo,
            ..Snapshot::new(info.seq, info.ack, Arc::new(frame))
        };
        ServerDatagram { snapshot, warnings: draft.warnings, definitions: draft.definitions }
    }
}

impl<B> DecodedSnapshot<B> {
    fn insert(&mut self, id: EntityId, state: Option<B>) -> Result<(), DecodeError> {
        match self.states.insert(id, state) {
            None => Ok(()),
            Some(_) => Err(DecodeError::bad("an entity that stands there twice: its id", u64::from(id.0))),
        }
    }

    /// Checks that the state of the entity defined just before follows its definition.
    fn check_defined(&self, follows: Option<EntityId>) -> Result<(), DecodeError> {
        match self.defined {
            Some(id) if follows != Some(id) => {
                Err(DecodeError::bad("a definition without a state: its entity's id", u64::from(id.0)))
            }
            _ => Ok(()),
        }
    }
}

/// States sorted by the snapshot that carried them; `None` where the entity was removed.
#[derive(Clone, Debug)]
struct StateRing<B> {
    states: VecDeque<(SnapshotSeq, Option<B>)>,
}

impl<B> Default for StateRing<B> {
    fn default() -> StateRing<B> {
        StateRing { states: VecDeque::new() }
    }
}

value!(StateRing<B: Body> { states });

impl<B> StateRing<B> {
    /// Returns whether a client whose newest snapshot is `newest` can hold these states.
    fn is_valid(&self, newest: SnapshotSeq) -> bool {
        let in_order = self.states.iter().is_sorted_by(|(a, _), (b, _)| a < b);
        // One state may be older than the window.
        let most = WINDOW as usize + 1;
        in_order && self.states.len() <= most && self.states.back().is_none_or(|(seq, _)| *seq <= newest)
    }

    /// Returns the state that snapshot `seq` itself carried.
    fn carried_by(&self, seq: SnapshotSeq) -> Option<&B> {
        let (at, state) = &self.states[self.after(seq).checked_sub(1)?];
        state.as_ref().filter(|_| *at == seq)
    }

    /// Returns the state as of snapshot `seq`: the newest one that it or an older snapshot carried.
    fn at(&self, seq: SnapshotSeq) -> Option<&B> {
        self.states[self.after(seq).checked_sub(1)?].1.as_ref()
    }

    /// Returns the index of the first state after snapshot `seq`. Searches from the end, because most lookups are
    /// recent.
    fn after(&self, seq: SnapshotSeq) -> usize {
        self.states.iter().rposition(|(at, _)| *at <= seq).map_or(0, |last| last + 1)
    }

    fn insert(&mut self, seq: SnapshotSeq, state: Option<B>) {
        let after = self.after(seq);
        self.states.insert(after, (seq, state));
    }

    /// Drops states that no snapshot in the window before `newest` can need: all states outside the window except the
    /// newest of them. Returns false when the ring holds nothing useful.
    fn forget(&mut self, newest: SnapshotSeq) -> bool {
        let is_out = |seq: SnapshotSeq| newest.0.saturating_sub(seq.0) >= WINDOW;
        while self.states.get(1).is_some_and(|(seq, _)| is_out(*seq)) {
            self.states.pop_front();
        }
        match (self.states.len(), self.states.front()) {
            (0, _) => false,
            (1, Some((seq, None))) => !is_out(*seq),
            _ => true,
        }
    }
}
