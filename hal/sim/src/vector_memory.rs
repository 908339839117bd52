//! Vector memory: global, flat, scratch and buffer accesses, one address per lane.

use crate::aperture::{self, Window};
use crate::atomic::Atomic;
use crate::buffer::Buffer;
use crate::element::Element;
use crate::format::{self, Format};
use crate::lane_access::{self, Active};
use crate::lds;
use crate::level::at_each_level;
use crate::memory::{Memory, modify, read_bytes, write_bytes};
use crate::op::{Op, Word};
use crate::private;
use crate::vector::scalar_word;
use crate::wave::{LANES, Row, RowIndex, ScalarIndex, Wave};
use flipwave_device::{AccessKind, FaultCause};
use flipwave_isa::{BufferFormat, Generation, Inst, Lane, LaneMask, Modifiers};

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
    /// Memory to registers, converted.
    LoadFormat(Formatted),
    /// Registers to memory, converted.
    StoreFormat(Formatted),
    /// Memory to LDS: a dword per lane, the lanes' side by side.
    LoadToLds(Element),
    /// The same, converted.
    LoadFormatToLds(Formatted),
    /// LDS to memory, likewise.
    StoreFromLds(Element),
}

/// What a formatted access moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Formatted {
    /// Components in registers.
    components: u8,
    /// How they lie there.
    part: Part,
    /// The instruction's own format; without, the resource has it.
    format: Option<BufferFormat>,
}

/// How components lie in registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// One per register.
    Words,
    /// Two per register. Half words without a component keep their value.
    Halves,
    /// One in the high half.
    HighHalf,
}

/// The vector memory operation of an instruction.
pub fn find(inst: &Inst) -> Option<VectorAccess> {
    let Modifiers { offen, idxen, lds, buffer_format, .. } = inst.modifiers;
    // Whatever the modifier is called that asks for it.
    let returns = inst.destinations().next().is_some();
    let (space, rest) = inst.operation.name().split_once('_')?;
    let typed = (space == "tbuffer").then(|| buffer_format.unwrap_or_default());
    let space = match space {
        "global" => Space::Global,
        "flat" => Space::Flat,
        "scratch" => Space::Scratch,
        "buffer" | "tbuffer" => Space::Buffer { offset: offen, index: idxen },
        _ => return None,
    };
    let (verb, what) = rest.split_once('_')?;
    let formatted = what.strip_prefix("format_").and_then(|layout| formatted(layout, typed));
    let transfer = match (verb, formatted) {
        ("load", Some(formatted)) if lds => Transfer::LoadFormatToLds(formatted),
        ("load", Some(formatted)) => Transfer::LoadFormat(formatted),
        ("store", Some(formatted)) => Transfer::StoreFormat(formatted),
        ("load", None) if lds => Transfer::LoadToLds(Element::named(what)?),
        ("load", None) => Transfer::Load(Element::named(what)?),
        ("store", None) => match what.strip_prefix("lds_") {
            Some(what) => Transfer::StoreFromLds(Element::named(what)?),
            None => Transfer::Store(Element::named(what)?),
        },
        ("atomic", _) => Transfer::Atomic { atomic: crate::atomic::find_memory(what)?, returns },
        _ => return None,
    };
    Some(VectorAccess { space, transfer })
}

/// What `xyz`, `d16_xy` and `d16_hi_x` name.
fn formatted(layout: &str, format: Option<BufferFormat>) -> Option<Formatted> {
    let (part, names) = if let Some(names) = layout.strip_prefix("d16_hi_") {
        (Part::HighHalf, names)
    } else if let Some(names) = layout.strip_prefix("d16_") {
        (Part::Halves, names)
    } else {
        (Part::Words, layout)
    };
    let components = ["x", "xy", "xyz", "xyzw"].iter().position(|known| *known == names)? as u8 + 1;
    Some(Formatted { components, part, format })
}

impl Transfer {
    /// Whether registers are read.
    pub fn has_data(self) -> bool {
        matches!(self, Transfer::Store(_) | Transfer::StoreFormat(_) | Transfer::Atomic { .. })
    }

    /// Bytes that exist all or none: the dwords of a plain access one by one, atomics and
    /// formatted elements as a whole (ISA manual, "Range checking").
    fn granule(self, buffer: &Buffer) -> usize {
        let granule = match self {
            Transfer::Load(element)
            | Transfer::Store(element)
            | Transfer::LoadToLds(element)
            | Transfer::StoreFromLds(element) => element.bytes().min(4),
            Transfer::Atomic { atomic, .. } => atomic.bytes.into(),
            Transfer::LoadFormat(formatted)
            | Transfer::StoreFormat(formatted)
            | Transfer::LoadFormatToLds(formatted) => {
                formatted.resolve(buffer).0.map_or(1, Format::bytes)
            }
        };
        granule.max(1)
    }
}

impl Formatted {
    /// Format and channel selections. An instruction with a format of its own has the components
    /// in order.
    fn resolve(self, buffer: &Buffer) -> (Option<Format>, [u8; 4]) {
        match self.format {
            Some(format) => (Format::new(format), [4, 5, 6, 7]),
            None => (Format::new(buffer.format), buffer.channels),
        }
    }
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
            transfer(wave, op, access.transfer, &addresses, memory, lds)
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
            scratch(wave, op, access.transfer, &offsets, exec, memory, lds)
        }
        Space::Flat => flat(wave, op, access.transfer, exec, memory, lds),
        Space::Buffer { offset, index } => {
            let buffer = Buffer::read(wave, op, index);
            if wave.machine.generation >= Generation::Gfx10 && !buffer.adds_thread() {
                return Err(FaultCause::Unimplemented {
                    instruction: op.inst.text.as_str().into(),
                    reason: "buffer resources other than that of private memory".into(),
                });
            }
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
            buffered(wave, op, access.transfer, &buffer, &offsets, &indices, memory, lds)
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
pub struct Addresses {
    low: Row,
    high: Row,
    /// The same for all lanes.
    base: u64,
    lanes: LaneMask,
}

impl Addresses {
    /// Global and flat addresses: 64-bit register pair, or scalar base plus 32-bit register.
    #[inline(always)]
    pub fn of(wave: &Wave, op: &Op, lanes: LaneMask) -> Addresses {
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
    pub fn at(&self, lane: usize) -> u64 {
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
    lds: &mut [u8],
) -> Result<(), FaultCause> {
    match transfer {
        Transfer::Load(Element::Words(words)) => load_words(wave, op, words, 4, addresses, memory),
        Transfer::Load(element) => load_parts(wave, op, element, addresses, memory),
        Transfer::Store(element) => store(wave, op, element, addresses, memory),
        Transfer::Atomic { atomic, returns } => {
            for lane in addresses.lanes.lanes() {
                let at = addresses.at(lane.0.into());
                let operands = atomic_operands(wave, op, atomic, lane);
                let old = modify(memory, at, Some(lane), atomic, operands)?;
                if returns {
                    write_lane(wave, op, lane, old, atomic.bytes);
                }
            }
            Ok(())
        }
        rare => {
            let place =
                |lane: Lane, byte: u32| Some(addresses.at(lane.0.into()).wrapping_add(byte.into()));
            let buffer = Buffer::default();
            scattered(wave, op, rare, addresses.lanes, &buffer, (memory, lds), place)
        }
    }
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
    if let Some(region) = memory.readable(addresses.first(), 4)
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
            read_bytes(memory, at, &mut bytes, AccessKind::Read, Some(lane))?;
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
        let length = element.bytes();
        read_bytes(memory, at, &mut bytes[..length], AccessKind::Read, Some(lane))?;
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
        let bytes = &bytes[..element.bytes()];
        write_bytes(memory, addresses.at(index), bytes, AccessKind::Write, Some(lane))?;
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
    if let Some(region) = memory.writable(addresses.first(), 4)
        && let Some(offsets) = addresses.offsets_from(region.base, &row)
        && lane_access::store(region.bytes, &offsets, active, rows, apart)
    {
        return Ok(());
    }
    for lane in addresses.lanes.lanes() {
        let index = usize::from(lane.0);
        for (word, row) in rows.iter().enumerate() {
            let at = addresses.at(index).wrapping_add(word as u64 * u64::from(apart));
            let bytes = row.0[index].to_le_bytes();
            write_bytes(memory, at, &bytes, AccessKind::Write, Some(lane))?;
        }
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
        scratch(wave, op, what, &offsets, private, memory, lds)?;
    }
    if global != LaneMask::EMPTY {
        addresses.lanes = global;
        transfer(wave, op, what, &addresses, memory, lds)?;
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
            let operands = atomic_operands(wave, op, atomic, lane);
            let old = lds::modify(lds, offset, lane, atomic, operands)?;
            if returns {
                write_lane(wave, op, lane, old, atomic.bytes);
            }
        }
        // No flat instruction converts, or moves data between LDS and memory.
        _ => {}
    }
    Ok(())
}

/// A private access; the base is the wave's FLAT_SCRATCH.
#[inline(never)]
fn scratch(
    wave: &mut Wave,
    op: &Op,
    what: Transfer,
    offsets: &[u32; LANES],
    lanes: LaneMask,
    memory: &mut dyn Memory,
    lds: &mut [u8],
) -> Result<(), FaultCause> {
    let base = wave.scalar_pair(wave.machine.flat_scratch);
    let wave_lanes = wave.machine.lanes;
    let stride = private::stride(wave_lanes);
    if let Some(addresses) = dword_rows(base, stride, offsets, lanes) {
        match what {
            Transfer::Load(Element::Words(words)) => {
                return load_words(wave, op, words, stride, &addresses, memory);
            }
            Transfer::Store(Element::Words(words)) => {
                return store_words(wave, op, words, stride, &addresses, memory);
            }
            _ => {}
        }
    }
    scattered(wave, op, what, lanes, &Buffer::default(), (memory, lds), |lane, byte| {
        let offset = offsets[usize::from(lane.0)].wrapping_add(byte);
        Some(private::address(base, wave_lanes, lane, offset))
    })
}

/// Where the dwords at private offsets lie, if all offsets are aligned; those beyond what a lane
/// can have are left to the general case.
fn dword_rows(
    base: u64,
    stride: u32,
    offsets: &[u32; LANES],
    lanes: LaneMask,
) -> Option<Addresses> {
    let apart = stride / 4;
    let simple = |lane: Lane| {
        let offset = offsets[usize::from(lane.0)];
        offset.is_multiple_of(4) && offset < u32::MAX / (2 * apart)
    };
    lanes.lanes().all(simple).then(|| {
        let low = |lane: usize| offsets[lane].wrapping_mul(apart).wrapping_add(4 * lane as u32);
        Addresses { low: Row(std::array::from_fn(low)), high: Row::ZERO, base, lanes }
    })
}

#[inline(never)]
#[expect(clippy::too_many_arguments, reason = "what the instruction says and what it touches")]
fn buffered(
    wave: &mut Wave,
    op: &Op,
    what: Transfer,
    buffer: &Buffer,
    offsets: &[u32; LANES],
    indices: &[u32; LANES],
    memory: &mut dyn Memory,
    lds: &mut [u8],
) -> Result<(), FaultCause> {
    let exec = wave.exec();
    let granule = what.granule(buffer) as u32;
    scattered(wave, op, what, exec, buffer, (memory, lds), |lane, byte| {
        let (index, offset) = (indices[usize::from(lane.0)], offsets[usize::from(lane.0)]);
        let first = offset.wrapping_add(byte - byte % granule);
        buffer
            .contains(lane, index, first, granule)
            .then(|| buffer.address(lane, index, offset.wrapping_add(byte)))
    })
}

/// An access whose bytes need not lie together: `place` gives the address of each byte, or
/// `None` where it is out of range (loads give zero, stores are dropped).
fn scattered(
    wave: &mut Wave,
    op: &Op,
    what: Transfer,
    lanes: LaneMask,
    buffer: &Buffer,
    (memory, lds): (&mut dyn Memory, &mut [u8]),
    place: impl Fn(Lane, u32) -> Option<u64>,
) -> Result<(), FaultCause> {
    for lane in lanes.lanes() {
        let index = usize::from(lane.0);
        match what {
            Transfer::Load(element) => {
                let bytes = gather(memory, element.bytes(), lane, &place)?;
                for word in 0..element.words() {
                    let row = wave.row_mut(op.destination.plus(word.into()));
                    row.0[index] = element.extend(word_of(&bytes, word), row.0[index]);
                }
            }
            Transfer::Store(element) => {
                let mut bytes = [0; 16];
                for word in 0..element.words() {
                    let register =
                        data_row(op, word.into()).map_or(0, |row| wave.row(row).0[index]);
                    bytes[usize::from(word) * 4..][..4]
                        .copy_from_slice(&element.part(register).to_le_bytes());
                }
                scatter(memory, &bytes[..element.bytes()], lane, &place)?;
            }
            Transfer::Atomic { atomic, returns } => {
                let operands = atomic_operands(wave, op, atomic, lane);
                let old = match place(lane, 0) {
                    Some(at) => modify(memory, at, Some(lane), atomic, operands)?,
                    None => 0,
                };
                if returns {
                    write_lane(wave, op, lane, old, atomic.bytes);
                }
            }
            Transfer::LoadFormat(formatted) => {
                let (format, channels) = formatted.resolve(buffer);
                let bytes = gather(memory, format.map_or(0, Format::bytes), lane, &place)?;
                for component in 0..formatted.components {
                    let channel = channels[usize::from(component)];
                    let (register, shift) = formatted.register(component);
                    let word = &mut wave.row_mut(op.destination.plus(register)).0[index];
                    if formatted.part == Part::Words {
                        *word = format.map_or(0, |format| format.word(bytes, channel));
                    } else {
                        let half = format.map_or(0, |format| format.half(bytes, channel));
                        *word = *word & !(0xffff << shift) | u32::from(half) << shift;
                    }
                }
            }
            Transfer::StoreFormat(formatted) => {
                let (Some(format), _) = formatted.resolve(buffer) else { return Ok(()) };
                let registers = (0..formatted.components).map(|component| {
                    let (register, shift) = formatted.register(component);
                    let word =
                        data_row(op, usize::from(register)).map_or(0, |row| wave.row(row).0[index]);
                    match formatted.part {
                        Part::Words => format::Register::Word(word),
                        _ => format::Register::Half((word >> shift) as u16),
                    }
                });
                let bytes = format.element(registers);
                scatter(memory, &bytes[..format.bytes()], lane, &place)?;
            }
            Transfer::LoadToLds(element) => {
                let bytes = gather(memory, element.bytes(), lane, &place)?;
                let word = element.extend(word_of(&bytes, 0), 0);
                lds::write(lds, lds_place(wave, op, lane), &word.to_le_bytes());
            }
            Transfer::LoadFormatToLds(formatted) => {
                let (format, channels) = formatted.resolve(buffer);
                let bytes = gather(memory, format.map_or(0, Format::bytes), lane, &place)?;
                let word = format.map_or(0, |format| format.word(bytes, channels[0]));
                lds::write(lds, lds_place(wave, op, lane), &word.to_le_bytes());
            }
            Transfer::StoreFromLds(element) => {
                let bytes = lds::read(lds, lds_place(wave, op, lane), element.bytes());
                scatter(memory, &bytes[..element.bytes()], lane, &place)?;
            }
        }
    }
    Ok(())
}

impl Formatted {
    /// Register and lowest bit of a component.
    fn register(self, component: u8) -> (u16, u32) {
        match self.part {
            Part::Words => (component.into(), 0),
            Part::Halves => ((component / 2).into(), u32::from(component % 2) * 16),
            Part::HighHalf => (0, 16),
        }
    }
}

fn word_of(bytes: &[u8; 16], word: u8) -> u32 {
    u32::from_le_bytes([0, 1, 2, 3].map(|byte| bytes[usize::from(word) * 4 + byte]))
}

/// Reads bytes that may lie apart; those out of range are zero.
fn gather(
    memory: &mut dyn Memory,
    count: usize,
    lane: Lane,
    place: &impl Fn(Lane, u32) -> Option<u64>,
) -> Result<[u8; 16], FaultCause> {
    let mut bytes = [0; 16];
    for (offset, byte) in bytes[..count].iter_mut().enumerate() {
        if let Some(at) = place(lane, offset as u32) {
            read_bytes(memory, at, std::slice::from_mut(byte), AccessKind::Read, Some(lane))?;
        }
    }
    Ok(bytes)
}

/// Writes bytes that may lie apart; those out of range are dropped.
fn scatter(
    memory: &mut dyn Memory,
    bytes: &[u8],
    lane: Lane,
    place: &impl Fn(Lane, u32) -> Option<u64>,
) -> Result<(), FaultCause> {
    for (offset, byte) in bytes.iter().enumerate() {
        if let Some(at) = place(lane, offset as u32) {
            write_bytes(memory, at, &[*byte], AccessKind::Write, Some(lane))?;
        }
    }
    Ok(())
}

/// Where a lane's dword lies in LDS for moves between memory and LDS: M0[15:0] and the
/// instruction's offset, then four bytes per lane (ISA manual, "Memory buffer load to LDS").
pub fn lds_place(wave: &Wave, op: &Op, lane: Lane) -> u32 {
    let base = wave.scalar(ScalarIndex::M0) & 0xffff;
    base.wrapping_add(op.immediate as u32).wrapping_add(u32::from(lane.0) * 4)
}
