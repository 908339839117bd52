//! `flipwave doctor`.

use crate::failure::Failure;
use crate::output;
use flipwave_campaigns::{Finding, doctor as look};
use std::io::Write;

pub fn doctor() -> Result<(), Failure> {
    let findings = look();
    let mut output = output::stdout();
    for Finding { what, is_needed, found } in &findings {
        let (state, text) = match (found, is_needed) {
            (Ok(text), _) => ("ok", text),
            (Err(text), true) => ("MISSING", text),
            (Err(text), false) => ("absent", text),
        };
        // Messages of compilers may have several lines.
        writeln!(output, "{state:<8}{what:<20}{}", text.trim_end().replace('\n', "\n        "))?;
    }
    if findings.iter().all(|finding| finding.found.is_ok() || !finding.is_needed) {
        Ok(())
    } else {
        Err(Failure::NotReady)
    }
}
