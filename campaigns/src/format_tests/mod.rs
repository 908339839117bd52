//! Tests of file formats: a representative value of each file must have exactly the committed text.
//!
//! Names in files come from Rust fields and variants. When a rename changes a file, a test here or next to
//! the type fails; give the field its former name with `#[serde(rename = "...")]`. If a format changes on
//! purpose, raise the format number of its file, if it has one, and make readers accept or reject files of
//! older versions. Then run `FLIPWAVE_BLESS=1 cargo test` to update the committed texts.

mod record;
mod shipped_campaigns;

use crate::results::record::{CampaignFacts, CampaignIdentity, Versions};
use flipwave_analysis::{
    ComparedOutput, Confidence, IntervalMethod, Look, PrunedSites, SampleDesign,
};
use flipwave_injector::{
    DecisionRecord, DoubtRecord, Exactness, FaultSpace, FidelityCounts, FidelityRecord, Group,
    GroupFaultSpace, OperationRecord,
};
use std::collections::BTreeMap;
use std::path::Path;

/// Checks that `text` equals the committed file `name` in this folder.
pub(crate) fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/format_tests").join(name);
    if std::env::var_os("FLIPWAVE_BLESS").is_some() {
        std::fs::write(&path, text).expect("written");
    }
    let pinned = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == pinned,
        "{} differs from what this version writes:\n{text}\nSee format_tests/mod.rs for what to do.",
        path.display()
    );
}

/// Checks that the JSON form of `value` equals the committed file `name` in this folder.
pub(crate) fn check_json(name: &str, value: &impl serde::Serialize) {
    let text = serde_json::to_string_pretty(value).expect("JSON");
    check(name, &(text + "\n"));
}

/// Formats a CSV table that contains one row.
pub(crate) fn csv_text(row: &impl serde::Serialize) -> String {
    let mut table = csv::Writer::from_writer(Vec::new());
    table.serialize(row).expect("a row");
    String::from_utf8(table.into_inner().expect("a table")).expect("text")
}

pub(crate) fn identity() -> CampaignIdentity {
    CampaignIdentity {
        name: "add".to_owned(),
        seed: 7,
        target: "gfx90a".to_owned(),
        fault: "flip_one_bit of destination_register".to_owned(),
        selection: "groups valu".to_owned(),
        sha256: "file digest".to_owned(),
        content: "content digest".to_owned(),
    }
}

pub(crate) fn facts() -> CampaignFacts {
    CampaignFacts {
        campaign: identity(),
        file: "campaigns/add.yaml".into(),
        compared: compared(),
        versions: Versions {
            flipwave: "0.1.0".to_owned(),
            compiler: Some("clang version 22".to_owned()),
        },
        fault_space: fault_space(),
        counted: "all dispatches".to_owned(),
        design: design(),
        fidelity: Some(fidelity()),
        golden_wave_instructions: vec![40],
        instruction_limits: vec![4000],
    }
}

pub(crate) fn compared() -> Vec<ComparedOutput> {
    vec![ComparedOutput {
        name: "sum".to_owned(),
        element: "f32".to_owned(),
        elements: Some(256),
        comparison: "relative 1e-5".to_owned(),
        is_detector: false,
    }]
}

pub(crate) fn fault_space() -> FaultSpace {
    let groups =
        vec![GroupFaultSpace { group: Group::Valu, sites: 1000, eligible: 20, executed: 30 }];
    FaultSpace { sites: 1000, left_out: 10, eligible: 20, executed: 30, groups }
}

pub(crate) fn fidelity() -> FidelityRecord {
    let operation = |operation: &str, fidelity| OperationRecord {
        operation: operation.to_owned(),
        executions: 4,
        fidelity,
    };
    let decision = |fidelity| DecisionRecord {
        fidelity,
        kernel: "add".to_owned(),
        pc: "0x100".to_owned(),
        line: Some("add.cl:3".to_owned()),
        instruction: "s_cbranch_scc1 3".to_owned(),
        registers: vec!["s4".to_owned()],
        decides: "decides a branch".to_owned(),
        times: 2,
    };
    FidelityRecord {
        executions: FidelityCounts { exact: 4, within_error: 4, not_settled: 4 },
        operations: vec![
            operation("v_exp_f32", Exactness::NotSettled("not settled: rounded".to_owned())),
            operation("v_rcp_f32", Exactness::WithinError("within 1 ULP".to_owned())),
            operation("v_add_f32", Exactness::Exact),
        ],
        decisions: vec![decision(DoubtRecord::NotSettled), decision(DoubtRecord::WithinError)],
    }
}

pub(crate) fn design() -> SampleDesign {
    SampleDesign {
        confidence: Confidence::P95,
        z_score: Some(2.5),
        method: IntervalMethod::ClopperPearson,
        stratum_sites: BTreeMap::from([("add".to_owned(), 1000)]),
        is_finite: true,
        pruned: BTreeMap::from([(
            "kernel:add".to_owned(),
            PrunedSites { sites: 1000, overwritten: 7, dead: 3 },
        )]),
        by_opcode: true,
        is_judged: true,
    }
}

pub(crate) fn look() -> Look {
    Look {
        injections: 500,
        rates: 4,
        narrow: 3,
        widest: "kernel:add sdc".to_owned(),
        half_width: 0.04,
    }
}
