//! The fidelity of a run on one line.

use super::{DoubtRecord, FidelityRecord};
use flipwave_machine::Exactness;
use std::collections::BTreeMap;
use std::fmt;

/// Maximum number of names on a line.
const MOST_NAMES: usize = 4;

fn names(names: &[&str]) -> String {
    let (first, rest) = names.split_at(names.len().min(MOST_NAMES));
    match rest.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

impl FidelityRecord {
    /// Names of the operations whose exactness satisfies the predicate.
    fn named(&self, is_so: fn(&Exactness) -> bool) -> Vec<&str> {
        let matching = self.operations.iter().filter(|operation| is_so(&operation.fidelity));
        matching.map(|operation| operation.operation.as_str()).collect()
    }
}

impl FidelityRecord {
    /// Describes what results with this doubt decide, and at how many instructions.
    fn decided(&self, doubt: DoubtRecord) -> Option<String> {
        let mut decided: BTreeMap<&str, usize> = BTreeMap::new();
        let matching = self.decisions.iter().filter(|decision| decision.fidelity == doubt);
        matching.for_each(|decision| *decided.entry(&decision.decides).or_default() += 1);
        let decided = decided.iter().map(|(decides, count)| match count {
            1 => format!("{decides} at 1 instruction"),
            count => format!("{decides} at {count} instructions"),
        });
        let decided = decided.collect::<Vec<_>>().join(", ");
        (!decided.is_empty()).then_some(decided)
    }
}

impl fmt::Display for FidelityRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.operations.len();
        let within = self.named(|exactness| matches!(exactness, Exactness::WithinError(_)));
        let unsettled = self.named(|exactness| matches!(exactness, Exactness::NotSettled(_)));
        let exact = all - within.len() - unsettled.len();
        if all == 0 {
            return f.write_str("no operation was executed");
        }
        if exact == all {
            return write!(f, "all {all} operations executed are exact");
        }
        write!(f, "{exact} of {all} operations executed are exact")?;
        if !within.is_empty() {
            write!(f, ", {} within a stated error ({})", within.len(), names(&within))?;
        }
        let decided = |doubt| self.decided(doubt);
        if let Some(decided) = decided(DoubtRecord::WithinError) {
            write!(f, ", of which a result {decided}")?;
        }
        if unsettled.is_empty() {
            return Ok(());
        }
        write!(f, ", {} not settled ({}), ", unsettled.len(), names(&unsettled))?;
        match decided(DoubtRecord::NotSettled) {
            Some(decided) => write!(f, "a result of which {decided}"),
            None => f.write_str("whose results decide no address, branch or active lanes"),
        }
    }
}
