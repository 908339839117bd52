//! Emits register plans as code.

use super::dialect::{self, Dialect};
use super::indexed;
use super::plan::{RegisterPlan, SpillSlot, SpilledSgpr};
use super::point::{CallRefusal, SiteCall};
use super::reserved::ReservedWord;
use super::value::InputSource;
use crate::hook::{Assembler, Body, Mask, Renaming};
use crate::layout::{InsertedCode, Piece, Reference};
use crate::registers::Component;
use flipwave_isa::counter::{Counter, Counters};
use flipwave_isa::{Register, RegisterRange};
use std::ops::Range;

/// Everything that the code of a call in a component depends on, except constants, which are replaced
/// with examples.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct CallPattern {
    /// Address of the body, which identifies it: bodies do not move while code is generated.
    pub body: *const Body,
    /// Registers for each output of the body.
    pub results: Vec<RegisterRange>,
    /// The lanes that the hook runs in.
    pub mask: Mask,
    /// Required waits: counters with their maximum values.
    pub waits: Vec<(Counter, u8)>,
    /// `true` if GPR-index mode is on at the site.
    pub in_index_mode: bool,
    /// The register plan.
    pub plan: RegisterPlan,
}

/// The code of a pattern, with holes for constants.
#[derive(Clone, Debug, Default)]
pub struct Template {
    code: InsertedCode,
    holes: Vec<Hole>,
}

/// The field of a constant.
#[derive(Clone, Debug)]
struct Hole {
    piece: usize,
    /// Byte range of the field in the piece.
    field: Range<usize>,
    /// The input of the body and the word of its value that the field holds.
    word: InputWord,
}

/// A word of an input of the body.
#[derive(Clone, Copy, Debug)]
struct InputWord {
    input: usize,
    word: u8,
}

impl Template {
    /// The code with the constants of `values`, whose pattern must be that of the template.
    pub fn fill(&self, values: &[InputSource]) -> InsertedCode {
        let mut code = self.code.clone();
        for Hole { piece, field, word: InputWord { input, word } } in &self.holes {
            let Piece::Bytes(bytes) = &mut code.pieces[*piece] else {
                unreachable!("a constant is in an instruction");
            };
            let number = values[*input].number(*word).to_le_bytes();
            bytes[field.clone()].copy_from_slice(&number[..field.len()]);
        }
        code
    }
}

/// Context for emitting the code of a pattern.
pub struct Emission<'a> {
    /// The target's wait counters.
    pub counters: Counters,
    /// Syntax of the target.
    pub dialect: Dialect,
    /// The component of the site.
    pub component: &'a Component,
    /// A call with the pattern.
    pub call: &'a SiteCall<'a>,
    /// The pattern.
    pub pattern: &'a CallPattern,
    /// Maps the registers of the body to those of the pattern.
    pub renaming: Renaming,
}

impl Emission<'_> {
    /// Emits the code of the pattern.
    ///
    /// # Errors
    /// [`CallRefusal`] if a value is not available, or an instruction does not accept its registers.
    pub fn template(&self, assembler: &mut Assembler) -> Result<Template, CallRefusal> {
        let mut out = CallEmitter { assembler, template: Template::default() };
        self.emit(&mut out)?;
        Ok(out.template)
    }

    fn emit(&self, out: &mut CallEmitter<'_>) -> Result<(), CallRefusal> {
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
            // Sets the MODE bit; the operands to index and the index are still in M0.
            out.text("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 27, 1), 1")?;
        }
        Ok(())
    }

    /// Emits saves, the hook's EXEC mask, and arguments.
    fn before(&self, out: &mut CallEmitter<'_>) -> Result<(), CallRefusal> {
        let (plan, dialect) = (&self.pattern.plan, self.dialect);
        for SpilledSgpr { sgpr, vgpr, lane } in &plan.sgprs {
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
                    (SpillSlot::AccVgpr(place), _) => out.word(Register::AccVgpr(*place), vgpr)?,
                    (SpillSlot::Scratch(slot), Some(address)) => {
                        out.lines(&slot.store(dialect, vgpr, address))?;
                    }
                    (SpillSlot::Scratch(_), None) => {}
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
        // Reads SCC before other arguments clobber it.
        let is_scc = |value: &InputSource| match value {
            InputSource::Registers(range) => range.first == Register::Scc,
            _ => false,
        };
        let mut inputs: Vec<usize> = (0..plan.values.len()).collect();
        inputs.sort_by_key(|input| !is_scc(&plan.values[*input]));
        for input in inputs {
            let to = self.call.body.inputs[input];
            // Inputs that the body does not read have no registers.
            if !self.call.body.groups.iter().any(|group| group.range.overlaps(to)) {
                continue;
            }
            self.input(out, input, self.renaming.range(to))?;
        }
        Ok(())
    }

    /// Moves the value of an input to the registers in which the body expects it.
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
            // The current EXEC may differ from the program's.
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
                let from = from.ok_or_else(|| {
                    CallRefusal::Value("waves of this size have no exec_hi".into())
                })?;
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
                    out.number(&dialect::constant(to, number), number, InputWord { input, word })?;
                }
            }
            InputSource::Reserved(value) => {
                for (to, from) in to.iter().zip(value.words()) {
                    match from {
                        ReservedWord::Sgpr(sgpr) => out.word(to, Register::Sgpr(sgpr))?,
                        ReservedWord::Lane(vgpr, lane) => {
                            let from = Register::Vgpr(vgpr);
                            out.text(&format!("v_readlane_b32 {to}, {from}, {lane}"))?;
                        }
                    }
                }
            }
            InputSource::Offset { base, distance } => {
                let (low, high) = pair(to)?;
                let (base_low, base_high) = pair(base)?;
                let text = format!("s_add_u32 {low}, {base_low}, {}", dialect::number(distance));
                out.number(&text, distance, InputWord { input, word: 0 })?;
                out.text(&format!("s_addc_u32 {high}, {base_high}, 0"))?;
            }
            InputSource::Address(address) => match to.first {
                Register::Sgpr(destination) => {
                    let to = Reference::Data(address);
                    out.template.code.pieces.push(Piece::Address { destination, to });
                }
                _ => return Err(CallRefusal::Value("addresses are passed in SGPRs".into())),
            },
        }
        Ok(())
    }

    /// Emits results and restores.
    fn after(&self, out: &mut CallEmitter<'_>) -> Result<(), CallRefusal> {
        let (plan, dialect) = (&self.pattern.plan, self.dialect);
        let exec = plan.exec.map(|place| place.to_string());
        let writes_all_lanes = self.pattern.mask == Mask::All;
        let results_mask = if writes_all_lanes { Some("-1") } else { exec.as_deref() };
        if let Some(mask) = results_mask {
            out.text(&dialect.move_mask(dialect.exec(), mask))?;
        }
        // SCC and EXEC are written last, because restoring the other registers uses them.
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
                    (SpillSlot::AccVgpr(place), _) => out.word(vgpr, Register::AccVgpr(*place))?,
                    (SpillSlot::Scratch(slot), Some(address)) => {
                        out.lines(&slot.load(dialect, vgpr, address))?;
                    }
                    (SpillSlot::Scratch(_), None) => {}
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
        if let Some(exec) = exec.filter(|_| writes_all_lanes || !plan.vgprs.is_empty()) {
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
        for SpilledSgpr { sgpr, vgpr, lane } in &plan.sgprs {
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
        _ => Err(CallRefusal::Value(format!("an address needs two registers, not {range}"))),
    }
}

/// Appends to a template, one instruction per piece.
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

    /// Appends an instruction with a constant given by a word of an input.
    fn number(&mut self, text: &str, number: u32, word: InputWord) -> Result<(), CallRefusal> {
        self.text(text)?;
        let piece = self.template.code.pieces.len() - 1;
        if dialect::is_inline(number) {
            return Ok(());
        }
        let Some(Piece::Bytes(bytes)) = self.template.code.pieces.last() else { return Ok(()) };
        // The field is in the instruction's word, or a literal after it.
        let field =
            if bytes.len() == 4 { 0..2 } else { bytes.len().saturating_sub(4)..bytes.len() };
        if bytes.get(field.clone()) != number.to_le_bytes().get(..field.len()) {
            return Err(CallRefusal::Value(format!(
                "unexpected position of the constant in `{text}`"
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
            None => Err(CallRefusal::Value(format!("cannot move {from} to {to}"))),
        }
    }
}
