//! Going on with a run that was interrupted or killed: the rows that it has left count.

use crate::error::CampaignError;
use crate::results::folder::{FolderError, RESULTS};
use crate::results::lock::FolderLock;
use crate::run::process_site::ProcessSite;
use flipwave_analysis::{CampaignMonitor, Row, complete_lines_len};
use flipwave_host::input::BoundedLines;
use flipwave_injector::{Plan, PlanError};
use std::io::{ErrorKind, Read, Seek};
use std::path::{Path, PathBuf};

/// Results that cannot be gone on with.
#[derive(Debug, thiserror::Error)]
pub enum ResumeError {
    /// They are of something else.
    #[error(
        "cannot go on with {}: {what}; run it anew, without --resume", path.display()
    )]
    Other {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// They cannot be read or written.
    #[error(transparent)]
    Folder(#[from] FolderError),
}

/// Rows whose sites are compared with the plan, which takes one run of the workload: all of a
/// campaign that has no more, of others this many, spread over all.
const COMPARED: u64 = 1 << 14;

/// Counts the rows that an earlier run has left in `monitor`, and gives them to `take`, one after another.
/// `plan` gives the plan that they must be of, whose sites are in `process`. A last line that was cut off is
/// removed from the file, so that others can be
/// written after them. Without a file there are none.
///
/// # Errors
/// [`ResumeError`], and [`flipwave_injector::PlanError`] if the plan's own sites are not found.
pub(crate) fn rows_left<'p>(
    lock: &FolderLock,
    monitor: &mut CampaignMonitor,
    process: Option<u32>,
    plan: impl FnOnce(&CampaignMonitor) -> Result<Plan<'p>, PlanError>,
    mut take: impl FnMut(&Row),
) -> Result<(), CampaignError> {
    let path = lock.folder().map_err(FolderError::from)?.join(RESULTS);
    let failed = |reason| FolderError::Access { path: path.clone(), reason };
    let mut file = match flipwave_host::input::open_writable(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        file => file.map_err(failed)?,
    };
    let whole = complete_lines_len(&mut file).map_err(failed)?;
    let other = |what: String| ResumeError::Other { path: path.clone(), what };
    if whole == 0 {
        return Ok(());
    }
    file.rewind().map_err(failed)?;
    let mut sites = Sites::default();
    let mut count = 0;
    let rows = flipwave_analysis::rows(BoundedLines::new((&file).take(whole)));
    for row in rows.map_err(|error| other(error.to_string()))? {
        let row = row.map_err(|error| other(error.to_string()))?;
        if row.index != count {
            return Err(not_planned(&path, count).into());
        }
        if monitor.is_goal_met() {
            let what = format!("{count} rows are enough for what is wanted, and it has more");
            return Err(other(what).into());
        }
        monitor.add(&row);
        take(&row);
        sites.note(row);
        count += 1;
    }
    let plan = plan(monitor)?;
    if count > plan.count() {
        let planned = plan.count();
        return Err(other(format!("it has {count} rows, and {planned} are planned")).into());
    }
    let sites = sites.noted();
    let planned = plan.faults(sites.iter().map(|(index, _)| *index))?;
    for ((index, site), planned) in sites.into_iter().zip(planned) {
        if site != (ProcessSite { process, site: planned.site }).to_string() {
            return Err(not_planned(&path, index).into());
        }
    }
    lock.folder().map_err(FolderError::from)?;
    file.set_len(whole).map_err(failed)?;
    Ok(())
}

fn not_planned(path: &Path, index: u64) -> ResumeError {
    let what = format!("row {index} is not the injection that is planned there");
    ResumeError::Other { path: path.to_owned(), what }
}

/// Sites of rows, by index: of many rows every second, fourth and so on, and the last.
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
    /// The next row.
    fn note(&mut self, row: Row) {
        let before = self.last.replace((row.index, row.site));
        self.spread.extend(before.filter(|(index, _)| index % self.step == 0));
        if self.spread.len() as u64 >= COMPARED {
            self.step *= 2;
            let step = self.step;
            self.spread.retain(|(index, _)| index % step == 0);
        }
    }

    fn noted(mut self) -> Vec<(u64, String)> {
        self.spread.extend(self.last);
        self.spread
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sites_that_are_compared_are_few_and_spread_over_all_rows() {
        for count in [0, 1, 100, COMPARED, 10 * COMPARED + 7] {
            let (mut sites, row) = (Sites::default(), row());
            for index in 0..count {
                let site = index.to_string();
                sites.note(Row { index, site, ..row.clone() });
            }
            let noted = sites.noted();
            assert!(noted.len() as u64 <= COMPARED, "{count}");
            assert!(noted.len() as u64 >= count.min(COMPARED / 2), "{count}: {}", noted.len());
            assert!(noted.iter().all(|(index, site)| index.to_string() == *site));
            let gap = noted.windows(2).map(|pair| pair[1].0 - pair[0].0).max().unwrap_or(0);
            assert!(gap <= count.div_ceil(COMPARED / 2), "{count}: {gap}");
            assert_eq!(noted.last().map(|own| own.0), count.checked_sub(1));
        }
    }

    fn row() -> Row {
        let fields = "0,site,,,,,,,,v_add_f32,valu,,,v0,0x00000001,0x00000000,0x00000001,1,,1.0,\
                      masked,logical,,,,,,,,,,\n";
        let text = Row::COLUMNS.join(",") + "\n" + fields;
        flipwave_analysis::read_rows(text.as_bytes()).expect("a row").remove(0)
    }
}
