//! The first chunk of a file: its kind, its format version, its header, and the columns that a log declares in it.

use std::borrow::Cow;
use std::io::Read;

use serde::{Deserialize, Serialize};

use super::chunk::to_messagepack;
use super::container::ZSTD_MAGIC;
use super::error::{HEADER_VALUES_MAX, LOG_PLAYERS_MAX, LogError, WriteError};
use super::kinds::{EXTRA_BYTES, HEARD_USERCMD, RecordLayout};
use crate::record::{
    ArrivalRecord, DamageRecord, ExecutionRecord, FieldSchema, FrameRecord, GapRecord, HeardRecord, PacketRecord,
    PlayerInfo, PlayerRecords, PresenceRecord, SessionHeader, ShotRecord, SnapshotRecord, TickRecord, UnknownKind,
    each_stream,
};

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
    match crate::serial::count_values(HEADER_VALUES_MAX, &content) {
        Ok(()) => Ok(content),
        Err(error) => Err(WriteError::Header(error.to_string())),
    }
}

/// Encodes the first chunk of a log.
pub(crate) fn encode_log(header: &SessionHeader) -> Result<Vec<u8>, WriteError> {
    check_players(&header.players).map_err(WriteError::Header)?;
    let declared = header.unknown.iter().filter(|kind| !kind.fields.is_empty());
    let stored = StoredHeader {
        header: Cow::Borrowed(header),
        kinds: Schema::new(header).kinds,
        columns: declared.map(|kind| (kind.name.clone(), kind.fields.clone())).collect(),
    };
    encode(FileKind::Log, &stored)
}

/// Checks the number of players against the limit of a session.
pub(crate) fn check_players(players: &[PlayerInfo]) -> Result<(), String> {
    match players.len() {
        0..=LOG_PLAYERS_MAX => Ok(()),
        players => Err(format!("it has {players} players, and a session has at most {LOG_PLAYERS_MAX}")),
    }
}

/// Decodes the first chunk of a log. Returns the header with its schema, and whether the file is sealed.
pub(crate) fn decode_log(content: &[u8]) -> Result<((SessionHeader, Schema), bool), LogError> {
    let ((stored, version), sealed) = decode::<StoredHeader<'_>>(content, FileKind::Log)?;
    let StoredHeader { header, kinds, columns } = stored;
    let (mut header, schema) = (header.into_owned(), Schema { kinds, version });
    check_players(&header.players).map_err(|what| LogError::corrupt(0, "the header", what))?;
    header.unknown = schema.unknown(&header);
    for kind in &mut header.unknown {
        let declared = columns.iter().find(|(name, _)| *name == kind.name);
        let fields = declared.map_or(&[][..], |(_, fields)| fields).iter();
        kind.fields = fields.filter(|field| kind.columns.contains(&field.name)).cloned().collect();
    }
    Ok(((header, schema), sealed))
}

/// Decodes a first chunk of the wanted kind and a readable version. Returns the header with its format, and whether the
/// file is sealed: it has the chain, the seal and the seek table. Only foreign writers leave them out.
pub(crate) fn decode<'a, H: Deserialize<'a>>(
    content: &'a [u8],
    wanted: FileKind,
) -> Result<((H, FormatVersion), bool), LogError> {
    let strange = |what: String| LogError::NotHitreg { what };
    if let Err(error) = crate::serial::count_values(HEADER_VALUES_MAX, content)
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
    Ok(((first.header, first.format), first.sealed.unwrap_or(false)))
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

// Format versions, and the compatibility of readers and files.

/// A format version: major and minor. Files store it as `[major, minor]`.
///
/// The major version increases when an older reader would misread the file. The minor version increases when a file has
/// additions that an older reader may ignore.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FormatVersion(pub u16, pub u16);

/// The format of logs and traces that this build writes. It reads all minor versions of it.
pub const FORMAT: FormatVersion = FormatVersion(1, 0);

impl std::fmt::Display for FormatVersion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0, self.1)
    }
}

/// Why a reader must not read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnreadableFormat {
    /// The file's major version is newer.
    #[error("the file has format {file}, and this build reads formats up to {reader}: use a newer hitreg")]
    Newer {
        /// The file's version.
        file: FormatVersion,
        /// The reader's version.
        reader: FormatVersion,
    },
    /// The version does not exist.
    #[error("the file claims format {file}, which does not exist: it is damaged, or from another program")]
    Never {
        /// The file's version.
        file: FormatVersion,
    },
}

/// Checks whether a reader of version `reader` can read a file of version `file`.
///
/// A reader reads all files of its own major version and of older ones. It ignores additions of a newer minor version,
/// and refuses newer major versions.
///
/// # Errors
/// When the reader cannot read the file.
pub fn check_readable_by(file: FormatVersion, reader: FormatVersion) -> Result<(), UnreadableFormat> {
    let (FormatVersion(major, _), FormatVersion(newest, _)) = (file, reader);
    if major == 0 {
        Err(UnreadableFormat::Never { file })
    } else if major > newest {
        Err(UnreadableFormat::Newer { file, reader })
    } else {
        Ok(())
    }
}

/// The columns of each record kind, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Schema {
    /// The kinds and columns as the header declares them. Missing tables and columns are empty.
    pub(crate) kinds: Vec<(String, Vec<String>)>,
    /// The format version of the log.
    pub(crate) version: FormatVersion,
}

macro_rules! own_kinds {
    (
        players { $( $(#[$doc:meta])* $by:ident $variant:ident $field:ident $type:ident; )* }
        session { $( $(#[$own_doc:meta])* $own:ident $own_field:ident $own_type:ident; )* }
    ) => {
        fn own_kinds() -> Vec<(&'static str, Vec<String>)> {
            vec![
                $( (stringify!($field), columns_of::<$type>()), )*
                $( (stringify!($own_field), columns_of::<$own_type>()), )*
            ]
        }
    };
}
each_stream!(own_kinds);

fn columns_of<T: RecordLayout>() -> Vec<String> {
    T::column_names().into_iter().chain(T::list_names()).collect()
}

/// Returns the columns of a kind that hold usercmd fields of the game, and bytes of usercmds.
fn own_columns(kind: &str, header: &SessionHeader) -> Vec<String> {
    let (prefix, bytes): (_, &[&str]) = match kind {
        "frames" if header.usercmd_bytes => ("", &EXTRA_BYTES),
        "frames" => ("", &[]),
        "heard" => (HEARD_USERCMD, &[]),
        _ => return Vec::new(),
    };
    let fields = header.own_usercmd_fields().into_iter().map(|field| format!("{prefix}{}", field.name));
    fields.chain(bytes.iter().map(|name| (*name).to_owned())).collect()
}

impl Schema {
    /// Returns the schema in which this build writes a log: with the usercmd fields that the game declares, and with
    /// unknown kinds that it copies.
    pub(crate) fn new(header: &SessionHeader) -> Schema {
        let mut kinds: Vec<(String, Vec<String>)> =
            own_kinds().into_iter().map(|(kind, columns)| (kind.to_owned(), columns)).collect();
        for (kind, columns) in &mut kinds {
            columns.extend(own_columns(kind, header));
        }
        for UnknownKind { name, columns, .. } in &header.unknown {
            match kinds.iter_mut().find(|(kind, _)| kind == name) {
                Some((_, known)) => known.extend(columns.iter().cloned()),
                None => kinds.push((name.clone(), columns.clone())),
            }
        }
        Schema { kinds, version: FORMAT }
    }

    /// Returns the memory that reading any chunk of this log takes, even an empty one, in bytes. The reader visits
    /// everything that the header declares.
    pub(crate) fn empty_chunk_bytes(&self, header: &SessionHeader) -> usize {
        let declared = header.classes.len() + header.unknown.len() + self.kinds.len();
        header.players.len() * size_of::<PlayerRecords>() + declared * size_of::<UnknownKind>()
    }

    /// Returns the columns of a kind; `None` if the log does not declare it.
    pub(crate) fn columns(&self, kind: &str) -> Option<&[String]> {
        self.kinds.iter().find(|(name, _)| name == kind).map(|(_, columns)| &columns[..])
    }

    /// Returns the declared kinds and columns that this build does not know.
    pub(crate) fn unknown(&self, header: &SessionHeader) -> Vec<UnknownKind> {
        let kinds = own_kinds();
        let unknown = |(name, columns): &(String, Vec<String>)| {
            let known = kinds.iter().find(|(kind, _)| kind == name).map_or(&[][..], |(_, columns)| &columns[..]);
            let own = own_columns(name, header);
            let is_unknown = |column: &&String| !known.contains(column) && !own.contains(column);
            let columns: Vec<String> = columns.iter().filter(is_unknown).cloned().collect();
            let is_known = !known.is_empty() && columns.is_empty();
            (!is_known).then(|| UnknownKind { name: name.clone(), columns, fields: Vec::new() })
        };
        self.kinds.iter().filter_map(unknown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_compatibility_table_of_the_format_page() {
        let v = FormatVersion;
        let cases = [
            (v(1, 0), v(1, 0), Ok(())),
            (v(1, 0), v(1, 3), Ok(())),
            (v(1, 3), v(1, 0), Ok(())),
            (v(1, 9), v(2, 0), Ok(())),
            (v(2, 0), v(1, 9), Err(UnreadableFormat::Newer { file: v(2, 0), reader: v(1, 9) })),
            (v(0, 1), v(1, 0), Err(UnreadableFormat::Never { file: v(0, 1) })),
        ];
        for (file, reader, answer) in cases {
            assert_eq!(check_readable_by(file, reader), answer, "file {file}, reader {reader}");
        }
    }

    #[test]
    fn a_version_is_stored_as_a_pair() {
        assert_eq!(rmp_serde::to_vec_named(&FORMAT).unwrap(), [0x92, 1, 0]);
    }
}
