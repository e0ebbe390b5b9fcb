//! The first chunk of a file: its kind, its format version, and its header.

use std::borrow::Cow;
use std::io::Read;

use serde::{Deserialize, Serialize};

use super::chunk::to_messagepack;
use super::container::ZSTD_MAGIC;
use super::error::{LogError, WriteError};
use super::frames::{FileFrames, unpack};
use super::limits::{MAX_HEADER_VALUES, MAX_PLAYERS};
use super::schema::Schema;
use super::version::{FORMAT, FormatVersion, check_readable_by};
use crate::record::{FieldSchema, PlayerInfo, SessionHeader};

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A recorded session.
    Log,
    /// The result of a replay.
    Trace,
    /// Neither a log nor a trace.
    Other,
}

impl std::fmt::Display for FileKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            FileKind::Log => "log",
            FileKind::Trace => "trace",
            FileKind::Other => "file of another kind",
        })
    }
}

impl FileKind {
    /// The kinds that hitreg writes.
    const HITREG: [FileKind; 2] = [FileKind::Log, FileKind::Trace];

    fn of_magic(magic: &str) -> Option<FileKind> {
        FileKind::HITREG.into_iter().find(|kind| kind.magic() == magic)
    }

    const fn magic(self) -> &'static str {
        match self {
            FileKind::Log => "hitlog",
            FileKind::Trace => "hittrace",
            FileKind::Other => "",
        }
    }
}

/// Returns the kind of a file from its first bytes; 128 KiB suffice for any file.
pub fn kind_of(bytes: &[u8]) -> FileKind {
    if !bytes.starts_with(&ZSTD_MAGIC.to_le_bytes()) {
        return FileKind::Other;
    }
    let Ok(start) = unpack_start(bytes) else { return FileKind::Other };
    FileKind::HITREG.into_iter().find(|kind| starts_with_magic(&start, kind.magic())).unwrap_or(FileKind::Other)
}

/// Returns the format of a log or trace; `None` for any other file.
pub fn version_of(file: &[u8]) -> Option<FormatVersion> {
    let frame = FileFrames::new(file, 0).next().ok()??;
    let content = unpack(&frame).ok()?;
    let preamble: Preamble<'_> = crate::serial::from_msgpack(&content).ok()?;
    FileKind::of_magic(preamble.magic).map(|_| preamble.format)
}

/// Unpacks the first 16 bytes of a frame that may continue beyond `bytes`.
fn unpack_start(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut decoder = zstd::stream::read::Decoder::new(bytes)?;
    // This library's frames never need a larger window; a damaged frame could ask for gigabytes.
    decoder.window_log_max(24)?;
    let mut start = Vec::new();
    decoder.take(16).read_to_end(&mut start)?;
    Ok(start)
}

/// Whether the MessagePack content begins with a map whose first entry is `magic` with this value.
fn starts_with_magic(content: &[u8], magic: &str) -> bool {
    let mut expected = vec![0xA5];
    expected.extend_from_slice(b"magic");
    expected.push(0xA0 | magic.len() as u8);
    expected.extend_from_slice(magic.as_bytes());
    content.first().is_some_and(|first| first & 0xF0 == 0x80) && content[1..].starts_with(&expected)
}

/// The map in the first chunk.
#[derive(Serialize, Deserialize)]
struct FirstChunk<'a, H> {
    magic: &'a str,
    format: FormatVersion,
    sealed: Option<bool>,
    written_by: Option<String>,
    header: H,
}

/// The entries that begin every first chunk, in any version.
#[derive(Deserialize)]
struct Preamble<'a> {
    magic: &'a str,
    format: FormatVersion,
}

/// A decoded first chunk.
#[derive(Debug)]
pub(crate) struct OpeningChunk<H> {
    pub(crate) header: H,
    pub(crate) format: FormatVersion,
    /// Whether the file has the chain, the seal and the seek table. Only foreign writers leave them out.
    pub(crate) sealed: bool,
}

/// Encodes the first chunk of a file.
pub(crate) fn encode<H: Serialize>(kind: FileKind, header: &H) -> Result<Vec<u8>, WriteError> {
    let first = FirstChunk {
        magic: kind.magic(),
        format: FORMAT,
        sealed: Some(true),
        written_by: Some(concat!("hitreg ", env!("CARGO_PKG_VERSION")).to_owned()),
        header,
    };
    let content = to_messagepack(&first)?;
    // Writers refuse headers that readers would refuse.
    match crate::serial::count_values(MAX_HEADER_VALUES, &content) {
        Ok(()) => Ok(content),
        Err(error) => Err(WriteError::Header(error.to_string())),
    }
}

/// Encodes the first chunk of a log.
pub(crate) fn encode_log(header: &SessionHeader) -> Result<Vec<u8>, WriteError> {
    check_players(&header.players).map_err(WriteError::Header)?;
    encode(FileKind::Log, &StoredHeader::of(header))
}

/// Checks the number of players against the limit of a session.
pub(crate) fn check_players(players: &[PlayerInfo]) -> Result<(), String> {
    match players.len() {
        0..=MAX_PLAYERS => Ok(()),
        players => Err(format!("it has {players} players, and a session has at most {MAX_PLAYERS}")),
    }
}

/// Decodes the first chunk of a log. Returns the header with its schema, and whether the file is sealed.
pub(crate) fn decode_log(content: &[u8]) -> Result<((SessionHeader, Schema), bool), LogError> {
    let OpeningChunk { header, format, sealed } = decode::<StoredHeader<'_>>(content, FileKind::Log)?;
    let StoredHeader { header, kinds, columns } = header;
    let (mut header, schema) = (header.into_owned(), Schema { kinds, version: format });
    check_players(&header.players).map_err(|what| LogError::corrupt(0, "the header", what))?;
    header.unknown = schema.unknown(&header.own_usercmd_fields());
    for kind in &mut header.unknown {
        let declared = columns.iter().find(|(name, _)| *name == kind.name);
        let fields = declared.map_or(&[][..], |(_, fields)| fields).iter();
        kind.fields = fields.filter(|field| kind.columns.contains(&field.name)).cloned().collect();
    }
    Ok(((header, schema), sealed))
}

/// Decodes a first chunk of the wanted kind and a readable version.
pub(crate) fn decode<'a, H: Deserialize<'a>>(content: &'a [u8], wanted: FileKind) -> Result<OpeningChunk<H>, LogError> {
    let strange = |what: String| LogError::NotHitreg { what };
    if let Err(error) = crate::serial::count_values(MAX_HEADER_VALUES, content)
        && FileKind::HITREG.iter().any(|kind| starts_with_magic(content, kind.magic()))
    {
        return Err(LogError::corrupt(0, "the header", error.to_string()));
    }
    let preamble: Preamble<'_> = crate::serial::from_msgpack(content)
        .map_err(|_| strange("it is zstd-compressed, but does not begin with a hitreg header".into()))?;
    let found = FileKind::of_magic(preamble.magic);
    let found = found.ok_or_else(|| strange(format!("it calls itself {:?}", preamble.magic)))?;
    if found != wanted {
        return Err(LogError::WrongKind { found, wanted });
    }
    check_readable_by(preamble.format, FORMAT)?;
    let first: FirstChunk<'_, H> = crate::serial::from_msgpack(content).map_err(|error| {
        LogError::corrupt(0, "the header", format!("it is not as its format {} says ({error})", preamble.format))
    })?;
    Ok(OpeningChunk { header: first.header, format: first.format, sealed: first.sealed.unwrap_or(false) })
}

/// A log's header in its file representation, with the columns of its tables.
#[derive(Serialize, Deserialize)]
struct StoredHeader<'a> {
    #[serde(flatten)]
    header: Cow<'a, SessionHeader>,
    kinds: Vec<(String, Vec<String>)>,
    /// The declared columns of custom kinds.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    columns: Vec<(String, Vec<FieldSchema>)>,
}

impl StoredHeader<'_> {
    fn of(header: &SessionHeader) -> StoredHeader<'_> {
        let declared = header.unknown.iter().filter(|kind| !kind.fields.is_empty());
        StoredHeader {
            header: Cow::Borrowed(header),
            kinds: Schema::new(header).kinds,
            columns: declared.map(|kind| (kind.name.clone(), kind.fields.clone())).collect(),
        }
    }
}
