//! Register plan of a call.

use super::dialect::{Dialect, ScratchSlot};
use super::indexed;
use super::point::{CallRefusal, InsertionPoint, SiteCall};
use super::pool::{OverwrittenLanes, RegisterPool};
use super::value::InputSource;
use crate::hook::{Body, BodyInst, Mask};
use crate::registers::Component;
use flipwave_isa::{AccVgpr, Register, RegisterRange, RegisterSet, Sgpr, Vgpr};

/// Registers that a body accesses by number.
pub struct ReachedRegisters {
    /// Registers that it may read.
    pub read: RegisterSet,
    /// Registers that it may write.
    pub written: RegisterSet,
}

impl ReachedRegisters {
    /// Registers that `body` can access in the functions of `component`.
    pub fn of(body: &Body, component: &Component) -> ReachedRegisters {
        let mut reached =
            ReachedRegisters { read: RegisterSet::EMPTY, written: RegisterSet::EMPTY };
        for inst in &body.instructions {
            let BodyInst::Indexed(access) = inst else { continue };
            let set = if access.writes { &mut reached.written } else { &mut reached.read };
            *set = set.union(indexed::reachable(access.file, component.named));
        }
        reached
    }

    /// All registers that it may read or write.
    pub fn all(&self) -> RegisterSet {
        self.read.union(self.written)
    }
}

/// Location of a spilled VGPR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpillSlot {
    /// In an AccVGPR.
    AccVgpr(AccVgpr),
    /// In scratch.
    Scratch(ScratchSlot),
}

/// An SGPR that is saved in a lane of a VGPR.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpilledSgpr {
    /// The SGPR.
    pub sgpr: Sgpr,
    /// The VGPR that holds its value.
    pub vgpr: Vgpr,
    /// The lane of the VGPR.
    pub lane: u8,
}

/// Registers of a call and their use.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RegisterPlan {
    /// Source of each input of the body, with examples for constants.
    pub values: Vec<InputSource>,
    /// First register of each group of the body.
    pub firsts: Vec<Register>,
    /// Register in which SCC is saved.
    pub scc: Option<Register>,
    /// Registers in which EXEC is saved.
    pub exec: Option<RegisterRange>,
    /// Other special registers, each with the register in which it is saved.
    pub special: Vec<(Register, Register)>,
    /// Spilled VGPRs; all lanes are saved.
    pub vgprs: Vec<(Vgpr, SpillSlot)>,
    /// Register for scratch addresses.
    pub address: Option<Register>,
    /// End of the scratch memory that is used.
    pub scratch: Option<u32>,
    /// Spilled SGPRs.
    pub sgprs: Vec<SpilledSgpr>,
}

impl RegisterPlan {
    /// Allocates registers from `pool` for a call.
    ///
    /// # Errors
    /// [`CallRefusal::Registers`] if there are too few.
    pub fn new(
        component: &Component,
        dialect: Dialect,
        pool: &mut RegisterPool<'_>,
        site: &InsertionPoint<'_>,
        call: &SiteCall<'_>,
        values: &[InputSource],
    ) -> Result<RegisterPlan, CallRefusal> {
        let body = call.body;
        let lanes = match call.mask {
            Mask::Guest if !body.widens_exec => OverwrittenLanes::Active,
            _ => OverwrittenLanes::All,
        };
        let firsts = allocate_groups(body, values, pool, lanes)?;
        let results: RegisterSet = call.results.iter().copied().collect();
        let is_kept =
            |register: Register| site.live.active.contains(register) && !results.contains(register);
        let scalar = |pool: &mut RegisterPool<'_>| {
            pool.sgprs(1, 1).map(Register::Sgpr).ok_or(CallRefusal::Registers("SGPR"))
        };
        let is_indexed = |inst: &BodyInst| matches!(inst, BodyInst::Indexed(_));
        let clobbers_scc = body.writes.contains(Register::Scc)
            || body.instructions.iter().any(is_indexed)
            || values.iter().any(|value| value.clobbers_scc());
        let saves_scc = clobbers_scc && is_kept(Register::Scc);
        let scc = if saves_scc { Some(scalar(pool)?) } else { None };
        let mut special = Vec::new();
        for register in [Register::VccLo, Register::VccHi, Register::M0, Register::Mode] {
            if body.writes.contains(register) && is_kept(register) {
                special.push((register, scalar(pool)?));
            }
        }
        let displaced: Vec<Vgpr> = pool
            .displaced()
            .iter()
            .filter_map(|register| match register {
                Register::Vgpr(vgpr) => Some(vgpr),
                _ => None,
            })
            .collect();
        let changes_exec = body.writes.contains(Register::ExecLo) || call.mask != Mask::Guest;
        let exec = if changes_exec || !displaced.is_empty() {
            let words = dialect.mask_words();
            let first = pool.sgprs(words, words).ok_or(CallRefusal::Registers("SGPR"))?;
            Some(dialect.mask(first))
        } else {
            None
        };
        let mut vgprs = Vec::new();
        let mut free = component.scratch;
        for vgpr in displaced {
            let slot = match (pool.acc_vgprs(1, 1, OverwrittenLanes::All), &mut free) {
                (Some(acc_vgpr), _) => SpillSlot::AccVgpr(acc_vgpr),
                (None, Some(free)) => {
                    let offset = *free;
                    *free = offset.saturating_add(4);
                    SpillSlot::Scratch(ScratchSlot { offset })
                }
                (None, None) => return Err(CallRefusal::Registers("VGPR")),
            };
            vgprs.push((vgpr, slot));
        }
        let uses_scratch = free != component.scratch;
        let address = if uses_scratch { Some(scalar(pool)?) } else { None };
        let sgprs = spill_sgprs(dialect, pool)?;
        let scratch = free.filter(|_| uses_scratch);
        let values = values.iter().map(|value| value.example()).collect();
        Ok(RegisterPlan { values, firsts, scc, exec, special, vgprs, address, scratch, sgprs })
    }
}

/// Allocates VGPR lanes for the spilled SGPRs.
fn spill_sgprs(
    dialect: Dialect,
    pool: &mut RegisterPool<'_>,
) -> Result<Vec<SpilledSgpr>, CallRefusal> {
    let mut spilled = Vec::new();
    let mut carrier = None;
    let displaced = pool.displaced();
    for register in displaced.iter() {
        let Register::Sgpr(sgpr) = register else { continue };
        let lane = spilled.len() as u8 % dialect.wave_size;
        if lane == 0 {
            carrier = Some(pool.dead_vgpr().ok_or(CallRefusal::Registers("VGPR"))?);
        }
        if let Some(vgpr) = carrier {
            spilled.push(SpilledSgpr { sgpr, vgpr, lane });
        }
    }
    Ok(spilled)
}

/// Allocates registers for each group of the body: the registers that already hold an input if the body
/// does not write them, otherwise registers of the pool.
fn allocate_groups(
    body: &Body,
    values: &[InputSource],
    pool: &mut RegisterPool<'_>,
    lanes: OverwrittenLanes,
) -> Result<Vec<Register>, CallRefusal> {
    let mut firsts = vec![None; body.groups.len()];
    let mut given = RegisterSet::EMPTY;
    for (group, first) in body.groups.iter().zip(&mut firsts) {
        let in_place = body.inputs.iter().zip(values).find_map(|(input, value)| match value {
            InputSource::Registers(range)
                if *input == group.range
                    && range.words == input.words
                    && !body.writes.intersects(*input)
                    && !given.intersects(*range)
                    && fits(range.first, group.range.first, group.alignment) =>
            {
                Some(*range)
            }
            _ => None,
        });
        if let Some(range) = in_place {
            given.insert_range(range);
            *first = Some(range.first);
        }
    }
    // Large groups first, while long runs of registers are free.
    let mut order: Vec<usize> = (0..body.groups.len()).collect();
    order.sort_by_key(|at| std::cmp::Reverse(body.groups[*at].range.words));
    for at in order {
        let group = &body.groups[at];
        if firsts[at].is_none() {
            let (words, alignment) = (group.range.words, group.alignment);
            firsts[at] = Some(match group.range.first {
                Register::Vgpr(_) => pool
                    .vgprs(words, alignment, lanes)
                    .map(Register::Vgpr)
                    .ok_or(CallRefusal::Registers("VGPR"))?,
                Register::AccVgpr(_) => pool
                    .acc_vgprs(words, alignment, lanes)
                    .map(Register::AccVgpr)
                    .ok_or(CallRefusal::Registers("AccVGPR"))?,
                _ => pool
                    .sgprs(words, alignment)
                    .map(Register::Sgpr)
                    .ok_or(CallRefusal::Registers("SGPR"))?,
            });
        }
    }
    Ok(firsts.into_iter().flatten().collect())
}

/// Returns `true` if a register can replace `original`, a register of a body.
fn fits(register: Register, original: Register, alignment: u8) -> bool {
    match (register, original) {
        (Register::Vgpr(Vgpr(number)), Register::Vgpr(_)) => {
            number.is_multiple_of(alignment.max(1).into())
        }
        (Register::AccVgpr(AccVgpr(number)), Register::AccVgpr(_))
        | (Register::Sgpr(Sgpr(number)), Register::Sgpr(_)) => {
            number.is_multiple_of(alignment.max(1))
        }
        _ => false,
    }
}
