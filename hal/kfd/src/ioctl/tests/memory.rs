//! Tests of allocation, mapping and sharing of memory.

use super::*;
use crate::map::GpuAddress;
use flipwave_device::Address;

#[test]
fn a_gpu_may_access_memory_while_it_is_mapped() {
    let process = &process(2);
    let buffer = allocate(process, 0x1000_0000, 3 * PAGE, VRAM).unwrap();
    assert!(buffer.mmap_offset != 0 && buffer.handle != 0);
    let is_accessible =
        |node| process.machine.view(node).check(GpuAddress(buffer.va_addr), buffer.size).is_ok();
    assert_eq!([is_accessible(1), is_accessible(2)], [false, false]);
    assert_eq!(map(process, Call::MapMemory, buffer.handle, &[GPU]), Ok(1));
    assert_eq!([is_accessible(1), is_accessible(2)], [true, false]);
    assert_eq!(map(process, Call::MapMemory, buffer.handle, &[GPU, GPU + 1]), Ok(2));
    assert_eq!([is_accessible(1), is_accessible(2)], [true, true]);
    let mut free = FreeMemory { handle: buffer.handle };
    assert_eq!(call(process, Call::FreeMemory, &mut free), Err(Errno::BUSY));
    assert_eq!(map(process, Call::UnmapMemory, buffer.handle, &[GPU, GPU + 1]), Ok(2));
    assert_eq!([is_accessible(1), is_accessible(2)], [false, false]);
    assert_eq!(call(process, Call::FreeMemory, &mut free), Ok(()));
    assert_eq!(call(process, Call::FreeMemory, &mut free), Err(Errno::INVALID));
    assert_eq!(map(process, Call::MapMemory, buffer.handle, &[GPU]), Err(Errno::INVALID));
}

#[test]
fn a_gpu_reads_what_the_program_writes_to_host_memory() {
    let process = &process(1);
    let pages = Box::new([[0u8; PAGE as usize]; 3]);
    let inner = (pages.as_ptr() as u64).next_multiple_of(PAGE);
    let allocate_at = |va_addr, flags, mmap_offset| {
        let mut args =
            AllocMemory { va_addr, size: PAGE, gpu_id: GPU, flags, mmap_offset, ..zero() };
        call(process, Call::AllocMemory, &mut args).map(|()| args)
    };
    let program = allocate_at(0x2000_0000, USERPTR, inner).unwrap();
    assert_eq!(program.mmap_offset, inner);
    let host = allocate_at(0x3000_0000, GTT, 0).unwrap();
    let node = open_device_of(process, Some(FIRST_RENDER_MINOR));
    let access = libc::PROT_READ | libc::PROT_WRITE;
    // SAFETY: new memory, mapped from the device's file.
    let mapped = unsafe {
        let (null, offset) = (std::ptr::null_mut(), host.mmap_offset as i64);
        libc::mmap(null, PAGE as usize, access, libc::MAP_SHARED, node, offset)
    };
    assert_ne!(mapped, libc::MAP_FAILED);
    for (buffer, pointer) in [(&program, inner), (&host, mapped as u64)] {
        map(process, Call::MapMemory, buffer.handle, &[GPU]).unwrap();
        // SAFETY: a page that nobody else uses.
        unsafe { (pointer as *mut u64).write_volatile(0x1234) };
        let mut bytes = [0; 8];
        assert!(process.machine.read(1, Address(buffer.va_addr), &mut bytes));
        assert_eq!(u64::from_le_bytes(bytes), 0x1234);
        assert!(process.machine.is_on_host(Address(buffer.va_addr)));
    }
    // SAFETY: mapped and opened above.
    unsafe {
        libc::munmap(mapped, PAGE as usize);
        libc::close(node);
    }
    drop(pages);
}

fn open_device_of(process: &Process, minor: Option<u32>) -> libc::c_int {
    let store = match Device::from_minor(minor, process).expect("a device") {
        Device::Compute => &process.machine.driver_pages,
        Device::Render(gpu) => gpu.store(&process.machine).expect("a store"),
    };
    store.open(libc::O_CLOEXEC).expect("a file")
}

#[test]
fn invalid_allocations_are_refused_and_use_no_memory() {
    let process = &process(1);
    let available = || {
        let mut args = GetAvailableMemory { gpu_id: GPU, ..zero() };
        call(process, Call::AvailableMemory, &mut args).map(|()| args.available).unwrap()
    };
    let all = available();
    allocate(process, 0x1000_0000, 4 * PAGE, VRAM).unwrap();
    assert_eq!(available(), all - 4 * PAGE);
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
    let (va_addr, mmap_offset, flags) = (0x2000_0000, 0x1000, USERPTR);
    let mut unmapped =
        AllocMemory { va_addr, size: PAGE, gpu_id: GPU, flags, mmap_offset, ..zero() };
    assert_eq!(call(process, Call::AllocMemory, &mut unmapped), Err(Errno::FAULT));
    assert_eq!(refused(0x2000_0000, PAGE, 0), Errno::INVALID);
    assert_eq!(available(), all - 4 * PAGE);
}

#[test]
fn attributes_share_memory_of_the_program() {
    #[repr(C)]
    struct Arguments {
        head: Svm,
        attributes: [SvmAttribute; 1],
    }
    let process = &process(1);
    let pages = Box::new([[0u8; PAGE as usize]; 2]);
    let inner = (pages.as_ptr() as u64).next_multiple_of(PAGE);
    let request_at = |start_addr, op, kind, value, nattr| {
        let head = Svm { start_addr, size: PAGE, op, nattr };
        let mut args = Arguments { head, attributes: [SvmAttribute { r#type: kind, value }] };
        let bytes = size_of::<Arguments>() as u64;
        let number = 3 << 30 | bytes << 16 | u64::from(b'K') << 8 | Call::Svm as u64;
        // SAFETY: the arguments have the size of the request.
        let request = unsafe { Request::new(number, (&raw mut args).cast()) };
        compute_call(process, &request).map(|()| args.attributes[0].r#type)
    };
    let request = |op, kind, value, nattr| request_at(inner, op, kind, value, nattr);
    let [access, in_place, no_access] = [2, 3, 4];
    let may_access = || request(1, access, GPU, 1);
    assert_eq!(may_access(), Ok(no_access));
    request(0, access, GPU, 1).unwrap();
    assert_eq!(may_access(), Ok(in_place));
    request(0, no_access, GPU, 1).unwrap();
    assert_eq!(may_access(), Ok(no_access));
    assert_eq!(request(0, access, GPU, 2), Err(Errno::INVALID));
    assert_eq!(request(2, access, GPU, 1), Err(Errno::INVALID));
    assert_eq!(request_at(0x1000, 0, access, GPU, 1), Err(Errno::FAULT), "unmapped");
}

/// A second machine, whose memory is in other files, represents another process.
#[test]
fn memory_is_shared_with_another_process() {
    let (first, second) = (&process(1), &process(2));
    let buffer = allocate(first, 0x1000_0000, 3 * PAGE, VRAM).unwrap();
    map(first, Call::MapMemory, buffer.handle, &[GPU]).unwrap();
    let mut exported = IpcExport { handle: buffer.handle, gpu_id: GPU, ..zero() };
    call(first, Call::IpcExport, &mut exported).unwrap();
    let import = |share_handle| {
        let gpu_id = GPU + 1;
        let mut args = IpcImport { va_addr: 0x2000_0000, share_handle, gpu_id, ..zero() };
        call(second, Call::IpcImport, &mut args).map(|()| args)
    };
    let imported = import(exported.share_handle).unwrap();
    assert_eq!(imported.flags, VRAM);
    map(second, Call::MapMemory, imported.handle, &[GPU + 1]).unwrap();
    let increment = |process: &Process, node, address| {
        let view = process.machine.view(node);
        let word = view.word64(GpuAddress(address)).expect("mapped");
        word.fetch_add(1, Ordering::AcqRel)
    };
    assert_eq!(increment(first, 1, 0x1000_1000), 0);
    assert_eq!(increment(second, 2, 0x2000_1000), 1);
    assert_eq!(increment(first, 1, 0x1000_1000), 2);
    // Handles that were never exported.
    let [process_id, page, pages, file] = exported.share_handle;
    for wrong in [
        [0, page, pages, file],
        [process_id, u32::MAX, pages, file],
        [process_id, page, u32::MAX, file],
        [process_id, page, 0, file],
        [process_id, page, pages, file & 0xffff],
        [process_id, page, pages, 0xfffe << 16 | file & 0xffff],
    ] {
        assert_eq!(import(wrong).map(drop), Err(Errno::INVALID), "{wrong:?}");
    }
    map(second, Call::UnmapMemory, imported.handle, &[GPU + 1]).unwrap();
    call(second, Call::FreeMemory, &mut FreeMemory { handle: imported.handle }).unwrap();
    assert_eq!(increment(first, 1, 0x1000_1000), 3);
}

#[test]
fn a_system_management_file_reports_no_events() {
    let process = &process(1);
    let mut args = SmiEvents { gpuid: GPU, ..zero() };
    call(process, Call::SmiEvents, &mut args).unwrap();
    let file = args.anon_fd as libc::c_int;
    let mut bytes = [1u8; 8];
    // SAFETY: a file of this test, and a buffer of 8 bytes.
    unsafe {
        assert_eq!(libc::write(file, bytes.as_ptr().cast(), 8), 8);
        assert_eq!(libc::read(file, bytes.as_mut_ptr().cast(), 8), -1);
        libc::close(file);
    }
    let mut wrong = SmiEvents { gpuid: 7, ..zero() };
    assert_eq!(call(process, Call::SmiEvents, &mut wrong), Err(Errno::INVALID));
}
