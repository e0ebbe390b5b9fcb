//! The `effects` table: every sound and sight that a client played, and whether it predicted it.

use super::columns::{Names, table};
use crate::game::{Effect, Game};
use crate::trace::{Data, Table};
use crate::units::{Micros, PlayerId};

#[derive(Clone, Debug, Default)]
pub(super) struct Effects {
    player: Vec<u32>,
    at_us: Vec<i64>,
    kind: Names,
    entity: Vec<u32>,
    place: [Vec<f32>; 3],
    predicted: Vec<u32>,
}

impl Effects {
    pub(super) fn push<G: Game>(&mut self, player: PlayerId, at: Micros, effect: &Effect, predicted: bool) {
        self.player.push(u32::from(player.0));
        self.at_us.push(at.0);
        self.kind.push(G::effect_name(effect.kind));
        self.entity.push(u32::from(effect.entity.0));
        for (column, value) in self.place.iter_mut().zip(effect.at.to_array()) {
            column.push(value);
        }
        self.predicted.push(u32::from(predicted));
    }

    pub(super) fn table(self) -> Table {
        let [x, y, z] = self.place;
        let columns = vec![
            ("player", Data::U32(self.player)),
            ("at_us", Data::I64(self.at_us)),
            ("kind", self.kind.data()),
            ("entity", Data::U32(self.entity)),
            ("at.x", Data::F32(x)),
            ("at.y", Data::F32(y)),
            ("at.z", Data::F32(z)),
            ("predicted", Data::U32(self.predicted)),
        ];
        table("effects", columns, Vec::new())
    }
}
