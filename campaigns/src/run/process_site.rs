//! Fault sites in applications with several processes.

use flipwave_injector::{Site, SiteError};
use std::fmt;
use std::str::FromStr;

/// A fault site and the process that has it, as text `process=1 dispatch=0 ...`. In an application in
/// which one process dispatches kernels, and in programs that are none, no process is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ProcessSite {
    /// The index of the process among those that dispatch kernels.
    pub process: Option<u32>,
    /// The site in it.
    pub site: Site,
}

/// The key of the process.
const KEY: &str = "process=";

impl fmt::Display for ProcessSite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "{KEY}{process} {}", self.site),
            None => write!(f, "{}", self.site),
        }
    }
}

impl FromStr for ProcessSite {
    type Err = SiteError;

    fn from_str(text: &str) -> Result<ProcessSite, SiteError> {
        let Some(rest) = text.trim_ascii_start().strip_prefix(KEY) else {
            return Ok(ProcessSite { process: None, site: text.parse()? });
        };
        let (number, site) =
            rest.split_once(|own: char| own.is_ascii_whitespace()).unwrap_or((rest, ""));
        let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
        let process = is_number.then(|| number.parse().ok()).flatten();
        let process = process.ok_or_else(|| SiteError::Value {
            key: "process",
            text: number.to_owned(),
            expected: "a number from 0 to 4294967295",
        })?;
        Ok(ProcessSite { process: Some(process), site: site.parse()? })
    }
}

/// A site in another process than the one that a campaign strikes.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{site} is in process {found}, and the campaign strikes {}; change `process` in the campaign \
     file, or the site", struck(*own)
)]
pub struct OtherProcessError {
    /// The site.
    pub site: Box<ProcessSite>,
    /// The process of the site.
    pub found: u32,
    /// The process that is struck; nothing for the only one that dispatches kernels.
    pub own: Option<u32>,
}

fn struck(process: Option<u32>) -> String {
    process.map_or_else(
        || "the only process that dispatches kernels".to_owned(),
        |process| format!("process {process}"),
    )
}

impl ProcessSite {
    /// The site in the process that a campaign strikes, which is also that of a site without one.
    pub(crate) fn in_process(self, own: Option<u32>) -> Result<Site, OtherProcessError> {
        match self.process {
            Some(found) if own != Some(found) => {
                Err(OtherProcessError { site: Box::new(self), found, own })
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
    fn a_process_stands_before_its_site() {
        let site = "dispatch=1 workgroup=3,0,0 wave=3 pc=0x17a0 occurrence=0 lane=58 register=v12 \
                    flip=0x00008000";
        let alone: ProcessSite = site.parse().expect("a site");
        assert_eq!((alone.process, alone.to_string().as_str()), (None, site));
        let text = format!("process=12 {site}");
        let own: ProcessSite = text.parse().expect("a site");
        assert_eq!((own.process, own.site), (Some(12), alone.site));
        assert_eq!(own.to_string(), text);
        for wrong in
            ["process= ", "process=-1 ", "process=+1 ", "process=4294967296 ", "process=a "]
        {
            let error = format!("{wrong}{site}").parse::<ProcessSite>().expect_err(wrong);
            assert!(error.to_string().contains("expected a number"), "{error}");
        }
        assert!("process=1".parse::<ProcessSite>().is_err());
    }
}
