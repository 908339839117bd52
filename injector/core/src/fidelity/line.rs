//! The fidelity of a run in one line.

use super::{DoubtRecord, Exactness, FidelityRecord};
use std::collections::BTreeMap;
use std::fmt;

/// Most names that a line has.
const MOST_NAMES: usize = 4;

fn names(names: &[&str]) -> String {
    let (first, rest) = names.split_at(names.len().min(MOST_NAMES));
    match rest.len() {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

impl FidelityRecord {
    /// The names of operations that are so exact.
    fn named(&self, is_so: fn(&Exactness) -> bool) -> Vec<&str> {
        let own = self.operations.iter().filter(|own| is_so(&own.fidelity));
        own.map(|own| own.operation.as_str()).collect()
    }
}

impl FidelityRecord {
    /// What results in this doubt decide, and at how many instructions.
    fn decided(&self, doubt: DoubtRecord) -> Option<String> {
        let mut decided: BTreeMap<&str, usize> = BTreeMap::new();
        let own = self.decisions.iter().filter(|own| own.fidelity == doubt);
        own.for_each(|own| *decided.entry(&own.decides).or_default() += 1);
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
        let within = self.named(|own| matches!(own, Exactness::WithinError(_)));
        let unsettled = self.named(|own| matches!(own, Exactness::NotSettled(_)));
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
