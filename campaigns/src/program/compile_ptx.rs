//! Compiles kernels to PTX with clang: OpenCL C with the library of libclc, and CUDA without NVIDIA's headers.

use crate::program::compile::{CompileError, Compiler, Language, readable};
use flipwave_arch::Architecture;
use flipwave_hooks::hook::HEADER;
use flipwave_ptx::Ptx;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Functions of NVIDIA's libdevice that libclc calls.
const OPENCL_HEADER: &str = include_str!("headers/flipwave_libdevice.h");
/// Declarations of CUDA C++.
const CUDA_HEADER: &str = include_str!("headers/flipwave_cuda.h");
/// File of libclc.
const LIBRARY: &str = "nvptx64--nvidiacl.bc";
/// Extensions that clang does not enable for PTX, although its instructions have them.
const ATOMICS: &str = "-cl-ext=+cl_khr_int64_base_atomics,+cl_khr_int64_extended_atomics";
/// Folders of libclc in distributions.
const FOLDERS: [&str; 3] = ["/usr/lib/clc", "/usr/share/clc", "/usr/local/share/clc"];

impl Compiler {
    /// Returns the PTX of `source`, compiled with `options` for a target such as `sm_80`, or taken from the
    /// cache. Multiplications and additions are not fused, so that PTX determines all results.
    ///
    /// # Errors
    /// [`CompileError`].
    pub(crate) fn compile_ptx(
        &self,
        source: &Path,
        options: &[String],
        ptx: &Ptx,
    ) -> Result<Vec<u8>, CompileError> {
        let target = ptx.target();
        let language = Language::from_path(source)?;
        readable(source)?;
        self.write_header("flipwave.h", HEADER)?;
        let mut arguments: Vec<OsString> = Vec::new();
        let mut libraries = String::new();
        match language {
            Language::OpenClC => {
                let library = opencl_library()?;
                libraries = library.display().to_string();
                let header = self.write_header("flipwave_libdevice.h", OPENCL_HEADER)?;
                let fixed = ["-xcl", "-cl-std=CL2.0", "-Xclang", "-finclude-default-header"];
                arguments.extend(fixed.map(OsString::from));
                arguments.extend(
                    ["--target=nvptx64-nvidia-nvcl", "-Wno-linker-warnings"].map(OsString::from),
                );
                arguments.extend(["-Xclang".into(), ATOMICS.into(), "-Xclang".into()]);
                arguments.extend(["-mlink-builtin-bitcode", "-Xclang"].map(OsString::from));
                arguments.extend([library.into(), "-include".into(), header.into()]);
                arguments.push(format!("-march={target}").into());
            }
            Language::Cuda => {
                let header = self.write_header("flipwave_cuda.h", CUDA_HEADER)?;
                let fixed = ["-xcuda", "--cuda-device-only", "-nocudainc", "-nocudalib"];
                arguments.extend(fixed.map(OsString::from));
                arguments.extend(["-Wno-unknown-cuda-version", "-include"].map(OsString::from));
                arguments.push(header.into());
                arguments.push(format!("--cuda-gpu-arch={target}").into());
            }
            Language::Hip => {
                return Err(CompileError::OtherTarget {
                    source_file: source.to_owned(),
                    language: "HIP",
                    target: target.to_owned(),
                    expected: "a target such as gfx90a, or CUDA (.cu)",
                });
            }
        }
        let (major, minor) = ptx.oldest_version();
        let feature = format!("+ptx{major}{minor}");
        arguments.extend(["-Xclang", "-target-feature", "-Xclang"].map(OsString::from));
        arguments.extend([feature.into(), "-ffp-contract=off".into(), "-S".into()]);
        // Line tables as in PTX's `.file`, whose names are relative to the source.
        let debug = ["-gline-tables-only", "-gdwarf-2", "-fno-dwarf-directory-asm"];
        arguments.extend(debug.map(OsString::from));
        arguments.push("-ffile-compilation-dir=.".into());
        arguments.push(format!("-fdebug-prefix-map={}=.", self.include_folder().display()).into());
        // The folder of flipwave.h.
        arguments.extend(["-idirafter".into(), self.include_folder().into()]);
        arguments.extend(options.iter().map(OsString::from));
        self.compile_cached(source, options, &arguments, &libraries, "ptx")
    }
}

/// Finds libclc's library: `FLIPWAVE_LIBCLC`, or the location in distributions.
fn opencl_library() -> Result<PathBuf, CompileError> {
    let named = std::env::var_os("FLIPWAVE_LIBCLC").map(PathBuf::from);
    let searched: Vec<PathBuf> = match named {
        Some(folder) => vec![folder],
        None => FOLDERS.map(PathBuf::from).into(),
    };
    let found = searched.iter().map(|folder| folder.join(LIBRARY)).find(|file| file.is_file());
    found.ok_or(CompileError::OpenClLibrary { searched })
}
