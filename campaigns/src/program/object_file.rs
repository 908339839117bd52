//! Reads code objects from files. Relocatable ones are linked.

use crate::program::compile::hint;
use flipwave_codeobj::{CodeObject, CodeObjectError, MappedFile, open_linked};
use flipwave_hooks::hook::{clang_path, clang_version};
use flipwave_host::child::ChildError;
use flipwave_isa::Target;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Errors returned when a file contains no usable code object.
#[derive(Debug, thiserror::Error)]
pub enum ObjectFileError {
    /// The file cannot be read.
    #[error("cannot read the code object {}: {reason}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Cause.
        reason: std::io::Error,
    },
    /// The content is not a usable code object.
    #[error("{}: {reason}", path.display())]
    CodeObject {
        /// The file.
        path: PathBuf,
        /// Cause.
        reason: CodeObjectError,
    },
    /// The file is a relocatable object that cannot be linked.
    #[error(
        "cannot link the relocatable object {}: {reason}\nThe command is: {command}",
        path.display()
    )]
    Link {
        /// The file.
        path: PathBuf,
        /// Messages of the linker, and what to do.
        reason: String,
        /// Command that links the file.
        command: String,
    },
}

impl ObjectFileError {
    /// Returns `true` if the file contains several matching code objects.
    pub fn is_ambiguous(&self) -> bool {
        matches!(
            self,
            ObjectFileError::CodeObject { reason: CodeObjectError::SeveralCodeObjects { .. }, .. }
        )
    }
}

/// Reads the code object in an ELF file, an offload bundle or a HIP program. A relocatable object, as
/// written by compilers with `-c`, is linked by clang and lld. Without a target, the file must contain
/// only one code object.
///
/// # Errors
/// [`ObjectFileError`].
pub fn read_code_object(
    path: &Path,
    target: Option<&Target>,
) -> Result<CodeObject, ObjectFileError> {
    open(path, target, flipwave_host::input::read(path, flipwave_host::input::BINARY))
}

/// Like [`read_code_object`], but maps the file and reads only the parts that are accessed. The file must
/// not change while the code object is in use.
///
/// # Errors
/// [`ObjectFileError`].
pub fn map_code_object(
    path: &Path,
    target: Option<&Target>,
) -> Result<CodeObject, ObjectFileError> {
    open(path, target, MappedFile::open(path))
}

/// Like [`read_code_object`], for a code object that begins at byte `at` of the file.
///
/// # Errors
/// [`ObjectFileError`].
pub fn read_code_object_at(
    path: &Path,
    target: Option<&Target>,
    at: u64,
) -> Result<CodeObject, ObjectFileError> {
    let part = |mut bytes: Vec<u8>| match usize::try_from(at) {
        Ok(at) if at <= bytes.len() => Ok(bytes.split_off(at)),
        _ => {
            let reason =
                format!("byte {at:#x} is outside the file, which has {:#x} bytes", bytes.len());
            Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, reason))
        }
    };
    let bytes = flipwave_host::input::read(path, flipwave_host::input::BINARY).and_then(part);
    open(path, target, bytes)
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

/// Errors returned when a file's content is not a usable code object.
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
                 other versions since clang-18, or set FLIPWAVE_CLANG to clang's path"
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
