//! Small generated demos for tests, as bytes.

use crate::quakeworld::movement::QuakeWorldUsercmd;

/// Writes a demo frame by frame.
#[derive(Default)]
pub(crate) struct DemoWriter {
    pub(crate) bytes: Vec<u8>,
}

impl DemoWriter {
    fn frame(&mut self, time_s: f32, kind: u8) {
        self.bytes.extend(time_s.to_le_bytes());
        self.bytes.push(kind);
    }

    /// Writes a frame of kind 2.
    pub(crate) fn sequences(&mut self, outgoing: i32) {
        self.frame(0.0, 2);
        self.bytes.extend(outgoing.to_le_bytes());
        self.bytes.extend((outgoing - 1).to_le_bytes());
    }

    /// Writes a frame of kind 0.
    pub(crate) fn command(&mut self, time_s: f32, cmd: &QuakeWorldUsercmd) {
        self.frame(time_s, 0);
        self.bytes.extend([cmd.msec, 0, 0, 0]);
        for angle in cmd.angles {
            self.bytes.extend(angle.to_le_bytes());
        }
        for speed in [cmd.forward, cmd.side, cmd.up] {
            self.bytes.extend(speed.to_le_bytes());
        }
        self.bytes.extend([cmd.buttons, cmd.impulse]);
        self.bytes.extend([0; 12]);
    }

    /// Writes a frame of kind 1.
    pub(crate) fn packet(&mut self, time_s: f32, sequence: u32, ack: u32, messages: &[u8]) {
        self.frame(time_s, 1);
        self.bytes.extend((messages.len() as i32 + 8).to_le_bytes());
        self.bytes.extend(sequence.to_le_bytes());
        self.bytes.extend(ack.to_le_bytes());
        self.bytes.extend(messages);
    }

    /// Writes server info, server data and model list of the small map as packet 1. The player has slot 3.
    pub(crate) fn signon(&mut self) {
        self.signon_with(&server_data(28, 3));
    }

    /// Writes the same packet with other server data.
    pub(crate) fn signon_with(&mut self, server_data: &[u8]) {
        self.signon_to("maps/small.bsp", server_data, 1);
    }

    /// Writes the same packet for a map, with a number.
    pub(crate) fn signon_to(&mut self, map: &str, server_data: &[u8], number: u32) {
        let mut messages = server_data.to_vec();
        messages.extend(stufftext("fullserverinfo \"\\*version\\2.30\\fpd\\0\\hostname\\x\"\n"));
        messages.extend([45, 0]);
        messages.extend([map.as_bytes(), b"\0*1\0*2\0\0\0"].concat());
        self.packet(0.0, number, number, &messages);
    }
}

/// Returns a message with text for the client's console.
pub(crate) fn stufftext(text: &str) -> Vec<u8> {
    [&[9], text.as_bytes(), &[0]].concat()
}

/// Returns the message that starts a level for a client.
pub(crate) fn server_data(version: i32, player: u8) -> Vec<u8> {
    server_data_with(version, &[player])
}

/// Returns the message that starts a level; `seat` is a client's slot or a server's time.
fn server_data_with(version: i32, seat: &[u8]) -> Vec<u8> {
    let mut out = vec![11];
    out.extend(version.to_le_bytes());
    out.extend(1i32.to_le_bytes());
    out.extend(b"qw\0");
    out.extend(seat);
    out.extend(b"Small\0");
    for value in [800.0f32, 100.0, 320.0, 500.0, 10.0, 0.7, 10.0, 6.0, 1.0, 1.0] {
        out.extend(value.to_le_bytes());
    }
    out
}

/// Returns the message about the player's own state, truncated to the wire as by id's servers.
pub(crate) fn own_state(origin: [f32; 3], velocity: [f32; 3]) -> Vec<u8> {
    let flags: u16 = 1 << 2 | 1 << 3 | 1 << 4;
    let mut out = vec![42, 3];
    out.extend(flags.to_le_bytes());
    for axis in origin {
        out.extend(((axis * 8.0) as i16).to_le_bytes());
    }
    out.push(0);
    for axis in velocity {
        out.extend((axis as i16).to_le_bytes());
    }
    out
}

/// Writes a server's demo (`.mvd`) block by block.
#[derive(Default)]
pub(crate) struct ServerDemoWriter {
    pub(crate) bytes: Vec<u8>,
    /// Milliseconds for the next block.
    ms: u8,
    first: bool,
}

impl ServerDemoWriter {
    const TO_SOME: u8 = 3;
    const TO_ALL: u8 = 6;

    fn block(&mut self, kind: u8, body: &[u8]) {
        self.bytes.extend([std::mem::take(&mut self.ms), kind]);
        if kind == Self::TO_SOME {
            self.bytes.extend(0u32.to_le_bytes());
        }
        self.bytes.extend((body.len() as u32).to_le_bytes());
        self.bytes.extend(body);
    }

    /// Writes server data, server info and model list of the small map.
    pub(crate) fn signon(&mut self) {
        let mut messages = server_data_with(28, &0f32.to_le_bytes());
        messages.extend(stufftext("fullserverinfo \"\\*version\\MVDSV 1.20-dev\\*z_ext\\511\"\n"));
        messages.extend([45, 0]);
        messages.extend(b"maps/small.bsp\0*1\0*2\0\0\0");
        self.block(Self::TO_ALL, &messages);
        self.first = true;
    }

    /// Starts a moment this many milliseconds later.
    pub(crate) fn moment(&mut self, ms: u8) {
        self.ms = ms;
    }

    /// Writes a player's position and view.
    pub(crate) fn player(&mut self, slot: u8, origin: [f32; 3], yaw: f32) {
        let flags: u16 = 1 | 2 | 4 | 1 << 4;
        let mut out = vec![42, slot];
        out.extend(flags.to_le_bytes());
        out.push(0);
        for axis in origin {
            out.extend(((axis * 8.0) as i16).to_le_bytes());
        }
        out.extend(((yaw * (65_536.0 / 360.0)) as i32 as i16).to_le_bytes());
        self.block(Self::TO_ALL, &out);
    }

    /// Writes the lift at this height in units: first in full, then as a delta.
    pub(crate) fn lift(&mut self, height: u8) {
        let kind: &[u8] = if std::mem::take(&mut self.first) { &[47] } else { &[48, 77] };
        self.block(Self::TO_ALL, &[kind, &[40, 0x88, 4, 2, height * 8, 0, 0, 0]].concat());
    }

    fn hidden(&mut self, kind: u16, body: &[u8]) {
        let block = [&(body.len() as u32).to_le_bytes()[..], &kind.to_le_bytes(), body].concat();
        self.block(Self::TO_SOME, &block);
    }

    /// Writes that entity `attacker` hurt entity `victim`.
    pub(crate) fn hit(&mut self, attacker: u16, victim: u16, damage: u16) {
        self.hidden(7, &[5, attacker, victim, damage].map(u16::to_le_bytes).concat());
    }

    /// Writes a usercmd that the server ran.
    pub(crate) fn ran(&mut self, slot: u8, cmd: &QuakeWorldUsercmd) {
        let mut body = vec![slot, 0, cmd.msec];
        body.extend(cmd.angles.map(f32::to_le_bytes).concat());
        body.extend([cmd.forward, cmd.side, cmd.up].map(i16::to_le_bytes).concat());
        body.extend([cmd.buttons, cmd.impulse]);
        self.hidden(1, &body);
    }
}
