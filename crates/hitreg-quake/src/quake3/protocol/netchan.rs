//! Datagrams: headers, and messages in several fragments (ioquake3's net_chan.c).

use hitreg_netcode::protocol::Direction;

/// The longest message, in bytes.
pub(crate) const LONGEST_MESSAGE: usize = 16_384;
/// Size of a fragment, in bytes. A shorter fragment is the last.
const FRAGMENT_BYTES: usize = 1_300;
const FRAGMENT: u32 = 1 << 31;
const OUT_OF_BAND: &[u8] = &[0xff; 4];

/// Why a datagram does not belong to the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatagramError {
    /// It is shorter than its header.
    #[error("it ends within its header")]
    Short,
    /// Its checksum does not match the connection's challenge.
    #[error("its checksum is not that of the connection's challenge")]
    Checksum,
    /// A fragment does not follow the previous one.
    #[error("a fragment at byte {start}, where {expected} was due")]
    Fragment {
        /// Offset of the fragment.
        start: usize,
        /// Expected offset.
        expected: usize,
    },
    /// The fragments exceed the longest message.
    #[error("a message of more than {LONGEST_MESSAGE} bytes")]
    Long,
}

/// A decoded datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NetchanDatagram<'a> {
    /// Text outside of any connection.
    OutOfBand(&'a [u8]),
    /// A complete message from one or several datagrams.
    Message { sequence: u32, bytes: std::borrow::Cow<'a, [u8]> },
    /// A fragment of an incomplete message.
    Incomplete,
    /// A duplicate, or an overtaken message.
    Stale,
}

/// One direction of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Channel {
    newest: u32,
    /// Sequence number of the fragmented message, and its bytes so far.
    fragments: (u32, Vec<u8>),
}

impl Channel {
    /// Returns whether any part of a message came.
    pub(crate) fn has_begun(&self) -> bool {
        self.newest > 0 || self.fragments.0 > 0
    }

    pub(crate) fn take<'a>(
        &mut self,
        direction: Direction,
        datagram: &'a [u8],
        challenge: u32,
    ) -> Result<NetchanDatagram<'a>, DatagramError> {
        if let Some(text) = datagram.strip_prefix(OUT_OF_BAND) {
            return Ok(NetchanDatagram::OutOfBand(text));
        }
        let mut rest = datagram;
        let word = number::<4>(&mut rest)?;
        if direction == Direction::Up {
            // The qport distinguishes clients behind one address.
            number::<2>(&mut rest)?;
        }
        let sequence = word & !FRAGMENT;
        if number::<4>(&mut rest)? != challenge ^ sequence.wrapping_mul(challenge) {
            return Err(DatagramError::Checksum);
        }
        let is_stale = sequence <= self.newest;
        if word & FRAGMENT == 0 {
            if is_stale {
                return Ok(NetchanDatagram::Stale);
            }
            self.newest = sequence;
            return Ok(NetchanDatagram::Message { sequence, bytes: rest.into() });
        }
        let (start, length) = (number::<2>(&mut rest)? as usize, number::<2>(&mut rest)? as usize);
        let part = rest.get(..length).ok_or(DatagramError::Short)?;
        if is_stale { Ok(NetchanDatagram::Stale) } else { self.assemble(sequence, start, part) }
    }

    fn assemble(&mut self, of: u32, start: usize, part: &[u8]) -> Result<NetchanDatagram<'static>, DatagramError> {
        let (sequence, bytes) = &mut self.fragments;
        if *sequence != of {
            (*sequence, *bytes) = (of, Vec::new());
        }
        let expected = bytes.len();
        if start < expected {
            return Ok(NetchanDatagram::Stale);
        }
        if start > expected {
            return Err(DatagramError::Fragment { start, expected });
        }
        if expected + part.len() > LONGEST_MESSAGE {
            return Err(DatagramError::Long);
        }
        bytes.extend_from_slice(part);
        if part.len() == FRAGMENT_BYTES {
            return Ok(NetchanDatagram::Incomplete);
        }
        self.newest = of;
        Ok(NetchanDatagram::Message { sequence: of, bytes: std::mem::take(bytes).into() })
    }
}

fn number<const BYTES: usize>(rest: &mut &[u8]) -> Result<u32, DatagramError> {
    let (first, others) = rest.split_at_checked(BYTES).ok_or(DatagramError::Short)?;
    *rest = others;
    Ok(first.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)))
}
