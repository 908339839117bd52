//! The packet processor of a queue: executes PM4 packets, one after another.

use super::launch::RegisterLaunch;
use super::packet::{Header, Packet, Release, ReleaseData, Wait, WaitPlace};
use super::registers::ShRegisters;
use crate::clock::gpu_clock;
use crate::events::Events;
use crate::map::{GpuAddress, View, Violation};
use crate::queue::{Queue, QueueKind, Ring};
use crate::refusal::{QueueError, Refusal};
use flipwave_isa::Generation;
use std::sync::atomic::Ordering;

/// Packets outside of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IndirectBuffer {
    /// Address of the next packet.
    pub next: GpuAddress,
    /// Number of dwords that are not executed.
    pub dwords: u32,
    /// Number of dwords of the packet in the ring that names the buffer; 0 in a ring of AQL packets.
    pub named_by: u32,
}

impl IndirectBuffer {
    /// Number of dwords of a packet that names a buffer.
    pub const PACKET_DWORDS: usize = 4;

    /// The buffer that a packet outside of PM4 rings names; `None` for another packet.
    pub fn decode(packet: &[u32; IndirectBuffer::PACKET_DWORDS]) -> Option<IndirectBuffer> {
        let has_length = Header(packet[0]).dwords() == Some(IndirectBuffer::PACKET_DWORDS as u32);
        match Packet::decode(packet) {
            Ok(Packet::Indirect { start, dwords }) if has_length => {
                Some(IndirectBuffer { next: start, dwords, named_by: 0 })
            }
            _ => None,
        }
    }
}

/// State of a queue's packet processor.
#[derive(Debug, Default)]
pub struct Processor {
    registers: ShRegisters,
    /// The buffer that is being executed.
    buffer: Option<IndirectBuffer>,
}

/// Result of [`Processor::step`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// A packet was executed.
    Executed,
    /// A packet starts a kernel.
    Launch(RegisterLaunch),
    /// The next packet waits.
    Waiting,
    /// There is no packet: the ring is empty, or the indirect buffer of an AQL packet has ended.
    End,
}

/// Returned if the next packet waits or is not written yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocked;

/// Consecutive dwords of a ring or of an indirect buffer.
#[derive(Clone, Copy)]
enum Stream {
    Ring { ring: Ring, position: u64 },
    Buffer(GpuAddress),
}

impl Stream {
    fn address(self, dword: u32) -> GpuAddress {
        let offset = 4 * u64::from(dword);
        match self {
            Stream::Ring { ring, position } => {
                ring.address(position.wrapping_mul(4).wrapping_add(offset))
            }
            Stream::Buffer(start) => start.plus(offset),
        }
    }
}

/// The next packet, and its number of dwords.
struct Fetched {
    packet: Packet,
    dwords: u32,
    /// Number of dwords that follow it.
    left: u32,
}

impl Processor {
    /// Returns `true` while an indirect buffer is being executed.
    pub fn is_in_buffer(&self) -> bool {
        self.buffer.is_some()
    }

    /// Starts to execute an indirect buffer, unless one is being executed already.
    pub fn enter(&mut self, buffer: IndirectBuffer) {
        self.buffer.get_or_insert(buffer);
    }

    /// Checks that the next packet does not wait. A packet that [`Processor::step`] refuses does not
    /// wait.
    ///
    /// # Errors
    /// [`Blocked`].
    pub fn check_ready(&self, queue: &Queue) -> Result<(), Blocked> {
        let view = queue.view();
        let is_ready = match self.fetch(queue, &view) {
            Ok(Some(Fetched { packet: Packet::Wait(wait), .. })) => {
                is_reached(&wait, &view).unwrap_or(true)
            }
            Ok(None) => self.buffer.is_some(),
            Ok(Some(_)) | Err(_) => true,
        };
        if is_ready { Ok(()) } else { Err(Blocked) }
    }

    /// Executes the next packet.
    ///
    /// # Errors
    /// [`Refusal`] of an invalid packet, or of an address that the GPU may not access.
    pub fn step(
        &mut self,
        queue: &Queue,
        generation: Generation,
        events: &Events,
    ) -> Result<Step, Refusal> {
        let view = queue.view();
        let Some(fetched) = self.fetch(queue, &view)? else {
            let Some(buffer) = self.buffer.take() else { return Ok(Step::End) };
            if queue.kind != QueueKind::Pm4 {
                return Ok(Step::End);
            }
            advance_ring(queue, &view, buffer.named_by)?;
            return Ok(Step::Executed);
        };
        let Fetched { packet, mut dwords, left } = fetched;
        let mut result = Step::Executed;
        match packet {
            Packet::Nothing => {}
            Packet::Wait(wait) => {
                if !is_reached(&wait, &view)? {
                    return Ok(Step::Waiting);
                }
            }
            Packet::Release(release) => write_release(&release, &view, events)?,
            Packet::SetRegisters { first, values } => {
                self.registers.set(first, &values).map_err(Refusal::Packet)?;
            }
            Packet::Dispatch { workgroups, initiator } if initiator.is_enabled() => {
                let launch = self.registers.launch(generation, workgroups, initiator);
                result = Step::Launch(launch.map_err(Refusal::Packet)?);
            }
            Packet::Dispatch { .. } => {}
            Packet::Indirect { start, dwords: length } => {
                // Nested buffers could form an endless loop.
                if self.buffer.is_some() {
                    return Err(Refusal::Packet(QueueError::Packet));
                }
                self.enter(IndirectBuffer { next: start, dwords: length, named_by: dwords });
                return Ok(result);
            }
            Packet::Predicate { dies, dwords: dependent } => {
                // All dies are one, which does what the first die does.
                if dependent > left {
                    return Err(Refusal::Packet(QueueError::Packet));
                }
                if dies & 1 == 0 {
                    dwords += dependent;
                }
            }
            // Nothing is counted.
            Packet::CopyCounter { to } => view.word32(to)?.store(0, Ordering::Release),
        }
        match &mut self.buffer {
            Some(buffer) => {
                buffer.next = buffer.next.plus(4 * u64::from(dwords));
                buffer.dwords -= dwords;
            }
            None => advance_ring(queue, &view, dwords)?,
        }
        Ok(result)
    }

    /// Copies and decodes the next packet; `None` at the end of the written packets.
    fn fetch(&self, queue: &Queue, view: &View<'_>) -> Result<Option<Fetched>, Refusal> {
        let (stream, left) = match self.buffer {
            Some(buffer) => (Stream::Buffer(buffer.next), buffer.dwords),
            None => {
                let (read, written) = (queue.read_index(view)?, queue.write_index(view)?);
                let left = written.saturating_sub(read);
                // Corrupted indices may claim more packets than fit into the ring.
                let fits = left.checked_mul(4).is_some_and(|bytes| queue.ring.has_room(bytes));
                if !fits {
                    return Err(Refusal::Packet(QueueError::Packet));
                }
                (Stream::Ring { ring: queue.ring, position: read }, left as u32)
            }
        };
        if left == 0 {
            return Ok(None);
        }
        let word = |index| -> Result<u32, Violation> {
            Ok(view.word32(stream.address(index))?.load(Ordering::Acquire))
        };
        let header = word(0)?;
        let dwords = Header(header).dwords().filter(|dwords| *dwords <= left);
        let dwords = dwords.ok_or(Refusal::Packet(QueueError::Packet))?;
        let mut content = vec![header];
        for index in 1..dwords {
            content.push(word(index)?);
        }
        let packet = Packet::decode(&content).map_err(Refusal::Packet)?;
        Ok(Some(Fetched { packet, dwords, left: left - dwords }))
    }
}

fn advance_ring(queue: &Queue, view: &View<'_>, dwords: u32) -> Result<(), Violation> {
    let index = queue.read_index(view)?;
    queue.set_read_index(view, index.wrapping_add(dwords.into()))
}

/// Returns `true` if the condition of a wait holds.
///
/// # Errors
/// [`Refusal`] if the GPU may not access the word, or if the condition can never hold.
fn is_reached(wait: &Wait, view: &View<'_>) -> Result<bool, Refusal> {
    let holds = |value: u32| wait.comparison.holds(value & wait.mask, wait.reference);
    match wait.place {
        WaitPlace::Memory(address) => Ok(holds(view.word32(address)?.load(Ordering::Acquire))),
        WaitPlace::Register if holds(0) => Ok(true),
        WaitPlace::Register => Err(Refusal::Packet(QueueError::Packet)),
        WaitPlace::Handshake => Ok(true),
    }
}

fn write_release(release: &Release, view: &View<'_>, events: &Events) -> Result<(), Violation> {
    let to = release.to;
    match release.data {
        ReleaseData::None => {}
        ReleaseData::Word(value) => view.word32(to)?.store(value, Ordering::Release),
        ReleaseData::DoubleWord(value) => view.word64(to)?.store(value, Ordering::Release),
        ReleaseData::Clock => view.word64(to)?.store(gpu_clock(), Ordering::Release),
    }
    if let Some(event) = release.event {
        events.set(event);
    }
    events.signal_notifier.notify();
    Ok(())
}
