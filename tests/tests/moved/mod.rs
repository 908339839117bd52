//! Kernels whose code is moved compute the same results: with unchanged code, with code inserted between
//! all instructions, with so much inserted code that branches need islands, and with trampolines.

#[path = "../compiled/control.rs"]
mod control;
#[path = "../compiled/lanes.rs"]
mod lanes;
#[path = "../compiled/memory.rs"]
mod memory;
#[path = "../compiled/numbers.rs"]
mod numbers;
#[path = "../compiled/pressure.rs"]
mod pressure;

use flipwave_codeobj::{CodeObject, Editor};
use flipwave_hooks::flow::{self, FunctionIndex, InstIndex};
use flipwave_hooks::layout::{
    CodeLayout, Edits, InsertPurpose, InsertedCode, Piece, Placement, relayout,
};
use flipwave_hooks::point::ProgramPoint;
use flipwave_isa::{Isa, Pc};
use flipwave_tests::{Machine, TestProgram, compile_for, machines, rewritten_levels};

/// Method of moving code.
#[derive(Clone, Copy, Debug)]
enum Method {
    /// Unchanged code at a new address.
    Alone,
    /// A word before and after every instruction.
    Between,
    /// Long code that is jumped over, after some instructions.
    Far,
    /// Some instructions move to trampolines; the others stay.
    Trampolines,
}

const METHODS: [Method; 4] = [Method::Alone, Method::Between, Method::Far, Method::Trampolines];

/// Runs `test` with the kernels of a file compiled for every machine, moved with every method.
fn at_every_level(file: &str, options: &[&str], test: impl Fn(TestProgram)) {
    // The layout of code does not depend on the wave size.
    let is_moved = |machine: &Machine| machine.options().is_empty() && machine.can_be_rewritten();
    for machine in machines().filter(is_moved) {
        for level in rewritten_levels().iter().copied() {
            let code_object = compile_for(machine, file, &[&[level], options].concat());
            for method in METHODS {
                println!("{file} {level} on {machine}, {method:?}");
                let program = TestProgram::new(&moved(&code_object, method));
                // The layout does not prevent hazards at splices. On gfx90a, branches and s_nop cause none.
                let is_strict = machine.target().processor() == "gfx90a";
                test(if is_strict { program.strictly() } else { program });
            }
        }
    }
}

fn moved(code_object: &[u8], method: Method) -> Vec<u8> {
    let object = CodeObject::parse(code_object).expect("a code object");
    let program = flow::Disassembly::read(&object).expect("a program");
    let edits = edits(&program, method);
    let mut editor = Editor::new(&object);
    let address = Pc(editor.free_address());
    let layout = relayout(&object, &program, &edits, address).expect("a layout");
    check_method(&layout, method);
    let moved = layout.moved();
    if layout.keeps_old_text() {
        for patch in &layout.patches {
            editor.patch(patch.address, patch.bytes.clone()).expect("a patch");
        }
        editor.add_text(layout.address, layout.bytes, moved).expect("more code");
    } else {
        editor.move_text(layout.address, layout.bytes, moved).expect("moved code");
    }
    editor.finish().expect("a changed code object").object.bytes().to_vec()
}

fn edits(program: &flow::Disassembly, method: Method) -> Edits {
    let isa = Isa::with_wave_size(&program.target, program.wave_size).expect("an ISA");
    let word = |text: &str| isa.assemble(text).expect(text);
    let nop = InsertedCode { pieces: vec![Piece::bytes(&word("s_nop 0"))] };
    let branch = u32::from_le_bytes(word("s_branch 0").try_into().expect("a word"));
    let far = InsertedCode {
        pieces: vec![
            Piece::Branch { word: branch, to: 2 },
            Piece::bytes(&word("s_endpgm").repeat(10_000)),
        ],
    };
    let mut edits = Edits::default();
    let has_after = |inst| program.control(inst).has_known_successor();
    for (index, inst) in program.instructions.iter().enumerate() {
        let at = InstIndex(index as u32);
        match method {
            Method::Alone => {}
            Method::Between => {
                edits.code.insert(ProgramPoint::before(at), nop.clone());
                if has_after(inst) {
                    edits.code.insert(ProgramPoint::after(at), nop.clone());
                }
            }
            Method::Far if index % 16 == 0 => {
                _ = edits.code.insert(ProgramPoint::before(at), far.clone())
            }
            Method::Far if index % 16 == 8 && has_after(inst) => {
                edits.code.insert(ProgramPoint::after(at), far.clone());
            }
            Method::Far => {}
            Method::Trampolines if index % 3 == 0 => {
                _ = edits.code.insert(ProgramPoint::before(at), nop.clone())
            }
            Method::Trampolines if index % 3 == 1 && has_after(inst) => {
                edits.code.insert(ProgramPoint::after(at), nop.clone());
            }
            Method::Trampolines => {}
        }
    }
    if matches!(method, Method::Trampolines) {
        let functions = 0..program.functions.len() as u32;
        edits.placements =
            functions.map(|index| (FunctionIndex(index), Placement::Trampoline)).collect();
    }
    edits
}

/// Asserts that the layout uses the method.
fn check_method(layout: &CodeLayout, method: Method) {
    match method {
        Method::Alone => {
            assert!(layout.inserted.iter().all(|(_, purpose)| *purpose == InsertPurpose::Island));
        }
        Method::Between | Method::Far => assert!(!layout.keeps_old_text()),
        Method::Trampolines => assert!(layout.keeps_old_text() && !layout.patches.is_empty()),
    }
}
