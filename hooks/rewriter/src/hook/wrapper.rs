//! Wrappers: C functions around hooks with inputs and results in pinned registers.
//!
//! A wrapper reads its inputs from pinned registers with an `asm` statement, computes the hook's arguments,
//! calls the hook, and writes the results to pinned registers with a second `asm` statement. Both statements
//! emit markers, with which [`super::body`] checks that the compiler does not use these registers before the
//! first and after the second.

use super::address::BUFFER_ADDRESS;
use super::signature::Signature;
use super::{ArgumentShape, EntryPoint, Form, HookError, Passing};
use flipwave_isa::{Register, RegisterRange, Sgpr, Vgpr};
use std::collections::BTreeSet;
use std::fmt::Write;

/// Number of the `s_trap` that marks the position after a wrapper has read its inputs. Hooks contain no
/// other traps.
pub(super) const BEGIN: u16 = 0xf100;
/// Number of the `s_trap` that marks the position where a wrapper has written its results.
pub(super) const END: u16 = 0xf101;

/// First SGPR of inputs and results: the first four may describe the stack.
const FIRST_SGPR: u8 = 4;
/// Number of caller-saved SGPRs (LLVM's calling convention).
const SGPRS: u8 = 30;
/// Number of caller-saved VGPRs.
const VGPRS: u8 = 40;
/// VGPRs above inputs, if there are enough: the compiler extends an input to a tuple of up to four registers,
/// for example to store it with other values, and would spill registers that are not caller-saved.
const TUPLE_MARGIN: u8 = 3;

/// Registers of a wrapper's inputs and results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pins {
    pub inputs: Vec<RegisterRange>,
    pub outputs: Vec<RegisterRange>,
}

/// Allocates consecutive registers, with an alignment that every target accepts: 2 for pairs, 4 for longer
/// scalar ranges.
struct Allocator {
    sgpr: u8,
    vgpr: u8,
}

impl Allocator {
    /// Allocates from the lowest registers, for results: compiled code uses these registers first, so that
    /// results are often in them already.
    const LOW: Allocator = Allocator { sgpr: FIRST_SGPR, vgpr: 0 };

    /// Allocates `passings` from the highest registers, for inputs: the compiler does not use them before
    /// the inputs are read.
    fn high(passings: impl Iterator<Item = Passing>) -> Option<Allocator> {
        let mut all = Allocator { sgpr: 0, vgpr: 0 };
        for passing in passings {
            all.take(passing)?;
        }
        let sgpr = (SGPRS - all.sgpr) / 4 * 4;
        let vgpr = (VGPRS - all.vgpr).saturating_sub(TUPLE_MARGIN) / 2 * 2;
        (sgpr >= FIRST_SGPR).then_some(Allocator { sgpr, vgpr })
    }

    fn take(&mut self, passing: Passing) -> Option<RegisterRange> {
        let (next, limit, alignment) = match passing {
            Passing::Scalar(words) => (&mut self.sgpr, SGPRS, words.next_power_of_two().min(4)),
            Passing::Vector(words) => (&mut self.vgpr, VGPRS, words.next_power_of_two().min(2)),
        };
        let words = passing.words();
        let first = next.checked_next_multiple_of(alignment.max(1))?;
        *next = first.checked_add(words).filter(|end| words > 0 && *end <= limit)?;
        let register = match passing {
            Passing::Scalar(_) => Register::Sgpr(Sgpr(first)),
            Passing::Vector(_) => Register::Vgpr(Vgpr(first.into())),
        };
        Some(RegisterRange::new(register, words))
    }
}

impl EntryPoint {
    /// Registers in which the inputs of all arguments are passed.
    fn inputs(&self) -> impl Iterator<Item = Passing> {
        self.arguments.iter().flat_map(|argument| argument.inputs.iter().copied())
    }

    /// Registers of its inputs and results.
    ///
    /// # Errors
    /// [`HookError::Unsupported`] if there are too few.
    pub(super) fn pins(&self) -> Result<Pins, HookError> {
        let too_many = |what| HookError::Unsupported {
            function: self.function.clone(),
            reason: format!(
                "has more {what} than fit into {} SGPRs and {VGPRS} VGPRs",
                SGPRS - FIRST_SGPR
            ),
        };
        let take = |mut allocator: Allocator, all: &mut dyn Iterator<Item = Passing>| {
            all.map(|passing| allocator.take(passing)).collect::<Option<Vec<_>>>()
        };
        let inputs = Allocator::high(self.inputs())
            .and_then(|allocator| take(allocator, &mut self.inputs()))
            .ok_or_else(|| too_many("inputs"))?;
        let outputs = take(Allocator::LOW, &mut self.results.iter().copied())
            .ok_or_else(|| too_many("results"))?;
        Ok(Pins { inputs, outputs })
    }
}

/// Name of the wrapper with an index.
pub(super) fn name(index: usize) -> String {
    format!("flipwave_entry_{index}")
}

/// Text of the wrappers of entry points with their signatures, to be appended to a source.
///
/// # Errors
/// The errors of [`EntryPoint::pins`].
pub(super) fn text(entries: &[(&EntryPoint, &Signature)]) -> Result<String, HookError> {
    let mut text = "# 1 \"<wrappers>\"\n".to_owned();
    let wide: BTreeSet<u8> = entries
        .iter()
        .flat_map(|(entry, _)| entry.inputs().chain(entry.results.iter().copied()))
        .map(Passing::words)
        .filter(|words| *words > 2)
        .collect();
    for words in wide {
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "typedef unsigned int flipwave_words_{words} __attribute__((ext_vector_type({words})));"
        );
    }
    if entries.iter().any(|(entry, _)| {
        entry.arguments.iter().any(|argument| match &argument.form {
            Form::Number(expression) => expression.contains("flipwave_buffer_address"),
            Form::Bits => false,
        })
    }) {
        text.push_str(BUFFER_ADDRESS);
    }
    for (index, (entry, signature)) in entries.iter().enumerate() {
        wrapper(&mut text, index, entry, signature)?;
    }
    Ok(text)
}

/// Appends a wrapper to the text.
fn wrapper(
    text: &mut String,
    index: usize,
    entry: &EntryPoint,
    signature: &Signature,
) -> Result<(), HookError> {
    let pins = entry.pins()?;
    let mut lines = vec![format!("void {}(void)", name(index)), "{".to_owned()];
    for (at, range) in pins.inputs.iter().enumerate() {
        lines.push(format!("    {} input_{at};", words_type(range.words)));
    }
    let taken: Vec<String> = pins
        .inputs
        .iter()
        .enumerate()
        .map(|(at, range)| format!("\"={{{range}}}\"(input_{at})"))
        .collect();
    lines.push(format!("    asm volatile(\"s_trap {BEGIN:#x}\" : {});", taken.join(", ")));
    let mut first = 0;
    for (at, (argument, parameter)) in entry.arguments.iter().zip(&signature.parameters).enumerate()
    {
        let ctype = &parameter.ctype.text;
        if argument.form == Form::Bits {
            let words = argument.inputs.iter().map(|input| input.words()).sum::<u8>();
            lines.push(format!(
                "    _Static_assert((sizeof({ctype}) + 3) / 4 == {words}, \
                 \"flipwave: {index} argument {at}\");"
            ));
        }
        let value = value(argument, ctype, first);
        lines.push(format!("    __typeof__({ctype}) argument_{at} = {value};"));
        first += argument.inputs.len();
    }
    let arguments: Vec<String> =
        (0..entry.arguments.len()).map(|at| format!("argument_{at}")).collect();
    let call = format!("{}({})", entry.function, arguments.join(", "));
    if entry.results.is_empty() {
        lines.push(format!("    (void){call};"));
        lines.push(format!("    asm volatile(\"s_trap {END:#x}\");"));
    } else {
        results(&mut lines, index, &call, &pins);
    }
    lines.push("}\n".to_owned());
    text.push_str(&lines.join("\n"));
    Ok(())
}

/// Expression of an argument of type `ctype`, whose inputs are numbered starting at `first`.
fn value(argument: &ArgumentShape, ctype: &str, first: usize) -> String {
    match &argument.form {
        Form::Bits => {
            format!("*(__typeof__({ctype}) *)&(__typeof__(input_{first})){{input_{first}}}")
        }
        Form::Number(expression) => {
            let mut expression = expression.clone();
            for at in (0..argument.inputs.len()).rev() {
                expression =
                    expression.replace(&format!("${at}"), &format!("input_{}", first + at));
            }
            format!("(__typeof__({ctype}))({expression})")
        }
    }
}

/// Appends the call of the hook and moves its result to the pinned registers, word by word.
fn results(lines: &mut Vec<String>, index: usize, call: &str, pins: &Pins) {
    let words: u32 = pins.outputs.iter().map(|range| u32::from(range.words)).sum();
    lines.push(format!(
        "    union {{ __typeof__({call}) value; unsigned int words[{words}]; }} result = \
         {{ .words = {{ 0 }} }};"
    ));
    lines.push(format!(
        "    _Static_assert((sizeof(result.value) + 3) / 4 == {words}, \
         \"flipwave: {index} results\");"
    ));
    lines.push(format!("    result.value = {call};"));
    let mut next = 0;
    let left: Vec<String> = pins
        .outputs
        .iter()
        .map(|range| {
            let words = next..next + u32::from(range.words);
            next = words.end;
            let words: Vec<String> = words
                .map(|word| {
                    if range.first.is_per_lane() {
                        format!("result.words[{word}]")
                    } else {
                        format!("__builtin_amdgcn_readfirstlane(result.words[{word}])")
                    }
                })
                .collect();
            let value = match words.as_slice() {
                [low, high] => {
                    format!("(unsigned int){low} | (unsigned long)(unsigned int){high} << 32")
                }
                [word] => format!("(unsigned int){word}"),
                words => format!("({}){{ {} }}", words_type(range.words), words.join(", ")),
            };
            format!("\"{{{range}}}\"({value})")
        })
        .collect();
    lines.push(format!("    asm volatile(\"s_trap {END:#x}\" :: {});", left.join(", ")));
}

/// C type of a number of words.
fn words_type(words: u8) -> String {
    match words {
        1 => "unsigned int".to_owned(),
        2 => "unsigned long".to_owned(),
        words => format!("flipwave_words_{words}"),
    }
}
