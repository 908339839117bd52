//! Inline SVG charts. Their colours are classes of the page's style sheet, so that they follow its theme.

mod bar;
mod columns;
mod heat;

pub(super) use bar::bar;
pub(super) use columns::{Column, columns};
pub(super) use heat::{Scale, heat_map};
