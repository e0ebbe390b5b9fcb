//! `hitreg.toml`: default options for a folder and everything below it.
//!
//! A table is named after a command, and its keys are the command's long options. Keys outside of tables are options of
//! all commands. Options on the command line override the file, and so do options that conflict with one from the file.
//! The whole file is checked, whatever the command.

use std::any::TypeId;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use toml::{Table, Value};

use super::outputs::OutputPath;
use super::trouble::CommandError;
use crate::build::{CONFIG_VARIABLE, NO_CONFIG};
use crate::store;

/// The name of the config file.
const NAME: &str = "hitreg.toml";

/// A command line with the options from a config file, and their origin.
pub(super) struct ConfigOptions {
    /// The complete command line.
    pub(super) args: Vec<OsString>,
    /// The file and the options that it added; `None` if it added none.
    pub(super) added: Option<(PathBuf, Vec<String>)>,
}

/// Adds the options of the config file in effect to a command line.
///
/// # Errors
/// Fails if the file cannot be read or contains an unknown option.
pub(super) fn with_defaults(command: &Command, args: Vec<OsString>) -> Result<ConfigOptions, CommandError> {
    let here = in_force();
    // Without a file in effect and without `--config`, the arguments need only one parse.
    if here.is_none() && !args.iter().any(|arg| arg.to_string_lossy().starts_with("--config")) {
        return Ok(ConfigOptions { args, added: None });
    }
    let matches = command.clone().ignore_errors(true).try_get_matches_from(&args);
    // Invalid arguments are reported by the main parse.
    let Ok(matches) = matches else { return Ok(ConfigOptions { args, added: None }) };
    let typed = matches.try_get_one::<PathBuf>("config").ok().flatten().cloned();
    let Some(path) = typed.or(here) else { return Ok(ConfigOptions { args, added: None }) };
    if path.as_os_str() == NO_CONFIG {
        return Ok(ConfigOptions { args, added: None });
    }
    let file = ConfigFile::read(&path)?;
    file.check(command, &file.table)?;
    let added = file.options(command, &matches)?;
    let mut args = args;
    let end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
    args.splice(end..end, added.iter().map(OsString::from));
    let added = (!added.is_empty()).then_some((path, added));
    Ok(ConfigOptions { args, added })
}

/// The config file that the environment names, or the nearest one in the working folder and its parents.
fn in_force() -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "the variable selects options, as the command line does")]
    let named = std::env::var_os(CONFIG_VARIABLE).filter(|path| !path.is_empty());
    let nearest = || {
        let here = std::env::current_dir().ok()?;
        here.ancestors().map(|folder| folder.join(NAME)).find(|path| path.is_file())
    };
    named.map(PathBuf::from).or_else(nearest)
}

struct ConfigFile<'a> {
    path: &'a Path,
    table: Table,
}

impl ConfigFile<'_> {
    fn read(path: &Path) -> Result<ConfigFile<'_>, CommandError> {
        let bytes = store::read_regular(path)?;
        let text =
            String::from_utf8(bytes).map_err(|_| CommandError::file(path, "not text: the config file is TOML"))?;
        let table = text.parse::<Table>().map_err(|error| CommandError::file(path, error))?;
        Ok(ConfigFile { path, table })
    }

    /// Rejects keys that no command accepts.
    fn check(&self, command: &Command, table: &Table) -> Result<(), CommandError> {
        for (key, value) in table {
            match value {
                Value::Table(inner) => match command.find_subcommand(key) {
                    Some(command) => self.check(command, inner)?,
                    None => return Err(self.unknown("command", key, command.get_subcommands().map(Command::get_name))),
                },
                _ => {
                    let argument = self.argument(command, key)?;
                    words_of(argument, value).ok_or_else(|| self.wrong(key))?;
                }
            }
        }
        Ok(())
    }

    fn argument<'c>(&self, command: &'c Command, key: &str) -> Result<&'c Arg, CommandError> {
        let options = || command.get_arguments().filter_map(|arg| Some((arg.get_long()?, arg)));
        let found = options().find(|(long, _)| *long == key && !["config", "help", "version"].contains(long));
        let found = found.map(|(_, argument)| argument);
        found.ok_or_else(|| self.unknown("option", key, options().map(|(long, _)| long)))
    }

    /// The options for the called command and for all commands, without options that the command line overrides.
    fn options(&self, command: &Command, matches: &ArgMatches) -> Result<Vec<String>, CommandError> {
        let mut added = Vec::new();
        let (mut command, mut matches, mut table) = (command, matches, Some(&self.table));
        loop {
            for (key, value) in table.into_iter().flatten().filter(|(_, value)| !value.is_table()) {
                let argument = self.argument(command, key)?;
                let typed = |id: &str| {
                    matches.try_contains_id(id).is_ok() && matches.value_source(id) == Some(ValueSource::CommandLine)
                };
                let conflicts = command.get_arg_conflicts_with(argument);
                if !typed(argument.get_id().as_str()) && !conflicts.iter().any(|other| typed(other.get_id().as_str())) {
                    self.add(argument, key, value, &mut added);
                }
            }
            let Some((name, inner)) = matches.subcommand() else { return Ok(added) };
            let Some(called) = command.find_subcommand(name) else { return Ok(added) };
            table = table.and_then(|table| table.get(name)).and_then(Value::as_table);
            (command, matches) = (called, inner);
        }
    }

    /// Adds an option. Relative paths start at the folder of the file.
    fn add(&self, argument: &Arg, key: &str, value: &Value, added: &mut Vec<String>) {
        let kind = argument.get_value_parser().type_id();
        let is_path = kind == TypeId::of::<PathBuf>() || kind == TypeId::of::<OutputPath>();
        let folder = self.path.parent().unwrap_or(Path::new(""));
        for word in words_of(argument, value).unwrap_or_default() {
            added.push(match word {
                None => format!("--{key}"),
                Some(word) if is_path => format!("--{key}={}", folder.join(word).display()),
                Some(word) => format!("--{key}={word}"),
            });
        }
    }

    fn unknown<'n>(&self, what: &str, name: &str, known: impl Iterator<Item = &'n str>) -> CommandError {
        let nearest = known.map(|known| (strsim::jaro_winkler(known, name), known)).max_by(|a, b| a.0.total_cmp(&b.0));
        let meant = nearest
            .filter(|(near, _)| *near > 0.7)
            .map_or(String::new(), |(_, known)| format!(" (did you mean `{known}`?)"));
        CommandError::file(self.path, format!("there is no {what} `{name}`{meant}"))
    }

    fn wrong(&self, key: &str) -> CommandError {
        CommandError::file(self.path, format!("`{key}` must be true or false, a number, a text, or a list of these"))
    }
}

/// The values of an option, one for each time it is given; each is `None` for an option without a value. An option set
/// to `false` has none. Returns `None` if the value does not fit the option.
fn words_of(argument: &Arg, value: &Value) -> Option<Vec<Option<String>>> {
    let takes_value = argument.get_action().takes_values();
    Some(match value {
        Value::Boolean(on) if !takes_value => {
            if *on {
                vec![None]
            } else {
                Vec::new()
            }
        }
        Value::Boolean(on) => vec![Some(on.to_string())],
        _ if !takes_value => return None,
        Value::String(text) => vec![Some(text.clone())],
        Value::Integer(number) => vec![Some(number.to_string())],
        Value::Float(number) => vec![Some(number.to_string())],
        Value::Array(values) => {
            let words = values.iter().map(|value| words_of(argument, value));
            words.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect()
        }
        Value::Datetime(_) | Value::Table(_) => return None,
    })
}
