//! The first chunk of a file: what it is, in which version, and its header.

use std::io::Read;

use serde::{Deserialize, Serialize};

use super::chunk::to_messagepack;
use super::container::ZSTD_MAGIC;
use super::error::{LogError, WriteError};
use super::frames::{Frames, unpack};
use super::version::{FORMAT, TRACE_FORMAT, Version, check_readable_by};

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    /// A recorded session.
    Log,
    /// What a replay put out.
    Trace,
    /// Neither.
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
    const fn magic(self) -> &'static str {
        match self {
            FileKind::Log => "hitlog",
            FileKind::Trace => "hittrace",
            FileKind::Other => "",
        }
    }

    const fn format(self) -> Version {
        match self {
            FileKind::Trace => TRACE_FORMAT,
            FileKind::Log | FileKind::Other => FORMAT,
        }
    }
}

/// What a file is, from its first bytes; all that is up to 128 KiB is enough for any file.
pub fn kind_of(bytes: &[u8]) -> FileKind {
    if !bytes.starts_with(&ZSTD_MAGIC.to_le_bytes()) {
        return FileKind::Other;
    }
    let mut head = [0u8; 16];
    let got = match unpack_some(bytes, &mut head) {
        Ok(got) => &head[..got],
        Err(_) => return FileKind::Other,
    };
    let kinds = [FileKind::Log, FileKind::Trace];
    kinds.into_iter().find(|kind| starts_with_magic(got, kind.magic())).unwrap_or(FileKind::Other)
}

/// The format of a log or trace; `None` for any other file.
pub fn version_of(file: &[u8]) -> Option<Version> {
    let frame = Frames::new(file, 0).next().ok()??;
    let content = unpack(&frame).ok()?;
    let preamble: Preamble<'_> = crate::serial::from_msgpack(&content).ok()?;
    [FileKind::Log, FileKind::Trace].iter().any(|kind| kind.magic() == preamble.magic).then_some(preamble.format)
}

/// Unpacks the first bytes of a frame that may go on beyond `bytes`.
fn unpack_some(bytes: &[u8], head: &mut [u8]) -> std::io::Result<usize> {
    let mut decoder = zstd::stream::read::Decoder::new(bytes)?;
    // A frame of ours never needs a larger window; a damaged one could ask for gigabytes.
    decoder.window_log_max(24)?;
    let mut got = 0;
    while got < head.len() {
        match decoder.read(&mut head[got..])? {
            0 => break,
            more => got += more,
        }
    }
    Ok(got)
}

/// Whether MessagePack begins with a map whose first entry is `magic` with this value.
fn starts_with_magic(content: &[u8], magic: &str) -> bool {
    let mut expected = vec![0xA5];
    expected.extend_from_slice(b"magic");
    expected.push(0xA0 | magic.len() as u8);
    expected.extend_from_slice(magic.as_bytes());
    content.first().is_some_and(|first| first & 0xF0 == 0x80) && content[1..].starts_with(&expected)
}

/// The first chunk's map.
#[derive(Serialize, Deserialize)]
struct FirstChunk<'a, H> {
    magic: &'a str,
    format: Version,
    sealed: Option<bool>,
    written_by: Option<String>,
    header: H,
}

/// What every first chunk says before its header, whatever the version.
#[derive(Deserialize)]
struct Preamble<'a> {
    magic: &'a str,
    format: Version,
}

/// A first chunk, read.
#[derive(Debug)]
pub(crate) struct Opening<H> {
    pub(crate) header: H,
    /// Whether the chain, the seal and the seek table are there to be checked. Only foreign writers leave them out.
    pub(crate) sealed: bool,
}

/// The first chunk of a file of ours.
pub(crate) fn encode<H: Serialize>(kind: FileKind, header: &H) -> Result<Vec<u8>, WriteError> {
    let first = FirstChunk {
        magic: kind.magic(),
        format: kind.format(),
        sealed: Some(true),
        written_by: Some(concat!("hitreg ", env!("CARGO_PKG_VERSION")).to_owned()),
        header,
    };
    to_messagepack(&first)
}

/// Reads a first chunk, which must be of the wanted kind and of a readable version.
pub(crate) fn decode<'a, H: Deserialize<'a>>(content: &'a [u8], wanted: FileKind) -> Result<Opening<H>, LogError> {
    let strange = |what: String| LogError::NotHitreg { what };
    let preamble: Preamble<'_> = crate::serial::from_msgpack(content)
        .map_err(|_| strange("it is zstd-compressed, but does not begin with a hitreg header".into()))?;
    let kinds = [FileKind::Log, FileKind::Trace];
    let found = kinds.into_iter().find(|kind| kind.magic() == preamble.magic);
    let found = found.ok_or_else(|| strange(format!("it calls itself {:?}", preamble.magic)))?;
    if found != wanted {
        return Err(LogError::WrongKind { found, wanted });
    }
    check_readable_by(preamble.format, wanted.format())?;
    let first: FirstChunk<'_, H> = crate::serial::from_msgpack(content).map_err(|error| LogError::Corrupt {
        offset: 0,
        part: "the header".into(),
        what: format!("it is not as its format {} says ({error})", preamble.format),
    })?;
    Ok(Opening { header: first.header, sealed: first.sealed.unwrap_or(false) })
}
