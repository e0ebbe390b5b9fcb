//! Running the usercmds of one tick again in both builds, from the last common state.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::diff::{Divergence, Named, Ran, Side, Value};
use hitreg_log::trace::Trace;
use hitreg_log::trace::schema::{bodies, executed};

/// One usercmd, to be run on one body.
#[derive(Clone, Debug, PartialEq)]
pub struct Step<'a> {
    /// The tick in which it ran.
    pub tick: u32,
    /// The usercmd, by player and number; the log has the rest of it.
    pub command: &'a Ran,
    /// The body before it, field by field.
    pub body: &'a [Named],
    /// Whom it meets: every entity whose state is known to be the same in both runs, its own among them.
    pub others: &'a BTreeMap<u32, Vec<Named>>,
}

/// Runs a step in the build of A or of B, and gives the body after it with the same fields. An error says in words why
/// that build could not.
pub type Rerun<'a> = dyn FnMut(Side, &Step<'_>) -> Result<Vec<Named>, String> + 'a;

/// What came of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "result")]
pub enum Reran {
    /// The builds do not agree about a usercmd.
    Differs {
        /// Whose.
        player: u32,
        /// Its number.
        command: u32,
        /// The first field that differs.
        field: String,
        /// Its value after the usercmd in the build of A.
        a: Value,
        /// The same in the build of B.
        b: Value,
    },
    /// They agree about every usercmd of the tick: the divergence came about outside of them.
    Same,
    /// It could not be run.
    Failed {
        /// Which build could not.
        build: Side,
        /// Why.
        reason: String,
    },
}

/// Runs the usercmds of a tick one after the other, as they ran, up to the last one of the entity that a divergence is about.
/// Each meets the others as they were in the last common state, or as the usercmds before it have left them. `None` when
/// there is none to run, or no common state before it, or when the two runs did not run the same usercmds.
pub(crate) fn rerun(traces: [&Trace; 2], first: &Divergence, rerun: &mut Rerun<'_>) -> Option<Reran> {
    let state = first.last_agreeing.as_ref().filter(|row| row.table == bodies::NAME)?;
    let (tick, entity) = (first.place.tick?, state.place.entity?);
    if first.usercmds_a != first.usercmds_b || !first.usercmds_a.iter().any(ran) {
        return None;
    }
    // What stood in for a lost usercmd is not in the log.
    if first.usercmds_a.iter().any(|command| command.how.as_deref() == Some("stood_in")) {
        return None;
    }
    let mut bodies = common_state(traces, state.place.tick?);
    bodies.insert(entity, state.values.clone());
    for command in &in_order(traces, tick, first) {
        let Some(body) = bodies.get(&command.player) else { continue };
        let step = Step { tick, command, body, others: &bodies };
        let mut after = |build| rerun(build, &step).map_err(|reason| Reran::Failed { build, reason });
        let (a, b) = match (after(Side::A), after(Side::B)) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(failed), _) | (_, Err(failed)) => return Some(failed),
        };
        let differing = a.iter().find_map(|of_a| {
            let of_b = b.iter().find(|named| named.name == of_a.name)?;
            (!of_a.value.same(&of_b.value)).then_some((of_a, of_b))
        });
        if let Some((of_a, of_b)) = differing {
            return Some(Reran::Differs {
                player: command.player,
                command: command.command,
                field: of_a.name.clone(),
                a: of_a.value.clone(),
                b: of_b.value.clone(),
            });
        }
        bodies.insert(command.player, a);
    }
    Some(Reran::Same)
}

/// Whether the server ran a usercmd, as far as the trace tells.
fn ran(command: &Ran) -> bool {
    command.how.as_deref().is_none_or(|how| how == "run")
}

/// The usercmds of a tick in the order in which both runs ran them; those of the divergence alone where they do not agree.
fn in_order(traces: [&Trace; 2], tick: u32, first: &Divergence) -> Vec<Ran> {
    let [a, b] = traces.map(|trace| executed(trace, tick));
    let own: Vec<Ran> = first.usercmds_a.iter().filter(|command| ran(command)).cloned().collect();
    let is_own = |(player, command): &(u32, u32)| own.iter().any(|o| (o.player, o.command) == (*player, *command));
    let Some(last) = a.iter().rposition(is_own).filter(|_| a == b) else { return own };
    let usercmd = |(player, command): &(u32, u32)| Ran { player: *player, command: *command, how: None, input: vec![] };
    let of = |key: &(u32, u32)| own.iter().find(|o| (o.player, o.command) == *key).cloned();
    a[..=last].iter().map(|key| of(key).unwrap_or_else(|| usercmd(key))).collect()
}

/// Which usercmds a trace says were run in a tick, by player and number.
fn executed(trace: &Trace, tick: u32) -> Vec<(u32, u32)> {
    let executed = executed::Columns::of(trace);
    // A build that does not say how it dealt with a usercmd has run it.
    let ran = |row| matches!(executed.how.get(row), "run" | "");
    let rows = (0..executed.rows).filter(|row| executed.tick.get(*row) == Some(&tick) && ran(*row));
    rows.filter_map(|row| Some((*executed.player.get(row)?, *executed.command.get(row)?))).collect()
}

/// The bodies of a tick that are the same in both runs.
fn common_state(traces: [&Trace; 2], tick: u32) -> BTreeMap<u32, Vec<Named>> {
    let [mut a, b] = traces.map(|trace| bodies(trace, tick));
    let same = |x: &[Named], y: &[Named]| {
        let alike = |(x, y): (&Named, &Named)| x.name == y.name && x.value.same(&y.value);
        x.len() == y.len() && x.iter().zip(y).all(alike)
    };
    a.retain(|entity, body| b.get(entity).is_some_and(|other| same(body, other)));
    a
}

fn bodies(trace: &Trace, tick: u32) -> BTreeMap<u32, Vec<Named>> {
    let Some(table) = trace.table(bodies::NAME) else { return BTreeMap::new() };
    let (ticks, entities) = (table.u32s("tick"), table.u32s("entity"));
    let rows = ticks.iter().zip(entities).enumerate().filter(|(_, (of, _))| **of == tick);
    let fields = || table.columns.iter().filter(|column| !matches!(column.name.as_str(), "tick" | "entity" | "at_us"));
    let body = |row| fields().filter_map(move |c| Some(Named { name: c.name.clone(), value: Value::at(c, row)? }));
    rows.map(|(row, (_, entity))| (*entity, body(row).collect())).collect()
}
