//! Cuts a patch into flat pieces, each a plane with borders. First the patch becomes a grid of points on its curve. If both
//! triangles of a grid square lie in one plane, the square is one piece, otherwise each triangle is. Every piece gets the
//! borders that a box needs to slide past it, and a back plane.

use glam::Vec3;

use super::{LevelPlane, Patch};

/// Distance within which points count as in a plane, in units.
const ON_PLANE: f32 = 0.1;
/// Largest differences of normals and distances between planes that count as equal.
const SAME_NORMAL: f32 = 0.0001;
const SAME_DIST: f32 = 0.02;
/// The engine's limit of borders per piece.
const BORDERS_MAX: usize = 4 + 6 + 16;
/// The engine's limits per patch (cm_patch.h; older engines allow half as many planes).
const PLANES_MAX: usize = 4096;
const PIECES_MAX: usize = 1024;
/// Largest extent of a piece, in units. A larger piece lacks a border.
const EXTENT_MAX: f32 = 65_535.0;

/// A flat piece.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct FlatPiece {
    pub(super) surface: usize,
    /// Indices of planes, and whether the piece lies in front of each.
    pub(super) borders: Vec<(usize, bool)>,
}

/// All pieces of a patch.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PatchPieces {
    pub(super) planes: Vec<LevelPlane>,
    pub(super) pieces: Vec<FlatPiece>,
    pub(super) mins: Vec3,
    pub(super) maxs: Vec3,
}

/// Cuts a patch into pieces. `work` is the remaining number of plane comparisons for all of a map's patches. `None`
/// when a limit is exceeded.
pub(super) fn pieces_of(patch: &Patch, work: &mut u64) -> Option<PatchPieces> {
    let grid = Grid::of(patch);
    let far = Vec3::splat(f32::INFINITY);
    let points = || grid.columns.iter().flatten();
    let mut cutter = FacetCutter { planes: Vec::new(), pieces: Vec::new(), of: Vec::new(), grid: &grid, work };
    cutter.cut();
    (!cutter.is_full()).then_some(PatchPieces {
        planes: cutter.planes,
        pieces: cutter.pieces,
        mins: points().fold(far, |mins, point| mins.min(*point)) - Vec3::ONE,
        maxs: points().fold(-far, |maxs, point| maxs.max(*point)) + Vec3::ONE,
    })
}

struct FacetCutter<'a> {
    grid: &'a Grid,
    planes: Vec<LevelPlane>,
    pieces: Vec<FlatPiece>,
    /// Planes of each square's two triangles, by column, then row.
    of: Vec<Vec<[Option<usize>; 2]>>,
    work: &'a mut u64,
}

impl FacetCutter<'_> {
    /// Returns whether a limit is exceeded. Nothing is added from then on.
    fn is_full(&self) -> bool {
        self.planes.len() > PLANES_MAX || self.pieces.len() > PIECES_MAX || *self.work == 0
    }

    /// Counts a comparison with all planes.
    fn look(&mut self) {
        *self.work = self.work.saturating_sub(1 + self.planes.len() as u64);
    }

    /// Returns the corners of a square, from the top left one on.
    fn corners(&self, i: usize, j: usize) -> [Vec3; 4] {
        [(i, j), (i + 1, j), (i + 1, j + 1), (i, j + 1)].map(|(i, j)| self.grid.columns[i][j])
    }

    fn cut(&mut self) {
        let columns = &self.grid.columns;
        let (across, down) = (columns.len().saturating_sub(1), columns.first().map_or(0, Vec::len).saturating_sub(1));
        for i in 0..across {
            let column = (0..down).map(|j| {
                let [a, b, c, d] = self.corners(i, j);
                [self.plane_of(a, b, c), self.plane_of(c, d, a)]
            });
            let column = column.collect();
            self.of.push(column);
        }
        for i in 0..across {
            for j in 0..down {
                self.square(i, j, across, down);
            }
        }
    }

    fn square(&mut self, i: usize, j: usize, across: usize, down: usize) {
        let [first, second] = self.of[i][j];
        let neighbour =
            |is_inside: bool, wraps: bool, inside: (usize, usize), around: (usize, usize), triangle: usize| {
                let at = if is_inside { Some(inside) } else { wraps.then_some(around) };
                at.and_then(|(i, j)| self.of[i][j][triangle])
            };
        let (rows, columns) = (self.grid.wraps_rows, self.grid.wraps_columns);
        let top = neighbour(j > 0, rows, (i, j.wrapping_sub(1)), (i, down - 1), 1);
        let bottom = neighbour(j + 1 < down, rows, (i, j + 1), (i, 0), 0);
        let left = neighbour(i > 0, columns, (i.wrapping_sub(1), j), (across - 1, j), 0);
        let right = neighbour(i + 1 < across, columns, (i + 1, j), (0, j), 1);
        let [a, b, c, d] = self.corners(i, j);
        let (planes_of_first, planes_of_second) = ([first, second], [second, first]);
        // A neighbour in the same plane needs no border. The border is then a plane perpendicular to the surface.
        let mut border = |neighbour: Option<usize>, planes: [Option<usize>; 2], from, to, foot| match neighbour {
            Some(plane) if Some(plane) != planes[0] => Some(plane),
            _ => self.edge_plane(planes, from, to, foot),
        };
        let top = border(top, planes_of_first, a, b, a);
        let bottom = border(bottom, planes_of_second, c, d, d);
        let left = border(left, planes_of_second, d, a, a);
        let right = border(right, planes_of_first, b, c, b);
        if first == second {
            return self.add(first, &[top, right, bottom, left], &[a, b, c, d]);
        }
        // The diagonal is a side of both triangles.
        let diagonal = second.or(bottom).or_else(|| self.edge_plane(planes_of_first, c, a, c));
        self.add(first, &[top, right, diagonal], &[a, b, c]);
        let diagonal = first.or(top).or_else(|| self.edge_plane(planes_of_second, a, c, a));
        self.add(second, &[bottom, left, diagonal], &[c, d, a]);
    }

    /// Returns the plane through an edge of a triangle, perpendicular to the surface. `planes` are the planes of the
    /// triangle and of the square's other one. The plane rises from `foot`.
    fn edge_plane(&mut self, planes: [Option<usize>; 2], from: Vec3, to: Vec3, foot: Vec3) -> Option<usize> {
        let plane = planes[0].or(planes[1])?;
        let up = foot + Vec3::from(self.planes[plane].normal) * 4.0;
        self.plane_of(from, to, up)
    }

    /// Returns the plane of three points: a known plane that faces the same way and contains them, or a new one.
    fn plane_of(&mut self, a: Vec3, b: Vec3, c: Vec3) -> Option<usize> {
        let normal = (c - a).cross(b - a);
        let length = normal.length();
        if length == 0.0 || !length.is_finite() || self.is_full() {
            return None;
        }
        self.look();
        let normal = normal / length;
        let has = |plane: &LevelPlane| {
            let of = Vec3::from(plane.normal);
            normal.dot(of) >= 0.0 && [a, b, c].iter().all(|point| (point.dot(of) - plane.dist).abs() <= ON_PLANE)
        };
        Some(self.planes.iter().position(has).unwrap_or_else(|| {
            self.planes.push(LevelPlane { normal: normal.to_array(), dist: a.dot(normal) });
            self.planes.len() - 1
        }))
    }

    /// Adds the piece in a plane, unless it has no area.
    fn add(&mut self, surface: Option<usize>, borders: &[Option<usize>], corners: &[Vec3]) {
        let Some(surface) = surface else { return };
        let Some(borders) = borders.iter().map(|border| self.inward((*border)?, corners)).collect() else { return };
        let mut piece = FlatPiece { surface, borders };
        let Some(winding) = self.winding(&piece) else { return };
        let (mins, maxs) = winding.bounds();
        let is_near = (maxs - mins).max_element() <= EXTENT_MAX
            && mins.max_element() < EXTENT_MAX
            && maxs.min_element() > -EXTENT_MAX;
        if is_near && !self.is_full() {
            self.add_bevels(&mut piece, &winding);
            self.pieces.push(piece);
        }
    }

    /// Returns on which side of a border the corners are; `None` if all lie in it.
    fn inward(&self, border: usize, corners: &[Vec3]) -> Option<(usize, bool)> {
        let LevelPlane { normal, dist } = self.planes[border];
        let distances = corners.iter().map(|point| point.dot(Vec3::from(normal)) - dist);
        let (front, back) =
            distances.fold((false, false), |(front, back), d| (front || d > ON_PLANE, back || d < -ON_PLANE));
        (front || back).then_some((border, front && !back))
    }

    /// Returns the outline of the piece; `None` if it is empty.
    fn winding(&self, piece: &FlatPiece) -> Option<Winding> {
        let LevelPlane { normal, dist } = self.planes[piece.surface];
        let whole = Winding::of_plane(Vec3::from(normal), dist);
        let mut borders = piece.borders.iter().filter(|(border, _)| *border != piece.surface);
        borders.try_fold(whole, |winding, border| self.chopped(&winding, *border))
    }

    fn chopped(&self, winding: &Winding, (border, inward): (usize, bool)) -> Option<Winding> {
        let LevelPlane { normal, dist } = self.planes[border];
        let side = if inward { 1.0 } else { -1.0 };
        winding.cut(Vec3::from(normal) * side, dist * side, ON_PLANE)
    }

    /// Adds axis-aligned planes and slanted planes through each edge, so that a box that slides along the piece does
    /// not catch on edges.
    fn add_bevels(&mut self, piece: &mut FlatPiece, winding: &Winding) {
        let (mins, maxs) = winding.bounds();
        for (axis, unit) in [Vec3::X, Vec3::Y, Vec3::Z].into_iter().enumerate() {
            for (normal, dist) in [(-unit, -mins[axis]), (unit, maxs[axis])] {
                self.add_bevel(piece, None, normal, dist);
            }
        }
        for (index, point) in winding.0.iter().enumerate() {
            let edge = *point - winding.0[(index + 1) % winding.0.len()];
            let length = edge.length();
            let edge = edge / length;
            let is_axial = edge.to_array().iter().any(|part| part.abs() > 1.0 - SAME_NORMAL);
            if length < 0.5 || is_axial {
                continue;
            }
            for unit in [Vec3::X, Vec3::Y, Vec3::Z] {
                for side in [-unit, unit] {
                    let slanted = edge.cross(side);
                    let length = slanted.length();
                    let (normal, dist) = (slanted / length, point.dot(slanted / length));
                    let is_outside = winding.0.iter().all(|other| other.dot(normal) - dist <= ON_PLANE);
                    if length >= 0.5 && is_outside {
                        self.add_bevel(piece, Some(winding), normal, dist);
                    }
                }
            }
        }
        if piece.borders.len() < BORDERS_MAX {
            piece.borders.push((piece.surface, true));
        }
    }

    /// Adds a border unless the piece has it or is full. A border that cuts away all of `winding` is not added.
    fn add_bevel(&mut self, piece: &mut FlatPiece, winding: Option<&Winding>, normal: Vec3, dist: f32) {
        let is_known = |plane: usize| same(&self.planes[plane], normal, dist).is_some();
        if is_known(piece.surface)
            || piece.borders.iter().any(|(border, _)| is_known(*border))
            || piece.borders.len() >= BORDERS_MAX
            || self.is_full()
        {
            return;
        }
        self.look();
        let known = self.planes.iter().enumerate().find_map(|(index, plane)| Some((index, same(plane, normal, dist)?)));
        let border = known.unwrap_or_else(|| {
            self.planes.push(LevelPlane { normal: normal.to_array(), dist });
            (self.planes.len() - 1, false)
        });
        if winding.is_none_or(|winding| self.chopped(winding, border).is_some()) {
            piece.borders.push(border);
        }
    }
}

/// Returns whether two planes are equal, and if so, whether they face opposite ways.
fn same(plane: &LevelPlane, normal: Vec3, dist: f32) -> Option<bool> {
    let of = Vec3::from(plane.normal);
    let is = |normal: Vec3, dist: f32| {
        (of - normal).abs().max_element() < SAME_NORMAL && (plane.dist - dist).abs() < SAME_DIST
    };
    if is(normal, dist) { Some(false) } else { is(-normal, -dist).then_some(true) }
}

/// Largest distance of a curve from the line between its ends, in units.
const STRAIGHT_UNITS_MAX: f32 = 16.0;
/// Distance within which columns count as equal, in units.
const SAME_POINT: f32 = 0.1;
/// Distance within which the first and the last column make the grid wrap, in units.
const SAME_BORDER: f32 = 0.1;
/// The engine's limit of columns.
const COLUMNS_MAX: usize = 129;

/// Points by column, then row.
struct Grid {
    columns: Vec<Vec<Vec3>>,
    wraps_columns: bool,
    wraps_rows: bool,
}

impl Grid {
    pub(super) fn of(patch: &Patch) -> Grid {
        let (width, height) = (patch.width as usize, patch.height as usize);
        let column = |i: usize| (0..height).map(|j| Vec3::from(patch.points[j * width + i])).collect();
        let mut columns: Vec<Vec<Vec3>> = (0..width).map(column).collect();
        let wraps_columns = comes_round(&columns);
        straighten(&mut columns);
        let mut rows = transposed(&columns);
        let wraps_rows = comes_round(&rows);
        straighten(&mut rows);
        // The engine leaves the grid transposed, and the diagonals of its squares depend on that.
        Grid { columns: rows, wraps_columns: wraps_rows, wraps_rows: wraps_columns }
    }
}

fn transposed(columns: &[Vec<Vec3>]) -> Vec<Vec<Vec3>> {
    let rows = columns.first().map_or(0, Vec::len);
    (0..rows).map(|row| columns.iter().map(|column| column[row]).collect()).collect()
}

fn comes_round(columns: &[Vec<Vec3>]) -> bool {
    let (Some(first), Some(last)) = (columns.first(), columns.last()) else { return false };
    first.iter().zip(last).all(|(a, b)| (*a - *b).abs().max_element() <= SAME_BORDER)
}

fn straighten(columns: &mut Vec<Vec<Vec3>>) {
    let mut at = 0;
    while at + 2 < columns.len() {
        let (before, control, after) = (&columns[at], &columns[at + 1], &columns[at + 2]);
        let row = |j: usize| (before[j], control[j], after[j]);
        let is_straight = |(a, b, c): (Vec3, Vec3, Vec3)| {
            let on_curve = ((a + b) * 0.5 + (b + c) * 0.5) * 0.5;
            (on_curve - (a + c) * 0.5).length() < STRAIGHT_UNITS_MAX
        };
        if columns.len() + 2 > COLUMNS_MAX || (0..before.len()).all(|j| is_straight(row(j))) {
            columns.remove(at + 1);
            at += 1;
            continue;
        }
        let halves: Vec<(Vec3, Vec3, Vec3)> = (0..before.len()).map(row).collect();
        let left = halves.iter().map(|(a, b, _)| (*a + *b) * 0.5).collect::<Vec<Vec3>>();
        let right = halves.iter().map(|(_, b, c)| (*b + *c) * 0.5).collect::<Vec<Vec3>>();
        let middle = left.iter().zip(&right).map(|(l, r)| (*l + *r) * 0.5).collect();
        columns.splice(at + 1..at + 2, [left, middle, right]);
    }
    let same = |a: &mut Vec<Vec3>, b: &mut Vec<Vec3>| {
        a.iter().zip(b.iter()).all(|(a, b)| (*a - *b).abs().max_element() <= SAME_POINT)
    };
    // Of equal columns, keep the first.
    columns.dedup_by(same);
}

/// Larger than any map, in units.
const FAR: f32 = 131_072.0;

/// The corners of a polygon, in order.
#[derive(Clone, Debug)]
struct Winding(pub(super) Vec<Vec3>);

impl Winding {
    /// Returns a square in a plane, larger than any map.
    fn of_plane(normal: Vec3, dist: f32) -> Winding {
        let size = normal.abs();
        let is_level = size.z > size.x && size.z > size.y;
        let up = if is_level { Vec3::X } else { Vec3::Z };
        let up = (up - normal * up.dot(normal)).normalize_or_zero();
        let right = up.cross(normal);
        let (center, up, right) = (normal * dist, up * FAR, right * FAR);
        Winding(vec![center - right + up, center + right + up, center + right - up, center - right - up])
    }

    /// Returns the part in front of a plane; `None` if it is empty. Points within `epsilon` lie on the plane.
    pub(super) fn cut(&self, normal: Vec3, dist: f32, epsilon: f32) -> Option<Winding> {
        let distance = |point: &Vec3| point.dot(normal) - dist;
        if !self.0.iter().any(|point| distance(point) > epsilon) {
            return None;
        }
        let mut points = Vec::with_capacity(self.0.len() + 2);
        for (index, point) in self.0.iter().enumerate() {
            let next = &self.0[(index + 1) % self.0.len()];
            let (here, there) = (distance(point), distance(next));
            if here >= -epsilon {
                points.push(*point);
            }
            let crosses = (here > epsilon && there < -epsilon) || (here < -epsilon && there > epsilon);
            if crosses {
                let between = *point + (*next - *point) * (here / (here - there));
                // On an axial plane the coordinate is exactly the plane's distance.
                points.push(Vec3::select(normal.abs().cmpeq(Vec3::ONE), normal * dist, between));
            }
        }
        Some(Winding(points))
    }

    pub(super) fn bounds(&self) -> (Vec3, Vec3) {
        let far = Vec3::splat(f32::INFINITY);
        self.0.iter().fold((far, -far), |(mins, maxs), point| (mins.min(*point), maxs.max(*point)))
    }
}
