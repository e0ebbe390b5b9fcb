//! Judges the replays of a log: by the hashes in the log, by each other, and by the golden. A check that exercised nothing
//! does not pass, and neither does a check of only a part of the log.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::golden::Golden;
use hitreg_analysis::golden::{self, GoldenChange, ReplaySummary};
use hitreg_analysis::summary::{Coverage, ShotCounter};
use hitreg_analysis::text_diff::TextDiff;
use hitreg_log::record::{Execution, ExecutionRecord, LogContents, PlayerRecords, Session, SessionHeader};
use hitreg_log::sorted::SortedSet;
use hitreg_log::stats::CountedValues;
use hitreg_log::units::{CommandSeq, Micros, Tick};
use hitreg_netcode::replay::{HashDifference, LogSurvey, ReplayFindings, ReplayOutput, TickCounts};

/// The report on one log: its verdict, the reason, and the figures of the replay.
#[derive(Debug, Default, Serialize)]
pub struct LogReport {
    /// The path of the log.
    #[serde(serialize_with = "hitreg_log::store::shown::path")]
    pub path: PathBuf,
    /// The verdict.
    pub verdict: LogVerdict,
    /// The subject of a verdict other than `same`.
    pub why: Option<VerdictReason>,
    /// The digest of the first replay's trace; `None` if no replay of the whole log succeeded.
    pub digest: Option<String>,
    /// The features that the session exercised.
    pub exercised: Coverage,
    /// The number of tick hashes in the log.
    pub hashes_recorded: u64,
    /// The number of recorded tick hashes that were compared.
    pub hashes_compared: u64,
    /// Whether replays of the whole log differ from each other.
    #[serde(skip)]
    pub replays_differ: bool,
    /// The number of rollback checks.
    pub rollbacks: u32,
    /// The number of legs, if the log was replayed in legs. Each leg starts from a keyframe and is compared with the
    /// later keyframes that it reaches.
    pub legs: Option<usize>,
    /// The number of keyframes that the legs were compared with.
    pub keyframes: Option<usize>,
    /// Whether this program plays the log's game, so that it is side A of a comparison with a build.
    #[serde(skip)]
    pub plays_here: bool,
    /// Whether the log cannot be replayed because it holds one side of a session.
    #[serde(skip)]
    pub is_one_sided: bool,
    /// Whether the build that replayed the log can record it again.
    #[serde(skip)]
    pub can_rerecord: bool,
    /// What was done with the golden.
    pub golden: Golden,
    /// The golden as this build would write it.
    #[serde(skip)]
    pub(crate) golden_text: Option<String>,
    /// The reason for a verdict other than `same`.
    pub detail: Option<String>,
    /// The first tick whose state differs from the recorded state.
    pub tick: Option<Tick>,
    /// The view errors of all shots, in units.
    #[serde(skip)]
    pub view_errors: CountedValues,
    /// The differences from the golden, whatever the verdict: counts first, digests last.
    pub difference: Option<TextDiff>,
    /// The duration in seconds. It is left out of the JSON, which is the same in every run.
    #[serde(skip)]
    pub seconds: f64,
}

/// The verdict on one log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogVerdict {
    /// Everything that was compared is equal, and something was compared.
    Same,
    /// The outcome was accepted as the new golden. It may differ from the golden before it.
    Accepted,
    /// The log cannot be judged.
    #[default]
    Untestable,
    /// Something differs.
    Differs,
    /// The log cannot be read, or contradicts itself.
    Broken,
}

/// The reason for a verdict.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VerdictReason {
    /// The world was restored and run again, with another result.
    Rollback,
    /// A replayed state differs from the recorded state.
    RecordedState,
    /// A keyframe differs from the replayed state, although the recorded state hashes agree.
    Keyframe,
    /// Replays differ from each other.
    Replays,
    /// The golden differs.
    Golden,
    /// A golden was required, and there is none.
    NoGolden,
    /// The log holds nothing to compare a replay with, so only a golden could decide.
    NeedsGolden,
    /// A part of the log could not be judged.
    Gap,
    /// The replay exercised nothing, or there is nothing to compare it with.
    NothingCompared,
    /// The log could not be replayed.
    NotReplayed,
    /// The log contradicts itself.
    Contradiction,
    /// The log or its golden cannot be read.
    Unreadable,
}

impl VerdictReason {
    fn verdict(self) -> LogVerdict {
        match self {
            VerdictReason::NoGolden
            | VerdictReason::NeedsGolden
            | VerdictReason::Gap
            | VerdictReason::NothingCompared
            | VerdictReason::NotReplayed => LogVerdict::Untestable,
            VerdictReason::Rollback
            | VerdictReason::RecordedState
            | VerdictReason::Keyframe
            | VerdictReason::Replays
            | VerdictReason::Golden => LogVerdict::Differs,
            VerdictReason::Contradiction | VerdictReason::Unreadable => LogVerdict::Broken,
        }
    }
}

impl LogReport {
    pub(crate) fn new(verdict: LogVerdict) -> LogReport {
        LogReport { verdict, plays_here: true, ..LogReport::default() }
    }

    /// The result for a log that was not replayed.
    pub(crate) fn not_replayed(why: impl Into<String>) -> LogReport {
        LogReport::new(LogVerdict::Untestable).with_reason(VerdictReason::NotReplayed, why)
    }

    /// The result for a log that cannot be read.
    pub(crate) fn unreadable(path: &Path, why: String) -> LogReport {
        let report = LogReport { path: path.to_owned(), ..LogReport::new(LogVerdict::Broken) };
        report.with_reason(VerdictReason::Unreadable, why)
    }

    /// Whether only the comparison of records can still change the verdict. A golden does not count for a replay that
    /// contradicts its log.
    pub(crate) fn awaits_record_comparison(&self) -> bool {
        self.verdict == LogVerdict::Same || matches!(self.why, Some(VerdictReason::Golden | VerdictReason::NeedsGolden))
    }

    /// The same result with the verdict of a reason.
    #[must_use]
    pub(crate) fn with_reason(self, reason: VerdictReason, detail: impl Into<String>) -> LogReport {
        LogReport { verdict: reason.verdict(), why: Some(reason), detail: Some(detail.into()), ..self }
    }
}

/// What keeps a log from being the same as its replays: the reason, also as a sentence.
struct LogFinding {
    reason: VerdictReason,
    detail: String,
}

/// The facts of a log against which its replays are judged.
#[derive(Clone, Debug, Default)]
pub struct LogFacts {
    /// The number of ticks with a state hash.
    with_hash: u64,
    pub(crate) usercmds: u64,
    pub(crate) active_usercmds: u64,
    /// Whether the log knows a player only by the packets that the server received.
    has_heard_player: bool,
    /// A contradiction in the log.
    pub(crate) contradiction: Option<String>,
    /// The first missing part of the log.
    gap: Option<FirstGap>,
    pub(crate) has_server: bool,
    /// The number of recorded bodies that were compared with a replay, if all are equal; 0 if one differs.
    pub(super) equal_bodies: u64,
    /// Whether another build wrote no state hash.
    pub(super) replay_has_no_hash: bool,
    /// Whether another build simulated nothing that its trace shows, although the log records bodies.
    pub(super) replay_is_empty: bool,
}

/// The first missing part of a log.
#[derive(Clone, Copy, Debug)]
struct FirstGap {
    from: Micros,
    to: Micros,
    ticks_before: u64,
}

impl LogFacts {
    /// The facts of a surveyed log. `ticks_before` is the number of ticks before its first missing part.
    pub fn of_log(header: &SessionHeader, survey: &LogSurvey, ticks_before: u64) -> LogFacts {
        let TickCounts { with_hash, out_of_order, .. } = survey.ticks;
        let contradiction = match out_of_order {
            Some([before, after]) => {
                Some(format!("its ticks are out of order: after tick {before} comes tick {after}"))
            }
            None => survey.is_all_nan().then(|| "every recorded state is NaN".to_owned()),
        };
        LogFacts {
            with_hash,
            usercmds: survey.usercmds(),
            active_usercmds: survey.active_usercmds(),
            has_heard_player: survey.first_heard_player().is_some(),
            contradiction,
            gap: survey.first_gap().map(|gap| FirstGap { from: gap.from, to: gap.to, ticks_before }),
            has_server: header.holds() == LogContents::Whole,
            equal_bodies: 0,
            replay_has_no_hash: false,
            replay_is_empty: false,
        }
    }

    /// The counts of a replay of the whole log. Usercmds are counted in the log if the replay has no client frames of some
    /// players, or no active one: another build's trace may lack their table.
    #[must_use]
    pub fn completed(&self, exercised: Coverage) -> Coverage {
        let lacks_players = self.has_heard_player && exercised.ticks > 0;
        match lacks_players || exercised.active_usercmds == 0 {
            true => Coverage { usercmds: self.usercmds, active_usercmds: self.active_usercmds, ..exercised },
            false => exercised,
        }
    }
}

/// Describes the first usercmd that a log records as run but does not hold. Returns `None` if the log holds every usercmd
/// up to its first missing part. A log that begins inside a session may run usercmds that were made before it begins. A
/// build may run bots without usercmds, so players without any count only if the replay differs from their first usercmd on.
pub(crate) fn missing_usercmd(session: &Session, differs_from: Option<Tick>) -> Option<String> {
    let until = session.first_gap().map(|gap| gap.from);
    let is_before = |tick: Tick| {
        let place = session.ticks.partition_point(|of| of.tick < tick);
        until.is_none_or(|until| session.ticks.get(place).is_some_and(|of| of.at <= until))
    };
    let of_player = |(player, records): (usize, &PlayerRecords)| {
        let heard = records.heard.iter().flat_map(|packet| &packet.commands).map(|command| command.seq);
        let made = records.frames.iter().map(|frame| frame.command.seq);
        let held: SortedSet<CommandSeq> = made.chain(heard).collect();
        let is_needed = records.lacks_usercmds_from().zip(differs_from).is_some_and(|(from, differs)| differs <= from);
        let none_held = (is_needed && !session.header.begins_inside()).then_some(CommandSeq(0));
        let first = held.first().copied().or(none_held)?;
        let ran = records.executed.iter().filter(|done| done.how == Execution::Run && is_before(done.tick));
        let is_missing = |done: &&ExecutionRecord| done.command > first && !held.contains(&done.command);
        let missing = ran.filter(is_missing).min_by_key(|done| done.tick)?;
        Some((missing.tick, player, missing.command))
    };
    let missing = session.players.iter().enumerate().filter_map(of_player).min_by_key(|(tick, ..)| *tick);
    missing.map(|(tick, player, command)| {
        format!("it records p{player} #{command} as run in tick {tick}, but does not hold this usercmd")
    })
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
    pub summary: ReplaySummary,
    /// Further results of the run.
    pub ran: ReplayFindings,
}

impl VerifiedReplay {
    /// The result of a replay in memory.
    pub fn of(replayed: &ReplayOutput) -> VerifiedReplay {
        VerifiedReplay { summary: ReplaySummary::of(&replayed.trace), ran: replayed.findings.clone() }
    }
}

/// Judges the replays of one log, or the reason why there are none. The caller sets the path.
pub fn judge(
    facts: &LogFacts,
    replays: Result<&[VerifiedReplay], String>,
    reference: VerifyReference<'_>,
) -> LogReport {
    let (VerifiedReplay { summary, ran }, others) = match replays {
        Ok([first, others @ ..]) => (first, others),
        Ok([]) => return LogReport::not_replayed("it was not replayed"),
        Err(why) => return LogReport::not_replayed(why),
    };
    let text = summary.golden();
    let goldens = reference.golden.zip(text.as_deref());
    let golden_difference = goldens.and_then(|(accepted, text)| golden::difference(accepted, text));
    let replay_difference = others.iter().find_map(|other| compare_replays(summary, &other.summary));
    let judged = judge_figures(facts, ReplayFigures::of(summary), ran, reference, golden_difference, replay_difference);
    let change = goldens.map(|(accepted, text)| GoldenChange::of(Some(accepted), text));
    let detail = match (judged.why, change) {
        (Some(VerdictReason::Golden), Some(GoldenChange::Digests)) => Some(
            "the golden differs only in digests of tables: in other values, or in the order of equal rows".to_owned(),
        ),
        _ => judged.detail,
    };
    LogReport { digest: Some(summary.digest().to_string()), golden_text: text, detail, ..judged }
}

/// The figures of a replay on which the verdict depends, besides its digest. A leg of a log has only these and not the
/// outcome, because the number of legs grows with the log's length.
#[derive(Clone, Debug, Default)]
pub(super) struct ReplayFigures {
    exercised: Coverage,
    /// Predictions that were compared with acks.
    checked: u64,
    /// Predictions that agree with their acks, exactly or nearly.
    agreed: u64,
    is_closed: bool,
    /// The shots. The launch of a projectile may be in an earlier leg than its impact.
    shots: ShotCounter,
    /// The view errors of all shots, in units.
    view_errors: CountedValues,
}

impl ReplayFigures {
    pub(super) fn of(replay: &ReplaySummary) -> ReplayFigures {
        let summary = replay.summary();
        let predictions = &summary.prediction;
        let agreed = predictions.exact + predictions.near;
        ReplayFigures {
            exercised: summary.exercised,
            checked: agreed + predictions.misses_by_cause.values().sum::<u64>(),
            agreed,
            is_closed: replay.header.mode == "closed",
            shots: replay.figures.shots.clone(),
            view_errors: replay.figures.view_error_units.clone(),
        }
    }

    /// Adds the figures of consecutive legs.
    fn of_legs<'a>(legs: impl Iterator<Item = &'a ReplayFigures>) -> ReplayFigures {
        let mut all = ReplayFigures { is_closed: true, ..ReplayFigures::default() };
        for leg in legs {
            all.exercised.add(&leg.exercised);
            all.checked += leg.checked;
            all.agreed += leg.agreed;
            all.is_closed &= leg.is_closed;
            all.shots.add(&leg.shots);
            all.view_errors.add_counted(leg.view_errors.iter());
        }
        let (fired, hit) = (all.shots.fired(), all.shots.hit());
        all.exercised.shots = all.exercised.shots.map(|_| fired);
        all.exercised.hits = all.exercised.hits.map(|_| hit);
        all
    }
}

/// Judges the legs of a log, each replayed once and separately. Together they have every tick.
pub(super) fn judge_legs(
    facts: &LogFacts,
    legs: &[(ReplayFigures, ReplayFindings)],
    reference: VerifyReference<'_>,
) -> LogReport {
    let Some((_, ran)) = legs.first() else { return LogReport::not_replayed("it was not replayed") };
    let mut ran = ReplayFindings { hashes_compared: 0, hashes_before: 0, ..ran.clone() };
    for (_, of_leg) in legs {
        ran.hashes_compared += of_leg.hashes_compared - of_leg.hashes_before;
        ran.first_difference = ran.first_difference.or(of_leg.first_difference);
    }
    let figures = ReplayFigures::of_legs(legs.iter().map(|(figures, _)| figures));
    judge_figures(facts, figures, &ran, reference, None, None)
}

/// Says that a golden differs. Another number of usercmds than in the log shows another recording. A build's trace may lack
/// usercmds, and so may a golden that was made from one.
fn golden_differs(accepted: Option<&str>, in_log: u64, in_replay: u64) -> String {
    let is_other = |of_golden: &u64| ![0, in_log, in_replay].contains(of_golden);
    match accepted.and_then(golden::usercmds_of).filter(is_other) {
        Some(other) => {
            format!(
                "the golden differs. It has {other} usercmds, and this log {in_log}: it may be of another recording"
            )
        }
        None => "the golden differs".to_owned(),
    }
}

/// Judges the figures of replays.
fn judge_figures(
    facts: &LogFacts,
    figures: ReplayFigures,
    ran: &ReplayFindings,
    reference: VerifyReference<'_>,
    golden_difference: Option<TextDiff>,
    replay_difference: Option<LogFinding>,
) -> LogReport {
    let exercised = facts.completed(figures.exercised);
    let replays_differ = replay_difference.is_some();
    let of_golden = |_: &TextDiff| {
        let detail = golden_differs(reference.golden, facts.usercmds, figures.exercised.usercmds);
        LogFinding { reason: VerdictReason::Golden, detail }
    };
    let contradiction = facts.contradiction.clone();
    let finding = contradiction
        .map(|detail| LogFinding { reason: VerdictReason::Contradiction, detail })
        .or(replay_difference)
        .or_else(|| compare_recorded(facts, ran))
        // Before the golden: a trace without results must not replace it.
        .or_else(|| find_empty_replay(facts))
        .or_else(|| golden_difference.as_ref().map(of_golden))
        .or_else(|| find_untested(facts, ran, &figures, &exercised, reference));
    let same = LogReport::new(LogVerdict::Same);
    let report = match finding {
        Some(LogFinding { reason, detail }) => same.with_reason(reason, detail),
        None => same,
    };
    LogReport {
        tick: ran.first_difference.map(|difference| difference.tick),
        difference: golden_difference,
        exercised,
        hashes_recorded: facts.with_hash,
        // After a missing part, hashes say nothing.
        hashes_compared: facts.gap.map_or(ran.hashes_compared, |gap| ran.hashes_compared.min(gap.ticks_before)),
        replays_differ,
        rollbacks: ran.rollbacks,
        view_errors: figures.view_errors,
        golden: if reference.golden.is_some() { Golden::Compared } else { Golden::None },
        ..report
    }
}

/// Describes how the replay differs from the record.
fn compare_recorded(facts: &LogFacts, ran: &ReplayFindings) -> Option<LogFinding> {
    if let Some(error) = &ran.rollback_error {
        return Some(LogFinding { reason: VerdictReason::Rollback, detail: format!("rollback: {error}") });
    }
    // After a gap no replay can equal the recording, and a difference there does not concern the build.
    let first = ran.first_difference.filter(|first| facts.gap.is_none_or(|gap| first.at <= gap.from))?;
    let replayed = first.replayed.map_or("none, because it ended before".to_owned(), |hash| format!("{hash:016x}"));
    let HashDifference { tick, recorded, .. } = first;
    let bodies = match facts.equal_bodies {
        equal if equal > 0 && first.replayed.is_some() => format!("; the {equal} bodies that were compared are equal"),
        _ => String::new(),
    };
    let detail = format!("tick {tick}: the log has state hash {recorded:016x}, the replay has {replayed}{bodies}");
    Some(LogFinding { reason: VerdictReason::RecordedState, detail })
}

/// Describes how a second replay differs from the first.
fn compare_replays(first: &ReplaySummary, second: &ReplaySummary) -> Option<LogFinding> {
    let [digest, other] = [first, second].map(ReplaySummary::digest);
    if digest == other {
        return None;
    }
    let table = first.first_unlike(second).unwrap_or_default();
    let detail =
        format!("two replays by the same build differ, first in the table `{table}`: digests {digest} and {other}");
    Some(LogFinding { reason: VerdictReason::Replays, detail })
}

/// Says that another build simulated nothing that its trace shows.
fn find_empty_replay(facts: &LogFacts) -> Option<LogFinding> {
    let detail = "the replay simulated nothing: the log records bodies, and the trace has no bodies, no other results \
                  and no two state hashes";
    let finding = LogFinding { reason: VerdictReason::NothingCompared, detail: detail.to_owned() };
    facts.replay_is_empty.then_some(finding)
}

/// Why agreement shows nothing, or does not cover the whole log.
fn find_untested(
    facts: &LogFacts,
    ran: &ReplayFindings,
    figures: &ReplayFigures,
    exercised: &Coverage,
    reference: VerifyReference<'_>,
) -> Option<LogFinding> {
    let untestable = |reason, detail: String| Some(LogFinding { reason, detail });
    let LogFacts { with_hash, gap, .. } = *facts;
    let compared = ran.hashes_compared;
    if let Some(FirstGap { from, to, ticks_before }) = gap {
        let [from, to] = [from, to].map(|at| format!("{:.2} s", at.as_s_f64()));
        let judged = compared.min(ticks_before);
        let detail = format!(
            "a part of the log is missing, from {from} to {to}: {judged} of its {with_hash} ticks could be compared, and these match"
        );
        return untestable(VerdictReason::Gap, detail);
    }
    // Another build may write no hashes, or run no server. Then only a golden can decide.
    let has_no_hash = with_hash > 0 && (exercised.ticks == 0 || facts.replay_has_no_hash);
    if has_no_hash && reference.golden.is_none() {
        let detail =
            "the replay wrote no state hashes and there is no golden, so the replay cannot be compared with the log";
        return untestable(VerdictReason::NeedsGolden, detail.to_owned());
    }
    if compared < with_hash && !has_no_hash {
        let detail = format!(
            "only {compared} of its {with_hash} ticks could be compared: the replay has no hash for the other tick numbers"
        );
        return untestable(VerdictReason::Gap, detail);
    }
    if exercised.usercmds == 0 {
        return untestable(VerdictReason::NothingCompared, "no usercmd was run".to_owned());
    }
    if reference.rollback && ran.rollbacks == 0 {
        let detail = match facts.has_server {
            true => "no rollback was checked: the log is shorter than one rollback. Use a smaller --rollback",
            false => "no rollback was checked: the log has no server",
        };
        return untestable(VerdictReason::NothingCompared, detail.to_owned());
    }
    // Without hashes, the acks of a recorded server are the reference. A replay that agrees with none of them shows
    // nothing: the predictions, the acks or the pairing may be wrong. Bodies are only a part of the state.
    let agrees_with_acks = !figures.is_closed && figures.agreed > 0;
    if compared == 0 && reference.golden.is_none() && !agrees_with_acks {
        let detail = match figures.checked {
            checked if checked > 0 && !figures.is_closed => format!(
                "it has no state hashes and no golden, and none of the {checked} predictions of the replay agrees with the recorded acks"
            ),
            _ if facts.equal_bodies > 0 => format!(
                "it has no state hashes and no golden, so only its bodies were compared: {} are as recorded",
                facts.equal_bodies
            ),
            _ => "it has no state hashes and no golden, so a replay cannot be compared with it".to_owned(),
        };
        return untestable(VerdictReason::NeedsGolden, detail);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::trace::schema::{corrections, ticks};
    use hitreg_log::trace::{Column, ColumnData, Table, Trace, TraceHeader};

    fn replay(hash: u64) -> VerifiedReplay {
        let mut rows = ticks::Writer::default();
        rows.push(ticks::Row { tick: 1, at_us: 16_667, hash });
        let trace = Trace { header: TraceHeader::default(), tables: vec![rows.finish(Vec::new())] };
        let difference = HashDifference { tick: Tick(1), at: Micros(16_667), recorded: 7, replayed: Some(hash) };
        let ran =
            ReplayFindings { first_difference: Some(difference), hashes_compared: 1, ..ReplayFindings::default() };
        VerifiedReplay { summary: ReplaySummary::of(&trace), ran }
    }

    /// A build whose runs differ shows nothing about the recorded states.
    #[test]
    fn replays_that_differ_come_before_recorded_states() {
        let facts = LogFacts { with_hash: 1, ..LogFacts::default() };
        let judged = |replays: [VerifiedReplay; 2], facts: &LogFacts| {
            let report = judge(facts, Ok(&replays), VerifyReference::default());
            (report.why, report.replays_differ)
        };
        assert_eq!(judged([replay(1), replay(2)], &facts), (Some(VerdictReason::Replays), true));
        assert_eq!(judged([replay(1), replay(1)], &facts), (Some(VerdictReason::RecordedState), false));
        let broken = LogFacts { contradiction: Some(String::new()), ..facts };
        assert_eq!(judged([replay(1), replay(2)], &broken), (Some(VerdictReason::Contradiction), true));
    }

    /// The world moves also if no player presses a key.
    #[test]
    fn a_session_of_idle_players_is_the_same_if_its_states_are() {
        let facts = LogFacts { with_hash: 1, has_server: true, usercmds: 3, ..LogFacts::default() };
        let of = |summary| VerifiedReplay {
            summary,
            ran: ReplayFindings { hashes_compared: 1, ..ReplayFindings::default() },
        };
        let replays = [(); 2].map(|()| of(replay(7).summary));
        let report = judge(&facts, Ok(&replays), VerifyReference::default());
        assert_eq!((report.verdict, report.detail), (LogVerdict::Same, None));
    }

    /// Predictions that agree with acks do not stand for the states of a server that the build did not run.
    #[test]
    fn an_open_replay_of_a_log_with_states_needs_a_golden() {
        let facts = LogFacts { with_hash: 9, has_server: true, usercmds: 3, active_usercmds: 3, ..LogFacts::default() };
        let result = Column::new("result", ColumnData::Name { names: vec!["exact".to_owned()], codes: vec![0, 0, 0] });
        let header = TraceHeader { mode: "open".to_owned(), ..TraceHeader::default() };
        let trace = Trace { header, tables: vec![Table::new(corrections::NAME, vec![result])] };
        let replay = || VerifiedReplay { summary: ReplaySummary::of(&trace), ran: ReplayFindings::default() };
        let report = judge(&facts, Ok(&[replay(), replay()]), VerifyReference::default());
        assert_eq!((report.verdict, report.why), (LogVerdict::Untestable, Some(VerdictReason::NeedsGolden)));
    }

    /// An imported log has neither tick hashes nor a golden, so its acks are the reference.
    #[test]
    fn an_imported_log_is_untestable_if_no_prediction_agrees_with_an_ack() {
        let facts = LogFacts { usercmds: 3, active_usercmds: 3, ..LogFacts::default() };
        let judged = |mode: &str, results: [&str; 3]| {
            let names = results.map(str::to_owned).into();
            let result = Column::new("result", ColumnData::Name { names, codes: vec![0, 1, 2] });
            let header = TraceHeader { mode: mode.to_owned(), ..TraceHeader::default() };
            let trace = Trace { header, tables: vec![Table::new(corrections::NAME, vec![result])] };
            let replay = || VerifiedReplay { summary: ReplaySummary::of(&trace), ran: ReplayFindings::default() };
            let report = judge(&facts, Ok(&[replay(), replay()]), VerifyReference::default());
            (report.verdict, report.why, report.detail.unwrap_or_default())
        };
        let (verdict, why, detail) = judged("open", ["miss", "miss_a", "miss_b"]);
        assert_eq!((verdict, why), (LogVerdict::Untestable, Some(VerdictReason::NeedsGolden)));
        assert!(detail.contains("none of the 3 predictions of the replay agrees"), "{detail}");
        for one_agrees in [["exact", "miss", "miss_a"], ["miss", "near", "miss_a"]] {
            assert_eq!(judged("open", one_agrees), (LogVerdict::Same, None, String::new()));
        }
        let (verdict, _, detail) = judged("closed", ["exact", "miss", "miss_a"]);
        assert_eq!(verdict, LogVerdict::Untestable);
        assert!(detail.ends_with("so a replay cannot be compared with it"), "{detail}");
    }
}
