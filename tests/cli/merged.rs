//! `merge` of files, which it streams, and of pipes, which it reads into memory.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use super::folder::{Folder, code, text};
use super::sides;

/// Merges, with the server's log through a pipe.
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

/// Compares the reports of two merges, except for the paths.
fn assert_alike(mut one: Value, mut other: Value) {
    for output in [&mut one, &mut other] {
        output["path"] = Value::Null;
    }
    assert_eq!(one, other);
}

#[test]
fn streamed_logs_merge_as_logs_in_memory_do() {
    let folder = Folder::empty();
    sides::write(9.0, 3, folder.dir.path()).expect("a session");
    let clients = "client0.hitlog client1.hitlog client2.hitlog";
    let streamed = folder.json(&format!("merge {clients} server.hitlog -o a.hitlog"));
    let in_memory = piped(&folder, &format!("merge {clients} - -o b.hitlog"));
    let log = |name: &str| fs::read(folder.path(name)).expect("a log");
    assert!(log("a.hitlog") == log("b.hitlog"));
    assert!(streamed["ticks"].as_u64().is_some_and(|ticks| ticks > 500) && streamed["ends_early"].is_null());
    assert_eq!(streamed["cut_off"], serde_json::json!([]));
    assert_alike(streamed, in_memory);
    assert!(folder.done("verify a.hitlog").contains("1 ok"));

    // One log is truncated and one is missing.
    let whole = log("client1.hitlog");
    fs::write(folder.path("client1.hitlog"), &whole[..whole.len() / 2]).expect("written");
    let streamed = folder.json("merge client0.hitlog client1.hitlog server.hitlog -o c.hitlog");
    let in_memory = piped(&folder, "merge client0.hitlog client1.hitlog - -o d.hitlog");
    assert!(log("c.hitlog") == log("d.hitlog"));
    assert_eq!(streamed["cut_off"], serde_json::json!(["client1.hitlog"]));
    assert_eq!(streamed["ends_early"]["player"], 1);
    assert_eq!(streamed["clients"][2]["path"], Value::Null);
    assert_alike(streamed, in_memory);
    assert!(folder.done("verify c.hitlog").contains("1 ok"));
}

/// A page about the server's own log reports that log alone. It does not report packets to clients as lost.
#[test]
fn a_servers_own_log_shows_only_what_it_contains() {
    let folder = Folder::empty();
    sides::write(6.0, 2, folder.dir.path()).expect("a session");
    let usercmds = folder.json("info server.hitlog")["usercmds"].as_u64().expect("a number");
    let output = folder.json("replay server.hitlog");
    assert!(usercmds > 100 && output["exercised"]["usercmds"] == usercmds, "{output:#}");
    let down = &output["network"]["down"];
    assert!(down["sent"].as_u64() > Some(10) && down["lost"].is_null(), "{output:#}");
    let shots = &output["shots"];
    assert!(shots["fired"].as_u64() > Some(0) && shots["predicted"] == 0, "{output:#}");
    let page = folder.done("replay server.hitlog");
    for text in ["the log has no packets of clients", "arrivals not known", "no shot was predicted"] {
        assert!(page.contains(text), "{page}");
    }
    assert_eq!(folder.json("verify server.hitlog")["logs"][0]["verdict"], "same");
}
