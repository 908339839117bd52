//! The state of a faulting wave as JSON.

use flipwave_device::{
    Bits, CallFrame, ChainEnd, FaultContext, FrameEntry, OperandValue, RegisterValue,
};
use serde_json::{Value, json};

/// Converts the state of a faulting wave. Addresses and lane masks are hexadecimal text, because JSON
/// numbers may lose bits beyond 53; lines and lanes are numbers.
pub fn context_json(context: &FaultContext) -> Value {
    let lane = |lane: &flipwave_device::FaultingLane| json!({"lane": lane.lane.0, "address": lane.address.to_string()});
    let unknown_caller = match &context.chain_end {
        ChainEnd::Kernel => Value::Null,
        ChainEnd::UnknownCaller(reason) => (&**reason).into(),
        ChainEnd::TooLong => "the chain is too long".into(),
    };
    json!({
        "instruction": context.instruction,
        "exec": format!("{:#x}", context.exec.0),
        "lanes": context.lanes.iter().map(lane).collect::<Vec<_>>(),
        "operands": context.operands.iter().map(operand).collect::<Vec<_>>(),
        "frames": context.frames.iter().map(frame).collect::<Vec<_>>(),
        "unknown_caller": unknown_caller,
    })
}

fn operand(operand: &OperandValue) -> Value {
    let OperandValue { name, value } = operand;
    match value {
        RegisterValue::Scalar(bits) => json!({"register": name, "words": words(bits)}),
        RegisterValue::PerLane(values) => {
            let lanes =
                values.iter().map(|(lane, bits)| json!({"lane": lane.0, "words": words(bits)}));
            json!({"register": name, "lanes": lanes.collect::<Vec<_>>()})
        }
    }
}

/// The 32-bit registers, lowest first.
fn words(bits: &Bits) -> Vec<u32> {
    bits.words.to_vec()
}

fn frame(frame: &CallFrame) -> Value {
    let CallFrame { function, offset, pc, line, entry } = frame;
    json!({
        "function": function,
        "offset": offset,
        "pc": pc.to_string(),
        "file": line.as_ref().map(|line| &*line.file),
        "line": line.as_ref().map(|line| line.line),
        "column": line.as_ref().map(|line| line.column),
        "inlined": *entry == FrameEntry::Inlined,
    })
}
