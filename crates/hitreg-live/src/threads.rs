//! The threads of a live session. All of them end before the session does.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{Builder, Scope, ScopedJoinHandle};

use super::LiveError;
use super::clock::MonotonicClock;
use super::socket::{ReceivedDatagram, WAITING_DATAGRAMS, read};
use super::transit::{InboundQueue, TransitDatagram};
use hitreg_netcode::wire::DATAGRAM_BYTES_MAX;

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
    let inlet = InboundQueue::new(datagrams, delays);
    let take = move |from, bytes| inlet.take(from, bytes);
    spawn(scope, "socket", move || read(&socket, DATAGRAM_BYTES_MAX, over, take))?;
    Ok(inbox)
}
