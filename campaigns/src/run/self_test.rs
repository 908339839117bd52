//! Self-test before a campaign: injects faults with known outcomes, both null faults that change
//! nothing and planted faults that end in every way.

use crate::error::CampaignError;
use crate::outputs::compare::OutputRole;
use crate::program::prepare::Prepared;
use crate::run::due_cause::DueCause;
use crate::run::outcome::{Classifier, ComparedEnding, MaskedCause, Verdict};
use crate::run::runners::Inject;
use flipwave_arch::Lane;
use flipwave_device::FaultKind;
use flipwave_injector::{
    Action, Event, Golden, Landmarks, Lanes, Output, Place, Plan, Site, When, Workload,
    analyze_site, landmarks,
};
use std::fmt;

/// Number of null faults: faults of the plan injected with an action that changes nothing.
const NULL_FAULTS: u64 = 16;

/// Numbers of faults injected by a self-test.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SelfTest {
    /// Null faults: all masked, with the outputs and instruction counts of the golden run.
    pub null: usize,
    /// Planted faults: each with the expected outcome.
    pub planted: usize,
}

/// Injects the faults with known outcomes that `injector` supports.
///
/// # Errors
/// [`CampaignError::SelfTest`] if a fault has another outcome or none.
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
    let indices = (0..NULL_FAULTS).filter_map(|number| number.checked_mul(step));
    for planned in plan.faults(indices.take_while(|index| *index < plan.count()))? {
        test.expect(&Planted::null(planned.site, golden))?;
        done.null += 1;
    }
    let planted = planted(prepared, golden)?;
    for planted in planted.iter().filter(|planted| injector.supports(&planted.site)) {
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

/// A fault with its expected outcome.
struct Planted {
    site: Site,
    outcome: ExpectedOutcome,
    /// Expected outputs, bit for bit, of a completed run.
    outputs: Option<Vec<Output>>,
}

/// The expected outcome of a planted fault.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ExpectedOutcome {
    /// Masked with this cause, or any if `None`.
    Masked(Option<MaskedCause>),
    Sdc,
    Due(FaultKind),
}

impl ExpectedOutcome {
    fn accepts(self, verdict: &Verdict) -> bool {
        match (self, verdict) {
            (ExpectedOutcome::Masked(expected), Verdict::Masked { cause, .. }) => {
                expected.is_none_or(|expected| expected == *cause)
            }
            (ExpectedOutcome::Sdc, Verdict::Sdc { .. }) => true,
            (ExpectedOutcome::Due(kind), Verdict::Due { cause }) => {
                *cause == DueCause::Device(kind)
            }
            _ => false,
        }
    }
}

impl fmt::Display for ExpectedOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ExpectedOutcome::Masked(None) => f.write_str("masked"),
            ExpectedOutcome::Masked(Some(cause)) => write!(f, "masked ({})", cause.name()),
            ExpectedOutcome::Sdc => f.write_str("sdc"),
            ExpectedOutcome::Due(kind) => write!(f, "due ({kind})"),
        }
    }
}

impl Planted {
    /// A null fault at `site`.
    fn null(site: Site, golden: &Golden) -> Planted {
        Planted {
            site: Site { action: Action::StuckAtOne(0), ..site },
            outcome: ExpectedOutcome::Masked(None),
            outputs: Some(golden.outputs.clone()),
        }
    }
}

impl Test<'_> {
    fn expect(&self, planted: &Planted) -> Result<(), CampaignError> {
        let site = planted.site;
        let failed = |found: String| CampaignError::SelfTest {
            site: site.to_string(),
            expected: planted.outcome.to_string(),
            found,
        };
        let injected = self.injector.inject(&site).map_err(|error| failed(error.to_string()))?;
        let analysis = analyze_site(self.workload, &site)?;
        let verdict =
            self.classifier.verdict(&injected, analysis.and_then(|analysis| analysis.next_use));
        let outcome = verdict.outcome();
        if !planted.outcome.accepts(&verdict) {
            return Err(failed(match verdict.cause() {
                Some(cause) => format!("{outcome} ({cause})"),
                None => outcome.to_string(),
            }));
        }
        match injected.ending {
            ComparedEnding::Completed { outputs: Some(outputs), .. }
                if planted.outputs.as_ref().is_some_and(|expected| *expected != outputs) =>
            {
                Err(failed(format!("{outcome}, but with other outputs than expected")))
            }
            _ => Ok(()),
        }
    }
}

/// Faults whose outcomes are known for every program.
fn planted(prepared: &Prepared, golden: &Golden) -> Result<Vec<Planted>, CampaignError> {
    let workload = &prepared.workload;
    let Some(Landmarks { first, last }) = landmarks(workload)? else { return Ok(Vec::new()) };
    let site =
        |event: Event, place, action| Site { when: When::At(event), place, lanes: None, action };
    let due = |site, kind| Planted { site, outcome: ExpectedOutcome::Due(kind), outputs: None };
    let mut planted = Vec::new();
    let mut dispatches = workload.program.dispatches.iter();
    if !dispatches.any(|dispatch| workload.device.is_rewritten(dispatch.module)) {
        let place = Place::ProgramCounter(1);
        planted.push(due(site(first, place, Action::Set(u32::MAX)), FaultKind::MemoryViolation));
        let place = Place::Encoding(0);
        for (word, kind) in workload.device.fatal_encodings() {
            planted.push(due(site(first, place, Action::Set(word)), kind));
        }
    }
    // Nothing reads a register after the last instruction.
    let register = Place::Register(workload.architecture().any_vector_register());
    let flip = Action::Flip(u32::MAX);
    planted.push(Planted {
        site: Site { lanes: Some(Lanes::One(Lane(0))), ..site(last, register, flip) },
        outcome: ExpectedOutcome::Masked(Some(MaskedCause::Dead)),
        outputs: Some(golden.outputs.clone()),
    });
    planted.extend(wrong_output(prepared, golden, |place, action| site(last, place, action)));
    Ok(planted)
}

/// Flips a word of an output after the last instruction.
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
        let is_correct =
            crate::outputs::compare::is_correct(format, &golden.outputs[index], &outputs[index]);
        let outcome = if is_correct { ExpectedOutcome::Masked(None) } else { ExpectedOutcome::Sdc };
        return Some(Planted {
            site: site(place, Action::Flip(flip)),
            outcome,
            outputs: Some(outputs),
        });
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::campaign::Campaign;
    use crate::run::injection_path::InjectionPath;
    use crate::run::runners::in_process_runner;
    use flipwave_injector::Accelerations;
    use std::path::Path;

    #[test]
    fn self_test_rejects_unexpected_outcomes_and_outputs() {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/campaigns/vector_add.yaml");
        let campaign = Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"));
        let runner = in_process_runner(&campaign, InjectionPath::Embedded)
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
        for planted in all {
            assert!(test.expect(&planted).is_ok(), "{}", planted.site);
            let outcome = if planted.outcome == ExpectedOutcome::Sdc {
                ExpectedOutcome::Masked(None)
            } else {
                ExpectedOutcome::Sdc
            };
            let wrong = Planted { outcome, ..planted };
            let error = test.expect(&wrong).expect_err("another outcome").to_string();
            assert!(error.contains(&format!("must be {outcome}")), "{error}");
            // The expected outcome with other outputs.
            let wrong = Planted {
                outcome: ExpectedOutcome::Masked(Some(MaskedCause::Dead)),
                outputs: Some(vec![vec![1].into()]),
                ..wrong
            };
            assert!(test.expect(&wrong).is_err());
        }
    }
}
