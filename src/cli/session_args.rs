//! Options that describe a session of bots: players, map, duration and links.

use std::ffi::OsString;
use std::ops::Deref;
use std::path::{Path, PathBuf};

use super::CommandError;
use super::replay_args::{offered_presets, offered_settings};
use crate::engine::{Games, MapFile, ReadySession, SelfPlaying};
use crate::link::{Jitter, LinkModel, Loss};
use crate::session::scenario::Scenario;
use crate::store;

/// The options that describe a session as a scenario file does.
pub(super) const SCENARIO_OPTIONS: [&str; 11] =
    ["preset", "set", "players", "seconds", "seed", "map", "delay-ms", "jitter-ms", "loss", "reorder", "duplicate"];

/// What a session consists of, but for its links.
#[derive(clap::Args)]
pub(super) struct SessionArgs {
    /// A scenario in TOML; other options override it
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// The preset [default: half-life]
    #[arg(long, value_name = "NAME", value_parser = offered_presets(), hide_possible_values = true)]
    preset: Option<String>,
    /// A setting that overrides the preset; repeatable
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = offered_settings(), hide_possible_values = true)]
    set: Vec<String>,
    /// Number of bots, 1 to 64 [default: 4]
    #[arg(long, value_name = "N")]
    players: Option<u16>,
    /// Length of the session [default: 20]
    #[arg(long, value_name = "S", value_parser = parse_number_of_seconds)]
    seconds: Option<f64>,
    /// Random seed [default: 1]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    #[command(flatten)]
    game: GameArgs,
}

/// Which game, on which map.
#[derive(clap::Args)]
pub(super) struct GameArgs {
    /// A map file in the .map format of Quake's level editors, or a built-in map. Built-in maps are courtyard, and
    /// orchard, which uses every rendering category [default: courtyard]
    #[arg(long, value_name = "FILE|NAME")]
    map: Option<MapPath>,
    /// The game, if the build has bots for more than one
    #[arg(long, value_name = "NAME")]
    game: Option<String>,
}

/// The path of a map file, or the name of a built-in map.
#[derive(Clone, Debug)]
pub(super) struct MapPath(PathBuf);

impl From<OsString> for MapPath {
    fn from(path: OsString) -> MapPath {
        MapPath(path.into())
    }
}

impl Deref for MapPath {
    type Target = Path;
    fn deref(&self) -> &Path {
        &self.0
    }
}

/// What both directions of a connection do to packets, besides delaying all of them.
#[derive(clap::Args)]
pub(super) struct LinkArgs {
    /// Average additional delay of a packet (exponential); those behind it wait [default: 0]
    #[arg(long, value_name = "MS")]
    jitter_ms: Option<f64>,
    /// Share of packets lost, as 2% or 0.02 [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    loss: Option<f64>,
}

/// What links do to single packets, besides losing them.
#[derive(clap::Args)]
pub(super) struct PacketFaultArgs {
    /// Share of packets delayed by 20 ms, so that later ones overtake them [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    reorder: Option<f64>,
    /// Share of packets that arrive twice [default: 0]
    #[arg(long, value_name = "SHARE", value_parser = parse_share)]
    duplicate: Option<f64>,
}

impl SessionArgs {
    /// Prepares the session.
    pub(super) fn set_up(&self, games: &Games, scenario: &Scenario) -> Result<Box<dyn ReadySession>, CommandError> {
        let map = match (&self.game.map, &scenario.map) {
            (None, Some(named)) => self.map_file(named)?.map(MapPath),
            (given, _) => given.clone(),
        };
        let game = GameArgs { map, game: self.game.game.clone() };
        game.with_map(games, |game, map| game.set_up(scenario, map))
    }

    /// The file of a scenario's map, beside the scenario or in the working folder. `None` for the name of a built-in
    /// map.
    fn map_file(&self, named: &str) -> Result<Option<PathBuf>, CommandError> {
        let map = Path::new(named);
        let (Some(scenario), false) = (&self.scenario, is_plain_name(map)) else { return Ok(None) };
        let beside = scenario.parent().unwrap_or(Path::new("")).join(map);
        let found = [beside.as_path(), map].into_iter().find(|path| path.exists());
        found.map(|path| Some(path.to_owned())).ok_or_else(|| {
            let what = match beside == map {
                true => format!("map = \"{named}\": there is no such file"),
                false => format!("map = \"{named}\": there is neither {} nor {}", beside.display(), map.display()),
            };
            CommandError::file(scenario, what)
        })
    }

    /// The scenario, with the link conditions from its own file.
    pub(super) fn scenario(&self) -> Result<Scenario, CommandError> {
        let mut scenario = match &self.scenario {
            Some(path) => read_scenario(path)?,
            None => Scenario::default(),
        };
        if let Some(preset) = &self.preset {
            scenario.preset.clone_from(preset);
        }
        scenario.players = self.players.unwrap_or(scenario.players);
        scenario.seconds = self.seconds.unwrap_or(scenario.seconds);
        scenario.seed = self.seed.unwrap_or(scenario.seed);
        for pair in &self.set {
            // Checked here, so that an error shows the pair as the user typed it.
            scenario.settings()?.set_pair(pair)?;
            if let Some((key, value)) = pair.split_once('=') {
                scenario.settings.insert(key.trim().to_owned(), value.trim().to_owned());
            }
        }
        scenario.check()?;
        Ok(scenario)
    }
}

impl GameArgs {
    /// Calls `work` with the game, and with the map file if there is one.
    pub(super) fn with_map<T, E>(
        &self,
        games: &Games,
        work: impl FnOnce(&dyn SelfPlaying, Option<&MapFile<'_>>) -> Result<T, E>,
    ) -> Result<T, CommandError>
    where
        E: std::error::Error + Send + Sync + 'static,
    {
        let game = games.recordable(self.game.as_deref()).map_err(CommandError::request)?;
        match &self.map {
            // A file of this name takes precedence over a built-in map.
            Some(path) if is_plain_name(path) && !path.exists() => {
                let map = game.map(&path.display().to_string()).map_err(CommandError::request)?;
                work(game, Some(&map)).map_err(CommandError::request)
            }
            Some(path) => {
                let bytes = store::read_bytes(path)?;
                let name = path.display().to_string();
                let file = MapFile { path: &name, bytes: &bytes };
                work(game, Some(&file)).map_err(|error| CommandError::file(path, error))
            }
            None => work(game, None).map_err(CommandError::request),
        }
    }
}

impl LinkArgs {
    /// Whether an option is given.
    pub(super) fn are_given(&self) -> bool {
        self.jitter_ms.is_some() || self.loss.is_some()
    }

    /// Applies the given options to a link.
    pub(super) fn impaired(&self, link: LinkModel) -> LinkModel {
        LinkModel {
            jitter: self.jitter_ms.map_or(link.jitter, Jitter::Exponential),
            loss: self.loss.map_or(link.loss, Loss::Random),
            ..link
        }
    }
}

impl PacketFaultArgs {
    /// Whether an option is given.
    pub(super) fn are_given(&self) -> bool {
        self.reorder.is_some() || self.duplicate.is_some()
    }

    /// Applies the given options to a link.
    pub(super) fn impaired(&self, link: LinkModel) -> LinkModel {
        LinkModel {
            reorder: self.reorder.unwrap_or(link.reorder),
            duplicate: self.duplicate.unwrap_or(link.duplicate),
            ..link
        }
    }
}

/// Whether a path has neither a folder nor an extension, as the name of a built-in map.
pub(super) fn is_plain_name(path: &Path) -> bool {
    path.extension().is_none() && path.components().count() == 1
}

fn read_scenario(path: &Path) -> Result<Scenario, CommandError> {
    let text = String::from_utf8(store::read_bytes(path)?)
        .map_err(|_| CommandError::file(path, "not text: a scenario is a TOML file (hitreg record synth --help)"))?;
    Scenario::parse(&text).map_err(|error| CommandError::file(path, error))
}

pub(super) fn parse_number_of_seconds(text: &str) -> Result<f64, String> {
    text.parse().map_err(|_| "write a number of seconds, such as 20 or 2.5".to_owned())
}

pub(super) fn parse_share(text: &str) -> Result<f64, String> {
    let number = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|p| p / 100.0),
        None => text.parse(),
    };
    match number {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        Ok(_) | Err(_) => Err("write a share from 0 to 1, or a percentage such as 2%".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::{Args, Command};

    use super::*;

    #[test]
    fn scenario_options_are_those_of_a_session_and_its_links() {
        let session = SessionArgs::augment_args(Command::new("session"));
        let all = PacketFaultArgs::augment_args(LinkArgs::augment_args(session));
        let names =
            all.get_arguments().filter_map(clap::Arg::get_long).filter(|name| !["scenario", "game"].contains(name));
        // A session that others join has no delay of its own, so `record synth` and `record live` define it.
        let mut of_session: Vec<_> = names.chain(["delay-ms"]).collect();
        of_session.sort_unstable();
        let mut listed = SCENARIO_OPTIONS.to_vec();
        listed.sort_unstable();
        assert_eq!(listed, of_session);
    }

    #[test]
    fn loss_is_a_share_or_a_percentage() {
        assert_eq!([parse_share("0.02"), parse_share("2%"), parse_share("2.5 %")], [Ok(0.02), Ok(0.02), Ok(0.025)]);
        for wrong in ["2", "-1%", "101%", "nan", "some"] {
            assert!(parse_share(wrong).is_err(), "{wrong}");
        }
    }
}
