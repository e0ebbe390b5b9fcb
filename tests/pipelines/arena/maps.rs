//! Maps as text: accepted maps and error messages.

use glam::Vec3;
use hitreg::arena::{ArenaMap, ArenaRules, MapTextError, ShapeError, Solid, SolidHull};

const START: &str = "{\n\"classname\" \"info_player_deathmatch\"\n\"origin\" \"0 0 24\"\n}\n";

fn world(brushes: &str) -> String {
    format!("{{\n\"classname\" \"worldspawn\"\n{brushes}}}\n{START}")
}

/// A floor whose top is at 0, in the classic format.
const FLOOR: &str = "{
( -256 -256 -16 ) ( -256 -255 -16 ) ( -256 -256 -15 ) stone 0 0 0 1 1
( -256 -256 -16 ) ( -256 -256 -15 ) ( -255 -256 -16 ) stone 0 0 0 1 1
( -256 -256 -16 ) ( -255 -256 -16 ) ( -256 -255 -16 ) stone 0 0 0 1 1
( 256 256 0 ) ( 256 257 0 ) ( 257 256 0 ) stone 0 0 0 1 1
( 256 256 0 ) ( 257 256 0 ) ( 256 256 1 ) stone 0 0 0 1 1
( 256 256 0 ) ( 256 256 1 ) ( 256 257 0 ) stone 0 0 0 1 1
}
";

/// The floor in the format of Valve's editor.
const FLOOR_220: &str = "{
( -256 -256 -16 ) ( -256 -255 -16 ) ( -256 -256 -15 ) stone [ 0 -1 0 0 ] [ 0 0 -1 0 ] 0 1 1
( -256 -256 -16 ) ( -256 -256 -15 ) ( -255 -256 -16 ) stone [ 1 0 0 0 ] [ 0 0 -1 0 ] 0 1 1
( -256 -256 -16 ) ( -255 -256 -16 ) ( -256 -255 -16 ) stone [ -1 0 0 0 ] [ 0 -1 0 0 ] 0 1 1
( 256 256 0 ) ( 256 257 0 ) ( 257 256 0 ) stone [ 1 0 0 0 ] [ 0 -1 0 0 ] 0 1 1
( 256 256 0 ) ( 257 256 0 ) ( 256 256 1 ) stone [ -1 0 0 0 ] [ 0 0 -1 0 ] 0 1 1
( 256 256 0 ) ( 256 256 1 ) ( 256 257 0 ) stone [ 0 1 0 0 ] [ 0 0 -1 0 ] 0 1 1
}
";

#[test]
fn classic_and_valve_faces_give_the_same_map() {
    let classic = ArenaMap::parse("m", world(FLOOR).as_bytes()).unwrap();
    assert_eq!(classic, ArenaMap::parse("m", world(FLOOR_220).as_bytes()).unwrap());
    let fall = classic.solid().sweep(SolidHull::Point, Vec3::new(8.0, 8.0, 64.0), Vec3::new(8.0, 8.0, -64.0));
    assert!((fall.end.z - 1.0 / 32.0).abs() < 1e-3, "{fall:?}");
    assert_eq!(classic.spawn_points()[0].origin, Vec3::new(0.0, 0.0, 37.0), "raised from Quake's height");
}

#[test]
fn errors_in_maps_name_line_entity_and_brush() {
    let parse = |text: &str| ArenaMap::parse("m", text.as_bytes()).unwrap_err();
    assert!(matches!(parse(""), MapTextError::NoSpawnPoint));
    assert!(matches!(parse("{\n\"classname\" \"worldspawn\"\n"), MapTextError::Unfinished));
    let error = parse("{\n\"classname\" \"worldspawn\"\nbogus\n}\n");
    assert!(matches!(error, MapTextError::Syntax { line: 3, .. }), "{error}");

    let flat =
        FLOOR.replace("( 256 256 0 ) ( 256 257 0 ) ( 257 256 0 )", "( 256 256 -16 ) ( 256 257 -16 ) ( 257 256 -16 )");
    let error = parse(&world(&format!("{FLOOR}{flat}")));
    assert!(matches!(error, MapTextError::Brush { entity: 0, brush: 1, source: ShapeError::Degenerate }), "{error}");
    let collinear = FLOOR.replace("( 256 256 0 ) ( 256 257 0 ) ( 257 256 0 )", "( 0 0 0 ) ( 1 1 1 ) ( 2 2 2 )");
    let error = parse(&world(&collinear));
    assert_eq!(error.to_string(), "entity 0, brush 0: side 3: its three points span no plane");
    let error = parse(&world(FLOOR).replace("0 0 24", "0 0 -8"));
    assert!(matches!(error, MapTextError::NoRoom { entity: 1, .. }), "{error}");
    let error = parse(&world(FLOOR).replace("0 0 24", "0 0"));
    assert_eq!(error.to_string(), "entity 1: origin is \"0 0\", it should be three numbers within 32768");
    let error = parse(&world(FLOOR).replace("worldspawn", "func_door"));
    assert!(error.to_string().starts_with("entity 0: func_door with brushes is not supported"), "{error}");
    let lost = format!("{}{{\n\"classname\" \"trigger_teleport\"\n\"target\" \"x\"\n{FLOOR}}}\n", world(FLOOR));
    assert!(matches!(parse(&lost), MapTextError::NoDestination { entity: 2, .. }));
}

#[test]
fn rules_survive_storage() {
    let rules = ArenaRules::default();
    let bytes = rmp_serde::to_vec(&rules).unwrap();
    let back: ArenaRules = rmp_serde::from_slice(&bytes).unwrap();
    assert_eq!(back, rules);
    let (from, to) = (Vec3::new(-480.0, 480.0, 37.0), Vec3::new(900.0, -300.0, 20.0));
    let sweep = |rules: &ArenaRules| rules.map.solid().sweep(SolidHull::Standing, from, to);
    assert_eq!(sweep(&back), sweep(&rules));
}

#[test]
fn stored_rules_are_checked() {
    let text = serde_json::to_string(&ArenaRules::default()).unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let mut homeless = value.clone();
    homeless["map"]["spawn_points"] = serde_json::json!([]);
    let error = serde_json::from_value::<ArenaRules>(homeless).unwrap_err();
    assert!(error.to_string().contains("no spawn point"), "{error}");
    let mut crooked = value;
    crooked["map"]["brushes"][5][0] = serde_json::json!([2.0, 0.0, 0.0, 1.0]);
    let error = serde_json::from_value::<ArenaRules>(crooked).unwrap_err();
    assert!(error.to_string().contains("brush 5: plane 0"), "{error}");
}

#[test]
fn props_are_read_and_errors_in_props_are_named() {
    let parse = |more: &str| ArenaMap::parse("m", format!("{}{more}", world(FLOOR)).as_bytes());
    let bell = "{\n\"classname\" \"prop_bell\"\n\"origin\" \"0 0 90\"\n\"length_ms\" \"700\"\n}\n";
    let map = parse(bell).unwrap();
    assert_eq!(map.props().bells[0].length_ms, 700);
    assert!(!map.props().arrows && ArenaMap::orchard().props().arrows);
    let error = parse(&bell.replace("700", "0")).unwrap_err();
    assert_eq!(error.to_string(), "entity 2: length_ms is \"0\", it should be 1 to 65535");
    assert!(matches!(parse(&bell.repeat(256)), Err(MapTextError::TooManyProps)));
    assert!(parse("{\n\"classname\" \"prop_apple\"\n}\n").is_err());
    let quiver = world(FLOOR).replace("\"worldspawn\"", "\"worldspawn\"\n\"launcher\" \"pears\"");
    let error = ArenaMap::parse("m", quiver.as_bytes()).unwrap_err();
    assert_eq!(error.to_string(), "entity 0: launcher is \"pears\", it should be arrows, or nothing for rockets");
    let orchard = ArenaMap::orchard().props().clone();
    let counts = [orchard.trees.len(), orchard.apples.len(), orchard.bells.len(), orchard.posts.len()];
    assert!(counts.iter().all(|count| *count > 0), "{counts:?}");
}

#[test]
fn a_map_without_props_is_stored_without_a_list_of_props() {
    let stored = |map: ArenaMap| rmp_serde::to_vec_named(&ArenaRules::new(map)).unwrap();
    let holds = |bytes: &[u8]| bytes.windows(5).any(|word| word == b"props");
    assert!(!holds(&stored(ArenaMap::courtyard())));
    let bytes = stored(ArenaMap::orchard());
    assert!(holds(&bytes));
    assert_eq!(rmp_serde::from_slice::<ArenaRules>(&bytes).unwrap(), ArenaRules::new(ArenaMap::orchard()));
}
