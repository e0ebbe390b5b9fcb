//! Work on request. A replay of some tables has the same rows as a replay of all tables. Screens without a viewer are
//! not drawn, which changes nothing else.

use std::sync::Arc;

use crate::built_in::replay;
use hitreg::arena::{Arena, ArenaRules};
use hitreg::diff::{DiffOptions, DiffScope, TraceDiff, diff};
use hitreg::engine::{ComparisonSpec, Engine, ReplaySpec, ReplaySpecs};
use hitreg::link::{Jitter, LinkModel, Loss, ModelledLink};
use hitreg::pipeline::Setup;
use hitreg::record::Session;
use hitreg::replay::ReplayOptions;
use hitreg::rng::stream;
use hitreg::session::scenario::Scenario;
use hitreg::session::{InputSource, Links, Machine, Observer, PlayerScreen, SessionEvent};
use hitreg::settings::Settings;
use hitreg::trace::schema::{TABLES, TableSet};
use hitreg::units::{Micros, PlayerId, Seed};
use hitreg::usercmd::Input;
use tempfile::TempDir;

use crate::streams::{file, joined_rows, record};

fn link() -> LinkModel {
    LinkModel { delay_ms: 45.0, jitter: Jitter::Uniform(10.0), loss: Loss::Random(0.05), ..LinkModel::default() }
}

fn scenario(preset: &str) -> Scenario {
    Scenario { players: 4, seconds: 20.0, preset: preset.to_owned(), link: link(), ..Scenario::default() }
}

#[test]
fn requested_tables_equal_those_of_a_full_replay() {
    for preset in ["half-life", "nereids"] {
        let session = record(&scenario(preset));
        let file = file(&session, Micros::from_s(1));
        let of = |tables| ReplayOptions { network: true, tables, ..ReplayOptions::default() };
        let whole = replay(&session, &of(TableSet::ALL)).expect("a log of this build").trace;
        assert!(whole.table("shots").expect("it has shots").rows() > 20);
        let name = |index: usize| TABLES[index % TABLES.len()].name;
        // Each table alone, and each with a later one.
        let some = (0..TABLES.len()).flat_map(|n| [vec![name(n)], vec![name(n), name(n + 5)]]);
        for wanted in std::iter::once(Vec::new()).chain(some) {
            let options = of(TableSet::named(wanted.iter().copied()));
            let replayed = replay(&session, &options).expect("a log of this build");
            assert_eq!(replayed.findings.first_difference, None);
            let (streamed, ran, _) = joined_rows(&file, &options);
            assert!(ran.first_difference.is_none() && ran.hashes_compared == replayed.findings.hashes_compared);
            let there: Vec<_> = whole.tables.iter().filter(|table| wanted.contains(&&*table.name)).collect();
            for some in [&replayed.trace, &streamed] {
                let names = |tables: &mut dyn Iterator<Item = &str>| tables.map(str::to_owned).collect::<Vec<_>>();
                let is = names(&mut some.tables.iter().map(|table| &*table.name));
                assert_eq!(is, names(&mut there.iter().map(|table| &*table.name)), "{preset}");
                for was in &there {
                    let is = some.table(&was.name).expect("its name is there");
                    assert!(was.digest() == is.digest(), "{preset}, {wanted:?}: `{}` is another", was.name);
                }
            }
        }
    }
}

/// For a comparison of some tables, a replay in this process makes only those tables.
#[test]
fn a_comparison_of_some_tables_makes_only_them_and_finds_the_same() {
    let folder = TempDir::new().expect("a temporary folder");
    let log = folder.path().join("a.hitlog");
    std::fs::write(&log, file(&record(&scenario("half-life")), Micros::from_s(1))).expect("written");
    let games = hitreg::registry::built_in();
    let engine = Engine::new(&games);
    let compared = |on: DiffScope, tables: TableSet| {
        let b = ReplaySpec { set: vec!["interpolation.lerp_ms=50".to_owned()], ..ReplaySpec::default() };
        let mut replays = ReplaySpecs { a: ReplaySpec::default(), b };
        replays.limit_tables(tables);
        let sides =
            ComparisonSpec { first: log.clone(), second: None, replays, across: None, compare_unrelated: false };
        let [a, b] = sides.make_traces(&engine).expect("it is there").sides;
        let traces = [a.source(), b.source()];
        let names: Vec<String> = traces[0].tables().iter().map(|(table, _)| table.name.clone()).collect();
        let found = diff(traces[0], traces[1], &DiffOptions { on, ..DiffOptions::default() });
        (names, found.expect("they can be compared"))
    };
    let around = ["ticks", "bodies", "executed", "frames"];
    let each: [(DiffScope, &[&str]); 5] = [
        (DiffScope::State, &[]),
        (DiffScope::Hits, &["shots"]),
        (DiffScope::Corrections, &["corrections", "errors"]),
        (DiffScope::Views, &["views", "variables"]),
        (DiffScope::Network, &["packets", "snapshots"]),
    ];
    for (on, tables) in each {
        let (names, found) = compared(on, on.tables());
        let (all, whole) = compared(on, DiffScope::Any.tables());
        let asked = all.iter().filter(|name| around.contains(&&***name) || tables.contains(&&***name));
        assert!(names.iter().eq(asked), "{on:?}: {names:?}");
        assert!(names.len() < all.len());
        // Compared as text, because NaN is not equal to itself.
        let text = |of: &TraceDiff| format!("{:?} {:?} {:?} {:?}", of.verdict, of.worst, of.first, of.tables);
        assert!(text(&found) == text(&whole) && found.hits == whole.hits, "{on:?}");
    }
}

/// A player who sends the recorded input and does not need the screen.
struct Blind<'a> {
    session: &'a Session,
    next: Vec<usize>,
}

impl InputSource<Arena> for Blind<'_> {
    fn next_frame(&mut self, player: PlayerId) -> Option<Micros> {
        let player = usize::from(player.0);
        self.session.players[player].frames.get(self.next[player]).map(|frame| frame.at)
    }

    fn input(&mut self, _at: Micros, screen: &PlayerScreen<'_, Arena>) -> Input {
        let player = usize::from(screen.player.0);
        self.next[player] += 1;
        self.session.players[player].frames[self.next[player] - 1].command.input.clone()
    }

    fn needs_drawing(&self) -> bool {
        false
    }
}

/// The trace of a session, and the number of drawn bodies.
#[derive(Default)]
struct DrawCounts {
    needs_drawing: bool,
    drawn: usize,
    drawn_at: Vec<Micros>,
    shots: Vec<String>,
    hashes: Vec<u64>,
}

impl Observer<Arena> for DrawCounts {
    fn needs_drawing(&mut self, _at: Micros) -> bool {
        self.needs_drawing
    }

    fn event(&mut self, _at: Micros, event: &SessionEvent<'_, Arena>) {
        match event {
            SessionEvent::Frame { output, screen, .. } => {
                self.drawn += screen.drawn.len();
                self.drawn_at.push(screen.drawn_at);
                self.shots.extend(output.shots.iter().map(|shot| format!("{shot:?}")));
            }
            SessionEvent::Ticked { outcome, .. } => self.hashes.push(outcome.hash),
            _ => {}
        }
    }
}

#[test]
fn screens_without_a_viewer_are_not_drawn_and_change_nothing() {
    // The share of bodies that is drawn for a player who does not need the screen: only those at shots, or all if
    // drawing one frame affects the next.
    for (preset, mode, draws_all) in [
        ("half-life", "history", false),
        ("half-life", "two-point", false),
        ("half-life", "extrapolate", false),
        ("half-life", "last-rendered", true),
        ("nereids", "category", true),
    ] {
        let mut settings = Settings::preset(preset).expect("a preset");
        settings.set("interpolation.mode", mode).expect("a mode");
        let scenario =
            Scenario { settings: [("interpolation.mode".to_owned(), mode.to_owned())].into(), ..scenario(preset) };
        let session = record(&scenario);
        let play = |needs_drawing| {
            let seed = Seed(scenario.seed);
            let setup = Setup { rules: Arc::new(ArenaRules::default()), settings: Arc::new(settings.clone()), seed };
            // The link has the recorded seed, so that aimed shots hit.
            let link = |n: u32| ModelledLink::new(link(), seed, stream(*b"link", n));
            let links = (0..4).map(|player| Links { up: link(2 * player), down: link(2 * player + 1) }).collect();
            let mut seen = DrawCounts { needs_drawing, ..DrawCounts::default() };
            let ticks = session.ticks.iter().map(|tick| tick.at);
            let mut input = Blind { session: &session, next: vec![0; 4] };
            Machine::<Arena, ModelledLink>::new(&setup, links).run(ticks, &mut input, &mut seen);
            seen
        };
        let (looked, away) = (play(true), play(false));
        assert!(looked.shots.iter().any(|shot| shot.contains("Hit")), "{mode}: a screen shows a hit");
        assert!(looked.hashes.iter().copied().eq(session.ticks.iter().filter_map(|tick| tick.hash)), "{mode}");
        assert!(looked.shots == away.shots, "{mode}: and who does not look hits the same");
        assert!(looked.hashes == away.hashes && looked.drawn_at == away.drawn_at, "{mode}");
        match draws_all {
            true => assert_eq!(away.drawn, looked.drawn, "{mode}"),
            false => assert!(away.drawn * 5 < looked.drawn, "{mode}: {} of {} drawn", away.drawn, looked.drawn),
        }
    }
}
