//! Kernels with hooks in trampolines, whose code does not move: they run in lockstep with the originals
//! and violate no rule.

use super::everywhere::touch_one_in;
use flipwave_codeobj::CodeObject;
use flipwave_device::Device;
use flipwave_hooks::checker::check;
use flipwave_hooks::dataflow::Liveness;
use flipwave_hooks::flow::Disassembly;
use flipwave_hooks::layout::{CodeLayout, Placement};
use flipwave_hooks::rewrite::Rewritten;
use flipwave_injector::Workload;
use flipwave_isa::Pc;
use flipwave_tests::{
    Instrumented, MACHINES, assert_lockstep, cases, clean, examples, gpu, gpu_mut, instrument,
    workload,
};

/// Distance of trampolines from their code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reach {
    /// Within the range of branches.
    Near,
    /// Slightly further: branches go through islands.
    Islands,
    /// Far away, behind the hooks' data: reached by jumps.
    Jumps,
}

impl Reach {
    /// Text prepended to the hooks' source.
    fn source(self) -> &'static str {
        match self {
            Reach::Near => "",
            Reach::Islands => "#define LONG\n",
            Reach::Jumps => "uint64_t between[1 << 16] = {1};\n",
        }
    }

    /// Returns `true` if the layout has this distance.
    fn is_of(self, layout: &CodeLayout, object: &CodeObject) -> bool {
        const BRANCH: u64 = 128 << 10;
        let text = object.text().next().expect("code");
        let distance = layout.address - (text.address + text.size);
        match self {
            Reach::Near => distance < BRANCH,
            Reach::Islands => distance < BRANCH && layout.bytes.len() as u64 > BRANCH,
            Reach::Jumps => distance > BRANCH,
        }
    }
}

/// Numbers of requested and of placed hooks.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    requested: usize,
    placed: usize,
}

impl std::ops::AddAssign for Count {
    fn add_assign(&mut self, other: Count) {
        self.requested += other.requested;
        self.placed += other.placed;
    }
}

/// Adds hooks at every second instruction of all code that a workload launches.
fn trampolined(workload: &Workload, reach: Reach) -> (Instrumented, Count) {
    let mut count = Count::default();
    let instrumented = instrument(workload, |instrumentation| {
        instrumentation.place_all(Placement::Trampoline);
        count.requested += touch_one_in(2, reach.source(), instrumentation);
    });
    let mut refused = 0;
    for (module, (_, new)) in &instrumented.rewritten {
        let module = flipwave_device::ModuleId(*module);
        let object =
            gpu(&instrumented.original.device).code_object(module).expect("a loaded module");
        assert!(new.report.proof.is_some(), "not checked");
        assert!(!new.report.kernels.is_empty() && !new.layout.patches.is_empty());
        assert!(new.report.kernels.iter().all(|kernel| kernel.placement == Placement::Trampoline));
        assert!(reach.is_of(&new.layout, object), "{reach:?}");
        for refused in &new.report.refused {
            println!("{} `{}`: {}", refused.pc, refused.instruction.trim(), refused.reason);
        }
        let is_end = |reason: &str| reason == "the instruction has no known successor";
        let nowhere = new.report.refused.iter().filter(|site| is_end(&site.reason)).count();
        count.requested -= nowhere;
        count.placed += new.report.placed;
        refused += new.report.refused.len() - nowhere;
    }
    // Every hook is placed or reported as refused.
    assert_eq!(count.placed + refused, count.requested);
    (instrumented, count)
}

/// Runs a workload with trampolines, alone and in lockstep with the original.
fn run(workload: &Workload, reach: Reach) -> Count {
    let (pair, count) = trampolined(workload, reach);
    let golden = workload.golden().unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(clean(&pair.workload).outputs, golden.outputs);
    assert_lockstep(gpu(&pair.original.device).clone(), pair.twins());
    count
}

/// Asserts that at least `percent` percent of the hooks are placed.
fn assert_most(count: Count, percent: usize) {
    let Count { requested, placed } = count;
    println!("{placed} of {requested} hooks placed");
    assert!(placed * 100 >= requested * percent, "{placed} of {requested} hooks placed");
}

/// Runs a program with near and far trampolines.
pub fn examine(workload: &Workload) {
    assert_most(run(workload, Reach::Near), 100);
    assert_most(run(workload, Reach::Jumps), 90);
}

#[test]
fn examples_compute_the_same_with_near_and_far_trampolines() {
    let [mut near, mut far] = [Count::default(); 2];
    for file in cases(examples(), 3) {
        println!("{}", file.display());
        let workload = workload(MACHINES[0], &file, &["-O3"]);
        near += run(&workload, Reach::Near);
        far += run(&workload, Reach::Jumps);
    }
    assert_most(near, 100);
    // Hooks in loops in which SCC is always live cannot be in far trampolines, because jumps clobber SCC.
    assert_most(far, 80);
}

fn vector_add() -> Workload {
    let file = examples().into_iter().find(|file| file.ends_with("vector_add.yaml"));
    workload(MACHINES[0], &file.expect("an example"), &["-O3"])
}

#[test]
fn distant_trampolines_are_reached_through_islands() {
    assert_most(run(&vector_add(), Reach::Islands), 100);
}

/// Replaces a word at an address.
fn with_word(rewritten: &Rewritten, address: u64, word: &[u8]) -> CodeObject {
    let object = &rewritten.object;
    let segment = object.segment_at(Pc(address)).expect("code");
    let offset = (segment.file_offset() + address - segment.address) as usize;
    let mut bytes = object.bytes().to_vec();
    bytes[offset..offset + word.len()].copy_from_slice(word);
    CodeObject::parse(&bytes).expect("a code object")
}

#[test]
fn checker_and_lockstep_detect_missing_trampoline_branches() {
    let (mut pair, _) = trampolined(&vector_add(), Reach::Near);
    let module = pair.original.program.dispatches[0].module;
    let object = gpu(&pair.original.device).code_object(module).expect("a loaded module").clone();
    let program = Disassembly::read(&object).expect("a program");
    let liveness = Liveness::new(&program);
    let wanted = |at| liveness.before(at);
    let (_, rewritten) = pair.rewritten[&module.0].clone();
    let rules = program.rules().expect("rules");
    check(rules, &object, &program, &wanted, &rewritten.object, &rewritten.claims)
        .expect("all is well");
    let [mut proven, mut seen] = [0; 2];
    for patch in &rewritten.layout.patches {
        let original = object.bytes_at(Pc(patch.address), 4).expect("the instruction");
        let broken = with_word(&rewritten, patch.address, original);
        proven += usize::from(
            check(rules, &object, &program, &wanted, &broken, &rewritten.claims).is_err(),
        );
        pair.workload.program.dispatches[0].module =
            gpu_mut(&mut pair.original.device).load(&broken).expect("loads");
        let twins = pair.twins().next().expect("a launch");
        seen += usize::from(!twins.side_by_side(gpu(&pair.original.device), false).is_clean());
    }
    let branches = rewritten.layout.patches.len();
    assert_eq!(proven, branches, "the checker detects every missing branch");
    // The branch at the first instruction is not taken, because the kernel starts at the entry code.
    assert_eq!(seen, branches - 1, "lockstep detects every missing branch that is taken");
}
