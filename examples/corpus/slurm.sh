#!/bin/bash
# Compares all logs of a shared folder under two settings, as a Slurm array of four shares:
#     sbatch slurm.sh /shared/logs /shared/results --b-set interpolation.lerp_ms=50
# A task that is started again continues. Repeat it with `scontrol requeue`: an array of one task, such as --array=3,
# judges all logs. Then: hitreg summary /shared/results
#SBATCH --job-name=hitreg-corpus
#SBATCH --array=1-4
#SBATCH --cpus-per-task=2
#SBATCH --mem=1G
#SBATCH --requeue
set -uo pipefail
logs=$1 results=$2
shift 2
line=$("${HITREG:-hitreg}" diff "$logs" "$@" --partition env --results "$results" --threads "${SLURM_CPUS_PER_TASK:-2}" --summary)
code=$?
# Without a line of verdicts, there was an error, or the share has no logs.
[ -z "$line" ] && exit "$code"
echo "$line"
# `hitreg summary` shows differences, untestable and broken logs. It cannot show the problems that the line counts: missing
# logs, unreadable folders, lost results.
case $line in *problem*) exit "$code" ;; esac
