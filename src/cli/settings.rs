//! `hitreg settings`: lists all keys with their bounds, defaults, and the sources of the defaults.

use serde::Serialize;

use super::page::{Page, Strong, TextSpan};
use super::replay_args::{offered_keys, offered_presets};
use super::{CommandResult, Output};
use crate::report::layout::WIDTH;
use crate::settings::{ENGINE_NAMES, EngineName, KEYS, PRESETS, Preset, SettingKey, Settings, ValueKind, engine_names};

/// List every setting with its values, its default, and the source of the default
///
/// A log carries its settings. `replay`, `why` and `export` accept `--set KEY=VALUE` to run it under others. A preset
/// is a named set of values: the netcode of a well-known game or paper.
#[derive(clap::Args)]
#[command(after_long_help = "\
Examples:
  hitreg settings
  hitreg settings interpolation        keys that contain this word
  hitreg settings cl_interp            by the name in Source or Quake
  hitreg settings --preset quake3      a preset, with the source of every value
  hitreg settings --format json")]
pub(super) struct Args {
    /// Only keys that contain this word, or whose name in another engine is this word
    #[arg(value_name = "WORD", value_parser = offered_keys(), hide_possible_values = true)]
    word: Option<String>,
    /// Show the values of this preset
    #[arg(long, value_name = "NAME", value_parser = offered_presets(), hide_possible_values = true)]
    preset: Option<String>,
}

/// A listed setting.
#[derive(Serialize)]
struct SettingListing {
    key: &'static str,
    about: &'static str,
    #[serde(flatten)]
    takes: ValueKind,
    default: String,
    value: String,
    source: &'static str,
    /// The setting's names in other engines.
    engine_names: Vec<&'static EngineName>,
}

pub(super) fn run(args: &Args, output: &mut Output) -> CommandResult {
    let settings = match &args.preset {
        Some(name) => Settings::preset(name)?,
        None => Settings::default(),
    };
    let preset = args.preset.as_ref().and_then(|name| PRESETS.iter().find(|p| p.name == name));
    let wanted = |key: &&SettingKey| {
        args.word.as_ref().is_none_or(|word| {
            key.name.contains(word.as_str()) || engine_names(word).any(|known| known.key == key.name)
        })
    };
    let listed: Vec<SettingListing> =
        KEYS.iter().filter(wanted).map(|key| SettingListing::new(key, &settings, preset)).collect();
    if listed.is_empty() {
        let word = args.word.as_deref().unwrap_or_default();
        // Setting an unknown key produces an error that names the nearest known key.
        Settings::default().set(word, "")?;
    }
    output.show(&listed, |page| print(page, &listed, preset, args.word.as_deref()))
}

impl SettingListing {
    fn new(key: &'static SettingKey, settings: &Settings, preset: Option<&Preset>) -> SettingListing {
        let by_preset = preset.and_then(|p| p.values.iter().find(|(name, _, _)| *name == key.name));
        SettingListing {
            key: key.name,
            about: key.about,
            takes: key.kind,
            default: key.default(),
            value: key.get(settings),
            source: by_preset.map_or(key.source, |(_, _, source)| source),
            engine_names: ENGINE_NAMES.iter().filter(|known| known.key == key.name).collect(),
        }
    }

    fn bounds(&self) -> String {
        match &self.takes {
            ValueKind::Flag => "true, false".to_owned(),
            ValueKind::Number { min, max, unit } | ValueKind::Rate { min, max, unit } => {
                format!("{min} to {max} {unit}")
            }
            ValueKind::Choice { choices } => choices.join(", "),
        }
    }
}

fn print(page: &mut Page, listed: &[SettingListing], preset: Option<&Preset>, word: Option<&str>) {
    match preset {
        Some(preset) => {
            page.heading(&format!("Preset {}", preset.name));
            page.paragraph(2, preset.about);
            page.paragraph(2, "Values that differ from the default are marked with *.");
        }
        None => page.heading("Settings"),
    }
    let mut group = "";
    for setting in listed {
        let own_group = setting.key.split('.').next().unwrap_or_default();
        if own_group != group {
            page.blank();
            group = own_group;
        }
        let mark = if setting.value == setting.default { ' ' } else { '*' };
        let (key, value, bounds) = (setting.key, &setting.value, setting.bounds());
        let used = "* ".len() + key.len() + " = ".len() + value.len() + bounds.len();
        let (space, below) = (WIDTH.saturating_sub(used), used + 2 > WIDTH);
        let beside = if below { String::new() } else { format!("{:space$}{bounds}", "") };
        let shown = format!(" = {value}{beside}");
        page.parts(vec![format!("{mark} ").into(), TextSpan::styled(Strong, key), shown.into()]);
        if below {
            page.paragraph(6, &bounds);
        }
        page.paragraph(6, setting.about);
        page.faint(6, &format!("({})", setting.source));
        // Names in other engines are shown only if the user searched for one of them.
        let is_named = |known: &&&EngineName| word.is_some_and(|word| known.name.eq_ignore_ascii_case(word));
        for known in setting.engine_names.iter().filter(is_named) {
            let note = if known.note.is_empty() { "the same" } else { known.note };
            page.paragraph(6, &format!("{} in {}: {note}", known.name, known.engine));
        }
    }
    if preset.is_none() && word.is_none() {
        page.heading("Presets (`hitreg settings --preset NAME` shows one)");
        page.table(&["", ""], PRESETS.iter().map(|preset| [preset.name, preset.about]));
    }
}
