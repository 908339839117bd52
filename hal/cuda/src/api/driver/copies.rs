//! Copies and fills.

use super::code;
use crate::api::{Current, In, api};
use crate::driver::Driver;
use crate::handles::lock;
use crate::queue::{CopyWork, FillWork, Place, Source, Work};
use crate::status::Status;
use std::sync::Arc;

/// The time at which a call returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::api) enum Return {
    /// The call returns when the work is submitted. The application may change pageable memory from then on.
    AtOnce,
    /// The call returns when the work has ended.
    AfterEnd,
}

/// A copy of rows between addresses, of devices or of the host.
#[derive(Clone, Copy, Debug)]
pub(in crate::api) struct Copy {
    pub to: u64,
    pub from: u64,
    /// Bytes of a row.
    pub width: usize,
    /// Rows of a slice, and slices.
    pub counts: [usize; 2],
    /// Distances of rows and slices in bytes.
    pub to_pitches: [usize; 2],
    /// Distances of rows and slices in bytes.
    pub from_pitches: [usize; 2],
}

impl Copy {
    /// A copy of bytes without gaps.
    pub fn of_bytes(to: u64, from: u64, bytes: usize) -> Copy {
        let pitches = [bytes, bytes];
        Copy { to, from, width: bytes, counts: [1, 1], to_pitches: pitches, from_pitches: pitches }
    }

    fn is_empty(&self) -> bool {
        self.width == 0 || self.counts.contains(&0)
    }

    /// Checks that one allocation contains each side that is in memory of a device.
    fn check(&self, driver: &Driver) -> Result<(), Status> {
        for (start, pitches) in [(self.to, self.to_pitches), (self.from, self.from_pitches)] {
            if start == 0 {
                return Err(Status::INVALID_VALUE);
            }
            if self.counts[0] > 1 && pitches[0] < self.width {
                return Err(Status::INVALID_VALUE);
            }
            let last = |count: usize, pitch: usize| (count as u64 - 1).checked_mul(pitch as u64);
            let rows = last(self.counts[0], pitches[0]).ok_or(Status::INVALID_VALUE)?;
            let slices = last(self.counts[1], pitches[1]).ok_or(Status::INVALID_VALUE)?;
            let end = start.checked_add(rows).and_then(|end| end.checked_add(slices));
            let end = end.and_then(|end| end.checked_add(self.width as u64));
            let end = end.ok_or(Status::INVALID_VALUE)?;
            let Some(device) = driver.device_of(start) else { continue };
            let gpu = driver.devices[device].gpu();
            let around = flipwave_machine::Machine::allocation_around(
                &*gpu,
                flipwave_device::Address(start),
            );
            if around.is_none_or(|around| end > around.end.0) {
                return Err(Status::INVALID_VALUE);
            }
        }
        Ok(())
    }

    fn work(&self, driver: &Driver, returns: Return) -> Work {
        let place = |address: u64| match driver.device_of(address) {
            Some(_) => Place::Device(address),
            None => Place::Host(address),
        };
        let wide = |values: [usize; 2]| values.map(|value| value as u64);
        let from = match place(self.from) {
            Place::Host(start) if returns == Return::AtOnce && !driver.is_pinned(start) => {
                let mut bytes = Vec::with_capacity(self.width * self.counts[0] * self.counts[1]);
                for slice in 0..self.counts[1] {
                    for row in 0..self.counts[0] {
                        let offset = slice * self.from_pitches[1] + row * self.from_pitches[0];
                        let source = (start as usize + offset) as *const u8;
                        // SAFETY: memory of the application, as the API demands.
                        bytes.extend_from_slice(unsafe {
                            std::slice::from_raw_parts(source, self.width)
                        });
                    }
                }
                Source::Bytes(Arc::from(bytes))
            }
            place => Source::Memory(place),
        };
        Work::Copy(CopyWork {
            from,
            to: place(self.to),
            width: self.width as u64,
            counts: wide(self.counts),
            from_pitches: wide(self.from_pitches),
            to_pitches: wide(self.to_pitches),
        })
    }

    /// Copies and waits.
    ///
    /// # Errors
    /// [`Status::INVALID_VALUE`], and the error of a fault.
    pub fn now(&self) -> Result<(), Status> {
        let current = Current::get()?;
        if self.is_empty() {
            return Ok(());
        }
        self.check(current.driver)?;
        let stream = current.stream(0)?;
        current.driver.submit_and_wait(&stream, self.work(current.driver, Return::AfterEnd))
    }

    /// Copies in the order of a stream.
    ///
    /// # Errors
    /// The errors of [`Copy::now`].
    pub fn in_stream(&self, stream: usize) -> Result<(), Status> {
        let current = Current::get()?;
        let stream = current.stream(stream)?;
        if self.is_empty() {
            return Ok(());
        }
        self.check(current.driver)?;
        let work = self.work(current.driver, Return::AtOnce);
        let is_captured = lock(&stream.capture).is_some();
        let goes_to_pageable =
            current.driver.device_of(self.to).is_none() && !current.driver.is_pinned(self.to);
        if goes_to_pageable && !is_captured {
            return current.driver.submit_and_wait(&stream, work);
        }
        current.driver.submit(&stream, work);
        Ok(())
    }
}

/// Copies bytes and waits.
pub(in crate::api) fn copy_now(to: u64, from: u64, bytes: usize) -> Result<(), Status> {
    Copy::of_bytes(to, from, bytes).now()
}

/// Copies bytes in the order of a stream.
pub(in crate::api) fn copy_in_stream(
    to: u64,
    from: u64,
    bytes: usize,
    stream: usize,
) -> Result<(), Status> {
    Copy::of_bytes(to, from, bytes).in_stream(stream)
}

/// Rows to fill with an element.
pub(in crate::api) struct Fill {
    pub to: u64,
    pub element: Vec<u8>,
    /// Elements of a row.
    pub width: usize,
    pub height: usize,
    /// Distance of rows in bytes.
    pub pitch: usize,
}

impl Fill {
    fn check(&self, driver: &Driver) -> Result<(), Status> {
        let width = self.width.checked_mul(self.element.len()).ok_or(Status::INVALID_VALUE)?;
        if !self.to.is_multiple_of(self.element.len() as u64) {
            return Err(Status::INVALID_VALUE);
        }
        let pitches = [self.pitch, 0];
        let whole = Copy {
            width,
            counts: [self.height, 1],
            to_pitches: pitches,
            from_pitches: pitches,
            ..Copy::of_bytes(self.to, self.to, 0)
        };
        whole.check(driver)?;
        if driver.device_of(self.to).is_none() && !driver.is_pinned(self.to) {
            return Err(Status::INVALID_VALUE);
        }
        Ok(())
    }

    /// Fills in the order of a stream.
    ///
    /// # Errors
    /// [`Status::INVALID_VALUE`], and the error of a fault.
    pub fn submit(self, stream: usize, returns: Return) -> Result<(), Status> {
        let current = Current::get()?;
        let stream = current.stream(stream)?;
        if self.width == 0 || self.height == 0 {
            return Ok(());
        }
        self.check(current.driver)?;
        let Fill { to, element, width, height, pitch } = self;
        let work = FillWork {
            to,
            element,
            width: width as u64,
            height: height as u64,
            pitch: pitch as u64,
        };
        if returns == Return::AfterEnd {
            return current.driver.submit_and_wait(&stream, Work::Fill(work));
        }
        current.driver.submit(&stream, Work::Fill(work));
        Ok(())
    }
}

fn fill(
    to: u64,
    element: &[u8],
    count: usize,
    stream: usize,
    returns: Return,
) -> Result<(), Status> {
    let pitch = count.saturating_mul(element.len());
    Fill { to, element: element.to_vec(), width: count, height: 1, pitch }.submit(stream, returns)
}

fn fill_rows(
    to: u64,
    pitch: usize,
    element: &[u8],
    [width, height]: [usize; 2],
    stream: usize,
    returns: Return,
) -> Result<(), Status> {
    Fill { to, element: element.to_vec(), width, height, pitch }.submit(stream, returns)
}

/// `CUDA_MEMCPY2D`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Copy2d {
    from_x: usize,
    from_y: usize,
    from_kind: u32,
    from_host: u64,
    from_device: u64,
    from_array: usize,
    from_pitch: usize,
    to_x: usize,
    to_y: usize,
    to_kind: u32,
    to_host: u64,
    to_device: u64,
    to_array: usize,
    to_pitch: usize,
    width: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`.
#[repr(C)]
#[derive(Clone, Copy)]
struct Copy3d {
    from_x: usize,
    from_y: usize,
    from_z: usize,
    from_level: usize,
    from_kind: u32,
    from_host: u64,
    from_device: u64,
    from_array: usize,
    _reserved0: usize,
    from_pitch: usize,
    from_height: usize,
    to_x: usize,
    to_y: usize,
    to_z: usize,
    to_level: usize,
    to_kind: u32,
    to_host: u64,
    to_device: u64,
    to_array: usize,
    _reserved1: usize,
    to_pitch: usize,
    to_height: usize,
    width: usize,
    height: usize,
    depth: usize,
}

/// The address of a side of a copy: `CU_MEMORYTYPE_HOST`, `_DEVICE` or `_UNIFIED`. Arrays are not supported.
fn side(kind: u32, host: u64, device: u64) -> Result<u64, Status> {
    match kind {
        1 => Ok(host),
        2 | 4 => Ok(device),
        3 => Err(Status::NOT_SUPPORTED),
        _ => Err(Status::INVALID_VALUE),
    }
}

fn place(start: u64, [x, y, z]: [usize; 3], [row, slice]: [usize; 2]) -> Result<u64, Status> {
    let offset = y.checked_mul(row).and_then(|rows| rows.checked_add(z.checked_mul(slice)?));
    let offset = offset.and_then(|offset| offset.checked_add(x)).ok_or(Status::INVALID_VALUE)?;
    start.checked_add(offset as u64).ok_or(Status::INVALID_VALUE)
}

impl Copy2d {
    fn copy(&self) -> Result<Copy, Status> {
        let from_pitches = [if self.from_pitch == 0 { self.width } else { self.from_pitch }, 0];
        let to_pitches = [if self.to_pitch == 0 { self.width } else { self.to_pitch }, 0];
        let from = side(self.from_kind, self.from_host, self.from_device)?;
        let to = side(self.to_kind, self.to_host, self.to_device)?;
        Ok(Copy {
            from: place(from, [self.from_x, self.from_y, 0], from_pitches)?,
            to: place(to, [self.to_x, self.to_y, 0], to_pitches)?,
            width: self.width,
            counts: [self.height, 1],
            to_pitches,
            from_pitches,
        })
    }
}

impl Copy3d {
    fn copy(&self) -> Result<Copy, Status> {
        let pitches = |pitch: usize, height: usize| {
            let row = if pitch == 0 { self.width } else { pitch };
            let rows = if height == 0 { self.height } else { height };
            row.checked_mul(rows).map(|slice| [row, slice]).ok_or(Status::INVALID_VALUE)
        };
        let from_pitches = pitches(self.from_pitch, self.from_height)?;
        let to_pitches = pitches(self.to_pitch, self.to_height)?;
        let from = side(self.from_kind, self.from_host, self.from_device)?;
        let to = side(self.to_kind, self.to_host, self.to_device)?;
        Ok(Copy {
            from: place(from, [self.from_x, self.from_y, self.from_z], from_pitches)?,
            to: place(to, [self.to_x, self.to_y, self.to_z], to_pitches)?,
            width: self.width,
            counts: [self.height, self.depth],
            to_pitches,
            from_pitches,
        })
    }
}

api! { convert code;
    cuMemcpy | cuMemcpy_ptds (to: u64, from: u64, bytes: usize) {
        copy_now(to, from, bytes)
    }

    cuMemcpyHtoD_v2 | cuMemcpyHtoD | cuMemcpyHtoD_v2_ptds (to: u64, from: u64, bytes: usize) {
        copy_now(to, from, bytes)
    }

    cuMemcpyDtoH_v2 | cuMemcpyDtoH | cuMemcpyDtoH_v2_ptds (to: u64, from: u64, bytes: usize) {
        copy_now(to, from, bytes)
    }

    cuMemcpyDtoD_v2 | cuMemcpyDtoD | cuMemcpyDtoD_v2_ptds (to: u64, from: u64, bytes: usize) {
        copy_now(to, from, bytes)
    }

    cuMemcpyAsync | cuMemcpyAsync_ptsz (to: u64, from: u64, bytes: usize, stream: usize) {
        copy_in_stream(to, from, bytes, stream)
    }

    cuMemcpyHtoDAsync_v2 | cuMemcpyHtoDAsync | cuMemcpyHtoDAsync_v2_ptsz (
        to: u64, from: u64, bytes: usize, stream: usize,
    ) {
        copy_in_stream(to, from, bytes, stream)
    }

    cuMemcpyDtoHAsync_v2 | cuMemcpyDtoHAsync | cuMemcpyDtoHAsync_v2_ptsz (
        to: u64, from: u64, bytes: usize, stream: usize,
    ) {
        copy_in_stream(to, from, bytes, stream)
    }

    cuMemcpyDtoDAsync_v2 | cuMemcpyDtoDAsync | cuMemcpyDtoDAsync_v2_ptsz (
        to: u64, from: u64, bytes: usize, stream: usize,
    ) {
        copy_in_stream(to, from, bytes, stream)
    }

    cuMemcpy2D_v2 | cuMemcpy2D | cuMemcpy2D_v2_ptds | cuMemcpy2DUnaligned_v2 | cuMemcpy2DUnaligned (
        parameters: In<Copy2d>,
    ) {
        parameters.get()?.copy()?.now()
    }

    cuMemcpy2DAsync_v2 | cuMemcpy2DAsync | cuMemcpy2DAsync_v2_ptsz (
        parameters: In<Copy2d>, stream: usize,
    ) {
        parameters.get()?.copy()?.in_stream(stream)
    }

    cuMemcpy3D_v2 | cuMemcpy3D | cuMemcpy3D_v2_ptds (parameters: In<Copy3d>) {
        parameters.get()?.copy()?.now()
    }

    cuMemcpy3DAsync_v2 | cuMemcpy3DAsync | cuMemcpy3DAsync_v2_ptsz (
        parameters: In<Copy3d>, stream: usize,
    ) {
        parameters.get()?.copy()?.in_stream(stream)
    }

    cuMemsetD8_v2 | cuMemsetD8 | cuMemsetD8_v2_ptds (to: u64, value: u8, count: usize) {
        fill(to, &[value], count, 0, Return::AfterEnd)
    }

    cuMemsetD16_v2 | cuMemsetD16 | cuMemsetD16_v2_ptds (to: u64, value: u16, count: usize) {
        fill(to, &value.to_le_bytes(), count, 0, Return::AfterEnd)
    }

    cuMemsetD32_v2 | cuMemsetD32 | cuMemsetD32_v2_ptds (to: u64, value: u32, count: usize) {
        fill(to, &value.to_le_bytes(), count, 0, Return::AfterEnd)
    }

    cuMemsetD8Async | cuMemsetD8Async_ptsz (to: u64, value: u8, count: usize, stream: usize) {
        fill(to, &[value], count, stream, Return::AtOnce)
    }

    cuMemsetD16Async | cuMemsetD16Async_ptsz (to: u64, value: u16, count: usize, stream: usize) {
        fill(to, &value.to_le_bytes(), count, stream, Return::AtOnce)
    }

    cuMemsetD32Async | cuMemsetD32Async_ptsz (to: u64, value: u32, count: usize, stream: usize) {
        fill(to, &value.to_le_bytes(), count, stream, Return::AtOnce)
    }

    cuMemsetD2D8_v2 | cuMemsetD2D8 (to: u64, pitch: usize, value: u8, width: usize, height: usize) {
        fill_rows(to, pitch, &[value], [width, height], 0, Return::AfterEnd)
    }

    cuMemsetD2D16_v2 | cuMemsetD2D16 (to: u64, pitch: usize, value: u16, width: usize, height: usize) {
        fill_rows(to, pitch, &value.to_le_bytes(), [width, height], 0, Return::AfterEnd)
    }

    cuMemsetD2D32_v2 | cuMemsetD2D32 (to: u64, pitch: usize, value: u32, width: usize, height: usize) {
        fill_rows(to, pitch, &value.to_le_bytes(), [width, height], 0, Return::AfterEnd)
    }

    cuMemsetD2D8Async(to: u64, pitch: usize, value: u8, width: usize, height: usize, stream: usize) {
        fill_rows(to, pitch, &[value], [width, height], stream, Return::AtOnce)
    }

    cuMemsetD2D16Async(to: u64, pitch: usize, value: u16, width: usize, height: usize, stream: usize) {
        fill_rows(to, pitch, &value.to_le_bytes(), [width, height], stream, Return::AtOnce)
    }

    cuMemsetD2D32Async(to: u64, pitch: usize, value: u32, width: usize, height: usize, stream: usize) {
        fill_rows(to, pitch, &value.to_le_bytes(), [width, height], stream, Return::AtOnce)
    }
}
