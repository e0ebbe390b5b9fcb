//! Shots that came out differently, some hundred bytes each: there may be as many of them as there are shots.

use std::collections::BTreeMap;

use serde::{Serialize, Serializer};

use super::hits::{Change, ChangedShot, Outcome, Text};
use super::mark::{Part, Rank};
use crate::varint::{Cursor, put_varint, unzigzag, zigzag};

/// Shots that came out differently, in the order of their time.
#[derive(Clone, Default)]
pub struct ChangedShots {
    /// One after the other, as they came: what orders each among the others, and the shot.
    bytes: Vec<u8>,
    /// Where each begins, and where its shot does, in their order.
    places: Vec<(usize, usize)>,
    names: Vec<Text>,
    /// Which of the names each is.
    codes: BTreeMap<String, u64>,
}

impl ChangedShots {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// One of them; `None` behind the last.
    pub fn get(&self, place: usize) -> Option<ChangedShot> {
        let (_, start) = *self.places.get(place)?;
        Reading { from: Cursor::new(&self.bytes[start..]), names: &self.names }.shot()
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = ChangedShot> + '_ {
        (0..self.len()).filter_map(|place| self.get(place))
    }

    /// Takes one in. They are in their order when they have been [put in it](ChangedShots::put_in_order).
    pub(crate) fn push(&mut self, rank: &Rank, shot: &ChangedShot) {
        let begin = self.bytes.len();
        put_rank(&mut self.bytes, rank);
        self.places.push((begin, self.bytes.len()));
        let ChangedShot { shooter, command, index, change, a, b } = shot;
        let sides = u64::from(a.is_some()) | u64::from(b.is_some()) << 1;
        [u64::from(*shooter), (*command).into(), (*index).into(), *change as u64, sides]
            .into_iter()
            .for_each(|number| put_varint(&mut self.bytes, number));
        [a, b].into_iter().flatten().for_each(|outcome| self.put_outcome(outcome));
    }

    pub(crate) fn put_in_order(&mut self) {
        let ChangedShots { bytes, places, .. } = self;
        let rank = |(begin, end): &(usize, usize)| &bytes[*begin..*end];
        places.sort_unstable_by(|x, y| rank(x).cmp(rank(y)));
    }

    fn put_outcome(&mut self, outcome: &Outcome) {
        let numbers = outcome.numbers();
        let known = numbers.iter().rev().fold(u64::from(outcome.view_error_units.is_some()), |known, number| {
            known << 1 | u64::from(number.is_some())
        });
        put_varint(&mut self.bytes, known);
        for number in numbers.into_iter().flatten() {
            put_varint(&mut self.bytes, zigzag(number));
        }
        outcome.view_error_units.iter().for_each(|units| put_varint(&mut self.bytes, units.to_bits().into()));
        for name in outcome.names() {
            let code = self.code(name);
            put_varint(&mut self.bytes, code);
        }
    }

    fn code(&mut self, name: &Text) -> u64 {
        if let Some(code) = self.codes.get(name.as_str()) {
            return *code;
        }
        let code = self.names.len() as u64;
        self.names.push(name.clone());
        self.codes.insert(name.as_str().to_owned(), code);
        code
    }
}

impl PartialEq for ChangedShots {
    fn eq(&self, other: &ChangedShots) -> bool {
        self.iter().eq(other.iter())
    }
}

impl std::fmt::Debug for ChangedShots {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Serialize for ChangedShots {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

/// Bytes that are ordered as ranks are.
fn put_rank(to: &mut Vec<u8>, rank: &Rank) {
    let number = |to: &mut Vec<u8>, number: i64| to.extend((number as u64 ^ 1 << 63).to_be_bytes());
    let Rank { at_us, key, is_pair, row } = rank;
    to.push(u8::from(at_us.is_none()));
    at_us.iter().for_each(|at| number(to, *at));
    for part in key {
        match part {
            Part::Number(part) => {
                to.push(1);
                number(to, *part);
            }
            Part::Name(name) => {
                to.push(2);
                // A name ends with two bytes of 0, and one of 0 within it is followed by another.
                name.bytes().for_each(|byte| to.extend([byte, 1].into_iter().take(1 + usize::from(byte == 0))));
                to.extend([0, 0]);
            }
        }
    }
    to.extend([0, u8::from(!is_pair)]);
    to.extend(row.to_be_bytes());
}

struct Reading<'a> {
    from: Cursor<'a>,
    names: &'a [Text],
}

impl Reading<'_> {
    fn shot(&mut self) -> Option<ChangedShot> {
        let [shooter, command, index] = [self.number()?, self.number()?, self.number()?].map(|number| number as u32);
        let change = *Change::ALL.get(self.number()? as usize)?;
        let sides = self.number()?;
        let a = if sides & 1 != 0 { Some(self.outcome()?) } else { None };
        let b = if sides & 2 != 0 { Some(self.outcome()?) } else { None };
        Some(ChangedShot { shooter, command, index, change, a, b })
    }

    fn outcome(&mut self) -> Option<Outcome> {
        let mut known = self.number()?;
        let mut is_known = || {
            let is_known = known & 1 != 0;
            known >>= 1;
            is_known
        };
        let mut numbers = [None; Outcome::NUMBERS];
        for number in &mut numbers {
            if is_known() {
                *number = Some(unzigzag(self.number()?));
            }
        }
        let view_error_units = if is_known() { Some(f32::from_bits(self.number()? as u32)) } else { None };
        let mut names: [Text; Outcome::NAMES] = Default::default();
        for name in &mut names {
            *name = self.names.get(self.number()? as usize)?.clone();
        }
        Some(Outcome::of(numbers, view_error_units, names))
    }

    fn number(&mut self) -> Option<u64> {
        self.from.varint().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diff::hits::Texts;

    /// Numbers of every width, and names of which some begin as others do.
    fn shots() -> Vec<(Rank, ChangedShot)> {
        let mut texts = Texts::default();
        let numbers = [None, Some(0), Some(-1), Some(63), Some(-64), Some(1 << 40), Some(i64::MAX), Some(i64::MIN)];
        let names = ["", "p", "p\0", "p\0\0a", "p\u{1}", "p1", "none"];
        let mut all = Vec::new();
        for (round, at_us) in numbers.into_iter().enumerate() {
            for (name, part) in names.into_iter().zip(numbers.into_iter().rev()) {
                let outcome = Outcome::of(
                    [at_us, part, None, numbers[all.len() % 8], at_us],
                    Some(round as f32 - 0.5).filter(|_| round % 3 > 0),
                    std::array::from_fn(|place| texts.of(names[(place + round) % 7])),
                );
                let key = vec![Part::Number(part.unwrap_or_default()), Part::Name(name.to_owned()), Part::Number(3)];
                let rank = Rank { at_us, key, is_pair: round % 2 == 0, row: all.len() as u64 };
                let change = Change::ALL[all.len() % Change::ALL.len()];
                let [a, b] = [0, 1].map(|side| Some(outcome.clone()).filter(|_| all.len() % 3 != side));
                all.push((rank, ChangedShot { shooter: 7, command: u32::MAX, index: all.len() as u32, change, a, b }));
            }
        }
        all
    }

    #[test]
    fn shots_are_given_back_as_they_were_in_the_order_of_their_ranks() {
        let mut all = shots();
        let mut packed = ChangedShots::default();
        all.iter().rev().for_each(|(rank, shot)| packed.push(rank, shot));
        packed.put_in_order();
        all.sort_by(|x, y| x.0.cmp(&y.0));
        let expected: Vec<ChangedShot> = all.into_iter().map(|(_, shot)| shot).collect();
        assert_eq!(packed.iter().collect::<Vec<_>>(), expected);
        assert_eq!((packed.len(), packed.get(5).as_ref()), (expected.len(), expected.get(5)));
        assert_eq!(packed.get(expected.len()), None);
        let shown = |value: &dyn erased_serde::Serialize| serde_json::to_string(value).expect("JSON");
        assert_eq!(shown(&packed), shown(&expected));
    }
}
