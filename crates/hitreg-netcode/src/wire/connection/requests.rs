//! A client's requests: sent again until a `REQUEST_ACK` answers them, and acted on once, in order.

use std::collections::VecDeque;

use crate::wire::{Request, What, Wrapping16};
use hitreg_log::units::Micros;

/// Without an answer a request is sent again after so long.
const AGAIN_AFTER: Micros = Micros::from_ms(250);
/// How many requests may wait for their answers.
pub const REQUESTS_MAX: usize = 64;

/// A client has asked for more than the server answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{REQUESTS_MAX} requests wait for the server's answers already")]
pub struct TooManyRequests;

/// The client's end: what is not answered yet, one on its way at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct Asking {
    next: Wrapping16,
    waiting: VecDeque<Request>,
    /// When the first was sent last.
    sent_at: Option<Micros>,
}

impl Asking {
    pub(super) fn ask(&mut self, what: What) -> Result<Wrapping16, TooManyRequests> {
        if self.waiting.len() >= REQUESTS_MAX {
            return Err(TooManyRequests);
        }
        let number = self.next;
        self.next = number.later(1);
        self.waiting.push_back(Request { number, what });
        Ok(number)
    }

    /// The request that is to be sent now.
    pub(super) fn poll(&mut self, now: Micros) -> Option<&Request> {
        let first = self.waiting.front()?;
        if self.sent_at.is_some_and(|sent| now - sent < AGAIN_AFTER) {
            return None;
        }
        self.sent_at = Some(now);
        Some(first)
    }

    pub(super) fn handle_answer(&mut self, number: Wrapping16) {
        if self.waiting.pop_front_if(|first| first.number == number).is_some() {
            self.sent_at = None;
        }
    }
}

/// The server's end: which request of this client is the next to be acted on. A client asks for one at a time, so whatever
/// else comes is a repeat.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Answering {
    next: Wrapping16,
}

impl Answering {
    pub(super) fn is_new(&mut self, number: Wrapping16) -> bool {
        let is_new = number == self.next;
        if is_new {
            self.next = number.later(1);
        }
        is_new
    }
}
