//! Drawn faults: site numbers that are not resolved yet.

use super::Planned;
use super::permutation::Permutation;
use super::plan::{PlanError, Sampling, Stage};
use super::profile::{Profile, StratumSites};
use crate::resolve::stream::Stream;
use crate::site::{Site, When};
use std::num::NonZeroU64;

/// Maximum number of draws per injection from an approximate profile.
const TRIES: u32 = 32;

/// A drawn fault whose site is not resolved yet.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Drawn {
    /// Index of the injection.
    pub index: u64,
    pub stratum: usize,
    pub weight: f64,
    /// Number of the site in the stratum.
    pub place: u64,
    /// Number of the draw in the injection's stream, from 0; `None` if sites are drawn without
    /// replacement.
    pub draw: Option<u32>,
}

impl Drawn {
    /// The injection's stream after the draw of its site.
    pub fn stream(&self, profile: &Profile, seed: u64) -> Stream {
        let mut stream = Stream::new(seed, self.index);
        let sites = profile.strata.get(self.stratum).map_or(0, |stratum| stratum.sites);
        if let (Some(draw), Some(sites)) = (self.draw, NonZeroU64::new(sites)) {
            for _ in 0..=draw {
                stream.below(sites);
            }
        }
        stream
    }

    /// Draws the next site from the injection's stream.
    pub fn again(&self, profile: &Profile, seed: u64) -> Result<Drawn, PlanError> {
        let draw = self.draw.map_or(TRIES, |draw| draw + 1);
        let sites =
            profile.strata.get(self.stratum).and_then(|stratum| NonZeroU64::new(stratum.sites));
        match sites {
            Some(sites) if draw < TRIES => {
                let place = self.stream(profile, seed).below(sites);
                Ok(Drawn { place, draw: Some(draw), ..*self })
            }
            _ => Err(PlanError::TooApproximate { index: self.index, tries: draw }),
        }
    }
}

/// The draws of all injections of a plan. They are computed from index and seed, not stored.
pub(crate) struct Draws<'a> {
    pub profile: &'a Profile,
    pub seed: u64,
    /// The order of the sites of each stratum, if sites are drawn without replacement.
    orders: Option<Vec<Option<Order>>>,
    /// The strata of each stage that have faults, in the order of their indices.
    shares: Vec<Share>,
}

/// The order in which the sites of a stratum are drawn.
enum Order {
    Ascending,
    Random(Permutation),
}

impl Order {
    fn place(&self, number: u64) -> Option<u64> {
        match self {
            Order::Ascending => Some(number),
            Order::Random(permutation) => permutation.get(number),
        }
    }
}

/// The faults of one stratum in one stage, which have consecutive indices.
struct Share {
    stratum: usize,
    /// Index of the first fault.
    first: u64,
    /// Number of faults.
    count: u64,
    /// Number of faults of the stratum in earlier stages.
    before: u64,
    weight: f64,
    /// Number of sites of the stratum.
    sites: NonZeroU64,
}

impl<'a> Draws<'a> {
    /// Creates the draws for a fault space that is not empty.
    pub fn new(profile: &'a Profile, seed: u64, sampling: &Sampling) -> Draws<'a> {
        let sites: Vec<u64> = profile.strata.iter().map(|stratum| stratum.sites).collect();
        let random = |(stratum, count): (usize, &u64)| {
            let sites = NonZeroU64::new(*count)?;
            Some(Order::Random(Permutation::new(seed, stratum, sites)))
        };
        let orders = match sampling {
            Sampling::Exhaustive => Some(sites.iter().map(|_| Some(Order::Ascending)).collect()),
            Sampling::Random { replacement: false, .. } => {
                Some(sites.iter().enumerate().map(random).collect())
            }
            Sampling::Random { .. } => None,
        };
        let shares = match sampling {
            Sampling::Exhaustive => shares(&sites, [sites.clone()]),
            Sampling::Random { stages, replacement } => {
                let mut room =
                    if *replacement { vec![u64::MAX; sites.len()] } else { sites.clone() };
                let counts = stages.iter().map(|Stage { count, allocation }| {
                    let counts = allocation.shares(*count, &sites, &room);
                    room.iter_mut().zip(&counts).for_each(|(room, count)| *room -= count);
                    counts
                });
                shares(&sites, counts)
            }
        };
        Draws { profile, seed, orders, shares }
    }

    /// Number of faults.
    pub fn count(&self) -> u64 {
        self.shares.last().map_or(0, |last| last.first + last.count)
    }

    /// The fault with this index; `None` from [`Draws::count`] on.
    pub fn get(&self, index: u64) -> Option<Drawn> {
        let after = self.shares.partition_point(|share| share.first <= index);
        let Share { stratum, first, count, before, weight, sites } =
            *self.shares.get(after.checked_sub(1)?)?;
        let number = index - first;
        if number >= count {
            return None;
        }
        let (place, draw) = match &self.orders {
            Some(orders) => (orders.get(stratum)?.as_ref()?.place(before + number)?, None),
            None => (Stream::new(self.seed, index).below(sites), Some(0)),
        };
        Some(Drawn { index, stratum, weight, place, draw })
    }
}

/// Computes the faults of strata. `sites` are the sites of each stratum, `stages` the faults of each
/// stratum per stage.
fn shares(sites: &[u64], stages: impl IntoIterator<Item = Vec<u64>>) -> Vec<Share> {
    let total: u64 = sites.iter().sum();
    let mut shares = Vec::new();
    let mut first = 0;
    let mut before = vec![0; sites.len()];
    for counts in stages {
        let all: u64 = counts.iter().sum();
        for (stratum, count) in counts.into_iter().enumerate() {
            let Some(sites) = NonZeroU64::new(sites[stratum]).filter(|_| count > 0) else {
                continue;
            };
            let share_of_space = sites.get() as f64 / total as f64;
            let is_whole = all == total && count == sites.get();
            let weight = if is_whole { 1.0 } else { share_of_space * all as f64 / count as f64 };
            shares.push(Share { stratum, first, count, before: before[stratum], weight, sites });
            first += count;
            before[stratum] += count;
        }
    }
    shares
}

/// Resolves a drawn permanent fault.
pub(crate) fn permanent(profile: &Profile, seed: u64, drawn: &Drawn) -> Option<(u64, Planned)> {
    let StratumSites { units, .. } = profile.strata.get(drawn.stratum)?;
    let behind = units.partition_point(|unit| unit.first <= drawn.place);
    let unit_places = units.get(behind.checked_sub(1)?)?;
    let (unit, place, struck) = unit_places.get(drawn.place - unit_places.first)?;
    let mut stream = drawn.stream(profile, seed);
    let action = unit_places.action(&struck, &mut stream);
    let planned = Planned {
        site: Site { when: When::Always(unit), place, lanes: None, action },
        kernel: None,
        opcode: unit.opcode.name(),
        group: unit_places.group,
        line: None,
        stratum: drawn.stratum,
        weight: drawn.weight,
        analysis: None,
    };
    Some((drawn.index, planned))
}
