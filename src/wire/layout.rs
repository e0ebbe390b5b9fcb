//! Which cell of a body belongs to which bit of the update bitfield of the NeREIDS live protocol.

use std::marker::PhantomData;

use crate::game::{Body, CellKind, Field, Meaning, Scope};

/// What a cell means to those who are told about it. The protocol's bits are in order of importance, 7 first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Bit 7: who controls it, or what an AI decided.
    Controller,
    /// Bit 6: an event of the game (teleports, dying, coming back).
    Event,
    /// Bit 5: a value of the game (health, ammunition, timers of weapons).
    Value,
    /// Bit 4: an action that does not move it.
    Action,
    /// Bit 3: velocity and position.
    Movement,
    /// Bit 2: a part of an action, a sound, an effect.
    SubAction,
    /// Bit 1: the movement style.
    Style,
    /// Bit 1, and how orientation is written: on the ground when it is not 0.
    Ground,
    /// Bit 0: something about the head.
    Head,
}

/// How many bits the update bitfield has.
pub(crate) const GROUPS: usize = 8;
/// The bit of [`Role::Head`].
pub(crate) const HEAD: usize = 0;
/// The bit of body orientation and movement style.
pub(crate) const ORIENTATION: usize = 1;

impl Role {
    /// The role of a field by what it means, and where that says nothing by its scope.
    pub fn by_default(field: &Field) -> Role {
        match (field.meaning, field.scope) {
            (Meaning::Position | Meaning::Velocity | Meaning::Direction | Meaning::Angle, _) => Role::Movement,
            (Meaning::Flag, Scope::Movement) => Role::Style,
            (Meaning::Flag | Meaning::Counter, _) => Role::Event,
            (Meaning::Name | Meaning::Time | Meaning::Plain, Scope::Movement) => Role::Movement,
            (Meaning::Name | Meaning::Time | Meaning::Plain, _) => Role::Value,
        }
    }

    /// The bit of the update bitfield.
    pub(crate) fn bit(self) -> usize {
        match self {
            Role::Controller => 7,
            Role::Event => 6,
            Role::Value => 5,
            Role::Action => 4,
            Role::Movement => 3,
            Role::SubAction => 2,
            Role::Style | Role::Ground => ORIENTATION,
            Role::Head => HEAD,
        }
    }
}

/// A body that goes over the wire. A game says `impl Networked for MyBody {}`, or which role each field has. Server and
/// client must have the same roles: they are part of the game's version.
///
/// Fields that only clients know are never sent; their types must have the word 0, from which the receiver sets them to
/// their defaults.
pub trait Networked: Body {
    /// Whether the orientation goes over the wire as such.
    const HAS_ORIENTATION: bool = true;

    /// The role of a field. The body's orientation has none: it is the first three floats in a row that are
    /// [angles](Meaning::Angle). On the ground its pitch is the head's alone, and bit 0's; everything else of it is bit 1's.
    fn role(field: &Field) -> Role {
        Role::by_default(field)
    }
}

/// The cells of a body by bit.
#[derive(Clone, Debug)]
pub(crate) struct Layout<B> {
    pub(crate) kinds: Vec<CellKind>,
    /// For each bit its cells, but those of `turn`.
    pub(crate) groups: [Vec<usize>; GROUPS],
    pub(crate) ground: Option<usize>,
    pub(crate) turn: Option<Turn>,
    body: PhantomData<fn() -> B>,
}

/// The cells of the orientation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(crate) pitch: usize,
    pub(crate) yaw: usize,
    pub(crate) roll: usize,
}

impl<B: Networked> Layout<B> {
    pub(crate) fn new() -> Layout<B> {
        let fields = B::fields();
        let sent = |i: &usize| fields[*i].scope != Scope::ClientOnly;
        let with = |role| (0..fields.len()).filter(sent).find(|i| B::role(&fields[*i]) == role);
        let is_angle =
            |f: &Field| f.meaning == Meaning::Angle && f.kind == CellKind::F32 && f.scope != Scope::ClientOnly;
        let turn = fields.windows(3).position(|three| B::HAS_ORIENTATION && three.iter().all(is_angle));
        let turn = turn.map(|pitch| Turn { pitch, yaw: pitch + 1, roll: pitch + 2 });
        let is_turn = |i| turn.is_some_and(|t| [t.pitch, t.yaw, t.roll].contains(&i));
        let mut groups: [Vec<usize>; GROUPS] = Default::default();
        for i in (0..fields.len()).filter(sent).filter(|i| !is_turn(*i)) {
            groups[B::role(&fields[i]).bit()].push(i);
        }
        Layout {
            kinds: fields.iter().map(|f| f.kind).collect(),
            groups,
            ground: with(Role::Ground),
            turn,
            body: PhantomData,
        }
    }

    pub(crate) fn is_on_ground(&self, cells: &[u32]) -> bool {
        self.ground.is_some_and(|i| cells[i] != 0)
    }
}
