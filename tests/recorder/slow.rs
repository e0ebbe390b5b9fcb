//! A disk that is slow, full or stuck: calls never block, and the log marks its gaps.

use std::io::{Error, ErrorKind, Write};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use hitreg::log::WriteError;
use hitreg::record::{GapCause, Session};
use hitreg::recorder::{FinishError, PushError, Recorder, RecorderOptions, Stream};
use hitreg::store::read_log;
use hitreg::units::{Micros, PlayerId, Tick};

use super::records::SharedMemory;
use super::{about, at, tick, usercmd};

/// A writer that blocks until a message arrives.
struct StuckWriter(SharedMemory, Receiver<()>, bool);

impl Write for StuckWriter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // The header passes: a recorder starts when it is written.
        if std::mem::replace(&mut self.2, true) {
            let _ = self.1.recv();
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn records_of(session: &Session) -> u64 {
    let of_players = session.players.iter().map(|player| player.frames.len()).sum::<usize>();
    (of_players + session.ticks.len() + session.states.len()) as u64
}

/// 60 s of session while the disk is stuck, which is far more than the queue holds.
#[test]
fn a_stuck_disk_drops_chunks_and_marks_a_gap() {
    let (memory, (answer, asked)) = (SharedMemory::default(), channel());
    let recorder =
        Recorder::to(StuckWriter(memory.clone(), asked, false), about(16), RecorderOptions::default()).unwrap();
    let mut stream = recorder.stream();
    for number in 1..=6000 {
        // A blocking call would never return.
        tick(&mut stream, 16, number).unwrap();
        // The session runs a hundred times faster than real time, but no faster than the thread empties the streams.
        if number % 50 == 0 {
            std::thread::sleep(Duration::from_millis(12));
        }
    }
    std::thread::sleep(Duration::from_millis(100));
    let dropped = recorder.written().dropped_chunks;
    assert!(dropped > 0, "a disk that does not answer takes everything");
    drop(answer);
    let written = recorder.finish().unwrap();
    assert_eq!(written.lost_records, 0, "the streams were emptied all the time");
    let session = memory.session();
    assert_eq!(written.records, records_of(&session), "records of dropped chunks do not count");
    let gap = session.gaps.first().expect("a gap for the dropped records");
    assert_eq!((gap.why, gap.player), (GapCause::Overrun, None));
    // Every tick outside the gaps is in the log, and no tick inside them.
    let inside = |number: u32| session.gaps.iter().any(|gap| gap.from < at(number) && at(number) < gap.to);
    let expected: Vec<u32> = (1..=6000).filter(|number| !inside(*number)).collect();
    assert!(expected.len() < 5999, "{} ticks outside of the gaps", expected.len());
    assert!(session.ticks.iter().map(|tick| tick.tick.0).eq(expected.iter().copied()), "{:?}", session.gaps);
    assert!(session.players[3].frames.iter().map(|frame| frame.command.seq.0).eq(expected));
}

/// Pushes 20,000 usercmds in a burst, and returns the numbers of those that were refused.
fn burst(stream: &mut Stream) -> Vec<u32> {
    let refused =
        (1..=20_000).filter(|seq| match stream.usercmd(PlayerId(0), Micros(10 * i64::from(*seq)), usercmd(*seq)) {
            Ok(()) => false,
            Err(PushError::Overrun) => true,
            Err(other) => panic!("{other}"),
        });
    let refused: Vec<u32> = refused.collect();
    assert!(!refused.is_empty(), "the recorder emptied 64 places as fast as they were filled");
    refused
}

/// Checks that gaps have the times of the refused usercmds, and none after them.
fn check_gaps(session: &Session, refused: &[u32]) {
    for seq in refused {
        let at = Micros(10 * i64::from(*seq));
        assert!(session.gaps.iter().any(|gap| gap.from < at && at < gap.to), "no gap has {seq}: {:?}", session.gaps);
    }
    let end = session.gaps.iter().map(|gap| gap.to).max().expect("a gap");
    assert!(end <= Micros(200_001), "{:?}", session.gaps);
    assert!(session.gaps.iter().all(|gap| (gap.why, gap.player) == (GapCause::Overrun, None)));
}

fn small_ring() -> RecorderOptions {
    let mut options = RecorderOptions::default();
    options.ring = 64;
    options
}

/// A burst exceeds a stream's ring: the rest is refused, and gaps have its times, though the stream pushes nothing more.
#[test]
fn a_full_stream_refuses_records_and_marks_a_gap() {
    let memory = SharedMemory::default();
    let recorder = Recorder::to(memory.clone(), about(1), small_ring()).unwrap();
    let refused = burst(&mut recorder.stream());
    recorder.stream().tick(Tick(1), Micros::from_s(3), None).unwrap();
    let written = recorder.finish().unwrap();
    let lost = refused.len() as u64;
    assert_eq!((written.lost_records, written.records), (lost, 20_001 - lost));
    let session = memory.session();
    assert_eq!(session.players[0].frames.len() as u64, 20_000 - lost);
    check_gaps(&session, &refused);
}

/// A flight recording has the gaps of records that were lost before it was saved.
#[test]
fn a_saved_flight_recording_has_the_gaps() {
    let recorder = Recorder::keep_last(Micros::from_s(60), about(1), small_ring()).unwrap();
    let mut server = recorder.stream();
    tick(&mut server, 1, 1).unwrap();
    let refused = burst(&mut recorder.stream());
    for number in 2..=300 {
        tick(&mut server, 0, number).unwrap();
        std::thread::sleep(Duration::from_micros(100));
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("saved.hitlog");
    recorder.save(&path).unwrap();
    check_gaps(&read_log(&path).unwrap(), &refused);
}

/// A writer that accepts a number of bytes and then fails.
struct FullSink(usize, SharedMemory);

impl Write for FullSink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(Error::from(ErrorKind::StorageFull))?;
        self.1.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_stops_the_recording_with_an_error() {
    let memory = SharedMemory::default();
    let mut recorder = Recorder::to(FullSink(4096, memory.clone()), about(1), RecorderOptions::default()).unwrap();
    let mut stream = recorder.stream();
    let stopped = (1..=100_000).find_map(|number| {
        if number % 100 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        tick(&mut stream, 1, number).err().filter(|error| *error != PushError::Overrun)
    });
    assert_eq!(stopped, Some(PushError::Stopped));
    let error = recorder.end().unwrap_err().to_string();
    assert!(error.starts_with("cannot be written: "), "{error}");
    // Queued chunks that were never written do not count.
    assert_eq!(recorder.written().records, records_of(&memory.recovered()));
    // Later calls do not claim that the log is complete.
    let later = [recorder.end(), recorder.finish().map(drop)];
    assert!(later.iter().all(|ended| matches!(ended, Err(FinishError::Write(WriteError::Poisoned)))), "{later:?}");
}
