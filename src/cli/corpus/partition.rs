//! `--partition`: a share of a corpus, as typed or as the environment names it.

use std::str::FromStr;

use crate::cli::trouble::CommandError;
use crate::corpus::CorpusShare;

/// A share of a corpus, or where to find it.
#[derive(Clone, Copy, Debug)]
pub(super) enum PartitionArg {
    Share(CorpusShare),
    Environment,
}

impl FromStr for PartitionArg {
    type Err = String;

    fn from_str(text: &str) -> Result<PartitionArg, String> {
        match text {
            "env" => Ok(PartitionArg::Environment),
            text => Ok(PartitionArg::Share(text.parse()?)),
        }
    }
}

/// The variables with the number of a share, of the first share, of the last share and of shares.
struct ShareVariables {
    number: &'static str,
    first: ShareStart,
    count: &'static str,
}

/// The number of the first share.
enum ShareStart {
    Is(usize),
    In(&'static str),
}

/// Slurm arrays, Kubernetes indexed Jobs, GitLab and others, CircleCI, Buildkite. Kubernetes sets no number of shares,
/// so a Job sets `JOB_COMPLETIONS` itself.
const SHARES: [ShareVariables; 5] = [
    ShareVariables {
        number: "SLURM_ARRAY_TASK_ID",
        first: ShareStart::In("SLURM_ARRAY_TASK_MIN"),
        count: "SLURM_ARRAY_TASK_COUNT",
    },
    ShareVariables { number: "JOB_COMPLETION_INDEX", first: ShareStart::Is(0), count: "JOB_COMPLETIONS" },
    ShareVariables { number: "CI_NODE_INDEX", first: ShareStart::Is(1), count: "CI_NODE_TOTAL" },
    ShareVariables { number: "CIRCLE_NODE_INDEX", first: ShareStart::Is(0), count: "CIRCLE_NODE_TOTAL" },
    ShareVariables {
        number: "BUILDKITE_PARALLEL_JOB",
        first: ShareStart::Is(0),
        count: "BUILDKITE_PARALLEL_JOB_COUNT",
    },
];

/// The share that the environment names.
pub(super) fn share_of(variable: &dyn Fn(&str) -> Option<String>) -> Result<CorpusShare, CommandError> {
    let Some(names) = SHARES.iter().find(|names| variable(names.number).is_some()) else {
        let known = SHARES.iter().map(|names| names.number).collect::<Vec<_>>().join(", ");
        let what = format!("--partition env: the environment names no share: set one of {known}, or write slice:K/N");
        return Err(CommandError::request(what));
    };
    let number = |name: &str| {
        let value = variable(name).and_then(|value| value.parse::<usize>().ok());
        value.ok_or_else(|| {
            CommandError::request(format!("--partition env: {name} is no number: set it, or write slice:K/N"))
        })
    };
    let first = match names.first {
        ShareStart::Is(first) => first,
        ShareStart::In(name) => number(name)?,
    };
    let (number, n) = (number(names.number)?, number(names.count)?);
    match number.checked_sub(first) {
        Some(place) if place < n => Ok(CorpusShare { k: place + 1, n }),
        _ => Err(CommandError::request(format!(
            "--partition env: {} is {number}, which is no share of {n}: number shares without gaps, or write slice:K/N",
            names.number
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use hitreg_log::sorted::SortedMap;

    #[test]
    fn schedulers_name_shares() {
        let share = |pairs: &[(&str, &str)]| {
            let variables: SortedMap<&str, &str> = pairs.iter().copied().collect();
            share_of(&|name| variables.get(name).map(|value| (*value).to_owned())).map_err(|error| error.to_string())
        };
        let slurm = [("SLURM_ARRAY_TASK_ID", "7"), ("SLURM_ARRAY_TASK_MIN", "5"), ("SLURM_ARRAY_TASK_COUNT", "4")];
        assert_eq!(share(&slurm), Ok(CorpusShare { k: 3, n: 4 }));
        assert_eq!(share(&[("JOB_COMPLETION_INDEX", "0"), ("JOB_COMPLETIONS", "4")]), Ok(CorpusShare { k: 1, n: 4 }));
        assert_eq!(share(&[("CI_NODE_INDEX", "4"), ("CI_NODE_TOTAL", "4")]), Ok(CorpusShare { k: 4, n: 4 }));
        let wrong = |pairs: &[(&str, &str)], sentence: &str| {
            let error = share(pairs).expect_err(sentence);
            assert!(error.contains(sentence), "{error}");
        };
        wrong(&[], "the environment names no share");
        wrong(&[("JOB_COMPLETION_INDEX", "0")], "JOB_COMPLETIONS is no number");
        wrong(&[("CI_NODE_INDEX", "5"), ("CI_NODE_TOTAL", "4")], "CI_NODE_INDEX is 5, which is no share of 4");
        wrong(&[("CI_NODE_INDEX", "0"), ("CI_NODE_TOTAL", "4")], "which is no share of 4");
    }
}
