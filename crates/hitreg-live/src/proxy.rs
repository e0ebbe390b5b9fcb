//! A recording proxy between real clients and a real server. It forwards datagrams unchanged, immediately or after the
//! delay of a modelled link, and records their contents.
//!
//! One thread only forwards datagrams. It hands a copy of each to the recording thread and never waits for it.
//! Datagrams that the recording thread is too slow for are forwarded unrecorded, and counted.

mod forward;

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};

use serde::Serialize;

use super::LiveError;
use super::clock::MonotonicClock;
use super::main_loop::{SAVE_EVERY, SHOW_EVERY};
use super::report::{LatenessSummary, LiveSink, SessionRates};
use super::socket::{LOOK_UP_EVERY, open};
use super::threads::{spawn, wait_for};
use forward::{ForwardedDatagram, Forwarder};
use hitreg_log::record::{EventTime, Record};
use hitreg_log::units::{Micros, Seed};
use hitreg_netcode::link::LinkModel;
use hitreg_netcode::protocol::{Direction, HeardCounts, PassingDatagram, SessionListener};

/// The most datagrams that may wait for the recording thread.
const WAITING: usize = 1 << 15;

/// The parameters of a proxy.
#[derive(Clone, Debug)]
pub struct ProxyOptions {
    /// The address on which clients connect.
    pub listen: SocketAddr,
    /// The address of the server.
    pub upstream: SocketAddr,
    /// The modelled link of every client, for each direction.
    pub link: LinkModel,
    /// The random seed.
    pub seed: Seed,
    /// The recording time, starting when the session is identified; `None` records until the proxy is stopped.
    pub length: Option<Micros>,
}

/// The final report of a proxied session.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ProxyReport {
    /// The session as the listener decoded it.
    #[serde(flatten)]
    pub heard: HeardCounts,
    /// The number of client addresses.
    pub clients: u64,
    /// Traffic from the clients.
    pub up: ForwardedTraffic,
    /// Traffic from the server.
    pub down: ForwardedTraffic,
    /// Datagrams that the modelled link dropped.
    pub lost_on_purpose: u64,
    /// Datagrams that were forwarded unrecorded, because the recording thread was too slow.
    pub unrecorded: u64,
    /// Datagrams that were not forwarded, because there were too many clients or delayed datagrams.
    pub refused: u64,
    /// Whether the forwarding threads have real-time priority.
    pub at_once: bool,
    /// How much later than due the datagrams were forwarded.
    pub added: Option<LatenessSummary>,
    /// What the log lacks, and why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// The traffic of all connections in one direction, through the proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ForwardedTraffic {
    /// The number of datagrams that came.
    pub datagrams: u64,
    /// Their payload in bytes. UDP and IP add 28 bytes to each.
    pub bytes: u64,
    /// The number of datagrams that were passed on.
    pub forwarded: u64,
}

impl ProxyReport {
    /// Returns one direction of the traffic.
    fn traffic(&mut self, direction: Direction) -> &mut ForwardedTraffic {
        match direction {
            Direction::Up => &mut self.up,
            Direction::Down => &mut self.down,
        }
    }
}

/// Forwards datagrams until `stop` is set or the time is over, and records what `listener` decodes from them.
///
/// # Errors
/// When a socket or a thread is not available, or the session does not match the request.
pub fn proxy(
    options: &ProxyOptions,
    listener: &mut dyn SessionListener,
    stop: &AtomicBool,
    sink: &mut dyn LiveSink,
) -> Result<ProxyReport, LiveError> {
    options.link.check().map_err(|error| LiveError::Link(error.to_string()))?;
    let front = Arc::new(open(options.listen)?);
    sink.listening(front.local_addr().map_err(LiveError::Socket)?);
    let clock = MonotonicClock::start();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (seen, to_hear) = sync_channel(WAITING);
        let forwarding = Forwarder::new(clock, &front, options, &over, seen);
        let thread = spawn(scope, "forward", || forwarding.run(scope))?;
        let mut hearing = ProxyRecorder { clock, listener, sink, began: None, ahead: Vec::new() };
        let heard = hearing.run(&to_hear, options.length, stop);
        over.store(true, Ordering::Relaxed);
        // Datagrams that still wait for decoding belong to the session.
        let forwarded = wait_for(thread)?;
        heard?;
        hearing.rest(&to_hear);
        Ok(ProxyReport { heard: hearing.listener.heard(), warning: hearing.listener.warning(), ..forwarded })
    })
}

/// Decodes forwarded datagrams into records.
struct ProxyRecorder<'a> {
    clock: MonotonicClock,
    listener: &'a mut dyn SessionListener,
    sink: &'a mut dyn LiveSink,
    /// The time at which the session was identified.
    began: Option<Micros>,
    /// Records of datagrams that are still in transit, sorted by time.
    ahead: Vec<(Micros, Record)>,
}

impl ProxyRecorder<'_> {
    fn run(
        &mut self,
        to_hear: &Receiver<ForwardedDatagram>,
        length: Option<Micros>,
        stop: &AtomicBool,
    ) -> Result<(), LiveError> {
        let (mut show_at, mut save_at) = (Micros::ZERO, SAVE_EVERY);
        let mut traffic = (0_u64, 0_u64);
        let mut kept = ControlFlow::Continue(());
        while kept.is_continue() && !stop.load(Ordering::Relaxed) {
            match to_hear.recv_timeout(LOOK_UP_EVERY) {
                Ok(seen) => {
                    traffic = (traffic.0 + 1, traffic.1 + seen.bytes.len() as u64);
                    kept = self.handle_datagram(&seen)?;
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
            let now = self.clock.now();
            if now >= show_at {
                show_at = now + SHOW_EVERY;
                self.sink.show(&self.rates(now, traffic));
            }
            if now >= save_at && kept.is_continue() {
                save_at = now + SAVE_EVERY;
                kept = self.sink.every_second();
            }
            if let (Some(began), Some(length)) = (self.began, length)
                && now - began >= length
            {
                return Ok(());
            }
        }
        Ok(())
    }

    fn rates(&self, now: Micros, (datagrams, bytes): (u64, u64)) -> SessionRates {
        let heard = self.listener.heard();
        let seconds = self.began.map_or(now, |began| now - began).as_s_f64().max(0.1);
        SessionRates {
            at: self.began.map(|began| now - began),
            ready: heard.players,
            places: 0,
            usercmds_per_s: heard.usercmds as f64 / seconds,
            ticks_per_s: 0.0,
            datagrams_per_s: datagrams as f64 / seconds,
            bytes_per_s: bytes as f64 / seconds,
        }
    }

    fn handle_datagram(&mut self, seen: &ForwardedDatagram) -> Result<ControlFlow<()>, LiveError> {
        let ForwardedDatagram { at, client, direction, bytes, released } = seen;
        let passing = PassingDatagram { at: *at, client: *client, direction: *direction, bytes, released: *released };
        let mut made = Vec::new();
        self.listener.hear(&passing, &mut |record| made.push(record));
        if let Some(header) = self.listener.header() {
            let header = header.map_err(LiveError::Session)?;
            self.began = Some(*at);
            if self.sink.begin(&header).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        let due = self.ahead.partition_point(|(when, _)| when <= at);
        for (_, record) in self.ahead.drain(..due) {
            if self.sink.record(&record).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        for record in made {
            match record.when() {
                EventTime::At(when) if when > *at => {
                    let place = self.ahead.partition_point(|(other, _)| *other <= when);
                    self.ahead.insert(place, (when, record));
                }
                EventTime::At(_) | EventTime::In(_) => {
                    if self.sink.record(&record).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Records the datagrams that were forwarded before the end, including those still in transit.
    fn rest(&mut self, to_hear: &Receiver<ForwardedDatagram>) {
        while let Ok(seen) = to_hear.try_recv() {
            // The sink keeps errors of the log. Errors of the session were reported when it began.
            if !matches!(self.handle_datagram(&seen), Ok(ControlFlow::Continue(()))) {
                return;
            }
        }
        let ProxyRecorder { listener, sink, ahead, began, .. } = self;
        if began.is_none() {
            return;
        }
        listener.finish(&mut |record| {
            let _ = sink.record(&record);
        });
        for (_, record) in ahead.drain(..) {
            let _ = sink.record(&record);
        }
    }
}
