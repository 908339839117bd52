use super::*;

fn code(processor: &str, words: &[u32]) -> DecodedCode {
    let isa = Isa::new(&processor.parse().expect("a target")).expect("LLVM has it");
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    DecodedCode::new(isa, Level::Plain, 0, 0, FileBytes::from_vec(bytes))
}

/// Faults of decoding `words` in memory, and in place of an instruction that an injected fault
/// altered.
fn causes(processor: &str, words: &[u32]) -> [Option<FaultCause>; 2] {
    let code = code(processor, words);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    [code.fetch(0).err(), code.decode_altered(0, &bytes).err()]
}

#[test]
fn unused_fields_do_not_make_an_instruction_illegal() {
    // `v_mul_lo_u32 v0, v1, v2` as compilers write it: the third source is 0x80.
    let words = [0xd72c_0000, 0x0202_0501];
    assert_eq!(causes("gfx1100", &words), [None, None]);
    let code = code("gfx1100", &words);
    let op = code.fetch(0).expect("an instruction");
    assert_eq!((op.inst.text.as_str(), op.size), ("v_mul_lo_u32 v0, v1, v2", 8));
}

/// Gaps of the decoder are not hardware faults. After an injected fault, LLVM decides what is
/// illegal.
#[test]
fn undecodable_code_is_illegal_only_after_an_injected_fault() {
    // The second source is neither register nor constant.
    let word = 0xd72c_0000;
    assert_eq!(
        causes("gfx1100", &[word, 0x0001_ab01]),
        [Some(FaultCause::NotDecoded { word }), Some(FaultCause::IllegalInstruction { word })]
    );
    let word = u32::MAX;
    let illegal = Some(FaultCause::IllegalInstruction { word });
    assert_eq!(causes("gfx1100", &[word; 2]), [illegal.clone(), illegal]);
}

#[test]
fn undecodable_op_sel_halves_are_always_a_gap() {
    // `v_add_f16 v0, v1, v2` with bits for the first and for the third of its two sources.
    for cause in causes("gfx1100", &[0xd532_2800, 0x0002_0501]) {
        assert!(matches!(cause, Some(FaultCause::Unimplemented { .. })), "{cause:?}");
    }
    assert_eq!(causes("gfx1100", &[0xd532_0800, 0x0002_0501]), [None, None]);
}
