use serde::Serialize;
use serde_bytes::ByteBuf;

use super::*;
use crate::log::chunk::to_messagepack;
use crate::log::container::ChunkSink;
use crate::log::index::PartRows;
use crate::record::Origin;
use crate::record::{CellKind, Class, FieldSchema, Scope};
use crate::units::Seed;

/// A chunk that this library's writers would not make.
#[derive(Serialize)]
struct CraftedChunk {
    index: u32,
    before: u64,
    states: (Vec<u32>, Vec<u32>, Vec<ByteBuf>),
}

fn header() -> SessionHeader {
    let field = |i: u32| FieldSchema::new(format!("cell{i}"), CellKind::U32, Scope::Status);
    SessionHeader {
        game: "disc".into(),
        rules: Vec::new().into(),
        map: String::new(),
        seed: Seed(0),
        settings: Vec::new(),
        preset: None,
        players: Vec::new(),
        origin: Origin::Synthetic,
        side: None,
        classes: Class::only((0..12).map(field).collect()),
        usercmd: Vec::new(),
        unknown: Vec::new(),
    }
}

/// Returns an undamaged file whose chunks claim many rows of zeros in a few bytes each.
fn crafted(chunks: u32, rows: u32) -> Vec<u8> {
    let mut sink = ChunkSink::new(Vec::new(), 3).unwrap();
    sink.header(&header::encode_log(&header()).unwrap(), 1).unwrap();
    for _ in 0..chunks {
        let (index, before) = sink.next();
        let states = (vec![0], vec![rows], vec![ByteBuf::new(); 14]);
        let content = to_messagepack(&CraftedChunk { index, before: before.0, states }).unwrap();
        let part = PartRows::of_log("states", rows as usize, None);
        sink.chunk("records", &content, None, vec![part]).unwrap();
    }
    sink.finish().unwrap()
}

#[test]
fn a_chunk_that_claims_too_many_rows_is_refused_before_they_are_allocated() {
    assert_eq!(read_session(&crafted(2, 1_000)[..]).unwrap().states.len(), 2_000);
    for rows in [1_000_000, u32::MAX] {
        let error = read_session(&crafted(1, rows)[..]).unwrap_err();
        assert!(matches!(&error, LogError::Corrupt { what, .. } if what.contains("MiB of memory")), "{error}");
    }
}

#[test]
fn many_small_chunks_cannot_become_a_giant_session() {
    let bomb = crafted(60, 100_000);
    assert!(bomb.len() < 20_000);
    let limit = MemoryLimit::of_bytes(80 << 20);
    let read = LogReader::new(&bomb[..]).unwrap().read_all(limit).map(|_| ()).unwrap_err();
    let LogError::NeedsMemory(needs) = read else { panic!("{read}") };
    let recovered = crate::log::recover::recover_within(limit, &bomb);
    assert!(matches!(recovered, Err(LogError::NeedsMemory(recovered)) if recovered == needs));
    let suffices = MemoryLimit::of_bytes(needs.needed_bytes);
    assert_eq!(LogReader::new(&bomb[..]).unwrap().read_all(suffices).unwrap().0.states.len(), 6_000_000);
    let mut reader = LogReader::new(&bomb[..]).unwrap();
    let mut rows = 0;
    while let Some(chunk) = reader.next_chunk().unwrap() {
        rows += chunk.states.len();
    }
    assert_eq!(rows, 6_000_000, "chunk by chunk it can be read");
}

/// Every position in this file looks like the start of a chunk that continues to the end.
#[test]
fn recovery_reads_each_byte_only_a_few_times() {
    let session = Session::new(header());
    let mut file = crate::log::write_session(Vec::new(), &session, crate::log::WriterOptions::whole()).unwrap();
    file.truncate(file.len() - 100);
    // A frame of 12 bytes that announces a block of 16 KiB; the block contains more such frames.
    let bait = [0x28, 0xB5, 0x2F, 0xFD, 0xA4, 0, 0, 0x10, 0, 0, 0, 2];
    (0..400_000).for_each(|_| file.extend(bait));
    let (found, damage) = crate::log::recover(&file).unwrap();
    assert_eq!(found.header, session.header);
    assert!(damage.holes.iter().any(|hole| hole.what.contains("look like chunks")), "{:?}", damage.holes);
}
