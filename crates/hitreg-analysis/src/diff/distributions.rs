//! Compares reconciliation and interpolation of both traces.

use serde::Serialize;

use super::clock::TickTimes;
use super::join::OwnerMap;
use super::pairing::Pairing;
use super::scan::ScanResult;
use crate::summary::{PredictionSummary, SummaryBuilder};
use crate::why::is_corrected;
use hitreg_log::sorted::SortedMap;
use hitreg_log::stats::{CountedValues, Spread, Tail};
use hitreg_log::trace::schema::{bodies, corrections, views};
use hitreg_log::trace::{Table, TraceReadError, TraceSource, body_tables, each_part};

/// The predictions of both traces.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Reconciliation {
    /// The predictions in A.
    pub a: PredictionSummary,
    /// The predictions in B.
    pub b: PredictionSummary,
    /// How many usercmds were run again after each correction, in A.
    pub reran_a: Option<Spread>,
    /// The same for B.
    pub reran_b: Option<Spread>,
    /// Which usercmds' predictions were corrected.
    pub corrected: CorrectedCounts,
    /// The causes of corrections that only one trace needed.
    pub causes: Causes,
}

/// Counts of usercmds by where their prediction was corrected. Only usercmds that were checked in both traces count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CorrectedCounts {
    /// Corrected in both traces.
    pub both: u64,
    /// Corrected in A only.
    pub only_a: u64,
    /// Corrected in B only.
    pub only_b: u64,
    /// Corrected in neither trace.
    pub neither: u64,
}

/// The causes of corrections, with the number of each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Causes {
    /// Corrections in A only.
    pub only_a: SortedMap<String, u64>,
    /// Corrections in B only.
    pub only_b: SortedMap<String, u64>,
}

/// How both traces drew the other entities.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct InterpolationDiff {
    /// The views in A.
    pub a: ViewCounts,
    /// The views in B.
    pub b: ViewCounts,
    /// How many views of the same entity in the same client frame were compared.
    pub compared: u64,
    /// How many of them were not in exactly the same place.
    pub moved: u64,
    /// How many of them are views of an entity that spawned or teleported in one trace only, or at another time. They do
    /// not count in `moved`, and have no distance.
    pub relocated: u64,
    /// Distance between the places at which the traces drew the same entity in the same client frame, in units; without
    /// `relocated`.
    pub distance_units: Option<Tail>,
    /// The largest distance, in units.
    pub distance_max_units: Option<f32>,
}

/// The views of one trace.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct ViewCounts {
    /// How many views there are.
    pub views: u64,
    /// How many views were interpolated, extrapolated, held and so on.
    pub how: SortedMap<String, u64>,
}

impl Reconciliation {
    /// Counts corrected usercmds by trace, and the causes of corrections in one trace only.
    pub(crate) fn add(&mut self, pairing: &Pairing<'_>) {
        let [acks_a, acks_b] = [pairing.a, pairing.b].map(corrections::Columns::read);
        if acks_a.cause.codes.is_empty() || acks_b.cause.codes.is_empty() {
            return;
        }
        let Reconciliation { corrected, causes, .. } = self;
        for (i, j) in pairing.join.pairs() {
            let (a, b) = (acks_a.cause.get(i), acks_b.cause.get(j));
            match (is_corrected(&acks_a, i), is_corrected(&acks_b, j)) {
                (true, true) => corrected.both += 1,
                (true, false) => {
                    corrected.only_a += 1;
                    *causes.only_a.entry(a.to_owned()).or_default() += 1;
                }
                (false, true) => {
                    corrected.only_b += 1;
                    *causes.only_b.entry(b.to_owned()).or_default() += 1;
                }
                (false, false) => corrected.neither += 1,
            }
        }
    }

    /// The same with the predictions of each trace.
    pub(crate) fn with_tallies(self, tallies: &[TraceTally; 2]) -> Reconciliation {
        let [a, b] = tallies.each_ref().map(|tally| tally.prediction.summary().prediction);
        let [reran_a, reran_b] = tallies.each_ref().map(|tally| tally.reran.spread());
        Reconciliation { a, b, reran_a, reran_b, ..self }
    }
}

impl InterpolationDiff {
    pub(crate) fn of([a, b]: [TraceTally; 2], compared: u64, apart: &DrawnDistance) -> InterpolationDiff {
        InterpolationDiff {
            a: a.views,
            b: b.views,
            compared,
            moved: apart.moved,
            relocated: apart.relocated,
            distance_units: apart.units.tail(),
            distance_max_units: apart.most,
        }
    }
}

/// Collects distances between the two traces' views.
#[derive(Default)]
pub(crate) struct DrawnDistance {
    moved: u64,
    relocated: u64,
    units: CountedValues,
    most: Option<f32>,
}

impl DrawnDistance {
    pub(crate) fn add(&mut self, pairing: &Pairing<'_>, scan: &ScanResult, relocations: &[Relocations; 2]) {
        let views = [pairing.a, pairing.b].map(views::Columns::read);
        let compared = pairing.join.pairs().zip(&scan.pairs).filter(|(_, pair)| !pair.other_time);
        self.add_views(&views, compared.map(|(rows, _)| rows), relocations);
    }

    fn add_views(
        &mut self,
        [a, b]: &[views::Columns<'_>; 2],
        pairs: impl Iterator<Item = (usize, usize)>,
        relocations: &[Relocations; 2],
    ) {
        if a.origin.iter().chain(&b.origin).any(|part| part.is_empty()) {
            return;
        }
        // The last relocation of the drawn entity up to the time at which it is drawn.
        let last = |of: &mut RelocationSearch<'_>, views: &views::Columns<'_>, row: usize| {
            of.last(*views.entity.get(row)?, *views.drawn_at_us.get(row)?)
        };
        let [mut in_a, mut in_b] = relocations.each_ref().map(Relocations::search);
        let across =
            [a, b].map(|views| views.how.names.iter().position(|how| how == "teleported").map(|code| code as u32));
        let is_across = |side: usize, views: &views::Columns<'_>, row: usize| {
            across[side].is_some() && views.how.codes.get(row).copied() == across[side]
        };
        for (i, j) in pairs {
            let is_other = last(&mut in_a, a, i) != last(&mut in_b, b, j);
            match is_other || is_across(0, a, i) != is_across(1, b, j) {
                true => self.relocated += 1,
                false => self.note(at(a.origin, i).distance(at(b.origin, j))),
            }
        }
    }

    /// Adds views that are equal in both traces.
    pub(crate) fn add_same(&mut self, table: &Table, relocations: &[Relocations; 2]) {
        let views = [table; 2].map(views::Columns::read);
        self.add_views(&views, (0..table.rows()).map(|row| (row, row)), relocations);
    }

    fn note(&mut self, units: f32) {
        self.moved += u64::from(units > 0.0);
        self.units.add(units);
        if !units.is_nan() {
            self.most = Some(self.most.map_or(units, |most| most.max(units)));
        }
    }
}

/// Counts one trace's predictions and views, independent of the other trace.
#[derive(Clone, Default)]
pub(crate) struct TraceTally {
    prediction: SummaryBuilder,
    reran: CountedValues,
    views: ViewCounts,
}

impl TraceTally {
    /// Counts all rows of a table.
    pub(crate) fn of(trace: &dyn TraceSource, table: &str) -> Result<TraceTally, TraceReadError> {
        let mut tally = TraceTally::default();
        each_part(trace, table, (&[], None), &mut |rows| {
            tally.add(rows);
            Ok(())
        })?;
        Ok(tally)
    }

    pub(crate) fn add(&mut self, rows: &Table) {
        match rows.name.as_str() {
            corrections::NAME => {
                self.prediction.add(rows);
                let reran = corrections::Columns::read(rows).reran.iter();
                reran.filter(|n| **n > 0).for_each(|n| self.reran.add(*n as f32));
            }
            views::NAME => self.views.add(&views::Columns::read(rows)),
            _ => {}
        }
    }
}

impl ViewCounts {
    fn add(&mut self, table: &views::Columns<'_>) {
        self.views += table.rows as u64;
        let mut counts = vec![0u64; table.how.names.len() + 1];
        let unnamed = counts.len() - 1;
        table.how.codes.iter().for_each(|code| counts[(*code as usize).min(unnamed)] += 1);
        let names = table.how.names.iter().map(String::as_str).chain([""]);
        for (how, count) in names.zip(counts).filter(|(_, count)| *count > 0) {
            *self.how.entry(how.to_owned()).or_default() += count;
        }
    }
}

fn at([x, y, z]: [&[f32]; 3], row: usize) -> glam::Vec3 {
    glam::Vec3::new(x[row], y[row], z[row])
}

/// For each entity of a trace: the times of its spawns and teleports, ascending. Empty for a trace without bodies.
#[derive(Clone, Debug, Default)]
pub(crate) struct Relocations(OwnerMap<Vec<i64>>);

impl Relocations {
    /// Reads the relocations from the rows of all bodies, which count them.
    pub(crate) fn of(trace: &dyn TraceSource, clock: &TickTimes) -> Result<Relocations, TraceReadError> {
        let mut changes: OwnerMap<Vec<(u32, u32)>> = OwnerMap::default();
        for table in body_tables(trace) {
            each_part(trace, &table, (&["tick", "entity", TELEPORTS], None), &mut |rows| {
                let read = bodies::Columns::read(rows);
                let counts = rows.u32s(TELEPORTS);
                for ((tick, entity), count) in read.tick.iter().zip(read.entity).zip(counts) {
                    let known = changes.or_insert_with((*entity).into(), Vec::new);
                    if known.last().is_none_or(|(_, last)| last != count) {
                        known.push((*tick, *count));
                    }
                }
                Ok(())
            })?;
        }
        let times = |known: &Vec<(u32, u32)>| {
            let mut known = known.clone();
            known.sort_unstable();
            known.dedup_by_key(|(_, count)| *count);
            // The first row is where the entity begins.
            known.iter().skip(1).filter_map(|(tick, _)| clock.of_tick(*tick)).collect::<Vec<i64>>()
        };
        let mut relocations = OwnerMap::default();
        changes.iter().for_each(|(entity, known)| relocations.set(entity, times(known)));
        Ok(Relocations(relocations))
    }

    /// A search for the relocations of many rows.
    fn search(&self) -> RelocationSearch<'_> {
        RelocationSearch { of: self, near: OwnerMap::default() }
    }
}

/// Finds relocations. Rows of one entity mostly follow each other in time.
struct RelocationSearch<'r> {
    of: &'r Relocations,
    /// For each entity: the last answer, and the times from which and before which it holds.
    near: OwnerMap<(i64, i64, Option<i64>)>,
}

impl RelocationSearch<'_> {
    /// The time of an entity's last relocation up to a time; `None` before the first one.
    #[inline]
    pub(crate) fn last(&mut self, entity: u32, at_us: i64) -> Option<i64> {
        let near = self.near.or_insert_with(entity.into(), || (0, 0, None));
        if !(near.0..near.1).contains(&at_us) {
            let times = self.of.0.get(entity.into()).map_or(&[][..], |times| times);
            let next = times.partition_point(|time| *time <= at_us);
            let last = next.checked_sub(1).map(|last| times[last]);
            *near = (last.unwrap_or(i64::MIN), times.get(next).copied().unwrap_or(i64::MAX), last);
        }
        near.2
    }
}

/// The field of a body that counts its spawns and teleports.
const TELEPORTS: &str = "teleports";

#[cfg(test)]
mod tests {
    use crate::diff::{DiffOptions, diff};
    use crate::report::diff_page;
    use hitreg_log::trace::{Column, ColumnData, Table, Trace};

    /// A player draws one entity, which spawns at x = 1000 in tick 2 of B alone.
    fn trace(spawns: bool) -> Trace {
        let x = if spawns { [0.0, 1000.0, 1010.0, 1020.0] } else { [0.0, 10.0, 20.0, 30.0] };
        let u32s = |name: &str, values: [u32; 4]| Column::new(name, ColumnData::U32(values.to_vec()));
        let i64s = |name: &str, values: [i64; 4]| Column::new(name, ColumnData::I64(values.to_vec()));
        let place = |x: [f32; 4]| {
            [("origin.x", x), ("origin.y", [0.0; 4]), ("origin.z", [0.0; 4])]
                .map(|(name, values)| Column::new(name, ColumnData::F32(values.to_vec())))
        };
        let (number, times) = ([1, 2, 3, 4], [10_000, 20_000, 30_000, 40_000]);
        let how = ColumnData::Name { names: vec!["interpolated".to_owned()], codes: vec![0; 4] };
        let ticks = vec![u32s("tick", number), i64s("at_us", times)];
        let mut bodies = vec![u32s("tick", number), u32s("entity", [1; 4])];
        bodies.extend(place(x));
        bodies.push(u32s("teleports", [0, spawns.into(), spawns.into(), spawns.into()]));
        let frames = vec![u32s("player", [0; 4]), u32s("command", number), i64s("at_us", times)];
        let mut views = vec![u32s("player", [0; 4]), u32s("command", number), i64s("drawn_at_us", times)];
        views.push(u32s("entity", [1; 4]));
        views.extend(place(x));
        views.push(Column::new("how", how));
        let tables = [("ticks", ticks), ("bodies", bodies), ("frames", frames), ("views", views)];
        Trace { tables: tables.map(|(name, columns)| Table::new(name, columns)).into(), ..Trace::default() }
    }

    #[test]
    fn views_of_an_entity_that_spawned_in_one_trace_have_no_distance() {
        let found = diff(&trace(false), &trace(true), &DiffOptions::default()).expect("no tolerance");
        let drawn = &found.interpolation;
        assert_eq!((drawn.compared, drawn.moved, drawn.relocated, drawn.distance_max_units), (4, 0, 3, Some(0.0)));
        let page = diff_page(&found).text();
        assert!(page.contains("excluded: 3 views of entities that spawned or teleported"), "{page}");
        let same = diff(&trace(true), &trace(true), &DiffOptions::default()).expect("no tolerance");
        assert_eq!((same.interpolation.compared, same.interpolation.relocated), (4, 0));
    }

    /// Equal views are counted like other views, whether the table is compared in memory or streamed.
    #[test]
    fn equal_views_of_an_entity_that_spawned_in_one_trace_have_no_distance() {
        let (a, mut b) = (trace(false), trace(false));
        b.tables[1].columns.pop();
        b.tables[1].columns.push(Column::new("teleports", ColumnData::U32(vec![0, 1, 1, 1])));
        let found = diff(&a, &b, &DiffOptions::default()).expect("no tolerance").interpolation;
        assert_eq!((found.compared, found.moved, found.relocated), (4, 0, 3));
    }
}
