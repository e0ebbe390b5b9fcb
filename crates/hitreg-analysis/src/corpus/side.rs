//! The figures of one replay, and the rows of two compared replays.

use super::LatencyBand;
use super::{CauseRow, LogRow, ResultRow, ShotRow, WeaponRow, name_of};
use crate::diff::{ChangedShot, ShotChange, ShotOutcome, TraceDiff, TraceVerdict};
use crate::fairness::PlayerLatencies;
use crate::round_trips::each_round_trip;
use crate::summary::ShotCounter;
use crate::summary::{Summary, SummaryBuilder};
use crate::why::{is_corrected, known_cause};
use hitreg_log::sorted::SortedMap;
use hitreg_log::stats::CountedValues;
use hitreg_log::trace::schema::{corrections, executed, frames, is_judged, shots, ticks};
use hitreg_log::trace::{TraceReadError, TraceSource, each_part};

/// The figures of one replay.
#[derive(Debug, Default)]
pub struct SideFigures {
    /// The headline figures.
    pub summary: Summary,
    weapons: SortedMap<(String, Option<LatencyBand>), WeaponSums>,
    /// The corrections by cause; `None` without a table of them.
    causes: Option<SortedMap<String, u64>>,
    view_errors: CountedValues,
    latencies: SortedMap<u32, LatencyBand>,
}

#[derive(Debug, Default)]
struct WeaponSums {
    shots: ShotCounter,
    damage: u64,
}

impl SideFigures {
    /// The figures of a trace. Shots are grouped by `latencies`, or by the latencies in this trace if there are none.
    ///
    /// # Errors
    /// A message when the trace cannot be read.
    pub fn of(trace: &dyn TraceSource, latencies: Option<&SideFigures>) -> Result<SideFigures, TraceReadError> {
        let latencies = match latencies {
            Some(other) => other.latencies.clone(),
            None => latencies_of(trace)?,
        };
        let has_corrections = trace.tables().iter().any(|(table, _)| table.name == corrections::NAME);
        let causes = has_corrections.then(SortedMap::new);
        let (mut figures, mut summing) =
            (SideFigures { latencies, causes, ..SideFigures::default() }, SummaryBuilder::of(trace.header()));
        let executed: (_, &[&str]) = (executed::NAME, &["player"]);
        for (name, only) in
            [(ticks::NAME, &[] as &[&str]), executed, (frames::NAME, &[]), (corrections::NAME, &[]), (shots::NAME, &[])]
        {
            each_part(trace, name, (only, None), &mut |rows| {
                summing.add(rows);
                match name {
                    corrections::NAME => figures.add_corrections(&corrections::Columns::read(rows)),
                    shots::NAME => figures.add_shots(&shots::Columns::read(rows)),
                    _ => {}
                }
                Ok(())
            })?;
        }
        figures.summary = summing.summary();
        figures.view_errors = summing.view_error_units;
        Ok(figures)
    }

    fn add_corrections(&mut self, acks: &corrections::Columns<'_>) {
        for row in (0..acks.rows).filter(|row| is_corrected(acks, *row)) {
            let causes = self.causes.get_or_insert_default();
            *causes.entry(known_cause(acks, row).to_owned()).or_default() += 1;
        }
    }

    fn add_shots(&mut self, shots: &shots::Columns<'_>) {
        for (row, (weapon, reason)) in shots.weapon.iter().zip(shots.reason.iter()).enumerate() {
            if !is_judged(reason) {
                continue;
            }
            let latency = shots.shooter.get(row).and_then(|shooter| self.latencies.get(shooter).copied());
            let sums = self.weapons.entry((weapon.to_owned(), latency)).or_default();
            sums.shots.add_row(shots, row, reason);
            sums.damage = sums.damage.saturating_add_signed(shots.whole_damage(row));
        }
    }
}

/// The latency band of each player, from all acks of a trace.
fn latencies_of(trace: &dyn TraceSource) -> Result<SortedMap<u32, LatencyBand>, TraceReadError> {
    let mut latencies = PlayerLatencies::default();
    each_round_trip(trace, &mut |trip| latencies.add(&trip))?;
    Ok(latencies.medians_ms().into_iter().map(|(player, ms)| (player, LatencyBand::of_ms(ms))).collect())
}

/// The rows of two compared replays of one log: those of weapons, causes and changed shots, and at last that of the log.
/// `about` has the facts of the log; verdict and figures follow from the comparison. `command` is the command line that
/// compares this log alone, such as `hitreg diff LOG --b ./game`. If `a_is_recorded`, side A is what the log recorded, and
/// not a replay.
///
/// # Errors
/// A message when a trace cannot be read again.
pub fn compared_rows(
    (about, command): (LogRow, &str),
    traces: [&dyn TraceSource; 2],
    found: &TraceDiff,
    a_is_recorded: bool,
) -> Result<Vec<ResultRow>, TraceReadError> {
    let a = SideFigures::of(traces[0], None)?;
    let b = SideFigures::of(traces[1], Some(&a))?;
    let (key, players) = (about.key.clone(), about.players);
    let knows_shots = !a_is_recorded && [&a, &b].iter().any(|side| side.summary.exercised.shots.is_some());
    let mut weapons = if knows_shots { weapon_rows([&a, &b]) } else { WeaponRows::new() };
    let mut changed = Vec::new();
    let mut first_weapon = String::new();
    let mut first_number = None;
    for (place, shot) in found.hits.changed.iter().enumerate() {
        let shot = shot?;
        let latency_ms = a.latencies.get(&shot.shooter).copied();
        let row = Box::new(shot_row(&shot, &about, latency_ms, format!("{command} --why {}", place + 1)));
        if shot.change == ShotChange::OtherReason {
            changed.push(ResultRow::Miss(row));
        } else {
            weapons.entry((row.weapon.clone(), latency_ms)).or_default().changed += 1;
            first_number = first_number.or(Some(place + 1));
            if first_weapon.is_empty() {
                first_weapon.clone_from(&row.weapon);
            }
            changed.push(ResultRow::Shot(row));
        }
    }
    let causes = a.causes.iter().zip(&b.causes).flat_map(|(a, b)| paired([a, b]));
    let mut rows = Vec::new();
    rows.extend(weapons.into_iter().map(|((weapon, latency_ms), row)| {
        ResultRow::Weapon(WeaponRow { key: key.clone(), weapon, latency_ms, ..row })
    }));
    rows.extend(causes.map(|(cause, [corrections_a, corrections_b])| {
        ResultRow::Cause(CauseRow { key: key.clone(), cause, corrections_a, corrections_b })
    }));
    rows.extend(changed);
    let differs = found.verdict == TraceVerdict::Differs;
    let first = found.first.as_ref();
    let next = match (differs, found.hits.changed.is_empty()) {
        (false, _) => String::new(),
        (true, true) => command.to_owned(),
        (true, false) => format!("{command} --why {}", first_number.unwrap_or(1)),
    };
    rows.push(ResultRow::Log(Box::new(LogRow {
        verdict: name_of(found.verdict),
        detail: found.untestable.clone().unwrap_or_default(),
        tick: first.and_then(|first| first.place.tick).map(i64::from),
        table: first.map_or(String::new(), |first| first.table.clone()),
        field: first.and_then(|first| first.field.clone()).unwrap_or_default(),
        next,
        first_weapon,
        usercmds_a: (!a_is_recorded).then_some(a.summary.exercised.usercmds),
        shots_a: a.summary.exercised.shots,
        hits_a: a.summary.exercised.hits,
        hits_changed: knows_shots.then(|| found.hits.outcomes_changed()),
        shots_judged: knows_shots.then_some(found.hits.judged),
        corrections_a: a.summary.exercised.corrections,
        view_error_p95_a: a.view_errors.percentile(95.0),
        view_errors_a: counted_text(&a.view_errors),
        players,
        ..about.measured(&b)
    })));
    Ok(rows)
}

/// The rows of weapons, by weapon and latency.
type WeaponRows = SortedMap<(String, Option<LatencyBand>), WeaponRow>;

/// The rows of the weapons of both sides, without changed shots.
fn weapon_rows([a, b]: [&SideFigures; 2]) -> WeaponRows {
    let mut rows = WeaponRows::new();
    for (key, sums) in &a.weapons {
        let row = rows.entry(key.clone()).or_default();
        (row.shots_a, row.hits_a, row.damage_a) = (sums.shots.fired(), sums.shots.hit(), sums.damage);
    }
    for (key, sums) in &b.weapons {
        let row = rows.entry(key.clone()).or_default();
        (row.shots_b, row.hits_b, row.damage_b) = (sums.shots.fired(), sums.shots.hit(), sums.damage);
    }
    rows
}

/// The counts of both sides by name.
pub(crate) fn paired<'c>(sides: [impl IntoIterator<Item = (&'c String, &'c u64)>; 2]) -> SortedMap<String, [u64; 2]> {
    let mut both: SortedMap<String, [u64; 2]> = SortedMap::new();
    for (side, counts) in sides.into_iter().enumerate() {
        counts.into_iter().for_each(|(name, count)| both.entry(name.clone()).or_default()[side] = *count);
    }
    both
}

impl LogRow {
    /// The row with the figures of side B.
    #[must_use]
    pub fn measured(self, b: &SideFigures) -> LogRow {
        LogRow {
            ticks: b.summary.exercised.ticks,
            usercmds: b.summary.exercised.usercmds,
            shots_b: b.summary.exercised.shots,
            hits_b: b.summary.exercised.hits,
            corrections_b: b.summary.exercised.corrections,
            ..self
        }
        .with_view_errors(&b.view_errors)
    }

    /// The row with the view errors of side B.
    #[must_use]
    pub fn with_view_errors(self, errors: &CountedValues) -> LogRow {
        LogRow { view_error_p95_b: errors.percentile(95.0), view_errors_b: counted_text(errors), ..self }
    }
}

fn shot_row(shot: &ChangedShot, about: &LogRow, latency_ms: Option<LatencyBand>, next: String) -> ShotRow {
    let of_either = shot.a.as_ref().or(shot.b.as_ref());
    let text =
        |outcome: &Option<ShotOutcome>, part: fn(&ShotOutcome) -> &str| outcome.as_ref().map_or("", part).to_owned();
    let tick = |outcome: &Option<ShotOutcome>| outcome.as_ref().and_then(|outcome| outcome.tick);
    ShotRow {
        key: about.key.clone(),
        log: about.log.clone(),
        tick: [tick(&shot.a), tick(&shot.b)].into_iter().flatten().min(),
        shooter: shot.shooter,
        usercmd: shot.command,
        index: shot.index,
        weapon: of_either.map_or(String::new(), |outcome| outcome.weapon.to_string()),
        latency_ms,
        players: about.players,
        change: name_of(shot.change),
        result_a: text(&shot.a, |outcome| &*outcome.reason),
        result_b: text(&shot.b, |outcome| &*outcome.reason),
        target_a: text(&shot.a, |outcome| &*outcome.target),
        target_b: text(&shot.b, |outcome| &*outcome.target),
        next,
    }
}

/// Values with their counts: `UNITS:SHOTS`, rounded to three digits.
fn counted_text(values: &CountedValues) -> String {
    let mut rounded: Vec<(String, u64)> = Vec::new();
    for (value, count) in values.iter() {
        let text = three_digits(value).to_string();
        match rounded.last_mut() {
            Some((last, before)) if *last == text => *before += count,
            _ => rounded.push((text, count)),
        }
    }
    rounded.into_iter().map(|(value, count)| format!("{value}:{count}")).collect::<Vec<_>>().join(" ")
}

/// Rounds a value to three digits.
pub(crate) fn three_digits(value: f32) -> f32 {
    format!("{value:.2e}").parse().unwrap_or(value)
}

/// Reads values with their counts. A part in another form is left out.
pub(super) fn counted_values(text: &str) -> impl Iterator<Item = (f32, u64)> + '_ {
    text.split_whitespace().filter_map(|part| {
        let (value, count) = part.split_once(':')?;
        Some((value.parse().ok()?, count.parse().ok()?))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_rounded_to_three_digits() {
        let mut values = CountedValues::default();
        [0.0, 0.0, 12.345, 12.3451, 1234.5, 0.00012345, f32::NAN].into_iter().for_each(|value| values.add(value));
        let text = counted_text(&values);
        assert_eq!(text, "0:2 0.000123:1 12.3:2 1230:1");
        assert!(counted_values(&text).eq([(0.0, 2), (0.000123, 1), (12.3, 2), (1230.0, 1)]));
    }
}
