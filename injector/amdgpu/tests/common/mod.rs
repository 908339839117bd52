//! Code, sites and injections shared by the tests.

use flipwave_codeobj::CodeObject;
use flipwave_device::{ArgumentValue, Device, Dispatch, ModuleId, layout};
use flipwave_injector::{
    Allocation, Buffer, Changes, Counting, Fault, Plan, Planned, Program, Sampling, Selection,
    Site, Stratification, Workload, profile,
};
use flipwave_machine::Simulator;
use flipwave_sim::EmbeddedGpu;
use std::path::Path;
use std::process::Command;

/// Words of the buffers of [`paths`]: 4 workgroups of 128 work-items, two words each.
pub const WORDS: usize = 2 * 4 * 128;

/// Compiles a file of `tests/kernels` for a processor.
pub fn compile(file: &str, processor: &str, options: &[&str]) -> CodeObject {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kernels").join(file);
    let clang = std::env::var("FLIPWAVE_CLANG").unwrap_or("clang-22".into());
    let output = Command::new(clang)
        .args(["--target=amdgcn-amd-amdhsa", "-xcl", "-cl-std=CL2.0", "-nogpulib", "-O2"])
        .args(["-mcode-object-version=5", &format!("-mcpu={processor}")])
        .args(options)
        .args(["-o", "-"])
        .arg(source)
        .output()
        .expect("clang");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    CodeObject::parse(&output.stdout).expect("a code object")
}

/// This many planned faults; none if the fault has no site in the workload.
pub fn planned(workload: &Workload, fault: &Fault, seed: u64, count: u64) -> Vec<Planned> {
    let all = Selection::default();
    let whole = Stratification::default();
    let Ok(profile) = profile(workload, fault, &all, whole, Counting::Exact) else {
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

/// A code object of a workload.
pub fn code_object(workload: &Workload, module: ModuleId) -> Option<&CodeObject> {
    workload.device.downcast::<EmbeddedGpu>()?.code_object(module)
}

/// Both kernels of `paths.cl`, one after the other.
pub fn paths(object: &CodeObject, processor: &str) -> Workload {
    let mut device = EmbeddedGpu::new(processor.parse().expect("a target")).expect("a GPU");
    let module = device.load(object).expect("loads");
    let mut buffers = Vec::new();
    for (name, words) in [("in", WORDS), ("out", WORDS), ("counters", 16), ("folded", WORDS)] {
        let address = device.allocate(4 * words as u64).expect("memory");
        buffers.push(Buffer { name: name.to_owned(), address, bytes: 4 * words });
    }
    let values = (0..WORDS as u32).flat_map(|i| (i.wrapping_mul(0x9e37_79b9) >> 7).to_le_bytes());
    device.write(buffers[0].address, &values.collect::<Vec<_>>()).expect("the buffer");
    let launch = |kernel: &str, order: [usize; 3]| {
        let (grid, workgroup) = ([256, 2, 1], [128, 1, 1]);
        let arguments = order.map(|at| ArgumentValue::Buffer(buffers[at].address));
        let found = object.kernel(kernel).expect("the kernel");
        let layout = layout(found, &arguments, grid, workgroup).expect("the arguments");
        Dispatch {
            module,
            kernel: kernel.to_owned(),
            grid,
            workgroup,
            kernarg: layout.kernarg,
            dynamic_lds: layout.dynamic_lds,
            instruction_limit: 1_000_000,
            queued: None,
            is_cooperative: false,
        }
    };
    let dispatches = vec![launch("mix", [0, 1, 2]), launch("fold", [1, 3, 2])];
    let outputs = buffers[1..].to_vec();
    Workload {
        device: Simulator::new(device),
        program: Program { dispatches, changes: Changes::default(), buffers, outputs },
        cancellation: Default::default(),
    }
}
