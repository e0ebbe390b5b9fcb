//! Shrinking: the smaller log still shows the problem, is valid, and has no removable part.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::disc::Discs;
use crate::patched::Patched;
use hitreg::arena::{Arena, ArenaRules};
use hitreg::game::Bots;
use hitreg::link::{Jitter, LinkModel, Loss};
use hitreg::log::{WriterOptions as LogOptions, read_session, write_session};
use hitreg::record::Session;
use hitreg::replay::{ReplayError, ReplayOptions, replay, rerecord};
use hitreg::session::scenario::Scenario;
use hitreg::session::{SessionRecorder, record_synthetic};
use hitreg::shrink::{CostKind, Removable, ShrinkError, ShrinkResult, shrink, things, without};
use hitreg::units::{Micros, Tick};
use proptest::prelude::*;

fn record<G: Bots + hitreg::pipeline::Netcode>(scenario: Scenario, rules: G::Rules) -> Session {
    let mut scenario = scenario;
    scenario.settings.insert("client.redundancy".to_owned(), "1".to_owned());
    let mut session = Session::new(scenario.header::<G>(&rules).expect("a good scenario"));
    record_synthetic::<G>(&scenario, &Arc::new(rules), &mut SessionRecorder::new(&mut session))
        .expect("a good scenario");
    session
}

fn scenario(players: u16, seconds: f64, loss: f64) -> Scenario {
    let link = LinkModel {
        delay_ms: 40.0,
        jitter: Jitter::Uniform(8.0),
        loss: Loss::Random(loss),
        duplicate: loss / 2.0,
        ..LinkModel::default()
    };
    Scenario { players, seconds, link, ..Scenario::default() }
}

/// Whether the build with the bug plays a session differently.
fn diverges(session: &Session) -> Result<bool, ReplayError> {
    Ok(rerecord::<Patched>(session, None)?.ticks != session.ticks)
}

/// Every part whose removal keeps the problem.
fn removable_parts<G: Bots + hitreg::pipeline::Netcode>(
    session: &Session,
    shows: &dyn Fn(&Session) -> bool,
) -> Vec<Removable> {
    let all = CostKind::ALL.into_iter().flat_map(|kind| things(session, kind));
    all.filter(|thing| {
        let less = without(session, &[*thing]);
        let is_empty = less.ticks.is_empty() || less.players.iter().all(|p| p.frames.is_empty());
        !is_empty && shows(&rerecorded::<G>(less))
    })
    .collect()
}

/// The session that a game makes of some input, from the spawn if it cannot begin elsewhere.
fn rerecorded<G: Bots + hitreg::pipeline::Netcode>(mut input: Session) -> Session {
    match rerecord::<G>(&input, None) {
        Err(ReplayError::NoBeginning) => {
            input.states.clear();
            rerecord::<G>(&input, None).expect("a log of this build")
        }
        again => again.expect("a log of this build"),
    }
}

/// A session that loses a single packet, near its end. The build with the bug differs because of it.
fn one_lost_packet(players: u16, seconds: f64) -> Session {
    let whole = record::<Arena>(scenario(players, seconds, 0.0), ArenaRules::default());
    for player in 0..usize::from(players) {
        let mut session = whole.clone();
        let reached = &mut session.players[player].reached;
        reached.remove(reached.len() * 3 / 4);
        let session = rerecord::<Arena>(&session, None).expect("a log of this build");
        if diverges(&session).expect("a log of this build") {
            return session;
        }
    }
    panic!("no player was near another when a packet was lost");
}

#[test]
fn a_minute_of_16_players_shrinks_to_two_players_and_a_moment() {
    let session = one_lost_packet(16, 60.0);
    assert_eq!(things(&session, CostKind::Losses).len(), 1);
    let usercmds = |session: &Session| session.players.iter().map(|player| player.frames.len()).sum::<usize>();
    let played = AtomicUsize::new(0);
    let counted = |session: &Session| {
        played.fetch_add(usercmds(session), Ordering::Relaxed);
        diverges(session)
    };
    let shrunk = shrink::<Arena, _>(&session, &counted, &mut |_| {}).expect("the session diverges");
    let times_the_session = played.into_inner() / usercmds(&session);
    eprintln!("{times_the_session}, {} probes, {:?}: {:#?}", shrunk.probes, shrunk.session.duration(), shrunk.removed);
    assert!(times_the_session < 20, "the work is that of playing the session {times_the_session} times");
    assert_eq!(shrunk.session.players.len(), 2);
    assert!(shrunk.session.duration() < Micros::from_s(2), "{:?}", shrunk.session.duration());
    assert_eq!(things(&shrunk.session, CostKind::Losses).len(), 1);
    let shows = |session: &Session| diverges(session).expect("a log of this build");
    assert!(shows(&shrunk.session));
    assert_eq!(removable_parts::<Arena>(&shrunk.session, &shows), []);
}

#[test]
fn the_smaller_log_is_a_normal_log() {
    let session = record::<Arena>(scenario(4, 10.0, 0.02), ArenaRules::default());
    let shrunk = shrink::<Arena, _>(&session, &diverges, &mut |_| {}).expect("the session diverges").session;
    assert!(shrunk.states.of_tick(Tick(0)).count() == 2, "it begins in the middle, with two players");
    let file = write_session(Vec::new(), &shrunk, LogOptions::whole()).expect("a session that can be written");
    let read = read_session(&file[..]).expect("a log");
    assert_eq!(read, shrunk);
    let replayed = replay::<Arena>(&read, &ReplayOptions::default(), &mut |_| {}).expect("a log of this build");
    assert_eq!(replayed.first_difference, None);
    assert_eq!(replayed.hashes_compared, read.ticks.len() as u64);
}

#[test]
fn players_keep_their_own_settings_under_their_new_numbers() {
    let mut scenario = scenario(3, 1.0, 0.0);
    for (key, value) in [("p1.interpolation.lerp_ms", "20"), ("p2.interpolation.lerp_ms", "50")] {
        scenario.settings.insert(key.to_owned(), value.to_owned());
    }
    let session = record::<Arena>(scenario, ArenaRules::default());
    let edited = without(&session, &[Removable::Player(1)]);
    let of_players = |session: &Session| -> Vec<(String, String)> {
        session
            .header
            .settings
            .iter()
            .filter(|(key, _)| key.starts_with("p1.") || key.starts_with("p2."))
            .cloned()
            .collect()
    };
    assert_eq!(of_players(&session).len(), 2);
    assert_eq!(of_players(&edited), [("p1.interpolation.lerp_ms".to_owned(), "50".to_owned())]);
    let again = rerecord::<Arena>(&edited, None).expect("the input replays");
    assert_eq!(of_players(&again), of_players(&edited));
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let session = record::<Arena>(scenario(3, 8.0, 0.02), ArenaRules::default());
    let with = |threads| -> ShrinkResult {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be had");
        pool.install(|| shrink::<Arena, _>(&session, &diverges, &mut |_| {}).expect("the session diverges"))
    };
    let (one, three) = (with(1), with(3));
    assert_eq!((&one.session, one.probes, &one.removed), (&three.session, three.probes, &three.removed));
}

#[test]
fn logs_without_the_problem_are_not_shrunk_and_errors_are_reported() {
    let session = record::<Discs>(scenario(2, 2.0, 0.0), crate::disc::DiscRules::default());
    let never = shrink::<Discs, Infallible>(&session, &|_| Ok(false), &mut |_| {});
    assert!(matches!(never, Err(ShrinkError::NotShown)));
    let once = |tried: &Session| Ok::<bool, Infallible>(tried.players.len() == 2 && *tried == session);
    let mut other = session.clone();
    other.ticks[3].hash = None;
    let unlike = |tried: &Session| Ok::<bool, Infallible>(*tried == other);
    assert!(matches!(shrink::<Discs, _>(&other, &unlike, &mut |_| {}), Err(ShrinkError::NotReproduced)));
    let alone = shrink::<Discs, _>(&session, &once, &mut |_| {}).expect("shown by the session itself");
    assert_eq!(alone.session, session);
    let failing = |tried: &Session| match tried.players.len() {
        2 => Ok(true),
        _ => Err(std::fmt::Error),
    };
    assert!(matches!(shrink::<Discs, _>(&session, &failing, &mut |_| {}), Err(ShrinkError::Property(_))));
}

#[test]
fn a_game_that_begins_only_at_its_spawn_is_shrunk() {
    let rules = crate::disc::DiscRules { rooted: true, ..crate::disc::DiscRules::default() };
    let session = record::<Discs>(scenario(4, 6.0, 0.03), rules);
    let shows = |session: &Session| things(session, CostKind::Losses).len() >= 2 && session.players.len() >= 2;
    let shrunk =
        shrink::<Discs, Infallible>(&session, &|s| Ok(shows(s)), &mut |_| {}).expect("many packets are lost").session;
    assert_eq!(shrunk.states.of_tick(Tick(0)).count(), 0);
    assert!(shrunk.players.len() == 2 && shrunk.ticks.len() < 20, "{} ticks", shrunk.ticks.len());
    assert_eq!(removable_parts::<Discs>(&shrunk, &shows), []);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn the_result_shows_the_problem_and_has_no_removable_part(
        seed in any::<u64>(),
        players in 2u16..5,
        least in proptest::array::uniform5(0usize..4),
        rooted in any::<bool>(),
    ) {
        let rules = crate::disc::DiscRules { rooted, push_units: 3.0, ..crate::disc::DiscRules::default() };
        let session = record::<Discs>(Scenario { seed, ..scenario(players, 2.0, 0.08) }, rules);
        let kinds = [CostKind::Losses, CostKind::Duplicates, CostKind::Buttons, CostKind::Angles, CostKind::Moves];
        let shows = |session: &Session| {
            session.players.len() >= 2 && kinds.iter().zip(least).all(|(kind, least)| things(session, *kind).len() >= least)
        };
        prop_assume!(shows(&session));
        let mut last = None;
        let mut falls = true;
        let shrunk = shrink::<Discs, Infallible>(&session, &|s| Ok(shows(s)), &mut |step| {
            falls &= last.is_none_or(|last| step.left <= last);
            last = Some(step.left);
        });
        let shrunk = shrunk.expect("the session shows it").session;
        prop_assert!(falls, "a session became larger on the way");
        prop_assert!(shows(&shrunk));
        prop_assert_eq!(&rerecord::<Discs>(&shrunk, None).expect("a log of this build"), &shrunk);
        prop_assert_eq!(removable_parts::<Discs>(&shrunk, &shows), vec![]);
    }
}
