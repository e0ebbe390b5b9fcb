//! `record proxy` between processes. Clients and a server replay captured datagrams of a real game, or are the real
//! game on request.
#![cfg(unix)]
#![expect(clippy::disallowed_types, clippy::disallowed_methods, reason = "clients and a server have their own sockets")]

use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use hitreg::protocol::Direction;
use hitreg::quake3::CaptureReader;
use hitreg::units::Micros;
use serde_json::Value;

use super::folder::{Folder, code, text};

fn port() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    socket.local_addr().expect("an address").port()
}

#[test]
fn a_proxy_that_cannot_record_prints_the_reason() {
    let folder = Folder::empty();
    let server = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let server = server.local_addr().expect("an address");
    let listen = format!("--listen 127.0.0.1:{}", port());
    std::fs::write(folder.path("odd.bsp"), "no map").expect("a file");
    for (line, sentence) in [
        (format!("--protocol quake3 {listen} --upstream {server} --seconds -1"), "unexpected argument '-1'"),
        (
            format!("--protocol quake3 {listen} --upstream {server} --seconds=-1"),
            "--seconds -1: write a number above 0",
        ),
        (format!("--protocol quake3 {listen} --upstream nowhere.invalid:1"), "is not an address"),
        (format!("--protocol quake3 {listen} --upstream {server} --delay-ms=-4"), "delay_ms cannot be -4"),
        (format!("--protocol quake3 {listen} --upstream {server} --map none.pk3"), "none.pk3: there is no such file"),
        (format!("--protocol quake3 {listen} --upstream {server} --map odd.bsp"), "odd.bsp: not a Quake III map"),
        (format!("--protocol quake3 --listen {server} --upstream 127.0.0.1:9"), "is in use"),
        (format!("--protocol quake3 {listen} {}", listen.replace("listen", "upstream")), "is the address of --listen"),
        (format!("--protocol source {listen} --upstream {server}"), "[possible values: quake3]"),
    ] {
        let output = folder.run(&format!("record proxy {line} -o a.hitlog"));
        let message = text(&output.stderr);
        assert!([128, 2].contains(&code(&output)) && message.contains(sentence), "{line}\n{message}");
        assert!(!folder.path("a.hitlog").exists() && !folder.path("a.hitlog.part").exists(), "{line}");
    }
}

/// A proxy that only heard clients which had connected before says so, and why it could not decode them.
#[test]
fn a_proxy_that_heard_no_session_reports_what_it_heard() {
    let folder = Folder::empty();
    let server = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let (upstream, listen) = (server.local_addr().expect("an address"), port());
    let mut proxy = Command::new(env!("CARGO_BIN_EXE_hitreg"));
    proxy.args(["record", "proxy", "--protocol", "quake3", "--listen", &format!("127.0.0.1:{listen}")]);
    proxy.args(["--upstream", &upstream.to_string(), "-o", "late.hitlog"]).current_dir(folder.path(""));
    let proxy = proxy.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("hitreg starts");
    let client = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let timeout = Some(Duration::from_millis(50));
    for socket in [&client, &server] {
        socket.set_read_timeout(timeout).expect("a timeout");
    }
    let (mut buffer, mut sent) = ([0; 100], 0);
    let address = loop {
        client.send_to(&[7; 20], ("127.0.0.1", listen)).expect("it is sent");
        sent += 1;
        match server.recv_from(&mut buffer) {
            Ok((_, address)) => break address,
            Err(error) => assert!(sent < 400, "{error}"),
        }
    };
    server.send_to(&[9; 20], address).expect("it is sent");
    client.recv_from(&mut buffer).expect("it is forwarded");
    std::thread::sleep(Duration::from_millis(300));
    let killed = Command::new("kill").args(["-INT", &proxy.id().to_string()]).status().expect("there is kill");
    assert!(killed.success());
    let output = proxy.wait_with_output().expect("it was started");
    let message = text(&output.stderr);
    assert_eq!(code(&output), 128, "{message}");
    assert!(message.contains("no client entered a level in 2 datagrams, so there is no log"), "{message}");
    assert!(message.contains("could not be decoded: from client 0: its checksum"), "{message}");
    assert!(!folder.path("late.hitlog").exists());
}

/// Sockets replay a real session's datagrams. The log equals an import of the capture.
#[test]
fn a_replayed_capture_is_recorded_unchanged() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data/openarena");
    let Some(path) = std::fs::read_dir(&data).ok().and_then(|files| {
        let mut captures: Vec<PathBuf> = files.flatten().map(|file| file.path()).collect();
        captures.retain(|path| path.to_string_lossy().ends_with(".trace.zst"));
        captures.sort();
        captures.into_iter().next()
    }) else {
        crate::note::skipped("../shared/data is not here");
        return;
    };
    let bytes = std::fs::read(&path).expect("a capture");
    let mut capture = CaptureReader::new(&bytes[..]).expect("a capture");
    let mut datagrams = Vec::new();
    while let Some(captured) = capture.read().expect("a capture") {
        datagrams.push(captured);
        if datagrams.len() == 4_000 {
            break;
        }
    }
    let folder = Folder::empty();
    let server = UdpSocket::bind("127.0.0.1:0").expect("a port");
    server.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
    let listen = format!("127.0.0.1:{}", port());
    let upstream = server.local_addr().expect("an address");
    let line =
        format!("record proxy --protocol quake3 --listen {listen} --upstream {upstream} -o a.hitlog --format json");
    let mut command = folder.command(&line);
    let proxy = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("hitreg starts");
    let clients: Vec<UdpSocket> = (0..=datagrams.iter().map(|d| d.client).max().unwrap_or(0))
        .map(|_| {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
            socket.set_read_timeout(Some(Duration::from_secs(20))).expect("a timeout");
            socket.connect(&listen).expect("an address");
            socket
        })
        .collect();
    let mut peers = vec![None; clients.len()];
    let mut buffer = vec![0; 65_535];
    for datagram in &datagrams {
        let client = usize::from(datagram.client);
        match direction_known(datagram.direction, peers[client].is_some()) {
            // The test waits for each datagram, so the proxy hears them in the captured order.
            Some(Direction::Up) => {
                let (length, from) = loop {
                    let _ = clients[client].send(&datagram.bytes);
                    server
                        .set_read_timeout(Some(Duration::from_millis(if peers[client].is_some() {
                            20_000
                        } else {
                            200
                        })))
                        .expect("a timeout");
                    // Datagrams are lost until the proxy listens.
                    if let Ok(came) = server.recv_from(&mut buffer) {
                        break came;
                    }
                };
                assert!(buffer[..length] == datagram.bytes[..], "a datagram is changed");
                peers[client] = Some(from);
            }
            Some(Direction::Down) => {
                let to = peers[client].expect("it was heard");
                server.send_to(&datagram.bytes, to).expect("it is sent");
                let length = clients[client].recv(&mut buffer).expect("it passes");
                assert!(buffer[..length] == datagram.bytes[..], "a datagram is changed");
            }
            None => {}
        }
    }
    let status = Command::new("kill").args(["-INT", &proxy.id().to_string()]).status().expect("there is kill");
    assert!(status.success());
    let output = proxy.wait_with_output().expect("it was started");
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON alone on stdout");
    eprintln!("{report}");
    assert_eq!((&report["undecoded"], &report["unrecorded"], &report["refused"]), (&0.into(), &0.into(), &0.into()));
    // The import of the capture, for comparison.
    std::fs::write(folder.path("part.trace"), captured(&datagrams)).expect("written");
    folder.done("import quake3-udp part.trace -o b.hitlog");
    let logs = ["a.hitlog", "b.hitlog"].map(|name| {
        let bytes = std::fs::read(folder.path(name)).expect("a log");
        hitreg::log::read_session(&bytes[..]).expect("a log")
    });
    let [proxied, imported] = &logs;
    for (of, like) in proxied.players.iter().zip(&imported.players) {
        // Each log's server times have their own start.
        let made = |records: &hitreg::record::PlayerRecords| -> Vec<_> {
            let begin = records.snapshots.first().map_or(Micros::ZERO, |snapshot| snapshot.server_time);
            let commands = records.frames.iter().map(|frame| frame.command.clone());
            // Before the first snapshot the client does not know the server's time.
            commands.map(|c| (c.seq, c.input, (c.server_time > begin).then_some(c.server_time - begin))).collect()
        };
        assert_eq!(made(of), made(like));
        assert!(
            of.snapshots
                .iter()
                .map(|s| (s.seq, s.tick, s.ack))
                .eq(like.snapshots.iter().map(|s| (s.seq, s.tick, s.ack)))
        );
        assert_eq!(of.received.len(), of.snapshots.len(), "each went on");
        assert_eq!(of.reached.len(), of.sent.len(), "each went on");
    }
    assert_eq!(proxied.states.len(), imported.states.len());
    assert!(proxied.players.iter().any(|player| player.frames.len() > 100));
    folder.done("info a.hitlog");
}

/// Without a datagram from a client, the server has no address to send to.
fn direction_known(direction: Direction, is_known: bool) -> Option<Direction> {
    (direction == Direction::Up || is_known).then_some(direction)
}

/// A capture of these datagrams.
fn captured(datagrams: &[hitreg::quake3::CapturedDatagram]) -> Vec<u8> {
    let mut bytes = b"UDPTRC1\n".to_vec();
    for datagram in datagrams {
        bytes.extend(datagram.at_ns.to_le_bytes());
        bytes.push(u8::from(datagram.direction == Direction::Down));
        bytes.extend(datagram.client.to_le_bytes());
        bytes.extend((datagram.bytes.len() as u16).to_le_bytes());
        bytes.extend(&datagram.bytes);
    }
    bytes
}

/// `HITREG_OPENARENA` names the script that runs the game.
#[test]
fn a_live_session_of_openarena_is_recorded() {
    let Some(script) = std::env::var_os("HITREG_OPENARENA") else {
        crate::note::skipped("HITREG_OPENARENA names no script that runs OpenArena");
        return;
    };
    let folder = Folder::empty();
    let game = folder.path("game");
    std::fs::create_dir(&game).expect("a folder");
    let run = |line: &str| {
        let mut command = Command::new("bash");
        let words = line.split(' ').map(|word| word.replace("DIR", &game.to_string_lossy()));
        command.arg(&script).args(words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        command
    };
    let seconds = 60;
    assert!(run("server DIR").status().expect("bash").success());
    let mut proxy = Command::new("ip");
    proxy.args(["netns", "exec", "oa", env!("CARGO_BIN_EXE_hitreg"), "record", "proxy", "--protocol", "quake3"]);
    proxy.args(["--listen", "127.0.0.1:27970", "--upstream", "127.0.0.1:27960", "--delay-ms", "50", "--loss", "2%"]);
    proxy.args(["--map", "/usr/share/games/openarena/baseoa/pak1-maps.pk3", "-o", "live.hitlog", "--format", "json"]);
    proxy.args(["--seconds", &seconds.to_string()]).current_dir(&folder.dir);
    let proxy = proxy.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("ip");
    for client in 1..=2 {
        assert!(run(&format!("client DIR {client} 27970")).status().expect("bash").success());
    }
    std::thread::sleep(Duration::from_secs(15));
    let drivers: Vec<_> =
        (1..=2).map(|client| run(&format!("drive DIR {client} {seconds}")).spawn().expect("bash")).collect();
    let output = proxy.wait_with_output().expect("it was started");
    drivers.into_iter().for_each(|mut driver| drop(driver.kill().and_then(|()| driver.wait())));
    let stopped = run("stop DIR").status().expect("bash");
    assert!(stopped.success());
    assert_eq!(code(&output), 0, "{}", text(&output.stderr));
    let report: Value = serde_json::from_slice(&output.stdout).expect("JSON alone on stdout");
    eprintln!("{report}");
    assert_eq!((&report["players"], &report["undecoded"]), (&2.into(), &0.into()));
    folder.done("verify live.hitlog");
    folder.done("report live.hitlog -o live.html");
    eprintln!("{}", folder.done("replay live.hitlog"));
}
