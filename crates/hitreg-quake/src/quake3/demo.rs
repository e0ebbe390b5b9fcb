//! Demos (`.dm_68`, `.dm_71`): the messages that a client received from its server, with their numbers (ioquake3's
//! cl_main.c). A demo contains neither usercmds nor arrival times.

use std::io::Read;

use super::capture::CaptureError;
use super::protocol::LONGEST_MESSAGE;

/// The marker at the end, in place of a message's number and length.
const END: [u8; 8] = [0xff; 8];

/// Reads a demo message by message.
pub(super) struct DemoReader<R> {
    from: R,
    /// Offset of the next message, in bytes.
    offset: u64,
    message: Vec<u8>,
    cut: Option<u64>,
    after_end: Option<u64>,
}

impl<R: Read> DemoReader<R> {
    pub(super) fn new(from: R) -> DemoReader<R> {
        DemoReader { from, offset: 0, message: Vec::new(), cut: None, after_end: None }
    }

    /// Returns the offset after the last complete message, if the demo is truncated. Call it after the last message.
    pub(super) fn cut(&self) -> Option<u64> {
        self.cut
    }

    /// Returns the offset of the bytes after the end marker, if there are any. Call it after the last message.
    pub(super) fn after_end(&self) -> Option<u64> {
        self.after_end
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
        if length > LONGEST_MESSAGE {
            return Err(CaptureError::Length { offset: self.offset, found: word(4) });
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
        read.map_err(|source| CaptureError::Read { offset: self.offset, source })
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
            (numbers, demo.cut(), demo.after_end())
        };
        assert_eq!(read(&[&whole[..], &END, b"and more"].concat()), (vec![(7, 5), (8, 0)], None, Some(29)));
        assert_eq!(read(&[&whole[..], &END].concat()), (vec![(7, 5), (8, 0)], None, None));
        assert_eq!(read(&whole), (vec![(7, 5), (8, 0)], None, None));
        assert_eq!(read(&whole[..10]), (vec![], Some(0), None));
        assert_eq!(read(&whole[..15]), (vec![(7, 5)], Some(13), None));
        let long = demo(&[(1, &[0; LONGEST_MESSAGE + 1])]);
        assert!(DemoReader::new(&long[..]).read().is_err());
    }
}
