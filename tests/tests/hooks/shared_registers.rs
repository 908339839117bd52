//! Kernels that access AccVGPRs as VGPRs, which is possible on gfx90a and gfx942: VGPRs from the
//! `accum_offset` on are the AccVGPRs.

use super::everywhere::touched;
use flipwave_codeobj::CodeObject;
use flipwave_device::{Device, Dispatch};
use flipwave_hooks::flow::Disassembly;
use flipwave_hooks::hook::HookCompiler;
use flipwave_injector::{Ending, Fault, FaultModel, FaultTarget, Injection, Output, Site, inject};
use flipwave_injector_amdgpu::HookInjector;
use flipwave_tests::{
    Machine, TestProgram, Twins, assemble_for, assert_lockstep, gpu, plan_of, profile_of,
    to_values, unified_machines,
};

/// Writes registers by one name and reads them by the other, also in tuples that cross the `accum_offset`
/// of 32.
const BODY: &str = "
v_mov_b32 v40, v0
s_nop 1
v_accvgpr_read_b32 v2, a8
v_lshlrev_b32 v3, 1, v2
v_accvgpr_write_b32 a9, v3
s_nop 1
v_add_u32 v42, v41, v40
s_nop 1
v_accvgpr_read_b32 v4, a10
global_store_dword v1, v4, s[2:3]
s_waitcnt vmcnt(0)
v_and_b32 v5, 0xfffffff0, v1
global_load_dwordx4 v[30:33], v5, s[2:3]
s_waitcnt vmcnt(0)
v_add_u32 v6, v30, v31
v_accvgpr_read_b32 v7, a0
v_accvgpr_read_b32 v8, a1
v_add3_u32 v9, v6, v7, v8
v_accvgpr_write_b32 a63, v9
s_nop 1
global_store_dword v1, v95, s[2:3]
";

/// Expected result of a work-item.
fn expected(item: u32) -> u32 {
    (0..4).map(|lane| 3 * (item / 4 * 4 + lane)).sum()
}

/// The kernel with the given `accum_offset`.
fn kernel(machine: Machine, accum_offset: u32) -> Vec<u8> {
    let setup = format!(".set vgprs, {}\n.set accum_offset, {accum_offset}\n", accum_offset + 64);
    assemble_for(machine, &format!("{setup}{BODY}")).code_object
}

/// A program that launches one wave of the kernel.
fn program(code_object: &[u8]) -> TestProgram {
    let mut program = TestProgram::new(code_object).strictly();
    let out = program.output(&[0u32; 64]);
    program.launch("planted", [64, 1, 1], [64, 1, 1], &[out]);
    program
}

#[test]
fn register_with_two_names_holds_one_value() {
    let wanted: Vec<u32> = (0..64).map(expected).collect();
    for machine in unified_machines() {
        let found: Vec<u32> = to_values(&program(&kernel(machine, 32)).outputs()[0]);
        assert_eq!(found, wanted, "{machine}");
    }
}

/// Negative control: with an `accum_offset` above all VGPRs in use, the names refer to different
/// registers.
#[test]
fn registers_with_one_name_each_are_separate() {
    for machine in unified_machines() {
        let mut apart = TestProgram::new(&kernel(machine, 96));
        let out = apart.output(&[7u32; 64]);
        apart.launch("planted", [64, 1, 1], [64, 1, 1], &[out]);
        let found: Vec<u32> = to_values(&apart.outputs()[0]);
        assert_eq!(found, [0; 64], "{machine}");
    }
}

#[test]
fn decoder_names_shared_registers_as_accvgprs() {
    for machine in unified_machines() {
        let object = CodeObject::parse(&kernel(machine, 32)).expect("a code object");
        let code = Disassembly::read(&object).expect("a program");
        assert_eq!(code.accum_offset, Some(32));
        let named = code.registers_named(&[code.kernel(0).expect("the kernel")]);
        assert!(named.iter().all(|register| register.to_string() != "v40"), "{named}");
        assert!(
            ["a0", "a1", "a8", "a9", "a10", "a63"]
                .iter()
                .all(|wanted| { named.iter().any(|register| register.to_string() == **wanted) })
        );
        let apart = CodeObject::parse(&kernel(machine, 96)).expect("a code object");
        assert_eq!(Disassembly::read(&apart).expect("a program").accum_offset, None);
    }
}

#[test]
fn hooks_preserve_registers_with_two_names() {
    for machine in unified_machines() {
        let code_object = kernel(machine, 32);
        let original = CodeObject::parse(&code_object).expect("a code object");
        let rewritten = touched(&original);
        let descriptor = &rewritten.object.kernels()[0].descriptor;
        assert_eq!(descriptor.rsrc3.accum_offset(), Some(32), "both names must stay");
        let instrumented = program(rewritten.object.bytes());
        assert_eq!(instrumented.outputs(), program(&code_object).outputs(), "{machine}");
        let workload = instrumented.workload();
        let mut device = gpu(&workload.device).clone();
        let module = device.load(&original).expect("loads");
        let launch = Dispatch { module, ..workload.program.dispatches[0].clone() };
        let twins = Twins {
            original: &launch,
            instrumented: &workload.program.dispatches[0],
            rewritten: &rewritten,
            substituted: Default::default(),
        };
        assert_lockstep(device, [twins].into_iter());
    }
}

fn ending(injection: Injection) -> (Vec<Output>, String) {
    match injection.ending {
        Ending::Completed { outputs, .. } => (outputs, format!("{:?}", injection.struck)),
        Ending::Faulted { fault, .. } => (Vec::new(), fault.to_string()),
    }
}

/// Compares faults in registers between the embedded GPU and hooks.
#[test]
fn faults_in_shared_registers_are_equal_with_hooks() {
    let compiler = HookCompiler::find().unwrap_or_else(|error| panic!("{error}"));
    for machine in unified_machines() {
        let workload = program(&kernel(machine, 32)).workload();
        let limits = workload.golden().expect("a golden run").instruction_limits();
        let mut hooks = HookInjector::new(&workload, &compiler);
        for target in [FaultTarget::DestinationRegister, FaultTarget::SourceOperand] {
            let fault = Fault { target, ..Fault::transient(FaultModel::FlipOneBit) };
            let profile = profile_of(&workload, &fault, &[]);
            let sites: Vec<Site> = plan_of(&workload, &profile, 7, 60)
                .into_iter()
                .map(|planned| planned.site)
                .collect();
            let names: Vec<String> = sites.iter().map(Site::to_string).collect();
            assert!(names.iter().any(|name| name.contains("=a8 ")), "{names:?}");
            assert!(names.iter().all(|name| !name.contains("=v40 ") && !name.contains("=v95 ")));
            for site in &sites {
                let embedded = inject(&workload, site, &limits).map(ending);
                let hooked = hooks.inject(site, &limits).map(ending);
                let (embedded, hooked) = (embedded.expect("a result"), hooked.expect("a result"));
                assert_eq!(embedded, hooked, "{machine} {site}");
            }
        }
    }
}

/// Writing a register by one name ends the live range of the other name.
#[test]
fn write_by_the_other_name_ends_the_live_range() {
    for machine in unified_machines() {
        let object = CodeObject::parse(&kernel(machine, 32)).expect("a code object");
        let code = Disassembly::read(&object).expect("a program");
        let liveness = flipwave_hooks::dataflow::Liveness::new(&code);
        let live_at = |text: &str| {
            let (at, _) = code.insts().find(|(_, inst)| inst.text.starts_with(text)).expect(text);
            let live = liveness.before(at).any();
            live.iter().map(|register| register.to_string()).collect::<Vec<_>>()
        };
        let has = |live: &[String], name: &str| live.iter().any(|register| register == name);
        let read = live_at("v_accvgpr_read_b32 v2, a8");
        assert!(has(&read, "a8") && !has(&read, "a9"), "{read:?}");
        let sum = live_at("v_add_u32");
        assert!(has(&sum, "a8") && has(&sum, "a9") && !has(&sum, "a10"), "{sum:?}");
    }
}
