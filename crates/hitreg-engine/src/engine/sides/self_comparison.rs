//! Compares the contents of a log with this build's replay of it.

use super::side_trace::check_memory;
use super::{ComparisonSource, ReplaySpec, SideTrace, Traces};
use crate::build::BuildRunner;
use crate::engine::{Engine, EngineError};
use hitreg_analysis::bisect::{PredictionTraces, predicted};
use hitreg_log::record::LogContents;
use hitreg_log::recorded::recorded;

/// Compares a log with its replay. A server's log is compared by its states, a client's log by the server's acks.
pub(super) fn against_itself(
    engine: &Engine<'_>,
    runner: &BuildRunner,
    source: &ComparisonSource<'_>,
) -> Result<Traces<SideTrace>, EngineError> {
    let Some(log) = source.log() else { return Err(EngineError::SingleTrace) };
    let (path, plain) = (source.path, ReplaySpec::default());
    let of_build = plain.name(source);
    // What the log says takes about as much as the log.
    let replayed = log.survey.trace_bytes(plain.tables);
    check_memory(path, log.session_bytes().saturating_mul(2).saturating_add(replayed))?;
    if log.header.holds() == LogContents::Clients {
        let replayed = plain.trace(engine, runner, source, "b")?;
        let made = match replayed {
            Ok(replayed) => Ok(predicted(&*replayed.trace()?)),
            Err(missing) => Err(missing),
        };
        let of_build = made.as_ref().map_or(of_build.clone(), |made| format!("{of_build}: {}", tally(made)));
        let names = [format!("{}, the server's states", path.display()), of_build];
        return Ok(Traces {
            names,
            made: made.map(|made| [made.said, made.predicted].map(SideTrace::Memory)),
            overlap_only: true,
        });
    }
    let no_states = |source| EngineError::NoStates { path: path.to_owned(), source };
    let says = recorded(&log.session()?).map_err(no_states)?;
    let names = [format!("{}, as recorded", path.display()), of_build];
    let replayed = plain.trace(engine, runner, source, "b")?;
    Ok(Traces { names, made: replayed.map(|replayed| [SideTrace::Memory(says), replayed]), overlap_only: true })
}

fn tally(made: &PredictionTraces) -> String {
    let PredictionTraces { checked, misses, .. } = made;
    match made.misses - made.explained {
        _ if made.misses == 0 => format!("{checked} acks, no corrections"),
        0 => format!("{checked} acks, {misses} corrections, each with a cause"),
        without => format!("{checked} acks, {misses} corrections, {without} without a cause"),
    }
}
