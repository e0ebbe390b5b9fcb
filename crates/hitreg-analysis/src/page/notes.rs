//! Notes on what a page cannot show because its trace lacks the data.

use super::PageInput;
use hitreg_log::trace::Table;
use hitreg_log::trace::schema::{bodies, corrections, frames, shots, views};

/// The notes, as sentences.
pub(super) fn notes(shown: &PageInput<'_>, ticks_are_timed: bool, has_packets: bool) -> Vec<String> {
    let rows = |name: &str| shown.trace.table(name).map_or(0, Table::rows);
    let mut notes: Vec<String> = shown.notes.to_vec();
    let mut note = |is_so: bool, text: &str| notes.extend(is_so.then(|| text.to_owned()));
    let has_places = |name: &str, column: &str| shown.trace.table(name).is_some_and(|t| !t.f32s(column).is_empty());
    let no_bodies = rows(bodies::NAME) == 0;
    note(no_bodies, "where the server had anybody: there are no rows in `bodies`");
    note(!no_bodies && !has_places(bodies::NAME, "origin.x"), "where bodies are: `bodies` has no column origin.x");
    note(
        !no_bodies && !ticks_are_timed,
        "when ticks were: `ticks` has no at_us, so the rate in the settings stands for it",
    );
    let no_frames = rows(frames::NAME) == 0;
    note(no_frames, "what players did: there are no rows in `frames`");
    note(
        !no_frames && !has_places(frames::NAME, "own.origin.x"),
        "where players predicted themselves to be: `frames` has no column own.origin.x",
    );
    note(rows(views::NAME) == 0, "what players' screens showed: there are no rows in `views`");
    let is_open = shown.trace.header.mode == "open";
    note(rows(shots::NAME) == 0 && is_open, "who was hit: an open-loop replay has no server that judges shots");
    note(rows(shots::NAME) == 0 && !is_open, "who was hit: there are no rows in `shots`");
    note(rows(corrections::NAME) == 0, "how predictions did: there are no rows in `corrections`");
    note(!has_packets, "packets and loss: there are no rows in `packets` and `snapshots`, and no log says more");
    note(!shown.has_map, "the map: a trace does not have it, and not every game says where its walls are");
    notes
}
