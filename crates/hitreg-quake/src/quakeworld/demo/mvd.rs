//! Reads an `.mvd`, the demo that a server records. It consists of blocks of messages to all, some or one of the
//! clients, each with the milliseconds since the previous block. All blocks of one time form one packet here.
//!
//! MVDSV adds hidden blocks, addressed to no client, with damage events and the usercmds that it ran.

use super::gather::DemoCollector;
use super::players::{PLAYERS_MAX, read_slot};
use super::svc::{PacketContent, kind};
use super::wire::{Bytes, read_length, read_usercmd};
use super::{DemoCut, DemoEvent, DemoHit, ExecutedUsercmd, QuakeWorldDemo, QwdError, QwdResult, RecordedBy};

/// Kinds of blocks. A server's demo has no client usercmds.
const SEQUENCES: u8 = 2;
const TO_SOME: u8 = 3;
const KINDS: std::ops::RangeInclusive<u8> = 1..=6;
const KIND_BITS: u8 = 7;
/// Kinds of hidden blocks: a usercmd that ran, and damage.
const HIDDEN_USERCMD: u16 = 1;
const HIDDEN_DAMAGE: u16 = 7;

/// Reads the demo, if it is a server's: its first block begins with the server data.
pub(super) fn parse(data: &[u8]) -> Option<QwdResult<QuakeWorldDemo>> {
    let mut first = Bytes::new(data, 0);
    let block = MvdBlock::read(&mut first).ok()?;
    let begins = block.body.first() == Some(&kind::SERVER_DATA);
    begins.then(|| read(data))
}

/// One block of the file.
struct MvdBlock<'a> {
    ms: u8,
    /// Whether the block is addressed to no client.
    hidden: bool,
    body: &'a [u8],
    /// File offset of the body.
    base: usize,
}

impl<'a> MvdBlock<'a> {
    fn read(bytes: &mut Bytes<'a>) -> QwdResult<MvdBlock<'a>> {
        let ms = bytes.u8()?;
        let offset = bytes.offset();
        let kind = bytes.u8()? & KIND_BITS;
        if !KINDS.contains(&kind) {
            let problem = format!("{kind} is not a kind of block of a server's demo: the demo is damaged");
            return Err(QwdError::invalid(offset, problem));
        }
        if kind == SEQUENCES {
            bytes.take(8)?;
            return Ok(MvdBlock { ms, hidden: false, body: &[], base: bytes.offset() });
        }
        let hidden = kind == TO_SOME && bytes.u32()? == 0;
        let len = read_length(bytes)?;
        let base = bytes.offset();
        Ok(MvdBlock { ms, hidden, body: bytes.take(len)?, base })
    }
}

fn read(data: &[u8]) -> QwdResult<QuakeWorldDemo> {
    let mut reader = MvdReader::default();
    reader.collector.client.recorded_by = RecordedBy::Server;
    let mut bytes = Bytes::new(data, 0);
    while !bytes.is_empty() && !reader.moment.disconnected {
        let offset = bytes.offset();
        let cut = DemoCut { offset, bytes: data.len() - offset };
        let block = match MvdBlock::read(&mut bytes) {
            Err(QwdError::Truncated { .. }) => {
                reader.collector.demo.cut = Some(cut);
                break;
            }
            block => block,
        };
        if let Err(error) = block.and_then(|block| reader.read_block(&block)) {
            reader.collector.end_at_damage(error, cut)?;
            reader.moment = PacketContent::default();
            break;
        }
    }
    if reader.moment.disconnected && !bytes.is_empty() {
        reader.collector.demo.after_end = Some(bytes.offset());
    }
    reader.end_moment(data.len())?;
    reader.collector.finish()
}

#[derive(Default)]
struct MvdReader {
    collector: DemoCollector,
    /// Milliseconds since the start.
    now_ms: u64,
    sequence: u32,
    moment: PacketContent,
}

impl MvdReader {
    fn read_block(&mut self, block: &MvdBlock<'_>) -> QwdResult {
        if block.ms > 0 {
            self.end_moment(block.base)?;
            self.now_ms += u64::from(block.ms);
        }
        let mut body = Bytes::new(block.body, block.base);
        if block.hidden {
            return self.read_hidden(&mut body);
        }
        let content = self.collector.client.read_packet(&mut body, self.sequence)?;
        let moment = &mut self.moment;
        moment.others.extend(content.others);
        // Other events are meant for single players.
        let to_all = |event: &DemoEvent| {
            matches!(event, DemoEvent::Effect { .. } | DemoEvent::Intermission | DemoEvent::Pause(_))
        };
        moment.events.extend(content.events.into_iter().filter(to_all));
        moment.levels_started += content.levels_started;
        moment.disconnected |= content.disconnected;
        Ok(())
    }

    fn end_moment(&mut self, offset: usize) -> QwdResult {
        let content = std::mem::take(&mut self.moment);
        self.moment.disconnected = content.disconnected;
        let time_s = (self.now_ms as f64 / 1000.0) as f32;
        self.collector.add(time_s, self.sequence, 0, content, offset)?;
        self.sequence = self.sequence.saturating_add(1);
        Ok(())
    }

    /// Returns the index that the current packet will have.
    fn packet_index(&self) -> u32 {
        self.collector.demo.packets.len() as u32
    }

    fn read_hidden(&mut self, bytes: &mut Bytes<'_>) -> QwdResult {
        while !bytes.is_empty() {
            let len = read_length(bytes)?;
            let kind = bytes.u16()?;
            let base = bytes.offset();
            let mut body = Bytes::new(bytes.take(len)?, base);
            match kind {
                HIDDEN_USERCMD => self.read_executed(&mut body)?,
                HIDDEN_DAMAGE => self.read_hit(&mut body)?,
                _ => {} // what players chose, statistics, comments: nothing that is drawn or hit
            }
        }
        Ok(())
    }

    fn read_executed(&mut self, bytes: &mut Bytes<'_>) -> QwdResult {
        let slot = read_slot(bytes)?;
        bytes.u8()?; // how many before it were lost
        let msec = bytes.u8()?;
        let cmd = read_usercmd(bytes, msec)?;
        self.collector.demo.executed.push(ExecutedUsercmd { slot, packet: self.packet_index(), cmd });
        Ok(())
    }

    fn read_hit(&mut self, bytes: &mut Bytes<'_>) -> QwdResult {
        bytes.u16()?; // by what
        // The entities from 1 on are the players by their slots.
        let slot = |entity: u16| (1..=PLAYERS_MAX.into()).contains(&entity).then(|| (entity - 1) as u8);
        let (attacker, victim, damage) = (slot(bytes.u16()?), slot(bytes.u16()?), bytes.u16()?);
        if let Some(victim) = victim {
            self.collector.demo.hits.push(DemoHit { packet: self.packet_index(), attacker, victim, damage });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quakeworld::tests::ServerDemoWriter;
    use crate::quakeworld::{Mover, OtherPlayer, QuakeWorldUsercmd};

    fn small() -> ServerDemoWriter {
        let mut demo = ServerDemoWriter::default();
        demo.signon();
        for n in 0..5u8 {
            demo.moment(20);
            demo.player(2, [f32::from(n) * 2.0, 0.0, 24.0], 90.0);
            demo.player(0, [100.0, 0.0, 24.0], 0.0);
            demo.lift(n);
        }
        demo.hit(1, 3, 40);
        demo.ran(2, &QuakeWorldUsercmd { msec: 13, forward: 400, ..QuakeWorldUsercmd::default() });
        demo
    }

    #[test]
    fn a_servers_demo_is_read_into_the_same_types() {
        let demo = QuakeWorldDemo::parse(&small().bytes).expect("good");
        assert_eq!(
            (demo.recorded_by, demo.levels[0].player, demo.levels[0].map.as_str()),
            (RecordedBy::Server, 3, "maps/small.bsp")
        );
        let last = demo.packets.last().expect("packets");
        assert!((last.time_s - 0.1).abs() < 1e-6, "{}", last.time_s);
        let others = &last.others;
        let seen = |other: &OtherPlayer| (other.slot, other.origin[0], other.velocity[0], other.angles[1]);
        assert_eq!(others.iter().map(seen).collect::<Vec<_>>(), [(0, 100.0, 0, 0.0), (2, 8.0, 100, 90.0)]);
        assert_eq!(last.movers, [Mover { model: 1, origin: [0.0, 0.0, 4.0] }]);
        let index = demo.packets.len() as u32 - 1;
        assert_eq!(demo.hits, [DemoHit { packet: index, attacker: Some(0), victim: 2, damage: 40 }]);
        assert_eq!(
            demo.executed.iter().map(|usercmd| (usercmd.slot, usercmd.packet, usercmd.cmd.forward)).collect::<Vec<_>>(),
            [(2, index, 400)]
        );
    }

    #[test]
    fn a_truncated_or_damaged_demo_never_panics() {
        let whole = small().bytes;
        let all = QuakeWorldDemo::parse(&whole).expect("good").packets.len();
        let mut cuts = 0;
        for len in 0..whole.len() {
            if let Ok(demo) = QuakeWorldDemo::parse(&whole[..len]) {
                assert!(demo.packets.len() <= all);
                cuts += usize::from(demo.cut.is_some());
            }
        }
        assert!(cuts > 100, "{cuts}");
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bad = whole.clone();
                bad[at] ^= 1 << bit;
                let _ = QuakeWorldDemo::parse(&bad);
            }
        }
    }
}
