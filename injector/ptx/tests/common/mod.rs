//! Code, sites and injections that the tests share.

use flipwave_device::Dispatch;
use flipwave_injector::{
    Allocation, Buffer, Changes, Counting, Fault, Plan, Planned, Program, Sampling, Selection,
    Site, Stratification, Workload, profile,
};
use flipwave_machine::{Machine, Simulator};
use flipwave_ptx::{Module, Ptx, parse};
use flipwave_ptx_sim::PtxGpu;
use std::path::Path;
use std::process::Command;

/// Words of the buffers of [`workload`]: 4 workgroups of 80 threads, two words each.
pub const WORDS: usize = 2 * 4 * 80;
/// Threads of the grid and of a workgroup, for both kernels: the last wave of a workgroup is half full.
const GRID: [[u32; 3]; 2] = [[160, 2, 1], [80, 1, 1]];

/// Compiles `paths.c`.
pub fn module() -> Module {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels/paths.c");
    let clang = std::env::var("FLIPWAVE_CLANG").unwrap_or("clang-22".into());
    let output = Command::new(clang)
        .args(["--target=nvptx64-nvidia-cuda", "-march=sm_80", "-xc", "-std=gnu17", "-O2"])
        .args(["-Xclang", "-target-feature", "-Xclang", "+ptx78", "-ffp-contract=off"])
        .args(["-ffreestanding", "-nogpulib", "-S", "-o", "-"])
        .arg(source)
        .output()
        .expect("clang");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    parse(&String::from_utf8_lossy(&output.stdout)).unwrap_or_else(|error| panic!("{error}"))
}

/// This many planned faults; none if the fault has no site in the workload.
pub fn planned(workload: &Workload, fault: &Fault, seed: u64, count: u64) -> Vec<Planned> {
    planned_in(workload, fault, &Selection::default(), seed, count)
}

/// Planned faults in a selection.
pub fn planned_in(
    workload: &Workload,
    fault: &Fault,
    selection: &Selection,
    seed: u64,
    count: u64,
) -> Vec<Planned> {
    let whole = Stratification::default();
    let Ok(profile) = profile(workload, fault, selection, whole, Counting::Exact) else {
        return Vec::new();
    };
    let sampling = Sampling::random(count, Allocation::default());
    let plan = Plan::new(workload, &profile, seed, &sampling);
    plan.and_then(|plan| plan.faults(0..count)).unwrap_or_default()
}

/// The site with a valid text.
pub fn site(workload: &Workload, text: &str) -> Site {
    Site::parse(text, workload.architecture()).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Both kernels of `paths.c`, one after the other.
pub fn workload() -> Workload {
    let mut device = PtxGpu::new(Ptx::new("sm_80").expect("a target"));
    let module = device.load(&module()).expect("loads");
    let mut buffers = Vec::new();
    for (name, words) in [("in", WORDS), ("out", WORDS), ("counters", 16), ("folded", WORDS)] {
        let address = device.allocate(4 * words as u64).expect("memory");
        buffers.push(Buffer { name: name.to_owned(), address, bytes: 4 * words });
    }
    let values = (0..WORDS as u32).flat_map(|i| (i.wrapping_mul(0x9e37_79b9) >> 7).to_le_bytes());
    device.write(buffers[0].address, &values.collect::<Vec<_>>()).expect("the buffer");
    let launch = |kernel: &str, order: [usize; 3]| Dispatch {
        module,
        kernel: kernel.to_owned(),
        grid: GRID[0],
        workgroup: GRID[1],
        kernarg: order.iter().flat_map(|at| buffers[*at].address.0.to_le_bytes()).collect(),
        dynamic_lds: 0,
        instruction_limit: 1_000_000,
        queued: None,
        is_cooperative: false,
    };
    let dispatches = vec![launch("mix", [0, 1, 2]), launch("fold", [1, 3, 2])];
    let outputs = buffers[1..].to_vec();
    Workload {
        device: Simulator::new(device),
        program: Program { dispatches, changes: Changes::default(), buffers, outputs },
        cancellation: Default::default(),
    }
}
