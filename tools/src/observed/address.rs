//! The address that an instruction accesses, from the registers of a wave that is about to execute
//! it.

use flipwave_isa::{Lane, MemoryOperand, MemorySpace, Register, RegisterRange};
use flipwave_sim::WaveState;

/// Where a wave accesses memory, as [`TracedAccess::address`](crate::TracedAccess::address) has it: for
/// each of [`MemoryOperand::offsets`] the lanes that run, with their addresses. Of scalar memory,
/// which is accessed by the wave: lane 0, whatever EXEC is.
pub fn addresses(operand: &MemoryOperand, state: &WaveState<'_>) -> Vec<Vec<(Lane, u64)>> {
    let lanes: Vec<Lane> = match operand.access.space {
        MemorySpace::Scalar => vec![Lane(0)],
        _ => state.exec().lanes().collect(),
    };
    let element = |offset: &i64| {
        let of = |lane: &Lane| (*lane, address(operand, *offset, *lane, state));
        lanes.iter().map(of).collect()
    };
    operand.offsets.iter().map(element).collect()
}

/// One or two registers as a number.
fn value(state: &WaveState<'_>, range: RegisterRange, lane: Lane) -> u64 {
    let words = range.iter().take(2).map(|word| state.read(word, lane).unwrap_or(0));
    words.zip([0, 32]).map(|(word, shift)| u64::from(word) << shift).sum()
}

/// Address of an element (the ISA documents, "Address calculation").
fn address(operand: &MemoryOperand, offset: i64, lane: Lane, state: &WaveState<'_>) -> u64 {
    let of = |range: Option<RegisterRange>| range.map_or(0, |own| value(state, own, lane));
    if operand.access.space == MemorySpace::Buffer {
        return buffer_address(operand, offset, lane, state);
    }
    let base = match operand.resource {
        Some(resource) => of(Some(RegisterRange::new(resource.first, 2))) & 0xffff_ffff_ffff,
        None => of(operand.saddr),
    };
    let mut sum = base.wrapping_add(of(operand.vaddr)).wrapping_add(of(operand.soffset));
    sum = sum.wrapping_add_signed(offset);
    if operand.in_m0 {
        let m0 = of(Some(RegisterRange::new(Register::M0, 1)));
        sum = sum.wrapping_add(m0 & 0xffff);
    }
    if operand.adds_lane {
        sum = sum.wrapping_add(4 * u64::from(lane.0));
    }
    if operand.access.space == MemorySpace::Scalar { sum & !3 } else { sum }
}

/// The same of buffers, in gfx9's resources.
fn buffer_address(operand: &MemoryOperand, offset: i64, lane: Lane, state: &WaveState<'_>) -> u64 {
    let word = |register: Option<Register>| {
        register.and_then(|register| state.read(register, lane)).map_or(0, u64::from)
    };
    let resource = |at| word(operand.resource.and_then(|resource| resource.first.offset(at)));
    let vaddr = |at| word(operand.vaddr.and_then(|vaddr| vaddr.first.offset(at)));
    let adds_lane = resource(3) >> 23 & 1 == 1;
    let mut stride = resource(1) >> 16 & 0x3fff;
    let mut index = if operand.idxen { vaddr(0) } else { 0 };
    if adds_lane {
        stride += (resource(3) >> 15 & 0xf) << 14;
        index = (index + u64::from(lane.0)) & 0xffff_ffff;
    }
    let own = if operand.offen { vaddr(u8::from(operand.idxen)) } else { 0 };
    let offset = own.wrapping_add_signed(offset) & 0xffff_ffff;
    // Of 32 bits times 18 bits and less: no sum here leaves 64 bits.
    let within = if resource(1) >> 31 & 1 == 1 {
        let rows = 8 << (resource(3) >> 21 & 3);
        let block = index / rows * stride * rows;
        block + offset / 4 * 4 * rows + index % rows * 4 + offset % 4
    } else {
        index * stride + offset
    };
    let base = resource(0) | (resource(1) & 0xffff) << 32;
    base + operand.soffset.map_or(0, |own| value(state, own, lane)) + within
}
