//! Decoding of PM4 packets.

use crate::comparison::Comparison;
use crate::map::GpuAddress;
use crate::refusal::QueueError;
use flipwave_device::Dim3;

/// First dword of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header(pub u32);

impl Header {
    /// Number of dwords of the packet with its header; `None` for an unknown packet type.
    pub fn dwords(self) -> Option<u32> {
        const FILLER: u32 = 2;
        const COMMAND: u32 = 3;
        /// A count that leaves out the body.
        const NO_BODY: u32 = 0x3fff;
        let count = self.0 >> 16 & 0x3fff;
        match self.0 >> 30 {
            FILLER => Some(1),
            COMMAND if self.opcode() == Opcode::NOP && count == NO_BODY => Some(1),
            COMMAND => Some(count + 2),
            _ => None,
        }
    }

    fn opcode(self) -> u8 {
        (self.0 >> 8) as u8
    }

    fn is_filler(self) -> bool {
        self.0 >> 30 == 2
    }
}

/// Numbers of commands.
struct Opcode;

impl Opcode {
    const NOP: u8 = 0x10;
    const DISPATCH_DIRECT: u8 = 0x15;
    const PRED_EXEC: u8 = 0x23;
    const WAIT_REG_MEM: u8 = 0x3c;
    const INDIRECT_BUFFER: u8 = 0x3f;
    const COPY_DATA: u8 = 0x40;
    const EVENT_WRITE: u8 = 0x46;
    const RELEASE_MEM: u8 = 0x49;
    const ACQUIRE_MEM: u8 = 0x58;
    const SET_SH_REG: u8 = 0x76;
    const SET_UCONFIG_REG: u8 = 0x79;
}

/// A decoded packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet {
    /// A packet without effect: padding, cache management, and waits for earlier dispatches, which
    /// have ended when the next packet is read. Also registers that configure counters.
    Nothing,
    /// Waits for a value in memory or in a register.
    Wait(Wait),
    /// Writes memory and sends an interrupt after earlier dispatches.
    Release(Release),
    /// Sets registers that launches are built from.
    SetRegisters {
        /// Number of the first register, from the start of the SH registers.
        first: u16,
        values: Vec<u32>,
    },
    /// Starts a kernel.
    Dispatch {
        /// Number of workgroups per dimension.
        workgroups: Dim3,
        initiator: Initiator,
    },
    /// Executes packets elsewhere in memory.
    Indirect { start: GpuAddress, dwords: u32 },
    /// Executes the next dwords on some dies only.
    Predicate { dies: u8, dwords: u32 },
    /// Copies a performance counter to memory.
    CopyCounter { to: GpuAddress },
}

/// A condition on a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wait {
    pub place: WaitPlace,
    pub comparison: Comparison,
    pub reference: u32,
    pub mask: u32,
}

/// Location of the word that a packet waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitPlace {
    Memory(GpuAddress),
    /// A register, which reads as 0.
    Register,
    /// A pair of registers: a request and its acknowledgement, as for flushes of HDP.
    Handshake,
}

/// A write at the end of earlier work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Release {
    pub to: GpuAddress,
    pub data: ReleaseData,
    /// Number of the event that an interrupt signals.
    pub event: Option<u32>,
}

/// Data that [`Release`] writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReleaseData {
    None,
    Word(u32),
    DoubleWord(u64),
    /// The GPU's clock.
    Clock,
}

/// `COMPUTE_DISPATCH_INITIATOR`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Initiator(pub u32);

impl Initiator {
    const COMPUTE_SHADER_EN: u32 = 1 << 0;
    const PARTIAL_TG_EN: u32 = 1 << 1;
    const FORCE_START_AT_000: u32 = 1 << 2;
    const USE_THREAD_DIMENSIONS: u32 = 1 << 5;
    const CS_W32_EN: u32 = 1 << 15;

    /// Returns `true` if the packet starts a kernel at all.
    pub fn is_enabled(self) -> bool {
        self.0 & Initiator::COMPUTE_SHADER_EN != 0
    }

    /// Returns `true` if workgroups are counted from 0 whatever `COMPUTE_START_X` says.
    pub fn starts_at_zero(self) -> bool {
        self.0 & Initiator::FORCE_START_AT_000 != 0
    }

    /// Returns `true` for waves of 32 lanes.
    pub fn has_wave32(self) -> bool {
        self.0 & Initiator::CS_W32_EN != 0
    }

    /// Returns `true` for grids that are not given in whole workgroups, which are not supported.
    pub fn is_partial(self) -> bool {
        self.0 & (Initiator::PARTIAL_TG_EN | Initiator::USE_THREAD_DIMENSIONS) != 0
    }
}

impl Packet {
    /// Decodes a packet of which these are all dwords.
    ///
    /// # Errors
    /// [`QueueError::Packet`] for an unknown command or an invalid body.
    pub fn decode(dwords: &[u32]) -> Result<Packet, QueueError> {
        let [header, body @ ..] = dwords else { return Err(QueueError::Packet) };
        let header = Header(*header);
        if header.is_filler() {
            return Ok(Packet::Nothing);
        }
        match header.opcode() {
            Opcode::NOP | Opcode::ACQUIRE_MEM | Opcode::EVENT_WRITE | Opcode::SET_UCONFIG_REG => {
                Ok(Packet::Nothing)
            }
            Opcode::WAIT_REG_MEM => decode_wait(words(body)?).map(Packet::Wait),
            Opcode::RELEASE_MEM => decode_release(words(body)?).map(Packet::Release),
            Opcode::SET_SH_REG => match body {
                [first, values @ ..] if !values.is_empty() => {
                    Ok(Packet::SetRegisters { first: *first as u16, values: values.to_vec() })
                }
                _ => Err(QueueError::Packet),
            },
            Opcode::DISPATCH_DIRECT => {
                let [x, y, z, initiator] = words(body)?;
                Ok(Packet::Dispatch { workgroups: [x, y, z], initiator: Initiator(initiator) })
            }
            Opcode::INDIRECT_BUFFER => decode_indirect(words(body)?),
            Opcode::PRED_EXEC => {
                let [word] = words(body)?;
                Ok(Packet::Predicate { dies: (word >> 24) as u8, dwords: word & 0x3fff })
            }
            Opcode::COPY_DATA => decode_copy(words(body)?),
            _ => Err(QueueError::Packet),
        }
    }
}

/// The body of a packet that has `N` dwords.
fn words<const N: usize>(body: &[u32]) -> Result<[u32; N], QueueError> {
    body.try_into().map_err(|_| QueueError::Packet)
}

fn address(low: u32, high: u32) -> GpuAddress {
    GpuAddress(u64::from(low) | u64::from(high) << 32)
}

fn decode_wait(body: [u32; 6]) -> Result<Wait, QueueError> {
    let [info, low, high, reference, mask, _interval] = body;
    const IN_MEMORY: u32 = 1 << 4;
    let operation = info >> 6 & 3;
    let place = match (info & IN_MEMORY != 0, operation) {
        (true, 0) => WaitPlace::Memory(address(low & !3, high)),
        (false, 0) => WaitPlace::Register,
        (false, 1) => WaitPlace::Handshake,
        _ => return Err(QueueError::Packet),
    };
    Ok(Wait { place, comparison: Comparison::from_bits(info), reference, mask })
}

fn decode_release(body: [u32; 7]) -> Result<Release, QueueError> {
    let [_event, selectors, low, high, value_low, value_high, context] = body;
    let data = match selectors >> 29 {
        0 => ReleaseData::None,
        1 => ReleaseData::Word(value_low),
        2 => ReleaseData::DoubleWord(address(value_low, value_high).0),
        3 => ReleaseData::Clock,
        _ => return Err(QueueError::Packet),
    };
    let interrupts = match selectors >> 24 & 7 {
        // No interrupt; 3 asks for a confirmed write.
        0 | 3 => false,
        1 | 2 => true,
        _ => return Err(QueueError::Packet),
    };
    // The driver finds an event by the context, or by the value that was written to its mailbox.
    let event = match data {
        _ if !interrupts => None,
        _ if context != 0 => Some(context),
        ReleaseData::Word(value) => Some(value),
        ReleaseData::DoubleWord(value) => u32::try_from(value).ok(),
        ReleaseData::None | ReleaseData::Clock => None,
    };
    Ok(Release { to: address(low, high), data, event })
}

fn decode_indirect([low, high, control]: [u32; 3]) -> Result<Packet, QueueError> {
    const CHAIN: u32 = 1 << 20;
    const VALID: u32 = 1 << 23;
    if control & VALID == 0 || control & CHAIN != 0 {
        return Err(QueueError::Packet);
    }
    let start = address(low & !3, high & 0xffff);
    Ok(Packet::Indirect { start, dwords: control & 0xf_ffff })
}

fn decode_copy([control, _source, _, low, high]: [u32; 5]) -> Result<Packet, QueueError> {
    const COUNTER: u32 = 4;
    const MEMORY: u32 = 2;
    if (control & 0xf, control >> 8 & 0xf) != (COUNTER, MEMORY) {
        return Err(QueueError::Packet);
    }
    Ok(Packet::CopyCounter { to: address(low, high) })
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A packet with an opcode and a body.
    pub fn packet(opcode: u8, body: &[u32]) -> Vec<u32> {
        let count = (body.len() as u32).wrapping_sub(1) & 0x3fff;
        let header = 3 << 30 | count << 16 | u32::from(opcode) << 8;
        [&[header], body].concat()
    }

    fn decode(opcode: u8, body: &[u32]) -> Result<Packet, QueueError> {
        let dwords = packet(opcode, body);
        assert_eq!(Header(dwords[0]).dwords(), Some(dwords.len() as u32));
        Packet::decode(&dwords)
    }

    const INVALID: Result<Packet, QueueError> = Err(QueueError::Packet);

    #[test]
    fn bodies_of_the_wrong_length_are_refused() {
        let lengths = [
            (Opcode::WAIT_REG_MEM, 6),
            (Opcode::RELEASE_MEM, 7),
            (Opcode::DISPATCH_DIRECT, 4),
            (Opcode::PRED_EXEC, 1),
        ];
        for (opcode, length) in lengths {
            for tried in 1..10 {
                let is_valid = decode(opcode, &vec![0; tried]).is_ok();
                assert_eq!(is_valid, tried == length, "{opcode:#x} with {tried} dwords");
            }
        }
        assert_eq!(decode(Opcode::SET_SH_REG, &[0x200]), INVALID);
        assert_eq!(decode(0x77, &[0]), INVALID);
        assert_eq!(Packet::decode(&[]), INVALID);
    }

    #[test]
    fn lengths_follow_the_packet_type() {
        assert_eq!(Header(0).dwords(), None);
        assert_eq!(Header(1 << 30).dwords(), None);
        assert_eq!(Header(2 << 30).dwords(), Some(1));
        assert_eq!(Header(3 << 30 | 0x3fff << 16 | 0x10 << 8).dwords(), Some(1));
        assert_eq!(Header(3 << 30 | 0x3fff << 16 | 0x76 << 8).dwords(), Some(0x4001));
    }

    #[test]
    fn waits_name_memory_or_registers() {
        let wait = |info, low, high| decode(Opcode::WAIT_REG_MEM, &[info, low, high, 7, 0xff, 4]);
        let expected = |place, comparison| {
            Ok(Packet::Wait(Wait { place, comparison, reference: 7, mask: 0xff }))
        };
        let place = WaitPlace::Memory(GpuAddress(0x5_0000_1000));
        assert_eq!(wait(0x15, 0x1003, 5), expected(place, Comparison::GreaterOrEqual));
        assert_eq!(wait(0x43, 0xe26, 0xe27), expected(WaitPlace::Handshake, Comparison::Equal));
        assert_eq!(wait(0x04, 0xe26, 0), expected(WaitPlace::Register, Comparison::NotEqual));
        assert_eq!(wait(0x55, 0, 0), INVALID);
        assert_eq!(wait(0x83, 0, 0), INVALID);
    }

    #[test]
    fn releases_write_values_and_signal_events() {
        let release = |selectors: u32, context| {
            decode(Opcode::RELEASE_MEM, &[0x514, selectors, 0x1000, 5, 9, 1, context])
        };
        let expected = |data, event| {
            Ok(Packet::Release(Release { to: GpuAddress(0x5_0000_1000), data, event }))
        };
        assert_eq!(release(0, 3), expected(ReleaseData::None, None));
        assert_eq!(release(1 << 29, 3), expected(ReleaseData::Word(9), None));
        assert_eq!(release(1 << 29 | 2 << 24, 3), expected(ReleaseData::Word(9), Some(3)));
        assert_eq!(release(1 << 29 | 2 << 24, 0), expected(ReleaseData::Word(9), Some(9)));
        assert_eq!(release(2 << 29, 0), expected(ReleaseData::DoubleWord(0x1_0000_0009), None));
        assert_eq!(release(3 << 29, 0), expected(ReleaseData::Clock, None));
        assert_eq!(release(2 << 24, 0), expected(ReleaseData::None, None));
        assert_eq!(release(5 << 29, 0), INVALID);
        assert_eq!(release(4 << 24, 0), INVALID);
    }

    #[test]
    fn indirect_buffers_are_valid_and_unchained() {
        let indirect = |control| decode(Opcode::INDIRECT_BUFFER, &[0x1002, 0xffff_0005, control]);
        let start = GpuAddress(0x5_0000_1000);
        assert_eq!(indirect(1 << 23 | 77), Ok(Packet::Indirect { start, dwords: 77 }));
        assert_eq!(indirect(77), INVALID);
        assert_eq!(indirect(1 << 23 | 1 << 20 | 77), INVALID);
    }

    #[test]
    fn only_counters_are_copied_to_memory() {
        let copy = |control| decode(Opcode::COPY_DATA, &[control, 0x100, 0, 0x1000, 5]);
        let to = GpuAddress(0x5_0000_1000);
        assert_eq!(copy(2 << 8 | 4), Ok(Packet::CopyCounter { to }));
        assert_eq!(copy(1 << 8), INVALID);
        assert_eq!(copy(2 << 8 | 1), INVALID);
    }
}
