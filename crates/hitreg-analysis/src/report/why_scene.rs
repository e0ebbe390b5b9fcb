//! Draws a few places from above and from the side, as characters and as SVG. For a shot: the target's places beside
//! the shot's line, which runs from left to right. For a correction: the predicted place and the server's place.

use std::fmt::Write;

use super::figures::{measure, measure_within};
use super::page::printable;
use crate::why::{CorrectionExplanation, FieldError, PositionKind, ShotExplanation, Why};

/// The picture from above. Right is along the aim or +x, and down is to the right of that direction.
pub(super) struct WhyDrawing {
    points: Vec<Point>,
    /// The shooter's number, and its distance to the left of the first point, if the shot's line is drawn.
    shooter: Option<(u32, f32)>,
    is_from_side: bool,
    /// Whether down in a picture from above is +y.
    is_y_down: bool,
}

#[derive(Clone, Copy)]
struct Point {
    letter: char,
    /// The label beside the point in the SVG.
    short: &'static str,
    /// The label in the text's legend; `{shooter}` is replaced by the shooter.
    label: &'static str,
    along: f32,
    across: f32,
    /// Height above the picture's origin, if known.
    up: Option<f32>,
    /// The largest error of the place, in units.
    uncertainty: f32,
}

/// The width of the SVG, in pixels.
const WIDTH: f32 = 800.0;
/// The height of the SVG, in pixels.
const HEIGHT: f32 = 400.0;
/// The width of the text picture, in columns without the margin.
const COLUMNS: usize = 74;
/// The greatest height of the text picture, in rows.
const ROWS: usize = 15;
/// The height of a character in widths, approximately.
const ROW_PER_COLUMN: f32 = 2.0;

impl WhyDrawing {
    pub(super) fn of(why: &Why) -> Option<WhyDrawing> {
        let scene = match why {
            Why::Shot(shot) => of_shot(shot),
            Why::Correction(correction) => of_correction(correction)?,
        };
        Some(scene).filter(|scene| !scene.points.is_empty())
    }

    /// The same places seen from the side; `None` if a height is unknown or all heights are equal.
    pub(super) fn seen_from_side(&self) -> Option<WhyDrawing> {
        let side = |point: &Point| Some(Point { across: -point.up?, ..*point });
        let points: Vec<Point> = self.points.iter().map(side).collect::<Option<_>>()?;
        let is_flat = points.iter().all(|point| point.across == 0.0);
        (!is_flat).then_some(WhyDrawing { points, is_from_side: true, ..*self })
    }

    /// The lowest and highest coordinate in each direction.
    fn bounds(&self) -> [(f32, f32); 2] {
        let bounds = |of: fn(&Point) -> f32| {
            let values = self.points.iter().map(of);
            values.fold((f32::MAX, f32::MIN), |(least, most), value| (least.min(value), most.max(value)))
        };
        let (top, bottom) = bounds(|point| point.across);
        // The shot's line is at 0.
        let (top, bottom) = if self.shooter.is_some() { (top.min(0.0), bottom.max(0.0)) } else { (top, bottom) };
        [bounds(|point| point.along), (top, bottom)]
    }

    /// How many units one column shows, so that everything fits. Rounded up to 1, 2 or 5 times a power of ten.
    fn units_per_column(&self) -> f32 {
        let [(left, right), (top, bottom)] = self.bounds();
        let needed = ((right - left) / (COLUMNS - 12) as f32).max((bottom - top) / ROW_PER_COLUMN / (ROWS - 3) as f32);
        let power = libm::powf(10.0, libm::floorf(libm::log10f(needed.max(0.1))));
        [1.0, 2.0, 5.0, 10.0].map(|step| step * power).into_iter().find(|units| *units >= needed).unwrap_or(needed)
    }

    pub(super) fn lines(&self) -> Vec<String> {
        let units = self.units_per_column();
        let [(left, right), (top, bottom)] = self.bounds();
        let height = ((bottom - top) / (units * ROW_PER_COLUMN)) as usize + 3;
        let mut grid = vec![vec![' '; COLUMNS]; height.clamp(3, ROWS)];
        let row = |across: f32| (1.0 + (across - top) / (units * ROW_PER_COLUMN)).round() as usize;
        let column = |along: f32| (COLUMNS as f32 / 2.0 + (along - (left + right) / 2.0) / units).round() as usize;
        if self.shooter.is_some()
            && let Some(line) = grid.get_mut(row(0.0))
        {
            line.fill('-');
            line[COLUMNS - 1] = '>';
        }
        for point in &self.points {
            let Some(line) = grid.get_mut(row(point.across)) else { continue };
            // Places too close to be separate are drawn side by side.
            let free = (column(point.along)..COLUMNS).find(|column| matches!(line[*column], ' ' | '-' | '>'));
            if let Some(free) = free {
                line[free] = point.letter;
            }
        }
        grid.into_iter().map(|line| line.into_iter().collect::<String>().trim_end().to_owned()).collect()
    }

    pub(super) fn legend(&self) -> Vec<String> {
        let label = |point: &Point| match self.shooter {
            Some((player, _)) => {
                format!("{} = {}", point.letter, point.label.replace("{shooter}", &format!("p{player}")))
            }
            None => format!("{} = {}", point.letter, point.label),
        };
        let points: Vec<String> = self.points.iter().map(label).collect();
        let units = self.units_per_column();
        let [column, row] = [units, units * ROW_PER_COLUMN].map(round);
        let scale = format!("1 column = {column} units, 1 row = {row} units");
        let mut lines = vec![format!("{}. {scale}.", points.join(", "))];
        match self.shooter {
            Some((player, distance)) => lines.push(format!(
                "--> p{player}'s line of fire; p{player} is {} units {} of {}. {}.",
                measure_within(distance.abs(), self.points[0].uncertainty),
                if distance < 0.0 { "right" } else { "left" },
                self.points[0].letter,
                if self.is_from_side { "Up in the picture is up" } else { "Down in the picture is to p's right" }
                    .replace("p's", &format!("p{player}'s"))
            )),
            None if self.is_from_side => lines.push("right is +x, up is +z".to_owned()),
            None if self.is_y_down => lines.push("right is +x, down is +y".to_owned()),
            None => lines.push("right is +x, up is +y".to_owned()),
        }
        lines
    }

    pub(super) fn svg(&self, title: &str, answer: &str) -> String {
        let [(left, right), (top, bottom)] = self.bounds();
        let scale = (500.0 / (right - left).max(1.0)).min(180.0 / (bottom - top).max(1.0)).min(20.0);
        let x = |along: f32| WIDTH / 2.0 + (along - (left + right) / 2.0) * scale;
        let y = |across: f32| HEIGHT / 2.0 + (across - (top + bottom) / 2.0) * scale;
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" \
             font-size=\"14\">\n<title>hitreg why: {}</title>\n<desc>{}</desc>\n\
             <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n",
            escaped(title),
            escaped(answer)
        );
        let mut text = |x: f32, y: f32, colour: &str, words: &str| {
            let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y:.1}\" fill=\"{colour}\">{}</text>", escaped(words));
        };
        text(16.0, 28.0, "black", title);
        for (index, line) in textwrap::wrap(answer, 100).iter().enumerate() {
            text(16.0, 52.0 + 18.0 * index as f32, "black", line);
        }
        for (index, line) in self.legend().iter().skip(1).enumerate() {
            text(16.0, HEIGHT - 16.0 - 18.0 * index as f32, "dimgray", line);
        }
        for (index, point) in self.points.iter().enumerate() {
            // The labels are one below the other, so that the labels of close places do not cover each other.
            text(
                x(point.along) + 12.0,
                y(point.across) + 18.0 * index as f32 - 12.0,
                colour(index),
                &format!("{} {}", point.letter, point.short),
            );
        }
        if self.shooter.is_some() {
            let y = y(0.0);
            let _ = writeln!(
                svg,
                "<path d=\"M 0 {y:.1} H {WIDTH} m -9 -5 l 9 5 l -9 5\" fill=\"none\" stroke=\"black\" stroke-dasharray=\"8 4\"/>"
            );
        }
        for (index, point) in self.points.iter().enumerate() {
            // Rings of different sizes show that places are equal.
            let (radius, colour) = (4 + 3 * index, colour(index));
            let (x, y) = (x(point.along), y(point.across));
            let _ = writeln!(
                svg,
                "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\" fill=\"none\" stroke=\"{colour}\" \
                 stroke-width=\"2\"/>"
            );
        }
        let bar = scale * bar_units(scale);
        let _ = writeln!(
            svg,
            "<path d=\"M {:.1} {:.1} h {bar:.1}\" stroke=\"dimgray\" stroke-width=\"2\"/>\n\
             <text x=\"{:.1}\" y=\"{:.1}\" fill=\"dimgray\" text-anchor=\"end\">{} units</text>\n</svg>",
            WIDTH - 16.0 - bar,
            HEIGHT - 36.0,
            WIDTH - 16.0,
            HEIGHT - 16.0,
            measure(bar_units(scale))
        );
        svg
    }
}

/// A measure without trailing zeros: `2`, `0.5`.
fn round(units: f32) -> String {
    let text = measure(units);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// The scale bar's length in units, about a hundred pixels.
fn bar_units(scale: f32) -> f32 {
    libm::powf(10.0, libm::roundf(libm::log10f(100.0 / scale)))
}

/// Colours that colour-blind people can distinguish (Okabe and Ito).
fn colour(index: usize) -> &'static str {
    ["#0072b2", "#d55e00", "#009e73"][index % 3]
}

fn of_shot(shot: &ShotExplanation) -> WhyDrawing {
    let point = |which: PositionKind, letter, label| {
        let place = shot.place_of(which)?;
        let off = place.off?;
        let (along, across, up) = (off.ahead_units, off.right_units, off.up_units);
        Some(Point { letter, short: which.name(), label, along, across, up, uncertainty: place.uncertainty_units })
    };
    let points: Vec<Point> = [
        point(PositionKind::Drawn, 'D', "drawn on {shooter}'s screen"),
        point(PositionKind::Judged, 'J', "judged by the server"),
        point(PositionKind::Present, 'P', "on the server after that tick"),
    ]
    .into_iter()
    .flatten()
    .collect();
    let shooter = points.first().map(|first| (shot.shooter, first.along));
    WhyDrawing { points, shooter, is_from_side: false, is_y_down: false }
}

fn of_correction(correction: &CorrectionExplanation) -> Option<WhyDrawing> {
    let off = |field: &str| {
        let error = correction.errors.iter().find(|error| error.field == field);
        error.map(FieldError::difference).filter(|off| off.is_finite())
    };
    let (x, y) = (off("origin.x"), off("origin.y"));
    if x.is_none() && y.is_none() && off("origin.z").is_none() {
        return None;
    }
    let point =
        |letter, label, along, across, up| Point { letter, short: label, label, along, across, up, uncertainty: 0.0 };
    let predicted = point('A', "predicted", 0.0, 0.0, Some(0.0));
    let is_y_down = correction.axes.is_y_down;
    let down = y.unwrap_or(0.0) * if is_y_down { 1.0 } else { -1.0 };
    let (along, across, up) = (x.unwrap_or(0.0), down, Some(off("origin.z").unwrap_or(0.0)));
    let came = point('B', "actual", along, across, up);
    Some(WhyDrawing { points: vec![predicted, came], shooter: None, is_from_side: false, is_y_down })
}

fn escaped(text: &str) -> String {
    printable(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
