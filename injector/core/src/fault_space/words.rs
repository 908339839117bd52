//! Words of one execution of an instruction that a fault can strike.

use crate::fault::{Fault, FaultModel, FaultTarget, FloatFormat};
use crate::site::{Place, SumPlace};
use flipwave_arch::{
    Instruction, MatrixElement, ProductShape, RegisterId, RegisterRole, RegisterSpan, SumPart,
    SumType,
};

/// Consecutive words of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Words {
    /// The first word.
    pub first: Place,
    /// Number of words.
    pub count: u64,
    /// Format of the numbers of which each word is the first word, if the fault strikes numbers.
    pub format: Option<FloatFormat>,
}

/// Registers and memory of a kernel's waves, in addition to those named by their instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Resources {
    /// Registers of the allocation.
    pub registers: Vec<RegisterSpan>,
    /// LDS bytes of a workgroup.
    pub lds_bytes: u64,
    /// Scratch bytes of a lane.
    pub scratch_bytes: u64,
    /// Bytes of each of the program's buffers.
    pub buffers: Vec<u64>,
}

impl Words {
    fn of(first: Place, count: u64) -> Words {
        Words { first, count, format: None }
    }

    /// The word with this index, which is below [`Words::count`].
    pub fn place(&self, index: u64) -> Option<Place> {
        let small = u8::try_from(index);
        Some(match self.first {
            Place::Register(first) => Place::Register(first.offset(small.ok()?.into())?),
            Place::Source(first) => Place::Source(first.offset(small.ok()?.into())?),
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

/// The words of `inst` that `fault` can strike, in the order of their numbers: registers in the order
/// of [`RegisterId`], vector before scalar and lower numbers before higher; if `registers` are given, only
/// these.
pub fn words(
    inst: &dyn Instruction,
    fault: &Fault,
    resources: &Resources,
    registers: Option<&[RegisterSpan]>,
) -> Vec<Words> {
    let named = |make: fn(RegisterId) -> Place, role: RegisterRole, found: Vec<RegisterId>| {
        let mut found = found;
        found.retain(|register| {
            registers.is_none_or(|spans| spans.iter().any(|span| span.contains(*register)))
        });
        found.sort_unstable();
        found.dedup();
        let is_number = |register: &RegisterId| !inst.float_formats(*register, role).is_empty();
        let by_format = match fault.model {
            FaultModel::DrawnValues(_) => found.iter().any(is_number),
            _ => fault.model.changes_numbers(),
        };
        let formats = |register: RegisterId| -> Vec<Option<FloatFormat>> {
            if by_format {
                inst.float_formats(register, role).into_iter().map(Some).collect()
            } else {
                vec![None]
            }
        };
        found
            .into_iter()
            .flat_map(|register| {
                formats(register).into_iter().map(move |format| (register, format))
            })
            .map(|(register, format)| Words { first: make(register), count: 1, format })
            .collect()
    };
    let operands = |role| named(Place::Source, role, inst.registers(role));
    match fault.target {
        FaultTarget::DestinationRegister => {
            let role = RegisterRole::Destination;
            named(Place::Register, role, inst.registers(role))
        }
        FaultTarget::SourceOperand => operands(RegisterRole::Source),
        FaultTarget::Register => {
            let all = resources.registers.iter().flat_map(|span| span.iter());
            named(Place::Register, RegisterRole::Source, all.collect())
        }
        FaultTarget::LoadAddress => operands(RegisterRole::LoadAddress),
        FaultTarget::StoreAddress => operands(RegisterRole::StoreAddress),
        FaultTarget::StoreValue => operands(RegisterRole::StoreValue),
        FaultTarget::Lds => vec![Words::of(Place::Lds(0), resources.lds_bytes / 4)],
        FaultTarget::Scratch => vec![Words::of(Place::Scratch(0), resources.scratch_bytes / 4)],
        FaultTarget::GlobalMemory => (0..)
            .zip(&resources.buffers)
            .map(|(buffer, bytes)| Words::of(Place::Memory { buffer, offset: 0 }, bytes / 4))
            .collect(),
        FaultTarget::Instruction => {
            vec![Words::of(Place::Encoding(0), inst.encoding_dwords().into())]
        }
        FaultTarget::Branch if inst.conditional_target().is_some() => {
            vec![Words::of(Place::Branch, 1)]
        }
        FaultTarget::Branch => Vec::new(),
        FaultTarget::ProgramCounter => vec![Words::of(Place::ProgramCounter(0), 2)],
        FaultTarget::MatrixProduct
        | FaultTarget::MatrixPartialSum
        | FaultTarget::MatrixAccumulator => Vec::new(),
    }
}

/// Words of the sums that a matrix instruction of this shape computes and that `model` can strike: by
/// step, block, row and word; the columns of a row are consecutive.
pub(crate) fn words_of_sums(part: SumPart, shape: &ProductShape, model: &FaultModel) -> Vec<Words> {
    let format = match shape.sum {
        SumType::F32 => Some(FloatFormat::F32),
        SumType::F64 => Some(FloatFormat::F64),
        SumType::I32 => None,
    };
    let (format, words) = match model {
        // A number has no separate halves.
        model if model.changes_numbers() => (format, 1),
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

/// Word `number` of the results of `inst`: its destination registers without duplicates, in the order
/// of site numbers.
pub fn result_word(inst: &dyn Instruction, number: u8) -> Option<RegisterId> {
    let mut registers = inst.registers(RegisterRole::Destination);
    registers.sort_unstable();
    registers.dedup();
    registers.get(usize::from(number)).copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{RelativeError, Scope};
    use crate::testing::{inst, register};

    /// The words of an instruction as text.
    fn named(text: &str, fault: &Fault) -> String {
        let resources = Resources {
            registers: vec![
                RegisterSpan::new(register("v0"), 2),
                RegisterSpan::new(register("vcc_lo"), 2),
            ],
            lds_bytes: 64,
            scratch_bytes: 16,
            buffers: vec![8, 1024],
        };
        let all = words(&inst(0, text), fault, &resources, None);
        let name = |words: &Words| {
            let times = if words.count == 1 { String::new() } else { format!(" x{}", words.count) };
            let format = words.format.map_or(String::new(), |format| format!(" {format:?}"));
            format!("{}{times}{format}", words.first)
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
    fn destinations_are_all_written_words() {
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
    fn instructions_without_destination_have_no_sites() {
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
    fn sources_exclude_the_lane_mask() {
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
                [FaultTarget::LoadAddress, FaultTarget::StoreAddress, FaultTarget::StoreValue].map(
                    |fault_target| {
                        named(text, &target(fault_target)).replace("source=", "").replace(',', "")
                    },
                );
            assert_eq!(found, [load, store, value], "{text}");
        }
    }

    #[test]
    fn unnamed_state_has_the_same_words_for_all_instructions() {
        for (fault_target, expected) in [
            (FaultTarget::Register, "register=v0, register=v1, register=vcc_lo, register=vcc_hi"),
            (FaultTarget::Lds, "lds=0x0 x16"),
            (FaultTarget::Scratch, "scratch=0x0 x4"),
            (FaultTarget::GlobalMemory, "buffer=0 offset=0x0 x2, buffer=1 offset=0x0 x256"),
            (FaultTarget::ProgramCounter, "program_counter=0 x2"),
        ] {
            for text in ["s_nop 0", "v_add_f32_e32 v1, v2, v3"] {
                assert_eq!(named(text, &target(fault_target)), expected);
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
    fn numbers_have_the_instructions_format() {
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
            let found = [FaultTarget::DestinationRegister, FaultTarget::SourceOperand].map(
                |fault_target| {
                    named(text, &fault(fault_target))
                        .replace("source=", "")
                        .replace("register=", "")
                },
            );
            assert_eq!(found, [destination, source], "{text}");
        }
    }
}
