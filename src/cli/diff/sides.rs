//! Options that define the two sides of a comparison.

use std::path::{Path, PathBuf};

use crate::cli::offered;
use crate::cli::trouble::CommandError;
use crate::cli::what_if::{OF_ONE_RUN, one_of};
use crate::engine::{ComparisonSpec, CrossBuild, ReplaySpec, ReplaySpecs};
use crate::replay::WhatIf;
use crate::trace::schema::TableSet;

/// What is compared with what.
#[derive(clap::Args)]
pub(in crate::cli) struct SideArgs {
    /// A trace, or a log to replay. `hitreg diff` also takes a corpus: a directory, a quoted pattern, or @FILE with a path
    /// on each line
    #[arg(value_name = "LOG|A")]
    first: PathBuf,
    /// The trace or log of side B [default: the same log]
    #[arg(value_name = "B")]
    second: Option<PathBuf>,
    #[command(flatten)]
    ways: SideReplayArgs,
    /// Run the server of this build, and replay its packets in the clients of both sides
    #[arg(long, value_name = "BUILD", help_heading = "The two sides", conflicts_with = "open")]
    server_build: Option<PathBuf>,
    /// Side B's client on that server; side A's client is --a, or that of the server build
    #[arg(long, value_name = "BUILD", help_heading = "The two sides", conflicts_with_all = ["b", "open"])]
    client_build: Option<PathBuf>,
}

/// How each side replays its log.
#[derive(clap::Args)]
pub(in crate::cli) struct SideReplayArgs {
    /// The build of side A: any program that understands `replay LOG -o TRACE` [default: this one]
    #[arg(long, value_name = "BUILD", help_heading = "The two sides")]
    a: Option<PathBuf>,
    /// The build of side B [default: this one]
    #[arg(long, value_name = "BUILD", help_heading = "The two sides")]
    b: Option<PathBuf>,
    /// A setting of side A; repeatable
    #[arg(long, value_name = "KEY=VALUE", help_heading = "The two sides", value_parser = offered::settings(), hide_possible_values = true)]
    a_set: Vec<String>,
    /// A setting of side B; repeatable
    #[arg(long, value_name = "KEY=VALUE", help_heading = "The two sides", value_parser = offered::settings(), hide_possible_values = true)]
    b_set: Vec<String>,
    /// Preset of side A, instead of the log's settings
    #[arg(long, value_name = "NAME", help_heading = "The two sides", value_parser = offered::presets(), hide_possible_values = true)]
    a_preset: Option<String>,
    /// Preset of side B, instead of the log's settings
    #[arg(long, value_name = "NAME", help_heading = "The two sides", value_parser = offered::presets(), hide_possible_values = true)]
    b_preset: Option<String>,
    /// How changed settings apply: `replay` runs the recorded input under them, `rejudge` changes only the hit test of
    /// each recorded shot
    #[arg(
        long,
        value_parser = one_of(OF_ONE_RUN),
        value_name = "replay|rejudge",
        hide_possible_values = true,
        default_value = "replay",
        help_heading = "The two sides"
    )]
    what_if: WhatIf,
    /// Replay open loop: only the clients run, on the recorded snapshots
    #[arg(long, help_heading = "The two sides")]
    open: bool,
}

impl SideArgs {
    /// Both sides; with `force`, also those of different sessions.
    pub(in crate::cli) fn sides(&self, force: bool) -> Result<ComparisonSpec, CommandError> {
        let across = (self.server_build.is_some() || self.client_build.is_some())
            .then(|| CrossBuild { server: self.server_build.clone(), client: self.client_build.clone() });
        Ok(ComparisonSpec {
            first: self.first.clone(),
            second: self.second.clone(),
            replays: self.ways.ways()?,
            across,
            compare_unrelated: force,
        })
    }

    /// The first file, if it may be a corpus, and how each of its logs is replayed on both sides. `None` if a second
    /// file or a server build needs one log.
    pub(in crate::cli) fn corpus(&self) -> Option<(&Path, &SideReplayArgs)> {
        let is_of_one = self.second.is_some() || self.server_build.is_some() || self.client_build.is_some();
        (!is_of_one).then_some((self.first.as_path(), &self.ways))
    }
}

impl SideReplayArgs {
    /// These options, as on the command line.
    pub(in crate::cli) fn words(&self) -> Vec<String> {
        let path = |path: &PathBuf| path.display().to_string();
        let build = [("--a", self.a.as_ref().map(path)), ("--b", self.b.as_ref().map(path))];
        let preset = [("--a-preset", self.a_preset.clone()), ("--b-preset", self.b_preset.clone())];
        let mut words: Vec<String> = Vec::new();
        for (name, value) in build.into_iter().chain(preset) {
            words.extend(value.into_iter().flat_map(|value| [name.to_owned(), value]));
        }
        for (name, pairs) in [("--a-set", &self.a_set), ("--b-set", &self.b_set)] {
            words.extend(pairs.iter().flat_map(|pair| [name.to_owned(), pair.clone()]));
        }
        if self.what_if != WhatIf::Replay {
            words.extend(["--what-if".to_owned(), self.what_if.name().to_owned()]);
        }
        words.extend(self.open.then(|| "--open".to_owned()));
        words
    }

    /// The builds of both sides.
    pub(in crate::cli) fn builds(&self) -> [Option<&Path>; 2] {
        [self.a.as_deref(), self.b.as_deref()]
    }

    pub(in crate::cli) fn ways(&self) -> Result<ReplaySpecs, CommandError> {
        let has_settings = [&self.a_preset, &self.b_preset].into_iter().any(Option::is_some)
            || [&self.a_set, &self.b_set].into_iter().any(|set| !set.is_empty());
        if self.what_if == WhatIf::Rejudge && !has_settings {
            let what = "--what-if rejudge needs other settings: add --b-set KEY=VALUE or --b-preset NAME. It cannot judge \
                        the session of one build with another";
            return Err(CommandError::request(what));
        }
        let way = |build: &Option<PathBuf>, preset: &Option<String>, set: &[String]| ReplaySpec {
            build: build.clone(),
            preset: preset.clone(),
            set: set.to_vec(),
            open: self.open,
            rejudge: self.what_if == WhatIf::Rejudge,
            tables: TableSet::ALL,
            part: None,
        };
        Ok(ReplaySpecs { a: way(&self.a, &self.a_preset, &self.a_set), b: way(&self.b, &self.b_preset, &self.b_set) })
    }
}
