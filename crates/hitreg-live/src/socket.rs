//! UDP sockets, each with a thread that waits for datagrams: waiting on a channel wakes up on time, a socket's own
//! timeout only at the next beat of the kernel's clock.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::LiveError;
use super::transit::Inbound;
use hitreg_netcode::wire::DATAGRAM_BYTES_MAX;

/// Datagrams that may wait to be read; more are dropped, as the kernel would.
pub(super) const WAITING_DATAGRAMS: usize = 4096;

/// How long a thread waits before it looks whether the session is over.
const LOOK_UP_EVERY: Duration = Duration::from_millis(50);

/// A datagram, and where it came from.
pub(super) type Datagram = (SocketAddr, Vec<u8>);

/// Opens a socket.
///
/// # Errors
/// When the address is not available, its port taken first of all.
pub(super) fn open(address: SocketAddr) -> Result<UdpSocket, LiveError> {
    let fail = |source: std::io::Error| match source.kind() {
        ErrorKind::AddrInUse => LiveError::PortTaken { address },
        _ => LiveError::Bind { address, source },
    };
    let socket = UdpSocket::bind(address).map_err(fail)?;
    socket.set_read_timeout(Some(LOOK_UP_EVERY)).map_err(LiveError::Socket)?;
    Ok(socket)
}

/// Passes datagrams on until `over` is set or nobody takes them.
pub(super) fn read(socket: &UdpSocket, into: &Inbound, over: &AtomicBool) {
    // One byte more than a datagram may have, so that those that are too long are told from those that are not.
    let mut bytes = [0; DATAGRAM_BYTES_MAX + 1];
    while !over.load(Ordering::Relaxed) {
        // Errors of a datagram socket are about single datagrams (an ICMP answer to one that was sent, say) or timeouts.
        let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
        if length > DATAGRAM_BYTES_MAX {
            continue;
        }
        if into.take(from, bytes[..length].to_vec()).is_break() {
            return;
        }
    }
}
