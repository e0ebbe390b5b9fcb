//! Changed shots as bytes, about a hundred each.

use std::collections::BTreeMap;

use super::super::hits::{ChangedShot, Outcome, SharedText, ShotChange};
use super::super::mark::{KeyPart, RowRank};
use hitreg_log::varint::{Cursor, put_varint, unzigzag, zigzag};

/// Packed shots, each after the bytes that order it.
#[derive(Clone, Default)]
pub(super) struct PackedShots {
    /// In the order of arrival.
    bytes: Vec<u8>,
    /// In sorted order, after [`PackedShots::put_in_order`].
    places: Vec<ShotSpan>,
    names: Vec<SharedText>,
    /// The index of each name in `names`.
    codes: BTreeMap<String, u64>,
}

/// Where an entry begins, where its shot begins, and where it ends.
#[derive(Clone, Copy)]
struct ShotSpan {
    begin: usize,
    shot: usize,
    end: usize,
}

impl PackedShots {
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// One shot by its index; `None` after the last.
    pub(super) fn get(&self, place: usize) -> Option<ChangedShot> {
        let ShotSpan { shot, end, .. } = *self.places.get(place)?;
        ShotDecoder { from: Cursor::new(&self.bytes[shot..end]), names: &self.names }.shot()
    }

    /// The rank of the last shot.
    pub(super) fn last(&self) -> Option<&[u8]> {
        self.places.last().map(|place| &self.bytes[place.begin..place.shot])
    }

    /// Adds a shot. Shots are sorted only after [`PackedShots::put_in_order`].
    pub(super) fn push(&mut self, rank: &[u8], shot: &ChangedShot) {
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(rank);
        let start = self.bytes.len();
        let ChangedShot { shooter, command, index, change, a, b } = shot;
        let sides = u64::from(a.is_some()) | u64::from(b.is_some()) << 1;
        [u64::from(*shooter), (*command).into(), (*index).into(), *change as u64, sides]
            .into_iter()
            .for_each(|number| put_varint(&mut self.bytes, number));
        [a, b].into_iter().flatten().for_each(|outcome| self.put_outcome(outcome));
        self.places.push(ShotSpan { begin, shot: start, end: self.bytes.len() });
    }

    pub(super) fn put_in_order(&mut self) {
        let PackedShots { bytes, places, .. } = self;
        let rank = |place: &ShotSpan| &bytes[place.begin..place.shot];
        places.sort_unstable_by(|x, y| rank(x).cmp(rank(y)));
    }

    /// Sorts the shots and keeps only the first `most`.
    pub(super) fn keep_first(&mut self, most: usize) {
        self.put_in_order();
        self.places.truncate(most);
        let mut bytes = Vec::with_capacity(self.places.iter().map(|place| place.end - place.begin).sum());
        for place in &mut self.places {
            let begin = bytes.len();
            bytes.extend_from_slice(&self.bytes[place.begin..place.end]);
            *place = ShotSpan { begin, shot: begin + (place.shot - place.begin), end: bytes.len() };
        }
        self.bytes = bytes;
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

    fn code(&mut self, name: &SharedText) -> u64 {
        if let Some(code) = self.codes.get(name.as_str()) {
            return *code;
        }
        let code = self.names.len() as u64;
        self.names.push(name.clone());
        self.codes.insert(name.as_str().to_owned(), code);
        code
    }
}

/// Writes a rank as bytes that sort like ranks.
pub(super) fn put_rank(to: &mut Vec<u8>, rank: &RowRank) {
    let number = |to: &mut Vec<u8>, number: i64| to.extend((number as u64 ^ 1 << 63).to_be_bytes());
    let RowRank { at_us, key, is_pair, row } = rank;
    to.push(u8::from(at_us.is_none()));
    at_us.iter().for_each(|at| number(to, *at));
    for part in key {
        match part {
            KeyPart::Number(part) => {
                to.push(1);
                number(to, *part);
            }
            KeyPart::Name(name) => {
                to.push(2);
                // Two bytes of 0 end a name; a byte of 0 within a name is followed by a 1.
                name.bytes().for_each(|byte| to.extend([byte, 1].into_iter().take(1 + usize::from(byte == 0))));
                to.extend([0, 0]);
            }
        }
    }
    to.extend([0, u8::from(!is_pair)]);
    to.extend(row.to_be_bytes());
}

struct ShotDecoder<'a> {
    from: Cursor<'a>,
    names: &'a [SharedText],
}

impl ShotDecoder<'_> {
    fn shot(&mut self) -> Option<ChangedShot> {
        let [shooter, command, index] = [self.number()?, self.number()?, self.number()?].map(|number| number as u32);
        let change = *ShotChange::ALL.get(self.number()? as usize)?;
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
        let mut names: [SharedText; Outcome::NAMES] = Default::default();
        for name in &mut names {
            *name = self.names.get(self.number()? as usize)?.clone();
        }
        Some(Outcome::of(numbers, view_error_units, names))
    }

    fn number(&mut self) -> Option<u64> {
        self.from.varint().ok()
    }
}
