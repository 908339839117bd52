//! Sample programs in assembly, with known control flow.

use crate::flow::{
    AddressChain, BlockIndex, Disassembly, Function, IndexRange, IndexVec, InstIndex,
};
use flipwave_codeobj::{CodeObject, SymbolKind};
use flipwave_isa::{Inst, Isa, Pc, Role, Sgpr, Value};
use std::collections::BTreeMap;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// A code object and its program.
pub struct Sample {
    pub isa: Isa,
    pub object: CodeObject,
    pub program: Disassembly,
}

impl Sample {
    /// Assembles functions, given by name and body. The first is a kernel. `kernel` contains further
    /// directives of its descriptor, `data` the content of .data.
    pub fn new(processor: &str, functions: &[(&str, String)], kernel: &str, data: &str) -> Sample {
        let mut text = String::from(".text\n");
        for (name, body) in functions {
            text += &format!(
                ".globl {name}\n.protected {name}\n.p2align 8\n.type {name},@function\n{name}:\n{body}\
                 .size {name}, .-{name}\n"
            );
        }
        // Padding for the instruction prefetch: words of `s_nop`.
        text += ".fill 256, 4, 0xbf800000\n";
        let name = functions[0].0;
        let offset = match processor {
            "gfx90a" | "gfx942" => ".amdhsa_accum_offset 32",
            _ => "",
        };
        text += &format!(
            ".rodata\n.p2align 6\n.amdhsa_kernel {name}\n.amdhsa_next_free_vgpr 32\n{offset}\n\
             .amdhsa_next_free_sgpr 96\n.amdhsa_user_sgpr_kernarg_segment_ptr 1\n{kernel}\n\
             .end_amdhsa_kernel\n.data\ndata:\n.long 0\n{data}\n"
        );
        let bytes = assemble(processor, &text);
        let object = CodeObject::parse(&bytes).expect("a code object");
        let isa = Isa::new(object.target()).expect("an ISA");
        let program = program(&object, &isa);
        Sample { isa, object, program }
    }

    /// An aligned address at least `distance` bytes after all segments.
    pub fn free_address(&self, distance: u64) -> Pc {
        let end = self.object.segments().iter().map(|segment| segment.end()).max();
        Pc((end.expect("a segment") + distance).next_multiple_of(0x1000))
    }

    pub fn pc(&self, index: u32) -> Pc {
        self.program.instructions[InstIndex(index)].pc
    }
}

/// Assembles a text, once per process.
fn assemble(processor: &str, text: &str) -> Vec<u8> {
    static MADE: Mutex<BTreeMap<(String, String), Vec<u8>>> = Mutex::new(BTreeMap::new());
    let all = || MADE.lock().unwrap_or_else(PoisonError::into_inner);
    let key = (processor.to_owned(), text.to_owned());
    let known = all().get(&key).cloned();
    known.unwrap_or_else(|| {
        let made = assembled(processor, text);
        all().insert(key, made.clone());
        made
    })
}

fn assembled(processor: &str, text: &str) -> Vec<u8> {
    let folder = tempfile::tempdir().expect("a folder");
    let [source, object] = ["sample.s", "sample.co"].map(|name| folder.path().join(name));
    std::fs::write(&source, text).expect("the source");
    let output = Command::new("clang-22")
        .args(["-xassembler", "--target=amdgcn-amd-amdhsa", "-nogpulib"])
        .arg(format!("-mcpu={processor}"))
        .args([&source, std::path::Path::new("-o"), &object])
        .output()
        .expect("clang-22 is needed by these tests");
    let messages = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cannot assemble the sample:\n{messages}{text}");
    std::fs::read(object).expect("what clang wrote")
}

fn program(object: &CodeObject, isa: &Isa) -> Disassembly {
    let mut symbols: Vec<_> =
        object.symbols().iter().filter(|symbol| symbol.kind == SymbolKind::Function).collect();
    symbols.sort_by_key(|symbol| symbol.address);
    let mut instructions: IndexVec<InstIndex, Inst> = IndexVec::new();
    let mut functions = IndexVec::new();
    for symbol in symbols {
        let start = instructions.next_index();
        let bytes = object.bytes_at(Pc(symbol.address), symbol.size as usize).expect("code");
        let kernel = object.kernels().iter().find(|kernel| kernel.entry().0 == symbol.address);
        let mut at = kernel.map_or(0, |kernel| (kernel.start().0 - kernel.entry().0) as usize);
        while at < bytes.len() {
            let pc = Pc(symbol.address + at as u64);
            let inst = isa.decode(&bytes[at..], pc).expect("an instruction");
            at += usize::from(inst.size);
            instructions.push(inst);
        }
        let kernels = object.kernels().iter();
        functions.push(Function {
            name: symbol.name.clone(),
            kernel: kernels.clone().position(|kernel| kernel.entry().0 == symbol.address),
            allocated: None,
            instructions: IndexRange::new(start, instructions.next_index()),
            blocks: IndexRange::new(BlockIndex(0), BlockIndex(0)),
            calls: Vec::new(),
            loops: Vec::new(),
            address_taken: false,
            unresolved: Vec::new(),
        });
    }
    Disassembly {
        target: object.target().clone(),
        wave_size: isa.wave_size(),
        accum_offset: None,
        addresses: chains(&instructions),
        instructions,
        blocks: IndexVec::new(),
        functions,
    }
}

/// Finds `s_getpc_b64` directly followed by two additions.
fn chains(instructions: &[Inst]) -> Vec<AddressChain> {
    let constant = |inst: &Inst| {
        inst.sources().find_map(|operand| match operand.value {
            Value::Literal(value) => Some(value),
            Value::Integer(value) => Some(value as u32),
            _ => None,
        })
    };
    let chain = |(index, three): (usize, &[Inst])| {
        let [getpc, low, high] = three else { return None };
        let Value::Register(pair) = getpc.operands.first()?.value else { return None };
        let is_add = low.operation.name() == "s_add_u32" && high.operation.name() == "s_addc_u32";
        (getpc.operation.name() == "s_getpc_b64" && is_add).then_some(())?;
        let sum = u64::from(constant(high)?) << 32 | u64::from(constant(low)?);
        let at = |after: usize| InstIndex((index + after) as u32);
        Some(AddressChain {
            getpc: at(0),
            low: at(1),
            high: at(2),
            register: pair.first,
            target: Pc((getpc.pc.0 + 4).wrapping_add(sum)),
        })
    };
    instructions.windows(3).enumerate().filter_map(chain).collect()
}

/// Number of the first SGPR operand of an instruction with a role.
pub fn sgpr(inst: &Inst, role: Role) -> Option<u8> {
    let operand = inst.operands.iter().find(|operand| operand.role == role)?;
    match operand.value {
        Value::Register(range) => match range.first {
            flipwave_isa::Register::Sgpr(Sgpr(number)) => Some(number),
            _ => None,
        },
        _ => None,
    }
}
