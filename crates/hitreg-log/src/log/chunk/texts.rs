//! The texts of a chunk. Its columns of texts hold 0 for the empty text, and other texts by their place in a list.

use std::cell::RefCell;

use crate::log::limits::Budget;
use crate::record::{SessionStretch, TextCode, Texts};
use crate::sorted::SortedMap;

/// The name of the list in a chunk's map.
pub(crate) const TEXTS: &str = "texts";

/// Collects the texts of a chunk to write.
pub(in crate::log) struct ChunkTexts<'a> {
    texts: &'a Texts,
    used: RefCell<(SortedMap<i64, i64>, Vec<&'a str>)>,
}

impl<'a> ChunkTexts<'a> {
    pub(super) fn new(texts: &'a Texts) -> ChunkTexts<'a> {
        ChunkTexts { texts, used: RefCell::default() }
    }

    /// Replaces codes by places in the chunk's list.
    pub(super) fn place(&self, numbers: &mut [i64]) {
        let (places, list) = &mut *self.used.borrow_mut();
        for number in numbers.iter_mut().filter(|number| **number != 0) {
            *number = *places.entry(*number).or_insert_with(|| {
                list.push(self.texts.get(TextCode(*number as u64)));
                list.len() as i64
            });
        }
    }

    /// Returns the list.
    pub(super) fn list(&self) -> Vec<&'a str> {
        self.used.borrow().1.clone()
    }
}

/// The codes of a decoded chunk's texts.
#[derive(Default)]
pub(in crate::log) struct TextPlaces(Vec<i64>);

impl TextPlaces {
    /// Adds the texts of a chunk to its stretch.
    pub(super) fn read(list: &[&str], stretch: &mut SessionStretch, budget: &mut Budget) -> Result<TextPlaces, String> {
        let mut codes = vec![0];
        for text in list {
            budget.take(1, text.len() + 64)?;
            let code = stretch.texts.add(text).map_err(|error| format!("its texts: {error}"))?;
            codes.push(code.0 as i64);
        }
        Ok(TextPlaces(codes))
    }

    /// Replaces places by codes.
    pub(super) fn codes(&self, numbers: &mut [i64]) -> Result<(), String> {
        for number in numbers {
            let code = usize::try_from(*number).ok().and_then(|place| self.0.get(place));
            *number = *code.ok_or_else(|| format!("{number} is not the place of any text"))?;
        }
        Ok(())
    }
}
