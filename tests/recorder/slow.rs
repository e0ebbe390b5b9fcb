//! A disk that is slow, full, or does not answer: nobody waits for it, and the log says what it lacks.

use std::io::{Error, ErrorKind, Write};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use hitreg::record::GapCause;
use hitreg::recorder::{PushError, Recorder, RecorderOptions};
use hitreg::units::{Micros, PlayerId};

use super::kept::SharedMemory;
use super::{about, at, tick, usercmd};

/// Writes nothing before it is told to.
struct Stuck(SharedMemory, Receiver<()>, bool);

impl Write for Stuck {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        // The header goes through: a recorder begins when it is written.
        if std::mem::replace(&mut self.2, true) {
            let _ = self.1.recv();
        }
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// 60 s of session while the disk does not answer: far more than may wait.
#[test]
fn when_the_disk_cannot_keep_up_whole_chunks_are_dropped_and_a_gap_says_so() {
    let (memory, (answer, asked)) = (SharedMemory::default(), channel());
    let recorder = Recorder::to(Stuck(memory.clone(), asked, false), about(16), RecorderOptions::default()).unwrap();
    let mut stream = recorder.stream();
    for number in 1..=6000 {
        // Who waited for this disk would wait for ever.
        tick(&mut stream, 16, number).unwrap();
        // The session runs a hundred times faster than real, but no faster than the streams are emptied.
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
    let gap = session.gaps.first().expect("a gap for what was dropped");
    assert_eq!((gap.why, gap.player), (GapCause::Overrun, None));
    // Outside of the gaps every tick is there, and inside of them none.
    let inside = |number: u32| session.gaps.iter().any(|gap| gap.from < at(number) && at(number) < gap.to);
    let expected: Vec<u32> = (1..=6000).filter(|number| !inside(*number)).collect();
    assert!(expected.len() < 5999, "{} ticks outside of the gaps", expected.len());
    assert!(session.ticks.iter().map(|tick| tick.tick.0).eq(expected.iter().copied()), "{:?}", session.gaps);
    assert!(session.players[3].frames.iter().map(|frame| frame.command.seq.0).eq(expected));
}

/// More at once than a ring holds: the rest is refused, and a gap says from when to when.
#[test]
fn when_a_stream_is_full_records_are_refused_and_a_gap_says_so() {
    let memory = SharedMemory::default();
    let mut options = RecorderOptions::default();
    options.ring = 64;
    let recorder = Recorder::to(memory.clone(), about(1), options).unwrap();
    let mut stream = recorder.stream();
    let mut refused = 0;
    for seq in 1..=20_000 {
        match stream.usercmd(PlayerId(0), Micros(10 * i64::from(seq)), usercmd(seq)) {
            Ok(()) => {}
            Err(PushError::Overrun) => refused += 1,
            Err(other) => panic!("{other}"),
        }
    }
    assert!(refused > 0, "the recorder emptied 64 places as fast as they were filled");
    std::thread::sleep(Duration::from_millis(50));
    stream.usercmd(PlayerId(0), Micros(200_010), usercmd(20_001)).unwrap();
    let written = recorder.finish().unwrap();
    assert_eq!((written.lost_records, written.records), (refused, 20_001 - refused));
    let session = memory.session();
    let frames = &session.players[0].frames;
    assert_eq!(frames.len() as u64, written.records);
    for pair in frames.windows(2).filter(|pair| pair[1].command.seq.0 != pair[0].command.seq.0 + 1) {
        let told = session.gaps.iter().any(|gap| gap.from <= pair[0].at && pair[1].at <= gap.to);
        assert!(told, "nothing says what is missing after {:?}", pair[0].command.seq);
    }
}

/// Takes so many bytes.
struct FullSink(usize);

impl Write for FullSink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(Error::from(ErrorKind::StorageFull))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_stops_the_recording_and_the_end_says_why() {
    let recorder = Recorder::to(FullSink(4096), about(1), RecorderOptions::default()).unwrap();
    let mut stream = recorder.stream();
    let stopped = (1..=100_000).find_map(|number| {
        if number % 100 == 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        tick(&mut stream, 1, number).err().filter(|error| *error != PushError::Overrun)
    });
    assert_eq!(stopped, Some(PushError::Stopped));
    let error = recorder.finish().unwrap_err().to_string();
    assert!(error.starts_with("cannot be written: "), "{error}");
}
