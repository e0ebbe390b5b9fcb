//! A server's message: its header, the `FRAME` submessage, and further submessages as long as they fit. Its bits are
//! counted by purpose while they are written.

use super::bits::{BitReader, BitWriter, get_signed, put_signed};
use super::datagram::{begin, expect};
use super::notice::kind;
use super::{DecodeError, MessageType, WINDOW, Wrapping16};
use crate::game::{Body, Category, FieldSchema, fields_by_cell};
use crate::packet::Snapshot;
use crate::state::{state, value};
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::{CommandSeq, EntityId, Micros, SnapshotSeq, Tick};

/// The index of the byte that holds the number of submessages.
pub(crate) const COUNT_AT_BYTE: usize = 11;

/// The wire value of an unknown calibration helper.
const CALIBRATION_UNKNOWN: i16 = i16::MIN;

/// A snapshot's numbers and times, without its entities and effects. The header and the `FRAME` submessage carry them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameInfo {
    pub(crate) seq: SnapshotSeq,
    pub(crate) tick: Tick,
    pub(crate) ack: CommandSeq,
    pub(crate) server_time: Micros,
    pub(crate) choked: u8,
    /// The calibration helper in ms; `None` while the server does not know it.
    pub(crate) helper_ms: Option<i16>,
}

/// A message from the server whose header and `FRAME` were read.
pub(crate) struct OpenedMessage<'a> {
    pub(crate) info: FrameInfo,
    /// The distance in snapshots to the base that most entities use.
    pub(crate) usual_distance: Option<u32>,
    /// The number of submessages after `FRAME`.
    pub(crate) submessages: u8,
    pub(crate) from: BitReader<'a>,
}

/// A snapshot that the receiver holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AckedSnapshot {
    pub(crate) seq: SnapshotSeq,
    pub(crate) tick: Tick,
    pub(crate) server_time: Micros,
}

value!(AckedSnapshot { seq, tick, server_time });

impl FrameInfo {
    /// Starts a message with its header, which has a count of 0 at [`COUNT_AT_BYTE`], and its `FRAME`. Writes the frame
    /// relative to a snapshot that the client has, less than [`WINDOW`] snapshots ago, or in full when `from` is `None`.
    pub(crate) fn begin(&self, from: Option<(SnapshotSeq, Micros)>) -> BitWriter {
        let mut out = begin(MessageType::LiveFromServer);
        out.put(u64::from(Wrapping16::of(self.tick.0).0), 16);
        out.put(u64::from(Wrapping16::of(self.ack.0).0), 16);
        let helper = self.helper_ms.map_or(CALIBRATION_UNKNOWN, |ms| ms.max(-i16::MAX));
        out.put(u64::from(helper as u16), 16);
        debug_assert_eq!(out.len_bits(), COUNT_AT_BYTE * 8);
        out.put(0, 8);
        out.put(kind::FRAME, 4);
        out.put_bool(from.is_some());
        match from {
            Some((seq, server_time)) => {
                out.put(u64::from(Wrapping16::of(self.seq.0).0), 16);
                out.put(u64::from(self.seq.0 - seq.0), 6);
                put_signed(&mut out, self.server_time.0.wrapping_sub(server_time.0));
            }
            None => {
                out.put(u64::from(self.seq.0), 32);
                out.put(u64::from(self.tick.0), 32);
                out.put(u64::from(self.ack.0), 32);
                out.put(self.server_time.0 as u64, 64);
            }
        }
        out.put_bool(self.choked > 0);
        if self.choked > 0 {
            out.put(u64::from(self.choked), 8);
        }
        out
    }
}

/// Reads header and `FRAME` of a message. `known` looks up a snapshot that the receiver holds.
pub(crate) fn open_message(
    message: &[u8],
    newest: SnapshotSeq,
    newest_command: CommandSeq,
    known: impl Fn(SnapshotSeq) -> Option<AckedSnapshot>,
) -> Result<OpenedMessage<'_>, DecodeError> {
    let mut from = expect(message, MessageType::LiveFromServer)?;
    let (frame, header_ack) = (Wrapping16(from.get_u16()?), Wrapping16(from.get_u16()?));
    let helper_ms = Some(from.get_u16()? as i16).filter(|ms| *ms != CALIBRATION_UNKNOWN);
    let submessages = from.get_u8()?.checked_sub(1).ok_or(DecodeError::bad("the number of submessages", 0))?;
    let kind = from.get(4)?;
    if kind != kind::FRAME {
        return Err(DecodeError::bad("the type of the first submessage", kind));
    }
    let (seq, tick, ack, server_time, usual_distance);
    if from.get_bool()? {
        seq = Wrapping16(from.get_u16()?).counter_near(newest.0, "a snapshot's number")?;
        let distance = from.get(6)? as u32;
        let base = seq.checked_sub(distance).filter(|_| distance > 0 && distance < WINDOW).map(SnapshotSeq);
        let base = base.ok_or(DecodeError::bad("the distance of a snapshot's base", u64::from(distance)))?;
        let known = known(base).ok_or(DecodeError::MissingFrame { base })?;
        server_time = known.server_time.0.wrapping_add(get_signed(&mut from)?);
        tick = frame.counter_near(known.tick.0, "a frame's index")?;
        ack = header_ack.counter_near(newest_command.0, "an ack")?;
        usual_distance = Some(distance);
    } else {
        (seq, tick, ack) = (from.get_u32()?, from.get_u32()?, from.get_u32()?);
        if Wrapping16::of(tick) != frame || Wrapping16::of(ack) != header_ack {
            return Err(DecodeError::bad("a header that says something else: a frame's index", u64::from(tick)));
        }
        server_time = from.get(64)? as i64;
        usual_distance = None;
    }
    let choked = if from.get_bool()? { from.get_u8()? } else { 0 };
    if seq == 0 {
        return Err(DecodeError::bad("a snapshot's number", 0));
    }
    let (seq, tick, ack, server_time) = (SnapshotSeq(seq), Tick(tick), CommandSeq(ack), Micros(server_time));
    let info = FrameInfo { seq, tick, ack, server_time, choked, helper_ms };
    Ok(OpenedMessage { info, usual_distance, submessages, from })
}

/// The most submessages in a message.
pub(super) const SUBMESSAGES_MAX: u32 = 255;

/// A message under construction.
pub(super) struct DatagramPage {
    pub(super) out: BitWriter,
    count: u32,
    limit_bits: usize,
    bit_counts: SnapshotBitCounts,
}

impl DatagramPage {
    /// Starts a message with its header and `FRAME`, coded relative to the snapshot `from`.
    pub(super) fn begin<B>(
        snapshot: &Snapshot<B>,
        from: Option<(SnapshotSeq, Micros)>,
        limit_bits: usize,
    ) -> DatagramPage {
        let info = FrameInfo {
            seq: snapshot.seq,
            tick: snapshot.frame.tick,
            ack: snapshot.ack,
            server_time: snapshot.frame.server_time,
            choked: snapshot.choked,
            helper_ms: snapshot.helper_ms,
        };
        let out = info.begin(from);
        let bit_counts = SnapshotBitCounts { headers: out.len_bits() as u32, ..SnapshotBitCounts::default() };
        DatagramPage { out, count: 1, limit_bits, bit_counts }
    }

    /// Writes submessages if they fit and leave `reserved` bits free. `write` returns its bits by purpose.
    pub(super) fn put(
        &mut self,
        submessages: u32,
        reserved: usize,
        write: impl FnOnce(&mut BitWriter) -> SnapshotBitCounts,
    ) -> bool {
        let before = self.out.len_bits();
        if self.count + submessages > SUBMESSAGES_MAX {
            return false;
        }
        let bit_counts = write(&mut self.out);
        let fits = self.out.len_bits() + reserved <= self.limit_bits;
        if fits {
            self.count += submessages;
            self.bit_counts.add(&bit_counts);
        } else {
            self.out.cut_to(before);
        }
        fits
    }

    /// Writes one submessage that is not about an entity's state, under the same condition.
    pub(super) fn put_event(&mut self, reserved: usize, write: impl FnOnce(&mut BitWriter)) -> bool {
        self.put(1, reserved, |out| {
            let before = out.len_bits();
            write(out);
            SnapshotBitCounts { events: (out.len_bits() - before) as u32, ..SnapshotBitCounts::default() }
        })
    }

    /// Returns the number of free bits.
    pub(super) fn left(&self) -> usize {
        self.limit_bits.saturating_sub(self.out.len_bits())
    }

    /// Returns the message and its bits by purpose.
    pub(super) fn finish(mut self) -> (Vec<u8>, SnapshotBitCounts) {
        self.out.replace_byte(COUNT_AT_BYTE, self.count as u8);
        let bits = self.out.len_bits();
        self.bit_counts.headers += (bits.next_multiple_of(8) - bits) as u32;
        (self.out.into_bytes(), self.bit_counts)
    }
}

/// The number of categories.
const CATEGORIES: usize = Category::ALL.len();

/// The bits of a snapshot's datagrams by purpose. The parts add up to all bits of the datagrams.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SnapshotBitCounts {
    /// Values of fields, by the field's category for the receiving client.
    pub values: [u32; CATEGORIES],
    /// The naming of entities and fields: types, ids, controllers, bases, bitfields and masks.
    pub naming: u32,
    /// Effects, warnings and the packet echo.
    pub events: u32,
    /// Headers, `FRAME`, seals and the padding of the last byte.
    pub headers: u32,
}

impl SnapshotBitCounts {
    /// The number of parts.
    pub const PARTS: usize = CATEGORIES + 3;

    /// Returns all parts: categories in their order, then `naming`, `events` and `headers`.
    pub fn parts(&self) -> [u32; SnapshotBitCounts::PARTS] {
        let SnapshotBitCounts { values, naming, events, headers } = self;
        let mut parts = [0; SnapshotBitCounts::PARTS];
        parts[..CATEGORIES].copy_from_slice(values);
        parts[CATEGORIES..].copy_from_slice(&[*naming, *events, *headers]);
        parts
    }

    /// Returns the bits for values of one category.
    pub fn of(&self, category: Category) -> u32 {
        self.values[category as usize]
    }

    /// Returns the total number of bits: eight times the bytes of the datagrams.
    pub fn bits(&self) -> u64 {
        self.parts().iter().map(|bits| u64::from(*bits)).sum()
    }

    pub(super) fn add(&mut self, more: &SnapshotBitCounts) {
        let SnapshotBitCounts { values, naming, events, headers } = more;
        self.values.iter_mut().zip(values).for_each(|(sum, bits)| *sum += bits);
        self.naming += naming;
        self.events += events;
        self.headers += headers;
    }
}

/// A function that returns the category of a game's field; `own` is true for the client's own body.
pub(super) type CategoryOf<B> = fn(&B, own: bool, &FieldSchema) -> Category;

/// The categories of the fields of all entities that a client receives.
#[derive(Clone, Debug)]
pub(super) struct CategoryCounter<B> {
    /// The field of each cell.
    fields: Vec<FieldSchema>,
    avatar: EntityId,
    of: CategoryOf<B>,
    /// The number of teleports when the entry was made, and the categories by cell.
    known: SortedMap<EntityId, (u32, Vec<Category>)>,
}

state!(CategoryCounter<B: Body> { known } but { fields, avatar, of } if is_valid);

impl<B: Body> CategoryCounter<B> {
    fn is_valid(&self) -> bool {
        self.known.values().all(|(_, categories)| categories.len() == self.fields.len())
    }

    /// Creates the categories for the client whose own body is `avatar`. A field's category follows from its scope
    /// until [`CategoryCounter::count_by`] sets another function.
    pub(super) fn new(avatar: EntityId) -> CategoryCounter<B> {
        let by_scope = |_: &B, own: bool, field: &FieldSchema| Category::by_default(own, field.scope);
        CategoryCounter { fields: fields_by_cell::<B>(), avatar, of: by_scope, known: SortedMap::new() }
    }

    pub(super) fn count_by(&mut self, of: CategoryOf<B>) {
        self.of = of;
        self.known.clear();
    }

    /// Returns the categories of one entity's cells. A teleport recomputes them.
    pub(super) fn of(&mut self, id: EntityId, body: &B) -> &[Category] {
        let CategoryCounter { fields, avatar, of, known } = self;
        let teleports = body.teleports();
        let all = || fields.iter().map(|field| of(body, id == *avatar, field)).collect();
        let entry = known.entry(id).or_insert_with(|| (teleports, all()));
        if entry.0 != teleports {
            *entry = (teleports, all());
        }
        &entry.1
    }

    pub(super) fn forget(&mut self, id: EntityId) {
        self.known.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_the_documented_layout() {
        let info = FrameInfo {
            seq: SnapshotSeq(1),
            tick: Tick(0x1234),
            ack: CommandSeq(0xfffe),
            server_time: Micros(5),
            choked: 0,
            helper_ms: Some(-2),
        };
        let mut bytes = info.begin(None).into_bytes();
        assert_eq!(bytes[..12], [b'H', b'R', b'G', b'1', 8, 0x34, 0x12, 0xfe, 0xff, 0xfe, 0xff, 0]);
        bytes[COUNT_AT_BYTE] = 1;
        let opened = open_message(&bytes, SnapshotSeq(0), CommandSeq(0), |_| None).expect("it was just written");
        assert_eq!((opened.info, opened.submessages), (info, 0));
    }
}
