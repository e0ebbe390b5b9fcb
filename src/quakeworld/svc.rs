//! Reads the messages of one server packet and keeps what movement depends on.

use super::bytes::Bytes;
use super::demo::{Event, OtherPlayer, OwnState};
use super::entities::Entities;
use super::error::QwdError;
use super::movevars::MoveVars;
use super::players::{MOST_PLAYERS, PlayerInfo};
use super::protocol::{self, Extensions};
use super::serverinfo::ServerInfo;
use super::svc_skip::{read_effect, skip, skip_download, skip_nails, skip_sound};
use super::wire::{read_angle, read_coords};

/// Everything that a client remembers from packet to packet.
#[derive(Debug, Default)]
pub(crate) struct Client {
    pub(crate) level: Option<Level>,
    pub(crate) info: ServerInfo,
    pub(crate) entities: Entities,
    pub(crate) map: String,
    head_model: Option<u8>,
}

/// The level that the server data announced.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Level {
    pub(crate) extensions: Extensions,
    pub(crate) player: u8,
    pub(crate) move_vars: MoveVars,
}

/// What one packet told.
#[derive(Debug, Default)]
pub(crate) struct Told {
    pub(crate) own: Option<OwnState>,
    pub(crate) others: Vec<OtherPlayer>,
    pub(crate) events: Vec<Event>,
    pub(crate) levels_started: u32,
    pub(crate) disconnected: bool,
}

/// Which message is read now, and where it starts.
struct Message {
    kind: u8,
    offset: usize,
}

impl Client {
    /// Reads all messages of the packet `sequence`.
    pub(crate) fn read_packet(&mut self, bytes: &mut Bytes<'_>, sequence: u32) -> Result<Told, QwdError> {
        let mut told = Told::default();
        while !bytes.is_empty() && !told.disconnected {
            let message = Message { offset: bytes.offset(), kind: bytes.u8()? };
            self.read_message(&message, bytes, sequence, &mut told)?;
        }
        Ok(told)
    }

    fn extensions(&self) -> Extensions {
        self.level.map_or(Extensions::default(), |level| level.extensions)
    }

    fn read_message(
        &mut self,
        message: &Message,
        bytes: &mut Bytes<'_>,
        sequence: u32,
        told: &mut Told,
    ) -> Result<(), QwdError> {
        let ext = self.extensions();
        match message.kind {
            1 | 27 | 28 | 33 | 34 | 35 => {}
            2 => told.disconnected = true,
            3 => {
                let (stat, value) = (bytes.u8()?, bytes.u8()?);
                note_stat(stat, i32::from(value), told);
            }
            38 => {
                let (stat, value) = (bytes.u8()?, bytes.i32()?);
                note_stat(stat, value, told);
            }
            6 => skip_sound(bytes, ext)?,
            7 | 49 | 50 => self.read_number(message, bytes)?,
            8 | 12 => {
                bytes.u8()?;
                bytes.zero_terminated()?;
            }
            9 => self.read_stuffed(bytes)?,
            10 => {
                if ext.high_lag_teleport() {
                    bytes.u8()?;
                }
                let angles = [read_angle(bytes, ext)?, read_angle(bytes, ext)?, read_angle(bytes, ext)?];
                told.events.push(Event::SetAngle { angles });
            }
            11 => {
                self.read_server_data(bytes)?;
                told.levels_started += 1;
            }
            14 | 36 => skip(bytes, 3)?,
            16 | 39 | 53 => skip(bytes, 2)?,
            19 => {
                let (armor, health) = (bytes.u8()?, bytes.u8()?);
                told.events.push(Event::Damage { armor, health, from: read_coords(bytes, ext)? });
            }
            20 => self.entities.read_baseline(bytes, ext, None)?,
            21 if ext.spawn_static() => self.entities.read_baseline_delta(bytes, ext, false)?,
            22 => {
                let number = bytes.u16()?;
                self.entities.read_baseline(bytes, ext, Some(number))?;
            }
            66 if ext.spawn_static() => self.entities.read_baseline_delta(bytes, ext, true)?,
            23 => read_effect(bytes, ext, told)?,
            24 => {
                let paused = bytes.u8()? != 0;
                told.events.push(Event::Pause(paused));
            }
            26 | 31 => {
                bytes.zero_terminated()?;
            }
            29 => {
                read_coords(bytes, ext)?;
                skip(bytes, 3)?;
            }
            30 => {
                read_coords(bytes, ext)?;
                for _ in 0..3 {
                    read_angle(bytes, ext)?;
                }
                told.events.push(Event::Intermission);
            }
            32 => skip(bytes, 1)?,
            37 => skip(bytes, 5)?,
            40 => {
                skip(bytes, 5)?;
                bytes.zero_terminated()?;
            }
            41 => skip_download(bytes, ext)?,
            42 => self.read_player(message, bytes, told)?,
            43 => skip_nails(bytes, 6)?,
            44 => {
                let packets = bytes.u8()?;
                told.events.push(Event::Choked(packets));
            }
            45 | 46 => self.read_list(message.kind == 45, false, bytes)?,
            60 if ext.models() => self.read_list(true, true, bytes)?,
            47 | 48 => self.entities.read_update(bytes, ext, sequence, message.kind == 48)?,
            51 => {
                bytes.u8()?;
                bytes.zero_terminated()?;
                bytes.zero_terminated()?;
            }
            52 => {
                let (key, value) = (bytes.zero_terminated()?, bytes.zero_terminated()?);
                self.info.set(key, value);
            }
            83 => skip(bytes, 34)?,
            kind => return Err(QwdError::UnknownMessage { offset: message.offset, kind }),
        }
        Ok(())
    }

    fn read_number(&mut self, message: &Message, bytes: &mut Bytes<'_>) -> Result<(), QwdError> {
        let value = finite(bytes, "a movement setting")?;
        if let Some(level) = &mut self.level {
            match message.kind {
                49 => level.move_vars.max_speed = value,
                50 => level.move_vars.entity_gravity = value,
                _ => {} // 7, the time of another protocol: read over, as clients do
            }
        }
        Ok(())
    }

    fn read_stuffed(&mut self, bytes: &mut Bytes<'_>) -> Result<(), QwdError> {
        let offset = bytes.offset();
        let text = bytes.zero_terminated()?;
        if let Some(info) = text.strip_prefix(b"fullserverinfo ") {
            let info = info.split(|&byte| byte == b'"').nth(1).unwrap_or(&[]);
            self.info = ServerInfo::default();
            self.info.read(info);
            if let Some(name) = self.info.proxy() {
                return Err(QwdError::Proxy { offset, name });
            }
        }
        Ok(())
    }

    fn read_server_data(&mut self, bytes: &mut Bytes<'_>) -> Result<(), QwdError> {
        let mut extensions = Extensions::default();
        loop {
            let offset = bytes.offset();
            match bytes.i32()? {
                protocol::FTE => extensions.fte = bytes.u32()?,
                protocol::FTE2 => extensions.fte2 = bytes.u32()?,
                protocol::MVD1 => extensions.mvd1 = bytes.u32()?,
                protocol::VERSION => break,
                version => return Err(QwdError::OtherProtocol { offset, version }),
            }
        }
        bytes.i32()?; // how many levels the server has had
        bytes.zero_terminated()?; // game directory
        let offset = bytes.offset();
        let player = bytes.u8()?;
        if player & 128 != 0 {
            return Err(QwdError::Spectator { offset });
        }
        if player >= MOST_PLAYERS {
            let limit = i64::from(MOST_PLAYERS);
            return Err(QwdError::OutOfBounds { offset, what: "the player's slot", value: i64::from(player), limit });
        }
        bytes.zero_terminated()?; // the level's title
        let mut number = || finite(bytes, "a movement setting");
        let move_vars = MoveVars {
            gravity: number()?,
            stop_speed: number()?,
            max_speed: number()?,
            spectator_max_speed: number()?,
            accelerate: number()?,
            air_accelerate: number()?,
            water_accelerate: number()?,
            friction: number()?,
            water_friction: number()?,
            entity_gravity: number()?,
        };
        self.entities.clear();
        self.map.clear();
        self.head_model = None;
        self.level = Some(Level { extensions, player, move_vars });
        Ok(())
    }

    fn read_player(&mut self, message: &Message, bytes: &mut Bytes<'_>, told: &mut Told) -> Result<(), QwdError> {
        let Some(level) = self.level else {
            return Err(QwdError::UnknownMessage { offset: message.offset, kind: message.kind });
        };
        let info = PlayerInfo::read(bytes, level.extensions, self.head_model)?;
        if info.slot == level.player {
            told.own = Some(info.own(self.info.server_extensions()));
        } else if told.others.len() < usize::from(MOST_PLAYERS) {
            told.others.push(info.state);
        }
        Ok(())
    }

    fn read_list(&mut self, models: bool, long: bool, bytes: &mut Bytes<'_>) -> Result<(), QwdError> {
        let mut index = if long { bytes.u16()? } else { u16::from(bytes.u8()?) };
        loop {
            let name = bytes.zero_terminated()?;
            if name.is_empty() {
                break;
            }
            index = index.saturating_add(1);
            if models && index == 1 {
                self.map = String::from_utf8_lossy(name).chars().take(128).collect();
            }
            if models && name == b"progs/h_player.mdl" {
                self.head_model = u8::try_from(index).ok();
            }
            if models {
                self.entities.name_model(index, name);
            }
        }
        skip(bytes, 1)
    }
}

fn finite(bytes: &mut Bytes<'_>, what: &'static str) -> Result<f32, QwdError> {
    let offset = bytes.offset();
    let value = bytes.f32()?;
    if value.is_finite() { Ok(value) } else { Err(QwdError::NotFinite { offset, what }) }
}

fn note_stat(stat: u8, value: i32, told: &mut Told) {
    const HEALTH: u8 = 0;
    if stat == HEALTH {
        told.events.push(Event::Health(value.clamp(-32_768, 32_767) as i16));
    }
}
