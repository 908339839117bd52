//! Rule 8: no inserted instruction triggers a known bug of the processor.

use super::code::ClaimedCode;
use super::finding::{CheckRule, Finding};

/// Checks inserted instructions.
pub fn check(code: &ClaimedCode, findings: &mut Vec<Finding>) {
    for item in code.items().iter().filter(|item| item.is_inserted()) {
        if let Some(bug) = item.facts.chip_bug {
            let message = format!("`{}`: {}", item.facts.inst, bug.effect());
            findings.push(Finding::at(CheckRule::ChipBugs, item.pc, message));
        }
    }
}
