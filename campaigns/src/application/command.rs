//! Programs and their arguments.

use rustix::fs::{Access, access};
use std::fmt;
use std::path::{Path, PathBuf};

/// A program and its arguments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommandLine {
    /// Absolute path of the program.
    pub program: PathBuf,
    /// Arguments of the program.
    pub arguments: Vec<String>,
}

impl fmt::Display for CommandLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.program.display())?;
        self.arguments.iter().try_for_each(|argument| write!(f, " {}", argument))
    }
}

impl CommandLine {
    /// Resolves the program in `words`. A name with a `/` is relative to `directory`; any other is
    /// searched for in the folders of PATH.
    ///
    /// # Errors
    /// A message if the program cannot be found or executed.
    pub(crate) fn new(words: Vec<String>, directory: &Path) -> Result<CommandLine, String> {
        let mut words = words.into_iter();
        let name = words.next().unwrap_or_default();
        if name.is_empty() {
            return Err("no program; expected a program and its arguments, such as \
                        `[./matmul, \"128\"]`"
                .to_owned());
        }
        let program = if name.contains('/') {
            let path = directory.join(&name);
            match path.metadata() {
                Err(error) => return Err(format!("cannot find {}: {error}", path.display())),
                Ok(metadata) if !metadata.is_file() => {
                    return Err(format!("{} is not a file", path.display()));
                }
                Ok(_) if access(&path, Access::EXEC_OK).is_err() => {
                    return Err(format!(
                        "{} is not executable; make it executable with chmod +x",
                        path.display()
                    ));
                }
                Ok(_) => std::path::absolute(&path).map_err(|error| error.to_string())?,
            }
        } else {
            find(&name).ok_or_else(|| {
                format!(
                    "cannot find `{name}` in the folders of PATH; write `./{name}` for a program in \
                     the working folder"
                )
            })?
        };
        Ok(CommandLine { program, arguments: words.collect() })
    }
}

/// Searches for a program in the folders of PATH.
fn find(name: &str) -> Option<PathBuf> {
    let folders = std::env::var_os("PATH")?;
    let candidates = std::env::split_paths(&folders).map(|folder| folder.join(name));
    let is_program = |path: &PathBuf| {
        path.is_absolute() && path.is_file() && access(path, Access::EXEC_OK).is_ok()
    };
    candidates.into_iter().find(is_program)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn new(words: &[&str], directory: &Path) -> Result<CommandLine, String> {
        CommandLine::new(words.iter().map(|&word| word.to_owned()).collect(), directory)
    }

    #[test]
    fn programs_are_found_in_the_directory_and_in_path() {
        let command = new(&["./ls", "-l"], Path::new("/bin")).expect("a program");
        assert_eq!(command.program, Path::new("/bin/ls"));
        assert_eq!(command.arguments, ["-l"]);
        let command = new(&["sh"], Path::new("/nowhere")).expect("a program");
        assert!(command.program.is_absolute() && command.program.ends_with("sh"));
    }

    #[test]
    fn errors_describe_the_missing_program() {
        let error = |words: &[&str]| new(words, Path::new("/etc")).expect_err("no program");
        assert!(error(&[]).contains("no program"));
        assert!(error(&["./missing"]).contains("/etc/./missing"));
        assert!(error(&["./passwd"]).contains("chmod +x"));
        assert!(error(&["./"]).contains("not a file"));
        assert!(error(&["no-such-program"]).contains("PATH"));
    }
}
