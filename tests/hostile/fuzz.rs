//! Runs readers on seeded mutants of inputs and checks their limits.
#![expect(clippy::disallowed_methods, reason = "the environment selects longer runs")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hitreg::rng::Rng;
use hitreg::units::Seed;

/// The number of mutants without `HITREG_FUZZ_SECONDS`.
const MUTANTS: u64 = 300;
/// The limit of a reader's allocations in all: a constant, and a multiple of its input. Memory measures work here,
/// because a reader that allocates nothing ends with its input.
const WORK: usize = 512 << 20;
const WORK_PER_BYTE: usize = 4096;
/// The limit of a reader's memory at a time, in addition to this program's. A reader above it ends the program.
const MEMORY_BYTES_MAX: usize = 1 << 30;
/// The CPU time limit of one input, hundreds of times the usual time.
const CPU_TIME_MAX: Duration = Duration::from_secs(10);
/// The limits of saved inputs: bytes of one, and number for each target.
const SAVED_BYTES_MAX: usize = 2048;
const SAVED_INPUTS_MAX: usize = 40;
/// One target runs at a time, because allocations are counted for the whole program.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// Reads an input and returns the outcome in a few words. Inputs with equal outcomes count as alike.
pub(crate) type ReadResult<'a> = &'a mut dyn FnMut(&[u8]) -> String;

/// Runs the saved inputs, then mutants of them and of `good`. With `HITREG_FUZZ_KEEP`, saves inputs with new outcomes.
pub(crate) fn target(name: &str, good: Vec<Vec<u8>>, mutate: fn(&[u8], &mut Rng) -> Vec<u8>, read: ReadResult<'_>) {
    target_within(name, WORK, good, mutate, read);
}

/// Runs a target with another constant limit of allocations.
pub(crate) fn target_within(
    name: &str,
    work: usize,
    good: Vec<Vec<u8>>,
    mutate: fn(&[u8], &mut Rng) -> Vec<u8>,
    read: ReadResult<'_>,
) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // Tests of a crate also use this file, from another folder.
    let mut above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().map(|folder| folder.join("fixtures/fuzz"));
    let folder = above.find(|folder| folder.is_dir()).expect("the fixtures are at the top").join(name);
    let mut kept = match std::fs::read_dir(&folder) {
        Ok(entries) => entries.map(|entry| entry.expect("an entry").path()).collect::<Vec<_>>(),
        Err(_) => Vec::new(),
    };
    kept.sort();
    let mut corpus: Vec<Vec<u8>> = kept.iter().map(|path| std::fs::read(path).expect("readable")).collect();
    corpus.extend(good);
    let number = |name| std::env::var(name).ok().map(|value| value.parse::<u64>().expect("a number"));
    let (first, seconds) = (number("HITREG_FUZZ_SEED").unwrap_or(0), number("HITREG_FUZZ_SECONDS"));
    let found = std::env::temp_dir().join(format!("hitreg-{name}-{}", std::process::id()));
    let mut tried = |bytes: &[u8], which: &str| {
        if work > WORK && seconds.is_some() {
            // An input that exhausts memory ends this program, so it is saved before it is read.
            std::fs::write(&found, bytes).expect("written");
        }
        if seconds.is_some() {
            let most = crate::MEMORY.allocated() + MEMORY_BYTES_MAX.max(work / 4);
            crate::MEMORY.set_limit(most).expect("it takes less now");
        }
        let (before, began) = (crate::MEMORY.total_allocated(), thread_cpu_time());
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| read(bytes)));
        let (asked, took) = (crate::MEMORY.total_allocated() - before, thread_cpu_time() - began);
        assert!(took < CPU_TIME_MAX, "{name}, {which}: {took:?} of a processor for {} bytes", bytes.len());
        match read {
            Ok(output) if asked <= work + WORK_PER_BYTE * bytes.len() => without_details(&output),
            _ => {
                std::fs::write(&found, bytes).expect("written");
                panic!("{name}, {which}: {} MiB for {} bytes; it is in {}", asked >> 20, bytes.len(), found.display());
            }
        }
    };
    let mut come_to = BTreeSet::new();
    for (index, bytes) in corpus.iter().enumerate() {
        come_to.insert(tried(bytes, &format!("kept {index}")));
    }
    let keeps = number("HITREG_FUZZ_KEEP").is_some();
    let started = process_cpu_time();
    let goes_on =
        |seed: u64| seconds.map_or(seed < first + MUTANTS, |most| (process_cpu_time() - started).as_secs() < most);
    let mut seed = first;
    while goes_on(seed) {
        let mut rng = Rng::new(Seed(seed), 0x6675_7a7a);
        let bytes = mutate(&corpus[rng.below(corpus.len() as u64) as usize], &mut rng);
        let output = tried(&bytes, &format!("HITREG_FUZZ_SEED={seed}"));
        if keeps && bytes.len() <= SAVED_BYTES_MAX && come_to.len() < SAVED_INPUTS_MAX && come_to.insert(output) {
            std::fs::create_dir_all(&folder).expect("a folder");
            std::fs::write(folder.join(format!("{:03}", come_to.len())), &bytes).expect("written");
            corpus.push(bytes);
        }
        seed += 1;
    }
    let (tried, seconds) = (seed - first, (process_cpu_time() - started).as_secs());
    eprintln!("{name}: {tried} mutants of {} inputs in {seconds} s, with {} outcomes", corpus.len(), come_to.len());
}

/// The CPU time of this thread.
#[cfg(unix)]
fn thread_cpu_time() -> Duration {
    cpu_time(rustix::time::ClockId::ThreadCPUTime)
}

/// The CPU time of this process. Other work on the machine does not count.
#[cfg(unix)]
fn process_cpu_time() -> Duration {
    cpu_time(rustix::time::ClockId::ProcessCPUTime)
}

#[cfg(unix)]
fn cpu_time(clock: rustix::time::ClockId) -> Duration {
    let time = rustix::time::clock_gettime(clock);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

#[cfg(not(unix))]
fn thread_cpu_time() -> Duration {
    process_cpu_time()
}

#[cfg(not(unix))]
fn process_cpu_time() -> Duration {
    static BEGAN: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    BEGAN.elapsed()
}

/// The outcome without numbers and names, which always differ.
fn without_details(output: &str) -> String {
    let mut words = String::new();
    for (index, part) in output.split(['`', '"']).enumerate() {
        // Every second part is between quotes.
        if index % 2 == 0 {
            words.extend(part.chars().filter(|letter| letter.is_ascii_alphabetic() || *letter == ' '));
        }
    }
    words.chars().take(120).collect()
}

/// The text of an error, or a fixed text for success.
pub(crate) fn outcome<T, E: std::fmt::Display>(read: Result<T, E>) -> String {
    read.map_or_else(|error| error.to_string(), |_| "good".to_owned())
}
