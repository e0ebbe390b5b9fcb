//! The handle through which one thread of an engine pushes records.

use std::sync::Arc;

use rtrb::{Producer, PushError as RingFull};

use super::collector::{RecordTime, RecorderShared, RingEntry};
use super::description::{CustomKind, check_values};
use super::{PushError, Recorder};
use crate::log::{QueuePolicy, RECORD_BYTES_MAX};
use crate::record::{
    Class, ClassId, CustomRow, EventTime, FieldSchema, FrameRecord, OwnValue, Record, StateRecord, TextCode,
    TickRecord, usercmd_fields,
};
use crate::sorted::SortedSet;
use crate::units::{CommandSeq, EntityId, Micros, PlayerId, Tick};
use crate::usercmd::{Input, OwnCells, Usercmd};

/// The sleep between two attempts to push into a full ring, with [`QueuePolicy::Wait`].
const NAP: std::time::Duration = std::time::Duration::from_micros(200);

/// A stream of records from one thread. By default a push never blocks: a full ring makes it return an error.
///
/// Any stream takes records of any player. A record without its own time (a usercmd that ran, a state) takes the time
/// of the previous record in its stream. Such records keep the order of their pushes: each is at least as late as the one
/// before.
#[derive(Debug)]
pub struct Stream {
    shared: Arc<RecorderShared>,
    ring: Producer<RingEntry>,
    /// Time of the last record that had one.
    now: Option<Micros>,
    /// Codes of the texts that the recorder knows.
    texts: SortedSet<TextCode>,
    /// The last tick, if it was refused because of its number or time.
    refused: Option<Tick>,
    /// Number of pushes before the stream wakes the recorder's thread.
    until_waking: usize,
}

impl Stream {
    pub(super) fn new(shared: Arc<RecorderShared>, ring: Producer<RingEntry>) -> Stream {
        let until_waking = ring.buffer().capacity() / 4;
        Stream { shared, ring, now: None, texts: SortedSet::new(), refused: None, until_waking }
    }

    /// Returns whether the stream is one of this recorder.
    pub(super) fn is_of(&self, recorder: &Recorder) -> bool {
        Arc::ptr_eq(&self.shared, &recorder.shared)
    }

    /// Returns the classes of entities in the description.
    pub fn classes(&self) -> &[Class] {
        &self.shared.header.classes
    }

    /// Pushes a client frame's usercmd. On a server that does not know client frame times, `at` is the arrival time.
    ///
    /// # Errors
    /// As [`Stream::push`].
    #[inline]
    pub fn usercmd(&mut self, player: PlayerId, at: Micros, command: Usercmd) -> Result<(), PushError> {
        self.push(Record::Frame(player, FrameRecord { at, command, ..FrameRecord::default() }))
    }

    /// Returns the code of a text, for fields and columns of texts. The recorder remembers each different text until it
    /// ends. All of them may take [`SESSION_TEXT_BYTES_MAX`](crate::record::SESSION_TEXT_BYTES_MAX), with 64 bytes for
    /// each text besides its own.
    ///
    /// # Errors
    /// When there are too many texts, two texts have one code, or the recording has ended.
    pub fn text(&mut self, text: &str) -> Result<TextCode, PushError> {
        let code = TextCode::of(text);
        if !self.texts.contains(&code) {
            self.shared.check(None)?;
            self.shared.add_text(text)?;
            self.texts.insert(code);
        }
        Ok(code)
    }

    /// Pushes the end of a server tick, with the state hash if the game has one. A log has no hash of 0: such a tick
    /// counts as one without a hash. Later ticks have higher numbers; ticks of one frame may have the same time.
    ///
    /// # Errors
    /// As [`Stream::push`]; also when the tick contradicts another one. Its states and usercmds are then refused, too.
    pub fn tick(&mut self, tick: Tick, at: Micros, hash: Option<u64>) -> Result<(), PushError> {
        self.push(Record::Tick(TickRecord { tick, at, hash }))
    }

    /// Pushes the end of a tick, and then the states of its entities. If one of the states does not fit the description,
    /// nothing is pushed.
    ///
    /// # Errors
    /// As [`Stream::tick`].
    pub fn tick_with_states(&mut self, tick: TickRecord, states: Vec<StateRecord>) -> Result<(), PushError> {
        let states: Vec<Record> = states.into_iter().map(Record::State).collect();
        for state in &states {
            state.check(&self.shared.header)?;
            self.fits(state.bytes())?;
        }
        self.push(Record::Tick(tick))?;
        states.into_iter().try_for_each(|state| self.push(state))
    }

    /// Pushes an entity's state after a tick: one value for each field of its class.
    ///
    /// # Errors
    /// As [`Stream::push`]; also when the values do not match the fields.
    pub fn body_values(
        &mut self,
        tick: Tick,
        entity: EntityId,
        class: ClassId,
        values: &[OwnValue],
    ) -> Result<(), PushError> {
        let state = self.state_of_values(tick, entity, class, values)?;
        self.push(Record::State(state))
    }

    /// Returns the state of an entity with these values. A class that the session lacks has no fields.
    pub(crate) fn state_of_values(
        &self,
        tick: Tick,
        entity: EntityId,
        class: ClassId,
        values: &[OwnValue],
    ) -> Result<StateRecord, PushError> {
        let class_of = self.shared.header.classes.get(usize::from(class.0));
        let cells = class_of.map_or(Ok(Vec::new()), |of| cells_of_values(&of.name, values, &of.fields))?;
        Ok(StateRecord { tick, viewer: None, entity, class, cells })
    }

    /// Pushes an entity's state after a tick as cells: floats as their bits, and 64-bit values as two cells, the low
    /// one first.
    ///
    /// # Errors
    /// As [`Stream::push`].
    pub fn body(&mut self, tick: Tick, entity: EntityId, class: ClassId, cells: &[u32]) -> Result<(), PushError> {
        self.push(Record::State(StateRecord { tick, viewer: None, entity, class, cells: cells.to_vec() }))
    }

    /// Pushes any record.
    ///
    /// # Errors
    /// When the record does not fit the description, is too large or too late, the ring is full, or the recording has
    /// ended.
    #[inline]
    pub fn push(&mut self, record: Record) -> Result<(), PushError> {
        record.check(&self.shared.header)?;
        self.fits(record.bytes())?;
        match &record {
            Record::Tick(tick) => return self.push_tick(*tick),
            Record::Frame(_, frame) => is_usercmd(frame.command.seq)?,
            _ => {}
        }
        let (at, tick) = match record.when() {
            EventTime::At(at) => (Some(at), None),
            EventTime::In(tick) => (None, Some(tick)),
        };
        self.shared.check(at)?;
        match (tick, self.refused) {
            (Some(tick), Some(refused)) if tick == refused => Err(PushError::OfRefusedTick { tick }),
            _ => self.send(at, record),
        }
    }

    fn push_tick(&mut self, tick: TickRecord) -> Result<(), PushError> {
        if tick.tick == Tick(0) {
            return Err(PushError::TickZero);
        }
        self.shared.check(Some(tick.at))?;
        if let Err(error) = self.shared.add_tick(tick) {
            // The states of a tick that was only pushed twice are its own.
            let is_repeated =
                matches!(&error, PushError::TickOrder { other, .. } if (other.tick, other.at) == (tick.tick, tick.at));
            self.refused = (!is_repeated).then_some(tick.tick);
            return Err(error);
        }
        let sent = self.send(Some(tick.at), Record::Tick(tick));
        match sent {
            Ok(()) => self.refused = None,
            Err(_) => self.shared.remove_tick(tick.tick),
        }
        sent
    }

    /// Returns the custom kinds, in the order of their numbers.
    pub fn kinds(&self) -> &[CustomKind] {
        &self.shared.kinds
    }

    /// Returns the game-defined fields of usercmds.
    pub fn usercmd_fields(&self) -> &[FieldSchema] {
        &self.shared.header.usercmd[usercmd_fields().len()..]
    }

    /// Pushes a row of a custom kind, by its number in the [`Description`](super::Description). `series` is the player,
    /// or whatever else the kind groups its rows by.
    ///
    /// # Errors
    /// As [`Stream::push`]; also when the values do not match the declared columns.
    pub fn row(&mut self, kind: usize, series: u32, at: Micros, values: &[OwnValue]) -> Result<(), PushError> {
        let kinds = self.kinds();
        let own = kinds.get(kind).ok_or(PushError::NoKind { kind, kinds: kinds.len() })?;
        check_values(&own.name, values, own.columns.iter().map(|(_, kind)| *kind))?;
        self.shared.check(Some(at))?;
        let values = std::iter::once(OwnValue::Number(at.0)).chain(values.iter().copied()).collect();
        self.send(Some(at), Record::Row(at, CustomRow { kind, series, values }))
    }

    /// Pushes a usercmd with its game-defined fields, one value for each declared field.
    ///
    /// # Errors
    /// As [`Stream::push`]; also when the values do not match the declared fields.
    pub fn usercmd_with(
        &mut self,
        player: PlayerId,
        at: Micros,
        command: Usercmd,
        own: &[OwnValue],
    ) -> Result<(), PushError> {
        self.usercmd_with_bytes(player, at, command, own, &[])
    }

    /// Pushes a usercmd with its game-defined fields, and bytes that the log stores unchanged.
    ///
    /// # Errors
    /// As [`Stream::usercmd_with`]; also when the description does not declare such bytes.
    pub fn usercmd_with_bytes(
        &mut self,
        player: PlayerId,
        at: Micros,
        command: Usercmd,
        own: &[OwnValue],
        bytes: &[u8],
    ) -> Result<(), PushError> {
        let fields = self.usercmd_fields();
        let cells = cells_of_values("frames", own, fields)?;
        let input = Input { own: OwnCells::new(&cells), ..command.input };
        let (command, bytes) = (Usercmd { input, ..command }, bytes.into());
        self.push(Record::Frame(player, FrameRecord { at, command, bytes }))
    }

    fn fits(&self, bytes: usize) -> Result<(), PushError> {
        let most = RECORD_BYTES_MAX;
        if bytes > most { Err(PushError::TooLarge { bytes, most }) } else { Ok(()) }
    }

    #[inline]
    fn send(&mut self, at: Option<Micros>, record: Record) -> Result<(), PushError> {
        let moment = at.map_or(RecordTime::After(self.now), RecordTime::At);
        match self.ring.push(RingEntry { at: moment, record }) {
            Ok(()) => {}
            Err(RingFull::Full(entry)) => self.full(at, entry)?,
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
    fn full(&mut self, at: Option<Micros>, mut entry: RingEntry) -> Result<(), PushError> {
        if self.shared.when_full == QueuePolicy::Drop {
            self.shared.lose_overrun(at.or(self.now));
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
}

/// Returns the cells of values, one for each field.
fn cells_of_values(kind: &str, values: &[OwnValue], fields: &[FieldSchema]) -> Result<Vec<u32>, PushError> {
    check_values(kind, values, fields.iter().map(|field| field.kind))?;
    let mut cells = Vec::with_capacity(2 * values.len());
    for (value, field) in values.iter().zip(fields) {
        field.kind.put(value.number(), &mut cells);
    }
    Ok(cells)
}

/// Checks the number of a pushed usercmd.
fn is_usercmd(seq: CommandSeq) -> Result<(), PushError> {
    if seq == CommandSeq(0) { Err(PushError::UsercmdZero) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{CellKind, Scope};
    use crate::recorder::{Description, RecorderOptions};

    #[test]
    fn numbers_keep_their_sign() {
        let (big, small) = (CellKind::U64, CellKind::I64);
        let field = |name, kind| FieldSchema::new(name, kind, Scope::Movement);
        let about = Description::new("mygame").player("p0").usercmd_field(field("big", big));
        let about = about.usercmd_field(field("small", small)).kind("casts", vec![("what".to_owned(), small)]);
        let recorder = Recorder::to(std::io::sink(), about, RecorderOptions::patient()).unwrap();
        let mut stream = recorder.stream();
        let mut push = |values: &[OwnValue]| {
            let command = Usercmd { seq: CommandSeq(1), ..Usercmd::default() };
            stream.usercmd_with(PlayerId(0), Micros(0), command, values).map_err(|error| error.to_string())
        };
        assert_eq!(push(&[u64::MAX.into(), i64::MIN.into()]), Ok(()));
        assert_eq!(push(&[7i32.into(), 7u64.into()]), Ok(()));
        let refused = push(&[(-5i64).into(), (1u64 << 63).into()]).unwrap_err();
        let ranges = "u64 (0 to 18446744073709551615), i64 (-9223372036854775808 to 9223372036854775807)";
        let found = "a row of `frames` is -5, 9223372036854775808";
        assert_eq!(refused, format!("{found}, and the description says {ranges}"));
        assert!(stream.row(0, 0, Micros(0), &[u64::MAX.into()]).is_err());
    }

    #[test]
    fn kinds_of_usercmd_data_are_not_custom_kinds() {
        let lean = FieldSchema::new("lean", CellKind::F32, Scope::Movement);
        let about = Description::new("mygame").player("p0").usercmd_field(lean).usercmd_bytes();
        let recorder =
            Recorder::to(std::io::sink(), about.kind("casts", Vec::new()), RecorderOptions::patient()).unwrap();
        let mut stream = recorder.stream();
        let mut push = |kind, values: &[OwnValue]| stream.row(kind, 0, Micros(0), values);
        assert_eq!(push(0, &[]), Ok(()));
        assert_eq!(push(1, &[OwnValue::Float(0.5)]), Err(PushError::NoKind { kind: 1, kinds: 1 }));
        assert_eq!(push(2, &[OwnValue::Number(1); 3]), Err(PushError::NoKind { kind: 2, kinds: 1 }));
        assert_eq!((recorder.kind("casts"), recorder.kind("frames")), (Some(0), None));
    }
}
