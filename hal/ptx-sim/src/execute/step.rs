//! The effect of an instruction on a wave.

use super::Reach;
use crate::compute::{LANES, Row};
use crate::program::{
    AsyncCopy, AtomicOperation, AtomicValue, BarrierOp, MatrixLoad, MemoryAccess, Op, Phase, Source,
};
use crate::wave::next;
use flipwave_device::{AccessKind, FaultCause};
use flipwave_ptx::Condition;
use smallvec::SmallVec;

/// The effect of an instruction beyond its wave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    /// None.
    None,
    /// The wave is at the target of a branch, and paths that meet others there have not ended: observers see which
    /// way the path has taken.
    Branch,
    /// The lanes arrive at a barrier.
    Barrier {
        /// The barrier.
        op: BarrierOp,
        /// The lanes.
        lanes: u32,
    },
}

impl Reach<'_> {
    /// Lanes that execute an instruction with this guard.
    pub fn executing(&self, guard: Option<Condition>) -> u32 {
        let active = self.wave.active();
        let Some(guard) = guard else { return active };
        let set = self.wave.registers.predicate(guard.register.number);
        active & if guard.is_negated { !set } else { set }
    }

    /// Executes the instruction with a number, which is at the PC, and advances the PC.
    pub fn execute(&mut self, number: usize) -> Result<Effect, FaultCause> {
        let program = self.program;
        let step = &program.steps[number];
        if let Op::Gap(gap) = &step.op {
            return Err(gap.fault(&step.inst));
        }
        let lanes = self.executing(step.inst.guard);
        let after = next(step.inst.pc.0);
        let mut effect = Effect::None;
        match &step.op {
            Op::Branch { target, meeting } => {
                let others = self.wave.active() & !lanes;
                self.diverge(&[(*target, lanes), (after, others)], *meeting);
                self.wave.executed += 1;
                return Ok(Effect::Branch);
            }
            Op::IndexedBranch { index, targets, meeting } => {
                self.branch_by_index(*index, targets, *meeting, lanes, after)?;
                return Ok(self.end(effect));
            }
            _ if lanes == 0 => {}
            Op::Call(call) => {
                self.call(call, number, lanes, after)?;
                return Ok(self.end(effect));
            }
            Op::Return => {
                self.advance(after);
                self.return_from(lanes);
                return Ok(self.end(effect));
            }
            Op::Exit => self.wave.exit(lanes),
            Op::Trap(id) => return Err(FaultCause::Trap { id: *id }),
            Op::Barrier(op) => effect = Effect::Barrier { op: *op, lanes },
            _ => self.perform(number, lanes)?,
        }
        self.advance(after);
        Ok(self.end(effect))
    }

    /// Executes an instruction that does not change the control flow in some lanes, of which there is at least
    /// one. The PC remains.
    pub fn perform(&mut self, number: usize, lanes: u32) -> Result<(), FaultCause> {
        match &self.program.steps[number].op {
            Op::Compute { operation, sources, destinations } => {
                let mut rows = std::mem::take(self.rows);
                rows.operands.clear();
                rows.operands.extend(sources.iter().map(|source| self.row(*source)));
                // Operations may compute a second result that the instruction does not name.
                rows.results.resize(destinations.len().max(2), [0; LANES]);
                (operation.compute)(&rows.operands, lanes, &mut rows.results);
                for (destination, row) in destinations.iter().zip(&rows.results) {
                    self.wave.registers.write(*destination, lanes, row);
                }
                *self.rows = rows;
            }
            Op::Product(product) => {
                let operands = self.matrix_operands(product);
                let mut results = vec![[0; LANES]; product.destinations.len()];
                operands.compute(&mut results);
                for (destination, row) in product.destinations.iter().zip(&results) {
                    self.wave.registers.write(*destination, lanes, row);
                }
            }
            Op::Warpgroup(product) => self.warpgroup(product, lanes)?,
            Op::Load { access, values } => self.load(access, values, lanes)?,
            Op::Store { access, values } => self.store(access, values, lanes)?,
            Op::Atomic { access, operation, values } => {
                let addresses = self.addresses(access);
                for value in values {
                    self.atomic(access, operation, value, &addresses, lanes)?;
                }
            }
            Op::PhaseBarrier(barrier) => {
                let operands = self.row(barrier.operand);
                let addresses = self.addresses(&barrier.access);
                let mut results = [0; LANES];
                for lane in Self::lanes(lanes) {
                    let location = self.locate(&barrier.access, addresses[lane], lane)?;
                    let old = self.read_at(location, 8, lane, AccessKind::Atomic)?;
                    let (new, result) = Phase::of(old).apply(barrier.kind, operands[lane]);
                    self.write_at(location, 8, new.word(), lane, AccessKind::Atomic)?;
                    results[lane] = result;
                }
                self.wave.registers.write(barrier.destination, lanes, &results);
            }
            Op::Copy(copy) => self.copy(copy, lanes)?,
            Op::Matrix(matrix) => self.matrix(matrix, lanes)?,
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, effect: Effect) -> Effect {
        self.wave.executed += 1;
        self.wave.settle();
        effect
    }

    fn advance(&mut self, pc: u64) {
        if let Some(path) = self.wave.path_mut() {
            path.pc = pc;
        }
    }

    /// Continues groups of lanes at several addresses; groups without lanes do not count.
    pub fn diverge(&mut self, groups: &[(u64, u32)], meeting: Option<u64>) {
        let mut joined: SmallVec<[(u64, u32); 4]> = SmallVec::new();
        for (target, lanes) in groups.iter().copied().filter(|(_, lanes)| *lanes != 0) {
            match joined.iter_mut().find(|(known, _)| *known == target) {
                Some((_, all)) => *all |= lanes,
                None => joined.push((target, lanes)),
            }
        }
        if let Some(frame) = self.wave.frames.last_mut() {
            frame.diverge(&joined, meeting);
        }
    }

    /// An index beyond the targets has no defined effect; it ends the dispatch.
    fn branch_by_index(
        &mut self,
        index: Source,
        targets: &[u64],
        meeting: Option<u64>,
        lanes: u32,
        after: u64,
    ) -> Result<(), FaultCause> {
        let indices = self.row(index);
        let mut groups = vec![(after, self.wave.active() & !lanes)];
        for lane in Self::lanes(lanes) {
            let index = indices[lane];
            let target = usize::try_from(index).ok().and_then(|index| targets.get(index));
            let word = index as u32;
            groups.push((*target.ok_or(FaultCause::IllegalInstruction { word })?, 1 << lane));
        }
        self.diverge(&groups, meeting);
        Ok(())
    }

    fn atomic(
        &mut self,
        access: &MemoryAccess,
        operation: &AtomicOperation,
        value: &AtomicValue,
        addresses: &Row,
        lanes: u32,
    ) -> Result<(), FaultCause> {
        let rows: Vec<Row> = value.sources.iter().map(|source| self.row(*source)).collect();
        let mut old = [0; LANES];
        for lane in Self::lanes(lanes) {
            let mut location = self.locate(access, addresses[lane], lane)?;
            location.address = location.address.wrapping_add(value.offset);
            let operand = |number: usize| rows.get(number).map_or(0, |row| row[lane]);
            old[lane] = self.read_at(location, value.bytes, lane, AccessKind::Atomic)?;
            let new = operation.apply(old[lane], [operand(0), operand(1)]);
            self.write_at(location, value.bytes, new, lane, AccessKind::Atomic)?;
        }
        self.wave.registers.write(value.destination, lanes, &old);
        Ok(())
    }

    fn copy(&mut self, copy: &AsyncCopy, lanes: u32) -> Result<(), FaultCause> {
        let [to, from] = [&copy.to, &copy.from].map(|access: &MemoryAccess| self.addresses(access));
        let counts = copy.count.map(|count| self.row(count));
        for lane in Self::lanes(lanes) {
            let count = match counts {
                Some(counts) if copy.is_ignoring => {
                    if counts[lane] != 0 {
                        0
                    } else {
                        copy.to.bytes
                    }
                }
                Some(counts) => counts[lane].min(copy.to.bytes),
                None => copy.to.bytes,
            };
            let target = self.locate(&copy.to, to[lane], lane)?;
            let source =
                if count > 0 { Some(self.locate(&copy.from, from[lane], lane)?) } else { None };
            for byte in 0..copy.to.bytes {
                let value = match source {
                    Some(mut source) if byte < count => {
                        source.address = source.address.wrapping_add(byte);
                        self.read_at(source, 1, lane, AccessKind::Read)?
                    }
                    _ => 0,
                };
                let mut target = target;
                target.address = target.address.wrapping_add(byte);
                self.write_at(target, 1, value, lane, AccessKind::Write)?;
            }
        }
        Ok(())
    }

    /// Lane 8 * m + r has the address of row r of matrix m. A register holds elements 2 * (lane % 4) and the
    /// next of row lane / 4.
    fn matrix(&mut self, matrix: &MatrixLoad, lanes: u32) -> Result<(), FaultCause> {
        let addresses = self.addresses(&matrix.access);
        for (number, word) in matrix.registers.iter().enumerate() {
            let row_word = Source::Word { word: *word, bits: 32 };
            let mut row = self.row(row_word);
            for lane in Self::lanes(lanes) {
                for element in 0..2 {
                    let (mut line, mut column) = (lane / 4, 2 * (lane % 4) + element);
                    if matrix.is_transposed {
                        (line, column) = (column, line);
                    }
                    let owner = 8 * number + line;
                    let mut location =
                        self.locate(&matrix.access, addresses[owner % LANES], owner % LANES)?;
                    location.address = location.address.wrapping_add(2 * column as u64);
                    let shift = 16 * element;
                    if matrix.is_store {
                        let value = row[lane] >> shift & 0xffff;
                        self.write_at(location, 2, value, owner, AccessKind::Write)?;
                    } else {
                        let value = self.read_at(location, 2, owner, AccessKind::Read)?;
                        row[lane] = row[lane] & !(0xffff << shift) | value << shift;
                    }
                }
            }
            if !matrix.is_store {
                let destination = crate::program::Destination::Word { word: *word, bits: 32 };
                self.wave.registers.write(destination, lanes, &row);
            }
        }
        Ok(())
    }
}
