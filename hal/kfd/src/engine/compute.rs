//! A compute engine: executes the packets of a GPU's compute queues.

use super::copies::CopyEngine;
use super::gpu::Gpus;
use super::turns::{Turn, Turns};
use crate::aql::{self, NotReady, Packet, Times, Work};
use crate::clock::clock;
use crate::dispatch::{DispatchDriver, DispatchedKernel, KernelDispatch};
use crate::events::AccessFault;
use crate::machine::Machine;
use crate::map::GpuAddress;
use crate::queue::{ActiveQueue, Queue};
use crate::refusal::{self, QueueError, Refusal};
use crate::signal::Signal;
use crate::stall::StallWatch;
use flipwave_device::{
    AccessKind, Address, Completion, Device, DeviceError, FaultCause, FaultClass, QueuedPacket,
};
use flipwave_sim::{Execution, Progress};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Wave instructions of a turn while no other GPU runs a kernel. Other events, such as changes of
/// memory, wait for its end. Most kernels end in their first turn.
const SLICE: u64 = 1 << 20;
/// Wave instructions of a turn while several GPUs run kernels, which may wait for each other.
const TURN: u64 = 1 << 16;
/// A compute engine.
pub struct ComputeEngine {
    machine: Arc<Machine>,
    copies: Arc<CopyEngine>,
    turns: Arc<Turns<Gpus>>,
    /// Node of the engine's GPU.
    node: u32,
    pub(super) driver: Box<dyn DispatchDriver>,
    fail: fn(&DeviceError),
}

/// Result of executing a packet.
enum PacketEnd {
    Done,
    Faulted(FaultCause),
    Refused(Refusal),
    /// The packet's queue was destroyed.
    Abandoned,
}

impl ComputeEngine {
    pub fn new(
        machine: &Arc<Machine>,
        copies: &Arc<CopyEngine>,
        turns: &Arc<Turns<Gpus>>,
        node: u32,
        driver: Box<dyn DispatchDriver>,
        fail: fn(&DeviceError),
    ) -> ComputeEngine {
        ComputeEngine {
            machine: Arc::clone(machine),
            copies: Arc::clone(copies),
            turns: Arc::clone(turns),
            node,
            driver,
            fail,
        }
    }

    /// Runs the engine forever.
    pub fn run(&mut self) {
        let machine = Arc::clone(&self.machine);
        machine.compute_notifier.serve(|| self.advance())
    }

    /// Executes the next packet if it is ready and of this engine's GPU, and applies changes of
    /// memory. Returns `true` if a packet was executed.
    pub fn advance(&mut self) -> bool {
        let turns = Arc::clone(&self.turns);
        let mut turn = turns.take();
        let next = self.next(&mut turn);
        if let Some((queue, packet)) = &next
            && let Err(error) = self.execute(&mut turn, queue, packet)
        {
            (self.fail)(&error);
            queue.stop();
        }
        if let Err(error) = turn.apply_changes(&self.machine) {
            (self.fail)(&error);
        }
        next.is_some()
    }

    /// The oldest packet that is ready, unless an older one must not be overtaken, or it is for
    /// another GPU.
    fn next(&mut self, gpus: &mut Gpus) -> Option<(ActiveQueue, Packet)> {
        let mut skipped = Vec::new();
        let mut is_blocked = false;
        while let Some(queue) = self.machine.oldest_queue(&skipped) {
            if gpus.at(queue.node).is_busy {
                skipped.push(queue.id);
                continue;
            }
            let next = aql::next(&queue).or_else(|_| {
                self.copies.drain();
                aql::next(&queue)
            });
            let is_own = queue.node == self.node;
            match next {
                Ok(packet) if !is_blocked || self.is_builtin_kernel(gpus, &queue, &packet) => {
                    if is_own {
                        return Some((queue, packet));
                    }
                    // The engine of that GPU may sleep.
                    self.machine.compute_notifier.notify();
                    return None;
                }
                Ok(_) => {}
                Err(NotReady::Invalid(violation)) if is_own => {
                    self.refuse(&queue, None, &violation.into())
                }
                Err(NotReady::Host { number }) => {
                    let may_overtake = gpus.host_waits.may_overtake(&self.machine, &queue, number);
                    is_blocked = is_blocked || !may_overtake;
                }
                Err(_) => {}
            }
            skipped.push(queue.id);
        }
        None
    }

    /// Returns `true` if a packet dispatches a built-in kernel of the runtime, which has no code
    /// object. The host may copy with such a kernel before it does what older packets wait for.
    fn is_builtin_kernel(&self, gpus: &mut Gpus, queue: &Queue, packet: &Packet) -> bool {
        let gpu = gpus.at(queue.node);
        packet.work == Work::Kernel
            && gpu.device.packet(Address(packet.address.0)).is_ok_and(|(_, descriptor)| {
                let code = gpu.code_at(descriptor.entry.0, &self.machine, queue.node);
                code.is_ok_and(|code| code.code_object.is_none())
            })
    }

    /// Applies all changes of memory, also those that the program made without telling the driver.
    fn update_memory(&self, gpus: &mut Gpus) -> Result<(), DeviceError> {
        self.machine.remove_unmapped_memory();
        gpus.apply_changes(&self.machine)
    }

    /// Executes a packet and reports its end to the runtime.
    pub(super) fn execute(
        &mut self,
        turn: &mut Turn<'_, Gpus>,
        queue: &Queue,
        packet: &Packet,
    ) -> Result<(), DeviceError> {
        self.update_memory(turn)?;
        let start = clock();
        let end = match packet.work {
            Work::Kernel => self.execute_kernel(turn, queue, packet)?,
            Work::Nothing => PacketEnd::Done,
            Work::Unknown => PacketEnd::Refused(Refusal::Packet(QueueError::Packet)),
        };
        match end {
            PacketEnd::Done => {
                let times = Times { start, end: clock() };
                let retired = aql::retire(queue, packet, times, &self.machine.events);
                if let Err(violation) = retired {
                    self.refuse(queue, Some(packet.number), &violation.into());
                }
                self.copies.kernel_is_done();
            }
            PacketEnd::Faulted(cause) => self.report(queue, &cause),
            PacketEnd::Refused(refusal) => self.refuse(queue, Some(packet.number), &refusal),
            PacketEnd::Abandoned => {}
        }
        Ok(())
    }

    fn execute_kernel(
        &mut self,
        turn: &mut Turn<'_, Gpus>,
        queue: &Queue,
        packet: &Packet,
    ) -> Result<PacketEnd, DeviceError> {
        let dispatch = match self.prepare(turn, queue, packet)? {
            Ok(dispatch) => dispatch,
            Err(refusal) => return Ok(PacketEnd::Refused(refusal)),
        };
        self.driver.begin(&self.machine, &dispatch)?;
        let device = turn.device(self.node);
        // The packet is read again: other threads may have changed it since `prepare`.
        let limit = self.driver.limit(&dispatch);
        let execution = match device.begin_queued(dispatch.queued, limit) {
            Ok(execution) => execution,
            Err(error) => {
                self.driver.abandon();
                return refusal::from_device_error(error).map(PacketEnd::Refused);
            }
        };
        self.driver.start(device, &execution)?;
        turn.at(self.node).is_busy = true;
        let completion = self.run_to_end(turn, queue, execution);
        turn.at(self.node).is_busy = false;
        let Some(completion) = completion? else { return Ok(PacketEnd::Abandoned) };
        self.update_memory(turn)?;
        self.driver.end(&self.machine, turn.device(self.node), &dispatch, &completion)?;
        Ok(match completion {
            Completion::Completed(_) => PacketEnd::Done,
            Completion::Faulted(fault) if self.driver.injects() => {
                PacketEnd::Faulted(fault.cause.in_faulty_run())
            }
            Completion::Faulted(fault) => PacketEnd::Faulted(fault.cause),
        })
    }

    /// Checks the packet of a kernel, and finds its code.
    fn prepare(
        &mut self,
        gpus: &mut Gpus,
        queue: &Queue,
        packet: &Packet,
    ) -> Result<Result<KernelDispatch, Refusal>, DeviceError> {
        let number = gpus.dispatches;
        let gpu = gpus.at(self.node);
        let refused = |error| refusal::from_device_error(error).map(Err);
        let (kernel_packet, descriptor) = match gpu.device.packet(Address(packet.address.0)) {
            Ok(found) => found,
            Err(error) => return refused(error),
        };
        if let Err(refusal) = refusal::check(&kernel_packet, &descriptor, gpu.device.target()) {
            return Ok(Err(refusal));
        }
        let code = match gpu.code_at(descriptor.entry.0, &self.machine, queue.node) {
            Ok(code) => code,
            Err(error) => return refused(error),
        };
        let kernel = code.code_object.as_ref().map(|code_object| {
            let descriptor = kernel_packet.kernel.0.wrapping_sub(code.bias);
            let mut kernels = code_object.kernels().iter();
            let kernel = kernels.find(|kernel| kernel.descriptor.address == descriptor);
            DispatchedKernel {
                number,
                name: kernel.map_or_else(Arc::default, |kernel| Arc::clone(&kernel.name)),
                code_object: Arc::clone(code_object),
                bias: code.bias,
            }
        });
        let module = code.module;
        gpus.dispatches += u32::from(kernel.is_some());
        Ok(Ok(KernelDispatch {
            node: self.node,
            queue: queue.id,
            packet: kernel_packet,
            queued: QueuedPacket {
                packet: Address(packet.address.0),
                queue: Address(queue.amd_queue().0),
                number: packet.number,
            },
            module,
            range: self.machine.submission_range(queue.id, packet.number),
            has_global_sync: queue.has_global_sync.load(Ordering::Acquire),
            kernel,
        }))
    }

    /// Runs a kernel in turns until it ends; `None` if its queue was destroyed before.
    fn run_to_end(
        &mut self,
        turn: &mut Turn<'_, Gpus>,
        queue: &Queue,
        mut execution: Execution,
    ) -> Result<Option<Completion>, DeviceError> {
        let mut stalls = StallWatch::default();
        loop {
            let is_alone = turn.busy() == 1;
            let device = turn.device(self.node);
            let executed = execution.statistics().wave_instructions;
            let until = executed + if is_alone { SLICE } else { TURN };
            match self.driver.advance(device, &mut execution, until)? {
                Progress::Ended(completion) => return Ok(Some(completion)),
                Progress::Paused if queue.is_destroyed() => {
                    device.abandon(execution)?;
                    self.driver.abandon();
                    return Ok(None);
                }
                Progress::Paused => {
                    // Beside other kernels, a kernel may wait for one of them.
                    let stall = execution.take_stall().filter(|_| is_alone);
                    if let Some(fault) = stalls.check(stall, &self.machine)
                        && self.driver.ends_stalls()
                    {
                        device.abandon(execution)?;
                        return Ok(Some(Completion::Faulted(fault)));
                    }
                    turn.pass();
                    self.update_memory(turn)?;
                }
            }
        }
    }

    /// Refuses a packet, or a whole queue, and stops the queue.
    fn refuse(&mut self, queue: &Queue, packet: Option<u64>, refusal: &Refusal) {
        self.driver.refuse(queue.id, packet, refusal);
        match refusal {
            Refusal::Packet(error) => self.stop(queue, *error),
            Refusal::Memory(cause) => self.report(queue, cause),
        }
    }

    /// Stops a queue and reports a fault to the runtime, as the driver and the trap handler do on
    /// hardware.
    fn report(&mut self, queue: &Queue, cause: &FaultCause) {
        if let FaultCause::MemoryViolation { address, access, .. } = cause {
            let is_mapped = queue.view().check(GpuAddress(address.0), 1).is_ok();
            let is_write = matches!(access, AccessKind::Write | AccessKind::Atomic);
            let reason =
                if is_mapped && is_write { AccessFault::ReadOnly } else { AccessFault::NotPresent };
            return self.machine.report_memory_fault(queue, address.0, reason);
        }
        match cause.class() {
            FaultClass::Instruction => self.stop(queue, QueueError::Instruction),
            FaultClass::Access | FaultClass::Alignment => self.stop(queue, QueueError::Aperture),
            FaultClass::Exception => self.stop(queue, QueueError::Trap),
            FaultClass::Gap => {
                queue.stop();
                (self.fail)(&DeviceError::Internal(cause.to_string()));
            }
        }
    }

    /// Stops a queue and reports the reason to the runtime in the queue's error signal. The
    /// signal's handle is as untrusted as the rest of the queue.
    fn stop(&self, queue: &Queue, reason: QueueError) {
        queue.stop();
        let view = queue.view();
        let reported = queue.inactive_signal(&view).and_then(|handle| {
            let signal = Signal::from_handle(&view, handle)?;
            let set = |signal: Signal<'_>| signal.set_bits(reason as i64, &self.machine.events);
            signal.map_or(Ok(()), set)
        });
        drop(view);
        if let Err(violation) = reported {
            self.machine.report_memory_fault(queue, violation.address, AccessFault::NotPresent);
        }
    }
}
