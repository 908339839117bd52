//! HIP programs as their users have them: built by a vendor's compiler, with nothing of Flipwave in
//! them.

use crate::Once;
use flipwave_isa::Target;
use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A compiler of whole HIP programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compiler {
    /// AMD's driver, with the compiler it was made for.
    Hipcc,
    /// LLVM's own, several years younger: it writes other code.
    Clang,
    /// The same, with arguments of kernels preloaded, as later versions do it by themselves.
    Preloading,
}

impl Compiler {
    /// Those that differ in all they write.
    pub const ALL: [Compiler; 2] = [Compiler::Hipcc, Compiler::Clang];

    /// What to run, and Debian's package that has it.
    fn program(self) -> (&'static str, &'static str) {
        match self {
            Compiler::Hipcc => ("hipcc", "hipcc"),
            Compiler::Clang | Compiler::Preloading => ("clang++-22", "clang-22"),
        }
    }

    /// The compiler with what it needs for HIP, and options.
    fn command(self, target: &str, options: &[&str]) -> Command {
        let mut command = Command::new(self.program().0);
        // The last level of optimisation counts.
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
            // The last version that HIP 5.2 reads.
            command.arg("-mcode-object-version=4");
            // HIP's headers of 5.2 ask for it; clang had it until 21.
            let lanes = processor.default_wave_size();
            command.arg(format!("-D__AMDGCN_WAVEFRONT_SIZE={lanes}"));
            // Kernels that print or call by pointer would ask for a queue of the device's own, for
            // which HIP 5.2 then follows a null pointer.
            command.args(["-Xclang", "-default-function-attr"]);
            command.args(["-Xclang", "amdgpu-no-completion-action"]);
        }
        command
    }

    /// Its own words for its version.
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

/// The programs' folder.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("applications")
}

/// The folder of benchmarks that are whole programs.
fn benchmarks_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/programs")
}

/// The programs that end well, by name; those that do not are in `failing`.
pub fn applications() -> Vec<String> {
    named(&folder(), "")
}

/// The programs that fail in one way each, by name: `failing/endless`.
pub fn failing_applications() -> Vec<String> {
    named(&folder(), "failing/")
}

/// The benchmarks that are whole programs, by name.
pub fn benchmarks() -> Vec<String> {
    named(&benchmarks_folder(), "")
}

fn named(folder: &Path, under: &str) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder.join(under))
        .expect("a folder of programs")
        .filter_map(|entry| entry.expect("an entry").file_name().into_string().ok())
        .filter_map(|file| Some(format!("{under}{}", file.strip_suffix(".hip")?)))
        .filter(|name| !name.ends_with(".kernel"))
        .collect();
    names.sort();
    names
}

/// Builds a program for a target, unless that was done before; its path.
pub fn application(name: &str, compiler: Compiler, target: &str) -> PathBuf {
    build(&source(name), compiler, target, &[], &[], &["-lamdhip64"])
}

/// Builds a benchmark to be as fast as it can be, its host's side for this machine, unless that was
/// done before; its path.
pub fn benchmark(name: &str, target: &str) -> PathBuf {
    let source = benchmarks_folder().join(format!("{name}.hip"));
    let level = ["-O3", "-Xarch_host", NATIVE];
    build(&source, Compiler::Hipcc, target, &level, &[], &["-lamdhip64"])
}

/// The same for several targets: the program has code for each.
pub fn application_for(name: &str, compiler: Compiler, targets: &[&str]) -> PathBuf {
    let options: Vec<String> =
        targets.iter().skip(1).map(|target| format!("--offload-arch={target}")).collect();
    let options: Vec<&str> = options.iter().map(String::as_str).collect();
    build(&source(name), compiler, targets[0], &[], &options, &["-lamdhip64"])
}

/// Builds a program that uses MPI, as `mpicxx` says how, unless that was done before; its path.
/// Nothing where there is no MPI, which is said whether or not the test's output is shown.
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

/// Builds the code object that a program loads by itself (`module.kernel` for `module`), unless that
/// was done before; its path.
pub fn application_module(name: &str, compiler: Compiler, target: &str) -> PathBuf {
    let alone: &[&str] = match compiler {
        // A bundle of code objects.
        Compiler::Hipcc => &["--genco"],
        Compiler::Clang | Compiler::Preloading => &["--cuda-device-only", "--no-gpu-bundle-output"],
    };
    build(&source(&format!("{name}.kernel")), compiler, target, &[], alone, &[])
}

/// An application's source.
fn source(name: &str) -> PathBuf {
    folder().join(format!("{name}.hip"))
}

/// Builds a source; with headers precompiled when there are no options but the level of optimisation.
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
    // One test compiles, others wait: a program never changes under a campaign that runs it.
    static BUILT: Once<PathBuf, PathBuf> = Once::new();
    BUILT.get(program.clone(), || {
        compile(compiler, source, command, &program);
        program
    })
}

/// Headers of which most programs include one; the first is in the others, and all of HIP's in it.
const COMMON: [&str; 2] = ["check.h", "program.h"];

/// The first of [`COMMON`], precompiled for a compiler, a target and a level of optimisation: a
/// program takes three quarters of its time to compile in headers. The code is the same. The path is
/// an argument of `-include`; beside it is a folder from which clang takes the form that fits, the
/// host's or the device's (Clang Compiler User's Manual, "Precompiled Headers").
fn precompiled(compiler: Compiler, target: &str, level: &[&str]) -> PathBuf {
    let header = folder().join(COMMON[0]);
    let command = |options: &[&str]| {
        let mut command = compiler.command(target, &[level, options].concat());
        command.args(["-x", "hip"]).arg(&header);
        command
    };
    let mut hasher = DefaultHasher::new();
    digest(&header, compiler, &command(&[])).hash(&mut hasher);
    // Clang refuses it when the header was touched.
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

/// Compiles a source, unless that was done before.
fn compile(compiler: Compiler, source: &Path, mut command: Command, output: &Path) {
    if output.is_file() {
        return;
    }
    let folder = output.parent().expect("a folder");
    std::fs::create_dir_all(folder).expect("a folder");
    // Written beside and renamed: what was interrupted leaves no half of a program.
    let unfinished = tempfile::tempdir_in(builds()).expect("a folder");
    let whole = unfinished.path().join("output");
    let compiled = compiler.run(command.arg("-o").arg(&whole));
    let messages = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{} does not compile:\n{messages}", source.display());
    std::fs::rename(whole, output).expect("the output put in its place");
}

/// What a program may include: what all have in common, and what is beside it.
fn headers(source: &Path) -> BTreeSet<PathBuf> {
    let folders = [folder(), source.parent().expect("a folder").into()];
    let entries = folders.iter().flat_map(|folder| std::fs::read_dir(folder).expect("a folder"));
    let files = entries.map(|entry| entry.expect("an entry").path());
    files.filter(|file| file.extension().is_some_and(|extension| extension == "h")).collect()
}

/// Code for the machine that it is compiled on.
const NATIVE: &str = "-march=native";

/// What the machine's processors are.
fn processors() -> Vec<u8> {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    text.lines().find(|line| line.starts_with("flags")).unwrap_or_default().into()
}

/// Digest of what a program is made from.
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

/// Where built programs are kept: with what Cargo builds.
fn builds() -> PathBuf {
    let test = std::env::current_exe().expect("the path of this test");
    // <target folder>/<profile>/deps/<test>
    test.ancestors().nth(3).expect("the target folder").join("tmp/applications")
}
