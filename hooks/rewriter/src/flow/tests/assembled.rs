//! Code objects assembled by clang for tests.

use crate::flow::{BlockIndex, Disassembly, EdgeKind, Function, InstIndex};
use flipwave_codeobj::CodeObject;
use std::process::Command;

/// Assembly of functions, given by name and body. The first is a kernel; bodies may refer to other functions.
pub fn text(functions: &[(&str, &str)]) -> String {
    let mut text = String::from(".text\n");
    for (name, body) in functions {
        text += &format!(
            ".globl {name}\n.hidden {name}\n.p2align 8\n.type {name},@function\n{name}:\n{body}\n\
             .size {name}, .-{name}\n"
        );
    }
    text
}

/// Assembly of a kernel descriptor.
pub fn descriptor(processor: &str, name: &str) -> String {
    let offset = match processor {
        "gfx90a" | "gfx942" => ".amdhsa_accum_offset 64",
        _ => "",
    };
    format!(
        ".section .rodata\n.p2align 6\n.amdhsa_kernel {name}\n.amdhsa_next_free_vgpr 64\n{offset}\n\
         .amdhsa_next_free_sgpr 96\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n.end_amdhsa_kernel\n"
    )
}

/// Assembles and links a text.
pub fn assemble(processor: &str, text: &str) -> CodeObject {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, output) = (folder.path().join("text.s"), folder.path().join("text.co"));
    std::fs::write(&source, text).expect("the text written");
    let finished = Command::new("clang-22")
        .args(["-xassembler", "--target=amdgcn-amd-amdhsa", "-nogpulib"])
        .arg(format!("-mcpu={processor}"))
        .arg("-o")
        .arg(&output)
        .arg(&source)
        .output()
        .expect("these tests require clang-22 and lld-22");
    let messages = String::from_utf8_lossy(&finished.stderr);
    assert!(finished.status.success(), "assembly failed:\n{messages}");
    CodeObject::parse(&std::fs::read(output).expect("what clang wrote")).expect("a code object")
}

/// The program with the given functions, of which the first is a kernel, followed by the assembly `more`.
pub fn program(processor: &str, functions: &[(&str, &str)], more: &str) -> Disassembly {
    let text = text(functions) + &descriptor(processor, functions[0].0) + more;
    let object = assemble(processor, &text);
    super::partial::assert_partial_reads_equal_full(&object);
    Disassembly::read(&object).unwrap_or_else(|error| panic!("{error}"))
}

impl Disassembly {
    /// The function with the given name.
    pub fn named(&self, name: &str) -> &Function {
        let found = self.functions.iter().find(|function| &*function.name == name);
        found.unwrap_or_else(|| panic!("no function `{name}`"))
    }

    /// The control-flow graph of a function as text. `0>1~2` is block 0, which falls through to block 1
    /// and branches to block 2; `^` is a return from a call. Blocks without edges are followed by the way
    /// they end.
    pub fn graph_text(&self, name: &str) -> String {
        let function = self.named(name);
        let local = |index: BlockIndex| index.0 - function.blocks.start.0;
        let blocks = function.blocks.iter().map(|index| {
            let block = &self.blocks[index];
            let mut text = local(index).to_string();
            for edge in &block.successors {
                let arrow = match edge.kind {
                    EdgeKind::FallThrough => ">",
                    EdgeKind::Taken => "~",
                    EdgeKind::Return => "^",
                };
                text += &format!("{arrow}{}", local(edge.to));
            }
            if block.successors.is_empty() {
                text += &format!(" {:?}", block.end);
            }
            text
        });
        blocks.collect::<Vec<_>>().join(", ")
    }

    /// Names of the called functions, in order; `?` for unknown callees.
    pub fn called(&self, name: &str) -> Vec<&str> {
        let calls = self.named(name).calls.iter();
        calls.map(|call| call.callee.map_or("?", |callee| &*self.functions[callee].name)).collect()
    }

    /// The first instruction whose assembly contains `text`.
    pub fn find(&self, text: &str) -> InstIndex {
        let found = self.insts().find(|(_, inst)| inst.text.replace("_e32", "").contains(text));
        found.unwrap_or_else(|| panic!("no `{text}`")).0
    }
}
