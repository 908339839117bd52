//! Code and dispatches that a runtime has written to device memory: the device finds them there, as
//! hardware does.

use super::EmbeddedGpu;
use crate::dispatch::execution::Execution;
use crate::dispatch::launch::{Launch, Places, UserSgprs};
use crate::module::Module;
use crate::translate::program::Program;
use flipwave_codeobj::{CodeObject, DESCRIPTOR_SIZE, Descriptor, FileBytes, KernargPreload};
use flipwave_device::{Address, DeviceError, KernelPacket, ModuleId, QueuedPacket};
use flipwave_isa::{Isa, Pc};
use std::ops::Range;
use std::sync::Arc;

impl EmbeddedGpu {
    /// Gives the GPU access to memory of this process at address `host`.
    ///
    /// # Errors
    /// [`DeviceError::Occupied`] if part of the range is already mapped.
    ///
    /// # Safety
    /// The bytes must be mapped in this process, readable and writable, until
    /// [`EmbeddedGpu::unmap`] or until the device and its clones are dropped. Other threads of the
    /// process may access them at the same time.
    pub unsafe fn map_host(&mut self, range: Range<Address>, host: u64) -> Result<(), DeviceError> {
        // SAFETY: promised by the caller.
        unsafe { self.space.map_host(range, host) }
    }

    /// Undoes [`EmbeddedGpu::map_host`].
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`].
    pub fn unmap(&mut self, start: Address) -> Result<(), DeviceError> {
        self.space.free(start)
    }

    /// Allocates zeroed memory at an address.
    ///
    /// # Errors
    /// [`DeviceError::Occupied`], [`DeviceError::OutOfMemory`].
    pub fn allocate_at(&mut self, address: Address, bytes: u64) -> Result<(), DeviceError> {
        self.space.allocate_at(address, bytes)
    }

    /// Returns the allocation that contains an address.
    pub fn allocation_around(&self, address: Address) -> Option<Range<Address>> {
        let end = |(start, size): (Address, u64)| start..Address(start.0 + size);
        self.space.allocations().map(end).find(|range| range.contains(&address))
    }

    /// Registers a code object that a loader places in memory with ELF virtual address 0 at `bias`.
    /// The code is executed as it is in the file: changes of code in memory have no effect.
    ///
    /// # Errors
    /// [`DeviceError::Load`].
    pub fn adopt(&mut self, code_object: &CodeObject, bias: u64) -> Result<ModuleId, DeviceError> {
        let (start, end) = EmbeddedGpu::code(code_object)
            .ok_or_else(|| DeviceError::Load("it has no executable section".into()))?;
        // Symbols of other code objects are data.
        let code = code_object
            .load_part_with(bias, start.0..end.0, |_| Some(0))
            .map_err(|error| DeviceError::Load(error.to_string()))?;
        if code.len() as u64 != end.0 - start.0 {
            return Err(DeviceError::Load("the code object's code is outside all segments".into()));
        }
        let place = bias.wrapping_add(start.0);
        let addresses = code_object.span();
        let module = Module::of(code_object, bias, addresses);
        self.add_module(module, Address(place), start, code)
    }

    /// Registers code in memory that has no code object. Its virtual addresses are device
    /// addresses.
    ///
    /// # Errors
    /// See [`EmbeddedGpu::adopt`].
    pub fn adopt_bare(&mut self, code: Range<Address>) -> Result<ModuleId, DeviceError> {
        let mut bytes = vec![0; code.end.0.saturating_sub(code.start.0) as usize];
        self.space.read(code.start, &mut bytes)?;
        let module = Module::bare(code.start.0..code.end.0);
        let bytes = FileBytes::from_vec(bytes);
        self.add_module(module, code.start, Pc(code.start.0), bytes)
    }

    /// Removes the code of a module, whose addresses may then contain other code or none. Its
    /// number is not reused.
    ///
    /// # Errors
    /// [`DeviceError::Internal`] if the module is not this device's.
    pub fn forget(&mut self, module: ModuleId) -> Result<(), DeviceError> {
        self.module(module)?;
        let index = module.0 as usize;
        self.modules[index] = Arc::new(Module::bare(0..0));
        for (size, programs) in self.target.wave_sizes().iter().zip(&mut self.programs) {
            let isa = Isa::with_wave_size(&self.target, *size)
                .map_err(|error| DeviceError::Load(error.to_string()))?;
            programs[index] =
                Arc::new(Program::new(isa, self.level, 0, 0, FileBytes::from_vec(Vec::new())));
        }
        Ok(())
    }

    /// Returns the module whose code contains a device address.
    pub fn module_around(&self, pc: Address) -> Option<ModuleId> {
        let programs = self.programs.first()?;
        let index = programs.iter().position(|program| program.contains(pc.0))?;
        Some(ModuleId(index as u32))
    }

    /// Reads a dispatch packet, and the kernel descriptor that it refers to.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`] if one of them is not in the device's memory.
    pub fn packet(&self, packet: Address) -> Result<(KernelPacket, Descriptor), DeviceError> {
        let packet = self.packet_at(packet)?;
        let mut descriptor = [0; DESCRIPTOR_SIZE];
        self.space.read(packet.kernel, &mut descriptor)?;
        let generation = self.target.generation();
        Ok((packet, Descriptor::decode(&descriptor, packet.kernel.0, generation)))
    }

    pub(crate) fn packet_at(&self, packet: Address) -> Result<KernelPacket, DeviceError> {
        let mut bytes = [0; KernelPacket::SIZE];
        self.space.read(packet, &mut bytes)?;
        Ok(KernelPacket::from_bytes(&bytes))
    }

    /// Like [`EmbeddedGpu::begin`], for a dispatch packet in a queue. The kernel sees packet, queue
    /// and arguments at their addresses; the device allocates the scratch memory.
    ///
    /// # Errors
    /// [`DeviceError::NotAllocated`] if the packet, the descriptor or arguments to be preloaded are
    /// not in the device's memory, [`DeviceError::NoCode`] if the kernel's code is not known, [`DeviceError::BadLaunch`],
    /// [`DeviceError::OutOfMemory`].
    pub fn begin_queued(
        &mut self,
        queued: QueuedPacket,
        instruction_limit: u64,
    ) -> Result<Execution, DeviceError> {
        let (packet, descriptor) = self.packet(queued.packet)?;
        let entry = Address(descriptor.entry.0);
        let home = self.module_around(entry).ok_or(DeviceError::NoCode { kernel: entry })?;
        self.begin_packet(queued, &packet, descriptor, home, instruction_limit)
    }

    /// Like [`EmbeddedGpu::begin_queued`], but user SGPRs start with these words instead of values
    /// that the descriptor asks for: those of the registers `COMPUTE_USER_DATA_0` and following, of
    /// a dispatch without an AQL packet. The packet and the descriptor in memory are the driver's
    /// record of the other registers.
    ///
    /// # Errors
    /// Those of [`EmbeddedGpu::begin_queued`].
    pub fn begin_registers(
        &mut self,
        queued: QueuedPacket,
        user_data: &[u32],
        instruction_limit: u64,
    ) -> Result<Execution, DeviceError> {
        let (packet, mut descriptor) = self.packet(queued.packet)?;
        descriptor.properties = descriptor.properties.without_user_sgprs();
        descriptor.kernarg_preload = KernargPreload::NONE;
        let entry = Address(descriptor.entry.0);
        let home = self.module_around(entry).ok_or(DeviceError::NoCode { kernel: entry })?;
        let user_sgprs = UserSgprs::Words(user_data.to_vec());
        self.begin_launch(queued, &packet, descriptor, user_sgprs, home, instruction_limit)
    }

    /// Begins a packet with a kernel of module `home`, regardless of the kernel that the packet
    /// names.
    pub(crate) fn begin_packet(
        &mut self,
        queued: QueuedPacket,
        packet: &KernelPacket,
        descriptor: Descriptor,
        home: ModuleId,
        instruction_limit: u64,
    ) -> Result<Execution, DeviceError> {
        let user_sgprs = UserSgprs::Descriptor;
        self.begin_launch(queued, packet, descriptor, user_sgprs, home, instruction_limit)
    }

    fn begin_launch(
        &mut self,
        queued: QueuedPacket,
        packet: &KernelPacket,
        descriptor: Descriptor,
        user_sgprs: UserSgprs,
        home: ModuleId,
        instruction_limit: u64,
    ) -> Result<Execution, DeviceError> {
        let places = Places {
            kernarg: packet.kernarg,
            packet: queued.packet,
            queue: queued.queue,
            dispatch_id: queued.number,
        };
        let (policy, target, space) = (self.policy, &self.target, &mut self.space);
        let launch =
            Launch::of_packet(packet, places, descriptor, user_sgprs, target, policy, space)?;
        let mut execution = Execution::new(home.0 as usize, launch, self.policy, instruction_limit);
        execution.sync = self.sync.clone();
        Ok(execution)
    }

    /// Discards an execution that has not ended.
    ///
    /// # Errors
    /// None for an execution of this device.
    pub fn abandon(&mut self, execution: Execution) -> Result<(), DeviceError> {
        execution.release(&mut self.space)
    }
}
