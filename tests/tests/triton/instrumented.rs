//! Kernels compiled by Triton with hooks, tools, lockstep execution, and the strict level.

use super::{campaigns, each_chosen, is_amdgpu, kernels};
use crate::lockstep::{portable_hooks, with_hooks};
use crate::tools::check_all;
use flipwave_campaigns::{Campaign, prepare};
use flipwave_injector::Workload;
use flipwave_tests::{Python, assert_lockstep, clean, gpu};
use std::path::Path;

fn workload(folder: &Path) -> Workload {
    let campaign = Campaign::read(&folder.join("campaign.yaml"));
    let campaign = campaign.unwrap_or_else(|error| panic!("{error}"));
    prepare(&campaign).unwrap_or_else(|error| panic!("{error}")).workload
}

fn check_strictly(folder: &Path) {
    let workload = workload(folder);
    let golden = workload.golden().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(clean(&workload), golden);
}

#[test]
fn chosen_kernels_violate_no_rule() {
    each_chosen(|_, _, folder| check_strictly(folder));
}

#[test]
#[ignore = "for test-long: hundreds of kernels"]
fn all_kernels_violate_no_rule() {
    let Some(python) = Python::find() else { return };
    for (kernel, targets) in kernels(python) {
        for target in targets.iter().filter(|target| is_amdgpu(target)) {
            println!("{kernel} on {target}");
            check_strictly(&campaigns(python, target, true).join(&kernel));
        }
    }
}

/// Asserts that launches with hooks before and after every instruction run in lockstep with the originals.
fn keeps_step(is_meant: impl Fn(&str, &str) -> bool) {
    each_chosen(|target, kernel, folder| {
        if is_meant(target, kernel) {
            let pair = with_hooks(&workload(folder), &portable_hooks());
            assert_lockstep(gpu(&pair.original.device).clone(), pair.twins());
        }
    });
}

#[test]
fn matrix_product_runs_in_lockstep_with_hooks_everywhere() {
    keeps_step(|_, kernel| kernel == "matmul_f16");
}

#[test]
#[ignore = "for test-long"]
fn chosen_kernels_run_in_lockstep_with_hooks_everywhere() {
    keeps_step(|_, _| true);
}

#[test]
fn tools_agree_with_the_embedded_gpu_on_softmax() {
    each_chosen(|_, kernel, folder| {
        if kernel == "softmax" {
            check_all(&workload(folder));
        }
    });
}

#[test]
#[ignore = "for test-long"]
fn tools_agree_with_the_embedded_gpu_on_chosen_kernels() {
    each_chosen(|_, _, folder| check_all(&workload(folder)));
}
