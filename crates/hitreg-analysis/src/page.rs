//! A self-contained HTML page that shows one trace, or two traces on top of each other. It has the field with
//! everything that moved on it, measurements over time, and every shot and correction with its `why`. It uses no
//! network and opens from disk.
//!
//! The page's source is in `web/`: HTML, CSS and JavaScript modules. The data comes only from the traces' tables, so a
//! trace of any build in any language can be shown. Text from a trace never becomes part of the HTML or of a script. It
//! goes into the page as compressed bytes in base64, and the scripts show it as text.

mod clock;
mod corpus;
mod evidence;
mod network;
mod packed;
mod series;
mod side;
mod tracks;

pub use corpus::corpus_html;

use std::io::Write;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use base64::write::EncoderStringWriter;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde::Serialize;

use crate::diff::TraceDiff;
use crate::report::divergence_place;
use crate::swept::SweepTable;
use crate::why::RejudgedShots;
use hitreg_log::record::{Session, SessionChunk, SessionHeader, Wall};
use hitreg_log::trace::schema::{effects, frames, is_bodies, variables};
use hitreg_log::trace::{Table, TraceReadError, TraceSource};
use hitreg_log::traffic::{Packet, PacketReader};
use hitreg_log::units::Micros;
use packed::{PackedColumn, PageColumns, whole};
use side::PageSide;

/// The content of a page.
#[derive(Clone, Copy, Debug)]
pub struct PageSubject<'a> {
    /// One trace, or the two sides of a comparison.
    pub sides: &'a [PageInput<'a>],
    /// The map's walls.
    pub walls: &'a [Wall],
    /// The differences between the two sides, and their summary as text.
    pub difference: Option<(&'a TraceDiff, &'a str)>,
}

/// The records of a log, which a page shows beside the rows of its replay.
pub trait PageLog {
    /// The header of the log.
    fn header(&self) -> &SessionHeader;

    /// Passes on all records that the page shows in their order, and some before and after them. More follow while `to`
    /// returns true.
    ///
    /// # Errors
    /// When the log cannot be read.
    fn each(&self, to: &mut dyn FnMut(&SessionChunk) -> bool) -> Result<(), TraceReadError>;

    /// Whether the page shows a time.
    fn shows(&self, at: Micros) -> bool;

    /// Passes on the packets that the page shows, and all records it reads for them. Later packets decide whether a packet
    /// was lost, so it reads until each shown packet is decided.
    ///
    /// # Errors
    /// When the log cannot be read.
    fn each_packet(
        &self,
        chunks: &mut dyn FnMut(&SessionChunk),
        packets: &mut dyn FnMut(Packet),
    ) -> Result<(), TraceReadError> {
        let mut reader = PacketReader::new(self.header());
        let mut shown = |packet: Packet| {
            if self.shows(Micros(packet.sent_us)) {
                packets(packet);
            }
        };
        self.each(&mut |chunk| {
            chunks(chunk);
            reader.add(chunk, &mut shown);
            reader.is_waiting_for(&|sent| self.shows(sent))
        })?;
        reader.end(&mut shown);
        Ok(())
    }

    /// The records between two times.
    ///
    /// # Errors
    /// When the log cannot be read.
    fn between(&self, first: Micros, last: Micros) -> Result<Session, TraceReadError>;
}

/// One trace with its context.
#[derive(Clone, Copy)]
pub struct PageInput<'a> {
    /// The name of the trace, for people.
    pub name: &'a str,
    /// The map's name; empty if it is unknown.
    pub map: &'a str,
    /// The trace.
    pub trace: &'a dyn TraceSource,
    /// The trace's log, if the trace's packets are those of the log.
    pub log: Option<&'a dyn PageLog>,
    /// The trace's shots, judged under other rules.
    pub rejudged: &'a [RejudgedShots],
    /// Notes on unknown values, besides the values that the trace lacks.
    pub notes: &'a [String],
}

hitreg_log::partial_debug!(PageInput<'_> { name, map });

/// Everything that the scripts read, except the columns.
#[derive(Serialize)]
struct PageContents<'a> {
    written_by: &'static str,
    sides: Vec<PageSide>,
    walls: PageWalls,
    difference: Option<PageDifference<'a>>,
}

#[derive(Serialize)]
struct PageDifference<'a> {
    answer: &'a str,
    /// The place of the first divergence, in words.
    divergence: Option<String>,
    #[serde(flatten)]
    found: &'a TraceDiff,
}

#[derive(Serialize)]
struct PageWalls {
    /// x and y of both ends, then the heights of bottom and top.
    ends: [PackedColumn; 6],
    /// The entity that each wall moves with: 0 for none, else the entity's id plus 1.
    of: PackedColumn,
}

/// The rounding of walls, in units.
const WALL_UNIT: f64 = 1.0 / 8.0;

/// Leaves out the columns that a page does not show.
#[doc(hidden)]
pub fn only_shown(mut table: Table) -> Table {
    let columns: &[&str] = match &*table.name {
        name if is_bodies(name) => {
            &["tick", "entity", "origin.x", "origin.y", "origin.z", "viewangles.x", "viewangles.y", "viewangles"]
        }
        frames::NAME => evidence::FRAMES,
        // The page says how many rows these have.
        effects::NAME | variables::NAME => &["player"],
        _ => return table,
    };
    table.columns.retain(|column| columns.contains(&&*column.name));
    table
}

/// Creates the page. It reads the traces and logs part by part, and holds only what it shows.
///
/// # Errors
/// When a trace or a log cannot be read.
pub fn html(picture: &PageSubject<'_>) -> Result<String, TraceReadError> {
    let (mut columns, sides) = (PageColumns::default(), picture.sides.len());
    let of_sides = picture.sides.iter().map(|shown| PageSide::of(shown, sides, &mut columns));
    let contents = PageContents {
        written_by: concat!("hitreg ", env!("CARGO_PKG_VERSION")),
        sides: of_sides.collect::<Result<_, _>>()?,
        walls: PageWalls::pack(picture.walls, &mut columns),
        difference: picture.difference.map(|(found, answer)| PageDifference {
            answer,
            divergence: found.first.as_ref().map(divergence_place),
            found,
        }),
    };
    filled(include_str!("page/web/page.html"), &contents, &columns).map_err(|error| TraceReadError(error.to_string()))
}

/// The content of a page of a sweep.
#[derive(Clone, Debug, Serialize)]
pub struct SweepPage<'a> {
    /// The names of the logs.
    pub names: &'a [String],
    /// The varied settings.
    pub keys: &'a [String],
    /// How the runs were made, as text.
    pub what_if: &'a str,
    /// The columns of the table, in order.
    pub columns: &'a [String],
    /// The rows of the table.
    pub rows: &'a SweepTable,
}

/// Creates the page of a sweep: a plot of each figure, and the table.
///
/// # Errors
/// When compression fails, which cannot happen in memory.
pub fn sweep_html(swept: &SweepPage<'_>) -> std::io::Result<String> {
    filled(include_str!("page/web/sweep.html"), swept, &PageColumns::default())
}

/// The JavaScript modules, by the names under which they import each other.
const MODULES: &[(&str, &str)] = &[
    ("page/main.js", include_str!("page/web/main.js")),
    ("page/data.js", include_str!("page/web/data.js")),
    ("page/lookup.js", include_str!("page/web/lookup.js")),
    ("page/link.js", include_str!("page/web/link.js")),
    ("page/field.js", include_str!("page/web/field.js")),
    ("page/layers.js", include_str!("page/web/layers.js")),
    ("page/charts.js", include_str!("page/web/charts.js")),
    ("page/series.js", include_str!("page/web/series.js")),
    ("page/tables.js", include_str!("page/web/tables.js")),
    ("page/why.js", include_str!("page/web/why.js")),
    ("page/dom.js", include_str!("page/web/dom.js")),
    ("page/sweep.js", include_str!("page/web/sweep.js")),
];

/// Fills style, modules and data into a document.
fn filled(document: &str, contents: &impl Serialize, columns: &PageColumns) -> std::io::Result<String> {
    let module = |(name, source): &(&str, &str)| {
        // A debugger then shows the name instead of the data address.
        let source = format!("{source}\n//# sourceURL={name}\n");
        format!("\"{name}\":\"data:text/javascript;base64,{}\"", STANDARD.encode(source))
    };
    let imports: Vec<String> = MODULES.iter().map(module).collect();
    let (mut page, mut rest) = (String::new(), document);
    let mut push_until = |page: &mut String, place: &str| {
        let (before, after) = rest.split_once(place).unwrap_or((rest, ""));
        page.push_str(before);
        rest = after;
    };
    // The places are in this order in every document.
    push_until(&mut page, "/*style*/");
    page.push_str(include_str!("page/web/style.css"));
    push_until(&mut page, "/*data*/");
    push_data(&mut page, contents, columns)?;
    push_until(&mut page, "/*imports*/");
    page.extend(["{\"imports\":{", &imports.join(","), "}}"]);
    page.push_str(rest);
    Ok(page)
}

/// Adds the contents and the columns: packed by zlib, in base64.
fn push_data(page: &mut String, contents: &impl Serialize, columns: &PageColumns) -> std::io::Result<()> {
    let text = EncoderStringWriter::from_consumer(page, &STANDARD);
    let mut packed = ZlibEncoder::new(text, Compression::new(7));
    let contents = serde_json::to_vec(contents)?;
    packed.write_all(&(contents.len() as u32).to_le_bytes())?;
    packed.write_all(&contents)?;
    drop(contents);
    packed.write_all(&columns.bytes)?;
    packed.finish()?.into_inner();
    Ok(())
}

impl PageWalls {
    fn pack(walls: &[Wall], columns: &mut PageColumns) -> PageWalls {
        let ends: [fn(&Wall) -> f32; 6] =
            [|w| w.from[0], |w| w.from[1], |w| w.to[0], |w| w.to[1], |w| w.bottom, |w| w.top];
        let mut column =
            |end: fn(&Wall) -> f32| columns.push(walls.iter().map(|wall| whole(end(wall), WALL_UNIT)), WALL_UNIT);
        let ends = ends.map(&mut column);
        let of = |wall: &Wall| wall.of.map_or(0, |entity| i64::from(entity.0) + 1);
        PageWalls { ends, of: columns.push(walls.iter().map(of), 1.0) }
    }
}
