//! Verifying a log: replay it more than once with different numbers of threads, hold the results against each other,
//! against the hashes in the log and against the golden. A check that exercised nothing does not pass.

use serde::Serialize;

use crate::golden;
use crate::replay::{ReplayError, Replayed};
use crate::summary::{Exercised, Summary};
use crate::trace::Digest;

/// What a verification found.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// The judgement.
    pub verdict: Verdict,
    /// The digest of the first replay; `None` when nothing could be replayed.
    pub digest: Option<Digest>,
    /// What was exercised.
    pub exercised: Exercised,
    /// Recorded tick hashes that were compared.
    pub hashes_compared: u64,
    /// Rollbacks that were checked.
    pub rollbacks: u32,
    /// Whether there was a golden to compare with.
    pub golden_compared: bool,
    /// The reason of any verdict but `same`, and what differs.
    pub detail: Option<String>,
    /// The golden as this build would write it, for `--accept`.
    pub golden: Option<String>,
}

/// The judgement on one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All that could be compared is the same, and something was.
    Same,
    /// It cannot be judged.
    Untestable,
    /// Something differs.
    Differs,
    /// The log cannot be read.
    Broken,
}

/// The numbers of threads that each log is replayed with.
pub const THREADS: [usize; 2] = [1, 2];

/// Judges what the replays of one log came to. `replays` holds one result for each of [`THREADS`]; `golden` is the text of
/// the accepted golden, if there is one.
pub fn judge(replays: Result<Vec<Replayed>, ReplayError>, golden: Option<&str>) -> Verified {
    let replays = match replays {
        Ok(replays) => replays,
        Err(error) => return Verified::without_replay(Verdict::Untestable, error.to_string()),
    };
    let Some(first) = replays.first() else {
        return Verified::without_replay(Verdict::Untestable, "it was not replayed".to_owned());
    };
    let summary = Summary::of(&first.trace);
    let text = golden::golden(&first.trace);
    let (verdict, detail) = match compare(&replays, golden, &text) {
        Some(detail) => (Verdict::Differs, Some(detail)),
        None => match nothing_exercised(first, &summary) {
            Some(reason) => (Verdict::Untestable, Some(reason.to_owned())),
            None => (Verdict::Same, None),
        },
    };
    Verified {
        verdict,
        digest: Some(first.trace.digest()),
        exercised: summary.exercised,
        hashes_compared: first.hashes_compared,
        rollbacks: first.rollbacks,
        golden_compared: golden.is_some(),
        detail,
        golden: Some(text),
    }
}

impl Verified {
    /// The result for a log of which there is no replay.
    pub fn without_replay(verdict: Verdict, reason: String) -> Verified {
        Verified {
            verdict,
            digest: None,
            exercised: Exercised::default(),
            hashes_compared: 0,
            rollbacks: 0,
            golden_compared: false,
            detail: Some(reason),
            golden: None,
        }
    }
}

/// What differs, in words; the earliest cause first, because the rest follows from it.
fn compare(replays: &[Replayed], golden: Option<&str>, text: &str) -> Option<String> {
    let first = replays.first()?;
    if let Some(error) = &first.rollback_error {
        return Some(format!("rollback: {error}"));
    }
    if let Some(d) = first.first_difference {
        let replayed = d.replayed.map_or("nothing: the replay ended before".to_owned(), |h| format!("{h:016x}"));
        return Some(format!("tick {}: the log has state hash {:016x}, the replay {replayed}", d.tick, d.recorded));
    }
    let digest = first.trace.digest();
    for (again, threads) in replays.iter().zip(THREADS).skip(1) {
        let other = again.trace.digest();
        if other != digest {
            let table = first.trace.tables.iter().zip(&again.trace.tables).find(|(a, b)| a.digest() != b.digest());
            let table = table.map_or("", |(a, _)| a.name.as_str());
            return Some(format!(
                "two replays of this build differ, first in the table `{table}`: {digest} with 1 thread, {other} with {threads}"
            ));
        }
    }
    golden.and_then(|accepted| golden::difference(accepted, text)).map(|diff| format!("the golden differs\n{diff}"))
}

fn nothing_exercised(replayed: &Replayed, summary: &Summary) -> Option<&'static str> {
    let exercised = &summary.exercised;
    if exercised.usercmds == 0 {
        Some("no usercmd was run")
    } else if exercised.active_usercmds == 0 {
        Some("nobody pressed a key: there is nothing in it that could come out differently")
    } else if replayed.hashes_compared == 0 && summary.prediction.checked == 0 {
        Some("it has no state hashes and no acked usercmds, so there is nothing to compare")
    } else {
        None
    }
}
