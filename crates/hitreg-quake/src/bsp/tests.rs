//! Small generated maps of both versions for tests, as bytes.

/// The entities of [`quake_bytes`]. Its level has a floor at 0 that ends in a wall at x = 116, and a pool 40 deep where
/// x < -200. Model 1 is a lift, 64 wide and 16 thick, with its top at 0. Model 2 is a teleporter at y > 600 that leads
/// to (0, 0, 27), facing y.
pub(crate) const ENTITIES: &str = r#"
{ "classname" "worldspawn" }
{ "classname" "func_plat" "model" "*1" }
{ "classname" "trigger_teleport" "model" "*2" "target" "there" }
{ "classname" "info_teleport_destination" "targetname" "there" "origin" "0 0 0" "angle" "90" }
"#;

/// The origin's z of a player who stands on the floor: 24 below the origin is the box's underside, and sweeps stop 1/32
/// short.
pub(crate) const STANDING_Z: f32 = 24.031_25;

const EMPTY_LEAF: i32 = 0;
const SOLID_LEAF: i32 = 1;
const WATER_LEAF: i32 = 2;

/// Returns the map as a `.bsp` of version 29.
pub(crate) fn quake_bytes() -> Vec<u8> {
    quake_bytes_leaning(None)
}

/// Returns the map with solid space behind a plane, for points and not for players, as in a recompiled map.
pub(crate) fn quake_bytes_leaning(plane: Option<([f32; 3], f32)>) -> Vec<u8> {
    let mut lumps: Vec<Vec<u8>> = vec![Vec::new(); 15];
    lumps[0] = ENTITIES.as_bytes().to_vec();
    let mut planes = vec![(2, 24.0), (0, 100.0), (2, 0.0), (0, -200.0), (2, -40.0)];
    planes.extend([(0, 48.0), (0, -48.0), (1, 48.0), (1, -48.0), (2, 24.0), (2, -48.0)]);
    planes.push((2, -16.0));
    for (axis, dist) in planes {
        let mut normal = [0.0f32; 3];
        normal[axis] = 1.0;
        for value in [normal[0], normal[1], normal[2], dist] {
            lumps[1].extend(value.to_le_bytes());
        }
        lumps[1].extend((axis as i32).to_le_bytes());
    }
    for value in plane.iter().flat_map(|(normal, dist)| normal.iter().chain([dist])) {
        lumps[1].extend(value.to_le_bytes());
    }
    let leaf = |leaf: i32| (-1 - leaf) as i16;
    // Points: solid below the floor, except for the pool's water down to 40.
    let mut points = vec![(2, leaf(EMPTY_LEAF), 1), (3, leaf(SOLID_LEAF), 2), (4, leaf(WATER_LEAF), leaf(SOLID_LEAF))];
    if plane.is_some() {
        lumps[1].extend(3i32.to_le_bytes());
        points[0].1 = 3;
        points.push((12, leaf(EMPTY_LEAF), leaf(SOLID_LEAF)));
    }
    for (plane, front, back) in points {
        lumps[5].extend(i32::to_le_bytes(plane));
        lumps[5].extend(front.to_le_bytes());
        lumps[5].extend(back.to_le_bytes());
        lumps[5].extend([0; 16]);
    }
    // Players: the same planes 24 higher, the wall 16 earlier, and the lift's box.
    let mut clip = vec![(1, -2, 1), (3, 2, 3), (0, -1, -2), (11, -1, -2)];
    clip.extend([(5, -1, 5), (6, 6, -1), (7, -1, 7), (8, 8, -1), (9, -1, 9), (10, -2, -1)]);
    for (plane, front, back) in clip {
        lumps[9].extend(i32::to_le_bytes(plane));
        lumps[9].extend(i16::to_le_bytes(front));
        lumps[9].extend(i16::to_le_bytes(back));
    }
    for contents in [-1i32, -2, -3] {
        lumps[10].extend(contents.to_le_bytes());
        lumps[10].extend([0; 24]);
    }
    let boxes = [
        ([-4096.0f32, -4096.0, -4096.0], [4096.0f32, 4096.0, 4096.0], 0, 0),
        ([-32.0, -32.0, -16.0], [32.0, 32.0, 0.0], -1, 4),
        ([-64.0, 600.0, 0.0], [64.0, 640.0, 64.0], -1, -1),
    ];
    for (mins, maxs, point_root, clip_root) in boxes {
        for value in mins.into_iter().chain(maxs).chain([0.0; 3]) {
            lumps[14].extend(f32::to_le_bytes(value));
        }
        lumps[14].extend(i32::to_le_bytes(point_root));
        lumps[14].extend(i32::to_le_bytes(clip_root));
        lumps[14].extend([0; 20]);
    }
    file(&29i32.to_le_bytes(), &lumps)
}

/// Returns a level of version 46: a floor at 0, a wall at x = 256, and a step 16 high where y > 60. A flat patch at z =
/// 64 faces up, with x from -200 to -100 and y from -100 to 100.
pub(crate) fn quake3_bytes() -> Vec<u8> {
    let boxes: [[f32; 6]; 3] = [
        [-512.0, -512.0, -32.0, 512.0, 512.0, 0.0],
        [256.0, -512.0, -32.0, 288.0, 512.0, 512.0],
        [-512.0, 60.0, 0.0, 512.0, 512.0, 16.0],
    ];
    let mut lumps: Vec<Vec<u8>> = vec![Vec::new(); 17];
    let put = |lump: &mut Vec<u8>, words: &[u32]| words.iter().for_each(|word| lump.extend(word.to_le_bytes()));
    lumps[1].extend([0; 64]);
    put(&mut lumps[1], &[0, 1]);
    for (index, corners) in boxes.iter().enumerate() {
        for side in 0..6u32 {
            let (axis, sign) = ((side / 2) as usize, if side % 2 == 0 { -1.0f32 } else { 1.0 });
            let mut plane = [0.0f32; 4];
            plane[axis] = sign;
            plane[3] = sign * if side % 2 == 0 { corners[axis] } else { corners[axis + 3] };
            put(&mut lumps[2], &plane.map(f32::to_bits));
            put(&mut lumps[9], &[index as u32 * 6 + side, 0]);
        }
        put(&mut lumps[8], &[index as u32 * 6, 6, 0]);
        put(&mut lumps[6], &[index as u32]);
    }
    // One node at the height of the floor; both leaves contain everything.
    put(&mut lumps[3], &[5, -1i32 as u32, -2i32 as u32, 0, 0, 0, 0, 0, 0]);
    for _ in 0..2 {
        put(&mut lumps[4], &[0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 3]);
    }
    put(&mut lumps[5], &[0]);
    put(&mut lumps[7], &[0, 0, 0, 0, 0, 0, 0, 1, 0, 3]);
    for row in 0..3u32 {
        for column in 0..3u32 {
            let place = [-200.0 + 50.0 * column as f32, -100.0 + 100.0 * row as f32, 64.0];
            put(&mut lumps[10], &place.map(f32::to_bits));
            lumps[10].extend([0; 32]);
        }
    }
    let mut surface = [0u32; 26];
    (surface[2], surface[4], surface[24], surface[25]) = (2, 9, 3, 3);
    put(&mut lumps[13], &surface);
    file(b"IBSP\x2e\0\0\0", &lumps)
}

/// Returns a file of lumps after their table.
fn file(version: &[u8], lumps: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = version.to_vec();
    let mut at = version.len() + 8 * lumps.len();
    for lump in lumps {
        bytes.extend((at as u32).to_le_bytes());
        bytes.extend((lump.len() as u32).to_le_bytes());
        at += lump.len();
    }
    bytes.extend(lumps.concat());
    bytes
}
