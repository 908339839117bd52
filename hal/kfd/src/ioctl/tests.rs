//! Requests as programs make them, on a machine whose engines run.

use super::abi::*;
use super::render_abi::{DeviceInfo, GemClose, GemVa, Info, PrimeHandle, Version};
use super::*;
use crate::driver::Driver;
use crate::memory::PAGE;
use flipwave_device::DeviceError;
use flipwave_sim::{EmbeddedGpu, Execution, Progress};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

/// Runs nothing.
struct Nothing;

impl Driver for Nothing {
    fn advance(
        &mut self,
        _: &mut EmbeddedGpu,
        _: &mut Execution,
        _: u64,
    ) -> Result<Progress, DeviceError> {
        Ok(Progress::Paused)
    }
}

fn process(gpus: u32) -> Process {
    let target = "gfx90a".parse().expect("a target");
    let machine = crate::start(&target, gpus, Box::new(Nothing), None, |error| panic!("{error}"));
    Process::new(machine.expect("a machine"))
}

/// Makes a request as a program of today's header would.
fn call<T: Plain>(process: &Process, call: Call, arguments: &mut T) -> Result<(), Errno> {
    sized(process, call, arguments, size_of::<T>())
}

/// The same by a program whose header has so many bytes of the arguments.
fn sized<T: Plain>(
    process: &Process,
    call: Call,
    arguments: &mut T,
    bytes: usize,
) -> Result<(), Errno> {
    let number = 3 << 30 | (bytes as u64) << 16 | u64::from(b'K') << 8 | call as u64;
    // SAFETY: as many bytes as it says.
    let request = unsafe { Request::new(number, (&raw mut *arguments).cast()) };
    compute(process, &request)
}

/// Arguments that are all 0.
fn zero<T: Plain>() -> T {
    // SAFETY: any bits are a `T`.
    unsafe { std::mem::zeroed() }
}

const GPU: u32 = GPU_ID + 1;
const VRAM: u32 = 1;
const GTT: u32 = 2;
const USERPTR: u32 = 4;

fn allocate(process: &Process, va_addr: u64, size: u64, flags: u32) -> Result<AllocMemory, Errno> {
    let mut own = AllocMemory { va_addr, size, gpu_id: GPU, flags, ..zero() };
    call(process, Call::AllocMemory, &mut own).map(|()| own)
}

fn map(process: &Process, way: Call, handle: u64, gpus: &[u32]) -> Result<u32, Errno> {
    let device_ids_array_ptr = gpus.as_ptr() as u64;
    let n_devices = gpus.len() as u32;
    let mut own = MapMemory { handle, device_ids_array_ptr, n_devices, ..zero() };
    call(process, way, &mut own).map(|()| own.n_success)
}

#[test]
fn a_program_learns_what_there_is() {
    let process = &process(2);
    let mut version: GetVersion = zero();
    call(process, Call::GetVersion, &mut version).unwrap();
    assert_eq!([version.major_version, version.minor_version], [1, 17]);
    let clock = || {
        let mut own = GetClockCounters { gpu_id: GPU, ..zero() };
        call(process, Call::GetClockCounters, &mut own).map(|()| own.gpu_clock_counter)
    };
    let first = clock().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(1));
    assert!(clock().unwrap() > first);
    let mut places: [ProcessDeviceApertures; 3] = zero_array();
    let mut own = GetProcessAperturesNew {
        kfd_process_device_apertures_ptr: places.as_mut_ptr() as u64,
        num_of_nodes: 3,
        pad: 0,
    };
    call(process, Call::GetProcessAperturesNew, &mut own).unwrap();
    assert_eq!(own.num_of_nodes, 2);
    assert_eq!(places.map(|place| place.gpu_id), [GPU, GPU + 1, 0]);
    assert!(places[0].lds_base >> 32 != 0 && places[0].gpuvm_limit > places[0].gpuvm_base);
    let mut wrong = GetClockCounters { gpu_id: 1, ..zero() };
    assert_eq!(call(process, Call::GetClockCounters, &mut wrong), Err(Errno::INVALID));
}

fn zero_array<T: Plain, const N: usize>() -> [T; N] {
    std::array::from_fn(|_| zero())
}

#[test]
fn arguments_may_be_those_of_an_older_header_or_of_a_newer_one() {
    let process = &process(1);
    // A field that the program does not have is 0, and is not written.
    let mut version = GetVersion { major_version: 7, minor_version: 7 };
    sized(process, Call::GetVersion, &mut version, 4).unwrap();
    assert_eq!([version.major_version, version.minor_version], [1, 7]);
    let mut longer = [7u32; 4];
    let number = 2 << 30 | 16 << 16 | u64::from(b'K') << 8 | Call::GetVersion as u64;
    // SAFETY: as many bytes as it says.
    let request = unsafe { Request::new(number, longer.as_mut_ptr().cast()) };
    compute(process, &request).unwrap();
    assert_eq!(longer, [1, 17, 7, 7]);
    // SAFETY: none is read.
    let request = unsafe { Request::new(number, std::ptr::null_mut()) };
    assert_eq!(compute(process, &request), Err(Errno::FAULT));
    // What is not answered is not written.
    let mut version = GetVersion { major_version: 7, minor_version: 7 };
    let number = 1 << 30 | 8 << 16 | u64::from(b'K') << 8 | Call::GetVersion as u64;
    // SAFETY: as many bytes as it says.
    let request = unsafe { Request::new(number, (&raw mut version).cast()) };
    compute(process, &request).unwrap();
    assert_eq!([version.major_version, version.minor_version], [7, 7]);
    // SAFETY: as above.
    let request = unsafe { Request::new(u64::from(b'K') << 8 | 0xff, std::ptr::null_mut()) };
    assert_eq!(compute(process, &request), Err(Errno::NO_CALL));
}

#[test]
fn memory_is_a_gpus_while_it_is_mapped_for_it() {
    let process = &process(2);
    let own = allocate(process, 0x1000_0000, 3 * PAGE, VRAM).unwrap();
    assert!(own.mmap_offset != 0 && own.handle != 0);
    let is_gpus = |node| {
        process.machine.view(node).check(crate::map::GpuAddress(own.va_addr), own.size).is_ok()
    };
    assert_eq!([is_gpus(1), is_gpus(2)], [false, false]);
    assert_eq!(map(process, Call::MapMemory, own.handle, &[GPU]), Ok(1));
    assert_eq!([is_gpus(1), is_gpus(2)], [true, false]);
    assert_eq!(map(process, Call::MapMemory, own.handle, &[GPU, GPU + 1]), Ok(2));
    assert_eq!([is_gpus(1), is_gpus(2)], [true, true]);
    let mut free = FreeMemory { handle: own.handle };
    assert_eq!(call(process, Call::FreeMemory, &mut free), Err(Errno::BUSY));
    assert_eq!(map(process, Call::UnmapMemory, own.handle, &[GPU, GPU + 1]), Ok(2));
    assert_eq!([is_gpus(1), is_gpus(2)], [false, false]);
    assert_eq!(call(process, Call::FreeMemory, &mut free), Ok(()));
    assert_eq!(call(process, Call::FreeMemory, &mut free), Err(Errno::INVALID));
    assert_eq!(map(process, Call::MapMemory, own.handle, &[GPU]), Err(Errno::INVALID));
}

#[test]
fn a_gpu_reads_what_the_program_writes_wherever_either_has_it() {
    let process = &process(1);
    let pages = Box::new([[0u8; PAGE as usize]; 3]);
    let inner = (pages.as_ptr() as u64).next_multiple_of(PAGE);
    let at = |va_addr, flags, mmap_offset| {
        let mut own =
            AllocMemory { va_addr, size: PAGE, gpu_id: GPU, flags, mmap_offset, ..zero() };
        call(process, Call::AllocMemory, &mut own).map(|()| own)
    };
    let program = at(0x2000_0000, USERPTR, inner).unwrap();
    assert_eq!(program.mmap_offset, inner);
    let host = at(0x3000_0000, GTT, 0).unwrap();
    let node = open_device_of(process, Some(FIRST_RENDER_MINOR));
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: new memory of the device's file.
    let mapped = unsafe {
        let (null, offset) = (std::ptr::null_mut(), host.mmap_offset as i64);
        libc::mmap(null, PAGE as usize, access, libc::MAP_SHARED, node, offset)
    };
    assert_ne!(mapped, libc::MAP_FAILED);
    for (own, place) in [(&program, inner), (&host, mapped as u64)] {
        map(process, Call::MapMemory, own.handle, &[GPU]).unwrap();
        // SAFETY: a page that nobody else uses.
        unsafe { (place as *mut u64).write_volatile(0x1234) };
        let mut bytes = [0; 8];
        assert!(process.machine.read(1, flipwave_device::Address(own.va_addr), &mut bytes));
        assert_eq!(u64::from_le_bytes(bytes), 0x1234);
        assert!(process.machine.is_on_host(flipwave_device::Address(own.va_addr)));
    }
    // SAFETY: mapped and opened above.
    unsafe {
        libc::munmap(mapped, PAGE as usize);
        libc::close(node);
    }
    drop(pages);
}

fn open_device_of(process: &Process, minor: Option<u32>) -> libc::c_int {
    let store = match Device::of(minor, process).expect("a device") {
        Device::Compute => &process.machine.pages,
        Device::Render(gpu) => process.store(gpu).expect("a GPU's"),
    };
    store.open(libc::O_CLOEXEC).expect("a file")
}

#[test]
fn memory_that_cannot_be_is_refused_and_costs_nothing() {
    let process = &process(1);
    let left = || {
        let mut own = GetAvailableMemory { gpu_id: GPU, ..zero() };
        call(process, Call::AvailableMemory, &mut own).map(|()| own.available).unwrap()
    };
    let all = left();
    allocate(process, 0x1000_0000, 4 * PAGE, VRAM).unwrap();
    assert_eq!(left(), all - 4 * PAGE);
    let refused = |address, bytes, flags| allocate(process, address, bytes, flags).unwrap_err();
    assert_eq!(refused(0x1000_3000, PAGE, VRAM), Errno::INVALID);
    assert_eq!(refused(0x0fff_f000, 2 * PAGE, GTT), Errno::INVALID);
    assert_eq!(refused(0x2000_0000, all, VRAM), Errno::NO_MEMORY);
    assert_eq!(refused(0x2000_0000, u64::MAX, VRAM), Errno::INVALID);
    assert_eq!(refused(0x2000_0000, 0, VRAM), Errno::INVALID);
    assert_eq!(refused(0x2000_0008, PAGE, VRAM), Errno::INVALID);
    assert_eq!(refused(1 << 47, PAGE, VRAM), Errno::INVALID);
    assert_eq!(refused(0x2000_0000, PAGE, VRAM | GTT), Errno::INVALID);
    assert_eq!(refused(0x2000_0000, PAGE, USERPTR), Errno::INVALID);
    assert_eq!(refused(0x2000_0000, PAGE, 0), Errno::INVALID);
    assert_eq!(left(), all - 4 * PAGE);
}

#[test]
fn memory_of_the_program_is_shared_by_its_attributes() {
    #[repr(C)]
    struct Arguments {
        head: Svm,
        attributes: [SvmAttribute; 1],
    }
    let process = &process(1);
    let request = |op, kind, value, nattr| {
        let head = Svm { start_addr: 0x7000_0000, size: PAGE, op, nattr };
        let mut own = Arguments { head, attributes: [SvmAttribute { r#type: kind, value }] };
        let bytes = size_of::<Arguments>() as u64;
        let number = 3 << 30 | bytes << 16 | u64::from(b'K') << 8 | Call::Svm as u64;
        // SAFETY: as many bytes as it says.
        let request = unsafe { Request::new(number, (&raw mut own).cast()) };
        compute(process, &request).map(|()| own.attributes[0].r#type)
    };
    let [access, in_place, no_access] = [2, 3, 4];
    let may_access = || request(1, access, GPU, 1);
    assert_eq!(may_access(), Ok(no_access));
    request(0, access, GPU, 1).unwrap();
    assert_eq!(may_access(), Ok(in_place));
    request(0, no_access, GPU, 1).unwrap();
    assert_eq!(may_access(), Ok(no_access));
    assert_eq!(request(0, access, GPU, 2), Err(Errno::INVALID));
    assert_eq!(request(2, access, GPU, 1), Err(Errno::INVALID));
}

fn create_event(process: &Process, event_type: u32) -> CreateEvent {
    let mut own = CreateEvent { event_type, auto_reset: 1, ..zero() };
    call(process, Call::CreateEvent, &mut own).expect("an event");
    own
}

/// Waits for a millisecond; whether the event happened.
fn wait(process: &Process, event_id: u32) -> Result<(bool, EventData), Errno> {
    let mut data = EventData { event_id, ..zero() };
    let events_ptr = (&raw mut data) as u64;
    let mut own = WaitEvents { events_ptr, num_events: 1, timeout: 1, ..zero() };
    call(process, Call::WaitEvents, &mut own).map(|()| (own.wait_result == 0, data))
}

#[test]
fn who_waits_for_an_event_is_woken_once() {
    let process = &process(1);
    let event = create_event(process, 0);
    assert!(event.event_page_offset != 0 && event.event_trigger_data == event.event_id);
    let happened = || wait(process, event.event_id).map(|(happened, _)| happened);
    assert_eq!(happened(), Ok(false));
    let id = event.event_id;
    call(process, Call::SetEvent, &mut SetEvent { event_id: id, pad: 0 }).unwrap();
    assert_eq!([happened(), happened()], [Ok(true), Ok(false)]);
    call(process, Call::SetEvent, &mut SetEvent { event_id: id, pad: 0 }).unwrap();
    call(process, Call::ResetEvent, &mut ResetEvent { event_id: id, pad: 0 }).unwrap();
    assert_eq!(happened(), Ok(false));
    let mut gone = DestroyEvent { event_id: id, pad: 0 };
    call(process, Call::DestroyEvent, &mut gone).unwrap();
    assert_eq!(call(process, Call::DestroyEvent, &mut gone), Err(Errno::INVALID));
    assert_eq!(happened(), Err(Errno::INVALID));
    let mut no_page = CreateEvent { event_page_offset: 77, ..zero() };
    assert_eq!(call(process, Call::CreateEvent, &mut no_page), Err(Errno::INVALID));
}

/// A queue in a buffer of its own, and where the process has that.
struct TestQueue {
    buffer: AllocMemory,
    host: u64,
    created: CreateQueue,
}

impl TestQueue {
    const RING: u64 = 0;
    const STRUCTURE: u64 = PAGE;
    const SIGNAL: u64 = PAGE + 512;

    fn arguments(address: u64) -> CreateQueue {
        CreateQueue {
            ring_base_address: address + TestQueue::RING,
            ring_size: PAGE as u32,
            read_pointer_address: address + TestQueue::STRUCTURE + 128,
            write_pointer_address: address + TestQueue::STRUCTURE + 56,
            gpu_id: GPU,
            queue_type: 2,
            ..zero()
        }
    }

    fn new(process: &Process) -> TestQueue {
        let buffer = allocate(process, 0x4000_0000, 2 * PAGE, GTT).unwrap();
        map(process, Call::MapMemory, buffer.handle, &[GPU]).unwrap();
        let host = process.machine.view(1).within(buffer.va_addr..buffer.va_addr + 1)[0].1;
        // No packets.
        for slot in 0..PAGE / 64 {
            // SAFETY: in the buffer, at a multiple of 64.
            unsafe { AtomicU16::from_ptr((host + 64 * slot) as *mut u16) }
                .store(1, Ordering::Release);
        }
        let mut created = TestQueue::arguments(buffer.va_addr);
        call(process, Call::CreateQueue, &mut created).unwrap();
        TestQueue { buffer, host, created }
    }

    fn word(&self, offset: u64) -> &AtomicU64 {
        // SAFETY: in the buffer, at a multiple of 8.
        unsafe { AtomicU64::from_ptr((self.host + offset) as *mut u64) }
    }
}

#[test]
fn a_packet_of_a_queue_ends_and_its_signal_wakes_the_program() {
    let process = &process(1);
    let queue = TestQueue::new(process);
    let event = create_event(process, 0);
    let signal = queue.buffer.va_addr + TestQueue::SIGNAL;
    let mailbox = TestQueue::SIGNAL + 256;
    queue.word(TestQueue::SIGNAL + 8).store(1, Ordering::Relaxed);
    queue.word(TestQueue::SIGNAL + 16).store(queue.buffer.va_addr + mailbox, Ordering::Relaxed);
    queue.word(TestQueue::SIGNAL + 24).store(event.event_id.into(), Ordering::Relaxed);
    assert!(!wait(process, event.event_id).unwrap().0);
    // A barrier packet that waits for nothing.
    const BARRIER_AND: u64 = 3;
    queue.word(TestQueue::RING + 56).store(signal, Ordering::Relaxed);
    queue.word(TestQueue::RING).store(BARRIER_AND, Ordering::Release);
    queue.word(TestQueue::STRUCTURE + 56).store(1, Ordering::Release);
    while !wait(process, event.event_id).unwrap().0 {}
    assert_eq!(queue.word(TestQueue::SIGNAL + 8).load(Ordering::Acquire), 0);
    assert_eq!(queue.word(mailbox).load(Ordering::Acquire), u64::from(event.event_id));
    assert_eq!(queue.word(TestQueue::STRUCTURE + 128).load(Ordering::Acquire), 1);
    // Not the packet's own queue any more: nothing is taken.
    let queue_id = queue.created.queue_id;
    call(process, Call::DestroyQueue, &mut DestroyQueue { queue_id, pad: 0 }).unwrap();
    queue.word(TestQueue::STRUCTURE + 56).store(2, Ordering::Release);
    assert!(!wait(process, event.event_id).unwrap().0);
    let mut again = DestroyQueue { queue_id, pad: 0 };
    assert_eq!(call(process, Call::DestroyQueue, &mut again), Err(Errno::INVALID));
}

#[test]
fn a_wild_address_in_a_packet_is_a_memory_fault_to_the_program() {
    let process = &process(1);
    let queue = TestQueue::new(process);
    let event = create_event(process, 8);
    let wild = 0x5000_0000 + 4 * PAGE;
    queue.word(TestQueue::RING + 56).store(wild, Ordering::Relaxed);
    queue.word(TestQueue::RING).store(3, Ordering::Release);
    queue.word(TestQueue::STRUCTURE + 56).store(1, Ordering::Release);
    let data = loop {
        if let (true, data) = wait(process, event.event_id).unwrap() {
            break data.memory_exception_data;
        }
    };
    assert_eq!([data.va, data.gpu_id.into()], [wild, u64::from(GPU)]);
    assert_eq!([data.failure.NotPresent, data.failure.ReadOnly], [1, 0]);
}

#[test]
fn a_queue_is_made_only_in_memory_that_the_gpu_has() {
    let process = &process(1);
    let buffer = allocate(process, 0x4000_0000, 2 * PAGE, GTT).unwrap();
    let create = |change: &dyn Fn(&mut CreateQueue)| {
        let mut own = TestQueue::arguments(buffer.va_addr);
        change(&mut own);
        call(process, Call::CreateQueue, &mut own)
    };
    assert_eq!(create(&|_| {}), Err(Errno::INVALID));
    map(process, Call::MapMemory, buffer.handle, &[GPU]).unwrap();
    assert_eq!(create(&|_| {}), Ok(()));
    assert_eq!(create(&|own| own.ring_base_address += PAGE), Ok(()));
    for change in [
        |own: &mut CreateQueue| own.ring_base_address += 2 * PAGE,
        |own: &mut CreateQueue| own.read_pointer_address = 0,
        |own: &mut CreateQueue| own.write_pointer_address += 1,
        |own: &mut CreateQueue| own.ring_size = 100,
        |own: &mut CreateQueue| own.queue_type = 0,
        |own: &mut CreateQueue| own.gpu_id = 0,
    ] {
        assert_eq!(create(&change), Err(Errno::INVALID));
    }
}

#[test]
fn a_render_node_is_an_amd_gpus() {
    let process = &process(1);
    let ask = |number: u64, bytes: usize, argument: *mut std::ffi::c_void| {
        let number = 3 << 30 | (bytes as u64) << 16 | u64::from(b'd') << 8 | number;
        // SAFETY: as many bytes as it says.
        render::answer(process, GpuNode(1), &unsafe { Request::new(number, argument) })
    };
    let mut name = [0u8; 4];
    let mut version =
        Version { name: name.as_mut_ptr() as u64, name_len: name.len() as u64, ..zero() };
    ask(0, size_of::<Version>(), (&raw mut version).cast()).unwrap();
    assert_eq!((&name, version.name_len, version.version_major), (b"amdg", 6, 3));
    let mut device: DeviceInfo = zero();
    let mut info = Info {
        return_pointer: (&raw mut device) as u64,
        return_size: size_of::<DeviceInfo>() as u32,
        query: 0x16,
        ..zero()
    };
    ask(0x45, size_of::<Info>(), (&raw mut info).cast()).unwrap();
    assert_eq!([device.device_id, device.family, device.cu_active_number], [0x740f, 141, 104]);
    info.query = 0xdead;
    assert_eq!(ask(0x45, size_of::<Info>(), (&raw mut info).cast()), Err(Errno::INVALID));
    assert_eq!(ask(0x3f, 0, std::ptr::null_mut()), Err(Errno::NO_CALL));
}

/// Asks the render node of the first GPU.
fn ask<T: Plain>(process: &Process, number: u64, arguments: &mut T) -> Result<(), Errno> {
    let number = 3 << 30 | (size_of::<T>() as u64) << 16 | u64::from(b'd') << 8 | number;
    // SAFETY: as many bytes as it says.
    let request = unsafe { Request::new(number, (&raw mut *arguments).cast()) };
    render::answer(process, GpuNode(1), &request)
}

#[test]
fn memory_with_a_file_is_mapped_by_a_render_node_as_often_as_wanted() {
    const PRIME: u64 = 0x2e;
    const GEM_CLOSE: u64 = 0x09;
    const GEM_VA: u64 = 0x48;
    let process = &process(1);
    let own = allocate(process, 0, 2 * PAGE, VRAM).unwrap();
    let mut export = ExportDmabuf { handle: own.handle, ..zero() };
    call(process, Call::ExportDmabuf, &mut export).unwrap();
    let fd = export.dmabuf_fd as libc::c_int;
    // SAFETY: a file of the test's.
    assert_eq!(unsafe { libc::lseek(fd, 0, libc::SEEK_END) }, 2 * PAGE as i64);
    let mut described = GetDmabufInfo { dmabuf_fd: export.dmabuf_fd, ..zero() };
    call(process, Call::GetDmabufInfo, &mut described).unwrap();
    assert_eq!((described.size, described.gpu_id, described.flags), (2 * PAGE, GPU, VRAM));

    let mut object = PrimeHandle { fd, ..zero() };
    ask(process, PRIME, &mut object).unwrap();
    let mut same = PrimeHandle { fd, ..zero() };
    ask(process, PRIME, &mut same).unwrap();
    assert_eq!(object.handle, same.handle);
    let map = |operation, va_address, offset_in_bo, map_size| {
        let handle = object.handle;
        let mut own = GemVa { handle, operation, va_address, offset_in_bo, map_size, ..zero() };
        ask(process, GEM_VA, &mut own)
    };
    let [first, second] = [0x1000_0000, 0x2000_0000];
    map(1, first, 0, 2 * PAGE).unwrap();
    map(1, second, PAGE, PAGE).unwrap();
    for (address, offset, bytes) in [
        (first + PAGE, 0, PAGE),
        (0x3000_0000, PAGE, 2 * PAGE),
        (0x3000_0000, !(PAGE - 1), PAGE),
        (0x3000_0000, 0, 0),
        (0x3000_0008, 0, PAGE),
        (1 << 47, 0, PAGE),
    ] {
        assert_eq!(map(1, address, offset, bytes), Err(Errno::INVALID), "{address:x}");
    }
    let word = |address| {
        let view = process.machine.view(1);
        view.word64(crate::map::GpuAddress(address)).map(|word| word.load(Ordering::Acquire)).ok()
    };
    {
        let view = process.machine.view(1);
        let word = view.word64(crate::map::GpuAddress(first + PAGE)).unwrap();
        word.store(77, Ordering::Release);
    }
    assert_eq!([word(first + PAGE), word(second)], [Some(77), Some(77)]);
    map(2, first, 0, 2 * PAGE).unwrap();
    assert_eq!([word(first + PAGE), word(second)], [None, Some(77)]);
    assert_eq!(map(2, first, 0, 2 * PAGE), Err(Errno::INVALID));
    // The handle keeps the memory, and what closes it takes it away.
    call(process, Call::FreeMemory, &mut FreeMemory { handle: own.handle }).unwrap();
    assert_eq!(word(second), Some(77));
    ask(process, GEM_CLOSE, &mut GemClose { handle: object.handle, pad: 0 }).unwrap();
    assert_eq!(word(second), None);
    let mut gone = GemClose { handle: object.handle, pad: 0 };
    assert_eq!(ask(process, GEM_CLOSE, &mut gone), Err(Errno::INVALID));
    // A file of memory that is gone, and one that is of none.
    assert_eq!(ask(process, PRIME, &mut PrimeHandle { fd, ..zero() }), Err(Errno::INVALID));
    // SAFETY: a file of the test's.
    unsafe { libc::close(fd) };
    let other = std::fs::File::open("/dev/null").unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&other);
    assert_eq!(ask(process, PRIME, &mut PrimeHandle { fd, ..zero() }), Err(Errno::INVALID));
}
