//! An index of a table's rows by entity or player, for many lookups without repeated scans.

use crate::sorted::SortedMap;

/// Rows grouped by one or two key columns; each group is sorted by another column.
#[derive(Clone, Debug, Default)]
pub struct Series<'t> {
    of: SortedMap<[u32; 2], Vec<u32>>,
    order: &'t [u32],
}

impl<'t> Series<'t> {
    /// Groups rows by two columns and sorts each group by a third.
    pub fn of_two(whose: [&[u32]; 2], order: &'t [u32]) -> Series<'t> {
        let [first, second] = whose;
        Series::collect(first.iter().zip(second).map(|(first, second)| [*first, *second]), order)
    }

    /// Groups rows by one column and sorts each group by another.
    pub fn of_one(whose: &[u32], order: &'t [u32]) -> Series<'t> {
        Series::collect(whose.iter().map(|whose| [*whose, 0]), order)
    }

    fn collect(keys: impl Iterator<Item = [u32; 2]>, order: &'t [u32]) -> Series<'t> {
        let mut of: SortedMap<[u32; 2], Vec<u32>> = SortedMap::new();
        for (row, key) in (0..order.len() as u32).zip(keys) {
            of.entry(key).or_default().push(row);
        }
        let ascends = |rows: &[u32]| rows.is_sorted_by_key(|row| order[*row as usize]);
        for rows in of.values_mut().filter(|rows| !ascends(rows)) {
            rows.sort_unstable_by_key(|row| (order[*row as usize], *row));
        }
        Series { of, order }
    }

    /// Iterates over the groups with their keys; the second key is 0 when there is one key column.
    pub fn iter(&self) -> impl Iterator<Item = ([u32; 2], &[u32])> {
        self.of.iter().map(|(whose, rows)| (*whose, &rows[..]))
    }

    /// Returns the rows of a group.
    pub fn rows(&self, whose: [u32; 2]) -> &[u32] {
        self.of.get(&whose).map_or(&[], Vec::as_slice)
    }

    /// Returns the rows of a group with this value in the sort column.
    pub fn at(&self, whose: [u32; 2], value: u32) -> impl Iterator<Item = usize> + '_ {
        let rows = self.rows(whose);
        let start = rows.partition_point(|row| self.order[*row as usize] < value);
        let of_value = rows[start..].iter().take_while(move |row| self.order[**row as usize] == value);
        of_value.map(|row| *row as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_in_any_order() {
        let (player, entity, command) = ([1, 0, 1, 1], [2, 2, 2, 3], [9, 4, 3, 9]);
        let series = Series::of_two([&player, &entity], &command);
        assert_eq!(series.rows([1, 2]), [2, 0]);
        assert_eq!(series.at([1, 2], 9).collect::<Vec<_>>(), [0]);
        assert_eq!(series.at([1, 2], 4).count() + series.rows([7, 7]).len(), 0);
        assert_eq!(series.iter().count(), 3);
        assert_eq!(Series::of_one(&player, &command).at([1, 0], 9).collect::<Vec<_>>(), [0, 3]);
    }
}
