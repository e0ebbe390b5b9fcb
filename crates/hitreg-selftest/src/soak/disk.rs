//! Disk faults of the recorder: a kill while recording, a full disk, a truncated file, a flipped bit.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use crate::soak::SoakProperty::{Crash, Flipped, FullDisk, Log, Torn};
use crate::soak::check::{CheckResult, broken};
use crate::soak::play::SoakSession;
use crate::soak::{BrokenProperty, SoakCoverage, SoakProperty};
use hitreg_log::log::{self, LogWriter, WriterOptions};
use hitreg_log::record::{EventTime, Record, Session, each_stream};
use hitreg_log::rng::Rng;
use hitreg_log::units::Micros;

/// The zstd level for headers. A log's usual level would take a third of the time here.
const QUICK: i32 = 1;

/// The recorder's promise: the most session time that is unwritten at any moment.
const UNWRITTEN_TIME_MAX: Micros = Micros::from_s(1);

/// The approximate length of a log's end after its last records.
const END_BYTES: usize = 128;

/// A disk with limited room. A write that does not fit stores as much as fits and fails.
#[derive(Clone)]
struct Disk {
    bytes: Arc<Mutex<Vec<u8>>>,
    room: usize,
}

impl Disk {
    fn of(room: usize) -> Disk {
        Disk { bytes: Arc::default(), room }
    }

    fn content(&self) -> Vec<u8> {
        self.bytes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Write for Disk {
    fn write(&mut self, from: &[u8]) -> std::io::Result<usize> {
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = from.len().min(self.room - bytes.len());
        if fits == 0 && !from.is_empty() {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        bytes.extend(&from[..fits]);
        Ok(fits)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Records a session in several ways; all but one of them fail.
pub(super) fn check(played: &SoakSession, rng: &mut Rng, exercised: &mut SoakCoverage) -> CheckResult {
    let tape = &played.tape;
    let whole = recorded(played, tape.len(), Disk::of(usize::MAX), true).0;
    let read = log::read_session(&whole[..]).map_err(|error| broken(Log, error.to_string()))?;
    same(Log, &read, &played.session, "the log as it was recorded")?;
    let packed = log::write_session(
        Vec::new(),
        &played.session,
        WriterOptions { level: 1, header_level: QUICK, ..WriterOptions::whole() },
    );
    let packed = packed.map_err(|error| broken(Log, error.to_string()))?;
    let read = log::read_session(&packed[..]).map_err(|error| broken(Log, error.to_string()))?;
    same(Log, &read, &played.session, "the log that was written at once")?;
    exercised.held(Log);

    let pushed = rng.below(tape.len() as u64 + 1) as usize;
    let (left, _) = recorded(played, pushed, Disk::of(usize::MAX), false);
    let lost = lost_of(Crash, played, pushed, &left)?;
    if lost > UNWRITTEN_TIME_MAX {
        return Err(broken(Crash, format!("killed after {pushed} records, it lost {} ms", lost.as_ms_f64())));
    }
    exercised.lost_us_most = exercised.lost_us_most.max(lost.0);
    exercised.held(Crash);

    let room = rng.below(whole.len() as u64) as usize;
    let (left, taken) = recorded(played, tape.len(), Disk::of(room), true);
    if left.len() > room {
        return Err(broken(FullDisk, format!("a disk of {room} bytes has {}", left.len())));
    }
    match log::recover(&left) {
        Ok(_) => {
            // The failed chunk is lost, and also the records pushed until the failure was noticed.
            let lost = lost_of(FullDisk, played, taken, &left)?;
            if lost > UNWRITTEN_TIME_MAX {
                return Err(broken(FullDisk, format!("with room for {room} bytes it lost {} ms", lost.as_ms_f64())));
            }
            exercised.held(FullDisk);
        }
        Err(_) if is_within_header(played, room) => {}
        Err(error) => return Err(broken(FullDisk, format!("with room for {room} bytes: {error}"))),
    }
    torn(played, &whole, rng, exercised)?;
    flipped(played, &whole, rng, exercised)
}

/// Returns whether a log of this size has an incomplete header. Such a log cannot be recovered.
fn is_within_header(played: &SoakSession, bytes: usize) -> bool {
    bytes < recorded(played, 0, Disk::of(usize::MAX), false).0.len()
}

/// Records the first `count` records. Returns the contents of the disk and the number of records taken.
fn recorded(played: &SoakSession, count: usize, disk: Disk, ends: bool) -> (Vec<u8>, usize) {
    let options = WriterOptions { header_level: QUICK, ..WriterOptions::live() };
    let Ok(mut writer) = LogWriter::new(disk.clone(), &played.session.header, options) else {
        return (disk.content(), 0);
    };
    for (index, record) in played.tape[..count].iter().enumerate() {
        if writer.push(record.clone()).is_err() {
            return (disk.content(), index);
        }
    }
    if ends {
        // A full disk shows in its contents.
        let _ = writer.finish();
    }
    (disk.content(), count)
}

/// Returns how much session time of the first `count` records a log lacks. An error means that the log holds anything
/// other than a prefix of them.
fn lost_of(property: SoakProperty, played: &SoakSession, count: usize, left: &[u8]) -> Result<Micros, BrokenProperty> {
    let (found, damage) = log::recover(left).map_err(|error| broken(property, error.to_string()))?;
    let (prefix, records) = prefix(played, &found);
    same(property, &found, &prefix, "what was recovered")?;
    if records < count && damage.is_none() {
        return Err(broken(property, format!("{} records are lost, and nobody says so", count - records)));
    }
    let times = || played.tape[..count].iter().map(|record| record.when());
    let at = |when| if let EventTime::At(at) = when { Some(at) } else { None };
    let (first_lost, last) = (times().skip(records).find_map(at), times().filter_map(at).max());
    Ok(first_lost.zip(last).map_or(Micros::ZERO, |(first, last)| last - first))
}

/// Returns the session of as many first records as `of` has in total, and their number.
fn prefix(played: &SoakSession, of: &Session) -> (Session, usize) {
    let players = of.players.iter().flat_map(|player| player.streams());
    let records = players.chain(of.streams()).map(|stream| stream.len()).sum::<usize>() + of.states.len();
    let mut prefix = Session::new(played.session.header.clone());
    for record in &played.tape[..records.min(played.tape.len())] {
        let pushed = prefix.push(Record::clone(record));
        debug_assert_eq!(pushed, Ok(()), "it was recorded under this header");
    }
    prefix.put_in_order();
    (prefix, records)
}

fn torn(played: &SoakSession, whole: &[u8], rng: &mut Rng, exercised: &mut SoakCoverage) -> CheckResult {
    let cut = rng.below(whole.len() as u64) as usize;
    let found = match log::read_prefix(&whole[..cut]) {
        Ok((found, torn)) => {
            let said =
                torn.ok_or_else(|| broken(Torn, format!("cut at {cut} of {}, it reads as whole", whole.len())))?;
            if said.at_offset + said.lost_bytes != cut as u64 {
                return Err(broken(Torn, format!("cut at {cut}, it says {said:?}")));
            }
            found
        }
        Err(_) if is_within_header(played, cut) => return Ok(()),
        Err(error) => return Err(broken(Torn, format!("cut at {cut}: {error}"))),
    };
    let (prefix, _) = prefix(played, &found);
    same(Torn, &found, &prefix, "what is before the cut")?;
    let (recovered, damage) = log::recover(&whole[..cut]).map_err(|error| broken(Torn, error.to_string()))?;
    same(Torn, &recovered, &found, "what was recovered of what was cut")?;
    if damage.torn.is_none() {
        return Err(broken(Torn, format!("cut at {cut} of {}, it recovers without a word", whole.len())));
    }
    exercised.held(Torn);
    Ok(())
}

fn flipped(played: &SoakSession, whole: &[u8], rng: &mut Rng, exercised: &mut SoakCoverage) -> CheckResult {
    let mut bytes = whole.to_vec();
    let (mut place, bit) = (rng.below(bytes.len() as u64) as usize, rng.below(8));
    // The end of a log has many fields in a few bytes.
    if rng.chance(0.4) {
        place = bytes.len() - 1 - place % bytes.len().min(END_BYTES);
    }
    bytes[place] ^= 1 << bit;
    if log::read_session(&bytes[..]).is_ok() {
        return Err(broken(Flipped, format!("bit {bit} of byte {place} flipped, and it reads as before")));
    }
    exercised.held(Flipped);
    match log::recover(&bytes) {
        Ok((_, damage)) if damage.is_none() => {
            Err(broken(Flipped, format!("bit {bit} of byte {place} flipped, and recover finds nothing")))
        }
        Ok((found, _)) if found.ticks.len() > played.session.ticks.len() => {
            Err(broken(Flipped, format!("bit {bit} of byte {place} flipped, and recover finds more than there was")))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

fn same(property: SoakProperty, found: &Session, expected: &Session, what: &str) -> CheckResult {
    match found == expected {
        true => Ok(()),
        false => Err(broken(property, format!("{what} is not what was recorded: {}", unlike(found, expected)))),
    }
}

/// Returns the first kind of record in which two sessions differ.
pub(super) fn unlike(a: &Session, b: &Session) -> String {
    if a.header != b.header {
        return "the header".to_owned();
    }
    for (player, (a, b)) in a.players.iter().zip(&b.players).enumerate() {
        for ((name, _), (x, y)) in hitreg_log::record::OF_PLAYERS.iter().zip(a.streams().into_iter().zip(b.streams())) {
            if x.len() != y.len() {
                return format!("{} {name} of player {player} instead of {}", x.len(), y.len());
            }
        }
        macro_rules! first_unlike {
            (
                players { $( $(#[$doc:meta])* $by:ident $variant:ident $field:ident $type:ident; )* }
                session { $( $(#[$own_doc:meta])* $own:ident $own_field:ident $own_type:ident; )* }
            ) => { $(
                if let Some((a, b)) = a.$field.iter().zip(&b.$field).find(|(a, b)| a != b) {
                    return format!("{} of player {player}: {a:?} instead of {b:?}", stringify!($field));
                }
            )* };
        }
        each_stream!(first_unlike);
    }
    if a.ticks != b.ticks {
        return format!("{} ticks and {}", a.ticks.len(), b.ticks.len());
    }
    format!("{} states and {}", a.states.len(), b.states.len())
}
