//! Before a session begins: a client says that it is still there and whether it is ready, and the server how many are.

use super::header::{begin, expect};
use super::{DecodeError, MessageType};

/// How many players are ready, and how many the session waits for. A client speaks of itself alone: 0 or 1 of 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    /// How many are ready.
    pub ready: u16,
    /// How many there are to be.
    pub places: u16,
}

/// Encodes it; the datagram is to be sealed.
pub fn encode_waiting(waiting: Waiting) -> Vec<u8> {
    let mut out = begin(MessageType::Waiting);
    out.put(u64::from(waiting.ready), 16);
    out.put(u64::from(waiting.places), 16);
    out.into_bytes()
}

/// Decodes it from a datagram whose seal was checked.
///
/// # Errors
/// When it is something else.
pub(crate) fn decode_waiting(datagram: &[u8]) -> Result<Waiting, DecodeError> {
    let mut from = expect(datagram, MessageType::Waiting)?;
    let waiting = Waiting { ready: from.get_u16()?, places: from.get_u16()? };
    from.finish()?;
    Ok(waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_told() {
        let waiting = Waiting { ready: 3, places: 8 };
        assert_eq!(decode_waiting(&encode_waiting(waiting)), Ok(waiting));
        assert!(decode_waiting(&encode_waiting(waiting)[..8]).is_err());
    }
}
