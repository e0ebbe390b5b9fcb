//! The GitHub Actions file of the page `docs/tutorials/ci.md`: its commands as a runner runs them, and its syntax.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use super::folder::{Folder, code, text};

/// The block of the page that is a workflow.
fn workflow() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/tutorials/ci.md");
    let page = fs::read_to_string(page).expect("the page");
    let (_, block) = page.split_once("```yaml\n").expect("a workflow");
    block.split_once("```\n").expect("its end").0.to_owned()
}

/// The commands of the steps of a job. A step of hitreg's own action is its command.
fn commands_of(job: &str) -> Vec<String> {
    let workflow = workflow();
    let (_, steps) = workflow.split_once(&format!("  {job}:\n")).expect("the job");
    let steps = steps.lines().take_while(|line| line.starts_with("    "));
    let command = |line: &str| match line.trim().split_once(": ") {
        Some(("- run", command)) => Some(command.to_owned()),
        Some(("command", command)) => Some(format!("hitreg {command} --results .hitreg-results")),
        _ => None,
    };
    steps.filter_map(command).collect()
}

/// A repository with goldens, after the checkouts of a job. Its game is the built-in one, so `cargo` only copies it.
fn checked_out() -> Folder {
    let folder = Folder::empty();
    for name in ["netcode", "tools", "released"] {
        fs::create_dir(folder.path(name)).expect("a folder");
    }
    folder.done("record synth -o netcode/duel.hitlog --players 2 --seconds 6 --seed 7");
    folder.done("verify netcode --accept");
    let cargo = "#!/bin/sh\ncase \"$*\" in\n  'install --locked --path hitreg') exit ;;\n  'build --release') at=target ;;\n  \
                 *released/Cargo.toml) at=released/target ;;\n  *) exit 9 ;;\nesac\n\
                 mkdir -p $at/release && cp \"$(command -v hitreg)\" $at/release/game\n";
    fs::write(folder.path("tools/cargo"), cargo).expect("written");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        fs::set_permissions(folder.path("tools/cargo"), fs::Permissions::from_mode(0o755)).expect("executable");
    }
    folder
}

/// Runs a job's commands until one fails. Returns the exit code and the output of the last one.
#[expect(clippy::disallowed_methods, reason = "the steps use programs on the PATH")]
fn run(folder: &Folder, job: &str) -> (i32, String) {
    let hitreg = Path::new(env!("CARGO_BIN_EXE_hitreg")).parent().expect("a folder").to_owned();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let paths = [folder.path("tools"), hitreg].into_iter().chain(std::env::split_paths(&path));
    let path = std::env::join_paths(paths).expect("a PATH");
    let mut last = (0, String::new());
    for command in commands_of(job) {
        let mut shell = Command::new("bash");
        shell.args(["-e", "-o", "pipefail", "-c", &command]).current_dir(&folder.dir).env("PATH", &path);
        let output = shell.env_remove("GITHUB_STEP_SUMMARY").stdin(Stdio::null()).output().expect("a shell");
        last = (code(&output), format!("{command}\n{}{}", text(&output.stdout), text(&output.stderr)));
        if last.0 != 0 {
            break;
        }
    }
    last
}

#[test]
fn goldens_pass_until_a_golden_differs() {
    let folder = checked_out();
    let (code, output) = run(&folder, "goldens");
    assert!(code == 0 && output.contains("1 log: 1 ok"), "{code}: {output}");
    let golden = folder.path("netcode/duel.golden");
    let changed = fs::read_to_string(&golden).expect("a golden").replacen("missed", "hit p1 chest 12", 1);
    fs::write(golden, changed).expect("written");
    let (code, output) = run(&folder, "goldens");
    assert!(code == 1 && output.contains("the golden differs"), "{code}: {output}");
    assert!(folder.path("report.xml").is_file(), "the step that uploads it finds the report");
}

#[test]
fn nightly_fails_over_its_threshold() {
    let folder = checked_out();
    let (code, output) = run(&folder, "nightly");
    assert!(code == 0 && output.contains("--max hits-changed=1%"), "{code}: {output}");
    // The release lacks lag compensation.
    let old = r#"exec hitreg "$@" --set lag_compensation.enabled=false"#;
    let replaced = format!("[ $at = target ] || printf '#!/bin/sh\\n{old}\\n' >$at/release/game\n");
    let script = fs::read_to_string(folder.path("tools/cargo")).expect("a script") + &replaced;
    fs::write(folder.path("tools/cargo"), script).expect("written");
    let (code, output) = run(&folder, "nightly");
    assert!(code == 1 && output.contains("hits-changed"), "{code}: {output}");
}

#[test]
fn actionlint_accepts_the_workflow() {
    let is_there = Command::new("actionlint").arg("-version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    if !is_there.is_ok_and(|status| status.success()) {
        return super::note::skipped("actionlint is not installed");
    }
    // actionlint reads the action that a step uses from the repository of the workflow.
    let folder = Folder::empty();
    for name in [".git", ".github/workflows", "hitreg"] {
        fs::create_dir_all(folder.path(name)).expect("a folder");
    }
    fs::copy(Path::new(env!("CARGO_MANIFEST_DIR")).join("action.yml"), folder.path("hitreg/action.yml"))
        .expect("copied");
    fs::write(folder.path(".github/workflows/netcode.yml"), workflow()).expect("written");
    let output = Command::new("actionlint").current_dir(&folder.dir).output().expect("actionlint");
    assert!(output.status.success(), "{}{}", text(&output.stdout), text(&output.stderr));
}
