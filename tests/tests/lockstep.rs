//! Lockstep execution of original and instrumented kernels: live registers are equal before every
//! instruction, and memory is equal at the end. A missing instruction in inserted code is detected.

use flipwave_codeobj::CodeObject;
use flipwave_device::{Device, Dispatch};
use flipwave_hooks::checker::{CheckRule, check};
use flipwave_hooks::dataflow::Liveness;
use flipwave_hooks::flow::Disassembly;
use flipwave_hooks::hook::{Argument, Mask};
use flipwave_hooks::rewrite::{HookCall, Rewritten, Selection, When};
use flipwave_injector::Workload;
use flipwave_isa::{Class, Inst, Isa, Pc, Value};
use flipwave_lockstep::Difference;
use flipwave_tests::{
    Instrumented, MACHINES, Machine, Twins, cases, examples, gpu, hook_source, instrument, workload,
};

/// Hooks: one counts, one clobbers registers, and one receives a loaded value.
const HOOKS: &str = r#"
uint64_t counter;
void count(uint64_t *counter) { flipwave_count(counter, 1); }
void touch(uint32_t a)
{
    asm volatile("v_mov_b32 v7, %0\n s_add_u32 s20, s21, s22\n v_add_co_u32 v9, vcc, v7, v7" :: "v"(a) : "v7", "v9", "s20", "vcc", "scc");
}
void see(uint32_t loaded)
{
    asm volatile("v_mov_b32 v7, %0" :: "v"(loaded) : "v7");
}
"#;

/// [`HOOKS`] with instructions that every target and wave size supports.
pub fn portable_hooks() -> String {
    HOOKS.replace("v_add_co_u32 v9, vcc, v7, v7", "s_mov_b32 vcc_lo, s20")
}

/// Adds hooks of the source `text` before and after every instruction.
pub fn with_hooks(workload: &Workload, text: &str) -> Instrumented {
    instrument(workload, |instrumentation| {
        let source = hook_source("hooks.c", text, instrumentation);
        let source = instrumentation.add_source(source);
        let call = |function: &str, argument, mask| HookCall {
            source,
            function: function.into(),
            arguments: vec![argument],
            results: vec![],
            mask,
        };
        for at in instrumentation.select(&Selection::default()) {
            for when in [When::Before, When::After] {
                let touch = call("touch", Argument::Constant(7), Mask::Guest);
                instrumentation.call(at, when, touch);
            }
            let is_load = |inst: &Inst| {
                let loaded = inst.destinations().next().map(|operand| &operand.value);
                inst.class() == Class::Vmem
                    && matches!(loaded, Some(Value::Register(range)) if range.words == 1)
            };
            if instrumentation.program().inst(at).is_some_and(is_load) {
                let see = call("see", Argument::Operand(0), Mask::Guest);
                instrumentation.call(at, When::After, see);
            }
            let counter = Argument::Data { symbol: "counter".into(), offset: 0 };
            instrumentation.call(at, When::Before, call("count", counter, Mask::Single));
        }
    })
}

/// Replaces the instruction at `pc` with `s_nop`.
fn without(object: &CodeObject, pc: u64, size: u8) -> CodeObject {
    const S_NOP: [u8; 4] = [0x00, 0x00, 0x80, 0xbf];
    let segment = object.segment_at(Pc(pc)).expect("code");
    let offset = (segment.file_offset() + pc - segment.address) as usize;
    let mut bytes = object.bytes().to_vec();
    for word in bytes[offset..offset + usize::from(size)].chunks_mut(4) {
        word.copy_from_slice(&S_NOP);
    }
    CodeObject::parse(&bytes).expect("a code object")
}

/// Addresses and sizes of inserted instructions of an operation.
fn inserted(isa: &Isa, rewritten: &Rewritten, operation: &str) -> Vec<(u64, u8)> {
    let mut found = Vec::new();
    for range in rewritten.claims.inserted.iter().map(|inserted| inserted.range.clone()) {
        let mut pc = range.start;
        while pc < range.end {
            let bytes = rewritten.object.bytes_at(Pc(pc), (range.end - pc) as usize);
            let inst = isa.decode(bytes.expect("code"), Pc(pc)).expect("an instruction");
            if inst.operation.name() == operation {
                found.push((pc, inst.size));
            }
            pc += u64::from(inst.size);
        }
    }
    found
}

/// Removes inserted instructions of an operation, one at a time, until both the checker and lockstep
/// execution detect a removal. Removed waits are only detected on the strict level, because the embedded
/// GPU's memory answers immediately.
fn is_missed(pair: &Instrumented, operation: &str, rule: CheckRule) -> bool {
    let dispatch = &pair.original.program.dispatches[0];
    let object = gpu(&pair.original.device).code_object(dispatch.module).expect("a loaded module");
    let program = Disassembly::read(object).expect("a program");
    let liveness = Liveness::new(&program);
    let isa = Isa::with_wave_size(&program.target, program.wave_size).expect("a target");
    let (_, rewritten) = &pair.rewritten[&dispatch.module.0];
    for (pc, size) in inserted(&isa, rewritten, operation) {
        let broken = without(&rewritten.object, pc, size);
        let wanted = |at| liveness.before(at);
        let Err(findings) = check(
            program.rules().expect("rules"),
            object,
            &program,
            &wanted,
            &broken,
            &rewritten.claims,
        ) else {
            continue;
        };
        if !findings.iter().any(|finding| finding.rule == rule) {
            continue;
        }
        let mut device = gpu(&pair.original.device).clone();
        let module = device.load(&broken).expect("loads");
        let instrumented = &Dispatch { module, ..pair.workload.program.dispatches[0].clone() };
        let substituted = Default::default();
        let twins = Twins { original: dispatch, instrumented, rewritten, substituted };
        let report = twins.side_by_side(&device, rule == CheckRule::Waits);
        if !report.is_clean() {
            println!("{operation} at {pc:#x}: {}", findings[0]);
            println!("    {:?} {:?}", report.difference, report.violations.first());
            return true;
        }
    }
    false
}

#[test]
fn checker_and_lockstep_detect_missing_saves_restores_and_waits() {
    let file = examples().into_iter().find(|file| file.ends_with("matmul.yaml"));
    let pair = with_hooks(&workload(MACHINES[0], &file.expect("an example"), &["-O3"]), HOOKS);
    let first = pair.twins().next().expect("a launch");
    let clean = first.side_by_side(gpu(&pair.original.device), true);
    assert!(clean.is_clean(), "{:?}", clean.difference);
    for (operation, rule) in [
        ("s_cmp_lg_u32", CheckRule::Registers),
        ("s_cselect_b32", CheckRule::Registers),
        ("s_mov_b64", CheckRule::Registers),
        ("s_waitcnt", CheckRule::Waits),
    ] {
        assert!(is_missed(&pair, operation, rule), "no missing `{operation}` is detected");
    }
}

/// Code for a generic target respects the rules of all processors that it covers.
#[test]
fn code_for_generic_targets_can_be_rewritten() {
    for (processor, generic) in [
        ("gfx942", "-mcpu=gfx9-4-generic"),
        ("gfx1100", "-mcpu=gfx11-generic"),
        ("gfx1201", "-mcpu=gfx12-generic"),
    ] {
        let hooks = portable_hooks();
        let is_match = |machine: &Machine| machine.target().processor() == processor;
        let machine = MACHINES.into_iter().find(is_match).expect("a machine");
        for name in cases(["scan.yaml", "matmul.yaml"], 2) {
            let file = examples().into_iter().find(|file| file.ends_with(name));
            let program = workload(machine, &file.expect("an example"), &["-O3", generic]);
            let pair = with_hooks(&program, &hooks);
            for twins in pair.twins() {
                let report = twins.side_by_side(gpu(&pair.original.device), true);
                assert!(report.is_clean(), "{generic} {name}: {:?}", report.difference);
            }
        }
    }
}

#[test]
fn lockstep_reports_the_first_difference() {
    let file = examples().into_iter().find(|file| file.ends_with("matmul.yaml"));
    let pair = with_hooks(&workload(MACHINES[0], &file.expect("an example"), &["-O3"]), HOOKS);
    let first = pair.twins().next().expect("a launch");
    // A kernel with other arguments loads other values into registers.
    let mut instrumented = first.instrumented.clone();
    instrumented.kernarg[0] ^= 0x40;
    let twins = Twins { instrumented: &instrumented, ..first };
    match twins.side_by_side(gpu(&pair.original.device), false).difference {
        Some(Difference::Register { original, instrumented, .. }) => {
            assert_eq!(original ^ instrumented, 0x40);
        }
        difference => panic!("{difference:?}"),
    }
}
