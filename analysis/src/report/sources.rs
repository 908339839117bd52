//! Lookup of source files in given folders.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// Most files listed.
const MAX_FILES: usize = 20_000;
/// Most levels of nested folders.
const MAX_DEPTH: usize = 8;
/// Most bytes of a file.
const MAX_SIZE: u64 = 4 << 20;

/// The folders in which source files are looked up.
#[derive(Debug)]
pub struct Sources {
    folders: Vec<PathBuf>,
    files: OnceCell<Vec<PathBuf>>,
}

/// Errors returned when looking up a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum SourceError {
    /// There are no folders to search.
    NoFolder,
    /// None of the folders contains the file.
    NotFound(Vec<PathBuf>),
    /// Several files with different texts match equally well.
    Ambiguous(PathBuf, PathBuf),
    /// The file is too large.
    TooLarge(PathBuf),
    /// The file is unreadable.
    Unreadable(PathBuf, String),
}

impl fmt::Display for SourceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceError::NoFolder => f.write_str(
                "the campaign file was moved or deleted; give the folder of the sources with --source \
                 DIR",
            ),
            SourceError::NotFound(folders) => {
                let folders: Vec<_> =
                    folders.iter().map(|folder| folder.display().to_string()).collect();
                write!(
                    f,
                    "not found in {}; give its folder with --source DIR",
                    folders.join(", ")
                )
            }
            SourceError::Ambiguous(first, second) => write!(
                f,
                "both {} and {} match; give the folder of the right one with --source DIR",
                first.display(),
                second.display()
            ),
            SourceError::TooLarge(path) => {
                write!(f, "{} is larger than {} MiB", path.display(), MAX_SIZE >> 20)
            }
            SourceError::Unreadable(path, reason) => {
                write!(f, "cannot read {}: {reason}", path.display())
            }
        }
    }
}

impl Sources {
    /// Creates a lookup in `folders` and the folders nested in them.
    pub fn new(folders: Vec<PathBuf>) -> Sources {
        Sources { folders, files: OnceCell::new() }
    }

    /// Reads the file that a compiler called `name`: the file that has the most trailing path components in
    /// common with it. Symbolic links are not followed.
    ///
    /// # Errors
    /// [`SourceError`] if no file or no unique file is found, or reading fails.
    pub(super) fn read(&self, name: &str) -> Result<String, SourceError> {
        if self.folders.is_empty() {
            return Err(SourceError::NoFolder);
        }
        let files = self.files.get_or_init(|| {
            let mut files = Vec::new();
            self.folders.iter().for_each(|folder| list(folder, 0, &mut files));
            files
        });
        let wanted = components(Path::new(name));
        let common_components = |file: &PathBuf| {
            let components = components(file);
            let pairs = components.iter().rev().zip(wanted.iter().rev());
            pairs.take_while(|(component, wanted)| component == wanted).count()
        };
        let not_found = || SourceError::NotFound(self.folders.clone());
        let best = files.iter().map(common_components).max().filter(|best| *best > 0);
        let best = best.ok_or_else(not_found)?;
        let mut matches = files.iter().filter(|file| common_components(file) == best);
        let first = matches.next().ok_or_else(not_found)?;
        let text = read_text(first)?;
        match matches.find(|file| read_text(file).as_ref() != Ok(&text)) {
            Some(second) => Err(SourceError::Ambiguous(first.clone(), second.clone())),
            None => Ok(text),
        }
    }
}

/// The named components of a path, without `..`, `.` and the root.
fn components(path: &Path) -> Vec<&OsStr> {
    let name = |component| match component {
        Component::Normal(name) => Some(name),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

/// Appends the files in a folder and its subfolders to `files`, sorted by name, without hidden ones.
fn list(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut entries: Vec<_> = entries.flatten().take(MAX_FILES).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        if files.len() >= MAX_FILES || entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => {
                list(&entry.path(), depth + 1, files);
            }
            _ => {}
        }
    }
}

fn read_text(path: &Path) -> Result<String, SourceError> {
    match flipwave_host::input::read(path, MAX_SIZE) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == ErrorKind::FileTooLarge => {
            Err(SourceError::TooLarge(path.to_owned()))
        }
        Err(error) => Err(SourceError::Unreadable(path.to_owned(), error.to_string())),
    }
}

/// Splits a source line such as `matmul.cl:12` into file and number.
pub(super) fn split_line(line: &str) -> Option<(&str, u64)> {
    let (file, number) = line.rsplit_once(':')?;
    Some((file, number.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, text) in [
            ("inside/a/x.cl", "ax"),
            ("inside/b/x.cl", "bx"),
            ("inside/b/only.cl", "only"),
            ("inside/.hidden.cl", "hidden"),
            ("outside.cl", "outside"),
        ] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("made");
            fs::write(path, text).expect("written");
        }
        folder
    }

    #[test]
    fn files_are_found_by_their_trailing_path_components() {
        let folder = folder();
        let sources = Sources::new(vec![folder.path().join("inside")]);
        for (name, expected) in [
            ("./only.cl", "only"),
            ("/build/machine/only.cl", "only"),
            ("a/x.cl", "ax"),
            ("../b/x.cl", "bx"),
        ] {
            assert_eq!(sources.read(name).as_deref(), Ok(expected), "{name}");
        }
        assert!(matches!(sources.read("x.cl"), Err(SourceError::Ambiguous(..))));
        assert_eq!(Sources::new(Vec::new()).read("x.cl"), Err(SourceError::NoFolder));
    }

    #[test]
    fn files_outside_of_the_folders_are_not_read() {
        let folder = folder();
        let inside = folder.path().join("inside");
        std::os::unix::fs::symlink("../outside.cl", inside.join("link.cl")).expect("a link");
        let sources = Sources::new(vec![inside.clone()]);
        let outside = folder.path().join("outside.cl");
        let absolute = outside.to_str().expect("text");
        for name in ["../outside.cl", absolute, "link.cl", ".hidden.cl", "/etc/passwd", "", ".."] {
            assert!(matches!(sources.read(name), Err(SourceError::NotFound(_))), "{name}");
        }
        // The file is read if its folder is given.
        let all = Sources::new(vec![inside, folder.path().to_owned()]);
        assert_eq!(all.read(absolute).as_deref(), Ok("outside"));
    }

    #[test]
    fn large_files_are_rejected() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = fs::File::create(folder.path().join("x.cl")).expect("made");
        file.set_len(MAX_SIZE + 1).expect("longer");
        let read = Sources::new(vec![folder.path().to_owned()]).read("x.cl");
        assert!(matches!(read, Err(SourceError::TooLarge(_))));
    }
}
