//! One prediction held against its truth: everything that it was made from, so that it can be explained and gone on from
//! without the recording around it.

use super::cause::{Cause, Evidence};
use super::demo::{Event, OtherPlayer, OwnState};
use super::explain;
use super::hypotheses;
use super::run::{Run, Runner};
use super::state::PlayerState;
use super::usercmd::UserCmd;
use super::verdict::{OriginWire, Verdict, judge, resume};

/// What a prediction is made from, and what there is to judge it by.
#[derive(Clone, Copy, Debug)]
pub struct Given<'a> {
    /// The movement code, its rules and the bodies that it meets.
    pub runner: Runner<'a>,
    /// How the server's origins stand on the wire.
    pub wire: OriginWire,
    /// The state predicted from.
    pub from: PlayerState,
    /// The recorded state that it was reconciled with.
    pub base: OwnState,
    /// The last command before, if any: a server repeats it when too much is lost.
    pub before: Option<UserCmd>,
    /// The commands to run.
    pub commands: &'a [UserCmd],
    /// Other players as they stood at `base`.
    pub players_before: &'a [OtherPlayer],
    /// What the packets after `base` told, up to and with that of `recorded`.
    pub events: &'a [Event],
    /// What the server says of the state after the last command.
    pub recorded: OwnState,
}

/// A prediction and how it came out.
#[derive(Clone, Copy, Debug)]
pub struct Prediction<'a> {
    /// What it was made from.
    pub given: Given<'a>,
    /// Where it led, and what it touched.
    pub run: Run,
    /// How that compares.
    pub verdict: Verdict,
}

impl<'a> Prediction<'a> {
    /// Runs the commands and compares.
    pub fn make(given: Given<'a>) -> Prediction<'a> {
        let run = given.runner.run(&given.from, given.commands);
        let verdict = judge(&run.state, &given.recorded);
        Prediction { given, run, verdict }
    }

    /// Why it missed, and what shows that. Only meant for a miss; it runs the commands many times over.
    pub fn explain(&self) -> (Cause, Evidence) {
        explain::explain(self)
    }

    /// The state to predict from next.
    pub fn resume(&self) -> PlayerState {
        let Given { runner, wire, recorded, .. } = &self.given;
        let mut state = resume(&runner.world, &self.run.state, recorded, *wire);
        state.corpse |= self.verdict == Verdict::Miss && hypotheses::lies_still(self);
        state
    }
}
