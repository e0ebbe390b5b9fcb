//! What a declaration of a table turns into.

/// Declares a table: what a row is, the table's name and properties, then a line for each column with its name, its type
/// and what else [`ColumnSchema`](super::ColumnSchema) says of it.
macro_rules! table {
    (
        $(#[doc = $doc:literal])+
        $table:ident { $($property:ident: $value:expr),* $(,)? }
        $( $(#[doc = $column_doc:literal])+ $column:ident: $kind:ty $(, $attribute:ident = $setting:expr)*; )+
    ) => {
        $(#[doc = $doc])+
        pub mod $table {
            use super::*;

            /// The declaration.
            #[allow(clippy::needless_update, reason = "a table may say all that there is to say")]
            pub const SCHEMA: TableSchema = TableSchema {
                name: NAME,
                doc: concat!($($doc),+),
                $($property: $value,)*
                columns: &[$(ColumnSchema {
                    $($attribute: $setting,)*
                    ..ColumnSchema::plain(
                        stringify!($column),
                        concat!($($column_doc),+),
                        <$kind as Kind>::TYPE,
                        <$kind as Kind>::PARTS,
                    )
                }),+],
                ..TableSchema::PLAIN
            };

            /// Its name.
            pub const NAME: &str = stringify!($table);

            /// One row.
            #[derive(Clone, Debug)]
            pub struct Row<'r> {
                $( $(#[doc = $column_doc])+ pub $column: <$kind as Kind>::Row<'r>, )+
            }

            /// The table while it grows.
            #[derive(Debug)]
            pub struct Writer {
                pub rows: usize,
                /// How many rows were taken the last time: about as many will come again.
                taken: usize,
                $( pub $column: <$kind as Kind>::Cells, )+
            }

            /// The table as it is read.
            #[derive(Clone, Copy, Debug)]
            pub struct Columns<'t> {
                /// How many rows it has.
                pub rows: usize,
                $( $(#[doc = $column_doc])+ pub $column: <$kind as Kind>::View<'t>, )+
            }

            impl Default for Writer {
                fn default() -> Writer {
                    Writer { rows: 0, taken: 0, $( $column: <$kind as Kind>::cells(SCHEMA.known(stringify!($column))), )+ }
                }
            }

            impl Writer {
                /// Adds a row.
                pub fn push(&mut self, row: Row<'_>) {
                    self.make_room();
                    self.rows += 1;
                    $( <$kind as Kind>::push(&mut self.$column, row.$column); )+
                }

                /// To be called before rows are added to the columns themselves. To grow step by step would move all of them
                /// each time.
                #[inline]
                pub fn make_room(&mut self) {
                    if self.rows == 0 && self.taken > 0 {
                        let rows = std::mem::take(&mut self.taken);
                        $( <$kind as Kind>::reserve(&mut self.$column, rows + rows / 8); )+
                    }
                }

                /// How many rows it holds.
                pub fn rows(&self) -> usize {
                    self.rows
                }

                /// The finished table, with more columns at its end.
                pub fn finish(mut self, more: Vec<Column>) -> Table {
                    self.take(more)
                }

                /// The rows so far, with more columns at their end. What is pushed next comes after them; a column of names
                /// may have more names then.
                pub fn take(&mut self, more: Vec<Column>) -> Table {
                    self.taken = std::mem::take(&mut self.rows);
                    let mut columns = Vec::new();
                    $( <$kind as Kind>::take(&mut self.$column, stringify!($column), &mut columns); )+
                    for column in &mut columns {
                        column.unit = SCHEMA.column(&column.name).map_or("", |declared| declared.unit.name()).to_owned();
                    }
                    columns.extend(more);
                    Table::new(NAME, columns)
                }
            }

            impl<'t> Columns<'t> {
                /// Reads the table of a trace; all is empty where there is none.
                pub fn of(trace: &'t Trace) -> Columns<'t> {
                    trace.table(NAME).map_or_else(|| Columns::read(&NOTHING), Columns::read)
                }

                /// Reads a table; a column that it does not have, or has as another type, is empty.
                pub fn read(table: &'t Table) -> Columns<'t> {
                    Columns {
                        rows: table.rows(),
                        $( $column: <$kind as Kind>::view(table, stringify!($column)), )+
                    }
                }
            }
        }
    };
}

pub(super) use table;
