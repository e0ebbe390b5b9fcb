//! Verifies a log. It replays the log several times with different numbers of threads. It compares the results with
//! each other, with the hashes in the log, and with the golden. A check that exercised nothing does not pass, and
//! neither does a check of only a part of the log.

mod facts;

use serde::Serialize;

pub use facts::Facts;
use facts::Hole;
use hitreg_analysis::golden::{self, Gist};
use hitreg_analysis::summary::Exercised;
use hitreg_analysis::text_diff::TextDiff;
use hitreg_log::record::Session;
use hitreg_log::trace::Digest;
use hitreg_log::units::Micros;
use hitreg_netcode::replay::{HashDifference, Ran, Replayed};

/// The result of a verification.
#[derive(Clone, Debug, PartialEq)]
pub struct Verified {
    /// The verdict on the log.
    pub verdict: Verdict,
    /// The reason for a verdict other than `same`.
    pub why: Option<Why>,
    /// The reason as text.
    pub detail: Option<String>,
    /// How the golden differs, whatever the verdict. Shots and counts come first, digests last.
    pub difference: Option<TextDiff>,
    /// The digest of the first replay; `None` if there is no replay.
    pub digest: Option<Digest>,
    /// How much the replay exercised.
    pub exercised: Exercised,
    /// How many ticks the log holds.
    pub ticks_recorded: u64,
    /// How many recorded tick hashes were compared.
    pub hashes_compared: u64,
    /// How many rollbacks were checked.
    pub rollbacks: u32,
    /// Whether a golden was compared.
    pub golden_compared: bool,
    /// The golden as this build would write it.
    pub golden: Option<String>,
}

/// The verdict on one log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Everything that was compared is equal, and something was compared.
    Same,
    /// The outcome was accepted as the new golden. It may differ from the golden before it.
    Accepted,
    /// The log cannot be judged.
    Untestable,
    /// Something differs.
    Differs,
    /// The log cannot be read, or contradicts itself.
    Broken,
}

/// The reason for a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Why {
    /// The world was restored and run again, with another result.
    Rollback,
    /// A replayed state differs from the recorded state.
    RecordedState,
    /// Replays differ from each other.
    Replays,
    /// The golden differs.
    Golden,
    /// A golden was required, and there is none.
    NoGolden,
    /// The log holds nothing to compare a replay with, so only a golden could decide.
    NeedsGolden,
    /// A part of the log could not be judged.
    Hole,
    /// The replay exercised nothing, or there is nothing to compare it with.
    NothingCompared,
    /// The log could not be replayed.
    NotReplayed,
    /// The log contradicts itself.
    Contradiction,
    /// The log or its golden cannot be read.
    Unreadable,
}

/// The numbers of threads with which each log is replayed.
pub const THREADS: [usize; 2] = [1, 2];

/// What a log is compared with.
#[derive(Clone, Copy, Debug, Default)]
pub struct Against<'a> {
    /// The text of the accepted golden, if there is one.
    pub golden: Option<&'a str>,
    /// Whether rollbacks were requested.
    pub rollback: bool,
}

/// One replay of a log.
#[derive(Debug)]
pub struct Played {
    /// The outcome: digests, counts and shots.
    pub gist: Gist,
    /// Further results of the run.
    pub ran: Ran,
}

/// A replayed leg of a log. It keeps only the figures and not the outcome, because the number of legs grows with the
/// log's length.
#[derive(Debug)]
pub struct PlayedLeg {
    figures: Figures,
    /// Further results of the run.
    pub ran: Ran,
}

impl PlayedLeg {
    /// Creates the figures of a leg from its outcome.
    pub fn of(gist: &Gist, ran: Ran) -> PlayedLeg {
        PlayedLeg { figures: Figures::of(gist), ran }
    }
}

/// Judges the replays of one log, or the reason why there are none.
pub fn judge(session: &Session, replays: Result<&[Replayed], String>, against: Against<'_>) -> Verified {
    let facts = Facts::of(session);
    let replays = match replays {
        Ok(replays) => replays,
        Err(why) => return judge_played(&facts, Err(why), against),
    };
    let played = |replayed: &Replayed| Played {
        gist: Gist::of(&replayed.trace),
        ran: Ran {
            // After a hole no replay can equal the recording, and a difference there does not concern the build.
            first_difference: replayed.first_difference.filter(|difference| is_before_holes(session, difference)),
            hashes_compared: replayed.hashes_compared,
            hashes_before: 0,
            traffic: replayed.traffic.unwrap_or_default(),
            rollbacks: replayed.rollbacks,
            rollback_error: replayed.rollback_error.clone(),
            // The verdict does not depend on them.
            jumps: Vec::new(),
        },
    };
    let all: Vec<Played> = replays.iter().map(played).collect();
    match (against.golden, replays) {
        (Some(accepted), [first, ..]) if golden::is_of_first_version(accepted) => {
            let text = golden::first_golden(&first.trace);
            let found = golden::difference(accepted, &text);
            let judged = judge_with(&facts, Ok(&all), against, found);
            // Written again only if something differs from it.
            Verified { golden: if judged.difference.is_some() { judged.golden } else { Some(text) }, ..judged }
        }
        _ => judge_played(&facts, Ok(&all), against),
    }
}

/// Judges replays like [`judge()`], from their kept outcomes.
pub fn judge_played(facts: &Facts, replays: Result<&[Played], String>, against: Against<'_>) -> Verified {
    let text = replays.as_ref().ok().and_then(|all| all.first()).and_then(|first| first.gist.golden());
    let difference = against.golden.zip(text).and_then(|(accepted, text)| golden::difference(accepted, &text));
    judge_with(facts, replays, against, difference)
}

fn judge_with(
    facts: &Facts,
    replays: Result<&[Played], String>,
    against: Against<'_>,
    difference: Option<TextDiff>,
) -> Verified {
    let all = match replays {
        Ok([]) => return Verified::without_replay(Verdict::Untestable, Why::NotReplayed, "it was not replayed"),
        Ok(all) => all,
        Err(why) => return Verified::without_replay(Verdict::Untestable, Why::NotReplayed, why),
    };
    let Played { gist, ran } = &all[0];
    let whole = Some((gist.digest(), gist.golden()));
    judge_figures(facts, &Figures::of(gist), ran, (whole, compare_replays(all)), (against, difference))
}

/// The figures of a replay on which the verdict depends, besides its digest.
#[derive(Clone, Debug, Default)]
struct Figures {
    exercised: Exercised,
    /// Predictions that were compared with acks.
    held: u64,
    is_closed: bool,
}

impl Figures {
    fn of(gist: &Gist) -> Figures {
        let summary = gist.summary();
        let predictions = &summary.prediction;
        Figures {
            exercised: summary.exercised,
            held: predictions.exact + predictions.near + predictions.misses_by_cause.values().sum::<u64>(),
            is_closed: gist.header.mode == "closed",
        }
    }
}

/// Judges the legs of a log, each replayed once and separately. Together they have every tick.
pub fn judge_legs(facts: &Facts, legs: &[PlayedLeg], against: Against<'_>) -> Verified {
    let Some(PlayedLeg { ran, .. }) = legs.first() else {
        return Verified::without_replay(Verdict::Untestable, Why::NotReplayed, "it was not replayed");
    };
    let mut ran = Ran { hashes_compared: 0, hashes_before: 0, ..ran.clone() };
    let mut figures = Figures { is_closed: true, ..Figures::default() };
    for leg in legs {
        ran.hashes_compared += leg.ran.hashes_compared - leg.ran.hashes_before;
        ran.first_difference = ran.first_difference.or(leg.ran.first_difference);
        figures.exercised.add(&leg.figures.exercised);
        figures.held += leg.figures.held;
        figures.is_closed &= leg.figures.is_closed;
    }
    judge_figures(facts, &figures, &ran, (None, None), (against, None))
}

/// Judges the figures. `whole` is the digest and the golden; `replays` is the difference between replays.
fn judge_figures(
    facts: &Facts,
    figures: &Figures,
    ran: &Ran,
    (whole, replays): (Option<(Digest, Option<String>)>, Option<Finding>),
    (against, difference): (Against<'_>, Option<TextDiff>),
) -> Verified {
    let exercised = facts.completed(figures.exercised);
    let broken = |detail: &String| (Verdict::Broken, Why::Contradiction, detail.clone());
    let found = facts
        .contradiction
        .as_ref()
        .map(broken)
        .or_else(|| compare_recorded(facts, ran))
        .or(replays)
        .or_else(|| difference.is_some().then(|| (Verdict::Differs, Why::Golden, "the golden differs".to_owned())))
        .or_else(|| not_judged(facts, ran, figures, &exercised, against));
    let (verdict, why, detail) = match found {
        Some((verdict, why, detail)) => (verdict, Some(why), Some(detail)),
        None => (Verdict::Same, None, None),
    };
    let (digest, golden) = whole.map_or((None, None), |(digest, golden)| (Some(digest), golden));
    Verified {
        verdict,
        why,
        detail,
        difference,
        digest,
        exercised,
        ticks_recorded: facts.ticks,
        hashes_compared: ran.hashes_compared,
        rollbacks: ran.rollbacks,
        golden_compared: against.golden.is_some(),
        golden,
    }
}

impl Verified {
    /// The result for a log without a replay.
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

    /// The same result with another verdict.
    #[must_use]
    pub fn but(self, verdict: Verdict, why: Why, detail: impl Into<String>) -> Verified {
        Verified { verdict, why: Some(why), detail: Some(detail.into()), ..self }
    }
}

type Finding = (Verdict, Why, String);

/// Describes how the replay differs from the record.
fn compare_recorded(facts: &Facts, ran: &Ran) -> Option<Finding> {
    let differs = |why, detail| Some((Verdict::Differs, why, detail));
    if let Some(error) = &ran.rollback_error {
        return differs(Why::Rollback, format!("rollback: {error}"));
    }
    let d = ran.first_difference?;
    if !facts.has_hashes {
        let detail = "its state hashes are all zero, so a replay cannot be compared with it";
        return Some((Verdict::Untestable, Why::NothingCompared, detail.to_owned()));
    }
    let replayed = d.replayed.map_or("none, because it ended before".to_owned(), |h| format!("{h:016x}"));
    let detail = format!("tick {}: the log has state hash {:016x}, the replay has {replayed}", d.tick, d.recorded);
    differs(Why::RecordedState, detail)
}

/// Describes how a replay differs from the first.
fn compare_replays(replays: &[Played]) -> Option<Finding> {
    let Played { gist: first, .. } = replays.first()?;
    let digest = first.digest();
    for (again, threads) in replays.iter().zip(THREADS).skip(1) {
        let other = again.gist.digest();
        if other != digest {
            let table = first.first_unlike(&again.gist).unwrap_or_default();
            let detail = format!(
                "two replays of this build differ, first in the table `{table}`: {digest} with 1 thread, {other} with {threads}"
            );
            return Some((Verdict::Differs, Why::Replays, detail));
        }
    }
    None
}

/// Whether a difference is before the first hole.
fn is_before_holes(session: &Session, difference: &HashDifference) -> bool {
    let at = session.ticks.iter().find(|tick| tick.tick == difference.tick).map(|tick| tick.at);
    let hole = session.first_hole().map(|gap| gap.from);
    hole.is_none_or(|hole| at.is_some_and(|at| at <= hole))
}

/// Why agreement shows nothing, or does not cover the whole log.
fn not_judged(
    facts: &Facts,
    ran: &Ran,
    figures: &Figures,
    exercised: &Exercised,
    against: Against<'_>,
) -> Option<Finding> {
    let untestable = |why, detail: String| Some((Verdict::Untestable, why, detail));
    let Facts { with_hash, hole, .. } = *facts;
    let is_closed = figures.is_closed;
    if let Some(Hole { from, to, ticks_before }) = hole {
        let (from, to) = (seconds(from), seconds(to));
        let judged = ran.hashes_compared.min(ticks_before);
        let detail = format!(
            "a part of the log is missing, from {from} to {to}: {judged} of its {with_hash} ticks could be compared, and these match"
        );
        return untestable(Why::Hole, detail);
    }
    if is_closed && ran.hashes_compared < with_hash {
        let compared = ran.hashes_compared;
        let detail =
            format!("only {compared} of its {with_hash} ticks could be compared: later ticks are out of order");
        return untestable(Why::Hole, detail);
    }
    if exercised.usercmds == 0 {
        return untestable(Why::NothingCompared, "no usercmd was run".to_owned());
    }
    if exercised.active_usercmds == 0 {
        let detail = "no player pressed a key, so nothing could differ";
        return untestable(Why::NothingCompared, detail.to_owned());
    }
    if against.rollback && ran.rollbacks == 0 {
        let detail = match facts.has_server {
            true => "no rollback was checked: the log is shorter than one rollback. Use a smaller --rollback",
            false => "no rollback was checked: the log has no server",
        };
        return untestable(Why::NothingCompared, detail.to_owned());
    }
    let held_against_acks = !is_closed && figures.held > 0;
    if ran.hashes_compared == 0 && against.golden.is_none() && !held_against_acks {
        let detail = "it has no state hashes and no golden, so a replay cannot be compared with it";
        return untestable(Why::NeedsGolden, detail.to_owned());
    }
    None
}

fn seconds(at: Micros) -> String {
    format!("{:.2} s", at.as_s_f64())
}
