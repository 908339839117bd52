//! `flipwave doctor` on this machine, and with missing requirements.

use flipwave_tests::flipwave;

#[test]
fn doctor_accepts_this_machine_and_reports_missing_requirements() {
    let folder = tempfile::tempdir().expect("a folder");
    let said = flipwave(folder.path(), &["doctor"], &[]).expect_success().stdout;
    let needed = ["compiler", "linker", "device libraries", "embedded GPU", "hooks", "LLVM"];
    for what in needed.into_iter().chain(["for applications"]) {
        assert!(line(&said, what).starts_with("ok "), "{said}");
    }
    assert!(line(&said, "compiler").contains("clang-22: "), "{said}");
    assert!(line(&said, "targets executed").contains(" gfx90a "), "{said}");
    assert!(line(&said, "targets with hooks").contains(" gfx1100 "), "{said}");
    assert!(std::fs::read_dir(folder.path()).expect("a folder").next().is_none());
    let cache = folder.path().join("cache");
    let refused = |name: &str, what: &str, remedy: &str| {
        let variables = [(name, "/nowhere"), ("FLIPWAVE_CACHE", cache.to_str().expect("text"))];
        let finished = flipwave(folder.path(), &["doctor"], &variables);
        assert_eq!(finished.code, Some(2), "{}", finished.stdout);
        let entry = line(&finished.stdout, what);
        assert!(entry.starts_with("MISSING ") && entry.contains(remedy), "{entry}");
        let gpu = line(&finished.stdout, "embedded GPU");
        assert!(gpu.starts_with("MISSING "), "{gpu}");
    };
    refused("FLIPWAVE_CLANG", "compiler", "clang-22");
    refused("FLIPWAVE_DEVICE_LIBS", "device libraries", "rocm-device-libs");
}

/// The line about the requirement `what`.
fn line(said: &str, what: &str) -> String {
    let found = said.lines().find(|line| line.get(8..).is_some_and(|rest| rest.starts_with(what)));
    found.unwrap_or_else(|| panic!("no `{what}`:\n{said}")).to_owned()
}
