//! Reads a `.qwd`, the demo that a QuakeWorld client records: frames of usercmds, packets and sequence numbers.

use super::gather::DemoCollector;
use super::svc::kind;
use super::wire::{Bytes, PACKET_BYTES_MAX, read_length, read_usercmd};
use super::{DemoCut, DemoEnd, QuakeWorldDemo, QwdError, QwdResult, SentCommand};
use crate::clock::ClockRepair;
use crate::quakeworld::{LATEST_TIME_S, micros};
use hitreg_log::units::Micros;

/// The kinds of frames (`dem_*` in QuakeWorld's client).
mod frame_kind {
    pub(super) const USERCMD: u8 = 0;
    pub(super) const PACKET: u8 = 1;
    pub(super) const SEQUENCES: u8 = 2;
}
/// Bytes of a usercmd with its padding, and of the view angles after it.
const USERCMD_BYTES: usize = 36;
/// Bytes of the two numbers in a frame of sequences.
const SEQUENCES_BYTES: usize = 8;
/// Sequence number of a packet outside of any connection.
const CONNECTIONLESS: u32 = u32::MAX;
/// Mask of the sequence numbers; the top bit concerns reliable messages.
const SEQUENCE_BITS: u32 = 0x7fff_ffff;
/// First usercmd number of recordings that start at the connect. They have no sequence frame, and their first command
/// was never sent.
const FIRST_SEQ_WITHOUT_FRAME: i32 = -1;
/// How far an ack may be ahead of the usercmds in a whole demo. At the connect, real demos have 2.
const ACK_LEAD_MAX: i32 = 16;

impl QuakeWorldDemo {
    /// Reads a client's or a server's demo up to its end, its truncation, or damage after the start of play. It uses at most about ten times the memory
    /// of `data`, and 200 MiB.
    ///
    /// # Errors
    ///
    /// When the protocol is another, a proxy made the recording, or a message before the start of play is invalid. Each
    /// error has the byte offset.
    pub fn parse(data: &[u8]) -> QwdResult<QuakeWorldDemo> {
        if let Some(demo) = super::mvd::parse(data) {
            return demo;
        }
        let mut reader = QwdReader::default();
        let mut bytes = Bytes::new(data, 0);
        while !bytes.is_empty() && reader.collector.demo.end == DemoEnd::File {
            let offset = bytes.offset();
            let Some(length) = whole_frame_length(&data[offset..]) else {
                reader.collector.demo.cut = Some(DemoCut { offset, bytes: data.len() - offset });
                break;
            };
            reader.next_time =
                data[offset + length..].first_chunk().and_then(|time| valid_time(f32::from_le_bytes(*time)));
            let is_blank = data[offset..offset + length].iter().all(|byte| *byte == 0);
            let read = match is_blank && reader.collector.client.is_played {
                true => Err(QwdError::invalid(offset, "a frame of zeros: the file was not written to its end")),
                false => reader.read_frame(&mut bytes),
            };
            if let Err(error) = read {
                reader.collector.end_at_damage(error, DemoCut { offset, bytes: data.len() - offset })?;
                break;
            }
        }
        reader.collector.demo.repaired_times = reader.clock.repaired;
        if reader.collector.demo.end == DemoEnd::Disconnect && !bytes.is_empty() {
            reader.collector.demo.after_end = Some(bytes.offset());
        }
        reader.collector.finish()
    }
}

/// Returns a frame's time; `None` if it is impossible.
fn valid_time(time_s: f32) -> Option<Micros> {
    (-LATEST_TIME_S..=LATEST_TIME_S).contains(&time_s).then(|| Micros(micros(time_s)))
}

/// Returns the length of the frame that begins here, if it is complete. Unknown frames count as complete, so that their
/// reader reports them.
fn whole_frame_length(data: &[u8]) -> Option<usize> {
    const TIME_AND_KIND: usize = 5;
    let length = match *data.get(4)? {
        frame_kind::USERCMD => Some(USERCMD_BYTES),
        frame_kind::PACKET => data.get(TIME_AND_KIND..TIME_AND_KIND + 4).map(|length| {
            let length = i32::from_le_bytes([length[0], length[1], length[2], length[3]]);
            4 + usize::try_from(length).ok().filter(|length| *length <= PACKET_BYTES_MAX).unwrap_or(0)
        }),
        frame_kind::SEQUENCES => Some(SEQUENCES_BYTES),
        _ => Some(0),
    };
    length.map(|length| TIME_AND_KIND + length).filter(|length| data.len() >= *length)
}

#[derive(Default)]
struct QwdReader {
    collector: DemoCollector,
    next_seq: Option<i32>,
    clock: ClockRepair,
    /// The time of the next frame, if it is possible.
    next_time: Option<Micros>,
}

impl QwdReader {
    fn read_frame(&mut self, bytes: &mut Bytes<'_>) -> QwdResult {
        let time_offset = bytes.offset();
        let mut time_s = bytes.f32()?;
        let offset = bytes.offset();
        let kind = bytes.u8()?;
        if !time_s.is_finite() {
            return Err(QwdError::not_finite(time_offset, "a frame's time"));
        }
        // An impossible time is an error of the reader.
        if let Some(recorded) = valid_time(time_s) {
            let repaired = self.clock.repair(recorded, self.next_time);
            if repaired != recorded {
                time_s = repaired.as_s_f64() as f32;
            }
        }
        match kind {
            frame_kind::USERCMD => self.read_command(time_s, bytes),
            frame_kind::PACKET => self.read_packet(time_s, bytes),
            frame_kind::SEQUENCES => {
                self.next_seq = Some(bytes.i32()?);
                bytes.i32()?;
                Ok(())
            }
            kind => {
                let kinds = "0 usercmd, 1 packet, 2 sequences";
                let guess = "this is not a client demo, or it is damaged";
                Err(QwdError::invalid(offset, format!("{kind} is not a kind of frame ({kinds}): {guess}")))
            }
        }
    }

    fn read_command(&mut self, time_s: f32, bytes: &mut Bytes<'_>) -> QwdResult {
        let msec = bytes.u8()?;
        bytes.take(3)?;
        let cmd = read_usercmd(bytes, msec)?;
        bytes.vec3()?; // the view angles once more
        let seq = self.next_seq.unwrap_or(FIRST_SEQ_WITHOUT_FRAME);
        self.next_seq = Some(seq.wrapping_add(1));
        self.collector.demo.commands.push(SentCommand { seq, time_s, cmd });
        Ok(())
    }

    fn read_packet(&mut self, time_s: f32, bytes: &mut Bytes<'_>) -> QwdResult {
        let len = read_length(bytes)?;
        let base = bytes.offset();
        let mut packet = Bytes::new(bytes.take(len)?, base);
        if len < 8 {
            return Ok(()); // an acknowledgement outside of any connection, or nothing at all
        }
        let sequence = packet.u32()?;
        if sequence == CONNECTIONLESS {
            // A client that stops recording writes the end of the demo outside of its connection.
            if packet.u8()? == kind::DISCONNECT {
                self.collector.demo.end = DemoEnd::Disconnect;
            }
            return Ok(());
        }
        let (sequence, ack) = (sequence & SEQUENCE_BITS, packet.u32()?);
        // Stale packets are skipped unread, as on clients. Packets with an equal number are not: a recording that
        // starts in play repeats the last packet of its initial state.
        if self.collector.demo.packets.last().is_some_and(|last| sequence < last.sequence) {
            return Ok(());
        }
        let ack = (ack & SEQUENCE_BITS) as i32;
        let content = self.collector.client.read_packet(&mut packet, sequence)?;
        let is_play = content.own.is_some() || !content.others.is_empty();
        if is_play
            && self.collector.demo.commands.last().is_some_and(|newest| ack > newest.seq.saturating_add(ACK_LEAD_MAX))
        {
            self.collector.acks_ahead.push(self.collector.demo.packets.len() as u32);
        }
        self.collector.add(time_s, sequence, ack, content, packet.offset())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quakeworld::movement::wire_angle_degrees;
    use crate::quakeworld::tests::{DemoWriter, own_state, server_data, stufftext};
    use crate::quakeworld::{DemoEvent, DemoLevel, Mover, QuakeWorldUsercmd};
    use proptest::prelude::*;

    /// Returns a demo with one instance of everything that the reader keeps.
    fn small() -> Vec<u8> {
        let mut demo = DemoWriter::default();
        demo.signon();
        demo.sequences(10);
        demo.command(
            1.0,
            &QuakeWorldUsercmd { msec: 14, forward: 400, angles: [0.0, 90.0, 0.0], ..QuakeWorldUsercmd::default() },
        );
        demo.command(1.014, &QuakeWorldUsercmd { msec: 14, ..QuakeWorldUsercmd::default() });
        let mut messages = own_state([1.0, 2.0, 24.06], [320.9, -1.9, 0.0]);
        messages.extend([42, 5, 0, 0, 8, 0, 16, 0, 24, 0, 0]); // another player, without age and command
        messages.extend([47, 40, 0x80 | 0x08, 4, 2, 16, 0, 0, 0]); // lift 1, raised two units
        messages.extend([19, 5, 7, 8, 0, 8, 0, 8, 0]); // damage
        messages.extend([44, 3, 3, 0, 88]); // three choked; health 88
        messages.extend([49, 0, 0, 0x80, 0x43]); // highest speed 256
        demo.packet(1.04, 12, 11, &messages);
        demo.packet(1.05, 11, 11, &[0xff]); // stale, and dropped unread
        demo.packet(1.06, u32::MAX, 0, b"print");
        demo.packet(1.07, 13, 11, &[2, b'B', b'y', b'e', 0]);
        demo.bytes
    }

    /// A client that stops recording writes `EndOfDemo` outside of its connection.
    #[test]
    fn a_demo_ends_where_its_client_stopped_recording() {
        let mut demo = DemoWriter::default();
        demo.signon();
        demo.command(1.0, &QuakeWorldUsercmd::default());
        demo.packet(1.04, u32::MAX, u32::from_le_bytes(*b"\x02End"), b"OfDemo\0");
        let whole = QuakeWorldDemo::parse(&demo.bytes).expect("good");
        assert_eq!((whole.end, whole.after_end), (DemoEnd::Disconnect, None));
        let twice = QuakeWorldDemo::parse(&demo.bytes.repeat(2)).expect("good");
        assert_eq!(twice.after_end, Some(demo.bytes.len()));
        assert_eq!((twice.commands, twice.packets), (whole.commands, whole.packets));
    }

    #[test]
    fn a_demo_is_read_into_types() {
        let demo = QuakeWorldDemo::parse(&small()).expect("good");
        assert_eq!(demo.server.version, "2.30");
        assert_eq!(demo.levels, [DemoLevel { map: "maps/small.bsp".into(), player: 3 }]);
        assert_eq!(demo.commands.iter().map(|sent| sent.seq).collect::<Vec<_>>(), [10, 11]);
        assert_eq!((demo.commands[0].cmd.forward, demo.commands[0].cmd.angles[1]), (400, 90.0));
        assert_eq!(demo.end, DemoEnd::Disconnect);
        assert_eq!(demo.packets.iter().map(|packet| packet.sequence).collect::<Vec<_>>(), [1, 12, 13]);
        let packet = &demo.packets[1];
        let own = packet.own.expect("a state");
        assert_eq!((own.origin, own.velocity), ([1.0, 2.0, 24.0], [320, -1, 0]));
        assert_eq!(packet.others[0].origin, [1.0, 2.0, 3.0]);
        assert_eq!(packet.movers, [Mover { model: 1, origin: [0.0, 0.0, 2.0] }]);
        let hurt = DemoEvent::Damage { armor: 5, health: 7, from: [1.0; 3] };
        assert_eq!(packet.events, [hurt, DemoEvent::Choked(3), DemoEvent::Health(88)]);
        assert_eq!(demo.move_vars[usize::from(packet.move_vars)].max_speed, 256.0);
    }

    #[test]
    fn errors_of_imports_contain_the_reason() {
        let fail = |data: &[u8]| {
            let mut demo = DemoWriter::default();
            demo.signon_with(data);
            QuakeWorldDemo::parse(&demo.bytes).expect_err("unfit")
        };
        assert_eq!(
            fail(&server_data(29, 3)),
            QwdError::invalid(18, "protocol version 29; only QuakeWorld's 28 can be read")
        );
        let proxy = stufftext("fullserverinfo \"\\*version\\Qizmo 2.91\"\n");
        assert_eq!(fail(&proxy), QwdError::Proxy { offset: 18, name: "qizmo" });
        assert_eq!(fail(&[99]), QwdError::unknown_message(17, 99));
        assert_eq!(QuakeWorldDemo::parse(b""), Err(QwdError::Nothing { missing: "server data" }));
        let problem = |data: &[u8]| QuakeWorldDemo::parse(data).expect_err("unfit").to_string();
        let unknown = "byte 4: 9 is not a kind of frame (0 usercmd, 1 packet, 2 sequences): this is not a client demo, or it is damaged";
        assert_eq!(problem(&[0, 0, 0, 0, 9]), unknown);
        let long = [&[0, 0, 0, 0, 1][..], &100_000i32.to_le_bytes()].concat();
        assert_eq!(problem(&long), "byte 5: a packet of 100000 bytes; the protocol's limit is 65536");
    }

    #[test]
    fn a_truncated_demo_is_read_up_to_the_truncation() {
        let whole = small();
        let all = QuakeWorldDemo::parse(&whole).expect("good");
        assert_eq!(all.cut, None);
        let mut cut_at = 0;
        for len in 0..whole.len() {
            match QuakeWorldDemo::parse(&whole[..len]) {
                Ok(demo) => {
                    assert!(all.packets.starts_with(&demo.packets) && all.commands.starts_with(&demo.commands));
                    assert!(demo.packets.len() < all.packets.len(), "{len}");
                    let missing = demo.cut.map_or(0, |cut| cut.bytes);
                    assert_eq!(demo.cut.map_or(len, |cut| cut.offset), len - missing);
                    cut_at += usize::from(missing > 0);
                }
                Err(QwdError::Nothing { .. }) => {}
                Err(other) => panic!("cut at {len}: {other}"),
            }
        }
        assert!(cut_at > 100, "{cut_at}");
    }

    /// A crash leaves zeros at the end of a file.
    #[test]
    fn a_damaged_demo_is_read_up_to_the_damage_if_play_has_begun() {
        let mut demo = DemoWriter::default();
        demo.signon();
        demo.sequences(10);
        for number in 10..13 {
            demo.command(1.0, &QuakeWorldUsercmd { msec: 14, ..QuakeWorldUsercmd::default() });
            demo.packet(1.0, number + 1, number, &own_state([0.0; 3], [0.0; 3]));
        }
        let whole = demo.bytes.len();
        let read = |bytes: &[u8]| QuakeWorldDemo::parse(bytes).expect("up to the damage");
        let good = read(&demo.bytes);
        assert_eq!((good.packets.len(), good.commands.len(), &good.cut, &good.damage), (4, 3, &None, &None));
        let zeros = read(&[&demo.bytes[..], &[0; 100]].concat());
        let damage = QwdError::invalid(whole, "a frame of zeros: the file was not written to its end");
        assert_eq!((zeros.cut, zeros.damage), (Some(DemoCut { offset: whole, bytes: 100 }), Some(damage)));
        assert_eq!((zeros.packets, zeros.commands), (good.packets.clone(), good.commands.clone()));
        let frame = whole - (5 + 4 + 8 + own_state([0.0; 3], [0.0; 3]).len());
        demo.bytes[frame + 17..].fill(0);
        let within = read(&demo.bytes);
        assert_eq!(within.cut.map(|cut| cut.offset), Some(frame));
        assert_eq!((within.packets.len(), within.commands.len()), (3, 3));
        let mut early = DemoWriter::default();
        early.signon();
        early.command(1.0, &QuakeWorldUsercmd::default());
        early.packet(1.0, 12, 11, &[99]);
        assert!(matches!(QuakeWorldDemo::parse(&early.bytes), Err(QwdError::Invalid { .. })));
    }

    #[test]
    fn missing_frames_and_bytes_after_the_end_are_noticed() {
        let whole = QuakeWorldDemo::parse(&small()).expect("good");
        assert_eq!((whole.acks_ahead, whole.after_end), (0, None));
        let one = small();
        let two = QuakeWorldDemo::parse(&[&one[..], &one].concat()).expect("good");
        assert_eq!(two, QuakeWorldDemo { after_end: Some(one.len()), ..whole });
        let mut demo = DemoWriter::default();
        demo.signon();
        demo.sequences(10);
        for (seq, ack) in [(12, 10), (13, 11), (53, 51), (54, 52)] {
            demo.command(1.0, &QuakeWorldUsercmd::default());
            demo.packet(1.0, seq, ack, &own_state([0.0; 3], [0.0; 3]));
        }
        assert_eq!(QuakeWorldDemo::parse(&demo.bytes).expect("good").acks_ahead, 2);
    }

    #[test]
    fn a_damaged_time_is_replaced_and_counted() {
        let times = |times: [f32; 5]| {
            let mut demo = DemoWriter::default();
            demo.signon();
            demo.sequences(10);
            times.iter().for_each(|time_s| demo.command(*time_s, &QuakeWorldUsercmd::default()));
            let demo = QuakeWorldDemo::parse(&demo.bytes).expect("good");
            (demo.commands.iter().map(|sent| (sent.time_s * 100.0).round()).collect::<Vec<_>>(), demo.repaired_times)
        };
        assert_eq!(times([1.0, 1.01, 1.02, 1.03, 1.04]), (vec![100.0, 101.0, 102.0, 103.0, 104.0], 0));
        assert_eq!(times([1.0, 1.01, 9e5, 1.03, 1.04]), (vec![100.0, 101.0, 101.0, 103.0, 104.0], 1));
        assert_eq!(times([6.0, 6.01, 1.02, 1.03, 1.04]), (vec![600.0, 601.0, 601.0, 602.0, 603.0], 1));
    }

    #[test]
    fn a_message_that_ends_within_a_value_is_refused() {
        let mut demo = DemoWriter::default();
        demo.signon();
        demo.packet(1.0, 12, 11, &[42]);
        assert!(matches!(QuakeWorldDemo::parse(&demo.bytes), Err(QwdError::Truncated { .. })));
    }

    #[test]
    fn a_flipped_bit_never_panics() {
        let whole = small();
        for at in 0..whole.len() {
            for bit in 0..8 {
                let mut bad = whole.clone();
                bad[at] ^= 1 << bit;
                let _ = QuakeWorldDemo::parse(&bad);
            }
        }
    }

    proptest! {
        #[test]
        fn commands_come_back_as_sent(
            sent in prop::collection::vec((any::<u8>(), any::<i16>(), any::<i16>(), any::<u8>(), -180i32..180), 1..40),
            first in 1i32..1_000_000,
        ) {
            let mut demo = DemoWriter::default();
            demo.signon();
            demo.sequences(first);
            let cmds: Vec<QuakeWorldUsercmd> = sent
                .iter()
                .map(|&(msec, forward, side, buttons, yaw)| QuakeWorldUsercmd {
                    msec, forward, side, buttons,
                    angles: [0.0, wire_angle_degrees(yaw as f32), 0.0],
                    ..QuakeWorldUsercmd::default()
                })
                .collect();
            for cmd in &cmds {
                demo.command(0.0, cmd);
            }
            let read = QuakeWorldDemo::parse(&demo.bytes).expect("good");
            prop_assert_eq!(read.commands.iter().map(|s| s.cmd).collect::<Vec<_>>(), cmds);
            prop_assert_eq!(read.commands[0].seq, first);
        }

        #[test]
        fn any_messages_are_read_or_refused(messages in prop::collection::vec(any::<u8>(), 0..300)) {
            let mut demo = DemoWriter::default();
            demo.signon();
            demo.packet(0.0, 2, 2, &messages);
            let _ = QuakeWorldDemo::parse(&demo.bytes);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
            let _ = QuakeWorldDemo::parse(&bytes);
        }
    }
}
