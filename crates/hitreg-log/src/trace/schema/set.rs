//! Sets of declared tables.

use super::{TABLES, TableSchema};

/// A set of declared tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableSet(u16);

const _: () = assert!(TABLES.len() <= u16::BITS as usize, "a bit for each table");

impl TableSet {
    /// All declared tables.
    pub const ALL: TableSet = TableSet(u16::MAX >> (u16::BITS as usize - TABLES.len()));
    /// No table.
    pub const NONE: TableSet = TableSet(0);

    /// Returns the set of the declared tables with these names; ignores custom tables.
    pub fn named<'a>(names: impl IntoIterator<Item = &'a str>) -> TableSet {
        let bits = names.into_iter().filter_map(|name| TABLES.iter().position(|table| table.name == name));
        TableSet(bits.fold(0, |set, bit| set | 1 << bit))
    }

    /// Returns the set with a table added; ignores custom tables.
    #[must_use]
    pub fn with(self, table: &TableSchema) -> TableSet {
        TableSet(self.0 | TableSet::named([table.name]).0)
    }

    /// Returns whether the set contains a table.
    pub fn has(self, table: &TableSchema) -> bool {
        TABLES.iter().position(|known| known.name == table.name).is_some_and(|bit| self.0 & 1 << bit != 0)
    }
}

impl Default for TableSet {
    fn default() -> TableSet {
        TableSet::ALL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_has_the_tables_that_it_names() {
        let some = TableSet::named(["shots", "ticks", "a build's own"]);
        let has: Vec<&str> = TABLES.iter().filter(|table| some.has(table)).map(|table| table.name).collect();
        assert_eq!(has, ["ticks", "shots"]);
        assert_eq!(TableSet::named(["ticks"]).with(&crate::trace::schema::shots::SCHEMA), some);
        assert!(TABLES.iter().all(|table| TableSet::ALL.has(table) && !TableSet::NONE.has(table)));
        assert_eq!(TableSet::named(TABLES.map(|table| table.name)), TableSet::ALL);
    }
}
