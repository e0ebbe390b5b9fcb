//! The HTML page of a corpus: figures, shots by group as bars, corrections by cause, and the logs that changed most.

use crate::corpus::{CorpusSummary, WorstLog};
use crate::report::figures::count;
use crate::report::{GROUP_COLUMNS, cause_cells, copies_note, corpus_page, corpus_subject, group_cells, verdict_line};
use hitreg_log::store::shown::shell_word;

/// The style of the page, without any other file.
const STYLE: &str = "\
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
h1{font-size:1.5rem}h2{font-size:1.1rem;margin:2rem 0 .5rem}.wide,pre{overflow-x:auto}table{border-collapse:collapse;width:100%}
th,td{text-align:right;padding:.2rem .6rem;border-bottom:1px solid #ddd}td{white-space:nowrap}
th:first-child,td:first-child{text-align:left}.logs td:first-child{white-space:normal;overflow-wrap:anywhere}
.bar{display:inline-block;height:.7rem;background:#c2571a;vertical-align:middle}.track{width:10rem;text-align:left}
code{background:#f3f3f3;padding:.1rem .3rem;overflow-wrap:anywhere}.faint{color:#666}a{color:#0b57d0}
@media(max-width:40rem){table{font-size:.8rem}th,td{padding:.2rem .25rem}.track{width:3rem}}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}th,td{border-color:#444}code{background:#2a2a2a}
.faint{color:#aaa}a{color:#8ab4f8}}";

/// The page of a corpus in HTML. It is one file, and uses no network. The logs that changed most have links to their pages
/// of `hitreg report`, if these are beside it, and the command that writes each. `exists` says whether a page of a name
/// is beside it.
pub fn corpus_html(summary: &CorpusSummary, exists: &dyn Fn(&str) -> bool) -> String {
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>hitreg report</title>\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\
         <style>{STYLE}</style></head><body>\n<h1>{}</h1>\n",
        text(&verdict_line(summary)),
    );
    html.push_str(&format!("<p class=\"faint\">{}</p>\n", text(&corpus_subject(summary))));
    for problem in &summary.problems {
        html.push_str(&format!("<p><b>problem</b> {}</p>\n", text(problem)));
    }
    if let Some(change) = &summary.weapon_changed {
        let [low, high] = change.interval.map(|end| format!("{:+.3}", 100.0 * end));
        html.push_str(&format!(
            "<p><b>{}</b>: its hit rate changed most, from {:.2} % to {:.2} % (95 % confidence {low} to {high} points).</p>\n",
            text(&change.weapon),
            100.0 * change.rate_a,
            100.0 * change.rate_b
        ));
    }
    if summary.a.is_some() {
        copies_note(summary).iter().for_each(|note| html.push_str(&format!("<p>{note}</p>\n")));
        html.push_str(&groups_and_causes(summary));
    }
    html.push_str(&worst_logs(summary, exists));
    html.push_str(&format!(
        "<h2>All figures</h2>\n<pre>{}</pre>\n</body></html>\n",
        text(&corpus_page(summary).text())
    ));
    html
}

/// The shots of each group, and the corrections of each cause, of both sides.
fn groups_and_causes(summary: &CorpusSummary) -> String {
    let mut html = String::new();
    for (title, groups) in [
        ("Shots by weapon", &summary.weapons),
        ("Shots by the shooter's latency", &summary.latencies),
        ("Shots by number of players", &summary.players),
        ("Shots by map", &summary.maps),
    ] {
        if groups.iter().any(|group| group.has_shots()) {
            let most = groups.iter().filter_map(|group| group.changed).max().unwrap_or(0);
            let rows = groups.iter().map(|group| (group_cells(group), group.changed.unwrap_or_default()));
            html.push_str(&bar_table(title, &GROUP_COLUMNS, ("changed shots", most), rows));
        }
    }
    if !summary.causes.is_empty() {
        let most = summary.causes.iter().map(|cause| cause.a.max(cause.b)).max().unwrap_or(1);
        let rows = summary.causes.iter().map(|cause| (cause_cells(cause), cause.b));
        html.push_str(&bar_table("Corrections by cause", &["A", "B"], ("corrections in B", most), rows));
    }
    html
}

/// The logs that changed most, with links to their pages. Without a side A, the logs have no changes in numbers.
fn worst_logs(summary: &CorpusSummary, exists: &dyn Fn(&str) -> bool) -> String {
    if summary.worst.is_empty() {
        return String::new();
    }
    let (title, columns) = match summary.a {
        Some(_) => ("Logs that changed most", "<th>changed shots</th><th>corrections</th>"),
        None => ("Logs that differ", ""),
    };
    let row = |log: &WorstLog| {
        let corrections = || log.corrections_changed.map_or("-".to_owned(), |change| format!("{change:+}"));
        let changes = match summary.a {
            Some(_) => format!("<td>{}</td><td>{}</td>", count(log.hits_changed.unwrap_or_default()), corrections()),
            None => String::new(),
        };
        let name = match exists(&log.page) {
            true => format!("<a href=\"{}\">{}</a>", link(&log.page), text(&log.log)),
            false => text(&log.log),
        };
        format!(
            "<tr><td>{name}<br><code>{}</code></td>{changes}</tr>\n",
            text(&format!("{} -o {}", log.report, shell_word(&log.page))),
        )
    };
    let rows: String = summary.worst.iter().map(row).collect();
    format!("<h2>{title}</h2>\n<table class=\"logs\"><tr><th>log</th>{columns}</tr>\n{rows}</table>\n")
}

/// A table whose last column shows a number of each row as a bar. The column has a name and its greatest number.
fn bar_table<const N: usize>(
    title: &str,
    columns: &[&str],
    (bars, most): (&str, u64),
    rows: impl Iterator<Item = ([String; N], u64)>,
) -> String {
    let names: String = columns.iter().map(|name| format!("<th>{name}</th>")).collect();
    let rows: String = rows
        .map(|(cells, part)| {
            let cells: String = cells.iter().map(|cell| format!("<td>{}</td>", text(cell))).collect();
            let percent = if most == 0 { 0.0 } else { 100.0 * part as f64 / most as f64 };
            let bar = format!("<span class=\"bar\" style=\"width:{percent:.1}%\"></span>");
            format!("<tr>{cells}<td class=\"track\">{bar}</td></tr>\n")
        })
        .collect();
    format!(
        "<h2>{title}</h2>\n<div class=\"wide\"><table><tr><th></th>{names}<th class=\"track\">{bars}</th></tr>\n{rows}</table></div>\n"
    )
}

/// Text without meaning in HTML.
fn text(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The address of a file beside the page. Every character that an address or HTML gives a meaning is percent-encoded.
fn link(file: &str) -> String {
    let mut address = "./".to_owned();
    for byte in file.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                address.push(char::from(byte))
            }
            _ => address.push_str(&format!("%{byte:02X}")),
        }
    }
    address
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::{CorrectionCause, ShotGroup, SideCounts};

    #[test]
    fn a_log_links_to_its_report_if_that_exists_and_is_no_markup() {
        let worst = WorstLog {
            log: "logs/<b>.hitlog".to_owned(),
            report: "hitreg report 'logs/<b>.hitlog' --b ./game".to_owned(),
            page: "<b>.html".to_owned(),
            ..WorstLog::default()
        };
        let summary = CorpusSummary { worst: vec![worst], ..CorpusSummary::default() };
        let html = corpus_html(&summary, &|_| false);
        assert!(html.contains("<td>logs/&lt;b&gt;.hitlog<br>") && !html.contains("href"), "{html}");
        let html = corpus_html(&summary, &|page| page == "<b>.html");
        assert!(html.contains("<a href=\"./%3Cb%3E.html\">logs/&lt;b&gt;.hitlog</a>"), "{html}");
        assert!(html.contains("hitreg report 'logs/&lt;b&gt;.hitlog' --b ./game -o '&lt;b&gt;.html'"), "{html}");
        assert!(!html.contains("<b>."));
    }

    #[test]
    fn a_page_without_a_side_a_shows_none() {
        let group = ShotGroup { name: "rifle".to_owned(), shots_b: 5, hits_b: 1, ..ShotGroup::default() };
        let of = |a: Option<SideCounts>| {
            let summary = CorpusSummary {
                a,
                weapons: vec![group.clone()],
                players: vec![group.clone()],
                causes: vec![CorrectionCause { cause: "push".to_owned(), a: 0, b: 3 }],
                worst: vec![WorstLog { log: "a.hitlog".to_owned(), ..WorstLog::default() }],
                ..CorpusSummary::default()
            };
            corpus_html(&summary, &|_| false)
        };
        let parts = [
            "shots A",
            ">changed shots</th>",
            ">corrections in B</th>",
            "Shots by weapon",
            "Corrections by cause",
            "changed shots",
            "Logs that changed most",
        ];
        let [diff, verify] = [of(Some(SideCounts::default())), of(None)];
        assert!(parts.iter().all(|part| diff.contains(part)), "{diff}");
        assert!(!parts.iter().any(|part| verify.contains(part)) && verify.contains("Logs that differ"), "{verify}");
    }

    #[test]
    fn a_link_is_a_file_beside_the_page_whatever_its_name() {
        assert_eq!(link("s1-2_3~.html"), "./s1-2_3~.html");
        assert_eq!(link("match-12:30:00.html"), "./match-12%3A30%3A00.html");
        assert_eq!(link("javascript:alert(1)%2F.html"), "./javascript%3Aalert%281%29%252F.html");
        assert_eq!(link("round #1?.html"), "./round%20%231%3F.html");
        assert_eq!(link("\"é.html"), "./%22%C3%A9.html");
    }

    #[test]
    fn the_page_runs_no_script() {
        let html = corpus_html(&CorpusSummary::default(), &|_| false);
        assert!(html.contains("Content-Security-Policy\" content=\"default-src 'none'; style-src"), "{html}");
    }
}
