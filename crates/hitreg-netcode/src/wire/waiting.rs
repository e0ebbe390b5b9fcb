//! The message exchanged before a session begins. A client says that it is present and whether it is ready; the server
//! says how many players are ready.

use super::header::{begin, expect};
use super::{DecodeError, MessageType};

/// The number of ready players, and the number that the session waits for. A client reports only itself: 0 or 1 of 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadyCount {
    /// The number of ready players.
    pub ready: u16,
    /// The number of players that the session waits for.
    pub places: u16,
}

/// Encodes the message. The caller must seal the datagram.
pub fn encode_waiting(waiting: ReadyCount) -> Vec<u8> {
    let mut out = begin(MessageType::Waiting);
    out.put(u64::from(waiting.ready), 16);
    out.put(u64::from(waiting.places), 16);
    out.into_bytes()
}

/// Decodes the message from a datagram whose seal was checked.
///
/// # Errors
/// When the datagram is not a valid `Waiting` message.
pub(crate) fn decode_waiting(datagram: &[u8]) -> Result<ReadyCount, DecodeError> {
    let mut from = expect(datagram, MessageType::Waiting)?;
    let waiting = ReadyCount { ready: from.get_u16()?, places: from.get_u16()? };
    from.finish()?;
    Ok(waiting)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_messages_come_back() {
        let waiting = ReadyCount { ready: 3, places: 8 };
        assert_eq!(decode_waiting(&encode_waiting(waiting)), Ok(waiting));
        assert!(decode_waiting(&encode_waiting(waiting)[..8]).is_err());
    }
}
