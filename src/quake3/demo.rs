//! Demos (`.dm_68`, `.dm_71`): the messages that a client had from its server, one after the other, with their numbers
//! (ioquake3's cl_main.c). A client writes nothing else down: neither its usercmds nor when a message came.

use super::capture::CaptureError;
use super::protocol::LONGEST_MESSAGE;

/// What stands in place of a message's number and length at the end.
const END: [u8; 8] = [0xff; 8];

/// Reads a demo, message by message.
#[derive(Clone, Debug)]
pub(super) struct Demo<'a> {
    bytes: &'a [u8],
    offset: usize,
    cut: Option<u64>,
}

impl<'a> Demo<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Demo<'a> {
        Demo { bytes, offset: 0, cut: None }
    }

    /// Where the last whole message ends, if the demo does not end there. To be asked at the end.
    pub(super) fn cut(&self) -> Option<u64> {
        self.cut
    }

    /// The next message with its number; `None` at the end.
    pub(super) fn read(&mut self) -> Result<Option<(u32, &'a [u8])>, CaptureError> {
        let rest = &self.bytes[self.offset..];
        let Some((head, behind)) = rest.split_at_checked(END.len()) else {
            // The client that wrote it did not come to write its end.
            self.cut = (!rest.is_empty()).then_some(self.offset as u64);
            return Ok(None);
        };
        if head == END {
            return Ok(None);
        }
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (number, length) = (word(0), word(4) as usize);
        if length > LONGEST_MESSAGE {
            return Err(CaptureError::Length { offset: self.offset as u64, found: word(4) });
        }
        let Some(message) = behind.get(..length) else {
            self.cut = Some(self.offset as u64);
            return Ok(None);
        };
        self.offset += END.len() + length;
        Ok(Some((number, message)))
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
    fn messages_come_one_after_the_other_up_to_the_end_or_the_cut() {
        let whole = demo(&[(7, b"seven"), (8, b"")]);
        let read = |bytes: &[u8]| {
            let mut demo = Demo::new(bytes);
            let mut numbers = Vec::new();
            while let Some((number, message)) = demo.read().expect("a demo") {
                numbers.push((number, message.len()));
            }
            (numbers, demo.cut())
        };
        assert_eq!(read(&[&whole[..], &END, b"and more"].concat()), (vec![(7, 5), (8, 0)], None));
        assert_eq!(read(&whole), (vec![(7, 5), (8, 0)], None));
        assert_eq!(read(&whole[..10]), (vec![], Some(0)));
        assert_eq!(read(&whole[..15]), (vec![(7, 5)], Some(13)));
        let long = demo(&[(1, &[0; LONGEST_MESSAGE + 1])]);
        assert!(Demo::new(&long).read().is_err());
    }
}
