//! Unpacks logs and traces into chunks, and packs changed chunks into files with valid checksums.

use rmpv::Value;
use xxhash_rust::xxh3::xxh3_64_with_seed;
use zstd::zstd_safe::CParameter;

/// The chunks of a file as MessagePack, without the last one, which is empty.
pub(crate) fn unpack_chunks(file: &[u8]) -> Vec<Value> {
    try_unpack_chunks(file).expect("whole and sound")
}

/// Like [`unpack_chunks`], for a file that may be damaged.
pub(crate) fn try_unpack_chunks(file: &[u8]) -> Option<Vec<Value>> {
    let mut chunks = Vec::new();
    let mut at = 0;
    while file[at..].starts_with(&0xFD2F_B528u32.to_le_bytes()) {
        let length = zstd::zstd_safe::find_frame_compressed_size(&file[at..]).ok()?;
        let content = zstd::bulk::decompress(&file[at..at + length], 16 << 20).ok()?;
        chunks.push(rmpv::decode::read_value(&mut &content[..]).ok()?);
        at += length;
    }
    chunks.pop();
    (chunks.len() > 1).then_some(chunks)
}

/// Packs chunks into a file, with numbers, chain hashes, a seal and a seek table.
pub(crate) fn pack_chunks(chunks: &[Value]) -> Vec<u8> {
    let bytes = chunks.iter().enumerate().map(|(index, chunk)| {
        move |chain: u64| {
            let mut chunk = chunk.clone();
            if index > 0 {
                set(&mut chunk, "index", Value::from(index as u64));
                set(&mut chunk, "before", Value::from(chain));
            }
            encoded(&chunk)
        }
    });
    let end = |chain: u64| {
        let map = [("index", Value::from(chunks.len())), ("before", Value::from(chain)), ("end", Value::from(true))];
        encoded(&Value::Map(map.map(|(key, value)| (Value::from(key), value)).to_vec()))
    };
    let mut file = ChunkFile::default();
    bytes.for_each(|content| file.chunk(content));
    file.chunk(end);
    file.sealed()
}

/// A file of chunks given as bytes. Each chunk is made with the chain hash before it.
#[derive(Default)]
pub(crate) struct ChunkFile {
    bytes: Vec<u8>,
    chain: u64,
    sizes: Vec<(u32, u32)>,
}

impl ChunkFile {
    pub(crate) fn chunk(&mut self, content: impl FnOnce(u64) -> Vec<u8>) {
        let content = content(self.chain);
        let mut compressor = zstd::bulk::Compressor::new(3).expect("a compressor");
        compressor.set_parameter(CParameter::ChecksumFlag(true)).expect("a checksum");
        let frame = compressor.compress(&content).expect("compressed");
        self.frame(&frame, content.len());
    }

    /// Adds a chunk as it is in another file, with its number of content bytes.
    pub(crate) fn frame(&mut self, frame: &[u8], content_bytes: usize) {
        self.chain = xxh3_64_with_seed(frame, self.chain);
        self.sizes.push((frame.len() as u32, content_bytes as u32));
        self.bytes.extend(frame);
    }

    pub(crate) fn sealed(mut self) -> Vec<u8> {
        let mut word = |word: u32| self.bytes.extend(word.to_le_bytes());
        self.sizes.push((24, 0));
        word(0x184D_2A50);
        word(16);
        self.bytes.extend(b"hitseal\0");
        self.bytes.extend(self.chain.to_le_bytes());
        let mut word = |word: u32| self.bytes.extend(word.to_le_bytes());
        let count = self.sizes.len() as u32;
        word(0x184D_2A5E);
        word(count * 8 + 9);
        for (packed, content) in self.sizes {
            word(packed);
            word(content);
        }
        word(count);
        self.bytes.push(0);
        self.bytes.extend(0x8F92_EAB1u32.to_le_bytes());
        self.bytes
    }
}

pub(crate) fn encoded(value: &Value) -> Vec<u8> {
    let mut bytes = Vec::new();
    rmpv::encode::write_value(&mut bytes, value).expect("MessagePack");
    bytes
}

/// The value of a key in a map.
pub(crate) fn get<'v>(map: &'v mut Value, key: &str) -> &'v mut Value {
    let Value::Map(entries) = map else { panic!("{key} of a value that is not a map") };
    &mut entries.iter_mut().find(|(name, _)| name.as_str() == Some(key)).expect(key).1
}

/// Sets a key of a map.
pub(crate) fn set(map: &mut Value, key: &str, value: Value) {
    let Value::Map(entries) = map else { return };
    match entries.iter_mut().find(|(name, _)| name.as_str() == Some(key)) {
        Some((_, old)) => *old = value,
        None => entries.push((Value::from(key), value)),
    }
}
