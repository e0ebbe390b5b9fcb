//! Batched transfer of records to a writer thread. The session's thread only hands over batches. The writer thread lays
//! out, compresses and writes them.

use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

use super::RecordSink;
use hitreg_log::record::Record;

/// The number of records in a batch.
const TOGETHER: usize = 512;
/// The most batches that may wait; beyond this, the session's thread blocks.
const WAITING: usize = 64;

/// The end of the thread that makes records. Dropping it hands over the last batch.
#[derive(Debug)]
pub struct RecordBatcher {
    batch: Vec<Record>,
    full: SyncSender<Vec<Record>>,
    used: Receiver<Vec<Record>>,
}

/// The end of the thread that takes records.
#[derive(Debug)]
pub struct BatchReceiver {
    full: Receiver<Vec<Record>>,
    used: Sender<Vec<Record>>,
}

impl RecordBatcher {
    /// Creates both ends.
    pub fn new() -> (RecordBatcher, BatchReceiver) {
        let ((full, to_take), (used, to_fill)) = (sync_channel(WAITING), channel());
        let batch = Vec::with_capacity(TOGETHER);
        (RecordBatcher { batch, full, used: to_fill }, BatchReceiver { full: to_take, used })
    }

    #[cold]
    fn hand_over(&mut self) {
        let empty = self.used.try_recv().unwrap_or_else(|_| Vec::with_capacity(TOGETHER));
        // A receiver that has ended reports its own error.
        let _ = self.full.send(std::mem::replace(&mut self.batch, empty));
    }
}

impl RecordSink for RecordBatcher {
    #[inline]
    fn record(&mut self, record: Record) {
        self.batch.push(record);
        if self.batch.len() == TOGETHER {
            self.hand_over();
        }
    }
}

impl Drop for RecordBatcher {
    fn drop(&mut self) {
        self.hand_over();
    }
}

impl BatchReceiver {
    /// Passes every record to `take`, in order, until there are no more or `take` fails.
    ///
    /// # Errors
    /// Those of `take`.
    pub fn each<E>(self, mut take: impl FnMut(&Record) -> Result<(), E>) -> Result<(), E> {
        for mut batch in self.full {
            batch.iter().try_for_each(&mut take)?;
            batch.clear();
            // The sender may have ended, and then needs no empty batch.
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
    fn records_keep_their_order() {
        for count in [0, 1, TOGETHER as u32, 100_000] {
            let (mut batches, handed) = RecordBatcher::new();
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
    fn a_stopped_receiver_stops_no_sender() {
        let (mut batches, handed) = RecordBatcher::new();
        let taking = std::thread::spawn(move || handed.each(|_| Err("full")));
        (0..200_000).for_each(|number| batches.record(tick(number)));
        assert_eq!(taking.join().expect("it does not panic"), Err("full"));
    }
}
