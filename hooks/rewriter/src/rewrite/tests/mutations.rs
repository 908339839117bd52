//! Damaged code objects are rewritten or refused, without a panic.

use super::{add, call, compiler};
use crate::hook::Argument;
use crate::layout::Placement;
use crate::layout::tests::sample::Sample;
use crate::rewrite::{Instrumentation, RewriteError, Selection, When};
use flipwave_codeobj::CodeObject;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A kernel with a loop and a call, and the called function.
fn object() -> Vec<u8> {
    let kernel = "s_load_dwordx2 s[4:5], s[0:1], 0x0\ns_mov_b32 s8, 3\n\
                  loop: v_add_u32 v1, v0, v1\ns_getpc_b64 s[6:7]\n\
                  s_add_u32 s6, s6, f@rel32@lo+4\ns_addc_u32 s7, s7, f@rel32@hi+12\n\
                  s_swappc_b64 s[30:31], s[6:7]\ns_sub_u32 s8, s8, 1\ns_cmp_lg_u32 s8, 0\n\
                  s_cbranch_scc1 loop\ns_waitcnt lgkmcnt(0)\nv_mov_b32 v2, 0\n\
                  global_store_dword v2, v1, s[4:5]\ns_endpgm\n";
    let function = "v_mul_lo_u32 v1, v1, 3\ns_setpc_b64 s[30:31]\n";
    let functions = [("k", kernel.to_owned()), ("f", function.to_owned())];
    Sample::new("gfx90a", &functions, "", "").object.bytes().to_vec()
}

/// Calls a hook before and after every instruction. Returns `None` for files that are not code objects.
fn rewritten(bytes: &[u8], placement: Option<Placement>) -> Option<Result<(), RewriteError>> {
    let object = CodeObject::parse(bytes).ok()?;
    // The target may be damaged, too.
    let is_known = object.target().processor() == "gfx90a";
    Some((|| {
        let mut instrumentation = Instrumentation::new(&object)?;
        if let Some(placement) = placement {
            instrumentation.place_all(placement);
        }
        if is_known {
            let text = "uint64_t n; void f(uint32_t a, uint64_t *n) { *n += a; }";
            let source = add(&mut instrumentation, text);
            for at in instrumentation.select(&Selection::default()) {
                for when in [When::Before, When::After] {
                    let symbol = Argument::Data { symbol: "n".into(), offset: 0 };
                    let arguments = vec![Argument::Constant(1), symbol];
                    instrumentation.call(at, when, call(source, "f", arguments, vec![]));
                }
            }
        }
        let new = instrumentation.rewrite(compiler())?;
        assert!(new.report.proof.is_some());
        assert_eq!(object.bytes(), bytes, "the original code object changed");
        Ok(())
    })())
}

const PLACEMENTS: [Option<Placement>; 2] = [None, Some(Placement::Trampoline)];

#[test]
fn truncated_code_objects_are_refused() {
    let bytes = object();
    for placement in PLACEMENTS {
        assert!(matches!(rewritten(&bytes, placement), Some(Ok(()))), "{placement:?}");
    }
    for length in (0..bytes.len()).step_by(61) {
        assert!(rewritten(&bytes[..length], None).is_none(), "{length} bytes are a code object");
    }
}

#[test]
fn damaged_code_objects_are_rewritten_or_refused() {
    let bytes = object();
    let object = CodeObject::parse(&bytes).expect("a code object");
    let text = object.text().next().expect("code");
    let start = text.file_offset() as usize;
    let code = start..start + object.kernels()[0].code_size as usize + 64;
    let mut random = ChaCha8Rng::seed_from_u64(0x5eed);
    let mut below = |limit: usize| random.next_u32() as usize % limit;
    let [mut done, mut refused] = [0; 2];
    for round in 0..400 {
        let mut damaged = bytes.clone();
        for _ in 0..=below(3) {
            // Half of the damage affects the code.
            let position =
                if below(2) == 0 { code.start + below(code.len()) } else { below(bytes.len()) };
            damaged[position] ^= 1 << below(8);
        }
        match rewritten(&damaged, PLACEMENTS[round % 2]) {
            Some(Ok(())) => done += 1,
            Some(Err(error)) => {
                assert!(!error.to_string().is_empty());
                refused += 1;
            }
            None => {}
        }
    }
    println!("{done} rewritten, {refused} refused");
    assert!(done > 100 && refused > 10, "{done} of 400 were rewritten, {refused} refused");
}
