//! One chunk of a log: a stretch of a session in columns, which decodes without any other chunk.

mod bucket;
mod context;
mod heard;
mod map;
mod outline;
mod own;
mod part;
mod snapshots;
mod states;
mod table;
mod texts;
mod unknown;

pub(crate) use bucket::Bucket;
use context::ChunkContext;
pub(super) use context::{ReadContext, WriteContext};
pub(super) use heard::NESTED as HEARD_USERCMD;
pub(super) use map::is_declared;
pub(crate) use map::{ChunkPosition, put_messagepack, to_messagepack};
pub(crate) use outline::outline;
use part::RecordRange;
pub(crate) use part::SessionSlice;
pub(super) use table::{ColumnReader, TableWriter};

use serde_bytes::ByteBuf;

use map::{ChunkMap, ChunkTables};
pub(super) use table::PackedTable;
use table::RecordLookup;
use texts::TEXTS;
use texts::{ChunkTexts, TextPlaces};

use super::container::Chain;
use super::error::WriteError;
use super::index::{ChunkRows, PartRows};
use super::keyframes::KEYFRAME;
use super::kinds::{ListReader, RecordLayout};
use super::limits::{Budget, MAX_CHUNK_MEMORY};
use super::schema::Schema;
use crate::record::{
    ArrivalRecord, DamageRecord, ExecutionRecord, FrameRecord, GapRecord, HeardRecord, OF_PLAYERS, OF_SESSION,
    PacketRecord, PresenceRecord, SessionHeader, SessionStretch, ShotRecord, SnapshotRecord, TickRecord, each_stream,
    widest,
};

/// What a chunk of a log holds, as an error calls it.
pub(super) const CONTENT: &str = "a stretch of records";

/// The keys of a chunk that are not kinds of records.
pub(crate) const CHUNK_KEYS: [&str; 5] = ["index", "before", "end", TEXTS, KEYFRAME];

/// Which records to decode besides the states.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kinds {
    All,
    /// Only the frames, snapshots and snapshot arrivals of clients.
    OfClients,
}

impl Kinds {
    fn has(self, kind: &str) -> bool {
        self == Kinds::All || ["frames", "snapshots", "received"].contains(&kind)
    }
}

/// The records of one kind, as series by player number, or one series for the session.
pub(super) type RecordSeries<'a, T> = Vec<(u32, &'a [T])>;

macro_rules! code {
    (
        players { $( $(#[$doc:meta])* $by:ident $variant:ident $field:ident $type:ident; )* }
        session { $( $(#[$own_doc:meta])* $own:ident $own_field:ident $own_type:ident; )* }
    ) => {
        /// Encodes a part of a session.
        pub(crate) fn encode(
            part: &SessionSlice<'_>,
            header: &SessionHeader,
            (index, before): (u32, Chain),
        ) -> Result<Vec<u8>, WriteError> {
            let (own_fields, texts) = (header.own_usercmd_fields(), ChunkTexts::new(&part.session.texts));
            let context = ChunkContext::new(part.state_keys(), &own_fields, &texts);
            let mut tables = ChunkTables::default();
            $( {
                let parts = part.of_players(stringify!($field), |records| &records.$field);
                tables.add(stringify!($field), encode_kind(stringify!($field), parts, part, &context, header));
            } )*
            let mut lists = part.own().iter();
            $( {
                let range = lists.next().map_or(0..0, |(_, range)| range.clone());
                let parts: RecordSeries<'_, $own_type> = vec![(0, &part.session.$own_field[range])];
                tables.add(stringify!($own_field), encode_kind(stringify!($own_field), parts, part, &context, header));
            } )*
            states::encode(part, header, &texts, &mut tables);
            unknown::encode(part, header, &texts, &mut tables);
            to_messagepack(&ChunkMap(index, before, &tables, &texts.list()))
        }

        /// Decodes a chunk of a log with this header, within `memory` bytes.
        pub(crate) fn decode_within(
            memory: usize,
            content: &[u8],
            (header, kinds): (&SessionHeader, Kinds),
            schema: &Schema,
        ) -> Result<SessionStretch, String> {
            let tables = map::decode(content, schema, header.classes.len())?;
            let mut budget = Budget::new(memory);
            let mut stretch = SessionStretch::of(header);
            let texts = TextPlaces::read(&tables.texts, &mut stretch, &mut budget)?;
            states::decode(&tables, header, &texts, &mut stretch, &mut budget)?;
            let own_fields = header.own_usercmd_fields();
            let context = ChunkContext::new(stretch.states.keys(), &own_fields, &texts);
            $( if let Some(columns) = tables.columns(stringify!($field), schema).filter(|columns| kinds.has(columns.name)) {
                let records = decode_kind::<$type>(&columns, &context, &mut budget, &stretch)?;
                unknown::decode_columns::<$type>(&columns, &records, (header, &texts), &mut stretch.unknown, &mut budget)?;
                columns.distribute(records, &mut stretch.players, |player| &mut player.$field)?;
            } )*
            $( if let Some(columns) = tables.columns(stringify!($own_field), schema).filter(|columns| kinds.has(columns.name)) {
                let records = decode_kind::<$own_type>(&columns, &context, &mut budget, &stretch)?;
                unknown::decode_columns::<$own_type>(&columns, &records, (header, &texts), &mut stretch.unknown, &mut budget)?;
                stretch.$own_field = records;
            } )*
            if kinds == Kinds::All {
                unknown::decode_kinds(&tables, schema, (header, &texts), &mut stretch.unknown, &mut budget)?;
            }
            Ok(stretch)
        }

    };
}
each_stream!(code);

/// Returns what a part of a session has in each table.
pub(crate) fn rows_by_table(part: &SessionSlice<'_>, header: &SessionHeader) -> ChunkRows {
    let kinds = OF_PLAYERS.iter().enumerate();
    let players = kinds.filter_map(|(kind, (name, _))| rows_of(name, part.of_kind(kind), true));
    let session = OF_SESSION.iter().zip(part.own());
    let session = session.filter_map(|(name, list)| rows_of(name, std::iter::once(list.clone()), false));
    let mut tables: ChunkRows = players.chain(session).collect();
    tables.extend(states::rows_by_table(part, header));
    tables.extend(unknown::rows_by_table(part, header));
    tables
}

/// Decodes a chunk of a log with this header.
pub(crate) fn decode(content: &[u8], header: &SessionHeader, schema: &Schema) -> Result<SessionStretch, String> {
    decode_within(MAX_CHUNK_MEMORY, content, (header, Kinds::All), schema)
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

fn encode_kind<T: RecordLayout>(
    name: &'static str,
    parts: RecordSeries<'_, T>,
    part: &SessionSlice<'_>,
    context: &WriteContext<'_>,
    header: &SessionHeader,
) -> Option<PackedTable<ByteBuf>> {
    let mut rows = TableWriter::new(parts);
    if rows.is_empty() {
        return None;
    }
    rows.put(&|keys, row_counts| named_times(part, name, keys, row_counts));
    T::put_lists(&mut rows, context);
    if let Some(kind) = unknown::kind_of(header, name) {
        unknown::encode_columns(kind, (&rows.keys(), &mut rows.columns), part, context.texts);
    }
    Some(rows.columns.finish())
}

fn decode_kind<T: RecordLayout>(
    columns: &ColumnReader<'_>,
    context: &ReadContext<'_>,
    budget: &mut Budget,
    so_far: &SessionStretch,
) -> Result<Vec<T>, String> {
    budget.take(columns.rows, 2 * size_of::<T>() + 48)?;
    let whole = SessionSlice::whole(so_far);
    let mut records = columns.take::<T>(&|keys, row_counts| named_times(&whole, columns.name, keys, row_counts))?;
    T::take_lists(&mut records, ListReader { columns, context }, budget)?;
    Ok(records)
}

/// Returns the records of a player that the keys of a kind name, by their first column.
fn named_by(kind: &str, part: &SessionSlice<'_>, player: usize) -> RecordLookup {
    match kind {
        "sent" => RecordLookup::of(part.of_player(player, "frames", |records| &records.frames)),
        "reached" => RecordLookup::of(part.of_player(player, "sent", |records| &records.sent)),
        "heard" => RecordLookup::of(part.of_player(player, "reached", |records| &records.reached)),
        "received" => RecordLookup::of(part.of_player(player, "snapshots", |records| &records.snapshots)),
        _ => RecordLookup::among(Vec::new()),
    }
}

/// Returns the times of the records that the keys of a kind name, series by series.
fn named_times(part: &SessionSlice<'_>, kind: &str, keys: &[i64], row_counts: &[(u32, usize)]) -> Vec<i64> {
    let mut times = Vec::with_capacity(keys.len());
    let mut keys = keys.iter();
    for &(id, count) in row_counts {
        let mut named = named_by(kind, part, id as usize);
        times.extend(keys.by_ref().take(count).map(|key| named.next(*key)));
    }
    times
}
