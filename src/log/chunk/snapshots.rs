//! Snapshots as they were sent: their numbers and times, whom they show, what else they tell.

use glam::Vec3;
use serde_bytes::{ByteBuf, Bytes};

use super::players::rows_of;
use super::table::{Columns, Table};
use super::{Chunk, Stretch, states};
use crate::game::Effect;
use crate::log::column;
use crate::log::limits::Budget;
use crate::record::{OutOfSequence, SnapshotRecord, Timing};
use crate::units::{CommandSeq, EntityId, Micros, SnapshotSeq, Tick};

pub(super) fn encode(stretch: &Stretch<'_>) -> Option<Table<ByteBuf>> {
    let mut rows = rows_of(stretch, |player| player.snapshots);
    let shown = Shown::new(stretch.keys);
    let seq = rows.whole(|r| r.seq.0.into());
    rows.relative(&seq, |r| r.tick.0.into());
    let at = rows.whole(|r| r.at.0);
    rows.relative(&at, |r| r.server_time.0);
    rows.whole(|r| r.ack.0.into());
    rows.whole(|r| r.bytes.into());
    rows.whole(|r| r.choked.into());
    rows.whole(|r| if shown.are(r) { 0 } else { r.entities.len() as i64 + 1 });
    rows.whole(|r| r.effects.len() as i64);
    rows.whole(|r| r.extra.len() as i64);
    let entities = rows.iter().filter(|r| !shown.are(r)).flat_map(|r| r.entities.iter());
    let listed = flat(entities.map(|e| i64::from(e.0)));
    let effects: Vec<&Effect> = rows.iter().flat_map(|r| r.effects.iter()).collect();
    let extra = rows.iter().flat_map(|r| r.extra.iter().copied()).collect();
    rows.raw(listed);
    rows.raw(flat(effects.iter().map(|e| i64::from(e.kind))));
    rows.raw(flat(effects.iter().map(|e| i64::from(e.entity.0))));
    rows.raw(flat(effects.iter().map(|e| i64::from(e.predictable))));
    for axis in 0..3 {
        let bits: Vec<u32> = effects.iter().map(|e| e.at[axis].to_bits()).collect();
        rows.raw(column::encode_f32(&bits, &[bits.len()]));
    }
    rows.raw(extra);
    if rows.iter().any(|r| r.timing.is_some()) {
        rows.whole(|r| r.timing.as_ref().and_then(|t| t.helper_ms).map_or(0, |ms| HELPER_KNOWN + i64::from(ms)));
        rows.whole(|r| warnings_of(r).len() as i64);
        let warnings: Vec<&OutOfSequence> = rows.iter().flat_map(warnings_of).collect();
        rows.raw(flat(warnings.iter().map(|w| i64::from(w.command.0))));
        rows.raw(flat(warnings.iter().map(|w| i64::from(w.difference))));
    }
    rows.finish()
}

fn warnings_of(record: &SnapshotRecord) -> &[OutOfSequence] {
    record.timing.as_ref().map_or(&[], |timing| &timing.warnings)
}

/// A helper that is known is above 0, whatever it says.
const HELPER_KNOWN: i64 = 32_769;

/// A column of its own length, in one series.
fn flat(values: impl Iterator<Item = i64>) -> Vec<u8> {
    let values: Vec<i64> = values.collect();
    column::encode(&values, &[values.len()])
}

pub(super) fn decode(table: &Table<&Bytes>, chunk: &mut Chunk, budget: &mut Budget) -> Result<(), String> {
    let mut columns = Columns::new("snapshots", table, 3 * size_of::<SnapshotRecord>(), budget)?;
    let seq = columns.whole("seq")?;
    let tick = columns.relative("tick", &seq)?;
    let (seq, tick): (Vec<u32>, Vec<u32>) = (columns.narrowed("seq", seq)?, columns.narrowed("tick", tick)?);
    let at = columns.whole("at_us")?;
    let server_time = columns.relative("server_time_us", &at)?;
    let ack: Vec<u32> = columns.narrow("ack")?;
    let bytes: Vec<u16> = columns.narrow("bytes")?;
    let choked: Vec<u8> = columns.narrow("choked")?;
    let listed: Vec<u32> = columns.narrow("entities")?;
    let effects: Vec<u32> = columns.narrow("effects")?;
    let extra: Vec<u32> = columns.narrow("extra_bytes")?;
    let explicit = listed.iter().map(|&n| n.saturating_sub(1));
    let mut lists = Lists::read(&mut columns, total(explicit), total(effects.iter().copied()), budget)?;
    let mut timing = Timings::read(&mut columns, budget)?;
    let shown = Shown::new(&chunk.states.keys);
    let mut records = Vec::with_capacity(columns.rows);
    for row in 0..columns.rows {
        let tick = Tick(tick[row]);
        let entities = match listed[row].checked_sub(1) {
            None => shown.at(tick).to_vec(),
            Some(n) => lists.entities.by_ref().take(n as usize).collect(),
        };
        budget.take(entities.len(), size_of::<EntityId>())?;
        records.push(SnapshotRecord {
            seq: SnapshotSeq(seq[row]),
            tick,
            at: Micros(at[row]),
            server_time: Micros(server_time[row]),
            ack: CommandSeq(ack[row]),
            bytes: bytes[row],
            choked: choked[row],
            entities,
            effects: lists.effects.by_ref().take(effects[row] as usize).collect(),
            extra: lists
                .extra
                .take(extra[row] as usize)
                .map_err(|e| format!("table snapshots, column extra: {e}"))?
                .to_vec(),
            timing: timing.of(row)?,
        });
    }
    lists.extra.end().map_err(|e| format!("table snapshots, column extra: {e}"))?;
    columns.deal(records, chunk, |player| &mut player.snapshots)
}

fn total(counts: impl Iterator<Item = u32>) -> usize {
    counts.fold(0usize, |sum, n| sum.saturating_add(n as usize))
}

/// What has another number of entries than there are snapshots.
struct Lists<'a> {
    entities: std::vec::IntoIter<EntityId>,
    effects: std::vec::IntoIter<Effect>,
    extra: column::Cursor<'a>,
}

/// What snapshots say of their clients' timing, since format 1.1; the columns are absent where none says anything.
struct Timings {
    helper: Vec<i64>,
    counts: Vec<u32>,
    warnings: std::vec::IntoIter<OutOfSequence>,
}

impl Timings {
    fn read(columns: &mut Columns<'_>, budget: &mut Budget) -> Result<Timings, String> {
        if !columns.has_more() {
            let rows = columns.rows;
            return Ok(Timings { helper: vec![0; rows], counts: vec![0; rows], warnings: Vec::new().into_iter() });
        }
        let helper = columns.whole("helper")?;
        let counts: Vec<u32> = columns.narrow("warnings")?;
        let all = total(counts.iter().copied());
        budget.take(all, 3 * size_of::<OutOfSequence>())?;
        let command: Vec<u32> = flat_numbers(columns, "warning_command", all)?;
        let difference: Vec<i16> = flat_numbers(columns, "warning_difference", all)?;
        let warning = |(command, difference)| OutOfSequence { command: CommandSeq(command), difference };
        let warnings: Vec<OutOfSequence> = command.into_iter().zip(difference).map(warning).collect();
        Ok(Timings { helper, counts, warnings: warnings.into_iter() })
    }

    fn of(&mut self, row: usize) -> Result<Option<Box<Timing>>, String> {
        let helper = self.helper[row];
        let narrow =
            |ms: i64| i16::try_from(ms).map_err(|_| format!("table snapshots, column helper: {ms} is out of range"));
        let helper_ms = (helper != 0).then(|| narrow(helper.wrapping_sub(HELPER_KNOWN))).transpose()?;
        Ok(Timing::new(helper_ms, self.warnings.by_ref().take(self.counts[row] as usize).collect()))
    }
}

impl<'a> Lists<'a> {
    fn read(
        columns: &mut Columns<'a>,
        listed: usize,
        effects: usize,
        budget: &mut Budget,
    ) -> Result<Lists<'a>, String> {
        budget.take(listed, 3 * size_of::<i64>())?;
        budget.take(effects, 4 * size_of::<Effect>())?;
        let entities: Vec<u16> = flat_numbers(columns, "entity", listed)?;
        let kind: Vec<u8> = flat_numbers(columns, "effect_kind", effects)?;
        let entity: Vec<u16> = flat_numbers(columns, "effect_entity", effects)?;
        let predictable: Vec<u8> = flat_numbers(columns, "effect_predictable", effects)?;
        let mut axis = |name: &str| {
            column::decode_f32(columns.raw(name)?, &[effects])
                .map_err(|e| format!("table snapshots, column {name}: {e}"))
        };
        let at = [axis("effect_x")?, axis("effect_y")?, axis("effect_z")?];
        let effects = (0..effects).map(|i| {
            Ok(Effect {
                kind: kind[i],
                entity: EntityId(entity[i]),
                at: Vec3::from_array(std::array::from_fn(|axis| f32::from_bits(at[axis][i]))),
                predictable: match predictable[i] {
                    0 => false,
                    1 => true,
                    other => {
                        return Err(format!("table snapshots, column effect_predictable: {other} is out of range"));
                    }
                },
            })
        });
        let effects: Vec<Effect> = effects.collect::<Result<_, String>>()?;
        let extra = column::Cursor::new(columns.raw("extra")?);
        let entities: Vec<EntityId> = entities.into_iter().map(EntityId).collect();
        Ok(Lists { entities: entities.into_iter(), effects: effects.into_iter(), extra })
    }
}

fn flat_numbers<V: TryFrom<i64>>(columns: &mut Columns<'_>, name: &str, count: usize) -> Result<Vec<V>, String> {
    let values = column::decode(columns.raw(name)?, &[count], None);
    columns.narrowed(name, values.map_err(|e| format!("table snapshots, column {name}: {e}"))?)
}

/// The entities of each tick's states: what most snapshots show, so that it need not be said again.
struct Shown {
    ticks: Vec<Tick>,
    /// Where each tick's entities begin.
    starts: Vec<usize>,
    entities: Vec<EntityId>,
}

impl Shown {
    /// Nothing when the states are not in order.
    fn new(keys: &[(Tick, EntityId)]) -> Shown {
        let keys = if states::is_ascending(keys) { keys } else { &[] };
        let mut shown = Shown { ticks: Vec::new(), starts: Vec::new(), entities: Vec::new() };
        for (row, &(tick, entity)) in keys.iter().enumerate() {
            if shown.ticks.last() != Some(&tick) {
                shown.ticks.push(tick);
                shown.starts.push(row);
            }
            shown.entities.push(entity);
        }
        shown
    }

    fn at(&self, tick: Tick) -> &[EntityId] {
        let Ok(index) = self.ticks.binary_search(&tick) else { return &[] };
        let end = self.starts.get(index + 1).copied().unwrap_or(self.entities.len());
        &self.entities[self.starts[index]..end]
    }

    fn are(&self, snapshot: &SnapshotRecord) -> bool {
        self.at(snapshot.tick) == snapshot.entities
    }
}
