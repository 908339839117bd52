use crate::translate::code::DecodedCode;
use crate::wave::Level;
use flipwave_codeobj::FileBytes;
use flipwave_isa::Isa;

const START: u64 = 0x1000;
const READ: &str = "ds_read_b32 v1, v0";
const WRITE: &str = "ds_write_b32 v0, v1";

/// Indices of the lines that are ordered LDS accesses.
fn ordered(processor: &str, lines: &[&str]) -> Vec<usize> {
    let isa = Isa::new(&processor.parse().expect("a target")).expect("LLVM has it");
    let code: Vec<Vec<u8>> = lines
        .iter()
        .map(|line| isa.assemble(line).unwrap_or_else(|error| panic!("{line}: {error}")))
        .collect();
    let addresses: Vec<u64> = code
        .iter()
        .scan(START, |address, bytes| {
            let start = *address;
            *address += bytes.len() as u64;
            Some(start)
        })
        .collect();
    let code = DecodedCode::new(isa, Level::Plain, START, 0, FileBytes::from_vec(code.concat()));
    let ordered = code.ordered_from(START);
    (0..lines.len()).filter(|line| ordered.get(&addresses[*line]) == Some(&true)).collect()
}

#[test]
fn a_barrier_orders_accesses_of_different_kinds() {
    let tile = [WRITE, "s_barrier", READ, READ, "s_barrier", "s_cbranch_scc0 65527", "s_endpgm"];
    assert_eq!(ordered("gfx90a", &tile), [0, 2, 3]);
    // Without the second barrier, the backward branch leads from the reads to the write unordered.
    let open = [WRITE, "s_barrier", READ, READ, "s_nop 0", "s_cbranch_scc0 65527", "s_endpgm"];
    assert_eq!(ordered("gfx90a", &open), [2, 3]);
    assert_eq!(ordered("gfx90a", &[READ, WRITE, READ, "s_endpgm"]), [0]);
    assert_eq!(ordered("gfx90a", &[WRITE, WRITE, READ, "s_endpgm"]), [0, 1]);
}

#[test]
fn accesses_are_ordered_only_with_a_barrier_on_every_path() {
    // The branch leaves the barrier out.
    let lines = [READ, "s_cbranch_scc0 1", "s_barrier", WRITE, "s_endpgm"];
    assert_eq!(ordered("gfx90a", &lines), [0]);
    let lines = [READ, "s_cbranch_scc0 1", "s_nop 0", "s_barrier", WRITE, "s_endpgm"];
    assert_eq!(ordered("gfx90a", &lines), [0, 4]);
}

#[test]
fn accesses_between_signal_and_wait_are_unordered() {
    let (read, write) = ("ds_load_b32 v1, v0", "ds_store_b32 v0, v1");
    let (signal, wait) = ("s_barrier_signal -1", "s_barrier_wait -1");
    assert_eq!(ordered("gfx1201", &[read, signal, wait, write, "s_endpgm"]), [0, 3]);
    assert_eq!(ordered("gfx1201", &[signal, read, wait, write, "s_endpgm"]), [1]);
    assert_eq!(ordered("gfx1201", &[read, signal, write, wait, "s_endpgm"]), [0]);
    assert_eq!(ordered("gfx1250", &[read, "s_barrier_signal 1", wait, write, "s_endpgm"]), [0]);
}

#[test]
fn accesses_after_calls_or_in_code_with_indirect_jumps_are_unordered() {
    let call = ["s_swappc_b64 s[2:3], s[4:5]", WRITE, "s_barrier", READ, "s_endpgm"];
    assert_eq!(ordered("gfx90a", &call), [3]);
    let jump = ["s_cbranch_scc0 1", "s_setpc_b64 s[2:3]", WRITE, "s_endpgm"];
    assert_eq!(ordered("gfx90a", &jump), [0; 0]);
    assert_eq!(ordered("gfx90a", &["s_cbranch_scc0 1", "s_nop 0", WRITE, "s_endpgm"]), [2]);
}
