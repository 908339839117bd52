//! Applies the sampling settings of a campaign to the fault space counted by a profile.

use super::{Allocation, Per, Sample, SampleSize};
use crate::error::CampaignError;
use crate::file::faults::Faults;
use flipwave_analysis::{
    CampaignMonitor, LookSchedule, Pilot, PrecisionGoal, PrunedSites, SampleDesign, Scope,
    StoppingRule, sample_size, stage_ends,
};
use flipwave_injector as injector;
use flipwave_injector::{
    Duration, InstructionFaultSpace, KnownMasked, Profile, Sampling, Stage, Stratification,
};
use std::collections::BTreeMap;
use std::ops::Range;

/// Plan for drawing the faults of a campaign in stages. Each stage is divided among the strata.
pub(crate) struct Scheme {
    sample: Sample,
    /// Names of the strata, by number.
    strata: Vec<String>,
    /// Ends of the stages, as injection indices in ascending order.
    ends: Vec<u64>,
    /// Facts about the sample that intervals depend on, in addition to the rows.
    pub design: SampleDesign,
    /// Rule for ending the campaign early.
    pub until: Option<StoppingRule>,
    /// Pilot injections that determine the allocation of the remaining ones, if any remain.
    pub pilot: Option<Pilot>,
}

impl Scheme {
    /// Creates the scheme of `faults` in the fault space of `profile`. `is_judged` is set if a judge
    /// rates the severity of SDC.
    ///
    /// # Errors
    /// [`CampaignError::Statistics`].
    pub fn new(
        faults: &Faults,
        profile: &Profile,
        is_judged: bool,
    ) -> Result<Scheme, CampaignError> {
        let sample = faults.sample.clone();
        let strata: Vec<injector::Stratum> = profile.strata().collect();
        let sites = |stratum: &injector::Stratum| stratum.sites;
        let total: u64 = strata.iter().map(sites).sum();
        let max_count = if sample.replacement { u64::MAX } else { total };
        let mut design = SampleDesign { is_judged, ..design(faults, profile, &strata) };
        let mut until = None;
        let count = match &sample.size {
            SampleSize::Exhaustive => total,
            _ if total == 0 => 0,
            SampleSize::Count(count) => (*count).min(max_count),
            SampleSize::Precision { margin } => {
                let sizes: Vec<u64> = strata.iter().map(sites).filter(|sites| *sites > 0).collect();
                let largest = sizes.iter().max().map_or(0, |largest| *largest);
                let each = sample_size(largest, *margin, sample.confidence, 0.5)?;
                each.saturating_mul(sizes.len() as u64).min(max_count)
            }
            SampleSize::Until { margin, outcomes, per, max_count: file_limit } => {
                let parts = parts(per, profile);
                let smallest = match (&sample.allocation, is_stratified_by(per, faults)) {
                    (Allocation::Equal, true) => {
                        1.0 / strata.iter().filter(|stratum| stratum.sites > 0).count() as f64
                    }
                    _ => parts.iter().map(|(_, share)| *share).fold(1.0, f64::min),
                };
                let looks = match file_limit {
                    Some(limit) => {
                        LookSchedule::new(*margin, sample.confidence, (*limit).min(max_count))?
                    }
                    None => {
                        let looks =
                            LookSchedule::for_any_rate(*margin, sample.confidence, smallest)?;
                        match looks.sizes.last() {
                            Some(last) if *last > max_count => {
                                LookSchedule::new(*margin, sample.confidence, max_count)?
                            }
                            _ => looks,
                        }
                    }
                };
                design = design.with_repeated_looks(looks.z_score);
                until = Some(StoppingRule {
                    goal: PrecisionGoal {
                        margin: *margin,
                        outcomes: outcomes.clone(),
                        scopes: parts.into_iter().map(|(scope, _)| scope).collect(),
                    },
                    looks: looks.sizes.clone(),
                });
                looks.sizes.last().copied().unwrap_or(0)
            }
        };
        let pilot = match &sample.allocation {
            Allocation::Optimal { pilot, outcomes } if *pilot < count => {
                Some(Pilot { count: *pilot, outcomes: outcomes.clone() })
            }
            Allocation::Optimal { .. } | Allocation::Proportional | Allocation::Equal => None,
        };
        let ends = stage_ends(until.as_ref(), pilot.as_ref(), count);
        let strata = strata.into_iter().map(|stratum| stratum.name).collect();
        Ok(Scheme { sample, strata, ends, design, until, pilot })
    }

    /// Returns the names of the strata, by number.
    pub fn strata(&self) -> &[String] {
        &self.strata
    }

    /// Returns the maximum number of injections.
    pub fn count(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Returns the injection indices of each stage.
    pub fn stages(&self) -> impl Iterator<Item = Range<u64>> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| start..*end)
    }

    /// Returns the monitor of a campaign without rows.
    pub fn monitor(&self) -> CampaignMonitor {
        CampaignMonitor::new(self.design.clone(), self.until.clone(), self.pilot.clone())
    }

    /// Returns the sampling of all stages whose allocation is known, given the rows in `monitor`. Before
    /// the end of the pilot, this is only the pilot.
    pub fn sampling(&self, monitor: &CampaignMonitor) -> Sampling {
        let Sample { size, allocation, replacement, .. } = &self.sample;
        if *size == SampleSize::Exhaustive {
            return Sampling::Exhaustive;
        }
        let allocation = match (size, allocation) {
            // The margin applies to the rate of every stratum, so each gets as many faults as the one
            // that needs most. The interval of the weighted total rate is then narrower.
            (SampleSize::Precision { .. }, _) | (_, Allocation::Equal) => {
                Some(injector::Allocation::Equal)
            }
            (_, Allocation::Proportional) => Some(injector::Allocation::Proportional),
            // The campaign is not longer than its pilot.
            (_, Allocation::Optimal { .. }) if self.pilot.is_none() => {
                Some(injector::Allocation::Proportional)
            }
            (_, Allocation::Optimal { .. }) => monitor.standard_deviations().map(|by_stratum| {
                // Without any injection, assume the largest possible deviation.
                let deviation = |name: &String| by_stratum.get(name).copied().unwrap_or(0.5);
                injector::Allocation::Optimal(self.strata.iter().map(deviation).collect())
            }),
        };
        let pilot = self.pilot.as_ref().map_or(0, |pilot| pilot.count);
        let stage = |range: Range<u64>| {
            let is_pilot = range.end <= pilot;
            let allocation = if is_pilot {
                Some(injector::Allocation::Proportional)
            } else {
                allocation.clone()
            };
            Some(Stage { count: range.end - range.start, allocation: allocation? })
        };
        Sampling::Random {
            stages: self.stages().map_while(stage).collect(),
            replacement: *replacement,
        }
    }
}

/// Returns `true` if each part in `per` is one stratum or the whole program.
fn is_stratified_by(per: &[Per], faults: &Faults) -> bool {
    per.iter().all(|part| match part {
        Per::All => true,
        Per::Kernel => faults.stratification == Stratification::Kernel,
        Per::Group => faults.stratification == Stratification::Group,
        Per::Opcode => faults.stratification == Stratification::Opcode,
    })
}

/// Returns the number of fault sites of an instruction that are sampled.
fn sampled_sites(instruction: &InstructionFaultSpace) -> u64 {
    instruction.sites - instruction.known.map_or(0, |known| known.overwritten + known.dead)
}

/// Returns the parts of the program for which rates are estimated, and the fraction of the sampled fault
/// sites in each. Parts without sampled sites are left out, because their rates are known.
fn parts(per: &[Per], profile: &Profile) -> Vec<(Scope, f64)> {
    let total: u64 = profile.strata().map(|stratum| stratum.sites).sum();
    let mut parts: BTreeMap<Scope, u64> = BTreeMap::new();
    for instruction in &profile.instructions {
        for per in per {
            *parts.entry(scope(*per, instruction)).or_default() += sampled_sites(instruction);
        }
    }
    if per.contains(&Per::All) {
        // Fault sites of permanent faults belong to no instruction.
        parts.insert(Scope::All, total);
    }
    let nonempty = parts.into_iter().filter(|(_, sites)| *sites > 0);
    nonempty.map(|(scope, sites)| (scope, sites as f64 / total as f64)).collect()
}

fn scope(per: Per, instruction: &InstructionFaultSpace) -> Scope {
    match per {
        Per::All => Scope::All,
        Per::Kernel => Scope::Kernel(instruction.kernel.clone()),
        Per::Group => Scope::Group(instruction.group.to_string()),
        Per::Opcode => Scope::Opcode(instruction.opcode.to_owned()),
    }
}

/// Returns the facts that intervals depend on in addition to the rows, for intervals that are computed
/// once.
fn design(faults: &Faults, profile: &Profile, strata: &[injector::Stratum]) -> SampleDesign {
    let Faults { fault, stratification, sample, .. } = faults;
    let is_finite =
        !sample.replacement && !fault.model.is_drawn() && fault.duration == Duration::Transient;
    let needs_sites = *stratification != Stratification::None || is_finite;
    let stratum_sites = strata.iter().map(|stratum| (stratum.name.clone(), stratum.sites));
    let by_opcode =
        matches!(&sample.size, SampleSize::Until { per, .. } if per.contains(&Per::Opcode));
    SampleDesign {
        method: sample.intervals,
        stratum_sites: stratum_sites.filter(|_| needs_sites).collect(),
        is_finite,
        pruned: match sample.known_masked {
            KnownMasked::Sampled => BTreeMap::new(),
            KnownMasked::Counted => pruned(profile, *stratification, by_opcode),
        },
        by_opcode,
        ..SampleDesign::simple(sample.confidence)
    }
}

/// Counts the fault sites that def-use pruning knows to be masked, by scope.
fn pruned(
    profile: &Profile,
    stratification: Stratification,
    by_opcode: bool,
) -> BTreeMap<String, PrunedSites> {
    let mut all: BTreeMap<String, PrunedSites> = BTreeMap::new();
    for instruction in &profile.instructions {
        let known = instruction.known.unwrap_or_default();
        let stratum = match stratification {
            Stratification::None => None,
            Stratification::Kernel => Some(instruction.kernel.clone()),
            Stratification::Group => Some(instruction.group.to_string()),
            Stratification::Opcode => Some(instruction.opcode.to_owned()),
        };
        let scopes = [Per::All, Per::Kernel, Per::Group].map(|per| Some(scope(per, instruction)));
        let opcode = by_opcode.then(|| scope(Per::Opcode, instruction));
        for scope in scopes.into_iter().chain([opcode, stratum.map(Scope::Stratum)]).flatten() {
            let sum = all.entry(scope.to_string()).or_default();
            sum.sites += instruction.sites;
            sum.overwritten += known.overwritten;
            sum.dead += known.dead;
        }
    }
    all.retain(|_, pruned| pruned.sites > 0);
    all
}
