//! Live sessions in memory, for tests over real sockets.
#![expect(clippy::disallowed_types, reason = "opening a socket shows whether the machine has sockets")]

use std::net::UdpSocket;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use hitreg::arena::{Arena, ArenaRules};
use hitreg::live::{LiveReport, LiveSink, SessionRates, live_header, record_live};
use hitreg::record::{Record, Session};
use hitreg::session::scenario::Scenario;

/// Keeps a session in memory.
pub(crate) struct InMemory {
    pub(crate) session: Session,
}

impl LiveSink for InMemory {
    fn record(&mut self, record: Record) -> ControlFlow<()> {
        self.session.push(record).expect("the session's own records");
        ControlFlow::Continue(())
    }

    fn every_second(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }

    fn show(&mut self, _: &SessionRates) {}
}

/// Whether this machine has sockets. Notes a skipped test if not.
pub(crate) fn has_sockets() -> bool {
    let has = UdpSocket::bind("127.0.0.1:0").is_ok();
    if !has {
        crate::note::skipped("no UDP socket is to be had here");
    }
    has
}

/// Runs a scenario live.
pub(crate) fn record(scenario: &Scenario) -> (Session, LiveReport) {
    let rules = Arc::new(ArenaRules::default());
    let header = live_header::<Arena>(scenario, &rules).expect("a good scenario");
    let mut sink = InMemory { session: Session::new(header) };
    let report = record_live::<Arena>(scenario, &rules, 0, &AtomicBool::new(false), &mut sink).expect("a session");
    (sink.session, report)
}
