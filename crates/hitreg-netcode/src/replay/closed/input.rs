//! The recorded usercmds and heard packets as input of a closed loop.

use super::super::feed::SharedFeed;
use crate::game::Game;
use crate::packet::HeardPacket;
use crate::session::{InputSource, PlayerScreen};
use hitreg_log::units::{Micros, PlayerId};
use hitreg_log::usercmd::Input;

/// The recorded input of a feed.
pub(super) struct FeedInput<'a>(pub(super) SharedFeed<'a>);

impl<G: Game> InputSource<G> for FeedInput<'_> {
    fn next_frame(&mut self, player: PlayerId) -> Option<Micros> {
        self.0.borrow_mut().next_frame(player)
    }

    fn input(&mut self, _at: Micros, screen: &PlayerScreen<'_, G>) -> Input {
        self.0.borrow_mut().take_frame(screen.player).map_or_else(Input::default, |frame| frame.command.input)
    }

    fn looks(&self) -> bool {
        false
    }

    fn next_heard(&mut self, player: PlayerId) -> Option<(Micros, HeardPacket)> {
        self.0.borrow_mut().take_heard(player)
    }

    fn has_more(&self, player: PlayerId) -> bool {
        self.0.borrow().has_more(player)
    }
}
