//! The tables whose columns the header declares: entity states, and data that this build does not know.
//!
//! States are every entity's cells after each tick, in one table for each class, because classes have different columns.

use serde_bytes::{ByteBuf, Bytes};

use super::{ChunkDecoder, ChunkEncoder, DecodedTables, SessionSlice};
use crate::log::column;
use crate::log::header::Schema;
use crate::log::index::{ChunkRows, PartRows};
use crate::log::kinds::RecordLayout;
use crate::log::table::{ColumnReader, ColumnWriter, PackedTable};
use crate::record::{
    CellKind, Class, ClassId, FieldSchema, NumberForm, RecordStream, SessionHeader, StateKey, UnknownColumn,
    UnknownKind, UnknownRecords, cells_of,
};
use crate::sorted::SortedMap;
use crate::units::{EntityId, PlayerId, Tick};

/// Returns the name of the table with a class's states.
fn table_name(class: usize) -> String {
    if class == 0 { "states".to_owned() } else { format!("states.{class}") }
}

/// Returns the class of a table of states by its name.
pub(super) fn class_of_table(name: &str) -> Option<usize> {
    if name == "states" {
        return Some(0);
    }
    let class = name.strip_prefix("states.")?.parse().ok()?;
    (table_name(class) == name).then_some(class)
}

/// Returns the series of an entity's states, for all viewers or for one.
fn series_id(key: &StateKey) -> u32 {
    u32::from(key.entity.0) | key.viewer.map_or(0, |viewer| (u32::from(viewer.0) + 1) << 16)
}

/// Returns the number of states of each class in a part of a session. They have no times of their own.
pub(super) fn state_rows(part: &SessionSlice<'_>, header: &SessionHeader) -> ChunkRows {
    let mut counts = vec![0; header.classes.len()];
    for key in part.state_keys() {
        if let Some(count) = counts.get_mut(usize::from(key.class.0)) {
            *count += 1;
        }
    }
    let of = |(class, rows): (usize, usize)| PartRows::of_log(table_name(class), rows, None);
    counts.into_iter().enumerate().filter(|(_, rows)| *rows > 0).map(of).collect()
}

impl ChunkEncoder<'_> {
    /// Encodes states by entity, so that each entity's cells are predicted from its own.
    pub(super) fn encode_states(&mut self) {
        let mut by_class: SortedMap<ClassId, SortedMap<u32, Vec<usize>>> = SortedMap::new();
        for (row, key) in self.part.states().zip(self.part.state_keys()) {
            by_class.entry(key.class).or_default().entry(series_id(key)).or_default().push(row);
        }
        for (class, by_series) in by_class {
            let place = usize::from(class.0);
            if let Some(of) = self.header.classes.get(place) {
                self.tables.push((table_name(place), self.encode_class(of, &by_series)));
            }
        }
    }

    fn encode_class(&self, class: &Class, by_series: &SortedMap<u32, Vec<usize>>) -> PackedTable<ByteBuf> {
        let states = &self.part.states;
        let order: Vec<usize> = by_series.values().flatten().copied().collect();
        let rows: Vec<&[u32]> = order.iter().map(|&row| states.cells_of(row)).collect();
        let ticks: Vec<i64> = order.iter().map(|&row| i64::from(states.keys()[row].tick.0)).collect();
        let mut columns = ColumnWriter::of_series(by_series);
        columns.numbers(&ticks);
        for (field, place) in cells_of(&class.fields) {
            let numbers = rows.iter().map(|row| field.kind.number(&row[place.clone()])).collect();
            columns.numbers_as(
                field.kind.form(),
                numbers,
                (field.kind == CellKind::Text).then_some(self.context.texts),
            );
        }
        columns.finish()
    }
}

impl ChunkDecoder<'_> {
    pub(super) fn decode_states(&mut self, tables: &DecodedTables<'_>) -> Result<(), String> {
        for (place, class) in self.header.classes.iter().enumerate() {
            if let Some(table) = tables.of(&table_name(place)) {
                self.decode_class(table, ClassId(place as u16), &class.fields)?;
            }
        }
        self.chunk.states.put_in_order();
        Ok(())
    }

    fn decode_class(
        &mut self,
        table: &PackedTable<&Bytes>,
        class: ClassId,
        fields: &[FieldSchema],
    ) -> Result<(), String> {
        let columns = ColumnReader::new("states", &[], table);
        // Budget for the rows in columns, then one after the other, then in order.
        let width: usize = fields.iter().map(|field| field.kind.cells()).sum();
        self.budget.take(columns.rows, 8 * width + 64)?;
        let ticks = column::decode(columns.at(0), &columns.series, None).map_err(|what| columns.bad("tick", what))?;
        let tick =
            |tick: i64| u32::try_from(tick).map_err(|_| columns.bad("tick", format_args!("{tick} is out of range")));
        let ticks: Vec<u32> = ticks.into_iter().map(tick).collect::<Result<_, _>>()?;
        let mut cells: Vec<Vec<u32>> = Vec::with_capacity(width);
        for (place, field) in fields.iter().enumerate() {
            let packed = columns.at(1 + place);
            let bad = |what: String| columns.bad(&field.name, what);
            if field.kind.cells() == 1 {
                cells.push(column::decode_cells(packed, &columns.series).map_err(bad)?);
                continue;
            }
            let mut numbers = column::decode_as(field.kind.form(), packed, &columns.series).map_err(bad)?;
            if field.kind == CellKind::Text {
                self.texts.to_codes(&mut numbers).map_err(bad)?;
            }
            cells.push(numbers.iter().map(|number| *number as u32).collect());
            cells.push(numbers.iter().map(|number| (*number >> 32) as u32).collect());
        }
        let players = self.chunk.players.len();
        let mut rows = ticks.into_iter().enumerate();
        let mut words = vec![0; width];
        for (id, count) in columns.row_counts() {
            let viewer = (id >> 16).checked_sub(1).map(|viewer| PlayerId(viewer as u16));
            if let Some(viewer) = viewer.filter(|viewer| usize::from(viewer.0) >= players) {
                return Err(format!(
                    "table states: a state for player {viewer}, but the session has {players} players"
                ));
            }
            let entity = EntityId(id as u16);
            for (row, tick) in rows.by_ref().take(count) {
                words.iter_mut().zip(&cells).for_each(|(word, column)| *word = column[row]);
                self.chunk.states.push(StateKey { tick: Tick(tick), viewer, entity, class }, &words);
            }
        }
        Ok(())
    }
}

// Data of a later version: record kinds, and columns of known kinds. It is decoded as numbers and encoded again
// unchanged.

/// Returns an unknown kind, or the unknown columns of a known one; `None` if the header has none.
pub(super) fn kind_of<'h>(header: &'h SessionHeader, name: &str) -> Option<&'h UnknownKind> {
    header.unknown.iter().find(|kind| kind.name == name)
}

/// Returns whether a column holds texts.
fn is_text(kind: &UnknownKind, column: usize) -> bool {
    let name = kind.columns.get(column);
    name.and_then(|name| kind.field(name)).is_some_and(|field| field.kind == CellKind::Text)
}

/// Returns what a part of a session has of unknown kinds.
pub(super) fn unknown_rows(part: &SessionSlice<'_>, header: &SessionHeader) -> ChunkRows {
    let of = |kind: &UnknownKind| {
        let (records, range) =
            part.unknown().find(|(records, range)| records.kind == kind.name && !range.is_empty())?;
        let times = records.span(range.clone()).map(|(first, last)| (first.0, last.0));
        Some(PartRows::of_log(&kind.name, range.len(), times))
    };
    header.unknown.iter().filter(|kind| !kind.is_known_kind()).filter_map(of).collect()
}

impl ChunkEncoder<'_> {
    /// Encodes the unknown columns of a known kind, for the records that still exist. `keys` has each row's series and key.
    pub(super) fn encode_unknown_columns(&self, kind: &UnknownKind, keys: &[(u32, i64)], rows: &mut ColumnWriter) {
        let records = self.part.unknown.iter().find(|records| records.kind == kind.name);
        let by_key: SortedMap<(u32, i64), usize> =
            records.iter().flat_map(|r| (0..r.len()).map(|i| ((r.series[i], r.keys[i]), i))).collect();
        let places: Vec<Option<usize>> = keys.iter().map(|key| by_key.get(key).copied()).collect();
        for column in 0..kind.columns.len() {
            let of = records.and_then(|records| records.columns.get(column));
            let value = |place: &Option<usize>| of.zip(*place).map_or(0, |(column, place)| column.values[place]);
            let form = of.map_or(NumberForm::Integer, |column| column.form);
            rows.numbers_as(
                form,
                places.iter().map(value).collect(),
                is_text(kind, column).then_some(self.context.texts),
            );
        }
    }

    /// Encodes the tables of unknown kinds.
    pub(super) fn encode_unknown_kinds(&mut self) {
        for (records, range) in self.part.unknown() {
            let Some(kind) =
                kind_of(self.header, &records.kind).filter(|kind| !kind.is_known_kind() && !range.is_empty())
            else {
                continue;
            };
            let mut by_series: SortedMap<u32, Vec<usize>> = SortedMap::new();
            range.clone().for_each(|row| by_series.entry(records.series[row]).or_default().push(row));
            let order: Vec<usize> = by_series.values().flatten().copied().collect();
            let mut columns = ColumnWriter::of_series(&by_series);
            for (place, column) in records.columns.iter().enumerate() {
                let values = order.iter().map(|&row| column.values[row]).collect();
                columns.numbers_as(column.form, values, is_text(kind, place).then_some(self.context.texts));
            }
            self.tables.push((records.kind.clone(), columns.finish()));
        }
    }
}

impl ChunkDecoder<'_> {
    /// Decodes the unknown columns of a known kind.
    pub(super) fn decode_unknown_columns<T: RecordLayout>(
        &mut self,
        columns: &ColumnReader<'_>,
        records: &[T],
    ) -> Result<(), String> {
        let Some(kind) = kind_of(self.header, columns.name) else { return Ok(()) };
        let mut read = self.decode_unknown(columns, kind)?;
        if let Some(first) = T::COLUMNS.first() {
            read.keys = records.iter().map(first.get).collect();
        }
        self.chunk.unknown.push(read);
        Ok(())
    }

    /// Decodes the tables of unknown kinds.
    pub(super) fn decode_unknown_kinds(&mut self, tables: &DecodedTables<'_>, schema: &Schema) -> Result<(), String> {
        for kind in self.header.unknown.iter().filter(|kind| !kind.is_known_kind()) {
            if let Some(columns) = tables.columns(&kind.name, schema) {
                let records = self.decode_unknown(&columns, kind)?;
                self.chunk.unknown.push(records);
            }
        }
        Ok(())
    }

    fn decode_unknown(&mut self, columns: &ColumnReader<'_>, kind: &UnknownKind) -> Result<UnknownRecords, String> {
        self.budget.take(columns.rows, size_of::<i64>() * (4 + kind.columns.len()))?;
        let decode = |name: &String| -> Result<UnknownColumn, String> {
            let (form, mut values) =
                column::decode_any(columns.raw(name), &columns.series).map_err(|what| columns.bad(name, what))?;
            let field = kind.field(name);
            if field.is_some_and(|field| field.kind == CellKind::Text) {
                self.texts.to_codes(&mut values).map_err(|what| columns.bad(name, what))?;
            }
            // A column of zeros does not show its form.
            let form = field.filter(|_| form == NumberForm::Integer).map_or(form, |f| f.kind.form());
            Ok(UnknownColumn { form, values })
        };
        Ok(UnknownRecords {
            kind: kind.name.clone(),
            series: columns.row_counts().into_iter().flat_map(|(id, rows)| std::iter::repeat_n(id, rows)).collect(),
            keys: vec![0; columns.rows],
            columns: kind.columns.iter().map(decode).collect::<Result<_, _>>()?,
            time_column: kind.time_column(),
        })
    }
}
