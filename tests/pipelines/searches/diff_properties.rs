//! Properties of comparisons: they are symmetric and independent of the order of rows.

use crate::traces::{data, names, reorder, set, small};
use hitreg::diff::{DiffOptions, TraceDiff, TraceVerdict, diff};
use hitreg::rng::Rng;
use hitreg::trace::Trace;
use hitreg::units::Seed;
use proptest::prelude::*;

fn diff_of(a: &Trace, b: &Trace) -> TraceDiff {
    diff(a, b, &DiffOptions::default()).expect("no tolerance is asked for")
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn b_against_a_mirrors_a_against_b(changes in prop::collection::vec((0usize..7, 0usize..16, 0usize..64, 0.0..9.0f64), 1..12), cut in 0usize..3) {
        let (a, mut b) = (small(), small());
        for (table, column, row, value) in changes {
            let target = &b.tables[table];
            let (name, column) = (target.name.clone(), target.columns[column % target.columns.len()].name.clone());
            let row = row % b.tables[table].rows();
            let value = if matches!(column.as_str(), "how" | "cause" | "reason" | "target" | "result") { value % 2.0 } else { value };
            if !matches!(column.as_str(), "weapon" | "limit" | "hitgroup" | "evidence" | "predicted_reason" | "predicted_target") {
                set(&mut b, &name, &column, row, value);
            }
        }
        let bodies = &mut b.tables[1];
        let rows: Vec<usize> = (0..bodies.rows() - cut).rev().collect();
        reorder(bodies, &rows);
        let (there, back) = (diff_of(&a, &b), diff_of(&b, &a));
        prop_assert_eq!(there.verdict, back.verdict);
        for (x, y) in there.tables.iter().zip(&back.tables) {
            prop_assert_eq!((&x.name, x.status, x.rows.differing, x.rows.only_in_a), (&y.name, y.status, y.rows.differing, y.rows.only_in_b));
            prop_assert_eq!(&x.series, &y.series);
            prop_assert_eq!(&x.spread, &y.spread);
        }
        let key = |d: &TraceDiff| d.first.as_ref().map(|f| (f.table.clone(), f.place.at_us, f.field.clone()));
        prop_assert_eq!(key(&there), key(&back));
        if let (Some(x), Some(y)) = (&there.first, &back.first) {
            prop_assert_eq!((&x.a, &x.b), (&y.b, &y.a));
        }
        prop_assert_eq!(there.hits.only_a, back.hits.only_b);
        prop_assert_eq!(there.hits.changed.len(), back.hits.changed.len());
    }

    #[test]
    fn rows_in_another_order_are_the_same_rows(seed in any::<u64>()) {
        let (a, mut b) = (small(), small());
        let mut rng = Rng::new(Seed(seed), 0);
        for table in &mut b.tables {
            let mut order: Vec<usize> = (0..table.rows()).collect();
            for place in (1..order.len()).rev() {
                order.swap(place, rng.below(place as u64 + 1) as usize);
            }
            reorder(table, &order);
            table.columns.reverse();
        }
        *data(&mut b, "views", "how") = names(&["held", "interpolated"], &[1; 14]);
        let found = diff_of(&a, &b);
        prop_assert_eq!(found.verdict, TraceVerdict::Same, "{:?}", found.first);
        prop_assert_ne!(a.digest(), b.digest());
    }
}
