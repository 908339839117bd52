use super::*;
use crate::buffer_rules;
use crate::execute::accessed;
use crate::tests::bench::Bench;
use crate::tests::operations::Random;
use crate::wave::{Row, RowIndex, ScalarIndex};
use flipwave_isa::{Isa, Lane};
use std::fmt::Write;
use std::path::Path;

fn instruction(rule: &AddressRule, constant: i64) -> String {
    rule.example.replace("CONSTANT", &constant.to_string())
}

#[test]
fn constant_ranges_match_the_assembler() {
    for rule in RULES {
        for processor in rule.processors {
            let isa = Isa::new(&processor.parse().expect("a target")).expect("LLVM has it");
            let (least, most) = (*rule.constants.start(), *rule.constants.end());
            for (constant, is_valid) in
                [(least, true), (most, true), (least - 1, false), (most + 1, false)]
            {
                let text = instruction(rule, constant);
                // LLVM accepts 32-bit numbers for an unsigned field.
                assert_eq!(isa.assemble(&text).is_ok(), is_valid, "{processor}: {text}");
            }
        }
    }
}

/// Address of a lane according to the rule.
fn wanted(rule: &AddressRule, constant: i64, pair: u64, scalar: [u32; 3], vector: u32) -> u64 {
    let base = u64::from(scalar[0]) | u64::from(scalar[1]) << 32;
    match rule.sum {
        Sum::Pair => pair.wrapping_add_signed(constant),
        Sum::BaseAndUnsigned => base.wrapping_add(vector.into()).wrapping_add_signed(constant),
        Sum::BaseAndSigned => {
            base.wrapping_add_signed((vector as i32).into()).wrapping_add_signed(constant)
        }
        Sum::Offset => vector.wrapping_add(constant as u32).into(),
        Sum::ScalarOffset => scalar[0].wrapping_add(constant as u32).into(),
        Sum::BothOffsets => vector.wrapping_add(scalar[0]).wrapping_add(constant as u32).into(),
        Sum::Scalar => {
            let offset = i64::from(scalar[2]) + constant;
            (base & !3).wrapping_add_signed(offset & !3)
        }
    }
}

#[test]
fn executed_addresses_match_the_rules() {
    let edges =
        [0, 1, 4, 8, 100, 4096, 0x7fff_ffff, 0x8000_0000, 0xffff_f000, 0xffff_fff8, 0xffff_ffff];
    let mut random = Random(11);
    for rule in RULES {
        for processor in rule.processors {
            let lanes = if rule.processors == GFX9 { 64 } else { 32 };
            let mut bench = Bench::with_lanes(processor, lanes);
            for constant in [*rule.constants.start(), *rule.constants.end(), 0, 8] {
                let op = bench.op(&instruction(rule, constant));
                for _ in 0..50 {
                    let scalar = [(); 3].map(|()| random.choose(&edges) as u32);
                    let words = [(); 2]
                        .map(|()| Row(std::array::from_fn(|_| random.choose(&edges) as u32)));
                    for (register, word) in (2..).zip(scalar) {
                        bench.wave.write_scalar(ScalarIndex(register), word);
                    }
                    for (register, row) in (2..).zip(&words) {
                        *bench.wave.row_mut(RowIndex(register)) = *row;
                    }
                    let found = accessed(&bench.wave, &op);
                    let [found] = found.as_slice() else { panic!("{}: one element", op.inst.text) };
                    for (Lane(lane), address) in found {
                        let lane = usize::from(*lane);
                        let [low, high] = [0, 1].map(|word: usize| words[word].0[lane]);
                        let pair = u64::from(low) | u64::from(high) << 32;
                        let wanted = wanted(rule, constant, pair, scalar, low);
                        assert_eq!(*address, wanted, "{processor}: {}, lane {lane}", op.inst.text);
                    }
                }
            }
        }
    }
}

/// Tables of `docs/addressing.md`.
fn tables() -> String {
    let mut text =
        String::from("| family | processors | sum | constants | source |\n|---|---|---|---|---|\n");
    for rule in RULES {
        let (least, most) = (rule.constants.start(), rule.constants.end());
        let _ = writeln!(
            text,
            "| {} | {} | {} | {least} to {most} | {} |",
            rule.family,
            rule.processors.join(", "),
            rule.sum.describe(),
            rule.source
        );
    }
    text + "\n" + &buffer_rules::table()
}

/// Run with `FLIPWAVE_BLESS=1` to regenerate them.
#[test]
fn documented_address_tables_match_the_rules() {
    const BEGIN: &str = "<!-- rules, written by a test -->\n\n";
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/addressing.md");
    let page = std::fs::read_to_string(&place).expect("the page");
    let (before, _) = page.split_once(BEGIN).expect("where the tables begin");
    let wanted = format!("{before}{BEGIN}{}", tables());
    if std::env::var_os("FLIPWAVE_BLESS").is_some() {
        std::fs::write(&place, &wanted).expect("the page written");
        return;
    }
    assert!(
        page == wanted,
        "docs/addressing.md does not have the rules of the code; write it again with \
         FLIPWAVE_BLESS=1 cargo test -p flipwave-sim the_page_of_addresses"
    );
}
