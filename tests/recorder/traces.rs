//! Traces of builds that hitreg does not know.

use hitreg::diff::{DiffOptions, TraceDiff, TraceVerdict, diff};
use hitreg::log::{read_trace, write_trace};
use hitreg::trace::{Column, ColumnData, Table, Trace};

fn trace(range: f32, keyed: bool) -> Trace {
    let columns = vec![
        Column::new("tick", ColumnData::U32(vec![1, 1, 2])),
        Column::new("player", ColumnData::U32(vec![0, 1, 0])),
        Column::new("range", ColumnData::F32(vec![300.0, range, 310.0])),
    ];
    let table = Table::new("spells", columns);
    let table = if keyed { table.keyed_by(["tick", "player"]) } else { table };
    let read = write_trace(Vec::new(), &Trace { tables: vec![table], ..Trace::default() }).unwrap();
    read_trace(&read[..]).unwrap()
}

/// A changed cell of a table with a key is one changed cell. Without a key it is a missing row on each side.
#[test]
fn own_tables_declare_the_key_of_their_rows() {
    let compare = |keyed| diff(&trace(250.0, keyed), &trace(251.0, keyed), &DiffOptions::default()).unwrap();
    let (keyed, bare) = (compare(true), compare(false));
    assert_eq!((keyed.verdict, bare.verdict), (TraceVerdict::Differs, TraceVerdict::Differs));
    let only = |diff: &TraceDiff| diff.tables.iter().map(|t| (t.rows.only_in_a, t.rows.only_in_b)).collect::<Vec<_>>();
    assert_eq!((only(&keyed), only(&bare)), (vec![(0, 0)], vec![(1, 1)]));
}

#[test]
fn an_unknown_key_column_is_refused() {
    let table = Table::new("spells", vec![Column::new("tick", ColumnData::U32(vec![1]))]).keyed_by(["caster"]);
    let error = write_trace(Vec::new(), &Trace { tables: vec![table], ..Trace::default() }).unwrap_err();
    assert!(error.to_string().contains("its key \"caster\" is not one of its columns"), "{error}");
}
