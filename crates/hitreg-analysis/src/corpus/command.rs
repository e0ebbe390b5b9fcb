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
    if log.command == "diff" {
        let command = log.next.split(" --why ").next().unwrap_or_default();
        return command.replacen(" diff ", " report ", 1);
    }
    let program = log.next.split(' ').next().filter(|program| !program.is_empty()).unwrap_or("hitreg");
    let words = ["report", &log.log].map(str::to_owned).into_iter();
    let build = (log.build != THIS_BUILD).then(|| ["--b".to_owned(), log.build.clone(), NO_CACHE.to_owned()]);
    let words: Vec<String> = words.chain(build.into_iter().flatten()).collect();
    format!("{program} {}", command_line(&words))
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
        let names = page_names(["day/a.hitlog", "night/a.hitlog", "a-2.hitlog", "c"].into_iter());
        assert_eq!(names, ["a.html", "a-2.html", "a-2-2.html", "c.html"]);
    }
}
