//! Interface to LLVM: a safe [`Session`] around the C functions of `shim/mc.h`.

use crate::{ConstantType, Pc, RegisterRange, mc_register};
use libc::{c_char, c_int};
use std::ffi::{CStr, CString};
use std::mem::ManuallyDrop;
use std::ptr::NonNull;
use std::sync::{Mutex, Once, OnceLock, PoisonError};

#[repr(C)]
struct RawSession {
    _opaque: [u8; 0],
}

/// `FlipwaveOperand` of the shim: an operand of an MC instruction.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct RawOperand {
    value: i64,
    kind: u8,
    definition: u8,
    tied: u8,
    operand_type: u8,
}

#[repr(C)]
struct RawDecoded {
    name: *const c_char,
    text: *const u8,
    operands: *const RawOperand,
    implicit_definitions: *const u16,
    implicit_uses: *const u16,
    text_length: usize,
    operand_count: usize,
    implicit_definition_count: usize,
    implicit_use_count: usize,
    format: u64,
    size: u32,
    flags: u32,
}

#[repr(C)]
struct RawAssembled {
    bytes: *const u8,
    length: usize,
    message: *const u8,
    message_length: usize,
    line: u32,
    column: u32,
}

#[repr(C)]
struct RawFeature {
    name: *const c_char,
    description: *const c_char,
    enabled: u8,
}

unsafe extern "C" {
    fn flipwave_open(processor: *const c_char, features: *const c_char) -> *mut RawSession;
    fn flipwave_close(session: *mut RawSession);
    fn flipwave_decode(
        session: *mut RawSession,
        bytes: *const u8,
        length: usize,
        address: u64,
        decoded: *mut RawDecoded,
    ) -> c_int;
    fn flipwave_assemble(
        session: *mut RawSession,
        text: *const u8,
        length: usize,
        assembled: *mut RawAssembled,
    ) -> c_int;
    fn flipwave_register_count(session: *const RawSession) -> u32;
    fn flipwave_register_name(session: *const RawSession, number: u32) -> *const c_char;
    fn flipwave_feature_count(session: *const RawSession) -> u32;
    fn flipwave_feature(session: *const RawSession, number: u32) -> RawFeature;
    // llvm-sys declares the other initializers but not this one.
    fn LLVMInitializeAMDGPUDisassembler();
}

/// Bits of [`Description::flags`], `FlipwaveFlag` in the shim.
pub(crate) mod flag {
    pub const LOADS: u32 = 1 << 0;
    pub const STORES: u32 = 1 << 1;
    pub const BRANCH: u32 = 1 << 2;
    pub const CONDITIONAL: u32 = 1 << 3;
    pub const CALL: u32 = 1 << 4;
    pub const TERMINATOR: u32 = 1 << 5;
    pub const BARRIER: u32 = 1 << 6;
    pub const SIDE_EFFECTS: u32 = 1 << 7;
}

/// A subtarget feature of LLVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubtargetFeature {
    /// Name as in `-mattr`.
    pub name: &'static str,
    /// Description as in `-mattr=help`.
    pub description: &'static str,
    /// The target has the feature.
    pub is_enabled: bool,
}

/// LLVM's description of a decoded instruction.
pub(crate) struct Description {
    /// Name of the MC opcode.
    pub name: &'static str,
    /// Printed form.
    pub text: String,
    /// Explicit operands in MC's order.
    pub operands: Vec<McOperand>,
    /// Registers written implicitly.
    pub implicit_definitions: Vec<RegisterRange>,
    /// Registers read implicitly.
    pub implicit_uses: Vec<RegisterRange>,
    /// `TSFlags`, which include the instruction format.
    pub format: u64,
    /// Length in bytes.
    pub size: u8,
    /// Bits of [`flag`].
    pub flags: u32,
}

/// An operand of an MC instruction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum McOperand {
    /// A written register.
    Definition(RegisterRange),
    /// A read register. It is tied if it must equal a written one; `constant` is present if the operand
    /// could also be a constant.
    Use { register: RegisterRange, tied: bool, constant: Option<ConstantType> },
    /// An immediate; `constant` is present if the operand could also be a register.
    Immediate { value: i64, constant: Option<ConstantType> },
    /// A register that this crate does not model.
    Unknown,
    /// Neither a register nor an immediate: an absent register or an expression.
    Other,
}

/// An error message of the assembler. Line and column count from 1; they are 0 if unknown.
pub(crate) struct Diagnostic {
    pub message: String,
    pub line: u32,
    pub column: u32,
}

/// An LLVM MC session for one processor of the AMDGPU target.
pub(crate) struct Session {
    raw: NonNull<RawSession>,
    key: SessionKey,
    registers: &'static [Option<RegisterRange>],
}

/// The processor and the features that a session was opened for.
#[derive(Clone, PartialEq, Eq)]
struct SessionKey {
    processor: CString,
    features: CString,
}

/// Pool of idle sessions: opening one takes longer than decoding a small kernel.
static IDLE: Mutex<Vec<(SessionKey, IdleSession)>> = Mutex::new(Vec::new());

/// Maximum number of idle sessions that stay open.
const MAX_IDLE: usize = 16;

/// An open session that is closed on drop.
struct IdleSession(NonNull<RawSession>);

// SAFETY: as for `Session`.
unsafe impl Send for IdleSession {}

impl Drop for IdleSession {
    fn drop(&mut self) {
        // SAFETY: the session was opened once and is closed once, here: a dropped `Session` passes its
        // pointer to exactly one `IdleSession` and is not used again.
        unsafe { flipwave_close(self.0.as_ptr()) }
    }
}

/// Takes the most recently added idle session for `key` from the pool.
fn take_idle(key: &SessionKey) -> Option<NonNull<RawSession>> {
    let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    let index = idle.iter().rposition(|(idle_key, _)| idle_key == key)?;
    let (_, session) = idle.swap_remove(index);
    // The session stays open.
    Some(ManuallyDrop::new(session).0)
}

// SAFETY: a session owns everything that it points to, except LLVM's tables, which are constant
// after initialization. It may therefore move to another thread. It is not `Sync`: the raw
// pointer prevents sharing.
unsafe impl Send for Session {}

impl Session {
    /// Opens a session for a processor or reuses an idle one; `None` if LLVM does not support the
    /// processor.
    pub fn open(processor: &CStr, features: &CStr) -> Option<Session> {
        initialize();
        let key = SessionKey { processor: processor.to_owned(), features: features.to_owned() };
        let raw = match take_idle(&key) {
            Some(raw) => raw,
            // SAFETY: both strings end in a null byte and outlive the call.
            None => NonNull::new(unsafe { flipwave_open(processor.as_ptr(), features.as_ptr()) })?,
        };
        // All AMDGPU processors share one register table.
        static REGISTERS: OnceLock<Vec<Option<RegisterRange>>> = OnceLock::new();
        let registers = REGISTERS.get_or_init(|| register_table(raw));
        Some(Session { raw, key, registers })
    }

    /// Decodes the instruction at the start of `bytes`; `None` if LLVM does not decode it.
    pub fn decode(&self, bytes: &[u8], pc: Pc) -> Option<Description> {
        let mut decoded = std::mem::MaybeUninit::<RawDecoded>::uninit();
        // SAFETY: the session is open and used by this thread only; `bytes` is a valid slice.
        let found = unsafe {
            flipwave_decode(
                self.raw.as_ptr(),
                bytes.as_ptr(),
                bytes.len(),
                pc.0,
                decoded.as_mut_ptr(),
            )
        };
        if found == 0 {
            return None;
        }
        // SAFETY: the shim fills the whole struct when it returns 1. Every pointer in it is
        // valid for its count until the next call on this session, and everything is copied here;
        // the name is in LLVM's static tables.
        unsafe {
            let decoded = decoded.assume_init();
            let text = slice(decoded.text, decoded.text_length);
            let operands = slice(decoded.operands, decoded.operand_count);
            let definitions =
                slice(decoded.implicit_definitions, decoded.implicit_definition_count);
            let uses = slice(decoded.implicit_uses, decoded.implicit_use_count);
            Some(Description {
                name: CStr::from_ptr::<'static>(decoded.name).to_str().unwrap_or_default(),
                text: String::from_utf8_lossy(text).into_owned(),
                operands: operands.iter().map(|operand| self.operand(operand)).collect(),
                implicit_definitions: self.ranges(definitions),
                implicit_uses: self.ranges(uses),
                format: decoded.format,
                size: u8::try_from(decoded.size).ok()?,
                flags: decoded.flags,
            })
        }
    }

    /// Assembles `text`, which must not contain directives.
    pub fn assemble(&self, text: &str) -> Result<Vec<u8>, Diagnostic> {
        let mut assembled = std::mem::MaybeUninit::<RawAssembled>::uninit();
        // SAFETY: the session is open and used by this thread only; the shim copies the text
        // and fills the whole result, whose pointers are valid until the next call on this
        // session and copied here.
        unsafe {
            let done = flipwave_assemble(
                self.raw.as_ptr(),
                text.as_ptr(),
                text.len(),
                assembled.as_mut_ptr(),
            );
            let assembled = assembled.assume_init();
            if done != 0 {
                return Ok(slice(assembled.bytes, assembled.length).to_vec());
            }
            let message = slice(assembled.message, assembled.message_length);
            Err(Diagnostic {
                message: String::from_utf8_lossy(message).into_owned(),
                line: assembled.line,
                column: assembled.column,
            })
        }
    }

    /// LLVM's subtarget features, enabled or not.
    pub fn features(&self) -> Vec<SubtargetFeature> {
        // SAFETY: the session is open, the numbers are below the count, and both strings are static and
        // end in a null byte.
        unsafe {
            (0..flipwave_feature_count(self.raw.as_ptr()))
                .map(|number| {
                    let raw = flipwave_feature(self.raw.as_ptr(), number);
                    let text = |text| CStr::from_ptr::<'static>(text).to_str().unwrap_or_default();
                    SubtargetFeature {
                        name: text(raw.name),
                        description: text(raw.description),
                        is_enabled: raw.enabled != 0,
                    }
                })
                .collect()
        }
    }

    fn operand(&self, raw: &RawOperand) -> McOperand {
        let constant = ConstantType::from_operand_type(raw.operand_type);
        match raw.kind {
            0 => match self.range(raw.value as usize) {
                Some(register) if raw.definition != 0 => McOperand::Definition(register),
                Some(register) => McOperand::Use { register, tied: raw.tied != 0, constant },
                None => McOperand::Unknown,
            },
            1 => McOperand::Immediate { value: raw.value, constant },
            _ => McOperand::Other,
        }
    }

    fn range(&self, number: usize) -> Option<RegisterRange> {
        self.registers.get(number).copied().flatten()
    }

    fn ranges(&self, numbers: &[u16]) -> Vec<RegisterRange> {
        numbers.iter().filter_map(|number| self.range(usize::from(*number))).collect()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        let session = IdleSession(self.raw);
        let mut idle = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MAX_IDLE {
            idle.push((self.key.clone(), session));
        }
    }
}

/// The slice of `length` elements at `pointer`, which may be null if `length` is 0.
///
/// # Safety
/// `pointer` must be valid for `length` elements for as long as the slice is used, or `length`
/// must be 0.
unsafe fn slice<'a, T>(pointer: *const T, length: usize) -> &'a [T] {
    if length == 0 {
        return &[];
    }
    // SAFETY: guaranteed by the caller.
    unsafe { std::slice::from_raw_parts(pointer, length) }
}

fn initialize() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: these register the AMDGPU target with LLVM; `Once` keeps them from racing.
        unsafe {
            llvm_sys::target::LLVMInitializeAMDGPUTargetInfo();
            llvm_sys::target::LLVMInitializeAMDGPUTargetMC();
            llvm_sys::target::LLVMInitializeAMDGPUAsmParser();
            LLVMInitializeAMDGPUDisassembler();
        }
    });
}

/// The register ranges of LLVM's register numbers; `None` for registers that this crate does not model.
fn register_table(session: NonNull<RawSession>) -> Vec<Option<RegisterRange>> {
    // SAFETY: the session is open, the numbers are below the count, and names are static strings that end
    // in a null byte.
    unsafe {
        (0..flipwave_register_count(session.as_ptr()))
            .map(|number| {
                let name = CStr::from_ptr(flipwave_register_name(session.as_ptr(), number));
                mc_register::range_of(name.to_str().ok()?)
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_sessions_are_reused_for_their_processor_and_features_only() {
        let [gfx90a, gfx1100] = [c"gfx90a", c"gfx1100"];
        let [wide, narrow] =
            [c"+wavefrontsize64,-wavefrontsize32", c"+wavefrontsize32,-wavefrontsize64"];
        let assembled = |processor: &CStr, features: &CStr, text: &str| {
            let session = Session::open(processor, features)?;
            let bytes = session.assemble(text).ok()?;
            Some(session.decode(&bytes, Pc(0))?.text)
        };
        for _ in 0..3 {
            let mask = "v_cmp_eq_u32_e64 s[0:1], v0, v1";
            assert!(assembled(gfx1100, wide, mask).is_some());
            assert!(assembled(gfx1100, narrow, mask).is_none(), "its masks are one register");
            assert!(assembled(gfx90a, c"", "v_accvgpr_read_b32 v0, a0").is_some());
            assert!(assembled(gfx1100, wide, "v_accvgpr_read_b32 v0, a0").is_none());
        }
        assert!(Session::open(c"gfx0", c"").is_none());
    }
}
