//! A damaged log never passes as sound, and its undamaged part is recovered: for every flipped bit and every
//! truncation.

use crate::log_sessions::session;
use hitreg::log::{
    LogError, LogWriter, RecoveredLog, Truncation, WriteError, WriterOptions, read_prefix, read_session, read_trace,
    recover, write_session, write_trace,
};
use hitreg::memory::MemoryLimit;
use hitreg::record::{Record, RecordedSide, Session, SessionId};
use hitreg::trace::{Column, ColumnData, Table, Trace};
use hitreg::units::{Micros, PlayerId};

/// Five chunks of records in about 3 KB.
fn small_log() -> (Session, Vec<u8>) {
    let session = session(2, 16);
    let options = WriterOptions { span: Micros::from_ms(50), ..WriterOptions::live() };
    let bytes = write_session(Vec::new(), &session, options).unwrap();
    (session, bytes)
}

/// The offset at which each chunk ends, and the session of all chunks up to there.
fn sessions_by_length(bytes: &[u8]) -> Vec<(usize, Session)> {
    let mut known: Vec<(usize, Session)> = Vec::new();
    for length in 0..=bytes.len() {
        if let Ok((session, _)) = read_prefix(&bytes[..length])
            && known.last().is_none_or(|(_, last)| *last != session)
        {
            known.push((length, session));
        }
    }
    known
}

#[test]
fn every_flipped_bit_is_detected_and_located() {
    let (session, sound) = small_log();
    let prefixes: Vec<Session> = sessions_by_length(&sound).into_iter().map(|(_, session)| session).collect();
    assert!(prefixes.len() >= 5, "the log has too few chunks to test with");
    let mut bytes = sound.clone();
    for place in 0..sound.len() {
        for bit in 0..8 {
            bytes[place] ^= 1 << bit;
            let error = read_session(&bytes[..]).expect_err(&format!("bit {bit} of byte {place}"));
            let offset = error.offset().unwrap_or_else(|| panic!("bit {bit} of byte {place}: {error}"));
            assert!(offset <= place as u64, "bit {bit} of byte {place} is said to be at {offset}");
            if let Ok((saved, damage)) = recover(&bytes) {
                assert!(!damage.is_none(), "bit {bit} of byte {place} was recovered without a word");
                assert!(
                    is_part_of(&saved, &session),
                    "bit {bit} of byte {place}: recovered a record that was never recorded"
                );
            }
            bytes[place] ^= 1 << bit;
        }
    }
}

#[test]
fn every_flipped_bit_and_truncation_of_a_trace_is_detected() {
    let columns = vec![
        Column::new("entity", ColumnData::U32((0..60).map(|i| i % 3).collect())),
        Column::new("error_units", ColumnData::F32((0..60u8).map(|i| f32::from(i) / 7.0).collect())),
    ];
    let trace = Trace { tables: vec![Table::new("views", columns)], ..Trace::default() };
    let sound = write_trace(Vec::new(), &trace).unwrap();
    let mut bytes = sound.clone();
    for place in 0..sound.len() {
        for bit in 0..8 {
            bytes[place] ^= 1 << bit;
            assert!(read_trace(&bytes[..]).is_err(), "bit {bit} of byte {place}");
            bytes[place] ^= 1 << bit;
        }
        assert!(read_trace(&sound[..place]).is_err(), "cut at {place}");
    }
}

#[test]
fn every_changed_byte_is_detected() {
    let (_, sound) = small_log();
    let mut bytes = sound.clone();
    for place in 0..sound.len() {
        for change in [0x55u8, 0xAA, 0xFF] {
            bytes[place] ^= change;
            assert!(read_session(&bytes[..]).is_err(), "byte {place} changed by {change:02x}");
            bytes[place] ^= change;
        }
    }
}

#[test]
fn a_truncated_log_gives_all_complete_chunks() {
    let (session, sound) = small_log();
    let mut frames_before = 0;
    for length in 0..sound.len() {
        let cut = &sound[..length];
        let error = read_session(cut).expect_err("a cut log is not a whole one");
        match read_prefix(cut) {
            Ok((prefix, torn)) => {
                let Some(Truncation { at_offset, lost_bytes }) = torn else { panic!("cut at {length}: no warning") };
                assert_eq!(at_offset + lost_bytes, length as u64);
                assert!(is_prefix_of(&prefix, &session));
                let frames: usize = prefix.players.iter().map(|p| p.frames.len()).sum();
                assert!(frames >= frames_before, "cut at {length}: less than a shorter file gave");
                frames_before = frames;
                let (recovered, damage) = recover(cut).unwrap();
                assert_eq!(recovered, prefix);
                assert_eq!(damage.torn, torn, "cut at {length}");
                assert!(damage.parts.is_empty());
            }
            Err(LogError::HeaderTorn { bytes }) => assert_eq!(bytes, length as u64),
            Err(LogError::NotHitreg { .. }) => assert_eq!(length, 0, "{error}"),
            Err(other) => panic!("cut at {length}: {other}"),
        }
    }
    assert_eq!(frames_before, session.players.iter().map(|p| p.frames.len()).sum::<usize>());
}

#[test]
fn a_recovered_log_is_valid() {
    let (_, sound) = small_log();
    let (recovered, _) = recover(&sound[..sound.len() * 2 / 3]).unwrap();
    let rewritten = write_session(Vec::new(), &recovered, WriterOptions::whole()).unwrap();
    assert_eq!(read_session(&rewritten[..]).unwrap(), recovered);
    assert!(recover(&rewritten).unwrap().1.is_none());
}

/// What a recovery writes chunk by chunk.
fn recovered_log(bytes: &[u8], limit: MemoryLimit) -> Result<Vec<u8>, WriteError> {
    let found = RecoveredLog::find(bytes).expect("the header is intact");
    let mut chunks = 0;
    let written = found.write(Vec::new(), WriterOptions::live(), limit, &mut |_| chunks += 1)?;
    assert_eq!(chunks, found.damage().chunks);
    Ok(written)
}

#[test]
fn a_recovery_chunk_by_chunk_writes_what_one_in_memory_reads() {
    let (mut session, sound) = small_log();
    let ends: Vec<usize> = sessions_by_length(&sound).iter().map(|(length, _)| *length).collect();
    let without_one = [&sound[..ends[1]], &sound[ends[2]..]].concat();
    let mut changed = sound.clone();
    changed[sound.len() / 3] ^= 0x10;
    session.ticks.clear();
    session.header.side = Some(RecordedSide { session: SessionId(1), player: Some(PlayerId(0)) });
    let options = WriterOptions { span: Micros::from_ms(50), ..WriterOptions::live() };
    let of_client = write_session(Vec::new(), &session, options).unwrap();
    for log in [&sound, &sound[..sound.len() / 2], &without_one, &changed, &of_client, &of_client[..ends[3]]] {
        let (session, _) = recover(log).unwrap();
        let in_memory = write_session(Vec::new(), &session, WriterOptions::live()).unwrap();
        assert_eq!(recovered_log(log, MemoryLimit::default()).unwrap(), in_memory);
    }
}

#[test]
fn a_recovery_needs_memory_only_for_records_out_of_order() {
    let session = session(4, 640);
    let options = WriterOptions { span: Micros::from_ms(200), ..WriterOptions::live() };
    let in_order = write_session(Vec::new(), &session, options).unwrap();
    let limit = MemoryLimit::of_bytes(session.bytes() / 4);
    assert_eq!(read_session(&recovered_log(&in_order, limit).unwrap()[..]).unwrap(), session);
    // The same records, but those of one player after those of another.
    let mut writer = LogWriter::new(Vec::new(), &session.header, options).unwrap();
    writer.set_texts(&session.texts);
    for (player, records) in session.players.iter().enumerate() {
        for frame in &records.frames {
            writer.push(Record::Frame(PlayerId(player as u16), frame.clone())).unwrap();
        }
        writer.flush().unwrap();
    }
    let by_player = writer.finish().unwrap();
    let needs = recovered_log(&by_player, MemoryLimit::of_bytes(1000)).expect_err("a limit");
    assert!(matches!(needs, WriteError::NeedsMemory(_)), "{needs}");
    let frames = read_session(&by_player[..]).unwrap();
    assert_eq!(read_session(&recovered_log(&by_player, MemoryLimit::default()).unwrap()[..]).unwrap(), frames);
}

#[test]
fn a_damaged_chunk_costs_only_itself() {
    let (session, mut bytes) = small_log();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 0x10;
    let (recovered, damage) = recover(&bytes).unwrap();
    assert_eq!(damage.parts.iter().map(|part| part.chunks).sum::<u32>(), 1, "{damage:?}");
    assert_eq!(damage.torn, None);
    let frames = |session: &Session| session.players[0].frames.len();
    assert!(frames(&recovered) < frames(&session) && frames(&recovered) > frames(&session) / 2);
    assert_eq!(recovered.players[0].frames.last(), session.players[0].frames.last());
}

#[test]
fn added_and_missing_chunks_are_detected() {
    let (session, sound) = small_log();
    let mut longer = sound.clone();
    longer.push(0);
    assert!(matches!(read_session(&longer[..]), Err(LogError::Corrupt { offset, .. }) if offset == sound.len() as u64));
    let twice = [&sound[..], &sound[..]].concat();
    assert!(matches!(read_session(&twice[..]), Err(LogError::Corrupt { .. })));
    let ends: Vec<usize> = sessions_by_length(&sound).iter().map(|(length, _)| *length).collect();
    let without_one = [&sound[..ends[1]], &sound[ends[2]..]].concat();
    assert!(matches!(read_session(&without_one[..]), Err(LogError::Corrupt { .. })));
    let (saved, damage) = recover(&without_one).unwrap();
    assert_eq!(damage.parts.len(), 1);
    assert!(is_part_of(&saved, &session));
}

/// Whether one session is a prefix of another.
fn is_prefix_of(part: &Session, whole: &Session) -> bool {
    let players = part.players.iter().zip(&whole.players).all(|(part, whole)| {
        whole.frames.starts_with(&part.frames)
            && whole.sent.starts_with(&part.sent)
            && whole.reached.starts_with(&part.reached)
            && whole.executed.starts_with(&part.executed)
            && whole.snapshots.starts_with(&part.snapshots)
            && whole.received.starts_with(&part.received)
    });
    let states =
        whole.states.keys().starts_with(part.states.keys()) && whole.states.cells().starts_with(part.states.cells());
    part.header == whole.header && players && states && whole.ticks.starts_with(&part.ticks)
}

/// Whether each record of one session is in another, in the same order.
fn is_part_of(part: &Session, whole: &Session) -> bool {
    fn within<T: PartialEq>(part: &[T], whole: &[T]) -> bool {
        let mut whole = whole.iter();
        part.iter().all(|record| whole.any(|other| other == record))
    }
    let players = part.players.iter().zip(&whole.players).all(|(part, whole)| {
        within(&part.frames, &whole.frames)
            && within(&part.sent, &whole.sent)
            && within(&part.reached, &whole.reached)
            && within(&part.executed, &whole.executed)
            && within(&part.snapshots, &whole.snapshots)
            && within(&part.received, &whole.received)
    });
    let rows =
        |session: &Session| -> Vec<_> { session.states.iter().map(|(key, cells)| (key, cells.to_vec())).collect() };
    part.header == whole.header && players && within(&part.ticks, &whole.ticks) && within(&rows(part), &rows(whole))
}
