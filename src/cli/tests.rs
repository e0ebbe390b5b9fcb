//! Tests of the command line: every pair of options of every command, against clap's definitions.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Command};

use super::Program;

/// Values. Each option accepts at least one of them.
const VALUES: &[&str] = &[
    "1",
    "0",
    "1000",
    "p0",
    "a=1",
    "x=0..1:1",
    "slice:1/2",
    "hits",
    "hits-changed=0",
    "corrections=0%",
    "127.0.0.1",
    "127.0.0.1:0",
    "0=1",
];

/// Parses a command line whose first words are the names of the program and of the command.
fn kind_of(command: &Command, words: &[String]) -> Result<(), clap::Error> {
    command.clone().try_get_matches_from(words).map(drop)
}

/// An option with a value that it accepts.
fn typed(command: &Command, before: &[String], option: &Arg) -> Vec<String> {
    let name = format!("--{}", option.get_long().expect("a name"));
    if !option.get_action().takes_values() {
        return vec![name];
    }
    let known = option.get_possible_values().into_iter().map(|value| value.get_name().to_owned());
    let all: Vec<String> = VALUES.iter().map(|value| (*value).to_owned()).chain(known).collect();
    let accepted = all.into_iter().map(|value| vec![format!("{name}={value}")]).find(|words| {
        let refused = kind_of(command, &[before, words].concat()).err().map(|error| error.kind());
        !matches!(refused, Some(ErrorKind::InvalidValue | ErrorKind::ValueValidation))
    });
    accepted.unwrap_or_else(|| panic!("{before:?}: no value for {name}"))
}

/// The missing options that an error names.
fn missing(error: &clap::Error) -> Vec<String> {
    match error.get(ContextKind::InvalidArg) {
        Some(ContextValue::Strings(names)) => names.clone(),
        Some(ContextValue::String(name)) => vec![name.clone()],
        _ => Vec::new(),
    }
}

fn check(root: &Command, command: &Command, names: &[String], pairs: &mut u32) {
    for inner in command.get_subcommands().filter(|inner| inner.get_name() != "help") {
        check(root, inner, &[names, &[inner.get_name().to_owned()]].concat(), pairs);
    }
    if command.get_subcommands().next().is_some() {
        return;
    }
    let is_needed = |arg: &&Arg| arg.is_positional() && arg.is_required_set();
    let shell = |arg: &Arg| arg.get_possible_values().first().map(|value| value.get_name().to_owned());
    let needed = command.get_arguments().filter(is_needed).map(|arg| shell(arg).unwrap_or("a".to_owned()));
    let mut before: Vec<String> = names.iter().cloned().chain(needed).collect();
    let of_several = |arg: &Arg| arg.get_num_args().is_some_and(|number| number.min_values() > 1);
    if command.get_arguments().any(|arg| arg.is_positional() && of_several(arg)) {
        before.push("b".to_owned());
    }
    let is_asking = |arg: &&Arg| {
        let is_flag = matches!(arg.get_action(), ArgAction::Help | ArgAction::HelpLong | ArgAction::Version);
        arg.get_long().is_none() || is_flag
    };
    let options: Vec<&Arg> = command.get_arguments().filter(|arg| !is_asking(arg)).collect();
    for option in options.iter().filter(|option| option.is_required_set()) {
        let words = typed(root, &before, option);
        before.extend(words);
    }
    let options: Vec<(&Arg, Vec<String>)> = options
        .into_iter()
        .filter(|option| !option.is_required_set())
        .map(|option| (option, typed(root, &before, option)))
        .collect();
    for (option, words) in &options {
        let alone = [&before[..], words].concat();
        let Err(error) = kind_of(root, &alone) else { continue };
        assert_eq!(error.kind(), ErrorKind::MissingRequiredArgument, "{alone:?}: {error}");
        // clap waives a requirement if the required option conflicts with a given one.
        for (other, more) in options.iter().filter(|(other, _)| other.get_id() != option.get_id()) {
            *pairs += 1;
            let name = format!("--{}", other.get_long().expect("a name"));
            let is_it = missing(&error).iter().any(|missing| missing.contains(&name));
            let both = [&alone[..], more].concat();
            assert!(is_it || kind_of(root, &both).is_err(), "{both:?}: an option without effect is accepted");
        }
    }
}

#[test]
fn no_option_waives_the_requirement_of_another() {
    let mut root = Program::hitreg().command();
    root.build();
    let mut pairs = 0;
    check(&root, &root, &["hitreg".to_owned()], &mut pairs);
    assert!(pairs > 50, "only {pairs} pairs were checked");
}
