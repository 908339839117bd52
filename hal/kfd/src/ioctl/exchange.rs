//! Memory that goes to other processes: by files, and by handles of 16 bytes.

use super::abi::*;
use super::buffers::Buffer;
use super::error::Errno;
use super::files;
use super::process::Process;
use super::share::Share;
use std::os::fd::{IntoRawFd, RawFd};

pub fn export_file(process: &Process, own: &mut ExportDmabuf) -> Result<(), Errno> {
    let file = process.files.make(&process.machine, &process.buffers.get(own.handle)?)?;
    own.dmabuf_fd = file.into_raw_fd() as u32;
    Ok(())
}

pub fn describe_file(process: &Process, own: &mut GetDmabufInfo) -> Result<(), Errno> {
    let file = own.dmabuf_fd as RawFd;
    let (bytes, gpu, flags) = match process.files.known(file)? {
        Some(buffer) => (buffer.bytes, buffer.gpu, buffer.flags),
        None => {
            let share = files::share(file)?;
            (share.bytes(), share.gpu(&process.machine), share.flags)
        }
    };
    (own.size, own.gpu_id, own.flags) = (bytes, gpu.id(), flags);
    own.metadata_size = 0;
    Ok(())
}

/// Gives memory another handle, at another address of the GPUs.
pub fn import_file(process: &Process, own: &mut ImportDmabuf) -> Result<(), Errno> {
    let gpu = process.gpu(own.gpu_id)?;
    let buffer = process.files.get(&process.machine, gpu, own.dmabuf_fd as RawFd)?;
    let buffer = Buffer { address: own.va_addr, ..buffer };
    buffer.place(&process.machine)?;
    own.handle = process.buffers.add(buffer);
    Ok(())
}

pub fn export_handle(process: &Process, own: &mut IpcExport) -> Result<(), Errno> {
    own.share_handle = Share::of(&process.machine, &process.buffers.get(own.handle)?)?.words();
    Ok(())
}

pub fn import_handle(process: &Process, own: &mut IpcImport) -> Result<(), Errno> {
    let gpu = process.gpu(own.gpu_id)?;
    let share = Share::of_words(own.share_handle);
    let buffer = Buffer { address: own.va_addr, ..share.adopt(&process.machine, gpu)? };
    buffer.place(&process.machine)?;
    own.mmap_offset = buffer.part.as_ref().map_or(0, |part| part.offset);
    own.flags = share.flags;
    own.handle = process.buffers.add(buffer);
    Ok(())
}
