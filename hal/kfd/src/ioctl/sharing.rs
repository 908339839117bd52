//! Calls that share memory between processes and devices: by dma-bufs, and by handles of 16 bytes
//! (IPC).

use super::abi::*;
use super::buffers::Buffer;
use super::dmabuf;
use super::error::Errno;
use super::ipc::IpcHandle;
use super::process::Process;
use std::os::fd::{IntoRawFd, RawFd};

pub fn export_dmabuf(process: &Process, args: &mut ExportDmabuf) -> Result<(), Errno> {
    let buffer = process.buffers.get(args.handle)?;
    let file = process.dmabufs.export(&process.machine, &buffer)?;
    args.dmabuf_fd = file.into_raw_fd() as u32;
    Ok(())
}

pub fn describe_dmabuf(process: &Process, args: &mut GetDmabufInfo) -> Result<(), Errno> {
    let file = args.dmabuf_fd as RawFd;
    let (bytes, gpu, flags) = match process.dmabufs.known_buffer(file)? {
        Some(buffer) => (buffer.bytes, buffer.gpu, buffer.flags),
        None => {
            let handle = dmabuf::ipc_handle(file)?;
            (handle.bytes(), handle.gpu(&process.machine), handle.flags)
        }
    };
    (args.size, args.gpu_id, args.flags) = (bytes, gpu.id(), flags);
    args.metadata_size = 0;
    Ok(())
}

/// Adds a buffer for the memory of a dma-buf, at another GPU address.
pub fn import_dmabuf(process: &Process, args: &mut ImportDmabuf) -> Result<(), Errno> {
    let gpu = process.gpu(args.gpu_id)?;
    let buffer = process.dmabufs.import(&process.machine, gpu, args.dmabuf_fd as RawFd)?;
    let buffer = Buffer { address: args.va_addr, ..buffer };
    buffer.add_to(&process.machine)?;
    args.handle = process.buffers.add(buffer);
    Ok(())
}

pub fn export_ipc(process: &Process, args: &mut IpcExport) -> Result<(), Errno> {
    let buffer = process.buffers.get(args.handle)?;
    args.share_handle = IpcHandle::new(&process.machine, &buffer)?.to_words();
    Ok(())
}

pub fn import_ipc(process: &Process, args: &mut IpcImport) -> Result<(), Errno> {
    let gpu = process.gpu(args.gpu_id)?;
    let handle = IpcHandle::from_words(args.share_handle);
    let buffer = Buffer { address: args.va_addr, ..handle.import(&process.machine, gpu)? };
    buffer.add_to(&process.machine)?;
    args.mmap_offset = buffer.allocation.as_ref().map_or(0, |allocation| allocation.offset);
    args.flags = handle.flags;
    args.handle = process.buffers.add(buffer);
    Ok(())
}
