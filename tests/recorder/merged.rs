//! Merged logs of engines whose programs record no packets, and that have tables of their own.

use std::path::{Path, PathBuf};

use hitreg::merge::{MergeError, MergeErrorKind, MergePlan, merge};
use hitreg::record::{
    CellKind, Execution, ExecutionRecord, PacketRecord, Record, Session, SessionChunk, SessionHeader, TextCode,
};
use hitreg::recorder::{Description, Recorder, RecorderOptions, Stream};
use hitreg::store::read_log;
use hitreg::units::{CommandSeq, Micros, PlayerId, Tick};

use super::{about, at, tick, usercmd};

const SESSION: u64 = 7;
/// What the client's clock is behind the server's.
const BEHIND: Micros = Micros(1_234);

fn record(path: &Path, about: Description, push: impl FnOnce(&mut Stream)) -> Session {
    let recorder = Recorder::create(path, about, RecorderOptions::patient()).unwrap();
    push(&mut recorder.stream());
    recorder.finish().unwrap();
    read_log(path).unwrap()
}

fn chat(about: Description) -> Description {
    about.kind("chat", vec![("words".into(), CellKind::Text)])
}

/// The server's log and a client's. The server received usercmds 1 to 40 and ran 3 to 40; the client's log begins later.
fn sides(folder: &Path, push_more: impl FnOnce(&mut Stream)) -> Vec<Session> {
    let path = |name: &str| -> PathBuf { folder.join(name) };
    let server = record(&path("server.hitlog"), chat(about(2).server_side(SESSION)), |stream| {
        let hello = stream.text("hello").unwrap();
        for number in 1..=50 {
            if number <= 40 {
                stream.usercmd(PlayerId(0), at(number) - Micros(500), usercmd(number)).unwrap();
            }
            tick(stream, 0, number).unwrap();
            stream.row(0, 1, at(number), &[hello.into()]).unwrap();
            let done = ExecutionRecord { command: CommandSeq(number), tick: Tick(number), how: Execution::Run };
            if (3..=40).contains(&number) {
                stream.push(Record::Executed(PlayerId(0), done)).unwrap();
            }
        }
    });
    let about = chat(about(2).client_side(SESSION, PlayerId(0)));
    let about = about.kind("corrections", vec![("words".into(), CellKind::Text), ("error".into(), CellKind::F32)]);
    let client = record(&path("client.hitlog"), about, |stream| {
        let [bye, drift] = ["bye", "drift"].map(|text| stream.text(text).unwrap());
        for number in 10..=45 {
            let now = at(number) - BEHIND;
            stream.usercmd(PlayerId(0), now - Micros(3_000), usercmd(number)).unwrap();
            stream.tick(Tick(number), now, None).unwrap();
            stream.row(0, 0, now, &[bye.into()]).unwrap();
            stream.row(1, 0, now, &[drift.into(), 0.5_f32.into()]).unwrap();
        }
        push_more(stream);
    });
    vec![server, client]
}

#[test]
fn a_clients_log_without_packets_is_aligned_by_ticks() {
    let folder = tempfile::tempdir().unwrap();
    let merged = merge(sides(folder.path(), |_| {})).unwrap();
    let [client, nobody] = &merged.clients[..] else { panic!("two players") };
    let offset = client.offset.unwrap();
    assert_eq!((offset.offset, offset.error, client.is_by_ticks), (BEHIND, None, true));
    assert_eq!((nobody.log, nobody.is_by_ticks, merged.cut), (None, false, None));
    let session = merged.session;
    let numbers: Vec<u32> = session.players[0].frames.iter().map(|frame| frame.command.seq.0).collect();
    assert_eq!(numbers, (1..=40).collect::<Vec<_>>(), "what the server received, and nothing else");
    let times = |number: usize| session.players[0].frames[number - 1].at;
    assert_eq!((times(9), times(10)), (at(9) - Micros(500), at(10) - Micros(3_000)), "by the log that has it first");
    assert_eq!((session.ticks.len(), session.players[0].executed.len()), (50, 38));
    // Rows of both sides, in the order of time.
    let kinds: Vec<&str> = session.header.unknown.iter().map(|kind| &*kind.name).collect();
    assert_eq!(kinds, ["chat", "corrections"]);
    let rows = |kind: &str| session.unknown.iter().find(|records| records.kind == kind).unwrap();
    let (chat, corrections) = (rows("chat"), rows("corrections"));
    assert_eq!((chat.len(), corrections.len()), (50 + 36, 36));
    assert!(chat.columns[0].values.is_sorted() && corrections.columns[0].values[0] == at(10).0);
    let words = |code: i64| session.texts.get(TextCode(code as u64));
    assert_eq!(words(corrections.columns[1].values[0]), "drift");
    assert!(["hello", "bye"].iter().all(|text| chat.columns[1].values.iter().any(|code| words(*code) == *text)));
    // The merged log can be written and read.
    let bytes = hitreg::log::write_session(Vec::new(), &session, hitreg::log::WriterOptions::whole()).unwrap();
    let back = hitreg::log::read_session(&bytes[..]).unwrap();
    assert_eq!((&back.header, &back.players, &back.ticks), (&session.header, &session.players, &session.ticks));
    let rows = |session: &Session| session.unknown.iter().map(|records| records.len()).collect::<Vec<_>>();
    assert_eq!((rows(&back), &back.texts), (rows(&session), &session.texts));
}

#[test]
fn rows_after_the_last_tick_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let merged = merge(sides(folder.path(), |stream| {
        let bye = stream.text("bye").unwrap();
        for number in 1..=10 {
            stream.row(0, 0, at(50) + Micros(100_000 * number), &[bye.into()]).unwrap();
        }
    }));
    let merged = merged.unwrap();
    let chat = merged.session.unknown.iter().find(|records| records.kind == "chat").unwrap();
    assert_eq!((merged.cut, chat.len()), (None, 50 + 36 + 10));
}

#[test]
fn rows_of_clients_are_kept_where_packets_align_the_clocks() {
    let logs = |push: &dyn Fn(&mut Stream)| {
        let folder = tempfile::tempdir().unwrap();
        sides(folder.path(), push)
    };
    let refused = merge(logs(&|stream| {
        let packet =
            PacketRecord { number: 1, at: at(45), newest: CommandSeq(45), count: 1, ..PacketRecord::default() };
        stream.push(Record::Sent(PlayerId(0), packet)).unwrap();
    }));
    // The server's log has no packet, so this client took no part.
    let session = refused.unwrap().session;
    assert!(session.unknown.iter().all(|records| records.kind != "corrections"));
    let mut no_ticks = logs(&|_| {});
    no_ticks[1].ticks.clear();
    assert_eq!(merge(no_ticks).unwrap().clients[0].offset, None, "nothing aligns the clocks");
    let mut other = logs(&|_| {});
    other[1].header.unknown[0].fields[0].kind = CellKind::U32;
    assert_eq!(merge(other).unwrap_err(), MergeErrorKind::OtherBuild { what: "kinds of records" }.of(1));
}

/// A log in one chunk.
struct WholeLogs(Vec<Session>, Vec<bool>);

impl hitreg::merge::SideLogs for WholeLogs {
    type Error = MergeError;

    fn next(&mut self, log: usize) -> Result<Option<SessionChunk>, MergeError> {
        let is_read = std::mem::replace(&mut self.1[log], true);
        Ok((!is_read).then(|| self.0[log].clone().without_header()))
    }

    fn close(&mut self, log: usize) {
        self.1[log] = false;
    }
}

#[test]
fn such_logs_are_merged_in_memory() {
    let folder = tempfile::tempdir().unwrap();
    let logs = sides(folder.path(), |_| {});
    let headers: Vec<SessionHeader> = logs.iter().map(|log| log.header.clone()).collect();
    let merged = merge(logs.clone()).unwrap();
    let plan = MergePlan::of(&headers.iter().collect::<Vec<_>>(), &mut WholeLogs(logs, vec![false; 2])).unwrap();
    assert!(plan.in_memory);
    assert_eq!((plan.header, plan.clients), (merged.session.header, merged.clients));
}
