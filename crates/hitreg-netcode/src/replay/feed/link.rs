//! A recorded link that reads its log through a feed.

use std::rc::Rc;

use super::SharedFeed;
use crate::link::{Fate, Link};
use crate::protocol::Direction;
use hitreg_log::units::Micros;

/// A recorded link that looks packets up in a feed.
pub(in crate::replay) struct FeedLink<'a> {
    feed: SharedFeed<'a>,
    player: usize,
    direction: Direction,
}

impl<'a> FeedLink<'a> {
    /// A direction of a player's connection.
    pub(in crate::replay) fn of(feed: &SharedFeed<'a>, player: usize, direction: Direction) -> FeedLink<'a> {
        FeedLink { feed: Rc::clone(feed), player, direction }
    }
}

impl Link for FeedLink<'_> {
    fn send(&mut self, at: Micros, _bytes: u16) -> Fate {
        self.feed.borrow_mut().send(self.player, self.direction, at)
    }
}
