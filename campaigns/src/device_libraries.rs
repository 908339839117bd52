//! The AMDGPU device libraries, and processors that are younger than they.
//!
//! A compiler asks for one small library per processor, which holds a single constant: the
//! processor's version. Distributions ship libraries without gfx942 and gfx11, while the code in
//! them asks that constant alone. Where it is missing it is made, in a folder that has links to the
//! other libraries.

use crate::compile::CompileError;
use crate::digest::hexadecimal;
use flipwave_isa::Target;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The first of the folders that has device libraries.
///
/// # Errors
/// [`CompileError::DeviceLibraries`].
pub(crate) fn find(candidates: Vec<PathBuf>) -> Result<PathBuf, CompileError> {
    match candidates.iter().find(|folder| folder.join("ockl.bc").is_file()) {
        Some(folder) => Ok(folder.clone()),
        None => Err(CompileError::DeviceLibraries { searched: candidates }),
    }
}

/// Folders where Debian and ROCm put the device libraries.
pub(crate) fn usual_folders() -> Vec<PathBuf> {
    // Debian's folder has the host's architecture in its name.
    let mut folders: Vec<PathBuf> = std::fs::read_dir("/usr/lib")
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path().join("amdgcn/bitcode")))
        .filter(|folder| folder.is_dir())
        .collect();
    folders.sort();
    folders.extend(["/usr/lib/amdgcn/bitcode".into(), "/opt/rocm/amdgcn/bitcode".into()]);
    folders
}

/// The processor's number as libraries are named after it: `90a` of gfx90a. Its last two digits
/// are the minor version and the stepping.
fn number(target: &Target) -> &'static str {
    target.processor().trim_start_matches("gfx")
}

/// The processor's version as the libraries have it: 9010 for gfx90a, 11000 for gfx1100
/// (`__oclc_ISA_version` in ROCm-Device-Libs, "oclc").
fn version(target: &Target) -> u32 {
    let (major, rest) = number(target).split_at(number(target).len() - 2);
    let rest = u32::from_str_radix(rest, 16).unwrap_or_default();
    major.parse().unwrap_or(0) * 1000 + (rest >> 4) * 100 + (rest & 15)
}

/// A folder with the libraries of `libraries` and the one of the target's version: the same
/// folder where it is there, else one in `cache`.
///
/// # Errors
/// [`CompileError::Cache`] where it cannot be written, [`CompileError::Clang`] and
/// [`CompileError::Rejected`] where clang fails.
pub(crate) fn with_version(
    libraries: &Path,
    target: &Target,
    clang: &Path,
    cache: &Path,
) -> Result<PathBuf, CompileError> {
    let name = format!("oclc_isa_version_{}.bc", number(target));
    if libraries.join(&name).is_file() {
        return Ok(libraries.to_owned());
    }
    let origin = hexadecimal(&Sha256::digest(libraries.as_os_str().as_encoded_bytes()));
    let folder = cache.join("device-libraries").join(origin);
    let failed = |reason| CompileError::Cache { path: folder.clone(), reason };
    std::fs::create_dir_all(&folder).map_err(failed)?;
    for entry in std::fs::read_dir(libraries).map_err(failed)? {
        let library = entry.map_err(failed)?;
        match std::os::unix::fs::symlink(library.path(), folder.join(library.file_name())) {
            Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
                return Err(failed(error));
            }
            _ => {}
        }
    }
    if folder.join(&name).is_file() {
        return Ok(folder);
    }
    let work = tempfile::tempdir_in(cache).map_err(failed)?;
    let source = work.path().join("version.cl");
    let text = format!("const __constant int __oclc_ISA_version = {};\n", version(target));
    std::fs::write(&source, text).map_err(failed)?;
    let output = Command::new(clang)
        .args(["-xcl", "--target=amdgcn-amd-amdhsa", "-nogpulib", "-emit-llvm", "-c", "-o"])
        .arg(work.path().join(&name))
        .arg(&source)
        .output()
        .map_err(|reason| CompileError::Clang { clang: clang.to_owned(), reason })?;
    if !output.status.success() {
        return Err(CompileError::Rejected {
            source_file: source,
            status: output.status,
            messages: String::from_utf8_lossy(&output.stderr).into_owned(),
            hint: String::new(),
        });
    }
    // Renamed, so that no other run sees half a library.
    std::fs::rename(work.path().join(&name), folder.join(&name)).map_err(failed)?;
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_those_of_the_libraries() {
        for (processor, expected) in [
            ("gfx906", 9006),
            ("gfx90a", 9010),
            ("gfx942", 9402),
            ("gfx1030", 10300),
            ("gfx1100", 11000),
        ] {
            let target: Target = processor.parse().expect("a target");
            assert_eq!(version(&target), expected, "{processor}");
        }
    }

    #[test]
    fn what_is_missing_is_named() {
        let error = find(vec!["/nowhere".into()]).expect_err("no libraries");
        assert!(error.to_string().contains("rocm-device-libs"), "{error}");
    }
}
