//! A wave at work: its state, and the memory that it reaches.

use super::Launch;
use crate::address::{LANES as LANE_WINDOWS, WINDOW};
use crate::compute::{ElementPlace, LANES, Operands, Row, low, place};
use crate::memory::Memory;
use crate::program::{Destination, MatrixProduct, Op, Program, Source};
use crate::wave::{RegisterRange, Wave};
use flipwave_arch::{
    Instruction, Lane, LaneMask, MatrixElement, Pc, ProductShape, RegisterId, SumPart,
};
use flipwave_device::{AccessKind, Address, FaultCause};
use flipwave_machine::{FootprintBuilder, SummedElement, WaveState, WrittenByte};
use flipwave_ptx::{CARRY, INSTRUCTION_BYTES, PREDICATES, RegisterCounts, WORDS};

use super::access::Location;
use crate::program::MemorySpace;

/// Operands and results of an instruction. Their memory is used again for the next instruction.
#[derive(Default)]
pub(crate) struct Rows {
    /// Values of operands.
    pub operands: Vec<Row>,
    /// Results.
    pub results: Vec<Row>,
}

/// An element of a matrix product with its result.
#[derive(Debug)]
struct Summed {
    destination: Destination,
    place: ElementPlace,
    bits: u64,
}

/// A wave and everything that its instructions reach.
pub(crate) struct Reach<'a> {
    pub wave: &'a mut Wave,
    pub memory: &'a mut Memory,
    /// Shared memory of the workgroup.
    pub shared: &'a mut Vec<u8>,
    pub program: &'a Program,
    pub launch: &'a Launch,
    /// Receives accesses to device memory, if they are recorded.
    pub footprint: Option<&'a mut FootprintBuilder>,
    /// Memory for operands and results.
    pub rows: &'a mut Rows,
    /// Writes to device memory since they were last taken, if they are recorded.
    pub written: Vec<WrittenByte>,
    /// `true` to record writes.
    pub is_recording: bool,
}

impl Reach<'_> {
    /// Number of the instruction at the PC.
    pub fn fetch(&self) -> Result<usize, FaultCause> {
        let pc = self.wave.pc();
        self.program.code.number_of(Pc(pc)).ok_or(FaultCause::MemoryViolation {
            address: Address(pc),
            access: AccessKind::Fetch,
            lane: None,
        })
    }

    /// Values of a source in all lanes.
    pub fn row(&self, source: Source) -> Row {
        match source {
            Source::Constant(value) => [value; LANES],
            Source::Special(special) => self.launch.special(special, self.wave),
            Source::Frame(offset) => {
                let base = self.wave.frames.last().map_or(0, |frame| frame.base);
                [base.wrapping_add(offset); LANES]
            }
            register => self.wave.registers.read(register).unwrap_or([0; LANES]),
        }
    }

    /// The matrices that a product multiplies and adds.
    pub fn matrix_operands(&self, product: &MatrixProduct) -> Operands {
        let rows: Vec<Row> = product.sources.iter().map(|source| self.row(*source)).collect();
        Operands::new(product.form, &rows)
    }

    /// The product that is the next instruction.
    fn product(&self) -> Option<&MatrixProduct> {
        match &self.program.steps[self.fetch().ok()?].op {
            Op::Product(product) => Some(product),
            _ => None,
        }
    }

    /// The register that an observer's register is in the executed code.
    fn moved(&self, register: RegisterId) -> RegisterId {
        let original = self.program.original.as_ref();
        original.map_or(register, |original| original.moved_register(register))
    }

    /// A word of private memory as an observer addresses it.
    fn observed(&self, address: Address) -> Option<(Location, usize)> {
        let offset = address.0.checked_sub(LANE_WINDOWS).filter(|offset| *offset < 32 * WINDOW)?;
        let location = Location { space: MemorySpace::Local, address: offset % WINDOW };
        Some((location, (offset / WINDOW) as usize))
    }
}

impl WaveState for Reach<'_> {
    fn read(&self, register: RegisterId, lane: Lane) -> Option<u32> {
        WaveState::lanes(self, register)?.get(usize::from(lane.0)).copied()
    }

    fn lanes(&self, register: RegisterId) -> Option<&[u32]> {
        self.wave.registers.lanes(self.moved(register)).map(|row| &row[..])
    }

    fn write(&mut self, register: RegisterId, lane: Lane, value: u32) -> bool {
        self.wave.registers.set(self.moved(register), lane, value)
    }

    fn changeable(&self) -> Vec<RegisterId> {
        let range = match &self.program.original {
            Some(original) => {
                let RegisterCounts { words, predicates } = original.code.registers;
                RegisterRange { words: 0..words, predicates: 0..predicates }
            }
            None => self.wave.registers.range(),
        };
        let words = range.words.map(|number| RegisterId { class: &WORDS, number });
        let predicates = range.predicates.map(|number| RegisterId { class: &PREDICATES, number });
        words.chain(predicates).chain([RegisterId { class: &CARRY, number: 0 }]).collect()
    }

    fn written_by(&self, inst: &dyn Instruction) -> Vec<RegisterId> {
        let mut written = Vec::new();
        inst.for_each_written(&mut |register| written.push(register));
        written
    }

    fn executed(&self) -> u64 {
        self.wave.executed
    }

    fn active(&self) -> LaneMask {
        LaneMask(self.wave.active().into())
    }

    fn all_lanes(&self) -> LaneMask {
        LaneMask(self.wave.all.into())
    }

    fn pc(&self) -> Pc {
        let pc = Pc(self.wave.pc());
        self.program.original.as_ref().map_or(pc, |original| original.pc(pc))
    }

    fn set_pc(&mut self, pc: Pc) {
        let pc = Pc(pc.0 & self.pc_bits());
        let pc = self.program.original.as_ref().map_or(pc, |original| original.moved_pc(pc)).0;
        if let Some(path) = self.wave.path_mut() {
            path.pc = pc;
        }
    }

    /// Addresses have 49 bits, and instructions are aligned to their size.
    fn pc_bits(&self) -> u64 {
        ((1 << 49) - 1) & !(u64::from(INSTRUCTION_BYTES) - 1)
    }

    fn code(&self, _: u8) -> Option<u32> {
        None
    }

    fn replace_instruction(&mut self, _: &[u8]) {}

    fn matrix_shape(&self) -> Option<ProductShape> {
        self.product().map(|product| product.form.shape())
    }

    fn sum_matrix_element(
        &self,
        element: MatrixElement,
        touch: &mut dyn FnMut(SumPart, u8, u64) -> u64,
    ) -> Option<SummedElement> {
        let product = self.product().filter(|product| product.form.shape().has(element))?;
        let (row, column) = (element.row.into(), element.column.into());
        let bits = self.matrix_operands(product).element(row, column, touch);
        let place = place(product.form.types[0], row, column);
        let destination = *product.destinations.get(place.register)?;
        Some(SummedElement(Box::new(Summed { destination, place, bits })))
    }

    fn write_matrix_element(&mut self, element: &SummedElement) -> bool {
        let Some(Summed { destination, place, bits }) = element.0.downcast_ref() else {
            return false;
        };
        let Some(source) = destination.source() else { return false };
        let mut row = self.row(source);
        let before = row[place.lane];
        let mask = low(place.bits) << place.shift;
        row[place.lane] = before & !mask | bits << place.shift;
        self.wave.registers.write(*destination, 1 << place.lane, &row);
        row[place.lane] != before
    }

    fn lds(&self) -> &[u8] {
        self.shared
    }

    fn read_lds(&self, offset: u32) -> Option<u32> {
        let start = usize::try_from(offset).ok().filter(|start| start.is_multiple_of(4))?;
        let word = self.shared.get(start..)?.first_chunk()?;
        Some(u32::from_le_bytes(*word))
    }

    fn write_lds(&mut self, offset: u32, word: u32) -> bool {
        let start = offset as usize;
        let place = self.shared.get_mut(start..).and_then(|rest| rest.first_chunk_mut::<4>());
        let place = place.filter(|_| offset.is_multiple_of(4));
        place.map(|place| *place = word.to_le_bytes()).is_some()
    }

    fn read_memory(&mut self, address: Address) -> Option<u32> {
        let global = Location { space: MemorySpace::Global, address: address.0 };
        let (location, lane) = self.observed(address).unwrap_or((global, 0));
        self.read_at(location, 4, lane, AccessKind::Read).ok().map(|word| word as u32)
    }

    fn write_memory(&mut self, address: Address, word: u32) -> bool {
        let global = Location { space: MemorySpace::Global, address: address.0 };
        let (location, lane) = self.observed(address).unwrap_or((global, 0));
        self.write_at(location, 4, word.into(), lane, AccessKind::Write).is_ok()
    }

    fn take_written(&mut self) -> Vec<WrittenByte> {
        std::mem::take(&mut self.written)
    }

    fn frame_base(&self) -> u64 {
        self.wave.frames.last().map_or(0, |frame| frame.base)
    }

    fn private_bytes(&self) -> u32 {
        self.wave.private_bytes() as u32
    }

    fn private_address(&self, lane: Lane, offset: u32) -> Option<Address> {
        let is_inside = u64::from(offset) + 4 <= self.wave.private_bytes();
        let has_lane = self.wave.all >> (lane.0 & 31) & 1 != 0 && lane.0 < 32;
        let address = LANE_WINDOWS + u64::from(lane.0) * WINDOW + u64::from(offset);
        (is_inside && has_lane && offset.is_multiple_of(4)).then_some(Address(address))
    }
}
