//! Reading single kernels or groups gives the same functions as reading the complete code object.

use super::assembled::{assemble, descriptor, text};
use crate::flow::{
    BlockEnd, BlockIndex, Disassembly, EdgeKind, FlowError, Function, FunctionIndex, InstIndex,
    ProgramSummary,
};
use flipwave_codeobj::CodeObject;
use flipwave_isa::{Inst, Pc, Register};
use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq)]
struct BlockShape {
    first: Pc,
    last: Pc,
    successors: Vec<(Pc, EdgeKind)>,
    predecessors: Vec<Pc>,
    end: BlockEnd,
}

#[derive(Clone, Debug, PartialEq)]
struct LoopShape {
    header: Pc,
    blocks: Vec<Pc>,
    depth: u32,
}

#[derive(Clone, Debug, PartialEq)]
struct ChainShape {
    getpc: Pc,
    low: Pc,
    high: Pc,
    register: Register,
    target: Pc,
}

/// A function, with addresses instead of indices.
#[derive(Clone, Debug, PartialEq)]
struct FunctionShape {
    name: String,
    kernel: Option<usize>,
    insts: Vec<Inst>,
    blocks: Vec<BlockShape>,
    calls: Vec<(Pc, Option<Pc>)>,
    loops: Vec<LoopShape>,
    unresolved: Vec<(Pc, String)>,
    chains: Vec<ChainShape>,
    is_address_taken: bool,
}

fn shapes(program: &Disassembly) -> BTreeMap<Pc, FunctionShape> {
    let shape = |(index, function): (FunctionIndex, &Function)| {
        (program.entry(function), function_shape(program, index, function))
    };
    program.functions.enumerated().map(shape).collect()
}

fn function_shape(
    program: &Disassembly,
    index: FunctionIndex,
    function: &Function,
) -> FunctionShape {
    let pc = |at: InstIndex| program.instructions[at].pc;
    let start = |at: BlockIndex| pc(program.blocks[at].instructions.start);
    let entry = |at: FunctionIndex| program.entry(&program.functions[at]);
    let blocks = function.blocks.iter().map(|at| &program.blocks[at]);
    let blocks = blocks.map(|block| BlockShape {
        first: pc(block.instructions.start),
        last: pc(block.last()),
        successors: block.successors.iter().map(|edge| (start(edge.to), edge.kind)).collect(),
        predecessors: block.predecessors.iter().map(|from| start(*from)).collect(),
        end: block.end,
    });
    let calls = function.calls.iter().map(|call| (pc(call.at), call.callee.map(entry)));
    let loops = function.loops.iter().map(|natural_loop| LoopShape {
        header: start(natural_loop.header),
        blocks: natural_loop.blocks.iter().map(|block| start(*block)).collect(),
        depth: natural_loop.depth,
    });
    let unresolved = function.unresolved.iter();
    let chains = program.addresses.iter();
    let chains = chains.filter(|chain| program.function_of(chain.getpc) == index);
    FunctionShape {
        name: function.name.to_string(),
        kernel: function.kernel,
        insts: program.instructions[function.instructions].to_vec(),
        blocks: blocks.collect(),
        calls: calls.collect(),
        loops: loops.collect(),
        unresolved: unresolved
            .map(|unresolved| (pc(unresolved.at), unresolved.reason.clone()))
            .collect(),
        chains: chains
            .map(|chain| ChainShape {
                getpc: pc(chain.getpc),
                low: pc(chain.low),
                high: pc(chain.high),
                register: chain.register,
                target: chain.target,
            })
            .collect(),
        is_address_taken: function.address_taken,
    }
}

/// Asserts that the groups of a summary and each kernel, read separately, equal the complete program.
/// Returns the number of compared functions.
pub fn assert_partial_reads_equal_full(object: &CodeObject) -> usize {
    let Ok(whole) = Disassembly::read(object) else { return 0 };
    let expected = shapes(&whole);
    let mut summary = ProgramSummary::new(object).expect("the complete program is readable");
    assert_eq!(summary.wave_size(), whole.wave_size);
    let mut grouped = BTreeMap::new();
    for group in summary.groups() {
        let program = summary.disassembly(&group);
        assert_eq!(program.accum_offset, whole.accum_offset);
        grouped.extend(shapes(&program));
    }
    assert_eq!(grouped, expected);
    let mut compared = expected.len();
    for kernel in 0..object.kernels().len() {
        let alone =
            Disassembly::of_kernel(object, kernel).expect("the complete program is readable");
        let entry = whole.kernel(kernel);
        let reachable = entry.map(|entry| whole.reachable(entry)).unwrap_or_default();
        let starts = reachable.into_iter().map(|index| whole.entry(&whole.functions[index]));
        let expected: BTreeMap<Pc, FunctionShape> =
            starts.map(|start| (start, expected[&start].clone())).collect();
        assert_eq!(shapes(&alone), expected, "{}", object.kernels()[kernel].name);
        compared += expected.len();
    }
    compared
}

/// Assembly of many different kernels with loops, and a function that some of them call.
fn library(kernels: usize) -> String {
    let mut functions =
        vec![("helper".to_owned(), "v_add_f32 v0, v0, v1\n s_setpc_b64 s[30:31]".to_owned())];
    for index in 0..kernels {
        let call = if index % 3 == 0 {
            "s_getpc_b64 s[4:5]\n s_add_u32 s4, s4, helper@rel32@lo+4\n \
             s_addc_u32 s5, s5, helper@rel32@hi+12\n s_swappc_b64 s[30:31], s[4:5]\n"
        } else {
            ""
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
fn kernels_of_a_library_can_be_read_separately() {
    assert!(assert_partial_reads_equal_full(&assemble("gfx90a", &library(60))) > 120);
}

/// An undecodable kernel only prevents reading itself or the complete code object.
#[test]
fn reading_a_kernel_ignores_other_kernels() {
    let whole = library(4);
    let broken = whole.replace("s_mov_b32 s6, 2\n", ".long 0xffffffff\n");
    assert_ne!(whole, broken);
    let object = assemble("gfx90a", &broken);
    for kernel in [0, 1, 3] {
        let alone = Disassembly::of_kernel(&object, kernel).expect("a valid kernel");
        assert!(alone.kernel(kernel).is_some() && alone.kernel(2).is_none());
    }
    let is_refused = |result: Result<Disassembly, FlowError>| matches!(result, Err(FlowError::NoInstruction { kernel, .. }) if kernel == "kernel2");
    assert!(is_refused(Disassembly::of_kernel(&object, 2)));
    assert!(is_refused(Disassembly::read(&object)));
}

/// Negative control of the comparison: another kernel, and another instruction.
#[test]
fn comparison_finds_differences() {
    let object = assemble("gfx90a", &library(2));
    let [first, second] =
        [0, 1].map(|kernel| Disassembly::of_kernel(&object, kernel).expect("a kernel"));
    assert_ne!(shapes(&first), shapes(&second));
    let changed = library(2).replace("0x12345678", "0x12345679");
    let changed = Disassembly::of_kernel(&assemble("gfx90a", &changed), 0).expect("a kernel");
    assert_ne!(shapes(&first), shapes(&changed));
}

#[test]
fn indirect_call_reaches_function_whose_address_another_kernel_takes() {
    let taking = "s_getpc_b64 s[4:5]\n s_add_u32 s4, s4, helper@rel32@lo+4\n \
                  s_addc_u32 s5, s5, helper@rel32@hi+12\n v_mov_b32 v0, s4\n v_mov_b32 v1, s5\n \
                  global_store_dwordx2 v[2:3], v[0:1], off\n s_endpgm";
    let calling = "s_load_dwordx2 s[4:5], s[0:1], 0x0\n s_waitcnt lgkmcnt(0)\n \
                   s_swappc_b64 s[30:31], s[4:5]\n s_endpgm";
    let functions = [("taking", taking), ("calling", calling), ("helper", "s_setpc_b64 s[30:31]")];
    let text =
        text(&functions) + &descriptor("gfx90a", "taking") + &descriptor("gfx90a", "calling");
    let object = assemble("gfx90a", &text);
    let calling = object.kernels().iter().position(|kernel| &*kernel.name == "calling");
    let calling = calling.expect("a kernel");
    let alone = Disassembly::of_kernel(&object, calling).expect("a kernel");
    let called = alone.functions.iter().find(|function| &*function.name == "helper");
    let called = called.expect("a callee");
    assert!(called.address_taken);
    assert_partial_reads_equal_full(&object);
}
