//! The assignment of a body's cells to the bits of the NeREIDS update bitfield.

use std::marker::PhantomData;

use crate::game::{Body, CellKind, CellRole, Scope, fields_by_cell};

/// The number of bits in the update bitfield.
pub(crate) const GROUPS: usize = 8;
/// The bit of [`CellRole::Head`].
pub(crate) const HEAD: usize = 0;
/// The bit of body orientation and movement style.
pub(crate) const ORIENTATION: usize = 1;

/// The cells of a body, grouped by bit.
#[derive(Clone, Debug)]
pub(crate) struct BodyLayout<B> {
    /// The kind of each cell's field.
    pub(crate) kinds: Vec<CellKind>,
    /// The cells of each bit, without those of `turn`.
    pub(crate) groups: [Vec<usize>; GROUPS],
    pub(crate) ground: Option<usize>,
    pub(crate) turn: Option<OrientationCells>,
    /// The cells of an entity that the receiver does not have: all 0.
    pub(crate) zeros: Vec<u32>,
    body: PhantomData<fn() -> B>,
}

/// The cells of the orientation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OrientationCells {
    pub(crate) pitch: usize,
    pub(crate) yaw: usize,
    pub(crate) roll: usize,
}

impl<B: Body> BodyLayout<B> {
    pub(crate) fn new() -> BodyLayout<B> {
        let fields = fields_by_cell::<B>();
        let sent = |i: &usize| fields[*i].scope != Scope::ClientOnly;
        let with = |role| (0..fields.len()).filter(sent).find(|i| B::role(&fields[*i]) == role);
        let is_angle =
            |i: usize| sent(&i) && fields[i].kind == CellKind::F32 && B::role(&fields[i]) == CellRole::Orientation;
        let turn = (2..fields.len()).find(|&roll| (roll - 2..=roll).all(is_angle));
        let turn = turn.map(|roll| OrientationCells { pitch: roll - 2, yaw: roll - 1, roll });
        let is_turn = |i| turn.is_some_and(|t| [t.pitch, t.yaw, t.roll].contains(&i));
        let mut groups: [Vec<usize>; GROUPS] = Default::default();
        for i in (0..fields.len()).filter(sent).filter(|i| !is_turn(*i)) {
            groups[B::role(&fields[i]).bit()].push(i);
        }
        BodyLayout {
            kinds: fields.iter().map(|f| f.kind).collect(),
            groups,
            ground: with(CellRole::Ground),
            turn,
            zeros: vec![0; fields.len()],
            body: PhantomData,
        }
    }

    pub(crate) fn is_on_ground(&self, cells: &[u32]) -> bool {
        self.ground.is_some_and(|i| cells[i] != 0)
    }
}
