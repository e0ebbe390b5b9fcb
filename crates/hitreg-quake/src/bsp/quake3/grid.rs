//! Converts a patch to a grid of points on its curve. It halves quadratic curves until every piece is nearly straight.

use glam::Vec3;

use super::level::Patch;

/// Largest distance of a curve from the line between its ends, in units.
const STRAIGHT: f32 = 16.0;
/// Distance within which columns count as equal, in units.
const SAME_POINT: f32 = 0.1;
/// Distance within which the first and the last column make the grid wrap, in units.
const SAME_BORDER: f32 = 0.1;
/// The engine's limit of columns.
const WIDEST: usize = 129;

/// Points by column, then row.
pub(super) struct Grid {
    pub(super) columns: Vec<Vec<Vec3>>,
    pub(super) wraps_columns: bool,
    pub(super) wraps_rows: bool,
}

impl Grid {
    pub(super) fn of(patch: &Patch) -> Grid {
        let (width, height) = (patch.width as usize, patch.height as usize);
        let column = |i: usize| (0..height).map(|j| Vec3::from(patch.points[j * width + i])).collect();
        let mut columns: Vec<Vec<Vec3>> = (0..width).map(column).collect();
        let wraps_columns = comes_round(&columns);
        straighten(&mut columns);
        let mut rows = transposed(&columns);
        let wraps_rows = comes_round(&rows);
        straighten(&mut rows);
        // The engine leaves the grid transposed, and the diagonals of its squares depend on that.
        Grid { columns: rows, wraps_columns: wraps_rows, wraps_rows: wraps_columns }
    }

    pub(super) fn width(&self) -> usize {
        self.columns.len()
    }

    pub(super) fn height(&self) -> usize {
        self.columns.first().map_or(0, Vec::len)
    }
}

fn transposed(columns: &[Vec<Vec3>]) -> Vec<Vec<Vec3>> {
    let rows = columns.first().map_or(0, Vec::len);
    (0..rows).map(|row| columns.iter().map(|column| column[row]).collect()).collect()
}

fn comes_round(columns: &[Vec<Vec3>]) -> bool {
    let (Some(first), Some(last)) = (columns.first(), columns.last()) else { return false };
    first.iter().zip(last).all(|(a, b)| (*a - *b).abs().max_element() <= SAME_BORDER)
}

fn straighten(columns: &mut Vec<Vec<Vec3>>) {
    let mut at = 0;
    while at + 2 < columns.len() {
        let (before, control, after) = (&columns[at], &columns[at + 1], &columns[at + 2]);
        let row = |j: usize| (before[j], control[j], after[j]);
        let is_straight = |(a, b, c): (Vec3, Vec3, Vec3)| {
            let on_curve = ((a + b) * 0.5 + (b + c) * 0.5) * 0.5;
            (on_curve - (a + c) * 0.5).length() < STRAIGHT
        };
        if columns.len() + 2 > WIDEST || (0..before.len()).all(|j| is_straight(row(j))) {
            columns.remove(at + 1);
            at += 1;
            continue;
        }
        let halves: Vec<(Vec3, Vec3, Vec3)> = (0..before.len()).map(row).collect();
        let left = halves.iter().map(|(a, b, _)| (*a + *b) * 0.5).collect::<Vec<Vec3>>();
        let right = halves.iter().map(|(_, b, c)| (*b + *c) * 0.5).collect::<Vec<Vec3>>();
        let middle = left.iter().zip(&right).map(|(l, r)| (*l + *r) * 0.5).collect();
        columns.splice(at + 1..at + 2, [left, middle, right]);
    }
    let same = |a: &mut Vec<Vec3>, b: &mut Vec<Vec3>| {
        a.iter().zip(b.iter()).all(|(a, b)| (*a - *b).abs().max_element() <= SAME_POINT)
    };
    // Of equal columns, keep the first.
    columns.dedup_by(same);
}
