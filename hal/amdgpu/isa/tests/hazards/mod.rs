//! The tables of manual hazards against LLVM's hazard recognizer: for every ordered pair of a set
//! of instructions, what `llc` inserts between the two is what the table asks for.

mod gfx10;
mod gfx11;
mod gfx12;
mod gfx9;
mod gfx908;
mod gfx940;
mod gfx950;
mod llc;

use crate::common::isa;
use flipwave_depth::cases;
use flipwave_isa::hazard::{Hazard, Mitigation, Rows, breaches, mitigations, preceding};
use flipwave_isa::{Isa, Rules};
use llc::{Recognized, assembled, recognized};
use std::collections::HashSet;

/// What rules ask for before the last instruction, and the rows of the table that say so.
fn asked(isa: &Isa, rules: &Rules, own: &Recognized) -> (u8, Vec<String>, Vec<&'static str>) {
    let before = preceding(own.before.iter().rev());
    let mut states = 0;
    let mut instructions = Vec::new();
    let mut asked = mitigations(rules.hazards, &before, &own.last);
    if let Some(mut state) = rules.scalar_reads {
        own.before.iter().for_each(|inst| state.execute(inst));
        let wait = state.needed(&own.last);
        if !wait.is_empty() {
            asked.push(state.mitigation(wait));
        }
    }
    for mitigation in asked {
        match mitigation {
            Mitigation::WaitStates(missing) => states = missing,
            Mitigation::Instruction(text) => instructions.push(assembled(isa, &text).text.clone()),
        }
    }
    let breaches = rules.hazards.iter().flat_map(|family| breaches(family, &before, &own.last));
    (states, instructions, breaches.map(|breach| breach.hazard.name).collect())
}

/// Whether table and LLVM agree.
fn agrees(isa: &Isa, rules: &Rules, own: &Recognized) -> bool {
    let (states, instructions, _) = asked(isa, rules, own);
    // LLVM merges waits; fields of one that counts nothing are printed, too.
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
    let (asked, inserted) = (sorted(&instructions), sorted(&own.instructions));
    // Into a wait that something needs LLVM merges those after writes that nothing reads.
    let is_merged = !asked.is_empty() && inserted.len() > asked.len();
    let has_all = asked.iter().all(|own| inserted.contains(own));
    states == own.wait_states && (asked == inserted || is_merged && has_all)
}

/// Demands that table and LLVM agree on all sequences; gives the names of the rows that asked for
/// something.
fn agree(isa: &Isa, rules: &Rules, recognized: &[Recognized]) -> HashSet<&'static str> {
    let mut reached = HashSet::new();
    let mut wrong = Vec::new();
    for own in recognized {
        let (states, instructions, names) = asked(isa, rules, own);
        if !agrees(isa, rules, own) {
            let before: Vec<&str> = own.before.iter().map(|inst| &*inst.text).collect();
            wrong.push(format!(
                "{before:?}, {:?}: LLVM {} {:?}, table {states} {instructions:?}: {names:?}",
                own.last.text, own.wait_states, own.instructions
            ));
        }
        reached.extend(names);
    }
    quick_look_misses_none(isa, rules, recognized);
    let shown: Vec<&str> = wrong.iter().take(40).map(|line| &**line).collect();
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), recognized.len(), shown.join("\n"));
    reached
}

/// Demands that what the table says of two instructions is never ruled out by the quick look at
/// them.
fn quick_look_misses_none(isa: &Isa, rules: &Rules, recognized: &[Recognized]) {
    let rows = Rows::new(&Rules::of(isa.target(), isa.wave_size()).expect("rules"));
    for own in recognized {
        let before = preceding(own.before.iter().rev());
        let victim = rows.roles(&own.last);
        let may_meet: Vec<bool> = before
            .iter()
            .map(|own| rows.may_meet(&victim, &rows.roles(own.inst), own.distance.into()))
            .collect();
        for breach in rules.hazards.iter().flat_map(|family| breaches(family, &before, &own.last)) {
            let trigger = before[breach.trigger].inst;
            assert!(may_meet[breach.trigger], "{trigger}, {}: {}", own.last, breach.hazard.name);
        }
    }
}

/// Demands that each row asked for something, apart from those that LLVM does not have.
fn all_reached(rules: &Rules, reached: &HashSet<&str>, manual_alone: &[&str]) {
    let rows = rules.hazards.iter().flat_map(|family| family.iter().map(|hazard| hazard.name));
    let unreached: Vec<_> =
        rows.filter(|name| !reached.contains(name) && !manual_alone.contains(name)).collect();
    assert!(unreached.is_empty(), "rows that no sequence reaches: {unreached:#?}");
}

/// The negative control: a table without one of its families differs from LLVM.
fn each_family_matters(isa: &Isa, rules: &Rules, recognized: &[Recognized]) {
    for left_out in cases(0..rules.hazards.len(), 3) {
        let family = rules.hazards[left_out];
        let rest = Rules { hazards: without(rules, |own| std::ptr::eq(own, family)), ..*rules };
        let agree = recognized.iter().all(|own| agrees(isa, &rest, own));
        assert!(!agree, "{:?} makes no difference", family[0].name);
    }
}

/// Rules' hazards, some families left out.
fn without(
    rules: &Rules,
    is_left_out: impl Fn(&'static [Hazard]) -> bool,
) -> &'static [&'static [Hazard]] {
    let families = rules.hazards.iter().copied();
    families.filter(|family| !is_left_out(family)).collect::<Vec<_>>().leak()
}

/// A processor's table, and what LLVM makes of all ordered pairs of a pool and of other sequences.
fn table(
    processor: &str,
    pool: &[&'static str],
    others: &[[&'static str; 3]],
) -> (Isa, Rules, Vec<Recognized>) {
    let isa = isa(processor);
    let rules = Rules::of(isa.target(), 64).expect("rules");
    let others = others.iter().map(|sequence| sequence.to_vec());
    let sequences: Vec<_> = pairs(pool).into_iter().chain(others).collect();
    let recognized = recognized(&isa, &["-mattr=-xnack"], &sequences);
    (isa, rules, recognized)
}

/// Every ordered pair of a pool.
fn pairs(pool: &[&'static str]) -> Vec<Vec<&'static str>> {
    pool.iter().flat_map(|first| pool.iter().map(move |second| vec![*first, *second])).collect()
}
