//! Functions that are read by themselves are what they are among all others.

use super::assembled::{assemble, descriptor, text};
use crate::flow::{
    BlockEnd, BlockIndex, Disassembly, EdgeKind, FlowError, FunctionIndex, InstIndex, Survey,
};
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Inst, Pc, Register};
use std::collections::BTreeMap;

/// A block: its instructions, where it goes, and how it ends.
type BlockShape = (Pc, Pc, Vec<(Pc, EdgeKind)>, BlockEnd);

/// All that is said of a function, with addresses in place of indices.
#[derive(Clone, Debug, PartialEq)]
struct Shape {
    name: String,
    kernel: Option<usize>,
    insts: Vec<Inst>,
    blocks: Vec<BlockShape>,
    predecessors: Vec<Vec<Pc>>,
    calls: Vec<(Pc, Option<Pc>)>,
    loops: Vec<(Pc, Vec<Pc>, u32)>,
    unresolved: Vec<(Pc, String)>,
    chains: Vec<(Pc, Pc, Pc, Register, Pc)>,
    is_address_taken: bool,
}

fn shapes(program: &Disassembly) -> BTreeMap<Pc, Shape> {
    let pc = |at: InstIndex| program.instructions[at].pc;
    let start = |at: BlockIndex| pc(program.blocks[at].instructions.start);
    let entry = |at: FunctionIndex| program.entry(&program.functions[at]);
    let shape = |(index, own): (FunctionIndex, &crate::flow::Function)| {
        let blocks = own.blocks.iter().map(|at| &program.blocks[at]);
        let chains = program.addresses.iter().filter(|own| program.function_of(own.getpc) == index);
        let shape = Shape {
            name: own.name.to_string(),
            kernel: own.kernel,
            insts: program.instructions[own.instructions].to_vec(),
            blocks: blocks
                .clone()
                .map(|own| {
                    let successors = own.successors.iter().map(|edge| (start(edge.to), edge.kind));
                    (pc(own.instructions.start), pc(own.last()), successors.collect(), own.end)
                })
                .collect(),
            predecessors: blocks
                .map(|own| own.predecessors.iter().map(|own| start(*own)).collect())
                .collect(),
            calls: own.calls.iter().map(|call| (pc(call.at), call.callee.map(entry))).collect(),
            loops: own
                .loops
                .iter()
                .map(|own| {
                    let blocks = own.blocks.iter().map(|own| start(*own)).collect();
                    (start(own.header), blocks, own.depth)
                })
                .collect(),
            unresolved: own.unresolved.iter().map(|o| (pc(o.at), o.reason.clone())).collect(),
            chains: chains
                .map(|own| (pc(own.getpc), pc(own.low), pc(own.high), own.register, own.target))
                .collect(),
            is_address_taken: own.address_taken,
        };
        (program.entry(own), shape)
    };
    program.functions.enumerated().map(shape).collect()
}

/// Whether the groups of a survey, and each kernel read by itself, are what is read as a whole; how
/// many functions were compared.
pub fn assert_same(object: &CodeObject) -> usize {
    let Ok(whole) = Disassembly::read(object) else { return 0 };
    let expected = shapes(&whole);
    let mut survey = Survey::of(object).expect("what is read whole");
    assert_eq!(survey.wave_size(), whole.wave_size);
    let mut grouped = BTreeMap::new();
    for group in survey.groups() {
        let program = survey.disassembly(&group);
        assert_eq!(program.accum_offset, whole.accum_offset);
        grouped.extend(shapes(&program));
    }
    assert_eq!(grouped, expected);
    let mut compared = expected.len();
    for kernel in 0..object.kernels().len() {
        let alone = Disassembly::of_kernel(object, kernel).expect("what is read whole");
        let own = whole.kernel(kernel).map(|own| whole.reachable(own)).unwrap_or_default();
        let own = own.into_iter().map(|own| whole.entry(&whole.functions[own]));
        let expected: BTreeMap<Pc, Shape> = own.map(|at| (at, expected[&at].clone())).collect();
        assert_eq!(shapes(&alone), expected, "{}", object.kernels()[kernel].name);
        compared += expected.len();
    }
    compared
}

/// Many kernels, each with other constants, loops and a function that some call.
fn library(kernels: usize) -> String {
    let mut functions =
        vec![("helper".to_owned(), "v_add_f32 v0, v0, v1\n s_setpc_b64 s[30:31]".to_owned())];
    for index in 0..kernels {
        let call = match index % 3 {
            0 => {
                "s_getpc_b64 s[4:5]\n s_add_u32 s4, s4, helper@rel32@lo+4\n \
                  s_addc_u32 s5, s5, helper@rel32@hi+12\n s_swappc_b64 s[30:31], s[4:5]\n"
            }
            _ => "",
        };
        let body = format!(
            "s_mov_b32 s6, {index}\n again{index}: v_fma_f32 v0, v1, v2, v{}\n v_mov_b32 v3, \
             {:#x}\n s_sub_u32 s6, s6, 1\n s_cmp_lg_u32 s6, 0\n s_cbranch_scc1 again{index}\n \
             {call} s_endpgm",
            index % 60,
            0x1234_5678 + index
        );
        functions.push((format!("kernel{index}"), body));
    }
    let borrowed: Vec<(&str, &str)> =
        functions.iter().map(|(name, body)| (&name[..], &body[..])).collect();
    let descriptors = (0..kernels).map(|index| descriptor("gfx90a", &format!("kernel{index}")));
    text(&borrowed) + &descriptors.collect::<String>()
}

#[test]
fn kernels_of_a_library_read_alone_are_what_they_are_in_it() {
    assert!(assert_same(&assemble("gfx90a", &library(60))) > 120);
}

/// Nothing of other kernels is decoded: one that cannot be read is in nobody's way but of those who
/// read it, or all.
#[test]
fn a_kernel_is_read_without_the_others() {
    let whole = library(4);
    let broken = whole.replace("s_mov_b32 s6, 2\n", ".long 0xffffffff\n");
    assert_ne!(whole, broken);
    let object = assemble("gfx90a", &broken);
    for kernel in [0, 1, 3] {
        let alone = Disassembly::of_kernel(&object, kernel).expect("it is whole");
        assert!(alone.kernel(kernel).is_some() && alone.kernel(2).is_none());
    }
    let is_refused = |result: Result<Disassembly, FlowError>| matches!(result, Err(FlowError::NoInstruction { kernel, .. }) if kernel == "kernel2");
    assert!(is_refused(Disassembly::of_kernel(&object, 2)));
    assert!(is_refused(Disassembly::read(&object)));
}

/// The comparison sees a difference: of another kernel, and of one instruction.
#[test]
fn another_kernel_is_not_the_same() {
    let object = assemble("gfx90a", &library(2));
    let [first, second] =
        [0, 1].map(|kernel| Disassembly::of_kernel(&object, kernel).expect("a kernel"));
    assert_ne!(shapes(&first), shapes(&second));
    let changed = library(2).replace("0x12345678", "0x12345679");
    let changed = Disassembly::of_kernel(&assemble("gfx90a", &changed), 0).expect("a kernel");
    assert_ne!(shapes(&first), shapes(&changed));
}

/// A kernel that calls by a pointer may run any function whose address is taken, wherever.
#[test]
fn a_kernel_that_calls_by_a_pointer_has_all_it_may_call() {
    let taking = "s_getpc_b64 s[4:5]\n s_add_u32 s4, s4, helper@rel32@lo+4\n \
                  s_addc_u32 s5, s5, helper@rel32@hi+12\n v_mov_b32 v0, s4\n v_mov_b32 v1, s5\n \
                  global_store_dwordx2 v[2:3], v[0:1], off\n s_endpgm";
    let calling = "s_load_dwordx2 s[4:5], s[0:1], 0x0\n s_waitcnt lgkmcnt(0)\n \
                   s_swappc_b64 s[30:31], s[4:5]\n s_endpgm";
    let functions = [("taking", taking), ("calling", calling), ("helper", "s_setpc_b64 s[30:31]")];
    let text =
        text(&functions) + &descriptor("gfx90a", "taking") + &descriptor("gfx90a", "calling");
    let object = assemble("gfx90a", &text);
    let calling = object.kernels().iter().position(|own| &*own.name == "calling").expect("it");
    let alone = Disassembly::of_kernel(&object, calling).expect("a kernel");
    let called = alone.functions.iter().find(|own| &*own.name == "helper").expect("may be called");
    assert!(called.address_taken);
    assert_same(&object);
}
