//! A workload of three dispatches with memory changes between them.

use crate::common::compile;
use flipwave_device::{Address, ArgumentValue, Change, Device, Dispatch, Patch, layout};
use flipwave_injector::{Buffer, Changes, Program, Workload};
use flipwave_machine::Simulator;
use flipwave_sim::EmbeddedGpu;

/// Words of a buffer: 12 workgroups of 64 work-items.
pub const WORDS: usize = 12 * 64;
const BYTES: u64 = 4 * WORDS as u64;
/// Memory that is mapped twice during the run.
const MAPPED: Address = Address(0x7f80_1234_5000);

// Indices of the buffers.
const IN: usize = 0;
pub const FIRST: usize = 1;
pub const THIRD: usize = 2;
const OUT: usize = 3;
const KEPT: usize = 4;
pub const NOTE: usize = 5;

/// This many different words.
pub fn words(seed: u32, count: usize) -> Vec<u32> {
    (0..count as u32).map(|i| (i + seed).wrapping_mul(0x9e37_79b9) >> 3).collect()
}

/// The words as bytes of device memory.
pub fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn at(start: Address, word: usize) -> Address {
    Address(start.0 + 4 * word as u64)
}

/// Three dispatches, with changes of each kind before, between and after them.
pub fn workload() -> Workload {
    let object = compile("changes.cl", "gfx90a", &[]);
    let mut device = EmbeddedGpu::new("gfx90a".parse().expect("a target")).expect("a GPU");
    let module = device.load(&object).expect("loads");
    let buffers: Vec<Buffer> = ["in", "first", "third", "out", "kept", "note"]
        .map(|name| {
            let address = device.allocate(BYTES).expect("memory");
            Buffer { name: name.to_owned(), address, bytes: BYTES as usize }
        })
        .into();
    let address = |number: usize| buffers[number].address;
    let launch = |order: [Address; 3]| {
        let (grid, workgroup) = ([WORDS as u32, 1, 1], [64, 1, 1]);
        let arguments = order.map(ArgumentValue::Buffer);
        let kernel = object.kernel("step").expect("the kernel");
        let layout = layout(kernel, &arguments, grid, workgroup).expect("the arguments");
        Dispatch {
            module,
            kernel: "step".to_owned(),
            grid,
            workgroup,
            kernarg: layout.kernarg,
            dynamic_lds: layout.dynamic_lds,
            instruction_limit: 1_000_000,
            queued: None,
            is_cooperative: false,
        }
    };
    let dispatches = vec![
        launch([address(IN), address(IN), address(FIRST)]),
        launch([MAPPED, address(IN), MAPPED]),
        launch([address(THIRD), MAPPED, address(OUT)]),
    ];
    let mut patch = Patch::new(MAPPED, &bytes(&words(1, 64)));
    patch.add(Address(at(MAPPED, 700).0 + 1), &[1]);
    patch.add(Address(at(MAPPED, 701).0 + 3), &[2, 3]);
    let map = || Change::Map { address: MAPPED, bytes: BYTES };
    let write = |to, words: Vec<u32>| Change::Write(Patch::new(to, &bytes(&words)));
    let copy = |from, to, words: usize| Change::Copy { from, to, bytes: 4 * words as u64 };
    let mut changes = Changes::default();
    for (index, change) in [
        (0, write(address(IN), words(2, WORDS))),
        // Source and destination overlap.
        (0, copy(address(IN), at(address(IN), 32), 64)),
        (1, map()),
        (1, copy(address(FIRST), MAPPED, WORDS)),
        (1, Change::Write(patch)),
        (2, copy(MAPPED, address(THIRD), WORDS)),
        (2, Change::Unmap { address: MAPPED }),
        (2, map()),
        (2, write(at(MAPPED, 128), words(3, 64))),
        (2, write(address(NOTE), words(4, WORDS))),
        (3, copy(at(address(FIRST), 64), address(KEPT), WORDS - 64)),
        (3, write(at(address(OUT), 300), words(5, 2))),
    ] {
        changes.add(index, change);
    }
    let outputs = [OUT, KEPT, NOTE].map(|number| buffers[number].clone()).to_vec();
    let cancellation = Default::default();
    let program = Program { dispatches, changes, buffers, outputs };
    Workload { device: Simulator::new(device), program, cancellation }
}

/// The workload without change number `left_out`.
pub fn without(workload: &Workload, left_out: usize) -> Workload {
    let mut changes = Changes::default();
    let all = (0..=workload.program.dispatches.len()).flat_map(|index| {
        workload.program.changes.before(index).iter().map(move |change| (index, change))
    });
    for (index, change) in
        all.enumerate().filter(|(at, _)| *at != left_out).map(|(_, indexed_change)| indexed_change)
    {
        changes.add(index, change.clone());
    }
    let Workload { program, .. } = workload.clone();
    Workload { program: Program { changes, ..program }, ..workload.clone() }
}
