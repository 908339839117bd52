//! Vector memory: global, flat, scratch and buffer accesses, one address per lane.

use crate::aperture::{self, Window};
use crate::atomic::Atomic;
use crate::element::Element;
use crate::lane_access::{self, Active};
use crate::lds;
use crate::level::at_each_level;
use crate::memory::Memory;
use crate::op::{Op, Word};
use crate::vector::scalar_word;
use crate::wave::{LANES, Row, RowIndex, ScalarIndex, Wave};
use flipwave_device::{AccessKind, Address, FaultCause};
use flipwave_isa::{Lane, LaneMask};

/// A vector memory operation. Sources: 0 the address register, 1 the data, 2 the scalar base or
/// buffer resource, 3 the scalar offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VectorAccess {
    /// How addresses are made.
    pub space: Space,
    /// What is done there.
    pub transfer: Transfer,
}

/// How addresses are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// 64-bit address, or scalar base plus 32-bit offset.
    Global,
    /// 64-bit address whose window decides.
    Flat,
    /// Offset in the lane's private memory.
    Scratch,
    /// Buffer resource; with an offset register, with an index register.
    Buffer {
        /// The address register holds an offset.
        offset: bool,
        /// The address register holds an index, before the offset if both are there.
        index: bool,
    },
}

/// What is done at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transfer {
    /// Memory to registers.
    Load(Element),
    /// Registers to memory.
    Store(Element),
    /// Read, modify, write; the old value is returned or not.
    Atomic {
        /// The operation.
        atomic: Atomic,
        /// Whether the old value is returned.
        returns: bool,
    },
}

/// The vector memory operation of a canonical name; `returns` is the modifier that makes an
/// atomic return the old value.
pub fn find(name: &str, returns: bool, offset: bool, index: bool) -> Option<VectorAccess> {
    let (space, rest) = name.split_once('_')?;
    let space = match space {
        "global" => Space::Global,
        "flat" => Space::Flat,
        "scratch" => Space::Scratch,
        "buffer" => Space::Buffer { offset, index },
        _ => return None,
    };
    let (verb, what) = rest.split_once('_')?;
    let transfer = match verb {
        "load" => Transfer::Load(Element::named(what)?),
        "store" => Transfer::Store(Element::named(what)?),
        "atomic" => Transfer::Atomic { atomic: crate::atomic::find_memory(what)?, returns },
        _ => return None,
    };
    Some(VectorAccess { space, transfer })
}

at_each_level! {
    /// Executes a vector memory operation.
    pub fn execute(
        wave: &mut Wave,
        op: &Op,
        access: VectorAccess,
        memory: &mut dyn Memory,
        lds: &mut [u8],
    ) -> Result<(), FaultCause> = execute_access;
}

#[inline(always)]
fn execute_access(
    wave: &mut Wave,
    op: &Op,
    access: VectorAccess,
    memory: &mut dyn Memory,
    lds: &mut [u8],
) -> Result<(), FaultCause> {
    let exec = wave.exec();
    if exec == LaneMask::EMPTY {
        return Ok(());
    }
    match access.space {
        Space::Global => {
            let addresses = Addresses::of(wave, op, exec);
            transfer(wave, op, access.transfer, &addresses, memory)
        }
        Space::Scratch => {
            let mut offsets = [0u32; LANES];
            let base = match op.sources[2].words[0] {
                Word::Constant(_) => 0,
                word => scalar_word(wave, word),
            };
            let base = base.wrapping_add(op.immediate as u32);
            for (lane, offset) in offsets.iter_mut().enumerate() {
                *offset = base.wrapping_add(address_word(wave, op, 0, lane));
            }
            scratch(wave, op, access.transfer, &offsets, exec, memory)
        }
        Space::Flat => flat(wave, op, access.transfer, exec, memory, lds),
        Space::Buffer { offset, index } => {
            let buffer = Buffer::read(wave, op);
            let mut offsets = [0u32; LANES];
            let mut indices = [0u32; LANES];
            for lane in 0..LANES {
                let second = usize::from(index);
                offsets[lane] = (op.immediate as u32).wrapping_add(if offset {
                    address_word(wave, op, second, lane)
                } else {
                    0
                });
                indices[lane] = if index { address_word(wave, op, 0, lane) } else { 0 };
            }
            buffered(wave, op, access.transfer, &buffer, &offsets, &indices, memory)
        }
    }
}

/// A word of a lane's address operand; zero where there is none.
#[inline(always)]
fn address_word(wave: &Wave, op: &Op, word: usize, lane: usize) -> u32 {
    match op.sources[0].words[word] {
        Word::Row(row) => wave.row(row).0[lane],
        _ => 0,
    }
}

/// The lanes that access device memory, and where. Kept by words, as registers have it: vectors of
/// 32-bit words are quick.
struct Addresses {
    low: Row,
    high: Row,
    /// The same for all lanes.
    base: u64,
    lanes: LaneMask,
}

impl Addresses {
    /// Global and flat addresses: 64-bit register pair, or scalar base plus 32-bit register.
    #[inline(always)]
    fn of(wave: &Wave, op: &Op, lanes: LaneMask) -> Addresses {
        let offset = op.immediate as u64;
        let row = |word| match op.sources[0].words[word] {
            Word::Row(row) => *wave.row(row),
            _ => Row::ZERO,
        };
        match op.sources[2].words {
            [Word::Constant(_), _] => Addresses { low: row(0), high: row(1), base: offset, lanes },
            [low, high] => {
                let base =
                    u64::from(scalar_word(wave, low)) | u64::from(scalar_word(wave, high)) << 32;
                Addresses { low: row(0), high: Row::ZERO, base: base.wrapping_add(offset), lanes }
            }
        }
    }

    /// A lane's address.
    #[inline(always)]
    fn at(&self, lane: usize) -> u64 {
        let words = u64::from(self.low.0[lane]) | u64::from(self.high.0[lane]) << 32;
        words.wrapping_add(self.base)
    }

    /// The address of the first lane.
    #[inline(always)]
    fn first(&self) -> u64 {
        self.at(self.lanes.0.trailing_zeros() as usize % LANES)
    }

    /// Offsets of the addresses from `start`, if all active ones lie within 4 GiB above it.
    #[inline(always)]
    fn offsets_from(&self, start: u64, active: &Row) -> Option<Row> {
        let add = self.base.wrapping_sub(start);
        let (add_low, add_high) = (add as u32, (add >> 32) as u32);
        let mut offsets = Row::ZERO;
        let mut beyond = 0;
        for lane in 0..LANES {
            let low = self.low.0[lane].wrapping_add(add_low);
            let carry = u32::from(low < add_low);
            let high = self.high.0[lane].wrapping_add(add_high).wrapping_add(carry);
            offsets.0[lane] = low;
            beyond |= high & active.0[lane];
        }
        (beyond == 0).then_some(offsets)
    }
}

/// Moves data between registers and device memory.
#[inline(always)]
fn transfer(
    wave: &mut Wave,
    op: &Op,
    transfer: Transfer,
    addresses: &Addresses,
    memory: &mut dyn Memory,
) -> Result<(), FaultCause> {
    match transfer {
        Transfer::Load(Element::Words(words)) => load_words(wave, op, words, 4, addresses, memory),
        Transfer::Load(element) => load_parts(wave, op, element, addresses, memory),
        Transfer::Store(element) => store(wave, op, element, addresses, memory),
        Transfer::Atomic { atomic, returns } => {
            for lane in addresses.lanes.lanes() {
                let at = addresses.at(lane.0.into());
                let [data, second] = atomic_operands(wave, op, atomic, lane);
                let old = modify(memory, at, lane, atomic, data, second)?;
                if returns {
                    write_lane(wave, op, lane, old, atomic.bytes);
                }
            }
            Ok(())
        }
    }
}

fn violation(address: u64, access: AccessKind, lane: Lane) -> FaultCause {
    FaultCause::MemoryViolation { address: Address(address), access, lane: Some(lane) }
}

/// All ones in the lanes that take part.
#[inline(always)]
fn active_row(wave: &Wave, lanes: LaneMask) -> Row {
    if lanes == wave.exec() { *wave.exec_row() } else { Row::expand(lanes) }
}

/// Loads words that lie `apart` bytes from one to the next.
#[inline(always)]
fn load_words(
    wave: &mut Wave,
    op: &Op,
    words: u8,
    apart: u32,
    addresses: &Addresses,
    memory: &mut dyn Memory,
) -> Result<(), FaultCause> {
    let row = active_row(wave, addresses.lanes);
    // Mostly all lanes fall into one region.
    if let Some(region) = memory.region(addresses.first())
        && let Some(offsets) = addresses.offsets_from(region.base, &row)
    {
        let rows = wave.rows_mut(op.destination, words).0;
        let active = Active { row: &row, all: addresses.lanes == LaneMask::FULL };
        let done = match words {
            1 => load_rows::<1>(region.bytes, &offsets, active, rows, apart),
            2 => load_rows::<2>(region.bytes, &offsets, active, rows, apart),
            3 => load_rows::<3>(region.bytes, &offsets, active, rows, apart),
            _ => load_rows::<4>(region.bytes, &offsets, active, rows, apart),
        };
        if done {
            return Ok(());
        }
    }
    for lane in addresses.lanes.lanes() {
        let index = usize::from(lane.0);
        let mut values = [0; 4];
        for (word, value) in values[..usize::from(words)].iter_mut().enumerate() {
            let at = addresses.at(index).wrapping_add(word as u64 * u64::from(apart));
            let mut bytes = [0; 4];
            read_bytes(memory, at, &mut bytes, AccessKind::Read, lane)?;
            *value = u32::from_le_bytes(bytes);
        }
        for (row, value) in wave.rows_mut(op.destination, words).0.iter_mut().zip(values) {
            row.0[index] = value;
        }
    }
    Ok(())
}

/// The same for all lanes at once; `false`, and nothing done, if a word is out of range.
#[inline(always)]
fn load_rows<const WORDS: usize>(
    bytes: &[u8],
    offsets: &Row,
    active: Active<'_>,
    rows: &mut [Row],
    apart: u32,
) -> bool {
    let places = std::array::from_fn(|word| apart * word as u32);
    rows.first_chunk_mut::<WORDS>()
        .is_some_and(|rows| lane_access::load(bytes, offsets, active, rows, &places))
}

/// Up to 16 bytes at an address, which may lie in adjacent regions.
fn read_bytes(
    memory: &mut dyn Memory,
    at: u64,
    bytes: &mut [u8],
    access: AccessKind,
    lane: Lane,
) -> Result<(), FaultCause> {
    for (index, byte) in bytes.iter_mut().enumerate() {
        let at = at.wrapping_add(index as u64);
        *byte = memory
            .region(at)
            .and_then(|region| region.read::<1>(at))
            .ok_or_else(|| violation(at, access, lane))?[0];
    }
    Ok(())
}

#[inline(never)]
fn load_parts(
    wave: &mut Wave,
    op: &Op,
    element: Element,
    addresses: &Addresses,
    memory: &mut dyn Memory,
) -> Result<(), FaultCause> {
    for lane in addresses.lanes.lanes() {
        let at = addresses.at(lane.0.into());
        let mut bytes = [0; 4];
        read_bytes(memory, at, &mut bytes[..element.bytes()], AccessKind::Read, lane)?;
        let word = &mut wave.row_mut(op.destination).0[usize::from(lane.0)];
        *word = element.extend(u32::from_le_bytes(bytes), *word);
    }
    Ok(())
}

#[inline(always)]
fn store(
    wave: &mut Wave,
    op: &Op,
    element: Element,
    addresses: &Addresses,
    memory: &mut dyn Memory,
) -> Result<(), FaultCause> {
    if let Element::Words(words) = element {
        return store_words(wave, op, words, 4, addresses, memory);
    }
    let Some(row) = data_row(op, 0) else { return Ok(()) };
    for lane in addresses.lanes.lanes() {
        let index = usize::from(lane.0);
        let bytes = element.part(wave.row(row).0[index]).to_le_bytes();
        write_bytes(memory, addresses.at(index), &bytes[..element.bytes()], lane)?;
    }
    Ok(())
}

/// Stores words that lie `apart` bytes from one to the next, lowest lane first.
#[inline(always)]
fn store_words(
    wave: &Wave,
    op: &Op,
    words: u8,
    apart: u32,
    addresses: &Addresses,
    memory: &mut dyn Memory,
) -> Result<(), FaultCause> {
    let Some(first) = data_row(op, 0) else { return Ok(()) };
    let rows = wave.rows_of(first, words);
    let row = active_row(wave, addresses.lanes);
    let active = Active { row: &row, all: addresses.lanes == LaneMask::FULL };
    if let Some(region) = memory.region(addresses.first())
        && region.read_only.is_empty()
        && let Some(offsets) = addresses.offsets_from(region.base, &row)
        && lane_access::store(region.bytes, &offsets, active, rows, apart)
    {
        return Ok(());
    }
    for lane in addresses.lanes.lanes() {
        let index = usize::from(lane.0);
        for (word, row) in rows.iter().enumerate() {
            let at = addresses.at(index).wrapping_add(word as u64 * u64::from(apart));
            write_bytes(memory, at, &row.0[index].to_le_bytes(), lane)?;
        }
    }
    Ok(())
}

/// Writes up to 16 bytes at an address; they may lie in adjacent regions.
fn write_bytes(
    memory: &mut dyn Memory,
    at: u64,
    bytes: &[u8],
    lane: Lane,
) -> Result<(), FaultCause> {
    for (index, byte) in bytes.iter().enumerate() {
        let at = at.wrapping_add(index as u64);
        memory
            .region(at)
            .and_then(|mut region| region.write(at, &[*byte]))
            .ok_or_else(|| violation(at, AccessKind::Write, lane))?;
    }
    Ok(())
}

/// The row of a word of the data operand.
#[inline(always)]
fn data_row(op: &Op, word: usize) -> Option<RowIndex> {
    op.sources[1].row().map(|row| row.plus(word as u16))
}

/// Data and comparison operand of one lane: the pair `[data, compare]` follows in the data
/// registers.
fn atomic_operands(wave: &Wave, op: &Op, atomic: Atomic, lane: Lane) -> [u64; 2] {
    let lane = usize::from(lane.0);
    let word = |word| data_row(op, word).map_or(0, |row| u64::from(wave.row(row).0[lane]));
    if atomic.bytes == 4 {
        [word(0), if atomic.has_second_operand() { word(1) } else { 0 }]
    } else {
        let pair = |first| word(first) | word(first + 1) << 32;
        [pair(0), if atomic.has_second_operand() { pair(2) } else { 0 }]
    }
}

/// Reads, modifies and writes one memory word; gives the old value.
fn modify(
    memory: &mut dyn Memory,
    at: u64,
    lane: Lane,
    atomic: Atomic,
    data: u64,
    second: u64,
) -> Result<u64, FaultCause> {
    let length = usize::from(atomic.bytes);
    if !at.is_multiple_of(length as u64) {
        return Err(FaultCause::Misaligned {
            address: Address(at),
            alignment: u32::from(atomic.bytes),
            lane: Some(lane),
        });
    }
    let mut bytes = [0; 8];
    read_bytes(memory, at, &mut bytes[..length], AccessKind::Atomic, lane)?;
    let old = u64::from_le_bytes(bytes);
    let new = atomic.apply(old, data, second).to_le_bytes();
    memory
        .region(at)
        .and_then(|mut region| region.write(at, &new[..length]))
        .ok_or_else(|| violation(at, AccessKind::Atomic, lane))?;
    Ok(old)
}

fn write_lane(wave: &mut Wave, op: &Op, lane: Lane, value: u64, bytes: u8) {
    wave.row_mut(op.destination).0[usize::from(lane.0)] = value as u32;
    if bytes == 8 {
        wave.row_mut(op.destination.plus(1)).0[usize::from(lane.0)] = (value >> 32) as u32;
    }
}

/// A flat access: each lane's window decides. Accesses to LDS and private memory are made lane
/// by lane, the rest as global accesses.
#[inline(never)]
fn flat(
    wave: &mut Wave,
    op: &Op,
    what: Transfer,
    exec: LaneMask,
    memory: &mut dyn Memory,
    lds: &mut [u8],
) -> Result<(), FaultCause> {
    let mut addresses = Addresses::of(wave, op, exec);
    let mut global = LaneMask::EMPTY;
    let mut private = LaneMask::EMPTY;
    let mut offsets = [0u32; LANES];
    for lane in exec.lanes() {
        let bit = 1u64 << lane.0;
        match aperture::window(addresses.at(lane.0.into())) {
            Window::Global(_) => global.0 |= bit,
            Window::Private(offset) => {
                private.0 |= bit;
                offsets[usize::from(lane.0)] = offset;
            }
            Window::Lds(offset) => flat_lds(wave, op, what, lane, offset, lds)?,
        }
    }
    if private != LaneMask::EMPTY {
        scratch(wave, op, what, &offsets, private, memory)?;
    }
    if global != LaneMask::EMPTY {
        addresses.lanes = global;
        transfer(wave, op, what, &addresses, memory)?;
    }
    Ok(())
}

/// One lane's flat access to LDS.
fn flat_lds(
    wave: &mut Wave,
    op: &Op,
    what: Transfer,
    lane: Lane,
    offset: u32,
    lds: &mut [u8],
) -> Result<(), FaultCause> {
    let index = usize::from(lane.0);
    match what {
        Transfer::Load(element) => {
            let bytes = lds::read(lds, offset, element.bytes());
            for word in 0..element.words() {
                let row = wave.row_mut(op.destination.plus(word.into()));
                let loaded = u32::from_le_bytes(
                    [0, 1, 2, 3].map(|byte| bytes[usize::from(word) * 4 + byte]),
                );
                row.0[index] = element.extend(loaded, row.0[index]);
            }
        }
        Transfer::Store(element) => {
            let mut bytes = [0; 16];
            for word in 0..element.words() {
                let register = data_row(op, word.into()).map_or(0, |row| wave.row(row).0[index]);
                bytes[usize::from(word) * 4..][..4]
                    .copy_from_slice(&element.part(register).to_le_bytes());
            }
            lds::write(lds, offset, &bytes[..element.bytes()]);
        }
        Transfer::Atomic { atomic, returns } => {
            let [data, second] = atomic_operands(wave, op, atomic, lane);
            let old = lds::modify(lds, offset, lane, atomic, data, second)?;
            if returns {
                write_lane(wave, op, lane, old, atomic.bytes);
            }
        }
    }
    Ok(())
}

/// A private access. Consecutive dwords of a lane lie 64 dwords apart, so that the lanes' dwords
/// are adjacent (AMDGPUUsage, "Private"); the base is the wave's FLAT_SCRATCH.
#[inline(never)]
fn scratch(
    wave: &mut Wave,
    op: &Op,
    what: Transfer,
    offsets: &[u32; LANES],
    lanes: LaneMask,
    memory: &mut dyn Memory,
) -> Result<(), FaultCause> {
    let base = wave.scalar_pair(ScalarIndex::FLAT_SCRATCH);
    if let Some(addresses) = dword_rows(base, offsets, lanes) {
        match what {
            Transfer::Load(Element::Words(words)) => {
                return load_words(wave, op, words, PRIVATE_DWORD_STRIDE, &addresses, memory);
            }
            Transfer::Store(Element::Words(words)) => {
                return store_words(wave, op, words, PRIVATE_DWORD_STRIDE, &addresses, memory);
            }
            _ => {}
        }
    }
    let place = |offset: u32, lane: Lane| {
        let (dword, byte) = (u64::from(offset / 4), u64::from(offset % 4));
        base.wrapping_add(dword * 4 * LANES as u64 + u64::from(lane.0) * 4 + byte)
    };
    swizzled(wave, op, what, lanes, memory, |lane, byte| {
        Some(place(offsets[usize::from(lane.0)].wrapping_add(byte), lane))
    })
}

/// Bytes from one dword of a lane's private memory to the next.
const PRIVATE_DWORD_STRIDE: u32 = 4 * LANES as u32;

/// Where the dwords at private offsets lie, if all offsets are aligned; those beyond what a lane
/// can have are left to the general case.
fn dword_rows(base: u64, offsets: &[u32; LANES], lanes: LaneMask) -> Option<Addresses> {
    let apart = PRIVATE_DWORD_STRIDE / 4;
    let simple = |lane: Lane| {
        let offset = offsets[usize::from(lane.0)];
        offset.is_multiple_of(4) && offset < u32::MAX / (2 * apart)
    };
    lanes.lanes().all(simple).then(|| {
        let low = |lane: usize| offsets[lane].wrapping_mul(apart).wrapping_add(4 * lane as u32);
        Addresses { low: Row(std::array::from_fn(low)), high: Row::ZERO, base, lanes }
    })
}

/// An access whose bytes do not lie together: `place` gives the address of each byte, or
/// `None` where it is out of range (loads give zero, stores are dropped).
fn swizzled(
    wave: &mut Wave,
    op: &Op,
    what: Transfer,
    lanes: LaneMask,
    memory: &mut dyn Memory,
    place: impl Fn(Lane, u32) -> Option<u64>,
) -> Result<(), FaultCause> {
    for lane in lanes.lanes() {
        let index = usize::from(lane.0);
        match what {
            Transfer::Load(element) => {
                let mut bytes = [0; 16];
                for (offset, byte) in bytes[..element.bytes()].iter_mut().enumerate() {
                    if let Some(at) = place(lane, offset as u32) {
                        read_bytes(memory, at, std::slice::from_mut(byte), AccessKind::Read, lane)?;
                    }
                }
                for word in 0..element.words() {
                    let loaded = u32::from_le_bytes(
                        [0, 1, 2, 3].map(|byte| bytes[usize::from(word) * 4 + byte]),
                    );
                    let row = wave.row_mut(op.destination.plus(word.into()));
                    row.0[index] = element.extend(loaded, row.0[index]);
                }
            }
            Transfer::Store(element) => {
                for offset in 0..element.bytes() {
                    let register = data_row(op, offset / 4).map_or(0, |row| wave.row(row).0[index]);
                    let byte = element.part(register).to_le_bytes()[offset % 4];
                    let Some(at) = place(lane, offset as u32) else { continue };
                    write_bytes(memory, at, &[byte], lane)?;
                }
            }
            Transfer::Atomic { atomic, returns } => {
                let [data, second] = atomic_operands(wave, op, atomic, lane);
                let old = match place(lane, 0) {
                    Some(at) => modify(memory, at, lane, atomic, data, second)?,
                    None => 0,
                };
                if returns {
                    write_lane(wave, op, lane, old, atomic.bytes);
                }
            }
        }
    }
    Ok(())
}

/// A buffer resource (ISA manual, "Buffer resource descriptor").
struct Buffer {
    base: u64,
    stride: u32,
    records: u32,
    swizzle: bool,
    index_stride: u32,
    add_thread: bool,
    /// The scalar offset of the instruction.
    offset: u32,
}

impl Buffer {
    /// Bytes that swizzling keeps together; fixed since gfx9.
    const ELEMENT: u32 = 4;

    fn read(wave: &Wave, op: &Op) -> Buffer {
        let first = match op.sources[2].words[0] {
            Word::Scalar(first) => first.0,
            _ => 0,
        };
        let [low, high, records, flags] =
            [0, 1, 2, 3].map(|word| wave.scalar(ScalarIndex((first + word) & 127)));
        let add_thread = flags >> 23 & 1 != 0;
        // With the thread added, the data format gives the stride's upper bits.
        let more = if add_thread { (flags >> 15 & 0xf) << 14 } else { 0 };
        Buffer {
            base: u64::from(low) | u64::from(high & 0xffff) << 32,
            stride: high >> 16 & 0x3fff | more,
            records,
            swizzle: high >> 31 != 0,
            index_stride: 8 << (flags >> 21 & 3),
            add_thread,
            offset: scalar_word(wave, op.sources[3].words[0]),
        }
    }

    /// The address of a byte at `offset` of record `index`; `None` out of range (ISA manual,
    /// "Buffer addressing", range checking).
    fn place(&self, lane: Lane, index: u32, offset: u32) -> Option<u64> {
        let index = index.wrapping_add(if self.add_thread { lane.0.into() } else { 0 });
        let raw = self.stride == 0 || !self.swizzle;
        let in_buffer = if self.swizzle {
            let (high, low) = (index / self.index_stride, index % self.index_stride);
            let (major, minor) = (offset / Buffer::ELEMENT, offset % Buffer::ELEMENT);
            let record = u64::from(high) * u64::from(self.stride);
            (record + u64::from(major * Buffer::ELEMENT)) * u64::from(self.index_stride)
                + u64::from(low * Buffer::ELEMENT + minor)
        } else {
            u64::from(index) * u64::from(self.stride) + u64::from(offset)
        };
        let out_of_range = if raw && self.stride == 0 {
            in_buffer + u64::from(self.offset) >= u64::from(self.records)
        } else {
            index >= self.records || (self.stride != 0 && offset >= self.stride)
        };
        (!out_of_range).then(|| self.base.wrapping_add(self.offset.into()).wrapping_add(in_buffer))
    }
}

#[inline(never)]
fn buffered(
    wave: &mut Wave,
    op: &Op,
    what: Transfer,
    buffer: &Buffer,
    offsets: &[u32; LANES],
    indices: &[u32; LANES],
    memory: &mut dyn Memory,
) -> Result<(), FaultCause> {
    let exec = wave.exec();
    swizzled(wave, op, what, exec, memory, |lane, byte| {
        let at = usize::from(lane.0);
        buffer.place(lane, indices[at], offsets[at].wrapping_add(byte))
    })
}
