//! Tables of manual hazards compared with LLVM's hazard recognizer: for every ordered pair of a pool of
//! instructions, `llc` must insert between the two what the table requires.

mod gfx10;
mod gfx11;
mod gfx12;
mod gfx1250;
mod gfx9;
mod gfx908;
mod gfx940;
mod gfx950;
mod llc;

use crate::common::isa;
use flipwave_depth::cases;
use flipwave_isa::hazard::{Hazard, HazardIndex, Mitigation, mitigations, preceding, violations};
use flipwave_isa::{Isa, Rules};
use llc::{Recognized, assembled, recognized};
use std::collections::HashSet;

/// The mitigations that rules require before the last instruction of a sequence.
struct Required {
    wait_states: u8,
    instructions: Vec<String>,
    /// Names of the violated hazards.
    hazards: Vec<&'static str>,
}

fn required(isa: &Isa, rules: &Rules, sequence: &Recognized) -> Required {
    let before = preceding(sequence.before.iter().rev());
    let mut wait_states = 0;
    let mut instructions = Vec::new();
    let mut needed = mitigations(rules.hazards, &before, &sequence.last);
    if let Some(mut state) = rules.sgpr_hazards {
        sequence.before.iter().for_each(|inst| state.execute(inst));
        let wait = state.required_wait(&sequence.last);
        if !wait.is_empty() {
            needed.push(state.mitigation(wait));
        }
    }
    for mitigation in needed {
        match mitigation {
            Mitigation::WaitStates(missing) => wait_states = missing,
            Mitigation::Instruction(text) => instructions.push(assembled(isa, &text).text.clone()),
        }
    }
    let families = rules.hazards.iter();
    let violations = families.flat_map(|family| violations(family, &before, &sequence.last));
    let hazards = violations.map(|violation| violation.hazard.name).collect();
    Required { wait_states, instructions, hazards }
}

/// Returns `true` if the rules require what LLVM inserts.
fn agrees(isa: &Isa, rules: &Rules, sequence: &Recognized) -> bool {
    let required = required(isa, rules, sequence);
    // LLVM merges waits, and prints fields that do not wait.
    let parts = |text: &String| -> Vec<String> {
        match text.strip_prefix("s_waitcnt_depctr ") {
            Some(fields) => fields.split(' ').map(str::to_owned).collect(),
            None => vec![text.clone()],
        }
    };
    let sorted = |texts: &[String]| {
        let mut texts: Vec<String> = texts.iter().flat_map(parts).collect();
        texts.retain(|text| text != "depctr_hold_cnt(0)");
        texts.sort();
        texts.dedup();
        texts
    };
    let (expected, inserted) = (sorted(&required.instructions), sorted(&sequence.instructions));
    // LLVM merges waits after writes that nothing reads into a wait that an instruction needs.
    let is_merged = !expected.is_empty() && inserted.len() > expected.len();
    let has_all = expected.iter().all(|text| inserted.contains(text));
    required.wait_states == sequence.wait_states && (expected == inserted || is_merged && has_all)
}

/// Asserts that the rules agree with LLVM on all sequences. Returns the names of the violated hazards.
fn assert_agreement(isa: &Isa, rules: &Rules, recognized: &[Recognized]) -> HashSet<&'static str> {
    let mut reached = HashSet::new();
    let mut wrong = Vec::new();
    for sequence in recognized {
        let Required { wait_states, instructions, hazards } = required(isa, rules, sequence);
        if !agrees(isa, rules, sequence) {
            let before: Vec<&str> = sequence.before.iter().map(|inst| &*inst.text).collect();
            wrong.push(format!(
                "{before:?}, {:?}: LLVM {} {:?}, table {wait_states} {instructions:?}: {hazards:?}",
                sequence.last.text, sequence.wait_states, sequence.instructions
            ));
        }
        reached.extend(hazards);
    }
    assert_index_excludes_no_violation(isa, rules, recognized);
    let shown: Vec<&str> = wrong.iter().take(40).map(|line| &**line).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), recognized.len(), shown.join("\n"));
    reached
}

/// Asserts that the hazard index never rules out a pair of instructions that violates a hazard.
fn assert_index_excludes_no_violation(isa: &Isa, rules: &Rules, recognized: &[Recognized]) {
    let index = HazardIndex::new(&Rules::of(isa.target(), isa.wave_size()).expect("rules"));
    for sequence in recognized {
        let before = preceding(sequence.before.iter().rev());
        let victim = index.roles(&sequence.last);
        let may_conflict: Vec<bool> = before
            .iter()
            .map(|earlier| {
                let trigger = index.roles(earlier.inst);
                index.may_conflict(&victim, &trigger, earlier.distance.into())
            })
            .collect();
        let families = rules.hazards.iter();
        for violation in families.flat_map(|family| violations(family, &before, &sequence.last)) {
            let trigger = before[violation.trigger].inst;
            assert!(
                may_conflict[violation.trigger],
                "{trigger}, {}: {}",
                sequence.last, violation.hazard.name
            );
        }
    }
}

/// Asserts that every hazard was reached by a sequence, except those in `not_in_llvm`.
fn assert_all_reached(rules: &Rules, reached: &HashSet<&str>, not_in_llvm: &[&str]) {
    let names = rules.hazards.iter().flat_map(|family| family.iter().map(|hazard| hazard.name));
    let unreached: Vec<_> =
        names.filter(|name| !reached.contains(name) && !not_in_llvm.contains(name)).collect();
    assert!(unreached.is_empty(), "hazards that no sequence reaches: {unreached:#?}");
}

/// Negative control: asserts that a table without one of its families disagrees with LLVM.
fn assert_each_family_matters(isa: &Isa, rules: &Rules, recognized: &[Recognized]) {
    for excluded in cases(0..rules.hazards.len(), 3) {
        let excluded = rules.hazards[excluded];
        let hazards = without(rules, |family| std::ptr::eq(family, excluded));
        let remaining = Rules { hazards, ..*rules };
        let agrees = recognized.iter().all(|sequence| agrees(isa, &remaining, sequence));
        assert!(!agrees, "{:?} makes no difference", excluded[0].name);
    }
}

/// The hazards of rules without some families.
fn without(
    rules: &Rules,
    is_excluded: impl Fn(&'static [Hazard]) -> bool,
) -> &'static [&'static [Hazard]] {
    let families = rules.hazards.iter().copied();
    families.filter(|family| !is_excluded(family)).collect::<Vec<_>>().leak()
}

/// A processor's rules for wave64, with LLVM's results for all ordered pairs of a pool and for further
/// sequences.
fn table(
    processor: &str,
    pool: &[&'static str],
    further: &[[&'static str; 3]],
) -> (Isa, Rules, Vec<Recognized>) {
    let isa = isa(processor);
    let rules = Rules::of(isa.target(), 64).expect("rules");
    let further = further.iter().map(|sequence| sequence.to_vec());
    let sequences: Vec<_> = pairs(pool).into_iter().chain(further).collect();
    let recognized = recognized(&isa, &["-mattr=-xnack"], &sequences);
    (isa, rules, recognized)
}

/// Every ordered pair of a pool.
fn pairs(pool: &[&'static str]) -> Vec<Vec<&'static str>> {
    pairs_of(pool)
}

/// Every ordered pair of a pool whose texts do not live forever.
fn pairs_of<'a>(pool: &[&'a str]) -> Vec<Vec<&'a str>> {
    pool.iter().flat_map(|first| pool.iter().map(move |second| vec![*first, *second])).collect()
}
