//! A compute engine: executes the packets of a GPU's compute queues.

use super::copies::CopyEngine;
use super::gpu::Gpus;
use super::turns::{Turn, Turns};
use crate::aql::{self, NotReady, Packet, Times, Work};
use crate::clock::gpu_clock;
use crate::dispatch::{Board, CountedKernels, DispatchDriver, DispatchedKernel, KernelDispatch};
use crate::events::AccessFault;
use crate::machine::Machine;
use crate::map::{GpuAddress, Violation};
use crate::pm4::{Blocked, RegisterLaunch, Step};
use crate::queue::{ActiveQueue, Queue, QueueKind};
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
    counted: CountedKernels,
    fail: fn(&DeviceError),
}

/// Result of executing a packet.
enum PacketEnd {
    Done,
    Faulted(FaultCause),
    Refused(Refusal),
    /// The packet's queue was destroyed.
    Abandoned,
    /// The packet waits in the middle.
    Waiting,
}

/// Work of a queue that is ready.
pub(super) enum Task {
    /// An AQL packet.
    Packet(Packet),
    /// The next PM4 packets of the ring.
    Commands,
}

impl From<Blocked> for NotReady {
    fn from(_: Blocked) -> NotReady {
        NotReady::Value
    }
}

/// The next work of a queue.
///
/// # Errors
/// Returns the reason if the queue's next packet is not ready.
fn next_task(queue: &Queue) -> Result<Task, NotReady> {
    if queue.kind == QueueKind::Pm4 {
        queue.processor().check_ready(queue)?;
        return Ok(Task::Commands);
    }
    let packet = aql::next(queue)?;
    if let Work::Commands(_) = packet.work {
        let processor = queue.processor();
        if processor.is_in_buffer() {
            processor.check_ready(queue)?;
        }
    }
    Ok(Task::Packet(packet))
}

/// A kernel to execute.
#[derive(Clone, Copy)]
struct Submission<'a> {
    queued: QueuedPacket,
    /// The launch, if the packet is the record of one from registers.
    launch: Option<&'a RegisterLaunch>,
}

impl ComputeEngine {
    pub fn new(
        machine: &Arc<Machine>,
        copies: &Arc<CopyEngine>,
        turns: &Arc<Turns<Gpus>>,
        node: u32,
        board: Board,
        fail: fn(&DeviceError),
    ) -> ComputeEngine {
        ComputeEngine {
            machine: Arc::clone(machine),
            copies: Arc::clone(copies),
            turns: Arc::clone(turns),
            node,
            driver: board.driver,
            counted: board.counted,
            fail,
        }
    }

    /// Runs the engine forever.
    pub fn run(&mut self) {
        let machine = Arc::clone(&self.machine);
        machine.compute_notifier.serve(|| self.advance())
    }

    /// Executes the next work if it is ready and of this engine's GPU, and applies changes of
    /// memory. Returns `true` if there was work.
    pub fn advance(&mut self) -> bool {
        let turns = Arc::clone(&self.turns);
        let mut turn = turns.take();
        let next = self.next(&mut turn);
        if let Some((queue, task)) = &next
            && let Err(error) = self.execute(&mut turn, queue, task)
        {
            (self.fail)(&error);
            queue.stop();
        }
        if let Err(error) = turn.apply_changes(&self.machine) {
            (self.fail)(&error);
        }
        next.is_some()
    }

    /// The oldest work that is ready, unless an older packet must not be overtaken, or the work is
    /// another GPU's.
    fn next(&mut self, gpus: &mut Gpus) -> Option<(ActiveQueue, Task)> {
        let mut skipped = Vec::new();
        let mut is_blocked = false;
        while let Some(queue) = self.machine.oldest_queue(&skipped) {
            if gpus.at(queue.node).is_busy {
                skipped.push(queue.id);
                continue;
            }
            let next = next_task(&queue).or_else(|_| {
                self.copies.drain();
                next_task(&queue)
            });
            let is_own = queue.node == self.node;
            match next {
                Ok(task) if !is_blocked || self.is_builtin_kernel(gpus, &queue, &task) => {
                    if is_own {
                        return Some((queue, task));
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
    fn is_builtin_kernel(&self, gpus: &mut Gpus, queue: &Queue, task: &Task) -> bool {
        let Task::Packet(packet) = task else { return false };
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

    /// Executes work and reports its end to the runtime.
    pub(super) fn execute(
        &mut self,
        turn: &mut Turn<'_, Gpus>,
        queue: &Queue,
        task: &Task,
    ) -> Result<(), DeviceError> {
        self.update_memory(turn)?;
        match task {
            Task::Packet(packet) => self.execute_packet(turn, queue, packet),
            Task::Commands => self.execute_ring(turn, queue),
        }
    }

    fn execute_packet(
        &mut self,
        turn: &mut Turn<'_, Gpus>,
        queue: &Queue,
        packet: &Packet,
    ) -> Result<(), DeviceError> {
        let start = gpu_clock();
        let end = match packet.work {
            Work::Kernel => {
                let queued = QueuedPacket {
                    packet: Address(packet.address.0),
                    queue: Address(queue.amd_queue().0),
                    number: packet.number,
                };
                self.execute_kernel(turn, queue, Submission { queued, launch: None })?
            }
            Work::Commands(buffer) => {
                queue.processor().enter(buffer);
                self.execute_commands(turn, queue)?
            }
            Work::Nothing => PacketEnd::Done,
            Work::Unknown => PacketEnd::Refused(Refusal::Packet(QueueError::Packet)),
        };
        match end {
            PacketEnd::Done => {
                let times = Times { start, end: gpu_clock() };
                let retired = aql::retire(queue, packet, times, &self.machine.events);
                if let Err(violation) = retired {
                    self.refuse(queue, Some(packet.number), &violation.into());
                }
                self.copies.kernel_is_done();
            }
            PacketEnd::Faulted(cause) => self.report(queue, &cause),
            PacketEnd::Refused(refusal) => self.refuse(queue, Some(packet.number), &refusal),
            PacketEnd::Abandoned | PacketEnd::Waiting => {}
        }
        Ok(())
    }

    /// Executes PM4 packets of a queue's ring up to one that waits.
    fn execute_ring(
        &mut self,
        turn: &mut Turn<'_, Gpus>,
        queue: &Queue,
    ) -> Result<(), DeviceError> {
        match self.execute_commands(turn, queue)? {
            PacketEnd::Faulted(cause) => self.report(queue, &cause),
            PacketEnd::Refused(refusal) => {
                let number = queue.read_index(&queue.view()).ok();
                self.refuse(queue, number, &refusal);
            }
            PacketEnd::Done | PacketEnd::Abandoned | PacketEnd::Waiting => {}
        }
        self.copies.kernel_is_done();
        Ok(())
    }

    /// Executes PM4 packets up to one that waits, to the end of the indirect buffer of an AQL packet,
    /// or to the end of the ring.
    fn execute_commands(
        &mut self,
        turn: &mut Turn<'_, Gpus>,
        queue: &Queue,
    ) -> Result<PacketEnd, DeviceError> {
        let generation = turn.device(self.node).target().generation();
        while !queue.is_closed() {
            let step = queue.processor().step(queue, generation, &self.machine.events);
            let end = match step {
                Ok(Step::Executed) => continue,
                Ok(Step::Launch(launch)) => self.execute_launch(turn, queue, &launch)?,
                Ok(Step::Waiting) => return Ok(PacketEnd::Waiting),
                Ok(Step::End) => return Ok(PacketEnd::Done),
                Err(refusal) => PacketEnd::Refused(refusal),
            };
            if !matches!(end, PacketEnd::Done) {
                return Ok(end);
            }
            self.update_memory(turn)?;
        }
        Ok(PacketEnd::Abandoned)
    }

    /// Executes a kernel that registers describe.
    fn execute_launch(
        &mut self,
        turn: &mut Turn<'_, Gpus>,
        queue: &Queue,
        launch: &RegisterLaunch,
    ) -> Result<PacketEnd, DeviceError> {
        let Some(record) = queue.record else {
            return Ok(PacketEnd::Refused(Refusal::Packet(QueueError::Packet)));
        };
        let gpu = turn.at(self.node);
        let target = gpu.device.target().clone();
        let kernarg = match gpu.code_at(launch.entry, &self.machine, queue.node) {
            Ok(code) => code
                .kernel_at(launch.entry)
                .map_or(0, |kernel| launch.kernarg(&kernel.descriptor, &target)),
            Err(error) => return refusal::from_device_error(error).map(PacketEnd::Refused),
        };
        let view = queue.view();
        let number = record.write(&view, launch, kernarg).and_then(|()| queue.read_index(&view));
        drop(view);
        let number = match number {
            Ok(number) => number,
            Err(violation) => return Ok(PacketEnd::Refused(violation.into())),
        };
        let packet = Address(record.packet().0);
        let queued = QueuedPacket { packet, queue: Address(queue.amd_queue().0), number };
        self.execute_kernel(turn, queue, Submission { queued, launch: Some(launch) })
    }

    fn execute_kernel(
        &mut self,
        turn: &mut Turn<'_, Gpus>,
        queue: &Queue,
        submission: Submission<'_>,
    ) -> Result<PacketEnd, DeviceError> {
        let dispatch = match self.prepare(turn, queue, submission.queued)? {
            Ok(dispatch) => dispatch,
            Err(refusal) => return Ok(PacketEnd::Refused(refusal)),
        };
        self.driver.begin(&self.machine, &dispatch)?;
        let device = turn.device(self.node);
        // The packet is read again: other threads may have changed it since `prepare`.
        let limit = self.driver.limit(&dispatch);
        let begun = match submission.launch {
            None => device.begin_queued(dispatch.queued, limit),
            Some(launch) => device.begin_registers(dispatch.queued, &launch.user_data, limit),
        };
        let execution = match begun {
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
        queued: QueuedPacket,
    ) -> Result<Result<KernelDispatch, Refusal>, DeviceError> {
        let number = gpus.dispatches;
        let gpu = gpus.at(self.node);
        let refused = |error| refusal::from_device_error(error).map(Err);
        let (kernel_packet, descriptor) = match gpu.device.packet(queued.packet) {
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
            let named = kernel_packet.kernel.0.wrapping_sub(code.bias);
            let mut kernels = code_object.kernels().iter();
            let kernel = kernels.find(|kernel| kernel.descriptor.address == named);
            let kernel = kernel.or_else(|| code.kernel_at(descriptor.entry.0));
            DispatchedKernel {
                number,
                name: kernel.map_or_else(Arc::default, |kernel| Arc::clone(&kernel.name)),
                code_object: Arc::clone(code_object),
                bias: code.bias,
            }
        });
        let kernel = kernel.filter(|kernel| self.counted.contains(&kernel.name));
        let module = code.module;
        gpus.dispatches += u32::from(kernel.is_some());
        Ok(Ok(KernelDispatch {
            node: self.node,
            queue: queue.id,
            packet: kernel_packet,
            queued,
            module,
            range: self.machine.submission_range(queue.id, queued.number),
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

    /// Stops a queue and reports the reason to the runtime in the queue's error signal. A queue
    /// without one reports a hardware exception.
    fn stop(&self, queue: &Queue, reason: QueueError) {
        queue.stop();
        match self.signal_error(queue, reason) {
            Ok(true) => {}
            Ok(false) => self.machine.report_hardware_exception(queue),
            Err(Violation { address }) => {
                self.machine.report_memory_fault(queue, address, AccessFault::NotPresent);
            }
        }
    }

    /// Sets the reason in a queue's error signal; returns `false` if the queue has none. The signal's
    /// handle is as untrusted as the rest of the queue.
    fn signal_error(&self, queue: &Queue, reason: QueueError) -> Result<bool, Violation> {
        if queue.kind != QueueKind::Compute {
            return Ok(false);
        }
        let view = queue.view();
        let Some(signal) = Signal::from_handle(&view, queue.inactive_signal(&view)?)? else {
            return Ok(false);
        };
        signal.set_bits(reason as i64, &self.machine.events).map(|()| true)
    }
}
