//! Faults drawn: numbers of places, before it is known what they are.

use super::Planned;
use super::permutation::Permutation;
use super::plan::{PlanError, Sampling, Stage};
use super::profile::{Profile, StratumPlaces};
use crate::resolve::stream::Stream;
use crate::site::{Site, When};
use std::num::NonZeroU64;

/// Places drawn for one injection before an approximate profile is given up.
const TRIES: u32 = 32;

/// A fault drawn, before its site is known.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Drawn {
    /// Index of the injection.
    pub index: u64,
    pub stratum: usize,
    pub weight: f64,
    /// Number of the place in the stratum.
    pub place: u64,
    /// Which draw of its stream that was, from 0; nothing where all places are taken.
    pub draw: Option<u32>,
}

impl Drawn {
    /// The stream of the injection after the draw of its place.
    pub fn stream(&self, profile: &Profile, seed: u64) -> Stream {
        let mut stream = Stream::new(seed, self.index);
        let places = profile.strata.get(self.stratum).map_or(0, |own| own.places);
        if let (Some(draw), Some(places)) = (self.draw, NonZeroU64::new(places)) {
            for _ in 0..=draw {
                stream.below(places);
            }
        }
        stream
    }

    /// The next draw of its stream.
    pub fn again(&self, profile: &Profile, seed: u64) -> Result<Drawn, PlanError> {
        let draw = self.draw.map_or(TRIES, |draw| draw + 1);
        let places = profile.strata.get(self.stratum).and_then(|own| NonZeroU64::new(own.places));
        match places {
            Some(places) if draw < TRIES => {
                let place = self.stream(profile, seed).below(places);
                Ok(Drawn { place, draw: Some(draw), ..*self })
            }
            _ => Err(PlanError::TooApproximate { index: self.index, tries: draw }),
        }
    }
}

/// What is drawn for every injection of a plan. Nothing is kept of what was: index and seed say it.
pub(crate) struct Draws<'a> {
    pub profile: &'a Profile,
    pub seed: u64,
    /// How the places of strata follow one another, where none is drawn twice.
    orders: Option<Vec<Option<Order>>>,
    /// The strata of each stage that have faults, in the order of their indices.
    shares: Vec<Share>,
}

/// The order in which places are taken.
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
    /// Index of the first.
    first: u64,
    /// How many there are.
    count: u64,
    /// Faults of the stratum in the stages before.
    before: u64,
    weight: f64,
    /// Places of the stratum.
    places: NonZeroU64,
}

impl<'a> Draws<'a> {
    /// Draws for a population that has places.
    pub fn new(profile: &'a Profile, seed: u64, sampling: &Sampling) -> Draws<'a> {
        let places: Vec<u64> = profile.strata.iter().map(|own| own.places).collect();
        let random = |(stratum, own): (usize, &u64)| {
            let places = NonZeroU64::new(*own)?;
            Some(Order::Random(Permutation::new(seed, stratum, places)))
        };
        let orders = match sampling {
            Sampling::Exhaustive => Some(places.iter().map(|_| Some(Order::Ascending)).collect()),
            Sampling::Random { replacement: false, .. } => {
                Some(places.iter().enumerate().map(random).collect())
            }
            Sampling::Random { .. } => None,
        };
        let shares = match sampling {
            Sampling::Exhaustive => shares(&places, [places.clone()]),
            Sampling::Random { stages, replacement } => {
                let mut room = match replacement {
                    true => vec![u64::MAX; places.len()],
                    false => places.clone(),
                };
                let counts = stages.iter().map(|Stage { count, allocation }| {
                    let counts = allocation.shares(*count, &places, &room);
                    room.iter_mut().zip(&counts).for_each(|(room, count)| *room -= count);
                    counts
                });
                shares(&places, counts)
            }
        };
        Draws { profile, seed, orders, shares }
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.shares.last().map_or(0, |last| last.first + last.count)
    }

    /// The fault of an index; nothing from [`Draws::count`] on.
    pub fn get(&self, index: u64) -> Option<Drawn> {
        let after = self.shares.partition_point(|share| share.first <= index);
        let Share { stratum, first, count, before, weight, places } =
            *self.shares.get(after.checked_sub(1)?)?;
        let number = index - first;
        if number >= count {
            return None;
        }
        let (place, draw) = match &self.orders {
            Some(orders) => (orders.get(stratum)?.as_ref()?.place(before + number)?, None),
            None => (Stream::new(self.seed, index).below(places), Some(0)),
        };
        Some(Drawn { index, stratum, weight, place, draw })
    }
}

/// The faults of strata with these numbers of places, given how many each has in each stage.
fn shares(places: &[u64], stages: impl IntoIterator<Item = Vec<u64>>) -> Vec<Share> {
    let total: u64 = places.iter().sum();
    let mut shares = Vec::new();
    let mut first = 0;
    let mut before = vec![0; places.len()];
    for counts in stages {
        let all: u64 = counts.iter().sum();
        for (stratum, count) in counts.into_iter().enumerate() {
            let Some(places) = NonZeroU64::new(places[stratum]).filter(|_| count > 0) else {
                continue;
            };
            let of_all = places.get() as f64 / total as f64;
            let is_whole = all == total && count == places.get();
            let weight = if is_whole { 1.0 } else { of_all * all as f64 / count as f64 };
            shares.push(Share { stratum, first, count, before: before[stratum], weight, places });
            first += count;
            before[stratum] += count;
        }
    }
    shares
}

/// The permanent fault of a place.
pub(crate) fn permanent(profile: &Profile, seed: u64, drawn: &Drawn) -> Option<(u64, Planned)> {
    let StratumPlaces { units, .. } = profile.strata.get(drawn.stratum)?;
    let behind = units.partition_point(|unit| unit.first <= drawn.place);
    let own = units.get(behind.checked_sub(1)?)?;
    let (unit, place, struck) = own.get(drawn.place - own.first)?;
    let mut stream = drawn.stream(profile, seed);
    let action = own.action(&struck, &mut stream);
    let planned = Planned {
        site: Site { when: When::Always(unit), place, lanes: None, action },
        kernel: None,
        opcode: unit.opcode.name(),
        group: own.group,
        line: None,
        stratum: drawn.stratum,
        weight: drawn.weight,
        foresight: None,
    };
    Some((drawn.index, planned))
}
