//! Commands in results, as a shell takes them.

use super::rows::LogRow;
use hitreg_log::store::shown::shell_word;

/// A command line as a shell takes it back.
pub fn command_line(words: &[String]) -> String {
    words.iter().map(|word| shell_word(word)).collect::<Vec<_>>().join(" ")
}

/// The command that writes the report page of a log that differs, up to `-o FILE`: both sides of `diff`, or the replay
/// that `verify` judged.
pub(super) fn report_command(log: &LogRow) -> String {
    let (program, arguments) = split_program(&log.next);
    if log.command == "diff" {
        let arguments = arguments.split(" --why ").next().unwrap_or_default();
        return format!("{program}{}", arguments.replacen(" diff ", " report ", 1));
    }
    let program = if program.is_empty() { "hitreg" } else { program };
    let words = ["report", &log.log].map(str::to_owned).into_iter();
    let build = (log.build != THIS_BUILD).then(|| ["--b".to_owned(), log.build.clone(), NO_CACHE.to_owned()]);
    let words: Vec<String> = words.chain(build.into_iter().flatten()).collect();
    format!("{program} {}", command_line(&words))
}

/// Splits a command line after its first word, which may be quoted.
fn split_program(line: &str) -> (&str, &str) {
    let (mut is_quoted, mut is_escaped) = (false, false);
    let end = line.find(|letter| {
        let was_escaped = is_escaped;
        is_escaped = letter == '\\' && !is_quoted && !was_escaped;
        is_quoted ^= letter == '\'' && !was_escaped;
        letter == ' ' && !is_quoted && !was_escaped
    });
    line.split_at(end.unwrap_or(line.len()))
}

/// The option with which every build runs again. `verify` never takes the trace of a build from the cache, so its report
/// page does not either.
pub const NO_CACHE: &str = "--no-cache";

/// The name of the program that judged, as a build.
pub const THIS_BUILD: &str = "this build";

/// A name for the report page of each log, from the names of the logs.
pub(super) fn page_names<'a>(logs: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for log in logs {
        let name = log.rsplit(['/', '\\']).next().unwrap_or(log);
        let name = name.strip_suffix(".hitlog").unwrap_or(name);
        let numbered = (1..).map(|number| match number {
            1 => format!("{name}.html"),
            number => format!("{name}-{number}.html"),
        });
        names.extend(numbered.into_iter().find(|name| !names.contains(name)));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_quoted_for_a_shell() {
        let words = ["hitreg", "diff", "a b.hitlog", "--b-set", "x=1", "it's"].map(str::to_owned);
        assert_eq!(command_line(&words), "hitreg diff 'a b.hitlog' --b-set x=1 'it'\\''s'");
    }

    #[test]
    fn each_differing_log_has_a_report() {
        let of = |command: &str, next: &str, build: &str| {
            let [command, next, build] = [command, next, build].map(str::to_owned);
            report_command(&LogRow { log: "a b.hitlog".to_owned(), command, next, build, ..LogRow::default() })
        };
        let diff = of("diff", "hitreg diff 'a b.hitlog' --b ./game --why 'p1#3'", "./game");
        assert_eq!(diff, "hitreg report 'a b.hitlog' --b ./game");
        assert_eq!(of("verify", "hitreg bisect ticks a b.hitlog", THIS_BUILD), "hitreg report 'a b.hitlog'");
        assert_eq!(of("verify", "", "my game"), "hitreg report 'a b.hitlog' --b 'my game' --no-cache");
        let program = r"'/my games/it'\''s diff a'";
        assert_eq!(of("diff", &format!("{program} diff a --why 1"), "x"), format!("{program} report a"));
        let verified = of("verify", &format!("{program} verify a"), THIS_BUILD);
        assert_eq!(verified, format!("{program} report 'a b.hitlog'"));
        let names = page_names(["day/a.hitlog", "night/a.hitlog", "a-2.hitlog", "c"].into_iter());
        assert_eq!(names, ["a.html", "a-2.html", "a-2-2.html", "c.html"]);
    }
}
