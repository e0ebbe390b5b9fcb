//! Counts shots by their results in both traces, and finds the changed ones.

use std::sync::Arc;

use serde::Serialize;

use super::cell::CellValue;
use super::changed::ChangedShots;
use super::options::DiffOptions;
use super::pairing::{Pairing, RowSpot};
use hitreg_log::sorted::SortedSet;
use hitreg_log::trace::Table;
use hitreg_log::trace::schema::{is_judged, shots};

/// Counts of rows of the table `shots` by their result in A and in B. Each row counts in one of the first six: each shot,
/// each launch and impact of a projectile, and each shot that no server ran.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct HitChanges {
    /// Hit the same target in the same hitgroup for the same damage.
    pub both: u64,
    /// Hit in A only.
    pub only_a: u64,
    /// Hit in B only.
    pub only_b: u64,
    /// Hit in both traces, but different targets.
    pub other_target: u64,
    /// Hit the same target, but with another hitgroup, damage or number of pellets.
    pub other_wound: u64,
    /// Hit in neither trace.
    pub neither: u64,
    /// The part of `neither` whose reason for the miss differs.
    pub other_reason: u64,
    /// Shots that B lacks, whatever their result.
    pub shots_only_in_a: u64,
    /// Shots that A lacks, whatever their result.
    pub shots_only_in_b: u64,
    /// Number of shots that a server judged in A or in B.
    #[serde(skip)]
    pub judged: u64,
    /// All changed shots, in the order of their time.
    pub changed: ChangedShots,
}

/// How a shot's result changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ShotChange {
    /// Hit in A only.
    OnlyA,
    /// Hit in B only.
    OnlyB,
    /// Hit different targets.
    OtherTarget,
    /// Hit the same target with another hitgroup, damage or number of pellets.
    OtherWound,
    /// Missed for another reason, or was fired in one trace only.
    OtherReason,
}

impl HitChanges {
    /// Shots and impacts whose outcome changed: hit or miss, target, or wound.
    pub fn outcomes_changed(&self) -> u64 {
        self.only_a + self.only_b + self.other_target + self.other_wound
    }
}

/// A shot whose result differs between the traces.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ChangedShot {
    /// The player who shot.
    pub shooter: u32,
    /// The usercmd that fired.
    pub command: u32,
    /// The shot's index within that usercmd.
    pub index: u32,
    /// Whether it is the impact of a projectile.
    pub is_impact: bool,
    /// What changed.
    pub change: ShotChange,
    /// The result in A; `None` if the shot was not fired there.
    pub a: Option<Outcome>,
    /// The result in B; `None` if the shot was not fired there.
    pub b: Option<Outcome>,
}

/// All names that occur, each stored once and shared by the shots that have it.
#[derive(Default)]
pub(crate) struct TextTable(SortedSet<Arc<str>>);

impl TextTable {
    pub(super) fn of(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return Arc::clone(known);
        }
        let text: Arc<str> = name.into();
        self.0.insert(Arc::clone(&text));
        text
    }
}

/// The result of a shot.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Outcome {
    /// The session time at which the server judged it, in microseconds.
    pub at_us: Option<i64>,
    /// The tick in which the server judged it.
    pub tick: Option<i64>,
    /// The weapon.
    pub weapon: Arc<str>,
    /// `hit`, or the reason of the miss.
    pub reason: Arc<str>,
    /// The target: `p3`, or `none`.
    pub target: Arc<str>,
    /// The hitgroup that was hit.
    pub hitgroup: Arc<str>,
    /// The damage, in health points.
    pub damage: Option<i64>,
    /// The number of pellets that hit.
    pub pellets: Option<i64>,
    /// How far the targets were rewound, in microseconds.
    pub rewind_us: Option<i64>,
    /// What limited the rewind.
    pub limit: Arc<str>,
    /// Distance between where the shooter's client drew the target and where the server judged it, in units.
    pub view_error_units: Option<f32>,
    /// The result that the shooter's client predicted.
    pub predicted_reason: Arc<str>,
    /// The target that the shooter's client predicted.
    pub predicted_target: Arc<str>,
}

impl HitChanges {
    /// Counts the shots of some rows, and passes each changed shot to `changed`. With
    /// [`DiffOptions::overlap_only`], only shots that both traces have.
    pub(crate) fn add(
        &mut self,
        pairing: &Pairing<'_>,
        options: &DiffOptions,
        texts: &mut TextTable,
        changed: &mut dyn FnMut(&RowSpot, &ChangedShot),
    ) {
        let [of_a, of_b] = [pairing.a, pairing.b].map(|table| ReadShots::of(table, texts));
        let pairs = (0..pairing.joined.len()).map(|pair| pairing.spot(pair));
        for spot in pairs.chain(pairing.lone(options)) {
            let a = spot.a.map(|row| of_a.outcome(row as usize));
            let b = spot.b.map(|row| of_b.outcome(row as usize));
            self.shots_only_in_a += u64::from(b.is_none());
            self.shots_only_in_b += u64::from(a.is_none());
            if let (Some(change), Some((side, row))) = (self.count(a.as_ref(), b.as_ref()), spot.row()) {
                changed(&spot, &ChangedShot::of(pairing.table(side), row, change, a, b));
            }
        }
    }

    /// Counts a shot, and returns how it changed, if it did.
    fn count(&mut self, a: Option<&Outcome>, b: Option<&Outcome>) -> Option<ShotChange> {
        let hit = |outcome: Option<&Outcome>| outcome.is_some_and(|o| &*o.reason == "hit");
        self.judged += u64::from([a, b].into_iter().flatten().any(Outcome::is_judged));
        match (hit(a), hit(b), a, b) {
            (true, true, Some(a), Some(b)) if a.target != b.target => {
                self.other_target += 1;
                Some(ShotChange::OtherTarget)
            }
            (true, true, Some(a), Some(b)) if a.wound() != b.wound() => {
                self.other_wound += 1;
                Some(ShotChange::OtherWound)
            }
            (true, true, ..) => {
                self.both += 1;
                None
            }
            (true, false, ..) => {
                self.only_a += 1;
                Some(ShotChange::OnlyA)
            }
            (false, true, ..) => {
                self.only_b += 1;
                Some(ShotChange::OnlyB)
            }
            (false, false, a, b) => {
                self.neither += 1;
                let other = a.map(|o| &o.reason) != b.map(|o| &o.reason);
                self.other_reason += u64::from(other);
                other.then_some(ShotChange::OtherReason)
            }
        }
    }
}

impl ChangedShot {
    fn of(table: &Table, row: usize, change: ShotChange, a: Option<Outcome>, b: Option<Outcome>) -> ChangedShot {
        let number = |name| integer(table, name, row).and_then(|n| u32::try_from(n).ok()).unwrap_or_default();
        let (shooter, command, index) = (number("shooter"), number("command"), number("index"));
        ChangedShot { shooter, command, index, is_impact: number("impact") == 1, change, a, b }
    }

    /// When the shot was judged, in microseconds of session time; the earlier time if the traces differ.
    pub fn at_us(&self) -> Option<i64> {
        let at = |outcome: &Option<Outcome>| outcome.as_ref().and_then(|o| o.at_us);
        match (at(&self.a), at(&self.b)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        }
    }
}

/// The shots of a table, with names as shared texts.
struct ReadShots<'t> {
    table: &'t Table,
    view_error_units: &'t [f32],
    /// The name columns of an outcome, in the order of its fields.
    names: [(Vec<Arc<str>>, &'t [u32]); 7],
}

impl<'t> ReadShots<'t> {
    fn of(table: &'t Table, texts: &mut TextTable) -> ReadShots<'t> {
        let shots = shots::Columns::read(table);
        let columns = [
            shots.weapon,
            shots.reason,
            shots.target,
            shots.hitgroup,
            shots.limit,
            shots.predicted_reason,
            shots.predicted_target,
        ];
        let names = columns.map(|column| (column.names.iter().map(|name| texts.of(name)).collect(), column.codes));
        ReadShots { table, view_error_units: shots.view_error_units, names }
    }

    fn outcome(&self, row: usize) -> Outcome {
        let name = |(names, codes): &(Vec<Arc<str>>, &[u32])| {
            codes.get(row).and_then(|code| names.get(*code as usize)).cloned().unwrap_or_default()
        };
        let [weapon, reason, target, hitgroup, limit, predicted_reason, predicted_target] =
            self.names.each_ref().map(name);
        let number = |name| integer(self.table, name, row);
        Outcome {
            at_us: number("at_us"),
            tick: number("tick"),
            weapon,
            reason,
            target,
            hitgroup,
            damage: number("damage"),
            pellets: number("pellets"),
            rewind_us: number("rewind_us"),
            limit,
            view_error_units: self.view_error_units.get(row).copied().filter(|v| !v.is_nan()),
            predicted_reason,
            predicted_target,
        }
    }
}

impl Outcome {
    /// Whether a server judged it.
    fn is_judged(&self) -> bool {
        is_judged(&self.reason)
    }

    fn wound(&self) -> (&str, Option<i64>, Option<i64>) {
        (&*self.hitgroup, self.damage, self.pellets)
    }
}

fn integer(table: &Table, name: &str, row: usize) -> Option<i64> {
    match table.column(name).and_then(|column| CellValue::at(column, row)) {
        Some(CellValue::Integer(value)) => Some(value),
        _ => None,
    }
}
