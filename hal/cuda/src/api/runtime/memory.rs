//! Memory.

use super::registry::symbol;
use super::{code, ready};
use crate::api::driver::copies::{Copy, Fill, Return, copy_in_stream, copy_now};
use crate::api::driver::memory;
use crate::api::{In, Out, api};
use crate::memory::Kind;
use crate::status::Status;

/// `cudaPointerAttributes`.
#[repr(C)]
#[derive(Clone, Copy)]
struct PointerAttributes {
    kind: i32,
    device: i32,
    device_pointer: u64,
    host_pointer: u64,
}

/// `cudaPitchedPtr`.
#[repr(C)]
#[derive(Clone, Copy)]
struct PitchedPointer {
    start: u64,
    pitch: usize,
    width: usize,
    height: usize,
}

/// `cudaExtent`, and `cudaPos`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Extent {
    width: usize,
    height: usize,
    depth: usize,
}

/// `cudaMemcpy3DParms`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Copy3d {
    from_array: usize,
    from_position: Extent,
    from: PitchedPointer,
    to_array: usize,
    to_position: Extent,
    to: PitchedPointer,
    extent: Extent,
    kind: i32,
}

impl Copy3d {
    fn copy(&self) -> Result<Copy, Status> {
        if self.from_array != 0 || self.to_array != 0 {
            return Err(Status::NOT_SUPPORTED);
        }
        check_kind(self.kind)?;
        let side = |pointer: PitchedPointer, position: Extent| {
            let slice = pointer.pitch.checked_mul(pointer.height).ok_or(Status::INVALID_VALUE)?;
            let offset = position.depth.checked_mul(slice).and_then(|offset| {
                offset
                    .checked_add(position.height.checked_mul(pointer.pitch)?)?
                    .checked_add(position.width)
            });
            let start = pointer.start.checked_add(offset.ok_or(Status::INVALID_VALUE)? as u64);
            Ok::<_, Status>((start.ok_or(Status::INVALID_VALUE)?, [pointer.pitch, slice]))
        };
        let (from, from_pitches) = side(self.from, self.from_position)?;
        let (to, to_pitches) = side(self.to, self.to_position)?;
        let Extent { width, height, depth } = self.extent;
        Ok(Copy { to, from, width, counts: [height, depth], to_pitches, from_pitches })
    }
}

/// Checks `cudaMemcpyKind`. Addresses say where memory is.
fn check_kind(kind: i32) -> Result<(), Status> {
    if (0..=4).contains(&kind) { Ok(()) } else { Err(Status::INVALID_MEMCPY_DIRECTION) }
}

/// A part of a variable.
fn part(host: usize, bytes: usize, offset: usize) -> Result<u64, Status> {
    let (start, size) = symbol(host)?;
    let end = offset.checked_add(bytes).filter(|end| *end <= size);
    end.map(|_| start + offset as u64).ok_or(Status::INVALID_VALUE)
}

fn rows(
    [to, from]: [u64; 2],
    [to_pitch, from_pitch]: [usize; 2],
    [width, height]: [usize; 2],
    kind: i32,
) -> Result<Copy, Status> {
    check_kind(kind)?;
    let counts = [height, 1];
    Ok(Copy { to, from, width, counts, to_pitches: [to_pitch, 0], from_pitches: [from_pitch, 0] })
}

api! { convert code;
    cudaMalloc(pointer: Out<u64>, bytes: usize) {
        ready()?;
        if bytes == 0 {
            return pointer.put(0);
        }
        pointer.put(memory::allocate(bytes)?)
    }

    cudaMallocPitch(pointer: Out<u64>, pitch: Out<usize>, width: usize, height: usize) {
        ready()?;
        let (start, distance) = memory::allocate_rows(width, height)?;
        pitch.put(distance)?;
        pointer.put(start)
    }

    cudaMalloc3D(pointer: Out<PitchedPointer>, extent: Extent) {
        ready()?;
        let Extent { width, height, depth } = extent;
        let count = height.checked_mul(depth).ok_or(Status::OUT_OF_MEMORY)?;
        let (start, pitch) = memory::allocate_rows(width, count)?;
        pointer.put(PitchedPointer { start, pitch, width, height })
    }

    cudaFree(pointer: u64) {
        ready()?;
        memory::free(pointer)
    }

    cudaMallocAsync | cudaMallocAsync_ptsz (pointer: Out<u64>, bytes: usize, stream: usize) {
        ready()?;
        pointer.put(memory::allocate_in_stream(bytes, stream)?)
    }

    cudaFreeAsync | cudaFreeAsync_ptsz (pointer: u64, stream: usize) {
        ready()?;
        memory::free_in_stream(pointer, stream)
    }

    cudaMemPoolSetAttribute(_pool: usize, _attribute: i32, _value: usize) {
        ready().map(|_| ())
    }

    cudaMallocHost(pointer: Out<u64>, bytes: usize) {
        ready()?;
        pointer.put(memory::allocate_host(bytes, Kind::Host(0))?)
    }

    cudaHostAlloc(pointer: Out<u64>, bytes: usize, flags: u32) {
        ready()?;
        pointer.put(memory::allocate_host(bytes, Kind::Host(flags))?)
    }

    cudaFreeHost(pointer: u64) {
        ready()?;
        if pointer == 0 { Ok(()) } else { memory::free_host(pointer) }
    }

    cudaHostRegister(pointer: u64, bytes: usize, flags: u32) {
        ready()?;
        memory::register(pointer, bytes, flags)
    }

    cudaHostUnregister(pointer: u64) {
        ready()?;
        memory::unregister(pointer)
    }

    cudaHostGetDevicePointer(pointer: Out<u64>, host: u64, _flags: u32) {
        ready()?;
        pointer.put(memory::device_pointer(host)?)
    }

    cudaHostGetFlags(flags: Out<u32>, host: u64) {
        ready()?;
        match memory::around(host)?.kind {
            Kind::Host(found) | Kind::Registered(found) => flags.put(found),
            _ => Err(Status::INVALID_VALUE),
        }
    }

    cudaMallocManaged(pointer: Out<u64>, bytes: usize, flags: u32) {
        ready()?;
        if !matches!(flags, 1 | 2) {
            return Err(Status::INVALID_VALUE);
        }
        pointer.put(memory::allocate_host(bytes, Kind::Managed)?)
    }

    cudaMemPrefetchAsync | cudaMemAdvise (pointer: u64, _bytes: usize, _place: i32, _stream: usize) {
        ready()?;
        memory::around(pointer).map(|_| ())
    }

    cudaMemGetInfo(free: Out<usize>, total: Out<usize>) {
        ready()?;
        let sizes = memory::sizes()?;
        free.put_if_wanted(sizes.0);
        total.put_if_wanted(sizes.1);
        Ok(())
    }

    cudaMemcpy | cudaMemcpy_ptds (to: u64, from: u64, bytes: usize, kind: i32) {
        ready()?;
        check_kind(kind)?;
        copy_now(to, from, bytes)
    }

    cudaMemcpyAsync | cudaMemcpyAsync_ptsz (to: u64, from: u64, bytes: usize, kind: i32, stream: usize) {
        ready()?;
        check_kind(kind)?;
        copy_in_stream(to, from, bytes, stream)
    }

    cudaMemcpyPeer(to: u64, _to_device: i32, from: u64, _from_device: i32, bytes: usize) {
        ready()?;
        copy_now(to, from, bytes)
    }

    cudaMemcpyPeerAsync(to: u64, _to_device: i32, from: u64, _from_device: i32, bytes: usize, stream: usize) {
        ready()?;
        copy_in_stream(to, from, bytes, stream)
    }

    cudaMemcpy2D | cudaMemcpy2D_ptds (
        to: u64, to_pitch: usize, from: u64, from_pitch: usize, width: usize, height: usize, kind: i32,
    ) {
        ready()?;
        rows([to, from], [to_pitch, from_pitch], [width, height], kind)?.now()
    }

    cudaMemcpy2DAsync | cudaMemcpy2DAsync_ptsz (
        to: u64, to_pitch: usize, from: u64, from_pitch: usize, width: usize, height: usize, kind: i32,
        stream: usize,
    ) {
        ready()?;
        rows([to, from], [to_pitch, from_pitch], [width, height], kind)?.in_stream(stream)
    }

    cudaMemcpy3D | cudaMemcpy3D_ptds (parameters: In<Copy3d>) {
        ready()?;
        parameters.get()?.copy()?.now()
    }

    cudaMemcpy3DAsync | cudaMemcpy3DAsync_ptsz (parameters: In<Copy3d>, stream: usize) {
        ready()?;
        parameters.get()?.copy()?.in_stream(stream)
    }

    cudaMemcpyToSymbol | cudaMemcpyToSymbol_ptds (
        host: usize, from: u64, bytes: usize, offset: usize, kind: i32,
    ) {
        ready()?;
        check_kind(kind)?;
        copy_now(part(host, bytes, offset)?, from, bytes)
    }

    cudaMemcpyFromSymbol | cudaMemcpyFromSymbol_ptds (
        to: u64, host: usize, bytes: usize, offset: usize, kind: i32,
    ) {
        ready()?;
        check_kind(kind)?;
        copy_now(to, part(host, bytes, offset)?, bytes)
    }

    cudaMemcpyToSymbolAsync | cudaMemcpyToSymbolAsync_ptsz (
        host: usize, from: u64, bytes: usize, offset: usize, kind: i32, stream: usize,
    ) {
        ready()?;
        check_kind(kind)?;
        copy_in_stream(part(host, bytes, offset)?, from, bytes, stream)
    }

    cudaMemcpyFromSymbolAsync | cudaMemcpyFromSymbolAsync_ptsz (
        to: u64, host: usize, bytes: usize, offset: usize, kind: i32, stream: usize,
    ) {
        ready()?;
        check_kind(kind)?;
        copy_in_stream(to, part(host, bytes, offset)?, bytes, stream)
    }

    cudaGetSymbolAddress(address: Out<u64>, host: usize) {
        ready()?;
        address.put(symbol(host)?.0)
    }

    cudaGetSymbolSize(bytes: Out<usize>, host: usize) {
        ready()?;
        bytes.put(symbol(host)?.1)
    }

    cudaMemset | cudaMemset_ptds (to: u64, value: i32, bytes: usize) {
        ready()?;
        Fill { to, element: vec![value as u8], width: bytes, height: 1, pitch: bytes }.submit(0, Return::AfterEnd)
    }

    cudaMemsetAsync | cudaMemsetAsync_ptsz (to: u64, value: i32, bytes: usize, stream: usize) {
        ready()?;
        Fill { to, element: vec![value as u8], width: bytes, height: 1, pitch: bytes }.submit(stream, Return::AtOnce)
    }

    cudaMemset2D | cudaMemset2D_ptds (to: u64, pitch: usize, value: i32, width: usize, height: usize) {
        ready()?;
        Fill { to, element: vec![value as u8], width, height, pitch }.submit(0, Return::AfterEnd)
    }

    cudaMemset2DAsync | cudaMemset2DAsync_ptsz (
        to: u64, pitch: usize, value: i32, width: usize, height: usize, stream: usize,
    ) {
        ready()?;
        Fill { to, element: vec![value as u8], width, height, pitch }.submit(stream, Return::AtOnce)
    }

    cudaPointerGetAttributes(result: Out<PointerAttributes>, pointer: u64) {
        ready()?;
        let Ok(found) = memory::around(pointer) else {
            return result.put(PointerAttributes { kind: 0, device: -2, device_pointer: 0, host_pointer: pointer });
        };
        let (kind, host_pointer) = match found.kind {
            Kind::Device => (2, 0),
            Kind::Managed => (3, pointer),
            Kind::Host(_) | Kind::Registered(_) => (1, pointer),
        };
        result.put(PointerAttributes { kind, device: found.device as i32, device_pointer: pointer, host_pointer })
    }
}
