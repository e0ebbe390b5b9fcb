//! A server and clients as separate processes over real sockets. Their logs merge into sessions that replay bit for
//! bit, however a process ends.

#![expect(clippy::disallowed_types, reason = "the test needs a free port")]
#![cfg(unix)]

use std::collections::BTreeSet;
use std::net::UdpSocket;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use hitreg::log::{WriterOptions, write_session};
use hitreg::record::{PlayerRecords, Session, leave_times};
use hitreg::store;
use hitreg::units::Micros;
use serde_json::Value;
use tempfile::TempDir;

use super::folder::words;

/// A bad link: 80 ms, 15 ms jitter, 3 % loss, reordering.
const FAR: &str = "--delay-ms 80 --jitter-ms 15 --loss 3% --reorder 2% --duplicate 1%";
/// The most that a kill may lose: one second, and the time for a write on a busy machine.
const LOST_TIME_MAX: Micros = Micros::from_ms(1_500);

/// A folder for one session.
pub(crate) struct SessionFolder {
    dir: TempDir,
    pub(crate) port: u16,
}

impl SessionFolder {
    /// `None` without sockets.
    pub(crate) fn new() -> Option<SessionFolder> {
        let Ok(socket) = UdpSocket::bind("127.0.0.1:0") else {
            crate::note::skipped("no UDP socket is to be had here");
            return None;
        };
        let port = socket.local_addr().expect("its address").port();
        Some(SessionFolder { dir: TempDir::new().expect("a temporary folder"), port })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_hitreg"));
        command.args(words(line)).current_dir(&self.dir).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn start(&self, line: &str) -> Child {
        self.command(line).spawn().expect("hitreg starts")
    }

    pub(crate) fn serve(&self, options: &str) -> Child {
        let port = self.port;
        self.start(&format!("serve -o server.hitlog --bind 127.0.0.1 --port {port} --seed 5 {options}"))
    }

    pub(crate) fn join(&self, number: u16, options: &str) -> Child {
        self.start(&format!("join 127.0.0.1:{} -o client{number}.hitlog {options}", self.port))
    }

    fn run(&self, line: &str) -> Output {
        self.command(line).output().expect("hitreg starts")
    }

    pub(crate) fn done(&self, line: &str) -> Value {
        let output = self.run(&format!("{line} --format json"));
        assert_eq!(output.status.code(), Some(0), "{line}: {}{}", text(&output.stderr), text(&output.stdout));
        serde_json::from_slice(&output.stdout).expect("JSON alone on stdout")
    }

    fn refused(&self, line: &str) -> String {
        let output = self.run(line);
        assert_eq!(output.status.code(), Some(128), "{line}: {}", text(&output.stderr));
        text(&output.stderr)
    }

    fn log(&self, name: &str) -> Session {
        store::read_log(&self.path(name)).expect("a whole log")
    }

    /// Checks that a merged session replays bit for bit. Returns its length.
    pub(crate) fn verified(&self, name: &str) -> Micros {
        let verified = self.done(&format!("verify {name}"));
        let session = self.log(name);
        assert_eq!(verified["verdict"], "same", "{verified}");
        assert_eq!(verified["logs"][0]["hashes_compared"], session.ticks.len());
        session.ticks.last().map_or(Micros::ZERO, |last| last.at - session.ticks[0].at)
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn end(child: Child) -> (Option<i32>, String) {
    let output = child.wait_with_output().expect("it was started");
    (output.status.code(), text(&output.stderr))
}

pub(crate) fn assert_done(child: Child) {
    let (code, output) = end(child);
    assert_eq!(code, Some(0), "{output}");
}

/// The advice of `join` starts a server where it looked for one.
#[test]
fn join_without_a_server_names_the_port() {
    let Some(folder) = SessionFolder::new() else { return };
    let line = format!("join 127.0.0.1:{} -o a.hitlog", folder.port);
    let output = folder.command(&line).output().expect("hitreg runs");
    let message = String::from_utf8_lossy(&output.stderr);
    let advice = format!("`hitreg serve -o server.hitlog --port {}`", folder.port);
    assert!(output.status.code() == Some(128) && message.contains(&advice), "{message}");
}

/// A server gives up when players are missing, and writes no log.
#[test]
fn a_server_waits_for_players_for_the_given_time() {
    let Some(place) = SessionFolder::new() else { return };
    let alone = place.serve("--players 2 --seconds 1 --wait 0.2");
    let (code, said) = end(alone);
    assert!(code == Some(128) && said.contains("0 of 2 players are ready"), "{said}");
    let server = place.serve("--players 2 --seconds 1 --wait 4");
    let client = place.join(0, "");
    let (code, said) = end(server);
    assert!(code == Some(128) && said.contains("1 of 2 players are ready") && said.contains("--wait"), "{said}");
    let (code, said) = end(client);
    assert!(code == Some(128) && said.contains("ended the session before it began"), "{said}");
    assert!(!place.path("server.hitlog").exists() && !place.path("server.hitlog.part").exists());
}

/// A client's player number, which depends on the order of arrival.
fn player_of(client: &Session) -> usize {
    usize::from(client.header.side.and_then(|side| side.player).expect("a client's log").0)
}

/// The time between the server's first and last arrival.
fn time_at_server(records: &PlayerRecords) -> Micros {
    records.reached.last().expect("something arrived").at - records.reached[0].at
}

/// The time between the client's first and last arrival.
fn time_at_client(records: &PlayerRecords) -> Micros {
    records.received.last().expect("something arrived").at - records.received[0].at
}

/// Runs a server and eight clients over bad links. Their merged logs must replay bit for bit.
fn run_eight_clients(seconds: f64) {
    let Some(place) = SessionFolder::new() else { return };
    let server = place.serve(&format!("--players 8 --seconds {seconds}"));
    let clients: Vec<Child> = (0..8).map(|number| place.join(number, FAR)).collect();
    clients.into_iter().for_each(assert_done);
    assert_done(server);
    let logs: Vec<String> = (0..8).map(|number| format!("client{number}.hitlog")).collect();
    // Any order of clients, then the server.
    let merged = place.done(&format!("merge {} server.hitlog -o session.hitlog", logs.join(" ")));
    assert_eq!(merged["ends_early"], Value::Null);
    for client in merged["clients"].as_array().expect("a list") {
        // Half of the shortest round trip, which is two delays of 80 ms and jitter.
        let error_us = client["error_us"].as_i64().expect("a number");
        assert!((80_000..120_000).contains(&error_us), "{client}");
    }
    assert!(place.verified("session.hitlog").as_s_f64() > seconds - 0.1);
    let session = place.log("session.hitlog");
    assert_eq!(session.header.side, None);
    for player in &session.players {
        assert!(player.frames.len() as f64 > 40.0 * seconds && player.received.len() as f64 > 10.0 * seconds);
        assert!(
            player.sent.len()
                > player.reached.iter().map(|a| a.number).collect::<std::collections::BTreeSet<_>>().len()
        );
    }
}

#[test]
fn a_server_and_eight_clients_merge_into_a_session_that_replays_bit_for_bit() {
    run_eight_clients(3.0);
}

#[test]
#[ignore = "takes half a minute"]
fn half_a_minute_of_eight_clients_replays_bit_for_bit() {
    run_eight_clients(30.0);
}

/// The events that a client reports.
fn client_events(child: Child) -> (u64, BTreeSet<(u64, bool, String)>) {
    let output = child.wait_with_output().expect("it was started");
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    let joined: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let lines = joined["heard"].as_array().expect("a list").iter().map(|message| {
        let text = message["text"].as_str().expect("a text").to_owned();
        (message["player"].as_u64().expect("who"), message["in_character"].as_bool().expect("how"), text)
    });
    let heard: Vec<_> = lines.collect();
    let once: BTreeSet<_> = heard.iter().cloned().collect();
    assert_eq!(once.len(), heard.len(), "nothing is heard twice: {heard:?}");
    (joined["answered"].as_u64().expect("a number"), once)
}

#[test]
fn players_talk_in_and_out_of_character() {
    let Some(place) = SessionFolder::new() else { return };
    let server = place.serve("--players 2 --seconds 4");
    let lossy = "--loss 30% --delay-ms 20 --format json";
    let first = place.join(0, &format!("{lossy} --say hello --say there --speak hail"));
    let second = place.join(1, &format!("{lossy} --say hi"));
    let ((first_answers, first), (second_answers, second)) = (client_events(first), client_events(second));
    assert_done(server);
    assert_eq!((first_answers, second_answers), (3, 1));
    assert_eq!(first, second, "everybody hears everything");
    let whole: Vec<(bool, &str)> = first.iter().map(|(_, how, text)| (*how, text.as_str())).collect();
    let by_text: BTreeSet<(bool, &str)> = whole.iter().copied().collect();
    assert_eq!(by_text, BTreeSet::from([(false, "hello"), (false, "hi"), (false, "there"), (true, "hail")]));
    let speakers = |texts: &[&str]| -> BTreeSet<u64> {
        first.iter().filter(|(.., text)| texts.contains(&&**text)).map(|(player, ..)| *player).collect()
    };
    let (one, other) = (speakers(&["hello", "there", "hail"]), speakers(&["hi"]));
    assert!(one.len() == 1 && other.len() == 1 && one != other, "{one:?} {other:?}");
}

/// Chat takes neither rate nor room of snapshots. No log holds it, so the logs replay with the snapshots that were sent.
#[test]
fn chat_changes_no_snapshot() {
    let Some(place) = SessionFolder::new() else { return };
    let server = place.serve("--players 4 --seconds 5 --set server.rate_bytes_per_s=2500 --set server.update_hz=64");
    let lines: String = (0..7).map(|line| format!(" --say {line}{}", "x".repeat(120))).collect();
    let clients: Vec<Child> = (0..4).map(|number| place.join(number, &format!("--format json{lines}"))).collect();
    for client in clients {
        let (answered, heard) = client_events(client);
        assert_eq!((answered, heard.len()), (7, 28));
    }
    assert_done(server);
    place.verified("server.hitlog");
    place.done("merge server.hitlog client0.hitlog client1.hitlog client2.hitlog client3.hitlog -o session.hitlog");
    place.verified("session.hitlog");
}

/// The snapshots per second that a player received.
fn updates_per_s(log: &Session, player: usize) -> f64 {
    let snapshots = &log.players[player].snapshots;
    let span = snapshots.last().expect("some").at - snapshots[0].at;
    (snapshots.len() - 1) as f64 / span.as_s_f64()
}

#[test]
fn each_player_requests_its_own_update_rate() {
    let Some(place) = SessionFolder::new() else { return };
    let server = place.serve("--players 3 --seconds 4 --set server.update_hz=64 --max-rate 30000");
    let asks = [
        "--update-hz 20 --set client.cmd_hz=30 --rate 90000 --format json",
        "--format json",
        "--update-hz 900 --lerp-ms 40 --delay-ms 30 --loss 3% --format json",
    ];
    let clients: Vec<Child> = (0..).zip(asks).map(|(number, asks)| place.join(number, asks)).collect();
    let grants = clients.into_iter().map(|client| {
        let output = client.wait_with_output().expect("it was started");
        assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
        serde_json::from_slice::<Value>(&output.stdout).expect("JSON")["granted"].clone()
    });
    let grants: Vec<Value> = grants.collect();
    assert_done(server);
    let granted =
        |key: &str, asked: &str, granted: &str| serde_json::json!({"key": key, "asked": asked, "granted": granted});
    let slow = [
        granted("server.update_hz", "20", "20"),
        granted("server.rate_bytes_per_s", "90000", "30000"),
        granted("client.cmd_hz", "30", "30"),
    ];
    let fast = [granted("server.update_hz", "900", "64"), granted("interpolation.lerp_ms", "40", "40")];
    assert_eq!(grants, [serde_json::json!(slow), serde_json::json!([]), serde_json::json!(fast)]);

    // The server's log has the settings of all players. A client's log has its own.
    let server = place.log("server.hitlog");
    let logs = [0, 1, 2].map(|number| place.log(&format!("client{number}.hitlog")));
    let players = [0, 1, 2].map(|number: usize| player_of(&logs[number]));
    let own = |log: &Session| -> BTreeSet<String> {
        let own =
            log.header.settings.iter().filter(|(key, _)| key.starts_with(['p']) && !key.starts_with("prediction"));
        own.map(|(key, value)| format!("{key}={value}")).collect()
    };
    let of_slow = ["server.update_hz=20", "server.rate_bytes_per_s=30000", "client.cmd_hz=30"]
        .map(|own| format!("p{}.{own}", players[0]));
    // The server's limit also holds for players that do not ask.
    let of_any = [format!("p{}.server.rate_bytes_per_s=30000", players[1])];
    let of_fast = ["server.update_hz=64", "server.rate_bytes_per_s=30000", "interpolation.lerp_ms=40"]
        .map(|own| format!("p{}.{own}", players[2]));
    assert_eq!(own(&logs[0]), BTreeSet::from(of_slow.clone()));
    assert_eq!(own(&logs[1]), BTreeSet::from(of_any.clone()));
    assert_eq!(own(&server), of_slow.into_iter().chain(of_any).chain(of_fast).collect());

    place.done("merge server.hitlog client0.hitlog client1.hitlog client2.hitlog -o session.hitlog");
    assert!(place.verified("session.hitlog") > Micros::from_ms(3_500));
    let session = place.log("session.hitlog");
    let rates = players.map(|player| updates_per_s(&session, player));
    for (rate, wanted) in rates.into_iter().zip([20.0, 64.0, 64.0]) {
        assert!((rate / wanted - 1.0).abs() < 0.1, "{rates:?}");
    }
    let frames = players.map(|player| session.players[player].frames.len());
    assert!(frames[0] * 2 < frames[1] + frames[0] / 10, "{frames:?} usercmds at 30, 64 and 64 Hz");
    // Without its log, a player replays from the server's records, with its own update rate.
    place.done("merge server.hitlog client1.hitlog client2.hitlog -o without.hitlog");
    place.verified("without.hitlog");
    // A client log with settings that the server did not grant is not of this session.
    let mut liar = place.log("client0.hitlog");
    let pair = liar.header.settings.iter_mut().find(|(key, _)| key.ends_with(".server.update_hz") && key.len() > 16);
    pair.expect("its own").1 = "64".to_owned();
    let bytes = write_session(Vec::new(), &liar, WriterOptions::whole()).expect("memory takes all");
    std::fs::write(place.path("liar.hitlog"), bytes).expect("a log");
    assert!(place.refused("merge server.hitlog liar.hitlog -o none").contains("server.update_hz is 64"));
}

#[test]
fn impossible_requests_are_refused_before_connecting() {
    let Some(place) = SessionFolder::new() else { return };
    let cases = [
        ("--update-hz 0", "`server.update_hz` cannot be `0`"),
        ("--update-hz NaN", "`server.update_hz` cannot be `NaN`"),
        ("--rate=-5", "`server.rate_bytes_per_s` cannot be `-5`"),
        ("--set server.tick_hz=20", "`server.tick_hz` is the same for all players"),
        ("--set client.cmd_hz", "has no value: write KEY=VALUE"),
    ];
    for (asks, sentence) in cases {
        let output = place.refused(&format!("join 127.0.0.1:{} -o none.hitlog {asks}", place.port));
        assert!(output.contains(sentence), "{asks}: {output}");
    }
    assert!(!place.path("none.hitlog.part").exists() && !place.path("none.hitlog").exists());
    // A server checks the output path before it waits for players.
    std::fs::write(place.path("server.hitlog.part"), "a killed one's").expect("a file");
    assert!(place.refused("serve -o server.hitlog --port 0").contains("server.hitlog.part"));
}

#[test]
fn logs_of_one_side_are_named_and_a_clients_log_replays_open_loop() {
    let Some(place) = SessionFolder::new() else { return };
    let server = place.serve("--players 1 --seconds 2");
    assert_done(place.join(0, FAR));
    assert_done(server);
    assert_eq!(place.done("info server.hitlog")["side"], "server");
    assert_eq!(place.done("info client0.hitlog")["side"], "client of player 0");
    // A server's result depends only on what it received.
    place.verified("server.hitlog");
    let replayed = place.done("replay server.hitlog");
    assert_eq!(replayed["mode"], "closed", "{replayed}");
    assert_eq!(place.run("diff server.hitlog --b-set lag_compensation.max_unlag_ms=300").status.code(), Some(0));
    assert!(place.refused("replay client0.hitlog --mode closed").contains("hitreg merge"));
    assert!(place.refused("merge client0.hitlog -o none").contains("none of these logs is the server's"));
    let alone = place.done("replay client0.hitlog");
    assert_eq!(alone["mode"], "open");
    assert!(alone["prediction"]["checked"].as_u64() > Some(10), "{alone}");
    // A client's clock does not affect its pipeline: the result equals that of the merged session.
    place.done("merge server.hitlog client0.hitlog -o session.hitlog");
    let merged = place.done("replay session.hitlog");
    let of = |replayed: &Value, key: &str| replayed["prediction"][key].clone();
    assert_eq!(of(&merged, "checked"), of(&alone, "checked"));
    assert_eq!(of(&merged, "exact"), of(&alone, "exact"));
}

#[test]
fn a_killed_server_loses_at_most_a_second() {
    let Some(place) = SessionFolder::new() else { return };
    let mut server = place.serve("--players 2 --seconds 60");
    let clients = [0, 1].map(|number| place.join(number, "--delay-ms 20 --jitter-ms 5 --loss 2%"));
    std::thread::sleep(Duration::from_secs(4));
    server.kill().expect("it runs");
    server.wait().expect("it was killed");
    for client in clients {
        let (code, output) = end(client);
        assert_eq!(code, Some(128));
        assert!(output.contains("is gone: no packet for 5 seconds"), "{output}");
        assert!(output.contains("the recording up to the error is in client"), "{output}");
    }
    place.done("recover server.hitlog.part -o server.hitlog");
    let merged = place.done("merge server.hitlog client0.hitlog client1.hitlog -o session.hitlog");
    // The clients recorded until they timed out.
    assert!(merged["ends_early"].is_object() && merged["ends_early"]["player"].is_null(), "{merged:#}");
    let heard = [0, 1].map(|number| place.log(&format!("client{number}.hitlog"))).map(|client| {
        let player = player_of(&client);
        time_at_client(&client.players[player])
    });
    let heard = heard.into_iter().max().expect("two clients");
    assert!(heard > Micros::from_s(2), "{heard:?}");
    assert!(place.verified("session.hitlog") > heard - LOST_TIME_MAX);
}

#[test]
fn a_killed_client_loses_at_most_a_second() {
    let Some(place) = SessionFolder::new() else { return };
    let server = place.serve("--players 2 --seconds 5");
    let mut killed = place.join(0, "--delay-ms 20 --jitter-ms 5 --loss 2%");
    let stays = place.join(1, "");
    std::thread::sleep(Duration::from_secs(4));
    killed.kill().expect("it runs");
    killed.wait().expect("it was killed");
    assert_done(stays);
    assert_done(server);
    // `merge` reads a truncated log up to its end, with the same result as for the recovered log.
    let merged = place.done("merge server.hitlog client0.hitlog.part client1.hitlog -o session.hitlog");
    place.done("recover client0.hitlog.part -o client0.hitlog");
    place.done("merge server.hitlog client0.hitlog client1.hitlog -o again.hitlog");
    assert_eq!(place.log("session.hitlog"), place.log("again.hitlog"));
    let player = player_of(&place.log("client0.hitlog"));
    assert_eq!(merged["ends_early"]["player"], player);
    assert_eq!(merged["cut_off"], serde_json::json!(["client0.hitlog.part"]));
    let heard = time_at_server(&place.log("server.hitlog").players[player]);
    assert!(heard > Micros::from_s(1), "{heard:?}");
    assert!(place.verified("session.hitlog") > heard - LOST_TIME_MAX);
}

/// What the server sent meanwhile waits in the socket.
#[cfg(unix)]
#[test]
fn a_client_stopped_for_six_seconds_goes_on() {
    let Some(place) = SessionFolder::new() else { return };
    let server = place.serve("--players 1 --seconds 10");
    let client = place.join(0, "");
    let signal = |name: &str| {
        let mut kill = Command::new("kill");
        assert!(kill.args([name, &client.id().to_string()]).status().expect("kill runs").success());
    };
    std::thread::sleep(Duration::from_secs(2));
    signal("-STOP");
    std::thread::sleep(Duration::from_secs(6));
    signal("-CONT");
    assert_done(client);
    assert_done(server);
    place.done("merge server.hitlog client0.hitlog -o session.hitlog");
    assert!(place.verified("session.hitlog") > Micros::from_s(9));
}

/// A client that was killed before the session began leaves its place to another.
#[test]
fn a_client_killed_while_waiting_loses_its_place() {
    let Some(place) = SessionFolder::new() else { return };
    let server = place.serve("--players 2 --seconds 1");
    let mut killed = place.join(0, "");
    std::thread::sleep(Duration::from_secs(1));
    killed.kill().expect("it runs");
    killed.wait().expect("it was killed");
    std::thread::sleep(Duration::from_millis(6_500));
    let clients = [1, 2].map(|number| place.join(number, ""));
    clients.into_iter().for_each(assert_done);
    assert_done(server);
    place.done("merge server.hitlog client1.hitlog client2.hitlog -o session.hitlog");
    place.verified("session.hitlog");
}

/// Before the session begins, there is nothing to record, and the same command can run again.
#[test]
fn ctrl_c_before_the_session_begins_leaves_no_log() {
    let Some(place) = SessionFolder::new() else { return };
    let interrupted = |children: Vec<Child>| {
        std::thread::sleep(Duration::from_secs(1));
        for child in &children {
            let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("there is kill");
            assert!(killed.success());
        }
        for child in children {
            let output = child.wait_with_output().expect("it was started");
            let (out, error) = (text(&output.stdout), text(&output.stderr));
            assert_eq!(output.status.code(), Some(130), "{error}");
            assert!(out.is_empty() && error.ends_with("error: interrupted\n"), "{out}{error}");
        }
        let logs = ["server", "client0"].map(|side| place.path(&format!("{side}.hitlog")));
        let left = |log: &PathBuf| log.exists() || log.with_extension("hitlog.part").exists();
        assert!(!logs.iter().any(left), "{logs:?}");
    };
    interrupted(vec![place.join(0, "")]);
    interrupted(vec![place.serve("--players 2"), place.join(0, "")]);
}

#[test]
fn ctrl_c_ends_each_side_with_a_complete_log() {
    let Some(place) = SessionFolder::new() else { return };
    let server = place.serve("--players 2 --seconds 60 --format json");
    let clients = [0, 1].map(|number| place.join(number, ""));
    std::thread::sleep(Duration::from_secs(3));
    let interrupt = |child: &Child| {
        let killed = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("there is kill");
        assert!(killed.success());
    };
    let [leaves, stays] = clients;
    interrupt(&leaves);
    assert_done(leaves);
    std::thread::sleep(Duration::from_secs(1));
    interrupt(&server);
    let server = server.wait_with_output().expect("it was started");
    assert_eq!(server.status.code(), Some(0), "{}", text(&server.stderr));
    assert_done(stays);
    let report: Value = serde_json::from_slice(&server.stdout).expect("JSON alone on stdout");
    let count = |of: &str, name: &str| report["server"][of][name].as_u64().expect(name);
    assert!(count("snapshots", "sent") <= count("sent", "datagrams"), "{report}");
    assert_eq!(report["clients"], Value::Null, "a server knows only what arrived");
    assert!(count("snapshots", "whole") <= count("snapshots", "sent"), "{report}");
    // The log has only the snapshots that were sent, and says when the player left.
    let players = place.log("server.hitlog").players;
    let recorded: usize = players.iter().map(|player| player.snapshots.len()).sum();
    assert_eq!(recorded as u64, count("snapshots", "sent"));
    let mut left: Vec<_> = players.iter().map(|player| leave_times(&player.presence)).collect();
    left.sort();
    assert!(left[0].is_empty() && left[1].len() == 1 && left[1][0] > Micros::from_s(1), "{left:?}");
    // The log of a player that left is complete, and the session continues without it.
    let merged = place.done("merge server.hitlog client0.hitlog client1.hitlog -o session.hitlog");
    assert_eq!(merged["ends_early"], Value::Null);
    place.verified("session.hitlog");
    let session = place.log("session.hitlog");
    let lengths = session.players.iter().map(time_at_server).collect::<Vec<_>>();
    assert!(lengths[0].0.abs_diff(lengths[1].0) > 700_000, "{lengths:?}");
}

#[test]
fn a_refused_client_prints_the_reason() {
    let Some(place) = SessionFolder::new() else { return };
    let address = format!("127.0.0.1:{}", place.port);
    let map = concat!(env!("CARGO_MANIFEST_DIR"), "/crates/hitreg-arena/maps/courtyard.map");
    // Clients that nobody answers wait while the others are refused.
    let silent = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let silent_address = silent.local_addr().expect("its address");
    let lost = place.start(&format!("join {silent_address} -o lost.hitlog"));
    let nowhere = place.start("join nowhere.invalid -o nowhere.hitlog");
    let server = place.serve("--players 1 --seconds 4");
    std::thread::sleep(Duration::from_millis(700));
    let output = place.refused(&format!("serve -o second.hitlog --bind 127.0.0.1 --port {}", place.port));
    assert!(output.contains(&format!("UDP port {} is in use", place.port)), "{output}");
    let other = place.path("elsewhere.map");
    let text = std::fs::read_to_string(map).expect("a map of the project");
    std::fs::write(&other, text).expect("a file");
    let output = place.refused(&format!("join {address} -o none.hitlog --map elsewhere.map"));
    assert!(output.contains("the server plays the map `courtyard`, and this client has `elsewhere`"), "{output}");
    // A refused client frees its slot.
    let client = place.join(0, "");
    std::thread::sleep(Duration::from_secs(2));
    let output = place.refused(&format!("join {address} -o none.hitlog"));
    assert!(output.contains("the session has begun, so no player can join"), "{output}");
    assert_done(client);
    assert_done(server);
    for (client, reason) in [(nowhere, "is not an address"), (lost, &*format!("{silent_address} does not answer"))] {
        let (code, output) = end(client);
        assert!(code == Some(128) && output.contains(reason), "{output}");
    }
    for name in ["none.hitlog", "none.hitlog.part", "lost.hitlog.part", "nowhere.hitlog.part", "second.hitlog.part"] {
        assert!(!place.path(name).exists(), "{name}");
    }
}

#[test]
fn a_server_of_another_version_is_reported() {
    let Some(place) = SessionFolder::new() else { return };
    let server = UdpSocket::bind(("127.0.0.1", place.port)).expect("the port was free");
    let client = place.join(0, "");
    let mut request = [0; 1_200];
    let (_, from) = server.recv_from(&mut request).expect("a client asks");
    // Filter, type 5, the client's salt, reason 0, the server's version.
    let refused = [b"HRG1\x05".as_slice(), &request[7..15], &[0], &9u16.to_le_bytes()].concat();
    server.send_to(&refused, from).expect("it is answered");
    let (code, output) = end(client);
    assert_eq!(code, Some(128));
    assert!(output.contains("the server speaks version 9 of the protocol, this client version 6"), "{output}");
}

#[test]
fn merge_names_logs_of_different_sessions() {
    let Some(place) = SessionFolder::new() else { return };
    let play = |names: &str| {
        let server = place.serve("--players 2 --seconds 1");
        [0, 1].map(|number| place.join(number, "")).into_iter().for_each(assert_done);
        assert_done(server);
        for name in ["server", "client0", "client1"] {
            std::fs::rename(place.path(&format!("{name}.hitlog")), place.path(&format!("{names}-{name}")))
                .expect("a log");
        }
    };
    play("a");
    play("b");
    place.done("record synth -o whole --seconds 1");
    let cases = [
        ("a-server a-client0 b-client1 -o none", "b-client1: this log is of another session than the server's"),
        ("a-server a-client0 a-client1 a-client0 -o none", "a-client0: this log is of player"),
        ("a-server a-client0 b-server -o none", "b-server: this is a second server's log"),
        ("a-server a-client0 whole -o none", "whole: this log is not one side of a session"),
    ];
    for (line, sentence) in cases {
        let output = place.refused(&format!("merge {line}"));
        assert!(output.contains(sentence), "{line}\nsaid      {output}\nnot       {sentence}");
    }
    assert!(!place.path("none").exists());
    place.done("merge b-client1 b-server b-client0 -o b.hitlog");
    place.verified("b.hitlog");
    // A player with no log replays from the server's records.
    let merged = place.done("merge b-server b-client1 -o half.hitlog");
    assert_eq!(merged["clients"].as_array().expect("clients").iter().filter(|one| one["path"].is_null()).count(), 1);
    let (whole, half) = (place.verified("b.hitlog"), place.verified("half.hitlog"));
    assert_eq!(whole, half);
    assert_eq!(place.verified("b-server"), whole);
}
