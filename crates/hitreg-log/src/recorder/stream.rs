//! What a thread of an engine pushes into.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use rtrb::{Producer, PushError as RingFull};

use super::shared::{Entry, Item, Moment, Shared};
use super::{OwnKind, PushError};
use crate::log::{MAX_RECORD_BYTES, WhenFull};
use crate::record::{ClassId, FrameRecord, OwnRow, Record, StateRecord, TickRecord, Value, When};
use crate::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};
use crate::usercmd::Usercmd;

/// How long a stream of a patient recorder sleeps until there is room again.
const NAP: std::time::Duration = std::time::Duration::from_micros(200);

/// Takes records, and never waits: what the recorder cannot take is refused, and said.
///
/// Records of any player may be pushed into any stream. What has no time of its own (a usercmd that ran, a state) is of the time
/// of what its stream was told before it.
#[derive(Debug)]
pub struct Stream {
    shared: Arc<Shared>,
    ring: Producer<Entry>,
    /// The time of the last record that had one.
    now: Option<Micros>,
    /// How many records were lost that the log does not know of yet, and what came before them.
    lost: (u64, Option<Micros>),
    /// How many more go in before the recorder is woken.
    until_waking: usize,
}

impl Stream {
    pub(super) fn new(shared: Arc<Shared>, ring: Producer<Entry>) -> Stream {
        let until_waking = ring.buffer().capacity() / 4;
        Stream { shared, ring, now: None, lost: (0, None), until_waking }
    }

    /// A client frame's usercmd. On a server that does not hear of client frames, `at` is when it came.
    ///
    /// # Errors
    /// As [`Stream::push`].
    #[inline]
    pub fn usercmd(&mut self, player: PlayerId, at: Micros, command: Usercmd) -> Result<(), PushError> {
        self.push(Record::Frame(player, FrameRecord { at, command }))
    }

    /// What a usercmd carries besides: any bytes, kept as they are. It belongs to a usercmd that was pushed at the same time.
    ///
    /// # Errors
    /// As [`Stream::push`]; when the description does not say that there are such bytes.
    pub fn usercmd_bytes(
        &mut self,
        player: PlayerId,
        at: Micros,
        command: CommandSeq,
        bytes: &[u8],
    ) -> Result<(), PushError> {
        if !self.shared.kinds.iter().any(OwnKind::is_usercmd_bytes) {
            return Err(PushError::NoBytes);
        }
        self.fits(bytes.len().saturating_mul(8))?;
        let record = Record::Frame(player, FrameRecord::default());
        record.check(&self.shared.header)?;
        self.shared.check(Some(at))?;
        self.send(Some(at), Item::Bytes(Box::new((player, command, bytes.to_vec()))))
    }

    /// The end of a server's tick.
    ///
    /// # Errors
    /// As [`Stream::push`].
    pub fn tick(&mut self, tick: Tick, at: Micros, hash: Option<u64>) -> Result<(), PushError> {
        self.push(Record::Tick(TickRecord { tick, at, hash }))
    }

    /// An entity's state after a tick: as many cells as its class has fields, floats by their bits.
    ///
    /// # Errors
    /// As [`Stream::push`].
    pub fn body(&mut self, tick: Tick, entity: EntityId, class: ClassId, cells: &[u32]) -> Result<(), PushError> {
        self.push(Record::State(StateRecord { tick, viewer: None, entity, class, cells: cells.to_vec() }))
    }

    /// Any record.
    ///
    /// # Errors
    /// When it does not fit the description, comes too late, the stream is full or the recording is over.
    #[inline]
    pub fn push(&mut self, record: Record) -> Result<(), PushError> {
        record.check(&self.shared.header)?;
        if matches!(&record, Record::Tick(TickRecord { tick: Tick(0), .. })) {
            return Err(PushError::TickZero);
        }
        self.fits(record.bytes())?;
        let at = if let When::At(at) = record.when() { Some(at) } else { None };
        self.shared.check(at)?;
        self.send(at, Item::Record(record))
    }

    /// A row of a kind of the team's own, by its place in the [`Description`](super::Description). `series` is whose it is: a
    /// player, or what else the kind counts by.
    ///
    /// # Errors
    /// As [`Stream::push`]; when the values are not as the kind declares them.
    pub fn row(&mut self, kind: usize, series: u32, at: Micros, values: &[Value]) -> Result<(), PushError> {
        let kinds = &self.shared.kinds;
        let own = kinds.get(kind).ok_or(PushError::NoKind { kind, kinds: kinds.len() })?;
        own.check(values)?;
        self.shared.check(Some(at))?;
        let values = std::iter::once(Value::Number(at.0)).chain(values.iter().copied()).collect();
        self.send(Some(at), Item::Row(Box::new(OwnRow { kind: own.place, series, key: 0, values }), None))
    }

    /// A usercmd with the fields of the game's own, as many as the description says.
    ///
    /// # Errors
    /// As [`Stream::push`]; when the values are not as the description says.
    pub fn usercmd_with(
        &mut self,
        player: PlayerId,
        at: Micros,
        command: Usercmd,
        own: &[Value],
    ) -> Result<(), PushError> {
        let kinds = &self.shared.kinds;
        let fields = kinds.iter().find(|kind| kind.is_usercmd()).ok_or(PushError::NoFields)?;
        fields.check(own)?;
        let record = Record::Frame(player, FrameRecord { at, command });
        record.check(&self.shared.header)?;
        self.shared.check(Some(at))?;
        let (series, key) = (u32::from(player.0), i64::from(command.seq.0));
        let row = OwnRow { kind: fields.place, series, key, values: own.to_vec() };
        self.send(Some(at), Item::Row(Box::new(row), Some(Box::new(record))))
    }

    fn fits(&self, bytes: usize) -> Result<(), PushError> {
        let most = MAX_RECORD_BYTES;
        if bytes > most { Err(PushError::TooLarge { bytes, most }) } else { Ok(()) }
    }

    #[inline]
    fn send(&mut self, at: Option<Micros>, item: Item) -> Result<(), PushError> {
        let moment = at.map_or(Moment::After(self.now), Moment::At);
        if self.lost.0 > 0 {
            self.tell_of_loss(moment)?;
        }
        match self.ring.push(Entry { at: moment, item }) {
            Ok(()) => {}
            Err(RingFull::Full(entry)) => self.full(entry)?,
        }
        self.now = at.or(self.now);
        self.until_waking = self.until_waking.saturating_sub(1);
        if self.until_waking == 0 {
            self.until_waking = self.ring.buffer().capacity() / 4;
            self.shared.wake();
        }
        Ok(())
    }

    #[cold]
    fn full(&mut self, mut entry: Entry) -> Result<(), PushError> {
        if self.shared.when_full == WhenFull::Drop {
            self.lose();
            return Err(PushError::Overrun);
        }
        loop {
            self.shared.wake();
            std::thread::sleep(NAP);
            self.shared.check(None)?;
            match self.ring.push(entry) {
                Ok(()) => return Ok(()),
                Err(RingFull::Full(back)) => entry = back,
            }
        }
    }

    fn lose(&mut self) {
        if self.lost.0 == 0 {
            self.lost.1 = self.now;
            self.shared.wake();
        }
        self.lost.0 += 1;
        self.shared.lost.fetch_add(1, Ordering::Relaxed);
    }

    #[cold]
    fn tell_of_loss(&mut self, at: Moment) -> Result<(), PushError> {
        let (records, from) = self.lost;
        if self.ring.push(Entry { at, item: Item::Lost(records, from) }).is_err() {
            self.lose();
            return Err(PushError::Overrun);
        }
        self.lost = (0, None);
        Ok(())
    }
}
