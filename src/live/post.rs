//! What lies between the sockets: datagrams wait here for as long as a modelled link delays them, and then go out
//! through the socket that they were meant for.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender};
use std::time::Duration;

use super::clock::Clock;
use crate::link::{Link, ModelledLink};
use crate::units::{Micros, PlayerId};

/// Datagrams that may wait for the thread that delays them.
pub(super) const WAITING_POSTS: usize = 8192;

/// One of the two directions of a player's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Direction {
    Up,
    Down,
}

/// Sends datagrams through a socket: at once, or by way of modelled links.
#[derive(Clone, Debug)]
pub(super) struct Post {
    socket: Arc<UdpSocket>,
    delays: Option<SyncSender<Posted>>,
}

/// A datagram on its way.
#[derive(Debug)]
pub(super) struct Posted {
    socket: Arc<UdpSocket>,
    to: SocketAddr,
    bytes: Vec<u8>,
    sent_at: Micros,
    player: PlayerId,
    direction: Direction,
}

impl Post {
    pub(super) fn new(socket: Arc<UdpSocket>, delays: Option<SyncSender<Posted>>) -> Post {
        Post { socket, delays }
    }

    /// Sends a datagram at once. One that the system does not take is lost, as one on the way would be.
    pub(super) fn send(&self, to: SocketAddr, bytes: &[u8]) {
        let _ = self.socket.send_to(bytes, to);
    }

    /// Sends a datagram of a player's connection.
    pub(super) fn send_on(
        &self,
        player: PlayerId,
        direction: Direction,
        sent_at: Micros,
        to: SocketAddr,
        bytes: Vec<u8>,
    ) {
        match &self.delays {
            None => self.send(to, &bytes),
            Some(delays) => {
                let socket = Arc::clone(&self.socket);
                // The other end is gone only when the session is over.
                let _ = delays.send(Posted { socket, to, bytes, sent_at, player, direction });
            }
        }
    }
}

/// The links of one player.
#[derive(Clone, Debug)]
pub(super) struct ModelledLinks {
    pub(super) up: ModelledLink,
    pub(super) down: ModelledLink,
}

/// Delays datagrams until all who post them are gone. What is still on its way then is lost.
pub(super) fn deliver(clock: Clock, mut links: Vec<ModelledLinks>, posts: &Receiver<Posted>) {
    let mut waiting: BinaryHeap<Reverse<(Micros, u64)>> = BinaryHeap::new();
    let mut held: std::collections::BTreeMap<u64, Posted> = std::collections::BTreeMap::new();
    let mut posted = 0;
    loop {
        while let Some(Reverse((due, number))) = waiting.peek().copied() {
            if due > clock.now() {
                break;
            }
            waiting.pop();
            if let Some(post) = held.remove(&number) {
                let _ = post.socket.send_to(&post.bytes, post.to);
            }
        }
        let wait = waiting.peek().map_or(Duration::from_secs(1), |Reverse((due, _))| clock.until(*due));
        let post = match posts.recv_timeout(wait) {
            Ok(post) => post,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let Some(links) = links.get_mut(usize::from(post.player.0)) else { continue };
        let link = match post.direction {
            Direction::Up => &mut links.up,
            Direction::Down => &mut links.down,
        };
        let fate = link.send(post.sent_at, post.bytes.len().min(usize::from(u16::MAX)) as u16);
        let copy = |post: &Posted| Posted { socket: Arc::clone(&post.socket), bytes: post.bytes.clone(), ..*post };
        for due in fate.arrivals() {
            waiting.push(Reverse((due, posted)));
            held.insert(posted, copy(&post));
            posted += 1;
        }
    }
}
