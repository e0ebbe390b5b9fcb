//! Unpacks views. The decoder trusts nothing: it refuses impossible counts before it allocates memory.

use serde_bytes::Bytes;

use super::super::past::{DrawnColumns, TickStates, between, of, share};
use super::{BETWEEN, DrawnMap, DrawnRows};
use crate::log::column;
use crate::record::NumberForm;

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
pub(in crate::log::trace_file) fn decode(
    map: &DrawnMap<&Bytes>,
    rows: usize,
    names: &[String],
) -> Result<DrawnRows, String> {
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
            let (Some(a), Some(b)) = (of(a, *entity), of(b, *entity)) else {
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
