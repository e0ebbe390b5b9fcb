//! Reads the messages of a server packet and keeps what movement depends on.

use super::entities::EntityDecoder;
use super::error::{QwdError, QwdResult};
use super::players::{MOST_PLAYERS, PlayerMessage};
use super::protocol::{self, Extension, Extensions};
use super::recording::{DemoEvent, OtherPlayer, OwnState, RecordedBy, ServerDescription};
use super::served::ServedPlayers;
use super::serverinfo::ServerInfo;
use super::svc_kind as svc;
use super::svc_skip::{read_effect, skip, skip_download, skip_nails, skip_sound};
use super::wire::{read_angle, read_coords};
use crate::quakeworld::bytes::Bytes;
use crate::quakeworld::movement::QuakeWorldMoveVars;

/// The state that a client keeps from packet to packet.
#[derive(Debug, Default)]
pub(crate) struct SvcState {
    pub(crate) level: Option<LevelState>,
    pub(crate) info: ServerInfo,
    pub(crate) entities: EntityDecoder,
    pub(crate) map: String,
    /// Who made the recording; servers use other layouts for some messages.
    pub(crate) by: RecordedBy,
    served: ServedPlayers,
    head_model: Option<u8>,
    armor: i32,
    /// Whether an intermission is on.
    over: bool,
    /// Whether a packet has shown a player.
    pub(crate) is_played: bool,
    /// Who recorded the first played level and its server, once another level has begun.
    pub(crate) played: Option<(RecordedBy, ServerDescription)>,
}

/// The level from the server data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LevelState {
    pub(crate) extensions: Extensions,
    pub(crate) player: u8,
    pub(crate) move_vars: QuakeWorldMoveVars,
}

/// The content of one packet.
#[derive(Debug, Default)]
pub(crate) struct PacketContent {
    pub(crate) own: Option<OwnState>,
    pub(crate) others: Vec<OtherPlayer>,
    pub(crate) events: Vec<DemoEvent>,
    pub(crate) levels_started: u32,
    pub(crate) disconnected: bool,
}

/// The current message and its offset.
struct Message {
    kind: u8,
    offset: usize,
}

impl SvcState {
    /// Reads all messages of the packet `sequence`.
    pub(crate) fn read_packet(&mut self, bytes: &mut Bytes<'_>, sequence: u32) -> QwdResult<PacketContent> {
        let mut content = PacketContent::default();
        while !bytes.is_empty() && !content.disconnected {
            let message = Message { offset: bytes.offset(), kind: bytes.u8()? };
            self.read_message(&message, bytes, sequence, &mut content)?;
        }
        Ok(content)
    }

    fn extensions(&self) -> Extensions {
        self.level.map_or(Extensions::default(), |level| level.extensions)
    }

    fn read_message(
        &mut self,
        message: &Message,
        bytes: &mut Bytes<'_>,
        sequence: u32,
        content: &mut PacketContent,
    ) -> QwdResult {
        let ext = self.extensions();
        match message.kind {
            svc::NOP | svc::KILLED_MONSTER | svc::FOUND_SECRET | svc::SELL_SCREEN | svc::SMALL_KICK | svc::BIG_KICK => {
            }
            svc::DISCONNECT => content.disconnected = true,
            svc::UPDATE_STAT => {
                let (stat, value) = (bytes.u8()?, bytes.u8()?);
                self.note_stat(stat, i32::from(value), content);
            }
            svc::UPDATE_STAT_LONG => {
                let (stat, value) = (bytes.u8()?, bytes.i32()?);
                self.note_stat(stat, value, content);
            }
            svc::SOUND => skip_sound(bytes, ext)?,
            svc::TIME | svc::MAX_SPEED | svc::ENTITY_GRAVITY => self.read_number(message, bytes)?,
            svc::PRINT | svc::LIGHT_STYLE => {
                bytes.u8()?;
                bytes.zero_terminated()?;
            }
            svc::STUFF_TEXT => self.read_stuffed(bytes)?,
            svc::SET_ANGLE => {
                if ext.mvd1 & Extensions::HIGH_LAG_TELEPORT != 0 || self.by == RecordedBy::Server {
                    bytes.u8()?;
                }
                let angles = [read_angle(bytes, ext)?, read_angle(bytes, ext)?, read_angle(bytes, ext)?];
                content.events.push(DemoEvent::SetAngle { angles });
            }
            svc::SERVER_DATA => {
                self.read_server_data(bytes)?;
                content.levels_started += 1;
            }
            svc::UPDATE_FRAGS | svc::UPDATE_PING => skip(bytes, 3)?,
            svc::STOP_SOUND | svc::MUZZLE_FLASH | svc::UPDATE_PACKET_LOSS => skip(bytes, 2)?,
            svc::DAMAGE => {
                let (armor, health) = (bytes.u8()?, bytes.u8()?);
                content.events.push(DemoEvent::Damage { armor, health, from: read_coords(bytes, ext)? });
            }
            svc::SPAWN_STATIC => self.entities.read_baseline(bytes, ext, None)?,
            svc::SPAWN_STATIC2 if ext.has(Extension::SpawnStatic) => {
                self.entities.read_baseline_delta(bytes, ext, false)?
            }
            svc::SPAWN_BASELINE => {
                let number = bytes.u16()?;
                self.entities.read_baseline(bytes, ext, Some(number))?;
            }
            svc::SPAWN_BASELINE2 if ext.has(Extension::SpawnStatic) => {
                self.entities.read_baseline_delta(bytes, ext, true)?
            }
            svc::TEMP_ENTITY => read_effect(bytes, ext, content)?,
            svc::SET_PAUSE => {
                let paused = bytes.u8()? != 0;
                content.events.push(DemoEvent::Pause(paused));
            }
            svc::CENTER_PRINT | svc::FINALE => {
                bytes.zero_terminated()?;
            }
            svc::SPAWN_STATIC_SOUND => {
                read_coords(bytes, ext)?;
                skip(bytes, 3)?;
            }
            svc::INTERMISSION => {
                read_coords(bytes, ext)?;
                for _ in 0..3 {
                    read_angle(bytes, ext)?;
                }
                self.over = true;
                content.events.push(DemoEvent::Intermission);
            }
            svc::CD_TRACK => skip(bytes, 1)?,
            svc::UPDATE_ENTER_TIME => skip(bytes, 5)?,
            svc::UPDATE_USER_INFO => {
                skip(bytes, 5)?;
                bytes.zero_terminated()?;
            }
            svc::DOWNLOAD => skip_download(bytes, ext)?,
            svc::PLAYER_INFO => self.read_player(message, bytes, content)?,
            svc::NAILS => skip_nails(bytes, 6)?,
            svc::NAILS_NUMBERED => skip_nails(bytes, 7)?,
            svc::CHOKE_COUNT => {
                let packets = bytes.u8()?;
                content.events.push(DemoEvent::Choked(packets));
            }
            svc::MODEL_LIST | svc::SOUND_LIST => self.read_list(message.kind == svc::MODEL_LIST, false, bytes)?,
            svc::MODEL_LIST_SHORT if ext.has(Extension::Models) => self.read_list(true, true, bytes)?,
            svc::PACKET_ENTITIES | svc::DELTA_PACKET_ENTITIES => {
                self.entities.read_update(bytes, ext, sequence, message.kind == svc::DELTA_PACKET_ENTITIES)?
            }
            svc::SET_INFO => {
                bytes.u8()?;
                bytes.zero_terminated()?;
                bytes.zero_terminated()?;
            }
            svc::SERVER_INFO => {
                let (key, value) = (bytes.zero_terminated()?, bytes.zero_terminated()?);
                self.info.set(key, value);
            }
            svc::QIZMO_VOICE => skip(bytes, 34)?,
            kind => return Err(QwdError::UnknownMessage { offset: message.offset, kind }),
        }
        Ok(())
    }

    fn note_stat(&mut self, stat: u8, value: i32, content: &mut PacketContent) {
        const HEALTH: u8 = 0;
        const ARMOR: u8 = 4;
        let bounded = |points: i32| points.clamp(-32_768, 32_767) as i16;
        match stat {
            HEALTH => content.events.push(DemoEvent::Health(bounded(value))),
            ARMOR => {
                let lost = self.armor.saturating_sub(value);
                self.armor = value;
                if lost > 0 {
                    content.events.push(DemoEvent::ArmorLost(bounded(lost)));
                }
            }
            _ => {}
        }
    }

    fn read_number(&mut self, message: &Message, bytes: &mut Bytes<'_>) -> QwdResult {
        let value = finite(bytes, "a movement setting")?;
        if let Some(level) = &mut self.level {
            match message.kind {
                svc::MAX_SPEED => level.move_vars.max_speed = value,
                svc::ENTITY_GRAVITY => level.move_vars.entity_gravity = value,
                _ => {} // the time, of another protocol: read over, as clients do
            }
        }
        Ok(())
    }

    fn read_stuffed(&mut self, bytes: &mut Bytes<'_>) -> QwdResult {
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

    /// Returns the description of the server, as of its newest info.
    pub(crate) fn describe(&self, level: LevelState) -> ServerDescription {
        ServerDescription {
            version: self.info.version.clone(),
            extensions: level.extensions,
            server_extensions: self.info.server_extensions(),
            dialect: self.info.dialect(),
        }
    }

    fn read_server_data(&mut self, bytes: &mut Bytes<'_>) -> QwdResult {
        if let (Some(level), true, None) = (self.level, self.is_played, &self.played) {
            self.played = Some((self.by, self.describe(level)));
        }
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
        let player = self.read_seat(bytes)?;
        let offset = bytes.offset();
        let title = bytes.zero_terminated()?.to_ascii_lowercase();
        if title.windows(5).any(|part| part == b"qizmo") {
            return Err(QwdError::Proxy { offset, name: "qizmo" });
        }
        let mut number = || finite(bytes, "a movement setting");
        let move_vars = QuakeWorldMoveVars {
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
        self.entities.each_from_last = self.by == RecordedBy::Server;
        self.served = ServedPlayers::default();
        self.map.clear();
        self.head_model = None;
        self.armor = 0;
        self.over = false;
        self.level = Some(LevelState { extensions, player, move_vars });
        Ok(())
    }

    /// Reads the slot of the recording player. A server has none and sends its time instead.
    fn read_seat(&mut self, bytes: &mut Bytes<'_>) -> QwdResult<u8> {
        const SPECTATOR: u8 = 128;
        if self.by == RecordedBy::Server {
            bytes.f32()?;
            return Ok(0);
        }
        let offset = bytes.offset();
        let seat = bytes.u8()?;
        self.by = if seat & SPECTATOR != 0 { RecordedBy::Spectator } else { RecordedBy::Player };
        let player = seat & !SPECTATOR;
        if player >= MOST_PLAYERS {
            let limit = i64::from(MOST_PLAYERS);
            return Err(QwdError::OutOfBounds { offset, what: "the player's slot", value: i64::from(player), limit });
        }
        Ok(player)
    }

    fn read_player(&mut self, message: &Message, bytes: &mut Bytes<'_>, content: &mut PacketContent) -> QwdResult {
        let Some(level) = self.level else {
            return Err(QwdError::UnknownMessage { offset: message.offset, kind: message.kind });
        };
        if self.by == RecordedBy::Server {
            let state = self.served.read(bytes, level.extensions, self.head_model)?;
            content.others.push(state);
            return Ok(());
        }
        let info = PlayerMessage::read(bytes, level.extensions, self.head_model)?;
        if info.slot == level.player {
            let plays = self.by == RecordedBy::Player;
            content.own = plays.then(|| info.own(self.info.server_extensions(), self.over));
        } else if content.others.len() < usize::from(MOST_PLAYERS) {
            content.others.push(info.state);
        }
        Ok(())
    }

    fn read_list(&mut self, models: bool, long: bool, bytes: &mut Bytes<'_>) -> QwdResult {
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

fn finite(bytes: &mut Bytes<'_>, what: &'static str) -> QwdResult<f32> {
    let offset = bytes.offset();
    let value = bytes.f32()?;
    if value.is_finite() { Ok(value) } else { Err(QwdError::NotFinite { offset, what }) }
}
