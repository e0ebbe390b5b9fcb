//! The usercmd fields that the game declares, as columns of their own.

use super::{ColumnReader, ReadContext, TableWriter, WriteContext};
use crate::log::column;
use crate::log::limits::Budget;
use crate::record::{CellKind, FrameRecord, NumberForm, cells_of};
use crate::usercmd::OwnCells;

/// Writes the declared fields, one column each.
pub(in crate::log) fn put(rows: &mut TableWriter<'_, FrameRecord>, context: &WriteContext<'_>) {
    for (field, place) in cells_of(context.own_fields()) {
        let number = |frame: &FrameRecord| frame.command.input.own.number(field.kind, place.clone());
        let mut values: Vec<i64> = rows.iter().map(number).collect();
        if field.kind == CellKind::Text {
            context.texts().place(&mut values);
        }
        rows.numbers_as(field.kind.form(), &values);
    }
}

/// Reads the columns of [`put`].
pub(in crate::log) fn take(
    frames: &mut [FrameRecord],
    columns: &ColumnReader<'_>,
    context: &ReadContext<'_>,
    budget: &mut Budget,
) -> Result<(), String> {
    take_named(frames, (columns, "", &columns.series), context, budget)
}

/// Reads columns in series of their own, whose names begin with a prefix.
pub(super) fn take_named(
    frames: &mut [FrameRecord],
    (columns, prefix, series): (&ColumnReader<'_>, &str, &[usize]),
    context: &ReadContext<'_>,
    budget: &mut Budget,
) -> Result<(), String> {
    let fields = context.own_fields();
    let count = fields.iter().map(|field| field.kind.cells()).sum::<usize>();
    if count == 0 {
        return Ok(());
    }
    budget.take(frames.len(), 2 * count * size_of::<u32>() + 32)?;
    let mut cells: Vec<Vec<u32>> = frames.iter().map(|_| Vec::with_capacity(count)).collect();
    for field in fields {
        let name = format!("{prefix}{}", field.name);
        let bad = |what: String| columns.bad(&name, what);
        let (form, mut values) = column::decode_any(columns.raw(&name), series).map_err(bad)?;
        // A column of zeros does not show its form.
        if form != NumberForm::Integer && form != field.kind.form() {
            return Err(columns.bad(&name, format_args!("its values are no {}", field.kind.name())));
        }
        if field.kind == CellKind::Text {
            context.texts().codes(&mut values).map_err(bad)?;
        }
        for (cells, value) in cells.iter_mut().zip(values) {
            if !field.kind.put(value, cells) {
                return Err(columns.bad(&name, format_args!("{value} is out of range")));
            }
        }
    }
    for (frame, cells) in frames.iter_mut().zip(cells) {
        frame.command.input.own = OwnCells::new(&cells);
    }
    Ok(())
}
