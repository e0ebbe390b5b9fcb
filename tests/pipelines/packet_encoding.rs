//! Packets in virtual time: encoded as datagrams, or without encoding if nothing depends on their bytes.

use std::sync::atomic::{AtomicU32, Ordering};

use crate::disc::Discs;
use crate::network::record;
use hitreg::link::{Jitter, LinkModel, Loss};
use hitreg::memory::MemoryLimit;
use hitreg::record::Session;
use hitreg::replay::{ReplayOptions, ReplayOutput, replay, rerecord};
use hitreg::session::scenario::Scenario;
use proptest::prelude::*;

fn replay_with_sizes(session: &Session, sizes: bool) -> ReplayOutput {
    let options = ReplayOptions { sizes, ..ReplayOptions::default() };
    replay::<Discs>(session, &options, &mut |_| {}).expect("a log of this build")
}

fn bad_link() -> LinkModel {
    LinkModel {
        delay_ms: 45.0,
        jitter: Jitter::Exponential(15.0),
        loss: Loss::Random(0.08),
        duplicate: 0.05,
        reorder: 0.08,
        reorder_ms: 60.0,
        ..LinkModel::default()
    }
}

fn with_settings(mut scenario: Scenario, settings: &[(&str, &str)]) -> Scenario {
    for (key, value) in settings {
        scenario.settings.insert((*key).to_owned(), (*value).to_owned());
    }
    scenario
}

/// All output of a replay as bytes.
fn bytes(replayed: &ReplayOutput) -> Vec<u8> {
    let mut bytes = Vec::new();
    hitreg::log::write_trace(&mut bytes, &replayed.trace).expect("memory takes all");
    bytes
}

#[test]
fn recorded_sizes_are_those_of_datagrams_and_replays_reproduce_them() {
    let session = record(&Scenario { players: 5, seconds: 6.0, link: bad_link(), ..Scenario::default() });
    assert_eq!(rerecord::<Discs>(MemoryLimit::default(), &session, None).expect("a log of this build"), session);
    let traffic = replay_with_sizes(&session, true).findings.traffic.expect("sizes were asked for");
    let sum = |sizes: &mut dyn Iterator<Item = u16>| sizes.map(u64::from).sum::<u64>();
    assert_eq!(traffic.up_bytes, sum(&mut session.players.iter().flat_map(|p| &p.sent).map(|packet| packet.bytes)));
    assert_eq!(traffic.down_bytes, sum(&mut session.players.iter().flat_map(|p| &p.snapshots).map(|s| s.bytes)));
    assert!(
        replay_with_sizes(&session, false).findings.traffic.is_none(),
        "nothing depended on the bytes, so none were made"
    );
    // Sizes depend on the changes since the ack.
    let sizes: std::collections::BTreeSet<u16> = session.players[0].snapshots.iter().map(|s| s.bytes).collect();
    assert!(sizes.len() > 20, "{sizes:?}");
}

#[test]
fn a_rate_limit_counts_the_bytes_of_datagrams() {
    let scenario = Scenario { players: 6, seconds: 6.0, ..Scenario::default() };
    let free = record(&scenario);
    let choked = record(&with_settings(scenario, &[("server.rate_bytes_per_s", "3000")]));
    let of = |session: &Session| session.players[0].snapshots.clone();
    assert!(of(&free).iter().all(|snapshot| snapshot.choked == 0));
    let choked_snapshots = of(&choked);
    assert!(choked_snapshots.len() < of(&free).len());
    // Each snapshot waits until the line has carried the previous one.
    for pair in choked_snapshots.windows(2) {
        let line = i64::from(pair[0].bytes) * 1_000_000 / 3_000;
        assert!((pair[1].at - pair[0].at).0 >= line, "{pair:?}");
    }
    assert!(
        replay_with_sizes(&choked, false).findings.traffic.is_some(),
        "the rate was reached, so datagrams were made"
    );
    assert_eq!(replay_with_sizes(&choked, false).findings.first_difference, None);
}

/// By the number of entities, snapshots might exceed the rate. Their actual states do not.
#[test]
fn a_rate_above_the_sent_states_needs_no_encoding() {
    let link = LinkModel { delay_ms: 40.0, loss: Loss::Random(0.02), ..LinkModel::default() };
    let scenario = Scenario { players: 12, seconds: 12.0, link, ..Scenario::default() };
    let session = record(&with_settings(scenario, &[("server.rate_bytes_per_s", "20000")]));
    let sent = || session.players.iter().flat_map(|player| &player.snapshots);
    assert!(sent().all(|snapshot| snapshot.choked == 0 && snapshot.bytes < 800), "{:?}", sent().map(|s| s.bytes).max());
    let (encoded, without) = (replay_with_sizes(&session, true), replay_with_sizes(&session, false));
    assert!(without.findings.traffic.is_none(), "nothing was held back, so no datagrams were made");
    assert_eq!(without.findings.first_difference, None);
    assert_eq!(bytes(&encoded), bytes(&without));
}

#[test]
fn a_lost_fragment_loses_its_snapshot() {
    // So many entities need at least two datagrams, especially while acks are late.
    let link = LinkModel { delay_ms: 200.0, loss: Loss::Random(0.1), ..LinkModel::default() };
    let session = record(&Scenario { players: 60, seconds: 3.0, link, ..Scenario::default() });
    let sent: Vec<_> = session.players.iter().flat_map(|p| &p.snapshots).collect();
    let fragmented = sent.iter().filter(|snapshot| snapshot.bytes > 1_200).count();
    assert!(fragmented > 100, "{fragmented}");
    let came = |many: bool| {
        let (mut sent, mut received) = (0, 0);
        for player in &session.players {
            let end = player.snapshots.last().map_or(0, |last| last.seq.0).saturating_sub(8);
            for snapshot in player.snapshots.iter().filter(|s| (s.bytes > 1_200) == many && s.seq.0 <= end) {
                sent += 1;
                received += usize::from(player.received.iter().any(|arrival| arrival.number == snapshot.seq.0));
            }
        }
        received as f64 / f64::from(sent)
    };
    assert!(came(true) < came(false) - 0.05, "{} {}", came(true), came(false));
    assert_eq!(rerecord::<Discs>(MemoryLimit::default(), &session, None).expect("a log of this build"), session);
}

#[test]
fn snapshots_without_room_for_all_replay_too() {
    let scenario = Scenario { players: 24, seconds: 6.0, link: bad_link(), ..Scenario::default() };
    let session = record(&with_settings(scenario, &[("wire.message_max_bytes", "400")]));
    assert!(session.players.iter().flat_map(|p| &p.snapshots).all(|snapshot| snapshot.bytes <= 400));
    assert!(
        replay_with_sizes(&session, false).findings.traffic.is_some(),
        "something had to wait, so datagrams were made"
    );
    assert_eq!(replay_with_sizes(&session, false).findings.first_difference, None);
    assert_eq!(rerecord::<Discs>(MemoryLimit::default(), &session, None).expect("a log of this build"), session);
}

#[test]
fn a_log_without_the_setting_uses_nominal_sizes() {
    let nominal = with_settings(
        Scenario { players: 3, seconds: 4.0, link: bad_link(), ..Scenario::default() },
        &[("wire.sizes", "nominal")],
    );
    let mut session = record(&nominal);
    let frame = &session.players[0].snapshots[9];
    assert_eq!(usize::from(frame.bytes), 50 + 20 * frame.entities.len() + 8 * frame.effects.len());
    session.header.settings.retain(|(key, _)| !key.starts_with("wire."));
    let replayed = replay_with_sizes(&session, true);
    assert_eq!(replayed.findings.first_difference, None);
    let sum: u64 = session.players.iter().flat_map(|p| &p.snapshots).map(|s| u64::from(s.bytes)).sum();
    assert_eq!(replayed.findings.traffic.map(|traffic| traffic.down_bytes), Some(sum));
}

fn any_link() -> impl Strategy<Value = LinkModel> {
    let jitter = prop_oneof![
        Just(Jitter::None),
        (0f64..60.0).prop_map(Jitter::Uniform),
        (0f64..30.0).prop_map(Jitter::Exponential)
    ];
    let loss = prop_oneof![
        Just(Loss::None),
        (0f64..0.4).prop_map(Loss::Random),
        (0.01f64..0.1, 0.1f64..0.6).prop_map(|(enter, leave)| Loss::Burst { enter, leave })
    ];
    (0f64..250.0, jitter, loss, 0f64..0.2, 0f64..0.2, 0f64..400.0).prop_map(
        |(delay_ms, jitter, loss, duplicate, reorder, reorder_ms)| LinkModel {
            delay_ms,
            jitter,
            loss,
            duplicate,
            reorder,
            reorder_ms,
            rate_bytes_per_s: None,
        },
    )
}

/// A number of players, and links for some or all of them: a scenario refuses more links than players.
fn players_and_links() -> impl Strategy<Value = (u16, Vec<LinkModel>)> {
    (1u16..12)
        .prop_flat_map(|players| (Just(players), prop::collection::vec(any_link(), 1..=usize::from(players.min(3)))))
}

/// The numbers of cases that ran without encoding and of cases that restarted with it.
static UNENCODED: AtomicU32 = AtomicU32::new(0);
static RESTARTED: AtomicU32 = AtomicU32::new(0);

#[test]
fn replays_without_encoding_are_the_same() {
    assert_same_without_encoding();
    let (unencoded, anew) = (UNENCODED.load(Ordering::Relaxed), RESTARTED.load(Ordering::Relaxed));
    eprintln!("{unencoded} replays without datagrams, {anew} restarted with them");
    assert!(unencoded > 10 && anew > 5, "{unencoded} {anew}: both must be tried");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    /// A replay without encoding equals one with it, byte for byte, or notices that it needs the encoding.
    fn assert_same_without_encoding(
        seed in any::<u64>(),
        (players, links) in players_and_links(),
        preset in prop::sample::select(vec!["half-life", "quake3", "quakeworld", "nereids", "dumb-client"]),
        rate in prop::sample::select(vec!["100000", "20000", "9000", "4000"]),
        update_hz in prop::sample::select(vec!["20", "64"]),
    ) {
        let scenario = Scenario { preset: preset.to_owned(), players, seconds: 4.0, seed, links, ..Scenario::default() };
        let scenario = with_settings(scenario, &[("server.rate_bytes_per_s", rate), ("server.update_hz", update_hz)]);
        let session = record(&scenario);
        let (encoded, without) = (replay_with_sizes(&session, true), replay_with_sizes(&session, false));
        prop_assert_eq!(encoded.findings.first_difference, None);
        prop_assert_eq!(without.findings.first_difference, None);
        prop_assert_eq!(bytes(&encoded), bytes(&without));
        // Also under other settings, which change every state.
        let settings = hitreg::settings::Settings::from_pairs(&session.header.settings).expect("recorded settings");
        let other = settings.under_preset(if preset == "quake3" { "half-life" } else { "quake3" }).expect("a preset");
        let under = |sizes| {
            let options = ReplayOptions { settings: Some(other.clone()), sizes, ..ReplayOptions::default() };
            replay::<Discs>(&session, &options, &mut |_| {}).expect("a log of this build")
        };
        let other_way = under(false);
        prop_assert_eq!(bytes(&under(true)), bytes(&other_way));
        for replayed in [&without, &other_way] {
            if replayed.findings.traffic.is_none() { &UNENCODED } else { &RESTARTED }.fetch_add(1, Ordering::Relaxed);
        }
        prop_assert_eq!(rerecord::<Discs>(MemoryLimit::default(), &session, None).expect("a log of this build"), session);
    }
}
