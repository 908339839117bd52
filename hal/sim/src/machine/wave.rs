//! State of an AMD wave in the common terms.

use crate::dispatch::wave_state::WaveState;
use flipwave_arch::{
    Instruction, Lane, LaneMask, MatrixElement, Pc, ProductShape, RegisterId, SumPart,
};
use flipwave_device::Address;
use flipwave_isa::{AccVgpr, Inst, Register, RegisterRange, Sgpr, Vgpr};
use flipwave_machine::{SummedElement, WrittenByte};

/// The state of a wave, for observers that know no instruction set.
pub(super) struct CommonWave<'s, 'a>(pub &'s mut WaveState<'a>);

impl flipwave_machine::WaveState for CommonWave<'_, '_> {
    fn read(&self, register: RegisterId, lane: Lane) -> Option<u32> {
        self.0.read(Register::of_id(register)?, lane)
    }

    fn lanes(&self, register: RegisterId) -> Option<&[u32]> {
        self.0.lanes(Register::of_id(register)?).map(|lanes| &lanes[..])
    }

    fn write(&mut self, register: RegisterId, lane: Lane, value: u32) -> bool {
        Register::of_id(register).is_some_and(|register| self.0.write(register, lane, value))
    }

    fn changeable(&self) -> Vec<RegisterId> {
        let files = [
            RegisterRange::new(Register::VccLo, 2),
            RegisterRange::new(Register::ExecLo, 2),
            RegisterRange::new(Register::FlatScratchLo, 2),
            RegisterRange::new(Register::M0, 1),
            RegisterRange::new(Register::Scc, 1),
            RegisterRange::new(Register::Mode, 1),
        ];
        let numbered = (0..=u8::MAX).flat_map(|n| {
            let vectors = [Register::Vgpr(Vgpr(n.into())), Register::AccVgpr(AccVgpr(n))];
            vectors.into_iter().chain((n < 106).then_some(Register::Sgpr(Sgpr(n))))
        });
        let numbered = numbered.chain((256..Vgpr::COUNT).map(|n| Register::Vgpr(Vgpr(n))));
        let registers = numbered.chain(files.into_iter().flat_map(RegisterRange::iter));
        let present = registers.filter(|register| self.0.read(*register, Lane(0)).is_some());
        present.map(RegisterId::from).collect()
    }

    fn written_by(&self, inst: &dyn Instruction) -> Vec<RegisterId> {
        // MODE.gpr_idx_en (ISA manual, "MODE register").
        let mode = self.0.read(Register::Mode, Lane(0));
        let is_indexed = mode.is_some_and(|mode| mode >> 27 & 1 != 0);
        match inst.as_any().downcast_ref::<Inst>() {
            Some(inst) if !is_indexed && !inst.indexes_registers() => {
                inst.writes.iter().flat_map(|range| range.iter()).map(RegisterId::from).collect()
            }
            _ => self.changeable(),
        }
    }

    fn executed(&self) -> u64 {
        self.0.executed()
    }

    fn active(&self) -> LaneMask {
        self.0.exec()
    }

    fn all_lanes(&self) -> LaneMask {
        self.0.all_lanes()
    }

    fn pc(&self) -> Pc {
        self.0.pc()
    }

    fn set_pc(&mut self, pc: Pc) {
        self.0.set_pc(pc);
    }

    /// The two lowest bits are always zero (ISA manual, "Program counter").
    fn pc_bits(&self) -> u64 {
        !3
    }

    fn code(&self, dword: u8) -> Option<u32> {
        self.0.code(dword)
    }

    fn replace_instruction(&mut self, bytes: &[u8]) {
        self.0.replace_instruction(bytes);
    }

    fn matrix_shape(&self) -> Option<ProductShape> {
        self.0.matrix_shape()
    }

    fn sum_matrix_element(
        &self,
        element: MatrixElement,
        touch: &mut dyn FnMut(SumPart, u8, u64) -> u64,
    ) -> Option<SummedElement> {
        let summed = self.0.sum_matrix_element(element, touch)?;
        Some(SummedElement(Box::new(summed)))
    }

    fn write_matrix_element(&mut self, element: &SummedElement) -> bool {
        let element = element.0.downcast_ref();
        element.is_some_and(|element| self.0.write_matrix_element(element))
    }

    fn lds(&self) -> &[u8] {
        self.0.lds()
    }

    fn read_lds(&self, offset: u32) -> Option<u32> {
        self.0.read_lds(offset)
    }

    fn write_lds(&mut self, offset: u32, word: u32) -> bool {
        self.0.write_lds(offset, word)
    }

    fn read_memory(&mut self, address: Address) -> Option<u32> {
        self.0.read_memory(address)
    }

    fn write_memory(&mut self, address: Address, word: u32) -> bool {
        self.0.write_memory(address, word)
    }

    fn take_written(&mut self) -> Vec<WrittenByte> {
        self.0.take_written()
    }

    fn private_bytes(&self) -> u32 {
        self.0.private_bytes()
    }

    fn private_address(&self, lane: Lane, offset: u32) -> Option<Address> {
        self.0.private_address(lane, offset)
    }
}
