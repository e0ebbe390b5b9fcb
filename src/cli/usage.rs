//! Repairs or explains common mistakes on the command line.

use std::ffi::OsString;
use std::io::Read;
use std::path::Path;

use clap::Error;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

use super::trouble::CommandError;
use crate::log::FileKind;
use crate::store;

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
/// Fails if no importer fits the file.
pub(super) fn with_chosen_subcommand(mut args: Vec<OsString>) -> Result<Vec<OsString>, CommandError> {
    let mut place = 1;
    while let Some(option) = args.get(place).and_then(|arg| arg.to_str()).filter(|arg| arg.starts_with('-')) {
        place += if WITH_VALUE.contains(&option) { 2 } else { 1 };
    }
    let Some(name) = args.get(place).and_then(|arg| arg.to_str()) else { return Ok(args) };
    let Some((name, subcommands)) = GROUPS.iter().find(|(group, _)| *group == name) else { return Ok(args) };
    let Some(file) = args.get(place + 1) else { return Ok(args) };
    let is_option = file.as_encoded_bytes().starts_with(b"-");
    if is_option || subcommands.iter().any(|known| *known == *file) || !Path::new(file).exists() {
        return Ok(args);
    }
    let chosen = match *name {
        "import" => importer(Path::new(file))?,
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
    if name.ends_with(".trace.zst") || begins_like_capture(file)? {
        return Ok("quake3-udp");
    }
    if let FileKind::Log | FileKind::Trace = store::kind_of(file)? {
        let what = format!("this is a file of hitreg already. Run: hitreg info {}", file.display());
        return Err(CommandError::file(file, what));
    }
    let what = "not a recording that hitreg recognises. Name its importer: hitreg import qwd FILE --map MAP -o LOG, for \
                example (`hitreg import --help` lists them)";
    Err(CommandError::file(file, what))
}

/// Whether a file begins like a capture of datagrams. Reads no further, because captures may be long.
fn begins_like_capture(file: &Path) -> Result<bool, CommandError> {
    const MAGIC: &[u8] = b"UDPTRC1";
    let mut start = Vec::new();
    let read = store::open(file)?.take(MAGIC.len() as u64).read_to_end(&mut start);
    read.map_err(|error| CommandError::file(file, format!("cannot be read: {error}")))?;
    Ok(start == MAGIC)
}

/// Adds a tip for an option of a command with one side to a command with two sides.
pub(super) fn with_tips(mut usage: Error) -> Error {
    if usage.kind() != ErrorKind::UnknownArgument {
        return usage;
    }
    let Some(ContextValue::String(wrong)) = usage.get(ContextKind::InvalidArg) else { return usage };
    let option = wrong.split([' ', '=']).next().unwrap_or_default().to_owned();
    let Some(sided) = ["set", "preset", "build"].into_iter().find(|name| option == format!("--{name}")) else {
        return usage;
    };
    let text = usage.render().to_string();
    let mut called = text.lines().filter_map(|line| line.strip_prefix("Usage:"));
    if !called.any(|line| line.split_whitespace().any(|word| SIDED.contains(&word))) {
        return usage;
    }
    let (b, a) = match sided {
        "build" => ("--b BUILD".to_owned(), "--a".to_owned()),
        "set" => ("--b-set KEY=VALUE".to_owned(), "--a-set".to_owned()),
        _ => ("--b-preset NAME".to_owned(), "--a-preset".to_owned()),
    };
    usage.remove(ContextKind::SuggestedArg);
    let tip = StyledStr::from(format!("this command compares two sides: use {b} for side B, or {a} for side A"));
    usage.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip]));
    usage
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
