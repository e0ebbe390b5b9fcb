//! UDP sockets, each with a reader thread. Waiting on a channel wakes up on time; a socket timeout wakes up only at the
//! next kernel timer tick.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::LiveError;
use super::transit::InboundQueue;
use hitreg_netcode::wire::DATAGRAM_BYTES_MAX;

/// The most received datagrams that may wait; further ones are dropped, as the kernel would drop them.
pub(super) const WAITING_DATAGRAMS: usize = 4096;

/// The interval at which a reader thread checks whether the session is over.
const LOOK_UP_EVERY: Duration = Duration::from_millis(50);

/// A datagram and its source address.
pub(super) type ReceivedDatagram = (SocketAddr, Vec<u8>);

/// Opens a socket.
///
/// # Errors
/// When the address is not available, usually because its port is taken.
pub(super) fn open(address: SocketAddr) -> Result<UdpSocket, LiveError> {
    let fail = |source: std::io::Error| match source.kind() {
        ErrorKind::AddrInUse => LiveError::PortTaken { address },
        _ => LiveError::Bind { address, source },
    };
    let socket = UdpSocket::bind(address).map_err(fail)?;
    socket.set_read_timeout(Some(LOOK_UP_EVERY)).map_err(LiveError::Socket)?;
    Ok(socket)
}

/// Passes datagrams on until `over` is set or the reader has ended.
pub(super) fn read(socket: &UdpSocket, into: &InboundQueue, over: &AtomicBool) {
    // One byte more than the maximum, to detect datagrams that are too long.
    let mut bytes = [0; DATAGRAM_BYTES_MAX + 1];
    while !over.load(Ordering::Relaxed) {
        // A receive error concerns a single datagram (such as an ICMP reply to one that was sent) or is a timeout.
        let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
        if length > DATAGRAM_BYTES_MAX {
            continue;
        }
        if into.take(from, bytes[..length].to_vec()).is_break() {
            return;
        }
    }
}
