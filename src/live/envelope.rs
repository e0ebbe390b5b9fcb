//! What live datagrams carry behind the protocol's own message, under the same seal.
//!
//! A client's pipeline is given whole snapshots only: those whose datagram had room for all that its client did not know
//! yet. So a replay, whose clients are handed the server's snapshots as they are, sees what the clients saw. The server
//! says of each datagram whether it is whole, and the client which whole one is its newest.

use crate::units::SnapshotSeq;

/// What the server's envelope adds, in bytes.
pub(super) const DOWN_BYTES: usize = 1;

/// Puts the server's part behind a datagram.
pub(super) fn close_down(mut datagram: Vec<u8>, whole: bool) -> Vec<u8> {
    datagram.push(u8::from(whole));
    datagram
}

/// Takes the server's part off; `None` when there is none.
pub(super) fn open_down(datagram: &[u8]) -> Option<(&[u8], bool)> {
    match datagram.split_last()? {
        (0, rest) => Some((rest, false)),
        (1, rest) => Some((rest, true)),
        _ => None,
    }
}

/// Puts the client's part behind a datagram.
pub(super) fn close_up(mut datagram: Vec<u8>, newest_whole: SnapshotSeq) -> Vec<u8> {
    datagram.extend(newest_whole.0.to_le_bytes());
    datagram
}

/// Takes the client's part off; `None` when there is none.
pub(super) fn open_up(datagram: &[u8]) -> Option<(&[u8], SnapshotSeq)> {
    let (rest, newest) = datagram.split_last_chunk()?;
    Some((rest, SnapshotSeq(u32::from_le_bytes(*newest))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_closed_opens() {
        assert_eq!(open_down(&close_down(vec![7], true)), Some((&[7][..], true)));
        assert_eq!(open_down(&close_down(vec![7], false)), Some((&[7][..], false)));
        assert_eq!(open_up(&close_up(vec![7], SnapshotSeq(300))), Some((&[7][..], SnapshotSeq(300))));
        assert_eq!((open_down(&[]), open_down(&[2]), open_up(&[1, 2, 3])), (None, None, None));
    }
}
