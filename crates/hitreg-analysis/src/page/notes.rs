//! Notes on what a page cannot show because its trace lacks the data.

use super::PageInput;
use crate::report::figures::count;
use hitreg_log::trace::schema::{corrections, frames, is_bodies, shots, views};

/// What a page found in the rows of its trace.
pub(super) struct FoundRows {
    /// Whether `ticks` has times.
    pub(super) tick_times: bool,
    /// Whether a body has a position.
    pub(super) bodies: bool,
    /// Whether a packet's arrival is known.
    pub(super) packets: bool,
}

/// The notes, as sentences.
pub(super) fn notes(shown: &PageInput<'_>, found: &FoundRows) -> Vec<String> {
    let tables = shown.trace.tables();
    let of = |name: &str| tables.iter().find(|(table, _)| table.name == name);
    let rows = |name: &str| of(name).map_or(0, |(_, rows)| *rows);
    let mut notes: Vec<String> = shown.notes.to_vec();
    let mut note = |is_so: bool, text: &str| notes.extend(is_so.then(|| text.to_owned()));
    let has_column = |name: &str, column: &str| of(name).is_some_and(|(table, _)| table.column(column).is_some());
    let states = || tables.iter().filter(|(table, rows)| is_bodies(&table.name) && *rows > 0);
    let (no_bodies, have_places) =
        (states().count() == 0, states().any(|(table, _)| table.column("origin.x").is_some()));
    note(no_bodies, "positions on the server: `bodies` has no rows");
    note(!no_bodies && !have_places, "positions on the server: `bodies` has no column origin.x");
    note(
        !no_bodies && have_places && !found.bodies,
        "positions on the server: none in `bodies` has a finite position at a known time",
    );
    note(
        !no_bodies && !found.tick_times,
        "times of ticks: `ticks` has no column at_us, so the tick rate in the settings is used",
    );
    let no_frames = rows(frames::NAME) == 0;
    note(no_frames, "usercmds: `frames` has no rows");
    note(
        !no_frames && !has_column(frames::NAME, "own.origin.x"),
        "predicted positions: `frames` has no column own.origin.x",
    );
    note(rows(views::NAME) == 0, "players' screens: `views` has no rows");
    let header = shown.trace.header();
    let (is_of_client, is_open) = (header.is_of_one_client(), header.is_open());
    let (client, open) = (
        "hits: the log is one client's side, without the server. Merge it with the server's log (`hitreg merge`)",
        "hits: an open-loop replay has no server that judges shots",
    );
    note(is_of_client, client);
    note(rows(shots::NAME) == 0 && is_open && !is_of_client, open);
    note(rows(shots::NAME) == 0 && !is_open, "hits: `shots` has no rows");
    let no_acks = rows(corrections::NAME) == 0;
    note(no_acks, "corrections: `corrections` has no rows");
    note(
        !no_acks && !has_column(corrections::NAME, "error_units"),
        "prediction errors: `corrections` has no column error_units",
    );
    let no_packets = match shown.log {
        Some(_) => "packets and loss: the log has no packet with its arrival",
        None => "packets and loss: `packets` and `snapshots` have no rows, and there is no log with packets",
    };
    note(!found.packets, no_packets);
    notes
}

/// What a page of a long session leaves out.
pub(super) struct Thinning {
    /// Whether the paths of bodies are coarser than those of a short session.
    pub(super) places: bool,
    /// Whether what screens showed is coarser.
    pub(super) views: bool,
    /// How many acks are merged into one.
    pub(super) acks: usize,
    /// How many frames are merged into one.
    pub(super) ran: usize,
    /// One of how many packets is drawn: of those that arrived, and of those that did not or were held back.
    pub(super) packets: [usize; 2],
    /// The word for packets that did not arrive from the server.
    pub(super) missing_down: &'static str,
    /// One of how many usercmds that did not run is drawn.
    pub(super) unrun: usize,
}

/// The notes, as sentences. Empty for a short session.
pub(super) fn thinned(of: &Thinning) -> Vec<String> {
    let mut notes = Vec::new();
    let mut note = |is_so: bool, text: String| notes.extend(is_so.then_some(text));
    let each = |number: usize| count(number as u64);
    note(of.places, "paths of bodies are coarser than in a short session".to_owned());
    note(of.views, "what screens showed is coarser than in a short session".to_owned());
    note(of.acks > 1, format!("charts of acks show the largest of {} acks", each(of.acks)));
    note(of.ran > 1, format!("the chart of usercmds run shows the largest of {} frames", each(of.ran)));
    let [arrived, marked] = of.packets;
    note(arrived > 1, format!("1 of {} packets that arrived is drawn", each(arrived)));
    note(marked > 1, format!("{} or held back: 1 of {} packets is drawn", of.missing_down, each(marked)));
    note(of.unrun > 1, format!("1 of {} usercmds that did not run is drawn", each(of.unrun)));
    notes
}
