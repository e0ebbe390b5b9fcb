//! Reads recordings. Captures are datagrams between clients and a server with the times at which an observer saw them, plain
//! or compressed with zstd; `docs/openarena.md` describes the format. Demos (`.dm_68`, `.dm_71`) are the messages that a
//! client received from its server, with their numbers (ioquake3's cl_main.c). A demo contains neither usercmds nor arrival
//! times.

use std::io::{BufRead as _, BufReader, ErrorKind, Read};

use super::protocol::MESSAGE_BYTES_MAX;
use hitreg_netcode::protocol::Direction;

const MAGIC: &[u8; 8] = b"UDPTRC1\n";
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Limit of the zstd window of a capture, as a power of two in bytes.
const WINDOW_LOG_MAX: u32 = 27;

/// Why a capture or a demo cannot be read.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct CaptureError(String);

/// Returns the error for a read error of the file or of its compression, after this many uncompressed bytes.
fn unreadable(offset: u64, error: &std::io::Error) -> CaptureError {
    CaptureError(format!("cannot be read after byte {offset}: {error}"))
}

/// A captured datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedDatagram {
    /// Time of observation, in ns of a monotonic clock.
    pub at_ns: u64,
    /// Direction of the datagram.
    pub direction: Direction,
    /// Number of the client that sent it or that it was sent to.
    pub client: u16,
    /// Content of the datagram.
    pub bytes: Vec<u8>,
}

/// Reads a capture datagram by datagram.
pub struct CaptureReader<'a> {
    from: Box<dyn Read + 'a>,
    offset: u64,
    cut: Option<u64>,
    /// The decompression error, if the compressed stream is truncated.
    cut_packing: Option<std::io::Error>,
}

impl<'a> CaptureReader<'a> {
    /// Opens a capture, compressed or plain. Datagrams are read on demand.
    ///
    /// # Errors
    /// When the data is not a capture.
    pub fn new(from: impl Read + 'a) -> Result<CaptureReader<'a>, CaptureError> {
        let mut from = BufReader::new(from);
        let begins = |from: &mut BufReader<_>| from.fill_buf().map(|start| start.starts_with(&ZSTD));
        let unpacked = begins(&mut from).and_then(|is_packed| -> std::io::Result<Box<dyn Read + 'a>> {
            if !is_packed {
                return Ok(Box::new(from));
            }
            let mut packed = zstd::stream::read::Decoder::with_buffer(from)?;
            packed.window_log_max(WINDOW_LOG_MAX)?;
            Ok(Box::new(BufReader::new(packed)))
        });
        let from = unpacked.map_err(|error| unreadable(0, &error))?;
        let mut capture = CaptureReader { from, offset: 0, cut: None, cut_packing: None };
        let mut magic = [0; MAGIC.len()];
        if capture.fill(&mut magic)? && &magic == MAGIC {
            return Ok(capture);
        }
        Err(match capture.cut_packing {
            Some(error) => unreadable(capture.offset, &error),
            None => {
                let magic = "not a capture of datagrams: it does not begin with `UDPTRC1` (docs/openarena.md)";
                CaptureError(magic.to_owned())
            }
        })
    }

    /// Returns the offset after the last complete datagram, if the capture or its compressed stream is truncated. Call
    /// it after the last datagram.
    pub fn cut(&self) -> Option<u64> {
        self.cut
    }

    /// Returns the next datagram; `None` at the end.
    ///
    /// # Errors
    /// When the capture is damaged.
    pub fn read(&mut self) -> Result<Option<CapturedDatagram>, CaptureError> {
        let begin = self.offset;
        let mut head = [0; 13];
        if !self.fill(&mut head)? {
            self.cut = (self.offset > begin || self.cut_packing.is_some()).then_some(begin);
            return Ok(None);
        }
        let [t0, t1, t2, t3, t4, t5, t6, t7, direction, c0, c1, l0, l1] = head;
        let direction = match direction {
            0 => Direction::Up,
            1 => Direction::Down,
            found => {
                let problem = format!("{found} is not a direction of a datagram: the capture is damaged");
                return Err(CaptureError(format!("byte {}: {problem}", begin + 8)));
            }
        };
        let mut bytes = vec![0; usize::from(u16::from_le_bytes([l0, l1]))];
        if !self.fill(&mut bytes)? {
            self.cut = Some(begin);
            return Ok(None);
        }
        let at_ns = u64::from_le_bytes([t0, t1, t2, t3, t4, t5, t6, t7]);
        Ok(Some(CapturedDatagram { at_ns, direction, client: u16::from_le_bytes([c0, c1]), bytes }))
    }

    /// Fills the buffer; returns whether enough bytes were left.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<bool, CaptureError> {
        let mut filled = 0;
        while filled < buffer.len() {
            let read = match self.from.read(&mut buffer[filled..]) {
                Ok(read) => read,
                Err(source) if source.kind() == ErrorKind::UnexpectedEof => {
                    self.cut_packing = Some(source);
                    return Ok(false);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => return Err(unreadable(self.offset, &error)),
            };
            if read == 0 {
                return Ok(false);
            }
            filled += read;
            self.offset += read as u64;
        }
        Ok(true)
    }
}

hitreg_log::partial_debug!(CaptureReader<'_> { offset });

/// The marker at the end, in place of a message's number and length.
const END: [u8; 8] = [0xff; 8];

/// Reads a demo message by message.
pub(super) struct DemoReader<R> {
    from: R,
    /// Offset of the next message, in bytes.
    offset: u64,
    message: Vec<u8>,
    /// Offset after the last complete message, if the demo is truncated. Known after the last message.
    pub(super) cut: Option<u64>,
    /// Offset of the bytes after the end marker, if there are any. Known after the last message.
    pub(super) after_end: Option<u64>,
}

impl<R: Read> DemoReader<R> {
    pub(super) fn new(from: R) -> DemoReader<R> {
        DemoReader { from, offset: 0, message: Vec::new(), cut: None, after_end: None }
    }

    /// Returns the next message with its number; `None` at the end.
    pub(super) fn read(&mut self) -> Result<Option<(u32, &[u8])>, CaptureError> {
        let mut head = Vec::with_capacity(END.len());
        if self.fill(&mut head, END.len())? < END.len() {
            // The client stopped before it wrote the end marker.
            self.cut = (!head.is_empty()).then_some(self.offset);
            return Ok(None);
        }
        if head == END {
            let offset = self.offset + END.len() as u64;
            self.after_end = (self.fill(&mut Vec::new(), 1)? > 0).then_some(offset);
            return Ok(None);
        }
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (number, length) = (word(0), word(4) as usize);
        if length > MESSAGE_BYTES_MAX {
            let problem = format!("a demo message cannot have {length} bytes: this is not a demo, or it is damaged");
            return Err(CaptureError(format!("byte {}: {problem}", self.offset)));
        }
        let mut message = std::mem::take(&mut self.message);
        message.clear();
        if self.fill(&mut message, length)? < length {
            self.cut = Some(self.offset);
            return Ok(None);
        }
        self.message = message;
        self.offset += (END.len() + length) as u64;
        Ok(Some((number, &self.message)))
    }

    /// Reads up to `length` bytes and returns how many were left.
    fn fill(&mut self, to: &mut Vec<u8>, length: usize) -> Result<usize, CaptureError> {
        let read = (&mut self.from).take(length as u64).read_to_end(to);
        read.map_err(|error| unreadable(self.offset, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn demo(messages: &[(u32, &[u8])]) -> Vec<u8> {
        let one = |(number, bytes): &(u32, &[u8])| {
            [&number.to_le_bytes()[..], &(bytes.len() as u32).to_le_bytes(), bytes].concat()
        };
        messages.iter().flat_map(one).collect()
    }

    #[test]
    fn messages_are_read_up_to_the_end_or_the_truncation() {
        let whole = demo(&[(7, b"seven"), (8, b"")]);
        let read = |bytes: &[u8]| {
            let mut demo = DemoReader::new(bytes);
            let mut numbers = Vec::new();
            while let Some((number, message)) = demo.read().expect("a demo") {
                numbers.push((number, message.len()));
            }
            (numbers, demo.cut, demo.after_end)
        };
        assert_eq!(read(&[&whole[..], &END, b"and more"].concat()), (vec![(7, 5), (8, 0)], None, Some(29)));
        assert_eq!(read(&[&whole[..], &END].concat()), (vec![(7, 5), (8, 0)], None, None));
        assert_eq!(read(&whole), (vec![(7, 5), (8, 0)], None, None));
        assert_eq!(read(&whole[..10]), (vec![], Some(0), None));
        assert_eq!(read(&whole[..15]), (vec![(7, 5)], Some(13), None));
        let long = demo(&[(1, &[0; MESSAGE_BYTES_MAX + 1])]);
        assert!(DemoReader::new(&long[..]).read().is_err());
    }
}
