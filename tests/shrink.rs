//! Shrinking: what is left still shows it, is a valid log, and cannot do without any of its parts.

mod patched;

use std::sync::Arc;
use std::time::Instant;

use hitreg::arena::{Arena, ArenaRules};
use hitreg::link::{LinkModel, Loss};
use hitreg::record::Session;
use hitreg::replay::{Options, ReplayError, replay, rerecord};
use hitreg::session::scenario::Scenario;
use hitreg::session::{Recorder, record_synthetic};
use hitreg::shrink::{Kind, ShrinkError, Shrunk, shrink, things, without};
use hitreg::units::Micros;
use patched::Patched;

fn record(players: u16, seconds: f64, loss: f64) -> Session {
    let link = LinkModel { delay_ms: 40.0, loss: Loss::Random(loss), ..LinkModel::default() };
    let mut scenario = Scenario { players, seconds, link, ..Scenario::default() };
    scenario.settings.insert("client.redundancy".to_owned(), "1".to_owned());
    let rules = ArenaRules::default();
    let mut session = Session::new(scenario.header::<Arena>(&rules).expect("a good scenario"));
    record_synthetic::<Arena>(&scenario, &Arc::new(rules), &mut Recorder::new(&mut session)).expect("a good scenario");
    session
}

/// Whether the build with the bug plays a session differently.
fn diverges(session: &Session) -> Result<bool, ReplayError> {
    Ok(rerecord::<Patched>(session, None)?.ticks != session.ticks)
}

fn shrunk(session: &Session) -> Shrunk {
    shrink::<Arena, ReplayError>(session, &diverges, &mut |_| {}).expect("the session diverges")
}

/// Every way of taking a single thing out that still shows it.
fn spare(session: &Session) -> Vec<hitreg::shrink::Thing> {
    let all = Kind::ALL.into_iter().flat_map(|kind| things(session, kind));
    all.filter(|thing| {
        let less = without(session, &[*thing]);
        let empty = less.players.iter().all(|p| p.frames.is_empty()) || less.ticks.is_empty();
        !empty && diverges(&rerecord::<Arena>(&less, None).expect("a log of this build")).expect("the same")
    })
    .collect()
}

#[test]
fn a_minute_of_sixteen_shrinks_to_two_players_and_a_moment() {
    let session = record(16, 60.0, 0.002);
    #[expect(clippy::disallowed_methods, reason = "the bar is a time")]
    let begun = Instant::now();
    let result = shrink::<Arena, ReplayError>(&session, &diverges, &mut |step| if step.smaller { eprintln!("{:?} {step:?}", begun.elapsed()) }).expect("the session diverges");
    eprintln!("{:?}, {} probes, {:?}: {:#?}", begun.elapsed(), result.probes, result.session.duration(), result.removed);
    assert_eq!(result.session.players.len(), 2);
    assert!(result.session.duration() < Micros::from_s(2), "{:?}", result.session.duration());
    assert_eq!(things(&result.session, Kind::Losses).len(), 1);
    assert!(diverges(&result.session).expect("a log of this build"));
    assert_eq!(spare(&result.session), []);
}
