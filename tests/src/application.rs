//! HIP programs as users have them: built by a vendor's compiler, without any Flipwave code.

use crate::Once;
use flipwave_isa::Target;
use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A compiler for complete HIP programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// AMD's compiler driver, with its own compiler.
    Hipcc,
    /// Upstream clang, several years newer, which generates different code.
    Clang,
    /// Upstream clang with preloaded kernel arguments, which later versions enable by default.
    Preloading,
}

impl Compiler {
    /// The compilers that generate different code.
    pub const ALL: [Compiler; 2] = [Compiler::Hipcc, Compiler::Clang];

    /// The command, and the Debian package that contains it.
    fn program(self) -> (&'static str, &'static str) {
        match self {
            Compiler::Hipcc => ("hipcc", "hipcc"),
            Compiler::Clang | Compiler::Preloading => ("clang++-22", "clang-22"),
        }
    }

    /// The compiler's command line for HIP with additional options.
    fn command(self, target: &str, options: &[&str]) -> Command {
        let mut command = Command::new(self.program().0);
        // `options` may override the optimisation level.
        command.arg(format!("--offload-arch={target}")).arg("-O2").args(options);
        if self == Compiler::Preloading {
            command.args(["-mllvm", "-amdgpu-kernarg-preload-count=8"]);
        }
        if self != Compiler::Hipcc {
            command.args(["-xhip", "--rocm-path=/usr"]);
            let processor: Target = target.parse().expect("a target");
            let clang = flipwave_campaigns::Compiler::find().expect("clang");
            let libraries = clang.device_libraries(&processor).expect("device libraries");
            command.arg(format!("--rocm-device-lib-path={}", libraries.display()));
            // The latest version that HIP 5.2 supports.
            command.arg("-mcode-object-version=4");
            // HIP 5.2's headers use this macro, which clang defined until version 21.
            let lanes = processor.default_wave_size();
            command.arg(format!("-D__AMDGCN_WAVEFRONT_SIZE={lanes}"));
            // Kernels that print or call through pointers would request a device queue, for which
            // HIP 5.2 dereferences a null pointer.
            command.args(["-Xclang", "-default-function-attr"]);
            command.args(["-Xclang", "amdgpu-no-completion-action"]);
        }
        command
    }

    /// Output of the compiler's `--version`.
    fn version(self) -> Vec<u8> {
        static VERSIONS: Once<&str, Vec<u8>> = Once::new();
        let (program, _) = self.program();
        VERSIONS.get(program, || self.run(Command::new(program).arg("--version")).stdout)
    }

    fn run(self, command: &mut Command) -> Output {
        let (program, package) = self.program();
        command.output().unwrap_or_else(|error| {
            panic!("{program}: {error} (Debian's package {package} is needed by these tests)")
        })
    }
}

/// Folder of the test programs.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("applications")
}

/// Folder of benchmarks that are complete programs.
fn benchmarks_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/programs")
}

/// Names of the programs that succeed. Failing ones are in the folder `failing`.
pub fn applications() -> Vec<String> {
    named(&folder(), "")
}

/// Names of the programs that fail, such as `failing/endless`.
pub fn failing_applications() -> Vec<String> {
    named(&folder(), "failing/")
}

/// Names of the benchmarks that are complete programs.
pub fn benchmarks() -> Vec<String> {
    named(&benchmarks_folder(), "")
}

fn named(folder: &Path, under: &str) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder.join(under))
        .expect("the folder of programs")
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter_map(|file| Some(format!("{under}{}", file.strip_suffix(".hip")?)))
        .filter(|name| !name.ends_with(".kernel"))
        .collect();
    names.sort();
    names
}

/// Builds a program for a target, if needed. Returns its path.
pub fn application(name: &str, compiler: Compiler, target: &str) -> PathBuf {
    build(&source(name), compiler, target, &[], &[], &["-lamdhip64"])
}

/// Builds a benchmark with full optimisation, if needed, with host code for this machine. Returns its
/// path.
pub fn benchmark(name: &str, target: &str) -> PathBuf {
    let source = benchmarks_folder().join(format!("{name}.hip"));
    let level = ["-O3", "-Xarch_host", NATIVE];
    build(&source, Compiler::Hipcc, target, &level, &[], &["-lamdhip64"])
}

/// Builds a program with code for several targets, if needed. Returns its path.
pub fn application_for(name: &str, compiler: Compiler, targets: &[&str]) -> PathBuf {
    let options: Vec<String> =
        targets.iter().skip(1).map(|target| format!("--offload-arch={target}")).collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    build(&source(name), compiler, targets[0], &[], &options, &["-lamdhip64"])
}

/// Builds an MPI program with the options that `mpicxx` reports, if needed. Returns its path, or `None`
/// without MPI, with a message that is shown even if the test's output is captured.
pub fn mpi_application(name: &str, target: &str) -> Option<PathBuf> {
    let words = |question: &str| {
        let answer = Command::new("mpicxx").arg(question).output().ok()?;
        Some(String::from_utf8_lossy(&answer.stdout).trim().to_owned())
    };
    let has_launcher = Command::new("mpirun").arg("--version").output().is_ok();
    let options = words("--showme:compile").filter(|_| has_launcher);
    let Some((options, libraries)) = options.zip(words("--showme:link")) else {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: there is no Open MPI here, so no MPI ranks are run; `./dependencies.sh test` \
             installs it where apt has it"
        );
        return None;
    };
    let options: Vec<&str> = options.split_whitespace().collect();
    let libraries: Vec<&str> = libraries.split_whitespace().chain(["-lamdhip64"]).collect();
    Some(build(&source(name), Compiler::Hipcc, target, &[], &options, &libraries))
}

/// Builds the code object that a program loads at run time (`module.kernel` for `module`), if needed.
/// Returns its path.
pub fn application_module(name: &str, compiler: Compiler, target: &str) -> PathBuf {
    let alone: &[&str] = match compiler {
        // Writes a bundle of code objects.
        Compiler::Hipcc => &["--genco"],
        Compiler::Clang | Compiler::Preloading => &["--cuda-device-only", "--no-gpu-bundle-output"],
    };
    build(&source(&format!("{name}.kernel")), compiler, target, &[], alone, &[])
}

/// An application's source.
fn source(name: &str) -> PathBuf {
    folder().join(format!("{name}.hip"))
}

/// Builds a source file. Uses precompiled headers unless there are options other than the optimisation
/// level.
fn build(
    source: &Path,
    compiler: Compiler,
    target: &str,
    level: &[&str],
    options: &[&str],
    libraries: &[&str],
) -> PathBuf {
    let mut command = compiler.command(target, &[level, options].concat());
    let text = std::fs::read_to_string(source).expect("a source");
    if COMMON.iter().any(|header| text.contains(header)) && options.is_empty() {
        command.arg("-include").arg(precompiled(compiler, target, level));
    }
    command.arg(source).args(libraries);

    let built = builds().join(format!("{:016x}", digest(source, compiler, &command)));
    let program = built.join(source.file_stem().expect("a name"));
    // One test compiles while others wait, so a program never changes while a campaign runs it.
    static BUILT: Once<PathBuf, PathBuf> = Once::new();
    BUILT.get(program.clone(), || {
        compile(compiler, source, command, &program);
        program
    })
}

/// Headers of which most programs include one. The others include the first one, which includes HIP's.
const COMMON: [&str; 2] = ["check.h", "program.h"];

/// Precompiles the first of [`COMMON`] for a compiler, a target and an optimisation level, because
/// headers take three quarters of a program's compile time. Returns a path for `-include`. The folder
/// next to it contains a host and a device version, from which clang selects (Clang Compiler User's
/// Manual, "Precompiled Headers").
fn precompiled(compiler: Compiler, target: &str, level: &[&str]) -> PathBuf {
    let header = folder().join(COMMON[0]);
    let command = |options: &[&str]| {
        let mut command = compiler.command(target, &[level, options].concat());
        command.args(["-x", "hip"]).arg(&header);
        command
    };
    let mut hasher = DefaultHasher::new();
    digest(&header, compiler, &command(&[])).hash(&mut hasher);
    // Clang refuses a precompiled header if the header's modification time has changed.
    std::fs::metadata(&header)
        .and_then(|metadata| metadata.modified())
        .expect("a time")
        .hash(&mut hasher);
    let path = builds().join(format!("{:016x}", hasher.finish())).join(COMMON[0]);

    static PRECOMPILED: Once<PathBuf, ()> = Once::new();
    PRECOMPILED.get(path.clone(), || {
        for (side, option) in [("device", "--cuda-device-only"), ("host", "--cuda-host-only")] {
            let command = command(&[option, "-S", "-Xclang", "-emit-pch"]);
            compile(compiler, &header, command, &path.with_extension("h.pch").join(side));
        }
    });
    path
}

/// Compiles a source file, unless the output exists.
fn compile(compiler: Compiler, source: &Path, mut command: Command, output: &Path) {
    if output.is_file() {
        return;
    }
    let folder = output.parent().expect("a folder");
    std::fs::create_dir_all(folder).expect("a folder");
    // Write to a temporary file and rename it, so that an interruption leaves no partial program.
    let unfinished = tempfile::tempdir_in(builds()).expect("a folder");
    let whole = unfinished.path().join("output");
    let compiled = compiler.run(command.arg("-o").arg(&whole));
    let messages = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{} does not compile:\n{messages}", source.display());
    std::fs::rename(whole, output).expect("the output put in its place");
}

/// Headers that a program may include: the common ones, and those in its folder.
fn headers(source: &Path) -> BTreeSet<PathBuf> {
    let folders = [folder(), source.parent().expect("a folder").into()];
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).expect("a folder"));
    let files = entries.map(|entry| entry.expect("an entry").path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "h")).collect()
}

/// Option to generate host code for the build machine.
const NATIVE: &str = "-march=native";

/// Features of the host's processors, as in `/proc/cpuinfo`.
fn processors() -> Vec<u8> {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines().find(|line| line.starts_with("flags")).unwrap_or_default().into()
}

/// Digest of a program's sources, compiler and options.
fn digest(source: &Path, compiler: Compiler, command: &Command) -> u64 {
    let mut hasher = DefaultHasher::new();
    std::fs::read(source).expect("a source").hash(&mut hasher);
    for header in headers(source) {
        std::fs::read(header).expect("a header").hash(&mut hasher);
    }
    command.get_program().hash(&mut hasher);
    command.get_args().for_each(|argument| argument.hash(&mut hasher));
    compiler.version().hash(&mut hasher);
    if command.get_args().any(|argument| argument == NATIVE) {
        processors().hash(&mut hasher);
    }
    hasher.finish()
}

/// Folder of built programs, below Cargo's target folder.
fn builds() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    // <target folder>/<profile>/deps/<test>
    test.ancestors().nth(3).expect("the target folder").join("tmp/applications")
}
