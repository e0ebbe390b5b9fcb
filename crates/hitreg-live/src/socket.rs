//! UDP sockets, each with a reader thread, and modelled links between them. Waiting on a channel wakes up on time; a socket
//! timeout wakes up only at the next kernel timer tick.
//!
//! On a modelled link, a datagram waits for its modelled delay. A thread then sends it through the intended socket, or
//! passes it to its reader.

use std::io::ErrorKind;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};
use std::time::Duration;

use thread_priority::ThreadPriority;

use crate::LiveError;
use crate::session::MonotonicClock;
use hitreg_log::sorted::SortedMap;
use hitreg_log::units::Micros;
use hitreg_netcode::link::{Link, ModelledLink};
use hitreg_netcode::protocol::Direction;
use hitreg_netcode::session::Links;
use hitreg_netcode::wire::{DATAGRAM_BYTES_MAX, MessageType, message_type};

/// The most received datagrams that may wait; further ones are dropped, as the kernel would drop them.
pub(super) const WAITING_DATAGRAMS: usize = 4096;

/// The interval at which each thread checks whether the session is over.
pub(super) const LOOK_UP_EVERY: Duration = Duration::from_millis(50);

/// The most datagrams that may wait for the delaying thread.
pub(super) const WAITING_IN_TRANSIT: usize = 8192;

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

pub(super) fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: &str,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, LiveError> {
    Builder::new().name(name.to_owned()).spawn_scoped(scope, work).map_err(LiveError::Thread)
}

/// Waits for the end of a thread.
pub(super) fn wait_for<T>(thread: ScopedJoinHandle<'_, Result<T, LiveError>>) -> Result<T, LiveError> {
    thread.join().unwrap_or(Err(LiveError::ThreadGone))
}

/// Starts a thread that reads from a socket until `over` is set. Snapshots from the server may pass through modelled
/// links.
pub(super) fn read_from<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    socket: &Arc<UdpSocket>,
    delays: Option<(MonotonicClock, SyncSender<TransitDatagram>)>,
    over: &'env AtomicBool,
) -> Result<Receiver<ReceivedDatagram>, LiveError> {
    let (datagrams, inbox) = sync_channel(WAITING_DATAGRAMS);
    let socket = Arc::clone(socket);
    let take = move |from, bytes: Vec<u8>| {
        // Handshake and farewell datagrams are not delayed.
        let is_delayed = matches!(
            message_type(&bytes),
            Ok(MessageType::LiveFromServer | MessageType::FragmentFromServer | MessageType::Notices)
        );
        let is_over = match &delays {
            Some((clock, delays)) if is_delayed => {
                let to = TransitTarget::Inbox(datagrams.clone(), from);
                let posted = TransitDatagram { to, bytes, sent_at: clock.now(), line: 0, direction: Direction::Down };
                delays.send(posted).is_err()
            }
            Some(_) | None => matches!(datagrams.try_send((from, bytes)), Err(TrySendError::Disconnected(_))),
        };
        if is_over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    spawn(scope, "socket", move || read(&socket, DATAGRAM_BYTES_MAX, over, take))?;
    Ok(inbox)
}

/// Sends datagrams through a socket, either immediately or through modelled links.
#[derive(Clone, Debug)]
pub(super) struct Outbound {
    pub(super) socket: Arc<UdpSocket>,
    pub(super) delays: Option<SyncSender<TransitDatagram>>,
}

/// A datagram in transit.
#[derive(Clone, Debug)]
pub(super) struct TransitDatagram {
    to: TransitTarget,
    bytes: Vec<u8>,
    sent_at: Micros,
    /// The index of the modelled connection that it takes.
    line: usize,
    direction: Direction,
}

/// The destination of a datagram.
#[derive(Clone, Debug)]
enum TransitTarget {
    /// Outgoing, to this address.
    Address(Arc<UdpSocket>, SocketAddr),
    /// Incoming, to this reader; the datagram came from this address.
    Inbox(SyncSender<ReceivedDatagram>, SocketAddr),
}

impl Outbound {
    /// Sends a datagram immediately. A datagram that the system refuses counts as lost in transit.
    pub(super) fn send(&self, to: SocketAddr, bytes: &[u8]) {
        let _ = self.socket.send_to(bytes, to);
    }

    /// Sends a datagram of a connection, through its modelled link if there is one.
    pub(super) fn send_on(&self, line: usize, direction: Direction, sent_at: Micros, to: SocketAddr, bytes: Vec<u8>) {
        match &self.delays {
            None => self.send(to, &bytes),
            Some(delays) => {
                let to = TransitTarget::Address(Arc::clone(&self.socket), to);
                // The receiving thread ends only after the session.
                let _ = delays.send(TransitDatagram { to, bytes, sent_at, line, direction });
            }
        }
    }
}

/// Delays datagrams until all senders have ended. Datagrams still in transit at that time are lost.
pub(super) fn deliver(clock: MonotonicClock, mut links: Vec<Links<ModelledLink>>, posts: &Receiver<TransitDatagram>) {
    // Datagrams by due time and arrival.
    let mut waiting: SortedMap<(Micros, u64), TransitDatagram> = SortedMap::new();
    let mut posted = 0;
    loop {
        while let Some(post) = waiting.first_entry().filter(|post| post.key().0 <= clock.now()) {
            let TransitDatagram { to, bytes, .. } = post.remove();
            // The datagram is lost when the destination refuses it.
            match to {
                TransitTarget::Address(socket, to) => drop(socket.send_to(&bytes, to)),
                TransitTarget::Inbox(reader, from) => drop(reader.try_send((from, bytes))),
            }
        }
        let wait = waiting.first_key_value().map_or(Duration::from_secs(1), |((due, _), _)| clock.until(*due));
        let post = match posts.recv_timeout(wait) {
            Ok(post) => post,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let Some(links) = links.get_mut(post.line) else { continue };
        let fate = links.link(post.direction).send(post.sent_at, post.bytes.len().min(usize::from(u16::MAX)) as u16);
        for due in fate.arrivals() {
            waiting.insert((due, posted), post.clone());
            posted += 1;
        }
    }
}

/// Requests real-time scheduling for the calling thread, on which datagrams wait. When other programs keep all cores busy
/// (for example two games on one machine), it would otherwise wait for milliseconds. Returns whether the system granted it. Most systems require a
/// privilege (on Linux `CAP_SYS_NICE`, or a limit `rtprio` above 0).
#[cfg(unix)]
pub(super) fn run_at_once() -> bool {
    use thread_priority::{
        RealtimeThreadSchedulePolicy, ThreadSchedulePolicy, set_thread_priority_and_policy, thread_native_id,
    };

    // The lowest real-time priority is enough to precede all normal threads.
    let policy = ThreadSchedulePolicy::Realtime(RealtimeThreadSchedulePolicy::Fifo);
    set_thread_priority_and_policy(thread_native_id(), ThreadPriority::Min, policy).is_ok()
}

/// Requests the highest priority for the calling thread. Returns whether the system granted it.
#[cfg(not(unix))]
pub(super) fn run_at_once() -> bool {
    ThreadPriority::Max.set_for_current().is_ok()
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
