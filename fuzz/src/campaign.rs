//! Campaign files.

use flipwave_campaigns::Campaign;
use std::path::Path;

/// Reads bytes as a campaign file: a campaign, or an error that says where and what.
pub fn campaign(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Err(error) = Campaign::parse(text, Path::new("nowhere/campaign.yaml")) else { return };
    assert!(!error.message.is_empty());
    assert!(error.to_string().starts_with("nowhere/campaign.yaml"), "{error}");
    if let Some((line, column)) = error.position {
        let lines = text.lines().count();
        assert!(line >= 1 && line <= lines + 1 && column >= 1, "{line}:{column}: {error}");
    }
}
