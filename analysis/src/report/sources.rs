//! Source files that are shown: those in given folders, and no others.

use std::cell::OnceCell;
use std::ffi::OsStr;
use std::fmt;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

/// Files that are looked at in one folder, and how deep.
const MOST: usize = 20_000;
const DEEPEST: usize = 8;
/// Bytes of a file.
const LARGEST: u64 = 4 << 20;

/// Folders in which source files are looked for.
#[derive(Debug)]
pub struct Sources {
    folders: Vec<PathBuf>,
    files: OnceCell<Vec<PathBuf>>,
}

/// Why a file is not shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Missing {
    NoFolder,
    NotFound(Vec<PathBuf>),
    Several(PathBuf, PathBuf),
    TooLarge(PathBuf),
    Unread(PathBuf, String),
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Missing::NoFolder => f.write_str(
                "the campaign file is not where it was; give the folder of the sources with --source \
                 DIR",
            ),
            Missing::NotFound(folders) => {
                let folders: Vec<_> = folders.iter().map(|own| own.display().to_string()).collect();
                write!(
                    f,
                    "no such file was found in {}; give its folder with --source DIR",
                    folders.join(", ")
                )
            }
            Missing::Several(first, second) => write!(
                f,
                "it may be {} or {}; give the folder of the right one with --source DIR",
                first.display(),
                second.display()
            ),
            Missing::TooLarge(path) => {
                write!(f, "{} is larger than {} MiB", path.display(), LARGEST >> 20)
            }
            Missing::Unread(path, reason) => {
                write!(f, "{} cannot be read: {reason}", path.display())
            }
        }
    }
}

impl Sources {
    /// The files in some folders and the folders therein.
    pub fn new(folders: Vec<PathBuf>) -> Sources {
        Sources { folders, files: OnceCell::new() }
    }

    /// The text of the file that a compiler called `name`. Of the files that are called like it, that
    /// whose folders are the most like those of the name; links are not followed.
    ///
    /// # Errors
    /// [`Missing`].
    pub(super) fn read(&self, name: &str) -> Result<String, Missing> {
        if self.folders.is_empty() {
            return Err(Missing::NoFolder);
        }
        let files = self.files.get_or_init(|| {
            let mut files = Vec::new();
            self.folders.iter().for_each(|folder| list(folder, 0, &mut files));
            files
        });
        let wanted = names(Path::new(name));
        let likeness = |file: &PathBuf| {
            let own = names(file);
            own.iter()
                .rev()
                .zip(wanted.iter().rev())
                .take_while(|(own, other)| own == other)
                .count()
        };
        let best = files.iter().map(likeness).max().filter(|best| *best > 0);
        let Some(best) = best else { return Err(Missing::NotFound(self.folders.clone())) };
        let mut alike = files.iter().filter(|file| likeness(file) == best);
        let first = alike.next().ok_or_else(|| Missing::NotFound(self.folders.clone()))?;
        let text = text(first)?;
        match alike.find(|other| self::text(other).as_ref() != Ok(&text)) {
            Some(other) => Err(Missing::Several(first.clone(), other.clone())),
            None => Ok(text),
        }
    }
}

/// The names of a path, without what is no name.
fn names(path: &Path) -> Vec<&OsStr> {
    let name = |component| match component {
        Component::Normal(name) => Some(name),
        _ => None,
    };
    path.components().filter_map(name).collect()
}

/// The files in a folder by name, but for those that are hidden.
fn list(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut entries: Vec<_> = entries.flatten().take(MOST).collect();
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        if files.len() >= MOST || entry.file_name().to_string_lossy().starts_with('.') {
            continue;
        }
        match entry.file_type() {
            Ok(kind) if kind.is_file() => files.push(entry.path()),
            Ok(kind) if kind.is_dir() && depth < DEEPEST => list(&entry.path(), depth + 1, files),
            _ => {}
        }
    }
}

fn text(path: &Path) -> Result<String, Missing> {
    let failed = |reason: std::io::Error| Missing::Unread(path.to_owned(), reason.to_string());
    match flipwave_host::input::read(path, LARGEST) {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(error) if error.kind() == ErrorKind::FileTooLarge => {
            Err(Missing::TooLarge(path.to_owned()))
        }
        Err(error) => Err(failed(error)),
    }
}

/// File and number of a line that is written `matmul.cl:12`.
pub(super) fn split(line: &str) -> Option<(&str, u64)> {
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
    fn files_are_found_by_the_end_of_their_path() {
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
        assert!(matches!(sources.read("x.cl"), Err(Missing::Several(..))));
        assert_eq!(Sources::new(Vec::new()).read("x.cl"), Err(Missing::NoFolder));
    }

    #[test]
    fn nothing_outside_of_the_folders_is_read() {
        let folder = folder();
        let inside = folder.path().join("inside");
        std::os::unix::fs::symlink("../outside.cl", inside.join("link.cl")).expect("a link");
        let sources = Sources::new(vec![inside.clone()]);
        let outside = folder.path().join("outside.cl");
        let absolute = outside.to_str().expect("text");
        for name in ["../outside.cl", absolute, "link.cl", ".hidden.cl", "/etc/passwd", "", ".."] {
            assert!(matches!(sources.read(name), Err(Missing::NotFound(_))), "{name}");
        }
        // The same is read where its folder is given.
        let all = Sources::new(vec![inside, folder.path().to_owned()]);
        assert_eq!(all.read(absolute).as_deref(), Ok("outside"));
    }

    #[test]
    fn large_files_are_not_shown() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = fs::File::create(folder.path().join("x.cl")).expect("made");
        file.set_len(LARGEST + 1).expect("longer");
        let read = Sources::new(vec![folder.path().to_owned()]).read("x.cl");
        assert!(matches!(read, Err(Missing::TooLarge(_))));
    }
}
