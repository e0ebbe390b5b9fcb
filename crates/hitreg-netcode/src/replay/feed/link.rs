//! A recorded link that reads its log through a feed.

use std::rc::Rc;

use super::{FeedDirection, SharedFeed};
use crate::link::{Fate, Link};
use hitreg_log::units::Micros;

/// A recorded link that looks packets up in a feed.
pub(in crate::replay) struct FeedLink<'a> {
    feed: SharedFeed<'a>,
    player: usize,
    direction: FeedDirection,
}

impl<'a> FeedLink<'a> {
    /// The direction from a client to the server.
    pub(in crate::replay) fn up(feed: &SharedFeed<'a>, player: usize) -> FeedLink<'a> {
        FeedLink { feed: Rc::clone(feed), player, direction: FeedDirection::Up }
    }

    /// The direction from the server to a client.
    pub(in crate::replay) fn down(feed: &SharedFeed<'a>, player: usize) -> FeedLink<'a> {
        FeedLink { feed: Rc::clone(feed), player, direction: FeedDirection::Down }
    }
}

impl Link for FeedLink<'_> {
    fn send(&mut self, at: Micros, _bytes: u16) -> Fate {
        self.feed.borrow_mut().send(self.player, self.direction, at)
    }
}
