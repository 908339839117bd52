//! Live-range splitting of entry values in kernels without a register that is free throughout: values move
//! between dead SGPRs, and hooks find them everywhere.

use flipwave_codeobj::CodeObject;
use flipwave_device::{Completion, Device};
use flipwave_hooks::hook::Variables;
use flipwave_hooks::hook::{Argument, EntryValue, Mask};
use flipwave_hooks::rewrite::{
    HookCall, Instrumentation, Rewritten, Selection, ValueStorage, When,
};
use flipwave_injector::Workload;
use flipwave_isa::Class;
use flipwave_tests::{
    MACHINES, Machine, TestProgram, assemble_for, gpu, gpu_mut, hook_compiler, hook_source,
};
use flipwave_tools::{InstExecutions, Options, ToolFile, measure};
use std::fmt::Write;

const HOOKS: &str = "
uint64_t seen[64];
uint64_t buffers[64];
uint64_t strangers;

/* Counts by wave, and stores the kernel's argument. */
void see(uint32_t workgroup, uint32_t wave, uint64_t kernarg)
{
    if (workgroup < 3 && wave < 8) {
        flipwave_count(&seen[workgroup * 8 + wave], 1);
        buffers[workgroup * 8 + wave] = *(const uint64_t *)kernarg;
    } else {
        flipwave_count(&strangers, 1);
    }
}
";

/// A kernel that uses every register: first one half of the SGPRs, then the other half, which every second
/// wave skips, then the first half again.
fn full(machine: Machine) -> String {
    let count = machine.target().max_sgprs();
    let (first, second): (Vec<u8>, Vec<u8>) =
        (0..count).filter(|number| ![2, 3].contains(number)).partition(|number| number % 2 == 0);
    let mut body = format!(".set sgprs, {count}\n.set vgprs, 256\n.set accum_offset, 256\n");
    for number in 2..256 {
        _ = writeln!(body, "v_mov_b32 v{number}, {number}");
    }
    body += "s_mov_b32 m0, 0\n";
    for (phase, half) in [&first, &second, &first].into_iter().enumerate() {
        if phase == 1 {
            let lanes = machine.lanes.trailing_zeros();
            _ = writeln!(body, "v_readfirstlane_b32 s9, v0\ns_bitcmp1_b32 s9, {lanes}");
            body += "s_cbranch_scc1 without\n";
        }
        for number in half {
            _ = writeln!(body, "s_mov_b32 s{number}, {}", u32::from(*number) * 7 + 1000);
        }
        let (counter, rest) = half.split_first().expect("registers");
        _ = writeln!(body, "s_mov_b32 s{counter}, 3\nagain_{phase}:");
        for (number, before) in rest.iter().zip(rest.iter().skip(1)) {
            _ = writeln!(body, "s_add_u32 s{number}, s{number}, s{before}");
        }
        _ = writeln!(body, "s_sub_u32 s{counter}, s{counter}, 1\ns_cmp_lg_u32 s{counter}, 0");
        _ = writeln!(body, "s_cbranch_scc1 again_{phase}");
        for number in rest {
            _ = writeln!(body, "s_xor_b32 m0, m0, s{number}");
        }
        if phase == 1 {
            body += "without:\n";
        }
    }
    body + "v_mov_b32 v2, m0\nglobal_store_dword v1, v2, s[2:3]\n"
}

/// Adds hooks that read entry values, alternately before and after every scalar instruction.
fn watched(code_object: &[u8], keeping: &[ValueStorage]) -> Rewritten {
    let object = CodeObject::parse(code_object).expect("a code object");
    let mut instrumentation =
        Instrumentation::new(&object).unwrap_or_else(|error| panic!("{error}"));
    instrumentation.set_value_storage(keeping);
    let source = instrumentation.add_source(hook_source("see.c", HOOKS, &instrumentation));
    let scalar = Selection { class: Some(Class::Salu), ..Selection::default() };
    let turns = [When::Before, When::After].into_iter().cycle();
    for (at, when) in instrumentation.select(&scalar).into_iter().zip(turns) {
        let call = HookCall {
            source,
            function: "see".into(),
            arguments: vec![Argument::WorkgroupId(0), Argument::WaveInWorkgroup, Argument::Kernarg],
            results: Vec::new(),
            mask: Mask::Single,
        };
        instrumentation.call(at, when, call);
    }
    instrumentation.rewrite(hook_compiler()).unwrap_or_else(|error| panic!("{error}"))
}

fn machines() -> impl Iterator<Item = Machine> {
    let names = ["gfx90a with 64 lanes", "gfx1100 with 32 lanes"];
    MACHINES.into_iter().filter(move |machine| names.contains(&machine.to_string().as_str()))
}

/// A program that launches three workgroups of 256 work-items.
fn program(code_object: &[u8]) -> TestProgram {
    let mut program = TestProgram::new(code_object).strictly();
    let out = program.output(&[0u32; 256]);
    program.launch("planted", [768, 1, 1], [256, 1, 1], &[out]);
    program
}

/// Number of scalar instructions that all waves execute, counted by a tool without entry values.
fn scalars(workload: &Workload, code_object: &[u8]) -> u64 {
    let object = CodeObject::parse(code_object).expect("a code object");
    let file = ToolFile::shipped("instruction-count").expect("a tool").with("per", "instruction");
    let (mut device, dispatches) = (gpu(&workload.device).clone(), &workload.program.dispatches);
    let found = measure(
        &mut device,
        |_| Some(&object),
        dispatches,
        &file,
        &Options::default(),
        hook_compiler(),
    );
    let found = found.unwrap_or_else(|error| panic!("{error}"));
    let instrumentation = Instrumentation::new(&object).unwrap_or_else(|error| panic!("{error}"));
    let program = instrumentation.program();
    let is_scalar = |pc| {
        let inst = program.at(pc).and_then(|at| program.inst(at));
        inst.is_some_and(|inst| inst.class() == Class::Salu)
    };
    let rows = found.tables.iter().flat_map(|table| &table.rows);
    let rows = rows.filter_map(|row| InstExecutions::from_row(row));
    rows.filter(|count| is_scalar(count.pc)).map(|count| count.executions).sum()
}

#[test]
fn live_range_splitting_keeps_entry_values_in_a_kernel_of_all_registers() {
    for machine in machines() {
        println!("{machine}");
        let kernel = assemble_for(machine, &full(machine)).code_object;
        let original = program(&kernel);
        let new = watched(&kernel, &ValueStorage::ORDER);
        let report = &new.report;
        assert!(report.proof.is_some(), "not checked");
        let [kernel_report] = report.kernels.as_slice() else { panic!("{:?}", report.kernels) };
        let kept = [EntryValue::Kernarg, EntryValue::WorkgroupId(0), EntryValue::WaveInWorkgroup];
        assert_eq!(kernel_report.state, kept.map(|value| (value, ValueStorage::DeadSgprs)).into());
        println!("{} moves", kernel_report.moves);
        assert!(kernel_report.moves > 4);
        assert_eq!(report.refused, []);

        let instrumented = program(new.object.bytes());
        assert_eq!(instrumented.outputs(), original.outputs());
        let mut workload = instrumented.workload();
        let dispatch = workload.program.dispatches[0].clone();
        let end = gpu_mut(&mut workload.device).dispatch(&dispatch).expect("a launch");
        assert!(matches!(end, Completion::Completed(_)), "{end:?}");
        let variables = Variables::read(gpu(&workload.device), dispatch.module, &new.data[0]);
        let variables = variables.expect("the hooks' variables");
        let numbers = |name| variables.numbers(name).expect("numbers");
        assert_eq!(numbers("strangers"), [0]);

        let waves = 256 / machine.lanes;
        let seen = numbers("seen");
        assert_eq!(seen.iter().sum::<u64>(), scalars(&original.workload(), &kernel));
        let buffer = workload.program.outputs[0].address.0;
        for (at, (seen_here, found)) in seen.iter().zip(numbers("buffers")).enumerate() {
            let (workgroup, wave) = (at / 8, at % 8);
            let is_there = workgroup < 3 && wave < waves;
            assert_eq!(found, if is_there { buffer } else { 0 }, "{workgroup} {wave}");
            let same = if is_there { seen[wave % 2] } else { 0 };
            assert_eq!(*seen_here, same, "{workgroup} {wave}");
        }
    }
}

/// Negative control: without live-range splitting, no reserved register is found.
#[test]
fn kernel_of_all_registers_has_no_reserved_register() {
    let others: Vec<ValueStorage> = ValueStorage::ORDER
        .into_iter()
        .filter(|keeping| *keeping != ValueStorage::DeadSgprs)
        .collect();
    for machine in machines() {
        let kernel = assemble_for(machine, &full(machine)).code_object;
        let new = watched(&kernel, &others);
        assert_eq!(new.report.placed, 0, "{machine}");
        assert!(new.report.kernels[0].state.is_empty());
    }
}
