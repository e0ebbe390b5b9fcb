//! A UDP socket on the loopback interface that loses and delays datagrams.

use std::net::SocketAddr;

use hitreg_ggrs::ggrs::{Message, NonBlockingSocket};
use hitreg_ggrs::hitreg_log::rng::Rng;
use hitreg_ggrs::hitreg_log::units::Seed;

/// Loses one datagram in sixteen, and returns each of the others 9 to 20 calls late. It counts calls instead of
/// milliseconds, so the speed of the machine does not matter.
pub(crate) struct LossySocket {
    #[expect(clippy::disallowed_types, reason = "the tests exchange datagrams")]
    socket: std::net::UdpSocket,
    random: Rng,
    calls: u64,
    /// Datagrams with the call that returns them.
    late: Vec<(u64, SocketAddr, Message)>,
}

impl LossySocket {
    pub(crate) fn new(seed: u64) -> LossySocket {
        #[expect(clippy::disallowed_types, reason = "the tests exchange datagrams")]
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.set_nonblocking(true).unwrap();
        LossySocket { socket, random: Rng::new(Seed(seed), 0), calls: 0, late: Vec::new() }
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.socket.local_addr().unwrap()
    }
}

impl NonBlockingSocket<SocketAddr> for LossySocket {
    fn send_to(&mut self, message: &Message, to: &SocketAddr) {
        // A full buffer or a closed peer is one more lost datagram.
        let _ = self.socket.send_to(&bincode::serialize(message).unwrap(), to);
    }

    fn receive_all_messages(&mut self) -> Vec<(SocketAddr, Message)> {
        self.calls += 1;
        let mut datagram = [0; 4096];
        while let Ok((size, from)) = self.socket.recv_from(&mut datagram) {
            let due = self.calls + 9 + self.random.below(12);
            if !self.random.chance(1.0 / 16.0) {
                self.late.push((due, from, bincode::deserialize(&datagram[..size]).unwrap()));
            }
        }
        let is_due = |entry: &mut (u64, SocketAddr, Message)| entry.0 <= self.calls;
        self.late.extract_if(.., is_due).map(|(_, from, message)| (from, message)).collect()
    }
}
