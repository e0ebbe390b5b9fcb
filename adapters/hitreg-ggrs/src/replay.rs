//! The replay of a log: a build.

use std::collections::BTreeMap;
use std::ffi::OsString;

use ggrs::InputStatus;
use hitreg_log::record::{CellKind, FieldSchema, OwnValue, Session, cells_of, usercmd_fields};
use hitreg_log::recorder::{Playback, PlaybackError, PlaybackStep};
use hitreg_log::usercmd::Usercmd;

use crate::game::{describe_game, push_tick};
use crate::{Body, DISCONNECTED, FieldValue, Fields, RecordedGame};

/// Why a build cannot replay a log. [`ReplayError::exit_code`] is what the process should exit with.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplayError {
    /// The log cannot be read, or the trace cannot be written.
    #[error(transparent)]
    Playback(#[from] PlaybackError),
    /// The log begins within a session, and the game cannot begin there.
    #[error("the log begins within a session, and `RecordedGame::restore` does not take entity {entity}")]
    NotRestored {
        /// The entity.
        entity: u16,
    },
}

impl ReplayError {
    /// Returns 125 if this build cannot replay the log or does not know the command, 128 for other trouble.
    pub fn exit_code(&self) -> u8 {
        match self {
            ReplayError::Playback(error) => error.exit_code(),
            ReplayError::NotRestored { .. } => 125,
        }
    }
}

/// Replays the log that the arguments name: `replay LOG -o TRACE`, and any number of `--set KEY=VALUE`. `args` does not
/// include the program's name. `new` returns the game before its first frame; [`Playback::setting`] has the settings.
///
/// The game gets the recorded inputs of each frame. Fields that the log lacks keep the default of the input.
///
/// # Errors
/// When the arguments are others, the log cannot be read or is of another game, or the trace cannot be written.
pub fn replay<G: RecordedGame>(
    args: impl IntoIterator<Item = OsString>,
    new: impl FnOnce(&Playback) -> G,
) -> Result<(), ReplayError> {
    let mut play = Playback::from_args(args, G::NAME)?;
    let header = &play.session().header;
    let players = header.players.len();
    let mut about = describe_game::<G>(players).seed(header.seed.0).map(header.map.clone(), header.rules.to_vec());
    about = header
        .usercmd
        .iter()
        .skip(usercmd_fields().len())
        .cloned()
        .fold(about, |about, field| about.usercmd_field(field));
    about = header.settings.iter().fold(about, |about, (key, value)| about.setting(key, value));
    let reader = InputReader::new(&header.usercmd);
    let mut game = new(&play);
    let mut stream = play.begin(about)?;
    let mut inputs = vec![InputReader::no_input(); players];
    while let Some(step) = play.next(&mut stream).map_err(PlaybackError::from)? {
        match step {
            PlaybackStep::Restore(state) => {
                let body = body_of(play.session(), state);
                if !game.restore(&body) {
                    return Err(ReplayError::NotRestored { entity: body.entity });
                }
            }
            // The field `disconnected` has the same frames.
            PlaybackStep::Join(_) | PlaybackStep::Leave(_) => {}
            PlaybackStep::Input { player, frame, .. } => {
                let player = usize::from(player.0);
                inputs[player] = reader.read(&play.session().players[player].frames[frame].command);
            }
            PlaybackStep::Tick => {
                game.advance(&inputs);
                let end = play.now();
                push_tick(&mut stream, (end.tick, end.at), game.hash(), &game.bodies()).map_err(PlaybackError::from)?;
                inputs.fill(InputReader::no_input());
            }
        }
    }
    drop(stream);
    Ok(play.finish()?)
}

/// Reads the game's inputs from usercmds of a log, whose fields may be those of another version of the game.
struct InputReader {
    /// The fields of the log that belong to the game, by name.
    places: BTreeMap<String, (CellKind, std::ops::Range<usize>)>,
}

impl InputReader {
    fn new(usercmd: &[FieldSchema]) -> InputReader {
        let own = cells_of(&usercmd[usercmd_fields().len().min(usercmd.len())..]);
        InputReader { places: own.map(|(field, place)| (field.name.clone(), (field.kind, place))).collect() }
    }

    /// What a frame without a recorded input gets.
    fn no_input<I: Default>() -> (I, InputStatus) {
        (I::default(), InputStatus::Disconnected)
    }

    fn value(&self, command: &Usercmd, name: &str, kind: CellKind) -> Option<OwnValue> {
        let (_, place) = self.places.get(name).filter(|(known, _)| *known == kind)?;
        Some(own_value(kind, command.input.own.number(kind, place.clone())))
    }

    fn read<I: Fields + Default>(&self, command: &Usercmd) -> (I, InputStatus) {
        let mut input = I::default();
        let defaults = input.values();
        let values: Vec<OwnValue> = I::fields()
            .iter()
            .zip(defaults)
            .map(|(field, default)| self.value(command, &field.name, field.kind).unwrap_or(default))
            .collect();
        input.set(&values);
        let is_disconnected = self.value(command, DISCONNECTED, bool::KIND).is_some_and(bool::from_own);
        (input, if is_disconnected { InputStatus::Disconnected } else { InputStatus::Confirmed })
    }
}

/// Returns a recorded state.
fn body_of(session: &Session, state: usize) -> Body {
    let key = session.states.keys()[state];
    let cells = session.states.cells_of(state);
    let fields = &session.header.classes[usize::from(key.class.0)].fields;
    let values = cells_of(fields).map(|(field, place)| own_value(field.kind, field.kind.number(&cells[place])));
    Body { entity: key.entity.0, class: key.class.0, values: values.collect() }
}

fn own_value(kind: CellKind, number: i64) -> OwnValue {
    match kind {
        CellKind::F32 => OwnValue::Float(f32::from_bits(number as u32)),
        CellKind::F64 => OwnValue::Double(f64::from_bits(number as u64)),
        CellKind::Text => OwnValue::Text(hitreg_log::record::TextCode(number as u64)),
        CellKind::I32 | CellKind::U32 | CellKind::I64 | CellKind::U64 | CellKind::Bool => OwnValue::Number(number),
    }
}

#[cfg(test)]
mod tests {
    use hitreg_log::record::Scope;
    use hitreg_log::usercmd::{Input, OwnCells};

    use super::*;

    #[derive(Debug, PartialEq)]
    struct Pad {
        turn: i8,
        power: f64,
        fire: bool,
    }
    crate::fields!(Pad { turn: i8, power: f64, fire: bool });

    impl Default for Pad {
        fn default() -> Pad {
            Pad { turn: 0, power: 0.5, fire: false }
        }
    }

    #[test]
    fn inputs_are_read_by_the_names_of_their_fields() {
        let field = |name, kind| FieldSchema::new(name, kind, Scope::Movement);
        let mut fields = usercmd_fields();
        let (bool, int) = (CellKind::Bool, CellKind::I32);
        // The recording had another order, another type of `power`, and no `fire`.
        fields.extend([field("power", CellKind::F32), field(DISCONNECTED, bool), field("turn", int)]);
        let reader = InputReader::new(&fields);
        let usercmd = |cells: &[u32]| {
            let input = Input { own: OwnCells::new(cells), ..Input::default() };
            reader.read::<Pad>(&Usercmd { input, ..Usercmd::default() })
        };
        let turned = Pad { turn: -3, ..Pad::default() };
        assert_eq!(usercmd(&[7, 0, -3i32 as u32]), (turned, InputStatus::Confirmed));
        assert_eq!(usercmd(&[0, 1]), (Pad::default(), InputStatus::Disconnected));
    }
}
