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

/// The variables of a scheduler: the number of a share and how many shares there are.
struct ShareVariables {
    number: &'static str,
    numbering: Numbering,
    count: &'static str,
}

/// How a scheduler numbers its shares.
enum Numbering {
    From(usize),
    /// From the first variable's value, in steps of the second one's; 1 if it is not set.
    By(&'static str, &'static str),
}

/// Slurm arrays, Kubernetes indexed Jobs, GitLab and others, CircleCI, Buildkite. Kubernetes sets no number of shares,
/// so a Job sets `JOB_COMPLETIONS` itself.
const SHARES: [ShareVariables; 5] = [
    ShareVariables {
        number: "SLURM_ARRAY_TASK_ID",
        numbering: Numbering::By("SLURM_ARRAY_TASK_MIN", "SLURM_ARRAY_TASK_STEP"),
        count: "SLURM_ARRAY_TASK_COUNT",
    },
    ShareVariables { number: "JOB_COMPLETION_INDEX", numbering: Numbering::From(0), count: "JOB_COMPLETIONS" },
    ShareVariables { number: "CI_NODE_INDEX", numbering: Numbering::From(1), count: "CI_NODE_TOTAL" },
    ShareVariables { number: "CIRCLE_NODE_INDEX", numbering: Numbering::From(0), count: "CIRCLE_NODE_TOTAL" },
    ShareVariables {
        number: "BUILDKITE_PARALLEL_JOB",
        numbering: Numbering::From(0),
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
    let (first, step) = match names.numbering {
        Numbering::From(first) => (first, 1),
        Numbering::By(first, step) => (number(first)?, if variable(step).is_some() { number(step)?.max(1) } else { 1 }),
    };
    let (number, n) = (number(names.number)?, number(names.count)?);
    match number.checked_sub(first) {
        Some(distance) if distance % step == 0 && distance / step < n => Ok(CorpusShare { k: distance / step + 1, n }),
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
        let stepped = |number| {
            let of_task = [("SLURM_ARRAY_TASK_ID", number), ("SLURM_ARRAY_TASK_STEP", "2")];
            share(&[&slurm[1..], &of_task].concat())
        };
        assert_eq!(["5", "7", "11"].map(stepped), [1, 2, 4].map(|k| Ok(CorpusShare { k, n: 4 })));
        assert!(stepped("6").is_err_and(|error| error.contains("which is no share of 4")));
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
