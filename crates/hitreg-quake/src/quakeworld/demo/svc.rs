//! Reads the messages of a server packet and keeps what movement depends on. It skips messages that do not affect movement.

use super::entities::EntityDecoder;
use super::players::{PLAYERS_MAX, PlayerMessage, ServedPlayers};
use super::wire::{Bytes, read_angle, read_coords};
use super::{
    DemoEvent, EffectKind, Extension, Extensions, OtherPlayer, OwnState, QwdError, QwdResult, RecordedBy,
    ServerDescription, ServerExtensions,
};
use crate::quakeworld::movement::{Dialect, QuakeWorldMoveVars};

/// Numbers of the messages (`svc_*` in the public protocol headers; the last three are FTE's and Qizmo's).
pub(super) mod kind {
    pub(crate) const NOP: u8 = 1;
    pub(crate) const DISCONNECT: u8 = 2;
    pub(crate) const UPDATE_STAT: u8 = 3;
    pub(crate) const SOUND: u8 = 6;
    pub(crate) const TIME: u8 = 7;
    pub(crate) const PRINT: u8 = 8;
    pub(crate) const STUFF_TEXT: u8 = 9;
    pub(crate) const SET_ANGLE: u8 = 10;
    pub(crate) const SERVER_DATA: u8 = 11;
    pub(crate) const LIGHT_STYLE: u8 = 12;
    pub(crate) const UPDATE_FRAGS: u8 = 14;
    pub(crate) const STOP_SOUND: u8 = 16;
    pub(crate) const DAMAGE: u8 = 19;
    pub(crate) const SPAWN_STATIC: u8 = 20;
    pub(crate) const SPAWN_STATIC2: u8 = 21;
    pub(crate) const SPAWN_BASELINE: u8 = 22;
    pub(crate) const TEMP_ENTITY: u8 = 23;
    pub(crate) const SET_PAUSE: u8 = 24;
    pub(crate) const CENTER_PRINT: u8 = 26;
    pub(crate) const KILLED_MONSTER: u8 = 27;
    pub(crate) const FOUND_SECRET: u8 = 28;
    pub(crate) const SPAWN_STATIC_SOUND: u8 = 29;
    pub(crate) const INTERMISSION: u8 = 30;
    pub(crate) const FINALE: u8 = 31;
    pub(crate) const CD_TRACK: u8 = 32;
    pub(crate) const SELL_SCREEN: u8 = 33;
    pub(crate) const SMALL_KICK: u8 = 34;
    pub(crate) const BIG_KICK: u8 = 35;
    pub(crate) const UPDATE_PING: u8 = 36;
    pub(crate) const UPDATE_ENTER_TIME: u8 = 37;
    pub(crate) const UPDATE_STAT_LONG: u8 = 38;
    pub(crate) const MUZZLE_FLASH: u8 = 39;
    pub(crate) const UPDATE_USER_INFO: u8 = 40;
    pub(crate) const DOWNLOAD: u8 = 41;
    pub(crate) const PLAYER_INFO: u8 = 42;
    pub(crate) const NAILS: u8 = 43;
    pub(crate) const CHOKE_COUNT: u8 = 44;
    pub(crate) const MODEL_LIST: u8 = 45;
    pub(crate) const SOUND_LIST: u8 = 46;
    pub(crate) const PACKET_ENTITIES: u8 = 47;
    pub(crate) const DELTA_PACKET_ENTITIES: u8 = 48;
    pub(crate) const MAX_SPEED: u8 = 49;
    pub(crate) const ENTITY_GRAVITY: u8 = 50;
    pub(crate) const SET_INFO: u8 = 51;
    pub(crate) const SERVER_INFO: u8 = 52;
    pub(crate) const UPDATE_PACKET_LOSS: u8 = 53;
    pub(crate) const NAILS_NUMBERED: u8 = 54;
    pub(crate) const MODEL_LIST_SHORT: u8 = 60;
    pub(crate) const SPAWN_BASELINE2: u8 = 66;
    pub(crate) const QIZMO_VOICE: u8 = 83;
}

/// Numbers of the effects (`TE_*` in QuakeWorld's protocol header).
mod effect {
    pub(super) const SPIKE: u8 = 0;
    pub(super) const SUPER_SPIKE: u8 = 1;
    pub(super) const GUNSHOT: u8 = 2;
    pub(super) const EXPLOSION: u8 = 3;
    pub(super) const TAR_EXPLOSION: u8 = 4;
    pub(super) const LIGHTNING1: u8 = 5;
    pub(super) const LIGHTNING2: u8 = 6;
    pub(super) const WIZ_SPIKE: u8 = 7;
    pub(super) const KNIGHT_SPIKE: u8 = 8;
    pub(super) const LIGHTNING3: u8 = 9;
    pub(super) const LAVA_SPLASH: u8 = 10;
    pub(super) const TELEPORT: u8 = 11;
    pub(super) const BLOOD: u8 = 12;
    pub(super) const LIGHTNING_BLOOD: u8 = 13;
}

/// The version of every QuakeWorld 2.x client and server.
const PROTOCOL: i32 = 28;
/// Markers before the version: each announces a word of extension flags.
const FTE: i32 = i32::from_le_bytes(*b"FTEX");
const FTE2: i32 = i32::from_le_bytes(*b"FTE2");
const MVD1: i32 = i32::from_le_bytes(*b"MVD1");

/// The state that a client keeps from packet to packet.
#[derive(Debug, Default)]
pub(crate) struct SvcState {
    pub(crate) level: Option<LevelState>,
    pub(crate) info: ServerInfo,
    pub(crate) entities: EntityDecoder,
    pub(crate) map: String,
    /// Who made the recording; servers use other layouts for some messages.
    pub(crate) recorded_by: RecordedBy,
    served: ServedPlayers,
    head_model: Option<u8>,
    armor: i32,
    /// Whether an intermission is on.
    is_intermission: bool,
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

impl SvcState {
    /// Reads all messages of the packet `sequence`.
    pub(crate) fn read_packet(&mut self, bytes: &mut Bytes<'_>, sequence: u32) -> QwdResult<PacketContent> {
        let mut content = PacketContent::default();
        while !bytes.is_empty() && !content.disconnected {
            let offset = bytes.offset();
            let kind = bytes.u8()?;
            self.read_message(kind, offset, bytes, sequence, &mut content)?;
        }
        Ok(content)
    }

    fn extensions(&self) -> Extensions {
        self.level.map_or(Extensions::default(), |level| level.extensions)
    }

    fn read_message(
        &mut self,
        kind: u8,
        offset: usize,
        bytes: &mut Bytes<'_>,
        sequence: u32,
        content: &mut PacketContent,
    ) -> QwdResult {
        let ext = self.extensions();
        match kind {
            kind::NOP
            | kind::KILLED_MONSTER
            | kind::FOUND_SECRET
            | kind::SELL_SCREEN
            | kind::SMALL_KICK
            | kind::BIG_KICK => {}
            kind::DISCONNECT => content.disconnected = true,
            kind::UPDATE_STAT => {
                let (stat, value) = (bytes.u8()?, bytes.u8()?);
                self.note_stat(stat, i32::from(value), content);
            }
            kind::UPDATE_STAT_LONG => {
                let (stat, value) = (bytes.u8()?, bytes.i32()?);
                self.note_stat(stat, value, content);
            }
            kind::SOUND => skip_sound(bytes, ext)?,
            kind::TIME | kind::MAX_SPEED | kind::ENTITY_GRAVITY => self.read_number(kind, bytes)?,
            kind::PRINT | kind::LIGHT_STYLE => skip_text(bytes, 1)?,
            kind::STUFF_TEXT => self.read_stuffed(bytes)?,
            kind::SET_ANGLE => {
                if ext.mvd1 & Extensions::HIGH_LAG_TELEPORT != 0 || self.recorded_by == RecordedBy::Server {
                    bytes.u8()?;
                }
                let angles = [read_angle(bytes, ext)?, read_angle(bytes, ext)?, read_angle(bytes, ext)?];
                content.events.push(DemoEvent::SetAngle { angles });
            }
            kind::SERVER_DATA => {
                self.read_server_data(bytes)?;
                content.levels_started += 1;
            }
            kind::UPDATE_FRAGS | kind::UPDATE_PING => skip(bytes, 3)?,
            kind::STOP_SOUND | kind::MUZZLE_FLASH | kind::UPDATE_PACKET_LOSS => skip(bytes, 2)?,
            kind::DAMAGE => {
                let (armor, health) = (bytes.u8()?, bytes.u8()?);
                content.events.push(DemoEvent::Damage { armor, health, from: read_coords(bytes, ext)? });
            }
            kind::SPAWN_STATIC => self.entities.read_baseline(bytes, ext, None)?,
            kind::SPAWN_STATIC2 if ext.has(Extension::SpawnStatic) => {
                self.entities.read_baseline_delta(bytes, ext, false)?
            }
            kind::SPAWN_BASELINE => {
                let number = bytes.u16()?;
                self.entities.read_baseline(bytes, ext, Some(number))?;
            }
            kind::SPAWN_BASELINE2 if ext.has(Extension::SpawnStatic) => {
                self.entities.read_baseline_delta(bytes, ext, true)?
            }
            kind::TEMP_ENTITY => read_effect(bytes, ext, content)?,
            kind::SET_PAUSE => content.events.push(DemoEvent::Pause(bytes.u8()? != 0)),
            kind::CENTER_PRINT | kind::FINALE => skip_text(bytes, 0)?,
            kind::SPAWN_STATIC_SOUND => {
                read_coords(bytes, ext)?;
                skip(bytes, 3)?;
            }
            kind::INTERMISSION => {
                read_coords(bytes, ext)?;
                for _ in 0..3 {
                    read_angle(bytes, ext)?;
                }
                self.is_intermission = true;
                content.events.push(DemoEvent::Intermission);
            }
            kind::CD_TRACK => skip(bytes, 1)?,
            kind::UPDATE_ENTER_TIME => skip(bytes, 5)?,
            kind::UPDATE_USER_INFO => skip_text(bytes, 5)?,
            kind::DOWNLOAD => skip_download(bytes, ext)?,
            kind::PLAYER_INFO => self.read_player(offset, bytes, content)?,
            kind::NAILS => skip_nails(bytes, 6)?,
            kind::NAILS_NUMBERED => skip_nails(bytes, 7)?,
            kind::CHOKE_COUNT => content.events.push(DemoEvent::Choked(bytes.u8()?)),
            kind::MODEL_LIST => {
                let before = bytes.u8()?.into();
                self.read_model_list(before, bytes)?;
            }
            kind::MODEL_LIST_SHORT if ext.has(Extension::Models) => {
                let before = bytes.u16()?;
                self.read_model_list(before, bytes)?;
            }
            kind::SOUND_LIST => skip_sound_list(bytes)?,
            kind::PACKET_ENTITIES | kind::DELTA_PACKET_ENTITIES => {
                self.entities.read_update(bytes, ext, sequence, kind == kind::DELTA_PACKET_ENTITIES)?
            }
            kind::SET_INFO => {
                skip_text(bytes, 1)?;
                skip_text(bytes, 0)?;
            }
            kind::SERVER_INFO => {
                let (key, value) = (bytes.zero_terminated()?, bytes.zero_terminated()?);
                self.info.set(key, value);
            }
            kind::QIZMO_VOICE => skip(bytes, 34)?,
            _ => return Err(QwdError::unknown_message(offset, kind)),
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

    fn read_number(&mut self, kind: u8, bytes: &mut Bytes<'_>) -> QwdResult {
        let value = read_setting(bytes)?;
        if let Some(level) = &mut self.level {
            match kind {
                kind::MAX_SPEED => level.move_vars.max_speed = value,
                kind::ENTITY_GRAVITY => level.move_vars.entity_gravity = value,
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
            self.played = Some((self.recorded_by, self.describe(level)));
        }
        let mut extensions = Extensions::default();
        loop {
            let offset = bytes.offset();
            match bytes.i32()? {
                FTE => extensions.fte = bytes.u32()?,
                FTE2 => extensions.fte2 = bytes.u32()?,
                MVD1 => extensions.mvd1 = bytes.u32()?,
                PROTOCOL => break,
                version => {
                    let problem = format!("protocol version {version}; only QuakeWorld's {PROTOCOL} can be read");
                    return Err(QwdError::invalid(offset, problem));
                }
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
        let mut number = || read_setting(bytes);
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
        self.entities.deltas_from_last = self.recorded_by == RecordedBy::Server;
        self.served = ServedPlayers::default();
        self.map.clear();
        self.head_model = None;
        self.armor = 0;
        self.is_intermission = false;
        self.level = Some(LevelState { extensions, player, move_vars });
        Ok(())
    }

    /// Reads the slot of the recording player. A server has none and sends its time instead.
    fn read_seat(&mut self, bytes: &mut Bytes<'_>) -> QwdResult<u8> {
        const SPECTATOR: u8 = 128;
        if self.recorded_by == RecordedBy::Server {
            bytes.f32()?;
            return Ok(0);
        }
        let offset = bytes.offset();
        let seat = bytes.u8()?;
        self.recorded_by = if seat & SPECTATOR != 0 { RecordedBy::Spectator } else { RecordedBy::Player };
        let player = seat & !SPECTATOR;
        if player >= PLAYERS_MAX {
            return Err(QwdError::out_of_bounds(offset, "the player's slot", player, PLAYERS_MAX));
        }
        Ok(player)
    }

    fn read_player(&mut self, offset: usize, bytes: &mut Bytes<'_>, content: &mut PacketContent) -> QwdResult {
        let Some(level) = self.level else {
            return Err(QwdError::unknown_message(offset, kind::PLAYER_INFO));
        };
        if self.recorded_by == RecordedBy::Server {
            let state = self.served.read(bytes, level.extensions, self.head_model)?;
            content.others.push(state);
            return Ok(());
        }
        let info = PlayerMessage::read(bytes, level.extensions, self.head_model)?;
        if info.state.slot == level.player {
            let plays = self.recorded_by == RecordedBy::Player;
            content.own = plays.then(|| info.own(self.info.server_extensions(), self.is_intermission));
        } else if content.others.len() < usize::from(PLAYERS_MAX) {
            content.others.push(info.state);
        }
        Ok(())
    }

    /// Reads a part of the list of models, after the model `index`.
    fn read_model_list(&mut self, mut index: u16, bytes: &mut Bytes<'_>) -> QwdResult {
        loop {
            let name = bytes.zero_terminated()?;
            if name.is_empty() {
                return skip(bytes, 1);
            }
            index = index.saturating_add(1);
            if index == 1 {
                self.map = String::from_utf8_lossy(name).chars().take(128).collect();
            }
            if name == b"progs/h_player.mdl" {
                self.head_model = u8::try_from(index).ok();
            }
            self.entities.name_model(index, name);
        }
    }
}

/// Reads a movement setting.
fn read_setting(bytes: &mut Bytes<'_>) -> QwdResult<f32> {
    let offset = bytes.offset();
    let value = bytes.f32()?;
    if value.is_finite() { Ok(value) } else { Err(QwdError::not_finite(offset, "a movement setting")) }
}

pub(crate) fn skip(bytes: &mut Bytes<'_>, len: usize) -> QwdResult {
    bytes.take(len)?;
    Ok(())
}

/// Skips a text, and as many bytes before it.
fn skip_text(bytes: &mut Bytes<'_>, before: usize) -> QwdResult {
    skip(bytes, before)?;
    bytes.zero_terminated()?;
    Ok(())
}

fn skip_sound_list(bytes: &mut Bytes<'_>) -> QwdResult {
    skip(bytes, 1)?;
    while !bytes.zero_terminated()?.is_empty() {}
    skip(bytes, 1)
}

fn skip_sound(bytes: &mut Bytes<'_>, ext: Extensions) -> QwdResult {
    let channel = bytes.u16()?;
    for flag in [1 << 15, 1 << 14] {
        if channel & flag != 0 {
            bytes.u8()?;
        }
    }
    bytes.u8()?;
    read_coords(bytes, ext)?;
    Ok(())
}

fn skip_nails(bytes: &mut Bytes<'_>, each: usize) -> QwdResult {
    let count = usize::from(bytes.u8()?);
    skip(bytes, count * each)
}

fn skip_download(bytes: &mut Bytes<'_>, ext: Extensions) -> QwdResult {
    if ext.has(Extension::ChunkedDownloads) {
        return match bytes.i32()? {
            chunk if chunk < 0 => skip_text(bytes, 4),
            _ => skip(bytes, 1024),
        };
    }
    let size = bytes.i16()?;
    skip(bytes, 1 + usize::try_from(size).unwrap_or(0))
}

fn read_effect(bytes: &mut Bytes<'_>, ext: Extensions, content: &mut PacketContent) -> QwdResult {
    let offset = bytes.offset();
    let kind = match bytes.u8()? {
        effect::SPIKE | effect::SUPER_SPIKE | effect::WIZ_SPIKE | effect::KNIGHT_SPIKE | effect::LAVA_SPLASH => None,
        effect::GUNSHOT => {
            bytes.u8()?;
            Some(EffectKind::Gunshot)
        }
        effect::EXPLOSION | effect::TAR_EXPLOSION => Some(EffectKind::Explosion),
        effect::LIGHTNING1 | effect::LIGHTNING2 | effect::LIGHTNING3 => {
            bytes.u16()?;
            read_coords(bytes, ext)?;
            None
        }
        effect::TELEPORT => Some(EffectKind::Teleport),
        effect::BLOOD => {
            bytes.u8()?;
            Some(EffectKind::Blood)
        }
        effect::LIGHTNING_BLOOD => Some(EffectKind::LightningBlood),
        value => return Err(QwdError::out_of_bounds(offset, "the kind of an effect", value, 14)),
    };
    let origin = read_coords(bytes, ext)?;
    if let Some(kind) = kind {
        content.events.push(DemoEvent::Effect { kind, origin });
    }
    Ok(())
}

/// The keys that affect movement.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct ServerInfo {
    pub(crate) version: String,
    extensions: u32,
    jump_floor: f32,
    air_step: bool,
    slide_fix: bool,
    bunny_speed_cap: f32,
    kteams: bool,
    landing_fix: bool,
}

impl ServerInfo {
    /// Reads `\key\value\key\value...`; ignores other keys.
    pub(crate) fn read(&mut self, info: &[u8]) {
        let mut parts = info.split(|&byte| byte == b'\\').skip(1);
        while let (Some(key), Some(value)) = (parts.next(), parts.next()) {
            self.set(key, value);
        }
    }

    /// Applies one key.
    pub(crate) fn set(&mut self, key: &[u8], value: &[u8]) {
        let value = String::from_utf8_lossy(value);
        let value = value.trim();
        let number = || value.parse::<f32>().ok().filter(|n| n.is_finite()).unwrap_or(0.0);
        match key {
            b"*version" => {
                self.version = value.chars().take(64).filter(|c| c.is_ascii_graphic() || *c == ' ').collect()
            }
            b"*z_ext" => self.extensions = value.parse().unwrap_or(0),
            b"pm_ktjump" => self.jump_floor = number().clamp(0.0, 1.0),
            b"pm_airstep" => self.air_step = number() != 0.0,
            b"pm_slidefix" => self.slide_fix = number() != 0.0,
            b"pm_bunnyspeedcap" => self.bunny_speed_cap = number().max(0.0),
            // QWExtended, the ancestor of MVDSV, and QuakeForge fixed landings in their movement code.
            b"*qwe_version" | b"*qf_version" => self.landing_fix = true,
            // "Forbidden player dirtywork", a setting that only KTeams and its descendants have.
            b"fpd" => self.kteams = true,
            _ => {}
        }
    }

    pub(crate) fn server_extensions(&self) -> ServerExtensions {
        ServerExtensions(self.extensions)
    }

    /// Returns the movement code according to the server; a demo gives better evidence. Servers that announce ZQuake's
    /// extensions, or whose name shows that they descend from it, run its movement.
    pub(crate) fn dialect(&self) -> Dialect {
        let version = self.version.to_ascii_lowercase();
        let reworked =
            self.extensions != 0 || ["mvdsv", "ezquake", "zquake", "fte"].iter().any(|n| version.contains(n));
        if !reworked {
            return Dialect::Classic {
                soft_landing: self.kteams,
                soft_jump: self.kteams,
                landing_fix: self.landing_fix,
            };
        }
        let ServerInfo { jump_floor, air_step, slide_fix, bunny_speed_cap, .. } = *self;
        Dialect::Reworked { jump_floor, air_step, slide_fix, bunny_speed_cap }
    }

    /// Returns the name of a proxy that took the server's place, according to its version string.
    pub(crate) fn proxy(&self) -> Option<&'static str> {
        let version = self.version.to_ascii_lowercase();
        ["qizmo", "qwfwd", "qtv", "eztv"].into_iter().find(|name| version.contains(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_decides_the_movement_code() {
        let mut info = ServerInfo::default();
        info.read(br"\maxfps\77\*version\2.30\*gamedir\qw\fpd\34");
        assert_eq!(
            (info.version.as_str(), info.dialect(), info.proxy()),
            ("2.30", Dialect::Classic { soft_landing: true, soft_jump: true, landing_fix: false }, None)
        );
        info.read(br"\*version\2.40\*qwe_version\0.147 Beta");
        assert!(matches!(info.dialect(), Dialect::Classic { landing_fix: true, .. }));
        info.read(br"\*version\MVDSV 1.20-dev\*z_ext\511\pm_ktjump\1");
        let Dialect::Reworked { jump_floor, air_step, .. } = info.dialect() else { panic!("reworked") };
        assert_eq!((jump_floor, air_step, info.server_extensions().says_jump_held()), (1.0, false, true));
        info.read(br"\*version\QTV 1.12");
        assert_eq!(info.proxy(), Some("qtv"));
    }
}
