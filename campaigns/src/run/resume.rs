//! Resuming a run that was interrupted or killed: its rows are kept.

use crate::error::CampaignError;
use crate::program::prepare::Prepared;
use crate::results::folder::{FolderError, RESULTS};
use crate::results::lock::FolderLock;
use crate::run::process_site::process_text;
use flipwave_analysis::{CampaignMonitor, Row, complete_lines_len};
use flipwave_host::input::BoundedLines;
use flipwave_injector::{Plan, PlanError};
use std::io::{ErrorKind, Read, Seek};
use std::path::{Path, PathBuf};

/// Errors returned when results cannot be resumed.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// The rows do not belong to the campaign.
    #[error("cannot resume {}: {what}; run the campaign again without --resume", path.display())]
    Other {
        /// The file.
        path: PathBuf,
        /// The mismatch.
        what: String,
    },
    /// The results cannot be read or written.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// Largest number of rows whose sites are compared with the plan, which takes one run of the
/// workload. In larger campaigns, the compared rows are spread over all rows.
const COMPARED: u64 = 1 << 14;

/// Adds the rows of an earlier run to `monitor` and passes each to `take`. `plan` returns the plan
/// of the rows, whose sites are in the program `prepared`. Removes an incomplete last line from the file, so
/// that rows can be appended. A missing file has no rows.
///
/// # Errors
/// [`ResumeError`], and [`flipwave_injector::PlanError`] if the sites of the plan cannot be
/// resolved.
pub(crate) fn read_existing_rows<'p>(
    lock: &FolderLock,
    monitor: &mut CampaignMonitor,
    prepared: &Prepared,
    plan: impl FnOnce(&CampaignMonitor) -> Result<Plan<'p>, PlanError>,
    mut take: impl FnMut(&Row),
) -> Result<(), CampaignError> {
    let path = lock.folder().map_err(FolderError::from)?.join(RESULTS);
    let failed = |reason| FolderError::Access { path: path.clone(), reason };
    let mut file = match flipwave_host::input::open_writable(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        file => file.map_err(failed)?,
    };
    let length = complete_lines_len(&mut file).map_err(failed)?;
    let mismatch = |what: String| ResumeError::Other { path: path.clone(), what };
    if length == 0 {
        return Ok(());
    }
    file.rewind().map_err(failed)?;
    let mut sites = Sites::default();
    let mut count = 0;
    let rows = flipwave_analysis::rows(BoundedLines::new((&file).take(length)));
    for row in rows.map_err(|error| mismatch(error.to_string()))? {
        let row = row.map_err(|error| mismatch(error.to_string()))?;
        if row.injection != count {
            return Err(not_planned(&path, count).into());
        }
        if monitor.is_goal_met() {
            let what = format!("the goal is met after {count} rows, but the file has more");
            return Err(mismatch(what).into());
        }
        monitor.add(&row);
        take(&row);
        sites.add(row);
        count += 1;
    }
    let plan = plan(monitor)?;
    if count > plan.count() {
        let planned = plan.count();
        let what = format!("the file has {count} rows, but only {planned} are planned");
        return Err(mismatch(what).into());
    }
    let sites = sites.selected();
    let planned = plan.faults(sites.iter().map(|(index, _)| *index))?;
    for ((index, site), planned) in sites.into_iter().zip(planned) {
        let text = prepared.workload.site_text(&planned.site);
        if site != process_text(prepared.process, &text) {
            return Err(not_planned(&path, index).into());
        }
    }
    lock.folder().map_err(FolderError::from)?;
    file.set_len(length).map_err(failed)?;
    Ok(())
}

fn not_planned(path: &Path, index: u64) -> ResumeError {
    let what = format!("row {index} is not the planned injection");
    ResumeError::Other { path: path.to_owned(), what }
}

/// A selection of at most [`COMPARED`] rows: every `step`-th row and the last, each with index and
/// site.
struct Sites {
    step: u64,
    spread: Vec<(u64, String)>,
    last: Option<(u64, String)>,
}

impl Default for Sites {
    fn default() -> Sites {
        Sites { step: 1, spread: Vec::new(), last: None }
    }
}

impl Sites {
    /// Adds the next row.
    fn add(&mut self, row: Row) {
        let before = self.last.replace((row.injection, row.site));
        self.spread.extend(before.filter(|(index, _)| index % self.step == 0));
        if self.spread.len() as u64 >= COMPARED {
            self.step *= 2;
            let step = self.step;
            self.spread.retain(|(index, _)| index % step == 0);
        }
    }

    fn selected(mut self) -> Vec<(u64, String)> {
        self.spread.extend(self.last);
        self.spread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compared_sites_are_few_and_spread_over_all_rows() {
        for count in [0, 1, 100, COMPARED, 10 * COMPARED + 7] {
            let (mut sites, row) = (Sites::default(), row());
            for index in 0..count {
                let site = index.to_string();
                sites.add(Row { injection: index, site, ..row.clone() });
            }
            let selected = sites.selected();
            let length = selected.len() as u64;
            assert!(length <= COMPARED, "{count}");
            assert!(length >= count.min(COMPARED / 2), "{count}: {length}");
            assert!(selected.iter().all(|(index, site)| index.to_string() == *site));
            let gap = selected.windows(2).map(|pair| pair[1].0 - pair[0].0).max().unwrap_or(0);
            assert!(gap <= count.div_ceil(COMPARED / 2), "{count}: {gap}");
            assert_eq!(selected.last().map(|(index, _)| *index), count.checked_sub(1));
        }
    }

    fn row() -> Row {
        let fields = "0,site,,,,,,,,v_add_f32,valu,,,v0,0x00000001,0x00000000,0x00000001,1,,1.0,\
                      masked,logical,,,,,,,,,,\n";
        let text = Row::COLUMNS.join(",") + "\n" + fields;
        flipwave_analysis::read_rows(text.as_bytes()).expect("a row").remove(0)
    }
}
