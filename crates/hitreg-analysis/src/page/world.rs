//! The part of the world in which a trace's bodies move, and the exactness with which a page draws it.

use serde::Serialize;

use super::packed::MOST;
use super::series::at_share;
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::schema::{frames, views};
use hitreg_log::trace::{ColumnData, Table, TraceSource, body_tables, each_part};

/// The exactness of paths.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(super) struct TrackPrecision {
    /// The rounding of positions, in units.
    pub(super) unit: f64,
    /// The largest distance between a line and a sample at the sample's time, in units.
    pub(super) tolerance: f32,
    /// The largest difference of a view direction, in degrees.
    pub(super) degrees: f32,
}

/// The largest difference between a line and a sample: on each axis in units, and of the view direction in degrees.
pub(super) type LineTolerance = [f32; 4];

impl TrackPrecision {
    /// The exactness for a world of this size on its longest axis, in units.
    pub(super) fn of_world(extent: f64) -> TrackPrecision {
        let unit = libm::exp2(libm::ceil(libm::log2(extent.clamp(1e-3, 2e6) / 65_536.0)));
        TrackPrecision { unit, tolerance: (LINE_PER_UNIT * unit) as f32, degrees: LINE_DEGREES }
    }

    /// The same exactness with a greater unit and tolerance.
    pub(super) fn coarser(self) -> TrackPrecision {
        TrackPrecision {
            unit: self.unit * f64::from(COARSER),
            tolerance: self.tolerance * COARSER,
            degrees: self.degrees + LINE_DEGREES,
        }
    }

    /// The tolerance of lines. A difference on all three axes together stays within [`TrackPrecision::tolerance`].
    pub(super) fn of_lines(self) -> LineTolerance {
        let axis = self.tolerance / SQRT_3;
        [axis, axis, axis, self.degrees]
    }
}

/// The part of the world in which nearly all positions are. Distances from its origin fit into single precision,
/// wherever the world is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct TrackWorld {
    /// The point that positions are measured from: 0 on an axis whose positions are near 0.
    pub(super) origin: [f64; 3],
    pub(super) precision: TrackPrecision,
}

impl TrackWorld {
    /// The world of a trace.
    ///
    /// # Errors
    /// A message when the trace cannot be read.
    pub(super) fn of(trace: &dyn TraceSource) -> Result<TrackWorld, String> {
        let (mut meter, mut is_empty) = (WorldMeter::default(), true);
        let places = ["origin.x", "origin.y", "origin.z"];
        let own = ["own.origin.x", "own.origin.y", "own.origin.z"];
        let states = body_tables(trace).into_iter().map(|table| (table, places));
        let others = [(frames::NAME, own), (views::NAME, places)].map(|(table, columns)| (table.to_owned(), columns));
        for (table, columns) in states.chain(others) {
            // Screens show the same world.
            if table == views::NAME && !is_empty {
                break;
            }
            each_part(trace, &table, (&columns, None), &mut |rows| {
                for (axis, name) in columns.iter().enumerate() {
                    let column = PlaceColumn::of(rows, name);
                    (0..).map_while(|row| column.get(row)).for_each(|at| {
                        is_empty = false;
                        meter.add(axis, at);
                    });
                }
                Ok(())
            })?;
        }
        Ok(meter.world())
    }

    /// The distance of a position from the origin; `None` if it is not finite, or too far away for the page.
    pub(super) fn place(&self, position: [f64; 3]) -> Option<[f32; 3]> {
        let off = |axis: usize| (position[axis] - self.origin[axis]) as f32;
        let place = [0, 1, 2].map(off);
        place.iter().all(|off| f64::from(off.abs()) < MOST * self.precision.unit).then_some(place)
    }
}

/// Measures a world while its positions come. A few positions far away do not change the result.
#[derive(Debug, Default)]
struct WorldMeter {
    /// For each axis, the coordinates between two powers of two: their number, the least and the largest.
    axes: [SortedMap<i32, (u64, f64, f64)>; 3],
}

impl WorldMeter {
    fn add(&mut self, axis: usize, at: f64) {
        if !(at as f32).is_finite() {
            return;
        }
        // Ascending with the coordinate: the smallest ones have the keys next to 0.
        let power = libm::ilogb(at.abs().max(1e-3)) + 11;
        let (count, least, most) = self.axes[axis].entry(if at < 0.0 { -power } else { power }).or_insert((0, at, at));
        (*count, *least, *most) = (*count + 1, least.min(at), most.max(at));
    }

    /// The measured world: without the outermost 2% of the coordinates on each side, if they are of another size.
    fn world(&self) -> TrackWorld {
        let ranges = [0, 1, 2].map(|axis| {
            let counts: SortedMap<i32, u64> =
                self.axes[axis].iter().map(|(power, (count, ..))| (*power, *count)).collect();
            let at = |share: f64| at_share(&counts, share).and_then(|power| self.axes[axis].get(&power));
            let [(_, least, _), (_, middle, _), (_, _, most)] = [at(0.02)?, at(0.5)?, at(0.98)?];
            Some((*middle, most - least))
        });
        let extents = ranges.iter().flatten().map(|(_, extent)| *extent);
        let extent = extents.reduce(f64::max).unwrap_or(1.0);
        let precision = TrackPrecision::of_world(extent);
        let origin = ranges.map(|range| {
            let (middle, _) = range.filter(|(middle, _)| middle.abs() > extent)?;
            Some(libm::round(middle / precision.unit) * precision.unit)
        });
        TrackWorld { origin: origin.map(Option::unwrap_or_default), precision }
    }
}

/// The ratio between a line's tolerance and the rounding of positions: eight on each axis.
const LINE_PER_UNIT: f64 = 8.0 * SQRT_3 as f64;

/// The diagonal of a cube.
const SQRT_3: f32 = 1.732_050_8;

/// The tolerance of the finest lines in view direction, in degrees.
const LINE_DEGREES: f32 = 12.0;

/// How many times the tolerance of coarser paths is that of the paths before. A line over two bends of a path is four
/// times as far from it as the lines between them are from the samples, so a smaller factor would save little.
const COARSER: f32 = 6.0;

/// The coordinates on one axis, in single or double precision.
pub(super) struct PlaceColumn<'t>(Option<&'t ColumnData>);

impl<'t> PlaceColumn<'t> {
    pub(super) fn of(table: &'t Table, name: &str) -> PlaceColumn<'t> {
        PlaceColumn(table.column(name).map(|column| &column.data))
    }

    pub(super) fn get(&self, row: usize) -> Option<f64> {
        self.0?.real(row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::PageInput;
    use crate::page::packed::{PackedColumn, PageColumns};
    use crate::page::side::PageSide;
    use hitreg_log::trace::schema::{bodies, ticks};
    use hitreg_log::trace::{Column, Trace};

    const ROWS: u32 = 400;

    /// A body on a circle of 1,000 units around a point. Row 7 has another position if one is given.
    fn circle(centre: [f64; 3], row_7: Option<f64>) -> [Vec<f64>; 3] {
        let turned = |row: u32| f64::from(row) / 30.0;
        let x = |row| centre[0] + 500.0 * libm::cos(turned(row));
        let y = |row| centre[1] + 500.0 * libm::sin(turned(row));
        let mut places = [(0..ROWS).map(x).collect(), (0..ROWS).map(y).collect(), vec![centre[2]; ROWS as usize]];
        row_7.into_iter().for_each(|at| places.iter_mut().for_each(|axis: &mut Vec<f64>| axis[7] = at));
        places
    }

    #[test]
    fn a_page_without_a_position_says_so() {
        for (at, is_noted) in [(f64::NAN, true), (0.0, false)] {
            let (side, _) = page_of(&[(); 3].map(|()| vec![at; ROWS as usize]), true);
            let noted = side.notes.iter().any(|note| note.contains("none in `bodies` has a finite position"));
            assert_eq!((side.bodies.is_empty(), noted), (is_noted, is_noted), "{at}");
        }
    }

    fn page_of(places: &[Vec<f64>; 3], is_double: bool) -> (PageSide, PageColumns) {
        let steps = || Column::new("tick", ColumnData::U32((0..ROWS).collect()));
        let times = Column::new("at_us", ColumnData::I64((0..i64::from(ROWS)).map(|row| row * 10_000).collect()));
        let axis = |values: &Vec<f64>| match is_double {
            true => ColumnData::F64(values.clone()),
            false => ColumnData::F32(values.iter().map(|at| *at as f32).collect()),
        };
        let [x, y, z] = ["x", "y", "z"].map(|name| format!("origin.{name}"));
        let columns = vec![
            steps(),
            Column::new("entity", ColumnData::U32(vec![3; ROWS as usize])),
            Column::new(x, axis(&places[0])),
            Column::new(y, axis(&places[1])),
            Column::new(z, axis(&places[2])),
        ];
        let tables = vec![Table::new(ticks::NAME, vec![steps(), times]), Table::new(bodies::NAME, columns)];
        let trace = Trace { tables, ..Trace::default() };
        let shown = PageInput { name: "", map: "", trace: &trace, log: None, rejudged: &[], notes: &[] };
        let mut columns = PageColumns::default();
        (PageSide::of(&shown, 1, &mut columns).expect("a page"), columns)
    }

    /// The largest distance on one axis between the kept samples of a body and its positions.
    fn error_of(places: &[Vec<f64>; 3], (side, columns): &(PageSide, PageColumns)) -> f64 {
        let track = &side.bodies[0];
        let steps = track.step.restored(columns);
        assert!(steps.len() > 50, "{} samples", steps.len());
        let axes = track.place.iter().zip(places);
        let off = |(span, at): (&PackedColumn, &Vec<f64>)| -> f64 {
            let restored = span.restored(columns).into_iter();
            restored.zip(&steps).map(|(found, step)| (found - at[*step as usize]).abs()).fold(0.0, f64::max)
        };
        axes.map(off).fold(0.0, f64::max)
    }

    #[test]
    fn precision_depends_on_the_extent_of_the_world_and_not_on_its_distance_from_0() {
        let far = [1e5, 1e6, -1e6, 1e9, -1e9, 1e12].map(|at| [at, -at, 0.0]);
        for centre in far.into_iter().chain([[0.0, 100.0, 1e6], [0.0; 3]]) {
            let places = circle(centre, None);
            let page = page_of(&places, true);
            assert_eq!(
                page.0.exactness,
                [TrackPrecision { unit: 1.0 / 64.0, tolerance: 0.125 * SQRT_3, degrees: 12.0 }; 2],
                "{centre:?}"
            );
            let error = error_of(&places, &page);
            assert!(error <= 1.0 / 32.0, "{centre:?}: {error}");
        }
    }

    #[test]
    fn positions_in_single_precision_are_drawn_where_the_table_has_them() {
        for at in [1e5, 1e6, 1e8] {
            let places = circle([at, -at, at], None).map(|axis| axis.iter().map(|at| f64::from(*at as f32)).collect());
            let error = error_of(&places, &page_of(&places, false));
            assert!(error <= 1.0 / 32.0, "{at}: {error}");
        }
    }

    /// The position itself is left out, or drawn far away.
    #[test]
    fn one_position_that_is_far_away_or_not_finite_does_not_change_the_others() {
        for at in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e300, 1e30, -1e30, 3e7, 0.0] {
            for centre in [[0.0; 3], [1e6, -1e6, 1e6]] {
                let places = circle(centre, Some(at));
                let page = page_of(&places, true);
                assert_eq!(page.0.exactness[0].unit, 1.0 / 64.0, "{at} {centre:?}");
                let error = error_of(&places, &page);
                assert!(error <= 2.0, "{at} {centre:?}: {error}");
            }
        }
    }
}
