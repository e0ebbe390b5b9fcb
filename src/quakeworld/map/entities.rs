//! Reads the entities lump of a map: teleporters, pushes and moving brush models. Damaged text yields fewer entities,
//! never an error, as the game itself would have it.

use super::level::{MovingKind, MovingModel, Submodel, Trigger, TriggerEffect};

/// Servers raise a teleporter's destination by this much, in units.
const DESTINATION_RAISE: f32 = 27.0;
/// Servers widen a brush model's box by a unit when they load it, and by another when they link it.
const LINK_MARGIN: f32 = 2.0;

/// What the entities lump says about triggers and moving models.
pub(crate) fn read_entities(lump: &[u8], models: &[Submodel]) -> (Vec<Trigger>, Vec<MovingModel>) {
    let text = String::from_utf8_lossy(lump);
    let entities = split(&text);
    let mut triggers = Vec::new();
    let mut moving = Vec::new();
    for entity in &entities {
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
        moving.push(MovingModel { model: number, kind });
    }
    (triggers, moving)
}

type Entity<'a> = Vec<(&'a str, &'a str)>;

fn trigger(model: &Submodel, effect: TriggerEffect) -> Trigger {
    let (mins, maxs) = (model.mins.map(|v| v - LINK_MARGIN), model.maxs.map(|v| v + LINK_MARGIN));
    Trigger { mins, maxs, effect }
}

/// A teleporter with a name of its own waits to be triggered, and is left out.
fn teleport(entity: &Entity<'_>, entities: &[Entity<'_>]) -> Option<TriggerEffect> {
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

fn push(entity: &Entity<'_>) -> TriggerEffect {
    let speed = get(entity, "speed").and_then(|s| s.parse::<f32>().ok()).filter(|s| *s != 0.0).unwrap_or(1000.0);
    let direction = match angle(entity) {
        -1.0 => [0.0, 0.0, 1.0],
        -2.0 => [0.0, 0.0, -1.0],
        yaw => {
            let (sin, cos) = libm::sincosf(yaw.to_radians());
            [cos, sin, 0.0]
        }
    };
    TriggerEffect::Push { velocity: direction.map(|d| d * speed * 10.0) }
}

fn angle(entity: &Entity<'_>) -> f32 {
    get(entity, "angle").and_then(|a| a.parse().ok()).unwrap_or(0.0)
}

fn vector(text: &str) -> Option<[f32; 3]> {
    let mut parts = text.split_whitespace().map(|part| part.parse::<f32>().ok().filter(|v| v.is_finite()));
    Some([parts.next()??, parts.next()??, parts.next()??])
}

fn get<'a>(entity: &Entity<'a>, key: &str) -> Option<&'a str> {
    entity.iter().find(|(k, _)| *k == key).map(|(_, value)| *value)
}

/// The key-value pairs of each `{ "key" "value" ... }`.
fn split(text: &str) -> Vec<Entity<'_>> {
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
            { "classname" "trigger_teleport" "model" "*99" "target" "t1" }
            { "classname" "info_teleport_destination" "targetname" "t1" "origin" "10 20 30" "angle" "90" }"#;
        let (triggers, moving) = read_entities(text, &[model; 3]);
        assert_eq!(moving, [MovingModel { model: 2, kind: MovingKind::Plat }]);
        let effect = TriggerEffect::Teleport { to: [10.0, 20.0, 57.0], angles: [0.0, 90.0, 0.0] };
        assert_eq!(triggers, [Trigger { mins: [-2.0; 3], maxs: [10.0; 3], effect }]);
    }

    #[test]
    fn damaged_text_is_read_as_far_as_it_goes() {
        assert_eq!(read_entities(b"{ \"model\" \"*1", &[]), (vec![], vec![]));
        assert_eq!(read_entities(b"}}}\"\"\"{", &[]), (vec![], vec![]));
    }
}
