//! `merge` of files, which it reads side by side, and of what comes through a pipe, which it has to have in memory.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use super::folder::{Folder, code, text};
use super::sides;

/// Merges with the server's log through a pipe.
fn piped(folder: &Folder, line: &str) -> Value {
    let server = fs::read(folder.path("server.hitlog")).expect("a log");
    let mut child = folder
        .command(&format!("{line} --format json"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("hitreg starts");
    let mut pipe = child.stdin.take().expect("a pipe");
    let fed = std::thread::spawn(move || std::io::Write::write_all(&mut pipe, &server));
    let output = child.wait_with_output().expect("it ends");
    fed.join().expect("a thread").expect("all of it is read");
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON alone on stdout")
}

/// What is said of two merged logs, but for their names.
fn alike(mut one: Value, mut other: Value) {
    for said in [&mut one, &mut other] {
        said["path"] = Value::Null;
    }
    assert_eq!(one, other);
}

#[test]
fn logs_that_are_read_side_by_side_make_the_same_log_as_in_memory() {
    let folder = Folder::empty();
    sides::write(9.0, 3, folder.dir.path()).expect("a session");
    let clients = "client0.hitlog client1.hitlog client2.hitlog";
    let streamed = folder.json(&format!("merge {clients} server.hitlog -o a.hitlog"));
    let in_memory = piped(&folder, &format!("merge {clients} - -o b.hitlog"));
    let log = |name: &str| fs::read(folder.path(name)).expect("a log");
    assert!(log("a.hitlog") == log("b.hitlog"));
    assert!(streamed["ticks"].as_u64().is_some_and(|ticks| ticks > 500) && streamed["ends_early"].is_null());
    assert_eq!(streamed["cut_off"], serde_json::json!([]));
    alike(streamed, in_memory);
    assert!(folder.done("verify a.hitlog").contains("1 ok"));

    // One log is cut off, and one never came.
    let whole = log("client1.hitlog");
    fs::write(folder.path("client1.hitlog"), &whole[..whole.len() / 2]).expect("written");
    let streamed = folder.json("merge client0.hitlog client1.hitlog server.hitlog -o c.hitlog");
    let in_memory = piped(&folder, "merge client0.hitlog client1.hitlog - -o d.hitlog");
    assert!(log("c.hitlog") == log("d.hitlog"));
    assert_eq!(streamed["cut_off"], serde_json::json!(["client1.hitlog"]));
    assert_eq!(streamed["ends_early"]["player"], 1);
    assert_eq!(streamed["clients"][2]["path"], Value::Null);
    alike(streamed, in_memory);
    assert!(folder.done("verify c.hitlog").contains("1 ok"));
}

/// The log of a server alone says what it says, and not that all was lost on the way to clients that are not in it.
#[test]
fn one_side_alone_tells_what_it_knows() {
    let folder = Folder::empty();
    sides::write(6.0, 2, folder.dir.path()).expect("a session");
    let usercmds = folder.json("info server.hitlog")["usercmds"].as_u64().expect("a number");
    let said = folder.json("replay server.hitlog");
    assert!(usercmds > 100 && said["exercised"]["usercmds"] == usercmds, "{said:#}");
    let down = &said["network"]["down"];
    assert!(down["sent"].as_u64() > Some(10) && down["lost"].is_null(), "{said:#}");
    let shots = &said["shots"];
    assert!(shots["fired"].as_u64() > Some(0) && shots["predicted"] == 0, "{said:#}");
    let page = folder.done("replay server.hitlog");
    for text in ["the log has no packets of clients", "arrivals not known", "no shot was predicted"] {
        assert!(page.contains(text), "{page}");
    }
    assert_eq!(folder.json("verify server.hitlog")["logs"][0]["verdict"], "same");
}
