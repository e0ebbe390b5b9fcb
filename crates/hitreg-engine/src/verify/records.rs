//! Compares a log's records with a replay of the log.

use std::borrow::Cow;
use std::fmt;

use hitreg_analysis::diff::{DiffError, DiffOptions, TraceVerdict, diff};
use hitreg_log::record::{GapRecord, LogContents, Session, StateKey};
use hitreg_log::recorded::{StatesMissing, hidden_fields, judged_shots, recorded, recorded_bodies};
use hitreg_log::sorted::{SortedMap, SortedSet};
use hitreg_log::trace::schema::{BODIES_OF_CLASS, bodies, executed, frames, is_bodies, ticks};
use hitreg_log::trace::{Table, Trace, TraceHeader};
use hitreg_log::units::Tick;
use hitreg_netcode::replay::ReplayFindings;

/// The result of comparing a log's records with a replay of the log.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecordComparison {
    /// The first difference.
    pub(crate) first: Option<RecordDifference>,
    /// The number of recorded bodies that were compared.
    pub(crate) bodies: u64,
}

/// Where a log's records differ from a replay.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordDifference {
    table: String,
    /// The tick, if the row has one.
    tick: Option<u32>,
    /// The field, or what is missing.
    what: String,
}

impl RecordDifference {
    /// The earliest of these. Of several in one tick, the first in this order.
    pub(crate) fn earliest(found: impl IntoIterator<Item = RecordDifference>) -> Option<RecordDifference> {
        found.into_iter().min_by_key(|difference| (difference.tick.is_none(), difference.tick))
    }
}

/// Such as "in `ticks`, first in tick 5: at_us".
impl fmt::Display for RecordDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RecordDifference { table, tick, what } = self;
        let at = tick.map_or(String::new(), |tick| format!(" in tick {tick}"));
        write!(f, "in `{table}`, first{at}: {what}")
    }
}

impl RecordComparison {
    /// Compares records with the same rows of a replay. Rows and tables that only one has do not count.
    ///
    /// # Errors
    /// Fails if the rows cannot be put in order.
    pub(crate) fn of(recorded: &Trace, replayed: &Trace) -> Result<RecordComparison, DiffError> {
        let options = DiffOptions { overlap_only: true, ..DiffOptions::default() };
        let found = diff(recorded, replayed, &options)?;
        let of_bodies = found.tables.iter().filter(|table| is_bodies(&table.name));
        let bodies = of_bodies.map(|table| table.rows.compared).sum();
        let first = found.first.filter(|_| found.verdict == TraceVerdict::Differs).map(|first| RecordDifference {
            table: first.table,
            tick: first.place.tick,
            what: first.field.unwrap_or_else(|| "a row".to_owned()),
        });
        Ok(RecordComparison { first, bodies })
    }

    /// Compares the states, executions, input and shots of a log with the trace of a build, up to the log's first missing
    /// part. The trace must have every recorded body.
    ///
    /// # Errors
    /// Fails if the rows cannot be put in order.
    pub(crate) fn of_build(session: &Session, trace: &Trace) -> Result<RecordComparison, DiffError> {
        let session = &*before_gap(session);
        let Ok(recorded) = server_records(session) else { return Ok(RecordComparison::default()) };
        let compared = RecordComparison::of(&recorded, trace)?;
        let of_shots = RecordComparison::of(&shot_trace(session, &trace.header), trace)?;
        let found = [compared.first, BodyRows::of(session, trace).first, of_shots.first];
        let first = RecordDifference::earliest(found.into_iter().flatten());
        Ok(RecordComparison { first, ..compared })
    }

    /// Adds the result for later rows.
    pub(crate) fn add(&mut self, later: RecordComparison) {
        self.first = self.first.take().or(later.first);
        self.bodies += later.bodies;
    }
}

/// Returns the recorded states, executions and input of a log as a trace; of a server's log only the states.
///
/// # Errors
/// When the log does not hold the server.
pub(crate) fn server_records(session: &Session) -> Result<Trace, StatesMissing> {
    match session.header.holds() {
        LogContents::Server => Ok(body_trace(session, &TraceHeader::of(session, "closed"))),
        LogContents::Whole | LogContents::Clients => recorded(session),
    }
}

/// The recorded bodies of a log, as a trace with this header.
pub(crate) fn body_trace(session: &Session, header: &TraceHeader) -> Trace {
    Trace { header: header.clone(), tables: recorded_bodies(session, &hidden_fields(session)) }
}

/// The recorded results of a log's shots, as a trace with this header.
pub(crate) fn shot_trace(session: &Session, header: &TraceHeader) -> Trace {
    Trace { header: header.clone(), tables: judged_shots(session).into_iter().collect() }
}

/// Whether a build simulated nothing that its trace shows, although the log records bodies. Such a trace has only the log's
/// usercmds and executions, and ticks with one state hash or none. `ran` is the comparison of their state hashes.
pub(crate) fn shows_no_simulation(session: &Session, trace: &Trace, ran: &ReplayFindings) -> bool {
    let is_copy = |table: &Table| [ticks::NAME, executed::NAME, frames::NAME].contains(&&*table.name);
    let has_rows = trace.tables.iter().any(|table| !is_copy(table) && table.rows() > 0);
    let hashes = ticks::Columns::of(trace).hash;
    let has_bodies = session.states.keys().iter().any(|key| key.tick > Tick(0));
    let is_still = || hashes.windows(2).all(|pair| pair[0] == pair[1]);
    has_bodies && ran.hashes_compared == 0 && !has_rows && is_still()
}

/// The session up to its first missing part.
pub(crate) fn before_gap(session: &Session) -> Cow<'_, Session> {
    let Some(gap) = session.first_gap() else { return Cow::Borrowed(session) };
    let mut session = session.clone();
    session.end_at(last_before(&session, gap), gap.from);
    Cow::Owned(session)
}

/// Bodies that a log records and a build's trace lacks, or the other way round.
#[derive(Debug, Default)]
pub(crate) struct BodyRows {
    /// The first of them.
    pub(crate) first: Option<RecordDifference>,
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
        let classes = &session.header.classes;
        let (replayed, full) = (ReplayedBodies::of(session, trace), FullTicks::of(session));
        let recorded = recorded_keys(session, replayed.tables.len());
        let players = session.players.len() as u32;
        // A snapshot may have a body for a player without an avatar, which is no body of the server.
        let may_lack = |key: &BodyKey| key.1 < players && !full.has(Tick(key.0));
        let (mut found, mut absent) = (Vec::new(), Vec::new());
        for (class, keys) in recorded.iter().enumerate().filter(|(_, keys)| !keys.is_empty()) {
            if !replayed.writes(class, &recorded) {
                absent.extend(classes.get(class).map(|class| class.name.clone()));
                continue;
            }
            let is_lacking = |key: &&BodyKey| replayed.has_tick(key.0) && !replayed.has(class, key) && !may_lack(key);
            found.extend(keys.iter().find(is_lacking).map(|key| (*key, &replayed.tables[class], "the replay lacks")));
        }
        for (table, keys) in &replayed.keys {
            let of_table =
                || recorded.iter().zip(&replayed.tables).filter(|(_, of)| *of == table).map(|(keys, _)| keys);
            let is_recorded = |key: &BodyKey| of_table().any(|keys| keys.binary_search(key).is_ok());
            let has_tick = |keys: &Vec<BodyKey>, tick: u32| keys.binary_search_by_key(&tick, |key| key.0).is_ok();
            // A log may record a class in some ticks only.
            let is_full = |tick: u32| full.has(Tick(tick)) && of_table().all(|keys| has_tick(keys, tick));
            let is_added = |key: &&BodyKey| replayed.has_tick(key.0) && !is_recorded(key) && is_full(key.0);
            found.extend(keys.iter().find(is_added).map(|key| (*key, table, "the log lacks")));
        }
        let first = found.into_iter().min().map(|((tick, entity), table, lacks)| RecordDifference {
            table: table.clone(),
            tick: Some(tick),
            what: format!("{lacks} entity {entity}"),
        });
        BodyRows { first, absent }
    }
}

/// The bodies that a log records for everyone after tick 0, sorted, by class.
fn recorded_keys(session: &Session, classes: usize) -> Vec<Vec<BodyKey>> {
    let mut recorded = vec![Vec::new(); classes];
    for key in session.states.keys().iter().filter(|key| key.viewer.is_none() && key.tick > Tick(0)) {
        if let Some(of_class) = recorded.get_mut(usize::from(key.class.0)) {
            of_class.push((key.tick.0, key.entity.0.into()));
        }
    }
    recorded.into_iter().map(sorted).collect()
}

/// The bodies of a trace.
struct ReplayedBodies {
    /// The table of each class. A trace has all classes in `bodies`, or the later ones in tables of their own.
    tables: Vec<String>,
    /// The bodies of each table that the trace has, sorted.
    keys: SortedMap<String, Vec<BodyKey>>,
    /// The ticks of the trace, sorted.
    ticks: Vec<u32>,
}

impl ReplayedBodies {
    fn of(session: &Session, trace: &Trace) -> ReplayedBodies {
        let column = |table: &str, name: &str| trace.table(table).map_or(Vec::new(), |table| table.u32s(name).to_vec());
        let later = session.header.classes.iter().skip(1).map(|class| format!("{BODIES_OF_CLASS}{}", class.name));
        let in_bodies = |table: String| trace.table(&table).map_or_else(|| bodies::NAME.to_owned(), |_| table);
        let tables: Vec<String> = [bodies::NAME.to_owned()].into_iter().chain(later.map(in_bodies)).collect();
        let keys_of = |table: &String| {
            let keys = column(table, "tick").into_iter().zip(column(table, "entity"));
            trace.table(table).map(|_| (table.clone(), sorted(keys.collect())))
        };
        let keys: SortedMap<String, Vec<BodyKey>> = tables.iter().filter_map(keys_of).collect();
        let ticks = match trace.table(ticks::NAME) {
            Some(_) => column(ticks::NAME, "tick"),
            None => keys.values().flatten().map(|(tick, _)| *tick).collect(),
        };
        ReplayedBodies { tables, keys, ticks: sorted(ticks) }
    }

    fn has(&self, class: usize, key: &BodyKey) -> bool {
        self.keys.get(&self.tables[class]).is_some_and(|keys| keys.binary_search(key).is_ok())
    }

    fn has_tick(&self, tick: u32) -> bool {
        self.ticks.binary_search(&tick).is_ok()
    }

    /// Whether the trace has bodies of a class.
    fn writes(&self, class: usize, recorded: &[Vec<BodyKey>]) -> bool {
        let table = &self.tables[class];
        let is_own = self.keys.contains_key(table) && (class == 0 || table != bodies::NAME);
        // Entities of two classes may have equal numbers.
        let is_of_another = |key: &BodyKey| recorded[..class].iter().any(|keys| keys.binary_search(key).is_ok());
        let is_replayed = |key: &BodyKey| self.has(class, key) && !is_of_another(key);
        let has_bodies = self.keys.values().any(|keys| !keys.is_empty());
        has_bodies && (is_own || recorded[class].iter().any(is_replayed))
    }
}

fn sorted<T: Ord>(mut keys: Vec<T>) -> Vec<T> {
    keys.sort_unstable();
    keys
}

/// The last tick before a missing part.
fn last_before(session: &Session, gap: &GapRecord) -> Tick {
    let ticks = &session.ticks;
    let before = ticks.partition_point(|tick| tick.at <= gap.from);
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
