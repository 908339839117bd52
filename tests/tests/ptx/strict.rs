//! The strict level on compiled programs: the suite's and the examples' break no rule, and programs with planted
//! errors do.

use super::campaign;
use crate::suite::suite_programs;
use flipwave_campaigns::{Campaign, RuleViolation, StrictOptions, strict};
use flipwave_depth::cases;
use flipwave_tests::{emulated_folder, flipwave, yaml_files};

fn violations(campaign: &Campaign) -> Vec<RuleViolation> {
    let found = strict(campaign, StrictOptions::default());
    found.unwrap_or_else(|error| panic!("{}: {error}", campaign.name))
}

#[test]
fn suite_programs_break_no_rule() {
    let folder = tempfile::tempdir().expect("a folder");
    for (file, name) in cases(suite_programs(), 3) {
        let campaign = campaign(folder.path(), &file, |text| text);
        assert_eq!(violations(&campaign), [], "{name}");
    }
}

#[test]
fn emulated_examples_break_no_rule() {
    for file in yaml_files(&emulated_folder().join("ptx")) {
        let campaign = Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(violations(&campaign), [], "{}", file.display());
    }
}

/// A kernel in CUDA, with an error that `PLANTED` selects.
const KERNEL: &str = "
extern \"C\" __global__ void k(const unsigned *in, unsigned *out)
{
    __shared__ unsigned tile[64];
    unsigned i = threadIdx.x;
    if (PLANTED != 1 || i < 32)
        tile[i] = in[i];
    __syncthreads();
    unsigned sum = in[tile[i ^ 32] & 63];
    if (PLANTED == 2 && i % 2)
        __syncthreads();
    if (i % 32 < 16) {
        unsigned mask = PLANTED == 3 ? 0xffffffff : 0xffff;
        sum += (unsigned)__shfl_xor_sync(mask, (int)sum, PLANTED == 4 ? 16 : 1);
    }
    out[i] = sum / (PLANTED == 5 ? i & 1 : i | 1);
}
";

const CAMPAIGN: &str = "name: k
target: sm_80
workload:
  kernel:
    source: k.cu
    name: k
    grid: 64
    workgroup: 64
    args:
      - {buffer: in, type: u32, count: 64, init: {range: {start: 0, step: 1}}}
      - {buffer: out, type: u32, count: 64, output: true}
faults: {model: flip_one_bit, count: 4}
";

#[test]
fn planted_errors_are_reported_at_their_line() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let line_of =
        |text: &str| 1 + KERNEL.lines().position(|line| line.contains(text)).expect("a line");
    let planted = [
        None,
        Some(("undefined-value", "unsigned sum =")),
        Some(("aligned", "        __syncthreads")),
        // The function is inlined from a header.
        Some(("sync-mask", "flipwave_cuda.h")),
        Some(("lane-source", "flipwave_cuda.h")),
        Some(("division-by-zero", "out[i] =")),
    ];
    for (number, expected) in planted.into_iter().enumerate() {
        std::fs::write(folder.join("k.cu"), KERNEL).expect("written");
        let text = CAMPAIGN
            .replace("    name: k\n", &format!("    name: k\n    options: [-DPLANTED={number}]\n"));
        std::fs::write(folder.join("k.yaml"), text).expect("written");
        let finished = flipwave(folder, &["profile", "k.yaml", "--strict"], &[]);
        let Some((rule, text)) = expected else {
            assert_eq!(finished.expect_success().stderr, "");
            continue;
        };
        assert_eq!(finished.code, Some(1), "{number}: {}", finished.stderr);
        let report = &finished.stderr;
        assert!(report.starts_with(&format!("{rule} at 0x")), "{number}: {report}");
        let place = match text {
            "flipwave_cuda.h" => text.to_owned(),
            text => format!("k.cu:{} in `k`", line_of(text)),
        };
        assert!(report.contains(&place), "{number}, {place}: {report}");
        assert!(report.contains("(violations: 1)"), "{number}: {report}");
        // Without `--strict`, nothing is reported.
        flipwave(folder, &["profile", "k.yaml"], &[]).expect_success();
    }
    let races = flipwave(folder, &["profile", "k.yaml", "--strict", "--races"], &[]);
    races.expect_refused(&["`--races` is available for AMD GPUs only"]);
}
