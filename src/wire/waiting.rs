//! Before a session begins: a client says that it is still there, and the server how many are.

use super::header::{begin, expect};
use super::{DecodeError, MessageType};

/// How many players are there, and how many the session waits for. A client, which does not know, says 0 of 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Waiting {
    /// How many have a place.
    pub present: u16,
    /// How many places there are.
    pub seats: u16,
}

/// Encodes it; the datagram is to be sealed.
pub fn encode_waiting(waiting: Waiting) -> Vec<u8> {
    let mut out = begin(MessageType::Waiting);
    out.put(u64::from(waiting.present), 16);
    out.put(u64::from(waiting.seats), 16);
    out.into_bytes()
}

/// Decodes it from a datagram whose seal was checked.
///
/// # Errors
/// When it is something else.
pub fn decode_waiting(datagram: &[u8]) -> Result<Waiting, DecodeError> {
    let mut from = expect(datagram, MessageType::Waiting)?;
    let waiting = Waiting { present: from.get_u16()?, seats: from.get_u16()? };
    from.finish()?;
    Ok(waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_told() {
        let waiting = Waiting { present: 3, seats: 8 };
        assert_eq!(decode_waiting(&encode_waiting(waiting)), Ok(waiting));
        assert!(decode_waiting(&encode_waiting(waiting)[..8]).is_err());
    }
}
