//! Round trips of decoding, printing and assembling, on a corpus and on random words.

use crate::common::isa;
use flipwave_isa::{
    ConstantType, DecodeError, Encoding, Inst, InstWords, Isa, Operand, Pc, Role, Value,
};
use std::collections::BTreeMap;

/// Checks that each line of a corpus, once assembled, decodes and assembles again to the same bytes.
fn check_corpus(target: &str, corpus: &str) {
    let isa = isa(target);
    let lines = corpus.lines().filter(|line| !line.is_empty() && !line.starts_with(';'));
    let mut checked = 0;
    for line in lines {
        let bytes = isa.assemble(line).unwrap_or_else(|error| panic!("{target}: {line}: {error}"));
        let inst = isa.decode(&bytes, Pc(0)).unwrap_or_else(|error| panic!("{line}: {error}"));
        assert_eq!(usize::from(inst.size), bytes.len(), "{target}: {line}");
        assert_eq!(isa.assemble(&inst.text).as_ref(), Ok(&bytes), "{target}: {line}: {inst}");
        check_registers(&inst);
        checked += 1;
    }
    assert!(checked >= 200, "{target}: only {checked} lines");
}

/// Checks that the decoder's cache is transparent: an instruction decodes the same again at any address and
/// with any following bytes, and different words are not mistaken for it.
fn check_cache(target: &str, corpus: &str) {
    let cached = isa(target);
    let lines = corpus.lines().filter(|line| !line.is_empty() && !line.starts_with(';'));
    let encoded: Vec<Vec<u8>> = lines.map(|line| cached.assemble(line).expect(line)).collect();
    for bytes in &encoded {
        cached.decode(bytes, Pc(0)).expect("an instruction");
    }
    let following = |at: usize| encoded.iter().cycle().skip(at).take(4).flatten();
    let mut differing = 0;
    for (at, bytes) in encoded.iter().enumerate() {
        let code: Vec<u8> = bytes.iter().chain(following(at + 1)).copied().collect();
        let again = cached.decode(&code, Pc(0x4000)).expect("an instruction");
        // A decoder with an empty cache.
        let fresh = isa(target).decode(&code, Pc(0x4000));
        assert_eq!(fresh.as_ref(), Ok(&again), "{target}: {bytes:02x?}");
        let mut changed = code.clone();
        changed[bytes.len() - 1] ^= 1;
        let [again, fresh] = [&cached, &isa(target)].map(|isa| isa.decode(&changed, Pc(0x4000)));
        assert_eq!(fresh, again, "{target}: {changed:02x?}");
        let original = cached.decode(bytes, Pc(0)).expect("an instruction");
        differing += usize::from(fresh.is_ok_and(|fresh| fresh.words != original.words));
    }
    assert!(differing > encoded.len() / 2, "{target}: {differing} of {}", encoded.len());
}

#[test]
fn cached_instructions_decode_like_new_ones() {
    check_cache("gfx90a", include_str!("corpus/gfx90a.s"));
    check_cache("gfx1100", include_str!("corpus/gfx1100.s"));
}

/// Checks the printed operands against MC's: destinations are in `writes`, sources in `reads`.
fn check_registers(inst: &Inst) {
    for operand in &inst.operands {
        let Value::Register(range) = operand.value else { continue };
        let (role, set) = match operand.role {
            Role::Destination => ("writes", &inst.writes),
            Role::Source => ("reads", &inst.reads),
        };
        assert!(set.contains(&range), "{inst}: {range} is not in {role}: {set:?}");
    }
}

#[test]
fn gfx90a_corpus_round_trips() {
    check_corpus("gfx90a", include_str!("corpus/gfx90a.s"));
}

#[test]
fn corpora_of_other_targets_round_trip() {
    check_corpus("gfx906", include_str!("corpus/gfx906.s"));
    check_corpus("gfx908", include_str!("corpus/gfx908.s"));
    check_corpus("gfx942", include_str!("corpus/gfx942.s"));
    check_corpus("gfx1030", include_str!("corpus/gfx1030.s"));
    check_corpus("gfx1100", include_str!("corpus/gfx1100.s"));
    check_corpus("gfx1201", include_str!("corpus/gfx1201.s"));
}

/// SplitMix64 (Steele, Lea, Flood: "Fast splittable pseudorandom number generators").
struct Random(u64);

impl Random {
    fn word(&mut self) -> u32 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) as u32
    }
}

/// Random words with a given upper half. Callers iterate over all upper halves to reach every operation of
/// every encoding. Many bits are zero, since decoders require zeros in reserved fields.
fn words_with_upper_half(random: &mut Random, upper: u16) -> [u8; 12] {
    const SECOND: [u32; 6] = [!0, 0x00ff_ffff, 0x03ff_ffff, 0x0003_ffff, 0x0000_00ff, 0];
    const FIRST: [u32; 4] = [0xffff, 0x01ff, 0x00ff, 0x0fff];
    let variant = random.word() as usize;
    let first = u32::from(upper) << 16 | random.word() & FIRST[variant / 6 % 4];
    let second = random.word() & random.word() & SECOND[variant % 6];
    let mut bytes = [0; 12];
    bytes[..4].copy_from_slice(&first.to_le_bytes());
    bytes[4..8].copy_from_slice(&second.to_le_bytes());
    bytes[8..].copy_from_slice(&random.word().to_le_bytes());
    bytes
}

/// Outcomes of random round trips.
#[derive(Debug, Default)]
struct Counts {
    exact: u32,
    normalized: u32,
    rejected: BTreeMap<String, u32>,
}

/// Decodes random words for each `step`-th upper half and assembles them again. There are three outcomes: the
/// same bytes; other bytes of the same instruction (ignored bits differ, or a literal for an inline
/// constant), which must then be stable; or an error of LLVM's assembler, which checks rules that its
/// disassembler does not.
fn random_round_trip(isa: &Isa, step: usize) -> Counts {
    let mut random = Random(1);
    let mut counts = Counts::default();
    for upper in (0..=u16::MAX).step_by(step) {
        let bytes = words_with_upper_half(&mut random, upper);
        let Ok(inst) = isa.decode(&bytes, Pc(0)) else { continue };
        check_registers(&inst);
        if inst.encoding == Encoding::Export {
            // LLVM prints sources of compressed exports that it parses differently.
            continue;
        }
        let is_splat = |operand: &Operand| {
            operand.constant == Some(ConstantType::SplatF16)
                && matches!(operand.value, Value::Float(_))
        };
        if inst.operands.iter().any(is_splat) {
            // LLVM prints the constant but parses it as a literal of the low half only.
            continue;
        }
        match isa.assemble(&inst.text) {
            Ok(again) if again == bytes[..usize::from(inst.size)] => counts.exact += 1,
            Ok(again) => {
                let normalized = isa.decode(&again, Pc(0)).expect(&inst.text);
                assert_eq!(meaning(&normalized), meaning(&inst));
                assert_eq!(isa.assemble(&normalized.text), Ok(again), "{inst}");
                counts.normalized += 1;
            }
            Err(error) => *counts.rejected.entry(error.message).or_default() += 1,
        }
    }
    counts
}

/// The parts of an instruction that printing and assembling must preserve: not the size (an inline
/// constant may become a literal) and not the raw immediate (unused bits of a wait counter).
fn meaning(inst: &Inst) -> impl PartialEq + std::fmt::Debug {
    let InstWords { operation, mut operands, mut modifiers, reads, writes, flags, .. } =
        InstWords::clone(&inst.words);
    // Some operands name halves in the short form of an instruction but use only `op_sel` in the long one.
    operands.iter_mut().for_each(|operand| operand.half = None);
    if modifiers.swizzle.take().is_some() {
        // The mask of the pattern has bits without effect.
        modifiers.offset = 0;
    }
    (operation, operands, modifiers, reads, writes, flags)
}

#[test]
fn random_words_round_trip_on_gfx90a() {
    let counts = random_round_trip(&isa("gfx90a"), 1);
    println!("{counts:#?}");
    assert!(counts.exact > 34_000, "{counts:?}");
    assert!(counts.normalized < 3_500, "{counts:?}");
    // Rules that the assembler checks and the disassembler does not.
    let known = [
        "operand is not supported on this GPU",
        "lds_direct is not supported on this GPU",
        "bit unsigned offset",
        "image data size does not match dmask",
        "invalid atomic image dmask",
        "only 4-bit values are legal",
        "violates constant bus restrictions",
        "invalid operand for instruction",
        "vgpr must be even aligned",
        "vgpr tuples must be 64 bit aligned",
        "register not available on this GPU",
        "out of range",
    ];
    for message in counts.rejected.keys() {
        assert!(known.iter().any(|rule| message.contains(rule)), "{message}");
    }
}

#[test]
fn random_words_round_trip_on_other_targets() {
    for target in ["gfx906", "gfx942", "gfx1030", "gfx1100", "gfx1201"] {
        let counts = random_round_trip(&isa(target), 3);
        assert!(counts.exact > 8_000, "{target}: {counts:?}");
    }
}

#[test]
fn random_bytes_never_panic() {
    let rounds = if cfg!(debug_assertions) { 20_000 } else { 150_000 };
    for target in
        ["gfx803", "gfx900", "gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1201"]
    {
        let isa = isa(target);
        let mut random = Random(2);
        let mut decoded = 0;
        for round in 0..rounds {
            let bytes: Vec<u8> = (0..6).flat_map(|_| random.word().to_le_bytes()).collect();
            let length = round % (bytes.len() + 1);
            if let Ok(inst) = isa.decode(&bytes[..length], Pc(u64::MAX - 3)) {
                assert!(usize::from(inst.size) <= length);
                decoded += 1;
            }
        }
        assert!(decoded > rounds / 10, "{target}: {decoded} of {rounds}");
    }
}

#[test]
fn truncated_and_unknown_instructions_give_different_errors() {
    let isa = isa("gfx90a");
    let bytes = isa.assemble("global_load_dword v0, v[2:3], off").expect("an instruction");
    let truncated =
        |available, needed| Err(DecodeError::Truncated { pc: Pc(16), available, needed });
    assert_eq!(isa.decode(&bytes[..4], Pc(16)), truncated(4, 8));
    assert_eq!(isa.decode(&bytes[..3], Pc(16)), truncated(3, 4));
    assert_eq!(isa.decode(&[], Pc(16)), truncated(0, 4));
    let literal = isa.assemble("s_mov_b32 s0, 0x12345678").expect("an instruction");
    assert_eq!(isa.decode(&literal[..4], Pc(16)), truncated(4, 8));
    let error = isa.decode(&[0xff; 8], Pc(16)).expect_err("no instruction");
    assert_eq!(error.to_string(), "0x10: not an instruction of gfx90a: 0xffffffff 0xffffffff");
}

/// LLVM's printer has undefined behavior on reserved selects.
#[test]
fn reserved_sdwa_selects_are_rejected() {
    let isa = isa("gfx90a");
    let mut bytes = isa
        .assemble("v_min_i32_sdwa v0, v1, v2 dst_sel:BYTE_0 dst_unused:UNUSED_PAD src0_sel:WORD_1 src1_sel:DWORD")
        .expect("an instruction");
    assert_eq!(isa.decode(&bytes, Pc(0)).map(|inst| inst.encoding), Ok(Encoding::Sdwa));
    bytes[6] |= 7;
    assert!(isa.decode(&bytes, Pc(0)).is_err());
}

#[test]
fn branches_to_labels_are_resolved() {
    let isa = isa("gfx90a");
    let text = "top:\n  s_nop 0\n  s_cbranch_scc1 done\n  s_branch top\ndone:\n  s_endpgm\n";
    let bytes = isa.assemble(text).expect("a text");
    let targets: Vec<_> = bytes
        .chunks(4)
        .zip(0u64..)
        .filter_map(|(word, index)| isa.decode(word, Pc(4 * index)).expect("a word").branch_target)
        .collect();
    assert_eq!(targets, [Pc(12), Pc(0)]);
}

#[test]
fn assembler_errors_have_position_and_message() {
    let isa = isa("gfx90a");
    for (text, place, message) in [
        ("s_nop 0\n  v_bogus v0", "line 2, column 3: ", "invalid instruction"),
        ("v_mov_b32 v0, s[0:1]", "line 1, column 15: ", "invalid operand"),
        ("s_branch nowhere", "line 1, column 1: ", "label 'nowhere' is not defined in this text"),
        (
            "s_mov_b32 s0, nowhere",
            "line 1, column 1: ",
            "symbols are supported as branch targets only",
        ),
        ("s_nop 0\n .incbin \"file\"", "line 2, column 2: ", "directive"),
        ("x: .rept 1000000000", "line 1, column 4: ", "directive"),
        ("s_nop 0 /* */ .text", "line 1, column 15: ", "directive"),
        ("v_mov_b32 v0, \"x", "line 1, column 15: ", "unterminated string"),
        ("s_nop 0 /* x", "line 1, column 9: ", "unterminated comment"),
        ("v_mov_b32 v0, #1", "line 1, column 15: ", "character"),
        ("x:\nx:\ns_nop 0", "line 2, column 1: ", "already defined"),
        ("s_nop (", "line 1, column 8: ", ""),
    ] {
        let error = isa.assemble(text).expect_err(text).to_string();
        assert!(error.starts_with(place) && error.contains(message), "{text:?}: {error}");
    }
    // An error does not affect later texts, and comments may contain any characters.
    assert!(isa.assemble("s_nop 0 ; don't \"\ns_nop 1 // #\n/* .text */ s_nop 2").is_ok());
}

/// Mangled corpus lines must assemble or give an error.
#[test]
fn mangled_texts_never_panic() {
    let isa = isa("gfx90a");
    let mut random = Random(3);
    let lines: Vec<&str> = include_str!("corpus/gfx90a.s").lines().collect();
    let (mut accepted, mut rejected) = (0, 0);
    for _ in 0..4000 {
        let mut line = lines[random.word() as usize % lines.len()].as_bytes().to_vec();
        if line.is_empty() {
            continue;
        }
        for _ in 0..1 + random.word() % 3 {
            let at = random.word() as usize % line.len();
            line[at] = b" ,:[]()|-+*/\\\"'0x9vsa.@#;\n\tlo"[random.word() as usize % 29];
        }
        match isa.assemble(&String::from_utf8_lossy(&line)) {
            Ok(_) => accepted += 1,
            Err(_) => rejected += 1,
        }
    }
    assert!(accepted > 100 && rejected > 100, "{accepted} {rejected}");
}
