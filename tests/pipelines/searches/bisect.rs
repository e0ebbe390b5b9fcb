//! Bisects two builds, one with a wrong bit: `bisect` finds the tick, the field and the cause.

use std::sync::Arc;

use crate::bugged::{Bug, Bugged, BuggedRules};
use crate::disc::Disc;
use hitreg::bisect::{CauseFinding, RerunResult, RerunStep, StateOwner, bisect_ticks};
use hitreg::diff::{CellValue, DiffOptions, DiffScope, NamedValue, TraceSide, TraceVerdict};
use hitreg::game::{Body, CellKind, DiscardingSink, Scene, Simulate};
use hitreg::link::LinkModel;
use hitreg::record::{Execution, Session};
use hitreg::recorded::recorded;
use hitreg::replay::{Part, ReplayOptions, replay};
use hitreg::rng::Rng;
use hitreg::session::scenario::Scenario;
use hitreg::session::{SessionRecorder, record_synthetic};
use hitreg::settings::Settings;
use hitreg::sorted::SortedMap;
use hitreg::trace::{ColumnData, Trace};
use hitreg::units::{CommandSeq, EntityId, Micros, PlayerId, Seed};

fn session() -> Session {
    let rules = BuggedRules {
        discs: crate::disc::DiscRules { ghosts: true, push_units: 3.0, ..crate::disc::DiscRules::default() },
        bug: None,
    };
    let link = LinkModel { delay_ms: 30.0, ..LinkModel::default() };
    let scenario = Scenario { players: 3, seconds: 3.0, seed: 41, link, ..Scenario::default() };
    let mut session = Session::new(scenario.header::<Bugged>(&rules).expect("a good scenario"));
    record_synthetic::<Bugged>(&scenario, &Arc::new(rules), &mut SessionRecorder::new(&mut session))
        .expect("a good scenario");
    session
}

fn rules(session: &Session, bug: Option<Bug>) -> BuggedRules {
    let rules: BuggedRules = rmp_serde::from_slice(&session.header.rules).expect("the rules");
    BuggedRules { bug, ..rules }
}

fn build(session: &Session, bug: Option<Bug>) -> Trace {
    let mut session = session.clone();
    session.header.rules = rmp_serde::to_vec_named(&rules(&session, bug)).expect("MessagePack").into();
    replay::<Bugged>(&session, &ReplayOptions::default(), &mut |_| {}).expect("a log of this build").trace
}

fn options_of(on: DiffScope) -> DiffOptions {
    DiffOptions { on, ..DiffOptions::default() }
}

const FIELDS: [(&str, u32); 4] = [("origin.x", 23), ("origin.y", 23), ("velocity.x", 20), ("hits_taken", 12)];

fn cell(name: &str) -> usize {
    Disc::fields().iter().position(|f| f.name == name).expect("a field")
}

/// A bit is wrong only on the server, after the usercmds: `bisect` names the state by tick.
#[test]
fn a_bit_wrong_in_one_tick_is_found_by_tick_entity_and_field() {
    let session = session();
    let good = build(&session, None);
    let mut rng = Rng::new(Seed(1), 0);
    for _ in 0..25 {
        let (field, bits) = FIELDS[rng.below(FIELDS.len() as u64) as usize];
        let (tick, entity) = (20 + rng.below(150) as u32, rng.below(3) as u16);
        let bug = Bug::Tick { tick, entity, cell: cell(field), bit: rng.below(u64::from(bits)) as u32 };
        let bad = build(&session, Some(bug));
        for options in [options_of(DiffScope::Any), options_of(DiffScope::State)] {
            let found = bisect_ticks(&good, &bad, &options, None).expect("no tolerance");
            let first = found.first.expect("a divergence");
            let place = (first.table.as_str(), first.place.tick, first.place.entity, first.field.as_deref());
            assert_eq!(place, ("bodies", Some(tick), Some(u32::from(entity)), Some(field)), "{bug:?}");
            assert_eq!(found.cause.expect("a cause").cause.name(), "build", "{bug:?}");
            let before = first.last_agreeing.expect("a state before it");
            assert_eq!((before.place.tick, before.place.entity), (Some(tick - 1), Some(u32::from(entity))));
        }
    }
}

/// A bit is wrong in shared code: the client predicts it first, then the server has it. A rerun of this usercmd in both
/// builds identifies it.
#[test]
fn a_bit_wrong_in_one_usercmd_is_found_and_reproduced() {
    let session = session();
    let good = build(&session, None);
    let mut rng = Rng::new(Seed(2), 0);
    for case in 0..25u64 {
        let (field, bit) = match case % 5 {
            0 => ("refire_ms", 8 + rng.below(4) as u32),
            _ => (FIELDS[(case % 2) as usize].0, rng.below(23) as u32),
        };
        let player = rng.below(3) as u16;
        let executed: Vec<_> =
            session.players[usize::from(player)].executed.iter().filter(|e| e.how == Execution::Run).collect();
        let chosen = executed[20 + rng.below(executed.len() as u64 - 40) as usize];
        let (command, tick) = (chosen.command.0, chosen.tick.0);
        let bug = Bug::Usercmd { player, command, cell: cell(field), bit };
        let bad = build(&session, Some(bug));

        let any = bisect_ticks(&good, &bad, &options_of(DiffScope::Any), None)
            .expect("no tolerance")
            .first
            .expect("a divergence");
        assert_eq!(
            (any.table.as_str(), any.place.player, any.place.command),
            ("frames", Some(u32::from(player)), Some(command)),
            "{bug:?}"
        );
        assert!(
            any.field.iter().chain(any.others.iter().map(|o| &o.field)).any(|f| *f == format!("own.{field}")),
            "{bug:?}"
        );

        let of = |side| rules(&session, (side == TraceSide::B).then_some(bug));
        let mut rerun = |side: TraceSide, step: &RerunStep<'_>| rerun(&session, &of(side), step, step.others);
        let found = bisect_ticks(&good, &bad, &options_of(DiffScope::State), Some(&mut rerun)).expect("no tolerance");
        let first = found.first.expect("a divergence");
        assert_eq!((first.place.tick, first.place.entity), (Some(tick), Some(u32::from(player))), "{bug:?}");
        assert_eq!(first.field.as_deref(), Some(field), "{bug:?}");
        match found.reran.expect("it was run again") {
            RerunResult::Differs { player: of, command: which, field: what, .. } => {
                assert_eq!((of, which, what.as_str()), (u32::from(player), command, field));
            }
            other => panic!("{bug:?}: {other:?}"),
        }
        assert!(
            found.cause.expect("a cause").evidence.starts_with(&format!("usercmd {command} of p{player}, run again"))
        );
    }
}

/// Bodies pass through each other in one build only.
#[test]
fn a_collision_is_reproduced_among_the_others() {
    let (mut reproduced, mut alone) = (0, 0);
    for seed in 1..=12 {
        let solid = BuggedRules {
            discs: crate::disc::DiscRules { ghosts: false, ..crate::disc::DiscRules::default() },
            bug: None,
        };
        let link = LinkModel { delay_ms: 30.0, ..LinkModel::default() };
        let scenario = Scenario { players: 6, seconds: 8.0, seed, link, ..Scenario::default() };
        let mut session = Session::new(scenario.header::<Bugged>(&solid).expect("a good scenario"));
        let rules = Arc::new(solid);
        record_synthetic::<Bugged>(&scenario, &rules, &mut SessionRecorder::new(&mut session))
            .expect("a good scenario");
        let ghosts = BuggedRules {
            discs: crate::disc::DiscRules { ghosts: true, ..crate::disc::DiscRules::default() },
            bug: None,
        };
        let mut other = session.clone();
        other.header.rules = rmp_serde::to_vec_named(&ghosts).expect("MessagePack").into();
        let (a, b) = (build(&session, None), build(&other, None));
        let of = |side| if side == TraceSide::A { &*rules } else { &ghosts };
        let nobody = SortedMap::new();
        for among in [true, false] {
            let mut rerun = |side: TraceSide, step: &RerunStep<'_>| {
                rerun(&session, of(side), step, if among { step.others } else { &nobody })
            };
            let found = bisect_ticks(&a, &b, &options_of(DiffScope::State), Some(&mut rerun)).expect("no tolerance");
            let (Some(first), Some(reran)) = (found.first, found.reran) else { continue };
            match reran {
                RerunResult::Differs { player, a, b, field, .. } if among => {
                    // The rerun gives the values of the two traces.
                    assert_eq!(Some(player), first.place.entity);
                    assert_eq!((Some(field), Some(a), Some(b)), (first.field, first.a, first.b), "seed {seed}");
                    assert_eq!(found.cause.expect("a cause").cause.name(), "build");
                    reproduced += 1;
                }
                RerunResult::Same if !among => alone += 1,
                other => panic!("seed {seed}, among the others: {among}: {other:?}"),
            }
        }
    }
    eprintln!("{reproduced} collisions reproduced; without the others, {alone} usercmds show nothing");
    assert!(reproduced >= 3 && alone == reproduced, "{reproduced} of {alone}");
}

/// Reruns one usercmd of the log among other bodies, under the rules of one build.
fn rerun(
    session: &Session,
    rules: &BuggedRules,
    step: &RerunStep<'_>,
    others: &SortedMap<StateOwner, Vec<NamedValue>>,
) -> Result<Vec<NamedValue>, String> {
    let disc = |body: &[NamedValue]| {
        let cells: Vec<u32> = body.iter().map(|named| word(&named.value)).collect::<Result<_, _>>()?;
        Disc::read(&cells).map_err(|bad| bad.to_string())
    };
    let body = disc(step.body)?;
    let others = others.iter().map(|(owner, body)| Ok((EntityId(owner.entity as u16), disc(body)?)));
    let entities: Vec<(EntityId, Disc)> = others.collect::<Result<_, String>>()?;
    let player = PlayerId(step.command.player as u16);
    let frames = &session.players[usize::from(player.0)].frames;
    let frame = frames.iter().find(|f| f.command.seq == CommandSeq(step.command.command)).ok_or("no such usercmd")?;
    let scene = Scene { seed: session.header.seed, player, entities: &entities, weapons: true };
    let after = Bugged::step_body(rules, &scene, &body, &frame.command, &mut DiscardingSink);
    let mut cells = vec![0; Disc::CELLS];
    after.write(&mut cells);
    let value = |(field, cell): (&hitreg::game::FieldSchema, &u32)| match field.kind {
        CellKind::F32 => CellValue::Float(f32::from_bits(*cell)),
        CellKind::I32 => CellValue::Integer(i64::from(*cell as i32)),
        _ => CellValue::Integer(i64::from(*cell)),
    };
    let named = Disc::fields();
    Ok(named.iter().zip(&cells).map(|pair| NamedValue { name: pair.0.name.clone(), value: value(pair) }).collect())
}

fn word(value: &CellValue) -> Result<u32, String> {
    match value {
        CellValue::Float(v) => Ok(v.to_bits()),
        CellValue::Integer(v) => u32::try_from(*v).map_err(|e| e.to_string()),
        _ => Err("not a cell".to_owned()),
    }
}

#[test]
fn two_runs_of_one_build_are_the_same() {
    let session = session();
    let found = bisect_ticks(&build(&session, None), &build(&session, None), &options_of(DiffScope::Any), None)
        .expect("no tolerance");
    assert_eq!((found.verdict, found.first, found.cause), (TraceVerdict::Same, None, None));
    assert!(found.ticks_compared > 150);
}

#[test]
fn a_replay_is_compared_with_recorded_states() {
    let session = session();
    let log = recorded(&session).expect("a log with a server");
    let overlap = DiffOptions { overlap_only: true, ..DiffOptions::default() };
    let found = bisect_ticks(&log, &build(&session, None), &overlap, None).expect("no tolerance");
    assert_eq!((found.verdict, found.first), (TraceVerdict::Same, None));
    assert!(found.ticks_compared > 150);
    // A tick with sent states, which are therefore in the log.
    let tick = session.states.keys()[session.states.len() / 2].tick.0;
    let bug = Bug::Tick { tick, entity: 1, cell: cell("origin.x"), bit: 18 };
    let found = bisect_ticks(&log, &build(&session, Some(bug)), &overlap, None).expect("no tolerance");
    let first = found.first.expect("a divergence");
    assert_eq!((first.table.as_str(), first.place.tick, first.place.entity), ("bodies", Some(tick), Some(1)));
    assert_eq!(found.cause.expect("a cause").cause.name(), "build");
}

#[test]
fn causes_are_distinguished() {
    let session = session();
    let good = build(&session, None);
    let cause = |bad: &Trace, on_what| {
        let found = bisect_ticks(&good, bad, &options_of(on_what), None).expect("no tolerance");
        found.cause.expect("a cause").cause.name()
    };
    let mut lost = good.clone();
    change(&mut lost, "executed", "how", 100, 1);
    assert_eq!(cause(&lost, DiffScope::Any), "input_lost");
    // Replays of one log have the same packets, so a setting explains what only one of them ran.
    let mut by_setting = lost.clone();
    let setting = by_setting.header.settings.iter_mut().find(|(key, _)| key == "server.on_lost_command");
    setting.expect("a setting").1 = "skip".to_owned();
    assert_eq!(cause(&by_setting, DiffScope::Any), "settings");
    let mut refused = good.clone();
    change(&mut refused, "executed", "how", 100, 4);
    assert_eq!(cause(&refused, DiffScope::Any), "input_refused");
    let mut late = good.clone();
    change(&mut late, "executed", "how", 100, 3);
    assert_eq!(cause(&late, DiffScope::Any), "input_late");
    let mut input = session.clone();
    input.players[1].frames[60].command.input.forwardmove += 1.0;
    assert_eq!(cause(&build(&input, None), DiffScope::Any), "other_input");
    assert_eq!(cause(&build(&input, None), DiffScope::State), "other_input");
    let mut teleported = good.clone();
    change(&mut teleported, "bodies", "teleports", 100, 1);
    assert_eq!(cause(&teleported, DiffScope::Any), "teleport");
    let mut settings = Settings::from_pairs(&session.header.settings).expect("recorded settings");
    settings.set_pair("interpolation.lerp_ms=50").expect("a good setting");
    let options = ReplayOptions { settings: Some(settings), ..ReplayOptions::default() };
    let other = replay::<Bugged>(&session, &options, &mut |_| {}).expect("a log of this build").trace;
    assert_eq!(cause(&other, DiffScope::Views), "settings");
    let state = bisect_ticks(&good, &other, &options_of(DiffScope::State), None).expect("no tolerance");
    let found = state.cause.expect("a cause");
    // In this game, a hit moves its target at once. A trace cannot show that, so the shot is named second.
    let effect = found.evidence.split_once("; ").expect("the setting, and what it did").1;
    assert!(found.cause.name() == "settings" && effect.starts_with("a consequence: the shot of p"), "{found:?}");
    // Builds with the same settings, of which one changes who is hit, and so who moves.
    let mut same_settings = other.clone();
    same_settings.header.settings = good.header.settings.clone();
    assert_eq!(cause(&same_settings, DiffScope::State), "build");
    // A lethal shot and a death in one row: the shot is the cause.
    let shots = good.table("shots").expect("shots");
    let hit = (0..shots.rows()).find(|row| shots.names("reason").get(*row) == "hit").expect("a hit");
    let (tick, target) =
        (shots.u32s("tick")[hit], shots.names("target").get(hit)[1..].parse::<u32>().expect("a player"));
    let mut weaker = good.clone();
    let bodies = weaker.table("bodies").expect("bodies");
    let body = bodies.u32s("tick").iter().zip(bodies.u32s("entity")).position(|key| key == (&tick, &target));
    change(&mut weaker, "shots", "damage", hit, 99);
    change(&mut weaker, "bodies", "alive", body.expect("its body"), 0);
    let found = bisect_ticks(&good, &weaker, &options_of(DiffScope::State), None).expect("no tolerance");
    let found = found.cause.expect("a cause");
    assert!(found.cause.name() == "shot" && found.evidence.contains(" in A, 99 in B"), "{found:?}");
}

/// The cause is not that usercmds were late: one run has no row of them at all.
#[test]
fn a_run_that_ends_early_is_the_cause_itself() {
    let session = session();
    let good = build(&session, None);
    let cause = |shorter: &Trace| {
        let found = bisect_ticks(&good, shorter, &options_of(DiffScope::Any), None).expect("no tolerance");
        let CauseFinding { cause, evidence, .. } = found.cause.expect("a cause");
        (cause.name(), evidence)
    };
    let until = good.table("ticks").expect("ticks").i64s("at_us")[100];
    let mut shorter = good.clone();
    Part { from: Part::WHOLE.from, to: Micros(until) }.cut(&mut shorter);
    let (name, evidence) = cause(&shorter);
    assert!(name == "build" && evidence.ends_with(": run in A, in no tick in B"), "{name}: {evidence}");
    shorter.header.part = Some([Micros::ZERO, Micros(until)]);
    assert_eq!(cause(&shorter).0, "unknown");
}

fn change(trace: &mut Trace, table: &str, column: &str, row: usize, value: u8) {
    let table = trace.tables.iter_mut().find(|t| t.name == table).expect("the table");
    match &mut table.columns.iter_mut().find(|c| c.name == column).expect("the column").data {
        ColumnData::U32(values) => values[row] = u32::from(value),
        ColumnData::I64(values) => values[row] = i64::from(value),
        ColumnData::Name { codes, .. } => codes[row] = u32::from(value),
        _ => panic!("a column of counts or names"),
    }
}
