//! One machine's share of a corpus.

use std::str::FromStr;

/// One of n equal shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CorpusShare {
    /// The number of this share, from 1.
    pub k: usize,
    /// The number of shares.
    pub n: usize,
}

impl FromStr for CorpusShare {
    type Err = String;

    fn from_str(text: &str) -> Result<CorpusShare, String> {
        let numbers = text.strip_prefix("slice:").and_then(|rest| rest.split_once('/'));
        let parsed = numbers.and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
        match parsed {
            Some((k, n)) if (1..=n).contains(&k) => Ok(CorpusShare { k, n }),
            Some(_) | None => Err("write slice:K/N with K from 1 to N, such as slice:2/4".to_owned()),
        }
    }
}

impl CorpusShare {
    /// Every n-th item, beginning with the k-th. Neighbouring logs are often alike, so they go to different machines.
    pub fn of<T>(self, items: Vec<T>) -> Vec<T> {
        items.into_iter().skip(self.k - 1).step_by(self.n).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_disjoint_and_complete() {
        let logs: Vec<u32> = (0..10).collect();
        let mut all: Vec<u32> = (1..=3).flat_map(|k| CorpusShare { k, n: 3 }.of(logs.clone())).collect();
        all.sort_unstable();
        assert_eq!(all, logs);
        assert_eq!(CorpusShare { k: 2, n: 3 }.of(logs).len(), 3);
    }

    #[test]
    fn a_share_is_a_slice() {
        assert_eq!("slice:2/4".parse(), Ok(CorpusShare { k: 2, n: 4 }));
        for wrong in ["2/4", "slice:0/4", "slice:5/4", "slice:1", "hash:1/2", "slice:1/0"] {
            assert!(wrong.parse::<CorpusShare>().is_err(), "{wrong}");
        }
    }
}
