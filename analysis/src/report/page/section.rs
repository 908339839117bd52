//! Sections of the part of a page about one campaign.

use maud::Markup;

/// A section with its link in the contents.
pub(super) struct Section {
    /// Identifier of the heading, without the campaign's prefix.
    pub id: &'static str,
    /// Text of the link in the contents; empty for none.
    pub link: &'static str,
    pub markup: Markup,
}
