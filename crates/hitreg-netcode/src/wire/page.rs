//! A server message under construction: its header, and submessages as long as they fit.

use super::Wrapping16;
use super::bit_counts::SnapshotBitCounts;
use super::bits::BitWriter;
use super::frame::FrameInfo;
use super::header::{COUNT_AT_BYTE, ServerHeader};
use crate::packet::Snapshot;
use hitreg_log::units::{Micros, SnapshotSeq};

/// The most submessages in a message.
pub(super) const SUBMESSAGES_MAX: u32 = 255;

/// A message under construction.
pub(super) struct DatagramPage {
    pub(super) out: BitWriter,
    count: u32,
    limit_bits: usize,
    bit_counts: SnapshotBitCounts,
}

impl DatagramPage {
    /// Starts a message with its header and `FRAME`, coded relative to the snapshot `from`.
    pub(super) fn begin<B>(
        snapshot: &Snapshot<B>,
        from: Option<(SnapshotSeq, Micros)>,
        limit_bits: usize,
    ) -> DatagramPage {
        let frame = Wrapping16::of(snapshot.frame.tick.0);
        let header = ServerHeader { frame, ack: Wrapping16::of(snapshot.ack.0), calibration_ms: snapshot.helper_ms };
        let info = FrameInfo {
            seq: snapshot.seq,
            tick: snapshot.frame.tick,
            ack: snapshot.ack,
            server_time: snapshot.frame.server_time,
            choked: snapshot.choked,
        };
        let mut out = header.begin();
        info.put(&mut out, from);
        let bit_counts = SnapshotBitCounts { headers: out.len_bits() as u32, ..SnapshotBitCounts::default() };
        DatagramPage { out, count: 1, limit_bits, bit_counts }
    }

    /// Writes submessages if they fit and leave `reserved` bits free. `write` returns its bits by purpose.
    pub(super) fn put(
        &mut self,
        submessages: u32,
        reserved: usize,
        write: impl FnOnce(&mut BitWriter) -> SnapshotBitCounts,
    ) -> bool {
        let before = self.out.len_bits();
        if self.count + submessages > SUBMESSAGES_MAX {
            return false;
        }
        let bit_counts = write(&mut self.out);
        let fits = self.out.len_bits() + reserved <= self.limit_bits;
        if fits {
            self.count += submessages;
            self.bit_counts.add(&bit_counts);
        } else {
            self.out.cut_to(before);
        }
        fits
    }

    /// Writes one submessage that is not about an entity's state, under the same condition.
    pub(super) fn put_event(&mut self, reserved: usize, write: impl FnOnce(&mut BitWriter)) -> bool {
        self.put(1, reserved, |out| {
            let before = out.len_bits();
            write(out);
            SnapshotBitCounts { events: (out.len_bits() - before) as u32, ..SnapshotBitCounts::default() }
        })
    }

    /// Returns the number of free bits.
    pub(super) fn left(&self) -> usize {
        self.limit_bits.saturating_sub(self.out.len_bits())
    }

    /// Returns the message and its bits by purpose.
    pub(super) fn finish(mut self) -> (Vec<u8>, SnapshotBitCounts) {
        self.out.replace_byte(COUNT_AT_BYTE, self.count as u8);
        let bits = self.out.len_bits();
        self.bit_counts.headers += (bits.next_multiple_of(8) - bits) as u32;
        (self.out.into_bytes(), self.bit_counts)
    }
}
