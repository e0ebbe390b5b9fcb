//! Notes on what a page cannot show because its trace lacks the data.

use super::PageInput;
use hitreg_log::trace::Table;
use hitreg_log::trace::schema::{bodies, corrections, frames, shots, views};

/// The notes, as sentences.
pub(super) fn notes(shown: &PageInput<'_>, ticks_are_timed: bool, has_packets: bool) -> Vec<String> {
    let rows = |name: &str| shown.trace.table(name).map_or(0, Table::rows);
    let mut notes: Vec<String> = shown.notes.to_vec();
    let mut note = |is_so: bool, text: &str| notes.extend(is_so.then(|| text.to_owned()));
    let has_places = |name: &str, column: &str| shown.trace.table(name).is_some_and(|t| !t.floats(column).is_empty());
    let no_bodies = rows(bodies::NAME) == 0;
    note(no_bodies, "positions on the server: `bodies` has no rows");
    note(
        !no_bodies && !has_places(bodies::NAME, "origin.x"),
        "positions on the server: `bodies` has no column origin.x",
    );
    note(
        !no_bodies && !ticks_are_timed,
        "times of ticks: `ticks` has no column at_us, so the tick rate in the settings is used",
    );
    let no_frames = rows(frames::NAME) == 0;
    note(no_frames, "usercmds: `frames` has no rows");
    note(
        !no_frames && !has_places(frames::NAME, "own.origin.x"),
        "predicted positions: `frames` has no column own.origin.x",
    );
    note(rows(views::NAME) == 0, "players' screens: `views` has no rows");
    let is_open = shown.trace.header.mode == "open";
    note(rows(shots::NAME) == 0 && is_open, "hits: an open-loop replay has no server that judges shots");
    note(rows(shots::NAME) == 0 && !is_open, "hits: `shots` has no rows");
    note(rows(corrections::NAME) == 0, "corrections: `corrections` has no rows");
    note(!has_packets, "packets and loss: `packets` and `snapshots` have no rows, and there is no log with packets");
    note(!shown.has_map, "walls: a trace has no map, and not every game describes its walls");
    notes
}
