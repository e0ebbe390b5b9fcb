//! Keyframes in logs: records stay unchanged, a reader finds the right keyframe without reading the log, and detects
//! damage on the way.

use std::cell::Cell;
use std::io::{Cursor, Read, Seek, SeekFrom};

use hitreg::log::{
    IndexedLog, KeyframeQuery, LogError, LogReader, SeekResult, WriterOptions, keyframes_of, read_session,
    write_keyframes, write_session,
};
use hitreg::record::{Keyframe, Session};
use hitreg::units::{Micros, Tick};

/// A log of many chunks.
fn plain(session: &Session) -> Vec<u8> {
    write_session(Vec::new(), session, WriterOptions { span: Micros::from_ms(50), ..WriterOptions::live() }).unwrap()
}

pub(crate) fn keyframe(number: usize) -> Keyframe {
    let content = (0..200 + number).map(|byte| (byte * 7 + number) as u8).collect();
    Keyframe {
        tick: Tick(8 * number as u32 + 8),
        at: Micros::from_ms(100 * number as i64 + 100),
        next_chunk: 2 * number,
        content,
    }
}

pub(crate) fn with_keyframes(log: &[u8], keyframes: &[Keyframe]) -> Vec<u8> {
    write_keyframes(log, Vec::new(), keyframes, WriterOptions::live()).unwrap()
}

fn all_of(log: &[u8]) -> Vec<Keyframe> {
    let mut all = Vec::new();
    keyframes_of(log, &mut |keyframe| all.push(keyframe)).unwrap();
    all
}

fn find<R: Read + Seek>(file: R, sought: KeyframeQuery) -> Result<Option<SeekResult<R>>, LogError> {
    IndexedLog::open(file)?.seek(sought)
}

/// A file that counts the bytes read.
pub(crate) struct CountedFile<'a> {
    pub(crate) file: Cursor<&'a [u8]>,
    pub(crate) read: &'a Cell<usize>,
}

impl Read for CountedFile<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.read.set(self.read.get() + read);
        Ok(read)
    }
}

impl Seek for CountedFile<'_> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.file.seek(to)
    }
}

#[test]
fn keyframes_are_replaced_and_records_stay_unchanged() {
    let session = crate::log_sessions::session(3, 400);
    let log = plain(&session);
    let keyframes: Vec<_> = (0..4).map(keyframe).collect();
    let keyed = with_keyframes(&log, &keyframes);
    assert_eq!(read_session(&keyed[..]).unwrap(), session);
    assert_eq!(LogReader::new(&keyed[..]).unwrap().format().to_string(), "1.0");
    let contents = |all: Vec<Keyframe>| -> Vec<_> { all.into_iter().map(|k| (k.tick, k.at, k.content)).collect() };
    assert_eq!(contents(all_of(&keyed)), contents(keyframes));
    assert!(all_of(&log).is_empty());
    // New keyframes replace those in the log.
    let again = with_keyframes(&keyed, &[keyframe(9)]);
    assert_eq!(contents(all_of(&again)), contents(vec![keyframe(9)]));
    assert_eq!(read_session(&again[..]).unwrap(), session);
}

#[test]
fn the_last_keyframe_before_a_time_is_found_with_later_records() {
    let session = crate::log_sessions::session(3, 400);
    let log = plain(&session);
    let mut chunks = Vec::new();
    let mut reader = LogReader::new(&log[..]).unwrap();
    chunks.extend(std::iter::from_fn(|| reader.next_chunk().unwrap()));
    let keyed = with_keyframes(&log, &(0..4).map(keyframe).collect::<Vec<_>>());
    assert!(find(Cursor::new(&log[..]), KeyframeQuery::At(Micros::from_s(9))).unwrap().is_none());
    assert!(find(Cursor::new(&keyed[..]), KeyframeQuery::At(Micros::from_ms(99))).unwrap().is_none());
    for (at_ms, number) in [(100, 0), (199, 0), (200, 1), (300, 2), (399, 2), (9_000, 3)] {
        let found = find(Cursor::new(&keyed[..]), KeyframeQuery::At(Micros::from_ms(at_ms))).unwrap().unwrap();
        let expected = keyframe(number);
        assert_eq!((found.keyframe.tick, &found.keyframe.content), (expected.tick, &expected.content));
        let mut reader = found.reader;
        let rest: Vec<_> = std::iter::from_fn(|| reader.next_chunk().unwrap()).filter(|s| !s.is_empty()).collect();
        assert_eq!(rest, chunks[expected.next_chunk..], "after keyframe {number}");
    }
}

/// For a log of any length, a search reads only the header, the seek table, the end and the keyframe.
#[test]
fn chunks_before_a_keyframe_are_not_read() {
    let session = crate::log_sessions::session(4, 6_000);
    let log = plain(&session);
    let keyed = with_keyframes(&log, &[keyframe(0), keyframe(200)]);
    let read = Cell::new(0);
    let found = find(CountedFile { file: Cursor::new(&keyed[..]), read: &read }, KeyframeQuery::At(Micros::from_s(60)))
        .unwrap();
    assert_eq!(found.unwrap().keyframe.tick, keyframe(200).tick);
    assert!(read.get() * 10 < keyed.len(), "{} of {} bytes", read.get(), keyed.len());
}

/// A search detects any flipped bit in the data it reads, and never returns another keyframe.
#[test]
fn damage_on_the_way_to_a_keyframe_is_detected() {
    let session = crate::log_sessions::session(2, 60);
    let keyed = with_keyframes(&plain(&session), &[keyframe(0), keyframe(1)]);
    let last = |bytes: &[u8]| find(Cursor::new(bytes.to_vec()), KeyframeQuery::At(Micros::from_s(9)));
    for place in 0..keyed.len() {
        let mut bytes = keyed.clone();
        bytes[place] ^= 0x10;
        if let Ok(Some(found)) = last(&bytes) {
            assert_eq!(found.keyframe.content, keyframe(1).content, "flipped at {place}");
        }
        let _ = last(&bytes[..place]);
    }
}
