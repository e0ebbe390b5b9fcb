//! One chunk of a log: consecutive records of a session in columns, which decodes without any other chunk.

mod declared;

use std::borrow::Cow;
use std::cell::RefCell;
use std::ops::Range;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_bytes::{ByteBuf, Bytes};

use super::column;
use super::container::NextChunk;
use super::error::{Budget, CHUNK_MEMORY_BYTES_MAX, WriteError};
use super::header::Schema;
use super::index::{ChunkRows, PartRows};
use super::keyframes::KEYFRAME;
use super::kinds::{EXTRA_BYTES, ListReader, RecordLayout};
use super::table::{ColumnReader, PackedTable, RecordLookup, TableWriter};
use crate::record::{
    ArrivalRecord, DamageRecord, ExecutionRecord, FieldSchema, FrameRecord, GapRecord, HeardRecord, OF_PLAYERS,
    OF_SESSION, Outline, PacketRecord, PlayerOutline, PlayerRecords, PresenceRecord, RecordStream, Session,
    SessionChunk, SessionHeader, ShotRecord, SnapshotRecord, StateKey, States, TextCode, Texts, TickRecord,
    UnknownRecords, each_stream, leave_times, widest,
};
use crate::serial::MessagePackReader;
use crate::sorted::SortedMap;
use crate::units::{EntityId, Micros, PlayerId, Tick};
use crate::usercmd::buttons;
use declared::class_of_table;

/// What a chunk of a log holds, as an error calls it.
pub(super) const CONTENT: &str = "a chunk of records";

/// The keys of a chunk that are not kinds of records.
pub(crate) const CHUNK_KEYS: [&str; 5] = ["index", "before", "end", TEXTS, KEYFRAME];

/// Which records to decode besides the states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum KindFilter {
    All,
    /// Only what a replay of clients needs: frames, snapshots, snapshot arrivals, ticks and executed usercmds.
    OfClients,
}

impl KindFilter {
    fn includes(self, kind: &str) -> bool {
        self == KindFilter::All || ["frames", "snapshots", "received", "ticks", "executed"].contains(&kind)
    }
}

/// The records of one kind, as series by player number, or one series for the session.
pub(super) type RecordSeries<'a, T> = Vec<(u32, &'a [T])>;

// Generates `encode` and `decode_within`, the two entry points of this module, with one step for each kind of record.
macro_rules! chunk_codec {
    (
        players { $( $(#[$doc:meta])* $by:ident $variant:ident $field:ident $type:ident; )* }
        session { $( $(#[$own_doc:meta])* $own:ident $own_field:ident $own_type:ident; )* }
    ) => {
        /// Encodes a part of a session.
        pub(crate) fn encode(
            part: &SessionSlice<'_>,
            header: &SessionHeader,
            next: NextChunk,
        ) -> Result<Vec<u8>, WriteError> {
            let (own_fields, texts) = (header.own_usercmd_fields(), ChunkTexts::new(&part.texts));
            let states = ChunkContext::of_states(part.state_keys(), &texts);
            let context = ChunkContext { own_fields: &own_fields, usercmd_bytes: header.usercmd_bytes, ..states };
            let mut encoder = ChunkEncoder { part, header, context: &context, tables: Vec::new() };
            $( encoder.encode_kind(stringify!($field), part.of_players(stringify!($field), |records| &records.$field)); )*
            let mut lists = part.session_lists().iter();
            $( {
                let range = lists.next().map_or(0..0, |(_, range)| range.clone());
                let records: RecordSeries<'_, $own_type> = vec![(0, &part.$own_field[range])];
                encoder.encode_kind(stringify!($own_field), records);
            } )*
            encoder.encode_states();
            encoder.encode_unknown_kinds();
            to_messagepack(&ChunkMap { next, tables: &encoder.tables, texts: &texts.list() })
        }

        /// Decodes a chunk of a log with this header, within `memory` bytes.
        pub(crate) fn decode_within(
            memory: usize,
            content: &[u8],
            header: &SessionHeader,
            kinds: KindFilter,
            schema: &Schema,
        ) -> Result<SessionChunk, String> {
            let tables = decode_map(content, schema, header.classes.len())?;
            let (mut chunk, mut budget) = (SessionChunk::of(header), Budget::new(memory));
            let texts = TextCodes::read(&tables.texts, &mut chunk, &mut budget)?;
            let mut decoder = ChunkDecoder { header, texts: &texts, chunk, budget };
            decoder.decode_states(&tables)?;
            let own_fields = header.own_usercmd_fields();
            let states = ChunkContext::of_states(decoder.chunk.states.keys(), &texts);
            let context = ChunkContext { own_fields: &own_fields, usercmd_bytes: header.usercmd_bytes, ..states };
            $( if let Some(columns) = tables.columns(stringify!($field), schema).filter(|columns| kinds.includes(columns.name)) {
                let records = decoder.decode_records::<$type>(&columns, &context)?;
                decoder.decode_unknown_columns::<$type>(&columns, &records)?;
                columns.distribute(records, &mut decoder.chunk.players, |player| &mut player.$field)?;
            } )*
            $( if let Some(columns) = tables.columns(stringify!($own_field), schema).filter(|columns| kinds.includes(columns.name)) {
                let records = decoder.decode_records::<$own_type>(&columns, &context)?;
                decoder.decode_unknown_columns::<$own_type>(&columns, &records)?;
                decoder.chunk.$own_field = records;
            } )*
            if kinds == KindFilter::All {
                decoder.decode_unknown_kinds(&tables, schema)?;
            }
            Ok(decoder.chunk)
        }
    };
}
each_stream!(chunk_codec);

/// Returns what a part of a session has in each table.
pub(crate) fn rows_by_table(part: &SessionSlice<'_>, header: &SessionHeader) -> ChunkRows {
    let kinds = OF_PLAYERS.iter().enumerate();
    let players = kinds.filter_map(|(kind, (name, _))| rows_of(name, part.of_kind(kind), true));
    let session = OF_SESSION.iter().zip(part.session_lists());
    let session = session.filter_map(|(name, list)| rows_of(name, std::iter::once(list.clone()), false));
    let mut tables: ChunkRows = players.chain(session).collect();
    tables.extend(declared::state_rows(part, header));
    tables.extend(declared::unknown_rows(part, header));
    tables
}

/// Decodes a chunk of a log with this header.
pub(crate) fn decode(content: &[u8], header: &SessionHeader, schema: &Schema) -> Result<SessionChunk, String> {
    decode_within(CHUNK_MEMORY_BYTES_MAX, content, header, KindFilter::All, schema)
}

/// Returns what a chunk has of one kind, given the records of each player or of the session; `None` without rows.
fn rows_of<'a>(name: &str, parts: impl Iterator<Item = RecordRange<'a>>, of_players: bool) -> Option<PartRows> {
    let mut part = PartRows::of_log(name, 0, None);
    for (player, (records, range)) in (0..).zip(parts).filter(|(_, (_, range))| !range.is_empty()) {
        part.rows += range.len() as u32;
        part.players.extend(of_players.then_some(player));
        let times = records.span(range).map(|(first, last)| (first.0, last.0));
        part.times = widest(part.times.into_iter().chain(times));
    }
    (part.rows > 0).then_some(part)
}

/// A chunk that is being encoded.
struct ChunkEncoder<'a> {
    part: &'a SessionSlice<'a>,
    header: &'a SessionHeader,
    context: &'a WriteContext<'a>,
    /// The tables so far, without empty ones.
    tables: Vec<(String, PackedTable<ByteBuf>)>,
}

impl ChunkEncoder<'_> {
    fn encode_kind<T: RecordLayout>(&mut self, name: &'static str, records: RecordSeries<'_, T>) {
        let mut rows = TableWriter::new(records);
        if rows.is_empty() {
            return;
        }
        rows.put(&|keys, row_counts| referenced_times(self.part, name, keys, row_counts));
        T::put_lists(&mut rows, self.context);
        if let Some(kind) = declared::kind_of(self.header, name) {
            self.encode_unknown_columns(kind, &rows.keys(), &mut rows.columns);
        }
        self.tables.push((name.to_owned(), rows.columns.finish()));
    }
}

/// A chunk that is being decoded.
struct ChunkDecoder<'a> {
    header: &'a SessionHeader,
    texts: &'a TextCodes,
    /// The records so far.
    chunk: SessionChunk,
    budget: Budget,
}

impl ChunkDecoder<'_> {
    fn decode_records<T: RecordLayout>(
        &mut self,
        columns: &ColumnReader<'_>,
        context: &ReadContext<'_>,
    ) -> Result<Vec<T>, String> {
        self.budget.take(columns.rows, 2 * size_of::<T>() + 48)?;
        let whole = SessionSlice::whole(&self.chunk);
        let mut records =
            columns.take::<T>(&|keys, row_counts| referenced_times(&whole, columns.name, keys, row_counts))?;
        T::take_lists(&mut records, ListReader { columns, context }, &mut self.budget)?;
        Ok(records)
    }
}

/// Returns the records of a player to which the keys of a kind refer, by their first column.
fn referenced_records(kind: &str, part: &SessionSlice<'_>, player: usize) -> RecordLookup {
    match kind {
        "sent" => RecordLookup::of(part.of_player(player, "frames", |records| &records.frames)),
        "reached" => RecordLookup::of(part.of_player(player, "sent", |records| &records.sent)),
        "heard" => RecordLookup::of(part.of_player(player, "reached", |records| &records.reached)),
        "received" => RecordLookup::of(part.of_player(player, "snapshots", |records| &records.snapshots)),
        _ => RecordLookup::among(Vec::new()),
    }
}

/// Returns the times of the records to which the keys of a kind refer, series by series.
fn referenced_times(part: &SessionSlice<'_>, kind: &str, keys: &[i64], row_counts: &[(u32, usize)]) -> Vec<i64> {
    let mut times = Vec::with_capacity(keys.len());
    let mut keys = keys.iter();
    for &(id, count) in row_counts {
        let mut records = referenced_records(kind, part, id as usize);
        times.extend(keys.by_ref().take(count).map(|key| records.next(*key)));
    }
    times
}

/// A range of records of one kind.
type RecordRange<'a> = (&'a dyn RecordStream, Range<usize>);

/// The records of a session, with or without a header, and their ranges in a chunk. Code that encodes them is compiled
/// once.
pub(crate) struct SessionSlice<'a> {
    players: &'a [PlayerRecords],
    states: &'a States,
    ticks: &'a [TickRecord],
    damage: &'a [DamageRecord],
    gaps: &'a [GapRecord],
    unknown: &'a [UnknownRecords],
    texts: &'a Texts,
    /// Each list of the session with its range, in the order of [`Session::lists`].
    lists: Vec<RecordRange<'a>>,
}

impl<'a> SessionSlice<'a> {
    /// Returns the part with all records of a session.
    pub(crate) fn whole<H>(session: &'a Session<H>) -> SessionSlice<'a> {
        SessionSlice::new(session, session.lists().map(|list| 0..list.len()))
    }

    /// Returns the part with these ranges of the session's lists.
    pub(crate) fn new<H>(session: &'a Session<H>, ranges: impl Iterator<Item = Range<usize>>) -> SessionSlice<'a> {
        let lists = session.lists().zip(ranges).collect();
        let Session { header: _, players, states, ticks, damage, gaps, unknown, texts } = session;
        SessionSlice { players, states, ticks, damage, gaps, unknown, texts, lists }
    }

    /// Returns the lists of one kind, by player.
    fn of_kind(&self, kind: usize) -> impl Iterator<Item = RecordRange<'a>> {
        let of_players = &self.lists[..self.players.len() * OF_PLAYERS.len()];
        of_players.iter().skip(kind).step_by(OF_PLAYERS.len()).cloned()
    }

    /// Returns the session's own lists, in the order of [`OF_SESSION`], then the states, then unknown kinds.
    fn of_session(&self) -> &[RecordRange<'a>] {
        &self.lists[self.players.len() * OF_PLAYERS.len()..]
    }

    /// Returns the session's own lists, in the order of [`OF_SESSION`].
    fn session_lists(&self) -> &[RecordRange<'a>] {
        &self.of_session()[..OF_SESSION.len()]
    }

    fn states(&self) -> Range<usize> {
        self.of_session()[OF_SESSION.len()].1.clone()
    }

    fn state_keys(&self) -> &'a [StateKey] {
        &self.states.keys()[self.states()]
    }

    /// Returns the records of unknown kinds, each with its range.
    fn unknown(&self) -> impl Iterator<Item = (&'a UnknownRecords, Range<usize>)> {
        let ranges = self.of_session()[OF_SESSION.len() + 1..].iter().map(|(_, range)| range.clone());
        self.unknown.iter().zip(ranges)
    }

    /// Returns the records of one player and kind.
    fn of_player<T>(&self, player: usize, kind: &str, of: fn(&PlayerRecords) -> &Vec<T>) -> &'a [T] {
        let list = kind_index(kind).and_then(|kind| self.of_kind(kind).nth(player));
        self.players.get(player).zip(list).map_or(&[], |(records, (_, range))| &of(records)[range])
    }

    /// Returns the records of all players who have some of a kind.
    fn of_players<T>(&self, kind: &str, of: fn(&PlayerRecords) -> &Vec<T>) -> RecordSeries<'a, T> {
        let lists = kind_index(kind).into_iter().flat_map(|kind| self.of_kind(kind));
        let series = (0..).zip(self.players.iter().zip(lists));
        series.map(|(player, (records, (_, range)))| (player, &of(records)[range])).collect()
    }
}

/// Returns the index of a kind in [`OF_PLAYERS`].
fn kind_index(kind: &str) -> Option<usize> {
    OF_PLAYERS.iter().position(|(name, _)| *name == kind)
}

/// What columns of lists need besides their records: the chunk's states, and the usercmd fields that the header
/// declares. Most snapshots show exactly the entities with states at their tick, so they need no list of their own.
pub(super) struct ChunkContext<'a, T> {
    /// The tick and viewer of each state, ascending.
    of: Vec<(Tick, Option<PlayerId>)>,
    /// The entity of each state, ascending within a tick and viewer.
    entities: Vec<EntityId>,
    /// The usercmd fields that the game declares.
    pub(super) own_fields: &'a [FieldSchema],
    /// Whether usercmds have bytes of their own.
    pub(super) usercmd_bytes: bool,
    pub(super) texts: &'a T,
}

/// The context of a chunk to write.
pub(super) type WriteContext<'a> = ChunkContext<'a, ChunkTexts<'a>>;

/// The context of a chunk to read.
pub(super) type ReadContext<'a> = ChunkContext<'a, TextCodes>;

impl<'a, T> ChunkContext<'a, T> {
    /// The context of a chunk with these states, whose usercmds have no declared fields and no bytes.
    fn of_states(keys: &[StateKey], texts: &'a T) -> ChunkContext<'a, T> {
        let mut keys: Vec<_> = keys.iter().map(|key| (key.tick, key.viewer, key.entity)).collect();
        if !keys.is_sorted() {
            keys.sort_unstable();
        }
        keys.dedup();
        let (of, entities) = keys.into_iter().map(|(tick, viewer, entity)| ((tick, viewer), entity)).unzip();
        ChunkContext { of, entities, own_fields: &[], usercmd_bytes: false, texts }
    }

    /// Returns the entities whose states a viewer may have received for a tick.
    pub(super) fn shown(&self, tick: Tick, viewer: PlayerId) -> Cow<'_, [EntityId]> {
        let (shared, own) = (self.entities_of((tick, None)), self.entities_of((tick, Some(viewer))));
        if own.is_empty() {
            return Cow::Borrowed(shared);
        }
        let mut both = [shared, own].concat();
        both.sort_unstable();
        both.dedup();
        Cow::Owned(both)
    }

    fn entities_of(&self, which: (Tick, Option<PlayerId>)) -> &[EntityId] {
        let begin = self.of.partition_point(|of| *of < which);
        let end = begin + self.of[begin..].partition_point(|of| *of == which);
        &self.entities[begin..end]
    }
}

/// The name of the list in a chunk's map.
const TEXTS: &str = "texts";

/// Collects the texts of a chunk to write. Its columns of texts hold 0 for the empty text, and other texts by their
/// index in a list.
pub(super) struct ChunkTexts<'a> {
    texts: &'a Texts,
    used: RefCell<UsedTexts<'a>>,
}

/// The texts that a chunk uses.
#[derive(Default)]
struct UsedTexts<'a> {
    /// The index of each code in the list.
    indices: SortedMap<i64, i64>,
    list: Vec<&'a str>,
}

impl<'a> ChunkTexts<'a> {
    fn new(texts: &'a Texts) -> ChunkTexts<'a> {
        ChunkTexts { texts, used: RefCell::default() }
    }

    /// Replaces codes by indices in the chunk's list.
    pub(super) fn to_indices(&self, numbers: &mut [i64]) {
        let UsedTexts { indices, list } = &mut *self.used.borrow_mut();
        for number in numbers.iter_mut().filter(|number| **number != 0) {
            *number = *indices.entry(*number).or_insert_with(|| {
                list.push(self.texts.get(TextCode(*number as u64)));
                list.len() as i64
            });
        }
    }

    /// Returns the list.
    fn list(&self) -> Vec<&'a str> {
        self.used.borrow().list.clone()
    }
}

/// The codes of a decoded chunk's texts.
#[derive(Default)]
pub(super) struct TextCodes(Vec<i64>);

impl TextCodes {
    /// Adds the texts of a chunk to its chunk.
    fn read(list: &[&str], chunk: &mut SessionChunk, budget: &mut Budget) -> Result<TextCodes, String> {
        let mut codes = vec![0];
        for text in list {
            budget.take(1, text.len() + 64)?;
            let code = chunk.texts.add(text).map_err(|error| format!("its texts: {error}"))?;
            codes.push(code.0 as i64);
        }
        Ok(TextCodes(codes))
    }

    /// Replaces indices in the chunk's list by codes.
    pub(super) fn to_codes(&self, numbers: &mut [i64]) -> Result<(), String> {
        for number in numbers {
            let code = usize::try_from(*number).ok().and_then(|index| self.0.get(index));
            *number = *code.ok_or_else(|| format!("{number} is not the place of any text"))?;
        }
        Ok(())
    }
}

/// The entries that begin every chunk after the first, in logs and traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct ChunkPosition {
    /// The chunk's number; the header is chunk 0.
    pub(crate) index: u32,
    /// The digest of all chunks before it; foreign writers may leave it out.
    #[serde(default)]
    pub(crate) before: Option<u64>,
    /// Whether this is the last chunk, which holds no records.
    #[serde(default)]
    pub(crate) end: bool,
}

pub(crate) fn to_messagepack(map: &impl Serialize) -> Result<Vec<u8>, WriteError> {
    let mut bytes = Vec::new();
    put_messagepack(map, &mut bytes)?;
    Ok(bytes)
}

/// Appends a map to bytes.
pub(crate) fn put_messagepack(map: &impl Serialize, to: &mut Vec<u8>) -> Result<(), WriteError> {
    rmp_serde::encode::write_named(to, map).map_err(|error| WriteError::Io(std::io::Error::other(error)))
}

/// The map of a chunk to write: its number, the digest of all chunks before it, its tables and its texts.
struct ChunkMap<'a> {
    next: NextChunk,
    tables: &'a [(String, PackedTable<ByteBuf>)],
    texts: &'a [&'a str],
}

impl Serialize for ChunkMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let ChunkMap { next, tables, texts } = self;
        let has_texts = usize::from(!texts.is_empty());
        let mut map = serializer.serialize_map(Some(2 + has_texts + tables.len()))?;
        map.serialize_entry("index", &next.index)?;
        map.serialize_entry("before", &next.before)?;
        if has_texts > 0 {
            map.serialize_entry(TEXTS, texts)?;
        }
        for (name, table) in *tables {
            map.serialize_entry(name, table)?;
        }
        map.end()
    }
}

/// The tables of a decoded chunk, and its texts.
struct DecodedTables<'a> {
    tables: SortedMap<&'a str, PackedTable<&'a Bytes>>,
    texts: Vec<&'a str>,
}

impl<'a> DecodedTables<'a> {
    fn of(&self, name: &str) -> Option<&PackedTable<&'a Bytes>> {
        self.tables.get(name)
    }

    /// Returns the columns of a table.
    fn columns<'t>(&'t self, name: &'t str, schema: &'t Schema) -> Option<ColumnReader<'t>> {
        let table = self.tables.get(name)?;
        Some(ColumnReader::new(name, schema.columns(name).unwrap_or_default(), table))
    }

    /// Returns the number of rows of each table.
    fn rows(&self) -> impl Iterator<Item = (&'a str, usize)> + '_ {
        let sum = |PackedTable(_, rows, _): &PackedTable<&Bytes>| {
            rows.iter().fold(0usize, |sum, rows| sum.saturating_add(*rows as usize))
        };
        self.tables.iter().map(move |(name, table)| (*name, sum(table)))
    }
}

/// The most MessagePack values in a chunk of a log: tables, columns, and two for each series of each table.
const CHUNK_VALUES_MAX: u64 = 1 << 20;

/// Decodes a chunk's map. It ignores tables that the log does not declare.
fn decode_map<'a>(content: &'a [u8], schema: &Schema, classes: usize) -> Result<DecodedTables<'a>, String> {
    crate::serial::count_values(CHUNK_VALUES_MAX, content).map_err(|error| format!("it is too large ({error})"))?;
    let read = Seed { schema, classes }.deserialize(&mut MessagePackReader::new(content));
    let read = read.map_err(|error| format!("it is not a chunk's map ({error})"))?;
    for (name, PackedTable(ids, rows, _)) in &read.tables {
        if ids.len() != rows.len() {
            return Err(format!("table {name} has {} series but rows for {}", ids.len(), rows.len()));
        }
        if let Some(pair) = ids.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(format!("table {name}: series {} comes after {}", pair[1], pair[0]));
        }
    }
    Ok(read)
}

/// Returns whether the log declares a table.
pub(super) fn is_declared(table: &str, schema: &Schema, classes: usize) -> bool {
    declared::class_of_table(table).is_some_and(|class| class < classes) || schema.columns(table).is_some()
}

struct Seed<'s> {
    schema: &'s Schema,
    classes: usize,
}

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = DecodedTables<'de>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<DecodedTables<'de>, D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = DecodedTables<'de>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a map of tables")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<DecodedTables<'de>, A::Error> {
        let (mut tables, mut texts) = (SortedMap::new(), Vec::new());
        while let Some(name) = map.next_key::<&str>()? {
            if name == TEXTS {
                texts = map.next_value()?;
                continue;
            }
            if !is_declared(name, self.schema, self.classes) {
                map.next_value::<IgnoredAny>()?;
            } else if tables.insert(name, map.next_value::<PackedTable<&Bytes>>()?).is_some() {
                return Err(A::Error::custom(format_args!("table {name} appears twice")));
            }
        }
        Ok(DecodedTables { tables, texts })
    }
}

// The outline of a chunk: the columns about connections, and the row counts of all tables.

/// Decodes the outline of a chunk.
pub(crate) fn outline(content: &[u8], header: &SessionHeader, schema: &Schema) -> Result<Outline, String> {
    let tables = decode_map(content, schema, header.classes.len())?;
    let mut budget = Budget::new(CHUNK_MEMORY_BYTES_MAX);
    let players = header.players.len();
    let mut outline = Outline { players: vec![PlayerOutline::default(); players], ..Outline::default() };
    tables.rows().for_each(|(name, rows)| outline.count(kind_of(name), rows));
    let by_number = |of: &[(u32, Micros)]| of.iter().map(|(number, at)| (i64::from(*number), at.0)).collect();
    let mut columns = |name: &'static str| -> Result<Option<ColumnReader<'_>>, String> {
        let columns = tables.columns(name, schema);
        // Budget for a few columns of numbers and their results.
        columns.as_ref().map_or(Ok(()), |columns| budget.take(columns.rows, size_of::<[i64; 8]>()))?;
        Ok(columns)
    };
    if let Some(frames) = columns("frames")? {
        let (seq, at) = (frames.narrow::<u32>("seq")?, frames.narrow::<i64>("at_us")?);
        let buttons = frames.narrow::<i64>("buttons")?;
        let bytes = if header.usercmd_bytes { frames.narrow::<u32>(EXTRA_BYTES[0])? } else { vec![0; frames.rows] };
        for (player, rows) in frames.rows_of_players(players)? {
            let player = &mut outline.players[player];
            player.firing =
                buttons[rows.clone()].iter().filter(|held| **held & i64::from(buttons::ATTACK) != 0).count();
            player.bytes = bytes[rows.clone()].iter().copied().filter(|bytes| *bytes > 0).collect();
            player.frames = seq[rows.clone()].iter().copied().zip(at[rows].iter().map(|at| Micros(*at))).collect();
        }
    }
    if let Some(sent) = columns("sent")? {
        let frames = |player: &PlayerOutline| by_number(&player.frames);
        read_numbered_times(&sent, "newest", &mut outline.players, frames, |player| &mut player.sent)?;
    }
    if let Some(reached) = columns("reached")? {
        let sent = |player: &PlayerOutline| by_number(&player.sent);
        read_numbered_times(&reached, "number", &mut outline.players, sent, |player| &mut player.reached)?;
    }
    if let Some(snapshots) = columns("snapshots")? {
        let (seq, ack) = (snapshots.narrow::<u32>("seq")?, snapshots.narrow::<u32>("ack")?);
        let (at, choked) = (snapshots.narrow::<i64>("at_us")?, snapshots.narrow::<u8>("choked")?);
        for (player, rows) in snapshots.rows_of_players(players)? {
            let player = &mut outline.players[player];
            player.choked = choked[rows.clone()].to_vec();
            player.snapshots = rows.map(|row| (seq[row], Micros(at[row]), ack[row])).collect();
        }
    }
    if let Some(received) = columns("received")? {
        let sent =
            |player: &PlayerOutline| player.snapshots.iter().map(|(seq, at, _)| (i64::from(*seq), at.0)).collect();
        read_numbered_times(&received, "number", &mut outline.players, sent, |player| &mut player.received)?;
    }
    if let Some(ticks) = columns("ticks")? {
        let at = ticks.narrow::<i64>("at_us")?;
        outline.ticks = at.first().zip(at.last()).map(|(first, last)| (Micros(*first), Micros(*last)));
    }
    // Few logs have gaps, presence or heard packets, and no log has many.
    let texts = TextCodes::default();
    let context = ChunkContext::of_states(&[], &texts);
    let (gaps, presence) = (columns("gaps")?, columns("presence")?);
    let mut decoder = ChunkDecoder { header, texts: &texts, chunk: SessionChunk::of(header), budget };
    if let Some(gaps) = gaps {
        outline.gaps = decoder.decode_records::<GapRecord>(&gaps, &context)?;
    }
    if let Some(presence) = presence {
        let records = decoder.decode_records::<PresenceRecord>(&presence, &context)?;
        for (player, rows) in presence.rows_of_players(players)? {
            let player = &mut outline.players[player];
            player.left = leave_times(&records[rows]);
        }
    }
    if let Some(heard) = tables.columns("heard", schema) {
        let records = decoder.decode_records::<HeardRecord>(&heard, &context)?;
        for (player, rows) in heard.rows_of_players(players)? {
            let player = &mut outline.players[player];
            player.heard_packets = records[rows.clone()].iter().map(|heard| heard.number).collect();
            let commands = records[rows].iter().flat_map(|heard| &heard.commands);
            let fires = |held: u16| held & buttons::ATTACK != 0;
            player.heard = commands.map(|command| (command.seq.0, fires(command.input.buttons))).collect();
        }
    }
    // Chunks of most logs have ticks or frames, so this full decoding is rare.
    let is_played = tables.rows().any(|(name, rows)| rows > 0 && ["frames", "received", "ticks"].contains(&name));
    if !is_played && outline.counts.keys().any(|kind| kind != "states") {
        outline.other_times = decode(content, header, schema)?.full_time_span();
    }
    Ok(outline)
}

/// Decodes the number and the time of each player's records into `list`. The times are stored relative to those of other
/// records, which `referenced` returns by their number. The column `reference` has that number.
fn read_numbered_times(
    columns: &ColumnReader<'_>,
    reference: &str,
    players: &mut [PlayerOutline],
    referenced: impl Fn(&PlayerOutline) -> Vec<(i64, i64)>,
    list: fn(&mut PlayerOutline) -> &mut Vec<(u32, Micros)>,
) -> Result<(), String> {
    let numbers = columns.narrow::<u32>("number")?;
    let others = (reference != "number").then(|| columns.narrow::<u32>(reference)).transpose()?;
    let references = others.as_ref().unwrap_or(&numbers);
    let rows_of_players = columns.rows_of_players(players.len())?;
    let mut times = Vec::with_capacity(references.len());
    for (player, rows) in &rows_of_players {
        let mut known = RecordLookup::among(referenced(&players[*player]));
        times.extend(references[rows.clone()].iter().map(|number| known.next(i64::from(*number))));
    }
    let at = column::decode(columns.raw("at_us"), &columns.series, Some(&times));
    let at = at.map_err(|what| columns.bad("at_us", what))?;
    for (player, rows) in rows_of_players {
        *list(&mut players[player]) = rows.map(|row| (numbers[row], Micros(at[row]))).collect();
    }
    Ok(())
}

/// Returns the record kind of a table.
fn kind_of(table: &str) -> &str {
    if class_of_table(table).is_some() { "states" } else { table }
}
