//! Reads the entities lump of a map: teleporters, push triggers, spawn points and moving brush models. Damaged text
//! yields fewer entities and no error, as in the game.

use super::{MovingKind, MovingModel, Submodel, Trigger, TriggerEffect};

/// How far servers raise a teleporter's destination, in units.
const DESTINATION_RAISE: f32 = 27.0;
/// How far servers raise a spawn point, in units.
const SPAWN_RAISE: f32 = 1.0;
/// Margin of a brush model's box, in units: servers add one unit when they load it and one when they link it.
const LINK_MARGIN: f32 = 2.0;

/// The content of the entities lump.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct EntityLump {
    pub(crate) triggers: Vec<Trigger>,
    pub(crate) moving: Vec<MovingModel>,
    /// Origins of the spawn points.
    pub(crate) spawns: Vec<[f32; 3]>,
}

/// Reads triggers, moving models and spawn points from the entities lump.
pub(crate) fn read_entities(lump: &[u8], models: &[Submodel]) -> EntityLump {
    let text = String::from_utf8_lossy(lump);
    let entities = split(&text);
    let EntityLump { mut triggers, mut moving, mut spawns } = EntityLump::default();
    for entity in entities.iter().filter(|entity| !is_left_out(entity)) {
        if get(entity, "classname").is_some_and(|class| class.starts_with("info_player_")) {
            spawns.extend(get(entity, "origin").and_then(vector).map(|[x, y, z]| [x, y, z + SPAWN_RAISE]));
        }
        let Some(number) = get(entity, "model").and_then(|m| m.strip_prefix('*')).and_then(|n| n.parse::<u16>().ok())
        else {
            continue;
        };
        let Some(model) = models.get(usize::from(number)) else { continue };
        let kind = match get(entity, "classname").unwrap_or("") {
            "trigger_teleport" => {
                triggers.extend(teleport(entity, &entities).map(|effect| trigger(model, effect)));
                continue;
            }
            "trigger_push" => {
                triggers.push(trigger(model, push(entity)));
                continue;
            }
            "func_door" | "func_door_secret" => MovingKind::Door,
            "func_plat" => MovingKind::Plat,
            "func_train" => MovingKind::Train,
            "func_button" => MovingKind::Button,
            "func_wall" | "func_episodegate" | "func_bossgate" => MovingKind::Wall,
            _ => continue,
        };
        moving.push(MovingModel { model: number, kind, rests: rests(entity, kind, model), sunk: None });
    }
    EntityLump { triggers, moving, spawns }
}

type EntityPairs<'a> = Vec<(&'a str, &'a str)>;

fn trigger(model: &Submodel, effect: TriggerEffect) -> Trigger {
    let (mins, maxs) = (model.mins.map(|v| v - LINK_MARGIN), model.maxs.map(|v| v + LINK_MARGIN));
    Trigger { mins, maxs, effect }
}

/// Returns the effect of a teleporter; `None` if it has a target name, because it then waits to be triggered.
fn teleport(entity: &EntityPairs<'_>, entities: &[EntityPairs<'_>]) -> Option<TriggerEffect> {
    if get(entity, "targetname").is_some() {
        return None;
    }
    let target = get(entity, "target")?;
    let destination = entities.iter().find(|e| get(e, "targetname") == Some(target))?;
    let mut to = vector(get(destination, "origin")?)?;
    to[2] += DESTINATION_RAISE;
    let angles = get(destination, "angles").and_then(vector).unwrap_or([0.0, angle(destination), 0.0]);
    Some(TriggerEffect::Teleport { to, angles })
}

fn push(entity: &EntityPairs<'_>) -> TriggerEffect {
    let speed = number(entity, "speed").filter(|speed| *speed != 0.0).unwrap_or(1000.0);
    TriggerEffect::Push { velocity: direction(entity).map(|d| d * speed * 10.0) }
}

/// Returns whether the game removes the entity in deathmatch.
fn is_left_out(entity: &EntityPairs<'_>) -> bool {
    const NOT_IN_DEATHMATCH: u32 = 2048;
    number(entity, "spawnflags").unwrap_or(0.0) as u32 & NOT_IN_DEATHMATCH != 0
}

/// Returns the rest positions of a moving model by the game's public rules. One is the position in the map. The other
/// is displaced by the model's length along its direction, less a lip.
fn rests(entity: &EntityPairs<'_>, kind: MovingKind, model: &Submodel) -> [[f32; 3]; 2] {
    let size = [0, 1, 2].map(|axis| model.maxs[axis] - model.mins[axis] + LINK_MARGIN);
    let along = |lip: f32| {
        let direction = direction(entity);
        let length = (0..3).map(|axis| direction[axis] * size[axis]).sum::<f32>().abs();
        direction.map(|d| d * (length - number(entity, "lip").filter(|lip| *lip != 0.0).unwrap_or(lip)))
    };
    let far = match kind {
        MovingKind::Door if get(entity, "classname") == Some("func_door") => along(8.0),
        MovingKind::Button => along(4.0),
        MovingKind::Plat => {
            let height = number(entity, "height").filter(|height| *height != 0.0);
            [0.0, 0.0, -height.unwrap_or(size[2] - 8.0)]
        }
        MovingKind::Door | MovingKind::Train | MovingKind::Wall => [0.0; 3],
    };
    [[0.0; 3], far]
}

fn number(entity: &EntityPairs<'_>, key: &str) -> Option<f32> {
    get(entity, key)?.trim().parse::<f32>().ok().filter(|value| value.is_finite())
}

fn direction(entity: &EntityPairs<'_>) -> [f32; 3] {
    match angle(entity) {
        -1.0 => [0.0, 0.0, 1.0],
        -2.0 => [0.0, 0.0, -1.0],
        yaw => {
            let (sin, cos) = libm::sincosf(yaw.to_radians());
            [cos, sin, 0.0]
        }
    }
}

fn angle(entity: &EntityPairs<'_>) -> f32 {
    number(entity, "angle").unwrap_or(0.0)
}

fn vector(text: &str) -> Option<[f32; 3]> {
    let mut parts = text.split_whitespace().map(|part| part.parse::<f32>().ok().filter(|v| v.is_finite()));
    Some([parts.next()??, parts.next()??, parts.next()??])
}

fn get<'a>(entity: &EntityPairs<'a>, key: &str) -> Option<&'a str> {
    entity.iter().find(|(k, _)| *k == key).map(|(_, value)| *value)
}

/// Returns the key-value pairs of each `{ "key" "value" ... }`.
fn split(text: &str) -> Vec<EntityPairs<'_>> {
    let mut entities = Vec::new();
    let mut current = Vec::new();
    let mut key = None;
    for (index, part) in text.split('"').enumerate() {
        if index % 2 == 0 {
            if part.contains('}') {
                entities.push(std::mem::take(&mut current));
                key = None;
            }
        } else if let Some(key) = key.take() {
            current.push((key, part));
        } else {
            key = Some(part);
        }
    }
    entities
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_teleporter_finds_its_destination() {
        let model = Submodel { mins: [0.0; 3], maxs: [8.0; 3], point_root: -1, clip_root: -1 };
        let text = br#"
            { "classname" "worldspawn" }
            { "classname" "trigger_teleport" "model" "*1" "target" "t1" }
            { "classname" "func_plat" "model" "*2" }
            { "classname" "info_player_deathmatch" "origin" "1 2 3" }
            { "classname" "info_player_coop" "origin" "7 7 7" "spawnflags" "2048" }
            { "classname" "trigger_teleport" "model" "*99" "target" "t1" }
            { "classname" "info_teleport_destination" "targetname" "t1" "origin" "10 20 30" "angle" "90" }"#;
        let EntityLump { triggers, moving, spawns } = read_entities(text, &[model; 3]);
        assert_eq!(spawns, [[1.0, 2.0, 4.0]]);
        assert_eq!(
            moving,
            [MovingModel { model: 2, kind: MovingKind::Plat, rests: [[0.0; 3], [0.0, 0.0, -2.0]], sunk: None }]
        );
        let effect = TriggerEffect::Teleport { to: [10.0, 20.0, 57.0], angles: [0.0, 90.0, 0.0] };
        assert_eq!(triggers, [Trigger { mins: [-2.0; 3], maxs: [10.0; 3], effect }]);
    }

    #[test]
    fn damaged_text_is_read_up_to_the_damage() {
        assert_eq!(read_entities(b"{ \"model\" \"*1", &[]), EntityLump::default());
        assert_eq!(read_entities(b"}}}\"\"\"{", &[]), EntityLump::default());
    }
}
