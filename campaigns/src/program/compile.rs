//! Compiles kernels with clang, and caches the code objects.
//!
//! The cache key of a code object is a digest of everything it is made from: the preprocessed source
//! (including all headers), the flags, the compiler's version, and the device libraries. A source without
//! `#include` is not preprocessed, because starting the compiler takes longer than many injections.

use crate::digest::hexadecimal;
use crate::program::{device_libraries, heap};
use flipwave_hooks::hook::{HEADER, clang_major, clang_path, clang_version, is_self_contained};
use flipwave_host::cache::Cache;
use flipwave_host::child::ChildError;
use flipwave_isa::Target;
use sha2::{Digest, Sha256};
use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Language of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    /// OpenCL C, files `.cl`.
    OpenClC,
    /// HIP, files `.hip`.
    Hip,
    /// CUDA C++, files `.cu`.
    Cuda,
}

impl Language {
    /// Returns the language of a source file, by its extension.
    ///
    /// # Errors
    /// [`CompileError::UnknownLanguage`].
    pub fn from_path(source: &Path) -> Result<Language, CompileError> {
        match source.extension().and_then(|extension| extension.to_str()) {
            Some("cl") => Ok(Language::OpenClC),
            Some("hip") => Ok(Language::Hip),
            Some("cu") => Ok(Language::Cuda),
            _ => Err(CompileError::UnknownLanguage { source_file: source.to_owned() }),
        }
    }
}

/// Errors returned when a kernel cannot be compiled.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The file extension is unknown.
    #[error("{}: unknown file extension; expected .cl (OpenCL C), .hip (HIP) or .cu (CUDA)", source_file.display())]
    UnknownLanguage {
        /// The file.
        source_file: PathBuf,
    },
    /// The language has no code for the target.
    #[error("{}: {language} cannot be compiled for {target}; expected {expected}", source_file.display())]
    OtherTarget {
        /// The file.
        source_file: PathBuf,
        /// The language.
        language: &'static str,
        /// The target.
        target: String,
        /// Targets and languages that fit.
        expected: &'static str,
    },
    /// The library of OpenCL's functions for PTX is missing.
    #[error(
        "no OpenCL library for PTX (nvptx64--nvidiacl.bc), which OpenCL C requires, in {}; install \
         Debian's package libclc-22, or set FLIPWAVE_LIBCLC to the folder that contains it",
        searched.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    OpenClLibrary {
        /// Folders that were searched.
        searched: Vec<PathBuf>,
    },
    /// The source cannot be read.
    #[error("cannot read the kernel's source {}: {reason}", source_file.display())]
    Source {
        /// The file.
        source_file: PathBuf,
        /// Cause.
        reason: std::io::Error,
    },
    /// The compiler cannot be run.
    #[error(
        "cannot use the compiler `{}`: {reason}; install Debian's packages clang-22 and lld-22, or \
         other versions since clang-18, or set FLIPWAVE_CLANG to clang's path",
        clang.display()
    )]
    Clang {
        /// The program.
        clang: PathBuf,
        /// Cause.
        reason: std::io::Error,
    },
    /// The compiler was interrupted.
    #[error("interrupted while the compiler `{}` was running", clang.display())]
    Interrupted {
        /// The program.
        clang: PathBuf,
    },
    /// A program that adapts device libraries to the compiler is missing.
    #[error(
        "missing program `{}`, which adapts device libraries before ROCm 6.3 to the compiler; install \
         Debian's package {package}",
        program.display()
    )]
    Tool {
        /// The program.
        program: PathBuf,
        /// Debian package that contains it.
        package: String,
    },
    /// The device libraries are missing.
    #[error(
        "no AMDGPU device libraries (ockl.bc and others), which OpenCL C and HIP kernels require, in {}; \
         install Debian's package rocm-device-libs (rocm-device-libs-17 in Debian 13, -21 in testing), \
         or set FLIPWAVE_DEVICE_LIBS to the folder that contains them",
        searched.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    DeviceLibraries {
        /// Folders that were searched.
        searched: Vec<PathBuf>,
    },
    /// The compiler reported an error.
    #[error("{} does not compile ({status}):\n{messages}{hint}", source_file.display())]
    Rejected {
        /// The source.
        source_file: PathBuf,
        /// Exit status of the compiler.
        status: std::process::ExitStatus,
        /// Messages of the compiler.
        messages: String,
        /// Advice, if the messages reveal the cause.
        hint: String,
    },
    /// The cache cannot be used.
    #[error(
        "cannot cache compiled kernels in {}: {reason}; set FLIPWAVE_CACHE to another folder",
        path.display()
    )]
    Cache {
        /// The file or folder.
        path: PathBuf,
        /// Cause.
        reason: std::io::Error,
    },
}

impl CompileError {
    /// Converts the error of running a program of the compiler.
    pub(crate) fn from_child_error(program: &Path, error: ChildError) -> CompileError {
        let clang = program.to_owned();
        match error {
            ChildError::Run(reason) => CompileError::Clang { clang, reason },
            ChildError::Interrupted => CompileError::Interrupted { clang },
        }
    }
}

/// The compiler, its device libraries, and the cache of code objects.
#[derive(Clone, Debug)]
pub struct Compiler {
    clang: PathBuf,
    version: String,
    rocm: PathBuf,
    cache: Cache,
    /// Folder of the header `flipwave.h`.
    include: PathBuf,
}

impl Compiler {
    /// Finds clang ([`clang_path`]) and the cache folder (`FLIPWAVE_CACHE`, or `flipwave` in the user's
    /// cache folder).
    ///
    /// # Errors
    /// [`CompileError::Clang`].
    pub fn find() -> Result<Compiler, CompileError> {
        let clang = clang_path();
        let version =
            clang_version(&clang).map_err(|error| CompileError::from_child_error(&clang, error))?;
        let cache = Cache::find();
        let digest = hexadecimal(&Sha256::digest(HEADER));
        Ok(Compiler {
            version,
            clang,
            rocm: find_rocm(),
            include: cache.folder().join(format!("include-{}", &digest[..16])),
            cache,
        })
    }

    /// Returns the version text that the compiler prints.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the code object of `source`, compiled with `options` for `target` or for the generic
    /// target in `options`, or taken from the cache. The compiler runs in the source's folder, so include
    /// paths are relative to it.
    ///
    /// # Errors
    /// [`CompileError`].
    pub fn compile(
        &self,
        source: &Path,
        options: &[String],
        target: &Target,
    ) -> Result<Vec<u8>, CompileError> {
        self.compile_with(source, options, target, &[])
    }

    /// Like [`Compiler::compile`], for a HIP source that allocates memory: device-side `malloc` takes
    /// memory from the heap, and does not call the host.
    ///
    /// # Errors
    /// [`CompileError`].
    pub(crate) fn compile_with_heap(
        &self,
        source: &Path,
        options: &[String],
        target: &Target,
    ) -> Result<Vec<u8>, CompileError> {
        let header = self.write_header("flipwave_heap.h", heap::HEADER)?;
        let size = format!("-DFLIPWAVE_HEAP_BYTES={}ul", heap::HEAP_BYTES);
        self.compile_with(source, options, target, &["-include".into(), header.into(), size.into()])
    }

    /// Compiles a source with additional arguments of the compiler.
    fn compile_with(
        &self,
        source: &Path,
        options: &[String],
        target: &Target,
        more: &[OsString],
    ) -> Result<Vec<u8>, CompileError> {
        let language = Language::from_path(source)?;
        if language == Language::Cuda {
            return Err(CompileError::OtherTarget {
                source_file: source.to_owned(),
                language: "CUDA",
                target: target.to_string(),
                expected: "a target such as sm_80, or HIP (.hip)",
            });
        }
        readable(source)?;
        let target = &compiled_for(options, target);
        let libraries = self.device_libraries(target)?;
        self.write_header("flipwave.h", HEADER)?;
        let mut arguments = self.arguments(language, options, target, &libraries);
        arguments.extend_from_slice(more);
        let versions = library_versions(&device_libraries::installed(&self.version)?);
        self.compile_cached(source, options, &arguments, &versions, "co")
    }

    /// Compiles a source with these arguments, or takes the output from the cache. `libraries` identifies
    /// the libraries that are linked.
    pub(super) fn compile_cached(
        &self,
        source: &Path,
        options: &[String],
        arguments: &[OsString],
        libraries: &str,
        extension: &str,
    ) -> Result<Vec<u8>, CompileError> {
        let digest = self.digest(source, options, arguments, libraries)?;
        let cached = format!("{digest}.{extension}");
        if let Some(output) = self.cache.get(&cached) {
            return Ok(output);
        }
        let failed = |reason| CompileError::Cache { path: self.cache.path(&cached), reason };
        let folder = tempfile::tempdir().map_err(failed)?;
        let made = folder.path().join("made");
        self.run(source, arguments, &["-o".into(), made.clone().into()])?;
        let output =
            flipwave_host::input::read(&made, flipwave_host::input::BINARY).map_err(failed)?;
        self.cache.put(&cached, &output).map_err(failed)?;
        Ok(output)
    }

    /// Returns the folder with the device libraries that the compiler links for a target.
    ///
    /// # Errors
    /// The errors of [`Compiler::compile`].
    pub fn device_libraries(&self, target: &Target) -> Result<PathBuf, CompileError> {
        let libraries = device_libraries::installed(&self.version)?;
        device_libraries::adapted(&libraries, target, &self.clang, &self.version, &self.cache)
    }

    fn arguments(
        &self,
        language: Language,
        options: &[String],
        target: &Target,
        libraries: &Path,
    ) -> Vec<OsString> {
        let mut arguments: Vec<OsString> = match language {
            Language::OpenClC => [
                "-xcl",
                "-cl-std=CL2.0",
                "-Xclang",
                "-finclude-default-header",
                "--target=amdgcn-amd-amdhsa",
            ]
            .map(OsString::from)
            .into(),
            Language::Hip | Language::Cuda => {
                let rocm = self.rocm.display();
                // Without the bundle, the output is the code object itself.
                ["-xhip", "--cuda-device-only", "--no-gpu-bundle-output"]
                    .map(OsString::from)
                    .into_iter()
                    .chain([format!("--rocm-path={rocm}").into()])
                    .collect()
            }
        };
        arguments.push(match language {
            Language::OpenClC => format!("-mcpu={target}").into(),
            Language::Hip | Language::Cuda => format!("--offload-arch={target}").into(),
        });
        arguments.push(format!("--rocm-device-lib-path={}", libraries.display()).into());
        // clang 22 writes version 6 by default, for which device libraries before ROCm 6.3 have no
        // constant. Version 5 does not support generic targets.
        let version = if target.is_generic() { 6 } else { 5 };
        arguments.push(format!("-mcode-object-version={version}").into());
        let wide = options.iter().rev().find_map(|option| match &**option {
            "-mwavefrontsize64" => Some(64),
            "-mno-wavefrontsize64" => Some(32),
            _ => None,
        });
        let lanes = wide.unwrap_or_else(|| target.default_wave_size());
        if language == Language::Hip {
            // HIP's headers use it before version 6.4; clang defines it before version 21.
            arguments.push(format!("-D__AMDGCN_WAVEFRONT_SIZE={lanes}").into());
        }
        // Line tables give the source line of a fault without changing the code. File names are relative
        // to the source, so the code object does not depend on the source's location.
        arguments.extend(["-gline-tables-only".into(), "-ffile-compilation-dir=.".into()]);
        // The folder of flipwave.h.
        arguments.extend(["-idirafter".into(), self.include.clone().into()]);
        let options = options.iter().filter(|option| named_target(option).is_none());
        arguments.extend(options.map(OsString::from));
        arguments
    }

    /// Folder of the headers.
    pub(super) fn include_folder(&self) -> &Path {
        &self.include
    }

    /// Writes a header to the include folder. Returns its path.
    pub(super) fn write_header(&self, name: &str, content: &str) -> Result<PathBuf, CompileError> {
        let folder = self.include.file_name().unwrap_or_default().to_string_lossy();
        let name = format!("{folder}/{name}");
        self.cache
            .file(&name, content.as_bytes())
            .map_err(|reason| CompileError::Cache { path: self.include.clone(), reason })
    }

    /// Returns the digest of everything a code object is made from.
    fn digest(
        &self,
        source: &Path,
        options: &[String],
        arguments: &[OsString],
        libraries: &str,
    ) -> Result<String, CompileError> {
        let unread = |reason| CompileError::Source { source_file: source.to_owned(), reason };
        let text =
            flipwave_host::input::read(source, flipwave_host::input::TEXT).map_err(unread)?;
        let is_self_contained = Language::from_path(source)? == Language::OpenClC
            && options.iter().all(|option| names_no_file(option))
            && str::from_utf8(&text).is_ok_and(is_self_contained);
        let text = if is_self_contained {
            text
        } else {
            self.run(source, arguments, &["-E".into()])?.stdout
        };
        let mut digest = Sha256::new();
        let mut add = |bytes: &[u8]| {
            digest.update((bytes.len() as u64).to_le_bytes());
            digest.update(bytes);
        };
        add(self.version.as_bytes());
        // The text, and whether it is preprocessed; a preprocessed text contains the source's name.
        add(&[u8::from(is_self_contained)]);
        add(source.file_name().unwrap_or_default().as_encoded_bytes());
        add(&text);
        for argument in arguments {
            add(argument.as_encoded_bytes());
        }
        add(libraries.as_bytes());
        Ok(hexadecimal(&digest.finalize()))
    }

    /// Runs the compiler on `source`.
    fn run(
        &self,
        source: &Path,
        arguments: &[OsString],
        more: &[OsString],
    ) -> Result<Output, CompileError> {
        let folder = match source.parent() {
            Some(folder) if folder != Path::new("") => folder,
            _ => Path::new("."),
        };
        let mut command = Command::new(&self.clang);
        command.current_dir(folder).args(arguments).args(more).arg("--");
        command.arg(source.file_name().unwrap_or_default());
        let output = flipwave_host::child::run(&mut command, b"")
            .map_err(|error| CompileError::from_child_error(&self.clang, error))?;
        if !output.status.success() {
            let messages = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
            return Err(CompileError::Rejected {
                source_file: source.to_owned(),
                status: output.status,
                hint: hint(&messages, &self.version),
                messages,
            });
        }
        Ok(output)
    }
}

/// Checks that a source can be read.
pub(super) fn readable(source: &Path) -> Result<(), CompileError> {
    flipwave_host::input::open(source)
        .map(drop)
        .map_err(|reason| CompileError::Source { source_file: source.to_owned(), reason })
}

/// Returns the generic target that an option selects.
fn named_target(option: &str) -> Option<Target> {
    let name = ["-mcpu=", "--offload-arch="].iter().find_map(|name| option.strip_prefix(name))?;
    name.parse().ok().filter(Target::is_generic)
}

/// Returns the target to compile for: the generic target in the options, or the device's target.
fn compiled_for(options: &[String], target: &Target) -> Target {
    options.iter().rev().find_map(|option| named_target(option)).unwrap_or_else(|| target.clone())
}

/// Returns `true` for common options that cannot refer to a file or to the time.
fn names_no_file(option: &str) -> bool {
    ["-D", "-O", "-cl-", "-m"].iter().any(|start| option.starts_with(start))
        && is_self_contained(option)
}

/// Returns the Debian package of a program for a compiler version, for example `lld-22`.
pub(crate) fn package(name: &str, version: &str) -> String {
    format!("{name}-{}", clang_major(version).unwrap_or(22))
}

/// Returns what to install, if the compiler's messages show that something is missing.
pub(crate) fn hint(messages: &str, version: &str) -> String {
    let package = if messages.contains("ld.lld") {
        package("lld", version)
    } else if messages.contains("HIP runtime") || messages.contains("hip/hip_") {
        "libamdhip64-dev".to_owned()
    } else if messages.contains("'cmath' file not found") {
        "libstdc++-12-dev".to_owned()
    } else {
        return String::new();
    };
    format!("\nInstall Debian's package {package}.")
}

/// Returns the folder whose `include/hip` contains HIP's headers: ROCM_PATH, or the location in
/// distributions.
fn find_rocm() -> PathBuf {
    let installed: Option<PathBuf> = std::env::var_os("ROCM_PATH").map(PathBuf::from);
    installed
        .into_iter()
        .chain(["/usr".into(), "/opt/rocm".into()])
        .find(|folder| folder.join("include/hip/hip_runtime.h").is_file())
        // clang then reports the missing headers.
        .unwrap_or_else(|| "/usr".into())
}

/// Lists names, sizes and modification times of the device libraries, one line each: `opencl.bc 123456
/// 1700000000000000000`. Times are in nanoseconds since 1970, negative before, and omitted if the system
/// provides none. The text is part of the cache key of code objects.
fn library_versions(folder: &Path) -> String {
    let mut lines: Vec<String> = std::fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| {
            let mut line = entry.file_name().to_string_lossy().into_owned();
            if let Ok(metadata) = std::fs::metadata(entry.path()) {
                // Writing to a string cannot fail.
                let _ = write!(line, " {}", metadata.len());
                if let Ok(time) = metadata.modified() {
                    let _ = write!(line, " {}", nanoseconds(time));
                }
            }
            line
        })
        .collect();
    lines.sort();
    lines.join("\n")
}

/// Converts a time to nanoseconds since 1970.
fn nanoseconds(time: SystemTime) -> i128 {
    let count = |duration: Duration| i128::try_from(duration.as_nanos()).unwrap_or(i128::MAX);
    match time.duration_since(UNIX_EPOCH) {
        Ok(since) => count(since),
        Err(error) => -count(error.duration()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KERNEL: &str = "#include \"value.h\"\n\
        kernel void set(global int *out) { out[get_global_id(0)] = VALUE; }\n";

    /// Creates a folder with a kernel and its header, and a compiler with a cache in it.
    fn compiler() -> (tempfile::TempDir, Compiler, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let source = folder.path().join("set.cl");
        std::fs::write(&source, KERNEL).expect("written");
        std::fs::write(folder.path().join("value.h"), "#define VALUE 1\n").expect("written");
        let mut compiler = Compiler::find().expect("a compiler");
        compiler.cache = Cache::at(folder.path().join("cache"));
        (folder, compiler, source)
    }

    fn gfx90a() -> Target {
        "gfx90a".parse().expect("a target")
    }

    /// Returns the names of the cached code objects, without device libraries.
    fn kept(folder: &tempfile::TempDir) -> Vec<String> {
        let entries = std::fs::read_dir(folder.path().join("cache")).expect("a folder");
        let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<String> = names.filter(|name| name.ends_with(".co.kept")).collect();
        names.sort();
        names
    }

    #[test]
    fn code_is_recompiled_only_if_an_input_changes() {
        let (folder, compiler, source) = compiler();
        let compile = |options: &[&str]| {
            let options: Vec<String> = options.iter().map(|&option| option.to_owned()).collect();
            compiler.compile(&source, &options, &gfx90a()).expect("compiles")
        };
        let first = compile(&["-O3"]);
        assert_eq!(first[..4], *b"\x7fELF");
        assert_eq!(compile(&["-O3"]), first);
        assert_eq!(kept(&folder).len(), 1);
        compile(&["-O0"]);
        assert_eq!(kept(&folder).len(), 2);
        std::fs::write(folder.path().join("value.h"), "#define VALUE 2\n").expect("written");
        assert_ne!(compile(&["-O3"]), first);
        assert_eq!(kept(&folder).len(), 3);
    }

    #[test]
    fn cached_code_object_is_used_unless_damaged() {
        let (folder, compiler, source) = compiler();
        let options = ["-O3".to_owned()];
        let compile = || compiler.compile(&source, &options, &gfx90a()).expect("compiles");
        let first = compile();
        let name = kept(&folder).remove(0);
        compiler.cache.put(name.trim_end_matches(".kept"), b"kept").expect("written");
        assert_eq!(compile(), b"kept");
        std::fs::write(folder.path().join("cache").join(name), &first).expect("damaged");
        assert_eq!(compile(), first);
    }

    #[test]
    fn cached_source_without_include_needs_no_compiler() {
        let (folder, mut compiler, source) = compiler();
        let write = |value| {
            let text = format!("kernel void set(global int *out) {{ *out = {value}; }}\n");
            std::fs::write(&source, text).expect("written");
        };
        let compile = |compiler: &Compiler, option: &str| {
            compiler.compile(&source, &[option.to_owned()], &gfx90a())
        };
        write(1);
        let one = compile(&compiler, "-O3").expect("compiles");
        write(2);
        assert_ne!(compile(&compiler, "-O3").expect("compiles"), one);
        assert_eq!(kept(&folder).len(), 2);
        write(1);
        compiler.clang = "/nowhere/clang".into();
        assert_eq!(compile(&compiler, "-O3").expect("kept"), one);
        // Another option requires compilation, and so does an option that refers to a file or the time.
        for option in ["-O1", "-includevalue.h", "-DNOW=__TIME__"] {
            compile(&compiler, option).expect_err("no compiler");
        }
    }

    #[test]
    fn library_version_text_is_fixed() {
        let folder = tempfile::tempdir().expect("a folder");
        let times = [
            ("b.bc", UNIX_EPOCH + Duration::new(1_700_000_000, 5)),
            ("a.bc", UNIX_EPOCH - Duration::new(1, 500_000_000)),
        ];
        for (name, time) in times {
            let file = std::fs::File::create(folder.path().join(name)).expect("created");
            file.set_len(7).expect("grown");
            file.set_modified(time).expect("a time");
        }
        let expected = "a.bc 7 -1500000000\nb.bc 7 1700000000000000005";
        assert_eq!(library_versions(folder.path()), expected);
    }

    #[test]
    fn error_contains_the_messages_of_the_compiler() {
        let (folder, compiler, source) = compiler();
        std::fs::write(&source, "kernel void broken( {}\n").expect("written");
        let error = compiler.compile(&source, &[], &gfx90a()).expect_err("does not compile");
        assert!(error.to_string().contains("set.cl:1:"), "{error}");
        assert_eq!(kept(&folder).len(), 0);
    }

    #[test]
    fn error_names_the_missing_package() {
        let (_folder, mut compiler, source) = compiler();
        compiler.clang = "/nowhere/clang".into();
        let error = compiler.compile(&source, &[], &gfx90a()).expect_err("no compiler");
        assert!(error.to_string().contains("clang-22"), "{error}");
        let error = compiler.compile(Path::new("kernel.cu"), &[], &gfx90a()).expect_err("no HIP");
        assert!(error.to_string().contains(".hip"), "{error}");
        let without_linker = "error: unable to execute command: Executable \"ld.lld\"";
        for (version, package) in [("clang version 19.1.7", "lld-19"), ("AMD's own", "lld-22")] {
            assert!(hint(without_linker, version).contains(package), "{version}");
        }
    }
}
