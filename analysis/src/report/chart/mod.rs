//! Drawings in a page. Their colours are classes of its style, so that they follow its theme.

mod bar;
mod columns;
mod heat;

pub(super) use bar::bar;
pub(super) use columns::{Column, columns};
pub(super) use heat::{Scale, heat_map};

use crate::Outcome;

/// The class of an outcome's colour.
pub(super) fn class(outcome: Outcome) -> &'static str {
    outcome.name()
}
