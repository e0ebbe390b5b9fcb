//! The recorded usercmds and heard packets as input of a closed loop.

use super::super::feed::SharedFeed;
use crate::game::Game;
use crate::packet::HeardPacket;
use crate::session::{InputSource, PlayerScreen};
use hitreg_log::record::Session;
use hitreg_log::units::{Micros, PlayerId};
use hitreg_log::usercmd::Input;

/// The recorded input of a session in memory.
pub(super) struct RecordedInput<'a> {
    session: &'a Session,
    /// The index of each player's next frame. For a player without frames: of its next heard packet.
    next: Vec<usize>,
}

impl RecordedInput<'_> {
    pub(super) fn of(session: &Session) -> RecordedInput<'_> {
        RecordedInput { session, next: vec![0; session.players.len()] }
    }
}

impl<G: Game> InputSource<G> for RecordedInput<'_> {
    fn next_frame(&mut self, player: PlayerId) -> Option<Micros> {
        let index = usize::from(player.0);
        self.session.players[index].frames.get(self.next[index]).map(|frame| frame.at)
    }

    fn input(&mut self, _at: Micros, screen: &PlayerScreen<'_, G>) -> Input {
        let index = usize::from(screen.player.0);
        let frame = &self.session.players[index].frames[self.next[index]];
        self.next[index] += 1;
        frame.command.input
    }

    fn looks(&self) -> bool {
        false
    }

    fn next_heard(&mut self, player: PlayerId) -> Option<(Micros, HeardPacket)> {
        let index = usize::from(player.0);
        let records = &self.session.players[index];
        let heard = records.heard.get(self.next[index]).filter(|_| records.is_heard_only())?;
        self.next[index] += 1;
        Some((heard.at, HeardPacket::of(heard)))
    }
}

/// The recorded input of a log that is read during the replay.
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
