//! Render nodes.

use super::*;

#[test]
fn a_render_node_is_an_amd_gpus() {
    let process = &process(1);
    let ask = |number: u64, bytes: usize, argument: *mut std::ffi::c_void| {
        let number = 3 << 30 | (bytes as u64) << 16 | u64::from(b'd') << 8 | number;
        // SAFETY: as many bytes as it says.
        crate::ioctl::render::answer(process, GpuNode(1), &unsafe {
            Request::new(number, argument)
        })
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
    crate::ioctl::render::answer(process, GpuNode(1), &request)
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

    let import = |va_addr| {
        let dmabuf_fd = export.dmabuf_fd;
        let mut own = ImportDmabuf { va_addr, gpu_id: GPU, dmabuf_fd, ..zero() };
        call(process, Call::ImportDmabuf, &mut own).map(|()| own.handle)
    };
    for wrong in [8, 1 << 47, !(PAGE - 1), (1 << 47) - PAGE] {
        assert_eq!(import(wrong), Err(Errno::INVALID), "{wrong:x}");
    }
    let handle = import(0x7000_0000).unwrap();
    assert_eq!(import(0x7000_1000), Err(Errno::INVALID));
    call(process, Call::FreeMemory, &mut FreeMemory { handle }).unwrap();

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
