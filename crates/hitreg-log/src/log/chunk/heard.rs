//! The usercmds of heard packets. Most repeat a usercmd of an earlier packet and take one bit. A chunk does not depend
//! on other chunks, so its first packets hold all their usercmds.

use super::own::take_named;
use super::{TableWriter, WriteContext};
use crate::log::kinds::{ListReader, RecordColumn, RecordLayout, columns};
use crate::log::limits::Budget;
use crate::record::{FrameRecord, HEARD_COMMANDS_MAX, HeardRecord};
use crate::sorted::SortedMap;
use crate::units::CommandSeq;
use crate::usercmd::Usercmd;

/// The heard usercmds of one player so far.
type HeardUsercmds = SortedMap<CommandSeq, Usercmd>;

pub(in crate::log) const NESTED: &str = "usercmd_";

impl RecordLayout for HeardRecord {
    columns! {
        "number" Whole number,
        "at_us" ToNamed("number") at,
        "ack" Whole ack,
        "received_before" Whole received_before,
    }
    /// From the fourth column on: the frame columns of the usercmds that are not repeats. Declared fields follow.
    const LISTS: &'static [&'static str] = &[
        "newest",
        "usercmds",
        "fresh",
        "usercmd_seq",
        "usercmd_at_us",
        "usercmd_server_time_us",
        "usercmd_lerp_ms",
        "usercmd_msec",
        "usercmd_pitch",
        "usercmd_yaw",
        "usercmd_roll",
        "usercmd_forwardmove",
        "usercmd_sidemove",
        "usercmd_upmove",
        "usercmd_buttons",
        "usercmd_impulse",
    ];

    fn put_lists(rows: &mut TableWriter<'_, HeardRecord>, context: &WriteContext<'_>) {
        rows.whole(|r| r.newest().0.into());
        rows.whole(|r| r.commands.len() as i64);
        let mut masks = Vec::new();
        let mut fresh: Vec<(u32, Vec<FrameRecord>)> = Vec::new();
        let mut known = HeardUsercmds::new();
        for (id, record) in rows.with_ids() {
            if fresh.last().is_none_or(|(of, _)| *of != id) {
                known.clear();
                fresh.push((id, Vec::new()));
            }
            let Some((_, fresh)) = fresh.last_mut() else { continue };
            let mut mask = 0_i64;
            for (bit, command) in record.commands.iter().enumerate() {
                if !known.get(&command.seq).is_some_and(|before| is_same(before, command)) {
                    known.insert(command.seq, command.clone());
                    mask |= 1 << bit;
                    // The packet determines the numbers and times.
                    fresh.push(FrameRecord {
                        command: Usercmd { seq: CommandSeq(0), ..command.clone() },
                        ..FrameRecord::default()
                    });
                }
            }
            masks.push(mask);
        }
        rows.columns.numbers(&masks);
        rows.nest(fresh.iter().map(|(id, fresh)| (*id, &fresh[..])).collect(), |nested| {
            FrameRecord::put_lists(nested, context)
        });
    }

    fn take_lists(records: &mut [HeardRecord], lists: ListReader<'_>, budget: &mut Budget) -> Result<(), String> {
        let columns = lists.columns;
        let newest: Vec<u32> = columns.narrow("newest")?;
        let counts: Vec<u32> = columns.narrow("usercmds")?;
        let masks: Vec<u32> = columns.narrow("fresh")?;
        for (count, mask) in counts.iter().zip(&masks) {
            if *count as usize > HEARD_COMMANDS_MAX || mask.checked_shr(*count).unwrap_or(0) != 0 {
                return Err(columns.bad("fresh", format_args!("{mask:#x} of {count} usercmds")));
            }
        }
        let all = counts.iter().map(|count| *count as usize).sum::<usize>();
        let fresh = masks.iter().map(|mask| mask.count_ones() as usize).sum::<usize>();
        budget.take(all, size_of::<Usercmd>())?;
        budget.take(fresh, 2 * size_of::<FrameRecord>())?;
        let row_counts = columns.row_counts();
        let mut rows = masks.iter();
        let series =
            row_counts.iter().map(|&(_, count)| rows.by_ref().take(count).map(|mask| mask.count_ones()).sum::<u32>());
        let series: Vec<usize> = series.map(|count| count as usize).filter(|count| *count > 0).collect();
        let mut fresh = columns.nested::<FrameRecord>(NESTED, series.clone())?;
        take_named(&mut fresh, (NESTED, &series), lists, budget)?;
        let mut fresh = fresh.into_iter();
        let starts = row_counts.iter().flat_map(|&(_, count)| (0..count).map(|row| row == 0));
        let mut known = HeardUsercmds::new();
        for (row, (record, is_first)) in records.iter_mut().zip(starts).enumerate() {
            if is_first {
                known.clear();
            }
            // A client's first usercmd is 1, but a malicious client may count from 0.
            let Ok(first) = u32::try_from(i64::from(newest[row]) + 1 - i64::from(counts[row])) else {
                return Err(columns.bad("newest", format_args!("{} of {} usercmds", newest[row], counts[row])));
            };
            for bit in 0..counts[row] {
                let seq = CommandSeq(first + bit);
                if masks[row] & 1 << bit != 0 {
                    let Some(frame) = fresh.next() else { return Err(columns.bad("fresh", "it ends too early")) };
                    known.insert(seq, Usercmd { seq, ..frame.command });
                }
                let command = known.get(&seq);
                let command =
                    command.ok_or_else(|| columns.bad("fresh", format_args!("usercmd {} is missing", seq.0)))?;
                record.commands.push(command.clone());
            }
        }
        Ok(())
    }
}

/// Whether two usercmds are equal bit for bit.
fn is_same(a: &Usercmd, b: &Usercmd) -> bool {
    let [a, b] = [a, b].map(|command| FrameRecord { command: command.clone(), ..FrameRecord::default() });
    let is_same = |column: &RecordColumn<FrameRecord>| (column.get)(&a) == (column.get)(&b);
    FrameRecord::COLUMNS.iter().all(is_same) && a.command.input.own == b.command.input.own
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_usercmds_equal_those_of_frames() {
        let nested: Vec<String> =
            FrameRecord::COLUMNS.iter().map(|column| format!("{NESTED}{}", column.name)).collect();
        assert_eq!(HeardRecord::LISTS[3..], nested);
    }
}
