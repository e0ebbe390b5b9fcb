//! Determines behaviours in which servers differ. The server's info string is often silent or wrong: games set their
//! own rules, and servers of one name behave differently. The demo is better evidence, because each behaviour gives
//! other results at some landings and jumps.

use serde::Serialize;

use super::follow::follow;
use crate::quakeworld::demo::QuakeWorldDemo;
use crate::quakeworld::movement::Dialect;
use crate::quakeworld::rounding::grade;
use crate::quakeworld::rules::QuakeWorldRules;
use hitreg_netcode::game::PredictionGrade;

/// A behaviour in which servers differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ServerTrait {
    /// After landing from the air, the movement code moves once more, for the velocity only.
    LandingFix,
    /// The game stops players who land hard.
    SoftLanding,
    /// The game removes the falling speed from jumps.
    SoftJump,
}

impl ServerTrait {
    const ALL: [ServerTrait; 3] = [ServerTrait::LandingFix, ServerTrait::SoftJump, ServerTrait::SoftLanding];

    /// Returns a description for display.
    pub fn words(self) -> &'static str {
        match self {
            ServerTrait::LandingFix => "landing moves twice",
            ServerTrait::SoftLanding => "hard landings stop",
            ServerTrait::SoftJump => "jumps lose the fall",
        }
    }

    /// Returns the switch for it; `None` if the movement code has none.
    fn of(self, dialect: &mut Dialect) -> Option<&mut bool> {
        let Dialect::Classic { soft_landing, soft_jump, landing_fix } = dialect else { return None };
        Some(match self {
            ServerTrait::LandingFix => landing_fix,
            ServerTrait::SoftLanding => soft_landing,
            ServerTrait::SoftJump => soft_jump,
        })
    }

    fn toggled(self, mut dialect: Dialect) -> Dialect {
        if let Some(switch) = self.of(&mut dialect) {
            *switch = !*switch;
        }
        dialect
    }
}

/// The result for one behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TraitFinding {
    /// The behaviour.
    pub what: ServerTrait,
    /// Whether the server has it.
    pub has: bool,
    /// Whether the server's info suggested it.
    pub expected: bool,
    /// Number of stretches of usercmds that only this answer predicts exactly.
    pub agree: u32,
    /// Number of stretches that only the opposite answer predicts exactly.
    pub disagree: u32,
}

/// Number of votes that suffices; the search then skips the rest of the demo.
const ENOUGH: u32 = 200;

/// Determines the rules of the demo's server. `rules` initially describe the server as its info does.
pub(super) fn infer(demo: &QuakeWorldDemo, rules: &mut QuakeWorldRules) -> Vec<TraitFinding> {
    let expected = rules.server.dialect;
    let mut findings = Vec::new();
    for what in ServerTrait::ALL {
        let Some(expected) = what.of(&mut expected.clone()).copied() else { continue };
        let [agree, disagree] = votes(demo, rules, what);
        let has = if disagree > agree { !expected } else { expected };
        if let Some(switch) = what.of(&mut rules.server.dialect) {
            *switch = has;
        }
        let (agree, disagree) = (agree.max(disagree), agree.min(disagree));
        findings.push(TraitFinding { what, has, expected, agree, disagree });
    }
    findings
}

/// Returns the number of stretches that only the current rules predict exactly, and the number for the opposite of
/// `what`.
fn votes(demo: &QuakeWorldDemo, rules: &QuakeWorldRules, what: ServerTrait) -> [u32; 2] {
    let other = what.toggled(rules.server.dialect);
    let mut votes = [0; 2];
    follow(demo, rules, |stretch, run| {
        if stretch.is_quiet() && (run.touched.jumped || stretch.from.on_ground != run.state.on_ground) {
            match [*run, stretch.run(other)].map(|run| grade(&run.state, &stretch.recorded)) {
                [PredictionGrade::Exact, PredictionGrade::Miss] => votes[0] += 1,
                [PredictionGrade::Miss, PredictionGrade::Exact] => votes[1] += 1,
                _ => {}
            }
        }
        votes[0] + votes[1] < ENOUGH
    });
    votes
}
