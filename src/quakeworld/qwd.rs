//! Reads a `.qwd`, the demo that a QuakeWorld client records: frames of usercmds, packets and sequence numbers.

use super::bytes::Bytes;
use super::demo::{Demo, DemoEnd, Level, SentCommand, Server, ServerPacket, Span};
use super::error::QwdError;
use super::svc::Client;
use super::usercmd::{UserCmd, wire_angle_degrees};

/// Clients with extensions accept packets of up to this many bytes; the original limit was 1450.
const LONGEST_PACKET: usize = 65_536;
/// The sequence number of a packet outside of any connection.
const CONNECTIONLESS: u32 = u32::MAX;
/// The top bit of the sequence words says something about reliable messages.
const SEQUENCE_BITS: u32 = 0x7fff_ffff;
/// Recordings from the connect on have no sequence frame; they hold one command that was never sent.
const FIRST_SEQ_WITHOUT_FRAME: i32 = -1;

impl Demo {
    /// Reads a whole demo.
    ///
    /// # Errors
    ///
    /// Another protocol, a spectator's or a proxy's recording, a file that ends inside a frame, any message that
    /// cannot be followed: each with the offset of the byte where it shows.
    pub fn parse(data: &[u8]) -> Result<Demo, QwdError> {
        let mut import = Import::default();
        let mut bytes = Bytes::new(data, 0);
        while !bytes.is_empty() && import.end.is_none() {
            import.read_frame(&mut bytes)?;
        }
        import.finish()
    }
}

#[derive(Default)]
struct Import {
    client: Client,
    levels: Vec<Level>,
    commands: Vec<SentCommand>,
    packets: Vec<ServerPacket>,
    others: Vec<super::OtherPlayer>,
    movers: Vec<super::Mover>,
    events: Vec<super::Event>,
    move_vars: Vec<super::MoveVars>,
    next_seq: Option<i32>,
    end: Option<DemoEnd>,
}

impl Import {
    fn read_frame(&mut self, bytes: &mut Bytes<'_>) -> Result<(), QwdError> {
        let time_offset = bytes.offset();
        let time_s = bytes.f32()?;
        let offset = bytes.offset();
        let kind = bytes.u8()?;
        if !time_s.is_finite() {
            return Err(QwdError::NotFinite { offset: time_offset, what: "a frame's time" });
        }
        match kind {
            0 => self.read_command(time_s, bytes),
            1 => self.read_packet(time_s, bytes),
            2 => {
                self.next_seq = Some(bytes.i32()?);
                bytes.i32()?;
                Ok(())
            }
            kind => Err(QwdError::UnknownFrame { offset, kind }),
        }
    }

    fn read_command(&mut self, time_s: f32, bytes: &mut Bytes<'_>) -> Result<(), QwdError> {
        let msec = bytes.u8()?;
        bytes.take(3)?;
        let angles = bytes.vec3()?.map(wire_angle_degrees);
        let (forward, side, up) = (bytes.i16()?, bytes.i16()?, bytes.i16()?);
        let (buttons, impulse) = (bytes.u8()?, bytes.u8()?);
        bytes.vec3()?; // the view angles once more
        let seq = self.next_seq.unwrap_or(FIRST_SEQ_WITHOUT_FRAME);
        self.next_seq = Some(seq.wrapping_add(1));
        let cmd = UserCmd { msec, angles, forward, side, up, buttons, impulse };
        self.commands.push(SentCommand { seq, time_s, cmd });
        Ok(())
    }

    fn read_packet(&mut self, time_s: f32, bytes: &mut Bytes<'_>) -> Result<(), QwdError> {
        let offset = bytes.offset();
        let length = bytes.i32()?;
        let len = usize::try_from(length).ok().filter(|&len| len <= LONGEST_PACKET);
        let Some(len) = len else {
            return Err(QwdError::PacketLength { offset, length, limit: LONGEST_PACKET });
        };
        let base = bytes.offset();
        let mut packet = Bytes::new(bytes.take(len)?, base);
        if len < 8 {
            return Ok(()); // an acknowledgement outside of any connection, or nothing at all
        }
        let (sequence, ack) = (packet.u32()?, packet.u32()?);
        if sequence == CONNECTIONLESS {
            return Ok(());
        }
        let sequence = sequence & SEQUENCE_BITS;
        // A stale packet is dropped unread, as clients do. One with the same number is not: a recording that starts in
        // play repeats the last packet of the state that it writes first.
        if self.packets.last().is_some_and(|last| sequence < last.sequence) {
            return Ok(());
        }
        self.take_packet(time_s, sequence, (ack & SEQUENCE_BITS) as i32, &mut packet)
    }

    fn take_packet(&mut self, time_s: f32, sequence: u32, ack: i32, packet: &mut Bytes<'_>) -> Result<(), QwdError> {
        let told = self.client.read_packet(packet, sequence)?;
        self.note_level(told.levels_started);
        let others = extend(&mut self.others, told.others);
        let movers = extend(&mut self.movers, self.client.entities.movers(sequence));
        let events = extend(&mut self.events, told.events);
        let own = told.own;
        let move_vars = self.current_move_vars();
        let level = self.levels.len().saturating_sub(1) as u16;
        self.packets.push(ServerPacket { time_s, sequence, level, ack, own, others, movers, events, move_vars });
        if told.disconnected {
            self.end = Some(DemoEnd::Disconnect);
        }
        Ok(())
    }

    fn note_level(&mut self, started: u32) {
        if let Some(level) = self.client.level {
            if started > 0 && self.levels.len() < usize::from(u16::MAX) {
                self.levels.push(Level { map: String::new(), player: level.player });
            }
            if let Some(last) = self.levels.last_mut().filter(|last| last.map.is_empty()) {
                last.map.clone_from(&self.client.map);
            }
        }
    }

    fn current_move_vars(&mut self) -> u16 {
        let now = self.client.level.map_or(super::MoveVars::default(), |level| level.move_vars);
        if self.move_vars.last() != Some(&now) && self.move_vars.len() < usize::from(u16::MAX) {
            self.move_vars.push(now);
        }
        (self.move_vars.len() - 1) as u16
    }

    fn finish(self) -> Result<Demo, QwdError> {
        let level = self.client.level.ok_or(QwdError::Nothing { missing: "server data" })?;
        if self.commands.is_empty() {
            return Err(QwdError::Nothing { missing: "usercmds" });
        }
        let info = &self.client.info;
        let server = Server {
            version: info.version.clone(),
            extensions: level.extensions,
            server_extensions: info.server_extensions(),
            dialect: info.dialect(),
        };
        let Import { levels, commands, packets, others, movers, events, move_vars, .. } = self;
        let end = self.end.unwrap_or(DemoEnd::File);
        Ok(Demo { server, levels, commands, packets, others, movers, events, move_vars, end })
    }
}

fn extend<T>(list: &mut Vec<T>, more: impl IntoIterator<Item = T>) -> Span {
    let start = list.len() as u32;
    list.extend(more);
    Span { start, end: list.len() as u32 }
}
