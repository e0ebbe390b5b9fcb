//! The table of `docs/tutorials/which-job.md`: each command by level of integration, run on a log of that level.
//!
//! The level *library* is missing here. Its games are builds outside the workspace, tested in `adapters`.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::folder::{Folder, code, text, word};
use super::pucks::example;

/// A log, the options that make the game replay it, and those that make two sides differ.
struct Level {
    name: &'static str,
    log: &'static str,
    build: String,
    sides: String,
    setting: &'static str,
}

fn levels() -> [Level; 4] {
    let tanks = word(example("tanks"));
    let arena = "--b-set interpolation.lerp_ms=20";
    let of = |name, log, build: String, sides: String, setting| Level { name, log, build, sides, setting };
    let builds = format!("--a {tanks} --b {}", word(example("tanks_bug")));
    [
        of("demo", "demo.hitlog", String::new(), arena.to_owned(), "lag_compensation.enabled=true,false"),
        of("recorder", "own.hitlog", String::new(), arena.to_owned(), "lag_compensation.enabled=true,false"),
        of("build", "own.hitlog", format!("--build {tanks}"), builds, "tanks.friction=2,3"),
        of("traits", "arena.hitlog", String::new(), arena.to_owned(), "lag_compensation.enabled=true,false"),
    ]
}

/// A log of each level, and the logs of the sides of a session.
fn logs() -> Folder {
    let folder = Folder::empty();
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/openarena");
    let [capture, map, log] =
        ["duel.trace.zst", "hitreg_room.bsp", "duel.server.log"].map(|name| word(fixtures.join(name)));
    folder.done(&format!("import quake3-udp {capture} --map {map} --server-log {log} -o demo.hitlog"));
    folder.done("record synth -o arena.hitlog --seconds 6 --delay-ms 50 --loss 2%");
    let recorded = Command::new(example("tanks")).arg("record").arg(folder.path("own.hitlog")).arg("10").status();
    assert!(recorded.expect("tanks").success());
    fs::create_dir(folder.path("sides")).expect("a folder");
    super::sides::write(3.0, 2, &folder.path("sides")).expect("a session");
    folder
}

/// The commands of a row, for a level.
fn commands(row: &str, Level { name, log, build, sides, setting }: &Level) -> Vec<String> {
    let sweep = format!("sweep {log} {build} --set {setting}");
    match row {
        "`info`, `export`, `report`" => vec![
            format!("info {log}"),
            format!("export {log} --table bodies --to csv -o {name}.csv"),
            format!("report {log} -o {name}.html"),
        ],
        "`why` of a shot" => vec![format!("why {log} --at 4 {build}")],
        "`why` of a correction" => vec![format!("why {log} p0 --correction 1 {build}")],
        "`merge` of server and clients" if *name == "demo" => vec![format!("merge {log} {log} -o {name}.hitlog")],
        "`merge` of server and clients" => {
            vec![format!("merge sides/server.hitlog sides/client0.hitlog sides/client1.hitlog -o of-{name}.hitlog")]
        }
        "`verify`" => vec![format!("verify {log} {build}")],
        "`diff`, `bisect`" => vec![format!("diff {log} {sides}"), format!("bisect ticks {log} {sides}")],
        "`shrink`" => vec![format!("shrink {log} -o small-{name}.hitlog {sides}")],
        "`sweep`" => vec![sweep],
        "what-if `rejudge`" => vec![format!("{sweep} --what-if rejudge")],
        "rollback checks" => vec![format!("verify {log} {build} --rollback 64")],
        "`record synth`, what-if `rerecord`" => vec![format!("{sweep} --what-if rerecord --seeds 2")],
        _ => panic!("{row}: the test does not know this row"),
    }
}

#[test]
fn each_cell_says_what_the_command_does() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tutorials/which-job.md");
    let page = fs::read_to_string(page).expect("the page");
    let cells = |line: &str| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect::<Vec<_>>();
    let mut lines = page.lines().skip_while(|line| !line.starts_with("| command |"));
    let head = cells(lines.next().expect("the table"));
    let folder = logs();
    let (mut works, mut refused) = (0, 0);
    for row in lines.skip(1).take_while(|line| line.starts_with('|')).map(cells) {
        for level in levels() {
            let column = head.iter().position(|name| name == level.name).expect("the level's column");
            let cell = row[column].as_str();
            for command in commands(&row[0], &level) {
                let output = folder.run(&command);
                let said = format!("{} {}", text(&output.stdout), text(&output.stderr));
                let words: Vec<&str> = said.split_whitespace().collect();
                match cell {
                    "no" => {
                        assert!(code(&output) >= 125, "{cell}: {command}: {said}");
                        refused += 1;
                    }
                    "if recorded" => assert!(said.contains("the log does not record corrections"), "{command}: {said}"),
                    "if written" => assert!(said.contains("has only 0 corrections"), "{command}: {said}"),
                    "if the build can" => {
                        assert!(words.join(" ").contains("it does not know `--what-if`"), "{command}: {said}")
                    }
                    _ => {
                        assert!(code(&output) <= 1, "{cell}: {command}: {said}");
                        works += 1;
                    }
                }
            }
        }
    }
    assert!(works > 25 && refused > 10, "{works} commands work, {refused} are refused");
}
