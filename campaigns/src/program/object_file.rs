//! Compiled kernels in files; relocatable ones are linked.

use crate::program::compile::hint;
use flipwave_codeobj::{CodeObject, CodeObjectError, MappedFile, open_linked};
use flipwave_hooks::hook::{clang_path, clang_version};
use flipwave_host::child::ChildError;
use flipwave_isa::Target;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A file that no code object can be taken from.
#[derive(Debug, thiserror::Error)]
pub enum ObjectFileError {
    /// It cannot be read.
    #[error("cannot read the code object {}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: std::io::Error,
    },
    /// It is no usable code object.
    #[error("{}: {reason}", path.display())]
    CodeObject {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: CodeObjectError,
    },
    /// It is a relocatable object, and cannot be linked.
    #[error(
        "{} is a relocatable object, and linking it fails: {reason}\nThe command is: {command}",
        path.display()
    )]
    Link {
        /// The file.
        path: PathBuf,
        /// What the linker says, and what to do.
        reason: String,
        /// How to link it by hand.
        command: String,
    },
}

/// The code object in a file: an ELF file, an offload bundle or a HIP program; linked by clang and
/// lld if it is relocatable, as compilers leave it with `-c`. Without a target there must be only
/// one.
///
/// # Errors
/// [`ObjectFileError`].
pub fn read_code_object(
    path: &Path,
    target: Option<&Target>,
) -> Result<CodeObject, ObjectFileError> {
    open(path, target, flipwave_host::input::read(path, flipwave_host::input::BINARY))
}

/// The same of a file that is not read but where something of it is looked at, for a program that
/// does so at once: the file must stay as it is.
///
/// # Errors
/// [`ObjectFileError`].
pub fn map_code_object(
    path: &Path,
    target: Option<&Target>,
) -> Result<CodeObject, ObjectFileError> {
    open(path, target, MappedFile::open(path))
}

fn open(
    path: &Path,
    target: Option<&Target>,
    bytes: std::io::Result<impl AsRef<[u8]> + Send + Sync + 'static>,
) -> Result<CodeObject, ObjectFileError> {
    let bytes = bytes.map_err(|reason| ObjectFileError::Read { path: path.to_owned(), reason })?;
    open_linked(bytes, target, link).map_err(|error| match error {
        OpenError::CodeObject(reason) => {
            ObjectFileError::CodeObject { path: path.to_owned(), reason }
        }
        OpenError::Link(reason) => {
            let clang = clang_path();
            let command = format!(
                "{} --target=amdgcn-amd-amdhsa -o LINKED {}",
                clang.display(),
                path.display()
            );
            ObjectFileError::Link { path: path.to_owned(), reason, command }
        }
    })
}

/// What is wrong with a file's content.
enum OpenError {
    CodeObject(CodeObjectError),
    Link(String),
}

impl From<CodeObjectError> for OpenError {
    fn from(reason: CodeObjectError) -> OpenError {
        OpenError::CodeObject(reason)
    }
}

/// Links a relocatable object.
fn link(object: &[u8]) -> Result<Vec<u8>, OpenError> {
    let failed = |reason: std::io::Error| OpenError::Link(reason.to_string());
    let folder = tempfile::tempdir().map_err(failed)?;
    let [from, to] = ["object.o", "linked.co"].map(|name| folder.path().join(name));
    std::fs::write(&from, object).map_err(failed)?;
    let clang = clang_path();
    let mut command = Command::new(&clang);
    command.arg("--target=amdgcn-amd-amdhsa").arg("-o").args([&to, &from]);
    let output = flipwave_host::child::run(&mut command, b"").map_err(|error| match error {
        ChildError::Run(reason) => {
            let clang = clang.display();
            OpenError::Link(format!(
                "cannot run `{clang}`: {reason}; install Debian's packages clang-22 and lld-22, or \
                 others from clang-18 on, or set FLIPWAVE_CLANG to clang's path"
            ))
        }
        ChildError::Interrupted => OpenError::Link("interrupted".to_owned()),
    })?;
    if !output.status.success() {
        let messages = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
        let hint = hint(&messages, &clang_version(&clang).unwrap_or_default());
        return Err(OpenError::Link(format!("{messages}{hint}")));
    }
    flipwave_host::input::read(&to, flipwave_host::input::BINARY).map_err(failed)
}
