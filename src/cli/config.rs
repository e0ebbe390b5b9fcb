//! `hitreg.toml`: default options for a folder and everything below it.
//!
//! A table is named after a command, and its keys are the command's long options. Keys outside of tables are options of
//! all commands. Options on the command line override the file, and so do options that conflict with one from the file.
//! A typed value of an option such as `--set KEY=VALUE` overrides only the file's value for the same key. A typed scenario
//! overrides every option that describes a session. The whole file is checked, whatever the command.

use std::any::TypeId;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgMatches, Command};
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use super::output::is_given;
use super::session_args::{MapPath, SCENARIO_OPTIONS, is_plain_name};
use super::{CommandError, OutputPath};
use crate::build::{CONFIG_VARIABLE, NO_CONFIG};
use crate::store;

/// The name of the config file.
const NAME: &str = "hitreg.toml";

/// An option from the config file.
#[derive(Clone)]
pub(super) struct DefaultOption {
    /// The long name of the option, without dashes.
    pub(super) name: String,
    /// The option with each of its values, as `--name` or `--name=value`.
    pub(super) words: Vec<OsString>,
    /// Whether the command line has other values of the option.
    pub(super) is_typed: bool,
}

impl DefaultOption {
    /// The option without those of its values that a message does not mention. A bare name such as `set`, or a value
    /// without a letter, may be there by chance: a message mentions these only together.
    fn mentioned_in(&self, message: &str) -> Vec<&OsString> {
        let is_named =
            [format!("--{}", self.name), format!("`{}`", self.name)].iter().any(|name| has_word(message, name));
        let has_name = has_word(message, &self.name);
        let is_mentioned = |word: &&OsString| {
            let text = word.to_string_lossy();
            let value = text.split_once('=').map_or("", |(_, value)| value);
            let has_part = |part: &str| has_word(message, part) && (has_name || part.chars().any(char::is_alphabetic));
            is_named || has_part(value) || has_part(&key_of(word))
        };
        self.words.iter().filter(is_mentioned).collect()
    }
}

/// Whether a text has these words, and not only as a part of longer words.
fn has_word(text: &str, words: &str) -> bool {
    let is_inside = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut places = text.match_indices(words).filter(|_| !words.is_empty());
    places.any(|(place, _)| {
        let (before, after) = (&text[..place], &text[place + words.len()..]);
        !is_inside(before.chars().next_back()) && !is_inside(after.chars().next())
    })
}

/// The options that a config file adds to a command line.
pub(super) struct ConfigDefaults {
    pub(super) path: PathBuf,
    pub(super) options: Vec<DefaultOption>,
}

impl ConfigDefaults {
    /// Notes the added options beside an error in the command line.
    pub(super) fn print_note(&self) {
        self.note(self.options.iter().flat_map(|option| &option.words));
    }

    /// Notes the added options and values that an error mentions.
    pub(super) fn print_note_on(&self, error: &CommandError) {
        let message = error.to_string();
        self.note(self.options.iter().flat_map(|option| option.mentioned_in(&message)));
    }

    fn note<'a>(&self, words: impl Iterator<Item = &'a OsString>) {
        let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
        if !words.is_empty() {
            CommandError::file(&self.path, format!("this file adds {}", words.join(" "))).print_note();
        }
    }
}

/// The defaults from the config file in effect. `None` if it adds none.
///
/// # Errors
/// Fails if the file cannot be read, or contains an unknown option or a wrong value.
pub(super) fn defaults(command: &Command, args: &[OsString]) -> Result<Option<ConfigDefaults>, CommandError> {
    let here = in_force();
    // Without a file in effect and without `--config`, the arguments need only one parse.
    if here.is_none() && !args.iter().any(|arg| arg.to_string_lossy().starts_with("--config")) {
        return Ok(None);
    }
    let matches = command.clone().ignore_errors(true).try_get_matches_from(args);
    // Invalid arguments are reported by the main parse.
    let Ok(matches) = matches else { return Ok(None) };
    let typed = matches.try_get_one::<PathBuf>("config").ok().flatten().cloned();
    let Some(path) = typed.or(here).filter(|path| path.as_os_str() != NO_CONFIG) else { return Ok(None) };
    let file = ConfigFile::read(&path)?;
    let table = file.table()?;
    file.check(command, &mut vec![OsString::from(command.get_name())], &table)?;
    let options = applicable(command, args, file.options(command, &matches, &table)?);
    Ok((!options.is_empty()).then_some(ConfigDefaults { path, options }))
}

/// A command line with these options at its end.
pub(super) fn with_words(args: &[OsString], added: &[DefaultOption]) -> Vec<OsString> {
    let end = args.iter().position(|arg| arg == "--").unwrap_or(args.len());
    let words = added.iter().flat_map(|option| &option.words);
    args[..end].iter().chain(words).chain(&args[end..]).cloned().collect()
}

/// The defaults that have an effect: those that do not conflict with the typed options, and do not lack another option.
/// Defaults that conflict with each other stay, so that the command line is refused.
fn applicable(command: &Command, typed: &[OsString], defaults: Vec<DefaultOption>) -> Vec<DefaultOption> {
    let parse = |defaults: &[DefaultOption]| command.clone().try_get_matches_from(with_words(typed, defaults)).err();
    let conflicts =
        |defaults: &[DefaultOption]| parse(defaults).is_some_and(|error| error.kind() == ErrorKind::ArgumentConflict);
    let missing = |defaults: &[DefaultOption]| match parse(defaults)
        .and_then(|error| error.get(ContextKind::InvalidArg).cloned())
    {
        Some(ContextValue::Strings(names)) => names,
        _ => Vec::new(),
    };
    let (conflict, missed) = (conflicts(&[]), missing(&[]));
    let is_overridden = |option: &DefaultOption| !conflict && conflicts(std::slice::from_ref(option));
    let mut waiting: Vec<DefaultOption> = defaults.into_iter().filter(|option| !is_overridden(option)).collect();
    let mut added = Vec::new();
    // An option may need one that is added after it.
    loop {
        let before = added.len();
        for option in std::mem::take(&mut waiting) {
            let tried = [&added[..], std::slice::from_ref(&option)].concat();
            let lacks = missing(&tried).iter().any(|name| !missed.contains(name));
            if lacks { waiting.push(option) } else { added = tried }
        }
        if added.len() == before {
            return added;
        }
    }
}

/// The config file that the environment names, or the nearest one in the working folder and its parents. What
/// has this name and is no readable file is an error, and is not passed over.
fn in_force() -> Option<PathBuf> {
    #[expect(clippy::disallowed_methods, reason = "the variable selects options, as the command line does")]
    let named = std::env::var_os(CONFIG_VARIABLE).filter(|path| !path.is_empty());
    let nearest = || {
        let here = std::env::current_dir().ok()?;
        here.ancestors().map(|folder| folder.join(NAME)).find(|path| path.symlink_metadata().is_ok())
    };
    named.map(PathBuf::from).or_else(nearest)
}

struct ConfigFile<'a> {
    path: &'a Path,
    text: String,
}

impl ConfigFile<'_> {
    fn read(path: &Path) -> Result<ConfigFile<'_>, CommandError> {
        let bytes = store::read_regular(path)?;
        let text =
            String::from_utf8(bytes).map_err(|_| CommandError::file(path, "not text: the config file is TOML"))?;
        Ok(ConfigFile { path, text })
    }

    fn table(&self) -> Result<DeTable<'_>, CommandError> {
        let table = DeTable::parse(&self.text);
        // The error names the line when it knows the text.
        Ok(table
            .map_err(|mut error| {
                error.set_input(Some(&self.text));
                CommandError::file(self.path, error)
            })?
            .into_inner())
    }

    /// Rejects keys that no command accepts, and values that their option does not accept. `names` are the names of the
    /// program and of the command.
    fn check(&self, root: &Command, names: &mut Vec<OsString>, table: &DeTable<'_>) -> Result<(), CommandError> {
        let command = names.iter().skip(1).fold(root, |outer, name| outer.find_subcommand(name).unwrap_or(outer));
        for (key, value) in table {
            match value.get_ref() {
                DeValue::Table(inner) => match command.find_subcommand(key.get_ref().as_ref()) {
                    Some(called) => {
                        names.push(called.get_name().into());
                        self.check(root, names, inner)?;
                        names.pop();
                    }
                    None => {
                        return Err(self.unknown("command", key, command.get_subcommands().map(Command::get_name)));
                    }
                },
                value => {
                    let argument = self.argument(command, key)?;
                    let words = words_of(argument, value)
                        .ok_or_else(|| self.at(key, &format!("`{}` must be {}", key.get_ref(), kind_of(argument))))?;
                    let words = words.into_iter().map(|word| option_word(key.get_ref(), word.map(OsString::from)));
                    let line = names.iter().cloned().chain(words);
                    if let Err(error) = root.clone().try_get_matches_from(line)
                        && let ErrorKind::InvalidValue | ErrorKind::ValueValidation | ErrorKind::ArgumentConflict =
                            error.kind()
                    {
                        return Err(self.refused(key, &error));
                    }
                }
            }
        }
        Ok(())
    }

    fn argument<'c>(&self, command: &'c Command, key: &Spanned<DeString<'_>>) -> Result<&'c Arg, CommandError> {
        let options = command.get_arguments().filter_map(|arg| Some((arg.get_long()?, arg)));
        let options: Vec<_> = options.filter(|(long, _)| !["config", "help", "version"].contains(long)).collect();
        let found = options.iter().find(|(long, _)| *long == key.get_ref().as_ref()).map(|(_, argument)| *argument);
        found.ok_or_else(|| self.unknown("option", key, options.iter().map(|(long, _)| *long)))
    }

    /// The options for the called command and for all commands, without those that typed options override. The table of a
    /// command overrides the tables around it.
    fn options(
        &self,
        command: &Command,
        matches: &ArgMatches,
        table: &DeTable<'_>,
    ) -> Result<Vec<DefaultOption>, CommandError> {
        let mut added: Vec<DefaultOption> = Vec::new();
        let (mut command, mut matches, mut table) = (command, matches, Some(table));
        loop {
            let has_scenario =
                command.get_arguments().any(|arg| arg.get_long() == Some("scenario") && is_given(arg, matches));
            for (key, value) in table.into_iter().flatten().filter(|(_, value)| !value.get_ref().is_table()) {
                let argument = self.argument(command, key)?;
                let name = key.get_ref().as_ref();
                if has_scenario && SCENARIO_OPTIONS.contains(&name) {
                    continue;
                }
                let mut option = self.option(argument, name, value.get_ref());
                option.is_typed = is_given(argument, matches);
                if option.is_typed {
                    let typed = typed_keys(argument, matches);
                    let is_other = |word: &OsString| typed.as_ref().is_some_and(|keys| !keys.contains(&key_of(word)));
                    option.words.retain(is_other);
                }
                added.retain(|outer| outer.name != option.name);
                added.push(option);
            }
            let Some((name, inner)) = matches.subcommand() else { break };
            let Some(called) = command.find_subcommand(name) else { break };
            table = table.and_then(|table| table.get(name)).and_then(|inner| inner.get_ref().as_table());
            (command, matches) = (called, inner);
        }
        added.retain(|option| !option.words.is_empty());
        Ok(added)
    }

    /// An option with its values. Relative paths start at the folder of the file.
    fn option(&self, argument: &Arg, key: &str, value: &DeValue<'_>) -> DefaultOption {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let placed = |word: String| match value_kind(argument) {
            ArgumentKind::Text => OsString::from(word),
            _ if store::is_standard_stream(Path::new(&word)) => word.into(),
            ArgumentKind::Map if is_plain_name(Path::new(&word)) && !folder.join(&word).exists() => word.into(),
            ArgumentKind::Path | ArgumentKind::Map => folder.join(word).into(),
        };
        let words = words_of(argument, value).unwrap_or_default();
        let words = words.into_iter().map(|word| option_word(key, word.map(placed))).collect();
        DefaultOption { name: key.to_owned(), words, is_typed: false }
    }

    fn unknown<'n>(
        &self,
        what: &str,
        key: &Spanned<DeString<'_>>,
        known: impl Iterator<Item = &'n str>,
    ) -> CommandError {
        let name = key.get_ref();
        let nearest = known.map(|known| (strsim::jaro_winkler(known, name), known)).max_by(|a, b| a.0.total_cmp(&b.0));
        let meant = nearest
            .filter(|(near, _)| *near > 0.7)
            .map_or(String::new(), |(_, known)| format!(" (did you mean `{known}`?)"));
        self.at(key, &format!("there is no {what} `{name}`{meant}"))
    }

    /// The first paragraph of clap's message, which names the option and the value.
    fn refused(&self, key: &Spanned<DeString<'_>>, error: &clap::Error) -> CommandError {
        let text = error.render().to_string();
        let first = text.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
        let what = first.split_whitespace().collect::<Vec<_>>().join(" ");
        self.at(key, &format!("`{}`: {what}", key.get_ref()))
    }

    /// An error about a key, with its line.
    fn at(&self, key: &Spanned<DeString<'_>>, what: &str) -> CommandError {
        let before = self.text.get(..key.span().start).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        CommandError::file(self.path, format!("line {line}: {what}"))
    }
}

/// What the value of an option is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ArgumentKind {
    /// A path, relative to the file's folder.
    Path,
    /// A map: a path, or the name of a built-in map.
    Map,
    /// Any other text or number.
    Text,
}

fn value_kind(argument: &Arg) -> ArgumentKind {
    let kind = argument.get_value_parser().type_id();
    if kind == TypeId::of::<PathBuf>() || kind == TypeId::of::<OutputPath>() {
        ArgumentKind::Path
    } else if kind == TypeId::of::<MapPath>() {
        ArgumentKind::Map
    } else {
        ArgumentKind::Text
    }
}

/// The values that an option accepts, as text.
fn kind_of(argument: &Arg) -> &'static str {
    match (argument.get_action().takes_values(), value_kind(argument)) {
        (false, _) => "true or false",
        (true, ArgumentKind::Text) => "a text, a number, or a list of these",
        (true, ArgumentKind::Path | ArgumentKind::Map) => "a path, as text",
    }
}

fn option_word(name: &str, value: Option<OsString>) -> OsString {
    let mut word = OsString::from(format!("--{name}"));
    if let Some(value) = value {
        word.push("=");
        word.push(value);
    }
    word
}

/// The keys of the typed values of an option such as `--set KEY=VALUE`; `None` for an option whose values have no keys.
fn typed_keys(argument: &Arg, matches: &ArgMatches) -> Option<Vec<String>> {
    argument.get_value_names()?.iter().find(|name| name.contains('='))?;
    let values = matches.get_raw(argument.get_id().as_str()).into_iter().flatten();
    Some(values.map(|value| key_of(&option_word("", Some(value.to_owned())))).collect())
}

/// The key in a word such as `--set=KEY=VALUE`.
fn key_of(word: &OsStr) -> String {
    word.to_string_lossy().split('=').nth(1).unwrap_or_default().trim().to_owned()
}

/// The values of an option, one for each time it is given; each is `None` for an option without a value. An option set
/// to `false` has none. Returns `None` if the value does not fit the option.
fn words_of(argument: &Arg, value: &DeValue<'_>) -> Option<Vec<Option<String>>> {
    let takes_value = argument.get_action().takes_values();
    let takes_number = value_kind(argument) == ArgumentKind::Text;
    Some(match value {
        DeValue::Boolean(true) if !takes_value => vec![None],
        DeValue::Boolean(false) if !takes_value => Vec::new(),
        _ if !takes_value => return None,
        DeValue::String(text) => vec![Some(text.clone().into_owned())],
        DeValue::Integer(number) if takes_number => {
            vec![Some(i64::from_str_radix(number.as_str(), number.radix()).ok()?.to_string())]
        }
        DeValue::Float(number) if takes_number => vec![Some(number.as_str().parse::<f64>().ok()?.to_string())],
        DeValue::Array(values) => {
            let words = values.iter().map(|value| words_of(argument, value.get_ref()));
            words.collect::<Option<Vec<_>>>()?.into_iter().flatten().collect()
        }
        _ => return None,
    })
}
