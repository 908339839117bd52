//! What runs once when a kernel starts: values that hooks ask for go to their homes, and scalar
//! registers that the kernel expects move back to their places where more inputs were enabled.
//! Arguments that the kernel had preloaded are loaded: then it has one entry, whatever the
//! firmware can, and their registers are free for inputs.

use crate::hook::{Assembler, EntryValue, HookError};
use crate::layout::{InsertedCode, Piece, Reference};
use crate::registers::Move;
use crate::site::{HomeWord, Homes, dialect};
use flipwave_codeobj::{Descriptor, InitialSgprs, InitialValue, KernargPreload};
use flipwave_isa::{FlatScratch, Register, RegisterRange, RegisterSet, Sgpr, Target, Vgpr};
use std::collections::BTreeSet;

/// Most user SGPRs that a kernel can have (AMDGPUUsage, "compute_pgm_rsrc2", USER_SGPR_COUNT).
const MOST_USER_SGPRS: u8 = 16;

/// Why a kernel's entry cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PrologueError {
    /// Too many inputs.
    #[error(
        "the kernel starts with {have} user SGPRs, with what hooks need {needed}; the hardware \
         has {MOST_USER_SGPRS}"
    )]
    UserSgprs {
        /// What it has.
        have: u8,
        /// What it would have to have.
        needed: u8,
    },
    /// Too few registers to change the places of inputs, or to load arguments.
    #[error("no SGPR is left to move the kernel's inputs or to load its arguments by")]
    Moves,
    /// Assembling.
    #[error(transparent)]
    Hook(#[from] HookError),
}

/// What a kernel's start becomes.
#[derive(Clone, Debug)]
pub struct Prologue {
    /// The descriptor with the inputs enabled.
    pub descriptor: Descriptor,
    /// What runs first.
    pub code: InsertedCode,
    /// Registers that it uses beside the kernel's own.
    pub used: RegisterSet,
}

/// The initial values that entry values are made from; none where trap registers have them.
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

/// What the base of scratch is made from; nothing where the hardware sets it up.
fn scratch_sources(target: &Target) -> &'static [InitialValue] {
    match target.flat_scratch() {
        FlatScratch::Architected => &[],
        _ => &[InitialValue::FlatScratchInit, InitialValue::ScratchOffset],
    }
}

/// The descriptor with what `needed` asks for enabled, and nothing preloaded.
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
    let has = |value| descriptor.initial_sgprs(target).iter().any(|own| own.value == value);
    let wanted = needed.iter().flat_map(|value| sources(*value, target));
    let wanted = wanted.chain(scratch.into_iter().flat_map(|_| scratch_sources(target)));
    let loads = has(InitialValue::Arguments).then_some(&InitialValue::KernargPointer);
    for value in wanted.chain(loads).filter(|value| !has(**value)) {
        enable(&mut new, *value);
    }
    new.kernarg_preload = KernargPreload::NONE;
    // Registers after the values may be there for nothing: gfx11 always has some.
    let have = descriptor.rsrc2.user_sgprs;
    let most = user_sgprs(&new, target);
    if most.max(have) > MOST_USER_SGPRS {
        return Err(PrologueError::UserSgprs { have, needed: most });
    }
    new.rsrc2.user_sgprs = most.max(have);
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

/// User SGPRs that the values of a descriptor take, however many there are.
fn user_sgprs(descriptor: &Descriptor, target: &Target) -> u8 {
    let is_user = |own: &&InitialSgprs| own.value < InitialValue::Arguments;
    let initial = descriptor.initial_sgprs(target);
    initial.iter().filter(is_user).map(|own| own.words).sum()
}

/// How many scalar registers are set when the kernel starts.
pub fn initial_sgprs(descriptor: &Descriptor, target: &Target) -> u8 {
    let initial = descriptor.initial_sgprs(target);
    initial.last().map_or(0, |last| last.first.0.saturating_add(last.words))
}

/// What hooks want of a kernel's start.
#[derive(Clone, Copy, Debug)]
pub struct PrologueNeeds<'a> {
    /// Where values are kept when the kernel begins.
    pub homes: &'a Homes,
    /// Where the scratch ends that hooks use, if they use any.
    pub scratch: Option<u32>,
    /// Registers that hooks ask for though the program does not want them.
    pub asked: RegisterSet,
}

/// Makes the entry of a kernel.
///
/// # Errors
/// [`PrologueError`].
pub fn prologue(
    descriptor: &Descriptor,
    target: &Target,
    wanted: &PrologueNeeds<'_>,
    assembler: &mut Assembler,
) -> Result<Prologue, PrologueError> {
    let PrologueNeeds { homes, scratch, asked } = *wanted;
    let needed: BTreeSet<EntryValue> = homes.entry.keys().copied().collect();
    if needed.is_empty() && scratch.is_none() && homes.data.is_none() {
        let (descriptor, used) = (descriptor.clone(), homes.registers());
        return Ok(Prologue { descriptor, code: InsertedCode::default(), used });
    }
    let new = enabled(descriptor, target, &needed, scratch)?;
    let before = descriptor.initial_sgprs(target);
    let now = new.initial_sgprs(target);
    let place = |value| now.iter().find(|own| own.value == value).map(|own| own.first);
    let mut out = Out { assembler, code: InsertedCode::default(), used: homes.registers() };
    // Words of values, where they are and where they go.
    let mut words: Vec<(Sgpr, HomeWord)> = Vec::new();
    for (value, home) in &homes.entry {
        let first = match value {
            EntryValue::WorkgroupId(_) | EntryValue::WaveInWorkgroup
                if target.has_architected_sgprs() =>
            {
                let spare = after_inputs(descriptor, &new, target);
                Some(from_trap_registers(*value, spare, &mut out)?)
            }
            EntryValue::WaveInWorkgroup => {
                let wave = WaveNumber { target, new: &new, old: descriptor, now: &now };
                Some(wave.compute(&mut out)?)
            }
            other => sources(*other, target).first().and_then(|value| place(*value)),
        };
        words.extend(first.into_iter().flat_map(|first| from(first).zip(home.words())));
    }
    // The kernel's own code may do the same later, to the same end.
    if let (Some(_), FlatScratch::Registers, Some(init), Some(offset)) = (
        scratch,
        target.flat_scratch(),
        place(InitialValue::FlatScratchInit),
        place(InitialValue::ScratchOffset),
    ) {
        let high = Register::Sgpr(Sgpr(init.0.saturating_add(1)));
        let (init, offset) = (Register::Sgpr(init), Register::Sgpr(offset));
        out.text(&format!("s_add_u32 flat_scratch_lo, {init}, {offset}"))?;
        out.text(&format!("s_addc_u32 flat_scratch_hi, {high}, 0"))?;
    }
    let mut moves: Vec<Move> = Vec::new();
    for (from, to) in words {
        match to {
            HomeWord::Sgpr(to) => moves.push(Move { from, to }),
            HomeWord::Lane(vgpr, lane) => {
                let (vgpr, from) = (Register::Vgpr(vgpr), Register::Sgpr(from));
                out.text(&format!("v_writelane_b32 {vgpr}, {from}, {lane}"))?;
            }
        }
    }
    let spare = after_inputs(descriptor, &new, target);
    let arguments = match before.iter().find(|own| own.value == InitialValue::Arguments) {
        Some(own) => {
            let pointer = place(InitialValue::KernargPointer);
            // Where the pointer is while the arguments are loaded, no home and no input is.
            let copy = pair_without(homes.registers(), spare);
            let (pointer, copy) = pointer.zip(copy).ok_or(PrologueError::Moves)?;
            moves.extend(from(pointer).zip(from(copy)).take(2).map(|(from, to)| Move { from, to }));
            Some((own, copy))
        }
        None => None,
    };
    for old in &before {
        let back = place(old.value).into_iter().flat_map(|first| from(first).zip(from(old.first)));
        // Where a home is, the kernel does not want its input.
        let is_wanted = |own: &(Sgpr, Sgpr)| !homes.registers().contains(Register::Sgpr(own.1));
        let back = back.take(old.words.into()).filter(is_wanted);
        moves.extend(back.map(|(from, to)| Move { from, to }));
    }
    out.moves(&moves, spare)?;
    if let Some((own, pointer)) = arguments {
        let to = from(own.first).take(own.words.into()).map(Register::Sgpr);
        let offsets = (descriptor.kernarg_preload.start_bytes()..).step_by(4);
        let wanted = to.zip(offsets).filter(|(to, _)| !homes.registers().contains(*to));
        out.load(wanted, RegisterRange::new(Register::Sgpr(pointer), 2))?;
    }
    for register in changed(descriptor, &new, target, out.used).intersection(asked).iter() {
        if !homes.registers().contains(register) {
            out.text(&dialect::constant(register, 0))?;
        }
    }
    if let Some((range, address)) = homes.data
        && let Register::Sgpr(destination) = range.first
    {
        out.code.pieces.push(Piece::Address { destination, to: Reference::Data(address) });
    }
    Ok(Prologue { descriptor: new, code: out.code, used: out.used })
}

/// Registers in which a kernel finds something else at its start than where it has no entry: what
/// the entry uses, and inputs that it did not have. What is no input of a kernel starts as zero
/// on the embedded GPU, and is not defined on hardware.
fn changed(old: &Descriptor, new: &Descriptor, target: &Target, used: RegisterSet) -> RegisterSet {
    let inputs = |descriptor: &Descriptor| -> RegisterSet {
        let initial = descriptor.initial_sgprs(target).into_iter();
        let first = |own: &InitialSgprs| Register::Sgpr(own.first);
        initial.map(|own| RegisterRange::new(first(&own), own.words)).collect()
    };
    let sgprs = used.intersection(RegisterSet::SGPRS);
    let mut changed = inputs(new).union(sgprs).difference(inputs(old));
    if !target.packs_work_item_ids() {
        let ids = old.rsrc2.vgpr_workitem_id + 1..=new.rsrc2.vgpr_workitem_id;
        ids.for_each(|number| changed.insert(Register::Vgpr(Vgpr(number.into()))));
    }
    changed
}

/// A register and those after it.
fn from(first: Sgpr) -> impl Iterator<Item = Sgpr> {
    (first.0..=u8::MAX).map(Sgpr)
}

/// Registers that hold nothing when the kernel starts, with its old inputs or its new ones, as many
/// as a load of four words and what is computed from it take.
fn after_inputs(old: &Descriptor, new: &Descriptor, target: &Target) -> RegisterRange {
    let first = initial_sgprs(old, target).max(initial_sgprs(new, target)).next_multiple_of(4);
    RegisterRange::new(Register::Sgpr(Sgpr(first)), 16)
}

/// The first register of an aligned pair in a range, with none of `others` in it.
fn pair_without(others: RegisterSet, range: RegisterRange) -> Option<Sgpr> {
    let pair = |own: &Register| RegisterRange::new(*own, 2).iter().all(|own| !others.contains(own));
    match range.iter().step_by(2).find(pair)? {
        Register::Sgpr(first) => Some(first),
        _ => None,
    }
}

/// A part of the wave's position out of the trap registers, in one of some registers that hold
/// nothing. Of y and z each has a half. What is not enabled in the kernel's descriptor may be zero on
/// hardware; enabling z would change the word that the kernel may read y from.
fn from_trap_registers(
    value: EntryValue,
    spare: RegisterRange,
    out: &mut Out<'_>,
) -> Result<Sgpr, PrologueError> {
    out.used.insert_range(spare);
    let mut last = spare.iter().skip(12).filter_map(|own| match own {
        Register::Sgpr(own) => Some(own),
        _ => None,
    });
    let (place, text) = match value {
        EntryValue::WorkgroupId(0) => (1, ("s_mov_b32", "ttmp9")),
        EntryValue::WorkgroupId(1) => (2, ("s_and_b32", "ttmp7, 0xffff")),
        EntryValue::WorkgroupId(_) => (3, ("s_lshr_b32", "ttmp7, 16")),
        EntryValue::WaveInWorkgroup | EntryValue::Kernarg => (0, ("s_bfe_u32", "ttmp8, 0x50019")),
    };
    let to = last.nth(place).ok_or(PrologueError::Moves)?;
    let (operation, sources) = text;
    out.text(&format!("{operation} {}, {sources}", Register::Sgpr(to)))?;
    Ok(to)
}

/// The wave's number in its workgroup: the flat number of its first work-item by its lanes.
struct WaveNumber<'a> {
    target: &'a Target,
    new: &'a Descriptor,
    old: &'a Descriptor,
    now: &'a [InitialSgprs],
}

impl WaveNumber<'_> {
    /// Work-items are numbered within what the grid leaves of a workgroup at its edge, x fastest.
    fn compute(&self, out: &mut Out<'_>) -> Result<Sgpr, PrologueError> {
        let s = |sgpr: u8| Register::Sgpr(Sgpr(sgpr));
        let base = after_inputs(self.old, self.new, self.target);
        out.used.insert_range(base);
        let base = match base.first {
            Register::Sgpr(first) => first.0,
            _ => 0,
        };
        let place = |value| {
            let initial = self.now.iter().find(|own| own.value == value);
            s(initial.expect("what a wave number is made from is enabled").first.0)
        };
        let packet = RegisterRange::new(place(InitialValue::DispatchPointer), 2);
        let ids = [
            place(InitialValue::WorkgroupIdX),
            place(InitialValue::WorkgroupIdY),
            place(InitialValue::WorkgroupIdZ),
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

    /// The first lane's position in the workgroup; the kernel sees of its work-item numbers what
    /// it asked for.
    fn position(&self, out: &mut Out<'_>, to: [Register; 3]) -> Result<(), PrologueError> {
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

struct Out<'a> {
    assembler: &'a mut Assembler,
    code: InsertedCode,
    used: RegisterSet,
}

impl Out<'_> {
    fn text(&mut self, text: &str) -> Result<(), PrologueError> {
        let bytes = self.assembler.assemble(text)?;
        self.code.pieces.push(Piece::bytes(bytes));
        Ok(())
    }

    /// Loads dwords of the kernel's arguments: registers, and how many bytes after the pointer
    /// stands what each gets.
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

    /// Moves that are done all at once, with help of registers that hold nothing.
    fn moves(&mut self, moves: &[Move], spare: RegisterRange) -> Result<(), PrologueError> {
        let from: Vec<Sgpr> = moves.iter().map(|own| own.from).collect();
        let to: Vec<Sgpr> = moves.iter().map(|own| own.to).collect();
        let spare = [spare].into_iter().collect();
        for own in Move::all_at_once(&from, &to, spare).ok_or(PrologueError::Moves)? {
            self.used.insert(Register::Sgpr(own.to));
            self.text(&own.text())?;
        }
        Ok(())
    }
}
