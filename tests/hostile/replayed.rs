//! Logs of every game with arbitrary values: each replay ends and stays within the limit of work.

use hitreg::log::{WriterOptions, read_session, write_session};
use hitreg::quake3::{RecordingKind, ServerLog, header, import, map_from, survey};
use hitreg::quakeworld::{self, ImportOptions};
use hitreg::record::Session;
use hitreg::registry;
use hitreg::replay::{self, ReplayError, ReplayMode, ReplayOutput};
use hitreg::rng::Rng;
use rmpv::Value;

use crate::container::{pack_chunks, try_unpack_chunks};
use crate::crafted::short_log;
use crate::foreign::client_demo;
use crate::fuzz::target_within;
use crate::maps::{quake_bytes, quake3_bytes};
use crate::mutants::{mutant, mutate_value};
use crate::mutate;

/// The limit of a command's allocations in all.
const WORK: usize = 8 << 30;

#[test]
fn replays() {
    let good = vec![short_log(), quakeworld_log(), quake3_log()];
    target_within("replays", WORK, good, mutated_log, &mut |bytes| {
        let Ok(session) = read_session(bytes) else { return "it is not read".to_owned() };
        let mut output = session.header.game.clone();
        for mode in [ReplayMode::Auto, ReplayMode::Open] {
            output += match try_replay(&session, mode) {
                None => "no game",
                Some(Ok(_)) => "replayed",
                Some(Err(_)) => "refused",
            };
        }
        output
    });
}

fn try_replay(session: &Session, mode: ReplayMode) -> Option<Result<ReplayOutput, ReplayError>> {
    let options = replay::ReplayOptions { mode, ..replay::ReplayOptions::default() };
    let games = registry::built_in();
    Some(games.of(session).ok()?.replay(session, &options, &mut |_| {}))
}

/// Changes values in the chunks of a log, or in the rules of its game, which include the map.
fn mutated_log(good: &[u8], rng: &mut Rng) -> Vec<u8> {
    let Some(mut chunks) = try_unpack_chunks(good) else { return mutate::bytes(good, rng) };
    if rng.chance(0.6) {
        return mutant(&chunks, rng);
    }
    if let Some(Value::Binary(rules)) = within(&mut chunks[0], "header").and_then(|header| within(header, "rules"))
        && let Ok(mut value) = rmpv::decode::read_value(&mut &rules[..])
    {
        for _ in 0..=rng.below(3) {
            mutate_value(&mut value, rng);
        }
        rules.clear();
        rmpv::encode::write_value(rules, &value).expect("memory");
    }
    pack_chunks(&chunks)
}

fn within<'v>(map: &'v mut Value, name: &str) -> Option<&'v mut Value> {
    let Value::Map(entries) = map else { return None };
    entries.iter_mut().find(|(key, _)| key.as_str() == Some(name)).map(|(_, value)| value)
}

fn log_bytes(session: &Session) -> Vec<u8> {
    write_session(Vec::new(), session, WriterOptions::whole()).expect("written")
}

fn quakeworld_log() -> Vec<u8> {
    let options = ImportOptions { map_name: None, force_map: true };
    let imported = quakeworld::import(&client_demo(), &quake_bytes(), &options).expect("a demo");
    log_bytes(&imported.session)
}

fn quake3_log() -> Vec<u8> {
    let capture = include_bytes!("../../fixtures/fuzz/captures/000");
    let none = ServerLog::default();
    let mut overview = survey(RecordingKind::Capture, &capture[..], &none).expect("a capture");
    overview.rules.map = Some(map_from(&quake3_bytes(), "q3test").expect("a map"));
    let header = header(&overview.rules, &overview.players, RecordingKind::Capture.origin()).expect("a header");
    let mut session = Session::new(header);
    import(RecordingKind::Capture, &capture[..], &none, &mut |record| session.push(record).expect("it fits"))
        .expect("a capture");
    session.put_in_order();
    log_bytes(&session)
}
