//! What a game implements, and what a log of it declares.

use ggrs::{Config, InputStatus};
use hitreg_log::fields::{EntityFields, Fields};
use hitreg_log::record::{CellKind, Class, FieldSchema, Scope};
use hitreg_log::recorder::Description;

/// The usercmd field that is 1 from the frame in which the player is disconnected.
pub const DISCONNECTED: &str = "disconnected";

/// The custom kind with one row for each rollback. The series is the player whose input was predicted wrong, or 0.
///
/// | column | holds |
/// | --- | --- |
/// | `at_us` | time of the frame that came next when the session rolled back |
/// | `first_tick` | the first tick that was simulated again |
/// | `frames` | number of frames that were simulated again |
/// | `wrong_inputs` | number of inputs in these frames that had been predicted wrong; 0 for a forced rollback |
pub const ROLLBACKS: &str = "rollbacks";

/// The index of [`ROLLBACKS`] among the custom kinds.
pub(crate) const ROLLBACKS_KIND: usize = 0;

/// A game that GGRS runs.
pub trait RecordedGame {
    /// The session's types.
    type Config: Config<Input: Fields>;

    /// The game's name in logs.
    const NAME: &'static str;

    /// Returns the state for a later rollback.
    fn save(&self) -> <Self::Config as Config>::State;

    /// Returns to a saved state.
    fn load(&mut self, state: &<Self::Config as Config>::State);

    /// Simulates one frame. The result may depend on [`InputStatus::Disconnected`], but not on the difference between
    /// `Confirmed` and `Predicted`.
    fn advance(&mut self, inputs: &[(<Self::Config as Config>::Input, InputStatus)]);

    /// Returns the hash of the current state. It is also the checksum of saved states. The default covers the bodies, in
    /// whatever order. Implement it if a later frame depends on more.
    fn hash(&self) -> u64 {
        EntityFields::hash_all(&self.bodies())
    }

    /// Returns the classes of entities.
    fn classes() -> Vec<Class>;

    /// Returns the entities of the current state, in any order. Players have the first numbers.
    fn bodies(&self) -> Vec<EntityFields>;

    /// Sets an entity to a recorded state, at the start of a log that begins within a session. Returns `false` if the
    /// game cannot.
    fn restore(&mut self, body: &EntityFields) -> bool {
        let _ = body;
        false
    }
}

/// Returns the description of a session, for `Recorder::create` or `Recorder::keep_last`. Add settings, a seed or a
/// map to it, but no players, classes or usercmd fields.
///
/// `hz` is the frame rate, 1 to 1,000.
pub fn describe<G: RecordedGame>(players: usize, hz: u32) -> Description {
    let about = <G::Config as Config>::Input::fields()
        .into_iter()
        .fold(describe_game::<G>(players), |about, field| about.usercmd_field(field));
    about.usercmd_field(FieldSchema::new(DISCONNECTED, CellKind::Bool, Scope::Movement)).tick_hz(hz)
}

/// Returns the description without usercmd fields and settings, which a replay takes from the log.
pub(crate) fn describe_game<G: RecordedGame>(players: usize) -> Description {
    let about = (0..players).fold(Description::new(G::NAME), |about, player| about.player(format!("p{player}")));
    let about = G::classes().into_iter().fold(about, Description::class);
    let columns = ["first_tick", "frames", "wrong_inputs"].map(|name| (name.to_owned(), CellKind::U32));
    about.kind(ROLLBACKS, columns.into())
}
