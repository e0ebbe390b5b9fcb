//! The page of a sweep.

use super::figures::count;
use super::page::Page;
use super::what_if_line;
use crate::swept::{Sweep, SweepFigures};
use hitreg_log::record::WhatIf;
use hitreg_log::stats::Spread;

/// The most important figures, with a row for each combination of values.
pub fn sweep_page(sweep: &Sweep) -> Page {
    let mut page = Page::default();
    // Each name is complete, because Markdown has it on one line.
    let (shots, errors) = (["", ">shots\nhit", ">\nmissed*"], [">view\np50", ">view\np95"]);
    let cover = [">cov.\nhits", ">cov.\nms", ">cov.\nunits"];
    let rest = [">corr.\nn", ">corr.\np95", ">down\nkB/s", ">up\nkB/s"];
    let mut columns = [&shots[..], &errors, &cover, &rest].concat();
    let has_intervals = sweep.what_if == WhatIf::Rerecord;
    if has_intervals {
        columns.splice(2..2, [">hit\n%", ">95%\nci"]);
    }
    let row = |row: &crate::swept::SweepRow| {
        let mut cells = figures(&row.figures).to_vec();
        if has_intervals {
            cells.splice(1..1, hit_share(&row.figures));
        }
        [row.values.join(" ")].into_iter().chain(cells)
    };
    page.table(&columns, sweep.rows.iter().map(row));
    page.blank();
    if let Some(note) = note(sweep) {
        page.paragraph(0, &note);
    }
    let absent = sweep.absent();
    if !absent.is_empty() {
        page.paragraph(0, &format!("not in the build's traces: {}", absent.join(", ")));
    }
    page.line(&format!("rows: {}", sweep.keys.join(" ")));
    let [launched, impacts, not_run] =
        [range(sweep, |f| f.launched), range(sweep, |f| f.impacts), range(sweep, |f| f.not_run)];
    if launched.is_some() || impacts.is_some() {
        let [launched, impacts] = [launched, impacts].map(|range| range.unwrap_or("0".to_owned()));
        page.paragraph(0, &format!("projectiles: {launched} launched, {impacts} impacts"));
    }
    if let Some(not_run) = not_run {
        page.paragraph(0, &format!("shots that clients predicted and no server ran, not counted: {not_run}"));
    }
    let seeds = if has_intervals { format!(" Seeds: {}.", sweep.repeats) } else { String::new() };
    page.paragraph(0, &format!("{}{seeds}", what_if_line(sweep.what_if)));
    page.line("* shots that hit on the shooter's screen, but not on the server");
    page.line("view: view error in units, from the target drawn to the target judged");
    page.paragraph(
        0,
        "cov.: hits on targets in cover: the shooter no longer saw them on the server; median time and distance since they went \
         into cover on their own screens",
    );
    page.line("corr.: corrections; error in units, without spawns, deaths and teleports");
    page.line("down, up: per player, from the server and to it");
    page
}

/// A count from its least to its greatest in a row, as text; `None` if it is 0 everywhere.
fn range(sweep: &Sweep, of: fn(&SweepFigures) -> Option<u64>) -> Option<String> {
    let counts = || sweep.rows.iter().filter_map(|row| of(&row.figures));
    let (least, most) = (counts().min()?, counts().max().filter(|most| *most > 0)?);
    Some(if least == most { count(most) } else { format!("{} to {}", count(least), count(most)) })
}

/// A note for rows that are all equal, or for settings that a replay cannot answer.
fn note(sweep: &Sweep) -> Option<String> {
    let (first, others) = sweep.rows.split_first()?;
    let are_equal = others.iter().all(|row| row.figures == first.figures);
    let unanswered = sweep.unanswered().sentences().join("; ");
    let keys = sweep.keys.join(", ");
    let why = match sweep.what_if {
        _ if !unanswered.is_empty() && sweep.is_open => format!("{unanswered}."),
        _ if !unanswered.is_empty() => {
            format!("{unanswered}. --what-if rerecord plays the session again with bots.")
        }
        _ if others.is_empty() || !are_equal => return None,
        _ if sweep.of_build.is_some() => format!("in the build's traces, these figures do not depend on {keys}."),
        WhatIf::Rerecord => format!("in these sessions, the figures do not depend on {keys}."),
        _ => format!("in replays of these logs, the figures do not depend on {keys}."),
    };
    let all_rows = are_equal && !others.is_empty();
    Some(format!("{}: {why}", if all_rows { "All rows are equal" } else { "Not answered" }))
}

/// The share of shots that hit, and half the width of its confidence interval.
fn hit_share(f: &SweepFigures) -> [String; 2] {
    let share = f.hit_share().map(|share| format!("{:.1}", 100.0 * share));
    let interval = f.hit_share_ci95.map(|half| format!("±{:.1}", 100.0 * half));
    [share, interval].map(|cell| cell.unwrap_or("-".to_owned()))
}

fn figures(f: &SweepFigures) -> [String; 11] {
    let part = |spread: Option<Spread>, part: fn(Spread) -> f32, digits: usize| {
        spread.map_or("-".to_owned(), |spread| format!("{:.digits$}", part(spread)))
    };
    let kilobytes = |bytes: Option<f64>| bytes.map_or("-".to_owned(), |bytes| format!("{:.1}", bytes / 1e3));
    let counted = |count: Option<u64>| count.map_or("-".to_owned(), |count| count.to_string());
    [
        counted(f.hits.filter(|_| f.shots > Some(0))),
        counted(f.missed_on_target),
        part(f.view_error_units, |s| s.p50, 1),
        part(f.view_error_units, |s| s.p95, 1),
        counted(f.hits_in_cover),
        part(f.in_cover_ms, |s| s.p50, 0),
        part(f.in_cover_units, |s| s.p50, 0),
        counted(f.corrections),
        part(f.correction_units, |s| s.p95, 2),
        kilobytes(f.down_bytes_per_s),
        kilobytes(f.up_bytes_per_s),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swept::{SweepRow, TraceColumns};
    use hitreg_log::record::{ReplayScope, UnansweredSettings};
    use hitreg_log::trace::schema::shots;

    #[test]
    fn projectiles_and_shots_that_never_ran_have_their_own_counts() {
        let row = |launched, not_run| SweepRow {
            values: vec!["30".to_owned()],
            unanswered: UnansweredSettings::default(),
            figures: SweepFigures {
                shots: Some(9),
                launched: Some(launched),
                impacts: Some(2),
                not_run: Some(not_run),
                ..SweepFigures::default()
            },
        };
        let keys = vec!["client.cmd_hz".to_owned()];
        let rows = vec![row(3, 4), row(5, 4)];
        let mut columns = TraceColumns::default();
        let sweep = |columns: &TraceColumns| Sweep {
            what_if: WhatIf::Replay,
            repeats: 1,
            keys: keys.clone(),
            rows: rows.clone(),
            is_open: false,
            of_build: Some(columns.clone()),
        };
        let text_of = |sweep: &Sweep| sweep_page(sweep).text();
        let text = text_of(&sweep(&columns));
        assert!(text.contains("\nnot in the build's traces: usercmds, hits, hit_share, missed_on_target,"), "{text}");
        assert!(!text.contains("impacts,"), "{text}");
        // A column without values is in the traces: no hit was in cover.
        columns.add(&shots::Writer::default().finish(Vec::new()));
        let text = text_of(&sweep(&columns));
        assert!(text.contains("\nnot in the build's traces: usercmds, predictions_checked,"), "{text}");
        let sweep = Sweep { of_build: None, ..sweep(&columns) };
        assert!(!text_of(&sweep).contains("not in"));
        let markdown = sweep_page(&sweep).markdown();
        assert!(markdown.contains("| shots hit | missed\\* | view p50 | view p95 | cov. hits |"), "{markdown}");
        let text = sweep_page(&sweep).text();
        assert!(text.contains("\nprojectiles: 3 to 5 launched, 2 impacts\n"), "{text}");
        assert!(text.contains("\nshots that clients predicted and no server ran, not counted: 4\n"), "{text}");
    }

    #[test]
    fn equal_rows_have_a_reason() {
        // A row with this number of shots. Its setting differs from the log's own.
        let row = |key: &str, is_open, shots| SweepRow {
            values: vec!["30".to_owned()],
            unanswered: ReplayScope { is_open, has_judged_shots: true, ..ReplayScope::default() }.unanswered([key]),
            figures: SweepFigures { shots: Some(shots), ..SweepFigures::default() },
        };
        let sweep = |key: &str, is_open, shots: &[u64]| Sweep {
            what_if: WhatIf::Replay,
            repeats: 1,
            keys: vec![key.to_owned()],
            rows: shots.iter().map(|shots| row(key, is_open, *shots)).collect(),
            is_open,
            of_build: None,
        };
        let of_key = |key, is_open| note(&sweep(key, is_open, &[1, 1])).expect("a note");
        assert!(of_key("client.cmd_hz", false).contains("a replay cannot change client.cmd_hz"));
        assert!(of_key("server.update_hz", false).contains("do not depend on server.update_hz"));
        let open = of_key("server.update_hz", true);
        assert!(open.contains("open loop runs no server") && !open.contains("rerecord"), "{open}");
        assert_eq!(note(&sweep("interpolation.lerp_ms", false, &[1, 2])), None);
        // Another key made the rows differ.
        let beside_others = note(&sweep("client.cmd_hz", false, &[1, 2]));
        assert!(beside_others.is_some_and(|note| note.starts_with("Not answered: the log holds the usercmds")));
        let single = note(&sweep("client.cmd_hz", false, &[1]));
        assert!(single.is_some_and(|note| note.starts_with("Not answered: the log holds the usercmds")));
        assert_eq!(note(&sweep("server.update_hz", false, &[1])), None);
    }

    /// A preset is a set of settings. The table, too, says which of them a replay does not answer.
    #[test]
    fn a_preset_and_its_row_name_what_is_not_answered() {
        let row = |preset: &str, changed: &[&str]| SweepRow {
            values: vec![preset.to_owned()],
            unanswered: ReplayScope::default().unanswered(changed.iter().copied()),
            figures: SweepFigures::default(),
        };
        let sweep = Sweep {
            what_if: WhatIf::Replay,
            repeats: 1,
            keys: vec!["preset".to_owned()],
            rows: vec![row("half-life", &[]), row("nereids", &["client.cmd_hz", "interpolation.mode"])],
            is_open: false,
            of_build: None,
        };
        let why = "the log holds the usercmds that the clients sent, and a replay cannot change client.cmd_hz";
        assert!(note(&sweep).is_some_and(|note| note.contains(why)));
        let csv = sweep.table().to_csv();
        let last: Vec<&str> = csv
            .lines()
            .filter_map(|line| line.split_once("replay")?.1.rsplit_once(",,"))
            .map(|cells| cells.1)
            .collect();
        assert_eq!(last, ["", &format!("\"{why}\"")], "{csv}");
    }
}
