//! Tests of render nodes.

use super::*;
use crate::ioctl::render;
use crate::map::GpuAddress;

#[test]
fn a_render_node_describes_its_gpu() {
    const INFO: u64 = 0x45;
    let process = &process(1);
    let mut name = [0u8; 4];
    let mut version =
        Version { name: name.as_mut_ptr() as u64, name_len: name.len() as u64, ..zero() };
    render_call(process, 0, &mut version).unwrap();
    assert_eq!((&name, version.name_len, version.version_major), (b"amdg", 6, 3));
    let mut device: DeviceInfo = zero();
    let mut info = Info {
        return_pointer: (&raw mut device) as u64,
        return_size: size_of::<DeviceInfo>() as u32,
        query: 0x16,
        ..zero()
    };
    render_call(process, INFO, &mut info).unwrap();
    assert_eq!([device.device_id, device.family, device.cu_active_number], [0x740f, 141, 104]);
    info.query = 0xdead;
    assert_eq!(render_call(process, INFO, &mut info), Err(Errno::INVALID));
    assert_eq!(render_call(process, 0x3f, &mut info), Err(Errno::NO_CALL));
}

/// Makes a call on the render node of the first GPU.
fn render_call<T: Plain>(process: &Process, number: u64, arguments: &mut T) -> Result<(), Errno> {
    let number = 3 << 30 | (size_of::<T>() as u64) << 16 | u64::from(b'd') << 8 | number;
    // SAFETY: the arguments have the size of the request.
    let request = unsafe { Request::new(number, (&raw mut *arguments).cast()) };
    render::call(process, GpuNode(1), &request)
}

#[test]
fn a_dmabuf_can_be_mapped_several_times() {
    const PRIME: u64 = 0x2e;
    const GEM_CLOSE: u64 = 0x09;
    const GEM_VA: u64 = 0x48;
    let process = &process(1);
    let buffer = allocate(process, 0, 2 * PAGE, VRAM).unwrap();
    let mut export = ExportDmabuf { handle: buffer.handle, ..zero() };
    call(process, Call::ExportDmabuf, &mut export).unwrap();
    let fd = export.dmabuf_fd as libc::c_int;
    // SAFETY: a file of this test.
    assert_eq!(unsafe { libc::lseek(fd, 0, libc::SEEK_END) }, 2 * PAGE as i64);
    let mut described = GetDmabufInfo { dmabuf_fd: export.dmabuf_fd, ..zero() };
    call(process, Call::GetDmabufInfo, &mut described).unwrap();
    assert_eq!((described.size, described.gpu_id, described.flags), (2 * PAGE, GPU, VRAM));

    let import = |va_addr| {
        let dmabuf_fd = export.dmabuf_fd;
        let mut args = ImportDmabuf { va_addr, gpu_id: GPU, dmabuf_fd, ..zero() };
        call(process, Call::ImportDmabuf, &mut args).map(|()| args.handle)
    };
    for wrong in [8, 1 << 47, !(PAGE - 1), (1 << 47) - PAGE] {
        assert_eq!(import(wrong), Err(Errno::INVALID), "{wrong:x}");
    }
    let handle = import(0x7000_0000).unwrap();
    assert_eq!(import(0x7000_1000), Err(Errno::INVALID));
    call(process, Call::FreeMemory, &mut FreeMemory { handle }).unwrap();

    let mut object = PrimeHandle { fd, ..zero() };
    render_call(process, PRIME, &mut object).unwrap();
    let mut same = PrimeHandle { fd, ..zero() };
    render_call(process, PRIME, &mut same).unwrap();
    assert_eq!(object.handle, same.handle);
    let map = |operation, va_address, offset_in_bo, map_size| {
        let handle = object.handle;
        let mut args = GemVa { handle, operation, va_address, offset_in_bo, map_size, ..zero() };
        render_call(process, GEM_VA, &mut args)
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
        view.word64(GpuAddress(address)).map(|word| word.load(Ordering::Acquire)).ok()
    };
    {
        let view = process.machine.view(1);
        let word = view.word64(GpuAddress(first + PAGE)).unwrap();
        word.store(77, Ordering::Release);
    }
    assert_eq!([word(first + PAGE), word(second)], [Some(77), Some(77)]);
    map(2, first, 0, 2 * PAGE).unwrap();
    assert_eq!([word(first + PAGE), word(second)], [None, Some(77)]);
    assert_eq!(map(2, first, 0, 2 * PAGE), Err(Errno::INVALID));
    // The handle of the node keeps the memory until it is closed.
    call(process, Call::FreeMemory, &mut FreeMemory { handle: buffer.handle }).unwrap();
    assert_eq!(word(second), Some(77));
    render_call(process, GEM_CLOSE, &mut GemClose { handle: object.handle, pad: 0 }).unwrap();
    assert_eq!(word(second), None);
    let mut gone = GemClose { handle: object.handle, pad: 0 };
    assert_eq!(render_call(process, GEM_CLOSE, &mut gone), Err(Errno::INVALID));
    // A dma-buf of freed memory, and a file that is no dma-buf.
    assert_eq!(render_call(process, PRIME, &mut PrimeHandle { fd, ..zero() }), Err(Errno::INVALID));
    // SAFETY: a file of this test.
    unsafe { libc::close(fd) };
    let null = std::fs::File::open("/dev/null").unwrap();
    let fd = std::os::fd::AsRawFd::as_raw_fd(&null);
    assert_eq!(render_call(process, PRIME, &mut PrimeHandle { fd, ..zero() }), Err(Errno::INVALID));
}

#[test]
fn metadata_belongs_to_memory_until_it_is_freed() {
    const PRIME: u64 = 0x2e;
    const GEM_CLOSE: u64 = 0x09;
    const GEM_METADATA: u64 = 0x46;
    const GEM_OP: u64 = 0x50;
    const SET: u32 = 1;
    const GET: u32 = 2;
    let process = &process(1);
    // The handle of new memory, the file of its dma-buf, and its handle of the render node.
    let new = |flags| {
        let buffer = allocate(process, 0, 2 * PAGE, flags).unwrap().handle;
        let mut export = ExportDmabuf { handle: buffer, ..zero() };
        call(process, Call::ExportDmabuf, &mut export).unwrap();
        let mut object = PrimeHandle { fd: export.dmabuf_fd as libc::c_int, ..zero() };
        render_call(process, PRIME, &mut object).unwrap();
        (buffer, object)
    };
    let metadata = |handle, op, data| {
        let mut args = GemMetadata { handle, op, data };
        render_call(process, GEM_METADATA, &mut args).map(|()| args.data)
    };
    let free = |buffer: u64, object: &PrimeHandle| {
        // SAFETY: a file of this test.
        unsafe { libc::close(object.fd) };
        call(process, Call::FreeMemory, &mut FreeMemory { handle: buffer }).unwrap();
        let mut close = GemClose { handle: object.handle, pad: 0 };
        render_call(process, GEM_CLOSE, &mut close).unwrap();
    };
    let (buffer, object) = new(VRAM);
    assert_eq!(metadata(object.handle, GET, [7; 35]), Ok([0; 35]));
    let mut data = [0x1122_3344_5566_7788; 35];
    data[2] = 256;
    metadata(object.handle, SET, data).unwrap();
    assert_eq!(metadata(object.handle, GET, [7; 35]), Ok(data));
    // Metadata has no effect on the memory, and other memory has its own.
    let (other, other_object) = new(GTT);
    assert_eq!(metadata(other_object.handle, GET, [7; 35]), Ok([0; 35]));
    data[2] = 257;
    assert_eq!(metadata(object.handle, SET, data), Err(Errno::INVALID));
    assert_eq!(metadata(object.handle, 3, data), Err(Errno::INVALID));
    assert_eq!(metadata(99, GET, data), Err(Errno::INVALID));

    let describe =
        |handle, op, value| render_call(process, GEM_OP, &mut GemOp { handle, op, value });
    for (object, domain) in [(&object, 4), (&other_object, 2)] {
        let mut properties: GemCreate = zero();
        describe(object.handle, 0, (&raw mut properties) as u64).unwrap();
        assert_eq!([properties.bo_size, properties.domains], [2 * PAGE, domain]);
    }
    assert_eq!(describe(object.handle, 0, 0), Err(Errno::FAULT));
    assert_eq!(describe(object.handle, 1, 0), Err(Errno::INVALID));
    assert_eq!(describe(99, 0, 0), Err(Errno::INVALID));

    free(buffer, &object);
    let (buffer, object) = new(VRAM);
    assert_eq!(metadata(object.handle, GET, [7; 35]), Ok([0; 35]));
    free(buffer, &object);
    free(other, &other_object);
}
