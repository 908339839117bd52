//! LLVM: IR as text in, an object file out.

use crate::masked_logic;
use crate::store::Key;
use crate::{Compiler, Extensions};
use llvm_sys::core::*;
use llvm_sys::ir_reader::LLVMParseIRInContext2;
use llvm_sys::target::*;
use llvm_sys::target_machine::*;
use std::ffi::{CStr, CString, c_char};
use std::ptr::null_mut;
use std::sync::{LazyLock, Once};

/// What keeps IR from being compiled, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CompileError(pub(crate) String);

/// Compiles in this process, while the caller waits.
pub struct Here;

impl Compiler for Here {
    fn compile(&mut self, ir: &str, extensions: Extensions) -> Result<Vec<u8>, CompileError> {
        prepare();
        let machine = TargetMachine::new(extensions)?;
        let object = machine.compile(ir)?;
        if !masked_logic::may_be_in(&object) {
            return Ok(object);
        }
        let object = machine.compile(&masked_logic::without(ir))?;
        match masked_logic::may_be_in(&object) {
            false => Ok(object),
            true => Err(CompileError("LLVM makes an instruction of it that may be wrong".into())),
        }
    }
}

/// Has LLVM ready for this host.
pub fn prepare() {
    static ONCE: Once = Once::new();
    // SAFETY: these only register what they name, here once.
    ONCE.call_once(|| unsafe {
        LLVMInitializeX86TargetInfo();
        LLVMInitializeX86Target();
        LLVMInitializeX86TargetMC();
        LLVMInitializeX86AsmPrinter();
        LLVMInitializeX86AsmParser();
    });
    LazyLock::force(&HOST);
}

/// The host as LLVM sees it.
struct Host {
    name: CString,
    features: CString,
}

/// Asked for once: each question to the processor leaves a virtual machine, and there are many.
static HOST: LazyLock<Host> = LazyLock::new(|| {
    // SAFETY: strings that LLVM allocates are copied, and given back.
    unsafe {
        let [name, features] = [LLVMGetHostCPUName(), LLVMGetHostCPUFeatures()].map(|text| {
            let copy = CStr::from_ptr(text).to_owned();
            LLVMDisposeMessage(text);
            copy
        });
        Host { name, features }
    }
});

/// The key under which object code is kept.
pub fn key(ir: &str, extensions: Extensions) -> Key {
    Key::of(&[&identity(extensions), ir])
}

/// What object code depends on besides the IR: LLVM, and the host it is made for.
fn identity(extensions: Extensions) -> String {
    let (mut major, mut minor, mut patch) = (0, 0, 0);
    // SAFETY: the numbers are written.
    unsafe { LLVMGetVersion(&mut major, &mut minor, &mut patch) };
    // What was kept before may have the mistake of `masked_logic`.
    let version = format!("LLVM {major}.{minor}.{patch} without masked logic");
    // Keys depend on these names.
    match extensions {
        Extensions::Avx2 => format!("{version} Avx2"),
        Extensions::Avx512 => {
            let [name, with] = [&HOST.name, &HOST.features].map(|own| own.to_string_lossy());
            format!("{version} Avx512 {name} {with}")
        }
    }
}

/// Compiles a module in a context of its own.
///
/// # Safety
/// The context is alive, and nobody else uses it.
unsafe fn in_context(
    context: llvm_sys::prelude::LLVMContextRef,
    ir: &str,
    machine: &TargetMachine,
) -> Result<Vec<u8>, CompileError> {
    // SAFETY: as promised, and as said in `Here::compile`; the bytes of the object are copied before
    // they are given back.
    unsafe {
        let (start, length) = (ir.as_ptr().cast(), ir.len());
        let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(start, length, c"ir".as_ptr());
        let (mut module, mut message) = (null_mut(), null_mut());
        let failed = LLVMParseIRInContext2(context, buffer, &mut module, &mut message) != 0;
        LLVMDisposeMemoryBuffer(buffer);
        if failed {
            return Err(taken(message));
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
            return Err(taken(message));
        }
        let start = LLVMGetBufferStart(object).cast::<u8>();
        let bytes = std::slice::from_raw_parts(start, LLVMGetBufferSize(object)).to_vec();
        LLVMDisposeMemoryBuffer(object);
        Ok(bytes)
    }
}

/// What LLVM compiles for.
struct TargetMachine(LLVMTargetMachineRef);

impl TargetMachine {
    fn new(extensions: Extensions) -> Result<TargetMachine, CompileError> {
        // SAFETY: strings that LLVM allocates are given back after their use.
        unsafe {
            let triple = LLVMGetDefaultTargetTriple();
            let (mut target, mut message) = (null_mut(), null_mut());
            let failed = LLVMGetTargetFromTriple(triple, &mut target, &mut message) != 0;
            let machine = if failed {
                Err(taken(message))
            } else {
                let [name, with]: [*const c_char; 2] = match extensions {
                    Extensions::Avx512 => [HOST.name.as_ptr(), HOST.features.as_ptr()],
                    Extensions::Avx2 => [c"haswell".as_ptr(), c"".as_ptr()],
                };
                let machine = LLVMCreateTargetMachine(
                    target,
                    triple,
                    name,
                    with,
                    LLVMCodeGenOptLevel::LLVMCodeGenLevelLess,
                    LLVMRelocMode::LLVMRelocPIC,
                    LLVMCodeModel::LLVMCodeModelSmall,
                );
                if machine.is_null() {
                    Err(CompileError("LLVM does not compile for this host".into()))
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
        // SAFETY: the text is copied; the module lives in this function, and what LLVM hands out is given
        // back in it. The context is disposed of after the module.
        unsafe {
            let context = LLVMContextCreate();
            let result = in_context(context, ir, self);
            LLVMContextDispose(context);
            result
        }
    }
}

impl Drop for TargetMachine {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and not disposed of before.
        unsafe { LLVMDisposeTargetMachine(self.0) }
    }
}

/// A message of LLVM's, which is given back.
///
/// # Safety
/// It is a message that LLVM has allocated, or null.
unsafe fn taken(message: *mut c_char) -> CompileError {
    if message.is_null() {
        return CompileError("LLVM does not say why".into());
    }
    // SAFETY: a string, as promised; it is not used again.
    unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeMessage(message);
        CompileError(text)
    }
}
