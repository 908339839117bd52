//! Histogram of the operations that a kernel executes, with a hook at every instruction.

mod common;

use flipwave_device::Device;
use flipwave_hooks::hook::Variables;
use flipwave_hooks::hook::{Argument, HookCompiler, Mask, Source};
use flipwave_hooks::rewrite::{HookCall, Instrumentation, Selection, When};
use flipwave_sim::EmbeddedGpu;
use std::collections::BTreeMap;
use std::error::Error;

/// Steps of the Collatz sequence: the number of iterations differs between lanes.
const KERNEL: &str = "
kernel void collatz(global const uint *start, global uint *steps)
{
    uint i = 64 * __builtin_amdgcn_workgroup_id_x() + __builtin_amdgcn_workitem_id_x();
    uint count = 0;
    for (ulong value = start[i]; value != 1; ++count)
        value = value % 2 == 0 ? value / 2 : 3 * value + 1;
    steps[i] = count;
}";

/// One lane of the wave increments the counter.
const HOOK: &str = "
uint64_t histogram[512];
void count(uint64_t *counter) { flipwave_count(counter, 1); }";

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let object = common::compile(KERNEL)?;
    let mut instrumentation = Instrumentation::new(&object)?;
    let compiler = HookCompiler::find()?;
    let source = Source { name: "histogram.c".into(), text: HOOK.into(), ..Source::default() };
    let target = object.target();
    let hooks = compiler.read(&source, target, target.default_wave_size())?;
    let source = instrumentation.add_source(hooks);

    // One counter per operation.
    let mut operations: Vec<&str> = Vec::new();
    for at in instrumentation.select(&Selection::default()) {
        let name = instrumentation.program().inst(at).ok_or("an instruction")?.operation.name();
        let number =
            operations.iter().position(|operation| *operation == name).unwrap_or_else(|| {
                operations.push(name);
                operations.len() - 1
            });
        let counter = Argument::Data { symbol: "histogram".into(), offset: 8 * number as u64 };
        let call = HookCall {
            source,
            function: "count".into(),
            arguments: vec![counter],
            results: vec![],
            mask: Mask::Single,
        };
        instrumentation.call(at, When::Before, call);
    }
    let rewritten = instrumentation.rewrite(&compiler)?;

    let mut device = EmbeddedGpu::new(target.clone())?;
    let module = device.load(&rewritten.object)?;
    let start: Vec<u8> = (1..=256u32).flat_map(u32::to_le_bytes).collect();
    let buffers = [common::upload(&mut device, &start)?, device.allocate(4 * 256)?];
    common::launch(&mut device, &object, module, 256, &buffers)?;

    let data = rewritten.data.first().ok_or("the hook's data")?;
    let counts = Variables::read(&device, module, data)?.numbers("histogram")?;
    let histogram: BTreeMap<&str, u64> = operations.into_iter().zip(counts).collect();
    for (operation, count) in &histogram {
        println!("{operation:24} {count:8}");
    }
    // Each of the four waves ends once.
    assert_eq!(histogram.get("s_endpgm"), Some(&4));
    Ok(())
}
