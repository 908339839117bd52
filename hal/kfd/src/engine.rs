//! The threads that do what queues ask for: one for all kernels, so that they run one after another
//! in an order that depends on the program alone where that does; one for all copies.
//!
//! The oldest packet is taken first, whichever queue it is in. It is overtaken only if it still waits
//! when all copies that can be done are done: then the host has to do something, which may in turn
//! depend on what was submitted later. How long the host takes depends on everything, so that it is
//! given some time.

use crate::aql::{self, Packet, Wait, Work};
use crate::clock::clock;
use crate::code::{LoaderList, Resident, resident_at};
use crate::driver::{CopyWatch, DispatchedKernel, Driver, KernelDispatch};
use crate::events::{Inaccessible, MemoryFault};
use crate::machine::{Machine, MachineError};
use crate::map::{GpuAddress, Violation};
use crate::memory::Change;
use crate::notifier::{Notifier, poll_interval};
use crate::queue::{ActiveQueue, Queue};
use crate::refusal::{self, QueueError, Refusal};
use crate::sdma::{self, Done};
use crate::signal::Signal;
use crate::stall::StallWatch;
use flipwave_codeobj::CodeObject;
use flipwave_device::{
    AccessKind, Address, Completion, Device, DeviceError, FaultCause, FaultClass, ModuleId,
    QueuedPacket,
};
use flipwave_isa::Target;
use flipwave_sim::{EmbeddedGpu, Progress};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

#[cfg(test)]
mod hostile;

/// Wave instructions of a dispatch between two looks at what else has happened.
const SLICE: u64 = 1 << 20;
/// How long later packets wait for one that waits for the host: long for a host that does what it
/// has to, short for a person if it is itself waiting for one of them.
const HOST: Duration = Duration::from_millis(200);

/// Starts a machine with GPUs of these targets, whose dispatches `driver` runs. Copies are shown to
/// `copy_watch`; `fail` is called when something goes wrong that no GPU does, and the application
/// cannot go on.
///
/// # Errors
/// [`MachineError`].
pub fn start(
    targets: &[Target],
    driver: Box<dyn Driver>,
    copy_watch: Option<Arc<dyn CopyWatch>>,
    fail: fn(&DeviceError),
) -> Result<Arc<Machine>, MachineError> {
    let (machine, devices) = Machine::idle(targets, copy_watch)?;
    let copies = Arc::new(Copies::new(&machine));
    let mut compute = Compute::new(&machine, &copies, devices, driver, fail);
    let spawn = |name: &str, run: Box<dyn FnOnce() + Send>| {
        let spawned = std::thread::Builder::new().name(name.into()).spawn(run);
        spawned.map(drop).map_err(MachineError::Thread)
    };
    spawn("flipwave kernels", Box::new(move || compute.run()))?;
    spawn("flipwave copies", Box::new(move || copies.run()))?;
    Ok(machine)
}

/// Calls `advance` forever, and sleeps between calls that found no work until the notifier is notified.
/// The runtime also submits work without a call that notifies, so that the thread polls as well.
fn serve(notifier: &Notifier, mut advance: impl FnMut() -> bool) {
    let mut idle = Instant::now();
    loop {
        let seen = notifier.count();
        if advance() {
            idle = Instant::now();
        } else {
            notifier.wait(seen, poll_interval(idle.elapsed()));
        }
    }
}

/// A GPU, and the code that it has met.
struct Gpu {
    device: EmbeddedGpu,
    code: Vec<Code>,
}

struct Code {
    module: ModuleId,
    /// Where it lies.
    range: Range<u64>,
    bias: u64,
    code_object: Option<Arc<CodeObject>>,
}

impl Gpu {
    fn apply(&mut self, change: Change) -> Result<(), DeviceError> {
        match change {
            Change::Map { range, host } => {
                let range = Address(range.start)..Address(range.end);
                // SAFETY: the machine unmaps it here before it or the program gives it back.
                unsafe { self.device.map_host(range, host) }
            }
            Change::Unmap(start) => {
                let Some(gone) = self.device.allocation_around(Address(start)) else {
                    return Ok(());
                };
                for code in
                    self.code.extract_if(.., |code| gone.contains(&Address(code.range.start)))
                {
                    self.device.forget(code.module)?;
                }
                self.device.unmap(Address(start))
            }
        }
    }

    /// The code that an address is in, made known if it is met for the first time.
    fn code_around(&mut self, pc: u64, machine: &Machine, node: u32) -> Result<&Code, DeviceError> {
        let executable = machine.view(node).check_executable(GpuAddress(pc));
        executable.map_err(|_| DeviceError::NoCode { kernel: Address(pc) })?;
        let known = self.code.iter().position(|code| code.range.contains(&pc));
        let index = match known {
            Some(index) => index,
            None => {
                let code = self.meet(pc, machine)?;
                self.code.push(code);
                self.code.len() - 1
            }
        };
        Ok(&self.code[index])
    }

    fn meet(&mut self, pc: u64, machine: &Machine) -> Result<Code, DeviceError> {
        let list = machine.loader_list() as *const LoaderList;
        // SAFETY: the loader adds code objects before kernels of them are dispatched; that other
        // threads load at the same moment is a race that the list has with debuggers, too.
        let resident = unsafe { resident_at(list, pc) };
        let code_object = resident.and_then(|own| Some((own.bias, self.code_object(&own, pc)?)));
        if let Some((bias, code_object)) = code_object {
            let module = self.device.adopt(&code_object, bias)?;
            let segments = code_object.segments();
            let first = segments.first().map_or(0, |segment| segment.address);
            let last = segments.last().map_or(0, |segment| segment.end());
            let range = bias.wrapping_add(first)..bias.wrapping_add(last);
            let code_object = Some(Arc::new(code_object));
            return Ok(Code { module, range, bias, code_object });
        }
        let around = self.device.allocation_around(Address(pc));
        let around = around.ok_or(DeviceError::NoCode { kernel: Address(pc) })?;
        let module = self.device.adopt_bare(around.clone())?;
        let range = around.start.0..around.end.0;
        Ok(Code { module, range, bias: 0, code_object: None })
    }

    /// The code object that an address belongs to: as it was given to the loader, which has all that it
    /// was compiled with, or, where that is not there any more, as the loader has left it.
    fn code_object(&self, resident: &Resident, pc: u64) -> Option<CodeObject> {
        let given = resident.given(pc);
        let is_it = |own: &CodeObject| resident.is_file() || self.has_code(own, resident.bias);
        given.filter(is_it).or_else(|| {
            let end = self.device.allocation_around(Address(pc))?.end.0;
            let mut bytes = vec![0; usize::try_from(end.checked_sub(resident.bias)?).ok()?];
            self.device.read(Address(resident.bias), &mut bytes).ok()?;
            let loaded = CodeObject::of_memory(bytes).ok()?;
            let is_inside = pc - resident.bias < loaded.span().end;
            is_inside.then_some(loaded)
        })
    }

    /// Whether the code of a code object is in memory, loaded with a bias.
    fn has_code(&self, code_object: &CodeObject, bias: u64) -> bool {
        code_object.segments().iter().filter(|own| own.executable).all(|own| {
            let span = own.address..own.end();
            let Ok(wanted) = code_object.load_part_with(bias, span, |_| Some(0)) else {
                return false;
            };
            let mut bytes = vec![0; wanted.len()];
            let place = Address(bias.wrapping_add(own.address));
            self.device.read(place, &mut bytes).is_ok() && bytes == wanted[..]
        })
    }
}

/// The thread for kernels.
struct Compute {
    machine: Arc<Machine>,
    copies: Arc<Copies>,
    gpus: Vec<Gpu>,
    driver: Box<dyn Driver>,
    fail: fn(&DeviceError),
    /// Dispatches of kernels from code objects, so far.
    dispatches: u32,
    /// Packets that have been found to wait for the host, one of a queue at most.
    waits: Vec<HostWait>,
}

/// A packet that waits for the host.
struct HostWait {
    queue: u64,
    number: u64,
    since: Instant,
}

/// How a packet ended.
enum End {
    Done,
    Faulted(FaultCause),
    Refused(Refusal),
    /// Its queue is gone.
    Abandoned,
}

impl Compute {
    fn new(
        machine: &Arc<Machine>,
        copies: &Arc<Copies>,
        devices: Vec<EmbeddedGpu>,
        driver: Box<dyn Driver>,
        fail: fn(&DeviceError),
    ) -> Compute {
        Compute {
            machine: Arc::clone(machine),
            copies: Arc::clone(copies),
            gpus: devices.into_iter().map(|device| Gpu { device, code: Vec::new() }).collect(),
            driver,
            fail,
            dispatches: 0,
            waits: Vec::new(),
        }
    }

    fn run(&mut self) {
        let machine = Arc::clone(&self.machine);
        serve(&machine.compute_notifier, || self.advance());
    }

    /// Takes the next packet, if one is due, and learns what has changed; whether there was one.
    fn advance(&mut self) -> bool {
        let next = self.next();
        if let Some((queue, packet)) = &next
            && let Err(error) = self.take(queue, packet)
        {
            (self.fail)(&error);
            queue.is_stopped.store(true, Ordering::Release);
        }
        if let Err(error) = self.apply_changes() {
            (self.fail)(&error);
        }
        next.is_some()
    }

    /// The oldest packet that can be taken, unless an older one has to be waited for.
    fn next(&mut self) -> Option<(ActiveQueue, Packet)> {
        let mut passed = Vec::new();
        let mut is_held = false;
        while let Some(queue) = self.machine.oldest(&passed) {
            let next = aql::next(&queue).or_else(|_| {
                self.copies.settle();
                aql::next(&queue)
            });
            match next {
                Ok(packet) if !is_held || self.is_own(&queue, &packet) => {
                    return Some((queue, packet));
                }
                Ok(_) => {}
                Err(Wait::Never(violation)) => self.refuse(&queue, None, &violation.into()),
                Err(wait) => is_held = is_held || !self.may_pass(&queue, wait),
            }
            passed.push(queue.id);
        }
        None
    }

    /// Whether a packet is a kernel that the runtime brings without a code object. The host may copy
    /// with it before it does what others wait for.
    fn is_own(&mut self, queue: &Queue, packet: &Packet) -> bool {
        let gpu = &mut self.gpus[queue.node as usize - 1];
        packet.work == Work::Kernel
            && gpu.device.packet(Address(packet.address.0)).is_ok_and(|(_, descriptor)| {
                let code = gpu.code_around(descriptor.entry.0, &self.machine, queue.node);
                code.is_ok_and(|code| code.code_object.is_none())
            })
    }

    /// Whether packets of other queues may overtake the next of a queue, which waits.
    fn may_pass(&mut self, queue: &Queue, wait: Wait) -> bool {
        let Wait::Host { number } = wait else { return true };
        let now = Instant::now();
        match self.waits.iter_mut().find(|own| own.queue == queue.id) {
            Some(known) if known.number == number => now - known.since >= HOST,
            Some(known) => {
                (known.number, known.since) = (number, now);
                false
            }
            None => {
                self.waits.retain(|own| self.machine.has_queue(own.queue));
                self.waits.push(HostWait { queue: queue.id, number, since: now });
                false
            }
        }
    }

    /// Learns what memory has changed, be it said or not.
    fn look_at_memory(&mut self) -> Result<(), DeviceError> {
        self.machine.forget_lost_memory();
        self.apply_changes()
    }

    fn apply_changes(&mut self) -> Result<(), DeviceError> {
        let mut result = Ok(());
        let gpus = &mut self.gpus;
        self.machine.take_changes(|node, change| {
            if let Some(gpu) = gpus.get_mut(node as usize - 1) {
                result = std::mem::replace(&mut result, Ok(())).and(gpu.apply(change));
            }
        });
        result
    }

    fn take(&mut self, queue: &Queue, packet: &Packet) -> Result<(), DeviceError> {
        self.look_at_memory()?;
        let start = clock();
        let end = match packet.work {
            Work::Kernel => self.kernel(queue, packet)?,
            Work::Nothing => End::Done,
            Work::Unknown => End::Refused(Refusal::Packet(QueueError::Packet)),
        };
        match end {
            End::Done => {
                let times = (start, clock());
                let retired = aql::retire(queue, packet, times, &self.machine.events);
                if let Err(wild) = retired {
                    self.refuse(queue, Some(packet.number), &wild.into());
                }
                self.copies.kernel_is_done();
            }
            End::Faulted(cause) => self.report(queue, &cause),
            End::Refused(refusal) => self.refuse(queue, Some(packet.number), &refusal),
            End::Abandoned => {}
        }
        Ok(())
    }

    fn kernel(&mut self, queue: &Queue, packet: &Packet) -> Result<End, DeviceError> {
        let index = queue.node as usize - 1;
        let gpu = &mut self.gpus[index];
        let refused = |error| refusal::of_packet(error).map(End::Refused);
        let (kernel_packet, descriptor) = match gpu.device.packet(Address(packet.address.0)) {
            Ok(found) => found,
            Err(error) => return refused(error),
        };
        if let Err(refusal) = refusal::check(&kernel_packet, &descriptor, gpu.device.target()) {
            return Ok(End::Refused(refusal));
        }
        let code = match gpu.code_around(descriptor.entry.0, &self.machine, queue.node) {
            Ok(code) => code,
            Err(error) => return refused(error),
        };
        let descriptor_place = kernel_packet.kernel.0.wrapping_sub(code.bias);
        let (module, bias) = (code.module, code.bias);
        let kernel = code.code_object.as_ref().map(|code_object| {
            let kernels = code_object.kernels();
            let own = kernels.iter().find(|own| own.descriptor.address == descriptor_place);
            let name = own.map_or_else(Arc::default, |own| Arc::clone(&own.name));
            let (number, code_object) = (self.dispatches, Arc::clone(code_object));
            DispatchedKernel { number, name, code_object, bias }
        });
        self.dispatches += u32::from(kernel.is_some());
        let queued = QueuedPacket {
            packet: Address(packet.address.0),
            queue: Address(queue.structure().0),
            number: packet.number,
        };
        let (node, queue_id) = (queue.node, queue.id);
        let range = self.machine.range_of(queue.id, packet.number);
        let has_global_sync = queue.has_global_sync.load(Ordering::Acquire);
        let packet = kernel_packet;
        let dispatch = KernelDispatch {
            node,
            queue: queue_id,
            packet,
            queued,
            module,
            range,
            has_global_sync,
            kernel,
        };
        self.driver.begin(&self.machine, &dispatch)?;
        // Others may have changed the packet since it was looked at.
        let mut execution = match gpu.device.begin_queued(queued, self.driver.limit(&dispatch)) {
            Ok(execution) => execution,
            Err(error) => {
                self.driver.abandon();
                return refused(error);
            }
        };
        self.driver.start(&gpu.device, &execution)?;
        let mut stalls = StallWatch::default();
        let completion = loop {
            let device = &mut self.gpus[index].device;
            let until = execution.statistics().wave_instructions + SLICE;
            match self.driver.advance(device, &mut execution, until)? {
                Progress::Ended(completion) => break completion,
                Progress::Paused if queue.is_destroyed() => {
                    device.abandon(execution)?;
                    self.driver.abandon();
                    return Ok(End::Abandoned);
                }
                Progress::Paused => {
                    if let Some(fault) = stalls.judge(execution.take_stall(), &self.machine)
                        && self.driver.ends_stalls()
                    {
                        device.abandon(execution)?;
                        break Completion::Faulted(fault);
                    }
                    self.look_at_memory()?;
                }
            }
        };
        self.look_at_memory()?;
        self.driver.end(&self.machine, &self.gpus[index].device, &dispatch, &completion)?;
        Ok(match completion {
            Completion::Completed(_) => End::Done,
            Completion::Faulted(fault) if self.driver.injects() => {
                End::Faulted(fault.cause.of_struck_run())
            }
            Completion::Faulted(fault) => End::Faulted(fault.cause),
        })
    }

    /// Stops a queue whose packet is not one that the GPU can execute.
    fn refuse(&mut self, queue: &Queue, packet: Option<u64>, refusal: &Refusal) {
        self.driver.refuse(queue.id, packet, refusal);
        match refusal {
            Refusal::Packet(error) => self.stop(queue, *error),
            Refusal::Memory(cause) => self.report(queue, cause),
        }
    }

    /// Reports a fault to the runtime, as the driver and the trap handler do on hardware.
    fn report(&mut self, queue: &Queue, cause: &FaultCause) {
        if let FaultCause::MemoryViolation { address, access, .. } = cause {
            let is_there = queue.view().check(GpuAddress(address.0), 1).is_ok();
            let writes = matches!(access, AccessKind::Write | AccessKind::Atomic);
            let is_read_only = is_there && writes;
            let reason =
                if is_read_only { Inaccessible::ReadOnly } else { Inaccessible::NotPresent };
            return access_fault(&self.machine, queue, address.0, reason);
        }
        match cause.class() {
            FaultClass::Instruction => self.stop(queue, QueueError::Instruction),
            FaultClass::Access | FaultClass::Alignment => self.stop(queue, QueueError::Aperture),
            FaultClass::Exception => self.stop(queue, QueueError::Trap),
            FaultClass::Gap => {
                queue.is_stopped.store(true, Ordering::Release);
                (self.fail)(&DeviceError::Internal(cause.to_string()));
            }
        }
    }

    /// Stops a queue and reports why to the runtime, in the queue's error signal, which is no more
    /// to be trusted than what else is in the queue.
    fn stop(&self, queue: &Queue, reason: QueueError) {
        queue.is_stopped.store(true, Ordering::Release);
        let view = queue.view();
        let reported = queue.inactive_signal(&view).and_then(|handle| {
            let signal = Signal::of(&view, handle)?;
            signal.map_or(Ok(()), |own| own.set_bits(reason as i64, &self.machine.events))
        });
        drop(view);
        reported.unwrap_or_else(|wild| memory_fault(&self.machine, queue, wild));
    }
}

/// Stops a queue for an address in it that is not the GPU's.
fn memory_fault(machine: &Machine, queue: &Queue, violation: Violation) {
    access_fault(machine, queue, violation.address, Inaccessible::NotPresent);
}

/// Stops a queue and reports to the runtime an access to memory that the GPU must not make.
fn access_fault(machine: &Machine, queue: &Queue, address: u64, reason: Inaccessible) {
    queue.is_stopped.store(true, Ordering::Release);
    let address = address & !0xfff;
    machine.events.set_memory_fault(MemoryFault { node: queue.node, address, reason });
}

/// All copies. Their own thread does them; that for kernels does, too, when it needs them done.
struct Copies {
    machine: Arc<Machine>,
    /// Whose turn it is: packets of a queue are done one after another.
    turn: Mutex<()>,
    /// Whether a packet was found that waits.
    is_held: AtomicBool,
}

impl Copies {
    fn new(machine: &Arc<Machine>) -> Copies {
        let (turn, is_held) = Default::default();
        Copies { machine: Arc::clone(machine), turn, is_held }
    }

    fn run(&self) {
        serve(&self.machine.copy_notifier, || {
            let worked = self.advance();
            if worked {
                // Kernels may wait for it.
                self.machine.compute_notifier.notify();
            }
            worked
        });
    }

    /// Has the thread look again if it has found something that waits, perhaps for a kernel.
    fn kernel_is_done(&self) {
        if self.is_held.load(Ordering::Acquire) {
            self.machine.copy_notifier.notify();
        }
    }

    /// Does what can be done, so that what is left waits for others.
    fn settle(&self) {
        while self.advance() {}
    }

    /// Does packets of each queue until one waits; whether there were any.
    fn advance(&self) -> bool {
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut worked, mut is_held) = (false, false);
        for queue in self.machine.copy_queues() {
            // One at a time: to destroy a queue does not wait for copies of others.
            let Some(queue) = queue.activate() else { continue };
            while !queue.is_over() {
                match sdma::step(&queue, &self.machine) {
                    Done::Nothing => break,
                    Done::Waits => {
                        is_held = true;
                        break;
                    }
                    Done::Packet => worked = true,
                    Done::Fault(violation) => memory_fault(&self.machine, &queue, violation),
                }
            }
        }
        self.is_held.store(is_held, Ordering::Release);
        worked
    }
}
