//! Messages about hooks that the engine refused.

use flipwave_hooks::rewrite::Refused;
use std::collections::{BTreeMap, BTreeSet};

/// The number of refused sites. Several hooks at one instruction are one site.
pub fn refused_sites(refused: &[Refused]) -> usize {
    refused.iter().map(|refused| refused.pc).collect::<BTreeSet<_>>().len()
}

/// One message per refusal reason, with the number of its sites and the first site.
pub fn refusal_reasons(refused: &[Refused]) -> Vec<String> {
    let mut by_reason: BTreeMap<&str, Vec<&Refused>> = BTreeMap::new();
    for refused in refused {
        by_reason.entry(&refused.reason).or_default().push(refused);
    }
    let line = |(reason, refused): (&str, Vec<&Refused>)| {
        let first = refused.iter().min_by_key(|refused| refused.pc)?;
        let sites: BTreeSet<_> = refused.iter().map(|refused| refused.pc).collect();
        Some(format!(
            "not counted: {} sites, the first at pc {} `{}`: {reason}",
            sites.len(),
            first.pc,
            first.instruction.trim()
        ))
    };
    by_reason.into_iter().filter_map(line).collect()
}
