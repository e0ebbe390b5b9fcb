//! Counts shots and hits in rows of the table `shots`.

use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::schema::{is_judged, shots};

/// The number of shots, and how many of them hit a player. A projectile is one shot, however many players and surfaces it
/// hits: its impacts count only if the row of its launch is missing. A hit that the recorded server reported, and whose shot
/// is not known, counts apart, because the shots that missed are not known either.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShotCounter {
    hitscan_fired: u64,
    hitscan_hit: u64,
    reported: u64,
    /// The projectiles of each usercmd, by shooter and usercmd.
    projectiles: SortedMap<(u32, u32), ProjectileRows>,
}

/// The rows about the projectiles of one usercmd.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct ProjectileRows {
    launches: u64,
    impacts: u64,
    /// The impacts that hit a player.
    hits: u64,
    /// The hits among them that the recorded server reported.
    reported: u64,
}

impl ShotCounter {
    /// Adds a row. Shots that the server never ran do not count.
    pub(crate) fn add_row(&mut self, shots: &shots::Columns<'_>, row: usize, reason: &str) {
        let is_impact = shots.impact.get(row) == Some(&1);
        if is_impact || reason == "launched" {
            let [shooter, command] =
                [shots.shooter, shots.command].map(|ids| ids.get(row).copied().unwrap_or_default());
            let rows = self.projectiles.entry((shooter, command)).or_default();
            rows.launches += u64::from(!is_impact);
            rows.impacts += u64::from(is_impact);
            let is_hit = is_impact && reason == "hit";
            rows.hits += u64::from(is_hit);
            rows.reported += u64::from(is_hit && is_named(shots.given_target.get(row)));
        } else if is_reported(shots, row) {
            self.reported += 1;
        } else if is_judged(reason) {
            self.hitscan_fired += 1;
            self.hitscan_hit += u64::from(reason == "hit");
        }
    }

    /// Adds the shots of another part of the same session.
    pub fn add(&mut self, other: &ShotCounter) {
        self.hitscan_fired += other.hitscan_fired;
        self.hitscan_hit += other.hitscan_hit;
        self.reported += other.reported;
        for (usercmd, more) in &other.projectiles {
            let rows = self.projectiles.entry(*usercmd).or_default();
            rows.launches += more.launches;
            rows.impacts += more.impacts;
            rows.hits += more.hits;
            rows.reported += more.reported;
        }
    }

    /// The number of shots.
    pub fn fired(&self) -> u64 {
        self.hitscan_fired + self.projectiles.values().map(ProjectileRows::fired).sum::<u64>()
    }

    /// The number of shots that hit a player.
    pub fn hit(&self) -> u64 {
        self.hitscan_hit + self.projectiles.values().map(ProjectileRows::hit).sum::<u64>()
    }

    /// The number of hits that the recorded server reported and whose shot is not known.
    pub(crate) fn reported(&self) -> u64 {
        self.reported + self.projectiles.values().map(ProjectileRows::without_launch).sum::<u64>()
    }

    /// The number of projectiles launched.
    pub(crate) fn launched(&self) -> u64 {
        self.projectiles.values().map(|rows| rows.launches).sum()
    }

    /// The number of impacts.
    pub(crate) fn impacts(&self) -> u64 {
        self.projectiles.values().map(|rows| rows.impacts).sum()
    }
}

/// Whether a row has a hit that only the recorded server reported: the replay has no shot to judge.
pub(crate) fn is_reported(shots: &shots::Columns<'_>, row: usize) -> bool {
    let is_rejudged = shots.rewind_us.get(row).is_some_and(|rewind_us| *rewind_us != 0)
        || is_named(shots.present_target.get(row))
        || shots.off_units.get(row).is_some_and(|off_units| !off_units.is_nan());
    shots.impact.get(row) != Some(&1) && is_named(shots.given_target.get(row)) && !is_rejudged
}

fn is_named(target: &str) -> bool {
    !matches!(target, "" | "none")
}

impl ProjectileRows {
    /// Without the rows of launches, each impact counts as a projectile. But projectiles that hit nobody are not reported.
    fn fired(&self) -> u64 {
        if self.launches > 0 { self.launches } else { self.impacts - self.reported }
    }

    fn hit(&self) -> u64 {
        (self.hits - self.without_launch()).min(self.fired())
    }

    /// The reported hits of projectiles whose launches are not known.
    fn without_launch(&self) -> u64 {
        if self.launches > 0 { 0 } else { self.reported }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::trace::{NameColumn, Table};

    /// Counts rows of a usercmd: whether each is an impact, and its reason.
    fn counted(rows: &[(u32, bool, &str)]) -> ShotCounter {
        counted_as(rows, false)
    }

    /// The same, as hits that the recorded server reported.
    fn counted_as(rows: &[(u32, bool, &str)], are_reported: bool) -> ShotCounter {
        let impact: Vec<u32> = rows.iter().map(|(_, is_impact, _)| u32::from(*is_impact)).collect();
        let command: Vec<u32> = rows.iter().map(|(command, ..)| *command).collect();
        let shooter = vec![0; rows.len()];
        let nothing = Table::default();
        let names = ["none", "p1"].map(str::to_owned);
        let given_target = NameColumn { names: &names, codes: &vec![u32::from(are_reported); rows.len()] };
        let read = shots::Columns::read(&nothing);
        let columns = shots::Columns { shooter: &shooter, command: &command, impact: &impact, given_target, ..read };
        let mut counter = ShotCounter::default();
        rows.iter().enumerate().for_each(|(row, (.., reason))| counter.add_row(&columns, row, reason));
        counter
    }

    fn numbers(counter: &ShotCounter) -> [u64; 4] {
        [counter.fired(), counter.hit(), counter.launched(), counter.impacts()]
    }

    #[test]
    fn a_projectile_that_hits_several_players_is_one_shot() {
        let rows =
            [(1, false, "launched"), (1, true, "hit"), (1, true, "hit"), (1, true, "hit the world"), (2, false, "hit")];
        assert_eq!(numbers(&counted(&rows)), [2, 2, 1, 3]);
    }

    /// Only hits are reported, so hits of unknown shots give no hit rate.
    #[test]
    fn reported_hits_count_only_with_a_known_shot() {
        let unknown = counted_as(&[(1, true, "hit"), (2, false, "hit"), (2, false, "hit")], true);
        assert_eq!((numbers(&unknown), unknown.reported()), ([0, 0, 0, 1], 3));
        let launched = counted_as(&[(1, false, "launched"), (1, true, "hit")], true);
        assert_eq!((numbers(&launched), launched.reported()), ([1, 1, 1, 1], 0));
    }

    #[test]
    fn an_impact_counts_as_a_shot_only_without_its_own_launch() {
        let rows = [(1, false, "launched"), (2, true, "hit"), (3, false, "not run"), (4, false, "missed")];
        assert_eq!(numbers(&counted(&rows)), [3, 1, 1, 1]);
    }

    #[test]
    fn a_projectile_that_flies_into_the_next_part_is_one_shot() {
        let mut parts = counted(&[(1, false, "launched"), (2, false, "hit")]);
        let later = counted(&[(1, true, "hit"), (5, true, "missed")]);
        assert_eq!((parts.fired(), later.fired()), (2, 2));
        parts.add(&later);
        assert_eq!(numbers(&parts), [3, 2, 1, 2]);
    }
}
