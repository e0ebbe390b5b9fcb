//! The columns of record kinds, in file order. A new kind is a line in
//! [`each_stream!`](crate::record::each_stream) and its columns here.

use std::vec::IntoIter;

use glam::Vec3;

use super::chunk::{ReadContext, WriteContext};
use super::column::{self, Effort};
use super::error::Budget;
use super::table::{ColumnReader, TableWriter};
use crate::record::{
    ArrivalRecord, CellKind, DamageRecord, Effect, Execution, ExecutionRecord, FrameRecord, GapCause, GapRecord,
    HEARD_COMMANDS_MAX, HeardRecord, HitResult, NumberForm, OutOfSequence, PacketRecord, Presence, PresenceRecord,
    RecordType, ShotRecord, SnapshotRecord, TickRecord, Timing, cells_of,
};
use crate::sorted::SortedMap;
use crate::trace::schema::NO_HASH;
use crate::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq, Tick};
use crate::usercmd::{OwnCells, Usercmd};

/// A column: its name, its packing, and access to its value in a record.
pub(super) struct RecordColumn<T> {
    pub(super) name: &'static str,
    pub(super) how: NumberPacking,
    pub(super) get: fn(&T) -> i64,
    /// Returns false for a number that the record's field cannot hold.
    pub(super) set: fn(&mut T, i64) -> bool,
}

/// The packing of a column's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NumberPacking {
    /// As integers.
    Whole,
    /// As floats.
    Float,
    /// Relative to another column of the row.
    To(&'static str),
    /// Relative to the time of the record whose key another column of the row has. For example, `sent.at_us` is stored
    /// relative to the time of the frame whose usercmd is in `newest`.
    ToTimeOf(&'static str),
}

/// A record kind that is stored in columns.
pub(super) trait RecordLayout: RecordType + Default {
    /// The columns with one number for each record. Other kinds refer to a record by its first column.
    const COLUMNS: &'static [RecordColumn<Self>];
    /// The columns with several values for each record, concatenated.
    const LISTS: &'static [&'static str] = &[];

    /// Returns how to read the column that a column is relative to.
    fn referenced(column: &RecordColumn<Self>) -> Option<fn(&Self) -> i64> {
        let (NumberPacking::To(name) | NumberPacking::ToTimeOf(name)) = column.how else { return None };
        Self::COLUMNS.iter().find(|column| column.name == name).map(|column| column.get)
    }

    /// Returns the names of [`RecordLayout::COLUMNS`].
    fn column_names() -> Vec<String> {
        Self::COLUMNS.iter().map(|column| column.name.to_owned()).collect()
    }

    /// Returns the names of the columns after those.
    fn list_names() -> Vec<String> {
        Self::LISTS.iter().map(|name| (*name).to_owned()).collect()
    }

    /// Writes the columns in [`RecordLayout::list_names`], in that order.
    fn put_lists(_rows: &mut TableWriter<'_, Self>, _context: &WriteContext<'_>) {}

    /// Reads the columns of [`RecordLayout::put_lists`] into records whose other fields are set.
    fn take_lists(_records: &mut [Self], _lists: ListReader<'_>, _budget: &mut Budget) -> Result<(), String> {
        Ok(())
    }
}

/// The columns of a table's lists, and the context to read them in.
#[derive(Clone, Copy)]
pub(super) struct ListReader<'a> {
    pub(super) columns: &'a ColumnReader<'a>,
    pub(super) context: &'a ReadContext<'a>,
}

macro_rules! columns {
    ($( $name:literal $how:ident $(($to:literal))? $($field:ident).+ ),* $(,)?) => {
        const COLUMNS: &'static [$crate::log::kinds::RecordColumn<Self>] = &[$(
            $crate::log::kinds::RecordColumn {
                name: $name,
                how: $crate::log::kinds::NumberPacking::$how $(($to))?,
                get: |record| $crate::log::kinds::PackedNumber::to(&record.$($field).+),
                set: |record, number| $crate::log::kinds::PackedNumber::of(number).map(|value| record.$($field).+ = value).is_some(),
            }
        ),*];
    };
}

impl RecordLayout for PacketRecord {
    columns! {
        "number" Whole number,
        "newest" Whole newest,
        "at_us" ToTimeOf("newest") at,
        "count" Whole count,
        "ack" Whole ack,
        "bytes" Whole bytes,
    }
}

impl RecordLayout for ArrivalRecord {
    columns! {
        "number" Whole number,
        "at_us" ToTimeOf("number") at,
    }
}

impl RecordLayout for ExecutionRecord {
    columns! {
        "command" Whole command,
        "tick" Whole tick,
        "how" Whole how,
    }
}

impl RecordLayout for ShotRecord {
    columns! {
        "command" Whole command,
        "at_us" Whole at,
        "shot" Whole index,
        "reason" Whole reason,
        "target" Whole target,
        "hitgroup" Whole hitgroup,
        "damage" Whole damage,
        "rewound_us" Whole rewound,
        "impact" Whole impact,
        "pellets" Whole pellets,
    }
    const LISTS: &'static [&'static str] = &["weapon"];

    fn put_lists(rows: &mut TableWriter<'_, Self>, context: &WriteContext<'_>) {
        rows.texts(|shot| shot.weapon, context.texts);
    }

    fn take_lists(shots: &mut [Self], lists: ListReader<'_>, _: &mut Budget) -> Result<(), String> {
        for (shot, weapon) in shots.iter_mut().zip(lists.columns.texts("weapon", lists.context.texts)?) {
            shot.weapon = weapon;
        }
        Ok(())
    }
}

impl RecordLayout for PresenceRecord {
    columns! {
        "tick" Whole tick,
        "at_us" Whole at,
        "change" Whole change,
    }
}

impl RecordLayout for DamageRecord {
    columns! {
        "tick" Whole tick,
        "at_us" Whole at,
        "victim" Whole victim,
        "attacker" Whole attacker,
        "amount" Whole amount,
        "armour" Whole armour,
    }
    const LISTS: &'static [&'static str] = &["weapon", "forced", "force_x", "force_y", "force_z"];

    fn put_lists(rows: &mut TableWriter<'_, Self>, context: &WriteContext<'_>) {
        rows.texts(|damage| damage.weapon, context.texts);
        rows.whole(|damage| damage.force.is_some().into());
        for axis in 0..3 {
            let bits = rows.iter().map(|damage| damage.force.unwrap_or_default()[axis].to_bits().into()).collect();
            rows.columns.numbers_as(NumberForm::F32, bits, None);
        }
    }

    fn take_lists(records: &mut [Self], lists: ListReader<'_>, _: &mut Budget) -> Result<(), String> {
        let ListReader { columns, context } = lists;
        let (weapons, forced) = (columns.texts("weapon", context.texts)?, columns.narrow::<u8>("forced")?);
        let [x, y, z] = [columns.singles("force_x")?, columns.singles("force_y")?, columns.singles("force_z")?];
        for (row, (record, weapon)) in records.iter_mut().zip(weapons).enumerate() {
            record.weapon = weapon;
            record.force = (forced[row] != 0).then(|| Vec3::new(x[row], y[row], z[row]));
        }
        Ok(())
    }
}

impl RecordLayout for GapRecord {
    columns! {
        "from_us" Whole from,
        "at_us" Whole to,
        "player" Whole player,
        "why" Whole why,
    }
}

impl RecordLayout for TickRecord {
    columns! {
        "tick" Whole tick,
        "at_us" Whole at,
    }
    const LISTS: &'static [&'static str] = &["hashed", "hash"];

    fn put_lists(rows: &mut TableWriter<'_, Self>, _: &WriteContext<'_>) {
        let hash = |r: &TickRecord| r.hash.filter(|hash| *hash != NO_HASH);
        rows.whole(|r| hash(r).is_some().into());
        let hashes = rows.iter().filter_map(hash).flat_map(u64::to_le_bytes).collect();
        rows.columns.raw(hashes);
    }

    fn take_lists(records: &mut [Self], lists: ListReader<'_>, _: &mut Budget) -> Result<(), String> {
        let hashed: Vec<u8> = lists.columns.narrow("hashed")?;
        let mut hashes = lists.columns.raw("hash").chunks_exact(8);
        for (record, hashed) in records.iter_mut().zip(hashed) {
            record.hash = match hashed {
                0 => None,
                1 => match hashes.next().map(<[u8; 8]>::try_from) {
                    Some(Ok(bytes)) => Some(u64::from_le_bytes(bytes)).filter(|hash| *hash != NO_HASH),
                    _ => return Err("table ticks, column hash: it ends too early".to_owned()),
                },
                other => return Err(format!("table ticks, column hashed: {other} is out of range")),
            };
        }
        Ok(())
    }
}

/// A value that a column stores as a number.
trait PackedNumber: Sized {
    fn to(&self) -> i64;
    fn of(number: i64) -> Option<Self>;
}

macro_rules! whole_numbers {
    ($($type:ty),*) => { $(
        impl PackedNumber for $type {
            fn to(&self) -> i64 {
                i64::from(*self)
            }
            fn of(number: i64) -> Option<Self> {
                Self::try_from(number).ok()
            }
        }
    )* };
}
whole_numbers!(u8, u16, u32, i32);

impl PackedNumber for bool {
    fn to(&self) -> i64 {
        i64::from(*self)
    }
    fn of(number: i64) -> Option<Self> {
        (0..=1).contains(&number).then_some(number == 1)
    }
}

macro_rules! newtypes {
    ($($type:ident),*) => { $(
        impl PackedNumber for $type {
            fn to(&self) -> i64 {
                self.0.into()
            }
            fn of(number: i64) -> Option<Self> {
                number.try_into().ok().map($type)
            }
        }
    )* };
}
newtypes!(CommandSeq, SnapshotSeq, Tick, EntityId, PlayerId, Micros);

/// Enums, by the order of their variants.
macro_rules! choices {
    ($($type:ident),*) => { $(
        impl PackedNumber for $type {
            fn to(&self) -> i64 {
                *self as i64
            }
            fn of(number: i64) -> Option<Self> {
                $type::ALL.get(usize::try_from(number).ok()?).copied()
            }
        }
    )* };
}
choices!(Execution, HitResult, Presence, GapCause);

impl PackedNumber for f32 {
    fn to(&self) -> i64 {
        self.to_bits().into()
    }
    fn of(number: i64) -> Option<Self> {
        number.try_into().ok().map(f32::from_bits)
    }
}

/// 0 is `None`; other values are stored plus one.
impl<T: PackedNumber> PackedNumber for Option<T> {
    fn to(&self) -> i64 {
        self.as_ref().map_or(0, |value| value.to() + 1)
    }
    fn of(number: i64) -> Option<Self> {
        match number.checked_sub(1) {
            Some(-1) => Some(None),
            Some(value) => T::of(value).map(Some),
            None => None,
        }
    }
}

// The columns of frames. The usercmd fields that the game declares follow, each as a column of its own.

impl RecordLayout for FrameRecord {
    columns! {
        "seq" Whole command.seq,
        "at_us" Whole at,
        "server_time_us" To("at_us") command.server_time,
        "lerp_ms" Whole command.lerp_msec,
        "msec" Whole command.input.msec,
        "pitch" Float command.input.viewangles.x,
        "yaw" Float command.input.viewangles.y,
        "roll" Float command.input.viewangles.z,
        "forwardmove" Float command.input.forwardmove,
        "sidemove" Float command.input.sidemove,
        "upmove" Float command.input.upmove,
        "buttons" Whole command.input.buttons,
        "impulse" Whole command.input.impulse,
    }

    /// Writes the declared fields, one column each, and the bytes.
    fn put_lists(rows: &mut TableWriter<'_, FrameRecord>, context: &WriteContext<'_>) {
        put_own_fields(rows, context);
        if context.usercmd_bytes {
            rows.whole(|frame| frame.bytes.len() as i64);
            let bytes = rows.iter().flat_map(|frame| frame.bytes.iter().copied()).collect();
            rows.columns.raw(bytes);
        }
    }

    fn take_lists(frames: &mut [FrameRecord], lists: ListReader<'_>, budget: &mut Budget) -> Result<(), String> {
        let columns = lists.columns;
        take_named(frames, ("", &columns.series), lists, budget)?;
        if lists.context.usercmd_bytes {
            for (frame, bytes) in frames.iter_mut().zip(extra_bytes(columns)?) {
                frame.bytes = bytes.into();
            }
        }
        Ok(())
    }
}

/// The columns of `frames` and `snapshots` with bytes of the application: the number of bytes of each row, and all bytes.
pub(crate) const EXTRA_BYTES: [&str; 2] = ["extra_bytes", "extra"];

/// Reads the bytes of each row.
fn extra_bytes<'a>(columns: &ColumnReader<'a>) -> Result<Vec<&'a [u8]>, String> {
    let [counts, name] = EXTRA_BYTES;
    let bad = |what| columns.bad(name, what);
    let mut all = column::Cursor::new(columns.raw(name));
    let rows = columns.narrow::<u32>(counts)?.into_iter().map(|count| all.take(count as usize));
    let rows = rows.collect::<Result<_, _>>().map_err(bad)?;
    all.end().map_err(bad)?;
    Ok(rows)
}

/// Writes the declared fields of usercmds, one column each.
fn put_own_fields(rows: &mut TableWriter<'_, FrameRecord>, context: &WriteContext<'_>) {
    for (field, place) in cells_of(context.own_fields) {
        let number = |frame: &FrameRecord| frame.command.input.own.number(field.kind, place.clone());
        let texts = (field.kind == CellKind::Text).then_some(context.texts);
        rows.columns.numbers_as(field.kind.form(), rows.iter().map(number).collect(), texts);
    }
}

/// Reads columns in series of their own, whose names begin with a prefix.
fn take_named(
    frames: &mut [FrameRecord],
    (prefix, series): (&str, &[usize]),
    ListReader { columns, context }: ListReader<'_>,
    budget: &mut Budget,
) -> Result<(), String> {
    let fields = context.own_fields;
    let count = fields.iter().map(|field| field.kind.cells()).sum::<usize>();
    if count == 0 {
        return Ok(());
    }
    budget.take(frames.len(), 2 * count * size_of::<u32>() + 32)?;
    let mut cells: Vec<Vec<u32>> = frames.iter().map(|_| Vec::with_capacity(count)).collect();
    for field in fields {
        let name = format!("{prefix}{}", field.name);
        let bad = |what: String| columns.bad(&name, what);
        let (form, mut values) = column::decode_any(columns.raw(&name), series).map_err(bad)?;
        // A column of zeros does not show its form.
        if form != NumberForm::Integer && form != field.kind.form() {
            return Err(columns.bad(&name, format_args!("its values are no {}", field.kind.name())));
        }
        if field.kind == CellKind::Text {
            context.texts.to_codes(&mut values).map_err(bad)?;
        }
        for (cells, value) in cells.iter_mut().zip(values) {
            if !field.kind.put(value, cells) {
                return Err(columns.bad(&name, format_args!("{value} is out of range")));
            }
        }
    }
    for (frame, cells) in frames.iter_mut().zip(cells) {
        frame.command.input.own = OwnCells::new(&cells);
    }
    Ok(())
}

// The columns of snapshots, and their lists: shown entities, effects, warnings, and bytes of the game's own.

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
        let listed = encode_flat(listed.map(|e| i64::from(e.0)));
        let effects: Vec<&Effect> = rows.iter().flat_map(|r| r.effects.iter()).collect();
        rows.columns.raw(listed);
        rows.columns.raw(encode_flat(effects.iter().map(|e| i64::from(e.kind))));
        rows.columns.raw(encode_flat(effects.iter().map(|e| i64::from(e.entity.0))));
        rows.columns.raw(encode_flat(effects.iter().map(|e| i64::from(e.predictable))));
        for axis in 0..3 {
            let bits: Vec<i64> = effects.iter().map(|e| e.at[axis].to_bits().into()).collect();
            rows.columns.raw(column::encode_as(NumberForm::F32, &bits, &[bits.len()], Effort::Full));
        }
        let extra = rows.iter().flat_map(|r| r.extra.iter().copied()).collect();
        rows.columns.raw(extra);
        rows.whole(|r| r.timing.as_ref().and_then(|t| t.helper_ms).map_or(0, |ms| HELPER_KNOWN + i64::from(ms)));
        rows.whole(|r| warnings_of(r).len() as i64);
        let warnings: Vec<&OutOfSequence> = rows.iter().flat_map(warnings_of).collect();
        rows.columns.raw(encode_flat(warnings.iter().map(|w| i64::from(w.command.0))));
        rows.columns.raw(encode_flat(warnings.iter().map(|w| i64::from(w.difference))));
    }

    fn take_lists(records: &mut [SnapshotRecord], lists: ListReader<'_>, budget: &mut Budget) -> Result<(), String> {
        let ListReader { columns, context } = lists;
        let listed: Vec<u32> = columns.narrow("entities")?;
        let effect_counts: Vec<u32> = columns.narrow("effects")?;
        let helpers: Vec<i64> = columns.narrow("helper")?;
        let warning_counts: Vec<u32> = columns.narrow("warnings")?;
        let mut entities = entities(columns, sum_of(listed.iter().map(|n| n.saturating_sub(1))), budget)?;
        let mut effects = effects(columns, sum_of(effect_counts.iter().copied()), budget)?;
        let mut warnings = warnings(columns, sum_of(warning_counts.iter().copied()), budget)?;
        let extra = extra_bytes(columns)?;
        let counts = columns.row_counts();
        let viewers = counts.iter().flat_map(|&(id, rows)| std::iter::repeat_n(PlayerId(id as u16), rows));
        for (row, (record, viewer)) in records.iter_mut().zip(viewers).enumerate() {
            record.entities = match listed[row].checked_sub(1) {
                None => context.shown(record.tick, viewer).into_owned(),
                Some(n) => entities.by_ref().take(n as usize).collect(),
            };
            budget.take(record.entities.len(), size_of::<EntityId>())?;
            record.effects = effects.by_ref().take(effect_counts[row] as usize).collect();
            record.extra = extra[row].to_vec();
            let narrow =
                |ms: i64| i16::try_from(ms).map_err(|_| columns.bad("helper", format_args!("{ms} is out of range")));
            let helper_ms = match helpers[row] {
                0 => None,
                known => Some(narrow(known.wrapping_sub(HELPER_KNOWN))?),
            };
            record.timing = Timing::new(helper_ms, warnings.by_ref().take(warning_counts[row] as usize).collect());
        }
        Ok(())
    }
}

fn warnings_of(record: &SnapshotRecord) -> &[OutOfSequence] {
    record.timing.as_ref().map_or(&[], |timing| &timing.warnings)
}

/// Encodes a column of its own length, as one series.
fn encode_flat(values: impl Iterator<Item = i64>) -> Vec<u8> {
    let values: Vec<i64> = values.collect();
    column::encode(&values, &[values.len()])
}

fn sum_of(counts: impl Iterator<Item = u32>) -> usize {
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

/// The heard usercmds of one player so far.
type HeardUsercmds = SortedMap<CommandSeq, Usercmd>;

pub(super) const HEARD_USERCMD: &str = "usercmd_";

/// Most usercmds of heard packets repeat one of an earlier packet and take one bit. A chunk does not depend on other
/// chunks, so its first packets hold all their usercmds.
impl RecordLayout for HeardRecord {
    columns! {
        "number" Whole number,
        "at_us" ToTimeOf("number") at,
        "ack" Whole ack,
        "received_before" Whole received_before,
    }
    const LISTS: &'static [&'static str] = &["newest", "usercmds", "fresh"];

    /// After its own lists: the frame columns of the usercmds that are not repeats. Declared fields follow.
    fn list_names() -> Vec<String> {
        let of_frames = FrameRecord::column_names().into_iter().map(|name| format!("{HEARD_USERCMD}{name}"));
        Self::LISTS.iter().map(|name| (*name).to_owned()).chain(of_frames).collect()
    }

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
            put_own_fields(nested, context);
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
        let mut fresh = columns.nested::<FrameRecord>(HEARD_USERCMD, series.clone())?;
        take_named(&mut fresh, (HEARD_USERCMD, &series), lists, budget)?;
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
