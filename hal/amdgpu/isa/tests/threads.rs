//! Decoding on several threads at once.

use flipwave_isa::{Isa, Pc, Target};

/// LLVM remarks on each of these: a pair of scalar registers that begins with an odd one. Sessions
/// that share the stream of the remarks write over the end of its buffer.
#[test]
fn remarks_of_one_thread_do_not_destroy_the_memory_of_others() {
    let target: Target = "gfx90a".parse().expect("a target");
    // s_mov_b64 s[0:1], s[1:2]
    let code = 0xbe80_0101u32.to_le_bytes();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            let isa = Isa::new(&target).expect("an instruction set");
            scope.spawn(move || {
                for _ in 0..100_000 {
                    let _ = isa.decode(&code, Pc(0));
                }
            });
        }
    });
}
