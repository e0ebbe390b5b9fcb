//! Conversion between bodies and the states of a log: which cells of a body each class holds.

use super::{BadCells, Body, Class, ClassId, FieldSchema, Game, GameInput};
use hitreg_log::record::{SessionHeader, cells_of};

/// Converts a build's bodies to states of a log's classes and back.
#[derive(Clone, Debug)]
pub struct StateRows {
    /// For each class of the log, the body's cell of each of its cells. `None` for a class that this build does not know.
    classes: Vec<Option<Vec<Option<usize>>>>,
    body_cells: usize,
}

/// The error for a log whose states or usercmds differ from this build's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "log and build have different entities: field {index} of class `{class}` is {log} in the log and {build} in the build"
)]
pub struct OtherFields {
    /// The name of the class; `usercmd` for fields of usercmds.
    pub class: String,
    /// The index of the field in the build's class.
    pub index: usize,
    /// The field in the log.
    pub log: String,
    /// The field in this build.
    pub build: String,
}

impl OtherFields {
    pub(super) fn new(class: &str, index: usize, log: Option<&FieldSchema>, build: &FieldSchema) -> OtherFields {
        OtherFields { class: class.to_owned(), index, log: text(log), build: text(Some(build)) }
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
            if let Some(index) = ours.fields.iter().position(differs) {
                let build = &ours.fields[index];
                let log = class.fields.iter().find(|log| log.name == build.name);
                return Err(OtherFields::new(&class.name, index, log, build));
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
