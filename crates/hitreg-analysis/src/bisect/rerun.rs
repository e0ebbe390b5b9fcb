//! Runs the usercmds of one tick again in both builds, from the last common state.

use serde::Serialize;

use crate::diff::{CellValue, Divergence, NamedValue, TraceSide, UsercmdRow};
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::schema::{BODIES_OF_CLASS, bodies, executed};
use hitreg_log::trace::{Table, Trace};

/// One usercmd to run on one body.
#[derive(Clone, Debug, PartialEq)]
pub struct RerunStep<'a> {
    /// The tick in which the usercmd ran.
    pub tick: u32,
    /// Player and number of the usercmd. The log holds its input.
    pub command: &'a UsercmdRow,
    /// The body before the usercmd, field by field.
    pub body: &'a [NamedValue],
    /// The entities that the usercmd can meet: every entity with the same known state in both runs, including the
    /// player's own.
    pub others: &'a SortedMap<StateOwner, Vec<NamedValue>>,
}

/// An entity, and the class of its state; no class for the table `bodies`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StateOwner {
    /// The entity.
    pub entity: u32,
    /// The class, if the state is in a table of its own.
    pub class: Option<String>,
}

impl StateOwner {
    /// The owner of states in a table of states; `None` for another table.
    pub(super) fn in_table(table: &str, entity: u32) -> Option<StateOwner> {
        let class = table.strip_prefix(BODIES_OF_CLASS).map(str::to_owned);
        (class.is_some() || table == bodies::NAME).then_some(StateOwner { entity, class })
    }
}

/// Runs a step in the build of A or of B, and returns the body after it with the same fields. The error says why the
/// build could not run it.
pub type RerunFn<'a> = dyn FnMut(TraceSide, &RerunStep<'_>) -> Result<Vec<NamedValue>, String> + 'a;

/// The result of running the usercmds again.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case", tag = "result")]
pub enum RerunResult {
    /// The builds give different results for a usercmd.
    Differs {
        /// The player.
        player: u32,
        /// The usercmd's number.
        command: u32,
        /// The first field that differs.
        field: String,
        /// The field's value after the usercmd in A's build.
        a: CellValue,
        /// The field's value after the usercmd in B's build.
        b: CellValue,
    },
    /// The builds agree about every usercmd of the tick, so the divergence has its origin elsewhere.
    Same,
    /// A build could not run a usercmd.
    Failed {
        /// The build.
        build: TraceSide,
        /// The reason.
        reason: String,
    },
}

/// Runs the usercmds of a tick in their order, up to the last usercmd of the divergence's player, or all usercmds if its
/// entity is no player. Each usercmd meets the other entities in their last common state, or in the state that earlier
/// usercmds left. `None` if no usercmd ran, if there is no earlier common state, or if the runs have different
/// usercmds.
pub(crate) fn rerun(traces: [&Trace; 2], first: &Divergence, rerun: &mut RerunFn<'_>) -> Option<RerunResult> {
    let state = first.last_agreeing.as_ref()?;
    let (tick, entity) = (first.place.tick?, state.place.entity?);
    let owner = StateOwner::in_table(&state.table, entity)?;
    let [own_a, own_b] = first.own_usercmds(traces);
    if own_a != own_b || !own_a.iter().any(|command| ran(command)) {
        return None;
    }
    // The log does not have the input that replaced a lost usercmd.
    if own_a.iter().any(|command| command.how.as_deref() == Some("stood_in")) {
        return None;
    }
    let mut bodies = common_state(traces, state.place.tick?);
    bodies.insert(owner, state.values.clone());
    for command in &in_order(traces, tick, &own_a) {
        let player = StateOwner { entity: command.player, class: None };
        let Some(body) = bodies.get(&player) else { continue };
        let step = RerunStep { tick, command, body, others: &bodies };
        let mut after = |build| rerun(build, &step).map_err(|reason| RerunResult::Failed { build, reason });
        let (a, b) = match (after(TraceSide::A), after(TraceSide::B)) {
            (Ok(a), Ok(b)) => (a, b),
            (Err(failed), _) | (_, Err(failed)) => return Some(failed),
        };
        let differing = a.iter().find_map(|of_a| {
            let of_b = b.iter().find(|named| named.name == of_a.name)?;
            (!of_a.value.same(&of_b.value)).then_some((of_a, of_b))
        });
        if let Some((of_a, of_b)) = differing {
            return Some(RerunResult::Differs {
                player: command.player,
                command: command.command,
                field: of_a.name.clone(),
                a: of_a.value.clone(),
                b: of_b.value.clone(),
            });
        }
        bodies.insert(player, a);
    }
    Some(RerunResult::Same)
}

/// Whether the server ran a usercmd, as far as the trace says.
fn ran(command: &UsercmdRow) -> bool {
    command.how.as_deref().is_none_or(|how| how == "run")
}

/// The usercmds of a tick in the order in which both runs ran them. If the orders differ: only the usercmds of the
/// divergence.
fn in_order(traces: [&Trace; 2], tick: u32, own: &[&UsercmdRow]) -> Vec<UsercmdRow> {
    let [a, b] = traces.map(|trace| executed(trace, tick));
    let own: Vec<UsercmdRow> = own.iter().filter(|command| ran(command)).map(|row| (*row).clone()).collect();
    let is_own = |(player, command): &(u32, u32)| own.iter().any(|o| (o.player, o.command) == (*player, *command));
    let Some(last) = a.iter().rposition(is_own).filter(|_| a == b) else { return own };
    let usercmd =
        |(player, command): &(u32, u32)| UsercmdRow { player: *player, command: *command, how: None, input: vec![] };
    let of = |key: &(u32, u32)| own.iter().find(|o| (o.player, o.command) == *key).cloned();
    a[..=last].iter().map(|key| of(key).unwrap_or_else(|| usercmd(key))).collect()
}

/// The usercmds that ran in a tick according to a trace, by player and number.
pub(super) fn executed(trace: &Trace, tick: u32) -> Vec<(u32, u32)> {
    let executed = executed::Columns::of(trace);
    // A usercmd without a recorded outcome counts as run.
    let ran = |row| matches!(executed.how.get(row), "run" | "");
    let rows = (0..executed.rows).filter(|row| executed.tick.get(*row) == Some(&tick) && ran(*row));
    rows.filter_map(|row| Some((*executed.player.get(row)?, *executed.command.get(row)?))).collect()
}

/// The bodies of a tick that are equal in both runs.
fn common_state(traces: [&Trace; 2], tick: u32) -> SortedMap<StateOwner, Vec<NamedValue>> {
    let of_trace = |trace: &Trace| trace.tables.iter().flat_map(|table| bodies(table, tick)).collect();
    let [mut a, b]: [SortedMap<StateOwner, Vec<NamedValue>>; 2] = traces.map(of_trace);
    let same = |x: &[NamedValue], y: &[NamedValue]| {
        let alike = |(x, y): (&NamedValue, &NamedValue)| x.name == y.name && x.value.same(&y.value);
        x.len() == y.len() && x.iter().zip(y).all(alike)
    };
    a.retain(|owner, body| b.get(owner).is_some_and(|other| same(body, other)));
    a
}

/// The states of a tick in a table of states.
fn bodies(table: &Table, tick: u32) -> Vec<(StateOwner, Vec<NamedValue>)> {
    if StateOwner::in_table(&table.name, 0).is_none() {
        return Vec::new();
    }
    let (ticks, entities) = (table.u32s("tick"), table.u32s("entity"));
    let rows = ticks.iter().zip(entities).enumerate().filter(|(_, (of, _))| **of == tick);
    let fields = || table.columns.iter().filter(|column| !matches!(column.name.as_str(), "tick" | "entity" | "at_us"));
    let body =
        |row| fields().filter_map(move |c| Some(NamedValue { name: c.name.clone(), value: CellValue::at(c, row)? }));
    rows.filter_map(|(row, (_, entity))| Some((StateOwner::in_table(&table.name, *entity)?, body(row).collect())))
        .collect()
}
