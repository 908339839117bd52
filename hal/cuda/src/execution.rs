//! Execution of the work that the application has submitted, on one thread.

use crate::driver::{Device, Driver};
use crate::handles::lock;
use crate::launch::{FaultedLaunch, KernelLaunch, LaunchDriver, MemoryMap, fault_text};
use crate::memory::{self, Kind};
use crate::queue::{Clock, CopyWork, FillWork, HostFunction, Place, Source, Work};
use crate::status::Status;
use flipwave_device::{Address, Completion, DeviceError, FaultCause, FaultClass};
use flipwave_machine::{Execution, Limited, Machine, Progress};
use flipwave_ptx_sim::PtxGpu;
use std::sync::MutexGuard;
use std::sync::atomic::Ordering;

/// Wave instructions of a kernel between two points at which other threads can use the device.
const SLICE: u64 = 1 << 16;

impl Driver {
    /// Executes work. Work of a device after a fault has no effect.
    pub(crate) fn execute(&self, device: usize, work: Work) {
        let found = &self.devices[device];
        if found.check().is_err() {
            // A program must not wait for its own functions.
            if let Work::Call(function, argument) = work {
                call(function, argument, found.fault.load(Ordering::Acquire));
            }
            return;
        }
        found.clock.add(Clock::WORK);
        let done = match work {
            Work::Kernel(launch) => self.run(found, *launch),
            Work::Copy(copy) => self.copy(&copy),
            Work::Fill(fill) => self.fill(&fill),
            Work::Call(function, argument) => {
                call(function, argument, 0);
                Ok(())
            }
            Work::Record(time) => {
                time.store(found.clock.now(), Ordering::Release);
                Ok(())
            }
            Work::Free(start) => {
                self.free(start);
                Ok(())
            }
        };
        if let Err(status) = done {
            found.set_fault(status);
        }
    }

    /// The memory that kernels of a device may access, if the launcher needs the map.
    fn map(&self, gpu: &PtxGpu, launcher: &dyn LaunchDriver) -> MemoryMap {
        if !launcher.needs_map() {
            return MemoryMap::default();
        }
        let device = gpu.allocations().into_iter();
        let device = device.map(|(start, bytes)| start..Address(start.0 + bytes)).collect();
        let all = self.allocations.all().into_iter();
        let host =
            all.filter(|found| found.kind != Kind::Device).map(|found| memory::range(&found));
        MemoryMap { device, host: host.collect() }
    }

    fn run(&self, device: &Device, launch: KernelLaunch) -> Result<(), Status> {
        let number = self.launches.fetch_add(1, Ordering::Relaxed);
        let launch = KernelLaunch { number, ..launch };
        device.is_running.store(true, Ordering::Release);
        let completion = self.run_launch(device, &launch);
        device.is_running.store(false, Ordering::Release);
        match completion {
            Ok(Completion::Completed(statistics)) => {
                device.clock.add(statistics.wave_instructions);
                Ok(())
            }
            Ok(Completion::Faulted(fault)) => {
                if fault.cause.class() == FaultClass::Gap {
                    (self.fail)(&DeviceError::Internal(fault.cause.to_string()));
                }
                let has_failed = self.print_output(device);
                let is_assertion = has_failed && matches!(fault.cause, FaultCause::Trap { .. });
                Err(if is_assertion { Status::ASSERT } else { Status::of_fault(&fault.cause) })
            }
            Err(error) => {
                (self.fail)(&error);
                Err(Status::UNKNOWN)
            }
        }
    }

    fn run_launch(
        &self,
        device: &Device,
        launch: &KernelLaunch,
    ) -> Result<Completion, DeviceError> {
        let mut launcher = lock(&self.launcher);
        let mut gpu = device.gpu();
        let before = self.map(&gpu, &**launcher);
        launcher.begin(&gpu, &before, launch)?;
        let mut dispatch = launch.dispatch.clone();
        dispatch.module = launcher.module(&mut gpu, launch)?;
        dispatch.instruction_limit = launcher.limit(launch);
        let execution = gpu.begin(&dispatch)?;
        launcher.start(&gpu, &execution)?;
        let completion = advance_to_end(device, gpu, &mut **launcher, execution)?;
        let gpu = device.gpu();
        if let Completion::Faulted(fault) = &completion {
            let fault = fault.clone().map_locations(|place| gpu.original(dispatch.module, place));
            let text = &fault_text(&gpu, launch, &fault);
            (self.report_fault)(&FaultedLaunch { launch, fault: &fault, text });
        }
        let after = self.map(&gpu, &**launcher);
        launcher.end(&gpu, &after, launch, &completion)?;
        Ok(completion)
    }

    fn copy(&self, copy: &CopyWork) -> Result<(), Status> {
        let mut row = vec![0; copy.width as usize];
        let mut done = 0;
        for slice in 0..copy.counts[1] {
            for line in 0..copy.counts[0] {
                let offset = |pitches: [u64; 2]| line * pitches[0] + slice * pitches[1];
                match &copy.from {
                    Source::Memory(Place::Device(start)) => {
                        let address = start + offset(copy.from_pitches);
                        self.read(address, &mut row, copy.to)?;
                    }
                    Source::Memory(Place::Host(start)) => {
                        let source = (start + offset(copy.from_pitches)) as *const u8;
                        // SAFETY: memory of the application, as the API demands.
                        unsafe {
                            std::ptr::copy_nonoverlapping(source, row.as_mut_ptr(), row.len())
                        };
                    }
                    Source::Bytes(bytes) => {
                        let end = done + row.len();
                        row.copy_from_slice(&bytes[done..end]);
                        done = end;
                    }
                }
                match copy.to {
                    Place::Device(start) => self.write(start + offset(copy.to_pitches), &row)?,
                    Place::Host(start) => {
                        let target = (start + offset(copy.to_pitches)) as *mut u8;
                        // SAFETY: memory of the application, as the API demands.
                        unsafe { std::ptr::copy_nonoverlapping(row.as_ptr(), target, row.len()) };
                    }
                }
            }
        }
        Ok(())
    }

    /// Reads memory of a device, to be copied to a place.
    fn read(&self, address: u64, bytes: &mut [u8], to: Place) -> Result<(), Status> {
        let device = self.device_of(address).ok_or(Status::INVALID_VALUE)?;
        // The launcher is locked before a GPU.
        let mut launcher = lock(&self.launcher);
        let gpu = self.devices[device].gpu();
        if matches!(to, Place::Host(_)) {
            let map = self.map(&gpu, &**launcher);
            launcher.before_read(&gpu, &map, Address(address), bytes.len() as u64);
        }
        gpu.read(Address(address), bytes).map_err(|_| Status::ILLEGAL_ADDRESS)
    }

    fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Status> {
        let device = self.device_of(address).ok_or(Status::INVALID_VALUE)?;
        let mut gpu = self.devices[device].gpu();
        gpu.write(Address(address), bytes).map_err(|_| Status::ILLEGAL_ADDRESS)
    }

    fn fill(&self, fill: &FillWork) -> Result<(), Status> {
        let row = fill.element.repeat(fill.width as usize);
        for line in 0..fill.height {
            let address = fill.to + line * fill.pitch;
            if self.device_of(address).is_some() {
                self.write(address, &row)?;
            } else {
                // SAFETY: memory of the application, as the API demands.
                unsafe {
                    std::ptr::copy_nonoverlapping(row.as_ptr(), address as *mut u8, row.len());
                }
            }
        }
        Ok(())
    }
}

/// Calls a function of the application.
fn call(function: HostFunction, argument: usize, status: i32) {
    // SAFETY: the application's function with its argument.
    unsafe {
        match function {
            // Functions without status are not called after a fault.
            HostFunction::Plain(function) if status == 0 => function(argument),
            HostFunction::Plain(_) => {}
            HostFunction::Callback(function, stream) => function(stream, status, argument),
        }
    }
}

/// Continues a kernel to its end. Other threads can use the device in between.
fn advance_to_end<'a>(
    device: &'a Device,
    mut gpu: MutexGuard<'a, PtxGpu>,
    launcher: &mut dyn LaunchDriver,
    mut execution: Execution,
) -> Result<Completion, DeviceError> {
    loop {
        let until = execution.wave_instructions() + SLICE;
        match launcher.advance(&mut gpu, &mut execution, until)? {
            Progress::Ended(completion) => return Ok(completion),
            Progress::Paused => {
                drop(gpu);
                while device.waiting.load(Ordering::Acquire) > 0 {
                    std::thread::yield_now();
                }
                gpu = lock(&device.gpu);
            }
        }
    }
}
