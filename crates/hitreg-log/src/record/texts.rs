//! The texts of a session. Records hold each text as a code, and a session has one list of its texts.

use std::sync::Arc;

use crate::sorted::SortedMap;

/// The code of a text: its XXH3-64 hash, and 0 for the empty text. It does not depend on the session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextCode(pub u64);

impl TextCode {
    /// Returns the code of a text.
    pub fn of(text: &str) -> TextCode {
        TextCode(if text.is_empty() { 0 } else { xxhash_rust::xxh3::xxh3_64(text.as_bytes()) })
    }
}

/// The distinct texts of a session by their codes. Clones share the list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Texts {
    by_code: Arc<SortedMap<TextCode, Arc<str>>>,
    bytes: usize,
}

/// The most bytes of distinct texts in a session, with 64 bytes for each text besides its own. The list then fits into
/// memory, however long a session is.
pub const SESSION_TEXT_BYTES_MAX: usize = 4 << 20;

/// The memory of one text besides its bytes.
const TEXT_OVERHEAD: usize = 64;

/// Why a text cannot be added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TextError {
    /// The session has too many different texts.
    #[error(
        "the different texts of the session take more than {} MiB: use texts only for names that repeat",
        SESSION_TEXT_BYTES_MAX >> 20
    )]
    TooMany,
    /// Another text has the same code.
    #[error("two texts have the same code")]
    Collision,
}

impl Texts {
    /// Adds a text and returns its code.
    ///
    /// # Errors
    /// When the session then has too many texts, or another text has the same code.
    pub fn add(&mut self, text: &str) -> Result<TextCode, TextError> {
        let code = TextCode::of(text);
        match self.by_code.get(&code) {
            Some(known) if **known == *text => return Ok(code),
            Some(_) => return Err(TextError::Collision),
            None if text.is_empty() => return Ok(code),
            None => {}
        }
        let bytes = self.bytes + text.len() + TEXT_OVERHEAD;
        if bytes > SESSION_TEXT_BYTES_MAX || code == TextCode::default() {
            return Err(if bytes > SESSION_TEXT_BYTES_MAX { TextError::TooMany } else { TextError::Collision });
        }
        self.bytes = bytes;
        Arc::make_mut(&mut self.by_code).insert(code, text.into());
        Ok(code)
    }

    /// Returns the text of a code; empty if the session has none.
    pub fn get(&self, code: TextCode) -> &str {
        self.by_code.get(&code).map_or("", |text| text)
    }

    /// Returns the number of texts.
    pub fn len(&self) -> usize {
        self.by_code.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.by_code.is_empty()
    }

    /// Iterates over the texts in the order of their codes.
    pub fn iter(&self) -> impl Iterator<Item = (TextCode, &str)> {
        self.by_code.iter().map(|(code, text)| (*code, &**text))
    }

    /// Adds the texts of another part of the session.
    pub(crate) fn append(&mut self, later: &Texts) {
        if self.by_code.is_empty() {
            self.clone_from(later);
        } else if !Arc::ptr_eq(&self.by_code, &later.by_code) {
            for (code, text) in
                later.by_code.iter().filter(|(code, _)| !self.by_code.contains_key(code)).collect::<Vec<_>>()
            {
                self.bytes += text.len() + TEXT_OVERHEAD;
                Arc::make_mut(&mut self.by_code).insert(*code, Arc::clone(text));
            }
        }
    }

    /// Returns the memory of the texts, in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_is_the_same_in_every_session() {
        let (mut a, mut b) = (Texts::default(), Texts::default());
        let rifle = a.add("rifle").unwrap();
        assert_eq!((a.add(""), a.get(TextCode(0))), (Ok(TextCode(0)), ""));
        b.add("knife").unwrap();
        assert_eq!((b.add("rifle"), b.get(rifle)), (Ok(rifle), "rifle"));
        a.append(&b);
        assert_eq!(a.iter().count(), 2);
        assert_eq!((a.bytes(), a.get(TextCode::of("knife")), a.get(TextCode(7))), (b.bytes(), "knife", ""));
    }

    #[test]
    fn refuses_more_texts_than_fit_into_memory() {
        let mut texts = Texts::default();
        let long = "x".repeat(SESSION_TEXT_BYTES_MAX / 2);
        texts.add(&long).unwrap();
        assert_eq!(texts.add(&format!("{long}y")), Err(TextError::TooMany));
        assert_eq!(texts.add(&long), Ok(TextCode::of(&long)));
    }
}
