//! Views packed against what they were drawn from. Nearly every row of `views` lies between two states that `bodies` has, so a
//! chunk holds for each frame which two moments those were, the states of these moments once, and as they are only the rows
//! that come out otherwise. Views grow with the square of the players, and all this with their number.

use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_bytes::{ByteBuf, Bytes};

use super::past::{Past, Seen, States, between, of, share};
use crate::log::column;
use crate::trace::schema::views;
use crate::trace::{Data, Table};

/// The transform of columns that are told so.
pub(super) const TRANSFORM: &str = "drawn";

/// The columns that are; a chunk with any other is not packed so.
const COLUMNS: [&str; 10] =
    ["player", "command", "drawn_at_us", "entity", "origin.x", "origin.y", "origin.z", "pitch", "yaw", "how"];

/// How a row is drawn that lies between two states.
const BETWEEN: &str = "interpolated";

/// What a chunk of views holds in place of its columns.
#[derive(Serialize, Deserialize)]
pub(super) struct DrawnMap<B> {
    /// Runs of rows of one player, usercmd and time.
    frames: u32,
    /// Lists of entities, each told once.
    lists: u32,
    /// Moments of which there are states.
    moments: u32,
    /// Entities of which there are states.
    entities: u32,
    /// Rows that are told as they are.
    others: u32,
    /// As docs/format.md lists them.
    packed: Vec<B>,
}

/// Every column that is packed so, row by row.
#[derive(Default)]
pub(super) struct Rows {
    player: Vec<u32>,
    command: Vec<u32>,
    drawn_at_us: Vec<i64>,
    entity: Vec<u32>,
    seen: [Vec<f32>; 5],
    how: Vec<u32>,
}

struct Frame {
    player: u32,
    command: u32,
    at: i64,
    list: usize,
    /// Places among the moments.
    from: usize,
    to: usize,
}

/// The two moments that were found last for each player.
type Last = Vec<(u32, (usize, usize))>;

/// So many moments around a time are tried.
const TRIED: usize = 16;
/// So many frames may be drawn between no two moments before the others are asked how many that is of them.
const UNLIKE_FEW: usize = 32;

/// Packs rows of views; `None` where that is not worth it, or the table is not one.
pub(super) fn encode(table: &Table, rows: Range<usize>, past: &Past) -> Option<DrawnMap<ByteBuf>> {
    let views = views::Columns::read(table);
    if table.name != views::NAME || !table.columns.iter().map(|column| &*column.name).eq(COLUMNS) || rows.is_empty() {
        return None;
    }
    let how_between = views.how.names.iter().position(|name| name == BETWEEN)? as u32;
    let [x, y, z] = views.origin;
    let seen = |row: usize| -> Seen { [x[row], y[row], z[row], views.pitch[row], views.yaw[row]] };
    let moments = past.moments();
    let mut used: Vec<Vec<bool>> = moments.iter().map(|(_, states)| vec![false; states.len()]).collect();
    let (mut frames, mut others): (Vec<Frame>, Vec<usize>) = (Vec::new(), Vec::new());
    let mut lists: Vec<&[u32]> = Vec::new();
    let (mut last, mut last_list) = (Last::new(), Vec::<(u32, usize)>::new());
    let mut unlike = 0;
    let mut start = rows.start;
    while start < rows.end {
        let is_same = |row: &usize| {
            views.player[*row] == views.player[start]
                && views.command[*row] == views.command[start]
                && views.drawn_at_us[*row] == views.drawn_at_us[start]
        };
        let end = (start + 1..rows.end).find(|row| !is_same(row)).unwrap_or(rows.end);
        let (player, at, entities) = (views.player[start], views.drawn_at_us[start], &views.entity[start..end]);
        let matches = |(from, to): (usize, usize), row: usize| {
            let (a, b) = (of(moments[from].1, views.entity[row])?, of(moments[to].1, views.entity[row])?);
            let drawn = between(&a.1, &b.1, share(at, moments[from].0, moments[to].0));
            let is_it = views.how.codes[row] == how_between && bits(drawn) == bits(seen(row));
            is_it.then_some((a.0, b.0))
        };
        let drawn_between = (start..end).filter(|row| views.how.codes[*row] == how_between).count();
        let fits = |pair| {
            let mut misses = (start..end).filter(|row| matches(pair, *row).is_none());
            misses.nth((end - start) / 2).is_none()
        };
        let pair = match 2 * drawn_between > end - start {
            true => find(&moments, (player, at), &mut last, fits),
            false => None,
        };
        if pair.is_none() && drawn_between > 0 {
            unlike += 1;
            // It is drawn in another way than this.
            if unlike > UNLIKE_FEW && unlike > frames.len() / 4 {
                return None;
            }
        }
        for row in start..end {
            match pair.and_then(|pair| Some((pair, matches(pair, row)?))) {
                Some(((from, to), (a, b))) => (used[from][a], used[to][b]) = (true, true),
                None => others.push(row),
            }
        }
        let list = list_of(&mut lists, &mut last_list, player, entities);
        let (from, to) = pair.unwrap_or((0, 0));
        frames.push(Frame { player, command: views.command[start], at, list, from, to });
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
    for part in 0..5 {
        let cells: Vec<u32> = others.iter().map(|row| seen(*row)[part].to_bits()).collect();
        packed.push(column::encode_f32(&cells, &[cells.len()]));
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

/// The two moments between which a frame was drawn, if any two fit: most often those of the last frame, or the next ones.
fn find(
    moments: &[(i64, &States)],
    (player, at): (u32, i64),
    last: &mut Last,
    fits: impl Fn((usize, usize)) -> bool,
) -> Option<(usize, usize)> {
    let known = last.iter().position(|(of, _)| *of == player);
    if let Some((_, pair)) = known.map(|known| last[known])
        && moments[pair.0].0 <= at
        && at < moments[pair.1].0
        && fits(pair)
    {
        return Some(pair);
    }
    let after = moments.partition_point(|(time, _)| *time <= at);
    let froms = (after.saturating_sub(TRIED)..after).rev();
    let tos = || after..moments.len().min(after + TRIED);
    // The moment that was the later one of two is the earlier one of the next.
    let next = known.map(|known| last[known].1.1).filter(|next| *next < after);
    let pair =
        next.into_iter().chain(froms).flat_map(|from| tos().map(move |to| (from, to))).find(|pair| fits(*pair))?;
    match known {
        Some(known) => last[known].1 = pair,
        None => last.push((player, pair)),
    }
    Some(pair)
}

fn list_of<'t>(lists: &mut Vec<&'t [u32]>, last: &mut Vec<(u32, usize)>, player: u32, entities: &'t [u32]) -> usize {
    let known = last.iter().position(|(of, _)| *of == player);
    if let Some(known) = known
        && lists[last[known].1] == entities
    {
        return last[known].1;
    }
    let list = lists.iter().position(|list| *list == entities).unwrap_or_else(|| {
        lists.push(entities);
        lists.len() - 1
    });
    match known {
        Some(known) => last[known].1 = list,
        None => last.push((player, list)),
    }
    list
}

/// The moments of which a state is used, and the frames' moments as places among them.
fn places(frames: &mut [Frame], used: &[Vec<bool>]) -> Vec<usize> {
    let places: Vec<usize> = (0..used.len()).filter(|moment| used[*moment].contains(&true)).collect();
    let place = |moment: usize| places.binary_search(&moment).ok();
    for frame in frames {
        (frame.from, frame.to) = place(frame.from).zip(place(frame.to)).unwrap_or((0, 0));
    }
    places
}

/// The frames player by player, after whose each is; then the lists.
fn pack_frames(frames: &[Frame], lists: &[&[u32]]) -> Vec<Vec<u8>> {
    let mut order: Vec<&Frame> = frames.iter().collect();
    order.sort_by_key(|frame| frame.player);
    let series: Vec<usize> = order.chunk_by(|a, b| a.player == b.player).map(<[_]>::len).collect();
    let pack = |value: &dyn Fn(&Frame) -> i64| {
        column::encode(&order.iter().map(|frame| value(frame)).collect::<Vec<_>>(), &series)
    };
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

/// The moments' times, and the states that are used, entity by entity. Returns how many entities these are of.
fn pack_states(moments: &[(i64, &States)], used: &[Vec<bool>], places: &[usize], packed: &mut Vec<Vec<u8>>) -> u32 {
    packed.push(flat(places.iter().map(|moment| moments[*moment].0)));
    let mut states: Vec<(u32, usize, &Seen)> = Vec::new();
    for (place, moment) in places.iter().enumerate() {
        let of_moment = moments[*moment].1.iter().zip(&used[*moment]).filter(|(_, used)| **used);
        states.extend(of_moment.map(|((entity, seen), _)| (*entity, place, seen)));
    }
    states.sort_by_key(|(entity, place, _)| (*entity, *place));
    let by_entity = || states.chunk_by(|a, b| a.0 == b.0);
    let series: Vec<usize> = by_entity().map(<[_]>::len).collect();
    packed.push(flat(by_entity().map(|states| states[0].0.into())));
    packed.push(flat(series.iter().map(|count| *count as i64)));
    packed.push(column::encode(&states.iter().map(|(_, place, _)| *place as i64).collect::<Vec<_>>(), &series));
    for part in 0..5 {
        let cells: Vec<u32> = states.iter().map(|(.., seen)| seen[part].to_bits()).collect();
        packed.push(column::encode_f32(&cells, &series));
    }
    series.len() as u32
}

/// A column in one series.
fn flat(values: impl Iterator<Item = i64>) -> Vec<u8> {
    let values: Vec<i64> = values.collect();
    column::encode(&values, &[values.len()])
}

fn bits(seen: Seen) -> [u32; 5] {
    seen.map(f32::to_bits)
}

/// Reads packed columns one after the other.
struct Reader<'a> {
    packed: std::slice::Iter<'a, &'a Bytes>,
}

impl Reader<'_> {
    fn next(&mut self) -> Result<&[u8], String> {
        self.packed.next().map(|bytes| &***bytes).ok_or_else(|| "a column of what was drawn is missing".to_owned())
    }

    fn whole<V: TryFrom<i64>>(&mut self, series: &[usize]) -> Result<Vec<V>, String> {
        let narrow = |value: i64| V::try_from(value).map_err(|_| format!("{value} is out of range"));
        column::decode(self.next()?, series, None)?.into_iter().map(narrow).collect()
    }

    fn seen(&mut self, series: &[usize]) -> Result<Vec<Seen>, String> {
        let mut seen = vec![Seen::default(); series.iter().sum()];
        for part in 0..5 {
            let cells = column::decode_f32(self.next()?, series)?;
            seen.iter_mut().zip(cells).for_each(|(seen, cell)| seen[part] = f32::from_bits(cell));
        }
        Ok(seen)
    }
}

/// Unpacks so many rows, of which `names` are the ways of drawing.
pub(super) fn decode(map: &DrawnMap<&Bytes>, rows: usize, names: &[String]) -> Result<Rows, String> {
    let [frames, lists, moments, entities, others] =
        [map.frames, map.lists, map.moments, map.entities, map.others].map(|count| count as usize);
    // Nothing is there that no row asks for.
    let most =
        [frames, lists, others].into_iter().max().unwrap_or(0).max(moments.div_ceil(2)).max(entities.div_ceil(2));
    if most > rows {
        return Err(format!("there is more of what was drawn than its {rows} rows can tell"));
    }
    let between_code = names.iter().position(|name| name == BETWEEN).map(|place| place as u32);
    let mut from = Reader { packed: map.packed.iter() };
    let players: Vec<u32> = from.whole(&[frames])?;
    let mut order: Vec<usize> = (0..frames).collect();
    order.sort_by_key(|frame| players[*frame]);
    let series: Vec<usize> = order.chunk_by(|a, b| players[*a] == players[*b]).map(<[_]>::len).collect();
    let commands: Vec<u32> = scattered(&order, from.whole(&series)?);
    let times: Vec<i64> = scattered(&order, from.whole(&series)?);
    let list: Vec<u32> = scattered(&order, from.whole(&series)?);
    let first: Vec<u32> = scattered(&order, from.whole(&series)?);
    let ahead: Vec<i64> = scattered(&order, from.whole(&series)?);
    let lengths: Vec<u32> = from.whole(&[lists])?;
    let lists = Lists::new(&lengths, rows, &mut from)?;
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
    let mut told = how.into_iter().zip(as_they_are);
    let mut due = next_other.next();
    let mut out = Rows::with_room(rows);
    for frame in 0..frames {
        let from = first[frame] as usize;
        let to = usize::try_from(ahead[frame].saturating_add(i64::from(first[frame]))).unwrap_or(usize::MAX);
        let pair = (at.get(from).zip(states.get(from)), at.get(to).zip(states.get(to)));
        for entity in lists.get(list[frame])? {
            let row = out.entity.len();
            if row == rows {
                return Err(format!("it draws more than its {rows} rows"));
            }
            let (how, seen) = if due == Some(row) {
                due = next_other.next();
                told.next().ok_or("a row that is told as it is is missing")?
            } else {
                let (Some((from_at, a)), Some((to_at, b))) = pair else {
                    return Err(format!("row {row} is drawn between moments that are not there"));
                };
                let missing = || format!("row {row} is drawn between states that are not there");
                let (a, b) = of(a, *entity).zip(of(b, *entity)).ok_or_else(missing)?;
                let how = between_code.ok_or_else(|| format!("no name of how is {BETWEEN:?}"))?;
                (how, between(&a.1, &b.1, share(times[frame], *from_at, *to_at)))
            };
            out.push((players[frame], commands[frame], times[frame]), *entity, seen, how);
        }
    }
    if out.entity.len() != rows || due.is_some() {
        return Err(format!("it draws {} rows and has {rows}", out.entity.len()));
    }
    Ok(out)
}

/// Values that stand grouped, back where they were.
fn scattered<V: Clone + Default>(order: &[usize], grouped: Vec<V>) -> Vec<V> {
    let mut values = vec![V::default(); order.len()];
    order.iter().zip(grouped).for_each(|(place, value)| values[*place] = value);
    values
}

/// Lists of entities.
struct Lists {
    ends: Vec<usize>,
    entities: Vec<u32>,
}

impl Lists {
    fn new(lengths: &[u32], rows: usize, from: &mut Reader<'_>) -> Result<Lists, String> {
        let sum = |sum: &mut usize, length: &u32| {
            *sum = sum.saturating_add(*length as usize);
            Some(*sum)
        };
        let ends: Vec<usize> = lengths.iter().scan(0usize, sum).collect();
        let all = ends.last().copied().unwrap_or(0);
        if all > rows {
            return Err(format!("its lists name {all} entities for {rows} rows"));
        }
        Ok(Lists { ends, entities: from.whole(&[all])? })
    }

    fn get(&self, list: u32) -> Result<&[u32], String> {
        let list = list as usize;
        let start = list.checked_sub(1).map_or(0, |before| self.ends.get(before).copied().unwrap_or(0));
        let end = self.ends.get(list).ok_or_else(|| format!("there is no list {list} of entities"))?;
        Ok(&self.entities[start..*end])
    }
}

/// The states of each moment, in ascending order of entity.
fn read_states(entities: usize, moments: usize, rows: usize, from: &mut Reader<'_>) -> Result<Vec<States>, String> {
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
    let mut states = vec![States::new(); moments];
    for ((entity, place), seen) in owners.zip(places).zip(seen) {
        let moment = states.get_mut(place as usize).ok_or_else(|| format!("there is no moment {place}"))?;
        moment.push((entity, seen));
    }
    Ok(states)
}

impl Rows {
    fn with_room(rows: usize) -> Rows {
        let (room, seen) = (|| Vec::with_capacity(rows), [(); 5].map(|()| Vec::with_capacity(rows)));
        Rows {
            player: room(),
            command: room(),
            drawn_at_us: Vec::with_capacity(rows),
            entity: room(),
            seen,
            how: room(),
        }
    }

    fn push(&mut self, (player, command, at): (u32, u32, i64), entity: u32, seen: Seen, how: u32) {
        self.player.push(player);
        self.command.push(command);
        self.drawn_at_us.push(at);
        self.entity.push(entity);
        self.seen.iter_mut().zip(seen).for_each(|(column, value)| column.push(value));
        self.how.push(how);
    }

    /// A column by its name, of a type that it can have; once.
    pub(super) fn take(&mut self, name: &str, kind: &str, names: &[String]) -> Option<Data> {
        let take = std::mem::take::<Vec<u32>>;
        match (COLUMNS.iter().position(|column| *column == name)?, kind) {
            (0, "u32") => Some(Data::U32(take(&mut self.player))),
            (1, "u32") => Some(Data::U32(take(&mut self.command))),
            (2, "i64") => Some(Data::I64(std::mem::take(&mut self.drawn_at_us))),
            (3, "u32") => Some(Data::U32(take(&mut self.entity))),
            (part @ 4..=8, "f32") => Some(Data::F32(std::mem::take(&mut self.seen[part - 4]))),
            (9, "name") => Some(Data::Name { names: names.to_vec(), codes: take(&mut self.how) }),
            _ => None,
        }
    }
}

/// The names of the ways of drawing, where a chunk has columns that are told so.
pub(super) fn ways<'n>(columns: impl Iterator<Item = (&'n str, &'n [String])>) -> &'n [String] {
    columns.filter(|(name, _)| *name == COLUMNS[9]).map(|(_, names)| names).next().unwrap_or(&[])
}
