//! The outline of a chunk: the columns about connections, and the row counts of all tables.

use super::TextPlaces;
use super::declared::class_of_table;
use super::{ChunkContext, decode_kind, decode_map};
use crate::log::column;
use crate::log::error::{Budget, MAX_CHUNK_MEMORY};
use crate::log::header::Schema;
use crate::log::table::ColumnReader;
use crate::log::table::RecordLookup;
use crate::record::{
    GapRecord, HeardRecord, Outline, PlayerOutline, PresenceRecord, SessionHeader, SessionStretch, consecutive_runs,
    leave_times,
};
use crate::units::Micros;
use crate::usercmd::buttons;

/// Decodes the outline of a chunk.
pub(crate) fn outline(content: &[u8], header: &SessionHeader, schema: &Schema) -> Result<Outline, String> {
    let tables = decode_map(content, schema, header.classes.len())?;
    let mut budget = Budget::new(MAX_CHUNK_MEMORY);
    let players = header.players.len();
    let mut outline = Outline { players: vec![PlayerOutline::default(); players], ..Outline::default() };
    tables.rows().for_each(|(name, rows)| outline.count(kind_of(name), rows));
    let mut columns = |name: &'static str| -> Result<Option<ColumnReader<'_>>, String> {
        let columns = tables.columns(name, schema);
        // Budget for a few columns of numbers and their results.
        columns.as_ref().map_or(Ok(()), |columns| budget.take(columns.rows, size_of::<[i64; 8]>()))?;
        Ok(columns)
    };
    if let Some(frames) = columns("frames")? {
        let (seq, at) = (frames.narrow::<u32>("seq")?, frames.narrow::<i64>("at_us")?);
        let buttons = frames.narrow::<i64>("buttons")?;
        for (player, rows) in frames.rows_of_players(players)? {
            let player = &mut outline.players[player];
            player.firing =
                buttons[rows.clone()].iter().filter(|held| **held & i64::from(buttons::ATTACK) != 0).count();
            player.frames = seq[rows.clone()].iter().copied().zip(at[rows].iter().map(|at| Micros(*at))).collect();
        }
    }
    if let Some(sent) = columns("sent")? {
        let number = sent.narrow::<u32>("number")?;
        for (player, rows) in sent.rows_of_players(players)? {
            let player = &mut outline.players[player];
            player.sent = consecutive_runs(number[rows].iter().copied());
        }
    }
    if let Some(reached) = columns("reached")? {
        let number = reached.narrow::<u32>("number")?;
        for (player, rows) in reached.rows_of_players(players)? {
            let player = &mut outline.players[player];
            player.reached = number[rows].to_vec();
        }
    }
    if let Some(snapshots) = columns("snapshots")? {
        let (seq, ack) = (snapshots.narrow::<u32>("seq")?, snapshots.narrow::<u32>("ack")?);
        let (at, choked) = (snapshots.narrow::<i64>("at_us")?, snapshots.narrow::<u8>("choked")?);
        for (player, rows) in snapshots.rows_of_players(players)? {
            let player = &mut outline.players[player];
            player.choked = choked[rows.clone()].iter().map(|choked| u64::from(*choked)).sum();
            player.snapshots = rows.map(|row| (seq[row], Micros(at[row]), ack[row])).collect();
        }
    }
    if let Some(received) = columns("received")? {
        let number = received.narrow::<u32>("number")?;
        let mut sent = Vec::with_capacity(number.len());
        for (player, rows) in received.rows_of_players(players)? {
            let player = &mut outline.players[player];
            let named = player.snapshots.iter().map(|(seq, at, _)| (i64::from(*seq), at.0));
            let mut named = RecordLookup::among(named.collect());
            sent.extend(number[rows].iter().map(|number| named.next(i64::from(*number))));
        }
        let at = column::decode(received.raw("at_us"), &received.series, Some(&sent));
        let at = at.map_err(|what| received.bad("at_us", what))?;
        for (player, rows) in received.rows_of_players(players)? {
            let player = &mut outline.players[player];
            player.received = rows.map(|row| (number[row], Micros(at[row]))).collect();
        }
    }
    if let Some(ticks) = columns("ticks")? {
        let at = ticks.narrow::<i64>("at_us")?;
        outline.ticks = at.first().zip(at.last()).map(|(first, last)| (Micros(*first), Micros(*last)));
    }
    // Few logs have gaps, presence or heard packets, and no log has many.
    let (texts, nothing) = (TextPlaces::default(), SessionStretch::of(header));
    let context = ChunkContext::new(&[], &[], &texts);
    let (gaps, presence) = (columns("gaps")?, columns("presence")?);
    if let Some(gaps) = gaps {
        outline.gaps = decode_kind::<GapRecord>(&gaps, &context, &mut budget, &nothing)?;
    }
    if let Some(presence) = presence {
        let records = decode_kind::<PresenceRecord>(&presence, &context, &mut budget, &nothing)?;
        for (player, rows) in presence.rows_of_players(players)? {
            let player = &mut outline.players[player];
            player.left = leave_times(&records[rows]);
        }
    }
    if let Some(heard) = tables.columns("heard", schema) {
        let records = decode_kind::<HeardRecord>(&heard, &context, &mut budget, &nothing)?;
        for (player, rows) in heard.rows_of_players(players)? {
            let player = &mut outline.players[player];
            player.reached.extend(records[rows.clone()].iter().map(|heard| heard.number));
            let commands = records[rows].iter().flat_map(|heard| &heard.commands);
            let fires = |held: u16| held & buttons::ATTACK != 0;
            player.heard = commands.map(|command| (command.seq.0, fires(command.input.buttons))).collect();
        }
    }
    // Chunks of most logs have ticks or frames, so this full decoding is rare.
    let is_played = tables.rows().any(|(name, rows)| rows > 0 && ["frames", "received", "ticks"].contains(&name));
    if !is_played && outline.counts.keys().any(|kind| kind != "states") {
        outline.other_times = super::decode(content, header, schema)?.full_time_span();
    }
    Ok(outline)
}

/// Returns the record kind of a table.
fn kind_of(table: &str) -> &str {
    if class_of_table(table).is_some() { "states" } else { table }
}
