//! The usercmd window in a client's keyframe.

use std::collections::VecDeque;

use super::{PredictedUsercmd, REMEMBERED, Window};
use crate::game::Game;
use crate::state::{Restorer, StateError, StateValue, StateWriter};
use hitreg_log::units::{CommandSeq, Micros};
use hitreg_log::usercmd::Usercmd;

impl<G: Game> Window<G> {
    /// Saves the window. Usercmds before the acked one are needed only for repeats in packets.
    pub(in crate::client) fn save(&self, to: &mut StateWriter<'_, G::Body>, acked: CommandSeq) {
        let Window {
            mode: _,
            push: _,
            fields: _,
            among: _,
            lost_input,
            base,
            base_frame,
            looked,
            base_command,
            entries,
            last_seq,
            valid,
            first_runs,
            ran_for_correction,
            cut,
            recent,
        } = self;
        let kept = recent.iter().rev().take_while(|(command, _)| command.seq >= acked).count();
        let kept = kept.max(entries.len()).max(lost_input.backups + 1).min(recent.len());
        to.number((recent.len() - kept) as u64);
        let recent: Vec<(Usercmd, Micros)> = recent.range(recent.len() - kept..).cloned().collect();
        recent.put(to);
        base_frame.put(to);
        if let Some(known) = base_frame.as_ref().and_then(|frame| frame.get(to.player().entity())) {
            to.near(known);
        }
        base.put(to);
        looked.save(to);
        base_command.put(to);
        last_seq.put(to);
        (*valid, *first_runs, *ran_for_correction).put(to);
        cut.put(to);
        to.number(entries.len() as u64);
        for PredictedUsercmd { command, after, touches, effects } in entries {
            command.put(to);
            after.put(to);
            touches.put(to);
            effects.put(to);
        }
    }

    pub(in crate::client) fn restore(&mut self, from: &mut Restorer<'_, G::Body>) -> Result<(), StateError> {
        let forgotten = from.number()?;
        let mut recent: VecDeque<(Usercmd, Micros)> = StateValue::<G::Body>::get(from)?;
        let one_by_one = recent.iter().zip(recent.iter().skip(1)).all(|(a, b)| a.0.seq.next() == b.0.seq);
        if !one_by_one || forgotten > (REMEMBERED - recent.len().min(REMEMBERED)) as u64 {
            return Err(StateError::Value { what: "how many usercmds are remembered", found: forgotten });
        }
        // Dropped usercmds still count: the oldest one makes room for a new one.
        for _ in 0..forgotten {
            let Some((command, at)) = recent.front().cloned() else { break };
            recent.push_front((Usercmd { seq: CommandSeq(command.seq.0.saturating_sub(1)), ..command }, at));
        }
        self.recent = recent;
        self.base_frame = StateValue::<G::Body>::get(from)?;
        if let Some(known) = self.base_frame.as_ref().and_then(|frame| frame.get(from.player().entity())) {
            from.near(known);
        }
        self.base = StateValue::<G::Body>::get(from)?;
        self.looked.restore(from)?;
        (self.base_command, self.last_seq) = StateValue::<G::Body>::get(from)?;
        (self.valid, self.first_runs, self.ran_for_correction) = StateValue::<G::Body>::get(from)?;
        self.cut = StateValue::<G::Body>::get(from)?;
        let count = from.count(size_of::<PredictedUsercmd<G::Body>>())?;
        let entry = |_| -> Result<PredictedUsercmd<G::Body>, StateError> {
            let (command, after) = StateValue::<G::Body>::get(from)?;
            let (touches, effects) = StateValue::<G::Body>::get(from)?;
            Ok(PredictedUsercmd { command, after, touches, effects })
        };
        self.entries = (0..count).map(entry).collect::<Result<_, _>>()?;
        if self.valid > self.entries.len() || self.entries.len() > REMEMBERED {
            return Err(StateError::Value { what: "how many usercmds are predicted", found: self.valid as u64 });
        }
        Ok(())
    }
}
