//! `flipwave doctor`: checks the parts of this machine that Flipwave can use.

use crate::error::CampaignError;
use crate::file::campaign::Campaign;
use crate::file::schema::default_target;
use crate::program::compile::{CompileError, Compiler, package};
use crate::program::device_libraries::installed;
use crate::run::injection_path::InjectionPath;
use crate::run::progress::Silent;
use crate::run::{RunOptions, run};
use flipwave_agent::Library;
use flipwave_cuda_driver::{Driver, OpenError};
use flipwave_hooks::hook::{clang_path, clang_version};
use flipwave_host::cache::cache_folder;
use flipwave_isa::{Isa, Rules, Target, UnknownTarget};
use flipwave_rocr::RocrDevice;
use flipwave_sim::EmbeddedGpu;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Name of the checked component.
    pub what: &'static str,
    /// `true` if campaigns on the embedded GPU need the component.
    pub is_needed: bool,
    /// Description of the component, or why it cannot be used and what to do.
    pub found: Result<String, String>,
}

impl Finding {
    fn needed(what: &'static str, found: Result<String, String>) -> Finding {
        Finding { what, is_needed: true, found }
    }

    fn useful(what: &'static str, found: Result<String, String>) -> Finding {
        Finding { what, is_needed: false, found }
    }
}

/// Checks all components that Flipwave can use, and injects some faults as a test. Writes only to
/// the folder of compiled kernels and to temporary files.
pub fn doctor() -> Vec<Finding> {
    vec![
        Finding::needed("compiler", compiler()),
        Finding::needed("linker", linker()),
        Finding::needed("device libraries", libraries()),
        Finding::needed("embedded GPU", injected(InjectionPath::Embedded)),
        Finding::useful("hooks", injected(InjectionPath::Hook)),
        Finding::useful("LLVM", llvm()),
        Finding::useful("for applications", for_applications()),
        Finding::useful(
            "targets executed",
            targets(|target| EmbeddedGpu::new(target.clone()).is_ok()),
        ),
        Finding::useful("targets with hooks", targets(has_rules)),
        Finding::useful("host", Ok(host())),
        Finding::useful("hipcc", hipcc()),
        Finding::useful("kernel driver", driver()),
        Finding::useful("AMD's runtime", runtime()),
        Finding::useful("NVIDIA's driver", nvidia_driver()),
    ]
}

fn compiler() -> Result<String, String> {
    let clang = clang_path();
    match clang_version(&clang) {
        Ok(version) => Ok(format!("{}: {version}", clang.display())),
        Err(error) => Err(CompileError::from_child_error(&clang, error).to_string()),
    }
}

fn linker() -> Result<String, String> {
    let clang = clang_path();
    let package = package("lld", &clang_version(&clang).unwrap_or_default());
    let missing = |reason: String| format!("{reason}; install Debian's package {package}");
    let printed =
        flipwave_host::child::run(Command::new(clang).arg("--print-prog-name=ld.lld"), b"");
    let printed =
        printed.map_err(|error| format!("the compiler does not print its path: {error}"))?;
    let path = PathBuf::from(String::from_utf8_lossy(&printed.stdout).trim());
    let version = flipwave_host::child::run(Command::new(&path).arg("--version"), b"");
    let version = version.map_err(|error| missing(format!("{}: {error}", path.display())))?;
    let text = String::from_utf8_lossy(&version.stdout);
    let line = text.lines().next().filter(|_| version.status.success());
    line.map(str::to_owned).ok_or_else(|| missing(format!("cannot run {}", path.display())))
}

fn libraries() -> Result<String, String> {
    let target: Target =
        default_target().parse().map_err(|error: UnknownTarget| error.to_string())?;
    // A missing compiler is reported separately.
    let found = match clang_version(&clang_path()) {
        Ok(_) => Compiler::find().and_then(|compiler| compiler.device_libraries(&target)),
        Err(_) => installed(""),
    };
    found.map(|folder| folder.display().to_string()).map_err(|error| error.to_string())
}

/// The kernel of the test campaign.
const SOURCE: &str = "kernel void add(global int *sum, global const int *a) {
    sum[get_global_id(0)] = a[get_global_id(0)] + (int)get_local_id(0);
}
";

const CAMPAIGN: &str = "name: doctor
workload:
  kernel:
    source: add.cl
    name: add
    grid: 256
    workgroup: 64
    args:
      - {buffer: sum, type: i32, count: 256, output: true}
      - {buffer: a, type: i32, count: 256, init: {uniform: [0, 1000]}}
faults: {model: flip_one_bit, count: 8}
";

/// Compiles the test kernel and injects faults into it.
fn injected(path: InjectionPath) -> Result<String, String> {
    if clang_version(&clang_path()).is_err() {
        let without = match path {
            InjectionPath::Embedded => {
                "no compiler for kernels; campaigns on compiled code do not need one"
            }
            InjectionPath::Hook => "no compiler for hooks",
        };
        return Err(without.to_owned());
    }
    let write = |folder: &Path| std::fs::write(folder.join("add.cl"), SOURCE);
    let folder = tempfile::tempdir().and_then(|folder| write(folder.path()).map(|()| folder));
    let folder =
        folder.map_err(|error| format!("cannot write temporary files: {error}; set TMPDIR"))?;
    let results = folder.path().join("results");
    let campaign = Campaign::parse(CAMPAIGN, &folder.path().join("doctor.yaml"));
    let options = RunOptions {
        path: Some(path),
        self_test: true,
        ..RunOptions::new(results, NonZeroUsize::MIN)
    };
    let report = campaign
        .map_err(CampaignError::from)
        .and_then(|campaign| run(&campaign, &options, &mut Silent))
        .map_err(|error| error.to_string())?;
    let (done, target) = (report.record.done.total(), &report.record.facts.campaign.target);
    let tested = report.self_test.map_or(0, |test| test.null + test.planted);
    Ok(format!("{done} faults in a kernel for {target}, and {tested} whose outcomes are known"))
}

/// Checks the LLVM that is linked into this program.
fn llvm() -> Result<String, String> {
    let known = |name: &&str| name.parse().is_ok_and(|target| Isa::new(&target).is_ok());
    match Target::names().filter(known).count() {
        0 => Err("linked without the target AMDGPU; build with another LLVM 22".to_owned()),
        count => Ok(format!("linked in, decodes code of {count} targets")),
    }
}

/// Checks the library that is loaded into applications.
fn for_applications() -> Result<String, String> {
    let found = Library::find(&cache_folder()).map_err(|error| error.to_string())?;
    Ok(found.file().display().to_string())
}

/// Extensions of the processor for which the embedded GPU has vector code.
fn host() -> String {
    #[cfg(target_arch = "x86_64")]
    {
        let extensions = [
            ("AVX2", is_x86_feature_detected!("avx2")),
            ("FMA", is_x86_feature_detected!("fma")),
            ("BMI2", is_x86_feature_detected!("bmi2")),
            ("AVX-512F", is_x86_feature_detected!("avx512f")),
            ("AVX-512BW", is_x86_feature_detected!("avx512bw")),
            ("AVX-512DQ", is_x86_feature_detected!("avx512dq")),
            ("AVX-512VL", is_x86_feature_detected!("avx512vl")),
        ];
        let supported = extensions.iter().filter(|(_, is_supported)| *is_supported);
        let names: Vec<&str> = supported.map(|(name, _)| *name).collect();
        let names = if names.is_empty() { "no vectors".to_owned() } else { names.join(" ") };
        format!("x86-64 with {names}")
    }
    #[cfg(not(target_arch = "x86_64"))]
    format!("{}: nothing is compiled to code of the host", std::env::consts::ARCH)
}

/// Lists the targets that satisfy a condition.
fn targets(condition: impl Fn(&Target) -> bool) -> Result<String, String> {
    let names = Target::names().filter(|name| name.parse().is_ok_and(|target| condition(&target)));
    Ok(names.collect::<Vec<_>>().join(" "))
}

/// Returns `true` if code of a target can be rewritten.
fn has_rules(target: &Target) -> bool {
    target.wave_sizes().iter().all(|size| Rules::of(target, *size).is_some())
}

fn hipcc() -> Result<String, String> {
    let missing = "not in PATH; required to build HIP programs (Debian: hipcc), but not for \
                   campaigns on kernels";
    let found = flipwave_host::child::run(Command::new("hipcc").arg("--version"), b"");
    let text = found.map_err(|_| missing.to_owned())?;
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    text.lines().next().map(str::to_owned).ok_or_else(|| missing.to_owned())
}

fn driver() -> Result<String, String> {
    const DRIVER: &str = "/dev/kfd";
    let opened = std::fs::File::options().read(true).write(true).open(DRIVER);
    opened.map(|_| DRIVER.to_owned()).map_err(|error| {
        format!("{DRIVER}: {error}; only `device: rocr` and `flipwave launch` need it and a GPU")
    })
}

fn runtime() -> Result<String, String> {
    let open = RocrDevice::open(0).map(|_| "a GPU that it can use".to_owned());
    open.map_err(|error| format!("{error}; `flipwave exec` needs the runtime, but no GPU"))
}

fn nvidia_driver() -> Result<String, String> {
    let found = || -> Result<String, OpenError> {
        let driver = Driver::open()?;
        let devices: Vec<String> = driver.devices()?.iter().map(ToString::to_string).collect();
        match &devices[..] {
            [] => Err(OpenError::NoGpu { wanted: 0, present: 0 }),
            devices => Ok(format!("{}: {}", driver.version()?, devices.join(", "))),
        }
    };
    found().map_err(|error| format!("{error}; only `device: cuda` needs the driver and a GPU"))
}
