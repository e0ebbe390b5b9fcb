//! Running the usercmds of one tick again in both builds, from the last common state.

use serde::Serialize;

use crate::diff::{Divergence, Named, Ran, Side, Value};

/// One usercmd, to be run on one body.
#[derive(Clone, Debug, PartialEq)]
pub struct Step<'a> {
    /// The tick in which it ran.
    pub tick: u32,
    /// The usercmd, by player and number; the log has the rest of it.
    pub command: &'a Ran,
    /// The body before it, field by field.
    pub body: &'a [Named],
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

/// Runs the usercmds of a divergence one after the other. `None` when there is none, or no common state before it, or
/// when the two runs did not run the same usercmds.
pub(crate) fn rerun(first: &Divergence, rerun: &mut Rerun<'_>) -> Option<Reran> {
    let state = first.last_agreeing.as_ref().filter(|row| row.table == "bodies")?;
    let tick = first.place.tick?;
    let commands = &first.usercmds_a;
    if commands.is_empty() || *commands != first.usercmds_b {
        return None;
    }
    let mut body = state.values.clone();
    for command in commands {
        let step = Step { tick, command, body: &body };
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
        body = a;
    }
    Some(Reran::Same)
}
