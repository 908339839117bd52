//! Decoding on several threads at once.

use flipwave_isa::{Isa, Pc, Target};

/// LLVM emits a remark for each decoded instruction, which has an odd-aligned pair of scalar registers.
/// Sessions that shared the stream of remarks would write beyond the end of its buffer.
#[test]
fn concurrent_sessions_do_not_share_the_remark_buffer() {
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
