//! Wrappers: C functions that PTX calls in place of proxies. They pass the operands to a hook, and its result to the
//! destinations.

use super::pattern::NamedOperand;
use crate::pattern::Kind;
use crate::{Instruction, Lanes};
use flipwave_hooks::hook::{Parameter, Signature, Source, c_string};
use flipwave_ptx::{ScalarType, WARP_SIZE};
use flipwave_tools::PTX_HEADER;
use std::fmt::Write;

/// Name of the wrapper.
pub const WRAPPER: &str = "flipwave_emulated";

/// An operand that a hook's parameter receives.
pub enum Passed<'a> {
    /// A source of the proxy.
    Operand(&'a NamedOperand),
    /// The lanes that execute the instruction.
    ExecutingLanes,
}

/// Maximum size in bytes of a value for an operand; that of `bool` for predicates. Hooks may pass 16 bits as 32.
fn bytes(operand: &NamedOperand) -> u32 {
    match operand.binding.kind {
        Kind::Ptx(ScalarType::Pred) => 1,
        Kind::Ptx(ScalarType::B16) => 4,
        Kind::Ptx(kind) => kind.bits() / 8,
        _ => 8,
    }
}

/// Number of values of 64 bits in which the wrapper receives and returns an operand.
fn parts(operand: &NamedOperand) -> usize {
    bytes(operand).div_ceil(8) as usize
}

/// The source of a hook for PTX, followed by `wrapper`.
pub fn source(instruction: &Instruction, wrapper: &str) -> Source {
    let mut source = instruction.source.clone();
    source.defines.extend([
        ("FLIPWAVE_LANES".to_owned(), WARP_SIZE.to_string()),
        // The header for hooks of injections declares other functions with the same names.
        ("FLIPWAVE_PTX_H".to_owned(), "1".to_owned()),
    ]);
    // Only the wrapper exists as a function of the module.
    let push = "#pragma clang attribute push(__attribute__((always_inline)), apply_to = function)\n\
                #pragma clang attribute push(__attribute__((internal_linkage)), apply_to = function)\n";
    let pop = "#pragma clang attribute pop\n";
    source.text = format!(
        "{push}# 1 \"flipwave.h\"\n{PTX_HEADER}\n# 1 {}\n{}\n{pop}{pop}# 1 \"<flipwave>\"\n{wrapper}",
        c_string(&source.name),
        source.text
    );
    source
}

/// The C text of the wrapper of `hook`. `members` are the members of the structure that it returns, if it has several
/// destinations.
pub fn text(
    hook: &Signature,
    passed: &[Passed<'_>],
    destinations: &[&NamedOperand],
    members: &[Parameter],
    lanes: Lanes,
) -> String {
    let counts = passed.iter().map(|passed| match passed {
        Passed::Operand(operand) => parts(operand),
        Passed::ExecutingLanes => 0,
    });
    let count: usize = counts.sum();
    let guard = (lanes == Lanes::All).then(|| "uint64_t executes".to_owned());
    let parameters = (0..count).map(|number| format!("uint64_t word_{number}")).chain(guard);
    let parameters: Vec<String> = parameters.collect();
    let parameters = if parameters.is_empty() { "void".into() } else { parameters.join(", ") };
    let mut next = 0;
    let arguments = hook.parameters.iter().zip(passed).map(|(parameter, passed)| {
        let written = &parameter.ctype.text;
        match passed {
            Passed::ExecutingLanes => format!("({written})exec"),
            Passed::Operand(operand) => {
                let first = next;
                next += parts(operand);
                converted(written, operand, first)
            }
        }
    });
    let call = format!("{}({})", hook.name, arguments.collect::<Vec<_>>().join(", "));
    let results: usize = destinations.iter().map(|operand| parts(operand)).sum();
    let result = match results {
        0 => "void".to_owned(),
        1 => "uint64_t".to_owned(),
        _ => {
            // Writing to a string does not fail.
            format!("struct flipwave_results {{ uint64_t word[{results}]; }}")
        }
    };
    let mut text = format!("{result} {WRAPPER}({parameters})\n{{\n");
    if lanes == Lanes::All {
        text.push_str(
            "    uint64_t exec = (uint32_t)__nvvm_vote_ballot_sync(__nvvm_activemask(), executes != 0);\n    \
             (void)exec;\n",
        );
    }
    if destinations.is_empty() {
        let _ = writeln!(text, "    {call};\n}}");
        return text;
    }
    let _ = writeln!(
        text,
        "    __auto_type result = {call};\n    struct {{ uint64_t word[{results}]; }} results = {{{{0}}}};"
    );
    let mut word = 0;
    for (number, operand) in destinations.iter().enumerate() {
        let value = match members.get(number) {
            Some(member) if destinations.len() > 1 => format!("result.{}", member.name),
            _ => "result".to_owned(),
        };
        let (name, bytes) = (&operand.name, bytes(operand));
        let _ = match operand.binding.kind {
            Kind::Ptx(ScalarType::Pred) => {
                writeln!(text, "    results.word[{word}] = {value} != 0;")
            }
            _ => writeln!(
                text,
                "    _Static_assert(sizeof({value}) <= {bytes}, \"the result for operand `{name}` has more \
                 than {bytes} bytes\");\n    \
                 __builtin_memcpy(&results.word[{word}], &{value}, sizeof({value}));"
            ),
        };
        word += parts(operand);
    }
    let _ = match results {
        1 => writeln!(text, "    return results.word[0];\n}}"),
        _ => writeln!(
            text,
            "    struct flipwave_results returned;\n    \
             __builtin_memcpy(&returned, &results, sizeof(results));\n    return returned;\n}}"
        ),
    };
    text
}

/// The parts of an operand, from the one with number `first` on, as an argument of a C type.
fn converted(ctype: &str, operand: &NamedOperand, first: usize) -> String {
    let (name, bytes, count) = (&operand.name, bytes(operand), parts(operand));
    // Predicates are 0 or 1 in integers of any size.
    let bytes = if operand.binding.kind == Kind::Ptx(ScalarType::Pred) { 8 } else { bytes };
    let words: Vec<String> = (first..first + count).map(|part| format!("word_{part}")).collect();
    format!(
        "({{ {ctype} converted; uint64_t words[] = {{{}}}; \
         _Static_assert(sizeof(converted) <= {bytes}, \"the parameter for operand `{name}` has more than \
         {bytes} bytes\"); __builtin_memcpy(&converted, words, sizeof(converted)); converted; }})",
        words.join(", ")
    )
}
