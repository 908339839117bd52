//! Original and instrumented kernels side by side: every register that is wanted before an
//! instruction holds the same on both sides, and so does memory at the end; and where inserted
//! code lacks an instruction, that shows.

use flipwave_campaigns::{Campaign, Code, prepare};
use flipwave_codeobj::CodeObject;
use flipwave_device::Device;
use flipwave_hooks::checker::{Rule, check};
use flipwave_hooks::flow::Program;
use flipwave_hooks::hook::{Argument, Mask};
use flipwave_hooks::liveness::Liveness;
use flipwave_hooks::lockstep::{Difference, Lockstep, LockstepReport};
use flipwave_hooks::rewrite::{HookCall, Rewritten, Selection, When};
use flipwave_injector::Workload;
use flipwave_isa::{Isa, Pc, RegisterSet};
use flipwave_tests::{Instrumented, examples, hook_source, instrument};
use std::path::Path;

/// A hook that counts, with flags and registers of its own, and one that writes what it likes.
const HOOKS: &str = r#"
uint64_t counter;
void count(uint64_t *counter) { flipwave_count(counter, 1); }
void touch(uint32_t a)
{
    asm volatile("v_mov_b32 v7, %0\n s_add_u32 s20, s21, s22\n v_add_co_u32 v9, vcc, v7, v7" :: "v"(a) : "v7", "v9", "s20", "vcc", "scc");
}
"#;

fn workload(file: &Path, level: &str) -> Workload {
    let mut campaign = Campaign::read(file).unwrap_or_else(|error| panic!("{error}"));
    for launch in &mut campaign.launches {
        if let Code::Source { options, .. } = &mut launch.code {
            *options = vec![level.to_owned()];
        }
    }
    prepare(&campaign).unwrap_or_else(|error| panic!("{error}")).workload
}

/// Both hooks before and after every instruction.
fn with_hooks(workload: &Workload) -> Instrumented {
    instrument(workload, |instrumentation| {
        let source = hook_source("hooks.c", HOOKS, instrumentation);
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
            let counter = Argument::Data { symbol: "counter".into(), offset: 0 };
            instrumentation.call(at, When::Before, call("count", counter, Mask::Single));
        }
    })
}

/// Runs one launch of a workload side by side with its instrumented twin.
fn side_by_side(pair: &Instrumented, launch: usize, is_strict: bool) -> LockstepReport {
    let original = &pair.original.dispatches[launch];
    let object = pair.original.device.code_object(original.module).expect("a loaded module");
    let program = Program::read(object).expect("a program");
    let liveness = Liveness::new(&program);
    let (_, rewritten) = &pair.rewritten[&original.module.0];
    let lockstep = Lockstep {
        program: &program,
        wanted: &|at| liveness.before(at),
        claims: &rewritten.claims,
        gpu: &pair.original.device,
        original,
        instrumented: &pair.workload.dispatches[launch],
        changed: RegisterSet::EMPTY,
        ignored: Vec::new(),
        is_strict,
    };
    lockstep.run().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn instrumented_examples_keep_step_with_the_originals() {
    for file in examples() {
        // Without optimisation there is scratch, and where it lies depends on the order of the
        // workgroups, which longer code changes.
        for level in ["-O3"] {
            let name = format!("{} {level}", file.display());
            let mut pair = with_hooks(&workload(&file, level));
            for launch in 0..pair.original.dispatches.len() {
                let report = side_by_side(&pair, launch, false);
                println!(
                    "{name}: {} instructions, {} values",
                    report.instructions, report.registers
                );
                if let Some(difference) = &report.difference {
                    panic!("{name}: {difference}");
                }
                assert!(report.violations.is_empty(), "{name}: {:?}", report.violations);
                assert!(report.instructions > 0 && report.registers > report.instructions);
                let dispatch = pair.original.dispatches[launch].clone();
                pair.original.device.dispatch(&dispatch).expect("runs");
            }
            for (_, rewritten) in pair.rewritten.values() {
                println!("{name}: {:?} {:?}", rewritten.report.proof, rewritten.report.checking);
            }
        }
    }
}

/// The code object with the instruction at `pc` replaced by `s_nop`.
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

/// Inserted instructions of an operation, with their sizes.
fn inserted(isa: &Isa, rewritten: &Rewritten, operation: &str) -> Vec<(u64, u8)> {
    let mut found = Vec::new();
    for range in rewritten.claims.inserted.iter().map(|own| own.range.clone()) {
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

/// Leaves inserted instructions of an operation out, one at a time, until leaving one out is found
/// by both the checker and by running side by side.
fn is_missed(pair: &Instrumented, operation: &str, rule: Rule) -> bool {
    let dispatch = &pair.original.dispatches[0];
    let object = pair.original.device.code_object(dispatch.module).expect("a loaded module");
    let program = Program::read(object).expect("a program");
    let liveness = Liveness::new(&program);
    let isa = Isa::with_wave_size(&program.target, program.wave_size).expect("a target");
    let (_, rewritten) = &pair.rewritten[&dispatch.module.0];
    for (pc, size) in inserted(&isa, rewritten, operation) {
        let broken = without(&rewritten.object, pc, size);
        let wanted = |at| liveness.before(at);
        let Err(findings) = check(object, &program, &wanted, &broken, &rewritten.claims) else {
            continue;
        };
        if !findings.iter().any(|finding| finding.rule == rule) {
            continue;
        }
        let mut device = pair.original.device.clone();
        let module = device.load(&broken).expect("loads");
        let mut pair = Instrumented {
            rewritten: pair.rewritten.clone(),
            original: Workload { device, ..pair.original.clone() },
            workload: pair.workload.clone(),
        };
        pair.workload.dispatches[0].module = module;
        if let Some(difference) = side_by_side(&pair, 0, false).difference {
            println!("{operation} at {pc:#x}: {}\n    {difference}", findings[0]);
            return true;
        }
    }
    false
}

#[test]
fn a_save_or_a_restore_that_is_left_out_is_found_by_checker_and_lockstep() {
    let file = examples().into_iter().find(|file| file.ends_with("matmul.yaml"));
    let pair = with_hooks(&workload(&file.expect("an example"), "-O3"));
    let clean = side_by_side(&pair, 0, true);
    assert!(clean.is_clean(), "{:?}", clean.difference);
    for (operation, rule) in [
        ("s_cmp_lg_u32", Rule::Registers),
        ("s_cselect_b32", Rule::Registers),
        ("s_mov_b64", Rule::Registers),
    ] {
        assert!(is_missed(&pair, operation, rule), "nobody misses any `{operation}`");
    }
}

#[test]
fn the_first_difference_is_named() {
    let file = examples().into_iter().find(|file| file.ends_with("matmul.yaml"));
    let pair = with_hooks(&workload(&file.expect("an example"), "-O3"));
    let mut other = Instrumented {
        rewritten: pair.rewritten.clone(),
        original: pair.original.clone(),
        workload: pair.workload.clone(),
    };
    // A kernel that gets other arguments loads them into other registers' values.
    let kernarg = &mut other.workload.dispatches[0].kernarg;
    kernarg[0] ^= 0x40;
    let report = side_by_side(&other, 0, false);
    match report.difference {
        Some(Difference::Register { original, instrumented, .. }) => {
            assert_eq!(original ^ instrumented, 0x40);
        }
        other => panic!("{other:?}"),
    }
}
