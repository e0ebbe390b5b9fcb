//! Where other bodies are expected to be when a command runs: players where they were last seen, brush models moved on
//! at the speed that the packets so far show.

use super::demo::{Demo, Mover, ServerPacket};
use super::world::Solid;

/// A brush model's speed is taken over at most this many packets.
const SPEED_PACKETS: usize = 8;

/// What a prediction from one packet may know of other bodies.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surroundings {
    solids: Vec<Solid>,
}

impl Surroundings {
    /// The bodies that packet `base` showed, moved on by `ahead_ms` of commands.
    pub fn predict(&mut self, demo: &Demo, base: usize, ahead_ms: u32) -> &[Solid] {
        self.fill(demo, base, |mover| {
            let per_ms = speed_per_ms(demo, base, mover);
            per_ms.map(|speed| speed * ahead_ms as f32)
        })
    }

    /// The bodies that packet `base` showed, brush models where packet `truth` shows them.
    pub fn known(&mut self, demo: &Demo, base: usize, truth: usize) -> &[Solid] {
        self.fill(demo, base, |mover| match find(demo, &demo.packets[truth], mover.model) {
            Some(now) => sub(now.origin, mover.origin),
            None => [0.0; 3],
        })
    }

    fn fill(&mut self, demo: &Demo, base: usize, moved: impl Fn(&Mover) -> [f32; 3]) -> &[Solid] {
        let packet = &demo.packets[base];
        self.solids.clear();
        for mover in packet.movers.of(&demo.movers) {
            let (model, moved) = (mover.model, moved(mover));
            self.solids.push(Solid::Mover { model, origin: add(mover.origin, moved), moved });
        }
        for other in packet.others.of(&demo.others).iter().filter(|other| !other.dead) {
            self.solids.push(Solid::Player { slot: other.slot, origin: other.origin });
        }
        &self.solids
    }
}

fn find<'a>(demo: &'a Demo, packet: &ServerPacket, model: u16) -> Option<&'a Mover> {
    packet.movers.of(&demo.movers).iter().find(|mover| mover.model == model)
}

/// Units per millisecond of commands, over the latest packets in which the model never stood still.
fn speed_per_ms(demo: &Demo, base: usize, mover: &Mover) -> [f32; 3] {
    let mut later = mover;
    let mut speed = [0.0; 3];
    for index in (0..base).rev().take(SPEED_PACKETS) {
        let packet = &demo.packets[index];
        let Some(earlier) = find(demo, packet, mover.model) else { break };
        if earlier.origin == later.origin {
            break;
        }
        let ms = msec_between(demo, packet.ack, demo.packets[base].ack);
        if ms > 0 {
            speed = sub(mover.origin, earlier.origin).map(|d| d / ms as f32);
        }
        later = earlier;
    }
    speed
}

/// Milliseconds of commands after `after`, up to and with `until`.
pub fn msec_between(demo: &Demo, after: i32, until: i32) -> u32 {
    let commands = super::open_loop::between(demo, after, until);
    demo.commands[commands].iter().map(|sent| u32::from(sent.cmd.msec)).sum()
}

fn add(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

fn sub(a: [f32; 3], b: [f32; 3]) -> [f32; 3] {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}
