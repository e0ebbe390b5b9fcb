//! What a log itself says about the server's state, as a trace, so that a replay can be held against it.

use crate::record::{CellKind, Class, Execution, Holds, Scope, Session, StateKey};
use crate::trace::{Column, Data, Table, Trace, TraceHeader};

/// A log that says nothing about the server's state.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "an imported recording, or one side of a session, does not hold the server and its clients: compare two of its replays, or merge all sides first"
)]
pub struct NoStates;

/// The tables that a log's own records make: `ticks` with the recorded hashes, `bodies` with the states that were sent,
/// what was `executed`, and `frames` with the players' input. It lacks whatever was never sent, so it is compared under
/// [`DiffOptions::overlap_only`](crate::diff::DiffOptions::overlap_only).
///
/// # Errors
/// When the log is an imported client recording, whose ticks are none of a server's, or one side of a session.
pub fn recorded(session: &Session) -> Result<Trace, NoStates> {
    if session.header.holds() != Holds::Whole {
        return Err(NoStates);
    }
    let header = TraceHeader {
        game: session.header.game.clone(),
        mode: "closed".to_owned(),
        log_digest: String::new(),
        settings: session.header.settings.clone(),
    };
    Ok(Trace { header, tables: vec![ticks(session), bodies(session), executed(session), frames(session)] })
}

fn ticks(session: &Session) -> Table {
    let hashed = || session.ticks.iter().filter_map(|t| Some((t, t.hash?)));
    table(
        "ticks",
        vec![
            ("tick", Data::U32(hashed().map(|(t, _)| t.tick.0).collect())),
            ("at_us", Data::I64(hashed().map(|(t, _)| t.at.0).collect())),
            ("hash", Data::U64(hashed().map(|(_, hash)| hash).collect())),
        ],
    )
}

fn bodies(session: &Session) -> Table {
    // What everyone was told; what differs for one viewer is no state of the server's.
    let rows: Vec<_> = session.states.iter().filter(|(key, _)| key.viewer.is_none()).collect();
    let classes = &session.header.classes;
    let fields = session.header.body_fields();
    let mut columns = vec![
        ("tick", Data::U32(rows.iter().map(|(key, _)| key.tick.0).collect())),
        ("entity", Data::U32(rows.iter().map(|(key, _)| u32::from(key.entity.0)).collect())),
    ];
    for field in fields.iter().filter(|field| field.scope != Scope::ClientOnly) {
        let place = |class: &Class| class.fields.iter().position(|of_class| of_class.is_same_cell(field));
        let places: Vec<Option<usize>> = classes.iter().map(place).collect();
        // A class without the field leaves it 0, as in a body.
        let cell = |(key, cells): &(StateKey, &[u32])| {
            places
                .get(usize::from(key.class.0))
                .copied()
                .flatten()
                .and_then(|place| cells.get(place))
                .copied()
                .unwrap_or(0)
        };
        let cells = rows.iter().map(cell);
        let data = match field.kind {
            CellKind::F32 => Data::F32(cells.map(f32::from_bits).collect()),
            CellKind::I32 => Data::I64(cells.map(|cell| i64::from(cell as i32)).collect()),
            CellKind::U32 => Data::U32(cells.collect()),
        };
        columns.push((field.name.as_str(), data));
    }
    table("bodies", columns)
}

fn executed(session: &Session) -> Table {
    let all = || session.players.iter().enumerate().flat_map(|(p, of)| of.executed.iter().map(move |e| (p as u32, e)));
    let names = Execution::NAMES.iter().map(|name| (*name).to_owned()).collect();
    table(
        "executed",
        vec![
            ("player", Data::U32(all().map(|(player, _)| player).collect())),
            ("command", Data::U32(all().map(|(_, e)| e.command.0).collect())),
            ("tick", Data::U32(all().map(|(_, e)| e.tick.0).collect())),
            ("how", Data::Name { names, codes: all().map(|(_, e)| e.how as u8).collect() }),
        ],
    )
}

fn frames(session: &Session) -> Table {
    let all = || session.players.iter().enumerate().flat_map(|(p, of)| of.frames.iter().map(move |f| (p as u32, f)));
    let input = || all().map(|(_, frame)| frame.command.input);
    table(
        "frames",
        vec![
            ("player", Data::U32(all().map(|(player, _)| player).collect())),
            ("at_us", Data::I64(all().map(|(_, f)| f.at.0).collect())),
            ("command", Data::U32(all().map(|(_, f)| f.command.seq.0).collect())),
            ("msec", Data::U32(input().map(|i| u32::from(i.msec)).collect())),
            ("pitch", Data::F32(input().map(|i| i.viewangles.x).collect())),
            ("yaw", Data::F32(input().map(|i| i.viewangles.y).collect())),
            ("forwardmove", Data::F32(input().map(|i| i.forwardmove).collect())),
            ("sidemove", Data::F32(input().map(|i| i.sidemove).collect())),
            ("upmove", Data::F32(input().map(|i| i.upmove).collect())),
            ("buttons", Data::U32(input().map(|i| u32::from(i.buttons)).collect())),
        ],
    )
}

fn table(name: &str, columns: Vec<(&str, Data)>) -> Table {
    let columns = columns.into_iter().map(|(name, data)| Column { name: name.to_owned(), data });
    Table { name: name.to_owned(), columns: columns.collect() }
}
