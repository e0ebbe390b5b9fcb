//! The index of a file: the one that a reader builds is the one that a writer wrote, it is small, it saves reading, and
//! a reader that follows it notices that it is wrong.

use std::cell::Cell;
use std::io::Cursor;

use hitreg::log::{
    FileIndex, IndexedLog, IndexedTrace, KeyframeQuery, LogError, WriterOptions, read_session, read_trace,
    write_session, write_trace,
};
use hitreg::record::{Session, SessionChunk};
use hitreg::trace::{Column, ColumnData, ColumnSpan, Table, Trace, TraceHeader};
use hitreg::units::{CommandSeq, Micros, PlayerId, Tick};
use rmpv::Value;

use crate::container::{ChunkFile, encoded, get, pack_chunks, set, try_unpack_chunks, unpack_chunks};
use crate::keyframes::{CountedFile, keyframe, with_keyframes};
use crate::log_compat::{example_session, example_trace};

/// Chunks of 100 ms.
fn log_of(session: &Session) -> Vec<u8> {
    write_session(Vec::new(), session, WriterOptions { span: Micros::from_ms(100), ..WriterOptions::live() }).unwrap()
}

fn indexed_log(file: &[u8]) -> Result<IndexedLog<Cursor<&[u8]>>, LogError> {
    IndexedLog::open(Cursor::new(file))
}

fn indexed_trace(file: &[u8]) -> Result<IndexedTrace, LogError> {
    IndexedTrace::open(Cursor::new(file))
}

/// The content of a file's last chunk.
fn end_of(file: &[u8]) -> Value {
    let (_, content) = frames(file).pop().expect("a last chunk");
    rmpv::decode::read_value(&mut &content[..]).expect("a map")
}

/// The chunks of a file: compressed, and their content.
fn frames(file: &[u8]) -> Vec<(&[u8], Vec<u8>)> {
    let (mut frames, mut at) = (Vec::new(), 0);
    while file[at..].starts_with(&0xFD2F_B528u32.to_le_bytes()) {
        let length = zstd::zstd_safe::find_frame_compressed_size(&file[at..]).unwrap();
        let frame = &file[at..at + length];
        frames.push((frame, zstd::bulk::decompress(frame, 16 << 20).unwrap()));
        at += length;
    }
    frames
}

/// The file with another last chunk.
fn with_end(file: &[u8], end: &[u8]) -> Vec<u8> {
    let mut frames = frames(file);
    frames.pop();
    let mut changed = ChunkFile::default();
    frames.iter().for_each(|(frame, content)| changed.frame(frame, content.len()));
    changed.chunk(|_| end.to_vec());
    changed.sealed()
}

/// The file without its index, as a simple writer makes it.
fn without_index(file: &[u8]) -> Vec<u8> {
    let mut end = end_of(file);
    let Value::Map(entries) = &mut end else { panic!("no map") };
    entries.retain(|(key, _)| key.as_str() != Some("contents"));
    assert_eq!(entries.len(), 3);
    with_end(file, &encoded(&end))
}

/// A file with the index of another one.
fn with_index_of(file: &[u8], other: &[u8]) -> Vec<u8> {
    let (mut end, mut other) = (end_of(file), end_of(other));
    set(&mut end, "contents", get(&mut other, "contents").clone());
    with_end(file, &encoded(&end))
}

fn assert_same(read: &FileIndex, built: &FileIndex) {
    assert_eq!(read.tables(), built.tables());
    for part in read.tables().iter().flat_map(|table| &table.parts) {
        assert_eq!(read.players(part), built.players(part));
    }
}

/// The tables, their row counts, and the players of each kind are those of the session.
fn assert_is_of(index: &FileIndex, session: &Session) {
    let rows = |name: &str| index.table(name).map_or(0, |table| table.rows()) as usize;
    assert_eq!(rows("ticks"), session.ticks.len());
    assert_eq!(rows("frames"), session.players.iter().map(|player| player.frames.len()).sum::<usize>());
    let states: u64 =
        index.tables().iter().filter(|known| known.table.name.starts_with("states")).map(|known| known.rows()).sum();
    assert_eq!(states as usize, session.states.len());
    let times = session.ticks.iter().map(|tick| tick.at.0);
    let indexed = index.table("ticks").into_iter().flat_map(|table| &table.parts).filter_map(|part| part.times);
    let (first, last): (Vec<i64>, Vec<i64>) = indexed.unzip();
    assert_eq!((first.into_iter().min(), last.into_iter().max()), (times.clone().min(), times.max()));
    let sent = index.table("sent").expect("packets");
    let of_players = sent.parts.iter().flat_map(|part| index.players(part)).copied();
    let players: std::collections::BTreeSet<u16> = of_players.collect();
    let with_rows = (0..).zip(&session.players).filter(|(_, player)| !player.sent.is_empty());
    assert!(players.into_iter().eq(with_rows.map(|(player, _)| player)));
}

#[test]
fn an_index_read_is_the_index_built() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/sessions");
    let recorded = ["duel", "orchard", "brawl"].map(|name| std::fs::read(format!("{folder}/{name}.hitlog")).unwrap());
    let mut sessions = vec![example_session(), crate::log_sessions::session(3, 400)];
    sessions.extend(recorded.iter().map(|file| read_session(&file[..]).unwrap()));
    for session in sessions {
        let plain = log_of(&session);
        for file in [with_keyframes(&plain, &[keyframe(0), keyframe(1)]), plain] {
            let (read, built) = (indexed_log(&file).unwrap(), without_index(&file));
            assert!(built.len() < file.len());
            assert_same(read.index(), indexed_log(&built).unwrap().index());
            assert_is_of(read.index(), &session);
            assert_eq!(read_session(&built[..]).unwrap(), session);
        }
    }
    for trace in [example_trace(), long_trace()] {
        let file = write_trace(Vec::new(), &trace).unwrap();
        let (read, built) = (indexed_trace(&file).unwrap(), indexed_trace(&without_index(&file)).unwrap());
        assert_same(read.index(), built.index());
        let rows = |table: &Table| (table.name.clone(), table.rows() as u64);
        let expected: Vec<_> = trace.tables.iter().map(rows).collect();
        let found: Vec<_> = read.tables().map(|(table, rows)| (table.name.clone(), rows)).collect();
        assert_eq!(found, expected);
        assert_eq!(read.index().tables()[0].table, trace.tables[0].without_rows());
    }
}

/// The time of a usercmd and the records around a time are found through the index.
#[test]
fn usercmds_and_the_records_around_them_are_found() {
    let session = crate::log_sessions::session(3, 400);
    let plain = log_of(&session);
    for file in [with_keyframes(&plain, &[keyframe(0), keyframe(1)]), plain] {
        let mut log = indexed_log(&file).unwrap();
        for (player, records) in (0..).zip(&session.players) {
            for frame in records.frames.iter().step_by(17) {
                assert_eq!(log.time_of_usercmd(PlayerId(player), frame.command.seq).unwrap(), Some(frame.at));
            }
            let beyond = records.frames.last().map_or(0, |frame| frame.command.seq.0) + 1;
            assert_eq!(log.time_of_usercmd(PlayerId(player), CommandSeq(beyond)).unwrap(), None);
        }
        assert_eq!(log.time_of_usercmd(PlayerId(99), CommandSeq(1)).unwrap(), None);
        let (first, last) = session.played().unwrap();
        assert_eq!(log.records_between(first, last).unwrap().players, session.players);
        let middle = Micros((first.0 + last.0) / 2);
        let around = log.records_between(middle, middle).unwrap();
        let is_near = |at: Micros| (at - middle).0.abs() < 400_000;
        let frames = || around.players.iter().flat_map(|player| &player.frames);
        assert!(frames().count() > 0 && frames().all(|frame| is_near(frame.at)), "only the chunks there");
    }
}

/// The index of a file takes less than one per cent of it.
#[test]
fn an_index_is_small() {
    let mut file = Vec::new();
    for players in [4, 16] {
        let session = crate::log_sessions::session(players, 60 * 64);
        file = write_session(Vec::new(), &session, WriterOptions::live()).unwrap();
        let more = file.len() - without_index(&file).len();
        assert!(more * 100 < file.len(), "{players} players: {more} of {} bytes", file.len());
    }
    assert!(frames(&file).len() > 60);
}

/// Two tables of many chunks, and one with a single row.
fn long_trace() -> Trace {
    let rows = 600_000u32;
    let column = |name: &str, data| Column::new(name, data);
    let noise = |row: u32| row.wrapping_mul(2_654_435_761) ^ row >> 7;
    let big = |name: &str| {
        let at = (0..rows).map(|row| i64::from(row) * 100).collect();
        let columns = vec![
            column("at_us", ColumnData::I64(at)),
            column("value", ColumnData::U32((0..rows).map(noise).collect())),
        ];
        Table::new(name, columns)
    };
    let one = Table::new("one", vec![column("tick", ColumnData::U32(vec![7]))]);
    Trace { header: TraceHeader::default(), tables: vec![big("left"), one, big("right")] }
}

fn span(column: &str, first: i64, last: i64) -> Option<ColumnSpan<'_>> {
    Some(ColumnSpan { column, first, last })
}

/// Rows of one table, or near one time, cost only the chunks that have them.
#[test]
fn chunks_without_wanted_rows_are_not_read() {
    let trace = long_trace();
    let file = write_trace(Vec::new(), &trace).unwrap();
    let read = Cell::new(0);
    let counted = || CountedFile { file: Cursor::new(&file[..]), read: &read };
    let indexed = IndexedTrace::open(counted()).unwrap();
    let one: Vec<u32> = indexed.chunks_of("one", None).collect();
    assert_eq!(indexed.chunk(counted(), one[0], &[]).unwrap(), trace.tables[1]);
    assert_eq!((one.len(), read.get() < file.len() / 20), (1, true), "{} of {} bytes", read.get(), file.len());
    let all = indexed.chunks_of("right", None).count();
    for (from, to, most) in [(0, 0, 1), (-9, -1, 0), (30_000_000, 30_000_100, 2), (i64::MIN, i64::MAX, all)] {
        let chunks: Vec<u32> = indexed.chunks_of("right", span("at_us", from, to)).collect();
        assert!(chunks.len() <= most && all > 3, "{from}: {} of {all} chunks", chunks.len());
        let found = chunks.iter().map(|chunk| indexed.chunk(counted(), *chunk, &[]).unwrap());
        let found: usize =
            found.map(|rows| rows.i64s("at_us").iter().filter(|at| (from..=to).contains(at)).count()).sum();
        let expected = trace.tables[2].i64s("at_us").iter().filter(|at| (from..=to).contains(at)).count();
        assert_eq!(found, expected);
    }
    // The index has no values of this column.
    assert_eq!(indexed.chunks_of("right", span("value", 0, 0)).count(), all);
    assert_eq!(indexed.chunks_of("none", None).count(), 0);

    let session = crate::log_sessions::session(2, 6_000);
    let file = log_of(&session);
    read.set(0);
    let mut log = IndexedLog::open(CountedFile { file: Cursor::new(&file[..]), read: &read }).unwrap();
    for place in [0, 17, 3_000, 5_999] {
        assert_eq!(log.time_of(session.ticks[place].tick).unwrap(), Some(session.ticks[place].at));
    }
    assert_eq!((log.time_of(Tick(0)).unwrap(), log.time_of(Tick(6_001)).unwrap()), (None, None));
    assert!(read.get() < file.len() / 4, "{} of {} bytes", read.get(), file.len());
}

/// The chunk that an error names.
fn damaged(error: &LogError) -> &str {
    match error {
        LogError::Corrupt { part, what, .. } if what.contains("last chunk lists") => part,
        other => panic!("{other}"),
    }
}

/// A change of a session, and the most chunks that it affects.
type Change<'a> = (&'a dyn Fn(&mut Session), usize);

/// A log whose index is that of another session is refused where they differ, and only there.
#[test]
fn a_wrong_index_of_a_log_is_noticed() {
    let session = crate::log_sessions::session(2, 64);
    let file = log_of(&session);
    let changes: [Change<'_>; 2] =
        [(&|session| drop(session.ticks.splice(40..41, [])), usize::MAX), (&|session| session.ticks[63].at.0 -= 1, 1)];
    for (change, most) in changes {
        let mut other = session.clone();
        change(&mut other);
        let wrong = with_index_of(&file, &log_of(&other));
        let mut log = indexed_log(&wrong).unwrap();
        let chunks = u32::try_from(unpack_chunks(&file).len()).unwrap();
        let read: Vec<Result<SessionChunk, LogError>> = (1..chunks).map(|chunk| log.chunk(chunk)).collect();
        let bad: Vec<&str> = read.iter().filter_map(|read| read.as_ref().err()).map(damaged).collect();
        let whole = read_session(&wrong[..]).map(|_| ()).expect_err("its index is wrong");
        assert!(bad.first() == Some(&damaged(&whole)) && bad.len() <= most, "{bad:?}: {whole}");
    }
    let mut end = end_of(&file);
    let Value::Array(lists) = get(get(&mut end, "contents"), "players") else { panic!("lists") };
    lists.iter_mut().for_each(|list| *list = Value::Array(vec![0.into()]));
    assert!(read_session(&with_end(&file, &encoded(&end))[..]).is_err(), "other players");
    let mut moved = keyframe(1);
    moved.at = Micros::from_ms(150);
    let wrong = with_index_of(&with_keyframes(&file, &[keyframe(1)]), &with_keyframes(&file, &[moved]));
    assert!(indexed_log(&wrong).unwrap().keyframe(KeyframeQuery::First).is_err());
    assert!(read_session(&wrong[..]).is_err());
}

#[test]
fn a_wrong_index_of_a_trace_is_noticed() {
    let file = write_trace(Vec::new(), &long_trace()).unwrap();
    let mut other = long_trace();
    let ColumnData::I64(times) = &mut other.tables[2].columns[0].data else { panic!("times") };
    times[599_999] += 1;
    let wrong = with_index_of(&file, &write_trace(Vec::new(), &other).unwrap());
    let indexed = indexed_trace(&wrong).unwrap();
    let chunks: Vec<u32> = indexed.chunks_of("right", None).collect();
    let read = |chunk: &u32, only| indexed.chunk(Cursor::new(&wrong), *chunk, only);
    let (last, before) = chunks.split_last().expect("chunks");
    assert!(before.iter().all(|chunk| read(chunk, &[]).is_ok()));
    let whole = read_trace(&wrong[..]).map(|_| ()).expect_err("its index is wrong");
    let name = format!("chunk {last}");
    assert_eq!([damaged(&read(last, &[]).unwrap_err()), damaged(&whole)], [&name; 2]);
    // Another column alone does not show the times, but the number of rows.
    assert!(read(last, &["value"]).is_ok());
    other.tables[2] = other.tables[2].select(&(1..600_000).collect::<Vec<u32>>());
    let wrong = with_index_of(&file, &write_trace(Vec::new(), &other).unwrap());
    let indexed = indexed_trace(&wrong).unwrap();
    assert!(indexed.chunk(Cursor::new(&wrong), *last, &["value"]).is_err());
}

/// No changed byte of an index makes a reader panic or return other rows, and it takes no memory that it only claims.
#[test]
fn a_forged_index_is_refused_or_harmless() {
    let session = crate::log_sessions::session(2, 16);
    let file = with_keyframes(&log_of(&session), &[keyframe(0)]);
    let end = encoded(&end_of(&file));
    for (place, bit) in (0..end.len()).flat_map(|place| [(place, 1), (place, 0x80)]) {
        let mut forged = end.clone();
        forged[place] ^= bit;
        let forged = with_end(&file, &forged);
        if let Ok(read) = read_session(&forged[..]) {
            assert_eq!(read, session);
        }
        let Ok(mut log) = indexed_log(&forged) else { continue };
        let chunks: Vec<u32> =
            log.index().tables().iter().flat_map(|table| &table.parts).map(|part| part.chunk).collect();
        chunks.iter().for_each(|chunk| drop(log.chunk(*chunk)));
        let _ = (log.time_of(Tick(5)), log.keyframe(KeyframeQuery::First), log.seek(KeyframeQuery::At(Micros(0))));
    }
    let claims = |rows: u64, chunk: &[u8]| {
        let table = Value::Map(vec![
            ("table".into(), "ticks".into()),
            ("rows".into(), 0.into()),
            ("columns".into(), Value::Array(vec![])),
        ]);
        let series = |numbers: &[u64]| Value::Array(numbers.iter().map(|number| Value::from(*number)).collect());
        let parts = vec![series(&[0]), series(&[rows]), Value::Array(vec![Value::Binary(chunk.to_vec())])];
        let contents = vec![
            ("tables".into(), Value::Array(vec![table])),
            ("players".into(), Value::Array(vec![Value::Array(vec![])])),
            ("parts".into(), Value::Array(parts)),
        ];
        let mut end = end_of(&file);
        set(&mut end, "contents", Value::Map(contents));
        with_end(&file, &encoded(&end))
    };
    // The second claim says that all entries are those of chunk 1.
    for (rows, chunk) in [(u64::from(u32::MAX), &[][..]), (1 << 20, &[0, 1, 2]), (1, &[])] {
        let file = claims(rows, chunk);
        assert!(indexed_log(&file).is_err() && read_session(&file[..]).is_err(), "{rows} entries");
    }
}

/// Files of other programs have no index, no seal and no seek table.
#[test]
fn files_without_seek_table_are_indexed_on_opening() {
    let session = crate::log_sessions::session(2, 64);
    let file = log_of(&session);
    let mut chunks = unpack_chunks(&file);
    set(&mut chunks[0], "sealed", Value::from(false));
    let foreign = pack_chunks(&chunks);
    let foreign = &foreign[..frames(&foreign).iter().map(|(frame, _)| frame.len()).sum()];
    assert!(try_unpack_chunks(foreign).is_some());
    let mut read = indexed_log(foreign).unwrap();
    assert_same(indexed_log(&file).unwrap().index(), read.index());
    assert_eq!(read.time_of(Tick(50)).unwrap(), Some(session.ticks[49].at));
    assert!(matches!(indexed_log(&file[..file.len() / 2]).map(|_| ()), Err(LogError::Torn(_))));
}
