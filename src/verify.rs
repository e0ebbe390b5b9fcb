//! Verifying a log: replay it more than once with different numbers of threads, hold the results against each other,
//! against the hashes in the log and against the golden. A check that exercised nothing does not pass, nor does one that
//! could look at a part of the log only.

use serde::Serialize;

use crate::golden;
use crate::record::{CellKind, GapRecord, Holds, PlayerRecords, Session};
use crate::replay::{HashDifference, Replayed};
use crate::summary::{Exercised, Summary};
use crate::trace::Digest;
use crate::units::Micros;

/// What a verification found.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// The judgement.
    pub verdict: Verdict,
    /// What a verdict other than `same` is about.
    pub why: Option<Why>,
    /// The reason in words.
    pub detail: Option<String>,
    /// How the golden differs, whatever the verdict: outcomes first, digests last.
    pub difference: Option<String>,
    /// The digest of the first replay; `None` when nothing could be replayed.
    pub digest: Option<Digest>,
    /// What was exercised.
    pub exercised: Exercised,
    /// Ticks that the log holds.
    pub ticks_recorded: u64,
    /// Recorded tick hashes that were compared.
    pub hashes_compared: u64,
    /// Rollbacks that were checked.
    pub rollbacks: u32,
    /// Whether there was a golden to compare with.
    pub golden_compared: bool,
    /// The golden as this build would write it.
    pub golden: Option<String>,
}

/// The judgement on one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All that could be compared is the same, and something was.
    Same,
    /// What came out has been made the golden; it may not be what was expected before.
    Accepted,
    /// It cannot be judged.
    Untestable,
    /// Something differs.
    Differs,
    /// The log cannot be read, or contradicts itself.
    Broken,
}

/// What a verdict is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The world was restored and run again, and came out otherwise.
    Rollback,
    /// A recorded state is not the replayed one.
    RecordedState,
    /// Replays differ from each other.
    Replays,
    /// The golden is another.
    Golden,
    /// There is no golden, and there was to be one.
    NoGolden,
    /// A part of the log could not be judged.
    Hole,
    /// There is nothing that could have come out differently, or nothing to hold it against.
    NothingCompared,
    /// The log cannot be replayed.
    NotReplayed,
    /// The log says what cannot be.
    Contradiction,
    /// The log or its golden cannot be read.
    Unreadable,
}

/// The numbers of threads that each log is replayed with.
pub const THREADS: [usize; 2] = [1, 2];

/// What a log is judged by.
#[derive(Clone, Copy, Debug, Default)]
pub struct Against<'a> {
    /// The text of the accepted golden, if there is one.
    pub golden: Option<&'a str>,
    /// Whether rollbacks were asked for.
    pub rollback: bool,
}

/// Judges what the replays of one log came to; or why there are none.
pub fn judge(session: &Session, replays: Result<&[Replayed], String>, against: Against<'_>) -> Verified {
    let first = match replays {
        Ok([first, ..]) => first,
        Ok([]) => return Verified::without_replay(Verdict::Untestable, Why::NotReplayed, "it was not replayed"),
        Err(why) => return Verified::without_replay(Verdict::Untestable, Why::NotReplayed, why),
    };
    let of_trace = Summary::of(&first.trace).exercised;
    // Another build's trace may lack the table of client frames.
    let exercised = match of_trace.usercmds {
        0 => Exercised { usercmds: usercmds(session), active_usercmds: active(session), ..of_trace },
        _ => of_trace,
    };
    let text = golden::golden(&first.trace);
    let difference = against.golden.and_then(|accepted| golden::difference(accepted, &text));
    let found = contradiction(session)
        .or_else(|| compare(session, replays.unwrap_or_default()))
        .or_else(|| difference.is_some().then(|| (Verdict::Differs, Why::Golden, "the golden differs".to_owned())))
        .or_else(|| not_judged(session, first, &exercised, against));
    let (verdict, why, detail) = match found {
        Some((verdict, why, detail)) => (verdict, Some(why), Some(detail)),
        None => (Verdict::Same, None, None),
    };
    Verified {
        verdict,
        why,
        detail,
        difference,
        digest: Some(first.trace.digest()),
        exercised,
        ticks_recorded: session.ticks.len() as u64,
        hashes_compared: first.hashes_compared,
        rollbacks: first.rollbacks,
        golden_compared: against.golden.is_some(),
        golden: Some(text),
    }
}

impl Verified {
    /// The result for a log of which there is no replay.
    pub fn without_replay(verdict: Verdict, why: Why, detail: impl Into<String>) -> Verified {
        Verified {
            verdict,
            why: Some(why),
            detail: Some(detail.into()),
            difference: None,
            digest: None,
            exercised: Exercised::default(),
            ticks_recorded: 0,
            hashes_compared: 0,
            rollbacks: 0,
            golden_compared: false,
            golden: None,
        }
    }

    /// The same with another judgement.
    #[must_use]
    pub fn but(self, verdict: Verdict, why: Why, detail: impl Into<String>) -> Verified {
        Verified { verdict, why: Some(why), detail: Some(detail.into()), ..self }
    }
}

type Finding = (Verdict, Why, String);

/// What no session can have been.
fn contradiction(session: &Session) -> Option<Finding> {
    let broken = |detail: String| Some((Verdict::Broken, Why::Contradiction, detail));
    if let Some(pair) = session.ticks.windows(2).find(|pair| pair[1].tick <= pair[0].tick || pair[1].at < pair[0].at) {
        return broken(format!("its ticks are out of order: after tick {} comes tick {}", pair[0].tick, pair[1].tick));
    }
    let classes = &session.header.classes;
    let mut floats = session.states.iter().flat_map(|(key, cells)| {
        let fields = classes.get(usize::from(key.class.0)).map_or(&[][..], |class| &class.fields);
        fields.iter().zip(cells).filter(|(field, _)| field.kind == CellKind::F32).map(|(_, cell)| f32::from_bits(*cell))
    });
    let first = floats.next();
    if first.is_some_and(f32::is_nan) && floats.all(f32::is_nan) {
        return broken("every recorded state is NaN".to_owned());
    }
    None
}

/// What differs, in words; the earliest cause first, because the rest follows from it.
fn compare(session: &Session, replays: &[Replayed]) -> Option<Finding> {
    let first = replays.first()?;
    let differs = |why, detail| Some((Verdict::Differs, why, detail));
    if let Some(error) = &first.rollback_error {
        return differs(Why::Rollback, format!("rollback: {error}"));
    }
    if let Some(d) = first.first_difference.filter(|d| is_before_holes(session, d)) {
        let has_hashes = session.ticks.iter().any(|tick| tick.hash.is_some_and(|hash| hash != 0));
        if !has_hashes {
            let detail = "its state hashes are all zero, so there is nothing to hold a replay against";
            return Some((Verdict::Untestable, Why::NothingCompared, detail.to_owned()));
        }
        let replayed = d.replayed.map_or("nothing: the replay ended before".to_owned(), |h| format!("{h:016x}"));
        let detail = format!("tick {}: the log has state hash {:016x}, the replay {replayed}", d.tick, d.recorded);
        return differs(Why::RecordedState, detail);
    }
    let digest = first.trace.digest();
    for (again, threads) in replays.iter().zip(THREADS).skip(1) {
        let other = again.trace.digest();
        if other != digest {
            let table = first.trace.tables.iter().zip(&again.trace.tables).find(|(a, b)| a.digest() != b.digest());
            let table = table.map_or("", |(a, _)| a.name.as_str());
            let detail = format!(
                "two replays of this build differ, first in the table `{table}`: {digest} with 1 thread, {other} with {threads}"
            );
            return differs(Why::Replays, detail);
        }
    }
    None
}

/// After a hole nothing can come out as recorded, and a difference there says nothing about the build.
fn is_before_holes(session: &Session, difference: &HashDifference) -> bool {
    let at = session.ticks.iter().find(|tick| tick.tick == difference.tick).map(|tick| tick.at);
    let hole = holes(session).map(|gap| gap.from).min();
    hole.is_none_or(|hole| at.is_some_and(|at| at <= hole))
}

/// What is missing between the first tick and the last. What ran before the first is no part of the log.
fn holes(session: &Session) -> impl Iterator<Item = &GapRecord> {
    let first = session.ticks.first().map_or(Micros(i64::MIN), |tick| tick.at);
    session.gaps.iter().filter(move |gap| gap.to > first)
}

/// Why agreement says nothing, or not all.
fn not_judged(session: &Session, first: &Replayed, exercised: &Exercised, against: Against<'_>) -> Option<Finding> {
    let untestable = |why, detail: String| Some((Verdict::Untestable, why, detail));
    let with_hash = session.ticks.iter().filter(|tick| tick.hash.is_some()).count() as u64;
    let is_closed = first.trace.header.mode == "closed";
    if let Some(gap) = holes(session).min_by_key(|gap| gap.from) {
        let (from, to) = (seconds(gap.from), seconds(gap.to));
        let before = session.ticks.iter().filter(|tick| tick.at <= gap.from).count() as u64;
        let judged = first.hashes_compared.min(before);
        let detail = format!(
            "a part is missing, from {from} to {to}: {judged} of the {with_hash} ticks in it could be judged, and these are the same"
        );
        return untestable(Why::Hole, detail);
    }
    if is_closed && first.hashes_compared < with_hash {
        let compared = first.hashes_compared;
        let detail = format!(
            "only {compared} of its {with_hash} ticks could be judged: those after them are not where they should be"
        );
        return untestable(Why::Hole, detail);
    }
    if exercised.usercmds == 0 {
        return untestable(Why::NothingCompared, "no usercmd was run".to_owned());
    }
    if exercised.active_usercmds == 0 {
        let detail = "nobody pressed a key: there is nothing in it that could come out differently";
        return untestable(Why::NothingCompared, detail.to_owned());
    }
    if against.rollback && first.rollbacks == 0 {
        let detail = match session.header.holds() {
            Holds::Whole => "no rollback was checked: the log has fewer ticks than lie between two of them",
            Holds::Server | Holds::Clients => "no rollback was checked: there is no server in this log",
        };
        return untestable(Why::NothingCompared, detail.to_owned());
    }
    let predictions = Summary::of(&first.trace).prediction;
    let held = predictions.exact + predictions.near + predictions.misses_by_cause.values().sum::<u64>();
    let held_against_acks = !is_closed && held > 0;
    if first.hashes_compared == 0 && against.golden.is_none() && !held_against_acks {
        let detail = "it has no state hashes, and no golden: there is nothing to hold a replay against";
        return untestable(Why::NothingCompared, detail.to_owned());
    }
    None
}

fn seconds(at: Micros) -> String {
    format!("{:.2} s", at.as_s_f64())
}

fn usercmds(session: &Session) -> u64 {
    session.players.iter().map(|player| player.usercmds().count() as u64).sum()
}

/// Usercmds with a key down, a button pressed, an impulse, or input of the game's own.
fn active(session: &Session) -> u64 {
    let usercmds = session.players.iter().flat_map(PlayerRecords::usercmds);
    usercmds.filter(|command| command.input.is_active()).count() as u64
}
