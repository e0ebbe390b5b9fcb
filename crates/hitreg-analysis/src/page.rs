//! One page of HTML that shows a trace, or two over each other: the field with all that moved on it, what was measured over
//! time, every shot and every correction with its `why`. It asks nothing of any network, and opens from disk.
//!
//! The page's own source is in `web/`: HTML, CSS and modules of JavaScript as they are. What it shows is read from the traces' tables
//! alone, so that the trace of any build in any language can be shown. No text of a trace becomes part of the HTML or of a
//! script: it goes into the page as compressed bytes in base64, and the scripts show it as text.

mod clock;
mod notes;
mod packed;
mod side;
mod tracks;

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;

use crate::diff::TraceDiff;
use crate::swept::Table;
use crate::why::Rejudged;
use hitreg_log::record::{Session, Wall};
use hitreg_log::trace::Trace;
use packed::{Column, Columns, whole};
use side::Side;

/// What a page is about.
#[derive(Clone, Copy, Debug)]
pub struct Picture<'a> {
    /// One trace, or the two sides of a comparison.
    pub sides: &'a [Shown<'a>],
    /// The map's walls.
    pub walls: &'a [Wall],
    /// What differs between the two sides, and in which words.
    pub difference: Option<(&'a TraceDiff, &'a str)>,
}

/// One trace and what else is known about it.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a> {
    /// What it is, for people.
    pub name: &'a str,
    /// The map's name; empty where that is not known.
    pub map: &'a str,
    /// The trace.
    pub trace: &'a Trace,
    /// Its log, if its packets were as the log has them.
    pub session: Option<&'a Session>,
    /// Its shots under other rules.
    pub rejudged: &'a [Rejudged],
    /// Whether walls are known.
    pub has_map: bool,
    /// What cannot be known besides what the trace lacks.
    pub notes: &'a [String],
}

/// All that the scripts read, but for the columns.
#[derive(Serialize)]
struct Contents<'a> {
    written_by: &'static str,
    sides: Vec<Side>,
    walls: Walls,
    difference: Option<Difference<'a>>,
}

#[derive(Serialize)]
struct Difference<'a> {
    answer: &'a str,
    #[serde(flatten)]
    found: &'a TraceDiff,
}

#[derive(Serialize)]
struct Walls {
    /// x and y of both ends, the heights of bottom and top.
    ends: [Column; 6],
    /// The entity that each moves with: 0 none, else 1 + the entity.
    of: Column,
}

/// What walls are rounded to.
const WALL_UNIT: f64 = 1.0 / 8.0;

/// How many samples of what players drew fit into a page, of all sides together; beyond it, lines become coarser.
const MOST_VIEWS: usize = 600_000;

/// The page.
///
/// # Errors
/// When it cannot be compressed, which no writer to memory fails to do.
pub fn html(picture: &Picture<'_>) -> std::io::Result<String> {
    let mut columns = Columns::default();
    let most_views = MOST_VIEWS / picture.sides.len().max(1);
    let contents = Contents {
        written_by: concat!("hitreg ", env!("CARGO_PKG_VERSION")),
        sides: picture.sides.iter().map(|shown| Side::of(shown, most_views, &mut columns)).collect(),
        walls: Walls::pack(picture.walls, &mut columns),
        difference: picture.difference.map(|(found, answer)| Difference { answer, found }),
    };
    filled(include_str!("page/web/page.html"), &contents, &columns)
}

/// What a page of a sweep is about.
#[derive(Clone, Debug, Serialize)]
pub struct Swept<'a> {
    /// The logs.
    pub names: &'a [String],
    /// What was varied.
    pub keys: &'a [String],
    /// What was asked of it, in words.
    pub what_if: &'a str,
    /// The columns of the table, in order.
    pub columns: &'a [String],
    /// Its rows.
    pub rows: &'a Table,
}

/// The page of a sweep: a plot of each figure, and the table.
///
/// # Errors
/// As [`html`].
pub fn sweep_html(swept: &Swept<'_>) -> std::io::Result<String> {
    filled(include_str!("page/web/sweep.html"), swept, &Columns::default())
}

/// The modules, by the names that they import each other by.
const MODULES: &[(&str, &str)] = &[
    ("page/main.js", include_str!("page/web/main.js")),
    ("page/data.js", include_str!("page/web/data.js")),
    ("page/lookup.js", include_str!("page/web/lookup.js")),
    ("page/field.js", include_str!("page/web/field.js")),
    ("page/layers.js", include_str!("page/web/layers.js")),
    ("page/charts.js", include_str!("page/web/charts.js")),
    ("page/series.js", include_str!("page/web/series.js")),
    ("page/tables.js", include_str!("page/web/tables.js")),
    ("page/why.js", include_str!("page/web/why.js")),
    ("page/dom.js", include_str!("page/web/dom.js")),
    ("page/sweep.js", include_str!("page/web/sweep.js")),
];

/// A document with style, modules and data in their places.
fn filled(document: &str, contents: &impl Serialize, columns: &Columns) -> std::io::Result<String> {
    let contents = serde_json::to_vec(contents)?;
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::new(7));
    packed.write_all(&(contents.len() as u32).to_le_bytes())?;
    packed.write_all(&contents)?;
    packed.write_all(&columns.bytes)?;
    let data = STANDARD.encode(packed.finish()?);
    let module = |(name, source): &(&str, &str)| {
        // A debugger shows the name, not the address.
        let source = format!("{source}\n//# sourceURL={name}\n");
        format!("\"{name}\":\"data:text/javascript;base64,{}\"", STANDARD.encode(source))
    };
    let imports: Vec<String> = MODULES.iter().map(module).collect();
    let imports = format!("{{\"imports\":{{{}}}}}", imports.join(","));
    let parts = [("/*style*/", include_str!("page/web/style.css")), ("/*imports*/", &imports), ("/*data*/", &data)];
    Ok(parts.into_iter().fold(document.to_owned(), |page, (place, part)| page.replacen(place, part, 1)))
}

impl Walls {
    fn pack(walls: &[Wall], columns: &mut Columns) -> Walls {
        let ends: [fn(&Wall) -> f32; 6] =
            [|w| w.from[0], |w| w.from[1], |w| w.to[0], |w| w.to[1], |w| w.bottom, |w| w.top];
        let mut column =
            |end: fn(&Wall) -> f32| columns.push(walls.iter().map(|wall| whole(end(wall), WALL_UNIT)), WALL_UNIT);
        let ends = ends.map(&mut column);
        let of = |wall: &Wall| wall.of.map_or(0, |entity| i64::from(entity.0) + 1);
        Walls { ends, of: columns.push(walls.iter().map(of), 1.0) }
    }
}
