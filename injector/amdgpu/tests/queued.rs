//! Equivalence of queued dispatches, whose code and arguments a runtime has placed, and dispatches
//! placed by the device: equal fault spaces and equal results.

use crate::common::{compile, paths, planned};
use flipwave_codeobj::CodeObject;
use flipwave_device::{Address, Change, Device, Dispatch, KernelPacket, Patch, QueuedPacket};
use flipwave_hooks::hook::HookCompiler;
use flipwave_injector::{
    Accelerations, Changes, Counting, Duration, Ending, Fault, FaultModel, FaultTarget, Injection,
    InjectionError, Injector, Output, Planned, Program, Scope, Selection, Stratification,
    StruckWorkgroups, Workload, inject, profile, trace,
};
use flipwave_injector_amdgpu::{HookInjector, golden_strict};
use flipwave_machine::Simulator;
use flipwave_sim::EmbeddedGpu;
use flipwave_sim::strict::StrictOptions;
use std::num::NonZeroU32;

const PROCESSOR: &str = "gfx90a";
/// An otherwise unused address.
const ELSEWHERE: Address = Address(0x7f90_1234_5000);

/// Converts a workload to queued dispatches with code at `code`. The host writes packet and arguments
/// before each dispatch, at the addresses that a device would use.
fn queued(ordinary: &Workload, object: &CodeObject, code: Address) -> Workload {
    let mut device = EmbeddedGpu::new(PROCESSOR.parse().expect("a target")).expect("a GPU");
    let bias = code.0 - object.load_image(0).expect("an image").address;
    let image = object.load_image(bias).expect("an image");
    device.allocate_at(code, image.bytes.len() as u64).expect("memory");
    device.write(code, &image.bytes).expect("the image");
    let module = device.adopt(object, bias).expect("code");
    for buffer in &ordinary.program.buffers {
        let mut content = vec![0; buffer.bytes];
        ordinary.device.read(buffer.address, &mut content).expect("the buffer");
        device.allocate_at(buffer.address, buffer.bytes as u64).expect("memory");
        device.write(buffer.address, &content).expect("the buffer");
    }
    let mut free = ordinary.device.clone();
    let bytes = ordinary.program.dispatches[0].kernarg.len() as u64;
    let [kernarg, packet, queue] = [bytes, KernelPacket::SIZE as u64, 256].map(|bytes| {
        let place = free.allocate(bytes).expect("a place");
        device.allocate_at(place, bytes).expect("memory");
        place
    });
    let (mut dispatches, mut changes) = (Vec::new(), Changes::default());
    for (number, dispatch) in ordinary.program.dispatches.iter().enumerate() {
        let descriptor = &object.kernel(&dispatch.kernel).expect("the kernel").descriptor;
        let content = KernelPacket {
            workgroup: dispatch.workgroup,
            grid: dispatch.grid,
            private_bytes: descriptor.private_segment_fixed_size,
            lds_bytes: descriptor.group_segment_fixed_size + dispatch.dynamic_lds,
            kernel: Address(bias + descriptor.address),
            kernarg,
            completion: Address(0),
        };
        let mut patch = Patch::new(kernarg, &dispatch.kernarg);
        patch.add(packet, &content.to_bytes());
        changes.add(number, Change::Write(patch));
        let queued = QueuedPacket { packet, queue, number: number as u64 };
        let kernarg = Vec::new();
        dispatches.push(Dispatch { module, kernarg, queued: Some(queued), ..dispatch.clone() });
    }
    let Workload { program, .. } = ordinary.clone();
    let program = Program { dispatches, changes, ..program };
    Workload { device: Simulator::new(device), program, ..ordinary.clone() }
}

/// The ordinary workload, and queued versions with the code at its original address and elsewhere.
fn workloads() -> [Workload; 3] {
    let object = compile("paths.cl", PROCESSOR, &["-DACC_VGPRS"]);
    let ordinary = paths(&object, PROCESSOR);
    let first = object.load_image(0).expect("an image").address;
    let module = ordinary.program.dispatches[0].module;
    let gpu = ordinary.device.downcast::<EmbeddedGpu>().expect("the embedded GPU");
    let code = gpu.address_of(module, first).expect("an address");
    let [there, elsewhere] = [code, ELSEWHERE].map(|code| queued(&ordinary, &object, code));
    [ordinary, there, elsewhere]
}

fn faults() -> Vec<Fault> {
    let one_bit = Fault::transient(FaultModel::FlipOneBit);
    let targets = FaultTarget::ALL.map(|target| Fault { target, ..one_bit.clone() });
    let duration = Duration::Permanent(NonZeroU32::new(2).expect("units"));
    let more = [
        Fault { scope: Scope::Workgroup, ..one_bit.clone() },
        Fault { duration, ..one_bit.clone() },
    ];
    targets.into_iter().chain(more).collect()
}

/// Values of the first strike, and the outputs, unless the run was stopped.
type Result = std::result::Result<([u64; 2], Option<Vec<Output>>), String>;

fn result(injection: std::result::Result<Injection, InjectionError>) -> Result {
    let Injection { struck, ending } = injection.map_err(|error| error.to_string())?;
    let outputs = match ending {
        Ending::Completed { outputs, .. } => Some(outputs),
        Ending::Faulted { .. } => None,
    };
    Ok(([struck.before, struck.after], outputs))
}

#[test]
fn queued_dispatches_equal_ordinary_ones() {
    let [ordinary, queued, elsewhere] = workloads();
    let golden = ordinary.golden().expect("a golden run");
    for workload in [&queued, &elsewhere] {
        assert!(workload.golden().expect("a golden run") == golden);
        assert!(
            golden_strict(workload, StrictOptions::default()).expect("a golden run").0 == golden
        );
    }
    // Negative control: with the first packet for both dispatches, results differ or the shape is
    // rejected.
    let mut changes = Changes::default();
    changes.add(0, queued.program.changes.before(0)[0].clone());
    let program = Program { changes, ..queued.program.clone() };
    let incomplete = Workload { program, ..queued.clone() };
    assert!(!incomplete.golden().is_ok_and(|incomplete| incomplete == golden));

    let mut compared = 0;
    for fault in faults() {
        let profiles = [&ordinary, &queued, &elsewhere].map(|workload| {
            let (all, whole) = (Selection::default(), Stratification::Opcode);
            profile(workload, &fault, &all, whole, Counting::Exact).expect("a profile")
        });
        assert!(profiles[0] == profiles[1] && profiles[0] == profiles[2], "{fault}");
        let plans = [&ordinary, &queued].map(|workload| planned(workload, &fault, 3, 30));
        assert!(plans[0] == plans[1], "{fault}");
        let injector = |workload, how| {
            Injector::new(workload, &golden, StruckWorkgroups::of(&plans[0]), how).expect("it")
        };
        let [slow, fast] = [(&ordinary, Accelerations::NONE), (&queued, Accelerations::ALL)]
            .map(|(workload, how)| injector(workload, how));
        let whole = injector(&queued, Accelerations::NONE);
        for planned in &plans[0] {
            let expected = slow.inject(planned).map_err(|error| error.to_string());
            for injector in [&whole, &fast] {
                let found = injector.inject(planned).map_err(|error| error.to_string());
                assert!(found == expected, "{}", planned.site);
            }
            compared += 1;
        }
    }
    assert!(compared >= 300, "{compared}");
}

#[test]
fn hooks_strike_queued_dispatches() {
    let [_, _, queued] = workloads();
    let limits = queued.golden().expect("a golden run").instruction_limits();
    let compiler = HookCompiler::find().expect("clang");
    let mut hooks = HookInjector::new(&queued, &compiler);
    let mut compared = 0;
    for fault in faults() {
        for Planned { site, .. } in planned(&queued, &fault, 5, 10) {
            let hooked = hooks.inject(&site, &limits);
            if matches!(hooked, Err(InjectionError::Refused { .. })) {
                continue;
            }
            assert!(result(inject(&queued, &site, &limits)) == result(hooked), "{site}");
            compared += 1;
        }
    }
    assert!(compared >= 60, "{compared}");
}

#[test]
fn traces_of_queued_dispatches_equal_ordinary_ones() {
    let [ordinary, queued, _] = workloads();
    let limits = ordinary.golden().expect("a golden run").instruction_limits();
    for Planned { site, .. } in planned(&ordinary, &faults()[0], 9, 40) {
        let [ordinary_trace, queued_trace] = [&ordinary, &queued]
            .map(|workload| trace(workload, &site, &limits).map_err(|error| error.to_string()));
        assert!(ordinary_trace == queued_trace, "{site}");
    }
}
