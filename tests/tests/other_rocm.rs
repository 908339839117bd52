//! Other versions of AMD's runtime, in root file systems of other Debian releases that
//! `tests/rocm/root.sh` creates. A root takes gigabytes and needs a network; without the folder
//! `FLIPWAVE_ROCM_ROOT`, these tests are skipped.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The root file system of Debian testing, if it exists.
fn root() -> Option<PathBuf> {
    let root = std::env::var_os("FLIPWAVE_ROCM_ROOT").map(PathBuf::from);
    let root = root.filter(|root| root.join(".flipwave-root").is_file());
    if root.is_none() {
        println!("skipped: FLIPWAVE_ROCM_ROOT is not a root file system of tests/rocm/root.sh");
    }
    root
}

fn script(name: &str, root: &Path, arguments: &[&str]) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("rocm").join(name);
    let bin = flipwave_tests::program().parent().expect("a folder");
    let mut command = Command::new(script);
    command.arg(root).args(arguments).env("FLIPWAVE_BIN", bin);
    command.output().expect("the script starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn newest_runtime_finds_each_gpu() {
    let Some(root) = root() else { return };
    for gpu in ["gfx906", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100"] {
        let output = script("in.sh", &root, &["flipwave", "exec", "--gpu", gpu, "--", "rocminfo"]);
        let found = text(&output.stdout).contains(&format!("amdgcn-amd-amdhsa--{gpu}"));
        assert!(output.status.success() && found, "{gpu}: {output:?}");
    }
    // Negative control: without Flipwave, there is no GPU.
    let output = script("in.sh", &root, &["rocminfo"]);
    assert!(!text(&output.stdout).contains("amdgcn-amd-amdhsa"), "{output:?}");
}

#[test]
fn programs_compute_the_same_under_the_newest_runtime() {
    let Some(root) = root() else { return };
    for gpu in ["gfx90a", "gfx1100"] {
        let output = script("applications.sh", &root, &[gpu]);
        assert!(output.status.success(), "{gpu}: {}", text(&output.stdout));
    }
}
