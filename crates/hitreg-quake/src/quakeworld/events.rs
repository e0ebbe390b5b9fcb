//! Stores a packet's events in a log's snapshot. Chokes and effects use the fields that every game has. Other events
//! use the snapshot's extra bytes, which are empty without events.

use glam::Vec3;
use serde::{Deserialize, Serialize};

use super::body::FIRST_MODEL;
use super::demo::{DemoEvent, EffectKind};
use hitreg_netcode::game::{self, BadCells, Effect};

/// Kinds of effects, indexed by [`Effect::kind`].
const KINDS: [(EffectKind, &str); 5] = [
    (EffectKind::Explosion, "explosion"),
    (EffectKind::Teleport, "teleport"),
    (EffectKind::Blood, "blood"),
    (EffectKind::LightningBlood, "lightning_blood"),
    (EffectKind::Gunshot, "gunshot"),
];

/// The extra bytes of a snapshot, in MessagePack.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Extra {
    /// The level, if it changed.
    pub(crate) level: Option<u16>,
    /// Index of the movement settings in force after this packet, if it changed.
    pub(crate) move_vars: Option<u16>,
    /// Events without a field of their own, each with its index among all events of the packet.
    pub(crate) events: Vec<(u32, DemoEvent)>,
}

impl Extra {
    /// Returns the bytes; empty for default values.
    pub(crate) fn to_bytes(&self) -> Result<Vec<u8>, rmp_serde::encode::Error> {
        if *self == Extra::default() { Ok(Vec::new()) } else { rmp_serde::to_vec(self) }
    }

    /// Reads the bytes; the inverse of [`Extra::to_bytes`].
    pub(crate) fn of_bytes(bytes: &[u8]) -> Result<Extra, hitreg_log::serial::ReadError> {
        if bytes.is_empty() { Ok(Extra::default()) } else { hitreg_log::serial::from_msgpack(bytes) }
    }
}

/// A packet's events, assigned to a snapshot's fields.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PacketEvents {
    /// Number of packets held back, at most 255.
    pub(crate) choked: u8,
    pub(crate) effects: Vec<Effect>,
    pub(crate) rest: Vec<(u32, DemoEvent)>,
}

impl PacketEvents {
    /// Assigns the events to fields.
    pub(crate) fn of(events: &[DemoEvent]) -> PacketEvents {
        let mut sorted = PacketEvents::default();
        let chokes = events.iter().filter(|event| matches!(event, DemoEvent::Choked(_))).count();
        // Servers send a single choke first. Such a choke needs no stored index.
        let first_with_field =
            events.iter().find(|event| matches!(event, DemoEvent::Choked(_) | DemoEvent::Effect { .. }));
        let plain = chokes == 1 && matches!(first_with_field, Some(DemoEvent::Choked(1..)));
        for (place, event) in events.iter().enumerate() {
            match *event {
                DemoEvent::Choked(packets) => {
                    sorted.choked = sorted.choked.saturating_add(packets);
                    if !plain {
                        sorted.rest.push((place as u32, *event));
                    }
                }
                DemoEvent::Effect { kind, origin } => sorted.effects.push(effect(kind, origin)),
                _ => sorted.rest.push((place as u32, *event)),
            }
        }
        sorted
    }

    /// Returns the events; the inverse of [`PacketEvents::of`]. `Err` holds an unknown effect kind.
    pub(crate) fn events(&self) -> Result<Vec<DemoEvent>, u8> {
        let choke_has_place = self.rest.iter().any(|(_, event)| matches!(event, DemoEvent::Choked(_)));
        let choke = (self.choked > 0 && !choke_has_place).then_some(DemoEvent::Choked(self.choked));
        let effects = self.effects.iter().map(event);
        let mut placeless = choke.map(Ok).into_iter().chain(effects);
        let mut rest = self.rest.iter().peekable();
        let mut events = Vec::with_capacity(self.rest.len() + self.effects.len() + usize::from(choke.is_some()));
        loop {
            let next = match rest.next_if(|(place, _)| (*place as usize) <= events.len()) {
                Some((_, event)) => *event,
                None => match placeless.next() {
                    Some(event) => event?,
                    None => match rest.next() {
                        Some((_, event)) => *event,
                        None => return Ok(events),
                    },
                },
            };
            events.push(next);
        }
    }
}

/// Returns all events of a snapshot, in order.
///
/// # Errors
/// When the snapshot is not from a QuakeWorld recording.
pub(crate) fn events_of(extras: &game::SnapshotExtras<'_>) -> Result<Vec<DemoEvent>, BadCells> {
    let bad = |what: &str, found: u8| BadCells { what: what.to_owned(), found: u32::from(found) };
    let first = extras.extra.first().copied().unwrap_or(0);
    let extra = Extra::of_bytes(extras.extra).map_err(|_| bad("the first byte of what else its packet held", first))?;
    let sorted = PacketEvents { choked: extras.choked, effects: extras.effects.to_vec(), rest: extra.events };
    sorted.events().map_err(|kind| bad("the kind of an effect", kind))
}

/// Returns the name of an [`Effect::kind`].
pub(crate) fn effect_name(kind: u8) -> &'static str {
    KINDS.get(usize::from(kind)).map_or("unknown", |(_, name)| name)
}

fn effect(kind: EffectKind, origin: [f32; 3]) -> Effect {
    let kind = KINDS.iter().position(|(k, _)| *k == kind).unwrap_or(KINDS.len()) as u8;
    // The wire does not identify the cause; model 0 is the world.
    Effect { kind, entity: FIRST_MODEL, at: Vec3::from_array(origin), predictable: false }
}

fn event(effect: &Effect) -> Result<DemoEvent, u8> {
    let (kind, _) = KINDS.get(usize::from(effect.kind)).ok_or(effect.kind)?;
    Ok(DemoEvent::Effect { kind: *kind, origin: effect.at.to_array() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOOD: DemoEvent = DemoEvent::Effect { kind: EffectKind::Blood, origin: [1.0, 2.0, 3.0] };
    const HURT: DemoEvent = DemoEvent::Damage { armor: 1, health: 2, from: [0.0; 3] };

    #[test]
    fn any_order_of_events_survives_a_round_trip() {
        let orders: [&[DemoEvent]; 8] = [
            &[],
            &[DemoEvent::Choked(3), BLOOD, BLOOD],
            &[BLOOD, DemoEvent::Choked(3)],
            &[DemoEvent::Choked(0)],
            &[DemoEvent::Choked(1), DemoEvent::Choked(2), BLOOD],
            &[DemoEvent::Health(5), DemoEvent::Choked(1), HURT, BLOOD, DemoEvent::Pause(true), BLOOD],
            &[BLOOD, HURT, DemoEvent::Choked(200), DemoEvent::Choked(200)],
            &[HURT, DemoEvent::Intermission],
        ];
        for events in orders {
            assert_eq!(PacketEvents::of(events).events().as_deref(), Ok(events));
        }
        assert_eq!(PacketEvents::of(orders[6]).choked, 255);
    }

    #[test]
    fn an_empty_list_takes_no_bytes() {
        assert!(Extra::default().to_bytes().expect("bytes").is_empty());
        let extra = Extra { level: None, move_vars: Some(2), events: vec![(4, HURT)] };
        assert_eq!(Extra::of_bytes(&extra.to_bytes().expect("bytes")).expect("extra"), extra);
    }
}
