//! Compilation with LLVM: IR text to an object file.

use crate::store::Key;
use crate::ternary_logic;
use crate::{Compiler, Extensions};
use llvm_sys::core::*;
use llvm_sys::ir_reader::LLVMParseIRInContext2;
use llvm_sys::target::*;
use llvm_sys::target_machine::*;
use std::ffi::{CStr, CString, c_char};
use std::ptr::null_mut;
use std::sync::{LazyLock, Once};

/// The error of a failed compilation: a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CompileError(pub(crate) String);

/// A compiler that runs in this process, on the calling thread.
pub struct InProcess;

impl Compiler for InProcess {
    fn compile(&mut self, ir: &str, extensions: Extensions) -> Result<Vec<u8>, CompileError> {
        prepare();
        let machine = TargetMachine::new(extensions)?;
        let object = machine.compile(ir)?;
        if !ternary_logic::may_contain_masked(&object) {
            return Ok(object);
        }
        let object = machine.compile(&ternary_logic::with_blends(ir))?;
        if ternary_logic::may_contain_masked(&object) {
            return Err(CompileError("LLVM emits a masked vpternlog that may be wrong".into()));
        }
        Ok(object)
    }
}

/// Initializes LLVM for this host.
pub fn prepare() {
    static ONCE: Once = Once::new();
    // SAFETY: these functions register target components; they are called once.
    ONCE.call_once(|| unsafe {
        LLVMInitializeX86TargetInfo();
        LLVMInitializeX86Target();
        LLVMInitializeX86TargetMC();
        LLVMInitializeX86AsmPrinter();
        LLVMInitializeX86AsmParser();
    });
    LazyLock::force(&HOST);
}

/// The host CPU according to LLVM.
struct Host {
    name: CString,
    features: CString,
}

/// Computed once: LLVM executes many CPUID instructions, each of which exits a virtual machine.
static HOST: LazyLock<Host> = LazyLock::new(|| {
    // SAFETY: the strings allocated by LLVM are copied and freed.
    unsafe {
        let [name, features] = [LLVMGetHostCPUName(), LLVMGetHostCPUFeatures()].map(|text| {
            let copy = CStr::from_ptr(text).to_owned();
            LLVMDisposeMessage(text);
            copy
        });
        Host { name, features }
    }
});

/// The cache key of object code.
pub fn key(ir: &str, extensions: Extensions) -> Key {
    Key::from_parts(&[&compiler_version(extensions), ir])
}

/// A description of LLVM and the target, on which object code depends in addition to the IR.
fn compiler_version(extensions: Extensions) -> String {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: the function writes the three numbers.
    unsafe { LLVMGetVersion(&mut major, &mut minor, &mut patch) };
    // "without masked logic" invalidates object code cached before the workaround in `ternary_logic`.
    let version = format!("LLVM {major}.{minor}.{patch} without masked logic");
    // Keys depend on these names.
    match extensions {
        Extensions::Avx2 => format!("{version} Avx2"),
        Extensions::Avx512 => {
            let [name, features] = [&HOST.name, &HOST.features].map(|text| text.to_string_lossy());
            format!("{version} Avx512 {name} {features}")
        }
    }
}

/// Compiles a module in an LLVM context.
///
/// # Safety
/// The context must be alive and not be used elsewhere during the call.
unsafe fn compile_in_context(
    context: llvm_sys::prelude::LLVMContextRef,
    ir: &str,
    machine: &TargetMachine,
) -> Result<Vec<u8>, CompileError> {
    // SAFETY: the caller guarantees a valid context. The module and the buffers live only in this
    // function, and the object's bytes are copied before its buffer is freed.
    unsafe {
        let (start, length) = (ir.as_ptr().cast(), ir.len());
        let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(start, length, c"ir".as_ptr());
        let (mut module, mut message) = (null_mut(), null_mut());
        let failed = LLVMParseIRInContext2(context, buffer, &mut module, &mut message) != 0;
        LLVMDisposeMemoryBuffer(buffer);
        if failed {
            return Err(take_message(message));
        }
        let (mut object, mut message) = (null_mut(), null_mut());
        let failed = LLVMTargetMachineEmitToMemoryBuffer(
            machine.0,
            module,
            LLVMCodeGenFileType::LLVMObjectFile,
            &mut message,
            &mut object,
        ) != 0;
        LLVMDisposeModule(module);
        if failed {
            return Err(take_message(message));
        }
        let start = LLVMGetBufferStart(object).cast::<u8>();
        let bytes = std::slice::from_raw_parts(start, LLVMGetBufferSize(object)).to_vec();
        LLVMDisposeMemoryBuffer(object);
        Ok(bytes)
    }
}

/// LLVM's target machine.
struct TargetMachine(LLVMTargetMachineRef);

impl TargetMachine {
    fn new(extensions: Extensions) -> Result<TargetMachine, CompileError> {
        // SAFETY: the strings allocated by LLVM are freed after their use.
        unsafe {
            let triple = LLVMGetDefaultTargetTriple();
            let (mut target, mut message) = (null_mut(), null_mut());
            let failed = LLVMGetTargetFromTriple(triple, &mut target, &mut message) != 0;
            let machine = if failed {
                Err(take_message(message))
            } else {
                let [cpu, features]: [*const c_char; 2] = match extensions {
                    Extensions::Avx512 => [HOST.name.as_ptr(), HOST.features.as_ptr()],
                    Extensions::Avx2 => [c"haswell".as_ptr(), c"".as_ptr()],
                };
                let machine = LLVMCreateTargetMachine(
                    target,
                    triple,
                    cpu,
                    features,
                    LLVMCodeGenOptLevel::LLVMCodeGenLevelLess,
                    LLVMRelocMode::LLVMRelocPIC,
                    LLVMCodeModel::LLVMCodeModelSmall,
                );
                if machine.is_null() {
                    Err(CompileError("LLVM does not support this host".into()))
                } else {
                    Ok(TargetMachine(machine))
                }
            };
            LLVMDisposeMessage(triple);
            machine
        }
    }

    /// Compiles a module.
    fn compile(&self, ir: &str) -> Result<Vec<u8>, CompileError> {
        // SAFETY: the context is alive during the call, and is disposed of after the module.
        unsafe {
            let context = LLVMContextCreate();
            let result = compile_in_context(context, ir, self);
            LLVMContextDispose(context);
            result
        }
    }
}

impl Drop for TargetMachine {
    fn drop(&mut self) {
        // SAFETY: created by `new` and disposed of once.
        unsafe { LLVMDisposeTargetMachine(self.0) }
    }
}

/// Converts and frees an LLVM error message.
///
/// # Safety
/// `message` must be null or a message allocated by LLVM, and must not be used afterwards.
unsafe fn take_message(message: *mut c_char) -> CompileError {
    if message.is_null() {
        return CompileError("LLVM gives no reason".into());
    }
    // SAFETY: the caller guarantees a valid message that is not used again.
    unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeMessage(message);
        CompileError(text)
    }
}
