//! Tests of rules 1 and 2 for code that remains in place.

use crate::checker::{CheckRule, Claims, Finding, Inserted, check};
use crate::dataflow::Liveness;
use crate::flow::{Disassembly, FunctionIndex, InstIndex, Key};
use crate::layout::tests::sample::Sample;
use crate::layout::{CodeLayout, Edits, InsertedCode, Piece, Placement, relayout};
use crate::point::ProgramPoint;
use flipwave_codeobj::{CodeObject, Editor};
use flipwave_isa::{Pc, RegisterSet};

/// A loop that contains a literal.
const LOOP: &str = "s_mov_b32 s4, 3\nloop: s_nop 1\ns_mov_b32 s5, 0x12345\ns_nop 2\n\
                    s_sub_u32 s4, s4, 1\ns_cbranch_scc0 loop\ns_endpgm\n";

/// A kernel whose code remains in place, with trampolines that insert `s_nop 7` before some instructions.
struct TrampolineKernel {
    sample: Sample,
    program: Disassembly,
    layout: CodeLayout,
    new: CodeObject,
    claims: Claims,
}

impl TrampolineKernel {
    fn new(body: &str, edited: &[u32]) -> TrampolineKernel {
        let sample = Sample::new("gfx90a", &[("k", body.to_owned())], "", "");
        let program = Disassembly::read(&sample.object).expect("a program");
        let nop = InsertedCode {
            pieces: vec![Piece::bytes(&sample.isa.assemble("s_nop 7").expect("a nop"))],
        };
        let edits = Edits {
            code: edited
                .iter()
                .map(|index| (ProgramPoint::before(InstIndex(*index)), nop.clone()))
                .collect(),
            placements: [(FunctionIndex(0), Placement::Trampoline)].into(),
            ..Edits::default()
        };
        let mut editor = Editor::new(&sample.object);
        let address = Pc(editor.free_address());
        let layout = relayout(&sample.object, &program, &edits, address).expect("a layout");
        for patch in &layout.patches {
            editor.patch(patch.address, patch.bytes.clone()).expect("a patch");
        }
        let text = layout.bytes.clone();
        editor.add_text(layout.address, text, layout.moved()).expect("more code");
        let new = editor.finish().expect("a code object").object;
        let inserted = layout.inserted.iter().map(|(range, _)| Inserted {
            range: range.clone(),
            at: None,
            changes: RegisterSet::EMPTY,
        });
        let claims = Claims {
            instructions: layout.places.iter().map(|place| place.inst).collect(),
            inserted: inserted.collect(),
        };
        TrampolineKernel { sample, program, layout, new, claims }
    }

    fn pc(&self, index: usize) -> u64 {
        self.program.instructions[InstIndex::new(index)].pc.0
    }

    /// Overwrites code of the new code object.
    fn patch(&mut self, address: u64, text: &str) {
        let words = self.sample.isa.assemble(text).expect(text);
        let segment = self.new.segment_at(Pc(address)).expect("code");
        let offset = (segment.file_offset() + address - segment.address) as usize;
        let mut bytes = self.new.bytes().to_vec();
        bytes[offset..offset + words.len()].copy_from_slice(&words);
        self.new = CodeObject::parse(&bytes).expect("a code object");
    }

    /// Claims that a range of old code is inserted.
    fn claim(&mut self, address: u64, size: u64) {
        let (range, changes) = (address..address + size, RegisterSet::EMPTY);
        self.claims.inserted.push(Inserted { range, at: None, changes });
        self.claims.inserted.sort_by_key(|inserted| inserted.range.start);
    }

    fn check(&self) -> Vec<Finding> {
        let liveness = Liveness::new(&self.program);
        let live = |at| liveness.before(at);
        let object = &self.sample.object;
        let rules = self.program.rules().expect("rules");
        let checked = check(rules, object, &self.program, &live, &self.new, &self.claims);
        checked.err().unwrap_or_default()
    }

    #[track_caller]
    fn assert_violates_control(&self, text: &str) {
        let lines: Vec<String> = self.check().iter().map(ToString::to_string).collect();
        assert!(
            self.check().iter().any(|finding| finding.rule == CheckRule::Control),
            "{lines:#?}"
        );
        assert!(lines.iter().any(|line| line.contains(text)), "no `{text}` in {lines:#?}");
    }
}

#[test]
fn checker_proves_code_with_trampolines() {
    for edited in [&[0][..], &[1], &[2], &[1, 2], &[2, 3], &[4], &[0, 1, 2, 3, 4, 5, 6]] {
        let kernel = TrampolineKernel::new(LOOP, edited);
        assert_eq!(kernel.check(), [], "{edited:?}");
        assert!(!kernel.layout.patches.is_empty());
    }
}

#[test]
fn checker_rejects_missing_or_wrong_branch_to_a_trampoline() {
    let mut kernel = TrampolineKernel::new(LOOP, &[1]);
    kernel.patch(kernel.pc(1), "s_nop 1");
    kernel.assert_violates_control("wrong original instruction");
    let mut kernel = TrampolineKernel::new(LOOP, &[1]);
    kernel.patch(kernel.pc(1), "s_branch 0");
    kernel.assert_violates_control("wrong original instruction");
}

#[test]
fn checker_rejects_branch_back_that_skips_an_instruction() {
    let mut kernel = TrampolineKernel::new(LOOP, &[3]);
    let back = kernel.layout.places[InstIndex(3)].end.0;
    let distance = (kernel.pc(5) as i64 - back as i64 - 4) / 4;
    kernel.patch(back, &format!("s_branch {}", distance as u16));
    kernel.assert_violates_control("wrong original instruction");
}

#[test]
fn checker_rejects_overwritten_branch_target() {
    // The branch to the first instruction's trampoline also overwrites the first instruction of the loop:
    // one that remains in place, then one that has moved.
    let mut kernel = TrampolineKernel::new(LOOP, &[0]);
    kernel.patch(kernel.pc(1), "s_nop 5");
    kernel.claim(kernel.pc(1), 4);
    kernel.assert_violates_control("claims overlap");
    let mut kernel = TrampolineKernel::new(LOOP, &[0, 1]);
    kernel.patch(kernel.pc(1), "s_nop 5");
    kernel.assert_violates_control("wrong original instruction");
}

#[test]
fn unreachable_old_code_may_be_overwritten_if_claimed() {
    let mut kernel = TrampolineKernel::new(LOOP, &[2, 3]);
    assert!(!kernel.layout.patches.iter().any(|patch| patch.address == kernel.pc(3)));
    kernel.patch(kernel.pc(3), "s_nop 5");
    kernel.assert_violates_control("unclaimed code");
    kernel.claim(kernel.pc(3), 4);
    assert_eq!(kernel.check(), []);
}

#[test]
fn checker_rejects_overwritten_target_inside_an_instruction() {
    // The literal is executed as an instruction, which control-flow analysis does not support.
    let body = "s_mov_b32 s4, 3\ns_cbranch_scc0 1\ns_mov_b32 s5, 0xbf800001\ns_nop 2\ns_endpgm\n";
    let mut kernel = TrampolineKernel::new(body, &[2]);
    assert!(!kernel.program.functions[FunctionIndex(0)].unresolved.is_empty());
    assert_eq!(kernel.check(), []);
    kernel.claim(kernel.pc(2) + 4, 4);
    kernel.assert_violates_control("which is not an instruction");
}

#[test]
fn unresolved_functions_keep_all_old_addresses() {
    let body = LOOP.replace("s_endpgm", "s_setpc_b64 s[10:11]");
    let mut kernel = TrampolineKernel::new(&body, &[2, 3]);
    assert!(!kernel.program.functions[FunctionIndex(0)].unresolved.is_empty());
    assert_eq!(kernel.check(), []);
    // In a resolved function, the second of two adjacent trampolines could be overwritten.
    kernel.patch(kernel.pc(3), "s_nop 5");
    kernel.assert_violates_control("");
}
