use super::*;

fn program(processor: &str, words: &[u32]) -> Program {
    let isa = Isa::new(&processor.parse().expect("a target")).expect("LLVM has it");
    let bytes = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    Program::new(isa, Level::Plain, 0, 0, FileBytes::from_vec(bytes))
}

/// What `words` are where they lie, and where a fault has put them.
fn causes(processor: &str, words: &[u32]) -> [Option<FaultCause>; 2] {
    let program = program(processor, words);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    [program.fetch(0).err(), program.decode_altered(0, &bytes).err()]
}

#[test]
fn unused_fields_do_not_make_an_instruction_illegal() {
    // `v_mul_lo_u32 v0, v1, v2` as compilers write it: the third source is 0x80.
    let words = [0xd72c_0000, 0x0202_0501];
    assert_eq!(causes("gfx1100", &words), [None, None]);
    let program = program("gfx1100", &words);
    let op = program.fetch(0).expect("an instruction");
    assert_eq!((op.inst.text.as_str(), op.size), ("v_mul_lo_u32 v0, v1, v2", 8));
}

/// The tool's gaps are no faults of the hardware; once a fault has struck, LLVM is the authority.
#[test]
fn what_is_not_decoded_is_illegal_only_where_a_fault_put_it() {
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
fn halves_that_are_not_decoded_are_a_gap_wherever_they_are() {
    // `v_add_f16 v0, v1, v2` with bits for the first and for the third of its two sources.
    for cause in causes("gfx1100", &[0xd532_2800, 0x0002_0501]) {
        assert!(matches!(cause, Some(FaultCause::Unimplemented { .. })), "{cause:?}");
    }
    assert_eq!(causes("gfx1100", &[0xd532_0800, 0x0002_0501]), [None, None]);
}
