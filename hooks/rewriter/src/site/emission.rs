//! Plans as code.

use super::dialect::{self, Dialect};
use super::homes::HomeWord;
use super::indexed;
use super::plan::{Refuge, RegisterPlan};
use super::point::{CallRefusal, SiteCall};
use super::value::InputSource;
use crate::hook::{Assembler, Body, Mask, Renaming};
use crate::layout::{InsertedCode, Piece, Reference};
use crate::registers::Component;
use flipwave_isa::counter::{Counter, Counters};
use flipwave_isa::{Register, RegisterRange};
use std::ops::Range;

/// All that the code of a call in a component depends on, but for the numbers that it is given: in
/// their place are examples.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallPattern {
    /// Where the body lies: its identity, since bodies stay while code is made.
    pub body: *const Body,
    /// A place for each output of the body.
    pub results: Vec<RegisterRange>,
    /// The lanes that the hook runs in.
    pub mask: Mask,
    /// What counters must come to first.
    pub waits: Vec<(Counter, u8)>,
    /// Whether vector instructions index registers at the site.
    pub in_index_mode: bool,
    /// Registers.
    pub plan: RegisterPlan,
}

/// The code of a pattern.
#[derive(Clone, Debug, Default)]
pub struct Template {
    code: InsertedCode,
    holes: Vec<Hole>,
}

/// Where a number goes.
#[derive(Clone, Debug)]
struct Hole {
    piece: usize,
    /// The bytes of the piece.
    field: Range<usize>,
    /// The input of the body whose number it is, and which word.
    word: (usize, u8),
}

impl Template {
    /// The code with the numbers of `values`, which are of its pattern.
    pub fn fill(&self, values: &[InputSource]) -> InsertedCode {
        let mut code = self.code.clone();
        for Hole { piece, field, word: (input, word) } in &self.holes {
            let Piece::Bytes(bytes) = &mut code.pieces[*piece] else {
                unreachable!("a number stands in an instruction");
            };
            let number = values[*input].number(*word).to_le_bytes();
            bytes[field.clone()].copy_from_slice(&number[..field.len()]);
        }
        code
    }
}

/// What the code of a pattern is made with.
pub struct Emission<'a> {
    /// The target's wait counters.
    pub counters: Counters,
    /// How it spells lane masks.
    pub dialect: Dialect,
    /// The functions that the site belongs to.
    pub component: &'a Component,
    /// A call of the pattern.
    pub call: &'a SiteCall<'a>,
    /// The pattern.
    pub pattern: &'a CallPattern,
    /// The body's registers by those of the pattern.
    pub renaming: Renaming,
}

impl Emission<'_> {
    /// The code of the pattern.
    ///
    /// # Errors
    /// [`CallRefusal`] where a value cannot be had, or an instruction does not take its registers.
    pub fn template(&self, assembler: &mut Assembler) -> Result<Template, CallRefusal> {
        let mut out = CallEmitter { assembler, template: Template::default() };
        self.whole(&mut out)?;
        Ok(out.template)
    }

    /// All of it.
    fn whole(&self, out: &mut CallEmitter<'_>) -> Result<(), CallRefusal> {
        let pattern = self.pattern;
        if !pattern.waits.is_empty() {
            for wait in self.counters.wait_instructions(&pattern.waits).lines() {
                out.text(wait)?;
            }
        }
        if pattern.in_index_mode {
            out.text("s_set_gpr_idx_off")?;
        }
        self.before(out)?;
        let named = self.component.named;
        let body = self.call.body.instantiate(
            &self.renaming,
            out.assembler,
            self.call.data,
            |access, assembler| {
                indexed::access(access, indexed::reachable(access.file, named), assembler)
            },
        )?;
        out.template.code.append(body);
        self.after(out)?;
        if pattern.in_index_mode {
            // The one bit of MODE: what is indexed, and by how much, is still in M0.
            out.text("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 27, 1), 1")?;
        }
        Ok(())
    }

    /// Saves, EXEC as the hook wants it, and arguments.
    fn before(&self, out: &mut CallEmitter<'_>) -> Result<(), CallRefusal> {
        let (plan, dialect) = (&self.pattern.plan, self.dialect);
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
        let mask = match self.pattern.mask {
            Mask::Single => Some("1".to_owned()),
            Mask::Whole | Mask::All => Some("-1".to_owned()),
            Mask::Guest if plan.vgprs.is_empty() => None,
            Mask::Guest => plan.exec.map(|place| place.to_string()),
        };
        if let Some(mask) = mask {
            out.text(&dialect.move_mask(dialect.exec(), &mask))?;
        }
        // SCC is read before other arguments may lose it.
        let is_scc = |value: &InputSource| matches!(value, InputSource::Registers(range) if range.first == Register::Scc);
        let mut inputs: Vec<usize> = (0..plan.values.len()).collect();
        inputs.sort_by_key(|input| !is_scc(&plan.values[*input]));
        for input in inputs {
            let to = self.call.body.inputs[input];
            // What the body does not read has no registers there.
            if !self.call.body.groups.iter().any(|group| group.range.overlaps(to)) {
                continue;
            }
            self.input(out, input, self.renaming.range(to))?;
        }
        Ok(())
    }

    /// The value of an input into the registers where the body expects it.
    fn input(
        &self,
        out: &mut CallEmitter<'_>,
        input: usize,
        to: RegisterRange,
    ) -> Result<(), CallRefusal> {
        let words = || to.iter().zip(0u8..);
        let value = self.pattern.plan.values[input];
        match value {
            InputSource::Registers(from) if from == to => {}
            // EXEC may be another by now.
            InputSource::Registers(from) => {
                let half = |exec: RegisterRange, word| {
                    let first = exec.first.offset(word)?;
                    Some(RegisterRange::new(first, from.words))
                };
                let from = match (from.first, self.pattern.plan.exec) {
                    (Register::ExecLo, Some(exec)) => half(exec, 0),
                    (Register::ExecHi, Some(exec)) => half(exec, 1),
                    _ => Some(from),
                };
                let from =
                    from.ok_or_else(|| CallRefusal::Value("EXEC has no such half".into()))?;
                for (to, at) in words() {
                    match from.first.offset(at).filter(|_| at < from.words) {
                        Some(from) => out.word(to, from)?,
                        None => out.text(&dialect::constant(to, 0))?,
                    }
                }
            }
            InputSource::Constant(_) => {
                for (to, word) in words() {
                    let number = value.number(word);
                    out.number(&dialect::constant(to, number), number, (input, word))?;
                }
            }
            InputSource::Home(home) => {
                for (to, from) in to.iter().zip(home.words()) {
                    match from {
                        HomeWord::Sgpr(sgpr) => out.word(to, Register::Sgpr(sgpr))?,
                        HomeWord::Lane(vgpr, lane) => {
                            let from = Register::Vgpr(vgpr);
                            out.text(&format!("v_readlane_b32 {to}, {from}, {lane}"))?;
                        }
                    }
                }
            }
            InputSource::Beyond { base, distance } => {
                let (low, high) = pair(to)?;
                let (base_low, base_high) = pair(base)?;
                let text = format!("s_add_u32 {low}, {base_low}, {}", dialect::number(distance));
                out.number(&text, distance, (input, 0))?;
                out.text(&format!("s_addc_u32 {high}, {base_high}, 0"))?;
            }
            InputSource::Address(address) => match to.first {
                Register::Sgpr(destination) => {
                    let to = Reference::Data(address);
                    out.template.code.pieces.push(Piece::Address { destination, to });
                }
                _ => return Err(CallRefusal::Value("an address is passed in SGPRs".into())),
            },
        }
        Ok(())
    }

    /// Results, and everything back.
    fn after(&self, out: &mut CallEmitter<'_>) -> Result<(), CallRefusal> {
        let (plan, dialect) = (&self.pattern.plan, self.dialect);
        let exec = plan.exec.map(|place| place.to_string());
        let is_everywhere = self.pattern.mask == Mask::All;
        let of_results = if is_everywhere { Some("-1") } else { exec.as_deref() };
        if let Some(mask) = of_results {
            out.text(&dialect.move_mask(dialect.exec(), mask))?;
        }
        // SCC and EXEC come last: what gives the others back needs them.
        let mut last = Vec::new();
        for (output, place) in self.call.body.outputs.iter().zip(&self.pattern.results) {
            let from = self.renaming.range(*output);
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
                for wait in
                    self.counters.wait_instructions(&[(self.counters.load_counter(), 0)]).lines()
                {
                    out.text(wait)?;
                }
            }
        }
        if let Some(exec) = exec.filter(|_| is_everywhere || !plan.vgprs.is_empty()) {
            out.text(&dialect.move_mask(dialect.exec(), &exec))?;
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

fn pair(range: RegisterRange) -> Result<(Register, Register), CallRefusal> {
    let mut words = range.iter();
    match (words.next(), words.next()) {
        (Some(low), Some(high)) => Ok((low, high)),
        _ => Err(CallRefusal::Value(format!("an address takes two registers, {range} is one"))),
    }
}

/// A template as it grows, one instruction a piece.
struct CallEmitter<'a> {
    assembler: &'a mut Assembler,
    template: Template,
}

impl CallEmitter<'_> {
    fn text(&mut self, text: &str) -> Result<(), CallRefusal> {
        let bytes = self.assembler.assemble(text)?;
        self.template.code.pieces.push(Piece::bytes(bytes));
        Ok(())
    }

    /// An instruction with a number that is given by a word of an input.
    fn number(&mut self, text: &str, number: u32, word: (usize, u8)) -> Result<(), CallRefusal> {
        self.text(text)?;
        let piece = self.template.code.pieces.len() - 1;
        if dialect::is_inline(number) {
            return Ok(());
        }
        let Some(Piece::Bytes(bytes)) = self.template.code.pieces.last() else { return Ok(()) };
        // In the instruction's word, or a literal after it.
        let field =
            if bytes.len() == 4 { 0..2 } else { bytes.len().saturating_sub(4)..bytes.len() };
        if bytes.get(field.clone()) != number.to_le_bytes().get(..field.len()) {
            return Err(CallRefusal::Value(format!(
                "`{text}` has its number in an unexpected place"
            )));
        }
        self.template.holes.push(Hole { piece, field, word });
        Ok(())
    }

    fn lines(&mut self, lines: &[String]) -> Result<(), CallRefusal> {
        lines.iter().try_for_each(|line| self.text(line))
    }

    fn word(&mut self, to: Register, from: Register) -> Result<(), CallRefusal> {
        match dialect::word_move(to, from) {
            Some(text) => self.text(&text),
            None => Err(CallRefusal::Value(format!("{from} cannot be moved to {to}"))),
        }
    }
}
