//! Packs views relative to the states that they were drawn from. Nearly every row of `views` lies between two states
//! in `bodies`. So a chunk holds two moments for each frame, the states of these moments once, and only the other rows
//! in full. Views grow with the square of the player count, but this data grows linearly.

use std::collections::VecDeque;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_bytes::{ByteBuf, Bytes};

use crate::log::column::{self, Effort, encode_as};
use crate::record::NumberForm;
use crate::sorted::SortedMap;
use crate::trace::schema::{bodies, ticks, views};
use crate::trace::{ColumnData, Table};

/// The transform of columns that are packed this way.
pub(super) const TRANSFORM: &str = "drawn";

/// The columns that are packed this way. A chunk with any other column is not.
const COLUMNS: [&str; 10] =
    ["player", "command", "drawn_at_us", "entity", "origin.x", "origin.y", "origin.z", "pitch", "yaw", "how"];

/// The `how` of a row that lies between two states.
const BETWEEN: &str = "interpolated";

/// The content of a chunk of views, in place of its columns.
#[derive(PartialEq, Serialize, Deserialize)]
pub(super) struct DrawnMap<B> {
    /// Runs of rows with the same player, usercmd and time.
    frames: u32,
    /// Distinct lists of entities.
    lists: u32,
    /// Moments with states.
    moments: u32,
    /// Entities with states.
    entities: u32,
    /// Rows stored in full.
    others: u32,
    /// The packed columns, in the order of docs/format.md.
    packed: Vec<B>,
}

/// All columns that are packed this way, row by row.
#[derive(Default)]
pub(super) struct DrawnRows {
    player: Vec<u32>,
    command: Vec<u32>,
    drawn_at_us: Vec<i64>,
    entity: Vec<u32>,
    seen: [Vec<f32>; 5],
    how: Vec<u32>,
}

impl DrawnRows {
    fn with_room(rows: usize) -> DrawnRows {
        let (room, seen) = (|| Vec::with_capacity(rows), [(); 5].map(|()| Vec::with_capacity(rows)));
        DrawnRows {
            player: room(),
            command: room(),
            drawn_at_us: Vec::with_capacity(rows),
            entity: room(),
            seen,
            how: room(),
        }
    }

    /// Adds the rows of a frame, without what was seen.
    fn push_frame(&mut self, (player, command, at): (u32, u32, i64), entities: &[u32]) {
        self.entity.extend_from_slice(entities);
        let rows = self.entity.len();
        self.player.resize(rows, player);
        self.command.resize(rows, command);
        self.drawn_at_us.resize(rows, at);
    }

    fn push_seen(&mut self, [x, y, z, pitch, yaw]: DrawnColumns, how: u32) {
        let [xs, ys, zs, pitches, yaws] = &mut self.seen;
        xs.push(x);
        ys.push(y);
        zs.push(z);
        pitches.push(pitch);
        yaws.push(yaw);
        self.how.push(how);
    }

    /// Takes a column by name; `None` if the type does not match. Works once for each column.
    pub(super) fn take(&mut self, name: &str, kind: &str, names: &[String]) -> Option<ColumnData> {
        let take = std::mem::take::<Vec<u32>>;
        match (COLUMNS.iter().position(|column| *column == name)?, kind) {
            (0, "u32") => Some(ColumnData::U32(take(&mut self.player))),
            (1, "u32") => Some(ColumnData::U32(take(&mut self.command))),
            (2, "i64") => Some(ColumnData::I64(std::mem::take(&mut self.drawn_at_us))),
            (3, "u32") => Some(ColumnData::U32(take(&mut self.entity))),
            (part @ 4..=8, "f32") => Some(ColumnData::F32(std::mem::take(&mut self.seen[part - 4]))),
            (9, "name") => Some(ColumnData::Name { names: names.to_vec(), codes: take(&mut self.how) }),
            _ => None,
        }
    }
}

/// Returns the names of the column `how`; empty if the chunk has no such column.
pub(super) fn placement_names<'n>(columns: impl Iterator<Item = (&'n str, &'n [String])>) -> &'n [String] {
    columns.filter(|(name, _)| *name == COLUMNS[9]).map(|(_, names)| names).next().unwrap_or(&[])
}

// Finds the moments between which each frame was drawn, and packs the remaining data.

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
const TRIED_MOMENTS_MAX: usize = 16;
/// Two moments match if at most one in this many rows is not between them.
const ROWS_PER_MISS: usize = 8;
/// This many frames may match no moments before the encoder compares their number with all frames.
const UNMATCHED_FRAMES_MAX: usize = 32;

/// Packs rows of views; `None` if it would not pay, or if the table is not `views`.
pub(super) fn encode(table: &Table, rows: Range<usize>, past: &RecentStates) -> Option<DrawnMap<ByteBuf>> {
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
            let (a, b) = (state_of(moments[from].1, entity)?, state_of(moments[to].1, entity)?);
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
            true => find_moments(&moments, (player, at), &mut last, drawn_between, misses),
            false => None,
        };
        let is_found = looked_for == pair && found.len() == end - start;
        if pair.is_none() && drawn_between > 0 {
            unlike += 1;
            // The views were drawn in another way.
            if unlike > UNMATCHED_FRAMES_MAX && unlike > frames.len() / 4 {
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
fn find_moments(
    moments: &[(i64, &TickStates)],
    (player, at): (u32, i64),
    last: &mut RecentMoments,
    rows: usize,
    mut misses: impl FnMut((usize, usize), usize) -> usize,
) -> Option<(usize, usize)> {
    let known = last.get(&player).copied();
    let same = known.filter(|pair| moments[pair.0].0 <= at && at < moments[pair.1].0);
    let after = moments.partition_point(|(time, _)| *time <= at);
    let froms = (after.saturating_sub(TRIED_MOMENTS_MAX)..after).rev();
    let tos = || after..moments.len().min(after + TRIED_MOMENTS_MAX);
    // The later moment of a pair is often the earlier moment of the next pair.
    let next = known.map(|(_, to)| to).filter(|next| *next < after);
    let others = next.into_iter().chain(froms).flat_map(|from| tos().map(move |to| (from, to)));
    let (few, mut fewest) = (rows / ROWS_PER_MISS, rows / 2 + 1);
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

// Unpacks views. The decoder trusts nothing: it refuses impossible counts before it allocates memory.

/// Reads packed columns one after the other.
struct PackedColumns<'a> {
    packed: std::slice::Iter<'a, &'a Bytes>,
}

impl PackedColumns<'_> {
    fn next(&mut self) -> Result<&[u8], String> {
        self.packed.next().map(|bytes| &***bytes).ok_or_else(|| "a column of what was drawn is missing".to_owned())
    }

    fn whole<V: TryFrom<i64>>(&mut self, series: &[usize]) -> Result<Vec<V>, String> {
        let narrow = |value: i64| V::try_from(value).map_err(|_| format!("{value} is out of range"));
        column::decode(self.next()?, series, None)?.into_iter().map(narrow).collect()
    }

    fn seen(&mut self, series: &[usize]) -> Result<Vec<DrawnColumns>, String> {
        let mut seen = vec![DrawnColumns::default(); series.iter().sum()];
        for part in 0..5 {
            let cells = column::decode_as(NumberForm::F32, self.next()?, series)?;
            seen.iter_mut().zip(cells).for_each(|(seen, bits)| seen[part] = f32::from_bits(bits as u32));
        }
        Ok(seen)
    }
}

/// Unpacks `rows` rows; `names` are the names of the column `how`.
pub(super) fn decode(map: &DrawnMap<&Bytes>, rows: usize, names: &[String]) -> Result<DrawnRows, String> {
    let [frames, lists, moments, entities, others] =
        [map.frames, map.lists, map.moments, map.entities, map.others].map(|count| count as usize);
    // A valid chunk holds only what its rows need.
    let most =
        [frames, lists, others].into_iter().max().unwrap_or(0).max(moments.div_ceil(2)).max(entities.div_ceil(2));
    if most > rows {
        return Err(format!("there is more of what was drawn than its {rows} rows can tell"));
    }
    let between_code = names.iter().position(|name| name == BETWEEN).map(|place| place as u32);
    let mut from = PackedColumns { packed: map.packed.iter() };
    let players: Vec<u32> = from.whole(&[frames])?;
    let mut order: Vec<usize> = (0..frames).collect();
    order.sort_unstable_by_key(|frame| (players[*frame], *frame));
    let series: Vec<usize> = order.chunk_by(|a, b| players[*a] == players[*b]).map(<[_]>::len).collect();
    let commands: Vec<u32> = scattered(&order, from.whole(&series)?);
    let times: Vec<i64> = scattered(&order, from.whole(&series)?);
    let list: Vec<u32> = scattered(&order, from.whole(&series)?);
    let first: Vec<u32> = scattered(&order, from.whole(&series)?);
    let ahead: Vec<i64> = scattered(&order, from.whole(&series)?);
    let lengths: Vec<u32> = from.whole(&[lists])?;
    let lists = EntityLists::new(&lengths, rows, &mut from)?;
    let at: Vec<i64> = from.whole(&[moments])?;
    let states = read_states(entities, moments, rows, &mut from)?;
    let gaps: Vec<u32> = from.whole(&[others])?;
    let how: Vec<u32> = from.whole(&[others])?;
    let as_they_are = from.seen(&[others])?;
    let mut next_other = gaps.iter().scan(0usize, |next, gap| {
        let row = next.saturating_add(*gap as usize);
        *next = row.saturating_add(1);
        Some(row)
    });
    let mut rest = how.into_iter().zip(as_they_are);
    let mut due = next_other.next();
    let mut out = DrawnRows::with_room(rows);
    for frame in 0..frames {
        let from = first[frame] as usize;
        let to = usize::try_from(ahead[frame].saturating_add(i64::from(first[frame]))).unwrap_or(usize::MAX);
        let pair = match (at.get(from), states.get(from), at.get(to), states.get(to)) {
            (Some(from_at), Some(a), Some(to_at), Some(b)) => Some((a, b, share(times[frame], *from_at, *to_at))),
            _ => None,
        };
        let (entities, start) = (lists.get(list[frame])?, out.entity.len());
        if start + entities.len() > rows {
            return Err(format!("it draws more than its {rows} rows"));
        }
        out.push_frame((players[frame], commands[frame], times[frame]), entities);
        for (entity, row) in entities.iter().zip(start..) {
            if due == Some(row) {
                due = next_other.next();
                let (how, seen) = rest.next().ok_or("a row without packed values is missing")?;
                out.push_seen(seen, how);
                continue;
            }
            let Some((a, b, share)) = pair else {
                return Err(format!("row {row} is drawn between moments that are not there"));
            };
            let (Some(a), Some(b)) = (state_of(a, *entity), state_of(b, *entity)) else {
                return Err(format!("row {row} is drawn between states that are not there"));
            };
            let how = between_code.ok_or_else(|| format!("no name of how is {BETWEEN:?}"))?;
            out.push_seen(between(a.1, b.1, share), how);
        }
    }
    if out.entity.len() != rows || due.is_some() {
        return Err(format!("it draws {} rows and has {rows}", out.entity.len()));
    }
    Ok(out)
}

/// Restores the order of grouped values.
fn scattered<V: Clone + Default>(order: &[usize], grouped: Vec<V>) -> Vec<V> {
    let mut values = vec![V::default(); order.len()];
    order.iter().zip(grouped).for_each(|(place, value)| values[*place] = value);
    values
}

/// The lists of entities.
struct EntityLists {
    ends: Vec<usize>,
    entities: Vec<u32>,
}

impl EntityLists {
    fn new(lengths: &[u32], rows: usize, from: &mut PackedColumns<'_>) -> Result<EntityLists, String> {
        let sum = |sum: &mut usize, length: &u32| {
            *sum = sum.saturating_add(*length as usize);
            Some(*sum)
        };
        let ends: Vec<usize> = lengths.iter().scan(0usize, sum).collect();
        let all = ends.last().copied().unwrap_or(0);
        if all > rows {
            return Err(format!("its lists name {all} entities for {rows} rows"));
        }
        Ok(EntityLists { ends, entities: from.whole(&[all])? })
    }

    fn get(&self, list: u32) -> Result<&[u32], String> {
        let list = list as usize;
        let start = list.checked_sub(1).map_or(0, |before| self.ends.get(before).copied().unwrap_or(0));
        let end = self.ends.get(list).ok_or_else(|| format!("there is no list {list} of entities"))?;
        Ok(&self.entities[start..*end])
    }
}

/// Reads the states of each moment, in ascending order of entity.
fn read_states(
    entities: usize,
    moments: usize,
    rows: usize,
    from: &mut PackedColumns<'_>,
) -> Result<Vec<TickStates>, String> {
    let ids: Vec<u32> = from.whole(&[entities])?;
    let counts: Vec<u32> = from.whole(&[entities])?;
    let series: Vec<usize> = counts.iter().map(|count| *count as usize).collect();
    if !ids.is_sorted_by(|a, b| a < b) {
        return Err("its states are not in the order of entities".into());
    }
    if series.iter().fold(0usize, |sum, count| sum.saturating_add(*count)) > 2 * rows {
        return Err(format!("it has more states than its {rows} rows can be drawn between"));
    }
    let places: Vec<u32> = from.whole(&series)?;
    let seen = from.seen(&series)?;
    let owners = ids.iter().zip(&series).flat_map(|(id, count)| std::iter::repeat_n(*id, *count));
    let mut states = vec![TickStates::new(); moments];
    for ((entity, place), seen) in owners.zip(places).zip(seen) {
        let moment = states.get_mut(place as usize).ok_or_else(|| format!("there is no moment {place}"))?;
        moment.push((entity, seen));
    }
    Ok(states)
}

/// Origin, pitch and yaw.
type DrawnColumns = [f32; 5];

/// The columns of `bodies` with the values of [`DrawnColumns`].
const SEEN: [&str; 5] = ["origin.x", "origin.y", "origin.z", "viewangles.x", "viewangles.y"];

/// How long states are kept, in µs. A replay passes tables on more often, so no view refers to older states.
const KEPT_US: i64 = 40_000_000;

/// The states after the last ticks.
#[derive(Default)]
pub(super) struct RecentStates {
    times: SortedMap<u32, i64>,
    ticks: VecDeque<(u32, TickStates)>,
}

/// The entities after a tick, in ascending order.
type TickStates = Vec<(u32, DrawnColumns)>;

impl RecentStates {
    /// Adds the ticks or bodies in these rows.
    pub(super) fn add(&mut self, rows: &Table) {
        match &*rows.name {
            ticks::NAME => {
                let ticks = ticks::Columns::read(rows);
                self.times.extend(ticks.tick.iter().copied().zip(ticks.at_us.iter().copied()));
            }
            bodies::NAME => self.add_bodies(rows),
            _ => {}
        }
    }

    fn add_bodies(&mut self, rows: &Table) {
        let bodies = bodies::Columns::read(rows);
        let seen = SEEN.map(|name| rows.f32s(name));
        if seen.iter().any(|column| column.len() != rows.rows()) {
            return;
        }
        for (row, (tick, entity)) in bodies.tick.iter().zip(bodies.entity).enumerate() {
            if self.ticks.back().is_none_or(|(last, _)| last != tick) {
                self.ticks.push_back((*tick, TickStates::new()));
            }
            if let Some((_, states)) = self.ticks.back_mut() {
                states.push((*entity, seen.map(|column| column[row])));
            }
        }
    }

    /// Returns the times and states of complete ticks, in order of time. Ticks whose entities are not in order are
    /// left out.
    fn moments(&self) -> Vec<(i64, &TickStates)> {
        let in_order = |states: &TickStates| states.is_sorted_by(|a, b| a.0 < b.0);
        let known = self.ticks.iter().filter(|(_, states)| in_order(states));
        let mut moments: Vec<_> = known.filter_map(|(tick, states)| Some((*self.times.get(tick)?, states))).collect();
        moments.sort_by_key(|(at, _)| *at);
        moments
    }

    /// Drops states that the views of a trace being streamed cannot refer to.
    pub(super) fn forget(&mut self) {
        let Some(newest) = self.times.last_key_value().map(|(_, at)| *at) else { return };
        let is_old = |at: &i64| newest.saturating_sub(*at) > KEPT_US;
        while self.ticks.front().is_some_and(|(tick, _)| self.times.get(tick).is_some_and(is_old)) {
            self.ticks.pop_front();
        }
        let oldest = self.ticks.front().map_or(u32::MAX, |(tick, _)| *tick);
        while self.times.first_key_value().is_some_and(|(tick, at)| *tick < oldest && is_old(at)) {
            self.times.pop_first();
        }
    }
}

/// Finds one entity in the states of a moment.
#[inline]
fn state_of(states: &TickStates, entity: u32) -> Option<(usize, &DrawnColumns)> {
    // Players have the lowest ids, from 0, so the index of an entity is nearly always its id.
    let place = match states.get(entity as usize) {
        Some((at, _)) if *at == entity => entity as usize,
        _ => states.binary_search_by_key(&entity, |(at, _)| *at).ok()?,
    };
    Some((place, &states[place].1))
}

/// Interpolates between two states: positions linearly, angles the short way round. All arithmetic is in single
/// precision, in exactly this order.
#[inline]
pub(super) fn between(from: &DrawnColumns, to: &DrawnColumns, share: f32) -> DrawnColumns {
    let mut drawn = *from;
    for (part, cell) in drawn.iter_mut().enumerate() {
        *cell = part_between(from, to, share, part);
    }
    drawn
}

/// Returns whether the values are those of [`between`], bit by bit. Reads no value after the first that differs.
#[inline]
fn is_between(seen: impl Fn(usize) -> f32, from: &DrawnColumns, to: &DrawnColumns, share: f32) -> bool {
    (0..from.len()).all(|part| seen(part).to_bits() == part_between(from, to, share, part).to_bits())
}

/// The index of the first angle in [`DrawnColumns`].
const FIRST_ANGLE: usize = 3;

#[inline]
fn part_between(from: &DrawnColumns, to: &DrawnColumns, share: f32, part: usize) -> f32 {
    if share >= 1.0 {
        return to[part];
    }
    if share <= 0.0 {
        return from[part];
    }
    let by = to[part] - from[part];
    let is_short = part < FIRST_ANGLE || by.abs() < 180.0;
    let turn = if is_short { by } else { by - 360.0 * libm::roundf(by / 360.0) };
    from[part] + turn * share
}

/// Returns how far `at` is between two times, from 0 to 1.
pub(super) fn share(at: i64, from: i64, to: i64) -> f32 {
    let since = |at: i64| at.saturating_sub(from) as f32;
    (since(at) / since(to)).clamp(0.0, 1.0)
}
