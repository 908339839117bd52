//! Layout of a results folder that shards share.

use super::part::Part;
use crate::results::folder::{FolderError, PLANS, is_temporary};
use std::fs;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Digits of indices in names, so that names have the order of indices up to 10^12.
const DIGITS: usize = 12;

/// A results folder to which several shards write concurrently. Files are published as a whole, are
/// never changed, and detect damage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedFolder(PathBuf);

/// Kinds of files, each with its subfolder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Plans, one for each number of planned injections.
    Plans,
    /// Rows.
    Shards,
    /// Attempts to execute a part.
    Attempts,
    /// Golden runs and compiled kernels.
    Golden,
    /// Interim looks.
    Looks,
}

impl Kind {
    const ALL: [Kind; 5] = [Kind::Plans, Kind::Shards, Kind::Attempts, Kind::Golden, Kind::Looks];

    fn name(self) -> &'static str {
        match self {
            Kind::Plans => PLANS,
            Kind::Shards => "shards",
            Kind::Attempts => "attempts",
            Kind::Golden => "golden",
            Kind::Looks => "looks",
        }
    }
}

impl SharedFolder {
    /// A folder, which need not exist.
    pub fn new(path: &Path) -> SharedFolder {
        SharedFolder(path.to_owned())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Creates the folder with its subfolders.
    ///
    /// # Errors
    /// [`FolderError::Occupied`] if the folder has other files, [`FolderError::Access`].
    pub fn create(&self) -> Result<(), FolderError> {
        let failed = |reason| FolderError::Access { path: self.0.clone(), reason };
        let is_shared = Kind::ALL.iter().any(|kind| self.subfolder(*kind).is_dir());
        if !is_shared && !is_free(&self.0).map_err(failed)? {
            return Err(FolderError::Occupied {
                path: self.0.clone(),
                found: "contains files that are not shards of a campaign".to_owned(),
            });
        }
        let create = |kind: &Kind| fs::create_dir_all(self.subfolder(*kind));
        Kind::ALL.iter().try_for_each(create).map_err(failed)
    }

    pub fn subfolder(&self, kind: Kind) -> PathBuf {
        self.0.join(kind.name())
    }

    pub fn plan(&self, count: u64) -> PathBuf {
        self.subfolder(Kind::Plans).join(format!("{count:0DIGITS$}.json"))
    }

    pub fn rows(&self, range: &Range<u64>) -> PathBuf {
        let Range { start, end } = range;
        self.subfolder(Kind::Shards).join(format!("{start:0DIGITS$}-{end:0DIGITS$}.rows"))
    }

    pub fn attempt(&self, part: &Part, token: &str) -> PathBuf {
        self.subfolder(Kind::Attempts).join(format!("{}.{token}.json", part.label()))
    }

    pub fn golden(&self, key: &str) -> PathBuf {
        self.subfolder(Kind::Golden).join(key)
    }

    /// The look after `size` injections of a plan of `count`.
    pub fn look(&self, count: u64, size: u64) -> PathBuf {
        self.subfolder(Kind::Looks).join(format!("{size:0DIGITS$}-of-{count:0DIGITS$}.json"))
    }

    /// Numbers of injections of the plans, ascending.
    pub fn plans(&self) -> Result<Vec<u64>, FolderError> {
        let name = |name: &str| name.strip_suffix(".json")?.parse().ok();
        let mut counts = self.list(Kind::Plans, name)?;
        counts.sort_unstable();
        Ok(counts)
    }

    /// Ranges of the shards, from their names, ascending.
    pub fn shards(&self) -> Result<Vec<Range<u64>>, FolderError> {
        let mut ranges = self.list(Kind::Shards, |name| {
            let (start, end) = name.strip_suffix(".rows")?.split_once('-')?;
            Some(start.parse::<u64>().ok()?..end.parse::<u64>().ok()?)
        })?;
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        Ok(ranges)
    }

    /// Files of attempts.
    pub fn attempts(&self) -> Result<Vec<PathBuf>, FolderError> {
        let folder = self.subfolder(Kind::Attempts);
        self.list(Kind::Attempts, |name| name.ends_with(".json").then(|| folder.join(name)))
    }

    /// Parses the names of the files of a kind. Skips names for which `parse` returns `None`.
    fn list<T>(
        &self,
        kind: Kind,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, FolderError> {
        let folder = self.subfolder(kind);
        let failed = |reason| FolderError::Unread { path: folder.clone(), reason };
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            found.extend(name.to_str().and_then(&parse));
        }
        Ok(found)
    }
}

/// Returns `true` if a folder does not exist or contains only temporary files.
fn is_free(folder: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        entries => entries?,
    };
    for entry in entries {
        if !is_temporary(&entry?.file_name().to_string_lossy()) {
            return Ok(false);
        }
    }
    Ok(true)
}
