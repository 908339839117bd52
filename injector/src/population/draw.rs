//! Faults drawn: numbers of places, before it is known what they are.

use super::Planned;
use super::plan::{PlanError, Sampling};
use super::profile::{Profile, StratumPlaces};
use crate::site::{Site, When};
use crate::stream::Stream;
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
    /// The stream of the injection behind the draw of its place.
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

/// Draws as many faults as asked for.
pub(crate) fn draw(
    profile: &Profile,
    seed: u64,
    sampling: Sampling,
) -> Result<Vec<Drawn>, PlanError> {
    let places: Vec<u64> = profile.strata.iter().map(|own| own.places).collect();
    let total: u64 = places.iter().sum();
    if total == 0 {
        return Err(empty(profile));
    }
    let (count, allocation) = match sampling {
        Sampling::Random { count, allocation } => (count, allocation),
        Sampling::Exhaustive { most } if total > most => {
            return Err(PlanError::TooLarge { places: total, most });
        }
        Sampling::Exhaustive { .. } => {
            let strata = (0..).zip(&places);
            let all = strata.flat_map(|(stratum, places)| (0..*places).map(move |p| (stratum, p)));
            let drawn = |(index, (stratum, place))| Drawn {
                index,
                stratum,
                weight: 1.0,
                place,
                draw: None,
            };
            return Ok((0..).zip(all).map(drawn).collect());
        }
    };
    let mut drawn = Vec::new();
    for (stratum, share) in allocation.shares(count, &places).into_iter().enumerate() {
        let Some(own) = NonZeroU64::new(places[stratum]) else { continue };
        let weight = own.get() as f64 / total as f64 * count as f64 / share as f64;
        for _ in 0..share {
            let index = drawn.len() as u64;
            let place = Stream::new(seed, index).below(own);
            drawn.push(Drawn { index, stratum, weight, place, draw: Some(0) });
        }
    }
    Ok(drawn)
}

fn empty(profile: &Profile) -> PlanError {
    let executed = profile.population.executed;
    let kinds: Vec<String> = profile
        .population
        .groups
        .iter()
        .map(|group| format!("{} {}", group.executed, group.group))
        .collect();
    let kinds = if kinds.is_empty() { String::new() } else { format!(" ({})", kinds.join(", ")) };
    let instructions = &profile.instructions;
    let mut kernels: Vec<&str> = instructions.iter().map(|own| own.kernel.as_str()).collect();
    kernels.sort_unstable();
    kernels.dedup();
    PlanError::EmptyPopulation {
        fault: profile.frame.fault.to_string(),
        selection: profile.frame.selection.to_string(),
        reason: format!(
            "which executed {executed} wave instructions{kinds} in: {}",
            kernels.join(", ")
        ),
    }
}

/// The permanent fault of a place.
pub(crate) fn permanent(profile: &Profile, seed: u64, drawn: &Drawn) -> Option<(u64, Planned)> {
    let StratumPlaces { units, .. } = profile.strata.get(drawn.stratum)?;
    let behind = units.partition_point(|unit| unit.first <= drawn.place);
    let own = units.get(behind.checked_sub(1)?)?;
    let (unit, place, struck) = own.get(drawn.place - own.first)?;
    let mut stream = drawn.stream(profile, seed);
    let model = &profile.frame.fault.model;
    let action = model.action(struck.place.bits(), struck.format, struck.number, &mut stream);
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
