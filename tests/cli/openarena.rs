//! A session of OpenArena from outside: imported, its shots compared, explained, reported and exported.

use super::folder::{Folder, code, text};
use super::report::page;

/// The log of the session in fixtures/openarena.
fn folder() -> Folder {
    let folder = Folder::empty();
    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures/openarena");
    let said = folder.done(&format!(
        "import quake3-udp {fixtures}/duel.trace.zst --map {fixtures}/hitreg_room.bsp --server-log {fixtures}/duel.server.log \
         -o duel.hitlog"
    ));
    assert!(said.contains("21, 21 with their victim"), "{said}");
    folder
}

#[test]
fn shots_of_a_real_game_are_in_everything_that_shows_shots() {
    let folder = folder();
    let replay = folder.done("replay duel.hitlog");
    assert!(replay.contains("Hits that the server gave") && !replay.contains("not explained"), "{replay}");
    let hits = folder.json("replay duel.hitlog")["hits_again"].as_array().expect("a list").clone();
    assert_eq!(hits.len(), 21);
    // Who is hit by going back alone.
    let alone: Vec<_> = hits.iter().filter(|hit| hit["at_present"] != hit["target"]).collect();
    assert!(!alone.is_empty());
    let diff = folder.run("diff duel.hitlog --b-set lag_compensation.enabled=false");
    let said = text(&diff.stdout);
    assert_eq!(code(&diff), 1, "{said}");
    for hit in &alone {
        let shot = format!("p{} #{} {}", hit["shooter"], hit["command"], hit["weapon"].as_str().expect("a name"));
        assert!(said.contains(&shot), "{shot}\n{said}");
        let why = folder.done(&format!("why duel.hitlog p{}#{}", hit["shooter"], hit["command"]));
        assert!(why.contains("machinegun") && why.contains(hit["target"].as_str().expect("a name")), "{why}");
    }
    // No further back than it may: not at all, by 20 ms, and as far as the server remembers.
    let limits = |most: u32| -> (usize, i64) {
        let rows = folder.done(&format!("export duel.hitlog --table shots --set lag_compensation.max_unlag_ms={most}"));
        let rows: Vec<serde_json::Value> = rows.lines().map(|row| serde_json::from_str(row).expect("JSON")).collect();
        let cut = rows.iter().filter(|row| row["limit"] == "max_unlag").count();
        (cut, rows.iter().filter_map(|row| row["rewind_us"].as_i64()).max().expect("a shot"))
    };
    let ((all, none), (some, short), (no, long)) = (limits(0), limits(20), limits(400));
    assert_eq!((none, no), (0, 0));
    assert!(
        all >= some && some > 0 && short == 20_000 && (20_000..400_000).contains(&long),
        "{all} {some} {short} {long}"
    );
    let csv = folder.done("export duel.hitlog --table shots --to csv");
    let mut lines = csv.lines();
    let head: Vec<&str> = lines.next().expect("a head").split(',').collect();
    let given = head.iter().position(|column| *column == "given_damage").expect("the column");
    let damage = lines.filter_map(|line| line.split(',').nth(given)?.parse::<f32>().ok());
    assert_eq!(damage.collect::<Vec<_>>(), [7.0; 21], "as the server's log says");
    let (_, contents) = page(&folder, "duel.hitlog");
    let listed = contents["sides"][0]["shots"].as_array().expect("shots").clone();
    let hit = listed.iter().filter(|shot| shot["server"]["reason"] == "hit");
    assert_eq!((listed.len(), hit.count()), (254, 22));
}
