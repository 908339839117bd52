//! Kernels with arguments preloaded into scalar registers, as current compilers generate them for gfx90a
//! and gfx942. Instrumented and injected, they behave like kernels without preloading.

use super::everywhere::touch_one_in;
use flipwave_codeobj::CodeObject;
use flipwave_device::{ArgumentValue, Device};
use flipwave_hooks::hook::Variables;
use flipwave_hooks::hook::{Argument, EntryValue, Mask};
use flipwave_hooks::rewrite::{HookCall, Instrumentation, Selection, When};
use flipwave_injector::Workload;
use flipwave_isa::Pc;
use flipwave_tests::{
    Instrumented, Machine, TestProgram, assemble_for, assert_lockstep, cases, clean, compile_for,
    examples, gpu, hook_compiler, hook_source, instrument, scalar, to_values, unified_machines,
    workload,
};
use flipwave_tools::{InstExecutions, Options, ToolFile, measure};
use std::path::Path;

/// Compiler options that limit the number of preloaded arguments.
const COUNTS: [&str; 2] = ["-amdgpu-kernarg-preload-count=8", "-amdgpu-kernarg-preload-count=16"];

/// Compiles a program with an option of [`COUNTS`], and asserts that its kernels preload arguments.
fn preloading(machine: Machine, file: &Path, count: &str) -> Workload {
    let workload = workload(machine, file, &["-O3", "-mllvm", count]);
    for dispatch in &workload.program.dispatches {
        let object = gpu(&workload.device).code_object(dispatch.module).expect("a loaded module");
        let kernel = object.kernel(&dispatch.kernel).expect("the kernel");
        assert!(kernel.descriptor.kernarg_preload.length > 0, "{} preloads nothing", kernel.name);
        assert_eq!(kernel.start().0, kernel.entry().0 + 256);
    }
    workload
}

#[test]
fn examples_with_preloaded_arguments_compute_the_same_without_violations() {
    for machine in unified_machines() {
        for file in cases(examples(), 3) {
            let plain = workload(machine, &file, &["-O3"]).golden().expect("a golden run");
            for (at, count) in COUNTS.into_iter().enumerate() {
                let workload = preloading(machine, &file, count);
                let golden = if at == 0 { workload.golden() } else { Ok(clean(&workload)) };
                let outputs = golden.expect("a golden run").outputs;
                assert_eq!(outputs, plain.outputs, "{} {machine} {count}", file.display());
            }
        }
    }
}

#[test]
fn hooks_in_kernels_with_preloaded_arguments_run_in_lockstep() {
    for machine in unified_machines() {
        for (at, file) in examples().into_iter().enumerate().step_by(3) {
            let count = COUNTS[at / 3 % 2];
            println!("{} {machine} {count}", file.display());
            let workload = preloading(machine, &file, count);
            let golden = workload.golden().expect("a golden run");
            let instrumented = instrument(&workload, |plan| _ = touch_one_in(3, "", plan));
            for (_, new) in instrumented.rewritten.values() {
                assert!(new.report.placed > 0 && new.report.proof.is_some());
            }
            assert_eq!(clean(&instrumented.workload).outputs, golden.outputs);
            assert_lockstep(gpu(&instrumented.original.device).clone(), instrumented.twins());
        }
    }
}

/// A kernel that preloads `length` dwords from dword `offset` on and stores the first one, in s2.
fn preloads(machine: Machine, offset: u32, length: u32) -> Vec<u8> {
    let body = format!(
        ".set preload_length, {length}\n.set preload_offset, {offset}\n\
         s_trap 2\n.p2align 8\ns_mov_b32 s10, s2\ns_load_dwordx2 s[4:5], s[0:1], 0x0\n\
         v_lshlrev_b32 v1, 2, v0\nv_mov_b32 v2, s10\ns_waitcnt lgkmcnt(0)\n\
         global_store_dword v1, v2, s[4:5]\n"
    );
    assemble_for(machine, &body).code_object
}

#[test]
fn arguments_are_preloaded_from_the_offset_in_the_descriptor() {
    for machine in unified_machines() {
        for (offset, length) in [(0, 2), (0, 1), (1, 1)] {
            let mut program = TestProgram::new(&preloads(machine, offset, length)).strictly();
            let out = program.output(&[0u32; 64]);
            let ArgumentValue::Buffer(address) = out else { panic!("{out:?}") };
            let word = (address.0 >> (32 * offset)) as u32;
            assert_ne!(
                word,
                (address.0 >> (32 - 32 * offset)) as u32,
                "the test value equals the address"
            );
            program.launch("planted", [64, 1, 1], [64, 1, 1], &[out]);
            let found: Vec<u32> = to_values(&program.outputs()[0]);
            assert_eq!(found, [word; 64], "{machine} {offset} {length}");
        }
    }
}

/// A kernel must not preload more dwords than it has arguments.
#[test]
fn preloading_beyond_the_arguments_is_refused() {
    for machine in unified_machines() {
        let mut code_object = preloads(machine, 1, 1);
        let object = CodeObject::parse(&code_object).expect("a code object");
        let address = object.kernels()[0].descriptor.address;
        let segment = object.segment_at(Pc(address)).expect("the descriptor");
        // Patch the length field, because the assembler refuses lengths that are too large.
        let length = (segment.file_offset() + address - segment.address) as usize + 58;
        code_object[length] += 1;
        let mut program = TestProgram::new(&code_object);
        let out = program.output(&[0u32; 64]);
        program.launch("planted", [64, 1, 1], [64, 1, 1], &[out]);
        let error = program.workload().golden().expect_err("12 bytes of 8").to_string();
        assert!(error.contains("its arguments take 12 bytes, 8 are given"), "{error}");
    }
}

const SEE: &str = "
uint64_t seen[64];
uint64_t buffers[64];

/* Counts by wave, and keeps the kernel's first argument. */
void see(uint32_t workgroup, uint32_t wave, uint64_t kernarg)
{
    flipwave_count(&seen[workgroup * 8 + wave], 1);
    buffers[workgroup * 8 + wave] = *(const uint64_t *)kernarg;
}
";

/// A kernel with many arguments, launched with two workgroups of three waves.
fn many_arguments(machine: Machine) -> Workload {
    let options = ["-O3", "-mllvm", COUNTS[1]];
    let mut program = TestProgram::new(&compile_for(machine, "arguments.cl", &options));
    let mut arguments = vec![program.output(&[0u32; 384])];
    arguments.extend((1..=12u32).map(|number| scalar(number * number)));
    program.launch("arguments", [384, 1, 1], [192, 1, 1], &arguments);
    program.workload()
}

/// Passes entry values to hooks before every instruction.
fn watch(instrumentation: &mut Instrumentation<'_>) {
    let source = hook_source("see.c", SEE, instrumentation);
    let source = instrumentation.add_source(source);
    for at in instrumentation.select(&Selection::default()) {
        let call = HookCall {
            source,
            function: "see".into(),
            arguments: vec![Argument::WorkgroupId(0), Argument::WaveInWorkgroup, Argument::Kernarg],
            results: Vec::new(),
            mask: Mask::Single,
        };
        instrumentation.call(at, When::Before, call);
    }
}

/// Number of hook calls and first kernel argument, by wave, as recorded by the hooks.
fn seen(instrumented: &Instrumented) -> [Vec<u64>; 2] {
    let mut device = gpu(&instrumented.workload.device).clone();
    let dispatch = &instrumented.workload.program.dispatches[0];
    device.dispatch(dispatch).expect("a launch");
    let (_, new) = instrumented.rewritten.values().next().expect("code");
    let variables = Variables::read(&device, dispatch.module, &new.data[0]).expect("variables");
    ["seen", "buffers"].map(|name| variables.numbers(name).expect("numbers"))
}

#[test]
fn entry_values_are_available_with_all_user_sgprs_preloaded() {
    for machine in unified_machines() {
        let workload = many_arguments(machine);
        let module = workload.program.dispatches[0].module;
        let object = gpu(&workload.device).code_object(module).expect("a loaded module");
        let descriptor = &object.kernels()[0].descriptor;
        // The wave number is computed from the dispatch packet, whose address takes two SGPRs.
        assert!(descriptor.rsrc2.user_sgprs + 2 > 16, "{machine} has room left");
        let golden = workload.golden().expect("a golden run");
        let instrumented = instrument(&workload, watch);
        let (_, new) = instrumented.rewritten.values().next().expect("code");
        assert!(new.report.proof.is_some() && new.report.refused.is_empty(), "{:?}", new.report);
        let kept = [EntryValue::Kernarg, EntryValue::WorkgroupId(0), EntryValue::WaveInWorkgroup];
        assert!(kept.iter().all(|value| new.report.kernels[0].state.contains_key(value)));
        assert_eq!(clean(&instrumented.workload).outputs, golden.outputs);
        assert_lockstep(gpu(&instrumented.original.device).clone(), instrumented.twins());
        let [seen, buffers] = seen(&instrumented);
        for wave in 0..64 {
            let is_there = wave / 8 < 2 && wave % 8 < 3;
            assert_eq!(seen[wave] > 0, is_there, "{machine} {wave}");
            let buffer = if is_there { workload.program.outputs[0].address.0 } else { 0 };
            assert_eq!(buffers[wave], buffer, "{machine} {wave}");
        }
    }
}

/// Rewritten code that loads preloaded arguments from the next dword.
#[test]
fn checker_rejects_wrong_loads_of_preloaded_arguments() {
    for machine in unified_machines() {
        let workload = many_arguments(machine);
        let object =
            gpu(&workload.device).code_object(workload.program.dispatches[0].module).expect("code");
        let instrumented = instrument(&workload, watch);
        let (_, new) = instrumented.rewritten.values().next().expect("code");
        let entry = new.object.kernels()[0].entry();
        assert_eq!(new.object.kernels()[0].start(), entry, "the kernel still preloads");
        let program = flipwave_hooks::flow::Disassembly::read(object).expect("a program");
        let liveness = flipwave_hooks::dataflow::Liveness::new(&program);
        let isa = flipwave_isa::Isa::new(&machine.target()).expect("an ISA");
        let mut pc = entry.0;
        let load = loop {
            let bytes = new.object.bytes_at(Pc(pc), 8).expect("code");
            let inst = isa.decode(bytes, Pc(pc)).expect("an instruction");
            if inst.operation.name() == "s_load_dword" {
                break pc;
            }
            pc += u64::from(inst.size);
        };
        let segment = new.object.segment_at(Pc(load)).expect("code");
        let offset = (segment.file_offset() + load - segment.address) as usize + 4;
        let mut bytes = new.object.bytes().to_vec();
        bytes[offset] += 4;
        let broken = CodeObject::parse(&bytes).expect("a code object");
        let wanted = |at| liveness.before(at);
        let check = |new_object| {
            let rules = program.rules().expect("rules");
            flipwave_hooks::checker::check(
                rules,
                object,
                &program,
                &wanted,
                new_object,
                &new.claims,
            )
        };
        assert!(check(&new.object).is_ok());
        let findings = check(&broken).expect_err("another argument is loaded");
        assert!(findings.iter().any(|finding| finding.to_string().contains("not preserved")));
    }
}

#[test]
fn tools_count_the_same_with_preloading() {
    for machine in unified_machines() {
        let file = examples().into_iter().find(|file| file.ends_with("reduction.yaml"));
        let workload = preloading(machine, &file.expect("an example"), COUNTS[1]);
        let golden = workload.golden().expect("a golden run");
        let executed: u64 =
            golden.statistics.iter().map(|dispatch| dispatch.wave_instructions).sum();
        let file =
            ToolFile::shipped("instruction-count").expect("a tool").with("per", "instruction");
        let mut device = gpu(&workload.device).clone();
        let found = measure(
            &mut device,
            |module| gpu(&workload.device).code_object(module),
            &workload.program.dispatches,
            &file,
            &Options::default(),
            hook_compiler(),
        );
        let found = found.unwrap_or_else(|error| panic!("{error}"));
        let rows = found.tables.iter().flat_map(|table| &table.rows);
        let counts = rows.filter_map(|row| InstExecutions::from_row(row));
        assert_eq!(counts.map(|count| count.executions).sum::<u64>(), executed, "{machine}");
    }
}
