//! The network tables of a trace agree with the log for each packet, and differ if clients send other packets.

use std::collections::BTreeMap;

use crate::disc::{DiscRules, Discs};
use hitreg::diff::{DiffOptions, DiffScope, TableStatus, TraceVerdict, diff};
use hitreg::link::{Jitter, LinkModel, Loss};
use hitreg::record::Session;
use hitreg::replay::{ReplayOptions, replay};
use hitreg::session::scenario::Scenario;
use hitreg::settings::Settings;
use hitreg::summary::Summary;
use hitreg::trace::Trace;
use hitreg::trace::schema::{packets, snapshots};
use hitreg::units::{Micros, PlayerId};

pub(crate) fn record(scenario: &Scenario) -> Session {
    crate::pipelines::record(scenario, DiscRules { push_units: 4.0, ..DiscRules::default() })
}

fn bad_line(settings: &[(&str, &str)]) -> Session {
    let link = LinkModel {
        delay_ms: 45.0,
        jitter: Jitter::Exponential(10.0),
        loss: Loss::Random(0.06),
        duplicate: 0.05,
        ..LinkModel::default()
    };
    let settings = settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    record(&Scenario { preset: "nereids".to_owned(), players: 3, seconds: 8.0, link, settings, ..Scenario::default() })
}

fn trace(session: &Session, set: &[&str], sizes: bool) -> Trace {
    let mut settings = Settings::from_pairs(&session.header.settings).expect("its settings");
    set.iter().for_each(|pair| settings.set_pair(pair).expect("a setting"));
    let options = ReplayOptions { settings: Some(settings), network: true, sizes, ..ReplayOptions::default() };
    replay::<Discs>(session, &options, &mut |_| {}).expect("a log of this build").trace
}

#[test]
fn the_trace_has_every_packet_and_snapshot_with_its_fate() {
    let session = bad_line(&[]);
    let trace = trace(&session, &[], true);
    let (up, down) = (packets::Columns::of(&trace), snapshots::Columns::of(&trace));
    let arrivals = |arrived: &[hitreg::record::ArrivalRecord]| {
        let mut times: BTreeMap<u32, Vec<Micros>> = BTreeMap::new();
        arrived.iter().for_each(|arrival| times.entry(arrival.number).or_default().push(arrival.at));
        times
    };
    let last = session.ticks.last().expect("ticks").at;
    let mut lost = 0;
    for (player, records) in session.players.iter().enumerate() {
        let rows: Vec<usize> = (0..up.rows).filter(|row| up.player[*row] as usize == player).collect();
        assert_eq!(rows.len(), records.sent.len());
        let reached = arrivals(&records.reached);
        let newest = reached.last_key_value().map_or(0, |(number, _)| *number);
        for (row, sent) in rows.into_iter().zip(&records.sent) {
            let times = reached.get(&sent.number).cloned().unwrap_or_default();
            let in_trace = (up.packet[row], up.at_us[row], up.newest[row], up.usercmds[row], up.bytes[row]);
            let count = u32::from(sent.count);
            assert_eq!(in_trace, (sent.number, sent.at.0, sent.newest.0, count, sent.bytes.into()));
            assert_eq!(up.arrived[row] as usize, times.len());
            let took = times.first().map(|at| (*at - sent.at).as_ms_f64() as f32);
            assert_eq!(took, (!up.took_ms[row].is_nan()).then_some(up.took_ms[row]));
            // A packet in flight at the end is not lost.
            lost += u32::from(times.is_empty() && sent.number < newest);
        }
        let rows: Vec<usize> = (0..down.rows).filter(|row| down.player[*row] as usize == player).collect();
        assert_eq!(rows.len(), records.snapshots.len());
        for row in &rows {
            let bits: u32 = down.bits.iter().map(|part| part[*row]).sum();
            assert_eq!(bits, 8 * down.bytes[*row], "what bits are for is all of them");
        }
        let received = arrivals(&records.received);
        for (row, sent) in rows.into_iter().zip(&records.snapshots) {
            let in_trace = (down.snapshot[row], down.at_us[row], down.ack[row], down.bytes[row]);
            assert_eq!(in_trace, (sent.seq.0, sent.at.0, sent.ack.0, sent.bytes.into()));
            let timing = sent.timing.as_deref().cloned().unwrap_or_default();
            let helper = (!down.helper_ms[row].is_nan()).then_some(down.helper_ms[row]);
            assert_eq!((helper, down.warnings[row] as usize), (timing.helper_ms.map(f32::from), timing.warnings.len()));
            let times = received.get(&sent.seq.0).map_or(0, |times| times.iter().filter(|at| **at <= last).count());
            assert_eq!(down.arrived[row] as usize, times);
        }
    }
    assert!(lost > 20, "{lost} packets were lost");
    assert!(down.saw_avatar_right.iter().filter(|saw| *saw == "yes").count() > 100);
    let network = Summary::of(&trace).network.expect("the tables are there");
    assert_eq!((network.up.lost, network.usercmds_per_packet > Some(3.9)), (Some(lost.into()), true));
    let bytes_for: f64 = network.bytes_for.values().sum();
    assert_eq!(Some(bytes_for as u64), network.down.bytes);
    assert!(network.bytes_for["controlled"] > 1_000.0 && network.bytes_for["authoritative"] > 1_000.0, "{network:?}");
}

#[test]
fn a_diff_names_the_first_packet_with_other_redundancy() {
    let session = bad_line(&[]);
    let on = DiffOptions { on: DiffScope::Network, ..DiffOptions::default() };
    let as_it_was = trace(&session, &[], false);
    assert_eq!(diff(&as_it_was, &as_it_was, &on).expect("no tolerances").verdict, TraceVerdict::Same);
    let three = trace(&session, &["client.redundancy=3"], false);
    let found = diff(&as_it_was, &three, &on).expect("no tolerances");
    let fields: Vec<&str> =
        found.tables.iter().flat_map(|table| &table.fields).map(|field| field.field.as_str()).collect();
    assert_eq!((found.verdict, fields), (TraceVerdict::Differs, vec!["usercmds"]));
}

#[test]
fn a_diff_detects_adaptive_redundancy_on_a_clean_line() {
    let link = LinkModel { delay_ms: 25.0, ..LinkModel::default() };
    let preset = "nereids".to_owned();
    let session = record(&Scenario { preset, players: 2, seconds: 12.0, link, ..Scenario::default() });
    let traces = [trace(&session, &[], false), trace(&session, &["client.adaptive_redundancy=true"], false)];
    let found = diff(&traces[0], &traces[1], &DiffOptions::default()).expect("no tolerances");
    assert_eq!(found.verdict, TraceVerdict::Differs);
    let [fixed, adaptive] = traces
        .map(|trace| Summary::of(&trace).network.and_then(|network| network.usercmds_per_packet).expect("packets"));
    assert!(fixed > 3.9 && (2.9..3.9).contains(&adaptive), "{fixed} and then {adaptive}");
}

#[test]
fn network_tables_that_were_not_requested_are_no_difference() {
    let session = bad_line(&[]);
    let asked = trace(&session, &[], false);
    let not_asked =
        replay::<Discs>(&session, &ReplayOptions::default(), &mut |_| {}).expect("a log of this build").trace;
    assert!(not_asked.table(packets::NAME).is_none() && asked.table(packets::NAME).is_some());
    assert!(asked.table(packets::NAME).is_some_and(|table| table.column("bytes").is_none()), "no sizes were requested");
    assert!(Summary::of(&asked).network.is_some_and(|network| network.bytes_for.is_empty()));
    let found = diff(&asked, &not_asked, &DiffOptions::default()).expect("no tolerances");
    assert_eq!(found.verdict, TraceVerdict::Same);
    assert_eq!(found.tables.iter().filter(|table| table.status == TableStatus::OnlyInA).count(), 2);
}

/// Player 0 has regular frames; player 1 has those of a computer under load.
#[test]
fn frames_of_bots_follow_the_frame_settings() {
    let own = [("client.cmd_hz", "30"), ("p1.client.frames", "loaded")];
    let settings = own.map(|(key, value)| (key.to_owned(), value.to_owned())).into_iter().collect();
    let scenario = Scenario { players: 2, seconds: 20.0, settings, ..Scenario::default() };
    let session = record(&scenario);
    let frame_ms = |player: usize| session.players[player].frames.iter().skip(1).map(|frame| frame.command.input.msec);
    assert!(frame_ms(0).all(|ms| (33..=34).contains(&ms)));
    let late = frame_ms(1).filter(|ms| *ms >= 47).count() as f64 / frame_ms(1).count() as f64;
    assert!((0.1..0.4).contains(&late) && frame_ms(1).all(|ms| ms >= 33), "{late}");
    let times = |player: usize| session.players[player].frames.iter().map(|frame| frame.at).collect::<Vec<_>>();
    let passed = *times(1).last().expect("frames") - times(1)[0];
    let simulated: i64 = frame_ms(1).map(i64::from).sum();
    assert!((passed.0 / 1000 - simulated).abs() <= 1, "no time is lost");
    assert_eq!(record(&scenario), session, "the same again");
    let again = replay::<Discs>(&session, &ReplayOptions::default(), &mut |_| {}).expect("a log of this build");
    assert_eq!(again.findings.first_difference, None);
}

#[test]
fn replays_use_the_settings_of_each_player() {
    let session = record(&Scenario { players: 2, seconds: 4.0, ..Scenario::default() });
    let rows = |trace: &Trace, player: PlayerId| {
        snapshots::Columns::of(trace).player.iter().filter(|of| **of == u32::from(player.0)).count()
    };
    let (usual, own) = (trace(&session, &[], false), trace(&session, &["p1.server.update_hz=40"], false));
    assert_eq!(rows(&usual, PlayerId(0)), rows(&own, PlayerId(0)));
    let (before, after) = (rows(&usual, PlayerId(1)), rows(&own, PlayerId(1)));
    assert!(after > before * 19 / 10, "{before} and then {after}");
}
