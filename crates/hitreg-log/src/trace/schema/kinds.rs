//! The column types of declared tables: how to add rows and how to read them.

use std::fmt::Debug;

use crate::sorted::SortedMap;
use crate::trace::{Column, ColumnData, NameColumn, Table};
use glam::Vec3;

/// A column type.
pub trait CellType {
    /// The value of one row.
    type Row<'r>;
    /// The column under construction.
    type Cells: Debug + Default;
    /// A view of the finished column: empty if the table has none of this name and type.
    type View<'t>: Copy + Debug;
    /// Name of the type in the documentation.
    const TYPE: &'static str;
    /// Name suffixes of the columns that make up one column of this type.
    const PARTS: &'static [&'static str] = &[""];

    /// Returns an empty column. The names in `known` have fixed codes, whether they occur or not.
    fn cells(_known: &[&str]) -> Self::Cells {
        Self::Cells::default()
    }
    /// Reserves memory for more rows.
    fn reserve(cells: &mut Self::Cells, rows: usize);
    /// Adds a row.
    fn push(cells: &mut Self::Cells, row: Self::Row<'_>);
    /// Moves the rows so far into one column for each part. Later pushes start a new part of rows.
    fn take(cells: &mut Self::Cells, name: &str, to: &mut Vec<Column>);
    /// Returns a view of the column in a table.
    fn view<'t>(table: &'t Table, name: &str) -> Self::View<'t>;
}

/// Implements types of one column of numbers: the type of a row, of a cell and of a value, how to make a cell of a row,
/// and how to make the column of all cells.
macro_rules! numbers {
    ($($kind:ty, $type:literal, $row:ty => $cell:ty, $view:ident $value:ty, $of_row:expr, $data:expr;)*) => { $(
        impl CellType for $kind {
            type Row<'r> = $row;
            type Cells = Vec<$cell>;
            type View<'t> = &'t [$value];
            const TYPE: &'static str = $type;

            fn reserve(cells: &mut Vec<$cell>, rows: usize) {
                cells.reserve(rows);
            }

            #[inline]
            fn push(cells: &mut Vec<$cell>, row: $row) {
                let of_row: fn($row) -> $cell = $of_row;
                cells.push(of_row(row));
            }

            fn take(cells: &mut Vec<$cell>, name: &str, to: &mut Vec<Column>) {
                let data: fn(Vec<$cell>) -> Option<ColumnData> = $data;
                to.extend(data(std::mem::take(cells)).map(|data| Column::new(name, data)));
            }

            fn view<'t>(table: &'t Table, name: &str) -> &'t [$value] {
                table.$view(name)
            }
        }
    )* };
}

numbers! {
    u32, "u32", u32 => u32, u32s u32, |row| row, |cells| Some(ColumnData::U32(cells));
    u64, "u64", u64 => u64, u64s u64, |row| row, |cells| Some(ColumnData::U64(cells));
    i64, "i64", i64 => i64, i64s i64, |row| row, |cells| Some(ColumnData::I64(cells));
    f32, "f32", f32 => f32, f32s f32, |row| row, |cells| Some(ColumnData::F32(cells));
    OptionalNumber, "u32", Option<u32> => Option<u32>, u32s u32, |row| row,
        |cells| cells.into_iter().collect::<Option<Vec<_>>>().filter(|cells| !cells.is_empty()).map(ColumnData::U32);
    OptionalMeasure, "f32", Option<f32> => f32, f32s f32, |row| row.unwrap_or(f32::NAN),
        |cells| cells.iter().any(|cell| !cell.is_nan()).then_some(ColumnData::F32(cells));
}

/// Number of parts of a bit count: eight variable categories and three others.
const BITS_PARTS: usize = 11;

/// One column for each category of variables, and one for each other use of bits.
impl CellType for OptionalBits {
    type Row<'r> = Option<[u32; BITS_PARTS]>;
    type Cells = Vec<Option<[u32; BITS_PARTS]>>;
    type View<'t> = [&'t [u32]; BITS_PARTS];
    const TYPE: &'static str = "u32";
    const PARTS: &'static [&'static str] = &[
        ".constant",
        ".self-contained",
        ".authoritative",
        ".controlled",
        ".simulated",
        ".deterministic-ai",
        ".reactive",
        ".inverted",
        ".naming",
        ".events",
        ".headers",
    ];

    fn reserve(cells: &mut Self::Cells, rows: usize) {
        cells.reserve(rows);
    }

    #[inline]
    fn push(cells: &mut Self::Cells, row: Option<[u32; BITS_PARTS]>) {
        cells.push(row);
    }

    fn take(cells: &mut Self::Cells, name: &str, to: &mut Vec<Column>) {
        let all: Option<Vec<[u32; BITS_PARTS]>> = cells.drain(..).collect();
        let Some(all) = all else { return };
        for (place, part) in Self::PARTS.iter().enumerate() {
            let bits = all.iter().map(|parts| parts[place]).collect();
            to.push(Column::new(format!("{name}{part}"), ColumnData::U32(bits)));
        }
    }

    fn view<'t>(table: &'t Table, name: &str) -> [&'t [u32]; BITS_PARTS] {
        std::array::from_fn(|place| table.u32s(&format!("{name}{}", Self::PARTS[place])))
    }
}

/// Three columns of type f32: `.x`, `.y` and `.z`.
impl CellType for Vec3 {
    type Row<'r> = Vec3;
    type Cells = [Vec<f32>; 3];
    type View<'t> = [&'t [f32]; 3];
    const TYPE: &'static str = "f32";
    const PARTS: &'static [&'static str] = &[".x", ".y", ".z"];

    fn reserve(cells: &mut [Vec<f32>; 3], rows: usize) {
        cells.iter_mut().for_each(|cells| cells.reserve(rows));
    }

    #[inline]
    fn push(cells: &mut [Vec<f32>; 3], row: Vec3) {
        for (column, value) in cells.iter_mut().zip(row.to_array()) {
            column.push(value);
        }
    }

    fn take(cells: &mut [Vec<f32>; 3], name: &str, to: &mut Vec<Column>) {
        for (part, cells) in Vec3::PARTS.iter().zip(cells) {
            to.push(Column::new(format!("{name}{part}"), ColumnData::F32(std::mem::take(cells))));
        }
    }

    fn view<'t>(table: &'t Table, name: &str) -> [&'t [f32]; 3] {
        [".x", ".y", ".z"].map(|part| table.f32s(&format!("{name}{part}")))
    }
}

/// A name of the declared list, pushed as its index.
#[derive(Debug)]
pub struct Code;

/// A name of the declared list or `none`. The table omits the column if no row has a name.
#[derive(Debug)]
pub struct OptionalCode;

/// A `u32`. The table omits the column unless it has rows and every row has a value.
#[derive(Debug)]
pub struct OptionalNumber;

/// An `f32`, NaN for none. The table omits the column if no row has a value.
#[derive(Debug)]
pub struct OptionalMeasure;

/// Bit counts of a message by use, as `u32` columns. The table omits them unless every row has them.
#[derive(Debug)]
pub struct OptionalBits;

/// Any name; the declared names have the first codes.
#[derive(Debug)]
pub struct TextColumn;

/// Any name. The table omits the column if every row has the first declared name.
#[derive(Debug)]
pub struct OptionalText;

/// The name that stands for a missing value in a column of names.
pub(crate) const NONE: &str = "none";

/// A column of names under construction.
#[derive(Clone, Debug, Default)]
pub struct NameCells {
    names: Vec<String>,
    places: SortedMap<String, u32>,
    /// For each row, the index of its name.
    pub codes: Vec<u32>,
}

impl NameCells {
    fn known(known: &[&str]) -> NameCells {
        let names: Vec<String> = known.iter().map(|name| (*name).to_owned()).collect();
        let places = names.iter().cloned().zip(0..).collect();
        NameCells { names, places, codes: Vec::new() }
    }

    fn push(&mut self, name: &str) {
        let place = self.places.get(name).copied().unwrap_or_else(|| {
            let place = self.names.len() as u32;
            self.names.push(name.to_owned());
            self.places.insert(name.to_owned(), place);
            place
        });
        self.codes.push(place);
    }

    /// Adds a code; a missing value gets the code after the known names.
    fn push_optional(&mut self, code: Option<u8>) {
        self.codes.push(code.map_or(self.names.len() as u32, u32::from));
    }

    /// Returns the code of a missing value.
    pub fn no_value(&self) -> u32 {
        self.names.len() as u32
    }

    /// Returns the rows so far. Names keep their codes in later parts.
    fn take(&mut self) -> ColumnData {
        ColumnData::Name { names: self.names.clone(), codes: std::mem::take(&mut self.codes) }
    }

    fn take_optional(&mut self) -> Option<ColumnData> {
        let (mut names, codes) = (self.names.clone(), std::mem::take(&mut self.codes));
        let none = names.len() as u32;
        if codes.iter().all(|code| *code == none) {
            return None;
        }
        if codes.contains(&none) {
            names.push(NONE.to_owned());
        }
        Some(ColumnData::Name { names, codes })
    }
}

macro_rules! names {
    ($kind:ty, $row:ty, |$cells:ident, $value:ident| $push:expr, |$taken:ident| $data:expr) => {
        impl CellType for $kind {
            type Row<'r> = $row;
            type Cells = NameCells;
            type View<'t> = NameColumn<'t>;
            const TYPE: &'static str = "name";

            fn cells(known: &[&str]) -> NameCells {
                NameCells::known(known)
            }

            fn reserve(cells: &mut NameCells, rows: usize) {
                cells.codes.reserve(rows);
            }

            #[inline]
            fn push($cells: &mut NameCells, $value: Self::Row<'_>) {
                $push
            }

            fn take($taken: &mut NameCells, name: &str, to: &mut Vec<Column>) {
                to.extend($data.map(|data| Column::new(name, data)));
            }

            fn view<'t>(table: &'t Table, name: &str) -> NameColumn<'t> {
                table.names(name)
            }
        }
    };
}

names!(Code, u8, |cells, code| cells.codes.push(code.into()), |cells| Some(cells.take()));
names!(TextColumn, &'r str, |cells, name| cells.push(name), |cells| Some(cells.take()));
names!(OptionalText, &'r str, |cells, name| cells.push(name), |cells| {
    let is_known = cells.codes.iter().any(|code| *code != 0);
    let data = cells.take();
    is_known.then_some(data)
});
names!(OptionalCode, Option<u8>, |cells, code| cells.push_optional(code), |cells| cells.take_optional());

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
                /// The expected number of rows of a part, for which the first row reserves memory: the greatest so far.
                expected: usize,
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
                    Writer { rows: 0, expected: 0, $( $column: <$kind as CellType>::cells(SCHEMA.known(stringify!($column))), )+ }
                }
            }

            impl Writer {
                /// Adds a row.
                pub fn push(&mut self, row: Row<'_>) {
                    self.make_room();
                    self.rows += 1;
                    $( <$kind as CellType>::push(&mut self.$column, row.$column); )+
                }

                /// Sets the expected number of rows. The first row reserves memory for them.
                pub fn expect_rows(&mut self, rows: usize) {
                    self.expected = rows;
                }

                /// Reserves memory for a part. Call it before adding rows to the columns directly. It avoids
                /// repeated reallocation of all columns.
                #[inline]
                pub fn make_room(&mut self) {
                    if self.rows == 0 && self.expected > 0 {
                        let rows = self.expected + self.expected / 8;
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

                /// Returns the rows so far, with `more` columns at their end. Later pushes start a new part, whose
                /// columns of names may have more names.
                pub fn take(&mut self, more: Vec<Column>) -> Table {
                    self.expected = self.expected.max(std::mem::take(&mut self.rows));
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
