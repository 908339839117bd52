//! Faults whose outcomes are known, injected before a campaign: faults that change nothing, and
//! planted ones that end in every way.

use crate::error::CampaignError;
use crate::outputs::compare::OutputRole;
use crate::program::prepare::Prepared;
use crate::run::outcome::{Classifier, RunEnd};
use crate::run::runners::Inject;
use flipwave_injector::{
    Action, Event, Golden, Landmarks, Lanes, Output, Place, Plan, Site, When, Workload,
    analyze_site, landmarks,
};
use flipwave_isa::{Isa, Lane, Register, Vgpr};

/// Faults of the plan that are injected again with nothing to change.
const NULL_FAULTS: u64 = 16;

/// What a self-test did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelfTest {
    /// Faults that change nothing: all masked, outputs and instructions as without a fault.
    pub null: usize,
    /// Planted faults: each with the outcome that it must have.
    pub planted: usize,
}

/// Injects faults into a program of which the outcome is known: all that `injector` supports.
///
/// # Errors
/// [`CampaignError::SelfTest`] if one of them has another outcome or none.
pub(crate) fn self_test(
    prepared: &Prepared,
    plan: &Plan<'_>,
    injector: &dyn Inject,
    classifier: Classifier<'_>,
) -> Result<SelfTest, CampaignError> {
    let golden = classifier.golden;
    let test = Test { workload: &prepared.workload, classifier, injector };
    let mut done = SelfTest::default();
    let step = plan.count().div_ceil(NULL_FAULTS).max(1);
    let spread = (0..NULL_FAULTS).filter_map(|number| number.checked_mul(step));
    for planned in plan.faults(spread.take_while(|index| *index < plan.count()))? {
        test.expect(&Planted::null(planned.site, golden))?;
        done.null += 1;
    }
    for planted in planted(prepared, golden)?.iter().filter(|own| injector.supports(&own.site)) {
        test.expect(planted)?;
        done.planted += 1;
    }
    Ok(done)
}

struct Test<'a> {
    workload: &'a Workload,
    classifier: Classifier<'a>,
    injector: &'a dyn Inject,
}

/// A fault with what must come of it.
struct Planted {
    site: Site,
    /// Outcome and cause.
    outcome: String,
    /// What the outputs must be, bit for bit, of a run that completes.
    outputs: Option<Vec<Output>>,
}

impl Planted {
    /// A fault that changes nothing, in the place of another.
    fn null(site: Site, golden: &Golden) -> Planted {
        let site = Site { action: Action::StuckAtOne(0), ..site };
        let outcome = "masked".to_owned();
        Planted { site, outcome, outputs: Some(golden.outputs.clone()) }
    }
}

impl Test<'_> {
    fn expect(&self, planted: &Planted) -> Result<(), CampaignError> {
        let site = planted.site;
        let failed = |found: String| CampaignError::SelfTest {
            site: site.to_string(),
            expected: planted.outcome.clone(),
            found,
        };
        let injected = self.injector.inject(&site).map_err(|error| failed(error.to_string()))?;
        let analysis = analyze_site(self.workload, &site)?;
        let verdict =
            self.classifier.verdict(&injected, analysis.and_then(|analysis| analysis.next_use));
        let outcome = verdict.outcome().to_string();
        let with_cause = verdict.cause().map(|cause| format!("{outcome} ({cause})"));
        let is_right = planted.outcome == outcome || with_cause.as_ref() == Some(&planted.outcome);
        if !is_right {
            return Err(failed(with_cause.unwrap_or(outcome)));
        }
        match injected.end {
            RunEnd::Completed { outputs: Some(outputs), .. }
                if planted.outputs.as_ref().is_some_and(|expected| *expected != outputs) =>
            {
                Err(failed(format!("{outcome}, with other outputs than those planted")))
            }
            _ => Ok(()),
        }
    }
}

/// Faults with outcomes that are known for every program.
fn planted(prepared: &Prepared, golden: &Golden) -> Result<Vec<Planted>, CampaignError> {
    let workload = &prepared.workload;
    let Some(Landmarks { first, last }) = landmarks(workload)? else { return Ok(Vec::new()) };
    let site =
        |event: Event, place, action| Site { when: When::At(event), place, lanes: None, action };
    let due =
        |site, cause: &str| Planted { site, outcome: format!("due ({cause})"), outputs: None };
    let mut planted = Vec::new();
    if workload.guests.is_empty() {
        let place = Place::ProgramCounter(1);
        planted.push(due(site(first, place, Action::Set(u32::MAX)), "memory_violation"));
        let place = Place::Encoding(0);
        planted.push(due(site(first, place, Action::Set(u32::MAX)), "illegal_instruction"));
        for (text, cause) in [("s_trap 2", "trap"), ("s_sethalt 1", "watchdog")] {
            if let Some(word) = encoding(workload, text) {
                planted.push(due(site(first, place, Action::Set(word)), cause));
            }
        }
    }
    // A VGPR is there in every wave, and nobody reads it after the last instruction.
    let register = Place::Register(Register::Vgpr(Vgpr(0)));
    let flip = Action::Flip(u32::MAX);
    let dead = Site { lanes: Some(Lanes::One(Lane(0))), ..site(last, register, flip) };
    let outputs = Some(golden.outputs.clone());
    planted.push(Planted { site: dead, outcome: "masked (dead)".to_owned(), outputs });
    planted.extend(wrong_output(prepared, golden, |place, action| site(last, place, action)));
    Ok(planted)
}

/// A word of a result, wrong after the last instruction: one that the comparison must not accept.
fn wrong_output(
    prepared: &Prepared,
    golden: &Golden,
    site: impl Fn(Place, Action) -> Site,
) -> Option<Planted> {
    let workload = &prepared.workload;
    let results = workload.program.outputs.iter().zip(&prepared.formats).enumerate();
    for (index, (output, format)) in results {
        if !matches!(format.role, OutputRole::Result(_)) || output.bytes < 4 {
            continue;
        }
        let buffer = workload.program.buffers.iter().position(|buffer| buffer == output)?;
        let mut outputs = golden.outputs.clone();
        let mut bytes = outputs.get(index)?.bytes().into_owned();
        let word = bytes.first_chunk_mut::<4>()?;
        let flip = u32::MAX;
        *word = (u32::from_le_bytes(*word) ^ flip).to_le_bytes();
        outputs[index] = Output::from(bytes);
        let place = Place::Memory { buffer: buffer as u32, offset: 0 };
        let outcome =
            if crate::outputs::compare::is_right(format, &golden.outputs[index], &outputs[index]) {
                "masked"
            } else {
                "sdc"
            };
        let site = site(place, Action::Flip(flip));
        return Some(Planted { site, outcome: outcome.to_owned(), outputs: Some(outputs) });
    }
    None
}

/// The dword of an instruction, if the target has it.
fn encoding(workload: &Workload, text: &str) -> Option<u32> {
    let isa = Isa::new(flipwave_device::Device::target(&workload.device)).ok()?;
    let bytes = isa.assemble(text).ok()?;
    bytes.first_chunk().map(|word| u32::from_le_bytes(*word))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::campaign::Campaign;
    use crate::run::injection_path::InjectionPath;
    use crate::run::runners::in_this_process;
    use flipwave_injector::Accelerations;
    use std::path::Path;

    /// A test that accepts everything would be none.
    #[test]
    fn an_outcome_that_is_not_the_planted_one_fails_the_self_test() {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/campaigns/vector_add.yaml");
        let campaign = Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"));
        let runner = in_this_process(&campaign, InjectionPath::Embedded)
            .unwrap_or_else(|error| panic!("{error}"));
        let prepared = runner.prepared();
        let workload = &prepared.workload;
        let golden = workload.golden().unwrap_or_else(|error| panic!("{error}"));
        let injector = runner
            .injector(&golden, None, Accelerations::NONE)
            .unwrap_or_else(|error| panic!("{error}"));
        let classifier = Classifier { golden: &golden, timing_threshold: 0.0 };
        let test = Test { workload, classifier, injector: &*injector };
        let all = planted(prepared, &golden).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(all.len(), 6);
        for own in all {
            assert!(test.expect(&own).is_ok(), "{}", own.site);
            let outcome = if own.outcome.starts_with("sdc") { "masked" } else { "sdc" };
            let wrong = Planted { outcome: outcome.to_owned(), ..own };
            let error = test.expect(&wrong).expect_err("another outcome").to_string();
            assert!(error.contains(&format!("must be {outcome}")), "{error}");
            // The right outcome with other outputs is not enough.
            let wrong = Planted {
                outcome: "masked (dead)".to_owned(),
                outputs: Some(vec![vec![1].into()]),
                ..wrong
            };
            assert!(test.expect(&wrong).is_err());
        }
    }
}
