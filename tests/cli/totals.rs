//! Sums equal totals, and each number is the same on every page.

use std::collections::BTreeMap;

use serde_json::Value;

use super::folder::Folder;

const SESSIONS: [&str; 4] = [
    "--players 4 --seconds 6 --loss 3%",
    "--players 4 --seconds 6 --preset quake3 --jitter-ms 5",
    "--players 3 --seconds 5 --preset quakeworld",
    "--players 3 --seconds 5 --preset nereids --loss 5%",
];

/// The rows of an exported table, by column name.
fn table(folder: &Folder, name: &str) -> Vec<BTreeMap<String, String>> {
    let csv = folder.done(&format!("export a.hitlog --table {name} --to csv"));
    let mut lines = csv.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    let head = lines.next().expect("a head");
    lines.map(|cells| head.iter().cloned().zip(cells).collect()).collect()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_else(|| panic!("no number: {value}"))
}

/// Counts lost packets, which have a later arrival of the same player, and packets in flight at the end.
fn lost_and_in_flight(rows: &[BTreeMap<String, String>]) -> [u64; 2] {
    let mut waiting: BTreeMap<&str, u64> = BTreeMap::new();
    let mut lost = 0;
    for row in rows {
        let waiting = waiting.entry(&row["player"]).or_default();
        match row["arrived"].as_str() {
            "0" => *waiting += 1,
            _ => lost += std::mem::take(waiting),
        }
    }
    [lost, waiting.values().sum()]
}

#[test]
fn pages_and_exported_tables_have_the_same_numbers() {
    let mut seen = [0; 3];
    for (seed, session) in SESSIONS.iter().enumerate() {
        let folder = Folder::empty();
        folder.done(&format!("record synth {session} --seed {} -o a.hitlog", seed + 1));
        let (info, replay) = (folder.json("info a.hitlog --replay"), folder.json("replay a.hitlog"));

        let network = &replay["network"];
        for (name, way, of_log) in [("packets", "up", "packets_up"), ("snapshots", "down", "packets")] {
            let [lost, in_flight] = lost_and_in_flight(&table(&folder, name));
            assert_eq!(
                [number(&network[way]["lost"]), number(&network[way]["in_flight"])],
                [lost, in_flight],
                "{session}"
            );
            assert_eq!(number(&info[of_log]["lost"]), lost, "{session}: {name}");
            assert_eq!(number(&info[of_log]["sent"]), number(&network[way]["sent"]), "{session}: {name}");
            seen[0] += in_flight;
        }
        assert_eq!(number(&info["packets"]["choked"]), number(&network["choked"]), "{session}");

        let rows = table(&folder, "corrections");
        let misses = rows.iter().filter(|row| row["result"] == "miss").count() as u64;
        let corrected = rows.iter().filter(|row| row["cause"] != "none").count() as u64;
        let prediction = &replay["prediction"];
        let causes = prediction["misses_by_cause"].as_object().expect("causes");
        assert_eq!(causes.values().map(number).sum::<u64>(), misses, "{session}");
        assert_eq!(number(&prediction["checked"]) - number(&prediction["exact"]) - number(&prediction["near"]), misses);
        assert_eq!(number(&replay["exercised"]["corrections"]), corrected, "{session}");

        let rows = table(&folder, "shots");
        let (impacts, shots): (Vec<_>, Vec<_>) = rows.iter().partition(|row| row["impact"] == "1");
        let of = |reason: &str| shots.iter().filter(|row| row["reason"] == reason).count() as u64;
        let found = &replay["shots"];
        let counts = ["fired", "launched", "impacts", "not_run"].map(|name| number(&found[name]));
        let fired = shots.len() as u64 - of("not run");
        assert_eq!(counts, [fired, of("launched"), impacts.len() as u64, of("not run")], "{session}");
        assert_eq!(number(&info["shots"]), fired, "{session}");
        assert_eq!(number(&replay["exercised"]["shots"]), fired, "{session}");
        seen[1] += fired;

        for row in &shots {
            let (reason, target, aimed_at) = (&row["reason"], &row["target"], &row["aimed_at"]);
            if reason == "hit" {
                assert_eq!((aimed_at, row["aimed_by"].as_str()), (target, "hit"), "{session}");
                seen[2] += 1;
            } else if row["predicted_reason"] == "hit" && reason != "not run" {
                assert_eq!((aimed_at, row["aimed_by"].as_str()), (&row["predicted_target"], "predicted_hit"));
            }
        }
    }
    assert!(seen.iter().all(|seen| *seen > 0), "{seen:?}");
}

/// Packets after the last arrival are not lost by definition, so a dead link has other words.
#[test]
fn packets_of_a_dead_link_are_in_flight_at_the_end() {
    let folder = Folder::empty();
    let links = "players = 2\nseconds = 6.0\n[[links]]\ndelay_ms = 5.0\n[[links]]\ndelay_ms = 5.0\n";
    for (end, is_dead) in [("loss = { random = 1.0 }\n", true), ("", false)] {
        std::fs::write(folder.path("links.toml"), format!("{links}{end}")).expect("a scenario");
        folder.done("record synth --scenario links.toml -o a.hitlog --force");
        let network = folder.json("replay a.hitlog")["network"].clone();
        // Long lines wrap.
        let shown = folder.done("replay a.hitlog").split_whitespace().collect::<Vec<_>>().join(" ");
        for (way, sent) in [("up", "packets of 2.99 usercmds"), ("down", "snapshots")] {
            let waiting = number(&network[way]["in_flight"]);
            let said = format!("{sent}, 0 % lost, {waiting} in flight at the end");
            assert_eq!(shown.contains(&said), is_dead, "{said}: {shown}");
        }
        let info = folder.done("info a.hitlog").split_whitespace().collect::<Vec<_>>().join(" ");
        for way in ["from", "to"] {
            let said =
                format!("packets {way} the server were sent after the last arrival, and are not counted as lost");
            assert_eq!(info.contains(&said), is_dead, "{said}: {info}");
        }
    }
}
