//! Compares a log's records with a replay of the log.

use std::borrow::Cow;

use hitreg_analysis::diff::{DiffError, DiffOptions, TraceVerdict, diff};
use hitreg_log::record::{GapRecord, LogContents, Session, StateKey};
use hitreg_log::recorded::{hidden_fields, judged_shots, recorded, recorded_bodies};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::schema::{BODIES_OF_CLASS, bodies, is_bodies, ticks};
use hitreg_log::trace::{Trace, TraceHeader};
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
    ///
    /// # Errors
    /// Fails if the rows cannot be put in order.
    pub(crate) fn of(says: &Trace, played: &Trace) -> Result<RecordComparison, DiffError> {
        let options = DiffOptions { overlap_only: true, ..DiffOptions::default() };
        let found = diff(says, played, &options)?;
        let of_bodies = found.tables.iter().filter(|table| is_bodies(&table.name));
        let bodies = of_bodies.map(|table| table.rows.compared).sum();
        let first = found
            .first
            .filter(|_| found.verdict == TraceVerdict::Differs)
            .map(|first| place(&first.table, first.place.tick, first.field.as_deref().unwrap_or("a row")));
        Ok(RecordComparison { first, bodies })
    }

    /// Compares the states, executions, input and shots of a log with the trace of a build, up to the log's first missing
    /// part. The trace must have every recorded body.
    ///
    /// # Errors
    /// Fails if the rows cannot be put in order.
    pub(crate) fn of_build(session: &Session, trace: &Trace) -> Result<RecordComparison, DiffError> {
        let session = &*before_hole(session);
        let says = match recorded(session) {
            Ok(says) => says,
            Err(_) if session.header.holds() == LogContents::Server => of_bodies(session, &trace.header),
            Err(_) => return Ok(RecordComparison::default()),
        };
        let compared = RecordComparison::of(&says, trace)?;
        let first = compared.first.or_else(|| BodyRows::of(session, trace).first);
        let first = match first {
            None => RecordComparison::of(&of_shots(session, &trace.header), trace)?.first,
            first => first,
        };
        Ok(RecordComparison { first, ..compared })
    }

    /// Adds the result for later rows.
    pub(crate) fn add(&mut self, later: RecordComparison) {
        self.first = self.first.take().or(later.first);
        self.bodies += later.bodies;
    }
}

/// The recorded bodies of a log, as a trace with this header.
pub(crate) fn of_bodies(session: &Session, header: &TraceHeader) -> Trace {
    Trace { header: header.clone(), tables: recorded_bodies(session, &hidden_fields(session)) }
}

/// The recorded results of a log's shots, as a trace with this header.
pub(crate) fn of_shots(session: &Session, header: &TraceHeader) -> Trace {
    Trace { header: header.clone(), tables: judged_shots(session).into_iter().collect() }
}

/// The session up to its first missing part.
pub(crate) fn before_hole(session: &Session) -> Cow<'_, Session> {
    let Some(hole) = session.first_hole() else { return Cow::Borrowed(session) };
    let mut session = session.clone();
    session.end_at(last_before(&session, hole), hole.from);
    Cow::Owned(session)
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
    /// Compares which bodies there are.
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
            // Entities of two classes may have equal numbers.
            let is_of_another = |key: &BodyKey| (0..class).any(|other| recorded[other].binary_search(key).is_ok());
            has_bodies && (is_own || recorded[class].iter().any(|key| in_replay(table, key) && !is_of_another(key)))
        };
        let ticks: Vec<u32> = match trace.table(ticks::NAME) {
            Some(table) => sorted(table.u32s("tick").to_vec()),
            None => sorted(replayed.values().flatten().map(|(tick, _)| *tick).collect()),
        };
        let is_judged = |tick: u32| ticks.binary_search(&tick).is_ok();

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
            let of_table = || (0..tables.len()).filter(|class| tables[*class] == **table);
            let in_log = sorted(of_table().flat_map(|class| recorded[class].iter().copied()).collect());
            let has_tick = |class: usize, tick: u32| recorded[class].binary_search_by_key(&tick, |key| key.0).is_ok();
            // A log may record a class in some ticks only.
            let is_full = |tick: u32| full.has(Tick(tick)) && of_table().all(|class| has_tick(class, tick));
            let is_added = |key: &&BodyKey| in_log.binary_search(key).is_err() && is_judged(key.0) && is_full(key.0);
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
/// A log records all bodies of a tick, or only those that its snapshots sent to a client. It records all if no snapshot is
/// of the tick, or if it has a body of no player that no snapshot of the tick has. Snapshots need not name the body of their
/// own player. A tick with a state for one viewer does not count.
struct FullTicks<'a> {
    session: &'a Session,
    sent: Vec<BodyKey>,
    /// The ticks with snapshots.
    snapshots: SortedSet<Tick>,
}

impl FullTicks<'_> {
    fn of(session: &Session) -> FullTicks<'_> {
        let snapshots = || session.players.iter().flat_map(|player| &player.snapshots);
        let entities = |tick: Tick, of: &[hitreg_log::units::EntityId]| -> Vec<BodyKey> {
            of.iter().map(|entity| (tick.0, entity.0.into())).collect()
        };
        let sent = snapshots().flat_map(|snapshot| entities(snapshot.tick, &snapshot.entities)).collect();
        FullTicks { session, sent: sorted(sent), snapshots: snapshots().map(|snapshot| snapshot.tick).collect() }
    }

    fn has(&self, tick: Tick) -> bool {
        let states = || self.session.states.of_tick(tick).map(|(key, _)| key);
        let players = self.session.players.len();
        let is_sent = |entity: u16| self.sent.binary_search(&(tick.0, entity.into())).is_ok();
        let is_unsent = |key: &StateKey| usize::from(key.entity.0) >= players && !is_sent(key.entity.0);
        let has_snapshot = self.snapshots.contains(&tick);
        states().all(|key| key.viewer.is_none()) && states().any(|key| !has_snapshot || is_unsent(&key))
    }
}
