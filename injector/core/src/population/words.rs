//! The words that one execution of an instruction offers to a fault.

use crate::fault::{Fault, FaultModel, FaultTarget, FloatFormat};
use crate::site::{Place, SumPlace};
use flipwave_isa::{
    Class, DataType, Encoding, Family, Inst, MemoryKind, Register, RegisterRange, RegisterSet,
    Role, Value,
};
use flipwave_sim::{MatrixElement, ProductShape, SumPart, SumType};

/// Consecutive places of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    /// The first.
    pub first: Place,
    /// How many there are.
    pub count: u64,
    /// The number of which each is the first word, where the fault strikes numbers.
    pub format: Option<FloatFormat>,
}

/// What waves of a kernel have, besides what their instructions name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resources {
    /// Registers of the allocation.
    pub registers: Vec<RegisterRange>,
    /// LDS of a workgroup, in bytes.
    pub lds_bytes: u64,
    /// Scratch of a lane, in bytes.
    pub scratch_bytes: u64,
    /// The program's buffers, in bytes.
    pub buffers: Vec<u64>,
}

impl Words {
    fn of(first: Place, count: u64) -> Words {
        Words { first, count, format: None }
    }

    /// Place number `index`, below [`Words::count`].
    pub fn place(&self, index: u64) -> Option<Place> {
        let small = u8::try_from(index);
        Some(match self.first {
            Place::Register(first) => Place::Register(first.offset(small.ok()?)?),
            Place::Source(first) => Place::Source(first.offset(small.ok()?)?),
            Place::Lds(first) => Place::Lds(first + u32::try_from(4 * index).ok()?),
            Place::Scratch(first) => Place::Scratch(first + u32::try_from(4 * index).ok()?),
            Place::Memory { buffer, offset } => {
                Place::Memory { buffer, offset: offset + 4 * index }
            }
            Place::Encoding(first) => Place::Encoding(first + small.ok()?),
            Place::Branch => Place::Branch,
            Place::ProgramCounter(first) => Place::ProgramCounter(first + small.ok()?),
            Place::Destination(first) => Place::Destination(first + small.ok()?),
            Place::Sum(first) => {
                Place::Sum(first.at_column(first.element.column.checked_add(small.ok()?)?))
            }
        })
    }
}

/// The words of `inst` that `fault` can strike, in the order in which they are numbered: registers
/// in [`Register`]'s order, vector before scalar and lower numbers before higher. Of registers only
/// those in one of `registers`, if there are any.
pub(crate) fn words(
    inst: &Inst,
    fault: &Fault,
    resources: &Resources,
    registers: &[RegisterRange],
) -> Vec<Words> {
    let named = |make: fn(Register) -> Place, found: Vec<Register>| -> Vec<Words> {
        let mut found: Vec<Register> = found
            .into_iter()
            .filter(|own| can_be_struck(*own))
            .filter(|own| registers.is_empty() || registers.iter().any(|all| all.contains(*own)))
            .collect();
        found.sort_unstable();
        found.dedup();
        let is_number = |own: &Register| !formats(inst, *own, fault.target).is_empty();
        let by_format = match fault.model {
            FaultModel::RelativeError(_) => true,
            FaultModel::DrawnValues(_) => found.iter().any(is_number),
            _ => false,
        };
        let formats = |own: Register| {
            if by_format { formats(inst, own, fault.target) } else { vec![None] }
        };
        found
            .into_iter()
            .flat_map(|own| formats(own).into_iter().map(move |format| (own, format)))
            .map(|(own, format)| Words { first: make(own), count: 1, format })
            .collect()
    };
    let memory = || inst.memory_operand();
    match fault.target {
        FaultTarget::DestinationRegister => {
            named(Place::Register, destination_registers(inst).collect())
        }
        FaultTarget::SourceOperand => named(Place::Source, source_registers(inst)),
        FaultTarget::Register => {
            let all = resources.registers.iter().flat_map(|range| range.iter());
            named(Place::Register, all.collect())
        }
        FaultTarget::LoadAddress | FaultTarget::StoreAddress => {
            let is_load = fault.target == FaultTarget::LoadAddress;
            let operand = memory().filter(|own| (own.access.kind == MemoryKind::Load) == is_load);
            let ranges = operand.map(|own| {
                let m0 = own.address_in_m0.then_some(RegisterRange::new(Register::M0, 1));
                [own.vaddr, own.saddr, own.resource, own.soffset, m0].into_iter().flatten()
            });
            named(Place::Source, ranges.into_iter().flatten().flat_map(|own| own.iter()).collect())
        }
        FaultTarget::StoreValue => {
            let operand = memory().filter(|own| own.access.kind != MemoryKind::Load);
            let ranges = operand.map(|own| own.stored).unwrap_or_default();
            named(Place::Source, ranges.iter().flat_map(|own| own.iter()).collect())
        }
        FaultTarget::Lds => vec![Words::of(Place::Lds(0), resources.lds_bytes / 4)],
        FaultTarget::Scratch => vec![Words::of(Place::Scratch(0), resources.scratch_bytes / 4)],
        FaultTarget::GlobalMemory => (0..)
            .zip(&resources.buffers)
            .map(|(buffer, bytes)| Words::of(Place::Memory { buffer, offset: 0 }, bytes / 4))
            .collect(),
        FaultTarget::Instruction => {
            vec![Words::of(Place::Encoding(0), u64::from(inst.size / 4))]
        }
        FaultTarget::Branch if inst.flags.conditional && inst.branch_target.is_some() => {
            vec![Words::of(Place::Branch, 1)]
        }
        FaultTarget::Branch => Vec::new(),
        FaultTarget::ProgramCounter => vec![Words::of(Place::ProgramCounter(0), 2)],
        FaultTarget::MatrixProduct
        | FaultTarget::MatrixPartialSum
        | FaultTarget::MatrixAccumulator => Vec::new(),
    }
}

/// The words of what an instruction of this shape sums up that `model` can strike: by step, block, row
/// and word, those of each row together.
pub(crate) fn words_of_sums(part: SumPart, shape: &ProductShape, model: &FaultModel) -> Vec<Words> {
    let format = match shape.sum {
        SumType::F32 => Some(FloatFormat::F32),
        SumType::F64 => Some(FloatFormat::F64),
        SumType::I32 => None,
    };
    let (format, words) = match model {
        // A number has no halves.
        FaultModel::RelativeError(_) => (format, 1),
        _ => (None, shape.words()),
    };
    let mut all = Vec::new();
    for step in shape.steps(part) {
        for block in 0..shape.blocks {
            for row in 0..shape.rows {
                let element = MatrixElement { block, row, column: 0 };
                let place = |word| Place::Sum(SumPlace { part, element, step, word });
                let count = shape.columns.into();
                all.extend((0..words).map(|word| Words { first: place(word), count, format }));
            }
        }
    }
    all
}

/// The destination registers of `inst`, in the order of its register list: every 32-bit word
/// of vector registers, scalar registers, VCC, EXEC, M0, SCC and FLAT_SCRATCH that it writes,
/// implicit ones included. MODE and trap-handler state are no destinations of programs.
pub(crate) fn destination_registers(inst: &Inst) -> impl Iterator<Item = Register> {
    inst.writes.iter().flat_map(|range| range.iter()).filter(|own| can_be_struck(*own))
}

/// Word number `number` of the results of `inst`: of its destination registers, each once, in the
/// order in which places are numbered.
pub(crate) fn result_word(inst: &Inst, number: u8) -> Option<Register> {
    let mut registers: Vec<Register> = destination_registers(inst).collect();
    registers.sort_unstable();
    registers.dedup();
    registers.get(usize::from(number)).copied()
}

/// The registers that `inst` reads: those that it names, and VCC, SCC and M0 where it reads them
/// without naming them. EXEC counts where it is an operand; that it selects the lanes of vector
/// instructions does not.
pub(crate) fn source_registers(inst: &Inst) -> Vec<Register> {
    let operands = inst.operands.iter().filter(|own| own.role == Role::Source || inst.flags.tied);
    let named: RegisterSet = operands
        .filter_map(|operand| match operand.value {
            Value::Register(range) => Some(range),
            _ => None,
        })
        .flat_map(|range| range.iter())
        .collect();
    let is_exec = |own: Register| matches!(own, Register::ExecLo | Register::ExecHi);
    let read = inst.reads.iter().flat_map(|range| range.iter());
    read.filter(|own| can_be_struck(*own) && (!is_exec(*own) || named.contains(*own))).collect()
}

/// Whether faults strike a register: MODE, trap-handler state and what only can be read they do not.
pub(crate) fn can_be_struck(register: Register) -> bool {
    matches!(
        register,
        Register::Vgpr(_)
            | Register::AccVgpr(_)
            | Register::Sgpr(_)
            | Register::VccLo
            | Register::VccHi
            | Register::ExecLo
            | Register::ExecHi
            | Register::FlatScratchLo
            | Register::FlatScratchHi
            | Register::M0
            | Register::Scc
    )
}

/// The formats of the floating-point numbers that begin in a register of `inst`, by its data type:
/// results, and operands of what is no conversion. Words of what is no such number have none.
fn formats(inst: &Inst, register: Register, target: FaultTarget) -> Vec<Option<FloatFormat>> {
    const OTHER_OPERANDS: [Family; 4] =
        [Family::Convert, Family::Ldexp, Family::FrexpExponent, Family::CompareClass];
    let is_arithmetic = matches!(inst.class(), Class::Valu | Class::Matrix)
        && register.is_per_lane()
        && (target == FaultTarget::DestinationRegister
            || !OTHER_OPERANDS.into_iter().any(|family| inst.operation.is(family)));
    if !is_arithmetic {
        return Vec::new();
    }
    let halves = |[low, high]: [FloatFormat; 2]| {
        let packed = inst.encoding == Encoding::Vop3p && inst.operation.is(Family::Packed);
        let to_high = inst.modifiers.op_sel.is_some_and(|bits| {
            let sources = inst.sources().count();
            bits >> sources & 1 != 0 && target == FaultTarget::DestinationRegister
        });
        match (packed, to_high) {
            (true, _) => vec![Some(low), Some(high)],
            (false, true) => vec![Some(high)],
            (false, false) => vec![Some(low)],
        }
    };
    match inst.data_type() {
        DataType::F64 => {
            let mut ranges = inst.writes.iter().chain(&inst.reads);
            let begins = ranges.any(|range| {
                (0..range.words).step_by(2).any(|word| range.first.offset(word) == Some(register))
                    && range.words % 2 == 0
            });
            if begins { vec![Some(FloatFormat::F64)] } else { Vec::new() }
        }
        DataType::F32 => vec![Some(FloatFormat::F32)],
        DataType::F16 => halves([FloatFormat::F16, FloatFormat::F16High]),
        DataType::Bf16 => halves([FloatFormat::Bf16, FloatFormat::Bf16High]),
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{RelativeError, Scope};
    use crate::testing::inst;

    /// The places of an instruction in words.
    fn named(text: &str, fault: &Fault) -> String {
        let resources = Resources {
            registers: vec![
                RegisterRange::new("v0".parse().unwrap(), 2),
                RegisterRange::new(Register::VccLo, 2),
            ],
            lds_bytes: 64,
            scratch_bytes: 16,
            buffers: vec![8, 1024],
        };
        let all = words(&inst(0, text), fault, &resources, &[]);
        let name = |own: &Words| {
            let times = if own.count == 1 { String::new() } else { format!(" x{}", own.count) };
            let format = own.format.map_or(String::new(), |format| format!(" {format:?}"));
            format!("{}{times}{format}", own.first)
        };
        all.iter().map(name).collect::<Vec<_>>().join(", ")
    }

    fn target(target: FaultTarget) -> Fault {
        Fault { target, ..Fault::transient(FaultModel::FlipOneBit) }
    }

    fn names(text: &str) -> String {
        named(text, &target(FaultTarget::DestinationRegister))
            .replace("register=", "")
            .replace(',', "")
    }

    #[test]
    fn destinations_are_all_words_of_all_registers_written() {
        for (text, expected) in [
            ("v_add_f32_e32 v1, v2, v3", "v1"),
            ("v_add_f64 v[4:5], v[0:1], v[2:3]", "v4 v5"),
            ("v_add_co_u32_e32 v1, vcc, v2, v3", "v1 vcc_lo vcc_hi"),
            ("v_cmp_gt_f32_e64 s[4:5], v0, v1", "s4 s5"),
            ("v_cmpx_gt_f32_e32 vcc, v0, v1", "vcc_lo vcc_hi exec_lo exec_hi"),
            ("v_readfirstlane_b32 s3, v0", "s3"),
            ("v_mfma_f32_4x4x1f32 a[0:3], v0, v1, a[0:3]", "a0 a1 a2 a3"),
            ("s_add_u32 s0, s1, s2", "s0 scc"),
            ("s_and_saveexec_b64 s[0:1], vcc", "s0 s1 exec_lo exec_hi scc"),
            ("s_mov_b32 m0, 0", "m0"),
            ("s_cmp_eq_u32 s0, s1", "scc"),
            ("s_load_dwordx4 s[4:7], s[0:1], 0x10", "s4 s5 s6 s7"),
            ("global_load_dwordx3 v[0:2], v[4:5], off", "v0 v1 v2"),
            ("global_atomic_add v1, v[2:3], v4, off glc", "v1"),
            ("ds_read2_b64 v[0:3], v4 offset1:1", "v0 v1 v2 v3"),
        ] {
            assert_eq!(names(text), expected, "{text}");
        }
    }

    #[test]
    fn instructions_without_destination_offer_nothing() {
        for text in [
            "global_store_dwordx2 v[0:1], v[2:3], off",
            "global_atomic_add v[2:3], v4, off",
            "ds_write_b32 v0, v1",
            "s_cbranch_scc1 4",
            "s_waitcnt vmcnt(0)",
            "s_barrier",
            "s_endpgm",
            "s_nop 0",
        ] {
            assert_eq!(names(text), "", "{text}");
        }
    }

    #[test]
    fn sources_are_what_an_instruction_reads_and_not_the_mask_that_selects_its_lanes() {
        for (text, expected) in [
            ("v_add_f32_e32 v1, v2, v3", "v2 v3"),
            ("v_add_f32_e32 v1, 1.0, v3", "v3"),
            ("v_fma_f64 v[0:1], v[2:3], v[4:5], s[0:1]", "v2 v3 v4 v5 s0 s1"),
            ("v_fmac_f32_e32 v1, v2, v3", "v1 v2 v3"),
            ("v_cndmask_b32_e32 v0, v1, v2, vcc", "v1 v2 vcc_lo vcc_hi"),
            ("v_addc_co_u32_e32 v0, vcc, v1, v2, vcc", "v1 v2 vcc_lo vcc_hi"),
            ("s_and_b64 s[0:1], exec, vcc", "vcc_lo vcc_hi exec_lo exec_hi"),
            ("s_cbranch_scc1 4", "scc"),
            ("s_addc_u32 s0, s1, s2", "s1 s2 scc"),
            ("global_store_dword v[0:1], v2, off", "v0 v1 v2"),
            ("s_endpgm", ""),
        ] {
            let found = named(text, &target(FaultTarget::SourceOperand));
            assert_eq!(found.replace("source=", "").replace(',', ""), expected, "{text}");
        }
    }

    #[test]
    fn addresses_and_values_of_memory_instructions_are_distinguished() {
        for (text, load, store, value) in [
            ("global_load_dword v0, v[2:3], off", "v2 v3", "", ""),
            ("global_load_dword v0, v2, s[4:5]", "v2 s4 s5", "", ""),
            ("global_store_dwordx2 v0, v[2:3], s[4:5]", "", "v0 s4 s5", "v2 v3"),
            ("global_atomic_add v1, v[2:3], v4, off glc", "", "v2 v3", "v4"),
            ("ds_read_b64 v[0:1], v2", "v2", "", ""),
            ("ds_write2_b32 v0, v1, v2", "", "v0", "v1 v2"),
            ("s_load_dword s0, s[2:3], s4", "s2 s3 s4", "", ""),
            ("buffer_load_dword v0, v1, s[4:7], s8 offen", "v1 s4 s5 s6 s7 s8", "", ""),
            ("v_mov_b32_e32 v0, v1", "", "", ""),
        ] {
            let found =
                [FaultTarget::LoadAddress, FaultTarget::StoreAddress, FaultTarget::StoreValue]
                    .map(|own| named(text, &target(own)).replace("source=", "").replace(',', ""));
            assert_eq!(found, [load, store, value], "{text}");
        }
    }

    #[test]
    fn what_instructions_do_not_name_is_the_same_for_all() {
        for (own, expected) in [
            (FaultTarget::Register, "register=v0, register=v1, register=vcc_lo, register=vcc_hi"),
            (FaultTarget::Lds, "lds=0x0 x16"),
            (FaultTarget::Scratch, "scratch=0x0 x4"),
            (FaultTarget::GlobalMemory, "buffer=0 offset=0x0 x2, buffer=1 offset=0x0 x256"),
            (FaultTarget::ProgramCounter, "program_counter=0 x2"),
        ] {
            for text in ["s_nop 0", "v_add_f32_e32 v1, v2, v3"] {
                assert_eq!(named(text, &target(own)), expected);
            }
        }
        let code = |text| named(text, &target(FaultTarget::Instruction));
        assert_eq!(code("v_add_f32_e32 v1, v2, v3"), "encoding=0");
        assert_eq!(code("v_add_f64 v[4:5], v[0:1], v[2:3]"), "encoding=0 x2");
        let branch = |text| named(text, &target(FaultTarget::Branch));
        assert_eq!(branch("s_cbranch_vccnz 4"), "branch=decision");
        assert_eq!(
            (branch("s_branch 4"), branch("s_setpc_b64 s[0:1]")),
            (String::new(), String::new())
        );
    }

    #[test]
    fn numbers_are_found_in_the_format_that_the_instruction_says() {
        let model = FaultModel::RelativeError(RelativeError::new(0.5).unwrap());
        let fault =
            |target| Fault { target, scope: Scope::Lane, ..Fault::transient(model.clone()) };
        for (text, destination, source) in [
            ("v_add_f32_e32 v1, v2, v3", "v1 F32", "v2 F32, v3 F32"),
            ("v_add_f64 v[4:5], v[0:1], v[2:3]", "v4 F64", "v0 F64, v2 F64"),
            ("v_add_f16_e32 v1, v2, v3", "v1 F16", "v2 F16, v3 F16"),
            ("v_pk_add_f16 v1, v2, v2", "v1 F16, v1 F16High", "v2 F16, v2 F16High"),
            ("v_mad_f16 v0, v1, v1, v1 op_sel:[0,0,0,1]", "v0 F16High", "v0 F16, v1 F16"),
            ("v_cvt_f32_u32_e32 v0, v1", "v0 F32", ""),
            ("v_cmp_gt_f32_e32 vcc, v0, v1", "", "v0 F32, v1 F32"),
            ("v_add_u32_e32 v0, v1, v2", "", ""),
            ("s_mov_b32 s0, s1", "", ""),
        ] {
            let found = [FaultTarget::DestinationRegister, FaultTarget::SourceOperand].map(|own| {
                named(text, &fault(own)).replace("source=", "").replace("register=", "")
            });
            assert_eq!(found, [destination, source], "{text}");
        }
    }
}
