//! The recording of a session.

use std::collections::VecDeque;
use std::fmt;

use ggrs::{Config, Frame, GgrsRequest, InputStatus};
use hitreg_log::record::{Execution, ExecutionRecord, OwnValue, Presence, PresenceRecord, Record, TickRecord};
use hitreg_log::recorder::{FinishError, PushError, Recorder, RecordingSummary, Stream};
use hitreg_log::units::{CommandSeq, Micros, PlayerId, Tick};
use hitreg_log::usercmd::{Input, Usercmd};

use crate::game::ROLLBACKS_KIND;
use crate::{EntityFields, Fields, RecordedGame, RecordedSession};

/// Handles the requests of one session from its first frame on, and records its final frames.
///
/// A frame is final when the session can no longer load an earlier state. The recorder holds the frames until then, at
/// most as many as the session predicts.
pub struct GgrsRecorder<G: RecordedGame> {
    recorder: Recorder,
    stream: Stream,
    hz: u32,
    /// The number of frames that are pushed.
    pushed: Frame,
    /// The frames after these that are simulated.
    held: VecDeque<HeldFrame<G>>,
    /// The inputs of frames that a rollback removed and that are not simulated again yet.
    replaced: VecDeque<FrameInputs<G>>,
    rollbacks: VecDeque<Rollback>,
    /// The newest confirmed frame at the last call, and at the call before. Inputs may have arrived since the session
    /// made the requests of a call, and those of the next call correct the frames of these inputs.
    confirmed: Frame,
    confirmed_before: Frame,
    /// The hash of the current state, if it is known.
    hash: Option<u64>,
    /// For each player whether a presence record says that the player is there.
    present: Vec<bool>,
}

type FrameInputs<G> = Vec<(<<G as RecordedGame>::Config as Config>::Input, InputStatus)>;

struct HeldFrame<G: RecordedGame> {
    inputs: FrameInputs<G>,
    hash: u64,
    bodies: Vec<EntityFields>,
}

/// A rollback whose tick is not pushed yet.
#[derive(Debug)]
struct Rollback {
    /// The frame that came next when the session rolled back.
    during: Frame,
    first: Frame,
    wrong_inputs: u32,
    player: Option<u32>,
}

/// Why [`GgrsRecorder::handle`] could not record.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Requests did not reach the recorder, or came from another session.
    #[error(
        "the session is at frame {session}, and the recorder at frame {recorder}: pass all requests of one session to `handle`"
    )]
    OutOfStep {
        /// The session's frame.
        session: Frame,
        /// The recorder's frame.
        recorder: Frame,
    },
    /// The session loads a state that the recorder did not save.
    #[error("the state of frame {frame} was not saved: pass all requests of one session to `handle`")]
    NoState {
        /// The frame.
        frame: Frame,
    },
    /// A record was refused. The game can go on.
    #[error(transparent)]
    Push(#[from] PushError),
}

impl<G: RecordedGame> GgrsRecorder<G> {
    /// Starts to record a session. `recorder` has the description of [`describe`](crate::describe), and `hz` is the
    /// frame rate that it declares.
    pub fn new(recorder: Recorder, hz: u32) -> GgrsRecorder<G> {
        GgrsRecorder {
            stream: recorder.stream(),
            recorder,
            hz: hz.max(1),
            pushed: 0,
            held: VecDeque::new(),
            replaced: VecDeque::new(),
            rollbacks: VecDeque::new(),
            confirmed: -1,
            confirmed_before: -1,
            hash: None,
            present: Vec::new(),
        }
    }

    /// Fulfils the requests that `session.advance_frame()` returned: saves, loads and advances the game. Then it records
    /// the frames that became final.
    ///
    /// # Errors
    /// When the recorder missed requests, or a record was refused. After a refused record all requests are nevertheless
    /// fulfilled.
    pub fn handle(
        &mut self,
        game: &mut G,
        session: &impl RecordedSession,
        requests: Vec<GgrsRequest<G::Config>>,
    ) -> Result<(), RecordError> {
        let mut in_step = Ok(());
        for request in requests {
            match request {
                GgrsRequest::SaveGameState { cell, frame } => {
                    in_step = in_step.and(self.check(frame));
                    let hash = *self.hash.get_or_insert_with(|| game.hash());
                    cell.save(frame, Some(game.save()), Some(hash.into()));
                }
                GgrsRequest::LoadGameState { cell, frame } => {
                    let state = cell.data().ok_or(RecordError::NoState { frame })?;
                    game.load(&state);
                    self.hash = None;
                    in_step = in_step.and(self.roll_back(frame));
                }
                GgrsRequest::AdvanceFrame { inputs } => {
                    game.advance(&inputs);
                    let hash = game.hash();
                    self.hash = Some(hash);
                    self.count_wrong_inputs(&inputs);
                    self.held.push_back(HeldFrame { inputs, hash, bodies: game.bodies() });
                }
            }
        }
        let next = session.next_frame();
        if let Err(error) = in_step.and(self.check(next)) {
            // What is held belongs to other frames than the session's.
            self.held.clear();
            return Err(error);
        }
        let oldest_state = next - Frame::try_from(session.longest_rollback()).unwrap_or(next);
        let recorded = self.push_before(oldest_state);
        self.confirmed_before = std::mem::replace(&mut self.confirmed, session.newest_confirmed());
        Ok(recorded?)
    }

    /// Returns the recorder, for its counters and [`Recorder::save`].
    pub fn recorder(&self) -> &Recorder {
        &self.recorder
    }

    /// Records the confirmed frames that are not recorded yet, and ends the log.
    ///
    /// # Errors
    /// The first write error.
    pub fn finish(mut self) -> Result<RecordingSummary, FinishError> {
        // The summary counts lost records, and `Recorder::finish` returns the reason of a failed recording.
        let _ = self.push_before(self.confirmed_before + 1);
        drop(self.stream);
        self.recorder.finish()
    }

    /// The frame that the game simulates next.
    fn next(&self) -> Frame {
        self.pushed + self.held.len() as Frame
    }

    fn check(&self, frame: Frame) -> Result<(), RecordError> {
        if frame == self.next() {
            return Ok(());
        }
        Err(RecordError::OutOfStep { session: frame, recorder: self.next() })
    }

    /// Removes the frames from `frame` on.
    fn roll_back(&mut self, frame: Frame) -> Result<(), RecordError> {
        let during = self.next();
        let kept = frame.checked_sub(self.pushed).and_then(|kept| usize::try_from(kept).ok());
        let Some(kept) = kept.filter(|kept| *kept < self.held.len()) else { return self.check(frame) };
        self.replaced = self.held.split_off(kept).into_iter().map(|held| held.inputs).collect();
        self.rollbacks.push_back(Rollback { during, first: frame, wrong_inputs: 0, player: None });
        Ok(())
    }

    /// Compares the inputs of a frame that is simulated again with those of the last time.
    fn count_wrong_inputs(&mut self, inputs: &FrameInputs<G>) {
        let (Some(before), Some(rollback)) = (self.replaced.pop_front(), self.rollbacks.back_mut()) else { return };
        for (player, (before, now)) in (0..).zip(before.iter().zip(inputs)) {
            if before.0 != now.0 || is_disconnected(before.1) != is_disconnected(now.1) {
                rollback.wrong_inputs += 1;
                rollback.player.get_or_insert(player);
            }
        }
    }

    /// Pushes the held frames before `end`.
    fn push_before(&mut self, end: Frame) -> Result<(), PushError> {
        let mut result = Ok(());
        while self.pushed < end
            && let Some(held) = self.held.pop_front()
        {
            let pushed = self.push(&held);
            result = result.and(pushed);
            self.pushed += 1;
        }
        result
    }

    /// Pushes the frame after the pushed ones.
    fn push(&mut self, held: &HeldFrame<G>) -> Result<(), PushError> {
        let number = self.pushed as u32 + 1;
        let (tick, at) = (Tick(number), Micros(i64::from(number) * 1_000_000 / i64::from(self.hz)));
        let stream = &mut self.stream;
        while let Some(rollback) = self.rollbacks.pop_front_if(|rollback| rollback.during <= self.pushed) {
            let Rollback { during, first, wrong_inputs, player } = rollback;
            let row = [(first + 1) as u32, (during - first) as u32, wrong_inputs].map(OwnValue::from);
            stream.row(ROLLBACKS_KIND, player.unwrap_or(0), at, &row)?;
        }
        self.present.resize(held.inputs.len(), false);
        for (number, (input, status)) in (0..).zip(&held.inputs) {
            let (player, is_present) = (PlayerId(number), &mut self.present[usize::from(number)]);
            if *is_present == is_disconnected(*status) {
                *is_present = !*is_present;
                let change = if *is_present { Presence::Joined } else { Presence::Left };
                stream.push(Record::Presence(player, PresenceRecord { tick, at, change }))?;
            }
            let command = CommandSeq(tick.0);
            let msec = u8::try_from(1_000 / self.hz).unwrap_or(u8::MAX);
            let usercmd = Usercmd { seq: command, input: Input { msec, ..Input::default() }, ..Usercmd::default() };
            let mut values = input.values();
            values.push(is_disconnected(*status).into());
            stream.usercmd_with(player, at, usercmd, &values)?;
            stream.push(Record::Executed(player, ExecutionRecord { command, tick, how: Execution::Run }))?;
        }
        stream.tick_with_bodies(TickRecord { tick, at, hash: Some(held.hash) }, &held.bodies)
    }
}

impl<G: RecordedGame> fmt::Debug for GgrsRecorder<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (pushed, held) = (self.pushed, self.held.len());
        f.debug_struct("GgrsRecorder").field("pushed", &pushed).field("held", &held).finish_non_exhaustive()
    }
}

fn is_disconnected(status: InputStatus) -> bool {
    status == InputStatus::Disconnected
}
