//! The AMDGPU device libraries, and adaptation of old libraries to newer compilers and processors.
//!
//! A compiler links one small library per processor. It contains a single constant, the processor's
//! version, and the other libraries depend only on this constant. Some distributions ship no such library
//! for gfx942 and gfx11. If it is missing, it is created in a folder with links to the other libraries.
//!
//! Compilers also changed what they link. Since version 20, clang mangles generic pointers without an
//! address space, so it does not find the functions of OpenCL C that take one. It no longer links the
//! library with HIP's own functions, or the constant that says whether denormals are flushed to zero. For
//! libraries before ROCm 6.3 (the first with code object version 6), these functions are renamed, and the
//! missing parts are added to the library that every program is linked with. Their function that reads the
//! clock uses an instruction that gfx11 and later lack; it is replaced by LLVM's intrinsic.

use crate::digest::hexadecimal;
use crate::program::compile::{CompileError, package};
use flipwave_hooks::hook::clang_major;
use flipwave_host::cache::Cache;
use flipwave_isa::{Generation, Target};
use sha2::{Digest, Sha256};
use std::cmp::Reverse;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the folder with the device libraries for a compiler version: `FLIPWAVE_DEVICE_LIBS`, or the
/// usual location in distributions and ROCm.
///
/// # Errors
/// [`CompileError::DeviceLibraries`].
pub(crate) fn installed(version: &str) -> Result<PathBuf, CompileError> {
    find(match std::env::var_os("FLIPWAVE_DEVICE_LIBS") {
        Some(folder) => vec![folder.into()],
        None => usual_folders(version),
    })
}

/// Returns the first folder that contains device libraries.
///
/// # Errors
/// [`CompileError::DeviceLibraries`].
fn find(candidates: Vec<PathBuf>) -> Result<PathBuf, CompileError> {
    match candidates.iter().find(|folder| folder.join("ockl.bc").is_file()) {
        Some(folder) => Ok(folder.clone()),
        None => Err(CompileError::DeviceLibraries { searched: candidates }),
    }
}

/// Returns the folders where Debian and ROCm install device libraries, for a compiler version. Folders of
/// compilers come first, from this version downwards, because a compiler cannot read bitcode of a newer
/// one.
fn usual_folders(version: &str) -> Vec<PathBuf> {
    let newest = clang_major(version).unwrap_or(u32::MAX);
    let mut of_compilers: Vec<(u32, PathBuf)> = folders_in("/usr/lib")
        .filter_map(|folder| {
            let name = folder.file_name()?.to_str()?.strip_prefix("llvm-")?;
            let major: u32 = name.parse().ok()?;
            Some((major, folder.join(format!("lib/clang/{major}/amdgcn/bitcode"))))
        })
        .filter(|(major, folder)| *major <= newest && folder.is_dir())
        .collect();
    of_compilers.sort_by_key(|(major, _)| Reverse(*major));
    // One of Debian's folders has the host's architecture in its name.
    let mut of_hosts: Vec<PathBuf> = folders_in("/usr/lib")
        .map(|folder| folder.join("amdgcn/bitcode"))
        .filter(|folder| folder.is_dir())
        .collect();
    of_hosts.sort();
    let fallbacks = ["/usr/lib/amdgcn/bitcode".into(), "/opt/rocm/amdgcn/bitcode".into()];
    let of_compilers = of_compilers.into_iter().map(|(_, folder)| folder);
    of_compilers.chain(of_hosts).chain(fallbacks).collect()
}

fn folders_in(folder: &str) -> impl Iterator<Item = PathBuf> {
    std::fs::read_dir(folder).into_iter().flatten().filter_map(|entry| Some(entry.ok()?.path()))
}

/// Returns the processor number in library names: `90a` for gfx90a.
fn number(target: &Target) -> &'static str {
    target.processor().trim_start_matches("gfx")
}

/// Returns the processor version in the libraries: 9010 for gfx90a, 11000 for gfx1100, 9400 for
/// gfx9-4-generic (`__oclc_ISA_version` in ROCm-Device-Libs, "oclc").
fn version(target: &Target) -> u32 {
    let digit = |text: &str| u32::from_str_radix(text, 16).unwrap_or_default();
    let (major, rest) = match number(target).strip_suffix("-generic") {
        Some(generic) => {
            let (major, minor) = generic.split_once('-').unwrap_or((generic, "0"));
            (major, digit(minor) << 4)
        }
        // The last two digits are the minor version and the stepping.
        None => {
            let (major, rest) = number(target).split_at(number(target).len() - 2);
            (major, digit(rest))
        }
    };
    major.parse().unwrap_or(0) * 1000 + (rest >> 4) * 100 + (rest & 15)
}

/// Returns a folder with the device libraries in a form that `clang` can link for the target: `libraries`
/// if nothing is missing, otherwise a folder in `cache`.
///
/// # Errors
/// [`CompileError::Cache`] if the cache cannot be written; [`CompileError::Clang`] and
/// [`CompileError::Rejected`] if clang or another LLVM program fails.
pub(crate) fn adapted(
    libraries: &Path,
    target: &Target,
    clang: &Path,
    version: &str,
    cache: &Cache,
) -> Result<PathBuf, CompileError> {
    let name = format!("oclc_isa_version_{}.bc", number(target));
    let are_older = clang_major(version).is_some_and(|major| major >= 20)
        && !libraries.join("oclc_abi_version_600.bc").is_file();
    if !are_older && libraries.join(&name).is_file() {
        return Ok(libraries.to_owned());
    }
    let has_no_clock = are_older && target.generation() >= Generation::Gfx11;
    let mut origin = vec![libraries.as_os_str().as_encoded_bytes(), version.as_bytes(), MAKING];
    origin.extend(has_no_clock.then_some(MAKING_CLOCK));
    let origin = origin.join(&0);
    let origin = hexadecimal(&Sha256::digest(origin));
    let folder = cache.folder().join("device-libraries").join(&origin);
    let failed = |reason| CompileError::Cache { path: folder.clone(), reason };
    let work = tempfile::tempdir().map_err(failed)?;
    let tools = Tools { clang, version, work: work.path() };
    let keep = |name: &str, make: &dyn Fn() -> Result<PathBuf, CompileError>| {
        let key = format!("library-{origin}-{name}");
        let kept = cache.get(&key).map(Ok);
        let content = kept.unwrap_or_else(|| {
            let content = flipwave_host::input::read(&make()?, flipwave_host::input::BINARY)
                .map_err(failed)?;
            cache.put(&key, &content).map_err(failed)?;
            Ok(content)
        })?;
        let path = format!("device-libraries/{origin}/{name}");
        cache.file(&path, &content).map_err(failed)
    };
    keep(&name, &|| tools.make_version_library(target, are_older.then_some(libraries)))?;
    if target.is_generic() && !libraries.join(ABI).is_file() {
        keep(ABI, &|| tools.make_abi_library())?;
    }
    if are_older {
        keep(OPENCL, &|| {
            tools
                .rewrite_library(&libraries.join(OPENCL), &[(OLD_GENERIC_POINTER, GENERIC_POINTER)])
        })?;
    }
    if has_no_clock {
        keep(OCKL, &|| tools.rewrite_library(&libraries.join(OCKL), &CLOCK))?;
    }
    for entry in std::fs::read_dir(libraries).map_err(failed)? {
        let library = entry.map_err(failed)?;
        let file_name = library.file_name();
        let is_made = file_name == name.as_str()
            || has_no_clock && file_name == OCKL
            || are_older
                && (file_name == OPENCL
                    || file_name.to_string_lossy().starts_with("oclc_isa_version_"));
        if !is_made {
            link(&library.path(), &folder.join(file_name)).map_err(failed)?;
        }
    }
    Ok(folder)
}

/// Creates a symbolic link at `path`, or replaces an existing one.
fn link(target: &Path, path: &Path) -> std::io::Result<()> {
    if std::fs::read_link(path).is_ok_and(|found| found == target) {
        return Ok(());
    }
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    match std::os::unix::fs::symlink(target, path) {
        // Another run has created the link.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        result => result,
    }
}

/// Part of the cache key. Change this text if libraries are created in another way, so that cached ones are
/// not used.
const MAKING: &[u8] = b"renamed, with HIP's";

/// Part of the cache key for targets whose libraries need another clock. They have a folder of their own.
const MAKING_CLOCK: &[u8] = b"with a clock";

/// The library with the constant for code object version 6, which all generic targets use.
const ABI: &str = "oclc_abi_version_600.bc";

/// The library with the functions of OpenCL C.
const OPENCL: &str = "opencl.bc";

/// The library with the functions that languages share.
const OCKL: &str = "ockl.bc";

/// Text that reads the clock with the instruction `s_memrealtime`, and its replacement. The compiler would
/// remove functions that require an instruction of other targets.
const CLOCK: [(&str, &str); 2] = [
    ("@llvm.amdgcn.s.memrealtime()", "@llvm.readsteadycounter()"),
    ("\"target-features\"=\"+s-memrealtime\"", ""),
];

/// A generic pointer in mangled names before clang 20.
const OLD_GENERIC_POINTER: &str = "PU3AS0";

/// A generic pointer in mangled names since clang 20.
const GENERIC_POINTER: &str = "P";

/// The compiler, the LLVM programs next to it, and a folder for their output.
struct Tools<'a> {
    clang: &'a Path,
    version: &'a str,
    work: &'a Path,
}

impl Tools<'_> {
    /// Creates the library with the version of a target. If the folder `old_libraries` is given, adds the
    /// parts of its libraries that compilers no longer link.
    fn make_version_library(
        &self,
        target: &Target,
        old_libraries: Option<&Path>,
    ) -> Result<PathBuf, CompileError> {
        let mut text = format!("const __constant int __oclc_ISA_version = {};\n", version(target));
        if old_libraries.is_some() {
            text.push_str("const __constant bool __oclc_daz_opt = false;\n");
        }
        let made = self.compile_library("version", &text)?;
        let Some(libraries) = old_libraries else { return Ok(made) };
        // `linkonce_odr` functions would be discarded, because nothing here calls them.
        let hip =
            self.rewrite_library(&libraries.join("hip.bc"), &[("linkonce_odr ", "weak_odr ")])?;
        let linked = self.work.join("linked.bc");
        let mut command = self.program("llvm-link")?;
        command.arg("-o").arg(&linked).arg(&made).arg(&hip);
        self.run(command, &hip)?;
        Ok(linked)
    }

    /// Creates the library with the ABI version of code objects of version 6.
    fn make_abi_library(&self) -> Result<PathBuf, CompileError> {
        self.compile_library("abi", "const __constant int __oclc_ABI_version = 600;\n")
    }

    /// Compiles a text to a library that is compatible with all code object versions.
    fn compile_library(&self, name: &str, text: &str) -> Result<PathBuf, CompileError> {
        let source = self.write(&format!("{name}.cl"), text)?;
        let made = self.work.join(format!("{name}.bc"));
        const NO_VERSION: [&str; 2] = ["-Xclang", "-mcode-object-version=none"];
        let mut command = Command::new(self.clang);
        command.args(["-xcl", "--target=amdgcn-amd-amdhsa", "-nogpulib"]).args(NO_VERSION);
        command.args(["-emit-llvm", "-c", "-o"]).arg(&made).arg(&source);
        self.run(command, &source)?;
        Ok(made)
    }

    /// Returns a copy of a library with texts in its IR replaced: pairs of the old and the new text.
    fn rewrite_library(
        &self,
        library: &Path,
        texts: &[(&str, &str)],
    ) -> Result<PathBuf, CompileError> {
        let mut command = self.program("llvm-dis")?;
        command.args(["-o", "-"]).arg(library);
        let text = self.run(command, library)?;
        let text = String::from_utf8_lossy(&text).into_owned();
        let replace = |text: String, (old, new): &(&str, &str)| text.replace(old, new);
        let source = self.write("library.ll", &texts.iter().fold(text, replace))?;
        let made = self.work.join(library.file_name().unwrap_or_default());
        let mut command = self.program("llvm-as")?;
        command.arg("-o").arg(&made).arg(&source);
        self.run(command, &source)?;
        Ok(made)
    }

    fn write(&self, name: &str, text: &str) -> Result<PathBuf, CompileError> {
        let path = self.work.join(name);
        std::fs::write(&path, text)
            .map_err(|reason| CompileError::Cache { path: path.clone(), reason })?;
        Ok(path)
    }

    /// Returns an LLVM program found by the compiler.
    fn program(&self, name: &str) -> Result<Command, CompileError> {
        let mut command = Command::new(self.clang);
        command.arg(format!("--print-prog-name={name}"));
        let path = self.run(command, Path::new(name))?;
        let program = PathBuf::from(String::from_utf8_lossy(&path).trim());
        // clang prints only the name if it does not find the program.
        if !program.is_absolute() {
            return Err(CompileError::Tool { program, package: package("llvm", self.version) });
        }
        Ok(Command::new(program))
    }

    /// Runs a program and returns its output.
    fn run(&self, mut command: Command, source: &Path) -> Result<Vec<u8>, CompileError> {
        let program = PathBuf::from(command.get_program());
        let output = flipwave_host::child::run(&mut command, b"")
            .map_err(|error| CompileError::from_child_error(&program, error))?;
        if !output.status.success() {
            return Err(CompileError::Rejected {
                source_file: source.to_owned(),
                status: output.status,
                messages: String::from_utf8_lossy(&output.stderr).into_owned(),
                hint: String::new(),
            });
        }
        Ok(output.stdout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_versions_match_the_libraries() {
        for (processor, expected) in [
            ("gfx906", 9006),
            ("gfx90a", 9010),
            ("gfx942", 9402),
            ("gfx1030", 10300),
            ("gfx1100", 11000),
            ("gfx1201", 12001),
            ("gfx9-4-generic", 9400),
            ("gfx12-generic", 12000),
        ] {
            let target: Target = processor.parse().expect("a target");
            assert_eq!(version(&target), expected, "{processor}");
        }
    }

    #[test]
    fn error_names_the_missing_package() {
        let error = find(vec!["/nowhere".into()]).expect_err("no libraries");
        assert!(error.to_string().contains("rocm-device-libs"), "{error}");
    }
}
