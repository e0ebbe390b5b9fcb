//! Explains one correction: the predicted state, the authoritative state, and the cause.

use std::ops::Range;

use serde::Serialize;

use super::WhyError;
use super::{Axes, TraceRows, cell, measure};
use crate::diff::{CellValue, DOUBLE_WHOLE_MAX, SINGLE_WHOLE_MAX};
use crate::report::figures::counted;
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::schema::{corrections, errors, frames};
use hitreg_log::trace::{Column, ColumnData, Trace};

/// An ack whose state differed from the predicted state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CorrectionExplanation {
    /// The corrected player.
    pub player: u32,
    /// The number of the correction among the player's, from 1.
    pub number: u32,
    /// The total number of the player's corrections.
    pub of: usize,
    /// The usercmd that was acked.
    pub command: u32,
    /// The time at which the client made that usercmd.
    pub made_us: Option<i64>,
    /// The time at which the ack arrived.
    pub at_us: Option<i64>,
    /// The number of usercmds that the ack covered.
    pub commands: Option<u32>,
    /// How closely the prediction agreed, as in the `corrections` table.
    pub result: String,
    /// Whether the player was on the ground at the first covered usercmd.
    pub on_ground: Option<bool>,
    /// Distance between the predicted and the authoritative origin.
    pub error_units: Option<f32>,
    /// Difference between the predicted and the authoritative velocity.
    pub velocity_error_units_per_s: Option<f32>,
    /// The number of usercmds that were run again.
    pub reran: Option<u32>,
    /// The cause of the error.
    pub cause: String,
    /// The evidence for the cause.
    pub evidence: String,
    /// The corrected fields, in the order of the state.
    pub errors: Vec<FieldError>,
    /// The whole predicted state, by field. Empty if the trace lacks it, or if the client predicted that usercmd again.
    #[serde(skip)]
    pub predicted: Vec<(String, String)>,
    /// The axes of the game's positions.
    #[serde(skip)]
    pub axes: Axes,
}

/// A field whose predicted value differed from the authoritative one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FieldError {
    /// The name of the field.
    pub field: String,
    /// The predicted value: a double if the field is one, else a single float. A whole number that a single float cannot
    /// hold is a double or an integer, or a text with `about` if the trace does not have all its bits.
    pub predicted: CellValue,
    /// The authoritative value, of the same kind.
    pub authoritative: CellValue,
}

impl TraceRows<'_> {
    /// Explains all corrections, by player and in the order of the table.
    pub fn corrections(&self) -> Vec<CorrectionExplanation> {
        let of_player = |rows: Vec<usize>| {
            let of = rows.len();
            (1..).zip(rows).map(move |(number, row)| self.correction_in(row, number, of))
        };
        corrected(self.trace).into_values().flat_map(of_player).collect()
    }

    /// Explains the `number`-th correction of a player.
    pub(super) fn correction(
        &self,
        others: &OtherCorrections,
        player: u32,
        number: u32,
    ) -> Result<CorrectionExplanation, WhyError> {
        let row = row(self.trace, others, player, number)?;
        let of = others.of(player) + corrected(self.trace).get(&player).map_or(0, Vec::len);
        Ok(self.correction_in(row, number, of))
    }

    fn correction_in(&self, row: usize, number: u32, of: usize) -> CorrectionExplanation {
        let table = corrections::Columns::of(self.trace);
        let [player, command] = [table.player, table.command].map(|column| cell(column, row).unwrap_or_default());
        let frames = frames::Columns::of(self.trace);
        let made = self.frames.at([player, 0], command).next();
        // An ack that later snapshots repeat can be corrected again. The errors of a usercmd follow its corrections.
        let fields = |row: usize| cell(table.fields, row).map(|fields| fields as usize);
        let earlier = self.corrections.at([player, 0], command).take_while(|other| *other < row);
        let before: usize = earlier.filter_map(fields).sum();
        let of_this = before..fields(row).map_or(usize::MAX, |fields| before + fields);
        let errors = errors_of(self, ([player, command], of_this), made);
        CorrectionExplanation {
            player,
            number,
            of,
            command,
            made_us: made.and_then(|row| cell(frames.at_us, row)),
            at_us: cell(table.at_us, row),
            commands: cell(table.commands, row),
            result: table.result.get(row).to_owned(),
            on_ground: cell(table.on_ground, row).map(|on_ground| on_ground == 1),
            error_units: measure(table.error_units, row),
            velocity_error_units_per_s: measure(table.velocity_error_units_per_s, row),
            reran: cell(table.reran, row),
            cause: table.cause.get(row).to_owned(),
            evidence: table.evidence.get(row).to_owned(),
            predicted: made.and_then(|row| predicted(self.trace, row, &errors)).unwrap_or_default(),
            errors,
            axes: Axes::of(self.trace),
        }
    }
}

/// The state that the frame of a usercmd predicted, by field; `None` if it does not match the corrected values.
pub(crate) fn predicted(trace: &Trace, row: usize, errors: &[FieldError]) -> Option<Vec<(String, String)>> {
    let columns = trace.table(frames::NAME)?.columns.iter();
    let own = columns.filter_map(|column| Some((column.name.strip_prefix("own.")?, CellValue::at(column, row)?)));
    let fields: Vec<(&str, CellValue)> = own.collect();
    let is_it = |error: &FieldError| {
        let of_field = fields.iter().filter(|(field, _)| *field == error.field);
        of_field.filter_map(|(_, value)| as_error(value)).any(|value| value.same(&error.predicted))
    };
    let text = |(field, value): &(&str, CellValue)| ((*field).to_owned(), value.to_string());
    errors.iter().all(is_it).then(|| fields.iter().map(text).collect())
}

/// A field's value in the form of [`FieldError`].
fn as_error(value: &CellValue) -> Option<CellValue> {
    match value {
        CellValue::Integer(_) | CellValue::Unsigned(_) | CellValue::Hash(_) => value.whole().map(of_whole_number),
        CellValue::Float(_) | CellValue::Double(_) => Some(value.clone()),
        CellValue::Flag(flag) => Some(CellValue::Float(f32::from(u8::from(*flag)))),
        CellValue::Name(_) => None,
    }
}

impl FieldError {
    /// The authoritative minus the predicted value; exact if it is a whole number that a single float cannot hold.
    pub fn whole_difference(&self) -> Option<i128> {
        let difference = self.authoritative.whole()? - self.predicted.whole()?;
        (difference.abs() > SINGLE_WHOLE_MAX).then_some(difference)
    }

    /// The authoritative minus the predicted value.
    pub fn difference(&self) -> f32 {
        if let Some(difference) = self.whole_difference() {
            return difference as f32;
        }
        let value = |value: &CellValue| match value {
            CellValue::Float(number) => f64::from(*number),
            CellValue::Double(number) => *number,
            _ => f64::NAN,
        };
        (value(&self.authoritative) - value(&self.predicted)) as f32
    }
}

/// A whole number in the form of [`FieldError`].
fn of_whole_number(number: i128) -> CellValue {
    match (number.abs(), u64::try_from(number)) {
        (size, _) if size <= SINGLE_WHOLE_MAX => CellValue::Float(number as f32),
        (size, _) if size <= DOUBLE_WHOLE_MAX => CellValue::Double(number as f64),
        (_, Ok(number)) => CellValue::Unsigned(number),
        (_, Err(_)) => CellValue::Integer(number as i64),
    }
}

/// The least value whose low word and single leave it open which whole number it is.
pub(super) const AMBIGUOUS_MIN: f32 = (1_u64 << 55) as f32;

/// A whole number of at most 64 bits, whose low word and value in single precision are known. `full` are numbers that it
/// may be, if these do not tell the other bits.
fn whole(single: f32, low: Option<u32>, full: impl IntoIterator<Item = i128>) -> CellValue {
    let is_it = |number: &i128| low == Some(*number as u32) && (*number as f32).to_bits() == single.to_bits();
    let word = 1_i128 << 32;
    let near = single as i128;
    let base = near - near.rem_euclid(word) + i128::from(low.unwrap_or_default());
    let mut candidates = [base - word, base, base + word].into_iter().filter(is_it);
    match (candidates.next(), candidates.next()) {
        (Some(only), None) => of_whole_number(only),
        (None, _) if near.abs() <= SINGLE_WHOLE_MAX => CellValue::Float(single),
        _ => match full.into_iter().find(is_it) {
            Some(number) => of_whole_number(number),
            None => CellValue::Name(format!("about {single:e}")),
        },
    }
}

/// The double whose low word and whose value in single precision are known. `None` if single precision does not tell the
/// high word, as for a double beyond the range of a single.
fn double(single: f32, low: u32) -> Option<f64> {
    let high = f64::from(single).to_bits() >> 32;
    // The low word can round the high word of the single up or down by one.
    let candidates = [high, high.wrapping_sub(1), high.wrapping_add(1)];
    let doubles = candidates.map(|high| f64::from_bits(high << 32 | u64::from(low)));
    single.is_normal().then_some(())?;
    doubles.into_iter().find(|double| (*double as f32).to_bits() == single.to_bits())
}

/// The cause of a correction or a miss; `unknown` if the table names none.
pub(crate) fn known_cause<'t>(table: &corrections::Columns<'t>, row: usize) -> &'t str {
    Some(table.cause.get(row)).filter(|cause| !matches!(*cause, "none" | "")).unwrap_or("unknown")
}

/// The numbers of corrections, by player, before and after the rows at hand. By default these are all rows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OtherCorrections {
    /// The corrections before the rows.
    pub before: Vec<u32>,
    /// The corrections after the rows.
    pub after: Vec<u32>,
}

impl OtherCorrections {
    fn before(&self, player: u32) -> usize {
        self.before.get(player as usize).map_or(0, |count| *count as usize)
    }

    fn of(&self, player: u32) -> usize {
        self.before(player) + self.after.get(player as usize).map_or(0, |count| *count as usize)
    }
}

/// The number of corrections of each player.
fn players(corrected: &SortedMap<u32, Vec<usize>>, others: &OtherCorrections) -> SortedMap<u32, usize> {
    let players = (0..others.before.len() as u32).chain(corrected.keys().copied());
    players.map(|player| (player, others.of(player) + corrected.get(&player).map_or(0, Vec::len))).collect()
}

/// The row of the `number`-th correction of a player.
pub(super) fn row(trace: &Trace, others: &OtherCorrections, player: u32, number: u32) -> Result<usize, WhyError> {
    let corrected = corrected(trace);
    let of_player = corrected.get(&player).map_or(&[][..], Vec::as_slice);
    let index = (number as usize).checked_sub(1 + others.before(player));
    let found = index.and_then(|index| of_player.get(index));
    found.copied().ok_or_else(|| {
        let count = counted((others.of(player) + of_player.len()) as u64, "correction");
        let players = players(&corrected, others).into_iter().filter(|(_, count)| *count > 0);
        let players: Vec<String> = players.map(|(player, count)| format!("p{player} ({count})")).collect();
        let players = if players.is_empty() { "none".to_owned() } else { players.join(", ") };
        if number == 0 {
            return WhyError(format!("corrections are numbered from 1; players with corrections: {players}"));
        }
        WhyError(format!("p{player} has only {count}, not {number}; players with corrections: {players}"))
    })
}

/// Whether a row of `corrections` corrected a state. A game's own table may lack `fields`; then `result` decides, and
/// without a result the cause.
pub fn is_corrected(table: &corrections::Columns<'_>, row: usize) -> bool {
    match cell(table.fields, row) {
        Some(fields) => fields > 0,
        None if table.result.codes.is_empty() => !matches!(table.cause.get(row), "" | "none"),
        None => !matches!(table.result.get(row), "" | "none" | "exact"),
    }
}

/// The rows with a correction, by player.
fn corrected(trace: &Trace) -> SortedMap<u32, Vec<usize>> {
    let table = corrections::Columns::of(trace);
    let mut corrected: SortedMap<u32, Vec<usize>> = SortedMap::new();
    for row in (0..table.rows).filter(|row| is_corrected(&table, *row)) {
        if let Some(player) = cell(table.player, row) {
            corrected.entry(player).or_default().push(row);
        }
    }
    corrected
}

/// The errors of a usercmd at these places among them. `made` is its row in `frames`.
fn errors_of(
    reader: &TraceRows<'_>,
    ([player, command], places): ([u32; 2], Range<usize>),
    made: Option<usize>,
) -> Vec<FieldError> {
    let errors = errors::Columns::of(reader.trace);
    let frames = reader.trace.table(frames::NAME);
    let error = |row| {
        let field = errors.field.get(row);
        let own = frames.and_then(|frames| frames.column(&format!("own.{field}")));
        let number = |column: Option<&Column>, row: usize| CellValue::at(column?, row)?.whole();
        let value = |values, bits, full: &mut dyn Iterator<Item = i128>| {
            let (single, low) = (cell(values, row).unwrap_or(f32::NAN), cell(bits, row));
            match own.map(|column| &column.data) {
                Some(ColumnData::F64(_)) => {
                    low.and_then(|low| double(single, low)).map_or(CellValue::Float(single), CellValue::Double)
                }
                Some(ColumnData::U32(_) | ColumnData::U64(_) | ColumnData::I64(_)) => whole(single, low, full),
                _ => CellValue::Float(single),
            }
        };
        let mut predicted = made.and_then(|row| number(own, row)).into_iter();
        let mut authoritative = reader.bodies.iter().flat_map(|(table, rows)| {
            let of_server = table.column(field);
            rows.rows([player, 0]).iter().filter_map(move |row| number(of_server, *row as usize))
        });
        FieldError {
            field: field.to_owned(),
            predicted: value(errors.predicted, errors.predicted_bits, &mut predicted),
            authoritative: value(errors.authoritative, errors.authoritative_bits, &mut authoritative),
        }
    };
    reader.errors.at([player, 0], command).skip(places.start).take(places.len()).map(error).collect()
}

#[cfg(test)]
mod tests {
    use hitreg_log::trace::Table;
    use hitreg_log::trace::schema::bodies;

    use super::*;

    #[test]
    fn a_whole_number_follows_from_its_low_word_and_its_single() {
        for number in [0, -5, 1 << 24, (1 << 24) + 1, -((1 << 24) + 1), (1 << 53) + 1, 1 - (1 << 53), (1 << 55) - 3] {
            let found = whole(number as f32, Some(number as u32), []);
            assert_eq!(found.whole(), Some(number), "{number}: {found}");
        }
        let id = 0x8000_0000_0000_0009_u64;
        let of_id = |full: &[i128]| whole(id as f32, Some(id as u32), full.iter().copied());
        assert_eq!(of_id(&[5, i128::from(id)]), CellValue::Unsigned(id), "the single lacks 8 bits of it");
        assert_eq!(of_id(&[5]).to_string(), "about 9.223372e18");
    }

    /// The table `errors` has 24 bits of an id and its low word. The server's body has all bits.
    #[test]
    fn an_id_of_64_bits_is_shown_with_all_its_digits() {
        let id = 0x8000_0000_0000_0009_u64;
        let column = |name: &str, data| Column::new(name, data);
        let number = |name: &str, value: u32| column(name, ColumnData::U32(vec![value]));
        let text =
            |name: &str, value: &str| column(name, ColumnData::Name { names: vec![value.to_owned()], codes: vec![0] });
        let of = || [number("player", 0), number("command", 7)];
        let with = |name: &str, columns: Vec<Column>| Table::new(name, of().into_iter().chain(columns).collect());
        let bodies = vec![number("tick", 5), number("entity", 0), column("seat", ColumnData::U64(vec![id]))];
        let errors = vec![
            text("field", "seat"),
            column("predicted", ColumnData::F32(vec![0.0])),
            column("authoritative", ColumnData::F32(vec![id as f32])),
            number("predicted_bits", 0),
            number("authoritative_bits", id as u32),
        ];
        let tables = vec![
            with(frames::NAME, vec![column("own.seat", ColumnData::U64(vec![0]))]),
            with(corrections::NAME, vec![number("fields", 1)]),
            with(errors::NAME, errors),
            Table::new(bodies::NAME, bodies),
        ];
        let trace = Trace { tables, ..Trace::default() };
        let found = TraceRows::new(&trace).corrections().remove(0);
        let error = &found.errors[0];
        assert_eq!((error.predicted.to_string(), error.authoritative.to_string()), ("0".to_owned(), id.to_string()));
        let page = crate::report::why_page(&crate::why::Why::Correction(Box::new(found.clone())), &[], &[]).text();
        assert!(page.contains(&format!("0  {id}  {id}\n")), "{page}");
        assert_eq!(found.predicted, [("seat".to_owned(), "0".to_owned())], "the client predicted it once");
    }

    /// A snapshot that repeats an ack corrects the usercmd again.
    #[test]
    fn two_corrections_of_a_usercmd_have_their_own_fields() {
        let numbers = |name: &str, values: &[u32]| Column::new(name, ColumnData::U32(values.to_vec()));
        let singles = |name: &str, values: &[f32]| Column::new(name, ColumnData::F32(values.to_vec()));
        let names = ["alive", "x", "y"].map(str::to_owned).to_vec();
        let errors = vec![
            numbers("player", &[0; 4]),
            numbers("command", &[7; 4]),
            Column::new("field", ColumnData::Name { names, codes: vec![0, 0, 1, 2] }),
            singles("predicted", &[1.0, 0.0, 5.0, 6.0]),
            singles("authoritative", &[0.0, 1.0, 7.0, 8.0]),
        ];
        let corrections = vec![numbers("player", &[0; 3]), numbers("command", &[7; 3]), numbers("fields", &[1, 0, 3])];
        let tables = vec![Table::new(corrections::NAME, corrections), Table::new(errors::NAME, errors)];
        let trace = Trace { tables, ..Trace::default() };
        let found = TraceRows::new(&trace).corrections();
        let fields = |of: &CorrectionExplanation| of.errors.iter().map(|error| error.field.clone()).collect::<Vec<_>>();
        assert_eq!(found.iter().map(fields).collect::<Vec<_>>(), [vec!["alive"], vec!["alive", "x", "y"]]);
    }

    #[test]
    fn a_double_follows_from_its_low_word_and_its_single() {
        for value in [45.232_956_794_132_626, -0.1, 0.1_f64.next_up(), 1e-30, 1.0_f64.next_down(), 3.0, -1e9] {
            assert_eq!(double(value as f32, value.to_bits() as u32), Some(value));
        }
        for value in [1e300, 1e-300, f64::NAN] {
            assert_eq!(double(value as f32, value.to_bits() as u32), None);
        }
    }
}
