//! The replay of a log: a build.

use std::ffi::OsString;

use ggrs::InputStatus;
use hitreg_log::fields::InputReader;
use hitreg_log::record::{TickRecord, usercmd_fields};
use hitreg_log::recorder::{Playback, PlaybackError, PlaybackStep};
use hitreg_log::usercmd::Usercmd;

use crate::game::describe_game;
use crate::{DISCONNECTED, EntityFields, FieldValue, Fields, RecordedGame};

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
) -> Result<(), PlaybackError> {
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
    let mut inputs = vec![no_input(); players];
    while let Some(step) = play.next(&mut stream).map_err(PlaybackError::from)? {
        match step {
            PlaybackStep::Restore(state) => {
                let body = EntityFields::of_state(play.session(), state);
                if !game.restore(&body) {
                    return Err(PlaybackError::NotRestored { entity: body.entity });
                }
            }
            PlaybackStep::Input { player, frame, .. } => {
                let player = usize::from(player.0);
                inputs[player] = read(&reader, &play.session().players[player].frames[frame].command);
            }
            PlaybackStep::Tick => {
                game.advance(&inputs);
                let end = TickRecord { hash: Some(game.hash()), ..play.now() };
                stream.tick_with_bodies(end, &game.bodies()).map_err(PlaybackError::from)?;
                inputs.fill(no_input());
            }
            // The field `disconnected` says in which frames a player is away.
            _ => {}
        }
    }
    drop(stream);
    play.finish()
}

/// What a frame without a recorded input gets.
fn no_input<I: Default>() -> (I, InputStatus) {
    (I::default(), InputStatus::Disconnected)
}

fn read<I: Fields + Default>(reader: &InputReader, command: &Usercmd) -> (I, InputStatus) {
    let is_disconnected = reader.value(command, DISCONNECTED, bool::KIND).is_some_and(bool::from_own);
    (reader.read(command), if is_disconnected { InputStatus::Disconnected } else { InputStatus::Confirmed })
}
