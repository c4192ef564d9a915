//! The program `bench`, as a user runs it, with turns so short that their figures mean nothing.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

const QUESTIONS: [&str; 9] = [
    "uncontended",
    "handoff",
    "writers",
    "permit",
    "arrivals",
    "many",
    "local",
    "memory",
    "allocations",
];

fn bench(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    // Nothing is installed for this.
    command.args(args).args(["--rounds", "1", "--without", "kazoo"]).stdin(Stdio::null());
    command.env_remove("CURATOR_JARS").output().expect("bench runs")
}

#[test]
fn every_contestant_is_measured_and_every_ratio_is_a_number() {
    let pictures = tempfile::tempdir().unwrap();
    // zklock a second time stands for a program of the user's.
    let peer = format!("mine={} zklock", env!("CARGO_BIN_EXE_bench"));
    let directory = pictures.path().display().to_string();
    let output = bench(&[
        "--seconds",
        "0.05",
        "--locks",
        "20",
        "--json",
        "--peer",
        &peer,
        "--svg",
        &directory,
    ]);
    let (text, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    let report: Value =
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {said}"));
    for question in QUESTIONS {
        for row in report["answers"][question].as_array().expect(question) {
            let is_there = row["contestant"] != "Curator";
            let figures = row["figures"].as_object().unwrap();
            assert_eq!(is_there, row["trouble"].is_null(), "{question}: {row}");
            assert_eq!(is_there, !figures.is_empty(), "{question}: {row}");
        }
        let picture =
            std::fs::read_to_string(pictures.path().join(format!("server-{question}.svg")));
        assert!(picture.unwrap().contains("zklock"), "{question}");
    }
    let mine = |row: &&Value| row["contestant"] == "mine" && row["n"] == 32;
    let handoffs = report["answers"]["handoff"].as_array().unwrap();
    let packets = &handoffs.iter().find(mine).unwrap()["figures"]["packets"]["median"];
    assert!(packets.as_f64().unwrap() > 1.0, "{packets}");
    let ratios = report["ratios"].as_array().unwrap();
    assert_eq!(ratios.len(), 20, "{ratios:?}");
    for ratio in ratios {
        let median = ratio["median"].as_f64().unwrap();
        assert!(median.is_finite() && median > 0.0, "{ratio}");
    }
}

#[test]
fn a_contestant_that_fails_is_named_and_left_out() {
    let output = bench(&["--seconds", "0.05", "--only", "uncontended", "--peer", "broken=false"]);
    let (text, said) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    assert!(said.contains("uncontended: broken at 1: exit status: 1"), "{said}");
    assert!(said.contains("without Curator: CURATOR_JARS is not set"), "{said}");
    assert!(text.contains("| zklock ") && !text.contains("| broken"), "{text}");
}
