//! Tests that write `run.json` and read it.

use super::{check_json, compared, design, facts, look};
use crate::results::about::about;
use crate::results::folder::{self, RECORD, RESULTS};
use crate::results::record::{Counts, Host, Record, Status, Timings};

fn record() -> Record {
    Record {
        status: Status::Failed,
        error: Some("no memory".to_owned()),
        facts: facts(),
        host: Host { system: "linux", architecture: "x86_64", threads: 8 },
        workers: 4,
        planned: 5000,
        confidence: 0.95,
        looks: vec![look()],
        done: Counts { masked: 1, sdc: 2, due: 3, detected: 4 },
        timings: Timings { prepare: 0.5, golden: 0.25, rehearsal: 0.125, inject: 8.0 },
        injections_per_second: 1.25,
    }
}

#[test]
fn run_record_text_is_fixed() {
    check_json("run.json", &record());
}

#[test]
fn run_status_names_are_fixed() {
    let all = [Status::Running, Status::Complete, Status::Interrupted, Status::Failed];
    let text = serde_json::to_string(&all).expect("JSON");
    assert_eq!(text, r#"["running","complete","interrupted","failed"]"#);
}

/// `flipwave report` and `flipwave run` read the values that were written.
#[test]
fn run_record_round_trips() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &[u8]| {
        std::fs::write(folder.path().join(name), text).expect("written");
    };
    write(RECORD, include_bytes!("run.json"));
    write(RESULTS, b"");
    let about = about(folder.path()).expect("a record").0;
    assert_eq!((about.name.as_str(), about.seed), ("add", Some(7)));
    assert_eq!(about.file.as_deref(), Some("campaigns/add.yaml".as_ref()));
    assert!(about.unfinished.expect("it failed").contains("failed: no memory"));
    assert_eq!(about.design, design());
    assert_eq!((about.planned, about.sites), (Some(5000), Some(1000)));
    assert_eq!(about.counted.as_deref(), Some("all dispatches"));
    assert_eq!((about.instructions, about.compared), (Some(40), Some(compared())));
    let facts = ["Campaign file", "Target", "Seed", "Fault", "Struck", "Fidelity", "Versions"];
    assert_eq!(about.facts.iter().map(|(name, _)| *name).collect::<Vec<_>>(), facts);
    folder::check(folder.path(), "content digest", 7).expect("results of the same campaign");
    folder::check(folder.path(), "content digest", 8).expect_err("another seed");
}
