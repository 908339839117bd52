//! Prologue: code that runs once when a kernel starts. It moves values for hooks to their reserved
//! registers and, if more inputs were enabled, moves the original inputs back to their registers. It loads
//! preloaded arguments instead of the hardware, so that the kernel has one entry with all firmware
//! versions, and the registers are free for inputs.

use crate::hook::{Assembler, EntryValue, HookError};
use crate::layout::{InsertedCode, Piece, Reference};
use crate::registers::Move;
use crate::site::{ReservedRegisters, ReservedWord, dialect};
use flipwave_codeobj::{Descriptor, InitialSgprs, InitialValue, KernargPreload};
use flipwave_isa::{
    FlatScratch, Generation, Register, RegisterRange, RegisterSet, Sgpr, Target, Vgpr,
};
use std::collections::BTreeSet;

/// Maximum number of user SGPRs of a kernel (AMDGPUUsage, "compute_pgm_rsrc2", USER_SGPR_COUNT; LLVM,
/// `getMaxNumUserSGPRs`).
fn max_user_sgprs(target: &Target) -> u8 {
    if target.generation() >= Generation::Gfx125 { 32 } else { 16 }
}

/// Errors returned when generating a prologue.
#[derive(Debug, thiserror::Error)]
pub enum PrologueError {
    /// The kernel would have too many inputs.
    #[error(
        "too many user SGPRs: the kernel has {have}, and needs {needed} with the inputs of hooks; the \
         hardware has {max}"
    )]
    UserSgprs {
        /// Number that the hardware has.
        max: u8,
        /// Number in the original kernel.
        have: u8,
        /// Number with the inputs of hooks.
        needed: u8,
    },
    /// Too few registers are free to move inputs, or to load arguments.
    #[error("no free SGPR to move the kernel's inputs or to load its arguments")]
    Moves,
    /// An instruction does not assemble.
    #[error(transparent)]
    Hook(#[from] HookError),
}

/// The prologue of a kernel.
#[derive(Clone, Debug)]
pub struct Prologue {
    /// The descriptor with further inputs enabled.
    pub descriptor: Descriptor,
    /// The code.
    pub code: InsertedCode,
    /// Registers that it uses in addition to those of the kernel.
    pub used: RegisterSet,
}

/// The initial values from which an entry value is computed; empty if it is in trap registers.
fn sources(value: EntryValue, target: &Target) -> &'static [InitialValue] {
    match value {
        EntryValue::WorkgroupId(_) | EntryValue::WaveInWorkgroup
            if target.has_architected_sgprs() =>
        {
            &[]
        }
        EntryValue::Kernarg => &[InitialValue::KernargPointer],
        EntryValue::WorkgroupId(0) => &[InitialValue::WorkgroupIdX],
        EntryValue::WorkgroupId(1) => &[InitialValue::WorkgroupIdY],
        EntryValue::WorkgroupId(_) => &[InitialValue::WorkgroupIdZ],
        EntryValue::WaveInWorkgroup => &[
            InitialValue::DispatchPointer,
            InitialValue::WorkgroupIdX,
            InitialValue::WorkgroupIdY,
            InitialValue::WorkgroupIdZ,
        ],
    }
}

fn enable(descriptor: &mut Descriptor, value: InitialValue) {
    let properties = &mut descriptor.properties;
    match value {
        InitialValue::DispatchPointer => properties.sgpr_dispatch_ptr = true,
        InitialValue::KernargPointer => properties.sgpr_kernarg_segment_ptr = true,
        InitialValue::FlatScratchInit => properties.sgpr_flat_scratch_init = true,
        InitialValue::WorkgroupIdX => descriptor.rsrc2.workgroup_id_x = true,
        InitialValue::WorkgroupIdY => descriptor.rsrc2.workgroup_id_y = true,
        InitialValue::WorkgroupIdZ => descriptor.rsrc2.workgroup_id_z = true,
        InitialValue::ScratchOffset => descriptor.rsrc2.private_segment = true,
        _ => {}
    }
}

/// The initial values from which the scratch base is computed; empty if the hardware sets it.
fn scratch_sources(target: &Target) -> &'static [InitialValue] {
    match target.flat_scratch() {
        FlatScratch::Architected => &[],
        _ => &[InitialValue::FlatScratchInit, InitialValue::ScratchOffset],
    }
}

/// Enables the inputs for the values `needed` and for scratch memory that ends at `scratch`, and disables
/// preloading.
///
/// # Errors
/// [`PrologueError::UserSgprs`].
pub fn enabled(
    descriptor: &Descriptor,
    target: &Target,
    needed: &BTreeSet<EntryValue>,
    scratch: Option<u32>,
) -> Result<Descriptor, PrologueError> {
    let mut new = descriptor.clone();
    let has = |value| descriptor.initial_sgprs(target).iter().any(|initial| initial.value == value);
    let wanted = needed.iter().flat_map(|value| sources(*value, target));
    let wanted = wanted.chain(scratch.into_iter().flat_map(|_| scratch_sources(target)));
    let pointer = has(InitialValue::Arguments).then_some(&InitialValue::KernargPointer);
    for value in wanted.chain(pointer).filter(|value| !has(**value)) {
        enable(&mut new, *value);
    }
    new.kernarg_preload = KernargPreload::NONE;
    // There may be unused user SGPRs after the values; gfx11 always has some.
    let have = descriptor.rsrc2.user_sgprs;
    let required = user_sgprs(&new, target);
    let max = max_user_sgprs(target);
    if required.max(have) > max {
        return Err(PrologueError::UserSgprs { max, have, needed: required });
    }
    new.rsrc2.user_sgprs = required.max(have);
    if let Some(bytes) = scratch {
        new.rsrc2.private_segment = true;
        new.private_segment_fixed_size = new.private_segment_fixed_size.max(bytes);
    }
    let counts_items = !target.has_architected_sgprs();
    if needed.contains(&EntryValue::WaveInWorkgroup) && counts_items {
        new.rsrc2.vgpr_workitem_id = 2;
    }
    Ok(new)
}

/// Number of user SGPRs of a descriptor's values.
fn user_sgprs(descriptor: &Descriptor, target: &Target) -> u8 {
    let is_user = |initial: &&InitialSgprs| initial.value < InitialValue::Arguments;
    let initial = descriptor.initial_sgprs(target);
    initial.iter().filter(is_user).map(|value| value.words).sum()
}

/// Number of SGPRs that are set when the kernel starts.
pub fn initial_sgprs(descriptor: &Descriptor, target: &Target) -> u8 {
    let initial = descriptor.initial_sgprs(target);
    initial.last().map_or(0, |last| last.first.0.saturating_add(last.words))
}

/// Requirements of hooks for the start of a kernel.
#[derive(Clone, Copy, Debug)]
pub struct PrologueNeeds<'a> {
    /// Reserved registers at the start of the kernel.
    pub reserved: &'a ReservedRegisters,
    /// End of the scratch memory that hooks use, if any.
    pub scratch: Option<u32>,
    /// Registers that hooks access although they are dead in the program.
    pub accessed_dead: RegisterSet,
}

/// Generates the prologue of a kernel.
///
/// # Errors
/// [`PrologueError`].
pub fn prologue(
    descriptor: &Descriptor,
    target: &Target,
    wanted: &PrologueNeeds<'_>,
    assembler: &mut Assembler,
) -> Result<Prologue, PrologueError> {
    let PrologueNeeds { reserved, scratch, accessed_dead } = *wanted;
    let needed: BTreeSet<EntryValue> = reserved.entry.keys().copied().collect();
    if needed.is_empty() && scratch.is_none() && reserved.data.is_none() {
        let (descriptor, used) = (descriptor.clone(), reserved.registers());
        return Ok(Prologue { descriptor, code: InsertedCode::default(), used });
    }
    let new = enabled(descriptor, target, &needed, scratch)?;
    let before = descriptor.initial_sgprs(target);
    let now = new.initial_sgprs(target);
    let input =
        |value| now.iter().find(|initial| initial.value == value).map(|initial| initial.first);
    let mut out =
        PrologueEmitter { assembler, code: InsertedCode::default(), used: reserved.registers() };
    // Words of values: their current registers and their reserved locations.
    let mut words: Vec<(Sgpr, ReservedWord)> = Vec::new();
    for (value, location) in &reserved.entry {
        let first = match value {
            EntryValue::WorkgroupId(_) | EntryValue::WaveInWorkgroup
                if target.has_architected_sgprs() =>
            {
                let spare = after_inputs(descriptor, &new, target);
                Some(from_trap_registers(*value, spare, &mut out)?)
            }
            EntryValue::WaveInWorkgroup => {
                let wave = WaveNumber { target, new: &new, old: descriptor, inputs: &now };
                Some(wave.compute(&mut out)?)
            }
            value => sources(*value, target).first().and_then(|value| input(*value)),
        };
        words.extend(
            first.into_iter().flat_map(|first| registers_from(first).zip(location.words())),
        );
    }
    // The kernel may compute the same value later.
    if let (Some(_), FlatScratch::Registers, Some(init), Some(offset)) = (
        scratch,
        target.flat_scratch(),
        input(InitialValue::FlatScratchInit),
        input(InitialValue::ScratchOffset),
    ) {
        let high = Register::Sgpr(Sgpr(init.0.saturating_add(1)));
        let (init, offset) = (Register::Sgpr(init), Register::Sgpr(offset));
        out.text(&format!("s_add_u32 flat_scratch_lo, {init}, {offset}"))?;
        out.text(&format!("s_addc_u32 flat_scratch_hi, {high}, 0"))?;
    }
    let mut moves: Vec<Move> = Vec::new();
    for (from, to) in words {
        match to {
            ReservedWord::Sgpr(to) => moves.push(Move { from, to }),
            ReservedWord::Lane(vgpr, lane) => {
                let (vgpr, from) = (Register::Vgpr(vgpr), Register::Sgpr(from));
                out.text(&format!("v_writelane_b32 {vgpr}, {from}, {lane}"))?;
            }
        }
    }
    let spare = after_inputs(descriptor, &new, target);
    let arguments = match before.iter().find(|initial| initial.value == InitialValue::Arguments) {
        Some(arguments) => {
            let pointer = input(InitialValue::KernargPointer);
            // While arguments are loaded, the pointer is neither in a reserved register nor an input.
            let copy = pair_without(reserved.registers(), spare);
            let (pointer, copy) = pointer.zip(copy).ok_or(PrologueError::Moves)?;
            let words = registers_from(pointer).zip(registers_from(copy)).take(2);
            moves.extend(words.map(|(from, to)| Move { from, to }));
            Some((arguments, copy))
        }
        None => None,
    };
    for old in &before {
        let first = input(old.value).into_iter();
        let back = first.flat_map(|first| registers_from(first).zip(registers_from(old.first)));
        // The kernel does not use inputs in reserved registers.
        let is_used = |(_, to): &(Sgpr, Sgpr)| !reserved.registers().contains(Register::Sgpr(*to));
        let back = back.take(old.words.into()).filter(is_used);
        moves.extend(back.map(|(from, to)| Move { from, to }));
    }
    out.moves(&moves, spare)?;
    if let Some((arguments, pointer)) = arguments {
        let to = registers_from(arguments.first).take(arguments.words.into());
        let to = to.map(Register::Sgpr);
        let offsets = (descriptor.kernarg_preload.start_bytes()..).step_by(4);
        let wanted = to.zip(offsets).filter(|(to, _)| !reserved.registers().contains(*to));
        out.load(wanted, RegisterRange::new(Register::Sgpr(pointer), 2))?;
    }
    let changed = changed(descriptor, &new, target, out.used);
    for register in changed.intersection(accessed_dead).iter() {
        if !reserved.registers().contains(register) {
            out.text(&dialect::constant(register, 0))?;
        }
    }
    if let Some((range, address)) = reserved.data
        && let Register::Sgpr(destination) = range.first
    {
        out.code.pieces.push(Piece::Address { destination, to: Reference::Data(address) });
    }
    Ok(Prologue { descriptor: new, code: out.code, used: out.used })
}

/// Registers whose values at the start of the kernel change because of a prologue that uses `used`: these,
/// and new inputs. Without a prologue, registers that are not inputs are zero on the embedded GPU and
/// undefined on hardware.
fn changed(old: &Descriptor, new: &Descriptor, target: &Target, used: RegisterSet) -> RegisterSet {
    let inputs = |descriptor: &Descriptor| -> RegisterSet {
        let initial = descriptor.initial_sgprs(target).into_iter();
        initial.map(|value| RegisterRange::new(Register::Sgpr(value.first), value.words)).collect()
    };
    let sgprs = used.intersection(RegisterSet::SGPRS);
    let mut changed = inputs(new).union(sgprs).difference(inputs(old));
    if !target.packs_work_item_ids() {
        let ids = old.rsrc2.vgpr_workitem_id + 1..=new.rsrc2.vgpr_workitem_id;
        ids.for_each(|number| changed.insert(Register::Vgpr(Vgpr(number.into()))));
    }
    changed
}

/// A register and all following ones.
fn registers_from(first: Sgpr) -> impl Iterator<Item = Sgpr> {
    (first.0..=u8::MAX).map(Sgpr)
}

/// 16 registers that hold neither old nor new inputs, for a load of four words and results computed from
/// it.
fn after_inputs(old: &Descriptor, new: &Descriptor, target: &Target) -> RegisterRange {
    let first = initial_sgprs(old, target).max(initial_sgprs(new, target)).next_multiple_of(4);
    RegisterRange::new(Register::Sgpr(Sgpr(first)), 16)
}

/// The first register of an aligned pair in `range` that has no register in `excluded`.
fn pair_without(excluded: RegisterSet, range: RegisterRange) -> Option<Sgpr> {
    let is_free = |first: &Register| {
        RegisterRange::new(*first, 2).iter().all(|register| !excluded.contains(register))
    };
    match range.iter().step_by(2).find(is_free)? {
        Register::Sgpr(first) => Some(first),
        _ => None,
    }
}

/// Extracts a workgroup number or the wave's number from the trap registers into a spare register. The y and z
/// numbers share a word. Numbers that the descriptor does not enable may be zero on hardware; enabling z
/// would change the word from which the kernel may read y.
fn from_trap_registers(
    value: EntryValue,
    spare: RegisterRange,
    out: &mut PrologueEmitter<'_>,
) -> Result<Sgpr, PrologueError> {
    out.used.insert_range(spare);
    let mut last = spare.iter().skip(12).filter_map(|register| match register {
        Register::Sgpr(sgpr) => Some(sgpr),
        _ => None,
    });
    let (index, operation, sources) = match value {
        EntryValue::WorkgroupId(0) => (1, "s_mov_b32", "ttmp9"),
        EntryValue::WorkgroupId(1) => (2, "s_and_b32", "ttmp7, 0xffff"),
        EntryValue::WorkgroupId(_) => (3, "s_lshr_b32", "ttmp7, 16"),
        EntryValue::WaveInWorkgroup | EntryValue::Kernarg => (0, "s_bfe_u32", "ttmp8, 0x50019"),
    };
    let to = last.nth(index).ok_or(PrologueError::Moves)?;
    out.text(&format!("{operation} {}, {sources}", Register::Sgpr(to)))?;
    Ok(to)
}

/// Computes the wave's number in its workgroup: the flat number of its first work-item, divided by the wave
/// size.
struct WaveNumber<'a> {
    target: &'a Target,
    new: &'a Descriptor,
    old: &'a Descriptor,
    inputs: &'a [InitialSgprs],
}

impl WaveNumber<'_> {
    /// Emits the computation and returns the register with the result. Work-items are numbered with x
    /// fastest; workgroups at the edge of the grid may be smaller.
    fn compute(&self, out: &mut PrologueEmitter<'_>) -> Result<Sgpr, PrologueError> {
        let s = |sgpr: u8| Register::Sgpr(Sgpr(sgpr));
        let base = after_inputs(self.old, self.new, self.target);
        out.used.insert_range(base);
        let base = match base.first {
            Register::Sgpr(first) => first.0,
            _ => 0,
        };
        let input = |value| {
            let initial = self.inputs.iter().find(|initial| initial.value == value);
            s(initial.expect("the sources of the wave number are enabled").first.0)
        };
        let packet = RegisterRange::new(input(InitialValue::DispatchPointer), 2);
        let ids = [
            input(InitialValue::WorkgroupIdX),
            input(InitialValue::WorkgroupIdY),
            input(InitialValue::WorkgroupIdZ),
        ];
        // hsa_kernel_dispatch_packet_t: workgroup sizes at 4, grid sizes at 12.
        let sizes = RegisterRange::new(s(base), 2);
        let grid = RegisterRange::new(s(base + 4), 4);
        out.text(&format!("s_load_dwordx2 {sizes}, {packet}, 0x4"))?;
        out.text(&format!("s_load_dwordx4 {grid}, {packet}, 0xc"))?;
        out.text("s_waitcnt lgkmcnt(0)")?;
        let [size_y, size_x] = [s(base + 2), s(base + 3)];
        out.text(&format!("s_lshr_b32 {size_y}, {}, 16", s(base)))?;
        out.text(&format!("s_and_b32 {size_x}, {}, 0xffff", s(base)))?;
        for (id, size, grid) in [(ids[0], size_x, s(base + 4)), (ids[1], size_y, s(base + 5))] {
            let begin = s(base + 8);
            out.text(&format!("s_mul_i32 {begin}, {id}, {size}"))?;
            out.text(&format!("s_sub_u32 {begin}, {grid}, {begin}"))?;
            out.text(&format!("s_min_u32 {size}, {size}, {begin}"))?;
        }
        let position = [s(base + 9), s(base + 10), s(base + 11)];
        self.position(out, position)?;
        let number = s(base + 12);
        out.text(&format!("s_mul_i32 {number}, {}, {size_y}", position[2]))?;
        out.text(&format!("s_add_u32 {number}, {number}, {}", position[1]))?;
        out.text(&format!("s_mul_i32 {number}, {number}, {size_x}"))?;
        out.text(&format!("s_add_u32 {number}, {number}, {}", position[0]))?;
        let shift = self.new.wavefront_size().trailing_zeros();
        out.text(&format!("s_lshr_b32 {number}, {number}, {shift}"))?;
        Ok(Sgpr(base + 12))
    }

    /// Emits the first lane's position in the workgroup, and removes work-item numbers that the kernel did
    /// not enable.
    fn position(
        &self,
        out: &mut PrologueEmitter<'_>,
        to: [Register; 3],
    ) -> Result<(), PrologueError> {
        if self.target.packs_work_item_ids() {
            out.text(&format!("v_readfirstlane_b32 {}, v0", to[0]))?;
            out.text(&format!("s_lshr_b32 {}, {}, 20", to[2], to[0]))?;
            out.text(&format!("s_bfe_u32 {}, {}, 0xa000a", to[1], to[0]))?;
            out.text(&format!("s_and_b32 {}, {}, 0x3ff", to[0], to[0]))?;
            let mask = match self.old.rsrc2.vgpr_workitem_id {
                0 => 0x3ff,
                1 => 0xf_ffff,
                _ => return Ok(()),
            };
            return out.text(&format!("v_and_b32_e32 v0, {mask:#x}, v0"));
        }
        for (register, to) in to.into_iter().enumerate() {
            out.text(&format!("v_readfirstlane_b32 {to}, v{register}"))?;
        }
        Ok(())
    }
}

/// Appends the instructions of a prologue.
struct PrologueEmitter<'a> {
    assembler: &'a mut Assembler,
    code: InsertedCode,
    used: RegisterSet,
}

impl PrologueEmitter<'_> {
    fn text(&mut self, text: &str) -> Result<(), PrologueError> {
        let bytes = self.assembler.assemble(text)?;
        self.code.pieces.push(Piece::bytes(bytes));
        Ok(())
    }

    /// Loads dwords of the kernel's arguments into registers, from byte offsets of `pointer`.
    fn load(
        &mut self,
        wanted: impl Iterator<Item = (Register, u64)>,
        pointer: RegisterRange,
    ) -> Result<(), PrologueError> {
        for (to, offset) in wanted {
            self.used.insert(to);
            self.text(&format!("s_load_dword {to}, {pointer}, {offset:#x}"))?;
        }
        self.text("s_waitcnt lgkmcnt(0)")
    }

    /// Appends parallel moves, which may use `spare` registers.
    fn moves(&mut self, moves: &[Move], spare: RegisterRange) -> Result<(), PrologueError> {
        let from: Vec<Sgpr> = moves.iter().map(|step| step.from).collect();
        let to: Vec<Sgpr> = moves.iter().map(|step| step.to).collect();
        let spare = [spare].into_iter().collect();
        for step in Move::all_at_once(&from, &to, spare).ok_or(PrologueError::Moves)? {
            self.used.insert(Register::Sgpr(step.to));
            self.text(&step.text())?;
        }
        Ok(())
    }
}
