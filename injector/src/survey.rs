//! What is learnt in one fault-free run before it is known where faults strike: outputs, what there is
//! to strike, and what workgroups touch.

use crate::fault::Fault;
use crate::population::{
    Counting, Frame, Profile, ProfileError, Profiler, Selection, Stratification,
};
use crate::{Golden, Workload};
use flipwave_sim::Footprints;
use flipwave_sim::strict::Violation;
use std::collections::BTreeMap;

/// What a fault-free run is asked for.
#[derive(Clone, Copy, Debug)]
pub struct Inquiry<'a> {
    /// The fault whose places are counted.
    pub fault: &'a Fault,
    /// Where it may strike.
    pub selection: &'a Selection,
    /// What divides the places into strata.
    pub stratification: Stratification,
    /// Which dispatches are counted.
    pub counting: Counting,
    /// Whether accesses beyond the LDS of a workgroup are looked for.
    pub outside_lds: bool,
    /// Whether to record what workgroups touch, by which it is known later which of them can be
    /// executed alone.
    pub touched: bool,
}

/// What a fault-free run has shown.
#[derive(Debug)]
pub struct Survey {
    /// The run.
    pub golden: Golden,
    /// What faults can strike in it.
    pub profile: Profile,
    /// What workgroups touch, if that was recorded.
    pub touched: Option<Touched>,
}

/// What workgroups touch in the dispatches that faults can strike, by the index of the dispatch.
#[derive(Debug, Default)]
pub struct Touched(pub(crate) BTreeMap<u32, Footprints>);

/// Runs `workload` once without a fault and learns from it what is asked for; besides, the accesses
/// beyond the LDS of a workgroup, each with the index of its dispatch, however the run ends.
pub fn survey(
    workload: &Workload,
    inquiry: &Inquiry<'_>,
) -> (Result<Survey, ProfileError>, Vec<(u32, Violation)>) {
    let mut violations = Vec::new();
    (run(workload, inquiry, &mut violations), violations)
}

fn run(
    workload: &Workload,
    inquiry: &Inquiry<'_>,
    violations: &mut Vec<(u32, Violation)>,
) -> Result<Survey, ProfileError> {
    let frame = Frame {
        fault: inquiry.fault.clone(),
        selection: inquiry.selection.clone(),
        stratification: inquiry.stratification,
    };
    let mut profiler = Profiler::new(workload, frame, inquiry.counting)?;
    let mut touched = inquiry.touched.then(Touched::default);
    let golden = workload.run_fault_free(|index, device, dispatch| {
        let is_selected = inquiry.selection.has_dispatch(index, &dispatch.kernel);
        let mut footprints = (inquiry.touched && is_selected).then(Footprints::default);
        let completion = profiler.count((index, dispatch), |observer| {
            workload.as_it_was(dispatch, observer, |observer| {
                if !inquiry.outside_lds {
                    return workload.run(device, dispatch, observer, footprints.as_mut());
                }
                let of = (index, dispatch);
                let (completion, found) =
                    workload.within_lds(of, device, observer, footprints.as_mut())?;
                violations.extend(found);
                Ok(completion)
            })
        })?;
        if let (Some(Touched(all)), Some(footprints)) = (&mut touched, footprints) {
            all.insert(index, footprints);
        }
        Ok(completion)
    })?;
    Ok(Survey { golden, profile: profiler.into_profile(), touched })
}
