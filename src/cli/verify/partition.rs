//! Selects the logs to verify: named logs, logs below a directory, or one machine's share of them.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::str::FromStr;

use crate::cli::trouble::CommandError;
use crate::store;

/// One of n equal shares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Partition {
    /// The number of this share, from 1.
    k: usize,
    /// The number of shares.
    n: usize,
}

impl FromStr for Partition {
    type Err = String;
    fn from_str(text: &str) -> Result<Partition, String> {
        let numbers = text.strip_prefix("slice:").and_then(|rest| rest.split_once('/'));
        let parsed = numbers.and_then(|(k, n)| Some((k.parse().ok()?, n.parse().ok()?)));
        match parsed {
            Some((k, n)) if (1..=n).contains(&k) => Ok(Partition { k, n }),
            Some(_) | None => Err("write slice:K/N with K from 1 to N, such as slice:2/4".to_owned()),
        }
    }
}

impl Partition {
    /// Every n-th log, beginning with the k-th. Neighbouring logs are often alike, so they go to different machines.
    fn of(self, logs: Vec<PathBuf>) -> Vec<PathBuf> {
        logs.into_iter().skip(self.k - 1).step_by(self.n).collect()
    }
}

/// The logs to verify, in a fixed order.
pub(super) fn select(paths: &[PathBuf], partition: Option<&Partition>) -> Result<Vec<PathBuf>, CommandError> {
    let mut logs = Vec::new();
    for path in paths {
        if path.is_dir() {
            let below = store::files_below(path, "hitlog")?;
            if below.is_empty() {
                return Err(CommandError::file(
                    path,
                    "there is no *.hitlog in this directory or below it: name a log, or another directory",
                ));
            }
            logs.extend(below);
        } else {
            if !store::is_standard_stream(path) && !path.exists() {
                store::open(path)?;
            }
            logs.push(path.clone());
        }
    }
    // A log counts once, even if it is named twice or is also in a named directory.
    let mut seen = BTreeSet::new();
    logs.retain(|log| seen.insert(log.clone()));
    match partition {
        Some(partition) => {
            let all = logs.len();
            let share = partition.of(logs);
            if share.is_empty() {
                let Partition { k, n } = partition;
                return Err(CommandError::request(format!("--partition slice:{k}/{n} is empty: there are {all} logs")));
            }
            Ok(share)
        }
        None => Ok(logs),
    }
}

/// The goldens below directories that have no log beside them.
pub(super) fn orphans(paths: &[PathBuf]) -> Result<Vec<PathBuf>, CommandError> {
    let mut orphans = Vec::new();
    for directory in paths.iter().filter(|path| path.is_dir()) {
        let goldens = store::files_below(directory, "golden")?;
        orphans.extend(goldens.into_iter().filter(|golden| !golden.with_extension("hitlog").exists()));
    }
    Ok(orphans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_disjoint_and_complete() {
        let logs: Vec<PathBuf> = (0..10).map(|n| PathBuf::from(n.to_string())).collect();
        let mut all: Vec<PathBuf> = (1..=3).flat_map(|k| Partition { k, n: 3 }.of(logs.clone())).collect();
        all.sort();
        assert_eq!(all, logs);
        assert_eq!(Partition { k: 2, n: 3 }.of(logs).len(), 3);
    }

    #[test]
    fn a_partition_is_a_slice() {
        assert_eq!("slice:2/4".parse(), Ok(Partition { k: 2, n: 4 }));
        for wrong in ["2/4", "slice:0/4", "slice:5/4", "slice:1", "hash:1/2", "slice:1/0"] {
            assert!(wrong.parse::<Partition>().is_err(), "{wrong}");
        }
    }
}
