//! The edge to LLVM: a safe [`Session`] over the C functions of `shim/mc.h`.

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

/// One operand of an MC instruction, in MC's order.
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
    // llvm-sys has the others and lacks this one.
    fn LLVMInitializeAMDGPUDisassembler();
}

/// Bits of the flags word, `FlipwaveFlag` in the shim.
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
    /// Description in `-mattr=help`.
    pub description: &'static str,
    /// Whether the target has it.
    pub is_enabled: bool,
}

/// What LLVM says of one instruction.
pub(crate) struct Description {
    /// Name of the opcode.
    pub name: &'static str,
    /// Printed form.
    pub text: String,
    /// Explicit operands in MC's order.
    pub operands: Vec<McOperand>,
    /// Registers written without being an operand.
    pub implicit_definitions: Vec<RegisterRange>,
    /// Registers read without being an operand.
    pub implicit_uses: Vec<RegisterRange>,
    /// `TSFlags`: the instruction format and more.
    pub format: u64,
    /// Bytes.
    pub size: u8,
    /// Bits of [`flag`].
    pub flags: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum McOperand {
    /// Written register.
    Definition(RegisterRange),
    /// Read register; tied: the same as a written one. A constant could stand in its place if it has
    /// a type of constants.
    Use { register: RegisterRange, tied: bool, constant: Option<ConstantType> },
    /// Immediate; a constant if a register could stand in its place.
    Immediate { value: i64, constant: Option<ConstantType> },
    /// A register that this crate does not model.
    Unknown,
    /// No register, or an expression.
    Other,
}

/// A complaint of the assembler; line and column count from 1, 0 where there is no place.
pub(crate) struct Complaint {
    pub message: String,
    pub line: u32,
    pub column: u32,
}

/// One opened processor of LLVM's AMDGPU target.
pub(crate) struct Session {
    raw: NonNull<RawSession>,
    opened: Opened,
    registers: &'static [Option<RegisterRange>],
}

/// The processor and the features that a session was opened for.
#[derive(Clone, PartialEq, Eq)]
struct Opened {
    processor: CString,
    features: CString,
}

/// Sessions that nobody uses at the moment: to open one takes longer than to decode a small kernel.
static IDLE: Mutex<Vec<(Opened, Open)>> = Mutex::new(Vec::new());

/// How many of them stay open.
const MOST_IDLE: usize = 16;

/// A session that is open.
struct Open(NonNull<RawSession>);

// SAFETY: as for `Session`.
unsafe impl Send for Open {}

impl Drop for Open {
    fn drop(&mut self) {
        // SAFETY: the session was opened once and is closed once, here: a `Session` that ends hands
        // what it has to one `Open` and is not used again.
        unsafe { flipwave_close(self.0.as_ptr()) }
    }
}

/// The session that was put back last of those for this processor.
fn idle(opened: &Opened) -> Option<NonNull<RawSession>> {
    let mut all = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
    let place = all.iter().rposition(|(own, _)| own == opened)?;
    let (_, open) = all.swap_remove(place);
    // It stays open.
    Some(ManuallyDrop::new(open).0)
}

// SAFETY: a session owns all that it points to, apart from LLVM's tables, which are constant
// after initialisation. It may therefore move to another thread. It is not `Sync`: the raw
// pointer keeps the compiler from sharing it.
unsafe impl Send for Session {}

impl Session {
    /// Opens a processor, or takes a session that is open already; `None` where LLVM does not support it.
    pub fn open(processor: &CStr, features: &CStr) -> Option<Session> {
        initialise();
        let opened = Opened { processor: processor.to_owned(), features: features.to_owned() };
        let raw = match idle(&opened) {
            Some(raw) => raw,
            // SAFETY: both strings end in a null byte and outlive the call.
            None => NonNull::new(unsafe { flipwave_open(processor.as_ptr(), features.as_ptr()) })?,
        };
        // All AMDGPU processors share one table of registers.
        static REGISTERS: OnceLock<Vec<Option<RegisterRange>>> = OnceLock::new();
        let registers = REGISTERS.get_or_init(|| register_table(raw));
        Some(Session { raw, opened, registers })
    }

    /// Decodes the instruction at the beginning of `bytes`.
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
        // valid for its count until the next call on this session, and all is copied here;
        // the name lies in LLVM's static tables.
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

    /// Assembles `text`, which holds no directives.
    pub fn assemble(&self, text: &str) -> Result<Vec<u8>, Complaint> {
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
            Err(Complaint {
                message: String::from_utf8_lossy(message).into_owned(),
                line: assembled.line,
                column: assembled.column,
            })
        }
    }

    /// LLVM's subtarget features.
    pub fn features(&self) -> Vec<SubtargetFeature> {
        // SAFETY: the session is open; the numbers asked for are below the count, and both strings
        // are static and end in a null byte.
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
        let constant = ConstantType::of_operand_type(raw.operand_type);
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
        let open = Open(self.raw);
        let mut all = IDLE.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MOST_IDLE {
            all.push((self.opened.clone(), open));
        }
    }
}

/// # Safety
/// `pointer` must be valid for `length` elements for as long as the slice is used, or `length`
/// must be 0.
unsafe fn slice<'a, T>(pointer: *const T, length: usize) -> &'a [T] {
    if length == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(pointer, length) }
}

fn initialise() {
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

fn register_table(session: NonNull<RawSession>) -> Vec<Option<RegisterRange>> {
    // SAFETY: the session is open; names are static strings that end in a null byte, and the
    // numbers asked for are below the count.
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

    /// Sessions that were put back serve what they were opened for, and nothing else.
    #[test]
    fn a_session_is_used_again_for_its_own_processor_only() {
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
