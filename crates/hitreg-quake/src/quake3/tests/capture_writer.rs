//! Test tools: an encoder of protocol 71, and a small generated session as a capture.

use crate::quake3::protocol::{
    ENTITY, EntityCells, FieldEncoding, LIST_LENGTH, NO_ENTITY, NetField, PLAYER, PLAYER_CELLS, PLAYER_LISTS,
    PlayerCells, Quake3Usercmd, encode, hash_of_command, player, player_list,
};

/// Writes a capture, one connection after another.
pub(crate) struct CaptureWriter {
    pub(crate) capture: Vec<u8>,
    /// The same session as the client's demo, without the end marker.
    pub(crate) demo: Vec<u8>,
    at_ms: u64,
    client: u16,
    challenge: u32,
    up: u32,
    down: u32,
    feed: u32,
    /// Server commands so far.
    commands: Vec<Vec<u8>>,
    last: Option<ScriptedSnapshot>,
    /// Flags of the next snapshots.
    pub(crate) flags: u8,
}

/// A snapshot: its message, the own state, the other entities.
type ScriptedSnapshot = (u32, PlayerCells, Vec<(u16, EntityCells)>);

const FEED: u32 = 0x1234_5678;

impl CaptureWriter {
    pub(crate) fn new() -> CaptureWriter {
        let mut scribe = CaptureWriter {
            capture: b"UDPTRC1\n".to_vec(),
            demo: Vec::new(),
            at_ms: 1000,
            client: 0,
            challenge: 0,
            up: 1,
            down: 1,
            feed: FEED,
            commands: vec![Vec::new()],
            last: None,
            flags: 0,
        };
        scribe.connect(0, 0x9abc_def1);
        scribe
    }

    /// Begins a connection of the client with this number in the capture. Its messages and packets count from 1.
    pub(crate) fn connect(&mut self, client: u16, challenge: u32) {
        (self.client, self.challenge) = (client, challenge);
        (self.up, self.down, self.commands, self.last) = (1, 1, vec![Vec::new()], None);
        let response = format!("challengeResponse {} 7 71", challenge as i32);
        self.datagram(1, &[&[0xff; 4], response.as_bytes()].concat());
    }

    /// Advances the time.
    pub(crate) fn pass(&mut self, ms: u64) {
        self.at_ms += ms;
    }

    pub(crate) fn datagram(&mut self, direction: u8, bytes: &[u8]) {
        self.capture.extend((self.at_ms * 1_000_000).to_le_bytes());
        self.capture.push(direction);
        self.capture.extend(self.client.to_le_bytes());
        self.capture.extend((bytes.len() as u16).to_le_bytes());
        self.capture.extend(bytes);
    }

    /// Sends a server message, fragmented if it is long; returns its number.
    pub(crate) fn server(&mut self, message: &[u8]) -> u32 {
        let sequence = self.down;
        self.down += 1;
        self.demo.extend([sequence.to_le_bytes(), (message.len() as u32).to_le_bytes()].concat());
        self.demo.extend(message);
        let seal = self.challenge ^ sequence.wrapping_mul(self.challenge);
        if message.len() < 1300 {
            self.datagram(1, &[&sequence.to_le_bytes()[..], &seal.to_le_bytes(), message].concat());
            return sequence;
        }
        let mut start = 0;
        loop {
            let part = &message[start..message.len().min(start + 1300)];
            let head = [(sequence | 1 << 31).to_le_bytes(), seal.to_le_bytes()].concat();
            let span = [(start as u16).to_le_bytes(), (part.len() as u16).to_le_bytes()].concat();
            self.datagram(1, &[&head[..], &span, part].concat());
            start += part.len();
            if part.len() < 1300 {
                return sequence;
            }
        }
    }

    /// Sends the gamestate: settings, baselines and the client's number.
    pub(crate) fn gamestate(&mut self, client: u8, strings: &[(u16, &str)], baselines: &[(u16, EntityCells)]) -> u32 {
        let mut bits = HuffmanWriter::default();
        bits.long(0);
        bits.byte(2);
        bits.long(self.commands.len() as i32 - 1);
        for (index, text) in strings {
            bits.byte(3);
            bits.bits(u32::from(*index), 16);
            bits.string(text.as_bytes());
        }
        for (number, cells) in baselines {
            bits.byte(4);
            bits.bits(u32::from(*number), 10);
            write_entity(&mut bits, &NO_ENTITY, Some(cells));
        }
        bits.byte(8);
        bits.long(i32::from(client));
        bits.long(self.feed as i32);
        bits.byte(8);
        self.last = None;
        self.server(&bits.bytes)
    }

    /// Changes the level, which changes the key of usercmds.
    pub(crate) fn set_feed(&mut self, feed: u32) {
        self.feed = feed;
    }

    /// Queues a server command for the next snapshot.
    pub(crate) fn say(&mut self, command: &[u8]) {
        self.commands.push(command.to_vec());
    }

    /// Sends a snapshot relative to the previous one, with the newest server command. `baselines` are those of the
    /// gamestate.
    pub(crate) fn snapshot(
        &mut self,
        server_time: i32,
        own: PlayerCells,
        entities: &[(u16, EntityCells)],
        baselines: &[(u16, EntityCells)],
    ) -> u32 {
        let mut bits = HuffmanWriter::default();
        bits.long(0);
        if self.commands.len() > 1 {
            bits.byte(5);
            bits.long(self.commands.len() as i32 - 1);
            bits.string(self.commands.last().expect("a command"));
        }
        bits.byte(7);
        bits.long(server_time);
        bits.byte(self.last.as_ref().map_or(0, |(message, ..)| (self.down - message) as u8));
        bits.byte(self.flags);
        bits.byte(1);
        bits.byte(0xfe);
        let none = (0, [0; PLAYER_CELLS], Vec::new());
        let (_, player, old) = self.last.as_ref().unwrap_or(&none);
        write_player(&mut bits, player, &own);
        let all: hitreg_log::sorted::SortedSet<u16> = old.iter().chain(entities).map(|(number, _)| *number).collect();
        for number in all {
            let find = |list: &[(u16, EntityCells)]| list.iter().find(|(n, _)| *n == number).map(|(_, cells)| *cells);
            let (before, after) = (find(old), find(entities));
            if before == after {
                continue;
            }
            bits.bits(u32::from(number), 10);
            let from = before.or_else(|| find(baselines)).unwrap_or(NO_ENTITY);
            write_entity(&mut bits, &from, after.as_ref());
        }
        bits.bits(1023, 10);
        bits.byte(8);
        let message = self.server(&bits.bytes);
        self.last = Some((message, own, entities.to_vec()));
        message
    }

    /// Sends a client packet that acks a message and the newest server command.
    pub(crate) fn client(&mut self, message_ack: u32, commands: &[Quake3Usercmd]) {
        let mut bits = HuffmanWriter::default();
        bits.long(77);
        bits.long(message_ack as i32);
        bits.long(self.commands.len() as i32 - 1);
        bits.byte(4);
        bits.long(1);
        bits.string(b"userinfo \\rate\\25000");
        if !commands.is_empty() {
            bits.byte(2);
            bits.byte(commands.len() as u8);
            let key = self.feed ^ message_ack ^ hash_of_command(self.commands.last().expect("a command"));
            let mut from = Quake3Usercmd::default();
            for command in commands {
                write_usercmd(&mut bits, key, &from, command);
                from = *command;
            }
        }
        bits.byte(5);
        let seal = self.challenge ^ self.up.wrapping_mul(self.challenge);
        let head = [&self.up.to_le_bytes()[..], &[9, 9], &seal.to_le_bytes()].concat();
        self.up += 1;
        self.datagram(0, &[&head[..], &bits.bytes].concat());
    }
}

/// Returns a playerState with this command time and position.
pub(crate) fn own_state(command_time: i32, origin: [f32; 3]) -> PlayerCells {
    let mut cells = [0; PLAYER_CELLS];
    cells[player("command_time")] = command_time as u32;
    for (cell, value) in [player("origin.x"), player("origin.y"), player("origin.z")].into_iter().zip(origin) {
        cells[cell] = value.to_bits();
    }
    cells
}

pub(crate) fn write_usercmd(bits: &mut HuffmanWriter, key: u32, from: &Quake3Usercmd, to: &Quake3Usercmd) {
    let passed = to.server_time.wrapping_sub(from.server_time);
    let is_near = (0..256).contains(&passed);
    bits.flag(is_near);
    if is_near {
        bits.byte(passed as u8);
    } else {
        bits.long(to.server_time);
    }
    let is_same = Quake3Usercmd { server_time: to.server_time, ..*from } == *to;
    bits.flag(!is_same);
    if is_same {
        return;
    }
    let key = key ^ to.server_time as u32;
    let fields = |cmd: &Quake3Usercmd| {
        let [pitch, yaw, roll] = cmd.angles.map(u32::from);
        let speeds = [cmd.forward, cmd.right, cmd.up].map(|speed| u32::from(speed as u8));
        [pitch, yaw, roll, speeds[0], speeds[1], speeds[2], u32::from(cmd.buttons), u32::from(cmd.weapon)]
    };
    for ((old, new), width) in fields(from).into_iter().zip(fields(to)).zip([16, 16, 16, 8, 8, 8, 16, 8]) {
        bits.flag(old != new);
        if old != new {
            bits.bits((new ^ key) & ((1 << width) - 1), width);
        }
    }
}

pub(crate) fn write_player(bits: &mut HuffmanWriter, from: &PlayerCells, to: &PlayerCells) {
    write_fields(bits, &PLAYER, from, to, write_value);
    let is_same = |list: usize| {
        let range = player_list(list)..player_list(list) + LIST_LENGTH;
        from[range.clone()] == to[range]
    };
    let any = (0..PLAYER_LISTS.len()).any(|list| !is_same(list));
    bits.flag(any);
    for (list, (_, wire)) in PLAYER_LISTS.iter().enumerate().filter(|_| any) {
        bits.flag(!is_same(list));
        if is_same(list) {
            continue;
        }
        let changed = |place: &usize| from[player_list(list) + place] != to[player_list(list) + place];
        let mask = (0..LIST_LENGTH).filter(changed).fold(0, |mask, place| mask | 1 << place);
        bits.bits(mask, LIST_LENGTH as u32);
        (0..LIST_LENGTH).filter(changed).for_each(|place| write_value(bits, *wire, to[player_list(list) + place]));
    }
}

pub(crate) fn write_entity(bits: &mut HuffmanWriter, from: &EntityCells, to: Option<&EntityCells>) {
    bits.flag(to.is_none());
    let Some(to) = to else { return };
    bits.flag(from != to);
    if from != to {
        write_fields(bits, &ENTITY, from, to, |bits, wire, value| {
            bits.flag(value != 0);
            if value != 0 {
                write_value(bits, wire, value);
            }
        });
    }
}

fn write_fields(
    bits: &mut HuffmanWriter,
    fields: &[NetField],
    from: &[u32],
    to: &[u32],
    write: impl Fn(&mut HuffmanWriter, FieldEncoding, u32),
) {
    let last = (0..fields.len()).rev().find(|&field| from[field] != to[field]).map_or(0, |field| field + 1);
    bits.byte(last as u8);
    for (field, (_, wire, _)) in fields.iter().enumerate().take(last) {
        bits.flag(from[field] != to[field]);
        if from[field] != to[field] {
            write(bits, *wire, to[field]);
        }
    }
}

fn write_value(bits: &mut HuffmanWriter, wire: FieldEncoding, value: u32) {
    match wire {
        FieldEncoding::Bits(width) | FieldEncoding::Signed(width) => bits.bits(value & u32::MAX >> (32 - width), width),
        FieldEncoding::Float => {
            let float = f32::from_bits(value);
            let is_small =
                float.fract() == 0.0 && (-4096.0..4096.0).contains(&float) && (float as i32 as f32).to_bits() == value;
            bits.flag(!is_small);
            if is_small {
                bits.bits((float as i32 + 4096) as u32, 13);
            } else {
                bits.bits(value, 32);
            }
        }
    }
}

/// Restricts cells to values that the wire can carry.
pub(crate) fn cut_to_wire(fields: &[NetField], cells: &mut [u32]) {
    for ((_, wire, _), cell) in fields.iter().zip(cells) {
        *cell = match wire {
            FieldEncoding::Float => *cell,
            FieldEncoding::Bits(width) => *cell & u32::MAX >> (32 - width),
            FieldEncoding::Signed(width) => (((*cell << (32 - width)) as i32) >> (32 - width)) as u32,
        };
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct HuffmanWriter {
    pub(crate) bytes: Vec<u8>,
    bit: usize,
}

impl HuffmanWriter {
    pub(crate) fn bits(&mut self, value: u32, width: u32) {
        let raw = width & 7;
        self.raw(value & ((1 << raw) - 1), raw);
        for shift in (raw..width).step_by(8) {
            let (code, length) = encode((value >> shift) as u8);
            self.raw(code, length);
        }
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.bits(u32::from(flag), 1);
    }

    pub(crate) fn byte(&mut self, byte: u8) {
        self.bits(u32::from(byte), 8);
    }

    pub(crate) fn long(&mut self, long: i32) {
        self.bits(long as u32, 32);
    }

    pub(crate) fn string(&mut self, text: &[u8]) {
        text.iter().for_each(|byte| self.byte(*byte));
        self.byte(0);
    }

    fn raw(&mut self, value: u32, width: u32) {
        for bit in 0..width {
            if self.bit.is_multiple_of(8) {
                self.bytes.push(0);
            }
            let last = self.bytes.len() - 1;
            self.bytes[last] |= ((value >> bit & 1) as u8) << (self.bit % 8);
            self.bit += 1;
        }
    }
}
