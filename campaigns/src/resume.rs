//! Going on with a run that was interrupted or killed: the rows that it has left count.

use crate::folder::{FolderError, RESULTS};
use flipwave_analysis::{Row, read_rows};
use flipwave_injector::Planned;
use std::fs::File;
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

/// The rows that an earlier run of this plan has left. A last line that was cut off is removed from
/// the file, so that others can be written behind. Without a file there are none.
///
/// # Errors
/// [`ResumeError`].
pub(crate) fn rows_left(folder: &Path, plan: &[Planned]) -> Result<Vec<Row>, ResumeError> {
    let path = folder.join(RESULTS);
    let failed = |reason| FolderError::Access { path: path.clone(), reason };
    let text = match std::fs::read_to_string(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.map_err(failed)?,
    };
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    let other = |what: String| ResumeError::Other { path: path.clone(), what };
    if whole == 0 {
        return Ok(Vec::new());
    }
    let rows = read_rows(&text.as_bytes()[..whole]).map_err(|error| other(error.to_string()))?;
    if rows.len() > plan.len() {
        return Err(other(format!("it has {} rows, and {} are planned", rows.len(), plan.len())));
    }
    for (index, (row, planned)) in (0..).zip(rows.iter().zip(plan)) {
        if row.index != index || row.site != planned.site.to_string() {
            return Err(other(format!("row {index} is not the injection that is planned there")));
        }
    }
    let file = File::options().write(true).open(&path).map_err(failed)?;
    file.set_len(whole as u64).map_err(failed)?;
    Ok(rows)
}
