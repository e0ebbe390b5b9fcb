//! A game's own input type. Logs and packets hold an [`Input`]: Bernier's fields, and the cells of the fields that the
//! game declares.

use crate::wire::OWN_CELLS_MAX;

use super::{BadCells, FieldSchema, OtherFields};
use hitreg_log::usercmd::{Input, OwnCells, Usercmd};

/// The input of one client frame. Declare it with [`input!`](macro@crate::game::input); a game that needs only
/// Bernier's fields uses [`Input`].
pub trait GameInput: Clone + Default + PartialEq + std::fmt::Debug + Send + Sync + 'static {
    /// The fields that only this game has, in the order of their cells. A field has one cell or two, by its
    /// [kind](super::CellKind::cells).
    fn own_fields() -> Vec<FieldSchema>;

    /// The number of cells of these fields.
    const OWN_CELLS: usize;

    /// Returns the input as logs and packets hold it.
    fn write(&self) -> Input;

    /// Reads the input back; inverse of [`GameInput::write`]. A cell that is no value of its field reads as the
    /// field's default, and further cells are passed over.
    fn read(input: &Input) -> Self;

    /// Returns a usercmd with the game's own input.
    #[inline]
    fn read_usercmd(command: &Usercmd) -> Usercmd<Self> {
        let Usercmd { seq, lerp_msec, server_time, ref input } = *command;
        Usercmd { seq, lerp_msec, server_time, input: Self::read(input) }
    }

    /// Checks an input from a packet.
    ///
    /// # Errors
    /// When there are more cells than declared, or a cell is no value of its field.
    fn check(input: &Input) -> Result<(), BadCells>;

    /// Returns the usercmd fields of a log: Bernier's, and the game's own.
    ///
    /// # Panics
    /// When there are more than 255 own cells.
    fn usercmd_fields() -> Vec<FieldSchema> {
        let cells = Self::OWN_CELLS;
        assert!(
            cells <= OWN_CELLS_MAX,
            "a usercmd has {cells} own cells, and at most {OWN_CELLS_MAX} go into a packet"
        );
        [hitreg_log::record::usercmd_fields(), Self::own_fields()].concat()
    }
}

/// Bernier's input, without fields of the game's own.
impl GameInput for Input {
    const OWN_CELLS: usize = 0;

    fn own_fields() -> Vec<FieldSchema> {
        Vec::new()
    }

    fn write(&self) -> Input {
        Input::read(self)
    }

    #[inline]
    fn read(input: &Input) -> Input {
        Input { own: OwnCells::default(), ..*input }
    }

    fn check(input: &Input) -> Result<(), BadCells> {
        match input.own.stored() {
            [] => Ok(()),
            cells => {
                Err(BadCells { what: "the number of own cells of a usercmd".to_owned(), found: cells.len() as u32 })
            }
        }
    }
}

/// Checks that a log's usercmds have the fields of this build's game. The log may have more of them.
///
/// # Errors
/// When the log lacks a field, or has it in another form or place.
pub(crate) fn check_own_fields<I: GameInput>(log: &[FieldSchema]) -> Result<(), OtherFields> {
    for (place, build) in I::own_fields().iter().enumerate() {
        let found = log.get(place);
        if !found.is_some_and(|found| found.is_same_cell(build)) {
            return Err(OtherFields::new("usercmds", found, build));
        }
    }
    Ok(())
}

/// Declares a struct for the input of one client frame, and implements [`GameInput`] from the list of fields.
///
/// The names in this table have a fixed type and meaning; each but `msec` may be left out:
///
/// | field | type | is |
/// | --- | --- | --- |
/// | `msec` | `u8` | [`Input::msec`] |
/// | `viewangles` | `Vec3` in degrees | [`Input::viewangles`] |
/// | `forwardmove`, `sidemove`, `upmove` | `f32` | the fields of [`Input`] |
/// | `buttons` | `u16` | [`Input::buttons`] |
/// | `impulse` | `u8` | [`Input::impulse`] |
///
/// Every other field is of the game's own: a [`Cells`](crate::game::Cells) type with a default. It has the meaning of
/// its type, or the meaning after `as`, with a unit if it is not the usual one. Logs, packets and traces hold it, and
/// `diff` names it.
///
/// ```
/// use hitreg_netcode::game::{GameInput, input};
///
/// input! {
///     /// The helm of a ship.
///     pub struct Helm {
///         msec: u8,
///         thrust: f64 as Velocity("m/s"),
///         target: u64 as Name,
///         buttons: u16,
///     }
/// }
/// let helm = Helm { msec: 16, thrust: 0.1, target: 1 << 40, buttons: 1 };
/// let input = helm.write();
/// assert_eq!((input.msec, input.buttons, input.impulse), (16, 1, 0));
/// assert_eq!(Helm::read(&input), helm);
/// let fields = Helm::own_fields();
/// assert_eq!((&*fields[0].name, fields[0].unit()), ("thrust", "m/s"));
/// assert_eq!(fields.len(), 2);
/// ```
#[macro_export]
macro_rules! hitreg_input {
    (
        $(#[$doc:meta])* $vis:vis struct $name:ident {
            $( $(#[$field_doc:meta])* $field:ident : $type:ty $(as $meaning:ident $(($unit:literal))?)? ),* $(,)?
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        $vis struct $name {
            $( $(#[$field_doc])* pub $field: $type, )*
        }

        // Every usercmd covers a time.
        const _: fn(&$name) -> u8 = |input| input.msec;

        impl $crate::game::GameInput for $name {
            const OWN_CELLS: usize = 0 $( + $crate::hitreg_input!(
                @by_name $field, 0, <$type as $crate::game::Cells>::COUNT
            ) )*;

            fn own_fields() -> Vec<$crate::game::FieldSchema> {
                #[allow(unused_mut, reason = "a game without own fields leaves it empty")]
                let mut fields = Vec::new();
                $( $crate::hitreg_input!(@by_name $field, {}, {
                    let said = $crate::hitreg_cells!(@said $($meaning $(($unit))?)?);
                    let (name, scope) = (stringify!($field), $crate::game::Scope::Movement);
                    fields.extend(<$type as $crate::game::Cells>::fields(name, scope, said));
                }); )*
                fields
            }

            fn write(&self) -> $crate::usercmd::Input {
                let mut input = $crate::usercmd::Input::default();
                let mut cells = [0_u32; Self::OWN_CELLS];
                #[allow(unused_mut, reason = "a game without own fields leaves it empty")]
                let mut rest = &mut cells[..];
                $( $crate::hitreg_input!(
                    @by_name $field, { input.$field = self.$field; }, { $crate::game::put_next(&self.$field, &mut rest); }
                ); )*
                debug_assert!(rest.is_empty());
                input.own = $crate::usercmd::OwnCells::new(&cells);
                input
            }

            #[inline]
            fn read(input: &$crate::usercmd::Input) -> Self {
                let mut cells = [0_u32; Self::OWN_CELLS];
                input.own.write(&mut cells);
                #[allow(unused_mut, reason = "a game without own fields leaves it empty")]
                let mut rest = &cells[..];
                $( let $field = $crate::hitreg_input!(
                    @by_name $field, input.$field,
                    $crate::game::take_next::<$type>(stringify!($field), &mut rest).unwrap_or_default()
                ); )*
                debug_assert!(rest.is_empty());
                $name { $( $field, )* }
            }

            fn check(input: &$crate::usercmd::Input) -> Result<(), $crate::game::BadCells> {
                let mut cells = [0_u32; Self::OWN_CELLS];
                input.own.write(&mut cells);
                let found = input.own.stored().len();
                if found > cells.len() {
                    let what = concat!("the number of own cells of ", stringify!($name)).to_owned();
                    return Err($crate::game::BadCells { what, found: found as u32 });
                }
                #[allow(unused_mut, reason = "a game without own fields leaves it empty")]
                let mut rest = &cells[..];
                $( $crate::hitreg_input!(
                    @by_name $field, {}, { $crate::game::take_next::<$type>(stringify!($field), &mut rest)?; }
                ); )*
                debug_assert!(rest.is_empty());
                Ok(())
            }
        }
    };
    (@by_name msec, $core:expr, $own:expr) => { $core };
    (@by_name viewangles, $core:expr, $own:expr) => { $core };
    (@by_name forwardmove, $core:expr, $own:expr) => { $core };
    (@by_name sidemove, $core:expr, $own:expr) => { $core };
    (@by_name upmove, $core:expr, $own:expr) => { $core };
    (@by_name buttons, $core:expr, $own:expr) => { $core };
    (@by_name impulse, $core:expr, $own:expr) => { $core };
    (@by_name $field:ident, $core:expr, $own:expr) => { $own };
}

pub use crate::hitreg_input as input;
