//! Emission of instructions with the code inserted before, after and instead of them.

use super::{LayoutEmitter, Stub};
use crate::flow::{IndexRange, InstIndex};
use crate::layout::encoding::{first_word, with_literal_source};
use crate::layout::stream::{InstUnit, Label};
use crate::layout::{InsertPurpose, LayoutError, Placement, hints};
use crate::point::ProgramPoint;
use flipwave_isa::{Inst, Opcode, Pc};

impl<'a> LayoutEmitter<'a> {
    /// Emits consecutive instructions of a function with a placement.
    pub(super) fn units(
        &mut self,
        range: IndexRange<InstIndex>,
        placement: Placement,
    ) -> Result<(), LayoutError> {
        let stays = placement == Placement::Trampoline;
        let mut after = None;
        for (index, inst) in self.source.program.insts_of(range) {
            if self.falls_through && after.is_some_and(|after| after != inst.pc) {
                let pc = after.unwrap_or(inst.pc);
                let reason = format!("no known instruction here, up to {}", inst.pc);
                return Err(self.unmovable(index, pc, reason));
            }
            self.unit(index, inst, stays.then_some(index))?;
            after = Some(Pc(inst.pc.0.saturating_add(inst.size.into())));
        }
        Ok(())
    }

    /// Emits an instruction and its insertions. `site` is the instruction if its function stays.
    fn unit(
        &mut self,
        index: InstIndex,
        inst: &Inst,
        site: Option<InstIndex>,
    ) -> Result<(), LayoutError> {
        let edits = self.source.edits;
        if index >= self.group_end {
            self.stream.island_site(self.falls_through);
        }
        let start = self.stream.position();
        if let Some(code) = edits.code.get(&ProgramPoint::before(index)) {
            self.code(code, InsertPurpose::Point(ProgramPoint::before(index)))?;
        }
        let control = self.source.program.control(inst);
        let mut position = None;
        let mut taken = None;
        if let Some(code) = edits.code.get(&ProgramPoint::instead(index)) {
            self.code(code, InsertPurpose::Point(ProgramPoint::instead(index)))?;
            self.falls_through = true;
        } else if self.dropped.contains(&index) {
            self.falls_through = true;
        } else {
            position = Some(self.stream.position());
            taken = self.original(index, inst, site)?;
            self.falls_through = control.may_fall_through();
            let group_end = InstIndex(index.0 + 1 + hints::group(inst));
            self.group_end = self.group_end.max(group_end);
        }
        let after = edits.code.get(&ProgramPoint::after(index));
        if let Some(to) = taken.filter(|_| !inst.flags.call)
            && (after.is_some() || self.far_target(to).is_some())
        {
            let branch = self.stream.branches.len().saturating_sub(1);
            self.stubs.push(Stub { branch, at: index, to, site });
        }
        if let Some(code) = after {
            if position.is_some() && !control.has_known_successor() {
                return Err(LayoutError::NoWayBack { pc: inst.pc, text: inst.text.clone() });
            }
            if self.falls_through {
                self.code(code, InsertPurpose::Point(ProgramPoint::after(index)))?;
            }
        }
        let end = self.stream.position();
        self.stream.close_span(start, index);
        self.units[index] = Some(InstUnit { start, inst: position, end });
        Ok(())
    }

    /// Emits the instruction itself. Returns the target of a direct branch.
    fn original(
        &mut self,
        index: InstIndex,
        inst: &Inst,
        site: Option<InstIndex>,
    ) -> Result<Option<Label>, LayoutError> {
        let bytes = self
            .source
            .object
            .bytes_at(inst.pc, inst.size.into())
            .ok_or(LayoutError::NoBytes { pc: inst.pc })?;
        if let Some(reason) = self.fixed_reason(index, inst) {
            if site.is_none() {
                return Err(self.unmovable(index, inst.pc, reason.to_owned()));
            }
            self.refuse(index, reason);
        }
        let Some(word) = first_word(bytes) else {
            return Err(LayoutError::NoBytes { pc: inst.pc });
        };
        if let Some(target) = inst.branch_target {
            let to = self.branch_label(index, inst, target, site.is_some())?;
            self.stream.branch(word, to, site);
            return Ok(Some(to));
        }
        match self.source.chains.constant_source(index, inst) {
            Some(source) => {
                self.stream.word(with_literal_source(word, source));
                self.stream.word(0);
            }
            None => self.stream.bytes.extend_from_slice(bytes),
        }
        Ok(None)
    }

    fn branch_label(
        &self,
        from: InstIndex,
        inst: &Inst,
        target: Pc,
        stays: bool,
    ) -> Result<Label, LayoutError> {
        match self.source.lookup.at(target) {
            Some(to) if inst.flags.call => Ok(self.source.lookup.code_label(to)),
            Some(to) => Ok(self.source.lookup.label_from(from, to)),
            None if stays => Ok(Label::address(target.0)),
            None => Err(LayoutError::BranchTarget { pc: inst.pc, target }),
        }
    }

    /// Emits the stubs of the function after its code.
    pub(super) fn stubs(&mut self) -> Result<(), LayoutError> {
        let stubs = std::mem::take(&mut self.stubs);
        let skip = (self.falls_through && !stubs.is_empty()).then_some(self.stream.branches.len());
        if skip.is_some() {
            self.leave(Label::position(0), None)?;
        }
        for Stub { branch, at, to, site } in stubs {
            self.stream.island_site(false);
            let start = self.stream.position();
            let point = ProgramPoint::after(at);
            if let Some(code) = self.source.edits.code.get(&point) {
                self.code(code, InsertPurpose::Point(point))?;
            }
            self.leave(to, site)?;
            self.stream.close_span(start, at);
            self.stream.branches[branch].to = Label::position(start);
        }
        let after = self.stream.position();
        if let Some(skip) = skip {
            self.stream.branches[skip].to = Label::position(after);
            self.falls_through = true;
        }
        Ok(())
    }

    fn unmovable(&self, index: InstIndex, pc: Pc, reason: String) -> LayoutError {
        let function = self.source.lookup.function_of(index);
        let function = self.source.program.functions[function].name.clone();
        LayoutError::Unmovable { function, pc, reason }
    }

    /// Why an instruction cannot be moved, if it cannot.
    pub(super) fn fixed_reason(&self, index: InstIndex, inst: &Inst) -> Option<&'static str> {
        match inst.operation.opcode() {
            Opcode::SGetpc if !self.source.chains.has(index) => {
                Some("the use of its own address is unknown")
            }
            Opcode::SCbranchFork | Opcode::SCbranchJoin => {
                Some("forks store code addresses in registers")
            }
            Opcode::SPrefetchPcRel => Some("it refers to memory relative to its own address"),
            _ => None,
        }
    }
}
