//! Traces of any length. If traces can be read again, only the first changed shots stay in memory, and all are
//! reported. Late rows do not make others wait.

use std::sync::Arc;

use hitreg::diff::{ChangedShots, DiffOptions, diff};
use hitreg::trace::{ColumnData, ColumnSpan, NextRows, SharedTrace, Table, Trace, TraceHeader, TraceSource};

use crate::traces::{column, data, names, reorder, set, table};

/// A trace that gives its rows in parts and can be read again.
#[derive(Clone)]
struct StoredTrace {
    trace: Arc<Trace>,
    rows: usize,
    most_waiting: usize,
}

fn stored(trace: Trace, rows: usize) -> StoredTrace {
    StoredTrace { trace: Arc::new(trace), rows, most_waiting: usize::MAX }
}

impl TraceSource for StoredTrace {
    fn header(&self) -> &TraceHeader {
        &self.trace.header
    }

    fn tables(&self) -> Vec<(&Table, u64)> {
        self.trace.tables.iter().map(|table| (table, table.rows() as u64)).collect()
    }

    fn rows_between<'s>(&'s self, table: &'s str, _: &'s [&'s str], _: Option<ColumnSpan<'s>>) -> NextRows<'s> {
        let (table, mut next) = (self.trace.table(table), 0);
        Box::new(move || {
            let Some(table) = table.filter(|table| next < table.rows()) else { return Ok(None) };
            let mut part = table.clone();
            reorder(&mut part, &(next..table.rows().min(next + self.rows)).collect::<Vec<_>>());
            next += self.rows;
            Ok(Some(part))
        })
    }

    fn most_waiting(&self) -> usize {
        self.most_waiting
    }

    fn shared(&self) -> Option<SharedTrace> {
        Some(Arc::new(self.clone()))
    }
}

/// Four players shoot in turn, and every third shot hits.
fn shots(count: u32) -> Trace {
    let each = || 0..count;
    let columns = vec![
        column("shooter", ColumnData::U32(each().map(|n| n % 4).collect())),
        column("command", ColumnData::U32(each().map(|n| 1 + n / 4).collect())),
        column("index", ColumnData::U32(vec![0; count as usize])),
        column("at_us", ColumnData::I64(each().map(|n| i64::from(n / 4) * 16_000).collect())),
        column("tick", ColumnData::U32(each().map(|n| 1 + n / 4).collect())),
        column(
            "reason",
            names(&["hit", "missed", "hit the world"], &each().map(|n| u32::from(n % 3 > 0)).collect::<Vec<_>>()),
        ),
        column("target", names(&["none", "p1"], &each().map(|n| u32::from(n % 3 == 0)).collect::<Vec<_>>())),
    ];
    let header = TraceHeader { game: "discs".into(), mode: "closed".into(), ..TraceHeader::default() };
    Trace { header, tables: vec![table("shots", columns)] }
}

#[test]
fn changed_shots_outside_memory_are_reported() {
    const COUNT: u32 = 3 * ChangedShots::KEPT_MAX as u32;
    let a = shots(COUNT);
    let mut b = a.clone();
    // In B, misses of the first half have another reason, and hits of the second half become misses.
    let ColumnData::Name { codes, .. } = data(&mut b, "shots", "reason") else { panic!("reasons are names") };
    for (n, code) in codes.iter_mut().enumerate() {
        *code = if n < COUNT as usize / 2 { *code * 2 } else { 1 };
    }
    let options = DiffOptions::default();
    let whole = diff(&a, &b, &options).expect("they can be compared");
    let sides = [stored(a, 700), stored(b, 900)];
    let streamed = diff(&sides[0], &sides[1], &options).expect("they can be compared");
    let (all, kept) = (&whole.hits.changed, &streamed.hits.changed);
    assert!(all.len() > ChangedShots::KEPT_MAX && all.first().count() == all.len(), "{}", all.len());
    assert_eq!((kept.len(), kept.first().count()), (all.len(), ChangedShots::KEPT_MAX));
    assert!(kept.iter().eq(all.iter()) && kept.iter().all(|shot| shot.is_ok()));
    assert!(kept.first().eq(all.first().take(ChangedShots::KEPT_MAX)));
    assert!(kept.first_hits().eq(all.first_hits().take(ChangedShots::KEPT_HITS_MAX)) && kept.first_hits().count() > 3);
    for place in [0, ChangedShots::KEPT_MAX - 1, ChangedShots::KEPT_MAX, all.len() - 1, all.len()] {
        assert_eq!(kept.get(place), all.get(place), "{place}");
    }
    let json = |of| serde_json::to_string(of).expect("JSON");
    assert_eq!(json(&streamed), json(&whole));
}

/// Shots without a verdict come last in their table.
#[test]
fn few_late_rows_do_not_make_others_wait() {
    const COUNT: u32 = 60_000;
    let a = shots(COUNT);
    let mut order: Vec<usize> = (0..COUNT as usize).collect();
    let late: Vec<usize> = [40_000, 900, 3].map(|place| order.remove(place)).into();
    order.extend(late);
    let (mut b, mut both) = (a.clone(), a.clone());
    reorder(&mut both.tables[0], &order);
    // B lacks one shot, has another at its end, and one of its shots misses.
    order.remove(COUNT as usize - 3);
    let moved = order.remove(20_000);
    order.push(moved);
    reorder(&mut b.tables[0], &order);
    set(&mut b, "shots", "reason", COUNT as usize - 3, 2.0);
    let options = DiffOptions::default();
    for (a, b) in [(&a, &both), (&both, &a), (&both, &b), (&b, &both)] {
        let whole = diff(a, b, &options).expect("they can be compared");
        let most_waiting = COUNT as usize * 16;
        let sides = [a, b].map(|trace| StoredTrace { most_waiting, ..stored(trace.clone(), 500) });
        let streamed = diff(&sides[0], &sides[1], &options).expect("no more wait than may");
        assert_eq!(format!("{streamed:?}"), format!("{whole:?}"));
    }
}
