//! Fault sites in applications with several processes.

use flipwave_arch::Architecture;
use flipwave_injector::{Site, SiteError};
use std::fmt;

/// A fault site and its process. Its text form is `process=1 dispatch=0 ...`, or that of the site
/// if only one process dispatches kernels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcessSite {
    /// Index of the process among those that dispatch kernels; `None` if it is the only one.
    pub process: Option<u32>,
    /// The site in the process.
    pub site: Site,
}

/// Key of the process in the text form.
const KEY: &str = "process=";

impl fmt::Display for ProcessSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&process_text(self.process, &self.site.to_string()))
    }
}

/// Text of a site in a process, given the text of the site.
pub(crate) fn process_text(process: Option<u32>, site: &str) -> String {
    process.map_or_else(|| site.to_owned(), |process| format!("{KEY}{process} {site}"))
}

impl ProcessSite {
    /// Parses the text form, for a program of an instruction set.
    ///
    /// # Errors
    /// [`SiteError`] with the invalid field.
    pub fn parse(text: &str, architecture: &dyn Architecture) -> Result<ProcessSite, SiteError> {
        let Some(rest) = text.trim_ascii_start().strip_prefix(KEY) else {
            return Ok(ProcessSite { process: None, site: Site::parse(text, architecture)? });
        };
        let (number, site) =
            rest.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((rest, ""));
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        let process = is_number.then(|| number.parse().ok()).flatten();
        let process = process.ok_or_else(|| SiteError::Value {
            key: "process",
            text: number.to_owned(),
            expected: "a number from 0 to 4294967295",
        })?;
        Ok(ProcessSite { process: Some(process), site: Site::parse(site, architecture)? })
    }
}

/// Error returned for a site that is not in the campaign's target process.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{site} is in process {found}, but the campaign strikes {}; change `process` in the campaign \
     file, or the site", struck(*target)
)]
pub struct OtherProcessError {
    /// The site.
    pub site: Box<ProcessSite>,
    /// The process of the site.
    pub found: u32,
    /// The campaign's target process; `None` if only one process dispatches kernels.
    pub target: Option<u32>,
}

fn struck(process: Option<u32>) -> String {
    process.map_or_else(
        || "the only process that dispatches kernels".to_owned(),
        |process| format!("process {process}"),
    )
}

impl ProcessSite {
    /// Returns the site if it is in the campaign's target process. A site without a process is in
    /// any.
    pub(crate) fn in_process(self, target: Option<u32>) -> Result<Site, OtherProcessError> {
        match self.process {
            Some(found) if target != Some(found) => {
                Err(OtherProcessError { site: Box::new(self), found, target })
            }
            _ => Ok(self.site),
        }
    }
}

impl From<&Site> for ProcessSite {
    fn from(site: &Site) -> ProcessSite {
        ProcessSite { process: None, site: *site }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_has_the_process_before_the_site() {
        let site = "dispatch=1 workgroup=3,0,0 wave=3 pc=0x17a0 occurrence=0 lane=58 register=v12 \
                    flip=0x00008000";
        let architecture = flipwave_sim::Amdgpu::new("gfx90a".parse().expect("a target"));
        let parse = |text: &str| ProcessSite::parse(text, &architecture);
        let alone = parse(site).expect("a site");
        assert_eq!((alone.process, alone.to_string().as_str()), (None, site));
        let text = format!("process=12 {site}");
        let with_process = parse(&text).expect("a site");
        assert_eq!((with_process.process, with_process.site), (Some(12), alone.site));
        assert_eq!(with_process.to_string(), text);
        for wrong in
            ["process= ", "process=-1 ", "process=+1 ", "process=4294967296 ", "process=a "]
        {
            let error = parse(&format!("{wrong}{site}")).expect_err(wrong);
            assert!(error.to_string().contains("expected a number"), "{error}");
        }
        assert!(parse("process=1").is_err());
    }
}
