//! Recovers the intact chunks of a damaged log. Chunks are independent, so those after a damaged one are still
//! readable.
//!
//! The first pass finds the chunks and checks that they decode. The second pass decodes them again, one at a time, so
//! that a session of any length can be recovered.

use std::io::Write;
use std::ops::Range;

use serde::Serialize;

use super::chunk;
use super::chunks::{first_frame, read_position};
use super::container::{Chain, SEAL_MAGIC, SEEK_TABLE_MAGIC, SeekTable, ZSTD_MAGIC};
use super::container::{FileFrame, FileFrames, FrameError, FrameKind, unpack};
use super::error::{LogError, Truncation, WriteError};
use super::header::Schema;
use super::header::decode_log;
use super::index;
use super::keyframes::keyframe_in;
use super::writer::{MergeWriter, WriterOptions, tick_times};
use crate::memory::MemoryLimit;
use crate::record::{EventTime, GapCause, GapRecord, Session, SessionChunk, SessionHeader, UnknownRecords};
use crate::sorted::SortedSet;
use crate::units::{Micros, Tick};

/// The damage found in a recovered log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogDamage {
    /// The number of chunks of records read.
    pub chunks: u32,
    /// The number of keyframes read. Recovery drops them, because they can be recomputed.
    pub keyframes: u32,
    /// The parts that are unreadable or changed, in the order of offsets.
    pub parts: Vec<DamagedPart>,
    /// Where the log is cut off, if it is.
    pub torn: Option<Truncation>,
}

impl LogDamage {
    /// Whether the log has no damage.
    pub fn is_none(&self) -> bool {
        self.parts.is_empty() && self.torn.is_none()
    }
}

/// A part of a log that is unreadable or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DamagedPart {
    /// The offset where the part begins.
    pub offset: u64,
    /// The number of bytes skipped; 0 if the bytes changed but no content was lost.
    pub bytes: u64,
    /// The number of chunks of records missing from the session here.
    pub chunks: u32,
    /// The problem.
    pub what: String,
}

impl std::fmt::Display for DamagedPart {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "offset {}: {} bytes, {} chunks lost: {}", self.offset, self.bytes, self.chunks, self.what)
    }
}

/// Reads every intact chunk of a log.
///
/// # Errors
/// When the bytes are not a log, or the header is damaged. Also when the session needs more memory than the default
/// limit ([`MemoryLimit`]). [`RecoveredLog`] has no such limit.
pub fn recover(bytes: &[u8]) -> Result<(Session, LogDamage), LogError> {
    recover_within(MemoryLimit::default(), bytes)
}

pub(super) fn recover_within(limit: MemoryLimit, bytes: &[u8]) -> Result<(Session, LogDamage), LogError> {
    let recovered = RecoveredLog::find(bytes)?;
    let mut session = Session::new(recovered.header.clone());
    let empty_chunk_bytes = recovered.schema.empty_chunk_bytes(&recovered.header);
    let mut used = 0_usize;
    for (chunk, _) in recovered.chunks() {
        used = used.saturating_add(empty_chunk_bytes + chunk.bytes());
        // The error names what the whole session needs.
        if limit.check(used).is_ok() {
            session.append(chunk);
        }
    }
    limit.check(used)?;
    session.put_in_order();
    Ok((session, recovered.damage))
}

/// The intact chunks of a log.
pub struct RecoveredLog<'a> {
    bytes: &'a [u8],
    header: SessionHeader,
    schema: Schema,
    chunks: Vec<IntactChunk>,
    /// The times of all known ticks, ascending.
    ticks: Vec<(Tick, Micros)>,
    /// The unknown kinds of records, without rows.
    unknown: Vec<UnknownRecords>,
    damage: LogDamage,
}

impl std::fmt::Debug for RecoveredLog<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RecoveredLog")
            .field("header", &self.header)
            .field("damage", &self.damage)
            .finish_non_exhaustive()
    }
}

/// The place of a chunk that decodes.
struct IntactChunk {
    bytes: Range<usize>,
    /// The missing part of the session before it.
    gap: Option<GapRecord>,
    /// The earliest time of its records, and the first tick that they name.
    earliest: Option<Micros>,
    first_tick: Option<Tick>,
}

impl<'a> RecoveredLog<'a> {
    /// Finds every intact chunk of a log.
    ///
    /// # Errors
    /// When the bytes are not a log, or the header is damaged.
    pub fn find(bytes: &'a [u8]) -> Result<RecoveredLog<'a>, LogError> {
        let frame = first_frame(&mut FileFrames::new(bytes, 0))?;
        let content = unpack(&frame).map_err(|what| LogError::corrupt_chunk(0, 0, what))?;
        let ((header, schema), sealed) = decode_log(&content)?;
        let mut recovery = Recovery {
            bytes,
            sealed,
            found: RecoveredLog {
                bytes,
                header,
                schema,
                chunks: Vec::new(),
                ticks: Vec::new(),
                unknown: Vec::new(),
                damage: LogDamage::default(),
            },
            looks: LOOKS_LEAST.saturating_add(bytes.len().saturating_mul(LOOKS_PER_BYTE)),
            latest: None,
            has_ticks: false,
            chain: Chain::default(),
            table: SeekTable::default(),
            next_index: 1,
            last_offset: 0,
            lost_chunks: false,
            lost: Vec::new(),
        };
        frame.add_to(&mut recovery.table, &mut recovery.chain);
        recovery.run(frame.bytes.len());
        let mut found = recovery.found;
        found.ticks.sort_unstable();
        found.ticks.dedup_by_key(|(tick, _)| *tick);
        Ok(found)
    }

    /// Returns the header of the log.
    pub fn header(&self) -> &SessionHeader {
        &self.header
    }

    /// Returns the damage of the log.
    pub fn damage(&self) -> &LogDamage {
        &self.damage
    }

    /// Writes the intact records as a complete log, and passes each chunk to `seen` before. The file is the same as
    /// [`write_session`](super::write_session) makes of the session that [`recover`] reads, except that snapshots of a
    /// client's log stay in the order of their arrival.
    ///
    /// # Errors
    /// When writing fails. Also when records of distant times are so mixed that sorting them needs more memory than the
    /// limit ([`WriteError::NeedsMemory`]).
    pub fn write<W: Write>(
        &self,
        out: W,
        options: WriterOptions,
        limit: MemoryLimit,
        seen: &mut dyn FnMut(&SessionChunk),
    ) -> Result<W, WriteError> {
        let mut writer = MergeWriter::new(out, &self.header, self.unknown.clone(), options)?;
        writer.set_ticks(self.ticks.clone());
        for (chunk, until) in self.chunks() {
            seen(&chunk);
            writer.add(chunk)?;
            writer.write_until(until)?;
            limit.check(writer.held_bytes())?;
        }
        writer.finish()
    }

    /// Returns the chunks, each with the time before which no later chunk has a record.
    fn chunks(&self) -> impl Iterator<Item = (SessionChunk, Micros)> {
        // Times of ticks that come from snapshots may fall.
        let mut earliest_from: Vec<Micros> = self.ticks.iter().map(|(_, at)| *at).collect();
        for tick in (1..earliest_from.len()).rev() {
            earliest_from[tick - 1] = earliest_from[tick - 1].min(earliest_from[tick]);
        }
        let mut until = Micros(i64::MAX);
        let mut untils: Vec<Micros> = Vec::with_capacity(self.chunks.len());
        for chunk in self.chunks.iter().rev() {
            untils.push(until);
            until = chunk.earliest(&self.ticks, &earliest_from).map_or(until, |earliest| until.min(earliest));
        }
        self.chunks.iter().zip(untils.into_iter().rev()).map(|(chunk, until)| (self.decode(chunk), until))
    }

    fn decode(&self, IntactChunk { bytes, gap, .. }: &IntactChunk) -> SessionChunk {
        let frame = FileFrames::new(&self.bytes[bytes.clone()], bytes.start as u64).next();
        let frame = frame.ok().flatten().expect("the first pass has read this frame");
        let content = unpack(&frame).expect("the first pass has unpacked this chunk");
        let mut chunk =
            chunk::decode(&content, &self.header, &self.schema).expect("the first pass has decoded this chunk");
        chunk.gaps.splice(0..0, *gap);
        chunk
    }
}

impl IntactChunk {
    /// Returns the earliest time of its records and of its gap, given the times of ticks and for each tick the earliest
    /// time from it on.
    fn earliest(&self, ticks: &[(Tick, Micros)], earliest_from: &[Micros]) -> Option<Micros> {
        let first = self.first_tick.map(|first| ticks.partition_point(|(tick, _)| *tick < first));
        let in_tick = first.and_then(|first| earliest_from.get(first).copied());
        [self.earliest, in_tick, self.gap.map(|gap| gap.from)].into_iter().flatten().min()
    }
}

/// In a damaged chunk, recovery tries every position that looks like the start of a chunk, and each attempt may read
/// far. All attempts may read this many bytes per byte of the file, plus [`LOOKS_LEAST`].
const LOOKS_PER_BYTE: usize = 8;
const LOOKS_LEAST: usize = 64 << 20;

struct Recovery<'a> {
    bytes: &'a [u8],
    sealed: bool,
    found: RecoveredLog<'a>,
    /// How many bytes failed attempts may still read.
    looks: usize,
    /// The latest time so far.
    latest: Option<Micros>,
    /// Whether the ticks come from records of ticks, and not from snapshots.
    has_ticks: bool,
    chain: Chain,
    table: SeekTable,
    next_index: u32,
    last_offset: u64,
    /// Whether chunks are missing before the next chunk with records.
    lost_chunks: bool,
    /// The missing chunks.
    lost: Vec<MissingChunks>,
}

/// A run of missing chunks.
struct MissingChunks {
    /// The index of its entry in the parts of the damage.
    part: usize,
    chunks: Range<u32>,
    /// The index of the intact chunk after it that has the gap.
    before: Option<usize>,
}

/// A trusted chunk: zstd's checksum matches, its number is plausible, and its columns decode.
struct TrustedChunk {
    frame: FileFrame,
    index: u32,
    before: Option<u64>,
    /// Its records; `None` for the last chunk.
    records: Option<SessionChunk>,
    is_keyframe: bool,
    /// The chunk numbers of keyframes, from the last chunk.
    keyframes: Vec<u32>,
}

impl Recovery<'_> {
    fn run(&mut self, mut at: usize) {
        loop {
            if at == self.bytes.len() {
                self.found.damage.torn = Some(Truncation { at_offset: at as u64, lost_bytes: 0 });
                return;
            }
            let start = at;
            let mut why = None;
            let found = loop {
                match self.chunk_at(at) {
                    Ok(found) => break Some(found),
                    Err(what) => {
                        why.get_or_insert(what);
                    }
                }
                match self.next_candidate(at + 1) {
                    Some(next) if self.looks > 0 => at = next,
                    Some(_) => {
                        why = Some("too many places in it look like chunks and are none".into());
                        break None;
                    }
                    None => break None,
                }
            };
            let Some(found) = found else {
                self.lose_rest(start, why);
                return;
            };
            self.note_gap(start, at, found.index, why);
            self.note_changed_bytes(&found);
            at += found.frame.bytes.len();
            if self.accept(found) {
                self.check_tail(at);
                return;
            }
        }
    }

    fn chunk_at(&mut self, at: usize) -> Result<TrustedChunk, String> {
        let mut frames = FileFrames::new(&self.bytes[at..], at as u64);
        let next = frames.next();
        let content_bytes = match &next {
            Ok(Some(FileFrame { kind: FrameKind::Chunk { content_bytes }, .. })) => *content_bytes,
            _ => 0,
        };
        let looked_at = (frames.offset as usize - at).saturating_add(content_bytes);
        let found = self.chunk_in(next);
        if found.is_err() {
            self.looks = self.looks.saturating_sub(looked_at);
        }
        found
    }

    fn chunk_in(&self, frame: Result<Option<FileFrame>, FrameError>) -> Result<TrustedChunk, String> {
        let frame = match frame {
            Ok(Some(frame)) => frame,
            Ok(None) => return Err("nothing follows".into()),
            Err(error) => return Err(error.to_string()),
        };
        let content = unpack(&frame)?;
        let position = read_position(&content)?;
        if position.index < self.next_index {
            return Err(format!("chunk {} is repeated here", position.index));
        }
        let records =
            if position.end { None } else { Some(chunk::decode(&content, &self.found.header, &self.found.schema)?) };
        let keyframes = if position.end { index::keyframes_in(&content) } else { Vec::new() };
        let is_keyframe = !position.end && keyframe_in(&content, 0).is_some();
        Ok(TrustedChunk { frame, index: position.index, before: position.before, records, is_keyframe, keyframes })
    }

    /// Returns the next position where a chunk may begin.
    fn next_candidate(&self, from: usize) -> Option<usize> {
        let magic = ZSTD_MAGIC.to_le_bytes();
        let rest = self.bytes.get(from..)?;
        rest.windows(magic.len()).position(|window| window == magic).map(|place| from + place)
    }

    /// Handles a log without any readable chunk after `start`. A chunk that was being written when the log was cut off
    /// ends with the file; anything else is damage.
    fn lose_rest(&mut self, start: usize, why: Option<String>) {
        let lost = &self.bytes[start..];
        let lost_bytes = lost.len() as u64;
        let has_tail = [SEAL_MAGIC, SEEK_TABLE_MAGIC]
            .iter()
            .any(|magic| lost.windows(4).any(|window| window == magic.to_le_bytes()));
        let cut = matches!(FileFrames::new(lost, start as u64).next(), Err(FrameError::Cut { .. }));
        if cut && !has_tail {
            self.found.damage.torn = Some(Truncation { at_offset: start as u64, lost_bytes });
        } else {
            let what = why.unwrap_or_default();
            self.found.damage.parts.push(DamagedPart { offset: start as u64, bytes: lost_bytes, chunks: 0, what });
        }
    }

    fn note_gap(&mut self, start: usize, at: usize, index: u32, why: Option<String>) {
        let chunks = index - self.next_index;
        self.lost_chunks |= chunks > 0;
        if at > start || chunks > 0 {
            let what = why.unwrap_or_else(|| "chunks were taken out".into());
            let bytes = (at - start) as u64;
            let lost =
                MissingChunks { part: self.found.damage.parts.len(), chunks: self.next_index..index, before: None };
            self.lost.extend((chunks > 0).then_some(lost));
            self.found.damage.parts.push(DamagedPart { offset: start as u64, bytes, chunks, what });
        }
    }

    /// Notes changed bytes in the previous chunk. Its content may still match its checksum, so the chunk is kept.
    fn note_changed_bytes(&mut self, found: &TrustedChunk) {
        let follows = found.index == self.next_index && self.found.damage.parts.is_empty();
        if follows && self.sealed && found.before != Some(self.chain.0) {
            let what = "its bytes have changed, but its content is intact".into();
            self.found.damage.parts.push(DamagedPart { offset: self.last_offset, bytes: 0, chunks: 0, what });
        }
    }

    /// Adds a chunk. Returns true for the last one.
    fn accept(&mut self, found: TrustedChunk) -> bool {
        found.frame.add_to(&mut self.table, &mut self.chain);
        self.last_offset = found.frame.offset;
        self.next_index = found.index.saturating_add(1);
        let Some(chunk) = found.records else {
            self.leave_keyframes_out(&found.keyframes);
            return true;
        };
        let before = self.latest;
        let span = chunk.time_span();
        self.latest = before.max(span.map(|(_, latest)| latest));
        let mut gap = None;
        // A keyframe has no time, so the gap continues to the next records.
        if self.lost_chunks
            && let Some((to, _)) = span
        {
            self.lost_chunks = false;
            if let Some(from) = before {
                let next = Some(self.found.chunks.len());
                self.lost.iter_mut().rev().take_while(|lost| lost.before.is_none()).for_each(|lost| lost.before = next);
                gap = Some(GapRecord { from, to, player: None, why: GapCause::Damaged });
            }
        }
        self.note_ticks(&chunk);
        chunk.unknown.iter().for_each(|records| records.note_kind(&mut self.found.unknown));
        let start = found.frame.offset as usize;
        self.found.chunks.push(IntactChunk {
            bytes: start..start + found.frame.bytes.len(),
            gap,
            earliest: chunk.full_time_span().map(|(earliest, _)| earliest),
            first_tick: first_tick(&chunk),
        });
        let damage = &mut self.found.damage;
        *(if found.is_keyframe { &mut damage.keyframes } else { &mut damage.chunks }) += 1;
        false
    }

    /// Notes the times of ticks. Those of snapshots count only in a log without records of ticks.
    fn note_ticks(&mut self, chunk: &SessionChunk) {
        if !chunk.ticks.is_empty() && !self.has_ticks {
            self.has_ticks = true;
            self.found.ticks.clear();
        }
        if self.has_ticks != chunk.ticks.is_empty() {
            self.found.ticks.extend(tick_times(chunk));
        }
    }

    /// Removes gaps in which only keyframes are missing, because no record is lost there.
    fn leave_keyframes_out(&mut self, keyframes: &[u32]) {
        let keyframes: SortedSet<u32> = keyframes.iter().copied().collect();
        let are_keyframes = |lost: &MissingChunks| lost.chunks.clone().all(|chunk| keyframes.contains(&chunk));
        let (kept, gone): (Vec<MissingChunks>, Vec<MissingChunks>) =
            self.lost.drain(..).partition(|lost| !are_keyframes(lost));
        for lost in &gone {
            let part = &mut self.found.damage.parts[lost.part];
            part.chunks = 0;
            part.what = format!("{}: a keyframe stood there, and no record is lost", part.what);
        }
        let is_open = |next: usize| kept.iter().any(|lost| lost.before == Some(next));
        for next in gone.iter().filter_map(|lost| lost.before).filter(|next| !is_open(*next)) {
            self.found.chunks[next].gap = None;
        }
    }

    fn check_tail(&mut self, at: usize) {
        let (expected, found) = (self.table.tail(self.chain), &self.bytes[at..]);
        if !self.found.damage.parts.is_empty() || found == expected || (found.is_empty() && !self.sealed) {
            return;
        }
        let lost_bytes = found.len() as u64;
        if expected.starts_with(found) {
            self.found.damage.torn = Some(Truncation { at_offset: at as u64, lost_bytes });
        } else {
            let what = "the seal and the seek table do not agree with the chunks; no record is lost".into();
            self.found.damage.parts.push(DamagedPart { offset: at as u64, bytes: lost_bytes, chunks: 0, what });
        }
    }
}

/// Returns the first tick that records without a time of their own name.
fn first_tick(chunk: &SessionChunk) -> Option<Tick> {
    let ticks = chunk.lists().flat_map(|list| {
        (0..list.len()).filter_map(|index| match list.when(index) {
            Some(EventTime::In(tick)) => Some(tick),
            Some(EventTime::At(_)) | None => None,
        })
    });
    ticks.min()
}
