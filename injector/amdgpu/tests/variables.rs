//! Rewritten code shares the variables of the original code: values written by earlier dispatches are
//! visible to it, and its writes are visible to later dispatches.

use crate::common::{compile, planned};
use flipwave_device::{ArgumentValue, Device, Dispatch, layout};
use flipwave_hooks::hook::HookCompiler;
use flipwave_injector::{
    Buffer, Changes, Ending, Fault, FaultModel, Injection, Planned, Program, Workload, inject,
};
use flipwave_injector_amdgpu::HookInjector;
use flipwave_machine::Simulator;
use flipwave_sim::EmbeddedGpu;

#[test]
fn rewritten_code_shares_variables_with_the_original() {
    let object = compile("variables.cl", "gfx90a", &[]);
    let mut device = EmbeddedGpu::new("gfx90a".parse().expect("a target")).expect("a GPU");
    let module = device.load(&object).expect("loads");
    let address = device.allocate(256).expect("memory");
    let kernel = object.kernel("count").expect("the kernel");
    let arguments = [ArgumentValue::Buffer(address)];
    let layout = layout(kernel, &arguments, [64, 1, 1], [64, 1, 1]).expect("the arguments");
    let dispatch = Dispatch {
        module,
        kernel: "count".to_owned(),
        grid: [64, 1, 1],
        workgroup: [64, 1, 1],
        kernarg: layout.kernarg,
        dynamic_lds: layout.dynamic_lds,
        instruction_limit: 100_000,
        queued: None,
        is_cooperative: false,
    };
    let out = Buffer { name: "out".to_owned(), address, bytes: 256 };
    let workload = Workload {
        device: Simulator::new(device),
        program: Program {
            dispatches: vec![dispatch; 3],
            changes: Changes::default(),
            buffers: vec![out.clone()],
            outputs: vec![out],
        },
        cancellation: Default::default(),
    };
    let golden = workload.golden().expect("a golden run");
    assert_eq!(golden.outputs[0].bytes()[..4], (15u32 * 3 * 7 * 7 * 7).to_le_bytes());
    let limits = golden.instruction_limits();
    let compiler = HookCompiler::find().expect("clang");
    let mut hooks = HookInjector::new(&workload, &compiler);
    let outputs = |Injection { struck, ending }| match ending {
        Ending::Completed { outputs, .. } => (struck, Some(outputs)),
        Ending::Faulted { .. } => (struck, None),
    };
    let mut compared = 0;
    let fault = Fault::transient(FaultModel::FlipOneBit);
    for Planned { site, .. } in planned(&workload, &fault, 1, 60) {
        let Ok(hooked) = hooks.inject(&site, &limits) else { continue };
        let embedded = inject(&workload, &site, &limits).expect("an injection");
        assert_eq!(outputs(embedded), outputs(hooked), "{site}");
        compared += 1;
    }
    assert!(compared >= 40, "{compared}");
}
