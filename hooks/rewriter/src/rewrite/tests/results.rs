//! Runs hooks on the embedded GPU and tests the values that they read and write.

use super::{add, compiler};
use crate::flow::InstIndex;
use crate::hook::{Argument, Mask, VariableError, Variables};
use crate::layout::tests::sample::Sample;
use crate::rewrite::{HookCall, Instrumentation, Rewritten, SourceIndex, When};
use flipwave_device::{Completion, Device, Dispatch, ModuleId};
use flipwave_isa::RegisterRange;
use flipwave_sim::EmbeddedGpu;

/// Four lanes of the lower half and two of the upper half are active.
const KERNEL: &str = "v_mov_b32 v1, 7\ns_mov_b32 exec_lo, 15\ns_mov_b32 exec_hi, 5\ns_nop 0\n\
    s_nop 0\ns_endpgm\n";

const HOOKS: &str = "
uint32_t seen[64];
uint32_t wanted;
void see(uint32_t value) { seen[flipwave_lane()] = value; }
uint32_t give(uint32_t value) { return value; }
void see_wanted(void) { seen[0] = wanted; }
void see_of_wave(uint32_t value, uint32_t x, uint32_t y, uint32_t z, uint32_t wave)
{
    seen[0] = value;
    seen[1 + wave] = x + y + z;
}
void use_lds(void)
{
    flipwave_write_lds(8, 0x1234);
    seen[0] = flipwave_read_lds(8);
    seen[1] = flipwave_read_lds(4);
    flipwave_write_lds(1 << 16, 1);
    seen[2] = flipwave_read_lds(1 << 16);
}
";

fn register(name: &str) -> RegisterRange {
    RegisterRange::new(name.parse().expect("a register"), 1)
}

/// A rewritten kernel on a device, whose hooks write to `seen`.
struct Run {
    device: EmbeddedGpu,
    module: ModuleId,
    rewritten: Rewritten,
}

impl Run {
    fn new(processor: &str, make: impl FnOnce(&mut Instrumentation<'_>, SourceIndex)) -> Run {
        let directives = ".amdhsa_group_segment_fixed_size 64";
        let sample = Sample::new(processor, &[("k", KERNEL.to_owned())], directives, "");
        let mut instrumentation = Instrumentation::new(&sample.object).expect("code");
        let source = add(&mut instrumentation, HOOKS);
        make(&mut instrumentation, source);
        let rewritten =
            instrumentation.rewrite(compiler()).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(rewritten.report.refused, []);
        let mut device = EmbeddedGpu::new(sample.object.target().clone()).expect("a GPU");
        let module = device.load(&rewritten.object).expect("loads");
        Run { device, module, rewritten }
    }

    fn seen(mut self) -> Vec<u32> {
        let dispatch = Dispatch {
            module: self.module,
            kernel: "k".into(),
            grid: [64, 1, 1],
            workgroup: [64, 1, 1],
            kernarg: Vec::new(),
            dynamic_lds: 0,
            instruction_limit: 10_000,
            queued: None,
            is_cooperative: false,
        };
        let end = self.device.dispatch(&dispatch).expect("a launch");
        assert!(matches!(end, Completion::Completed(_)), "{end:?}");
        let data = &self.rewritten.data[0];
        let variables = Variables::read(&self.device, self.module, data).expect("the variables");
        let (words, _) = variables.bytes("seen").expect("seen").as_chunks();
        words.iter().map(|word| u32::from_le_bytes(*word)).collect()
    }
}

fn call(source: SourceIndex, function: &str, arguments: Vec<Argument>, mask: Mask) -> HookCall {
    HookCall { source, function: function.into(), arguments, results: Vec::new(), mask }
}

#[test]
fn results_are_written_to_inactive_lanes_only_with_mask_all() {
    for (mask, everywhere) in [(Mask::All, true), (Mask::Whole, false), (Mask::Guest, false)] {
        let run = Run::new("gfx90a", |instrumentation, source| {
            let give = call(source, "give", vec![Argument::Constant(9)], mask);
            let give = HookCall { results: vec![register("v1")], ..give };
            instrumentation.call(InstIndex(3), When::After, give);
            let value = vec![Argument::Register(register("v1"))];
            let see = call(source, "see", value, Mask::Whole);
            instrumentation.call(InstIndex(4), When::After, see);
        });
        let runs = |lane: u64| 0x5_0000_000fu64 >> lane & 1 != 0;
        let expected: Vec<u32> =
            (0..64).map(|lane| if everywhere || runs(lane) { 9 } else { 7 }).collect();
        assert_eq!(run.seen(), expected, "{mask:?}");
    }
}

#[test]
fn hooks_with_any_mask_read_the_programs_exec() {
    for mask in [Mask::Guest, Mask::Single, Mask::Whole, Mask::All] {
        for (half, holds) in [("exec_lo", 15), ("exec_hi", 5)] {
            let run = Run::new("gfx90a", |instrumentation, source| {
                let value = vec![Argument::Register(register(half))];
                instrumentation.call(InstIndex(3), When::After, call(source, "see", value, mask));
            });
            assert_eq!(run.seen()[0], holds, "{half} {mask:?}");
        }
    }
}

/// The prologue computes the wave's number and has further inputs.
#[test]
fn uninitialized_registers_read_as_zero_in_hooks() {
    for processor in ["gfx906", "gfx90a", "gfx1100"] {
        let sgprs = (2..40).map(|number| format!("s{number}"));
        for name in sgprs.chain(["v2".to_owned()]) {
            let run = Run::new(processor, |instrumentation, source| {
                let mut arguments = vec![Argument::Register(register(&name))];
                arguments.extend((0..3).map(Argument::WorkgroupId));
                arguments.push(Argument::WaveInWorkgroup);
                let see = call(source, "see_of_wave", arguments, Mask::Single);
                instrumentation.call(InstIndex(1), When::After, see);
            });
            // One of the registers holds the workgroup's number, which is zero.
            assert_eq!(run.seen()[0], 0, "{processor} {name}");
        }
    }
}

#[test]
fn hooks_read_variables_written_by_the_host() {
    let mut run = Run::new("gfx90a", |instrumentation, source| {
        let see = call(source, "see_wanted", Vec::new(), Mask::Single);
        instrumentation.call(InstIndex(3), When::After, see);
    });
    let data = run.rewritten.data[0].clone();
    let mut write = |name: &str, bytes: &[u8]| {
        Variables::write(&mut run.device, run.module, &data, name, bytes)
    };
    assert!(matches!(write("wanted", &[1]), Err(VariableError::Size { size: 4, given: 1, .. })));
    assert!(matches!(write("missing", &[1; 4]), Err(VariableError::Unknown { .. })));
    write("wanted", &0xabcd_u32.to_le_bytes()).expect("written");
    assert_eq!(run.seen()[0], 0xabcd);
}

#[test]
fn hooks_access_only_the_lds_of_the_workgroup() {
    for processor in ["gfx90a", "gfx1100"] {
        let run = Run::new(processor, |instrumentation, source| {
            let uses = call(source, "use_lds", Vec::new(), Mask::Single);
            instrumentation.call(InstIndex(3), When::After, uses);
        });
        assert_eq!(run.seen()[..3], [0x1234, 0, 0], "{processor}");
    }
}
