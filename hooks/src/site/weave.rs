//! The code of one hook call.
//!
//! In this order: waits for loads into what is touched; SGPRs with wanted values to lanes of a
//! VGPR; SCC, EXEC, VCC, M0 and MODE to SGPRs, as far as they are wanted and change; VGPRs with
//! wanted values to AccVGPRs or scratch, in all lanes; EXEC as the hook wants it; arguments; the body;
//! results under the program's EXEC; and everything back.

use super::dialect::{self, Dialect, Slot};
use super::indexed;
use super::pool::{Lanes, Pool};
use crate::component::Component;
use crate::hook::{
    Assembler, Body, BodyInst, EntryValue, HookData, HookError, InputValue, Mask, Renaming,
};
use crate::layout::{Code, Piece, Reference};
use crate::liveness::Live;
use crate::under_way::UnderWay;
use flipwave_isa::counter::{self, Counter};
use flipwave_isa::{AccVgpr, Pc, Register, RegisterRange, RegisterSet, Sgpr, Target, Vgpr};
use std::collections::BTreeMap;

/// A hook and what it is given.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The hook.
    pub body: &'a Body,
    /// A value for each input of the body.
    pub inputs: &'a [InputValue],
    /// A place for each output of the body, changed for good.
    pub results: &'a [RegisterRange],
    /// The lanes that the hook runs in.
    pub mask: Mask,
    /// Where the hook's data lies.
    pub data: Pc,
    /// Its variables.
    pub symbols: &'a HookData,
}

/// A point between two instructions.
#[derive(Clone, Copy, Debug)]
pub struct Site<'a> {
    /// What is wanted there.
    pub live: Live,
    /// Loads that may be under way.
    pub under_way: &'a UnderWay,
    /// Whether vector instructions index registers by M0 (gfx8 and gfx9).
    pub in_index_mode: bool,
    /// Where values are kept.
    pub homes: &'a Homes,
}

/// Where a word of a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// In an SGPR.
    Sgpr(Sgpr),
    /// In a lane of a VGPR.
    Lane(Vgpr, u8),
}

/// Where a value is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    /// Its first word.
    pub low: Word,
    /// Its second, if it has two.
    pub high: Option<Word>,
}

impl Home {
    /// Its words, the low one first.
    pub fn words(self) -> impl Iterator<Item = Word> {
        [Some(self.low), self.high].into_iter().flatten()
    }

    /// Its registers.
    pub fn registers(self) -> RegisterSet {
        let register = |word| match word {
            Word::Sgpr(sgpr) => Register::Sgpr(sgpr),
            Word::Lane(vgpr, _) => Register::Vgpr(vgpr),
        };
        self.words().map(register).collect()
    }

    /// Its registers, where they are SGPRs in a row.
    fn range(self) -> Option<RegisterRange> {
        match (self.low, self.high) {
            (Word::Sgpr(low), None) => Some(RegisterRange::new(Register::Sgpr(low), 1)),
            (Word::Sgpr(low), Some(Word::Sgpr(high))) if low.0.checked_add(1) == Some(high.0) => {
                Some(RegisterRange::new(Register::Sgpr(low), 2))
            }
            _ => None,
        }
    }
}

/// Where a component keeps what hooks ask for again and again, at a point.
#[derive(Clone, Debug, Default)]
pub struct Homes {
    /// The address of the hooks' data.
    pub data: Option<(RegisterRange, Pc)>,
    /// What is only known when a kernel starts.
    pub entry: BTreeMap<EntryValue, Home>,
}

impl Homes {
    /// The registers of all homes.
    pub fn registers(&self) -> RegisterSet {
        let data = self.data.iter().map(|(range, _)| *range).collect();
        self.entry.values().fold(data, |all: RegisterSet, home| all.union(home.registers()))
    }
}

/// The code of a hook call.
#[derive(Clone, Debug, Default)]
pub struct Woven {
    /// The code.
    pub code: Code,
    /// Registers that it uses beside the program's own values.
    pub used: RegisterSet,
    /// Where the scratch that it uses ends.
    pub scratch: Option<u32>,
    /// Registers that it changes for good.
    pub changes: RegisterSet,
    /// How many registers with wanted values had to make room.
    pub saved: u32,
}

/// Why a hook cannot be called at a site.
#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    /// Too few registers.
    #[error("no {0} is left for the hook, even with the kernel's allocation grown to its most")]
    Registers(&'static str),
    /// A value that cannot be had.
    #[error("{0}")]
    Value(String),
    /// The hook.
    #[error(transparent)]
    Hook(#[from] HookError),
}

/// Makes code for sites of one component.
pub struct Weaver<'a> {
    /// The target.
    pub target: &'a Target,
    /// How it spells lane masks.
    pub dialect: Dialect,
    /// The functions that the site belongs to.
    pub component: &'a Component,
    /// Text to bytes.
    pub assembler: &'a mut Assembler,
}

/// What an input of a body is made from.
#[derive(Clone, Copy, Debug)]
enum Value {
    /// Registers, the program's or a home.
    Registers(RegisterRange),
    /// A number.
    Constant(u64),
    /// A home that is not registers in a row.
    Home(Home),
    /// An address behind one that a register pair holds.
    Beyond { base: RegisterRange, distance: u32 },
    /// An address that is computed from the PC.
    Address(Pc),
}

impl Value {
    /// Registers that hold it.
    fn registers(self) -> RegisterSet {
        match self {
            Value::Registers(range) => [range].into_iter().collect(),
            Value::Home(home) => home.registers(),
            Value::Constant(_) | Value::Beyond { .. } | Value::Address(_) => RegisterSet::EMPTY,
        }
    }

    fn loses_scc(self) -> bool {
        matches!(self, Value::Beyond { .. } | Value::Address(_))
    }
}

/// Registers that a body reaches by number.
struct Reached {
    read: RegisterSet,
    written: RegisterSet,
}

impl Reached {
    fn of(body: &Body, component: &Component) -> Reached {
        let mut reached = Reached { read: RegisterSet::EMPTY, written: RegisterSet::EMPTY };
        for inst in &body.instructions {
            let BodyInst::Indexed(access) = inst else { continue };
            let set = if access.writes { &mut reached.written } else { &mut reached.read };
            *set = set.union(indexed::reachable(access.file, component.named));
        }
        reached
    }

    fn all(&self) -> RegisterSet {
        self.read.union(self.written)
    }
}

/// Registers of the program that a call reads or changes.
pub fn asked(call: &Call<'_>, component: &Component) -> RegisterSet {
    let registers = call.inputs.iter().filter_map(|input| match input {
        InputValue::Registers(range) => Some(*range),
        _ => None,
    });
    let named: RegisterSet = registers.chain(call.results.iter().copied()).collect();
    named.union(Reached::of(call.body, component).all())
}

/// Where a VGPR is saved.
#[derive(Clone, Copy, Debug)]
enum Refuge {
    /// In an AccVGPR.
    AccVgpr(AccVgpr),
    /// In scratch.
    Scratch(Slot),
}

/// Which registers a call uses, and for what.
struct Plan {
    values: Vec<Value>,
    renaming: Renaming,
    /// Where SCC is saved.
    scc: Option<Register>,
    /// Where EXEC is saved.
    exec: Option<RegisterRange>,
    /// Other scalar registers, and where each is saved.
    special: Vec<(Register, Register)>,
    /// VGPRs, and where each is saved in all lanes.
    vgprs: Vec<(Vgpr, Refuge)>,
    /// What addresses scratch.
    address: Option<Register>,
    /// The end of the scratch that is used.
    scratch: Option<u32>,
    /// SGPRs, and the lane where each is saved.
    sgprs: Vec<(Sgpr, Vgpr, u8)>,
}

impl Weaver<'_> {
    /// The code of `call` at `site`.
    ///
    /// # Errors
    /// [`Refusal`] where it cannot be done; nothing is lost but this site.
    pub fn call(&mut self, site: &Site<'_>, call: &Call<'_>) -> Result<Woven, Refusal> {
        let values: Vec<Value> =
            call.inputs.iter().map(|value| resolve(value, site, call)).collect::<Result<_, _>>()?;
        let read = values.iter().fold(RegisterSet::EMPTY, |all, own| all.union(own.registers()));
        let results: RegisterSet = call.results.iter().copied().collect();
        let reached = Reached::of(call.body, self.component);
        let touched = read.union(results).union(reached.all());
        let kept = touched.union(site.homes.registers());
        let forbidden = kept.union(site.under_way.registers());
        let mut pool = Pool::new(self.component, site.live, forbidden);
        let plan = self.plan(&mut pool, site, call, values)?;
        let waits = site.under_way.needed(touched.union(pool.taken()));
        let mut out = Emitter { assembler: self.assembler, code: Code::default() };
        if !waits.is_empty() {
            for wait in counter::waits(self.target, &waits).lines() {
                out.text(wait)?;
            }
        }
        if site.in_index_mode {
            out.text("s_set_gpr_idx_off")?;
        }
        let emission = Emission { target: self.target, dialect: self.dialect, call, plan: &plan };
        emission.before(&mut out)?;
        let named = self.component.named;
        let code = call.body.instantiate(
            &plan.renaming,
            out.assembler,
            call.data,
            |access, assembler| {
                indexed::access(access, indexed::reachable(access.file, named), assembler)
            },
        )?;
        out.code.append(code);
        emission.behind(&mut out)?;
        if site.in_index_mode {
            // The one bit of MODE: what is indexed, and by how much, is still in M0.
            out.text("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 27, 1), 1")?;
        }
        let saved = (plan.vgprs.len() + plan.sgprs.len()) as u32;
        let changes = results.union(reached.written);
        let scratch = plan.scratch;
        Ok(Woven { code: out.code, used: pool.taken(), scratch, changes, saved })
    }

    /// Chooses registers for everything the call needs.
    fn plan(
        &self,
        pool: &mut Pool<'_>,
        site: &Site<'_>,
        call: &Call<'_>,
        values: Vec<Value>,
    ) -> Result<Plan, Refusal> {
        let body = call.body;
        let lanes = match call.mask {
            Mask::Guest if !body.widens_exec => Lanes::Active,
            _ => Lanes::All,
        };
        let renaming = rename(body, &values, pool, lanes)?;
        let results: RegisterSet = call.results.iter().copied().collect();
        let is_kept =
            |register: Register| site.live.active.contains(register) && !results.contains(register);
        let scalar = |pool: &mut Pool<'_>| {
            pool.sgprs(1, 1).map(Register::Sgpr).ok_or(Refusal::Registers("SGPR"))
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
                let words = self.dialect.mask_words();
                let first = pool.sgprs(words, words).ok_or(Refusal::Registers("SGPR"))?;
                Some(self.dialect.mask(first))
            }
            false => None,
        };
        let mut vgprs = Vec::new();
        let mut free = self.component.scratch;
        for vgpr in displaced {
            let place = match (pool.acc_vgprs(1, 1, Lanes::All), &mut free) {
                (Some(place), _) => Refuge::AccVgpr(place),
                (None, Some(free)) => {
                    let offset = *free;
                    *free = offset.saturating_add(4);
                    Refuge::Scratch(Slot { offset })
                }
                (None, None) => return Err(Refusal::Registers("VGPR")),
            };
            vgprs.push((vgpr, place));
        }
        let uses_scratch = free != self.component.scratch;
        let address = match uses_scratch {
            true => Some(scalar(pool)?),
            false => None,
        };
        let sgprs = self.carry(pool)?;
        let scratch = free.filter(|_| uses_scratch);
        Ok(Plan { values, renaming, scc, exec, special, vgprs, address, scratch, sgprs })
    }

    /// Lanes for the SGPRs whose wanted values must make room.
    fn carry(&self, pool: &mut Pool<'_>) -> Result<Vec<(Sgpr, Vgpr, u8)>, Refusal> {
        let mut places = Vec::new();
        let mut carrier = None;
        let displaced = pool.displaced();
        for register in displaced.iter() {
            let Register::Sgpr(sgpr) = register else { continue };
            let lane = places.len() as u8 % self.dialect.wave_size;
            if lane == 0 {
                carrier = Some(pool.dead_vgpr().ok_or(Refusal::Registers("VGPR"))?);
            }
            if let Some(vgpr) = carrier {
                places.push((sgpr, vgpr, lane));
            }
        }
        Ok(places)
    }
}

/// Where an input's value is.
fn resolve(value: &InputValue, site: &Site<'_>, call: &Call<'_>) -> Result<Value, Refusal> {
    Ok(match value {
        InputValue::Registers(range) => Value::Registers(*range),
        InputValue::Constant(number) => Value::Constant(*number),
        InputValue::Entry(entry) => match site.homes.entry.get(entry) {
            Some(home) => home.range().map_or(Value::Home(*home), Value::Registers),
            None => return Err(Refusal::Registers("register for the whole kernel")),
        },
        InputValue::Data { symbol, offset } => {
            let symbol = call.symbols.symbols.get(symbol).ok_or_else(|| {
                Refusal::Value(format!("the hooks' source has no variable `{symbol}`"))
            })?;
            let wanted = call.data.0.wrapping_add(symbol.offset).wrapping_add(*offset);
            match site.homes.data {
                Some((base, at)) if at.0 == wanted => Value::Registers(base),
                Some((base, at)) if wanted.wrapping_sub(at.0) <= u64::from(u32::MAX) => {
                    Value::Beyond { base, distance: wanted.wrapping_sub(at.0) as u32 }
                }
                _ => Value::Address(Pc(wanted)),
            }
        }
    })
}

/// A register for each group of the body: the very register that an input is given in where the
/// body leaves it alone, else one of the pool.
fn rename(
    body: &Body,
    values: &[Value],
    pool: &mut Pool<'_>,
    lanes: Lanes,
) -> Result<Renaming, Refusal> {
    let mut firsts = vec![None; body.groups.len()];
    let mut given = RegisterSet::EMPTY;
    for (group, first) in body.groups.iter().zip(&mut firsts) {
        let as_it_is = body.inputs.iter().zip(values).find_map(|(input, value)| match value {
            Value::Registers(range)
                if *input == group.range
                    && range.words == input.words
                    && !body.writes.meets(*input)
                    && !given.meets(*range)
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
                    .ok_or(Refusal::Registers("VGPR"))?,
                Register::AccVgpr(_) => pool
                    .acc_vgprs(words, alignment, lanes)
                    .map(Register::AccVgpr)
                    .ok_or(Refusal::Registers("AccVGPR"))?,
                _ => pool
                    .sgprs(words, alignment)
                    .map(Register::Sgpr)
                    .ok_or(Refusal::Registers("SGPR"))?,
            });
        }
    }
    let firsts: Vec<Register> = firsts.into_iter().flatten().collect();
    Ok(Renaming::new(body, &firsts)?)
}

/// Whether a register can stand for one of a body.
fn fits(given: Register, of_body: Register, alignment: u8) -> bool {
    match (given, of_body) {
        (Register::Vgpr(Vgpr(number)), Register::Vgpr(_))
        | (Register::AccVgpr(AccVgpr(number)), Register::AccVgpr(_))
        | (Register::Sgpr(Sgpr(number)), Register::Sgpr(_)) => {
            number.is_multiple_of(alignment.max(1))
        }
        _ => false,
    }
}

/// What surrounds a body.
struct Emission<'a> {
    target: &'a Target,
    dialect: Dialect,
    call: &'a Call<'a>,
    plan: &'a Plan,
}

impl Emission<'_> {
    /// Saves, EXEC as the hook wants it, and arguments.
    fn before(&self, out: &mut Emitter<'_>) -> Result<(), Refusal> {
        let (plan, dialect) = (self.plan, self.dialect);
        for (sgpr, vgpr, lane) in &plan.sgprs {
            out.text(&format!(
                "v_writelane_b32 {}, {}, {lane}",
                Register::Vgpr(*vgpr),
                Register::Sgpr(*sgpr)
            ))?;
        }
        if let Some(place) = plan.scc {
            out.text(&dialect::save_scc(place))?;
        }
        if let Some(place) = plan.exec {
            out.text(&dialect.move_mask(place, &dialect.exec().to_string()))?;
        }
        for (register, place) in &plan.special {
            out.word(*place, *register)?;
        }
        if !plan.vgprs.is_empty() {
            out.text(&dialect.move_mask(dialect.exec(), "-1"))?;
            for (vgpr, place) in &plan.vgprs {
                let vgpr = Register::Vgpr(*vgpr);
                match (place, plan.address) {
                    (Refuge::AccVgpr(place), _) => out.word(Register::AccVgpr(*place), vgpr)?,
                    (Refuge::Scratch(slot), Some(address)) => {
                        out.lines(&slot.store(dialect, vgpr, address))?;
                    }
                    (Refuge::Scratch(_), None) => {}
                }
            }
        }
        let mask = match self.call.mask {
            Mask::Single => Some("1".to_owned()),
            Mask::Whole => Some("-1".to_owned()),
            Mask::Guest if plan.vgprs.is_empty() => None,
            Mask::Guest => plan.exec.map(|place| place.to_string()),
        };
        if let Some(mask) = mask {
            out.text(&dialect.move_mask(dialect.exec(), &mask))?;
        }
        // SCC is read before other arguments may lose it.
        let is_scc = |value: &Value| matches!(value, Value::Registers(range) if range.first == Register::Scc);
        let inputs = || plan.values.iter().zip(&self.call.body.inputs);
        for (value, input) in
            inputs().filter(|(v, _)| is_scc(v)).chain(inputs().filter(|(v, _)| !is_scc(v)))
        {
            self.input(out, *value, plan.renaming.range(*input))?;
        }
        Ok(())
    }

    /// A value into the registers where the body expects it.
    fn input(&self, out: &mut Emitter<'_>, value: Value, to: RegisterRange) -> Result<(), Refusal> {
        let words = || to.iter().zip(0u8..);
        match value {
            Value::Registers(from) if from == to => {}
            // EXEC may be another by now.
            Value::Registers(from) if from.first == Register::ExecLo => {
                let from = self.plan.exec.unwrap_or(from);
                for (to, at) in words() {
                    match from.first.offset(at).filter(|_| at < from.words) {
                        Some(from) => out.word(to, from)?,
                        None => out.constant(to, 0)?,
                    }
                }
            }
            Value::Registers(from) => {
                for (to, at) in words() {
                    match from.first.offset(at).filter(|_| at < from.words) {
                        Some(from) => out.word(to, from)?,
                        None => out.constant(to, 0)?,
                    }
                }
            }
            Value::Constant(number) => {
                for (to, at) in words() {
                    out.constant(to, number.checked_shr(32 * u32::from(at)).unwrap_or(0) as u32)?;
                }
            }
            Value::Home(home) => {
                for (to, from) in to.iter().zip(home.words()) {
                    match from {
                        Word::Sgpr(sgpr) => out.word(to, Register::Sgpr(sgpr))?,
                        Word::Lane(vgpr, lane) => {
                            let from = Register::Vgpr(vgpr);
                            out.text(&format!("v_readlane_b32 {to}, {from}, {lane}"))?;
                        }
                    }
                }
            }
            Value::Beyond { base, distance } => {
                let (low, high) = pair(to)?;
                let (base_low, base_high) = pair(base)?;
                out.text(&format!("s_add_u32 {low}, {base_low}, {}", dialect::number(distance)))?;
                out.text(&format!("s_addc_u32 {high}, {base_high}, 0"))?;
            }
            Value::Address(of) => match to.first {
                Register::Sgpr(destination) => {
                    out.code.pieces.push(Piece::Address { destination, of: Reference::Data(of) })
                }
                _ => return Err(Refusal::Value("an address is passed in SGPRs".into())),
            },
        }
        Ok(())
    }

    /// Results, and everything back.
    fn behind(&self, out: &mut Emitter<'_>) -> Result<(), Refusal> {
        let (plan, dialect) = (self.plan, self.dialect);
        let mut exec = plan.exec.map(|place| place.to_string());
        if let Some(exec) = &exec {
            out.text(&dialect.move_mask(dialect.exec(), exec))?;
        }
        // SCC and EXEC come last: what gives the others back needs them.
        let mut last = Vec::new();
        for (output, place) in self.call.body.outputs.iter().zip(self.call.results) {
            let from = plan.renaming.range(*output);
            for (to, from) in place.iter().zip(from.iter()) {
                match to {
                    Register::Scc | Register::ExecLo | Register::ExecHi => last.push((to, from)),
                    _ => out.word(to, from)?,
                }
            }
        }
        if !plan.vgprs.is_empty() {
            out.text(&dialect.move_mask(dialect.exec(), "-1"))?;
            for (vgpr, place) in &plan.vgprs {
                let vgpr = Register::Vgpr(*vgpr);
                match (place, plan.address) {
                    (Refuge::AccVgpr(place), _) => out.word(vgpr, Register::AccVgpr(*place))?,
                    (Refuge::Scratch(slot), Some(address)) => {
                        out.lines(&slot.load(dialect, vgpr, address))?;
                    }
                    (Refuge::Scratch(_), None) => {}
                }
            }
            if plan.address.is_some() {
                for wait in counter::waits(self.target, &[(Counter::Vmcnt, 0)]).lines() {
                    out.text(wait)?;
                }
            }
            if let Some(exec) = exec.take() {
                out.text(&dialect.move_mask(dialect.exec(), &exec))?;
            }
        }
        for (register, place) in &plan.special {
            out.word(*register, *place)?;
        }
        for (to, from) in last {
            out.word(to, from)?;
        }
        if let Some(place) = plan.scc {
            out.text(&dialect::restore_scc(place))?;
        }
        for (sgpr, vgpr, lane) in &plan.sgprs {
            out.text(&format!(
                "v_readlane_b32 {}, {}, {lane}",
                Register::Sgpr(*sgpr),
                Register::Vgpr(*vgpr)
            ))?;
        }
        Ok(())
    }
}

fn pair(range: RegisterRange) -> Result<(Register, Register), Refusal> {
    let mut words = range.iter();
    match (words.next(), words.next()) {
        (Some(low), Some(high)) => Ok((low, high)),
        _ => Err(Refusal::Value(format!("an address takes two registers, {range} is one"))),
    }
}

/// Code as it grows, one instruction a piece.
struct Emitter<'a> {
    assembler: &'a mut Assembler,
    code: Code,
}

impl Emitter<'_> {
    fn text(&mut self, text: &str) -> Result<(), Refusal> {
        let bytes = self.assembler.assemble(text)?;
        self.code.pieces.push(Piece::Bytes(bytes.to_vec()));
        Ok(())
    }

    fn lines(&mut self, lines: &[String]) -> Result<(), Refusal> {
        lines.iter().try_for_each(|line| self.text(line))
    }

    fn word(&mut self, to: Register, from: Register) -> Result<(), Refusal> {
        match dialect::word_move(to, from) {
            Some(text) => self.text(&text),
            None => Err(Refusal::Value(format!("{from} cannot be moved to {to}"))),
        }
    }

    fn constant(&mut self, to: Register, value: u32) -> Result<(), Refusal> {
        let (text, number) = dialect::constant(to, value);
        let bytes = match number {
            Some(number) => self.assembler.assemble_number(&text, number)?,
            None => self.assembler.assemble(&text)?.to_vec(),
        };
        self.code.pieces.push(Piece::Bytes(bytes));
        Ok(())
    }
}
