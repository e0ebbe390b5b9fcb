//! Repairs or explains common mistakes on the command line.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, Error};

use super::CommandError;
use crate::corpus::command_line;
use crate::log::{FileKind, Lookalike};
use crate::store::shown::shell_path;
use crate::store::{self, StoreError};

/// The commands that need a subcommand, with the names of their subcommands.
const GROUPS: [(&str, &[&str]); 2] =
    [("bisect", &["ticks", "builds", "git", "help"]), ("import", &["qwd", "quake3-udp", "quake3-demo", "help"])];

/// The commands that compare two sides.
const SIDED: [&str; 4] = ["diff", "ticks", "shrink", "report"];

/// The global options that take a value.
const WITH_VALUE: [&str; 3] = ["--format", "--color", "--config"];

/// Inserts the subcommand if `bisect` or `import` is followed by a file instead: `bisect ticks` for a log or trace, and
/// the importer that fits the content of a recording.
///
/// # Errors
/// Fails if the file does not exist, or no importer fits it.
pub(super) fn with_chosen_subcommand(mut args: Vec<OsString>) -> Result<Vec<OsString>, CommandError> {
    let mut place = 1;
    while let Some(option) = args.get(place).and_then(|arg| arg.to_str()).filter(|arg| arg.starts_with('-')) {
        place += if WITH_VALUE.contains(&option) { 2 } else { 1 };
    }
    let Some(name) = args.get(place).and_then(|arg| arg.to_str()) else { return Ok(args) };
    let Some((name, subcommands)) = GROUPS.iter().find(|(group, _)| *group == name) else { return Ok(args) };
    let Some(file) = args.get(place + 1) else { return Ok(args) };
    let is_option = file.as_encoded_bytes().starts_with(b"-");
    if is_option || subcommands.iter().any(|known| *known == *file) {
        return Ok(args);
    }
    let path = Path::new(file);
    if !path.exists() {
        // A word without an extension may be a misspelt subcommand.
        return match path.extension() {
            Some(_) => Err(StoreError::not_found(path).into()),
            None => Ok(args),
        };
    }
    let chosen = match *name {
        "import" => importer(path)?,
        _ => "ticks",
    };
    args.insert(place + 1, chosen.into());
    Ok(args)
}

/// The importer of a recording, by its name and its first bytes.
fn importer(file: &Path) -> Result<&'static str, CommandError> {
    let name = file.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let plain = [".xz", ".gz", ".zst"].iter().find_map(|packed| name.strip_suffix(packed)).unwrap_or(&name);
    if file.is_dir() || plain.ends_with(".qwd") || plain.ends_with(".mvd") {
        return Ok("qwd");
    }
    if plain.ends_with(".dm_68") || plain.ends_with(".dm_71") {
        return Ok("quake3-demo");
    }
    if name.ends_with(".trace.zst") {
        return Ok("quake3-udp");
    }
    if let FileKind::Log | FileKind::Trace = store::kind_of(file)? {
        let what = format!("this is a file of hitreg already. Run: hitreg info {}", file.display());
        return Err(CommandError::file(file, what));
    }
    let what = match store::looks_like(file)? {
        Some(Lookalike::QUAKEWORLD_DEMO) => return Ok("qwd"),
        Some(Lookalike::CAPTURE) => return Ok("quake3-udp"),
        Some(looks) => format!(
            "not a recording that hitreg recognises: it looks like {}. `hitreg import --help` lists what hitreg imports",
            looks.kind
        ),
        None => {
            "not a recording that hitreg recognises. Name its importer: hitreg import qwd FILE --map MAP -o LOG, for \
                 example (`hitreg import --help` lists them)"
                .to_owned()
        }
    };
    Err(CommandError::file(file, what))
}

/// Adds what to do to the error of a wrong command line.
pub(super) fn with_tips(mut usage: Error, command: &Command, typed: &[OsString]) -> Error {
    let called = CalledCommand::of(command, typed);
    called.remove_far_suggestion(&mut usage);
    let tip = match usage.kind() {
        ErrorKind::UnknownArgument => called.tip_for_unknown(&mut usage),
        ErrorKind::MissingRequiredArgument => called.tip_for_missing(&usage, typed),
        ErrorKind::InvalidSubcommand => called.tip_for_word(&usage),
        ErrorKind::InvalidValue => called.tip_for_value(&mut usage),
        _ => None,
    };
    if let Some(tip) = tip {
        usage.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![StyledStr::from(tip)]));
    }
    usage
}

/// The subcommand that was called.
struct CalledCommand<'a> {
    command: &'a Command,
    /// The program and the names of the subcommands, such as `hitreg bisect ticks`.
    path: String,
}

impl<'a> CalledCommand<'a> {
    fn of(command: &'a Command, typed: &[OsString]) -> CalledCommand<'a> {
        let start = CalledCommand { command, path: command.get_name().to_owned() };
        let words = typed.iter().skip(1).filter_map(|word| word.to_str());
        words.fold(start, |called, word| match called.command.find_subcommand(word) {
            Some(command) if word != "help" => CalledCommand { command, path: format!("{} {word}", called.path) },
            Some(_) | None => called,
        })
    }

    fn usage(&self) -> StyledStr {
        self.command.clone().bin_name(&self.path).render_usage()
    }

    fn help(&self) -> String {
        format!("to list the options, run: {} --help", self.path)
    }

    /// Removes clap's suggestion if it differs from the typed word in more than every third letter.
    fn remove_far_suggestion(&self, usage: &mut Error) {
        const PAIRS: [(ContextKind, ContextKind); 3] = [
            (ContextKind::InvalidArg, ContextKind::SuggestedArg),
            (ContextKind::InvalidValue, ContextKind::SuggestedValue),
            (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
        ];
        for (typed, suggested) in PAIRS {
            let Some(word) = text_of(usage, typed) else { continue };
            let names = match usage.get(suggested) {
                Some(ContextValue::String(name)) => vec![name.clone()],
                Some(ContextValue::Strings(names)) => names.clone(),
                _ => continue,
            };
            let word = word.trim_start_matches('-');
            let is_near = |name: &String| {
                let name = name.trim_start_matches('-');
                strsim::damerau_levenshtein(word, name) * 3 <= word.chars().count()
                    || (word.len() > 2 && (name.starts_with(word) || word.starts_with(name)))
            };
            if !names.iter().any(is_near) {
                usage.remove(suggested);
                usage.insert(ContextKind::Usage, ContextValue::StyledStr(self.usage()));
            }
        }
    }

    /// A tip for an argument that the command does not take.
    fn tip_for_unknown(&self, usage: &mut Error) -> Option<String> {
        let wrong = text_of(usage, ContextKind::InvalidArg)?;
        let option = wrong.split([' ', '=']).next().unwrap_or_default();
        if !option.starts_with('-') {
            return match self.command.get_positionals().count() {
                0 => Some(self.help()),
                1 => Some(format!("this command takes one argument: run `{}` once for each", self.path)),
                most => Some(format!("this command takes at most {most} arguments before its options")),
            };
        }
        let sided = match option {
            "--build" => Some(("--b BUILD", "--a")),
            "--set" => Some(("--b-set KEY=VALUE", "--a-set")),
            "--preset" => Some(("--b-preset NAME", "--a-preset")),
            _ => None,
        };
        if let (true, Some((b, a))) = (SIDED.contains(&self.command.get_name()), sided) {
            usage.remove(ContextKind::SuggestedArg);
            return Some(format!("this command compares two sides: use {b} for side B, or {a} for side A"));
        }
        // Without this tip, the error would suggest to pass the option as a file.
        usage.get(ContextKind::SuggestedArg).is_none().then(|| self.help())
    }

    /// A tip for arguments that are missing: the typed command with a name for its output, or the command's example.
    fn tip_for_missing(&self, usage: &Error, typed: &[OsString]) -> Option<String> {
        let Some(ContextValue::Strings(missing)) = usage.get(ContextKind::InvalidArg) else { return None };
        let example = || self.example().unwrap_or_else(|| self.help());
        let [only] = &missing[..] else { return Some(example()) };
        if !only.starts_with("--output ") {
            return Some(example());
        }
        let output = match self.command.get_name() {
            "report" => "page.html",
            "export" => "tables",
            "replay" => "new.hittrace",
            "step" => "step.json",
            _ => "new.hitlog",
        };
        let (program, words) = typed.split_first()?;
        let words: Vec<String> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
        Some(format!("name the output: {} {} -o {output}", as_typed(program), command_line(&words)))
    }

    /// A tip for a word in the place of a subcommand.
    fn tip_for_word(&self, usage: &Error) -> Option<String> {
        if usage.get(ContextKind::SuggestedSubcommand).is_some() {
            return None;
        }
        let word = text_of(usage, ContextKind::InvalidSubcommand)?;
        if !self.path.contains(' ') && Path::new(&word).exists() {
            return Some(format!("to see what a file contains, run: {} info {}", self.path, command_line(&[word])));
        }
        if !self.path.contains(' ') {
            return Some(format!("to list the commands, run: {} --help", self.path));
        }
        let names: Vec<&str> = self.command.get_subcommands().map(Command::get_name).filter(|n| *n != "help").collect();
        Some(format!("choose one of {}", names.join(", ")))
    }

    /// A tip for a value that an option does not take.
    fn tip_for_value(&self, usage: &mut Error) -> Option<String> {
        let option = text_of(usage, ContextKind::InvalidArg)?;
        let value = text_of(usage, ContextKind::InvalidValue)?;
        if option.starts_with("--format ") && ["jsonl", "csv", "parquet"].contains(&&*value) {
            return Some(format!("to choose the format of rows, use --to {value}"));
        }
        // All settings, which the shell completes.
        if value.is_empty() && option.contains("KEY=VALUE") {
            usage.remove(ContextKind::ValidValue);
            return Some("to list the settings, run: hitreg settings".to_owned());
        }
        None
    }

    /// The first example in the command's help, on one line.
    fn example(&self) -> Option<String> {
        let help = self.command.get_after_long_help()?.to_string();
        let mut lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
        let mut example = lines.next()?.trim().to_owned();
        while let Some(begun) = example.strip_suffix('\\') {
            example = format!("{}{}", begun, lines.next()?.trim());
        }
        Some(format!("for example: {example}"))
    }
}

/// A text in the context of an error.
fn text_of(usage: &Error, kind: ContextKind) -> Option<String> {
    match usage.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    }
}

/// The shortest way to call this program again: its name if the shell finds it in `PATH`, or else its path relative to
/// the working folder. It is one word of a command.
pub(super) fn as_typed(program: &OsStr) -> String {
    let path = Path::new(program);
    let found_by_name = path.parent().is_some_and(|folder| search_path().any(|searched| searched == folder));
    let here = std::env::current_dir().unwrap_or_default();
    match path.file_name() {
        Some(name) if found_by_name => shell_path(Path::new(name)),
        Some(_) | None => shell_path(path.strip_prefix(&here).unwrap_or(path)),
    }
}

#[expect(clippy::disallowed_methods, reason = "the way to type a command depends on the shell's environment")]
fn search_path() -> impl Iterator<Item = PathBuf> {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&folders).collect::<Vec<_>>().into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(args: &[&str]) -> Vec<String> {
        let args = with_chosen_subcommand(args.iter().map(OsString::from).collect()).unwrap();
        args.into_iter().map(|arg| arg.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn a_capture_is_recognised_by_its_first_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("night.cap");
        std::fs::write(&file, b"UDPTRC1\n and datagrams").unwrap();
        assert_eq!(importer(&file).unwrap(), "quake3-udp");
        std::fs::write(&file, b"UDP").unwrap();
        assert!(importer(&file).is_err());
    }

    #[test]
    fn a_file_after_a_group_chooses_its_subcommand() {
        let here = env!("CARGO_MANIFEST_DIR");
        assert_eq!(chosen(&["hitreg", "bisect", here]), ["hitreg", "bisect", "ticks", here]);
        assert_eq!(chosen(&["hitreg", "--format", "json", "import", here])[4..], ["qwd".to_owned(), here.to_owned()]);
        for unchanged in
            [&["hitreg", "bisect", "git", "x"][..], &["hitreg", "bisect", "no-such-file"], &["hitreg", "info", here]]
        {
            assert_eq!(chosen(unchanged), unchanged);
        }
    }
}
