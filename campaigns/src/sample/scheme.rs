//! How a campaign's faults are drawn from what a profile has counted.

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

/// How a campaign's faults are drawn: in stages, of which each is divided among the strata.
pub(crate) struct Scheme {
    sample: Sample,
    /// Names of the strata, by number.
    strata: Vec<String>,
    /// Where stages end, ascending.
    ends: Vec<u64>,
    /// What intervals depend on besides rows.
    pub design: SampleDesign,
    /// When the campaign ends early.
    pub until: Option<StoppingRule>,
    /// The injections that show how the others are drawn, if there are others.
    pub pilot: Option<Pilot>,
}

impl Scheme {
    /// The scheme of `faults` in the population of `profile`; `is_judged` if somebody says how bad SDC is.
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
        let places = |stratum: &injector::Stratum| stratum.places;
        let total: u64 = strata.iter().map(places).sum();
        let room = if sample.replacement { u64::MAX } else { total };
        let mut design = SampleDesign { is_judged, ..design(faults, profile, &strata) };
        let mut until = None;
        let count = match &sample.size {
            SampleSize::Exhaustive => total,
            _ if total == 0 => 0,
            SampleSize::Count(count) => (*count).min(room),
            SampleSize::Precision { margin } => {
                let some: Vec<u64> = strata.iter().map(places).filter(|own| *own > 0).collect();
                let most = some.iter().max().map_or(0, |most| *most);
                let each = sample_size(most, *margin, sample.confidence, 0.5)?;
                each.saturating_mul(some.len() as u64).min(room)
            }
            SampleSize::Until { margin, outcomes, per, most } => {
                let parts = parts(per, profile);
                let smallest = match (&sample.allocation, is_stratified_by(per, faults)) {
                    (Allocation::Equal, true) => {
                        1.0 / strata.iter().filter(|own| own.places > 0).count() as f64
                    }
                    _ => parts.iter().map(|(_, share)| *share).fold(1.0, f64::min),
                };
                let looks = match most {
                    Some(most) => LookSchedule::new(*margin, sample.confidence, (*most).min(room))?,
                    None => {
                        let looks =
                            LookSchedule::for_any_rate(*margin, sample.confidence, smallest)?;
                        match looks.sizes.last() {
                            Some(last) if *last > room => {
                                LookSchedule::new(*margin, sample.confidence, room)?
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

    /// Names of the strata, by number.
    pub fn strata(&self) -> &[String] {
        &self.strata
    }

    /// Injections at most.
    pub fn count(&self) -> u64 {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The indices of the stages.
    pub fn stages(&self) -> impl Iterator<Item = Range<u64>> {
        let starts = [0].into_iter().chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| start..*end)
    }

    /// A campaign that has no row yet.
    pub fn monitor(&self) -> CampaignMonitor {
        CampaignMonitor::new(self.design.clone(), self.until.clone(), self.pilot.clone())
    }

    /// How the faults are drawn as far as that is known when the campaign has come this far: before the
    /// end of the pilot, the pilot.
    pub fn sampling(&self, monitor: &CampaignMonitor) -> Sampling {
        let Sample { size, allocation, replacement, .. } = &self.sample;
        if *size == SampleSize::Exhaustive {
            return Sampling::Exhaustive;
        }
        let allocation = match (size, allocation) {
            // A margin holds for the rate of every stratum: each gets as many faults as the one that
            // takes most. The rate of all, weighted, has a narrower interval then.
            (SampleSize::Precision { .. }, _) | (_, Allocation::Equal) => {
                Some(injector::Allocation::Equal)
            }
            (_, Allocation::Proportional) => Some(injector::Allocation::Proportional),
            // A campaign that is no longer than its pilot.
            (_, Allocation::Optimal { .. }) if self.pilot.is_none() => {
                Some(injector::Allocation::Proportional)
            }
            (_, Allocation::Optimal { .. }) => monitor.standard_deviations().map(|known| {
                // Where nothing was struck, outcomes vary as much as they can.
                let of = |name: &String| known.get(name).copied().unwrap_or(0.5);
                injector::Allocation::Optimal(self.strata.iter().map(of).collect())
            }),
        };
        let pilot = self.pilot.as_ref().map_or(0, |pilot| pilot.count);
        let stage = |range: Range<u64>| {
            let is_pilot = range.end <= pilot;
            let allocation = match is_pilot {
                true => Some(injector::Allocation::Proportional),
                false => allocation.clone(),
            };
            Some(Stage { count: range.end - range.start, allocation: allocation? })
        };
        Sampling::Random {
            stages: self.stages().map_while(stage).collect(),
            replacement: *replacement,
        }
    }
}

/// Whether each part of which rates are wanted is a stratum of its own, or all of them.
fn is_stratified_by(per: &[Per], faults: &Faults) -> bool {
    per.iter().all(|own| match own {
        Per::All => true,
        Per::Kernel => faults.stratification == Stratification::Kernel,
        Per::Group => faults.stratification == Stratification::Group,
        Per::Opcode => faults.stratification == Stratification::Opcode,
    })
}

/// The places of an instruction that faults can strike.
fn struck(own: &InstructionFaultSpace) -> u64 {
    own.places - own.known.map_or(0, |known| known.overwritten + known.dead)
}

/// The parts of the program of which rates are wanted, and how much of what faults can strike is in
/// each. Of parts in which nothing can be struck all is known.
fn parts(per: &[Per], profile: &Profile) -> Vec<(Scope, f64)> {
    let total: u64 = profile.strata().map(|own| own.places).sum();
    let mut parts: BTreeMap<Scope, u64> = BTreeMap::new();
    for own in &profile.instructions {
        for per in per {
            *parts.entry(scope(*per, own)).or_default() += struck(own);
        }
    }
    if per.contains(&Per::All) {
        // Places of permanent faults are no instruction's.
        parts.insert(Scope::All, total);
    }
    let some = parts.into_iter().filter(|(_, places)| *places > 0);
    some.map(|(scope, places)| (scope, places as f64 / total as f64)).collect()
}

fn scope(per: Per, own: &InstructionFaultSpace) -> Scope {
    match per {
        Per::All => Scope::All,
        Per::Kernel => Scope::Kernel(own.kernel.clone()),
        Per::Group => Scope::Group(own.group.to_string()),
        Per::Opcode => Scope::Opcode(own.opcode.to_owned()),
    }
}

/// What intervals depend on besides rows, for intervals that are looked at once.
fn design(faults: &Faults, profile: &Profile, strata: &[injector::Stratum]) -> SampleDesign {
    let Faults { fault, stratification, sample, .. } = faults;
    let is_finite =
        !sample.replacement && !fault.model.is_drawn() && fault.duration == Duration::Transient;
    let is_known = *stratification != Stratification::None || is_finite;
    let stratum_sites = strata.iter().map(|own| (own.name.clone(), own.places));
    let by_opcode =
        matches!(&sample.size, SampleSize::Until { per, .. } if per.contains(&Per::Opcode));
    SampleDesign {
        method: sample.intervals,
        stratum_sites: stratum_sites.filter(|_| is_known).collect(),
        is_finite,
        pruned: match sample.known_masked {
            KnownMasked::Sampled => BTreeMap::new(),
            KnownMasked::Counted => pruned(profile, *stratification, by_opcode),
        },
        by_opcode,
        ..SampleDesign::simple(sample.confidence)
    }
}

/// Sites that def-use pruning knows to be masked, by scope.
fn pruned(
    profile: &Profile,
    stratification: Stratification,
    by_opcode: bool,
) -> BTreeMap<String, PrunedSites> {
    let mut all: BTreeMap<String, PrunedSites> = BTreeMap::new();
    for own in &profile.instructions {
        let known = own.known.unwrap_or_default();
        let stratum = match stratification {
            Stratification::None => None,
            Stratification::Kernel => Some(own.kernel.clone()),
            Stratification::Group => Some(own.group.to_string()),
            Stratification::Opcode => Some(own.opcode.to_owned()),
        };
        let scopes = [Per::All, Per::Kernel, Per::Group].map(|per| Some(scope(per, own)));
        let opcode = by_opcode.then(|| scope(Per::Opcode, own));
        for scope in scopes.into_iter().chain([opcode, stratum.map(Scope::Stratum)]).flatten() {
            let sum = all.entry(scope.to_string()).or_default();
            sum.sites += own.places;
            sum.overwritten += known.overwritten;
            sum.dead += known.dead;
        }
    }
    all.retain(|_, pruned| pruned.sites > 0);
    all
}
