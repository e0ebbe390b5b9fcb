//! The server's results and the predictions of a client's recording, as two traces. A demo's mispredictions can then be
//! compared and bisected like any other traces.

use hitreg_log::record::Cause;
use hitreg_log::sorted::SortedMap;
use hitreg_log::trace::schema::{corrections, errors, frames};
use hitreg_log::trace::{Column, ColumnData, Table, Trace};

/// The server's results and the predictions of all acked usercmds.
#[derive(Debug)]
pub struct PredictionTraces {
    /// The server's results.
    pub said: Trace,
    /// The predictions.
    pub predicted: Trace,
    /// How many predictions were compared with the server's result.
    pub checked: usize,
    /// How many predictions were wrong.
    pub misses: usize,
    /// How many wrong predictions have a cause. If others have none, the traces leave these out.
    pub explained: usize,
}

/// Splits an open-loop replay of a client's recording into two traces. Each has `corrections` with the fields that were
/// predicted wrong, and NaN for correct fields. A miss with a known cause, such as a rocket that pushed the player,
/// does not concern the movement code. If any miss has no cause, only such misses are included.
pub fn predicted(replay: &Trace) -> PredictionTraces {
    let acks = corrections::Columns::of(replay);
    let misses: Vec<usize> = (0..acks.rows).filter(|&row| acks.result.get(row) == "miss").collect();
    let unknown = Cause::Unknown.name();
    let bare: Vec<usize> = misses.iter().copied().filter(|&row| acks.cause.get(row) == unknown).collect();
    let explained = misses.len() - bare.len();
    let shown: SortedMap<(u32, u32), usize> = (if bare.is_empty() { &misses } else { &bare })
        .iter()
        .map(|&row| ((acks.player[row], acks.command[row]), row))
        .collect();
    let mut fields: SortedMap<&str, [Vec<f32>; 2]> = SortedMap::new();
    let wrong = errors::Columns::of(replay);
    for row in 0..wrong.rows {
        let Some(&ack) = shown.get(&(wrong.player[row], wrong.command[row])) else { continue };
        let [said, predicted] = fields
            .entry(wrong.field.get(row))
            .or_insert_with(|| [vec![f32::NAN; acks.rows], vec![f32::NAN; acks.rows]]);
        (said[ack], predicted[ack]) = (wrong.authoritative[row], wrong.predicted[row]);
    }
    let (mut said, mut predicted) = (Vec::new(), Vec::new());
    for (name, [by_server, by_client]) in fields {
        said.push(Column::new(name, ColumnData::F32(by_server)));
        predicted.push(Column::new(name, ColumnData::F32(by_client)));
    }
    let side = |cells: Vec<Column>, kept: &[&str]| {
        let acks = replay.table(corrections::NAME).into_iter().flat_map(|table| &table.columns);
        let columns = acks.filter(|column| kept.contains(&column.name.as_str())).cloned().chain(cells).collect();
        let table = Table::new(corrections::NAME, columns);
        let usercmds = replay.table(frames::NAME).cloned();
        Trace { header: replay.header.clone(), tables: usercmds.into_iter().chain([table]).collect() }
    };
    PredictionTraces {
        said: side(said, &["player", "at_us", "command"]),
        predicted: side(predicted, &["player", "at_us", "command", "cause", "evidence"]),
        checked: acks.rows,
        misses: misses.len(),
        explained,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::{DiffOptions, TraceVerdict, diff};
    use hitreg_log::trace::TraceHeader;

    /// A trace with acks of these usercmds: number, result, cause, and error of `origin.x`.
    fn replay(acks: &[(u32, u8, Cause, f32)]) -> Trace {
        let (mut corrections, mut errors) = (corrections::Writer::default(), errors::Writer::default());
        for &(command, result, cause, off) in acks {
            corrections.push(corrections::Row {
                player: 0,
                at_us: i64::from(command) * 1000,
                command,
                commands: 1,
                result,
                on_ground: 1,
                error_units: off,
                velocity_error_units_per_s: 0.0,
                fields: 1,
                reran: 1,
                cause: cause as u8 + 1,
                evidence: "none",
                as_played: None,
            });
            if off != 0.0 {
                let (predicted, authoritative) = (64.0 + off, 64.0f32);
                let (predicted_bits, authoritative_bits) = (predicted.to_bits(), authoritative.to_bits());
                let field = "origin.x";
                errors.push(errors::Row {
                    player: 0,
                    command,
                    field,
                    predicted,
                    authoritative,
                    predicted_bits,
                    authoritative_bits,
                });
            }
        }
        let (game, mode) = ("discs".to_owned(), "open".to_owned());
        let header =
            TraceHeader { game, mode, log_digest: String::new(), settings: Vec::new(), ..TraceHeader::default() };
        Trace { header, tables: vec![corrections.finish(Vec::new()), errors.finish(Vec::new())] }
    }

    /// The first difference between the two sides, the number of misses, and the number of misses with a cause.
    fn first(acks: &[(u32, u8, Cause, f32)]) -> (Option<u32>, usize, usize) {
        let PredictionTraces { said, predicted, misses, explained, checked } = predicted(&replay(acks));
        assert_eq!(checked, acks.len());
        let found = diff(&said, &predicted, &DiffOptions { overlap_only: true, ..DiffOptions::default() })
            .expect("no tolerance");
        assert_eq!(found.first.is_some(), found.verdict == TraceVerdict::Differs);
        (found.first.and_then(|first| first.place.command), misses, explained)
    }

    #[test]
    fn the_first_correction_without_a_cause_is_named() {
        let [exact, near, miss] = [0, 1, 2];
        let pushed = |command| (command, miss, Cause::Knockback, 9.0);
        assert_eq!(first(&[(1, exact, Cause::Unknown, 0.0), (2, near, Cause::Quantisation, 0.1)]), (None, 0, 0));
        assert_eq!(first(&[(1, exact, Cause::Unknown, 0.0), pushed(2), pushed(3)]), (Some(2), 2, 2));
        assert_eq!(first(&[pushed(2), (3, miss, Cause::Unknown, 2.0), pushed(4)]), (Some(3), 3, 2));
    }
}
