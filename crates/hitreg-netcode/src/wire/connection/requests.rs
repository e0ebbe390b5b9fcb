//! A client's requests. The client repeats each one until a `REQUEST_ACK` answers it; the server acts on each once, in
//! order.

use std::collections::VecDeque;

use crate::state::{StateError, StateReader, StateValue, StateWriter, value};
use crate::wire::{ClientRequest, RequestKind, Wrapping16, decode_request, encode_request};
use hitreg_log::units::Micros;

/// The client repeats an unanswered request after this time.
const AGAIN_AFTER: Micros = Micros::from_ms(250);
/// The most requests that may wait for an answer.
pub const REQUESTS_MAX: usize = 64;

/// Too many of the client's requests are unanswered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{REQUESTS_MAX} requests wait for the server's answers already")]
pub struct TooManyRequests;

/// The client side: the unanswered requests. Only the first of them is sent at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct RequestQueue {
    next: Wrapping16,
    waiting: VecDeque<ClientRequest>,
    /// When the first request was last sent.
    sent_at: Option<Micros>,
}

impl RequestQueue {
    fn is_valid(&self) -> bool {
        self.waiting.len() <= REQUESTS_MAX
    }

    pub(super) fn ask(&mut self, what: RequestKind) -> Result<Wrapping16, TooManyRequests> {
        if self.waiting.len() >= REQUESTS_MAX {
            return Err(TooManyRequests);
        }
        let number = self.next;
        self.next = number.later(1);
        self.waiting.push_back(ClientRequest { number, what });
        Ok(number)
    }

    /// Returns the request to send now.
    pub(super) fn poll(&mut self, now: Micros) -> Option<&ClientRequest> {
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

/// The server side: the number of the client's next request. A client sends one request at a time, so any other number
/// is a repeat.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RequestReceiver {
    next: Wrapping16,
}

impl RequestReceiver {
    pub(super) fn is_new(&mut self, number: Wrapping16) -> bool {
        let is_new = number == self.next;
        if is_new {
            self.next = number.later(1);
        }
        is_new
    }
}

value!(RequestReceiver { next });
value!(RequestQueue { next, waiting, sent_at } if is_valid);

impl StateValue for ClientRequest {
    fn put(&self, to: &mut StateWriter) {
        encode_request(self).put(to);
    }

    fn get(from: &mut StateReader) -> Result<Self, StateError> {
        decode_request(&Vec::get(from)?).map_err(|_| StateError::Invalid("ClientRequest"))
    }
}
