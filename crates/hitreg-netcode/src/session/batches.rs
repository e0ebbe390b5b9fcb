//! Records on their way to another thread. Whoever runs a session hands them over many at a time and does nothing else with
//! them: laying out, compressing and writing are the other thread's.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use super::RecordSink;
use hitreg_log::record::Record;

/// So many records go together.
const TOGETHER: usize = 512;
/// So many batches may wait; then whoever makes records waits, too.
const WAITING: usize = 64;

/// The end of the thread that makes records. What it has not handed over goes when it is dropped.
#[derive(Debug)]
pub struct Batches {
    batch: Vec<Record>,
    full: SyncSender<Vec<Record>>,
    used: Receiver<Vec<Record>>,
}

/// The end of the thread that takes them.
#[derive(Debug)]
pub struct HandedOver {
    full: Receiver<Vec<Record>>,
    used: Sender<Vec<Record>>,
}

impl Batches {
    /// Both ends.
    pub fn new() -> (Batches, HandedOver) {
        let ((full, to_take), (used, to_fill)) = (sync_channel(WAITING), channel());
        let batch = Vec::with_capacity(TOGETHER);
        (Batches { batch, full, used: to_fill }, HandedOver { full: to_take, used })
    }

    #[cold]
    fn hand_over(&mut self) {
        let empty = self.used.try_recv().unwrap_or_else(|_| Vec::with_capacity(TOGETHER));
        // Whoever has stopped taking says why when it is asked.
        let _ = self.full.send(std::mem::replace(&mut self.batch, empty));
    }
}

impl RecordSink for Batches {
    #[inline]
    fn record(&mut self, record: Record) {
        self.batch.push(record);
        if self.batch.len() == TOGETHER {
            self.hand_over();
        }
    }
}

impl Drop for Batches {
    fn drop(&mut self) {
        self.hand_over();
    }
}

impl HandedOver {
    /// Takes every record in its order, until there are no more or `take` fails.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn each<E>(self, mut take: impl FnMut(&Record) -> Result<(), E>) -> Result<(), E> {
        for mut batch in self.full {
            batch.iter().try_for_each(&mut take)?;
            batch.clear();
            // Nobody fills it any more at the end.
            let _ = self.used.send(batch);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hitreg_log::record::TickRecord;
    use hitreg_log::units::{Micros, Tick};

    fn tick(number: u32) -> Record {
        Record::Tick(TickRecord { tick: Tick(number), at: Micros(number.into()), hash: None })
    }

    #[test]
    fn records_come_out_as_they_went_in() {
        for count in [0, 1, TOGETHER as u32, 100_000] {
            let (mut batches, handed) = Batches::new();
            let taking = std::thread::spawn(move || {
                let mut taken = Vec::new();
                handed.each::<()>(|record| {
                    taken.push(record.clone());
                    Ok(())
                })?;
                Ok::<_, ()>(taken)
            });
            (0..count).for_each(|number| batches.record(tick(number)));
            drop(batches);
            assert_eq!(taking.join().expect("it does not panic"), Ok((0..count).map(tick).collect()));
        }
    }

    #[test]
    fn whoever_stops_taking_stops_nobody() {
        let (mut batches, handed) = Batches::new();
        let taking = std::thread::spawn(move || handed.each(|_| Err("full")));
        (0..200_000).for_each(|number| batches.record(tick(number)));
        assert_eq!(taking.join().expect("it does not panic"), Err("full"));
    }
}
