//! Facts about instructions in the terms of all instruction sets.

use crate::{Argument, Class, INSTRUCTION_BYTES, Inst, PREDICATES, ScalarType, Space, WORDS};
use flipwave_arch::{FloatFormat, Group, Instruction, OperationName, Pc, RegisterId, RegisterRole};
use std::any::Any;

impl Inst {
    fn has_type(&self, wanted: impl Fn(ScalarType) -> bool) -> bool {
        self.form.types.iter().any(|kind| wanted(*kind))
    }

    fn is_arithmetic(&self) -> bool {
        use Class::{Arithmetic, Compare, Convert, Lanes, Logic, Move};
        matches!(self.form.class(), Some(Arithmetic | Compare | Convert | Lanes | Logic | Move))
    }
}

impl Instruction for Inst {
    fn pc(&self) -> Pc {
        self.pc
    }

    fn size(&self) -> u8 {
        INSTRUCTION_BYTES
    }

    /// PTX is text.
    fn encoding_dwords(&self) -> u8 {
        0
    }

    fn text(&self) -> &str {
        Inst::text(self)
    }

    fn operation(&self) -> OperationName {
        Inst::operation(self)
    }

    /// PTX has no scalar unit and no scalar registers: `salu`, `smem` and `scalar_register` are empty.
    fn is_in(&self, group: Group) -> bool {
        use ScalarType::{Bf16, Bf16x2, F16, F16x2, F32, F32x2, F64};
        let class = self.form.class();
        let writes = |class: &'static flipwave_arch::RegisterClass| {
            self.accesses().destinations.iter().any(|register| register.class.rank == class.rank)
        };
        let has_numbers = self.is_arithmetic() || class == Some(Class::Matrix);
        match group {
            Group::All => true,
            Group::Salu | Group::Smem | Group::ScalarRegister => false,
            Group::Atomic => class == Some(Class::Atomic),
            Group::Load => class == Some(Class::Load),
            Group::Fp64 => has_numbers && self.has_type(|kind| kind == F64),
            Group::Fp32 => has_numbers && self.has_type(|kind| matches!(kind, F32 | F32x2)),
            Group::Fp16 => {
                has_numbers && self.has_type(|kind| matches!(kind, F16 | F16x2 | Bf16 | Bf16x2))
            }
            Group::Integer => self.is_arithmetic() && !self.has_type(ScalarType::is_float),
            Group::Compare => writes(&PREDICATES) && !writes(&WORDS),
            Group::VectorRegister => writes(&WORDS),
            group => self.primary_group() == group,
        }
    }

    fn primary_group(&self) -> Group {
        use Class::{Atomic, Copy, Load, Matrix, Reduction, Store, Texture};
        match self.form.class() {
            Some(Matrix) if !self.accesses_memory() => Group::Matrix,
            Some(Load | Store | Atomic | Reduction | Copy | Texture | Matrix) => {
                if self.form.accesses(Space::Shared) { Group::Lds } else { Group::Vmem }
            }
            _ if self.is_arithmetic() => Group::Valu,
            _ => Group::All,
        }
    }

    fn conditional_target(&self) -> Option<Pc> {
        let [Argument::Label(target)] = self.operands[..] else { return None };
        (self.form.opcode() == "bra" && self.guard.is_some()).then_some(target)
    }

    fn accesses_memory(&self) -> bool {
        use Class::{Atomic, Copy, Load, Matrix, Reduction, Store, Texture};
        match self.form.class() {
            Some(Load | Store | Atomic | Reduction | Copy | Texture) | None => true,
            Some(Matrix) => {
                self.operands.iter().any(|operand| matches!(operand, Argument::Memory(_)))
            }
            _ => self.form.opcode() == "mbarrier",
        }
    }

    fn synchronizes(&self) -> bool {
        self.form.class() == Some(Class::Synchronization)
    }

    fn ends_wave(&self) -> bool {
        self.form.opcode() == "exit" && self.guard.is_none()
    }

    fn is_executed_by_lanes(&self) -> bool {
        true
    }

    fn registers(&self, role: RegisterRole) -> Vec<RegisterId> {
        let all = self.accesses();
        let is_load = matches!(self.form.class(), Some(Class::Load | Class::Texture));
        match role {
            RegisterRole::Destination => all.destinations.clone(),
            RegisterRole::Source => all.sources.clone(),
            RegisterRole::LoadAddress if is_load => all.addresses.clone(),
            RegisterRole::StoreAddress if !is_load => all.addresses.clone(),
            RegisterRole::StoreValue => all.values.clone(),
            RegisterRole::LoadAddress | RegisterRole::StoreAddress => Vec::new(),
        }
    }

    fn float_formats(&self, register: RegisterId, role: RegisterRole) -> Vec<FloatFormat> {
        let kind = match role {
            RegisterRole::Destination => self.form.result(),
            RegisterRole::Source if self.form.class() != Some(Class::Convert) => self.form.source(),
            RegisterRole::StoreValue => self.form.source(),
            _ => None,
        };
        if register.class.rank != WORDS.rank || self.accesses().addresses.contains(&register) {
            return Vec::new();
        }
        match kind {
            Some(ScalarType::F16) => vec![FloatFormat::F16],
            Some(ScalarType::Bf16) => vec![FloatFormat::Bf16],
            Some(ScalarType::F16x2) => vec![FloatFormat::F16, FloatFormat::F16High],
            Some(ScalarType::Bf16x2) => vec![FloatFormat::Bf16, FloatFormat::Bf16High],
            Some(ScalarType::F32 | ScalarType::F32x2 | ScalarType::Tf32) => vec![FloatFormat::F32],
            Some(ScalarType::F64) => {
                let mut is_first = false;
                for operand in &self.operands {
                    crate::inst::for_each_register(operand, &mut |found, _| {
                        is_first |= found.first == register && found.words() == 2;
                    });
                }
                is_first.then_some(FloatFormat::F64).into_iter().collect()
            }
            _ => Vec::new(),
        }
    }

    fn for_each_read(&self, visit: &mut dyn FnMut(RegisterId)) {
        self.accesses().sources.iter().copied().for_each(visit);
    }

    fn for_each_written(&self, visit: &mut dyn FnMut(RegisterId)) {
        self.accesses().destinations.iter().copied().for_each(visit);
    }

    /// Calls save and restore the registers of a function that calls itself.
    fn reaches_unknown_registers(&self) -> bool {
        matches!(self.form.class(), None | Some(Class::Call)) || self.form.opcode() == "ret"
    }

    fn reads_other_lanes(&self) -> bool {
        matches!(self.form.class(), Some(Class::Lanes | Class::Matrix) | None)
    }

    /// A guard leaves the old value in some lanes.
    fn overwrites_some_lanes(&self) -> bool {
        self.guard.is_some() || self.form.class().is_none()
    }

    fn boxed(&self) -> Box<dyn Instruction> {
        Box::new(self.clone())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
