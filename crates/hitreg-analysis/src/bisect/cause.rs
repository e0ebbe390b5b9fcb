//! The causes of a divergence. An event in one run only has one of the causes of mispredictions. If the same input and
//! state give another result, the cause is the build.

use serde::{Serialize, Serializer};

use super::rerun::RerunResult;
use crate::diff::{ChangedSetting, Divergence, DivergenceKind, UsercmdRow, settings_that_differ};
use hitreg_log::record::Cause;
use hitreg_log::trace::Trace;
use hitreg_log::trace::schema::{BODIES_OF_CLASS, bodies, corrections, errors, shots};

/// Why two runs diverge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DivergenceCause {
    /// One run met something that the other run did not.
    Met(Cause),
    /// A shot hit in one run only. The game decides what a hit does to a body.
    Shot,
    /// The runs have different usercmds.
    OtherInput,
    /// The runs have different settings.
    Settings,
    /// The same input, state and settings give another result.
    Build,
}

/// A cause with its evidence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CauseFinding {
    /// The cause.
    pub cause: DivergenceCause,
    /// The evidence, as text.
    pub evidence: String,
}

impl DivergenceCause {
    /// The name in results: one of [`Cause::NAMES`], `shot`, `other_input`, `settings` or `build`.
    pub fn name(self) -> &'static str {
        match self {
            DivergenceCause::Met(cause) => cause.name(),
            DivergenceCause::Shot => "shot",
            DivergenceCause::OtherInput => "other_input",
            DivergenceCause::Settings => "settings",
            DivergenceCause::Build => "build",
        }
    }
}

impl Serialize for DivergenceCause {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

/// The cause of a divergence. Checks the usercmds themselves before their effects, and reproduced causes before
/// coincidences.
///
/// `have_executed` says whether both traces tell which usercmds were executed.
pub(crate) fn classify(
    traces: [&Trace; 2],
    have_executed: bool,
    first: &Divergence,
    reran: Option<&RerunResult>,
) -> CauseFinding {
    let found = |cause, evidence| CauseFinding { cause, evidence };
    let own = first.own_usercmds(traces);
    let all = [&first.usercmds_a, &first.usercmds_b].map(|list| list.iter().collect::<Vec<_>>());
    // A trace without executed usercmds does not record them; it does not mean that none ran.
    let executed = |usercmds: &[Vec<&UsercmdRow>; 2]| {
        let found = if have_executed { execution(usercmds) } else { None };
        found.map(|finding| with_setting(finding, traces))
    };
    executed(&own)
        .or_else(|| input(&own))
        .or_else(|| reproduced(reran))
        .or_else(|| correction(traces, first))
        .or_else(|| stated(first))
        .or_else(|| shot(traces, first))
        .or_else(|| executed(&all))
        .or_else(|| input(&all))
        .or_else(|| settings(traces))
        .unwrap_or_else(|| match (first.what, reran) {
            (DivergenceKind::TimesDiffer, _) => {
                found(DivergenceCause::Met(Cause::Unknown), "from there on, the times of the runs differ".to_owned())
            }
            (_, Some(RerunResult::Same)) => found(
                DivergenceCause::Build,
                "both builds run the usercmds alike in `step_body`; `run`, which was not compared, or a later part of the tick differs".to_owned(),
            ),
            _ if are_of_different_logs(traces) => {
                found(DivergenceCause::Met(Cause::Unknown), "A and B are replays of different logs".to_owned())
            }
            _ => found(DivergenceCause::Build, "inputs, earlier state and settings are the same".to_owned()),
        })
}

/// Whether both traces name their logs, and these differ. Then their inputs can differ in ways that the tables do not
/// show.
fn are_of_different_logs([a, b]: [&Trace; 2]) -> bool {
    let (a, b) = (&a.header.log_digest, &b.header.log_digest);
    a != b && !a.is_empty() && !b.is_empty()
}

/// Finds a usercmd that one run executed, and that was lost, late, or in another tick in the other run.
fn execution([a, b]: &[Vec<&UsercmdRow>; 2]) -> Option<CauseFinding> {
    let of = |list: &[&UsercmdRow], ran: &UsercmdRow| -> Option<UsercmdRow> {
        list.iter().find(|r| (r.player, r.command) == (ran.player, ran.command)).map(|row| (*row).clone())
    };
    for ran in a.iter().chain(b) {
        let (in_a, in_b) = (of(a, ran), of(b, ran));
        let how = |ran: &Option<UsercmdRow>| {
            ran.as_ref().and_then(|r| r.how.clone()).unwrap_or("not in this tick".to_owned())
        };
        let (how_a, how_b) = (how(&in_a), how(&in_b));
        if how_a == how_b {
            continue;
        }
        let either = |names: &[&str]| names.iter().any(|name| how_a == *name || how_b == *name);
        let cause = if either(&["stood_in", "missing"]) {
            Cause::InputLost
        } else if either(&["late", "not in this tick"]) {
            Cause::InputLate
        } else if either(&["over_budget"]) {
            Cause::InputRefused
        } else {
            Cause::Unknown
        };
        let evidence = format!("usercmd {} of p{}: {how_a} in A, {how_b} in B", ran.command, ran.player);
        return Some(CauseFinding { cause: DivergenceCause::Met(cause), evidence });
    }
    None
}

/// Attributes a difference in execution to the settings that differ. Replays of one log have the same packets, so nothing
/// was lost or late in one of them alone.
fn with_setting(finding: CauseFinding, traces: [&Trace; 2]) -> CauseFinding {
    match settings(traces) {
        Some(setting) if !are_of_different_logs(traces) => {
            CauseFinding { cause: setting.cause, evidence: format!("{}; {}", finding.evidence, setting.evidence) }
        }
        _ => finding,
    }
}

fn input([a, b]: &[Vec<&UsercmdRow>; 2]) -> Option<CauseFinding> {
    // The runs may list the usercmds of a tick in different orders: by player, or in the order in which they ran.
    let same = |a: &UsercmdRow, b: &UsercmdRow| (a.player, a.command) == (b.player, b.command);
    let mut pairs = a.iter().filter_map(|a| Some((a, b.iter().find(|b| same(a, b))?)));
    let (a, b) = pairs.find(|(a, b)| a.input != b.input && !a.input.is_empty() && !b.input.is_empty())?;
    let differing = a.input.iter().zip(&b.input).find(|(x, y)| x != y)?;
    let evidence = format!(
        "{} of usercmd {} of p{} is {} in A, {} in B",
        differing.0.name, a.command, a.player, differing.0.value, differing.1.value
    );
    Some(CauseFinding { cause: DivergenceCause::OtherInput, evidence })
}

fn reproduced(reran: Option<&RerunResult>) -> Option<CauseFinding> {
    let Some(RerunResult::Differs { player, command, field, a, b }) = reran else { return None };
    let evidence = format!(
        "usercmd {command} of p{player}, run again from the last common state, gives {field} {a} in A, {b} in B"
    );
    Some(CauseFinding { cause: DivergenceCause::Build, evidence })
}

/// Finds a prediction that only one run corrected, with the cause that its trace gives.
fn correction([a, b]: [&Trace; 2], first: &Divergence) -> Option<CauseFinding> {
    if ![corrections::NAME, errors::NAME].contains(&first.table.as_str()) {
        return None;
    }
    let place = (first.place.player?, first.place.command?);
    let of = |trace: &Trace| {
        let table = corrections::Columns::of(trace);
        let row = table.player.iter().zip(table.command).position(|key| key == (&place.0, &place.1))?;
        let known: Cause = table.cause.get(row).parse().ok()?;
        Some((known, table.evidence.get(row).to_owned()))
    };
    let (side, (cause, evidence)) = match (of(a), of(b)) {
        (Some(_), Some(_)) | (None, None) => return None,
        (Some(found), None) => ("A", found),
        (None, Some(found)) => ("B", found),
    };
    Some(CauseFinding {
        cause: DivergenceCause::Met(cause),
        evidence: format!("corrected in {side} only, evidence: {evidence}"),
    })
}

/// Whether a table holds states of entities.
fn is_bodies(table: &str) -> bool {
    table == bodies::NAME || table.starts_with(BODIES_OF_CLASS)
}

/// Finds a teleport, a death or a spawn that only one run has.
fn stated(first: &Divergence) -> Option<CauseFinding> {
    if !is_bodies(&first.table) {
        return None;
    }
    let differs = |name: &str| first.field.as_deref() == Some(name) || first.others.iter().any(|o| o.field == name);
    let cause = if differs("alive") {
        Cause::SpawnOrDeath
    } else if differs("teleports") {
        Cause::Teleport
    } else {
        return None;
    };
    Some(CauseFinding { cause: DivergenceCause::Met(cause), evidence: "the state differs in this".to_owned() })
}

/// Finds a shot of the same tick that hurt the entity in one run only.
fn shot([a, b]: [&Trace; 2], first: &Divergence) -> Option<CauseFinding> {
    if first.table != bodies::NAME {
        return None;
    }
    let target = format!("p{}", first.place.entity?);
    let tick = first.place.tick?;
    let (hits_a, hits_b) = (hits(a, tick, &target), hits(b, tick, &target));
    let only = |these: &[(u32, u32)], others: &[(u32, u32)]| these.iter().find(|hit| !others.contains(hit)).copied();
    let ((shooter, command), side) = match (only(&hits_a, &hits_b), only(&hits_b, &hits_a)) {
        (Some(hit), _) => (hit, "A"),
        (None, Some(hit)) => (hit, "B"),
        (None, None) => return None,
    };
    let evidence = format!("the shot of p{shooter}'s usercmd {command} hit {target} in {side} only");
    Some(CauseFinding { cause: DivergenceCause::Shot, evidence })
}

fn hits(trace: &Trace, tick: u32, target: &str) -> Vec<(u32, u32)> {
    let shots = shots::Columns::of(trace);
    let in_tick = (0..shots.rows).filter(|&row| shots.tick.get(row) == Some(&tick));
    let hits = in_tick.filter(|&row| shots.reason.get(row) == "hit" && shots.target.get(row) == target);
    hits.filter_map(|row| Some((*shots.shooter.get(row)?, *shots.command.get(row)?))).collect()
}

fn settings([a, b]: [&Trace; 2]) -> Option<CauseFinding> {
    let changed = settings_that_differ([&a.header.settings, &b.header.settings]);
    let evidence = match &changed[..] {
        [] => return None,
        [one] => one.to_string(),
        several => {
            let keys: Vec<&str> = several.iter().map(|setting| setting.key.as_str()).collect();
            format!("one or more of {}", keys.join(", "))
        }
    };
    Some(CauseFinding { cause: DivergenceCause::Settings, evidence })
}

impl CauseFinding {
    /// The cause when a single setting alone gives the same divergence.
    pub fn of_setting(setting: &ChangedSetting) -> CauseFinding {
        let evidence = format!("{setting}, and alone gives this difference");
        CauseFinding { cause: DivergenceCause::Settings, evidence }
    }
}
