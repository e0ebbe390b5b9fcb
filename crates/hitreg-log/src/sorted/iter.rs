//! Iterators over a [`SortedMap`].

use super::{Place, SortedMap};

/// The entries of a [`SortedMap`], by key.
pub struct Iter<'a, K, V> {
    front: std::slice::Iter<'a, (K, V)>,
    /// The buckets between `front` and `back`.
    buckets: std::slice::Iter<'a, Vec<(K, V)>>,
    back: std::slice::Iter<'a, (K, V)>,
    len: usize,
}

/// The entries of a [`SortedMap`], by key.
pub struct IntoIter<K, V> {
    front: std::vec::IntoIter<(K, V)>,
    buckets: std::vec::IntoIter<Vec<(K, V)>>,
    back: std::vec::IntoIter<(K, V)>,
    len: usize,
}

impl<'a, K, V> Iter<'a, K, V> {
    pub(super) fn new(buckets: &'a [Vec<(K, V)>], len: usize) -> Self {
        Iter { front: [].iter(), buckets: buckets.iter(), back: [].iter(), len }
    }

    /// The entries from one place to before another.
    pub(super) fn between(buckets: &'a [Vec<(K, V)>], first: Place, behind: Place) -> Self {
        let rows_of = |bucket: usize| buckets.get(bucket).map_or(&[][..], Vec::as_slice);
        if first.bucket >= behind.bucket {
            let rows = rows_of(behind.bucket);
            let first = if first.bucket == behind.bucket { first.row.min(behind.row) } else { behind.row };
            let rows = &rows[first..behind.row];
            return Iter { front: rows.iter(), buckets: [].iter(), back: [].iter(), len: rows.len() };
        }
        let (front, back) = (&rows_of(first.bucket)[first.row..], &rows_of(behind.bucket)[..behind.row]);
        let between = &buckets[first.bucket + 1..behind.bucket];
        let mut len = front.len() + back.len();
        for bucket in between {
            len += bucket.len();
        }
        Iter { front: front.iter(), buckets: between.iter(), back: back.iter(), len }
    }
}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Iter { front: self.front.clone(), buckets: self.buckets.clone(), back: self.back.clone(), len: self.len }
    }
}

/// `$entry` names the parts of an entry, `$given` is what the iterator gives of them.
macro_rules! iterate {
    ($iter:ty, ($($life:lifetime)?), $item:ty, $iter_of:ident, $entry:pat => $given:expr) => {
        impl<$($life,)? K, V> Iterator for $iter {
            type Item = $item;

            fn next(&mut self) -> Option<Self::Item> {
                loop {
                    if let Some($entry) = self.front.next() {
                        self.len -= 1;
                        return Some($given);
                    }
                    match self.buckets.next() {
                        Some(bucket) => self.front = bucket.$iter_of(),
                        None => {
                            let $entry = self.back.next()?;
                            self.len -= 1;
                            return Some($given);
                        }
                    }
                }
            }

            fn size_hint(&self) -> (usize, Option<usize>) {
                (self.len, Some(self.len))
            }
        }

        impl<$($life,)? K, V> DoubleEndedIterator for $iter {
            fn next_back(&mut self) -> Option<Self::Item> {
                loop {
                    if let Some($entry) = self.back.next_back() {
                        self.len -= 1;
                        return Some($given);
                    }
                    match self.buckets.next_back() {
                        Some(bucket) => self.back = bucket.$iter_of(),
                        None => {
                            let $entry = self.front.next_back()?;
                            self.len -= 1;
                            return Some($given);
                        }
                    }
                }
            }
        }

        impl<$($life,)? K, V> ExactSizeIterator for $iter {}
    };
}

iterate!(Iter<'a, K, V>, ('a), (&'a K, &'a V), iter, (key, value) => (key, value));
iterate!(IntoIter<K, V>, (), (K, V), into_iter, entry => entry);

impl<'a, K, V> IntoIterator for &'a SortedMap<K, V> {
    type Item = (&'a K, &'a V);
    type IntoIter = Iter<'a, K, V>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<K, V> IntoIterator for SortedMap<K, V> {
    type Item = (K, V);
    type IntoIter = IntoIter<K, V>;

    fn into_iter(self) -> Self::IntoIter {
        let (front, back) = (Vec::new().into_iter(), Vec::new().into_iter());
        IntoIter { front, buckets: self.buckets.into_iter(), back, len: self.len }
    }
}
