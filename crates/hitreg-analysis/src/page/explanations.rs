//! The shots and corrections of a page, each with the answer of `why`.

use serde::Serialize;

use super::PageInput;
use super::evidence::Evidence;
use super::packed::PageColumns;
use super::records::{PackedRecords, RecordPacker};
use crate::report::{correction_answer, shot_answer};
use crate::why::{DrawnSnapshots, RejudgedShot, TraceRows, UsercmdPath};
use hitreg_log::trace::schema::shots;
use hitreg_log::units::Micros;

/// A shot or a correction with the answer of `why`.
#[derive(Debug, Serialize)]
struct PageExplanation<T> {
    answer: String,
    /// The shot's results under other rules.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    rejudged: Vec<RejudgedShot>,
    #[serde(flatten)]
    it: T,
}

/// Packs all shots, with the answers of `why`.
pub(super) fn shots_of(
    evidence: &Evidence,
    shown: &PageInput<'_>,
    columns: &mut PageColumns,
) -> Result<PackedRecords, String> {
    let (trace, reader) = (&evidence.trace, TraceRows::new(&evidence.trace));
    let known = match shown.log {
        Some(_) => known_by_log(&reader, shown)?,
        None => Vec::new(),
    };
    let mut packer = RecordPacker::default();
    for row in 0..shots::Columns::of(trace).rows {
        let mut shot = reader.shot(row);
        if let Some((carried, drawn_from)) = known.get(row) {
            (shot.carried, shot.drawn_from) = (*carried, *drawn_from);
        }
        let rejudged = shot.otherwise(shown.rejudged);
        let answer = shot_answer(&shot, &trace.header.settings);
        packer.push(&PageExplanation { answer, rejudged, it: shot })?;
    }
    Ok(packer.finish(columns))
}

/// What the log knows of a shot.
type KnownByLog = (Option<UsercmdPath>, Option<DrawnSnapshots>);

/// The shots of so much time are looked up in the log together.
const TOGETHER: Micros = Micros::from_s(24);
/// How much of the log is read before and after them. It includes datagrams in flight.
const AROUND: Micros = Micros::from_s(4);

/// What the log knows of each shot. The log is read once, a few seconds at a time.
fn known_by_log(reader: &TraceRows<'_>, shown: &PageInput<'_>) -> Result<Vec<KnownByLog>, String> {
    let table = shots::Columns::of(reader.trace);
    let mut known = vec![(None, None); table.rows];
    let Some(log) = shown.log else { return Ok(known) };
    let mut order: Vec<usize> = (0..table.rows.min(table.at_us.len())).collect();
    order.sort_unstable_by_key(|row| (table.at_us[*row], *row));
    let mut left = &order[..];
    while let Some(first) = left.first() {
        let from = table.at_us[*first];
        let end = from.saturating_add(TOGETHER.0);
        let (together, later) = left.split_at(left.partition_point(|row| table.at_us[*row] < end));
        let [from, to] = [from.saturating_sub(AROUND.0), end.saturating_add(AROUND.0)].map(Micros);
        let session = log.between(from, to)?;
        for row in together {
            let mut shot = reader.shot(*row);
            shot.know_log(&session);
            known[*row] = (shot.carried, shot.drawn_from);
        }
        left = later;
    }
    Ok(known)
}

/// Packs all corrections, with the answers of `why`.
pub(super) fn corrections_of(evidence: &Evidence, columns: &mut PageColumns) -> Result<PackedRecords, String> {
    let mut packer = RecordPacker::default();
    for it in TraceRows::new(&evidence.trace).corrections() {
        packer.push(&PageExplanation { answer: correction_answer(&it), rejudged: Vec::new(), it })?;
    }
    Ok(packer.finish(columns))
}
