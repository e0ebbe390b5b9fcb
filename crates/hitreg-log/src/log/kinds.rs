//! The columns of record kinds, in file order. A new kind is a line in
//! [`each_stream!`](crate::record::each_stream) and its columns here; kinds with long lists are in `chunk`.

use glam::Vec3;

use super::chunk::{ColumnReader, ReadContext, TableWriter, WriteContext};
use crate::log::limits::Budget;
use crate::record::{
    ArrivalRecord, DamageRecord, Execution, ExecutionRecord, GapCause, GapRecord, NumberForm, PacketRecord, Presence,
    PresenceRecord, Reason, RecordType, ShotRecord, TickRecord,
};
use crate::units::{CommandSeq, EntityId, Micros, PlayerId, SnapshotSeq, Tick};

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
    /// Relative to the time of the record of another kind that another column of the row names.
    ToNamed(&'static str),
}

/// A record kind that is stored in columns.
pub(super) trait RecordLayout: RecordType + Default {
    /// The columns with one number for each record. Other kinds name a record by its first column.
    const COLUMNS: &'static [RecordColumn<Self>];
    /// The columns with several values for each record, concatenated.
    const LISTS: &'static [&'static str] = &[];

    /// Returns how to read the column that a column is relative to.
    fn referenced(column: &RecordColumn<Self>) -> Option<fn(&Self) -> i64> {
        let (NumberPacking::To(name) | NumberPacking::ToNamed(name)) = column.how else { return None };
        Self::COLUMNS.iter().find(|column| column.name == name).map(|column| column.get)
    }

    /// Returns the names of [`RecordLayout::COLUMNS`].
    fn column_names() -> Vec<String> {
        Self::COLUMNS.iter().map(|column| column.name.to_owned()).collect()
    }

    /// Writes the columns in [`RecordLayout::LISTS`], in that order.
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
pub(super) use columns;

impl RecordLayout for PacketRecord {
    columns! {
        "number" Whole number,
        "newest" Whole newest,
        "at_us" ToNamed("newest") at,
        "count" Whole count,
        "ack" Whole ack,
        "bytes" Whole bytes,
    }
}

impl RecordLayout for ArrivalRecord {
    columns! {
        "number" Whole number,
        "at_us" ToNamed("number") at,
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
        rows.whole(|r| r.hash.is_some().into());
        let hashes = rows.iter().filter_map(|r| r.hash).flat_map(u64::to_le_bytes).collect();
        rows.columns.raw(hashes);
    }

    fn take_lists(records: &mut [Self], lists: ListReader<'_>, _: &mut Budget) -> Result<(), String> {
        let hashed: Vec<u8> = lists.columns.narrow("hashed")?;
        let mut hashes = lists.columns.raw("hash").chunks_exact(8);
        for (record, hashed) in records.iter_mut().zip(hashed) {
            record.hash = match hashed {
                0 => None,
                1 => match hashes.next().map(<[u8; 8]>::try_from) {
                    Some(Ok(bytes)) => Some(u64::from_le_bytes(bytes)),
                    _ => return Err("table ticks, column hash: it ends too early".to_owned()),
                },
                other => return Err(format!("table ticks, column hashed: {other} is out of range")),
            };
        }
        Ok(())
    }
}

/// A value that a column stores as a number.
pub(super) trait PackedNumber: Sized {
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
choices!(Execution, Reason, Presence, GapCause);

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
