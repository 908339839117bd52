//! Destination widths of operations, checked against LLVM's register classes and against execution.

use super::walk::{SAMPLES, decode, isa};
use crate::tests::bench::Bench;
use crate::tests::operations::Random;
use crate::wave::{LANES, Row, RowIndex};
use flipwave_isa::{
    Class, Encoding, Generation, Inst, Register, RegisterRange, Role, Target, Value,
};
use std::collections::BTreeSet;

/// Results whose width comes from modifiers or the mnemonic rather than LLVM's register class, and
/// results in scalar registers, whose upper half LLVM leaves unspecified.
const BY_MODIFIERS: [&str; 6] =
    ["v_fma_mixlo_", "v_fma_mixhi_", "v_cvt_sr_fp8_", "v_cvt_sr_bf8_", "v_ashr_pk_", "v_s_"];

/// Returns the first destination if it is a vector register.
fn destination(inst: &Inst) -> Option<(RegisterRange, bool)> {
    let operand = inst.operands.iter().find(|operand| operand.role == Role::Destination)?;
    match operand.value {
        Value::Register(range) if matches!(range.first, Register::Vgpr(_)) => {
            Some((range, operand.half.is_some()))
        }
        _ => None,
    }
}

/// Returns the sampled operations of a target whose width differs from LLVM's register class.
/// `keeps` returns `true` if an operation preserves part of its destination.
fn widths_unlike_llvm(
    processor: &str,
    keeps: impl Fn(&Inst) -> bool,
) -> (BTreeSet<&'static str>, usize) {
    let isa = isa(processor);
    let (mut wrong, mut seen) = (BTreeSet::new(), BTreeSet::new());
    for words in SAMPLES[processor].values().flatten().copied() {
        let Some(inst) = decode(&isa, words) else { continue };
        let name = inst.operation.name();
        let is_looked_at = inst.class() == Class::Valu && inst.encoding != Encoding::Vopd;
        let Some((_, is_half)) = destination(&inst).filter(|_| is_looked_at) else { continue };
        if BY_MODIFIERS.iter().any(|prefix| name.starts_with(prefix)) {
            continue;
        }
        seen.insert(name);
        if is_half != keeps(&inst) {
            wrong.insert(name);
        }
    }
    (wrong, seen.len())
}

#[test]
fn destination_widths_match_llvm() {
    for processor in SAMPLES.keys() {
        let generation = processor.parse::<Target>().expect("a target").generation();
        // Older targets have no 16-bit registers in LLVM.
        if generation < Generation::Gfx11 {
            continue;
        }
        let keeps = |inst: &Inst| inst.operation.preserves_destination_bits(generation);
        let (wrong, seen) = widths_unlike_llvm(processor, keeps);
        assert!(seen > 250, "{processor}: only {seen}");
        assert!(wrong.is_empty(), "{processor}: {wrong:?}");
        // Negative control: the width of `v_sad_u16` derived from its name.
        let (wrong, _) = widths_unlike_llvm(processor, |inst| {
            keeps(inst) || inst.operation.name() == "v_sad_u16"
        });
        assert_eq!(wrong, BTreeSet::from(["v_sad_u16"]), "{processor}");
    }
}

/// An instruction that preserves part of a register lists the register as read, and an operation
/// marked as preserving does preserve something.
#[test]
fn preserved_destination_parts_are_read() {
    let mut wrong = BTreeSet::new();
    for (processor, samples) in &*SAMPLES {
        let generation = processor.parse::<Target>().expect("a target").generation();
        let isa = isa(processor);
        let mut bench = Bench::with_lanes(processor, 64);
        if generation >= Generation::Gfx125 {
            bench = Bench::with_lanes(processor, 32);
        }
        let mut random = Random(5);
        let (mut unread, mut kept, mut keeping) =
            (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
        let mut seen = 0;
        for words in samples.values().flatten().copied() {
            let Some(inst) = decode(&isa, words) else { continue };
            let name = inst.operation.name();
            // The rel operations write the register selected by M0.
            let is_looked_at = inst.class() == Class::Valu && !name.contains("rel");
            let Some((range, _)) = destination(&inst).filter(|_| is_looked_at) else { continue };
            let Some(first) = RowIndex::nominal(range.first) else { continue };
            let is_source = inst.sources().any(|operand| match operand.value {
                Value::Register(source) => source.overlaps(range),
                _ => false,
            });
            if is_source {
                continue;
            }
            bench.randomize(&mut random);
            bench.wave.set_exec(bench.wave.machine.all_lanes());
            let start = bench.wave.clone();
            let mut results = Vec::new();
            for word in [0x1234_5678, !0x1234_5678] {
                bench.wave = start.clone();
                for at in 0..range.words {
                    *bench.wave.row_mut(first.plus(at.into())) = Row([word; LANES]);
                }
                if bench.step(inst.clone()).is_err() {
                    break;
                }
                let lanes = usize::from(bench.wave.machine.lanes);
                let rows = (0..range.words).map(|at| bench.wave.row(first.plus(at.into())).0);
                results.push(rows.map(|row| row[..lanes].to_vec()).collect::<Vec<_>>());
            }
            let [one, other] = results.as_slice() else { continue };
            seen += 1;
            if inst.operation.preserves_destination_bits(generation) {
                keeping.insert(name);
            }
            if one != other {
                kept.insert(name);
                let is_read = inst.reads.iter().any(|read| read.overlaps(range));
                if !is_read && !inst.flags.tied {
                    unread.insert(format!("{name} is left out: {}", inst.text));
                }
            }
        }
        assert!(seen > 500, "{processor}: only {seen}");
        let whole = keeping.difference(&kept).map(|name| format!("{name} writes all of it"));
        wrong.extend(unread.into_iter().chain(whole).map(|name| format!("{processor}: {name}")));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
