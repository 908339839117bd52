//! Sampling plans: the faults that a campaign injects.

use super::Allocation;
use super::draw::{Drawn, Draws, permanent};
use super::planned::Planned;
use super::profile::{Profile, StratumSites, WavePlaces};
use super::resolver::Resolver;
use super::size::EmptyFaultSpace;
use super::struck::StruckWorkgroups;
use crate::{GoldenError, Workload};
use flipwave_device::{Completion, Dim3, Dispatch, WaveId};
use flipwave_machine::{Observer, Unobserved};
use std::collections::{BTreeMap, HashMap};

/// Method of drawing a plan from the fault space.
#[derive(Clone, Debug, PartialEq)]
pub enum Sampling {
    /// Random faults; within a stratum, each site has the same probability.
    Random {
        /// Stages, drawn one after the other. Plans that begin with the same stages begin with the same
        /// faults.
        stages: Vec<Stage>,
        /// `true` if sites are drawn with replacement. Without replacement, there are at most as many
        /// faults as sites.
        replacement: bool,
    },
    /// Every site once, in order.
    Exhaustive,
}

/// A part of a plan that is allocated to the strata.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// Number of faults.
    pub count: u64,
    /// Allocation to strata.
    pub allocation: Allocation,
}

impl Sampling {
    /// Draws `count` faults in one stage, with replacement.
    pub fn random(count: u64, allocation: Allocation) -> Sampling {
        Sampling::Random { stages: vec![Stage { count, allocation }], replacement: true }
    }
}

/// Errors returned when building or resolving a plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// The fault space is empty.
    #[error(transparent)]
    EmptyFaultSpace(#[from] EmptyFaultSpace),
    /// The fault-free run did not complete.
    #[error(transparent)]
    Golden(#[from] GoldenError),
    /// The workload did not execute what its profile says.
    #[error(
        "injection {index} has no site: the workload did not execute again what its profile \
         counted; it is not the same workload, or the device is not deterministic"
    )]
    Unresolved {
        /// Index of the injection.
        index: u64,
    },
    /// Two runs of the workload differ.
    #[error(
        "dispatch {dispatch} behaved differently in a second run{}; the device is not deterministic",
        of_workgroup(workgroup)
    )]
    NotTheSame {
        /// Index of the dispatch.
        dispatch: u32,
        /// The workgroup that behaved differently, if it was executed alone.
        workgroup: Option<Dim3>,
    },
    /// The profile of one dispatch does not hold for the others.
    #[error(
        "injection {index} has no site: {tries} sites drawn from the approximate profile are not \
         in the dispatches they were drawn in; count all dispatches, with `profile: exact`"
    )]
    TooApproximate {
        /// Index of the injection.
        index: u64,
        /// Sites drawn for the injection.
        tries: u32,
    },
}

fn of_workgroup(workgroup: &Option<Dim3>) -> String {
    workgroup.map_or_else(String::new, |[x, y, z]| format!(" in workgroup {x},{y},{z}"))
}

/// Maximum number of faults of a plan that are drawn to determine which workgroups they strike. Longer
/// plans are assumed to strike all workgroups in the fault space.
const MOST_DRAWN: u64 = 1 << 16;

/// A site drawn for an injection, by its number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawnSite {
    /// Index of its stratum in [`Profile::strata`].
    pub stratum: usize,
    /// Number of the site among those of the stratum, from 0.
    pub place: u64,
    /// Number of sites of the fault space that this one represents, like [`Planned::weight`].
    pub weight: f64,
}

/// The faults of a campaign. Injection `i` is a function of the workload, the profiling options, the
/// seed, the sampling, and `i`: a plan of any length needs no memory, and its faults are resolved on
/// demand. Without strata, a longer plan begins with the shorter one.
pub struct Plan<'a> {
    workload: &'a Workload,
    draws: Draws<'a>,
}

impl<'a> Plan<'a> {
    /// Creates a plan for the fault space of `profile`, which is a profile of `workload`.
    ///
    /// # Errors
    /// [`PlanError::EmptyFaultSpace`].
    pub fn new(
        workload: &'a Workload,
        profile: &'a Profile,
        seed: u64,
        sampling: &Sampling,
    ) -> Result<Plan<'a>, PlanError> {
        profile.check_places()?;
        Ok(Plan { workload, draws: Draws::new(profile, seed, sampling) })
    }

    /// The plan's workload.
    pub(crate) fn workload(&self) -> &'a Workload {
        self.workload
    }

    /// Number of faults.
    pub fn count(&self) -> u64 {
        self.draws.count()
    }

    /// The site drawn for an index, not yet resolved, which needs a run; `None` from [`Plan::count`]
    /// on. With approximate profiles, resolving may draw another site.
    pub fn place(&self, index: u64) -> Option<DrawnSite> {
        let Drawn { stratum, place, weight, .. } = self.draws.get(index)?;
        Some(DrawnSite { stratum, place, weight })
    }

    /// Resolves the faults with the given indices, in ascending order, in one more run of the workload,
    /// or a few more if the profile is approximate. Time grows little, and memory linearly, with their
    /// number.
    ///
    /// # Errors
    /// [`PlanError`] if the workload is not the one profiled, and for indices from
    /// [`Plan::count`] on.
    pub fn faults(
        &self,
        indices: impl IntoIterator<Item = u64>,
    ) -> Result<Vec<Planned>, PlanError> {
        let wanted = self.drawn(indices)?;
        let found = self.find(&wanted)?;
        self.complete(wanted, found)
    }

    /// Runs the workload once and resolves the drawn faults that exist.
    fn find(&self, wanted: &[Drawn]) -> Result<Vec<(u64, Planned)>, PlanError> {
        let mut search = self.search(wanted)?;
        if !search.faults.is_empty() {
            self.workload.run_fault_free(|index, device, dispatch| {
                search.look(index, dispatch, |observer| {
                    self.workload.run(device, dispatch, observer, None)
                })
            })?;
        }
        Ok(search.found)
    }

    /// Draws the faults with the given indices, in ascending order.
    pub(crate) fn drawn(
        &self,
        indices: impl IntoIterator<Item = u64>,
    ) -> Result<Vec<Drawn>, PlanError> {
        let drawn = |index| self.draws.get(index).ok_or(PlanError::Unresolved { index });
        let mut wanted: Vec<Drawn> = indices.into_iter().map(drawn).collect::<Result<_, _>>()?;
        wanted.sort_unstable_by_key(|drawn| drawn.index);
        wanted.dedup_by_key(|drawn| drawn.index);
        Ok(wanted)
    }

    /// Prepares resolving the drawn faults in one fault-free run.
    pub(crate) fn search(&self, wanted: &[Drawn]) -> Result<Search<'_>, PlanError> {
        let Draws { profile, seed, .. } = self.draws;
        let mut faults = DrawnFaults::new();
        // Permanent faults are resolved without a run.
        let wanted = if profile.is_permanent() { &[] } else { wanted };
        for drawn in wanted {
            let unresolved = PlanError::Unresolved { index: drawn.index };
            let stratum = profile.strata.get(drawn.stratum);
            let located = stratum.and_then(|stratum| stratum.locate(drawn.place));
            let (wave, offset) = located.ok_or(unresolved)?;
            let waves = faults.entry(wave.dispatch).or_default();
            waves.entry(wave.wave).or_default().push((offset, *drawn));
        }
        Ok(Search { profile, workload: self.workload, seed, faults, found: Vec::new() })
    }

    /// Completes resolving: `found` are the faults resolved in a run; with an approximate profile, the
    /// others are drawn again.
    pub(crate) fn complete(
        &self,
        mut wanted: Vec<Drawn>,
        mut found: Vec<(u64, Planned)>,
    ) -> Result<Vec<Planned>, PlanError> {
        let Draws { profile, seed, .. } = self.draws;
        let expected: Vec<u64> = wanted.iter().map(|drawn| drawn.index).collect();
        if profile.is_permanent() {
            let found = wanted.iter().filter_map(|drawn| permanent(profile, seed, drawn));
            return in_order(found.collect(), &expected);
        }
        while !profile.is_exact() {
            let mut indices: Vec<u64> = found.iter().map(|(index, _)| *index).collect();
            indices.sort_unstable();
            wanted.retain(|drawn| indices.binary_search(&drawn.index).is_err());
            if wanted.is_empty() {
                break;
            }
            for drawn in &mut wanted {
                *drawn = drawn.again(profile, seed)?;
            }
            found.append(&mut self.find(&wanted)?);
        }
        in_order(found, &expected)
    }

    /// Workgroups that the plan's faults strike. For plans of more than 65,536 faults, all workgroups
    /// in the fault space; for approximate profiles, the workgroups predicted by the profile.
    pub fn struck_workgroups(&self) -> StruckWorkgroups {
        let strata = &self.draws.profile.strata;
        let place = |waves: &WavePlaces| (waves.dispatch, waves.wave.workgroup);
        if self.count() > MOST_DRAWN {
            return strata.iter().flat_map(StratumSites::waves_with_places).map(place).collect();
        }
        let drawn = (0..self.count()).filter_map(|index| self.draws.get(index));
        drawn
            .filter_map(|drawn| Some(place(strata.get(drawn.stratum)?.locate(drawn.place)?.0)))
            .collect()
    }
}

/// The faults in order of their indices, or an error if an expected one is missing.
fn in_order(mut planned: Vec<(u64, Planned)>, expected: &[u64]) -> Result<Vec<Planned>, PlanError> {
    planned.sort_unstable_by_key(|(index, _)| *index);
    let mut found = planned.into_iter();
    let next = |expected: &u64| match found.next() {
        Some((index, planned)) if index == *expected => Ok(planned),
        _ => Err(PlanError::Unresolved { index: *expected }),
    };
    expected.iter().map(next).collect()
}

/// Resolving of drawn faults in one fault-free run.
pub(crate) struct Search<'a> {
    profile: &'a Profile,
    workload: &'a Workload,
    seed: u64,
    faults: DrawnFaults,
    /// Faults resolved so far, by index.
    pub found: Vec<(u64, Planned)>,
}

impl Search<'_> {
    /// Resolves the faults of a dispatch, which `run` executes under the given observer.
    pub fn look<E>(
        &mut self,
        index: u32,
        dispatch: &Dispatch,
        run: impl FnOnce(&mut dyn Observer) -> Result<Completion, E>,
    ) -> Result<Completion, E> {
        let Some(waves) = self.faults.remove(&index) else { return run(&mut Unobserved) };
        let mut resolver = self.resolver(index, dispatch, waves);
        let completion = run(&mut resolver)?;
        let mut found = resolver.finish();
        self.found.append(&mut found);
        Ok(completion)
    }

    /// Dispatches that contain faults to resolve.
    pub fn dispatches(&self) -> impl Iterator<Item = u32> {
        self.faults.keys().copied()
    }

    /// Removes and returns the faults of a dispatch.
    pub fn take(&mut self, dispatch: u32) -> FaultsOfWaves {
        self.faults.remove(&dispatch).unwrap_or_default()
    }

    /// Creates the observer that resolves faults of a dispatch.
    pub fn resolver<'s>(
        &'s self,
        index: u32,
        dispatch: &'s Dispatch,
        waves: FaultsOfWaves,
    ) -> Resolver<'s> {
        Resolver::new(self.profile, self.workload, index, dispatch, self.seed, waves)
    }
}

/// Faults by wave, with the number of the site among the wave's sites.
pub(crate) type FaultsOfWaves = HashMap<WaveId, Vec<(u64, Drawn)>>;

/// Faults by dispatch and wave.
type DrawnFaults = BTreeMap<u32, FaultsOfWaves>;

#[cfg(test)]
mod tests;
