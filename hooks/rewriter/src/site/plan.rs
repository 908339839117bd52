//! Which registers a call uses, and for what.

use super::dialect::{Dialect, ScratchSlot};
use super::indexed;
use super::point::{CallRefusal, InsertionPoint, SiteCall};
use super::pool::{OverwrittenLanes, RegisterPool};
use super::value::InputSource;
use crate::hook::{Body, BodyInst, Mask};
use crate::registers::Component;
use flipwave_isa::{AccVgpr, Register, RegisterRange, RegisterSet, Sgpr, Vgpr};

/// Registers that a body reaches by number.
pub struct ReachedRegisters {
    /// What it may read.
    pub read: RegisterSet,
    /// What it may write.
    pub written: RegisterSet,
}

impl ReachedRegisters {
    /// What `body` reaches in the functions of `component`.
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

    /// Read or written.
    pub fn all(&self) -> RegisterSet {
        self.read.union(self.written)
    }
}

/// Where a VGPR is saved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refuge {
    /// In an AccVGPR.
    AccVgpr(AccVgpr),
    /// In scratch.
    Scratch(ScratchSlot),
}

/// Which registers a call uses, and for what.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RegisterPlan {
    /// What each input of the body is made from, with examples for numbers.
    pub values: Vec<InputSource>,
    /// Where each group of the body begins.
    pub firsts: Vec<Register>,
    /// Where SCC is saved.
    pub scc: Option<Register>,
    /// Where EXEC is saved.
    pub exec: Option<RegisterRange>,
    /// Other scalar registers, and where each is saved.
    pub special: Vec<(Register, Register)>,
    /// VGPRs, and where each is saved in all lanes.
    pub vgprs: Vec<(Vgpr, Refuge)>,
    /// What addresses scratch.
    pub address: Option<Register>,
    /// The end of the scratch that is used.
    pub scratch: Option<u32>,
    /// SGPRs, and the lane where each is saved.
    pub sgprs: Vec<(Sgpr, Vgpr, u8)>,
}

impl RegisterPlan {
    /// Chooses registers from `pool` for everything that a call needs.
    ///
    /// # Errors
    /// [`CallRefusal::Registers`] where there are too few.
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
        let firsts = rename(body, values, pool, lanes)?;
        let results: RegisterSet = call.results.iter().copied().collect();
        let is_kept =
            |register: Register| site.live.active.contains(register) && !results.contains(register);
        let scalar = |pool: &mut RegisterPool<'_>| {
            pool.sgprs(1, 1).map(Register::Sgpr).ok_or(CallRefusal::Registers("SGPR"))
        };
        let reaches = |inst: &BodyInst| matches!(inst, BodyInst::Indexed(_));
        let loses_scc = body.writes.contains(Register::Scc)
            || body.instructions.iter().any(reaches)
            || values.iter().any(|value| value.loses_scc());
        let scc = match loses_scc && is_kept(Register::Scc) {
            true => Some(scalar(pool)?),
            false => None,
        };
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
        let exec = match changes_exec || !displaced.is_empty() {
            true => {
                let words = dialect.mask_words();
                let first = pool.sgprs(words, words).ok_or(CallRefusal::Registers("SGPR"))?;
                Some(dialect.mask(first))
            }
            false => None,
        };
        let mut vgprs = Vec::new();
        let mut free = component.scratch;
        for vgpr in displaced {
            let place = match (pool.acc_vgprs(1, 1, OverwrittenLanes::All), &mut free) {
                (Some(place), _) => Refuge::AccVgpr(place),
                (None, Some(free)) => {
                    let offset = *free;
                    *free = offset.saturating_add(4);
                    Refuge::Scratch(ScratchSlot { offset })
                }
                (None, None) => return Err(CallRefusal::Registers("VGPR")),
            };
            vgprs.push((vgpr, place));
        }
        let uses_scratch = free != component.scratch;
        let address = match uses_scratch {
            true => Some(scalar(pool)?),
            false => None,
        };
        let sgprs = carry(dialect, pool)?;
        let scratch = free.filter(|_| uses_scratch);
        let values = values.iter().map(|value| value.example()).collect();
        Ok(RegisterPlan { values, firsts, scc, exec, special, vgprs, address, scratch, sgprs })
    }
}

/// Lanes for the SGPRs whose live values must make room.
fn carry(
    dialect: Dialect,
    pool: &mut RegisterPool<'_>,
) -> Result<Vec<(Sgpr, Vgpr, u8)>, CallRefusal> {
    let mut places = Vec::new();
    let mut carrier = None;
    let displaced = pool.displaced();
    for register in displaced.iter() {
        let Register::Sgpr(sgpr) = register else { continue };
        let lane = places.len() as u8 % dialect.wave_size;
        if lane == 0 {
            carrier = Some(pool.dead_vgpr().ok_or(CallRefusal::Registers("VGPR"))?);
        }
        if let Some(vgpr) = carrier {
            places.push((sgpr, vgpr, lane));
        }
    }
    Ok(places)
}

/// A register for each group of the body: the very register that an input is given in where the
/// body leaves it alone, else one of the pool.
fn rename(
    body: &Body,
    values: &[InputSource],
    pool: &mut RegisterPool<'_>,
    lanes: OverwrittenLanes,
) -> Result<Vec<Register>, CallRefusal> {
    let mut firsts = vec![None; body.groups.len()];
    let mut given = RegisterSet::EMPTY;
    for (group, first) in body.groups.iter().zip(&mut firsts) {
        let as_it_is = body.inputs.iter().zip(values).find_map(|(input, value)| match value {
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
        if let Some(range) = as_it_is {
            given.insert_range(range);
            *first = Some(range.first);
        }
    }
    // Large groups first, while there are runs of registers.
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

/// Whether a register can stand for one of a body.
fn fits(given: Register, of_body: Register, alignment: u8) -> bool {
    match (given, of_body) {
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
