//! Prints the network traffic in a few lines: losses, delays, and the use of bytes.

use crate::cli::figures::{count, counted, measure, share};
use crate::cli::page::Page;
use crate::summary::{DirectionSummary, NetworkSummary};

pub(super) fn print(page: &mut Page, network: &NetworkSummary) {
    page.heading("Network");
    let one_way = |what: &str, way: &DirectionSummary| {
        let took = way.took_ms.map_or(String::new(), |ms| format!(", median {} ms", measure(ms.p50)));
        let bytes = way.bytes.map_or(String::new(), |bytes| format!(", {} bytes", count(bytes)));
        let lost = match way.lost {
            // Some packets of every session are in flight at its end. More than 5 % show a link that had stopped.
            Some(lost) if way.in_flight * 20 > way.sent => {
                format!("{} lost, {} in flight at the end", share(lost, way.sent), count(way.in_flight))
            }
            Some(lost) => format!("{} lost", share(lost, way.sent)),
            None => "arrivals not known".to_owned(),
        };
        format!("{what}, {lost}{took}{bytes}")
    };
    let up = match network.up.sent {
        0 => "the log has no packets of clients".to_owned(),
        sent => {
            let packets = format!("{} of {:.2} usercmds", counted(sent, "packet"), network.usercmds_per_packet);
            one_way(&packets, &network.up)
        }
    };
    page.pair("up", &up);
    let counts = [(network.choked, "choked update"), (network.warnings, "warning")];
    let counts = counts.into_iter().filter(|(number, _)| *number > 0).map(|(number, what)| counted(number, what));
    let snapshots = one_way(&counted(network.down.sent, "snapshot"), &network.down);
    page.pair("down", &std::iter::once(snapshots).chain(counts).collect::<Vec<_>>().join("; "));
    let all: f64 = network.bytes_for.values().sum();
    let mut parts: Vec<_> = network.bytes_for.iter().filter(|(_, bytes)| **bytes > 0.0).collect();
    parts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
    let part = |(part, bytes): (&&str, &f64)| format!("{part} {:.1} %", 100.0 * bytes / all);
    if !parts.is_empty() {
        page.pair("down, bytes", &parts.into_iter().map(part).collect::<Vec<_>>().join(", "));
    }
}
