//! Layout of the kernarg segment according to the metadata.

use crate::{Address, Dim3};
use flipwave_codeobj::{Argument, ArgumentKind, Kernel, KernelMetadata};
use std::ops::Range;

/// The value of one explicit kernel argument.
#[derive(Clone, Debug, PartialEq)]
pub enum ArgumentValue {
    /// A device pointer.
    Buffer(Address),
    /// A null pointer.
    Null,
    /// A value passed unchanged, little-endian.
    Bytes(Vec<u8>),
    /// Size of the dynamic LDS of a pointer argument, in bytes.
    DynamicLds(u32),
}

/// Errors returned when laying out kernel arguments.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KernargError {
    /// The number of arguments is wrong.
    #[error("kernel `{kernel}` takes {expected} arguments ({signature}), {given} given")]
    Count {
        /// The kernel.
        kernel: String,
        /// Number of explicit parameters.
        expected: usize,
        /// Number of given arguments.
        given: usize,
        /// The parameters according to the metadata.
        signature: String,
    },
    /// An argument has the wrong kind or size.
    #[error("argument {index} (counted from 0) of kernel `{kernel}` ({parameter}): {reason}")]
    Mismatch {
        /// The kernel.
        kernel: String,
        /// Index among the explicit arguments, counted from 0.
        index: usize,
        /// The parameter according to the metadata.
        parameter: String,
        /// The given and the expected kind or size.
        reason: String,
    },
    /// The metadata is inconsistent: a parameter lies outside the kernarg segment.
    #[error(
        "inconsistent metadata: an argument of kernel `{kernel}` ({parameter}) lies outside its \
         kernarg segment of {segment} bytes"
    )]
    OutsideSegment {
        /// The kernel.
        kernel: String,
        /// The parameter according to the metadata.
        parameter: String,
        /// Size of the segment, in bytes.
        segment: u32,
    },
}

/// The kernarg segment of a launch and its dynamic LDS.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// Contents of the segment.
    pub kernarg: Vec<u8>,
    /// Dynamic LDS, in bytes.
    pub dynamic_lds: u32,
}

/// Lays out the kernarg segment: explicit arguments from `values`, hidden arguments from the launch
/// configuration (AMDGPUUsage, "Code Object V3 Metadata" to "Code Object V5 Metadata", argument value
/// kinds). Hidden pointers are null. The hostcall and `printf` buffers get addresses
/// that no device maps, so that a fault at such an address identifies the call.
///
/// # Errors
/// [`KernargError`] if the values do not match the kernel's parameters.
pub fn layout(
    kernel: &Kernel,
    values: &[ArgumentValue],
    grid: Dim3,
    workgroup: Dim3,
) -> Result<Layout, KernargError> {
    layout_with_memory(kernel, values, grid, workgroup, LaunchMemory::default())
}

/// Memory of a launch to which no argument points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LaunchMemory {
    /// Bytes of dynamic LDS in addition to the LDS of pointer arguments. They follow the kernel's static
    /// LDS (HIP's `extern __shared__`).
    pub dynamic_lds: u32,
    /// Heap of device-side `malloc`; null for kernels that do not use it.
    pub heap: Address,
}

/// Like [`layout`], for a launch with additional memory.
///
/// # Errors
/// As [`layout`].
pub fn layout_with_memory(
    kernel: &Kernel,
    values: &[ArgumentValue],
    grid: Dim3,
    workgroup: Dim3,
    memory: LaunchMemory,
) -> Result<Layout, KernargError> {
    layout_for_metadata(&kernel.metadata, values, grid, workgroup, memory)
}

fn layout_for_metadata(
    kernel: &KernelMetadata,
    values: &[ArgumentValue],
    grid: Dim3,
    workgroup: Dim3,
    memory: LaunchMemory,
) -> Result<Layout, KernargError> {
    let (hidden, explicit): (Vec<&Argument>, Vec<&Argument>) =
        kernel.arguments.iter().partition(|argument| argument.kind.is_hidden());
    if explicit.len() != values.len() {
        return Err(KernargError::Count {
            kernel: kernel.name.clone(),
            expected: explicit.len(),
            given: values.len(),
            signature: explicit.iter().map(|a| describe(a)).collect::<Vec<_>>().join(", "),
        });
    }
    let mut segment = Segment { kernel, bytes: vec![0; kernel.kernarg_segment_size as usize] };
    // Code expects dynamic LDS without a pointer argument directly after the static LDS.
    let mut lds_end = kernel.group_segment_fixed_size.saturating_add(memory.dynamic_lds);
    for (index, (argument, value)) in explicit.into_iter().zip(values).enumerate() {
        let bytes = explicit_bytes(argument, value, &mut lds_end).map_err(|reason| {
            KernargError::Mismatch {
                kernel: kernel.name.clone(),
                index,
                parameter: describe(argument),
                reason,
            }
        })?;
        segment.put(argument, &bytes)?;
    }
    let dynamic_lds = lds_end - kernel.group_segment_fixed_size;
    for (offset, address) in unlisted_host_buffers(&hidden) {
        segment.put_at(offset, &address.to_le_bytes(), hidden[0])?;
    }
    for argument in hidden {
        let value = match argument.kind {
            ArgumentKind::HiddenHeapV1 => memory.heap.0,
            _ => hidden_value(&argument.kind, grid, workgroup, dynamic_lds),
        };
        let size = (argument.size as usize).min(8);
        segment.put(argument, &value.to_le_bytes()[..size])?;
    }
    Ok(Layout { kernarg: segment.bytes, dynamic_lds })
}

/// A kernarg segment under construction.
struct Segment<'a> {
    kernel: &'a KernelMetadata,
    bytes: Vec<u8>,
}

impl Segment<'_> {
    fn put(&mut self, argument: &Argument, value: &[u8]) -> Result<(), KernargError> {
        self.put_at(argument.offset, value, argument)
    }

    /// Writes a value at `offset`. An error names `argument`.
    fn put_at(
        &mut self,
        offset: u32,
        value: &[u8],
        argument: &Argument,
    ) -> Result<(), KernargError> {
        let start = offset as usize;
        match self.bytes.get_mut(start..start + value.len()) {
            Some(field) => field.copy_from_slice(value),
            None => {
                return Err(KernargError::OutsideSegment {
                    kernel: self.kernel.name.clone(),
                    parameter: describe(argument),
                    segment: self.kernel.kernarg_segment_size,
                });
            }
        }
        Ok(())
    }
}

/// Returns the bytes of an explicit argument. Dynamic LDS is allocated at `lds_end`, which is then
/// advanced.
///
/// # Errors
/// A description of the given and the expected kind or size.
fn explicit_bytes(
    argument: &Argument,
    value: &ArgumentValue,
    lds_end: &mut u32,
) -> Result<Vec<u8>, String> {
    match (&argument.kind, value) {
        (ArgumentKind::GlobalBuffer, ArgumentValue::Buffer(address)) if argument.size == 8 => {
            Ok(address.0.to_le_bytes().to_vec())
        }
        (ArgumentKind::GlobalBuffer, ArgumentValue::Null) => Ok(vec![0; argument.size as usize]),
        // A pointer whose bytes are all zero is the null pointer.
        (ArgumentKind::GlobalBuffer, ArgumentValue::Bytes(bytes))
            if bytes.len() == argument.size as usize && bytes.iter().all(|byte| *byte == 0) =>
        {
            Ok(bytes.clone())
        }
        (ArgumentKind::ByValue, ArgumentValue::Bytes(bytes)) => {
            if bytes.len() != argument.size as usize {
                return Err(format!(
                    "a value of {} bytes is given, {} bytes are expected",
                    bytes.len(),
                    argument.size
                ));
            }
            Ok(bytes.clone())
        }
        (ArgumentKind::DynamicSharedPointer, ArgumentValue::DynamicLds(bytes))
            if argument.size == 4 =>
        {
            let alignment = argument.pointee_align.unwrap_or(1).max(1);
            let too_large =
                || format!("{bytes} bytes of local memory are more than can be addressed");
            let start = lds_end.checked_next_multiple_of(alignment).ok_or_else(too_large)?;
            *lds_end = start.checked_add(*bytes).ok_or_else(too_large)?;
            Ok(start.to_le_bytes().to_vec())
        }
        (kind, value) => {
            let given = match value {
                ArgumentValue::Buffer(_) => "a buffer",
                ArgumentValue::Null => "null",
                ArgumentValue::Bytes(_) => "a value",
                ArgumentValue::DynamicLds(_) => "local memory",
            };
            let expected = match kind {
                ArgumentKind::GlobalBuffer => "a buffer, or null,",
                ArgumentKind::ByValue => "a value",
                ArgumentKind::DynamicSharedPointer => "local memory",
                _ => return Err(format!("arguments of kind {kind} cannot be passed")),
            };
            Err(format!("{given} is given, {expected} of {} bytes is expected", argument.size))
        }
    }
}

/// The value of a hidden argument; 0 for kinds without a value.
fn hidden_value(kind: &ArgumentKind, grid: Dim3, workgroup: Dim3, dynamic_lds: u32) -> u64 {
    let block_count = |dimension: usize| grid[dimension] / workgroup[dimension].max(1);
    let remainder = |dimension: usize| grid[dimension] % workgroup[dimension].max(1);
    let value = match kind {
        ArgumentKind::HiddenBlockCountX => block_count(0),
        ArgumentKind::HiddenBlockCountY => block_count(1),
        ArgumentKind::HiddenBlockCountZ => block_count(2),
        ArgumentKind::HiddenGroupSizeX => workgroup[0],
        ArgumentKind::HiddenGroupSizeY => workgroup[1],
        ArgumentKind::HiddenGroupSizeZ => workgroup[2],
        ArgumentKind::HiddenRemainderX => remainder(0),
        ArgumentKind::HiddenRemainderY => remainder(1),
        ArgumentKind::HiddenRemainderZ => remainder(2),
        ArgumentKind::HiddenGridDims => match grid {
            [_, 1, 1] => 1,
            [_, _, 1] => 2,
            _ => 3,
        },
        ArgumentKind::HiddenDynamicLdsSize => dynamic_lds,
        ArgumentKind::HiddenHostcallBuffer => return HOST_CALLS.start,
        ArgumentKind::HiddenPrintfBuffer => return PRINTF.start,
        _ => 0,
    };
    value.into()
}

/// Address range of the hostcall buffer. No device maps it, so accesses fault.
const HOST_CALLS: Range<u64> = 0x6000_0000_0000..0x6000_4000_0000;
/// Address range of the OpenCL `printf` buffer. No device maps it, so accesses fault.
const PRINTF: Range<u64> = 0x6000_4000_0000..0x6000_8000_0000;

/// Offsets in the kernarg segment, with their values, at which device libraries read pointers to the
/// host buffers that version 5 metadata does not list. Libraries older than version 5 read the offset
/// of version 4. OpenCL's `printf` reads the `printf` buffer's offset of version 5, but the compiler
/// sees only a hostcall (AMDGPUUsage, "Code Object V5 Metadata"; `__printf_alloc` in ROCm's device
/// libraries).
fn unlisted_host_buffers(hidden: &[&Argument]) -> Vec<(u32, u64)> {
    // Offsets from the first hidden argument.
    const HOST_BUFFER_V4: u32 = 24;
    const PRINTF_BUFFER_V5: u32 = 72;
    let find = |kind| hidden.iter().find(|argument| argument.kind == kind);
    let Some(first) = find(ArgumentKind::HiddenBlockCountX) else { return Vec::new() };
    let address = match find(ArgumentKind::HiddenPrintfBuffer) {
        Some(_) => PRINTF.start,
        None if find(ArgumentKind::HiddenHostcallBuffer).is_some() => HOST_CALLS.start,
        None => return Vec::new(),
    };
    let buffers = [(HOST_BUFFER_V4, address), (PRINTF_BUFFER_V5, PRINTF.start)];
    let unlisted = buffers.into_iter().filter_map(|(offset, address)| {
        let offset = first.offset.checked_add(offset)?;
        let is_listed = hidden.iter().any(|argument| argument.offset == offset);
        (!is_listed).then_some((offset, address))
    });
    unlisted.collect()
}

/// The host service that a kernel tried to call if it accesses an unmapped address.
pub(crate) fn host_service_at(address: Address) -> Option<&'static str> {
    if HOST_CALLS.contains(&address.0) {
        Some("`printf`, `assert` or `malloc`")
    } else {
        PRINTF.contains(&address.0).then_some("`printf`")
    }
}

/// A parameter's type and name according to the metadata.
fn describe(argument: &Argument) -> String {
    let kind = match &argument.type_name {
        Some(type_name) => type_name.clone(),
        None => format!("{} of {} bytes", argument.kind, argument.size),
    };
    match &argument.name {
        Some(name) => format!("{kind} {name}"),
        None => kind,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No memory but that of arguments.
    const NONE: LaunchMemory = LaunchMemory { dynamic_lds: 0, heap: Address(0) };

    fn lds(dynamic_lds: u32) -> LaunchMemory {
        LaunchMemory { dynamic_lds, ..NONE }
    }

    fn argument(kind: &str, offset: u32, size: u32) -> Argument {
        Argument {
            name: None,
            type_name: None,
            offset,
            size,
            kind: ArgumentKind::from_name(kind),
            address_space: None,
            access: None,
            actual_access: None,
            pointee_align: None,
            is_const: false,
            is_restrict: false,
            is_volatile: false,
            is_pipe: false,
        }
    }

    fn kernel(kernarg_segment_size: u32, arguments: Vec<Argument>) -> KernelMetadata {
        KernelMetadata {
            name: "kernel".to_owned(),
            kernarg_segment_size,
            arguments,
            ..KernelMetadata::default()
        }
    }

    fn word(layout: &Layout, offset: usize, size: usize) -> u64 {
        let mut bytes = [0; 8];
        bytes[..size].copy_from_slice(&layout.kernarg[offset..offset + size]);
        u64::from_le_bytes(bytes)
    }

    #[test]
    fn explicit_arguments_are_at_their_offsets() {
        let kernel = kernel(
            24,
            vec![
                argument("by_value", 0, 4),
                argument("global_buffer", 8, 8),
                argument("by_value", 16, 2),
            ],
        );
        let values = [
            ArgumentValue::Bytes(vec![1, 2, 3, 4]),
            ArgumentValue::Buffer(Address(0x1234_5678_9abc)),
            ArgumentValue::Bytes(vec![5, 6]),
        ];
        let layout = layout_for_metadata(&kernel, &values, [1; 3], [1; 3], NONE).expect("fits");
        assert_eq!(layout.kernarg.len(), 24);
        assert_eq!(word(&layout, 0, 8), 0x0403_0201);
        assert_eq!(word(&layout, 8, 8), 0x1234_5678_9abc);
        assert_eq!(word(&layout, 16, 8), 0x0605);
    }

    /// Hidden arguments as placed by clang 22 after 24 bytes of explicit arguments.
    #[test]
    fn version_5_hidden_arguments_describe_the_launch() {
        let kernel = kernel(
            280,
            vec![
                argument("hidden_block_count_x", 24, 4),
                argument("hidden_block_count_y", 28, 4),
                argument("hidden_block_count_z", 32, 4),
                argument("hidden_group_size_x", 36, 2),
                argument("hidden_group_size_y", 38, 2),
                argument("hidden_group_size_z", 40, 2),
                argument("hidden_remainder_x", 42, 2),
                argument("hidden_remainder_y", 44, 2),
                argument("hidden_remainder_z", 46, 2),
                argument("hidden_global_offset_x", 64, 8),
                argument("hidden_grid_dims", 88, 2),
                argument("hidden_hostcall_buffer", 104, 8),
                argument("hidden_dynamic_lds_size", 144, 4),
            ],
        );
        let layout =
            layout_for_metadata(&kernel, &[], [1000, 30, 1], [256, 4, 1], NONE).expect("fits");
        let words = |offset, size, count| {
            (0..count).map(|i| word(&layout, offset + i * size, size)).collect::<Vec<_>>()
        };
        assert_eq!(words(24, 4, 3), [3, 7, 1], "complete workgroups");
        assert_eq!(words(36, 2, 3), [256, 4, 1], "workgroup size");
        assert_eq!(words(42, 2, 3), [232, 2, 0], "partial workgroups");
        assert_eq!(word(&layout, 88, 2), 2, "dimensions");
        assert_eq!(words(64, 8, 1), [0]);
        assert_eq!([words(104, 8, 1), words(48, 8, 1)], [[HOST_CALLS.start], [HOST_CALLS.start]]);
        assert_eq!(words(96, 8, 1), [PRINTF.start], "the unlisted `printf` buffer");
    }

    #[test]
    fn version_4_hidden_arguments_are_zero_except_host_buffers() {
        let kinds = ["hidden_global_offset_x", "hidden_none", "hidden_hostcall_buffer"];
        let arguments = (0..).zip(kinds).map(|(i, kind)| argument(kind, 8 * i, 8)).collect();
        let layout = layout_for_metadata(&kernel(24, arguments), &[], [64, 1, 1], [64, 1, 1], NONE)
            .expect("fits");
        assert_eq!((&layout.kernarg[..16], word(&layout, 16, 8)), (&[0; 16][..], HOST_CALLS.start));
        assert!(host_service_at(Address(HOST_CALLS.start + 4)).is_some());
        assert_eq!(host_service_at(Address(4)), None);
    }

    #[test]
    fn dynamic_lds_follows_static_lds() {
        let aligned =
            Argument { pointee_align: Some(16), ..argument("dynamic_shared_pointer", 0, 4) };
        let mut kernel = kernel(
            12,
            vec![
                aligned,
                argument("dynamic_shared_pointer", 4, 4),
                argument("hidden_dynamic_lds_size", 8, 4),
            ],
        );
        kernel.group_segment_fixed_size = 100;
        let values = [ArgumentValue::DynamicLds(10), ArgumentValue::DynamicLds(6)];
        let layout = layout_for_metadata(&kernel, &values, [1; 3], [1; 3], NONE).expect("fits");
        assert_eq!((word(&layout, 0, 4), word(&layout, 4, 4)), (112, 122));
        assert_eq!(layout.dynamic_lds, 28);
        assert_eq!(word(&layout, 8, 4), 28);
        // Dynamic LDS without a pointer argument precedes them.
        let layout = layout_for_metadata(&kernel, &values, [1; 3], [1; 3], lds(20)).expect("fits");
        assert_eq!((word(&layout, 0, 4), word(&layout, 4, 4)), (128, 138));
        assert_eq!((layout.dynamic_lds, word(&layout, 8, 4)), (44, 44));
    }

    #[test]
    fn only_zero_bytes_are_accepted_as_a_pointer() {
        let kernel = kernel(16, vec![argument("global_buffer", 0, 8), argument("by_value", 8, 8)]);
        let lay =
            |pointer, value| layout_for_metadata(&kernel, &[pointer, value], [1; 3], [1; 3], NONE);
        let value = || ArgumentValue::Bytes(vec![7; 8]);
        for null in [ArgumentValue::Null, ArgumentValue::Bytes(vec![0; 8])] {
            let layout = lay(null, value()).expect("fits");
            assert_eq!((word(&layout, 0, 8), word(&layout, 8, 1)), (0, 7));
        }
        let error = lay(value(), value()).expect_err("bytes for a pointer").to_string();
        assert!(error.contains("a value is given, a buffer, or null, of 8 bytes"), "{error}");
        assert!(lay(ArgumentValue::Bytes(vec![0; 4]), value()).is_err(), "half a pointer");
        let error = lay(ArgumentValue::Null, ArgumentValue::Null).expect_err("not a pointer");
        assert!(error.to_string().contains("null is given, a value of 8 bytes"), "{error}");
    }

    #[test]
    fn mismatched_values_are_rejected() {
        let named = Argument {
            name: Some("count".to_owned()),
            type_name: Some("uint".to_owned()),
            ..argument("by_value", 8, 4)
        };
        let kernel = kernel(16, vec![argument("global_buffer", 0, 8), named]);
        let buffer = ArgumentValue::Buffer(Address(0));
        let error = |values: &[ArgumentValue]| {
            layout_for_metadata(&kernel, values, [1; 3], [1; 3], NONE)
                .expect_err("rejected")
                .to_string()
        };
        let count = error(std::slice::from_ref(&buffer));
        assert!(count.contains("takes 2 arguments") && count.contains("uint count"), "{count}");
        let kind = error(&[buffer.clone(), buffer.clone()]);
        assert!(kind.contains("argument 1 ") && kind.contains("a buffer is given"), "{kind}");
        let size = error(&[buffer, ArgumentValue::Bytes(vec![0; 8])]);
        assert!(size.contains("8 bytes is given, 4 bytes are expected"), "{size}");
    }

    #[test]
    fn argument_outside_the_segment_is_an_error() {
        let kernel = kernel(4, vec![argument("by_value", u32::MAX, 4)]);
        let values = [ArgumentValue::Bytes(vec![0; 4])];
        let error =
            layout_for_metadata(&kernel, &values, [1; 3], [1; 3], NONE).expect_err("rejected");
        assert!(matches!(error, KernargError::OutsideSegment { .. }), "{error}");
    }

    #[test]
    fn only_the_hidden_heap_argument_points_to_the_heap() {
        let kinds = ["hidden_default_queue", "hidden_heap_v1", "hidden_none"];
        let arguments = (0..).zip(kinds).map(|(i, kind)| argument(kind, 8 * i, 8)).collect();
        let kernel = kernel(24, arguments);
        let memory = LaunchMemory { heap: Address(0x7788), ..NONE };
        let lay = |memory| {
            let layout = layout_for_metadata(&kernel, &[], [1; 3], [1; 3], memory).expect("fits");
            [0, 8, 16].map(|offset| word(&layout, offset, 8))
        };
        assert_eq!(lay(memory), [0, 0x7788, 0]);
        assert_eq!(lay(NONE), [0; 3]);
    }
}
