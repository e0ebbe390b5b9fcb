//! Finds the moments between which each frame was drawn, and packs the remaining data.

use std::ops::Range;

use serde_bytes::ByteBuf;

use super::super::past::{DrawnColumns, RecentStates, TickStates, is_between, of, share};
use super::{BETWEEN, COLUMNS, DrawnMap};
use crate::log::column::{Effort, encode_as};
use crate::record::NumberForm;
use crate::sorted::SortedMap;
use crate::trace::Table;
use crate::trace::schema::views;

/// Rows of one player, usercmd and time.
struct DrawnFrame {
    player: u32,
    command: u32,
    at: i64,
    list: usize,
    /// Indices of the two moments.
    from: usize,
    to: usize,
}

/// The last two moments found for each player.
type RecentMoments = SortedMap<u32, (usize, usize)>;

/// The most moments to try on each side of a time.
const TRIED: usize = 16;
/// Two moments match if at most one in this many rows is not between them.
const FEW_OF: usize = 8;
/// This many frames may match no moments before the encoder compares their number with all frames.
const UNLIKE_FEW: usize = 32;

/// Packs rows of views; `None` if it would not pay, or if the table is not `views`.
pub(in crate::log::trace_file) fn encode(
    table: &Table,
    rows: Range<usize>,
    past: &RecentStates,
) -> Option<DrawnMap<ByteBuf>> {
    let views = views::Columns::read(table);
    if table.name != views::NAME || !table.columns.iter().map(|column| &*column.name).eq(COLUMNS) || rows.is_empty() {
        return None;
    }
    let how_between = views.how.names.iter().position(|name| name == BETWEEN)? as u32;
    let [x, y, z] = views.origin;
    let seen = [x, y, z, views.pitch, views.yaw];
    let moments = past.moments();
    let mut used: Vec<Vec<bool>> = moments.iter().map(|(_, states)| vec![false; states.len()]).collect();
    let (mut frames, mut others): (Vec<DrawnFrame>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut lists: Vec<&[u32]> = Vec::new();
    let (mut last, mut last_list) = (RecentMoments::new(), SortedMap::new());
    let mut unlike = 0;
    // The matched states of each row of the frame, as far as computed.
    let mut found: Vec<Option<(usize, usize)>> = Vec::new();
    let mut start = rows.start;
    while start < rows.end {
        let is_same = |row: &usize| {
            views.player[*row] == views.player[start]
                && views.command[*row] == views.command[start]
                && views.drawn_at_us[*row] == views.drawn_at_us[start]
        };
        let end = (start + 1..rows.end).find(|row| !is_same(row)).unwrap_or(rows.end);
        let (player, at, entities) = (views.player[start], views.drawn_at_us[start], &views.entity[start..end]);
        let matches = |(from, to): (usize, usize), share: f32, row: usize| {
            let entity = views.entity[row];
            let (a, b) = (of(moments[from].1, entity)?, of(moments[to].1, entity)?);
            let is_it = views.how.codes[row] == how_between && is_between(|part| seen[part][row], a.1, b.1, share);
            is_it.then_some((a.0, b.0))
        };
        let share_of = |(from, to): (usize, usize)| share(at, moments[from].0, moments[to].0);
        let drawn_between = (start..end).filter(|row| views.how.codes[*row] == how_between).count();
        // An entity at rest is between any two moments, so only all rows together identify the moments.
        let mut looked_for = None;
        let misses = |pair, most: usize| {
            let (share, mut missed) = (share_of(pair), 0);
            looked_for = Some(pair);
            found.clear();
            for row in start..end {
                let states = matches(pair, share, row);
                found.push(states);
                if states.is_none() && views.how.codes[row] == how_between {
                    missed += 1;
                    if missed == most {
                        break;
                    }
                }
            }
            missed
        };
        let pair = match 2 * drawn_between > end - start {
            true => find(&moments, (player, at), &mut last, drawn_between, misses),
            false => None,
        };
        let is_found = looked_for == pair && found.len() == end - start;
        if pair.is_none() && drawn_between > 0 {
            unlike += 1;
            // The views were drawn in another way.
            if unlike > UNLIKE_FEW && unlike > frames.len() / 4 {
                return None;
            }
        }
        let share = pair.map_or(0.0, share_of);
        for row in start..end {
            let states = match (is_found, pair) {
                (true, Some(_)) => found[row - start],
                (false, Some(pair)) => matches(pair, share, row),
                (_, None) => None,
            };
            match pair.zip(states) {
                Some(((from, to), (a, b))) => (used[from][a], used[to][b]) = (true, true),
                None => others.push(row),
            }
        }
        let list = list_of(&mut lists, &mut last_list, player, entities);
        let (from, to) = pair.unwrap_or((0, 0));
        frames.push(DrawnFrame { player, command: views.command[start], at, list, from, to });
        start = end;
    }
    if 2 * others.len() > rows.len() {
        return None;
    }
    let places = places(&mut frames, &used);
    let mut packed = pack_frames(&frames, &lists);
    let entities = pack_states(&moments, &used, &places, &mut packed);
    let gaps = others.iter().scan(rows.start, |next, row| Some((row - std::mem::replace(next, row + 1)) as i64));
    packed.push(flat(gaps));
    packed.push(flat(others.iter().map(|row| i64::from(views.how.codes[*row]))));
    for part in seen {
        let cells: Vec<i64> = others.iter().map(|row| part[*row].to_bits().into()).collect();
        packed.push(encode_as(NumberForm::F32, &cells, &[cells.len()], Effort::Sample));
    }
    Some(DrawnMap {
        frames: frames.len() as u32,
        lists: lists.len() as u32,
        moments: places.len() as u32,
        entities,
        others: others.len() as u32,
        packed: packed.into_iter().map(ByteBuf::from).collect(),
    })
}

/// Finds the two moments between which a frame of `rows` rows was drawn; `None` if no two match. It first tries the
/// moments of the last frame, then the following ones. `misses` counts the rows that do not match two moments, up to a
/// maximum.
fn find(
    moments: &[(i64, &TickStates)],
    (player, at): (u32, i64),
    last: &mut RecentMoments,
    rows: usize,
    mut misses: impl FnMut((usize, usize), usize) -> usize,
) -> Option<(usize, usize)> {
    let known = last.get(&player).copied();
    let same = known.filter(|pair| moments[pair.0].0 <= at && at < moments[pair.1].0);
    let after = moments.partition_point(|(time, _)| *time <= at);
    let froms = (after.saturating_sub(TRIED)..after).rev();
    let tos = || after..moments.len().min(after + TRIED);
    // The later moment of a pair is often the earlier moment of the next pair.
    let next = known.map(|(_, to)| to).filter(|next| *next < after);
    let others = next.into_iter().chain(froms).flat_map(|from| tos().map(move |to| (from, to)));
    let (few, mut fewest) = (rows / FEW_OF, rows / 2 + 1);
    let mut best = None;
    for pair in same.into_iter().chain(others) {
        let missed = misses(pair, fewest);
        if missed < fewest {
            (best, fewest) = (Some(pair), missed);
        }
        if fewest <= few {
            break;
        }
    }
    last.insert(player, best?);
    best
}

fn list_of<'t>(
    lists: &mut Vec<&'t [u32]>,
    last: &mut SortedMap<u32, usize>,
    player: u32,
    entities: &'t [u32],
) -> usize {
    let same = last.get(&player).copied().filter(|list| lists[*list] == entities);
    let list = same.or_else(|| lists.iter().position(|list| *list == entities)).unwrap_or_else(|| {
        lists.push(entities);
        lists.len() - 1
    });
    last.insert(player, list);
    list
}

/// Returns the moments with used states, and converts the frames' moments to indices into them.
fn places(frames: &mut [DrawnFrame], used: &[Vec<bool>]) -> Vec<usize> {
    let places: Vec<usize> = (0..used.len()).filter(|moment| used[*moment].contains(&true)).collect();
    let place = |moment: usize| places.binary_search(&moment).ok();
    for frame in frames {
        (frame.from, frame.to) = place(frame.from).zip(place(frame.to)).unwrap_or((0, 0));
    }
    places
}

/// Packs the players of the frames, then the frames grouped by player, then the lists.
fn pack_frames(frames: &[DrawnFrame], lists: &[&[u32]]) -> Vec<Vec<u8>> {
    let mut order: Vec<&DrawnFrame> = frames.iter().collect();
    order.sort_by_key(|frame| frame.player);
    let series: Vec<usize> = order.chunk_by(|a, b| a.player == b.player).map(<[_]>::len).collect();
    let pack = |value: &dyn Fn(&DrawnFrame) -> i64| whole(order.iter().map(|frame| value(frame)), &series);
    vec![
        flat(frames.iter().map(|frame| frame.player.into())),
        pack(&|frame| frame.command.into()),
        pack(&|frame| frame.at),
        pack(&|frame| frame.list as i64),
        pack(&|frame| frame.from as i64),
        pack(&|frame| frame.to as i64 - frame.from as i64),
        flat(lists.iter().map(|list| list.len() as i64)),
        flat(lists.iter().flat_map(|list| list.iter()).map(|entity| i64::from(*entity))),
    ]
}

/// Packs the times of the moments, and the used states by entity. Returns the number of entities.
fn pack_states(moments: &[(i64, &TickStates)], used: &[Vec<bool>], places: &[usize], packed: &mut Vec<Vec<u8>>) -> u32 {
    packed.push(flat(places.iter().map(|moment| moments[*moment].0)));
    let mut states: Vec<(u32, usize, &DrawnColumns)> = Vec::new();
    for (place, moment) in places.iter().enumerate() {
        let of_moment = moments[*moment].1.iter().zip(&used[*moment]).filter(|(_, used)| **used);
        states.extend(of_moment.map(|((entity, seen), _)| (*entity, place, seen)));
    }
    states.sort_unstable_by_key(|(entity, place, _)| (*entity, *place));
    let by_entity = || states.chunk_by(|a, b| a.0 == b.0);
    let series: Vec<usize> = by_entity().map(<[_]>::len).collect();
    packed.push(flat(by_entity().map(|states| states[0].0.into())));
    packed.push(flat(series.iter().map(|count| *count as i64)));
    packed.push(whole(states.iter().map(|(_, place, _)| *place as i64), &series));
    for part in 0..5 {
        let cells: Vec<i64> = states.iter().map(|(.., seen)| seen[part].to_bits().into()).collect();
        packed.push(encode_as(NumberForm::F32, &cells, &series, Effort::Sample));
    }
    series.len() as u32
}

/// Packs a column as one series.
fn flat(values: impl Iterator<Item = i64>) -> Vec<u8> {
    let values: Vec<i64> = values.collect();
    whole(values.iter().copied(), &[values.len()])
}

fn whole(values: impl Iterator<Item = i64>, series: &[usize]) -> Vec<u8> {
    encode_as(NumberForm::Integer, &values.collect::<Vec<_>>(), series, Effort::Sample)
}
