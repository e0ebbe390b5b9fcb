//! Datagrams: their header, and messages that come in several of them (ioquake3's net_chan.c).

use hitreg_netcode::protocol::Direction;

/// The longest message.
pub(crate) const LONGEST_MESSAGE: usize = 16_384;
/// A fragment that is shorter is the last.
const FRAGMENT_BYTES: usize = 1_300;
const FRAGMENT: u32 = 1 << 31;
const OUT_OF_BAND: &[u8] = &[0xff; 4];

/// Why a datagram is none of this connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatagramError {
    /// Too short for its header.
    #[error("it ends within its header")]
    Short,
    /// Not sealed with the connection's challenge.
    #[error("its checksum is not that of the connection's challenge")]
    Checksum,
    /// A fragment that does not follow those before it.
    #[error("a fragment at byte {start}, where {expected} was due")]
    Fragment {
        /// Where it says it begins.
        start: usize,
        /// Where the next should begin.
        expected: usize,
    },
    /// Fragments of more than a message may have.
    #[error("a message of more than {LONGEST_MESSAGE} bytes")]
    Long,
}

/// What a datagram turns out to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Datagram<'a> {
    /// Text outside of any connection.
    OutOfBand(&'a [u8]),
    /// A whole message, of one datagram or of several.
    Message { sequence: u32, bytes: std::borrow::Cow<'a, [u8]> },
    /// A message of which more is to come.
    Incomplete,
    /// One that was there before, or that was overtaken.
    Stale,
}

/// One direction of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Channel {
    direction: Direction,
    newest: u32,
    /// The sequence of the message in fragments, and its bytes so far.
    fragments: (u32, Vec<u8>),
}

impl Channel {
    pub(crate) fn new(direction: Direction) -> Channel {
        Channel { direction, newest: 0, fragments: (0, Vec::new()) }
    }

    pub(crate) fn take<'a>(&mut self, datagram: &'a [u8], challenge: u32) -> Result<Datagram<'a>, DatagramError> {
        if let Some(text) = datagram.strip_prefix(OUT_OF_BAND) {
            return Ok(Datagram::OutOfBand(text));
        }
        let mut rest = datagram;
        let word = number::<4>(&mut rest)?;
        if self.direction == Direction::Up {
            // The qport tells clients behind one address apart.
            number::<2>(&mut rest)?;
        }
        let sequence = word & !FRAGMENT;
        if number::<4>(&mut rest)? != challenge ^ sequence.wrapping_mul(challenge) {
            return Err(DatagramError::Checksum);
        }
        let is_stale = sequence <= self.newest;
        if word & FRAGMENT == 0 {
            if is_stale {
                return Ok(Datagram::Stale);
            }
            self.newest = sequence;
            return Ok(Datagram::Message { sequence, bytes: rest.into() });
        }
        let (start, length) = (number::<2>(&mut rest)? as usize, number::<2>(&mut rest)? as usize);
        let part = rest.get(..length).ok_or(DatagramError::Short)?;
        if is_stale { Ok(Datagram::Stale) } else { self.assemble(sequence, start, part) }
    }

    fn assemble(&mut self, of: u32, start: usize, part: &[u8]) -> Result<Datagram<'static>, DatagramError> {
        let (sequence, bytes) = &mut self.fragments;
        if *sequence != of {
            (*sequence, *bytes) = (of, Vec::new());
        }
        let expected = bytes.len();
        if start < expected {
            return Ok(Datagram::Stale);
        }
        if start > expected {
            return Err(DatagramError::Fragment { start, expected });
        }
        if expected + part.len() > LONGEST_MESSAGE {
            return Err(DatagramError::Long);
        }
        bytes.extend_from_slice(part);
        if part.len() == FRAGMENT_BYTES {
            return Ok(Datagram::Incomplete);
        }
        self.newest = of;
        Ok(Datagram::Message { sequence: of, bytes: std::mem::take(bytes).into() })
    }
}

fn number<const BYTES: usize>(rest: &mut &[u8]) -> Result<u32, DatagramError> {
    let (first, others) = rest.split_at_checked(BYTES).ok_or(DatagramError::Short)?;
    *rest = others;
    Ok(first.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)))
}
