//! Verifies a log. It replays the log several times with different numbers of threads. It compares the results with
//! each other, with the hashes in the log, and with the golden. A check that exercised nothing does not pass, and
//! neither does a check of only a part of the log.

mod facts;

use serde::Serialize;

pub use facts::LogFacts;
use facts::MissingPart;
use hitreg_analysis::golden::{self, ReplaySummary};
use hitreg_analysis::summary::Coverage;
use hitreg_analysis::text_diff::TextDiff;
use hitreg_log::record::Session;
use hitreg_log::trace::Digest;
use hitreg_log::units::Micros;
use hitreg_netcode::replay::{ReplayOutput, StreamReport};

/// The result of a verification.
#[derive(Clone, Debug, PartialEq)]
pub struct LogVerification {
    /// The verdict on the log.
    pub verdict: LogVerdict,
    /// The reason for a verdict other than `same`.
    pub why: Option<VerdictReason>,
    /// The reason as text.
    pub detail: Option<String>,
    /// How the golden differs, whatever the verdict. Shots and counts come first, digests last.
    pub difference: Option<TextDiff>,
    /// The digest of the first replay; `None` if there is no replay.
    pub digest: Option<Digest>,
    /// How much the replay exercised.
    pub exercised: Coverage,
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
pub enum LogVerdict {
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
pub enum VerdictReason {
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
pub struct VerifyReference<'a> {
    /// The text of the accepted golden, if there is one.
    pub golden: Option<&'a str>,
    /// Whether rollbacks were requested.
    pub rollback: bool,
}

/// One replay of a log.
#[derive(Debug)]
pub struct VerifiedReplay {
    /// The outcome: digests, counts and shots.
    pub gist: ReplaySummary,
    /// Further results of the run.
    pub ran: StreamReport,
}

/// A replayed leg of a log. It keeps only the figures and not the outcome, because the number of legs grows with the
/// log's length.
#[derive(Debug)]
pub struct LegFigures {
    figures: ReplayFigures,
    /// Further results of the run.
    pub ran: StreamReport,
}

impl LegFigures {
    /// Creates the figures of a leg from its outcome.
    pub fn of(gist: &ReplaySummary, ran: StreamReport) -> LegFigures {
        LegFigures { figures: ReplayFigures::of(gist), ran }
    }
}

/// Judges replays of a session in memory, or the reason why there are none.
pub fn judge(
    session: &Session,
    replays: Result<&[ReplayOutput], String>,
    against: VerifyReference<'_>,
) -> LogVerification {
    let played =
        |replayed: &ReplayOutput| VerifiedReplay { gist: ReplaySummary::of(&replayed.trace), ran: replayed.report() };
    let all = replays.map(|replays| replays.iter().map(played).collect::<Vec<_>>());
    judge_played(&LogFacts::of(session), all.as_deref().map_err(Clone::clone), against)
}

/// Judges the replays of one log by their kept outcomes, or the reason why there are none.
pub fn judge_played(
    facts: &LogFacts,
    replays: Result<&[VerifiedReplay], String>,
    against: VerifyReference<'_>,
) -> LogVerification {
    let all = match replays {
        Ok([]) => {
            return LogVerification::without_replay(
                LogVerdict::Untestable,
                VerdictReason::NotReplayed,
                "it was not replayed",
            );
        }
        Ok(all) => all,
        Err(why) => return LogVerification::without_replay(LogVerdict::Untestable, VerdictReason::NotReplayed, why),
    };
    let VerifiedReplay { gist, ran } = &all[0];
    let text = gist.golden();
    let difference =
        against.golden.zip(text.as_deref()).and_then(|(accepted, text)| golden::difference(accepted, text));
    let whole = Some((gist.digest(), text));
    judge_figures(facts, &ReplayFigures::of(gist), ran, (whole, compare_replays(all)), (against, difference))
}

/// The figures of a replay on which the verdict depends, besides its digest.
#[derive(Clone, Debug, Default)]
struct ReplayFigures {
    exercised: Coverage,
    /// Predictions that were compared with acks.
    held: u64,
    is_closed: bool,
    /// Projectiles launched.
    launched: u64,
    /// Impacts of projectiles. The launch of one may be in an earlier leg.
    impacts: u64,
}

impl ReplayFigures {
    fn of(gist: &ReplaySummary) -> ReplayFigures {
        let summary = gist.summary();
        let predictions = &summary.prediction;
        ReplayFigures {
            exercised: summary.exercised,
            held: predictions.exact + predictions.near + predictions.misses_by_cause.values().sum::<u64>(),
            is_closed: gist.header.mode == "closed",
            launched: summary.shots.launched,
            impacts: summary.shots.impacts,
        }
    }

    /// Adds the figures of consecutive legs. An impact counts as a shot only if no leg has its launch.
    fn of_legs<'a>(legs: impl Iterator<Item = &'a ReplayFigures>) -> ReplayFigures {
        let mut all = ReplayFigures { is_closed: true, ..ReplayFigures::default() };
        for leg in legs {
            all.exercised.add(&leg.exercised);
            all.exercised.shots -= leg.impacts.saturating_sub(leg.launched);
            all.held += leg.held;
            all.is_closed &= leg.is_closed;
            all.launched += leg.launched;
            all.impacts += leg.impacts;
        }
        all.exercised.shots += all.impacts.saturating_sub(all.launched);
        all
    }
}

/// Judges the legs of a log, each replayed once and separately. Together they have every tick.
pub fn judge_legs(facts: &LogFacts, legs: &[LegFigures], against: VerifyReference<'_>) -> LogVerification {
    let Some(LegFigures { ran, .. }) = legs.first() else {
        return LogVerification::without_replay(
            LogVerdict::Untestable,
            VerdictReason::NotReplayed,
            "it was not replayed",
        );
    };
    let mut ran = StreamReport { hashes_compared: 0, hashes_before: 0, ..ran.clone() };
    for leg in legs {
        ran.hashes_compared += leg.ran.hashes_compared - leg.ran.hashes_before;
        ran.first_difference = ran.first_difference.or(leg.ran.first_difference);
    }
    let figures = ReplayFigures::of_legs(legs.iter().map(|leg| &leg.figures));
    judge_figures(facts, &figures, &ran, (None, None), (against, None))
}

/// Judges the figures. `whole` is the digest and the golden; `replays` is the difference between replays.
fn judge_figures(
    facts: &LogFacts,
    figures: &ReplayFigures,
    ran: &StreamReport,
    (whole, replays): (Option<(Digest, Option<String>)>, Option<LogFinding>),
    (against, difference): (VerifyReference<'_>, Option<TextDiff>),
) -> LogVerification {
    let exercised = facts.completed(figures.exercised);
    let broken = |detail: &String| (LogVerdict::Broken, VerdictReason::Contradiction, detail.clone());
    let found = facts
        .contradiction
        .as_ref()
        .map(broken)
        .or_else(|| compare_recorded(facts, ran))
        .or(replays)
        .or_else(|| {
            difference.is_some().then(|| (LogVerdict::Differs, VerdictReason::Golden, "the golden differs".to_owned()))
        })
        .or_else(|| not_judged(facts, ran, figures, &exercised, against));
    let (verdict, why, detail) = match found {
        Some((verdict, why, detail)) => (verdict, Some(why), Some(detail)),
        None => (LogVerdict::Same, None, None),
    };
    let (digest, golden) = whole.map_or((None, None), |(digest, golden)| (Some(digest), golden));
    LogVerification {
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

impl LogVerification {
    /// The result for a log without a replay.
    pub fn without_replay(verdict: LogVerdict, why: VerdictReason, detail: impl Into<String>) -> LogVerification {
        LogVerification {
            verdict,
            why: Some(why),
            detail: Some(detail.into()),
            difference: None,
            digest: None,
            exercised: Coverage::default(),
            ticks_recorded: 0,
            hashes_compared: 0,
            rollbacks: 0,
            golden_compared: false,
            golden: None,
        }
    }

    /// The same result with another verdict.
    #[must_use]
    pub fn but(self, verdict: LogVerdict, why: VerdictReason, detail: impl Into<String>) -> LogVerification {
        LogVerification { verdict, why: Some(why), detail: Some(detail.into()), ..self }
    }
}

type LogFinding = (LogVerdict, VerdictReason, String);

/// Describes how the replay differs from the record.
fn compare_recorded(facts: &LogFacts, ran: &StreamReport) -> Option<LogFinding> {
    let differs = |why, detail| Some((LogVerdict::Differs, why, detail));
    if let Some(error) = &ran.rollback_error {
        return differs(VerdictReason::Rollback, format!("rollback: {error}"));
    }
    // After a hole no replay can equal the recording, and a difference there does not concern the build.
    let d = ran.first_difference.filter(|d| facts.hole.is_none_or(|hole| d.at <= hole.from))?;
    if !facts.has_hashes {
        let detail = "its state hashes are all zero, so a replay cannot be compared with it";
        return Some((LogVerdict::Untestable, VerdictReason::NothingCompared, detail.to_owned()));
    }
    let replayed = d.replayed.map_or("none, because it ended before".to_owned(), |h| format!("{h:016x}"));
    let detail = format!("tick {}: the log has state hash {:016x}, the replay has {replayed}", d.tick, d.recorded);
    differs(VerdictReason::RecordedState, detail)
}

/// Describes how a replay differs from the first.
fn compare_replays(replays: &[VerifiedReplay]) -> Option<LogFinding> {
    let VerifiedReplay { gist: first, .. } = replays.first()?;
    let digest = first.digest();
    for (again, threads) in replays.iter().zip(THREADS).skip(1) {
        let other = again.gist.digest();
        if other != digest {
            let table = first.first_unlike(&again.gist).unwrap_or_default();
            let detail = format!(
                "two replays of this build differ, first in the table `{table}`: {digest} with 1 thread, {other} with {threads}"
            );
            return Some((LogVerdict::Differs, VerdictReason::Replays, detail));
        }
    }
    None
}

/// Why agreement shows nothing, or does not cover the whole log.
fn not_judged(
    facts: &LogFacts,
    ran: &StreamReport,
    figures: &ReplayFigures,
    exercised: &Coverage,
    against: VerifyReference<'_>,
) -> Option<LogFinding> {
    let untestable = |why, detail: String| Some((LogVerdict::Untestable, why, detail));
    let LogFacts { with_hash, hole, .. } = *facts;
    let is_closed = figures.is_closed;
    if let Some(MissingPart { from, to, ticks_before }) = hole {
        let (from, to) = (seconds(from), seconds(to));
        let judged = ran.hashes_compared.min(ticks_before);
        let detail = format!(
            "a part of the log is missing, from {from} to {to}: {judged} of its {with_hash} ticks could be compared, and these match"
        );
        return untestable(VerdictReason::Hole, detail);
    }
    if is_closed && ran.hashes_compared < with_hash {
        let compared = ran.hashes_compared;
        let detail =
            format!("only {compared} of its {with_hash} ticks could be compared: later ticks are out of order");
        return untestable(VerdictReason::Hole, detail);
    }
    if exercised.usercmds == 0 {
        return untestable(VerdictReason::NothingCompared, "no usercmd was run".to_owned());
    }
    if exercised.active_usercmds == 0 {
        let detail = "no player pressed a key, so nothing could differ";
        return untestable(VerdictReason::NothingCompared, detail.to_owned());
    }
    if against.rollback && ran.rollbacks == 0 {
        let detail = match facts.has_server {
            true => "no rollback was checked: the log is shorter than one rollback. Use a smaller --rollback",
            false => "no rollback was checked: the log has no server",
        };
        return untestable(VerdictReason::NothingCompared, detail.to_owned());
    }
    let held_against_acks = !is_closed && figures.held > 0;
    if ran.hashes_compared == 0 && against.golden.is_none() && !held_against_acks {
        let detail = "it has no state hashes and no golden, so a replay cannot be compared with it";
        return untestable(VerdictReason::NeedsGolden, detail.to_owned());
    }
    None
}

fn seconds(at: Micros) -> String {
    format!("{:.2} s", at.as_s_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_projectile_that_flies_into_the_next_leg_is_one_shot() {
        let leg = |shots, launched, impacts| ReplayFigures {
            exercised: Coverage { shots, ..Coverage::default() },
            launched,
            impacts,
            ..ReplayFigures::default()
        };
        let shots = |legs: &[ReplayFigures]| ReplayFigures::of_legs(legs.iter()).exercised.shots;
        // The second leg has one impact more than launches, and counted it as a shot.
        assert_eq!(shots(&[leg(5, 2, 1), leg(4, 1, 2)]), 8);
        // An impact whose launch no leg has is a shot.
        assert_eq!(shots(&[leg(5, 1, 1), leg(4, 1, 2)]), 9);
    }
}
