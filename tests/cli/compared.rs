//! Comparisons of settings, of parts and of shots, and the causes that `bisect ticks` names.

use std::fs;

use hitreg::log::{read_trace, write_trace};
use hitreg::trace::schema::shots;
use serde_json::Value;

use super::folder::{Folder, code, text};

#[test]
fn a_setting_of_one_player_is_compared_with_a_preset() {
    let folder = Folder::empty();
    folder.done("record synth --players 3 --seconds 4 --set p1.interpolation.lerp_ms=50 --delay-ms 80 -o mix.hitlog");
    for line in ["--b-preset quake3", "--a-preset quake3", "--b-preset quake3 --on hits"] {
        let output = folder.run(&format!("diff mix.hitlog {line}"));
        assert_eq!(code(&output), 1, "{line}: {}", text(&output.stderr));
    }
}

#[test]
fn the_cause_among_several_settings_is_one_that_alone_gives_the_difference() {
    let folder = Folder::empty();
    folder.done("record synth --players 4 --seconds 6 --loss 10% --delay-ms 40 -o a.hitlog");
    let bisected = |sides: &str| folder.differs(&format!("bisect ticks a.hitlog {sides}"));
    for preset in ["quake3", "dumb-client"] {
        let found = bisected(&format!("--b-preset {preset}"));
        let evidence = found["cause"]["evidence"].as_str().expect("evidence");
        assert!(evidence.ends_with("and alone gives this difference"), "{preset}: {evidence}");
        let (key, rest) = evidence.split_once(" is ").expect("a key");
        let (_, value) = rest.split_once(" in A, ").expect("two values");
        let (value, _) = value.split_once(" in B").expect("a value of B");
        let alone = bisected(&format!("--b-set {key}={value}"));
        for what in ["table", "place", "field", "a", "b"] {
            assert_eq!(alone["first"][what], found["first"][what], "{preset}: {what}");
        }
    }
}

/// Sessions over other links differ, whatever their settings are.
#[test]
fn the_cause_of_a_difference_between_logs_is_unknown() {
    let folder = Folder::empty();
    for (log, options) in [("a", "--delay-ms 60"), ("b", "--delay-ms 90 --set client.lead_ms=300")] {
        folder.done(&format!("record synth --players 2 --seconds 4 --seed 3 {options} -o {log}.hitlog"));
    }
    let found = folder.differs("bisect ticks a.hitlog b.hitlog");
    assert_eq!(found["cause"]["cause"], "unknown", "{}", found["cause"]);
}

#[test]
fn overlap_compares_only_what_both_traces_have() {
    let folder = Folder::empty();
    folder.done("record synth --players 4 --seconds 8 -o a.hitlog");
    folder.done("replay a.hitlog -o whole.hittrace");
    folder.done("replay a.hitlog --from 3 --to 6 -o part.hittrace");
    folder.done("replay a.hitlog --tables shots,corrections -o some.hittrace");
    let part = folder.json("diff whole.hittrace part.hittrace --overlap");
    assert_eq!((&part["verdict"], &part["hits"]["only_a"]), (&"same".into(), &0.into()));
    assert_eq!(part["hits"]["changed"], serde_json::json!([]));
    let some = folder.done("diff whole.hittrace some.hittrace --overlap");
    assert!(some.contains("same: 2 tables") && some.contains("not compared: 9 tables"), "{some}");
    let mut few = read_trace(&fs::read(folder.path("whole.hittrace")).expect("a trace")[..]).expect("sound");
    let shots = few.tables.iter_mut().find(|table| table.name == shots::NAME).expect("shots");
    shots.columns.retain(|column| !["target", "hitgroup", "damage"].contains(&&*column.name));
    fs::write(folder.path("few.hittrace"), write_trace(Vec::new(), &few).expect("written")).expect("written");
    let few = folder.json("diff whole.hittrace few.hittrace --overlap");
    assert!(few["hits"]["both"].as_u64() > Some(0) && few["hits"]["changed"] == serde_json::json!([]), "{few}");
}

/// Usercmds that are sent later are judged later.
#[test]
fn a_changed_shot_has_the_time_at_which_it_hit() {
    let folder = Folder::empty();
    folder.done("record synth --players 8 --seconds 12 --delay-ms 70 -o a.hitlog");
    let diff = folder.differs("diff a.hitlog --b-set client.cmd_hz=50 --b-set interpolation.lerp_ms=50");
    let changed = diff["hits"]["changed"].as_array().expect("shots");
    let time = |at_us: &Value| at_us.as_i64().expect("a time");
    let other_times = changed.iter().filter(|shot| shot["a"]["at_us"] != shot["b"]["at_us"]).count();
    assert!(other_times > 10, "{other_times} of {} shots", changed.len());
    assert!(changed.is_sorted_by_key(|shot| time(&shot["at_us"])), "{changed:#?}");
    for shot in changed {
        let [a, b] = ["a", "b"].map(|side| shot[side]["at_us"].as_i64());
        match shot["change"].as_str() {
            Some("only_a") => assert_eq!(Some(time(&shot["at_us"])), a),
            Some("only_b") => assert_eq!(Some(time(&shot["at_us"])), b),
            _ => assert!([a, b].contains(&Some(time(&shot["at_us"]))), "{shot}"),
        }
    }
}

#[test]
fn diff_on_hits_lists_all_changed_shots_with_the_numbers_that_why_takes() {
    let folder = Folder::empty();
    folder.done("record synth --players 8 --seconds 12 --delay-ms 80 -o a.hitlog");
    let sides = "a.hitlog --b-set lag_compensation.enabled=false";
    let diff = folder.differs(&format!("diff {sides}"));
    let changed = diff["hits"]["changed"].as_array().expect("shots").len();
    let page = text(&folder.run(&format!("diff {sides} --on hits")).stdout);
    let line = |number: usize| page.lines().find(|line| line.trim_start().starts_with(&format!("{number}. p")));
    assert!(changed > 10 && line(changed).is_some() && line(changed + 1).is_none(), "{changed}: {page}");
    let name = |line: &str| line.split_whitespace().skip(1).take(2).collect::<Vec<_>>().join("");
    let named = name(line(12).expect("a line"));
    let why = text(&folder.run(&format!("diff {sides} --on hits --why 12")).stdout);
    assert!(why.contains(&named), "{named}: {why}");
}
