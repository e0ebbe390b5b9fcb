//! A body is a row of 32-bit cells, which named fields divide. Logs store the cells, traces show the fields, diffs name
//! them, and the state hash runs over the cells, so that a game declares its fields once.

use glam::{DVec3, Vec3};

use super::{Class, ClassId, FieldSchema, Game, GameInput, Meaning, Scope};
use hitreg_log::record::{SessionHeader, cells_of};

/// The error for cells that are no valid state of the game.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {found} is not a value it can have")]
pub struct BadCells {
    /// The name of the value that was read.
    pub what: String,
    /// The word that is not valid for it.
    pub found: u32,
}

/// One entity's state. Declare it with [`body!`](macro@crate::game::body); implement it by hand only for what the macro
/// cannot express.
pub trait Body: Clone + PartialEq + std::fmt::Debug + Send + Sync + 'static {
    /// The number of cells.
    const CELLS: usize;
    /// The fields, in the order of their cells. A field has one cell or two, by its [kind](super::CellKind::cells).
    fn fields() -> Vec<FieldSchema>;
    /// Writes all cells; `cells` has exactly [`Body::CELLS`] words.
    fn write(&self, cells: &mut [u32]);
    /// Returns all cells.
    fn to_cells(&self) -> Vec<u32> {
        let mut cells = vec![0; Self::CELLS];
        self.write(&mut cells);
        cells
    }

    /// Appends all cells to `words`.
    fn append_to(&self, words: &mut Vec<u32>) {
        let start = words.len();
        words.resize(start + Self::CELLS, 0);
        self.write(&mut words[start..]);
    }

    /// Reads the cells back; exact inverse of [`Body::write`].
    ///
    /// # Errors
    /// When `cells` does not have exactly [`Body::CELLS`] words, or a word is not valid for its field.
    fn read(cells: &[u32]) -> Result<Self, BadCells>;
    /// What a field means to the clients that receive it: its place in the live protocol, and its priority. Server and
    /// client must use the same roles, so roles are part of the game's version.
    fn role(field: &FieldSchema) -> CellRole {
        CellRole::by_default(field)
    }
    /// The engine's own id of the entity, unique among entities. 0 if the game has no ids or the body belongs to no
    /// entity.
    fn id(&self) -> u64 {
        0
    }
    /// Position, in units, in the precision of the body's own field.
    fn position(&self) -> DVec3;
    /// Position, in units, in single precision. To measure between bodies, use [`Body::offset_from`].
    #[inline]
    fn position_f32(&self) -> Vec3 {
        self.position().as_vec3()
    }
    /// Difference from another body's position to this one's, in units. It is computed in double precision, so it is
    /// exact far from the world's origin too.
    #[inline]
    fn offset_from(&self, other: &Self) -> Vec3 {
        (self.position() - other.position()).as_vec3()
    }
    /// Velocity, in units/s.
    fn velocity(&self) -> Vec3;
    /// View direction (pitch, yaw, roll), in degrees.
    fn viewangles(&self) -> Vec3;
    /// Returns the same body at another position.
    fn moved_to(&self, position: DVec3) -> Self;
    /// Returns the same body, moved by an offset in units.
    #[inline]
    fn moved_by(&self, offset: Vec3) -> Self {
        self.moved_to(self.position() + offset.as_dvec3())
    }
    /// A counter that changes whenever the body is moved at once (teleport, respawn). Nothing is interpolated across a
    /// change.
    fn teleports(&self) -> u32;
    /// Whether the body belongs to no entity, such as the body of a player without an avatar. An absent body is not
    /// drawn, not a target, and in no table and no figure.
    fn is_absent(&self) -> bool {
        false
    }
    /// False for a dead body, which is drawn but cannot be hit, and for an absent one.
    fn is_alive(&self) -> bool;
    /// Reduces the body to what the server sends: [`Scope::ClientOnly`] fields take their default.
    fn strip_client_only(&mut self);
    /// Copies the [`Scope::ClientOnly`] fields from the client's prediction of the same usercmd.
    fn adopt_client_only(&mut self, predicted: &Self);
}

/// Returns the field of each cell: a field of two cells comes twice.
pub(crate) fn fields_by_cell<B: Body>() -> Vec<FieldSchema> {
    let by_cell = |field: FieldSchema| std::iter::repeat_n(field.clone(), field.kind.cells());
    B::fields().into_iter().flat_map(by_cell).collect()
}

/// Declares a struct whose fields are [`Cells`](crate::game::Cells), and implements [`Body`] from the list of fields.
///
/// Each field names its [`Scope`]. The names in this table have a fixed meaning, and each of them may be
/// left out:
///
/// | field | type | is |
/// | --- | --- | --- |
/// | `origin`, `velocity` | `Vec3`, or `Vec2` in a plane, or `DVec3`, `DVec2`; in an `Option` if it may be absent | [`Body::position`], [`Body::velocity`] |
/// | `viewangles` | `Vec3` in degrees, `f32` (yaw), `Quat` (z up); in an `Option` | [`Body::viewangles`] |
/// | `teleports` | `u32` | [`Body::teleports`] |
/// | `alive` | `bool` | [`Body::is_alive`]; a body without the field is alive |
/// | `id` | `u64` | [`Body::id`]; a new value is another entity, and 0 is no entity: [`Body::is_absent`] |
///
/// Every other field has the meaning of its type, or the meaning after `as`, with a unit if it is not the usual one.
/// After the struct, a game may name its own [`Body::role`]: `role = my_role;`.
///
/// ```
/// use hitreg_netcode::game::{Body, body};
/// use hitreg_netcode::glam::{Vec2, Vec3};
///
/// body! {
///     /// A disc that glides.
///     pub struct Disc {
///         Movement origin: Vec3,
///         Movement velocity: Vec3,
///         Status alive: bool,
///         Weapons refire_us: u32 as Time("us"),
///     }
/// }
/// assert_eq!(Disc::CELLS, 8);
/// assert_eq!((&*Disc::fields()[4].name, Disc::fields()[4].unit()), ("velocity.y", "units/s"));
/// assert_eq!(Disc::fields()[7].unit(), "us");
///
/// body! {
///     /// A bird's eye view of what may carry something.
///     pub struct Ant {
///         Status id: u64,
///         Movement origin: Vec2,
///         Status load: Option<f32>,
///     }
/// }
/// let ant = Ant { id: 1 << 40, origin: Vec2::X, load: None };
/// assert_eq!((ant.position_f32(), ant.velocity(), ant.is_alive()), (Vec3::X, Vec3::ZERO, true));
/// assert_ne!(ant.teleports(), Ant { id: 2 << 40, ..ant }.teleports());
/// assert!(Ant::default().is_absent() && !ant.is_absent() && !Disc::default().is_absent());
/// ```
#[macro_export]
macro_rules! hitreg_body {
    (
        $(#[$doc:meta])* $vis:vis struct $name:ident {
            $( $(#[$field_doc:meta])* $scope:ident $field:ident : $type:ty
                $(as $meaning:ident $(($unit:literal))?)? ),* $(,)?
        }
        $( role = $role:path; )?
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        $vis struct $name {
            $( $(#[$field_doc])* pub $field: $type, )*
        }

        impl $crate::game::Body for $name {
            const CELLS: usize = 0 $( + <$type as $crate::game::Cells>::COUNT )*;

            fn fields() -> Vec<$crate::game::FieldSchema> {
                let mut fields = Vec::with_capacity(Self::CELLS);
                $(
                    let said = $crate::hitreg_body!(@said $field $(, $meaning $(($unit))?)?);
                    let (name, scope) = (stringify!($field), $crate::game::Scope::$scope);
                    fields.extend(<$type as $crate::game::Cells>::fields(name, scope, said));
                )*
                fields
            }

            $(
                fn role(field: &$crate::game::FieldSchema) -> $crate::game::CellRole {
                    $role(field)
                }
            )?

            fn write(&self, cells: &mut [u32]) {
                let mut rest = cells;
                $( $crate::game::put_next(&self.$field, &mut rest); )*
                debug_assert!(rest.is_empty());
            }

            fn read(cells: &[u32]) -> Result<Self, $crate::game::BadCells> {
                if cells.len() != Self::CELLS {
                    return Err($crate::game::BadCells {
                        what: concat!("the number of cells of ", stringify!($name)).to_owned(),
                        found: cells.len() as u32,
                    });
                }
                let mut rest = cells;
                $( let $field = $crate::game::take_next(stringify!($field), &mut rest)?; )*
                debug_assert!(rest.is_empty());
                Ok($name { $( $field, )* })
            }

            fn id(&self) -> u64 {
                0 $( + $crate::hitreg_body!(@only id, $field, self.$field, 0) )*
            }

            #[inline]
            #[allow(unused_mut, unused_assignments, reason = "a body may lack the field")]
            fn position(&self) -> $crate::glam::DVec3 {
                let mut value = $crate::glam::DVec3::ZERO;
                $( $crate::hitreg_body!(@vector origin, $field, value, self.$field); )*
                value
            }

            #[inline]
            #[allow(unused_mut, unused_assignments, reason = "a body may lack the field")]
            fn velocity(&self) -> $crate::glam::Vec3 {
                let mut value = $crate::glam::DVec3::ZERO;
                $( $crate::hitreg_body!(@vector velocity, $field, value, self.$field); )*
                value.as_vec3()
            }

            #[inline]
            #[allow(unused_mut, unused_assignments, reason = "a body may lack the field")]
            fn viewangles(&self) -> $crate::glam::Vec3 {
                let mut value = $crate::glam::DVec3::ZERO;
                $( $crate::hitreg_body!(@vector viewangles, $field, value, self.$field); )*
                value.as_vec3()
            }

            #[inline]
            #[allow(unused_variables, unused_mut, reason = "a body without a position leaves them unused")]
            fn moved_to(&self, position: $crate::glam::DVec3) -> Self {
                let mut moved = *self;
                $( $crate::hitreg_body!(@move $field, moved.$field, position); )*
                moved
            }

            #[inline]
            fn teleports(&self) -> u32 {
                // Mixes in the id, because another entity is a teleport too.
                let entity = (self.id().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u32;
                entity $( .wrapping_add($crate::hitreg_body!(@only teleports, $field, self.$field, 0)) )*
            }

            #[inline]
            fn is_absent(&self) -> bool {
                false $( || $crate::hitreg_body!(@only id, $field, self.$field == 0, false) )*
            }

            #[inline]
            fn is_alive(&self) -> bool {
                !self.is_absent() $( && $crate::hitreg_body!(@only alive, $field, self.$field, true) )*
            }

            fn strip_client_only(&mut self) {
                $( $crate::hitreg_body!(@when_client_only $scope, self.$field = Default::default()); )*
            }

            #[allow(unused_variables, reason = "a body without client-only fields leaves it unused")]
            fn adopt_client_only(&mut self, predicted: &Self) {
                $( $crate::hitreg_body!(@when_client_only $scope, self.$field = predicted.$field); )*
            }
        }
    };
    (@said $field:ident, $meaning:ident) => { Some(($crate::game::Meaning::$meaning, None)) };
    (@said $field:ident, $meaning:ident ($unit:literal)) => { Some(($crate::game::Meaning::$meaning, Some($unit))) };
    (@said origin) => { Some(($crate::game::Meaning::Position, None)) };
    (@said velocity) => { Some(($crate::game::Meaning::Velocity, None)) };
    (@said viewangles) => { Some(($crate::game::Meaning::Angle, None)) };
    (@said teleports) => { Some(($crate::game::Meaning::Counter, None)) };
    (@said id) => { Some(($crate::game::Meaning::Name, None)) };
    (@said $field:ident) => { None };
    (@only id, id, $value:expr, $else:expr) => { $value };
    (@only teleports, teleports, $value:expr, $else:expr) => { $value };
    (@only alive, alive, $value:expr, $else:expr) => { $value };
    (@only $known:ident, $field:ident, $value:expr, $else:expr) => { $else };
    (@vector origin, origin, $to:expr, $value:expr) => { $to = $crate::game::SpatialKind::in_space($value) };
    (@vector velocity, velocity, $to:expr, $value:expr) => { $to = $crate::game::SpatialKind::in_space($value) };
    (@vector viewangles, viewangles, $to:expr, $value:expr) => { $to = $crate::game::SpatialKind::in_space($value) };
    (@vector $known:ident, $field:ident, $to:expr, $value:expr) => {};
    (@move origin, $value:expr, $to:expr) => { $value = $crate::game::SpatialKind::moved_in_space($value, $to) };
    (@move $field:ident, $value:expr, $to:expr) => {};
    (@when_client_only ClientOnly, $do:expr) => { $do };
    (@when_client_only $scope:ident, $do:expr) => {};
}

pub use crate::hitreg_body as body;

/// What a cell means to the clients that receive it. The protocol's bits are in order of importance; 7 is the highest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellRole {
    /// Bit 7: the entity's controller, or an AI's decision.
    Controller,
    /// Bit 6: an event of the game (teleport, death, respawn).
    Event,
    /// Bit 5: a value of the game (health, ammunition, timers of weapons).
    Value,
    /// Bit 4: an action without movement.
    Action,
    /// Bit 3: velocity and position.
    Movement,
    /// Bit 2: a part of an action, a sound, an effect.
    SubAction,
    /// Bit 1: the movement style.
    Style,
    /// Bit 1; also selects how the orientation is written. Not 0 means on the ground.
    Ground,
    /// Bit 1: the orientation. The first three floats in a row are pitch, yaw and roll. On the ground, the pitch
    /// belongs to the head alone and uses bit 0.
    Orientation,
    /// Bit 0: anything else about the head.
    Head,
}

impl CellRole {
    /// Derives a field's role from its meaning, and from its scope if the meaning is not enough.
    pub fn by_default(field: &FieldSchema) -> CellRole {
        match (field.meaning, field.scope) {
            (Meaning::Angle, _) => CellRole::Orientation,
            (Meaning::Position | Meaning::Velocity | Meaning::Direction, _) => CellRole::Movement,
            (Meaning::Flag, Scope::Movement) => CellRole::Style,
            (Meaning::Flag | Meaning::Counter, _) => CellRole::Event,
            (Meaning::Name | Meaning::Time | Meaning::Plain, Scope::Movement) => CellRole::Movement,
            (Meaning::Name | Meaning::Time | Meaning::Plain, _) => CellRole::Value,
        }
    }

    /// The bit in the update bitfield, from 7 (most important) to 0.
    pub fn bit(self) -> usize {
        match self {
            CellRole::Controller => 7,
            CellRole::Event => 6,
            CellRole::Value => 5,
            CellRole::Action => 4,
            CellRole::Movement => 3,
            CellRole::SubAction => 2,
            CellRole::Style | CellRole::Ground | CellRole::Orientation => 1,
            CellRole::Head => 0,
        }
    }
}

/// Converts a build's bodies to states of a log's classes and back.
#[derive(Clone, Debug)]
pub struct StateRows {
    /// For each class of the log, the body's cell of each of its cells. `None` for a class that this build does not know.
    classes: Vec<Option<Vec<Option<usize>>>>,
    body_cells: usize,
}

/// The error for a log whose states or usercmds differ from this build's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("log and build have different {of}: field {build} of the build is {log} in the log")]
pub struct OtherFields {
    /// What has the fields: usercmds, or the entities of a class.
    pub of: String,
    /// The field in the log.
    pub log: String,
    /// The field in this build.
    pub build: String,
}

impl OtherFields {
    pub(super) fn new(of: impl Into<String>, log: Option<&FieldSchema>, build: &FieldSchema) -> OtherFields {
        OtherFields { of: of.into(), log: text(log), build: text(Some(build)) }
    }
}

impl StateRows {
    /// Creates the conversion for a log with these classes. Classes and fields that this build does not know are
    /// skipped.
    ///
    /// # Errors
    /// When the log lacks a field of a class, or has it in another form.
    pub fn new<G: Game>(classes: &[Class]) -> Result<StateRows, OtherFields> {
        let (body, known) = (G::Body::fields(), G::classes());
        let cells = |class: &Class| -> Result<Option<Vec<Option<usize>>>, OtherFields> {
            let Some(ours) = known.iter().find(|known| known.name == class.name) else { return Ok(None) };
            let differs = |field: &FieldSchema| !class.fields.iter().any(|log| log.is_same_cell(field));
            if let Some(build) = ours.fields.iter().find(|field| differs(field)) {
                let log = class.fields.iter().find(|log| log.name == build.name);
                return Err(OtherFields::new(format!("entities of class `{}`", class.name), log, build));
            }
            Ok(Some(body_cells(&body, class, FieldSchema::is_same_cell)))
        };
        let classes = classes.iter().map(cells).collect::<Result<_, _>>()?;
        Ok(StateRows { classes, body_cells: G::Body::CELLS })
    }

    /// Creates the conversion for a log that this build writes.
    pub fn own<G: Game>() -> StateRows {
        let body = G::Body::fields();
        let cells = |class: &Class| Some(body_cells(&body, class, |own, field| own.name == field.name));
        StateRows { classes: G::classes().iter().map(cells).collect(), body_cells: G::Body::CELLS }
    }

    /// Writes a body as a state of its class; `row` is overwritten.
    pub fn write<G: Game>(&self, body: &G::Body, row: &mut Vec<u32>) -> ClassId {
        let class = G::class(body);
        let of_class = self.classes.get(usize::from(class.0)).and_then(Option::as_ref);
        row.clear();
        if of_class.is_some_and(|of_class| of_class.len() == self.body_cells && in_order(of_class)) {
            row.resize(self.body_cells, 0);
            body.write(row);
            return class;
        }
        let cells = body.to_cells();
        row.extend(of_class.into_iter().flatten().map(|cell| cell.map_or(0, |cell| cells[cell])));
        class
    }

    /// Reads a body from a state; `None` if this build does not know its class.
    ///
    /// # Errors
    /// When a cell is not valid for its field.
    pub fn read<G: Game>(&self, class: ClassId, row: &[u32]) -> Result<Option<G::Body>, BadCells> {
        let Some(of_class) = self.classes.get(usize::from(class.0)).and_then(Option::as_ref) else { return Ok(None) };
        let mut cells = vec![0; self.body_cells];
        for (cell, word) in of_class.iter().zip(row) {
            if let Some(cell) = cell {
                cells[*cell] = *word;
            }
        }
        G::Body::read(&cells).map(Some)
    }
}

/// Returns the body's cell of each cell of a class; `None` for cells of a field that the body lacks.
fn body_cells(body: &[FieldSchema], class: &Class, same: fn(&FieldSchema, &FieldSchema) -> bool) -> Vec<Option<usize>> {
    let cells = |field: &FieldSchema| {
        let begin = cells_of(body).find(|(own, _)| same(own, field)).map(|(_, place)| place.start);
        (0..field.kind.cells()).map(move |cell| begin.map(|begin| begin + cell))
    };
    class.fields.iter().flat_map(cells).collect()
}

/// Whether each cell is the body's cell at the same index.
fn in_order(of_class: &[Option<usize>]) -> bool {
    of_class.iter().zip(0..).all(|(cell, place)| *cell == Some(place))
}

/// Describes the classes and fields of a log that this build does not know, and its unknown fields of usercmds.
pub fn unknown_fields<G: Game>(header: &SessionHeader) -> Vec<String> {
    let known = G::classes();
    let of_class = |class: &Class| match known.iter().find(|known| known.name == class.name) {
        None => vec![format!("class `{}`", class.name)],
        Some(ours) => {
            let is_known = |field: &&FieldSchema| !ours.fields.iter().any(|ours| ours.name == field.name);
            let unknown = class.fields.iter().filter(is_known);
            unknown.map(|field| format!("field `{}` of class `{}`", field.name, class.name)).collect()
        }
    };
    let of_usercmd = header.own_usercmd_fields().into_iter().skip(G::Input::own_fields().len());
    let of_usercmd = of_usercmd.map(|field| match field.unit() {
        "" => format!("usercmd field `{}`", field.name),
        unit => format!("usercmd field `{}` in {unit}", field.name),
    });
    of_usercmd.chain(header.classes.iter().flat_map(of_class)).collect()
}

fn text(field: Option<&FieldSchema>) -> String {
    match field {
        Some(FieldSchema { name, kind, scope, .. }) => format!("`{name}` ({}, {scope:?})", kind.name()),
        None => "missing".to_owned(),
    }
}
