//! What tries mutants of inputs, by seeds, and holds reading them to its bounds.
#![expect(clippy::disallowed_methods, reason = "whoever looks for more says so in the environment")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use hitreg::rng::Rng;
use hitreg::units::Seed;

/// How many mutants are tried without `HITREG_FUZZ_SECONDS`.
const MUTANTS: u64 = 300;
/// What reading may ask for in all: so much, and so many times its input. Work goes by memory here: what allocates nothing ends
/// with its input.
const WORK: usize = 512 << 20;
const WORK_PER_BYTE: usize = 4096;
/// What a reader may hold at once, beside what this program holds already; whoever wants more ends it.
const MOST_AT_ONCE: usize = 1 << 30;
/// No input is worth as much of a processor: hundreds of times what any takes.
const LONGEST: Duration = Duration::from_secs(10);
/// A kept input is no longer, and no target has more of them.
const KEPT_BYTES: usize = 2048;
const KEPT: usize = 40;
/// What one target asks for is counted alone.
static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// What reading came to, in a few words: inputs of which it is the same are alike.
pub(crate) type ReadResult<'a> = &'a mut dyn FnMut(&[u8]) -> String;

/// Tries what is kept, then mutants of it and of `good`. With `HITREG_FUZZ_KEEP`, those that come to what nothing kept
/// comes to are kept.
pub(crate) fn target(name: &str, good: Vec<Vec<u8>>, worsen: fn(&[u8], &mut Rng) -> Vec<u8>, read: ReadResult<'_>) {
    target_within(name, WORK, good, worsen, read);
}

/// The same of what may ask for so many bytes in all, besides what its input is worth.
pub(crate) fn target_within(
    name: &str,
    work: usize,
    good: Vec<Vec<u8>>,
    worsen: fn(&[u8], &mut Rng) -> Vec<u8>,
    read: ReadResult<'_>,
) {
    let _alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    // The tests of a crate use this file too.
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
            // What takes all memory ends this program, and nobody would know what it was.
            std::fs::write(&found, bytes).expect("written");
        }
        if seconds.is_some() {
            let most = crate::MEMORY.allocated() + MOST_AT_ONCE.max(work / 4);
            crate::MEMORY.set_limit(most).expect("it takes less now");
        }
        let (before, began) = (crate::MEMORY.total_allocated(), thought());
        let read = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| read(bytes)));
        let (asked, took) = (crate::MEMORY.total_allocated() - before, thought() - began);
        assert!(took < LONGEST, "{name}, {which}: {took:?} of a processor for {} bytes", bytes.len());
        match read {
            Ok(said) if asked <= work + WORK_PER_BYTE * bytes.len() => alike(&said),
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
    let started = worked();
    let goes_on = |seed: u64| seconds.map_or(seed < first + MUTANTS, |most| (worked() - started).as_secs() < most);
    let mut seed = first;
    while goes_on(seed) {
        let mut rng = Rng::new(Seed(seed), 0x6675_7a7a);
        let bytes = worsen(&corpus[rng.below(corpus.len() as u64) as usize], &mut rng);
        let said = tried(&bytes, &format!("HITREG_FUZZ_SEED={seed}"));
        if keeps && bytes.len() <= KEPT_BYTES && come_to.len() < KEPT && come_to.insert(said) {
            std::fs::create_dir_all(&folder).expect("a folder");
            std::fs::write(folder.join(format!("{:03}", come_to.len())), &bytes).expect("written");
            corpus.push(bytes);
        }
        seed += 1;
    }
    let (tried, seconds) = (seed - first, (worked() - started).as_secs());
    eprintln!("{name}: {tried} of {} kept or good in {seconds} s, which come to {}", corpus.len(), come_to.len());
}

/// How long this thread has had a processor.
#[cfg(unix)]
fn thought() -> Duration {
    spent(rustix::time::ClockId::ThreadCPUTime)
}

/// How long this process has had a processor, its threads together: other work beside it does not count.
#[cfg(unix)]
fn worked() -> Duration {
    spent(rustix::time::ClockId::ProcessCPUTime)
}

#[cfg(unix)]
fn spent(clock: rustix::time::ClockId) -> Duration {
    let time = rustix::time::clock_gettime(clock);
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}

#[cfg(not(unix))]
fn thought() -> Duration {
    worked()
}

#[cfg(not(unix))]
fn worked() -> Duration {
    static BEGAN: std::sync::LazyLock<std::time::Instant> = std::sync::LazyLock::new(std::time::Instant::now);
    BEGAN.elapsed()
}

/// Without numbers and names, which differ for ever.
fn alike(said: &str) -> String {
    let mut words = String::new();
    for (index, part) in said.split(['`', '"']).enumerate() {
        // Every second one is between quotes.
        if index % 2 == 0 {
            words.extend(part.chars().filter(|letter| letter.is_ascii_alphabetic() || *letter == ' '));
        }
    }
    words.chars().take(120).collect()
}

/// What an error says, or that there is none.
pub(crate) fn said<T, E: std::fmt::Display>(read: Result<T, E>) -> String {
    read.map_or_else(|error| error.to_string(), |_| "good".to_owned())
}
