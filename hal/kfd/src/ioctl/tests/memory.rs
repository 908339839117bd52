//! Memory that is allocated, mapped and shared.

use super::*;

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
        Device::Render(gpu) => gpu.store(&process.machine).expect("a GPU's"),
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
    let (va_addr, mmap_offset, flags) = (0x2000_0000, 0x1000, USERPTR);
    let mut nothing =
        AllocMemory { va_addr, size: PAGE, gpu_id: GPU, flags, mmap_offset, ..zero() };
    assert_eq!(call(process, Call::AllocMemory, &mut nothing), Err(Errno::FAULT));
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
    let pages = Box::new([[0u8; PAGE as usize]; 2]);
    let own = (pages.as_ptr() as u64).next_multiple_of(PAGE);
    let request_at = |start_addr, op, kind, value, nattr| {
        let head = Svm { start_addr, size: PAGE, op, nattr };
        let mut own = Arguments { head, attributes: [SvmAttribute { r#type: kind, value }] };
        let bytes = size_of::<Arguments>() as u64;
        let number = 3 << 30 | bytes << 16 | u64::from(b'K') << 8 | Call::Svm as u64;
        // SAFETY: as many bytes as it says.
        let request = unsafe { Request::new(number, (&raw mut own).cast()) };
        compute(process, &request).map(|()| own.attributes[0].r#type)
    };
    let request = |op, kind, value, nattr| request_at(own, op, kind, value, nattr);
    let [access, in_place, no_access] = [2, 3, 4];
    let may_access = || request(1, access, GPU, 1);
    assert_eq!(may_access(), Ok(no_access));
    request(0, access, GPU, 1).unwrap();
    assert_eq!(may_access(), Ok(in_place));
    request(0, no_access, GPU, 1).unwrap();
    assert_eq!(may_access(), Ok(no_access));
    assert_eq!(request(0, access, GPU, 2), Err(Errno::INVALID));
    assert_eq!(request(2, access, GPU, 1), Err(Errno::INVALID));
    assert_eq!(request_at(0x1000, 0, access, GPU, 1), Err(Errno::FAULT), "nothing is there");
}

/// Another machine stands for another process: its memory is in files of its own.
#[test]
fn memory_of_another_process_is_the_same_bytes() {
    let (first, second) = (&process(1), &process(2));
    let own = allocate(first, 0x1000_0000, 3 * PAGE, VRAM).unwrap();
    map(first, Call::MapMemory, own.handle, &[GPU]).unwrap();
    let mut exported = IpcExport { handle: own.handle, gpu_id: GPU, ..zero() };
    call(first, Call::IpcExport, &mut exported).unwrap();
    let import = |share_handle| {
        let gpu_id = GPU + 1;
        let mut own = IpcImport { va_addr: 0x2000_0000, share_handle, gpu_id, ..zero() };
        call(second, Call::IpcImport, &mut own).map(|()| own)
    };
    let imported = import(exported.share_handle).unwrap();
    assert_eq!(imported.flags, VRAM);
    map(second, Call::MapMemory, imported.handle, &[GPU + 1]).unwrap();
    let word = |process: &Process, node, address| {
        let view = process.machine.view(node);
        let word = view.word64(crate::map::GpuAddress(address)).expect("mapped");
        word.fetch_add(1, Ordering::AcqRel)
    };
    assert_eq!(word(first, 1, 0x1000_1000), 0);
    assert_eq!(word(second, 2, 0x2000_1000), 1);
    assert_eq!(word(first, 1, 0x1000_1000), 2);
    // Handles that nobody has given.
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
    assert_eq!(word(first, 1, 0x1000_1000), 3);
}

#[test]
fn who_listens_for_what_happens_to_gpus_hears_nothing() {
    let process = &process(1);
    let mut own = SmiEvents { gpuid: GPU, ..zero() };
    call(process, Call::SmiEvents, &mut own).unwrap();
    let file = own.anon_fd as libc::c_int;
    let mut bytes = [1u8; 8];
    // SAFETY: a file of the test's, and as many bytes as it says.
    unsafe {
        assert_eq!(libc::write(file, bytes.as_ptr().cast(), 8), 8);
        assert_eq!(libc::read(file, bytes.as_mut_ptr().cast(), 8), -1);
        libc::close(file);
    }
    let mut wrong = SmiEvents { gpuid: 7, ..zero() };
    assert_eq!(call(process, Call::SmiEvents, &mut wrong), Err(Errno::INVALID));
}
