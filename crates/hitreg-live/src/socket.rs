//! UDP sockets, each with a reader thread. Waiting on a channel wakes up on time; a socket timeout wakes up only at the
//! next kernel timer tick.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use super::LiveError;

/// The most received datagrams that may wait; further ones are dropped, as the kernel would drop them.
pub(super) const WAITING_DATAGRAMS: usize = 4096;

/// The interval at which each thread checks whether the session is over.
pub(super) const LOOK_UP_EVERY: Duration = Duration::from_millis(50);

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

/// Opens a socket on a free port, from which `peer` can be reached.
///
/// # Errors
/// When no port is free.
pub(super) fn open_towards(peer: SocketAddr) -> Result<UdpSocket, LiveError> {
    open(match peer {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    })
}

/// Passes datagrams to `take`, until `over` is set or `take` breaks. A datagram of more than `bytes_max` bytes is cut to one
/// byte more, so that its receiver refuses it.
pub(super) fn read(
    socket: &UdpSocket,
    bytes_max: usize,
    over: &AtomicBool,
    take: impl Fn(SocketAddr, Vec<u8>) -> ControlFlow<()>,
) {
    let mut bytes = vec![0; bytes_max + 1];
    while !over.load(Ordering::Relaxed) {
        // A receive error concerns a single datagram (such as an ICMP reply to one that was sent) or is a timeout.
        let Ok((length, from)) = socket.recv_from(&mut bytes) else { continue };
        if take(from, bytes[..length].to_vec()).is_break() {
            return;
        }
    }
}

/// Waits for the next datagram that a reader thread passes on; `None` when there is none in time.
///
/// # Errors
/// When the reader thread has ended.
pub(super) fn receive(
    inbox: &Receiver<ReceivedDatagram>,
    wait: Duration,
) -> Result<Option<ReceivedDatagram>, LiveError> {
    match inbox.recv_timeout(wait) {
        Ok(datagram) => Ok(Some(datagram)),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(LiveError::ThreadGone),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_that_is_too_long_reaches_its_receiver_cut() {
        let Ok(receiver) = open((Ipv4Addr::LOCALHOST, 0).into()) else { return };
        let sender = open((Ipv4Addr::LOCALHOST, 0).into()).expect("another socket");
        for length in [8, 9, 1_400] {
            sender.send_to(&vec![7; length], receiver.local_addr().expect("its address")).expect("it is sent");
        }
        let lengths = std::cell::RefCell::new(Vec::new());
        read(&receiver, 8, &AtomicBool::new(false), |_, bytes| {
            lengths.borrow_mut().push(bytes.len());
            if lengths.borrow().len() == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(lengths.into_inner(), [8, 9, 9]);
    }
}
