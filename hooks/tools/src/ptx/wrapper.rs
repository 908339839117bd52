//! Wrappers: functions that PTX calls, which pass the arguments of a request to a hook of the tool.

use super::request::{Passing, Prepared};
use flipwave_hooks::hook::{Parameter, Signature, TypeKind};
use std::fmt::Write;

/// The name of the wrapper with a number.
pub fn name(number: usize) -> String {
    format!("flipwave_call_{number}")
}

/// The C text of a wrapper.
pub fn text(number: usize, call: &Prepared, hook: &Signature) -> String {
    let name = name(number);
    let mut text = String::new();
    let result = if call.has_result { "uint64_t" } else { "void" };
    let count = call.passing.iter().filter(|passing| passing.is_parameter()).count();
    let guard = call.runs_once.then(|| "uint64_t guard".to_owned());
    let parameters =
        guard.into_iter().chain((0..count).map(|index| format!("uint64_t value_{index}")));
    let parameters: Vec<String> = parameters.collect();
    let parameters = if parameters.is_empty() { "void".to_owned() } else { parameters.join(", ") };
    // Writing to a string does not fail.
    let _ = writeln!(text, "{result} {name}({parameters})\n{{");
    text.push_str("    uint32_t reaching = __nvvm_activemask(), active = reaching;\n");
    if call.runs_once {
        text.push_str("    active = __nvvm_vote_ballot_sync(reaching, guard != 0);\n");
        text.push_str("    if (flipwave_rank_in(reaching) != 0)\n        return;\n");
    }
    text.push_str("    (void)active;\n");
    let mut values = (0..count).map(|index| format!("value_{index}"));
    let arguments = call.passing.iter().zip(&hook.parameters).map(|(passing, parameter)| {
        let value = match passing {
            Passing::Value => values.next().unwrap_or_default(),
            Passing::Variable(variable) => {
                let offset = values.next().unwrap_or_default();
                format!("(uint64_t)((char *)&{variable} + {offset})")
            }
            Passing::ActiveLanes => "(uint64_t)active".to_owned(),
            Passing::ReachingLanes => "(uint64_t)reaching".to_owned(),
            Passing::Workgroup(dimension) => format!("(uint64_t)flipwave_workgroup({dimension})"),
            Passing::Wave => "(uint64_t)flipwave_wave()".to_owned(),
        };
        converted(parameter, &value)
    });
    let arguments: Vec<String> = arguments.collect();
    let call_text = format!("{}({})", hook.name, arguments.join(", "));
    let _ = match call.has_result {
        true => writeln!(
            text,
            "    __auto_type result = {call_text};\n    uint64_t bits = 0;\n    \
             _Static_assert(sizeof(result) <= 8, \"results have at most 8 bytes\");\n    \
             __builtin_memcpy(&bits, &result, sizeof(result));\n    return bits;"
        ),
        false => writeln!(text, "    {call_text};"),
    };
    text.push_str("}\n");
    text
}

/// A value of 64 bits as an argument of this type.
fn converted(parameter: &Parameter, value: &str) -> String {
    let written = &parameter.ctype.text;
    match parameter.ctype.kind() {
        TypeKind::Integer(_) | TypeKind::Pointer => format!("({written})({value})"),
        TypeKind::Other => format!(
            "({{ {written} converted; uint64_t bits = {value}; \
             _Static_assert(sizeof(converted) <= 8, \"arguments have at most 8 bytes\"); \
             __builtin_memcpy(&converted, &bits, sizeof(converted)); converted; }})"
        ),
    }
}
