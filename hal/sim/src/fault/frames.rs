//! Names and source lines of the functions in a call chain.

use super::call_chain::CodePlace;
use super::stopped_wave::LoadedCode;
use crate::module::Module;
use flipwave_codeobj::{FunctionFrame, SourceLine};
use flipwave_device::{CallFrame, ChainEnd, FrameEntry, demangled_kernel};
use flipwave_isa::Pc;

/// Prefix of the function in which clang puts the body of an OpenCL kernel. The kernel only calls it. The
/// debug information may call it like the kernel.
const OPENCL_BODY: &str = "__clang_ocl_kern_imp_";

/// The frames of a call chain: the functions at each place, innermost first, including inlined ones. An
/// OpenCL kernel and its body are one frame.
pub fn frames(places: &[CodePlace], end: &ChainEnd, code: LoadedCode<'_>) -> Vec<CallFrame> {
    let mut frames: Vec<CallFrame> =
        places.iter().flat_map(|place| frames_at(*place, code)).collect();
    if let ([.., body, kernel], ChainEnd::Kernel) = (&mut frames[..], end)
        && body.function == kernel.function
    {
        body.entry = kernel.entry;
        frames.pop();
    }
    frames
}

fn demangled(name: &str) -> Box<str> {
    demangled_kernel(name.strip_prefix(OPENCL_BODY).unwrap_or(name)).into()
}

/// The source line of the user's code at an address of a module.
pub fn user_line(module: &Module, pc: Pc) -> Option<SourceLine> {
    let mut frames = Vec::new();
    for FunctionFrame { name, line } in module.inlined()?.at(pc) {
        let function = name.as_deref().map(demangled);
        frames.push(CallFrame { function, line, ..frame(pc, FrameEntry::Inlined) });
    }
    CallFrame::user_line(&frames).cloned()
}

/// A frame of which only the address is known.
fn frame(pc: Pc, entry: FrameEntry) -> CallFrame {
    CallFrame { function: None, offset: None, pc, line: None, entry }
}

/// The functions at a place: those inlined there, then the function that contains it.
fn frames_at(place: CodePlace, code: LoadedCode<'_>) -> Vec<CallFrame> {
    let Some((program, module)) = code.at(place.probe()) else {
        return vec![frame(Pc(place.pc()), FrameEntry::Called)];
    };
    let [pc, probe] = [place.pc(), place.probe()].map(|at| program.virtual_address(at));
    let symbol = module.code_object.as_ref().and_then(|object| object.function_extent(probe));
    let function = CallFrame {
        function: symbol.as_ref().map(|(symbol, _)| demangled(&symbol.name)),
        offset: symbol.map(|(_, extent)| pc.0.wrapping_sub(extent.start.0)),
        ..frame(pc, FrameEntry::Called)
    };
    let mut described = module.inlined().map(|functions| functions.at(probe)).unwrap_or_default();
    let outer = described.pop();
    let named = |frame: CallFrame, FunctionFrame { name, line }: FunctionFrame| {
        let name = name.as_deref().map(demangled);
        CallFrame { function: name.or(frame.function), line, ..frame }
    };
    let inlined =
        described.into_iter().map(|described| named(frame(pc, FrameEntry::Inlined), described));
    let function = match outer {
        Some(described) => named(function, described),
        None => function,
    };
    inlined.chain([function]).collect()
}
