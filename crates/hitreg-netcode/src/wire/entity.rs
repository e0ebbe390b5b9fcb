//! The encoding of one entity's change: the NeREIDS update bitfield, to whose bits the body's cells are assigned, then the
//! data of each set bit, from bit 7 down to bit 0.

use super::DecodeError;
use super::bits::{BitReader, BitWriter, get_change, get_maybe_changed, get_varint, put_change, put_varint};
use super::notice::{ID_CHUNK_BITS, kind};
use crate::game::{Body, CellKind, CellRole, Scope, fields_by_cell};
use hitreg_log::units::EntityId;

/// The number of bits in the update bitfield.
const GROUPS: usize = 8;
/// The bit of [`CellRole::Head`].
const HEAD: usize = 0;
/// The bit of body orientation and movement style.
const ORIENTATION: usize = 1;

/// Groups with more cells than this write their mask in two steps: first which nibbles are non-zero, then those
/// nibbles.
const NIBBLE: usize = 4;

/// The cells of a body, grouped by bit.
#[derive(Clone, Debug)]
pub(crate) struct BodyLayout {
    /// The kind of each cell's field.
    kinds: Vec<CellKind>,
    /// The cells of each bit, without those of `turn`.
    groups: [Vec<usize>; GROUPS],
    ground: Option<usize>,
    /// The cells of pitch, yaw and roll.
    turn: Option<[usize; 3]>,
    /// The cells of an entity that the receiver does not have: all 0.
    pub(crate) zeros: Vec<u32>,
}

impl BodyLayout {
    pub(crate) fn new<B: Body>() -> BodyLayout {
        let fields = fields_by_cell::<B>();
        let sent = |i: &usize| fields[*i].scope != Scope::ClientOnly;
        let with = |role| (0..fields.len()).filter(sent).find(|i| B::role(&fields[*i]) == role);
        let is_angle =
            |i: usize| sent(&i) && fields[i].kind == CellKind::F32 && B::role(&fields[i]) == CellRole::Orientation;
        let turn = (2..fields.len()).find(|&roll| (roll - 2..=roll).all(is_angle));
        let turn = turn.map(|roll| [roll - 2, roll - 1, roll]);
        let is_turn = |i| turn.is_some_and(|turn| turn.contains(&i));
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
        }
    }

    fn is_on_ground(&self, cells: &[u32]) -> bool {
        self.ground.is_some_and(|i| cells[i] != 0)
    }

    /// Returns the bits of the update bitfield that the change from `old` to `new` sets; 0 when nothing changed.
    pub(crate) fn update_bits(&self, old: &[u32], new: &[u32]) -> u8 {
        let mut bits = 0;
        for (bit, group) in self.groups.iter().enumerate() {
            if group.iter().any(|i| old[*i] != new[*i]) {
                bits |= 1 << bit;
            }
        }
        if let Some(turn @ [pitch, yaw, roll]) = self.turn {
            let differs = |i: usize| old[i] != new[i];
            let grounded = self.is_on_ground(new);
            if differs(yaw) || differs(roll) || (!grounded && differs(pitch)) {
                bits |= 1 << ORIENTATION;
            }
            let covered_by_body = bits & (1 << ORIENTATION) != 0 && is_upright(turn, new);
            if grounded && differs(pitch) && !covered_by_body {
                bits |= 1 << HEAD;
            }
        }
        bits
    }

    /// Writes a change of an entity, from a base with its distance in snapshots to its state; without a base, the entity
    /// appears, and without a state, it is removed. `values` gets the bits of each cell.
    pub(crate) fn put_entity(
        &self,
        (id, controller): (EntityId, u16),
        usual_distance: Option<u32>,
        base: Option<(u32, &[u32])>,
        cells: Option<&[u32]>,
        values: &mut impl FnMut(usize, usize),
        out: &mut BitWriter,
    ) {
        let Some(cells) = cells else {
            put_kind(out, kind::ENTITY_REMOVAL, id);
            return;
        };
        match base {
            Some((distance, old)) => {
                put_kind(out, kind::ENTITY_UPDATE, id);
                out.put_bool(Some(distance) == usual_distance);
                if Some(distance) != usual_distance {
                    put_varint(out, u64::from(distance), BASE_CHUNK_BITS);
                }
                self.put_update(out, old, cells, values);
            }
            None => {
                put_kind(out, kind::ENTITY_DEFINITION, id);
                out.put(u64::from(controller), 16);
                put_kind(out, kind::ENTITY_UPDATE, id);
                self.put_update(out, &self.zeros, cells, values);
            }
        }
    }

    /// Writes the bitfield and its data. Calls `values` with each cell and the number of bits of its value.
    pub(crate) fn put_update(
        &self,
        out: &mut BitWriter,
        old: &[u32],
        new: &[u32],
        values: &mut impl FnMut(usize, usize),
    ) {
        let bits = self.update_bits(old, new);
        out.put(u64::from(bits), 8);
        let mut put = |out: &mut BitWriter, i: usize| {
            let before = out.len_bits();
            put_change(out, self.kinds[i], old[i], new[i]);
            values(i, out.len_bits() - before);
        };
        for bit in (0..GROUPS).rev().filter(|bit| bits & (1 << bit) != 0) {
            let differs = |i: &usize| old[*i] != new[*i];
            let group = &self.groups[bit];
            put_mask(out, group.len(), |place| differs(&group[place]));
            group.iter().copied().filter(differs).for_each(|i| put(out, i));
            let mut put_maybe = |out: &mut BitWriter, i: usize| {
                out.put_bool(differs(&i));
                if differs(&i) {
                    put(out, i);
                }
            };
            match (bit, self.turn) {
                (ORIENTATION, Some(turn)) => self.put_turn(out, turn, new, &mut put_maybe),
                (HEAD, Some([pitch, ..])) if self.is_on_ground(new) => put_maybe(out, pitch),
                _ => {}
            }
        }
    }

    /// Reads an update from [`BodyLayout::put_update`] and applies it to `cells`.
    pub(crate) fn get_update(&self, from: &mut BitReader<'_>, cells: &mut [u32]) -> Result<(), DecodeError> {
        let bits = from.get_u8()?;
        for bit in (0..GROUPS).rev().filter(|bit| bits & (1 << bit) != 0) {
            let group = &self.groups[bit];
            get_mask(from, group.len())?.for_each(|place| {
                let i = group[place];
                cells[i] = get_change(from, self.kinds[i], cells[i])?;
                Ok(())
            })?;
            match (bit, self.turn) {
                (ORIENTATION, Some(turn)) => self.get_turn(from, turn, cells)?,
                (HEAD, Some([pitch, ..])) if self.is_on_ground(cells) => {
                    cells[pitch] = get_maybe_changed(from, CellKind::F32, cells[pitch])?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Writes the orientation. On the ground, a body turns only about the up axis, and one bit says whether the head is
    /// level with it. If it is not, that bit is 0. Off the ground, the whole rotation follows.
    fn put_turn(
        &self,
        out: &mut BitWriter,
        turn @ [pitch, yaw, roll]: [usize; 3],
        new: &[u32],
        put: &mut impl FnMut(&mut BitWriter, usize),
    ) {
        let is_on_ground = self.is_on_ground(new);
        let is_level = is_on_ground && is_upright(turn, new);
        if is_on_ground {
            out.put_bool(is_level);
        } else {
            put(out, pitch);
        }
        put(out, yaw);
        if !is_level {
            put(out, roll);
        }
    }

    fn get_turn(
        &self,
        from: &mut BitReader<'_>,
        [pitch, yaw, roll]: [usize; 3],
        cells: &mut [u32],
    ) -> Result<(), DecodeError> {
        let is_on_ground = self.is_on_ground(cells);
        let is_level = is_on_ground && from.get_bool()?;
        let mut get = |i: usize| get_maybe_changed(from, CellKind::F32, cells[i]).map(|cell| cells[i] = cell);
        if !is_on_ground {
            get(pitch)?;
        }
        get(yaw)?;
        if !is_level {
            return get(roll);
        }
        (cells[pitch], cells[roll]) = (0, 0);
        Ok(())
    }
}

/// Writes which of `count` cells changed.
pub(crate) fn put_mask(out: &mut BitWriter, count: usize, changed: impl Fn(usize) -> bool) {
    let in_two_steps = count > NIBBLE;
    let word = |at: usize| (at..count.min(at + 64)).fold(0, |word, i| word | u64::from(changed(i)) << (i - at));
    let put_nibbles = |out: &mut BitWriter, at: usize, word: u64| {
        for from in (at..count.min(at + 64)).step_by(NIBBLE) {
            let bits = (word >> (from - at)) & 0xf;
            if bits != 0 || !in_two_steps {
                out.put(bits, NIBBLE.min(count - from) as u32);
            }
        }
    };
    let put_any = |out: &mut BitWriter, at: usize, word: u64| {
        let any = word | word >> 1 | word >> 2 | word >> 3;
        let bits = (0..16).fold(0, |bits, n| bits | (any >> (NIBBLE * n) & 1) << n);
        out.put(bits, (count - at).min(64).div_ceil(NIBBLE) as u32);
    };
    let first = word(0);
    let later = || (64..count).step_by(64).map(|at| (at, word(at)));
    if in_two_steps {
        put_any(out, 0, first);
        later().for_each(|(at, word)| put_any(out, at, word));
    }
    put_nibbles(out, 0, first);
    later().for_each(|(at, word)| put_nibbles(out, at, word));
}

/// A mask from [`put_mask`], as two places of the datagram.
#[derive(Clone, Debug)]
pub(crate) struct ChangeMask<'a> {
    /// One bit for each nibble, where a mask has two steps.
    any: Option<BitReader<'a>>,
    nibbles: BitReader<'a>,
    count: usize,
}

/// Reads which of `count` cells changed. `count` comes from the game, never from the datagram.
pub(crate) fn get_mask<'a>(from: &mut BitReader<'a>, count: usize) -> Result<ChangeMask<'a>, DecodeError> {
    let any = (count > NIBBLE).then(|| from.clone());
    let mut bits = count;
    if any.is_some() {
        let nibbles = count.div_ceil(NIBBLE);
        let mut present = 0;
        let mut last_is_present = false;
        for at in (0..nibbles).step_by(64) {
            let width = (nibbles - at).min(64) as u32;
            let word = from.get(width)?;
            present += word.count_ones() as usize;
            last_is_present = word >> (width - 1) == 1;
        }
        let missing_in_last = nibbles * NIBBLE - count;
        bits = present * NIBBLE - if last_is_present { missing_in_last } else { 0 };
    }
    let nibbles = from.clone();
    from.skip(bits)?;
    Ok(ChangeMask { any, nibbles, count })
}

impl ChangeMask<'_> {
    /// Calls `each` with the place of each cell that changed, in order.
    pub(crate) fn for_each(
        mut self,
        mut each: impl FnMut(usize) -> Result<(), DecodeError>,
    ) -> Result<(), DecodeError> {
        for at in (0..self.count).step_by(NIBBLE) {
            if let Some(any) = &mut self.any
                && !any.get_bool()?
            {
                continue;
            }
            let mut bits = self.nibbles.get(NIBBLE.min(self.count - at) as u32)?;
            while bits != 0 {
                each(at + bits.trailing_zeros() as usize)?;
                bits &= bits - 1;
            }
        }
        Ok(())
    }
}

fn is_upright([pitch, _, roll]: [usize; 3], cells: &[u32]) -> bool {
    cells[pitch] == 0 && cells[roll] == 0
}

const BASE_CHUNK_BITS: u32 = 4;

/// Reads the base of an update, as a distance in snapshots (at least 1).
pub(crate) fn get_base(from: &mut BitReader<'_>, usual_distance: Option<u32>) -> Result<u32, DecodeError> {
    if from.get_bool()? {
        return usual_distance.ok_or(DecodeError::bad("the base of an update", 0));
    }
    let distance = get_varint(from, BASE_CHUNK_BITS)?;
    match u32::try_from(distance) {
        Ok(distance) if distance > 0 => Ok(distance),
        _ => Err(DecodeError::bad("the base of an update", distance)),
    }
}

fn put_kind(out: &mut BitWriter, kind: u64, id: EntityId) {
    out.put(kind, 4);
    put_varint(out, u64::from(id.0), ID_CHUNK_BITS);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::{FieldSchema, body};
    use glam::Vec3;
    use proptest::prelude::*;

    body! {
        struct Beast {
            Movement origin: Vec3,
            Movement velocity: Vec3,
            Movement viewangles: Vec3,
            Movement on_ground: bool,
            Movement ducked: bool,
            Movement head_tilt: i32,
            Status controller: u16,
            Status action: u8,
            Status step_ms: u16,
            Weapons ammo: u8,
            Weapons refire_ms: u16,
            Status health: i32,
            Status frags: i32,
            Status armour: u32,
            Status teleports: u32,
            Status alive: bool,
            ClientOnly view_ofs: f32,
        }
        role = role;
    }

    fn role(field: &FieldSchema) -> CellRole {
        match &*field.name {
            "on_ground" => CellRole::Ground,
            "head_tilt" => CellRole::Head,
            "controller" => CellRole::Controller,
            "action" => CellRole::Action,
            "step_ms" => CellRole::SubAction,
            _ => CellRole::by_default(field),
        }
    }

    fn through(layout: &BodyLayout, old: &[u32], new: &[u32]) -> (Vec<u32>, usize) {
        let mut out = BitWriter::default();
        let mut values = 0;
        layout.put_update(&mut out, old, new, &mut |_, bits| values += bits);
        let bits = out.len_bits();
        assert!(values + 8 <= bits, "values are a part of it");
        let bytes = out.into_bytes();
        let mut from = BitReader::new(&bytes);
        let mut cells = old.to_vec();
        layout.get_update(&mut from, &mut cells).expect("it was just written");
        assert_eq!(from.finish(), Ok(()));
        (cells, bits)
    }

    fn cells(beast: &Beast) -> Vec<u32> {
        let mut cells = vec![0; Beast::CELLS];
        beast.write(&mut cells);
        cells
    }

    #[test]
    fn meanings_and_scopes_give_the_bits() {
        let bit_of = |name: &str, fields: &[FieldSchema]| {
            fields.iter().find(|f| f.name == name).map(role).map(CellRole::bit).expect(name)
        };
        let fields = Beast::fields();
        for (name, bit) in [
            ("controller", 7),
            ("alive", 6),
            ("teleports", 6),
            ("health", 5),
            ("refire_ms", 5),
            ("action", 4),
            ("origin.x", 3),
            ("velocity.z", 3),
            ("step_ms", 2),
            ("ducked", 1),
            ("on_ground", 1),
            ("viewangles.y", 1),
            ("head_tilt", 0),
        ] {
            assert_eq!(bit_of(name, &fields), bit, "{name}");
        }
    }

    #[test]
    fn orientation_follows_the_movement_style() {
        let layout = BodyLayout::new::<Beast>();
        let standing = Beast { on_ground: true, ..Beast::default() };
        let turned = Beast { viewangles: Vec3::new(0.0, 90.0, 0.0), ..standing };
        let nodding = Beast { viewangles: Vec3::new(10.0, 0.0, 0.0), ..standing };
        let bits = |old: &Beast, new: &Beast| layout.update_bits(&cells(old), &cells(new));
        assert_eq!(bits(&standing, &turned), 0b10);
        assert_eq!(bits(&standing, &nodding), 0b01);
        // Turning and levelling the head in one step changes only the body's orientation.
        assert_eq!(bits(&nodding, &turned), 0b10);
        let diving = |b: &Beast| Beast { on_ground: false, ..*b };
        assert_eq!(bits(&diving(&standing), &diving(&nodding)), 0b10);
        let on_ground = through(&layout, &cells(&standing), &cells(&turned)).1;
        let in_water = through(&layout, &cells(&diving(&standing)), &cells(&diving(&turned))).1;
        assert_eq!(on_ground + 1, in_water, "one bit for `upright` against one each for pitch and roll");
    }

    #[test]
    fn fields_that_only_clients_know_are_not_sent() {
        let layout = BodyLayout::new::<Beast>();
        let squinting = Beast { view_ofs: 17.0, ..Beast::default() };
        assert_eq!(layout.update_bits(&cells(&Beast::default()), &cells(&squinting)), 0);
    }

    /// Words that are equal often enough for every combination of changes to occur.
    fn words() -> impl Strategy<Value = Vec<u32>> {
        let word = prop_oneof![Just(0u32), Just(1), Just(1f32.to_bits()), Just(0x8000_0000), any::<u32>()];
        prop::collection::vec(word, Beast::CELLS)
    }

    proptest! {
        #[test]
        fn every_state_comes_back_from_every_other(old in words(), new in words()) {
            let layout = BodyLayout::new::<Beast>();
            let (mut back, _) = through(&layout, &old, &new);
            let client_only = Beast::CELLS - 1;
            prop_assert_eq!(back[client_only], old[client_only]);
            back[client_only] = new[client_only];
            prop_assert_eq!(back, new);
        }

        #[test]
        fn masks_survive_a_round_trip(mask in prop::collection::vec(prop::bool::weighted(0.2), 0..300)) {
            let mut out = BitWriter::default();
            put_mask(&mut out, mask.len(), |i| mask[i]);
            let bytes = out.into_bytes();
            let mut from = BitReader::new(&bytes);
            let mut back = vec![false; mask.len()];
            let read = get_mask(&mut from, mask.len()).expect("it was just written");
            prop_assert_eq!(read.for_each(|i| { back[i] = true; Ok(()) }), Ok(()));
            prop_assert_eq!(back, mask);
            prop_assert_eq!(from.finish(), Ok(()));
        }
    }
}
