//! The macro that declares trace tables.

/// Declares a table: the meaning of a row, the table's name and properties, and one line for each column. A line has
/// the column's name, its type and other properties of [`ColumnSchema`](super::ColumnSchema).
macro_rules! table {
    (
        $(#[doc = $doc:literal])+
        $table:ident { $($property:ident: $value:expr),* $(,)? }
        $( $(#[doc = $column_doc:literal])+ $column:ident: $kind:ty $(, $attribute:ident = $setting:expr)*; )+
    ) => {
        $(#[doc = $doc])+
        pub mod $table {
            use super::*;

            /// The declaration of the table.
            #[allow(clippy::needless_update, reason = "a declaration may set every property")]
            pub const SCHEMA: TableSchema = TableSchema {
                name: NAME,
                doc: concat!($($doc),+),
                $($property: $value,)*
                columns: &[$(ColumnSchema {
                    $($attribute: $setting,)*
                    ..ColumnSchema::plain(
                        stringify!($column),
                        concat!($($column_doc),+),
                        <$kind as CellType>::TYPE,
                        <$kind as CellType>::PARTS,
                    )
                }),+],
                ..TableSchema::PLAIN
            };

            /// Name of the table.
            pub const NAME: &str = stringify!($table);

            /// One row of the table.
            #[derive(Clone, Debug)]
            pub struct Row<'r> {
                $( $(#[doc = $column_doc])+ pub $column: <$kind as CellType>::Row<'r>, )+
            }

            /// A table under construction.
            #[derive(Debug)]
            pub struct Writer {
                /// Number of rows so far.
                pub rows: usize,
                /// The greatest number of rows in a stretch so far, used to reserve memory for the next.
                taken: usize,
                $( $(#[doc = $column_doc])+ pub $column: <$kind as CellType>::Cells, )+
            }

            /// A view of the finished table.
            #[derive(Clone, Copy, Debug)]
            pub struct Columns<'t> {
                /// Number of rows.
                pub rows: usize,
                $( $(#[doc = $column_doc])+ pub $column: <$kind as CellType>::View<'t>, )+
            }

            impl Default for Writer {
                fn default() -> Writer {
                    Writer { rows: 0, taken: 0, $( $column: <$kind as CellType>::cells(SCHEMA.known(stringify!($column))), )+ }
                }
            }

            impl Writer {
                /// Adds a row.
                pub fn push(&mut self, row: Row<'_>) {
                    self.make_room();
                    self.rows += 1;
                    $( <$kind as CellType>::push(&mut self.$column, row.$column); )+
                }

                /// Reserves memory for a stretch. Call it before adding rows to the columns directly. It avoids
                /// repeated reallocation of all columns.
                #[inline]
                pub fn make_room(&mut self) {
                    if self.rows == 0 && self.taken > 0 {
                        let rows = self.taken + self.taken / 8;
                        $( <$kind as CellType>::reserve(&mut self.$column, rows); )+
                    }
                }

                /// Returns the number of rows since the last [`Writer::take`].
                pub fn rows(&self) -> usize {
                    self.rows
                }

                /// Returns the finished table, with `more` columns at its end.
                pub fn finish(mut self, more: Vec<Column>) -> Table {
                    self.take(more)
                }

                /// Returns the rows so far, with `more` columns at their end. Later pushes start a new stretch, whose
                /// columns of names may have more names.
                pub fn take(&mut self, more: Vec<Column>) -> Table {
                    self.taken = self.taken.max(std::mem::take(&mut self.rows));
                    let mut columns = Vec::new();
                    $( <$kind as CellType>::take(&mut self.$column, stringify!($column), &mut columns); )+
                    for column in &mut columns {
                        column.unit = SCHEMA.column(&column.name).map_or("", |declared| declared.unit.name()).to_owned();
                    }
                    columns.extend(more);
                    Table::new(NAME, columns)
                }
            }

            impl<'t> Columns<'t> {
                /// Reads the table of a trace; everything is empty if the trace does not have it.
                pub fn of(trace: &'t Trace) -> Columns<'t> {
                    trace.table(NAME).map_or_else(|| Columns::read(&NOTHING), Columns::read)
                }

                /// Reads a table; a missing column, or one of another type, is empty.
                pub fn read(table: &'t Table) -> Columns<'t> {
                    Columns {
                        rows: table.rows(),
                        $( $column: <$kind as CellType>::view(table, stringify!($column)), )+
                    }
                }
            }
        }
    };
}

pub(super) use table;
