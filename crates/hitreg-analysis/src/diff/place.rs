//! The place of a row in a session, and rows as results show them.

use serde::Serialize;

use super::cell::CellValue;
use super::clock::{TickTimes, known};
use super::keys::TraceSide;
use super::pairing::{Pairing, RowSpot};
use hitreg_log::trace::Table;

/// The place of a row in a session. Values that are unknown or do not apply to the table are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RowPlace {
    /// The session time, in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_us: Option<i64>,
    /// The tick; for a row of a client, the server's last tick before it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tick: Option<u32>,
    /// The player whose row it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub player: Option<u32>,
    /// The player's usercmd.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<u32>,
    /// The entity that the row describes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entity: Option<u32>,
    /// The other columns of the row's key.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub key: Vec<NamedValue>,
}

/// A value with its column's name.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct NamedValue {
    /// The column.
    pub name: String,
    /// The value.
    pub value: CellValue,
}

/// A whole row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RowDump {
    /// Its table.
    pub table: String,
    /// Where it is.
    pub place: RowPlace,
    /// The values that are not part of the place.
    pub values: Vec<NamedValue>,
}

impl RowPlace {
    pub(crate) fn of(pairing: &Pairing<'_>, clocks: [&TickTimes; 2], spot: &RowSpot) -> RowPlace {
        let at_spot = |(side, row): (TraceSide, Option<u32>)| {
            let row = row? as usize;
            let (table, clock) = (pairing.table(side), clocks[side as usize]);
            let is_at_spot = known(pairing.times[side as usize][row]) == spot.at_us;
            is_at_spot.then(|| RowPlace::of_row(table, row, &pairing.key.columns, spot.at_us, clock))
        };
        // The later row of a pair has another tick and another time.
        let places = [(TraceSide::A, spot.a), (TraceSide::B, spot.b)].into_iter().filter_map(at_spot);
        places.min_by_key(|place| place.tick.unwrap_or(u32::MAX)).unwrap_or_default()
    }

    pub(crate) fn of_row(table: &Table, row: usize, key: &[String], at_us: Option<i64>, clock: &TickTimes) -> RowPlace {
        let mut place = RowPlace { at_us, ..RowPlace::default() };
        for name in key.iter().map(String::as_str) {
            let Some(value) = table.column(name).and_then(|column| CellValue::at(column, row)) else { continue };
            match (name, value.number()) {
                ("tick", Some(n)) => place.tick = Some(n),
                ("player" | "shooter", Some(n)) => place.player = Some(n),
                ("command", Some(n)) => place.command = Some(n),
                ("entity", Some(n)) => place.entity = Some(n),
                ("at_us", _) => {}
                _ => place.key.push(NamedValue { name: name.to_owned(), value }),
            }
        }
        if place.tick.is_none() {
            let own = table.column("tick").and_then(|column| CellValue::at(column, row)).and_then(|v| v.number());
            place.tick = own.filter(|tick| *tick > 0).or_else(|| at_us.and_then(|at| clock.tick_at(at)));
        }
        place
    }
}

impl RowDump {
    /// A row of a table. `skip` names the columns that the place already holds.
    pub(crate) fn of(table: &Table, row: usize, place: RowPlace, skip: &[String]) -> RowDump {
        let shown = table.columns.iter().filter(|c| !skip.contains(&c.name) && c.name != "at_us");
        let values = shown.filter_map(|c| Some(NamedValue { name: c.name.clone(), value: CellValue::at(c, row)? }));
        RowDump { table: table.name.clone(), place, values: values.collect() }
    }

    /// A value by column name.
    pub fn get(&self, name: &str) -> Option<&CellValue> {
        self.values.iter().find(|named| named.name == name).map(|named| &named.value)
    }
}

impl CellValue {
    fn number(&self) -> Option<u32> {
        match self {
            CellValue::Integer(v) => u32::try_from(*v).ok(),
            _ => None,
        }
    }
}
