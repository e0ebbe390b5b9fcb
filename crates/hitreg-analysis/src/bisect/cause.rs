//! The causes of a divergence. An event in one run only has one of the causes of mispredictions. If the same input and
//! state give another result, the cause is the build.
//!
//! [`Cause`] is why a prediction was wrong, [`DivergenceCause`] why two runs diverge, and [`DivergenceOrigin`] which
//! setting or build is behind it.

use serde::{Serialize, Serializer};

use super::RerunResult;
use crate::diff::{ChangedSetting, Divergence, DivergenceKind, UsercmdRow, find_usercmd, settings_that_differ};
use hitreg_log::record::Cause;
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::Trace;
use hitreg_log::trace::schema::{corrections, errors, executed, is_bodies, shots};
use hitreg_log::units::EntityId;

/// Why two runs diverge.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DivergenceCause {
    /// An event of one run only.
    InOneRun(Cause),
    /// A shot hit in one run only, and the difference is one that a hit can make. The game decides what a hit does to a
    /// body.
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
    /// What a changed setting did first, as text.
    #[serde(skip)]
    effect: Option<String>,
}

impl DivergenceCause {
    const UNKNOWN: DivergenceCause = DivergenceCause::InOneRun(Cause::Unknown);

    /// Whether one run got other usercmds, or ran them in another tick or not at all.
    fn is_input(self) -> bool {
        matches!(
            self,
            DivergenceCause::OtherInput
                | DivergenceCause::InOneRun(Cause::InputLost | Cause::InputLate | Cause::InputRefused)
        )
    }

    /// The name in results: one of [`Cause::NAMES`], `shot`, `other_input`, `settings` or `build`.
    pub fn name(self) -> &'static str {
        match self {
            DivergenceCause::InOneRun(cause) => cause.name(),
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
/// coincidences. Replays of one log have the same packets and input, so settings that differ explain all other events of
/// one replay only. Without such settings, the builds explain usercmds that ran differently.
///
/// `have_executed` says whether both traces tell which usercmds were executed.
pub(crate) fn find_cause(
    traces: [&Trace; 2],
    have_executed: bool,
    first: &Divergence,
    reran: Option<&RerunResult>,
) -> CauseFinding {
    let own = first.own_usercmds(traces);
    let all = [&first.usercmds_a, &first.usercmds_b].map(|list| list.iter().collect::<Vec<_>>());
    // A trace without executed usercmds does not record them; it does not mean that none ran.
    let by_execution =
        |usercmds: &[Vec<&UsercmdRow>; 2]| if have_executed { find_other_execution(usercmds, traces) } else { None };
    let by_own_usercmd = by_execution(&own).or_else(|| find_other_input(&own));
    let shot = find_changed_shot(traces, first);
    let event = match (by_own_usercmd, cause_of_rerun(reran)) {
        (None, Some(found)) => return found,
        (Some(found), _) => Some(found),
        (None, None) => {
            let by_shot = shot.as_ref().filter(|shot| shot.is_cause);
            let by_shot = by_shot.map(|shot| CauseFinding::new(DivergenceCause::Shot, shot.text.clone()));
            let by_state = find_other_correction(traces, first).or(by_shot).or_else(|| find_state_change(first));
            by_state.or_else(|| by_execution(&all)).or_else(|| find_other_input(&all))
        }
    };
    let found = weigh_settings(traces, first, reran, event);
    match shot.filter(|shot| !shot.is_cause) {
        Some(shot) => CauseFinding { evidence: format!("{}; a consequence: {}", found.evidence, shot.text), ..found },
        None => found,
    }
}

/// The cause of a divergence, as far as an event of one run explains it.
fn weigh_settings(
    traces: [&Trace; 2],
    first: &Divergence,
    reran: Option<&RerunResult>,
    event: Option<CauseFinding>,
) -> CauseFinding {
    match (event, find_changed_settings(traces)) {
        (Some(event), Some(setting)) if !are_of_different_logs(traces) => CauseFinding {
            evidence: format!("{}; {}", event.evidence, setting.evidence),
            effect: Some(event.evidence),
            ..setting
        },
        (Some(event), None) if event.cause.is_input() && are_of_one_log(traces) => CauseFinding {
            cause: DivergenceCause::Build,
            evidence: format!("both builds replay the same log; {}", event.evidence),
            ..event
        },
        (Some(event), _) => event,
        (None, Some(setting)) if !are_of_different_logs(traces) => setting,
        (None, _) => match (first.what, reran) {
            (DivergenceKind::TimesDiffer, _) => {
                CauseFinding::new(DivergenceCause::UNKNOWN, "from there on, the times of the runs differ")
            }
            (_, Some(RerunResult::Same)) => CauseFinding::new(
                DivergenceCause::Build,
                "both builds run the usercmds alike in `step_body`; `run`, which was not compared, or a later part of the tick differs",
            ),
            _ => cause_without_event(traces),
        },
    }
}

/// The cause of a divergence that no event and no setting explains.
fn cause_without_event(traces: [&Trace; 2]) -> CauseFinding {
    if are_of_different_logs(traces) {
        CauseFinding::new(DivergenceCause::UNKNOWN, "A and B are replays of different logs")
    } else if traces[0].header.part != traces[1].header.part {
        CauseFinding::new(DivergenceCause::UNKNOWN, "A and B are replays of different parts of the log")
    } else {
        CauseFinding::new(DivergenceCause::Build, "inputs, earlier state and settings are the same")
    }
}

/// Whether both traces name their logs, and these differ. Then their inputs can differ in ways that the tables do not
/// show.
fn are_of_different_logs([a, b]: [&Trace; 2]) -> bool {
    a.header.is_of_same_log(&b.header) == Some(false)
}

/// Whether both traces name the same log and the same way to replay it. Then the builds got the same packets and input.
fn are_of_one_log([a, b]: [&Trace; 2]) -> bool {
    let (a, b) = (&a.header, &b.header);
    a.is_of_same_log(b) == Some(true) && a.mode == b.mode && a.part == b.part
}

/// Finds a usercmd that the runs executed differently: in one run it was lost, late, refused, in another tick or in none.
fn find_other_execution([a, b]: &[Vec<&UsercmdRow>; 2], traces: [&Trace; 2]) -> Option<CauseFinding> {
    for ran in a.iter().chain(b) {
        let how = |list: &[&UsercmdRow], trace: &Trace| {
            let listed = list.iter().find(|row| (row.player, row.command) == (ran.player, ran.command));
            listed.and_then(|row| row.how.clone()).unwrap_or_else(|| match (tick_of(trace, ran), listed) {
                (None, _) => "in no tick".to_owned(),
                (Some(_), Some(_)) => "run".to_owned(),
                (Some(tick), None) => format!("in tick {tick}"),
            })
        };
        let (how_a, how_b) = (how(a, traces[0]), how(b, traces[1]));
        if how_a == how_b {
            continue;
        }
        let either = |names: &[&str]| names.iter().any(|name| how_a.starts_with(name) || how_b.starts_with(name));
        let cause = if either(&["stood_in", "missing"]) {
            DivergenceCause::InOneRun(Cause::InputLost)
        } else if either(&["late", "in tick"]) {
            DivergenceCause::InOneRun(Cause::InputLate)
        } else if either(&["over_budget"]) {
            DivergenceCause::InOneRun(Cause::InputRefused)
        } else {
            // One run has no row of the usercmd at all.
            cause_without_event(traces).cause
        };
        let evidence = format!("usercmd {} of p{}: {how_a} in A, {how_b} in B", ran.command, ran.player);
        return Some(CauseFinding::new(cause, evidence));
    }
    None
}

/// The tick in which a trace has a usercmd.
fn tick_of(trace: &Trace, usercmd: &UsercmdRow) -> Option<u32> {
    let executed = executed::Columns::of(trace);
    let row = find_usercmd(executed.player, executed.command, (usercmd.player, usercmd.command))?;
    executed.tick.get(row).copied()
}

fn find_other_input([a, b]: &[Vec<&UsercmdRow>; 2]) -> Option<CauseFinding> {
    // The runs may list the usercmds of a tick in different orders: by player, or in the order in which they ran.
    let same = |a: &UsercmdRow, b: &UsercmdRow| (a.player, a.command) == (b.player, b.command);
    let mut pairs = a.iter().filter_map(|a| Some((a, b.iter().find(|b| same(a, b))?)));
    let (a, b) = pairs.find(|(a, b)| a.input != b.input && !a.input.is_empty() && !b.input.is_empty())?;
    let differing = a.input.iter().zip(&b.input).find(|(x, y)| x != y)?;
    let evidence = format!(
        "{} of usercmd {} of p{} is {} in A, {} in B",
        differing.0.name, a.command, a.player, differing.0.value, differing.1.value
    );
    Some(CauseFinding::new(DivergenceCause::OtherInput, evidence))
}

fn cause_of_rerun(reran: Option<&RerunResult>) -> Option<CauseFinding> {
    let Some(RerunResult::Differs { player, command, field, a, b }) = reran else { return None };
    let evidence = format!(
        "usercmd {command} of p{player}, run again from the last common state, gives {field} {a} in A, {b} in B"
    );
    Some(CauseFinding::new(DivergenceCause::Build, evidence))
}

/// Finds a prediction that only one run corrected, with the cause that its trace gives.
fn find_other_correction([a, b]: [&Trace; 2], first: &Divergence) -> Option<CauseFinding> {
    if ![corrections::NAME, errors::NAME].contains(&first.table.as_str()) {
        return None;
    }
    let place = (first.place.player?, first.place.command?);
    let of = |trace: &Trace| {
        let table = corrections::Columns::of(trace);
        let row = find_usercmd(table.player, table.command, place)?;
        let known: Cause = table.cause.get(row).parse().ok()?;
        Some((known, table.evidence.get(row).to_owned()))
    };
    let (side, (cause, evidence)) = match (of(a), of(b)) {
        (Some(_), Some(_)) | (None, None) => return None,
        (Some(found), None) => ("A", found),
        (None, Some(found)) => ("B", found),
    };
    let evidence = format!("corrected in {side} only, evidence: {evidence}");
    Some(CauseFinding::new(DivergenceCause::InOneRun(cause), evidence))
}

/// Finds a teleport, a death or a spawn that only one run has.
fn find_state_change(first: &Divergence) -> Option<CauseFinding> {
    if !is_bodies(&first.table) {
        return None;
    }
    let differs = |name: &str| first.field.as_deref() == Some(name) || first.others.iter().any(|o| o.field == name);
    let (cause, field) = if differs("alive") {
        (Cause::SpawnOrDeath, "alive")
    } else if differs("teleports") {
        (Cause::Teleport, "teleports")
    } else {
        return None;
    };
    Some(CauseFinding::new(DivergenceCause::InOneRun(cause), format!("`{field}` differs")))
}

fn find_changed_settings([a, b]: [&Trace; 2]) -> Option<CauseFinding> {
    let changed = settings_that_differ([&a.header.settings, &b.header.settings]);
    let evidence = match &changed[..] {
        [] => return None,
        [one] => one.to_string(),
        several => {
            let keys: Vec<&str> = several.iter().map(|setting| setting.key.as_str()).collect();
            format!("one or more of {}", keys.join(", "))
        }
    };
    Some(CauseFinding::new(DivergenceCause::Settings, evidence))
}

impl CauseFinding {
    fn new(cause: DivergenceCause, evidence: impl Into<String>) -> CauseFinding {
        CauseFinding { cause, evidence: evidence.into(), effect: None }
    }

    /// Adds what trials found behind a divergence of sides with different settings.
    pub fn explain_by(&mut self, origin: &DivergenceOrigin) {
        let effect = self.effect.as_ref().map(|effect| format!("{effect}; ")).unwrap_or_default();
        match origin {
            DivergenceOrigin::Setting(setting) => {
                self.evidence = format!("{effect}{setting}, and alone gives this difference");
            }
            DivergenceOrigin::Settings => {}
            DivergenceOrigin::Builds => {
                let evidence = format!("{effect}the build of A does not give this difference with the settings of B");
                *self = CauseFinding::new(DivergenceCause::Build, evidence);
            }
            DivergenceOrigin::Unknown => {
                *self = CauseFinding::new(DivergenceCause::UNKNOWN, format!("the builds differ; {}", self.evidence));
            }
        }
    }
}

/// Where a divergence of two sides with different settings comes from.
#[derive(Clone, Debug, PartialEq)]
pub enum DivergenceOrigin {
    /// This setting, changed alone in A, gives the divergence.
    Setting(ChangedSetting),
    /// The settings: the builds are the same, or A gives the divergence with all settings of B.
    Settings,
    /// A does not give the divergence with the settings of B.
    Builds,
    /// The builds differ, and trials were not possible.
    Unknown,
}

/// A shot of the divergence's tick with another result for the divergence's entity.
pub(super) struct FirstChangedShot {
    pub(super) text: String,
    /// Whether the shot explains every difference in the row. Otherwise it is a consequence of what differs.
    is_cause: bool,
}

/// Finds a shot of the same tick that hit the entity in one run only, or with other damage.
pub(super) fn find_changed_shot([a, b]: [&Trace; 2], first: &Divergence) -> Option<FirstChangedShot> {
    if !is_bodies(&first.table) {
        return None;
    }
    let target = EntityId(first.place.entity?.try_into().ok()?);
    let tick = first.place.tick?;
    let (hits_a, hits_b) = (hits(a, tick, target), hits(b, tick, target));
    let mut all = hits_a.iter().chain(&hits_b);
    let (shot, HitRow { target: name, is_impact, .. }) = all.find(|(shot, _)| hits_a.get(shot) != hits_b.get(shot))?;
    let (shooter, command, _) = *shot;
    let how = match [&hits_a, &hits_b].map(|hits| hits.get(shot)) {
        [Some(a), Some(b)] => format!("hit {name} for {} in A, {} in B", a.damage, b.damage),
        [a, _] => format!("hit {name} in {} only", if a.is_some() { "A" } else { "B" }),
    };
    // A projectile may still fly in the other run. Any other shot that only one run fired is the work of its usercmd.
    let is_fired = *is_impact || [a, b].iter().all(|trace| has_fired(trace, tick, *shot));
    let is_death = [&hits_a, &hits_b].iter().any(|hits| is_deadly(hits.values().map(|hit| hit.damage).sum(), first));
    let moves = ran_before([a, b], tick, (shooter, command), u32::from(target.0));
    Some(FirstChangedShot {
        text: format!("the shot of p{shooter}'s usercmd {command} {how}"),
        is_cause: is_fired && (is_death || has_hit_fields([a, b], first, moves)),
    })
}

/// Whether a trace has a shot in a tick, whatever its result.
fn has_fired(trace: &Trace, tick: u32, (shooter, command, index): (u32, u32, u32)) -> bool {
    let shots = shots::Columns::of(trace);
    let key = (Some(&tick), Some(&shooter), Some(&command), Some(&index));
    (0..shots.rows)
        .any(|row| (shots.tick.get(row), shots.shooter.get(row), shots.command.get(row), shots.index.get(row)) == key)
}

/// Whether hits end the life that the entity had before. A death and the spawn after it can change every field.
fn is_deadly(damage: i64, first: &Divergence) -> bool {
    let differing = first.field.iter().chain(first.others.iter().map(|other| &other.field));
    let health = first.last_agreeing.iter().flat_map(|row| &row.values).find(|value| value.name == "health");
    let left = health.and_then(|health| health.value.whole());
    differing.into_iter().any(|field| field == "alive")
        || left.is_some_and(|left| damage > 0 && left <= i128::from(damage))
}

/// Whether a hit that kills nobody can change every differing field. A knockback changes the velocity; the position
/// follows only if the entity moves later in the tick (`moves`).
fn has_hit_fields(traces: [&Trace; 2], first: &Divergence, moves: bool) -> bool {
    let differing: Vec<&str> =
        first.field.iter().chain(first.others.iter().map(|other| &other.field)).map(String::as_str).collect();
    let unit = |field: &str| {
        let columns = traces.iter().filter_map(|trace| trace.table(&first.table)?.column(field));
        columns.map(|column| column.unit.as_str()).find(|unit| !unit.is_empty()).unwrap_or_default()
    };
    let is_pushed = differing.iter().any(|field| field.starts_with("velocity") || unit(field) == "units/s");
    let is_place = |field: &str| field.starts_with("origin") || unit(field) == "units";
    differing.iter().all(|field| !is_place(field) || (is_pushed && moves))
}

/// Whether a usercmd ran before the last usercmd of another player in a tick, or the order is not known.
fn ran_before(traces: [&Trace; 2], tick: u32, usercmd: (u32, u32), other: u32) -> bool {
    traces.iter().any(|trace| {
        let order = super::executed(trace, tick);
        let shot = order.iter().position(|ran| *ran == usercmd);
        let last = order.iter().rposition(|(player, _)| *player == other);
        shot.zip(last).is_none_or(|(shot, last)| shot < last)
    })
}

/// A hit of an entity.
#[derive(PartialEq)]
struct HitRow {
    /// The entity's name in the trace.
    target: String,
    damage: i64,
    is_impact: bool,
}

/// The shots that hit an entity in a tick, by shooter, usercmd and index.
fn hits(trace: &Trace, tick: u32, target: EntityId) -> SortedMap<(u32, u32, u32), HitRow> {
    let shots = shots::Columns::of(trace);
    let in_tick = (0..shots.rows).filter(|&row| shots.tick.get(row) == Some(&tick));
    let hits = in_tick.filter(|&row| shots.reason.get(row) == "hit");
    let hits = hits.filter(|&row| EntityId::named(shots.target.get(row)) == Some(target));
    let shot = |row: usize| Some((*shots.shooter.get(row)?, *shots.command.get(row)?, *shots.index.get(row)?));
    let hit = |row: usize| {
        let is_impact = shots.impact.get(row) == Some(&1);
        Some(HitRow { target: shots.target.get(row).to_owned(), damage: *shots.damage.get(row)?, is_impact })
    };
    hits.filter_map(|row| Some((shot(row)?, hit(row)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bisect::bisect_ticks;
    use crate::diff::{DiffOptions, DiffScope};
    use hitreg_log::trace::schema::{bodies, shots};
    use hitreg_log::trace::{Column, ColumnData, Table};

    /// Tick 2 of a run: p1 shoots with usercmd 7, and p0 runs usercmd 9.
    #[derive(Clone)]
    struct Run {
        /// The position, velocity and health of p0 after the tick.
        body: (f32, f32, i64),
        /// The result of the shot; `None` if p1 does not fire.
        shot: Option<&'static str>,
        shooter_runs_first: bool,
        /// How usercmd 9 of p0 ran.
        how: &'static str,
        log: &'static str,
    }

    const DAMAGE: i64 = 10;

    impl Run {
        /// A run in which p0 has this health before the tick.
        fn trace(&self, health: i64) -> Trace {
            let names = |words: &[&str]| ColumnData::Name {
                names: words.iter().map(|word| (*word).to_owned()).collect(),
                codes: (0..).take(words.len()).collect(),
            };
            let number = |name: &str, rows: &[u32]| Column::new(name, ColumnData::U32(rows.to_vec()));
            let (place, velocity, left) = self.body;
            let body = vec![
                number("tick", &[1, 2]),
                number("entity", &[0, 0]),
                Column::new("origin.x", ColumnData::F32(vec![5.0, place])),
                Column::new("velocity.x", ColumnData::F32(vec![1.0, velocity])),
                Column::new("health", ColumnData::I64(vec![health, left])),
            ];
            let order = if self.shooter_runs_first { [[1, 0], [7, 9]] } else { [[0, 1], [9, 7]] };
            let how = if self.shooter_runs_first { ["run", self.how] } else { [self.how, "run"] };
            let executed = vec![
                number("player", &order[0]),
                number("command", &order[1]),
                number("tick", &[2, 2]),
                Column::new("how", names(&how)),
            ];
            let shots = self.shot.map(|reason| {
                let is_hit = reason == "hit";
                vec![
                    number("shooter", &[1]),
                    number("command", &[7]),
                    number("index", &[0]),
                    number("tick", &[2]),
                    Column::new("reason", names(&[reason])),
                    Column::new("target", names(&[if is_hit { "p0" } else { "none" }])),
                    Column::new("damage", ColumnData::I64(vec![if is_hit { DAMAGE } else { 0 }])),
                ]
            });
            let mut trace = Trace::default();
            trace.header.log_digest = self.log.to_owned();
            let tables = [(bodies::NAME, Some(body)), (executed::NAME, Some(executed)), (shots::NAME, shots)];
            let tables = tables.into_iter().filter_map(|(name, columns)| Some(Table::new(name, columns?)));
            trace.tables = tables.collect();
            trace
        }
    }

    const HIT: Run =
        Run { body: (6.0, 1.0, 20), shot: Some("hit"), shooter_runs_first: false, how: "run", log: "the log" };
    const MISS: Run = Run { body: (6.0, 1.0, 30), shot: Some("missed"), ..HIT };

    /// The cause by which two runs from one state differ, and its evidence.
    fn cause(health: i64, a: &Run, b: &Run) -> (&'static str, String) {
        let options = DiffOptions { on: DiffScope::State, ..DiffOptions::default() };
        let found = bisect_ticks(&a.trace(health), &b.trace(health), &options, None).expect("no tolerance");
        let cause = found.cause.expect("the runs differ");
        (cause.cause.name(), cause.evidence)
    }

    #[test]
    fn a_shot_is_the_cause_of_what_a_hit_changes() {
        assert_eq!(cause(30, &HIT, &MISS), ("shot", "the shot of p1's usercmd 7 hit p0 in A only".to_owned()));
        let pushed = Run { body: (6.0, 3.0, 20), ..HIT };
        assert_eq!(cause(30, &pushed, &MISS).0, "shot");
        // The pushed body moves in its own usercmd, which runs later.
        let [moved, missed] =
            [Run { body: (8.0, 3.0, 20), ..HIT }, MISS].map(|run| Run { shooter_runs_first: true, ..run });
        assert_eq!(cause(30, &moved, &missed).0, "shot");
        // A death and a spawn change everything.
        let [spawned, alive] = [Run { body: (0.0, 0.0, 100), ..HIT }, Run { body: (6.0, 1.0, 10), ..MISS }];
        assert_eq!(cause(10, &spawned, &alive).0, "shot");
    }

    #[test]
    fn a_shot_is_a_consequence_of_a_body_elsewhere() {
        let elsewhere = Run { body: (56.0, 1.0, 30), ..MISS };
        let (name, evidence) = cause(30, &HIT, &elsewhere);
        assert_eq!(name, "build");
        assert!(evidence.ends_with("; a consequence: the shot of p1's usercmd 7 hit p0 in A only"), "{evidence}");
        // The body moved before the shot, so no knockback moved it.
        let faster = Run { body: (8.0, 3.0, 30), ..MISS };
        assert_eq!(cause(30, &HIT, &faster).0, "build");
    }

    #[test]
    fn a_shot_that_one_build_did_not_fire_is_no_cause() {
        let dropped = Run { shot: None, ..MISS };
        let (name, evidence) = cause(30, &HIT, &dropped);
        assert_eq!(name, "build");
        assert!(evidence.contains("a consequence: the shot of p1's usercmd 7"), "{evidence}");
    }

    #[test]
    fn lost_input_of_one_log_is_the_builds_doing() {
        let lost = Run { how: "missing", body: (5.0, 1.0, 30), ..MISS };
        let (name, evidence) = cause(30, &MISS, &lost);
        assert_eq!(name, "build");
        assert!(evidence.ends_with("usercmd 9 of p0: run in A, missing in B"), "{evidence}");
        let [of_other, lost] = [MISS, lost].map(|run| Run { log: "", ..run });
        assert_eq!(cause(30, &of_other, &lost).0, "input_lost");
    }
}
