//! Edge cases that compilers rarely produce.

use super::random::check_shape;
use super::sample::Sample;
use super::walk::{Event, executed, expected, marker, marking};
use crate::flow::{FunctionIndex, InstIndex, Key};
use crate::layout::{
    CodeLayout, Edits, InsertPurpose, InsertedCode, LayoutError, Piece, Placement, Reference,
    relayout,
};
use crate::point::ProgramPoint;
use flipwave_isa::{Pc, Sgpr};

fn sample(processor: &str, body: &str) -> Sample {
    Sample::new(processor, &[("k", body.to_owned())], "", "")
}

fn before(sample: &Sample, indices: &[u32]) -> Edits {
    marked(sample, indices.iter().map(|index| ProgramPoint::before(InstIndex(*index))))
}

fn after(sample: &Sample, indices: &[u32]) -> Edits {
    marked(sample, indices.iter().map(|index| ProgramPoint::after(InstIndex(*index))))
}

fn marked(sample: &Sample, points: impl Iterator<Item = ProgramPoint>) -> Edits {
    let code = |point| marking(sample, marker(InsertPurpose::Point(point)), 0);
    Edits { code: points.map(|point| (point, code(point))).collect(), ..Edits::default() }
}

fn laid_out(sample: &Sample, edits: &Edits) -> CodeLayout {
    let address = sample.free_address(0);
    let layout = relayout(&sample.object, &sample.program, edits, address).expect("a layout");
    check_shape(sample, &layout);
    layout
}

fn refused(sample: &Sample, edits: &Edits, address: Pc) -> LayoutError {
    relayout(&sample.object, &sample.program, edits, address).expect_err("an error")
}

/// Text of the instruction at an address of the new code.
fn text(sample: &Sample, layout: &CodeLayout, pc: u64) -> String {
    let bytes = &layout.bytes[(pc - layout.address) as usize..];
    sample.isa.decode(bytes, Pc(pc)).expect("an instruction").text.clone()
}

/// A kernel that preloads two arguments, with entry code for firmware without preloading.
fn preloading(processor: &str, prologue: &str) -> Sample {
    let body = format!(
        "{prologue}\n.p2align 8\nbody:\ns_nop 3\ns_cbranch_scc0 body\nafter:\ns_nop 4\ns_endpgm\n"
    );
    let preload = ".amdhsa_user_sgpr_kernarg_preload_length 2\n\
                   .amdhsa_user_sgpr_kernarg_preload_offset 0\n";
    Sample::new(processor, &[("k", body)], preload, "")
}

const PROLOGUE: &str = "s_load_dwordx2 s[2:3], s[0:1], 0x0\ns_waitcnt lgkmcnt(0)\ns_branch body";

#[test]
fn preloading_kernel_keeps_its_entry_code_or_starts_with_inserted_code() {
    for processor in ["gfx90a", "gfx942"] {
        let sample = preloading(processor, PROLOGUE);
        let kernel = &sample.object.kernels()[0];
        let k = FunctionIndex(0);
        let entry = marking(&sample, marker(InsertPurpose::Entry(k)), 0);
        for placement in [Placement::Inline, Placement::Trampoline] {
            for has_entry in [false, true] {
                let mut edits = before(&sample, &[0, 2]);
                edits.placements.insert(k, placement);
                if has_entry {
                    edits.entries.insert(k, entry.clone());
                }
                let layout = laid_out(&sample, &edits);
                let new = layout.entries[k].0;
                assert_eq!(layout.new_address(kernel.entry()), Some(Pc(new)));
                let start = if has_entry { new } else { new + 256 };
                if let (false, Placement::Inline) = (has_entry, placement) {
                    let at = (new - layout.address) as usize;
                    let old = sample.object.bytes_at(kernel.entry(), 256).expect("code");
                    assert_eq!(layout.bytes[at..at + 256], *old);
                }
                for seed in 0..4 {
                    let wanted = expected(&sample, &edits, &layout, kernel.start(), seed, 100);
                    let found = executed(&sample, &layout, Pc(start), seed, 100);
                    assert_eq!(found, wanted, "{processor} {placement:?}");
                    let entered = Event::Marker(marker(InsertPurpose::Entry(k)));
                    let times = found.iter().filter(|event| **event == entered).count();
                    assert_eq!(times, usize::from(has_entry));
                }
            }
        }
    }
}

#[test]
fn entry_code_that_refers_to_other_code_is_not_copied() {
    for prologue in ["s_getpc_b64 s[4:5]", "s_setpc_b64 s[4:5]", "s_branch after"] {
        let sample = preloading("gfx942", prologue);
        let error = refused(&sample, &Edits::default(), sample.free_address(0));
        assert!(matches!(error, LayoutError::PreloadEntry { .. }), "{error}");
        let mut stays = Edits::default();
        stays.placements.insert(FunctionIndex(0), Placement::Trampoline);
        laid_out(&sample, &stays);
    }
}

#[test]
fn clause_is_dropped_only_if_split() {
    let body = "s_nop 0\ns_clause 0x1\ns_load_dword s2, s[0:1], 0x0\n\
                s_load_dword s3, s[0:1], 0x4\ns_nop 1\ns_endpgm\n";
    for processor in ["gfx1030", "gfx1100"] {
        let sample = sample(processor, body);
        let dropped = |edits: &Edits| laid_out(&sample, edits).dropped;
        assert_eq!(dropped(&before(&sample, &[0, 1, 4])), []);
        assert_eq!(dropped(&after(&sample, &[0, 4])), []);
        for index in [2, 3] {
            assert_eq!(dropped(&before(&sample, &[index])), [InstIndex(1)]);
        }
        for index in [1, 2] {
            assert_eq!(dropped(&after(&sample, &[index])), [InstIndex(1)]);
        }
        let removal = Edits {
            code: [(ProgramPoint::instead(InstIndex(3)), InsertedCode::default())].into(),
            ..Edits::default()
        };
        assert_eq!(dropped(&removal), [InstIndex(1)]);
        let layout = laid_out(&sample, &before(&sample, &[2]));
        assert_eq!(layout.places[InstIndex(1)].inst, None);
        assert!((0..layout.bytes.len() / 4).all(|word| {
            !text(&sample, &layout, layout.address + 4 * word as u64).starts_with("s_clause")
        }));
    }
}

#[test]
fn invalid_hint_in_old_text_is_overwritten() {
    let sample = sample(
        "gfx1100",
        "s_nop 0\ns_clause 0x1\ns_load_b32 s2, s[0:1], 0x0\ns_load_b32 s3, s[0:1], 0x4\ns_endpgm\n",
    );
    // A displaced `s_clause` would precede a branch.
    let mut edits = before(&sample, &[1]);
    edits.placements.insert(FunctionIndex(0), Placement::Trampoline);
    assert_eq!(laid_out(&sample, &edits).dropped, [InstIndex(1)]);
    let mut edits = before(&sample, &[3]);
    edits.placements.insert(FunctionIndex(0), Placement::Trampoline);
    let layout = laid_out(&sample, &edits);
    assert_eq!(layout.dropped, [InstIndex(1)]);
    let patch = layout.patches.iter().find(|patch| patch.address == sample.pc(1).0);
    let nop = sample.isa.assemble("s_nop 0").expect("a nop");
    assert_eq!(patch.expect("a patch").bytes, nop);
}

#[test]
fn delay_hint_is_dropped_if_its_instructions_are_edited() {
    let delay = |skip: &str| {
        format!(
            "s_delay_alu instid0(VALU_DEP_1) | instskip({skip}) | instid1(VALU_DEP_1)\n\
             v_mov_b32 v1, v2\nv_mov_b32 v2, v3\nv_mov_b32 v3, v4\nv_mov_b32 v4, v5\n\
             v_mov_b32 v5, v6\nv_mov_b32 v6, v7\nv_mov_b32 v7, v8\ns_endpgm\n"
        )
    };
    for (skip, members) in [("SAME", 1), ("NEXT", 2), ("SKIP_1", 3), ("SKIP_4", 6)] {
        let sample = sample("gfx1100", &delay(skip));
        for index in 1..=7 {
            let dropped = laid_out(&sample, &before(&sample, &[index])).dropped;
            assert_eq!(!dropped.is_empty(), index <= members, "{skip} {index}");
        }
    }
}

#[test]
fn vgprs_are_not_released_before_inserted_code() {
    let sample =
        sample("gfx1100", "s_nop 0\ns_nop 0\ns_sendmsg sendmsg(MSG_DEALLOC_VGPRS)\ns_endpgm\n");
    let dropped = |edits: &Edits| laid_out(&sample, edits).dropped;
    assert_eq!(dropped(&before(&sample, &[0, 1, 2])), []);
    assert_eq!(dropped(&before(&sample, &[3])), [InstIndex(2)]);
    assert_eq!(dropped(&after(&sample, &[2])), [InstIndex(2)]);
}

#[test]
fn gfx1010_branches_avoid_distance_63() {
    let body = format!("s_nop 1\ns_cbranch_scc0 end\n{}end:\ns_endpgm\n", "s_nop 2\n".repeat(62));
    for (processor, distance) in [("gfx1010", 64), ("gfx1030", 63)] {
        let sample = sample(processor, &body);
        let edits = before(&sample, &[10]);
        let layout = laid_out(&sample, &edits);
        let branch = layout.places[InstIndex(1)].inst.expect("a branch").0;
        let inst = sample
            .isa
            .decode(&layout.bytes[(branch - layout.address) as usize..], Pc(branch))
            .expect("a branch");
        let target = inst.branch_target.expect("a target").0;
        assert_eq!((target - branch - 4) / 4, distance, "{processor}");
        let (start, new) = (sample.pc(0), layout.entries[FunctionIndex(0)]);
        for seed in 0..4 {
            let wanted = expected(&sample, &edits, &layout, start, seed, 100);
            assert_eq!(executed(&sample, &layout, new, seed, 100), wanted);
        }
    }
}

#[test]
fn inserted_addresses_refer_to_data_instructions_and_routines() {
    let sample = sample("gfx90a", "s_nop 1\ns_nop 2\ns_endpgm\n");
    let data = Pc(0x1234_5678_9abc);
    let word = |text: &str| Piece::bytes(&sample.isa.assemble(text).expect(text));
    let address = |to| Piece::Address { destination: Sgpr(92), to };
    let call = [
        address(Reference::Routine(0)),
        word("s_swappc_b64 s[94:95], s[92:93]"),
        word("s_movk_i32 s90, 7"),
    ];
    let edits = Edits {
        code: [
            vec![address(Reference::Data(data))],
            call.to_vec(),
            vec![address(Reference::Inst(InstIndex(1)))],
        ]
        .into_iter()
        .zip(0..)
        .map(|(pieces, at)| (ProgramPoint::before(InstIndex(at)), InsertedCode { pieces }))
        .collect(),
        routines: vec![InsertedCode {
            pieces: vec![word("s_movk_i32 s90, 8"), word("s_setpc_b64 s[94:95]")],
        }],
        ..Edits::default()
    };
    let layout = laid_out(&sample, &edits);
    let events = executed(&sample, &layout, layout.entries[FunctionIndex(0)], 0, 100);
    use Event::{End, Inst, Marker};
    assert_eq!(events, [Inst(0), Marker(8), Marker(7), Inst(1), Inst(2), End]);
    let sum = |index: usize| {
        let start = layout.places[InstIndex::new(index)].start.0;
        let at = (start - layout.address) as usize;
        let literal = |at: usize| {
            let word = layout.bytes[at..at + 4].try_into().expect("a word");
            u64::from(u32::from_le_bytes(word))
        };
        (start + 4).wrapping_add(literal(at + 16) << 32 | literal(at + 8))
    };
    assert_eq!(sum(0), data.0);
    assert_eq!(sum(2), layout.places[InstIndex(1)].start.0);
}

#[test]
fn address_chain_with_subtraction_is_adjusted() {
    let body = "s_getpc_b64 s[4:5]\nhere:\ns_sub_u32 s4, s4, (here-data)&0xffffffff\n\
                s_subb_u32 s5, s5, 0\ns_endpgm\n";
    let body = body.replace("(here-data)&0xffffffff", "0x12345678");
    let mut sample = sample("gfx90a", &body);
    let target = Pc((sample.pc(0).0 + 4).wrapping_sub(0x1234_5678));
    sample.program.addresses.push(crate::flow::AddressChain {
        getpc: InstIndex(0),
        low: InstIndex(1),
        high: InstIndex(2),
        register: flipwave_isa::Register::Sgpr(Sgpr(4)),
        target,
    });
    let layout = laid_out(&sample, &Edits::default());
    let literal = |index: usize| {
        let at = (layout.places[InstIndex::new(index)].inst.expect("there").0 - layout.address)
            as usize
            + 4;
        u32::from_le_bytes(layout.bytes[at..at + 4].try_into().expect("a word"))
    };
    let pc = layout.places[InstIndex(0)].inst.expect("there").0 + 4;
    let difference = u64::from(literal(2)) << 32 | u64::from(literal(1));
    assert_eq!(pc.wrapping_sub(difference), target.0);
}

#[test]
fn unknown_use_of_the_pc_prevents_moving() {
    let sample = sample("gfx90a", "s_nop 0\ns_getpc_b64 s[4:5]\ns_nop 1\ns_endpgm\n");
    let error = refused(&sample, &Edits::default(), sample.free_address(0));
    assert!(matches!(error, LayoutError::Unmovable { .. }), "{error}");
    let mut edits = before(&sample, &[0, 2]);
    edits.placements.insert(FunctionIndex(0), Placement::Trampoline);
    let layout = laid_out(&sample, &edits);
    assert_eq!(layout.places[InstIndex(1)].inst, Some(sample.pc(1)));
    let mut edits = before(&sample, &[1, 2]);
    edits.placements.insert(FunctionIndex(0), Placement::Trampoline);
    let error = refused(&sample, &edits, sample.free_address(0));
    assert!(matches!(&error, LayoutError::Sites(sites) if sites[0].0 == sample.pc(1)), "{error}");
}

#[test]
fn unreachable_trampoline_is_refused_with_its_site() {
    let sample = sample("gfx90a", "s_nop 0\ns_nop 1\ns_endpgm\n");
    let mut edits = before(&sample, &[1]);
    edits.placements.insert(FunctionIndex(0), Placement::Trampoline);
    let error = refused(&sample, &edits, sample.free_address(1 << 20));
    assert!(matches!(&error, LayoutError::Sites(sites) if sites[0].0 == sample.pc(1)), "{error}");
}

#[test]
fn malformed_inserted_code_is_refused() {
    let sample = sample("gfx90a", "s_nop 0\ns_endpgm\n");
    for piece in [Piece::bytes(&[0; 6]), Piece::Branch { word: 0xbf82_0000, to: 2 }] {
        let code = InsertedCode { pieces: vec![piece] };
        let edits =
            Edits { code: [(ProgramPoint::before(InstIndex(0)), code)].into(), ..Edits::default() };
        let error = refused(&sample, &edits, sample.free_address(0));
        assert!(matches!(error, LayoutError::Piece { .. }), "{error}");
    }
}

#[test]
fn old_and_new_addresses_map_to_each_other() {
    let sample = sample("gfx90a", "s_nop 0\ns_nop 1\ns_endpgm\n");
    let mut edits = before(&sample, &[0, 1]);
    edits.entries.insert(FunctionIndex(0), marking(&sample, 0, 8));
    let layout = laid_out(&sample, &edits);
    assert_eq!(layout.new_address(sample.pc(0)), Some(layout.entries[FunctionIndex(0)]));
    assert_eq!(layout.new_address(sample.pc(1)), Some(layout.places[InstIndex(1)].start));
    assert_eq!(layout.new_address(Pc(sample.pc(1).0 + 2)), None);
    let place = layout.places[InstIndex(1)];
    let inst = place.inst.expect("an instruction");
    assert!(place.start < inst);
    for pc in [place.start, inst] {
        assert_eq!(layout.old_address(pc), Some(sample.pc(1)));
    }
    assert_eq!(layout.old_address(layout.entries[FunctionIndex(0)]), Some(sample.pc(0)));
    let end = layout.address + layout.bytes.len() as u64;
    assert_eq!(layout.old_address(Pc(end - 4)), None);
    assert_eq!(layout.old_address(Pc(0)), None);
}
