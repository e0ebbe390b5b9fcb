//! Datagrams: their header and type, their seal, and the fragments of server messages that are longer than a datagram. If
//! one fragment is lost, the whole message is lost.

use std::collections::VecDeque;

use siphasher::sip::SipHasher24;

use super::DecodeError;
use super::bits::{BitReader, BitWriter};
use crate::state::value;
use hitreg_log::units::SnapshotSeq;

/// The first 32 bits of every datagram: "HRG" and the version of the header layout. Datagrams of other protocols are
/// recognised by it.
pub const FILTER: u32 = u32::from_le_bytes(*b"HRG1");

/// The version of everything after the headers. The handshake checks that server and client use the same one.
pub const VERSION: u16 = 6;

/// The longest datagram in bytes. It fits IPv6's minimum MTU of 1280 bytes with its headers, so the network does not
/// fragment it.
pub const DATAGRAM_BYTES_MAX: usize = 1200;

/// The seal of a live datagram, in bytes.
pub const SEAL_BYTES: usize = 4;

macro_rules! message_types {
    ($( $(#[$doc:meta])* $name:ident = $code:literal ),* $(,)?) => {
        /// The type of a datagram: the 8 bits after the filter.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum MessageType { $( $(#[$doc])* $name = $code, )* }

        impl MessageType {
            fn from_code(code: u8) -> Result<MessageType, DecodeError> {
                match code { $( $code => Ok(MessageType::$name), )* _ => Err(DecodeError::UnknownType(code)) }
            }
        }
    };
}

message_types! {
    /// Client to server: requests a challenge.
    ConnectRequest = 1,
    /// Server to client: the challenge, which verifies that the client's address is not spoofed.
    Challenge = 2,
    /// Client to server: returns the challenge and requests a slot.
    ConnectConfirm = 3,
    /// Server to client: the slot.
    Accepted = 4,
    /// Server to client: the reason for a refusal.
    Refused = 5,
    /// Either direction: the session is over.
    Disconnect = 6,
    /// Client to server: usercmds.
    LiveFromClient = 7,
    /// Server to client: the frame that was just simulated.
    LiveFromServer = 8,
    /// Client to server: a request that needs a `REQUEST_ACK`.
    RequestFromClient = 9,
    /// Server to client: a fragment of a message that is longer than a datagram.
    FragmentFromServer = 10,
    /// Either direction, before the session begins: the sender is present.
    Waiting = 11,
    /// Server to client: request acks and chat.
    Notices = 12,
    /// Client to server: the notices that arrived.
    NoticesAck = 13,
}

/// Returns the type of a datagram.
///
/// # Errors
/// When the datagram has another filter or an unknown type, or is too short.
pub fn message_type(datagram: &[u8]) -> Result<MessageType, DecodeError> {
    read_type(&mut BitReader::new(datagram))
}

/// Appends the seal: 32 bits of the datagram's hash under the session's key. A third party without the key cannot
/// create or change a datagram.
pub fn seal(key: Key, mut datagram: Vec<u8>) -> Vec<u8> {
    let seal = key.hash(&datagram) as u32;
    datagram.extend(seal.to_le_bytes());
    datagram
}

/// Checks the seal and removes it.
///
/// # Errors
/// When the seal is wrong, or the datagram is too short to have one, or longer than a datagram may be.
pub fn unseal(key: Key, datagram: &[u8]) -> Result<&[u8], DecodeError> {
    if datagram.len() > DATAGRAM_BYTES_MAX {
        return Err(DecodeError::bad("the length of a datagram", datagram.len() as u64));
    }
    let (sealed, seal) = datagram.split_last_chunk::<SEAL_BYTES>().ok_or(DecodeError::TooShort)?;
    if key.hash(sealed) as u32 == u32::from_le_bytes(*seal) { Ok(sealed) } else { Err(DecodeError::WrongSeal) }
}

/// Starts a datagram with filter and type.
pub(crate) fn begin(message: MessageType) -> BitWriter {
    let mut out = BitWriter::default();
    out.put(u64::from(FILTER), 32);
    out.put(message as u64, 8);
    out
}

/// Checks filter and type, and returns a reader for the rest.
pub(crate) fn expect(datagram: &[u8], expected: MessageType) -> Result<BitReader<'_>, DecodeError> {
    // Only a `LiveFromServer` message can be reassembled from fragments.
    let most = if expected == MessageType::LiveFromServer { MESSAGE_BYTES_MAX } else { DATAGRAM_BYTES_MAX };
    if datagram.len() > most {
        return Err(DecodeError::TrailingBits);
    }
    let mut from = BitReader::new(datagram);
    let found = read_type(&mut from)?;
    if found == expected { Ok(from) } else { Err(DecodeError::WrongType { expected, found }) }
}

fn read_type(from: &mut BitReader<'_>) -> Result<MessageType, DecodeError> {
    let filter = from.get_u32()?;
    if filter != FILTER {
        return Err(DecodeError::WrongFilter(filter));
    }
    MessageType::from_code(from.get_u8()?)
}

/// A 128-bit key.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Key(pub u64, pub u64);

impl std::fmt::Debug for Key {
    /// Keeps keys out of messages and logs.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key(..)")
    }
}

impl Key {
    /// Returns the hash of `bytes` under this key.
    pub(crate) fn hash(self, bytes: &[u8]) -> u64 {
        SipHasher24::new_with_keys(self.0, self.1).hash(bytes)
    }
}

/// The bytes before a fragment's piece: filter, type, number, index and count.
pub(super) const FRAGMENT_HEADER_BYTES: usize = 4 + 1 + 4 + 1 + 1;
/// The most bytes of a message in one fragment.
pub(super) const PIECE_BYTES_MAX: usize = DATAGRAM_BYTES_MAX - FRAGMENT_HEADER_BYTES - SEAL_BYTES;
/// The bytes of a fragment without its piece.
pub(super) const FRAGMENT_OVERHEAD_BYTES: usize = FRAGMENT_HEADER_BYTES + SEAL_BYTES;
/// The most fragments of a message.
const FRAGMENTS_MAX: usize = 16;
/// The longest message in bytes, without seals.
pub(crate) const MESSAGE_BYTES_MAX: usize = FRAGMENTS_MAX * PIECE_BYTES_MAX;
/// The most unfinished messages that a client keeps; beyond this, the oldest is dropped.
const UNFINISHED_MAX: usize = 8;

/// Splits a message into datagrams, not yet sealed. A message that fits into one datagram stays one. Otherwise the
/// pieces are about equally long, so that no queue drops only the large ones. `number` identifies the message in each
/// piece. Returns `None` for a message longer than `MESSAGE_BYTES_MAX`.
pub fn fragments(number: SnapshotSeq, message: Vec<u8>) -> Option<Vec<Vec<u8>>> {
    if message.len() + SEAL_BYTES <= DATAGRAM_BYTES_MAX {
        return Some(vec![message]);
    }
    let count = message.len().div_ceil(PIECE_BYTES_MAX);
    if count > FRAGMENTS_MAX {
        return None;
    }
    let fragment = |(place, piece): (usize, &[u8])| {
        let mut out = begin(MessageType::FragmentFromServer);
        out.put(u64::from(number.0), 32);
        out.put(place as u64, 8);
        out.put(count as u64, 8);
        out.put_bytes(piece);
        out.into_bytes()
    };
    Some(message.chunks(message.len().div_ceil(count)).enumerate().map(fragment).collect())
}

/// Reassembles messages from fragments. It holds at most eight unfinished messages.
#[derive(Clone, Debug, Default)]
pub struct Reassembly {
    /// Sorted by the arrival of their first fragment.
    unfinished: VecDeque<PartialMessage>,
}

#[derive(Clone, Debug)]
struct PartialMessage {
    number: u32,
    pieces: Vec<Option<Vec<u8>>>,
}

/// A completely reassembled message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReassembledMessage {
    /// The message, without its seal.
    pub message: Vec<u8>,
    /// The number of fragments that carried it.
    pub fragments: usize,
    /// The total size of those datagrams in bytes, including headers and seals.
    pub bytes: usize,
}

impl PartialMessage {
    fn is_valid(&self) -> bool {
        let is_piece = |piece: &Vec<u8>| (1..=PIECE_BYTES_MAX).contains(&piece.len());
        (2..=FRAGMENTS_MAX).contains(&self.pieces.len())
            && self.pieces.iter().any(Option::is_none)
            && self.pieces.iter().flatten().all(is_piece)
    }
}

impl Reassembly {
    fn is_valid(&self) -> bool {
        self.unfinished.len() <= UNFINISHED_MAX
    }

    /// Takes a fragment whose seal was checked. Returns the message when this fragment was the last missing one.
    ///
    /// # Errors
    /// When a server would not send such a fragment. The reassembler is then unchanged.
    pub fn handle_fragment(&mut self, datagram: &[u8]) -> Result<Option<ReassembledMessage>, DecodeError> {
        let mut from: BitReader<'_> = expect(datagram, MessageType::FragmentFromServer)?;
        let number = from.get_u32()?;
        let (place, count) = (usize::from(from.get_u8()?), usize::from(from.get_u8()?));
        if !(2..=FRAGMENTS_MAX).contains(&count) {
            return Err(DecodeError::bad("the number of fragments", count as u64));
        }
        if place >= count {
            return Err(DecodeError::bad("the place of a fragment", place as u64));
        }
        let piece =
            datagram.get(FRAGMENT_HEADER_BYTES..).filter(|piece| !piece.is_empty()).ok_or(DecodeError::TooShort)?;
        let index = match self.unfinished.iter().position(|unfinished| unfinished.number == number) {
            Some(index) => index,
            None => {
                if self.unfinished.len() == UNFINISHED_MAX {
                    self.unfinished.pop_front();
                }
                self.unfinished.push_back(PartialMessage { number, pieces: vec![None; count] });
                self.unfinished.len() - 1
            }
        };
        let pieces = &mut self.unfinished[index].pieces;
        if pieces.len() != count {
            return Err(DecodeError::bad("another number of fragments of one message", count as u64));
        }
        pieces[place].get_or_insert_with(|| piece.to_vec());
        if pieces.iter().any(Option::is_none) {
            return Ok(None);
        }
        let whole = self.unfinished.remove(index);
        let message: Option<Vec<u8>> = whole.map(|whole| whole.pieces.into_iter().flatten().flatten().collect());
        let sent = |message: &[u8]| message.len() + count * FRAGMENT_OVERHEAD_BYTES;
        Ok(message.map(|message| ReassembledMessage { fragments: count, bytes: sent(&message), message }))
    }
}

value!(PartialMessage { number, pieces } if is_valid);
value!(Reassembly { unfinished } if is_valid);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_filters_types_and_seals_are_refused() {
        let mut bytes = begin(MessageType::Challenge).into_bytes();
        assert_eq!(message_type(&bytes), Ok(MessageType::Challenge));
        assert!(matches!(expect(&bytes, MessageType::Accepted), Err(DecodeError::WrongType { .. })));
        bytes[4] = 200;
        assert_eq!(message_type(&bytes), Err(DecodeError::UnknownType(200)));
        bytes[0] ^= 1;
        assert!(matches!(message_type(&bytes), Err(DecodeError::WrongFilter(_))));
        assert_eq!(message_type(&bytes[..3]), Err(DecodeError::TooShort));

        let key = Key(1, 2);
        let sealed = seal(key, vec![1, 2, 3]);
        assert_eq!(unseal(key, &sealed), Ok(&[1, 2, 3][..]));
        assert_eq!(unseal(Key(1, 3), &sealed), Err(DecodeError::WrongSeal));
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(unseal(key, &changed), Err(DecodeError::WrongSeal));
        }
        let of_length = |length| unseal(key, &seal(key, vec![0; length - SEAL_BYTES])).map(<[u8]>::len);
        assert_eq!(of_length(DATAGRAM_BYTES_MAX), Ok(DATAGRAM_BYTES_MAX - SEAL_BYTES));
        assert!(of_length(DATAGRAM_BYTES_MAX + 1).is_err());
    }

    /// The test vectors of the paper's reference implementation: key 00..0f, messages 00, 00 01, ...
    #[test]
    fn the_seal_is_siphash() {
        let key = Key(0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908);
        let message: Vec<u8> = (0..15).collect();
        assert_eq!(key.hash(&message), 0xa129_ca61_49be_45e5);
        assert_eq!(key.hash(&[]), 0x726f_db47_dd0e_0e31);
        assert_eq!(key.hash(&message[..1]), 0x74f8_39c5_93dc_67fd);
        assert_eq!(key.hash(&message[..8]), 0x93f5_f579_9a93_2462);
    }

    fn message(bytes: usize) -> Vec<u8> {
        (0..bytes).map(|i| (i * 7 + i / 256) as u8).collect()
    }

    #[test]
    fn fragments_are_joined_in_any_order() {
        for bytes in [DATAGRAM_BYTES_MAX - SEAL_BYTES + 1, 3_000, MESSAGE_BYTES_MAX] {
            let mut datagrams = fragments(SnapshotSeq(9), message(bytes)).expect("it is short enough");
            assert!(datagrams.len() >= 2 && datagrams.iter().all(|d| d.len() + SEAL_BYTES <= DATAGRAM_BYTES_MAX));
            datagrams.reverse();
            let mut reassembly = Reassembly::default();
            let (last, first) = datagrams.split_last().expect("some");
            for datagram in first.iter().chain(first) {
                assert_eq!(reassembly.handle_fragment(datagram), Ok(None));
            }
            let sent: usize = datagrams.iter().map(|datagram| datagram.len() + SEAL_BYTES).sum();
            let whole = ReassembledMessage { message: message(bytes), fragments: datagrams.len(), bytes: sent };
            assert_eq!(reassembly.handle_fragment(last), Ok(Some(whole)));
        }
    }

    #[test]
    fn a_short_message_is_one_datagram_and_a_too_long_one_is_refused() {
        let short = message(DATAGRAM_BYTES_MAX - SEAL_BYTES);
        assert_eq!(fragments(SnapshotSeq(1), short.clone()), Some(vec![short]));
        assert_eq!(fragments(SnapshotSeq(1), message(MESSAGE_BYTES_MAX + 1)), None);
    }

    #[test]
    fn a_lost_fragment_loses_only_its_message_and_memory_is_limited() {
        let mut reassembly = Reassembly::default();
        let cut = |number| fragments(SnapshotSeq(number), message(2_000)).expect("two fragments");
        for number in 1..=100 {
            assert_eq!(reassembly.handle_fragment(&cut(number)[0]), Ok(None));
        }
        assert_eq!(reassembly.unfinished.len(), UNFINISHED_MAX);
        assert_eq!(reassembly.handle_fragment(&cut(50)[1]), Ok(None), "it was given up");
        assert!(matches!(reassembly.handle_fragment(&cut(100)[1]), Ok(Some(_))));
    }

    #[test]
    fn invalid_fragments_are_refused() {
        let good = fragments(SnapshotSeq(3), message(2_000)).expect("two fragments").swap_remove(0);
        let refused = |change: fn(&mut Vec<u8>)| {
            let (mut reassembly, mut bad) = (Reassembly::default(), good.clone());
            change(&mut bad);
            reassembly.handle_fragment(&bad).is_err() && reassembly.unfinished.is_empty()
        };
        assert!(refused(|bad| bad[9] = 2));
        assert!(refused(|bad| bad[10] = 1));
        assert!(refused(|bad| bad[10] = 17));
        assert!(refused(|bad| bad.truncate(FRAGMENT_HEADER_BYTES)));
        assert!(refused(|bad| bad.truncate(7)));
        let mut reassembly = Reassembly::default();
        assert_eq!(reassembly.handle_fragment(&good), Ok(None));
        let mut other = good.clone();
        other[10] = 3;
        assert!(reassembly.handle_fragment(&other).is_err());
    }
}
