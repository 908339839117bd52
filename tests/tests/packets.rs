//! The packet of a dispatch in device memory follows the HSA specification
//! (`hsa_kernel_dispatch_packet_t`), regardless of how the dispatch was submitted.

use flipwave_analysis::Outcome;
use flipwave_codeobj::CodeObject;
use flipwave_tests::{
    MACHINES, TestProgram, cases, compile_for, flipwave, timeless_rows, to_values,
};

const WORDS: usize = 40;

#[test]
fn kernels_see_every_field_of_their_packet() {
    for machine in cases(MACHINES, 3) {
        println!("{machine}");
        let bytes = compile_for(machine, "packet.cl", &["-O2"]);
        let object = CodeObject::parse(&bytes).expect("a code object");
        let kernel = object.kernels().iter().find(|kernel| &*kernel.name == "packet").expect("it");
        let descriptor = kernel.descriptor.address;
        let mut program = TestProgram::new(&bytes);
        let seen = program.output(&[0u32; WORDS]);
        program.launch("packet", [96, 2, 1], [32, 2, 1], &[seen]);
        let seen = to_values::<u32>(&program.outputs()[0]);
        let wide = |at: usize| u64::from(seen[at]) | u64::from(seen[at + 1]) << 32;
        // A kernel dispatch with the barrier bit, system-scope fences, and three dimensions.
        assert_eq!((seen[0] & 0xffff, seen[0] >> 16), (2 | 1 << 8 | 2 << 9 | 2 << 11, 3));
        // The workgroup size in 16 bits each, then reserved bits; the grid size in 32 bits each.
        assert_eq!((seen[1], seen[2]), (32 | 2 << 16, 1));
        assert_eq!(seen[3..6], [96, 2, 1]);
        assert_eq!(seen[6], kernel.descriptor.private_segment_fixed_size);
        assert_eq!(seen[7], kernel.descriptor.group_segment_fixed_size);
        // The packet points to the descriptor, which equals that in the code object.
        assert_ne!(wide(8), 0);
        let expected = object.bytes_at(flipwave_isa::Pc(descriptor), 64).expect("a descriptor");
        assert_eq!(seen[16..32], to_values::<u32>(expected));
        // The first argument is the buffer's address.
        assert_eq!(wide(32), wide(34));
        assert_eq!(wide(12), 0, "reserved");
        // A user signal that has not been decremented yet.
        assert_ne!(wide(14), 0);
        assert_eq!(wide(14) % 64, 0);
        assert_eq!((wide(36), wide(38)), (1, 1));
    }
}

const CAMPAIGN: &str = "
name: packet
seed: 3
target: gfx90a
workload:
  kernel:
    source: packet.cl
    name: packet
    grid: 64
    workgroup: 64
    args: [{buffer: seen, type: u32, count: 40, output: true}]
faults: {model: flip_one_bit, target: source_operand, count: 40}
";

/// If rewritten code runs instead of a kernel, it still sees the packet of the original kernel.
#[test]
fn rewritten_code_sees_the_packet_of_the_original_kernel() {
    let folder = tempfile::tempdir().expect("a folder");
    let kernel = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/kernels/packet.cl"));
    std::fs::write(folder.path().join("packet.cl"), kernel.expect("the kernel")).expect("written");
    std::fs::write(folder.path().join("packet.yaml"), CAMPAIGN).expect("written");
    let [embedded, by_hook] = ["embedded", "hook"].map(|by| {
        let line = ["run", "packet.yaml", "--by", by, "--out", by];
        flipwave(folder.path(), &line, &[]).expect_success();
        timeless_rows(&folder.path().join(by))
    });
    assert_eq!(by_hook, embedded);
    assert!(embedded.iter().any(|row| row.outcome == Outcome::Masked));
}
