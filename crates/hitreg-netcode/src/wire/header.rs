//! The header of every datagram, and the header of live datagrams after the NeREIDS live protocol.

use super::bits::{BitReader, BitWriter};
use super::{DecodeError, Key, MESSAGE_BYTES_MAX, Wrapping16};

/// The first 32 bits of every datagram: "HRG" and the version of the header layout. Datagrams of other protocols are
/// recognised by it.
pub const FILTER: u32 = u32::from_le_bytes(*b"HRG1");

/// The version of everything after the headers. The handshake checks that server and client use the same one.
pub const VERSION: u16 = 5;

/// The longest datagram in bytes. It fits IPv6's minimum MTU of 1280 bytes with its headers, so the network does not
/// fragment it.
pub const DATAGRAM_BYTES_MAX: usize = 1200;

/// The seal of a live datagram, in bytes.
pub const SEAL_BYTES: usize = 4;

/// The index of the byte that holds the number of submessages.
pub(crate) const COUNT_AT_BYTE: usize = 11;

/// The wire value of an unknown calibration helper.
const CALIBRATION_UNKNOWN: i16 = i16::MIN;

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

/// The fields of a live header from the server, after filter and type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ServerHeader {
    /// The tick that the server simulated.
    pub(crate) frame: Wrapping16,
    /// The client's newest valid usercmd.
    pub(crate) ack: Wrapping16,
    /// The calibration helper in ms; `None` while the server does not know it.
    pub(crate) calibration_ms: Option<i16>,
}

impl ServerHeader {
    /// Writes the header, with a count of 0 at [`COUNT_AT_BYTE`].
    pub(crate) fn begin(&self) -> BitWriter {
        let mut out = begin(MessageType::LiveFromServer);
        out.put(u64::from(self.frame.0), 16);
        out.put(u64::from(self.ack.0), 16);
        let calibration = self.calibration_ms.map_or(CALIBRATION_UNKNOWN, |ms| ms.max(-i16::MAX));
        out.put(u64::from(calibration as u16), 16);
        debug_assert_eq!(out.len_bits(), COUNT_AT_BYTE * 8);
        out.put(0, 8);
        out
    }

    /// Reads the header and the number of submessages.
    pub(crate) fn read(datagram: &[u8]) -> Result<(ServerHeader, u8, BitReader<'_>), DecodeError> {
        let mut from = expect(datagram, MessageType::LiveFromServer)?;
        let frame = Wrapping16(from.get_u16()?);
        let ack = Wrapping16(from.get_u16()?);
        let calibration_ms = Some(from.get_u16()? as i16).filter(|ms| *ms != CALIBRATION_UNKNOWN);
        let count = from.get_u8()?;
        Ok((ServerHeader { frame, ack, calibration_ms }, count, from))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_the_documented_layout() {
        let header = ServerHeader { frame: Wrapping16(0x1234), ack: Wrapping16(0xfffe), calibration_ms: Some(-2) };
        let bytes = header.begin().into_bytes();
        assert_eq!(bytes, [b'H', b'R', b'G', b'1', 8, 0x34, 0x12, 0xfe, 0xff, 0xfe, 0xff, 0]);
        let (read, count, _) = ServerHeader::read(&bytes).expect("it was just written");
        assert_eq!((read, count), (header, 0));
    }

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
}
