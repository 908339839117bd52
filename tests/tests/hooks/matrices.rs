//! Hooks everywhere in matrix products, on every target with matrix instructions.

use super::everywhere::touched;
use super::keep_in_step;
use crate::matrix::{Variant, everyday, variants};
use flipwave_codeobj::CodeObject;
use flipwave_device::{Device, Dispatch};
use flipwave_hooks::flow::Disassembly;
use flipwave_isa::Inst;
use flipwave_tests::{TestProgram, Twins, cases, gpu, is_long_run};

/// Runs a kernel in lockstep with a version that has hooks before and after each instruction.
fn keeps_step(variant: &Variant) {
    let code_object = variant.code_object("-O3");
    let original = CodeObject::parse(&code_object).expect("a code object");
    let outputs = |program: TestProgram| {
        let mut program = program;
        variant.launch_near(&mut program);
        program.outputs()
    };
    let golden = outputs(TestProgram::new(&code_object));
    let rewritten = touched(&original);
    println!("{variant}: {} hooks", rewritten.report.placed);
    let program = TestProgram::new(rewritten.object.bytes());
    let program = if variant.machine.has_strict_level() { program.strictly() } else { program };
    let program = program.examined(move |workload| keep_in_step(workload, &original, &rewritten));
    assert_eq!(outputs(program), golden, "{variant}");
}

#[test]
fn matrix_products_run_in_lockstep_with_hooks_everywhere() {
    let all = if is_long_run() { variants() } else { everyday() };
    cases(&all, 5).for_each(keeps_step);
}

/// Negative control: a matrix instruction is missing in the rewritten code.
#[test]
fn lockstep_detects_a_missing_matrix_instruction() {
    const S_NOP: [u8; 4] = [0x00, 0x00, 0x80, 0xbf];
    let mut few = everyday();
    few.dedup_by_key(|variant| variant.machine.target());
    for variant in few {
        let code_object = variant.code_object("-O3");
        let original = CodeObject::parse(&code_object).expect("a code object");
        let program = Disassembly::read(&original).expect("a program");
        let mut insts = program.insts().map(|(_, inst)| inst);
        let is_one = |inst: &&Inst| inst.operation.name().contains(variant.opcode());
        let lost = insts.find(is_one).expect("a matrix instruction");
        let lost = original.bytes_at(lost.pc, lost.size.into()).expect("its bytes");
        let rewritten = touched(&original);
        let mut bytes = rewritten.object.bytes().to_vec();
        let place = bytes.windows(lost.len()).position(|bytes| bytes == lost).expect("it is there");
        bytes[place..place + lost.len()].copy_from_slice(&S_NOP.repeat(lost.len() / 4));
        let broken = CodeObject::parse(&bytes).expect("a code object");

        let mut program = TestProgram::new(&code_object);
        variant.launch_near(&mut program);
        let workload = program.workload();
        let mut device = gpu(&workload.device).clone();
        let module = device.load(&broken).expect("loads");
        let original = &workload.program.dispatches[0];
        let instrumented = &Dispatch { module, ..original.clone() };
        let substituted = Default::default();
        let twins = Twins { original, instrumented, rewritten: &rewritten, substituted };
        let report = twins.side_by_side(&device, false);
        assert!(report.difference.is_some(), "{variant}: not detected");
    }
}
