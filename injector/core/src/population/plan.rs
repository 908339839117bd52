//! The plan: which faults a campaign injects.

use super::Allocation;
use super::draw::{Drawn, Draws, permanent};
use super::planned::Planned;
use super::profile::{Profile, StratumPlaces, WavePlaces};
use super::resolver::Resolver;
use super::size::EmptyPopulation;
use super::struck::StruckWorkgroups;
use crate::{GoldenError, Workload};
use flipwave_device::{Completion, Dim3, Dispatch, WaveId};
use flipwave_sim::{Observer, Unobserved};
use std::collections::{BTreeMap, HashMap};

/// How a plan is drawn from its population.
#[derive(Clone, Debug, PartialEq)]
pub enum Sampling {
    /// Faults at random; within a stratum each place with the same probability.
    Random {
        /// One after the other. Where a longer plan begins with the same stages, it begins with the
        /// same faults.
        stages: Vec<Stage>,
        /// Whether a place can be drawn again. Where it cannot, there are no more faults than places.
        replacement: bool,
    },
    /// Every place once, in their order.
    Exhaustive,
}

/// A part of a plan that is divided among the strata.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    /// How many faults.
    pub count: u64,
    /// How they are divided.
    pub allocation: Allocation,
}

impl Sampling {
    /// This many faults in one stage, with replacement.
    pub fn random(count: u64, allocation: Allocation) -> Sampling {
        Sampling::Random { stages: vec![Stage { count, allocation }], replacement: true }
    }
}

/// No plan.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    /// There is nothing to hit.
    #[error(transparent)]
    EmptyPopulation(#[from] EmptyPopulation),
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
    /// The workload did not do the same twice.
    #[error(
        "dispatch {dispatch} did not do again what it did before{}; the device is not deterministic",
        of_workgroup(workgroup)
    )]
    NotTheSame {
        /// Index of the dispatch.
        dispatch: u32,
        /// The workgroup that did something else, if one alone was executed.
        workgroup: Option<Dim3>,
    },
    /// What was counted of one dispatch does not hold for the others.
    #[error(
        "injection {index} has no site: {tries} places drawn by the approximate profile are not \
         in the dispatches they were drawn in; count all dispatches, with `profile: exact`"
    )]
    TooApproximate {
        /// Index of the injection.
        index: u64,
        /// Places drawn for it.
        tries: u32,
    },
}

fn of_workgroup(workgroup: &Option<Dim3>) -> String {
    workgroup.map_or_else(String::new, |[x, y, z]| format!(" in workgroup {x},{y},{z}"))
}

/// Faults of a plan that are drawn to find out which workgroups they strike. Of longer plans it is
/// not found out: they strike nearly all that have places.
const MOST_DRAWN: u64 = 1 << 16;

/// A place that is drawn for an injection.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawnPlace {
    /// The stratum that it was drawn from, by its number in [`Profile::strata`].
    pub stratum: usize,
    /// Its number among those of the stratum that faults can strike, from 0.
    pub place: u64,
    /// How many places of the population it stands for, as [`Planned::weight`].
    pub weight: f64,
}

/// The faults of a campaign. Injection `i` is a function of the workload, what the profile was asked
/// for, the seed, how faults are drawn, and `i`: a plan of any length takes no memory, and its faults
/// are found as they are needed. A longer plan of a population without strata begins with the
/// shorter one.
pub struct Plan<'a> {
    workload: &'a Workload,
    draws: Draws<'a>,
}

impl<'a> Plan<'a> {
    /// A plan for the population of `profile`, which is one of `workload`.
    ///
    /// # Errors
    /// [`PlanError::EmptyPopulation`].
    pub fn new(
        workload: &'a Workload,
        profile: &'a Profile,
        seed: u64,
        sampling: &Sampling,
    ) -> Result<Plan<'a>, PlanError> {
        profile.check_places()?;
        Ok(Plan { workload, draws: Draws::new(profile, seed, sampling) })
    }

    /// The workload that it is for.
    pub(crate) fn workload(&self) -> &'a Workload {
        self.workload
    }

    /// How many faults it has.
    pub fn count(&self) -> u64 {
        self.draws.count()
    }

    /// What is drawn for an index, without its site, which takes a run to find; nothing from
    /// [`Plan::count`] on. Of approximate profiles it may be drawn anew then.
    pub fn place(&self, index: u64) -> Option<DrawnPlace> {
        let Drawn { stratum, place, weight, .. } = self.draws.get(index)?;
        Some(DrawnPlace { stratum, place, weight })
    }

    /// The faults of these indices, in ascending order. Their sites are found in one more run of the
    /// workload, in a few more where the profile is approximate: what that takes grows little with
    /// their number, and its memory with nothing else.
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

    /// Runs the workload once and finds the faults drawn, those that are there.
    fn find(&self, wanted: &[Drawn]) -> Result<Vec<(u64, Planned)>, PlanError> {
        let mut search = self.search(wanted)?;
        if !search.faults.is_empty() {
            self.workload.run_fault_free(|index, device, dispatch| {
                search.look((index, dispatch), |observer| {
                    self.workload.observe(device, dispatch, observer)
                })
            })?;
        }
        Ok(search.found)
    }

    /// What is drawn for these indices, in ascending order.
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

    /// The search for faults drawn, for one fault-free run.
    pub(crate) fn search(&self, wanted: &[Drawn]) -> Result<Search<'_>, PlanError> {
        let Draws { profile, seed, .. } = self.draws;
        let mut faults = DrawnFaults::new();
        // Parts of the device are found without a run.
        let wanted = if profile.is_permanent() { &[] } else { wanted };
        for drawn in wanted {
            let unresolved = PlanError::Unresolved { index: drawn.index };
            let stratum = profile.strata.get(drawn.stratum);
            let located = stratum.and_then(|own| own.locate(drawn.place));
            let (wave, offset) = located.ok_or(unresolved)?;
            let waves = faults.entry(wave.dispatch).or_default();
            waves.entry(wave.wave).or_default().push((offset, *drawn));
        }
        Ok(Search { profile, workload: self.workload, seed, faults, found: Vec::new() })
    }

    /// The faults drawn, of which `found` were found in a run.
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

    /// The workgroups that its faults strike; of a plan of more than 65,536 all that have places. Of
    /// an approximate profile it is those that it takes to have them.
    pub fn struck_workgroups(&self) -> StruckWorkgroups {
        let strata = &self.draws.profile.strata;
        let place = |own: &WavePlaces| (own.dispatch, own.wave.workgroup);
        if self.count() > MOST_DRAWN {
            return strata.iter().flat_map(StratumPlaces::waves_with_places).map(place).collect();
        }
        let drawn = (0..self.count()).filter_map(|index| self.draws.get(index));
        drawn.filter_map(|own| Some(place(strata.get(own.stratum)?.locate(own.place)?.0))).collect()
    }
}

/// The faults by index, if none of those expected is missing.
fn in_order(mut planned: Vec<(u64, Planned)>, expected: &[u64]) -> Result<Vec<Planned>, PlanError> {
    planned.sort_unstable_by_key(|(index, _)| *index);
    let mut found = planned.into_iter();
    let next = |expected: &u64| match found.next() {
        Some((index, planned)) if index == *expected => Ok(planned),
        _ => Err(PlanError::Unresolved { index: *expected }),
    };
    expected.iter().map(next).collect()
}

/// The search for faults drawn, in one fault-free run.
pub(crate) struct Search<'a> {
    profile: &'a Profile,
    workload: &'a Workload,
    seed: u64,
    faults: DrawnFaults,
    /// Those found so far, by index.
    pub found: Vec<(u64, Planned)>,
}

impl Search<'_> {
    /// Looks for faults in a dispatch, which `run` runs under the observer that it is given.
    pub fn look<E>(
        &mut self,
        of: (u32, &Dispatch),
        run: impl FnOnce(&mut dyn Observer) -> Result<Completion, E>,
    ) -> Result<Completion, E> {
        let Some(waves) = self.faults.remove(&of.0) else { return run(&mut Unobserved) };
        let mut resolver = self.resolver(of, waves);
        let completion = run(&mut resolver)?;
        let mut found = resolver.finish();
        self.found.append(&mut found);
        Ok(completion)
    }

    /// The dispatches in which there are faults to be found.
    pub fn dispatches(&self) -> impl Iterator<Item = u32> {
        self.faults.keys().copied()
    }

    /// Takes out the faults of a dispatch.
    pub fn take(&mut self, dispatch: u32) -> FaultsOfWaves {
        self.faults.remove(&dispatch).unwrap_or_default()
    }

    /// Finds the faults of waves of a dispatch.
    pub fn resolver<'s>(&'s self, of: (u32, &'s Dispatch), waves: FaultsOfWaves) -> Resolver<'s> {
        Resolver::new(self.profile, self.workload, of, self.seed, waves)
    }
}

/// Faults by wave, with the number of the place among its wave's.
pub(crate) type FaultsOfWaves = HashMap<WaveId, Vec<(u64, Drawn)>>;

/// Faults by dispatch and wave.
type DrawnFaults = BTreeMap<u32, FaultsOfWaves>;

#[cfg(test)]
mod tests;
