//! Fuzzes the parser of campaign files.

use flipwave_campaigns::Campaign;
use std::path::Path;

/// Parses bytes as a campaign file. Errors must have a message and a valid position.
pub fn campaign(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Err(error) = Campaign::parse(text, Path::new("nowhere/campaign.yaml")) else { return };
    assert!(!error.message.is_empty());
    assert!(error.to_string().starts_with("nowhere/campaign.yaml"), "{error}");
    if let Some((line, column)) = error.position {
        // Line breaks in YAML (YAML 1.1, "Line Break Characters").
        let ends = text.matches(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count();
        assert!(line >= 1 && line <= ends + 2 && column >= 1, "{line}:{column}: {error}");
    }
}
