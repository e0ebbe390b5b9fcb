//! The part of a trace that the search for a cause needs.

use std::borrow::Cow;

use super::rerun::StateOwner;
use crate::diff::{Divergence, pick};
use hitreg_log::trace::schema::{corrections, executed, shots};
use hitreg_log::trace::{ColumnSpan, Table, Trace, TraceSource, select_rows};

/// The rows at a divergence; the whole trace if it is in memory.
pub(super) fn around<'t>(trace: &'t dyn TraceSource, first: &Divergence) -> Result<Cow<'t, Trace>, String> {
    if let Some(trace) = trace.in_memory() {
        return Ok(Cow::Borrowed(trace));
    }
    let mut around = Trace { header: trace.header().clone(), tables: Vec::new() };
    let of_tick = |table, tick: u32| {
        let span = ColumnSpan { column: "tick", first: tick.into(), last: tick.into() };
        let of_tick = |rows: &Table| rows.select_where(rows.u32s("tick").iter(), |of| *of == tick);
        select_rows(trace, table, (&[], Some(span)), &of_tick)
    };
    let usercmds = [&first.usercmds_a, &first.usercmds_b].into_iter().flatten();
    let usercmds = usercmds.map(|usercmd| (usercmd.player, usercmd.command)).collect();
    around.tables.extend(pick(trace, executed::NAME, ["player", "command"], &usercmds)?);
    if let Some(tick) = first.place.tick {
        around.tables.push(of_tick(shots::NAME, tick)?);
    }
    if let Some(tick) = first.last_agreeing.as_ref().and_then(|row| row.place.tick) {
        let tables = trace.tables();
        let states =
            tables.iter().map(|(table, _)| &*table.name).filter(|name| StateOwner::in_table(name, 0).is_some());
        for table in states {
            around.tables.push(of_tick(table, tick)?);
        }
    }
    let usercmd = first.place.player.zip(first.place.command).into_iter().collect();
    around.tables.extend(pick(trace, corrections::NAME, ["player", "command"], &usercmd)?);
    Ok(Cow::Owned(around))
}

/// Whether a trace tells which usercmds the server executed.
pub(super) fn has_executed(trace: &dyn TraceSource) -> bool {
    trace.tables().iter().any(|(table, rows)| table.name == executed::NAME && *rows > 0)
}
