//! What is where in a results folder that shards write to.

use super::part::Part;
use crate::results::folder::{FolderError, PLANS, is_passing};
use std::fs;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Digits of indices in names: names are then in the order of indices up to 10^12.
const DIGITS: usize = 12;

/// A results folder that many write to at once. None of them changes what another has written, all
/// files come whole, and what is in a file says whether it is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SharedFolder(PathBuf);

/// What is in the folder, by the name of its own folder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Plans, one for each number of injections that the campaign had.
    Plans,
    /// Rows.
    Shards,
    /// Who tried to do which part.
    Attempts,
    /// Fault-free runs.
    Golden,
    /// What was known after some numbers of injections.
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
    /// A folder, be it there or not.
    pub fn new(path: &Path) -> SharedFolder {
        SharedFolder(path.to_owned())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Makes the folder, unless something else is there.
    ///
    /// # Errors
    /// [`FolderError::Occupied`], [`FolderError::Access`].
    pub fn make(&self) -> Result<(), FolderError> {
        let failed = |reason| FolderError::Access { path: self.0.clone(), reason };
        let is_shared = Kind::ALL.iter().any(|kind| self.of(*kind).is_dir());
        if !is_shared && !is_free(&self.0).map_err(failed)? {
            return Err(FolderError::Occupied {
                path: self.0.clone(),
                found: "holds files that are no shards of a campaign".to_owned(),
            });
        }
        Kind::ALL.iter().try_for_each(|kind| fs::create_dir_all(self.of(*kind))).map_err(failed)
    }

    pub fn of(&self, kind: Kind) -> PathBuf {
        self.0.join(kind.name())
    }

    pub fn plan(&self, count: u64) -> PathBuf {
        self.of(Kind::Plans).join(format!("{count:0DIGITS$}.json"))
    }

    pub fn rows(&self, range: &Range<u64>) -> PathBuf {
        let Range { start, end } = range;
        self.of(Kind::Shards).join(format!("{start:0DIGITS$}-{end:0DIGITS$}.rows"))
    }

    pub fn attempt(&self, part: &Part, token: &str) -> PathBuf {
        self.of(Kind::Attempts).join(format!("{}.{token}.json", part.label()))
    }

    pub fn golden(&self, key: &str) -> PathBuf {
        self.of(Kind::Golden).join(key)
    }

    /// What was known after `size` injections of a plan of `count`.
    pub fn look(&self, count: u64, size: u64) -> PathBuf {
        self.of(Kind::Looks).join(format!("{size:0DIGITS$}-of-{count:0DIGITS$}.json"))
    }

    /// The plans, by the number of their injections.
    pub fn plans(&self) -> Result<Vec<u64>, FolderError> {
        let name = |name: &str| name.strip_suffix(".json")?.parse().ok();
        let mut counts = self.named(Kind::Plans, name)?;
        counts.sort_unstable();
        Ok(counts)
    }

    /// The shards, by what their names say that they have.
    pub fn shards(&self) -> Result<Vec<Range<u64>>, FolderError> {
        let mut ranges = self.named(Kind::Shards, |name| {
            let (start, end) = name.strip_suffix(".rows")?.split_once('-')?;
            Some(start.parse::<u64>().ok()?..end.parse::<u64>().ok()?)
        })?;
        ranges.sort_unstable_by_key(|range| (range.start, range.end));
        Ok(ranges)
    }

    /// The files of attempts.
    pub fn attempts(&self) -> Result<Vec<PathBuf>, FolderError> {
        let folder = self.of(Kind::Attempts);
        self.named(Kind::Attempts, |name| name.ends_with(".json").then(|| folder.join(name)))
    }

    /// What the names of files mean, of those that mean something.
    fn named<T>(
        &self,
        kind: Kind,
        meaning: impl Fn(&str) -> Option<T>,
    ) -> Result<Vec<T>, FolderError> {
        let folder = self.of(kind);
        let failed = |reason| FolderError::Unread { path: folder.clone(), reason };
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            found.extend(name.to_str().and_then(&meaning));
        }
        Ok(found)
    }
}

/// Whether a folder has nothing in it, or is none.
fn is_free(folder: &Path) -> io::Result<bool> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(true),
        entries => entries?,
    };
    for entry in entries {
        if !is_passing(&entry?.file_name().to_string_lossy()) {
            return Ok(false);
        }
    }
    Ok(true)
}
