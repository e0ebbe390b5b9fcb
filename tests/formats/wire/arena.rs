//! What [the page of the protocol](../../../docs/wire.md) says of the game that `serve` plays.

#![expect(clippy::disallowed_methods, reason = "an environment variable asks for a new page")]

use std::fmt::Write as _;

use hitreg::arena::ArenaBody;
use hitreg::game::{Body, CellKind, Scope};

/// `HITREG_WRITE_DOCS=1 cargo test --test formats wire::arena` updates the page's table.
#[test]
fn the_page_of_the_protocol_has_every_cell_of_the_arena() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/docs/wire.md");
    let (begin, end) = ("<!-- cells of the arena -->\n", "<!-- end of cells -->");
    let mut table = "| cell | field | change of | bit |\n| --- | --- | --- | --- |\n".to_owned();
    for (cell, field) in ArenaBody::fields().iter().enumerate() {
        assert_eq!(field.kind.cells(), 1, "{}: the table has one row for each cell", field.name);
        let change = if field.kind == CellKind::F32 { "float" } else { "integer" };
        let bit = match (field.scope, field.name.as_str()) {
            (Scope::ClientOnly, _) => "not sent".to_owned(),
            (_, "viewangles.x") => "orientation: pitch".to_owned(),
            (_, "viewangles.y") => "orientation: yaw".to_owned(),
            (_, "viewangles.z") => "orientation: roll".to_owned(),
            (_, "on_ground") => "1; its role is `Ground`".to_owned(),
            _ => ArenaBody::role(field).bit().to_string(),
        };
        writeln!(table, "| {cell} | `{}` | {change} | {bit} |", field.name).unwrap();
    }
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(begin).expect("where the table begins");
    let (_, after) = rest.split_once(end).expect("where it ends");
    let current = format!("{before}{begin}\n{table}\n{end}{after}");
    if std::env::var_os("HITREG_WRITE_DOCS").is_some() {
        std::fs::write(path, &current).unwrap();
    }
    assert!(
        std::fs::read_to_string(path).unwrap() == current,
        "docs/wire.md lists other cells than ArenaBody has: run HITREG_WRITE_DOCS=1 cargo test --test formats wire::arena"
    );
}
