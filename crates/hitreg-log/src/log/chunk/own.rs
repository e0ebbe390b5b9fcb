//! The columns of frames. The usercmd fields that the game declares follow, each as a column of its own.

use super::{TableWriter, WriteContext};
use crate::log::column;
use crate::log::kinds::{ListReader, RecordLayout, columns};
use crate::log::limits::Budget;
use crate::record::{CellKind, FrameRecord, NumberForm, cells_of};
use crate::usercmd::OwnCells;

impl RecordLayout for FrameRecord {
    columns! {
        "seq" Whole command.seq,
        "at_us" Whole at,
        "server_time_us" To("at_us") command.server_time,
        "lerp_ms" Whole command.lerp_msec,
        "msec" Whole command.input.msec,
        "pitch" Float command.input.viewangles.x,
        "yaw" Float command.input.viewangles.y,
        "roll" Float command.input.viewangles.z,
        "forwardmove" Float command.input.forwardmove,
        "sidemove" Float command.input.sidemove,
        "upmove" Float command.input.upmove,
        "buttons" Whole command.input.buttons,
        "impulse" Whole command.input.impulse,
    }

    /// Writes the declared fields, one column each.
    fn put_lists(rows: &mut TableWriter<'_, FrameRecord>, context: &WriteContext<'_>) {
        for (field, place) in cells_of(context.own_fields) {
            let number = |frame: &FrameRecord| frame.command.input.own.number(field.kind, place.clone());
            let texts = (field.kind == CellKind::Text).then_some(context.texts);
            rows.columns.numbers_as(field.kind.form(), rows.iter().map(number).collect(), texts);
        }
    }

    fn take_lists(frames: &mut [FrameRecord], lists: ListReader<'_>, budget: &mut Budget) -> Result<(), String> {
        take_named(frames, ("", &lists.columns.series), lists, budget)
    }
}

/// Reads columns in series of their own, whose names begin with a prefix.
pub(super) fn take_named(
    frames: &mut [FrameRecord],
    (prefix, series): (&str, &[usize]),
    ListReader { columns, context }: ListReader<'_>,
    budget: &mut Budget,
) -> Result<(), String> {
    let fields = context.own_fields;
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
            context.texts.codes(&mut values).map_err(bad)?;
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
