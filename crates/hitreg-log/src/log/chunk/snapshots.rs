//! The columns of snapshots, and their lists: shown entities, effects, warnings, and bytes of the game's own.

use std::vec::IntoIter;

use glam::Vec3;

use super::{ColumnReader, TableWriter, WriteContext};
use crate::log::column::{self, Effort};
use crate::log::kinds::{ListReader, RecordLayout, columns};
use crate::log::limits::Budget;
use crate::record::{Effect, NumberForm, OutOfSequence, SnapshotRecord, Timing};
use crate::units::{CommandSeq, EntityId, PlayerId};

/// The offset of a known helper value, which makes every value of `i16` positive.
const HELPER_KNOWN: i64 = 32_769;

impl RecordLayout for SnapshotRecord {
    columns! {
        "seq" Whole seq,
        "tick" To("seq") tick,
        "at_us" Whole at,
        "server_time_us" To("at_us") server_time,
        "ack" Whole ack,
        "bytes" Whole bytes,
        "choked" Whole choked,
    }
    const LISTS: &'static [&'static str] = &[
        "entities",
        "effects",
        "extra_bytes",
        "entity",
        "effect_kind",
        "effect_entity",
        "effect_predictable",
        "effect_x",
        "effect_y",
        "effect_z",
        "extra",
        "helper",
        "warnings",
        "warning_command",
        "warning_difference",
    ];

    fn put_lists(rows: &mut TableWriter<'_, SnapshotRecord>, context: &WriteContext<'_>) {
        let is_shown = |(id, r): (u32, &SnapshotRecord)| *context.shown(r.tick, PlayerId(id as u16)) == r.entities[..];
        let shown: Vec<bool> = rows.with_ids().map(is_shown).collect();
        let counts = rows.iter().zip(&shown).map(|(r, shown)| if *shown { 0 } else { r.entities.len() as i64 + 1 });
        let counts: Vec<i64> = counts.collect();
        rows.columns.numbers(&counts);
        rows.whole(|r| r.effects.len() as i64);
        rows.whole(|r| r.extra.len() as i64);
        let listed = rows.iter().zip(&shown).filter(|(_, shown)| !**shown).flat_map(|(r, _)| r.entities.iter());
        let listed = flat(listed.map(|e| i64::from(e.0)));
        let effects: Vec<&Effect> = rows.iter().flat_map(|r| r.effects.iter()).collect();
        rows.columns.raw(listed);
        rows.columns.raw(flat(effects.iter().map(|e| i64::from(e.kind))));
        rows.columns.raw(flat(effects.iter().map(|e| i64::from(e.entity.0))));
        rows.columns.raw(flat(effects.iter().map(|e| i64::from(e.predictable))));
        for axis in 0..3 {
            let bits: Vec<i64> = effects.iter().map(|e| e.at[axis].to_bits().into()).collect();
            rows.columns.raw(column::encode_as(NumberForm::F32, &bits, &[bits.len()], Effort::Full));
        }
        let extra = rows.iter().flat_map(|r| r.extra.iter().copied()).collect();
        rows.columns.raw(extra);
        rows.whole(|r| r.timing.as_ref().and_then(|t| t.helper_ms).map_or(0, |ms| HELPER_KNOWN + i64::from(ms)));
        rows.whole(|r| warnings_of(r).len() as i64);
        let warnings: Vec<&OutOfSequence> = rows.iter().flat_map(warnings_of).collect();
        rows.columns.raw(flat(warnings.iter().map(|w| i64::from(w.command.0))));
        rows.columns.raw(flat(warnings.iter().map(|w| i64::from(w.difference))));
    }

    fn take_lists(records: &mut [SnapshotRecord], lists: ListReader<'_>, budget: &mut Budget) -> Result<(), String> {
        let ListReader { columns, context } = lists;
        let listed: Vec<u32> = columns.narrow("entities")?;
        let effect_counts: Vec<u32> = columns.narrow("effects")?;
        let extra_bytes: Vec<u32> = columns.narrow("extra_bytes")?;
        let helpers: Vec<i64> = columns.narrow("helper")?;
        let warning_counts: Vec<u32> = columns.narrow("warnings")?;
        let mut entities = entities(columns, total(listed.iter().map(|n| n.saturating_sub(1))), budget)?;
        let mut effects = effects(columns, total(effect_counts.iter().copied()), budget)?;
        let mut warnings = warnings(columns, total(warning_counts.iter().copied()), budget)?;
        let mut extra = column::Cursor::new(columns.raw("extra"));
        let counts = columns.row_counts();
        let viewers = counts.iter().flat_map(|&(id, rows)| std::iter::repeat_n(PlayerId(id as u16), rows));
        for (row, (record, viewer)) in records.iter_mut().zip(viewers).enumerate() {
            record.entities = match listed[row].checked_sub(1) {
                None => context.shown(record.tick, viewer).into_owned(),
                Some(n) => entities.by_ref().take(n as usize).collect(),
            };
            budget.take(record.entities.len(), size_of::<EntityId>())?;
            record.effects = effects.by_ref().take(effect_counts[row] as usize).collect();
            let bytes = extra.take(extra_bytes[row] as usize).map_err(|what| columns.bad("extra", what))?;
            record.extra = bytes.to_vec();
            let narrow =
                |ms: i64| i16::try_from(ms).map_err(|_| columns.bad("helper", format_args!("{ms} is out of range")));
            let helper_ms = match helpers[row] {
                0 => None,
                known => Some(narrow(known.wrapping_sub(HELPER_KNOWN))?),
            };
            record.timing = Timing::new(helper_ms, warnings.by_ref().take(warning_counts[row] as usize).collect());
        }
        extra.end().map_err(|what| columns.bad("extra", what))
    }
}

fn warnings_of(record: &SnapshotRecord) -> &[OutOfSequence] {
    record.timing.as_ref().map_or(&[], |timing| &timing.warnings)
}

/// Encodes a column of its own length, as one series.
fn flat(values: impl Iterator<Item = i64>) -> Vec<u8> {
    let values: Vec<i64> = values.collect();
    column::encode(&values, &[values.len()])
}

fn total(counts: impl Iterator<Item = u32>) -> usize {
    counts.fold(0usize, |sum, n| sum.saturating_add(n as usize))
}

fn entities(columns: &ColumnReader<'_>, count: usize, budget: &mut Budget) -> Result<IntoIter<EntityId>, String> {
    budget.take(count, 3 * size_of::<i64>())?;
    let entities: Vec<u16> = columns.narrow_list("entity", &[count])?;
    Ok(entities.into_iter().map(EntityId).collect::<Vec<_>>().into_iter())
}

fn warnings(columns: &ColumnReader<'_>, count: usize, budget: &mut Budget) -> Result<IntoIter<OutOfSequence>, String> {
    budget.take(count, 3 * size_of::<OutOfSequence>())?;
    let command: Vec<u32> = columns.narrow_list("warning_command", &[count])?;
    let difference: Vec<i16> = columns.narrow_list("warning_difference", &[count])?;
    let warning = |(command, difference)| OutOfSequence { command: CommandSeq(command), difference };
    Ok(command.into_iter().zip(difference).map(warning).collect::<Vec<_>>().into_iter())
}

fn effects(columns: &ColumnReader<'_>, count: usize, budget: &mut Budget) -> Result<IntoIter<Effect>, String> {
    budget.take(count, 4 * size_of::<Effect>())?;
    let kind: Vec<u8> = columns.narrow_list("effect_kind", &[count])?;
    let entity: Vec<u16> = columns.narrow_list("effect_entity", &[count])?;
    let predictable: Vec<u8> = columns.narrow_list("effect_predictable", &[count])?;
    let axis = |name: &str| columns.numbers(NumberForm::F32, name, &[count]);
    let at = [axis("effect_x")?, axis("effect_y")?, axis("effect_z")?];
    let effect = |i: usize| {
        let predictable = match predictable[i] {
            0 => false,
            1 => true,
            other => return Err(columns.bad("effect_predictable", format_args!("{other} is out of range"))),
        };
        let at = Vec3::from_array(std::array::from_fn(|axis| f32::from_bits(at[axis][i] as u32)));
        Ok(Effect { kind: kind[i], entity: EntityId(entity[i]), at, predictable })
    };
    Ok((0..count).map(effect).collect::<Result<Vec<_>, String>>()?.into_iter())
}
