//! Finds out what a server does that not every server does. Its info string is one witness, and often silent or wrong: games
//! set their own rules, and servers of one name behave in several ways. The demo is the better one, since each way leads
//! elsewhere at some landings and jumps.

use serde::Serialize;

use super::follow::follow;
use crate::quakeworld::demo::Demo;
use crate::quakeworld::movement::Dialect;
use crate::quakeworld::rounding::grade;
use crate::quakeworld::rules::Rules;
use hitreg_netcode::game::Grade;

/// Something that servers do differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Trait {
    /// The movement code moves once more after landing from the air, for the velocity alone.
    LandingFix,
    /// The game stops who comes down hard.
    SoftLanding,
    /// The game takes the fall out of jumps.
    SoftJump,
}

impl Trait {
    const ALL: [Trait; 3] = [Trait::LandingFix, Trait::SoftJump, Trait::SoftLanding];

    /// In words, for people.
    pub fn words(self) -> &'static str {
        match self {
            Trait::LandingFix => "landing moves twice",
            Trait::SoftLanding => "hard landings stop",
            Trait::SoftJump => "jumps lose the fall",
        }
    }

    /// The switch for it; none where the movement code has none.
    fn of(self, dialect: &mut Dialect) -> Option<&mut bool> {
        let Dialect::Classic { soft_landing, soft_jump, landing_fix } = dialect else { return None };
        Some(match self {
            Trait::LandingFix => landing_fix,
            Trait::SoftLanding => soft_landing,
            Trait::SoftJump => soft_jump,
        })
    }

    fn toggled(self, mut dialect: Dialect) -> Dialect {
        if let Some(switch) = self.of(&mut dialect) {
            *switch = !*switch;
        }
        dialect
    }
}

/// What was found out about one trait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which trait.
    pub what: Trait,
    /// Whether the server has it.
    pub has: bool,
    /// Whether the server's info let it be expected.
    pub expected: bool,
    /// Stretches of usercmds that only this answer predicts to the bit.
    pub agree: u32,
    /// Stretches that only the other answer does.
    pub disagree: u32,
}

/// So many votes tell; the rest of the demo is not asked.
const ENOUGH: u32 = 200;

/// Finds out by which rules the demo's server ran. `rules` have the server as its info describes it.
pub(super) fn infer(demo: &Demo, rules: &mut Rules) -> Vec<Finding> {
    let expected = rules.server.dialect;
    let mut findings = Vec::new();
    for what in Trait::ALL {
        let Some(expected) = what.of(&mut expected.clone()).copied() else { continue };
        let [agree, disagree] = votes(demo, rules, what);
        let has = if disagree > agree { !expected } else { expected };
        if let Some(switch) = what.of(&mut rules.server.dialect) {
            *switch = has;
        }
        let (agree, disagree) = (agree.max(disagree), agree.min(disagree));
        findings.push(Finding { what, has, expected, agree, disagree });
    }
    findings
}

/// How many stretches only the rules as they are predict to the bit, and how many only those with the trait the other way.
fn votes(demo: &Demo, rules: &Rules, what: Trait) -> [u32; 2] {
    let other = what.toggled(rules.server.dialect);
    let mut votes = [0; 2];
    follow(demo, rules, |stretch, run| {
        if stretch.is_quiet() && (run.touched.jumped || stretch.from.on_ground != run.state.on_ground) {
            match [*run, stretch.run(other)].map(|run| grade(&run.state, &stretch.recorded, stretch.wire)) {
                [Grade::Exact, Grade::Miss] => votes[0] += 1,
                [Grade::Miss, Grade::Exact] => votes[1] += 1,
                _ => {}
            }
        }
        votes[0] + votes[1] < ENOUGH
    });
    votes
}
