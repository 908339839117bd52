//! LLVM as a compiler at run time: IR as text in, executable functions out.

use crate::wave::Level;
use llvm_sys::core::*;
use llvm_sys::error::{LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage};
use llvm_sys::ir_reader::LLVMParseIRInContext2;
use llvm_sys::orc2::lljit::*;
use llvm_sys::orc2::*;
use llvm_sys::target::*;
use llvm_sys::target_machine::*;
use std::ffi::{CStr, CString, c_char};
use std::ptr::{NonNull, null_mut};
use std::sync::OnceLock;

/// What keeps code from being compiled, in words.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct JitError(String);

/// Where compiled code lives. There is one of a process.
pub struct Jit {
    session: LLVMOrcLLJITRef,
}

// SAFETY: LLVM's JIT sessions lock what they share.
unsafe impl Send for Jit {}
// SAFETY: as above.
unsafe impl Sync for Jit {}

/// Functions that were compiled together. They are gone when this is dropped.
pub struct Compiled {
    tracker: LLVMOrcResourceTrackerRef,
    /// The address of the function asked for.
    pub address: NonNull<()>,
}

// SAFETY: the session that a tracker belongs to locks what it shares.
unsafe impl Send for Compiled {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Compiled {}

impl Drop for Compiled {
    fn drop(&mut self) {
        // SAFETY: the tracker is this one's own, and is not used again. The code is not executed any
        // more: whoever executes it borrows this.
        unsafe {
            let _ = checked(LLVMOrcResourceTrackerRemove(self.tracker));
            LLVMOrcReleaseResourceTracker(self.tracker);
        }
    }
}

impl Jit {
    /// The process's.
    ///
    /// # Errors
    /// If LLVM cannot compile for this host.
    pub fn of_process() -> Result<&'static Jit, JitError> {
        static JIT: OnceLock<Result<Jit, JitError>> = OnceLock::new();
        JIT.get_or_init(Jit::new).as_ref().map_err(Clone::clone)
    }

    fn new() -> Result<Jit, JitError> {
        let mut session = null_mut();
        // SAFETY: called once, and before anything else is asked of the host's target. LLJIT takes over
        // the builder; null means the defaults.
        unsafe {
            LLVMInitializeX86TargetInfo();
            LLVMInitializeX86Target();
            LLVMInitializeX86TargetMC();
            LLVMInitializeX86AsmPrinter();
            checked(LLVMOrcCreateLLJIT(&mut session, null_mut()))?;
        }
        Ok(Jit { session })
    }

    /// Compiles a module, and gives the address of its function `name`, which no other module has.
    ///
    /// # Errors
    /// If it is no IR, or cannot be compiled.
    pub fn compile(&self, text: &str, name: &str, level: Level) -> Result<Compiled, JitError> {
        let object = object(text, level)?;
        let name = CString::new(name).map_err(|error| JitError(error.to_string()))?;
        let mut address = 0;
        // SAFETY: the session is alive; it takes over the object. The tracker is removed where this
        // fails, and else belongs to what is returned.
        unsafe {
            let library = LLVMOrcLLJITGetMainJITDylib(self.session);
            let tracker = LLVMOrcJITDylibCreateResourceTracker(library);
            let done = checked(LLVMOrcLLJITAddObjectFileWithRT(self.session, tracker, object));
            let done = done.and_then(|()| {
                checked(LLVMOrcLLJITLookup(self.session, &mut address, name.as_ptr()))
            });
            let missing = || JitError("a function without an address".into());
            let place = NonNull::new(address as *mut ()).ok_or_else(missing);
            match done.and(place) {
                Ok(address) => Ok(Compiled { tracker, address }),
                Err(error) => {
                    let _ = checked(LLVMOrcResourceTrackerRemove(tracker));
                    LLVMOrcReleaseResourceTracker(tracker);
                    Err(error)
                }
            }
        }
    }
}

/// A module as an object file.
fn object(text: &str, level: Level) -> Result<llvm_sys::prelude::LLVMMemoryBufferRef, JitError> {
    let machine = TargetMachine::new(level)?;
    // SAFETY: the text is copied; the module and the machine live in this function, and what is made
    // is given back in it. The context is disposed of after the module.
    unsafe {
        let context = LLVMContextCreate();
        let buffer = LLVMCreateMemoryBufferWithMemoryRangeCopy(
            text.as_ptr().cast(),
            text.len(),
            c"block".as_ptr(),
        );
        let (mut module, mut message) = (null_mut(), null_mut());
        let failed = LLVMParseIRInContext2(context, buffer, &mut module, &mut message) != 0;
        LLVMDisposeMemoryBuffer(buffer);
        let result = if failed {
            Err(taken(message))
        } else {
            let (mut object, mut message) = (null_mut(), null_mut());
            let failed = LLVMTargetMachineEmitToMemoryBuffer(
                machine.0,
                module,
                LLVMCodeGenFileType::LLVMObjectFile,
                &mut message,
                &mut object,
            ) != 0;
            LLVMDisposeModule(module);
            if failed { Err(taken(message)) } else { Ok(object) }
        };
        LLVMContextDispose(context);
        result
    }
}

/// What LLVM compiles for.
struct TargetMachine(LLVMTargetMachineRef);

impl TargetMachine {
    fn new(level: Level) -> Result<TargetMachine, JitError> {
        // SAFETY: strings that LLVM allocates are given back after their use.
        unsafe {
            let triple = LLVMGetDefaultTargetTriple();
            let (mut target, mut message) = (null_mut(), null_mut());
            let failed = LLVMGetTargetFromTriple(triple, &mut target, &mut message) != 0;
            let machine = if failed {
                Err(taken(message))
            } else {
                let (cpu, features) = (LLVMGetHostCPUName(), LLVMGetHostCPUFeatures());
                let [name, with]: [*const c_char; 2] = match level {
                    Level::Avx512 => [cpu, features],
                    _ => [c"haswell".as_ptr(), c"".as_ptr()],
                };
                let machine = LLVMCreateTargetMachine(
                    target,
                    triple,
                    name,
                    with,
                    LLVMCodeGenOptLevel::LLVMCodeGenLevelLess,
                    LLVMRelocMode::LLVMRelocPIC,
                    LLVMCodeModel::LLVMCodeModelJITDefault,
                );
                LLVMDisposeMessage(cpu);
                LLVMDisposeMessage(features);
                if machine.is_null() {
                    Err(JitError("LLVM does not compile for this host".into()))
                } else {
                    Ok(TargetMachine(machine))
                }
            };
            LLVMDisposeMessage(triple);
            machine
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
unsafe fn taken(message: *mut c_char) -> JitError {
    if message.is_null() {
        return JitError("LLVM does not say why".into());
    }
    // SAFETY: a string, as promised; it is not used again.
    unsafe {
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeMessage(message);
        JitError(text)
    }
}

/// An error of LLVM's, which is given back.
///
/// # Safety
/// It is one that LLVM has just returned.
unsafe fn checked(error: LLVMErrorRef) -> Result<(), JitError> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: as promised; taking the message consumes the error.
    unsafe {
        let message = LLVMGetErrorMessage(error);
        let text = CStr::from_ptr(message).to_string_lossy().into_owned();
        LLVMDisposeErrorMessage(message);
        Err(JitError(text))
    }
}
