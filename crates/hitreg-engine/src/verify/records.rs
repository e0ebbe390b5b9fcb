//! Compares a log's records with a replay of the log.

use hitreg_analysis::diff::{DiffOptions, TraceVerdict, diff};
use hitreg_log::record::{GapRecord, Session};
use hitreg_log::recorded::{judged_shots, recorded};
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::Trace;
use hitreg_log::trace::schema::{BODIES_OF_CLASS, bodies, is_bodies, ticks};
use hitreg_log::units::Tick;

/// The result of comparing a log's records with a replay of the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordComparison {
    /// The first difference, as text such as `` in `ticks`, first in tick 5: at_us``.
    pub(crate) first: Option<String>,
    /// The number of recorded bodies that were compared.
    pub(crate) bodies: u64,
}

impl RecordComparison {
    /// Compares records with the same rows of a replay. Rows and tables that only one has do not count.
    pub(crate) fn of(says: &Trace, played: &Trace) -> RecordComparison {
        let options = DiffOptions { overlap_only: true, ..DiffOptions::default() };
        let Ok(found) = diff(says, played, &options) else { return RecordComparison::default() };
        let of_bodies = found.tables.iter().filter(|table| is_bodies(&table.name));
        let bodies = of_bodies.map(|table| table.rows.compared).sum();
        let first = found
            .first
            .filter(|_| found.verdict == TraceVerdict::Differs)
            .map(|first| place(&first.table, first.place.tick, first.field.as_deref().unwrap_or("a row")));
        RecordComparison { first, bodies }
    }

    /// Compares the states, executions, input and shots of a log with the trace of a build. The trace must have every
    /// recorded body.
    pub(crate) fn of_build(session: &Session, trace: &Trace) -> RecordComparison {
        let Ok(says) = recorded(session) else { return RecordComparison::default() };
        let shots = Trace { header: says.header.clone(), tables: judged_shots(session).into_iter().collect() };
        let compared = RecordComparison::of(&says, trace);
        let first = compared.first.or_else(|| BodyRows::of(session, trace).first);
        RecordComparison { first: first.or_else(|| RecordComparison::of(&shots, trace).first), ..compared }
    }

    /// Adds the result for later rows.
    pub(crate) fn add(&mut self, later: RecordComparison) {
        self.first = self.first.take().or(later.first);
        self.bodies += later.bodies;
    }
}

fn place(table: &str, tick: Option<u32>, what: &str) -> String {
    let at = tick.map_or(String::new(), |tick| format!(" in tick {tick}"));
    format!("in `{table}`, first{at}: {what}")
}

/// Bodies that a log records and a build's trace lacks, or the other way round.
#[derive(Debug, Default)]
pub(crate) struct BodyRows {
    /// The first of them, as [`RecordComparison::first`].
    pub(crate) first: Option<String>,
    /// The recorded classes of which the trace has no bodies.
    pub(crate) absent: Vec<String>,
}

/// The tick and entity of a body.
type BodyKey = (u32, u32);

impl BodyRows {
    /// Compares which bodies there are, up to the log's first missing part.
    ///
    /// In each tick of the trace, it must have the recorded bodies of all classes that it writes. In ticks that the log does
    /// not record in full, bodies of players may be missing, and it may have other bodies.
    pub(crate) fn of(session: &Session, trace: &Trace) -> BodyRows {
        let keys_of = |table: &str| -> Vec<BodyKey> {
            let table = trace.table(table);
            let [ticks, entities] = ["tick", "entity"].map(|column| table.map_or(&[][..], |table| table.u32s(column)));
            sorted(ticks.iter().copied().zip(entities.iter().copied()).collect())
        };
        let classes = &session.header.classes;
        // A trace has all classes in `bodies`, or the later ones in tables of their own.
        let own = |class: usize| Some(format!("{BODIES_OF_CLASS}{}", classes.get(class).filter(|_| class > 0)?.name));
        let has_table = |name: &String| trace.table(name).is_some();
        let tables: Vec<String> = (0..classes.len().max(1))
            .map(|class| own(class).filter(has_table).unwrap_or_else(|| bodies::NAME.to_owned()))
            .collect();
        let replayed: SortedMap<&str, Vec<BodyKey>> =
            tables.iter().map(|table| (table.as_str(), keys_of(table))).collect();
        let in_replay = |table: &str, key: &BodyKey| replayed[table].binary_search(key).is_ok();

        let mut recorded = vec![Vec::new(); tables.len()];
        for key in session.states.keys().iter().filter(|key| key.viewer.is_none() && key.tick > Tick(0)) {
            if let Some(of_class) = recorded.get_mut(usize::from(key.class.0)) {
                of_class.push((key.tick.0, key.entity.0.into()));
            }
        }
        let has_bodies = replayed.values().any(|keys| !keys.is_empty());
        let is_written = |class: usize| {
            let table = &tables[class];
            let is_own = has_table(table) && (class == 0 || table != bodies::NAME);
            has_bodies && (is_own || recorded[class].iter().any(|key| in_replay(table, key)))
        };
        let ticks: Vec<u32> = match trace.table(ticks::NAME) {
            Some(table) => sorted(table.u32s("tick").to_vec()),
            None => sorted(replayed.values().flatten().map(|(tick, _)| *tick).collect()),
        };
        let until = session.first_hole().map(|hole| last_before(session, hole));
        let is_judged = |tick: u32| until.is_none_or(|until| tick <= until.0) && ticks.binary_search(&tick).is_ok();

        let (full, players) = (FullTicks::of(session), session.players.len() as u32);
        // A snapshot may have a body for a player without an avatar, which is no body of the server.
        let may_lack = |key: &BodyKey| key.1 < players && !full.has(Tick(key.0));
        let mut found: Vec<(BodyKey, &str, &str)> = Vec::new();
        let mut absent = Vec::new();
        for (class, keys) in recorded.iter().enumerate().filter(|(_, keys)| !keys.is_empty()) {
            let table = tables[class].as_str();
            if is_written(class) {
                let lacking = keys.iter().find(|key| is_judged(key.0) && !in_replay(table, key) && !may_lack(key));
                found.extend(lacking.map(|key| (*key, table, "the replay lacks")));
            } else {
                absent.extend(classes.get(class).map(|class| class.name.clone()));
            }
        }
        for (table, keys) in &replayed {
            let of_table = (0..tables.len()).filter(|class| tables[*class] == **table);
            let in_log = sorted(of_table.flat_map(|class| recorded[class].iter().copied()).collect());
            let is_added =
                |key: &&BodyKey| in_log.binary_search(key).is_err() && is_judged(key.0) && full.has(Tick(key.0));
            found.extend(keys.iter().find(is_added).map(|key| (*key, *table, "the log lacks")));
        }
        let first = found.into_iter().min();
        let first =
            first.map(|((tick, entity), table, lacks)| place(table, Some(tick), &format!("{lacks} entity {entity}")));
        BodyRows { first, absent }
    }
}

fn sorted<T: Ord>(mut keys: Vec<T>) -> Vec<T> {
    keys.sort_unstable();
    keys
}

/// The last tick before a missing part.
fn last_before(session: &Session, hole: &GapRecord) -> Tick {
    let ticks = &session.ticks;
    let before = ticks.partition_point(|tick| tick.at <= hole.from);
    before.checked_sub(1).map_or(Tick(0), |last| ticks[last].tick)
}

/// The ticks of which a log records all bodies.
///
/// A log records all bodies of a tick, or only those that its snapshots sent to a client. It records all if it has a body
/// that no snapshot of the tick has, and no state for one viewer.
struct FullTicks<'a> {
    session: &'a Session,
    sent: Vec<BodyKey>,
}

impl FullTicks<'_> {
    fn of(session: &Session) -> FullTicks<'_> {
        let snapshots = session.players.iter().flat_map(|player| &player.snapshots);
        let entities = |tick: Tick, of: &[hitreg_log::units::EntityId]| -> Vec<BodyKey> {
            of.iter().map(|entity| (tick.0, entity.0.into())).collect()
        };
        let sent = snapshots.flat_map(|snapshot| entities(snapshot.tick, &snapshot.entities)).collect();
        FullTicks { session, sent: sorted(sent) }
    }

    fn has(&self, tick: Tick) -> bool {
        let states = || self.session.states.of_tick(tick).map(|(key, _)| key);
        let is_sent = |entity: u16| self.sent.binary_search(&(tick.0, entity.into())).is_ok();
        states().all(|key| key.viewer.is_none()) && states().any(|key| !is_sent(key.entity.0))
    }
}
