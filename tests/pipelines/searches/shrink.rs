//! Shrinking: the smaller log still shows the problem, is valid, and has no removable part.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::built_in::{self, replay, rerecord, shrink as shrink_arena};
use crate::disc::{DiscRules, Discs};
use crate::helm::{Helm, Sail, Sea, Ships};
use crate::patched::Patched;
use hitreg::arena::ArenaRules;
use hitreg::engine::replaying;
use hitreg::game::GameInput;
use hitreg::link::{Jitter, LinkModel, Loss};
use hitreg::log::{WriterOptions as LogOptions, read_session, write_session};
use hitreg::memory::MemoryLimit;
use hitreg::pipeline::Netcode;
use hitreg::record::Session;
use hitreg::replay::{ReplayError, ReplayOptions};
use hitreg::session::scenario::Scenario;
use hitreg::session::{SessionRecorder, record_synthetic};
use hitreg::shrink::ShrinkEdit::Rerecorded;
use hitreg::shrink::{CostKind, PropertyCheck, Removable, ShrinkError, ShrinkResult, ShrinkStep};
use hitreg::trace::schema::TableSet;
use hitreg::units::{Micros, Tick};
use proptest::prelude::*;

fn record(scenario: Scenario) -> Session {
    built_in::record(&without_redundancy(scenario), ArenaRules::default())
}

fn record_discs(scenario: Scenario, rules: DiscRules) -> Session {
    let (scenario, rules) = (without_redundancy(scenario), Arc::new(rules));
    let mut session = Session::new(scenario.header::<Discs>(&rules).expect("a good scenario"));
    record_synthetic::<Discs>(&scenario, &rules, &mut SessionRecorder::new(&mut session)).expect("a good scenario");
    session
}

fn without_redundancy(mut scenario: Scenario) -> Scenario {
    scenario.settings.insert("client.redundancy".to_owned(), "1".to_owned());
    scenario
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
    let options = ReplayOptions { tables: TableSet::NONE, ..ReplayOptions::default() };
    let replayed = hitreg::replay::replay::<Patched>(session, &options, &mut |_| {})?;
    Ok(replayed.findings.first_difference.is_some())
}

/// Shrinks a session of a game that this test declares.
fn shrink<G: Netcode, E: std::error::Error + Send + 'static>(
    session: &Session,
    still: &PropertyCheck<'_, E>,
    progress: &mut dyn FnMut(&ShrinkStep),
) -> Result<ShrinkResult, ShrinkError<E>> {
    let parallel = rayon::current_num_threads();
    hitreg::shrink::shrink(&*replaying::<G>(), MemoryLimit::default(), session, still, parallel, progress)
}

/// Records the input and links of a session again.
type Rerecord = fn(&Session) -> Result<Session, ReplayError>;

fn rerecord_discs(session: &Session) -> Result<Session, ReplayError> {
    hitreg::replay::rerecord::<Discs>(MemoryLimit::default(), session, None)
}

/// Every part whose removal keeps the problem.
fn removable_parts(session: &Session, game: Rerecord, shows: &dyn Fn(&Session) -> bool) -> Vec<Removable> {
    let all = CostKind::ALL.into_iter().flat_map(|kind| Rerecorded.things(session, kind));
    all.filter(|thing| {
        let less = Rerecorded.without(session, &[*thing]);
        let is_empty = less.ticks.is_empty() || less.players.iter().all(|p| p.frames.is_empty());
        !is_empty && shows(&rerecorded(less, game))
    })
    .collect()
}

/// The session that a game makes of some input, from the spawn if it cannot begin elsewhere.
fn rerecorded(mut input: Session, game: Rerecord) -> Session {
    match game(&input) {
        Err(ReplayError::NoBeginning) => {
            input.states = Default::default();
            game(&input).expect("a log of this build")
        }
        again => again.expect("a log of this build"),
    }
}

/// A session that loses a single packet, near its end. The build with the bug differs because of it.
fn one_lost_packet(players: u16, seconds: f64) -> Session {
    let whole = record(scenario(players, seconds, 0.0));
    for player in 0..usize::from(players) {
        let mut session = whole.clone();
        let reached = &mut session.players[player].reached;
        reached.remove(reached.len() * 3 / 4);
        let session = rerecord(&session).expect("a log of this build");
        if diverges(&session).expect("a log of this build") {
            return session;
        }
    }
    panic!("no player was near another when a packet was lost");
}

#[test]
fn a_minute_of_16_players_shrinks_to_two_players_and_a_moment() {
    let session = one_lost_packet(16, 60.0);
    assert_eq!(Rerecorded.things(&session, CostKind::Losses).len(), 1);
    let usercmds = |session: &Session| session.players.iter().map(|player| player.frames.len()).sum::<usize>();
    let played = AtomicUsize::new(0);
    let counted = |session: &Session| {
        played.fetch_add(usercmds(session), Ordering::Relaxed);
        diverges(session)
    };
    let shrunk = shrink_arena(&session, &counted).expect("the session diverges");
    let times_the_session = played.into_inner() / usercmds(&session);
    eprintln!("{times_the_session}, {} probes, {:?}: {:#?}", shrunk.probes, shrunk.session.duration(), shrunk.removed);
    assert!(times_the_session < 20, "the work is that of playing the session {times_the_session} times");
    assert_eq!(shrunk.session.players.len(), 2);
    assert!(shrunk.session.duration() < Micros::from_s(2), "{:?}", shrunk.session.duration());
    assert_eq!(Rerecorded.things(&shrunk.session, CostKind::Losses).len(), 1);
    let shows = |session: &Session| diverges(session).expect("a log of this build");
    assert!(shows(&shrunk.session));
    assert_eq!(removable_parts(&shrunk.session, rerecord, &shows), []);
}

#[test]
fn the_smaller_log_is_a_normal_log() {
    let session = record(scenario(4, 10.0, 0.02));
    let shrunk = shrink_arena(&session, &diverges).expect("the session diverges").session;
    assert!(shrunk.states.of_tick(Tick(0)).count() == 2, "it begins in the middle, with two players");
    let file = write_session(Vec::new(), &shrunk, LogOptions::whole()).expect("a session that can be written");
    let read = read_session(&file[..]).expect("a log");
    assert_eq!(read, shrunk);
    let replayed = replay(&read, &ReplayOptions::default()).expect("a log of this build");
    assert_eq!(replayed.findings.first_difference, None);
    assert_eq!(replayed.findings.hashes_compared, read.ticks.len() as u64);
}

#[test]
fn players_keep_their_own_settings_under_their_new_numbers() {
    let mut scenario = scenario(3, 1.0, 0.0);
    for (key, value) in [("p1.interpolation.lerp_ms", "20"), ("p2.interpolation.lerp_ms", "50")] {
        scenario.settings.insert(key.to_owned(), value.to_owned());
    }
    let session = record(scenario);
    let edited = Rerecorded.without(&session, &[Removable::Player(1)]);
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
    let names: Vec<&str> = edited.header.players.iter().map(|player| &*player.name).collect();
    assert_eq!(names, ["p0", "p1"], "the number of a player without a name follows it, too");
    let again = rerecord(&edited).expect("the input replays");
    assert_eq!(of_players(&again), of_players(&edited));
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let session = record(scenario(3, 8.0, 0.02));
    let with = |threads| -> ShrinkResult {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads can be had");
        pool.install(|| shrink_arena(&session, &diverges).expect("the session diverges"))
    };
    let (one, three) = (with(1), with(3));
    assert_eq!((&one.session, one.probes, &one.removed), (&three.session, three.probes, &three.removed));
}

#[test]
fn logs_without_the_problem_are_not_shrunk_and_errors_are_reported() {
    let session = record_discs(scenario(2, 1.0, 0.0), DiscRules::default());
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
    let rules = DiscRules { rooted: true, ..DiscRules::default() };
    let session = record_discs(scenario(4, 6.0, 0.03), rules);
    let shows =
        |session: &Session| Rerecorded.things(session, CostKind::Losses).len() >= 2 && session.players.len() >= 2;
    let shrunk =
        shrink::<Discs, Infallible>(&session, &|s| Ok(shows(s)), &mut |_| {}).expect("many packets are lost").session;
    assert_eq!(shrunk.states.of_tick(Tick(0)).count(), 0);
    assert!(shrunk.players.len() == 2 && shrunk.ticks.len() < 20, "{} ticks", shrunk.ticks.len());
    assert_eq!(removable_parts(&shrunk, rerecord_discs, &shows), []);
}

/// Of the fields that a game declares, only those of the problem keep a value.
#[test]
fn the_games_own_input_is_removed_too() {
    let (scenario, rules) = (without_redundancy(scenario(2, 4.0, 0.0)), Arc::new(Sea::default()));
    let mut session = Session::new(scenario.header::<Ships>(&rules).expect("a good scenario"));
    record_synthetic::<Ships>(&scenario, &rules, &mut SessionRecorder::new(&mut session)).expect("a good scenario");
    let helms = |session: &Session| -> Vec<Helm> {
        session.players.iter().flat_map(|player| &player.frames).map(|f| Helm::read(&f.command.input)).collect()
    };
    let shows = |session: &Session| helms(session).iter().any(|helm| helm.target != 0 && helm.thrust != 0.0);
    let shrunk = shrink::<Ships, Infallible>(&session, &|s| Ok(shows(s)), &mut |_| {}).expect("it shows it");
    let left: Vec<Helm> = helms(&shrunk.session).into_iter().filter(|helm| helm.target != 0).collect();
    let [helm] = &left[..] else { panic!("one usercmd is enough: {left:?}") };
    assert!(helm.thrust != 0.0 && (helm.rudder, helm.sail) == (0.0, Sail::Furled), "{helm:?}");
    let own = shrunk.removed.iter().find(|removed| removed.kind == CostKind::OwnInput).expect("every kind");
    assert!(own.before > 100 && own.after == 2, "{own:?}");
    let rerecord = |session: &Session| hitreg::replay::rerecord::<Ships>(MemoryLimit::default(), session, None);
    assert_eq!(removable_parts(&shrunk.session, rerecord, &shows), []);
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
        let rules = DiscRules { rooted, push_units: 3.0, ..DiscRules::default() };
        let session = record_discs(Scenario { seed, ..scenario(players, 2.0, 0.08) }, rules);
        let kinds = [CostKind::Losses, CostKind::Duplicates, CostKind::Buttons, CostKind::Angles, CostKind::Moves];
        let shows = |session: &Session| {
            session.players.len() >= 2 && kinds.iter().zip(least).all(|(kind, least)| Rerecorded.things(session, *kind).len() >= least)
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
        prop_assert_eq!(&rerecord_discs(&shrunk).expect("a log of this build"), &shrunk);
        prop_assert_eq!(removable_parts(&shrunk, rerecord_discs, &shows), vec![]);
    }
}
