//! Where other bodies stand while usercmds run. A server moves brush models and other players first, then runs one's
//! usercmds, then sends: so the packet that acks them shows the bodies that they met.

use super::demo::{Demo, Mover, OtherPlayer, ServerPacket};
use super::world::Solid;

/// Which packet's bodies a prediction meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bodies {
    /// Those of the packet that it starts from: all that a client in play can know.
    Acked,
    /// Those of the packet that acks its last usercmd: what the server had, so that what is tested is the movement code
    /// and not a guess at other people's input.
    Acking,
}

/// The solids of one prediction, kept to reuse the memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Surroundings {
    solids: Vec<Solid>,
}

impl Surroundings {
    /// The bodies for the usercmds between packets `base` and `packet` (indices into the demo's list). What the later
    /// packet does not show stands as the earlier one has it, and the other way round.
    pub fn between(&mut self, demo: &Demo, base: usize, packet: usize, bodies: Bodies) -> &[Solid] {
        let earlier = &demo.packets[base];
        let later = if bodies == Bodies::Acking { &demo.packets[packet] } else { earlier };
        self.solids.clear();
        for before in earlier.movers.of(&demo.movers) {
            let now = mover(demo, later, before.model).unwrap_or(before);
            let moved = [0, 1, 2].map(|axis| now.origin[axis] - before.origin[axis]);
            self.solids.push(Solid::Mover { model: now.model, origin: now.origin, moved });
        }
        for now in later.movers.of(&demo.movers).iter().filter(|now| mover(demo, earlier, now.model).is_none()) {
            self.solids.push(Solid::Mover { model: now.model, origin: now.origin, moved: [0.0; 3] });
        }
        for before in earlier.others.of(&demo.others) {
            self.add_player(player(demo, later, before.slot).unwrap_or(before));
        }
        for now in later.others.of(&demo.others).iter().filter(|now| player(demo, earlier, now.slot).is_none()) {
            self.add_player(now);
        }
        &self.solids
    }

    fn add_player(&mut self, other: &OtherPlayer) {
        if !other.dead {
            self.solids.push(Solid::Player { slot: other.slot, origin: other.origin });
        }
    }
}

fn mover<'a>(demo: &'a Demo, packet: &ServerPacket, model: u16) -> Option<&'a Mover> {
    packet.movers.of(&demo.movers).iter().find(|mover| mover.model == model)
}

fn player<'a>(demo: &'a Demo, packet: &ServerPacket, slot: u8) -> Option<&'a OtherPlayer> {
    packet.others.of(&demo.others).iter().find(|other| other.slot == slot)
}

#[cfg(test)]
mod tests {
    use super::super::testing::{DemoWriter, own_state};
    use super::super::usercmd::UserCmd;
    use super::*;

    /// Two packets: player 5 walks, player 6 leaves, player 7 dies, player 8 comes.
    fn demo() -> Demo {
        let mut demo = DemoWriter::default();
        demo.signon();
        demo.sequences(1);
        demo.command(0.0, &UserCmd::default());
        let at = |slot: u8, flags: u16, x: u8| {
            let [low, high] = flags.to_le_bytes();
            vec![42, slot, low, high, x, 0, 0, 0, 0, 0, 0]
        };
        let mut first = own_state([0.0; 3], [0.0; 3]);
        first.extend([at(5, 0, 8), at(6, 0, 16), at(7, 0, 24)].concat());
        demo.packet(0.1, 2, 1, &first);
        let mut second = own_state([0.0; 3], [0.0; 3]);
        second.extend([at(5, 0, 80), at(7, 1 << 9, 24), at(8, 0, 32)].concat());
        demo.packet(0.2, 3, 1, &second);
        Demo::parse(&demo.bytes).expect("good")
    }

    fn players(solids: &[Solid]) -> Vec<(u8, f32)> {
        let player = |solid: &Solid| match *solid {
            Solid::Player { slot, origin } => Some((slot, origin[0])),
            Solid::Mover { .. } => None,
        };
        solids.iter().filter_map(player).collect()
    }

    #[test]
    fn the_packet_asked_for_decides_where_players_are() {
        let demo = demo();
        let mut surroundings = Surroundings::default();
        let acked = players(surroundings.between(&demo, 1, 2, Bodies::Acked));
        assert_eq!(acked, [(5, 1.0), (6, 2.0), (7, 3.0)]);
        let acking = players(surroundings.between(&demo, 1, 2, Bodies::Acking));
        assert_eq!(acking, [(5, 10.0), (6, 2.0), (8, 4.0)]);
    }
}
