//! Random programs with random edits execute the expected events.

use super::sample::Sample;
use super::walk::{Event, executed, expected, marker, marking};
use crate::flow::{FunctionIndex, InstIndex, Key};
use crate::layout::{CodeLayout, Edits, InsertPurpose, LayoutError, Placement, relayout};
use crate::point::{ProgramPoint, When};
use flipwave_isa::{Pc, Sgpr};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::ops::Range;
use std::panic::AssertUnwindSafe;

pub const PROCESSORS: [&str; 5] = ["gfx90a", "gfx942", "gfx1010", "gfx1030", "gfx1100"];

struct Dice(ChaCha8Rng);

impl Dice {
    fn below(&mut self, limit: u32) -> u32 {
        self.0.next_u32() % limit
    }
}

/// Generates functions with branches, calls and address chains; the first is a kernel.
fn functions(dice: &mut Dice, processor: &str, sizes: &[u32]) -> Vec<(String, String)> {
    let name = |index: usize| format!("f{index}");
    let has_hints = processor == "gfx1100" || processor == "gfx1030";
    let function = |(index, size): (usize, &u32)| {
        let mut text = String::new();
        let mut line = 0;
        while line < *size {
            text += &format!("L{index}_{line}: ");
            let target = format!("L{index}_{}", dice.below(*size));
            let callee = name(1 + dice.below(sizes.len() as u32 - 1) as usize);
            let condition = ["scc0", "scc1", "vccz", "execnz"][dice.below(4) as usize];
            text += &match dice.below(16) {
                0 => format!("s_branch {target}\n"),
                1..=3 => format!("s_cbranch_{condition} {target}\n"),
                4 => format!("s_call_b64 s[30:31], {callee}\n"),
                5 => format!(
                    "s_getpc_b64 s[4:5]\n\
                     s_add_u32 s4, s4, {callee}@rel32@lo+4\n\
                     s_addc_u32 s5, s5, {callee}@rel32@hi+12\n\
                     s_swappc_b64 s[30:31], s[4:5]\n"
                ),
                6 => "s_getpc_b64 s[6:7]\n\
                     s_add_u32 s6, s6, data@rel32@lo+4\n\
                     s_addc_u32 s7, s7, data@rel32@hi+12\n"
                    .to_owned(),
                7 if dice.below(3) == 0 => "s_setpc_b64 s[30:31]\n".to_owned(),
                8 => format!(
                    "s_getpc_b64 s[8:9]\n\
                     s_add_u32 s8, s8, 8\n\
                     s_addc_u32 s9, s9, 0\nL{index}_{line}c: s_nop 2\n"
                )
                .replace("s8, 8", "s8, 12"),
                9 if has_hints => "s_clause 0x2\ns_load_dword s10, s[0:1], 0x0\n\
                     s_load_dword s11, s[0:1], 0x4\ns_load_dword s12, s[0:1], 0x8\n"
                    .to_owned(),
                10 if processor == "gfx1100" => {
                    "s_delay_alu instid0(VALU_DEP_1) | instskip(NEXT) | instid1(VALU_DEP_1)\n\
                     v_mov_b32 v1, v2\nv_mov_b32 v3, v1\n"
                        .to_owned()
                }
                11 => "s_mov_b32 s20, 0x12345678\n".to_owned(),
                12 => "v_add_f32 v1, v2, v3\n".to_owned(),
                _ => format!("s_movk_i32 s21, {line}\n"),
            };
            line += 1;
        }
        text += if index == 0 { "s_endpgm\n" } else { "s_setpc_b64 s[30:31]\n" };
        (name(index), text)
    };
    sizes.iter().enumerate().map(function).collect()
}

fn sample(processor: &str, functions: &[(String, String)]) -> Sample {
    let functions: Vec<(&str, String)> =
        functions.iter().map(|(name, text)| (name.as_str(), text.clone())).collect();
    Sample::new(processor, &functions, "", "")
}

/// Amount of edits.
struct Dose {
    /// One of this many instructions is edited.
    one_in: u32,
    /// Range of filling after a marker, in bytes.
    filling: Range<u32>,
    /// `true` if functions may stay.
    trampolines: bool,
}

fn edits(dice: &mut Dice, sample: &Sample, dose: &Dose) -> Edits {
    let mut edits = Edits::default();
    let fill = |dice: &mut Dice| {
        let Range { start, end } = dose.filling;
        (start + dice.below(end - start)) as usize / 4 * 4
    };
    let insert = |edits: &mut Edits, point, filling| {
        let code = marking(sample, marker(InsertPurpose::Point(point)), filling);
        edits.code.insert(point, code);
    };
    let has_after = |inst| sample.program.control(inst).has_known_successor();
    for (index, inst) in sample.program.instructions.iter().enumerate() {
        let index = InstIndex(index as u32);
        if dice.below(dose.one_in) == 0 {
            insert(&mut edits, ProgramPoint::before(index), fill(dice));
        }
        let is_plain = inst.operation.name() == "s_movk_i32";
        if is_plain && dice.below(dose.one_in) == 0 {
            insert(&mut edits, ProgramPoint::instead(index), fill(dice));
        }
        if has_after(inst) && dice.below(dose.one_in) == 0 {
            insert(&mut edits, ProgramPoint::after(index), fill(dice));
        }
    }
    for (index, _) in sample.program.functions.iter().enumerate() {
        let index = FunctionIndex(index as u32);
        if dice.below(2) == 0 {
            let code = marking(sample, marker(InsertPurpose::Entry(index)), fill(dice));
            edits.entries.insert(index, code);
        }
        if dose.trampolines && dice.below(2) == 0 {
            edits.placements.insert(index, Placement::Trampoline);
        }
    }
    edits
}

/// Checks the properties of a layout that do not depend on execution.
pub fn check_shape(sample: &Sample, layout: &CodeLayout) {
    let inserted = || layout.inserted.iter().map(|(range, _)| range.clone());
    assert!(inserted().is_sorted_by_key(|range| range.start));
    check_old_text(sample, layout);
    let mut ranges: Vec<Range<u64>> =
        inserted().filter(|range| range.start >= layout.address).collect();
    assert!(layout.spans.is_sorted_by_key(|(range, _)| range.start));
    let end = layout.address + layout.bytes.len() as u64;
    for (index, (inst, place)) in sample.program.instructions.iter().zip(&layout.places).enumerate()
    {
        let size = u64::from(inst.size);
        let Some(pc) = place.inst.filter(|pc| (layout.address..end).contains(&pc.0)) else {
            continue;
        };
        let bytes = &layout.bytes[(pc.0 - layout.address) as usize..];
        let new = sample.isa.decode(bytes, pc).expect("an instruction");
        assert_eq!(new.operation, inst.operation, "instruction {index}");
        let highs = sample.program.addresses.iter().flat_map(|chain| [chain.low, chain.high]);
        let is_mended = inst.branch_target.is_some()
            || highs.into_iter().any(|member| member == InstIndex(index as u32));
        if !is_mended {
            assert_eq!(new.text, inst.text, "instruction {index}");
            assert_eq!(u64::from(new.size), size);
        }
        assert_eq!(layout.old_address(pc), Some(inst.pc));
        ranges.push(pc.0..pc.0 + u64::from(new.size));
    }
    ranges.sort_by_key(|range| range.start);
    let mut at = layout.address;
    for range in ranges {
        assert_eq!(range.start, at, "gap or overlap");
        at = range.end;
    }
    assert_eq!(at, end);
    for (function, entry) in sample.program.functions.iter().zip(layout.entries.iter()) {
        assert!(function.kernel.is_none() || entry.0.is_multiple_of(256));
    }
}

/// Checks that each patch of the old text changes an instruction that stays or belongs to an inserted
/// range, and that inserted ranges do not overlap instructions that stay.
fn check_old_text(sample: &Sample, layout: &CodeLayout) {
    let old = layout.inserted.iter().filter(|(range, _)| range.start < layout.address);
    let old: Vec<&Range<u64>> = old.map(|(range, _)| range).collect();
    let staying: Vec<Range<u64>> = sample
        .program
        .instructions
        .iter()
        .zip(&layout.places)
        .filter(|(inst, place)| place.inst == Some(inst.pc))
        .map(|(inst, _)| inst.pc.0..inst.pc.0 + u64::from(inst.size))
        .collect();
    for patch in &layout.patches {
        let is_inserted = old.iter().any(|range| range.contains(&patch.address));
        let is_original = staying.iter().any(|range| range.contains(&patch.address));
        assert!(is_inserted != is_original, "{:#x}", patch.address);
    }
    for range in old {
        let covered = staying.iter().find(|inst| inst.start < range.end && range.start < inst.end);
        assert_eq!(covered, None, "{range:x?}");
    }
}

fn check(
    sample: &Sample,
    edits: &Edits,
    layout: &CodeLayout,
    seed: u64,
    length: usize,
) -> Vec<Event> {
    check_shape(sample, layout);
    let start = sample.program.instructions[InstIndex(0)].pc;
    let wanted = expected(sample, edits, layout, start, seed, length);
    let found = executed(sample, layout, layout.entries[FunctionIndex(0)], seed, length);
    if let Some(at) =
        (0..length.min(wanted.len().max(found.len()))).find(|at| wanted.get(*at) != found.get(*at))
    {
        let near = at.saturating_sub(5)..at + 3;
        let part = |events: &[Event]| {
            format!("{:x?}", &events[near.start.min(events.len())..near.end.min(events.len())])
        };
        panic!("event {at}: wanted {}, found {}", part(&wanted), part(&found));
    }
    found
}

fn run(seeds: Range<u64>, sizes: &[u32], dose: &Dose) -> u64 {
    let mut longest = 0;
    for processor in PROCESSORS {
        for seed in seeds.clone() {
            let mut dice = Dice(ChaCha8Rng::seed_from_u64(seed));
            let functions = functions(&mut dice, processor, sizes);
            let sample = sample(processor, &functions);
            for _ in 0..4 {
                let edits = edits(&mut dice, &sample, dose);
                let distance = u64::from(dice.below(60_000));
                let address = sample.free_address(distance);
                let layout = relayout(&sample.object, &sample.program, &edits, address)
                    .unwrap_or_else(|error| panic!("{processor} {seed}: {error}"));
                longest = longest.max(layout.bytes.len() as u64);
                for walk in 0..4 {
                    check(&sample, &edits, &layout, seed + walk, 3000);
                }
            }
        }
    }
    longest
}

#[test]
fn layout_without_edits_preserves_execution() {
    run(0..4, &[40, 20, 20], &Dose { one_in: u32::MAX, filling: 0..4, trampolines: false });
}

#[test]
fn inserted_code_runs_at_its_program_point() {
    run(0..6, &[40, 20, 20], &Dose { one_in: 3, filling: 0..64, trampolines: false });
}

#[test]
fn branches_out_of_range_use_islands() {
    let dose = Dose { one_in: 3, filling: 0..20_000, trampolines: false };
    let longest = run(0..3, &[150, 60, 60], &dose);
    assert!(longest > 1 << 20, "only {longest} bytes");
}

#[test]
fn trampolines_preserve_execution() {
    run(0..6, &[40, 20, 20], &Dose { one_in: 3, filling: 0..64, trampolines: true });
}

/// Random edits for functions that stay and are out of branch range, at points where SCC is free.
fn far_edits(dice: &mut Dice, sample: &Sample) -> Edits {
    let mut edits = Edits::default();
    let functions = 0..sample.program.functions.len() as u32;
    edits.placements =
        functions.map(|index| (FunctionIndex(index), Placement::Trampoline)).collect();
    let function = &sample.program.functions[FunctionIndex(0)];
    for index in function.instructions.iter() {
        let inst = &sample.program.instructions[index];
        edits.free_pairs.insert(index, Sgpr(60));
        let name = inst.operation.name();
        let is_chained = ["s_getpc_b64", "s_add_u32", "s_addc_u32", "s_call_b64"].contains(&name);
        if is_chained || edits.code.len() > 8 || dice.below(3) > 0 {
            continue;
        }
        let has_after = sample.program.control(inst).has_known_successor();
        let when = if has_after && dice.below(2) == 0 { When::After } else { When::Before };
        let point = ProgramPoint::new(index, when);
        let code = marking(sample, marker(InsertPurpose::Point(point)), 0);
        edits.code.insert(point, code);
    }
    edits.entries.insert(
        FunctionIndex(0),
        marking(sample, marker(InsertPurpose::Entry(FunctionIndex(0))), 0),
    );
    edits
}

#[test]
fn trampolines_out_of_branch_range_use_jumps() {
    let (mut requested, mut placed) = (0, 0);
    for seed in 0..6 {
        let mut dice = Dice(ChaCha8Rng::seed_from_u64(seed));
        let functions = functions(&mut dice, "gfx90a", &[40, 20, 20]);
        let sample = sample("gfx90a", &functions);
        let mut edits = far_edits(&mut dice, &sample);
        let address = sample.free_address(1 << 20);
        requested += edits.code.len();
        // Jumps need unused words of the old text, which do not always suffice.
        let layout = loop {
            match relayout(&sample.object, &sample.program, &edits, address) {
                Err(LayoutError::Sites(refused)) => {
                    for at in refused.iter().filter_map(|(pc, _)| sample.program.at(*pc)) {
                        edits.code.remove(&ProgramPoint::before(at));
                        edits.code.remove(&ProgramPoint::after(at));
                    }
                }
                layout => break layout.unwrap_or_else(|error| panic!("{seed}: {error}")),
            }
        };
        for walk in 0..4 {
            check(&sample, &edits, &layout, seed + walk, 3000);
        }
        let without = Edits { free_pairs: Default::default(), ..edits.clone() };
        let error = relayout(&sample.object, &sample.program, &without, address);
        let sites = edits.code.len();
        placed += sites;
        let Err(LayoutError::Sites(refused)) = error else { panic!("sites are refused") };
        assert!(refused.len() >= sites.min(2), "{refused:?}");
    }
    assert!(placed * 10 >= requested * 8, "only {placed} of {requested} sites have trampolines");
}

#[test]
fn changed_branches_change_the_events() {
    let mut dice = Dice(ChaCha8Rng::seed_from_u64(1));
    let functions = functions(&mut dice, "gfx90a", &[40, 20, 20]);
    let sample = sample("gfx90a", &functions);
    let dose = Dose { one_in: 3, filling: 0..64, trampolines: false };
    let edits = edits(&mut dice, &sample, &dose);
    let address = sample.free_address(0);
    let layout = relayout(&sample.object, &sample.program, &edits, address).expect("a layout");
    let start = sample.program.instructions[InstIndex(0)].pc;
    let entry = layout.entries[FunctionIndex(0)];
    let wanted = expected(&sample, &edits, &layout, start, 1, 3000);
    assert_eq!(wanted, executed(&sample, &layout, entry, 1, 3000));
    // The executed branches; each is redirected to the next word.
    let branches: Vec<usize> = sample
        .program
        .instructions
        .iter()
        .enumerate()
        .filter(|(index, inst)| {
            inst.branch_target.is_some() && wanted.contains(&Event::Inst(*index as u32))
        })
        .map(|(index, _)| index)
        .collect();
    let mut noticed = 0;
    for index in &branches {
        let mut wrong = layout.clone();
        let pc = layout.places[InstIndex::new(*index)].inst.expect("an instruction");
        wrong.bytes[(pc.0 - layout.address) as usize] ^= 1;
        let found = std::panic::catch_unwind(AssertUnwindSafe(|| {
            executed(&sample, &wrong, entry, 1, 3000)
        }));
        noticed += usize::from(found.map_or(true, |found| found != wanted));
    }
    assert!(noticed * 10 >= branches.len() * 8, "{noticed} of {}", branches.len());
}

#[test]
fn layout_refuses_invalid_edits_and_addresses() {
    let sample =
        Sample::new("gfx90a", &[("k", "s_nop 0\ns_trap 2\ns_endpgm\n".to_owned())], "", "");
    let code = marking(&sample, 0, 0);
    let one = |point| Edits { code: [(point, code.clone())].into(), ..Edits::default() };
    let attempt = |edits: &Edits, address: Pc| {
        relayout(&sample.object, &sample.program, edits, address).expect_err("an error")
    };
    for index in [1, 2] {
        let edits = one(ProgramPoint::after(InstIndex(index)));
        let error = attempt(&edits, sample.free_address(0));
        assert!(matches!(error, LayoutError::NoWayBack { .. }), "{error}");
    }
    let edits = one(ProgramPoint::before(InstIndex(3)));
    let error = attempt(&edits, sample.free_address(0));
    assert!(matches!(error, LayoutError::Unknown { .. }), "{error}");
    let error = attempt(&Edits::default(), Pc(0x1010));
    assert!(matches!(error, LayoutError::Alignment { .. }), "{error}");
}

/// Prints the number of instructions laid out per second:
/// `cargo test --release -p flipwave-hooks layout_speed -- --ignored --nocapture`.
#[test]
#[ignore = "a measurement"]
fn layout_speed() {
    let mut dice = Dice(ChaCha8Rng::seed_from_u64(1));
    let functions = functions(&mut dice, "gfx90a", &[8000; 20]);
    let sample = sample("gfx90a", &functions);
    let code = marking(&sample, 0, 0);
    let indices = 0..sample.program.instructions.len() as u32;
    let before = indices.map(|index| (ProgramPoint::before(InstIndex(index)), code.clone()));
    let before = Edits { code: before.collect(), ..Edits::default() };
    for (name, edits) in [("without edits", Edits::default()), ("before each", before)] {
        let start = std::time::Instant::now();
        let layout = relayout(&sample.object, &sample.program, &edits, sample.free_address(0));
        let time = start.elapsed().as_secs_f64();
        let (count, bytes) =
            (sample.program.instructions.len() as f64, layout.expect("a layout").bytes.len());
        println!("{name}: {:.2} million/s, {bytes} bytes", count / time / 1e6);
    }
}
