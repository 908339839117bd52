//! Arguments of a kernel.

use std::fmt;

/// A range of the kernarg segment and what the runtime puts there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// Its name in the source; hidden arguments have none.
    pub name: Option<String>,
    /// Its type in the source.
    pub type_name: Option<String>,
    /// Where it begins, in bytes from the start of the kernarg segment.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// What is passed.
    pub kind: ArgumentKind,
    /// Where a pointer points.
    pub address_space: Option<String>,
    /// What the source lets the kernel do: `read_only`, `write_only` or `read_write`.
    pub access: Option<String>,
    /// What the kernel really does, in the same words.
    pub actual_access: Option<String>,
    /// Alignment of what a dynamic LDS pointer points to, in bytes.
    pub pointee_align: Option<u32>,
    /// `const` in the source.
    pub is_const: bool,
    /// `restrict` in the source.
    pub is_restrict: bool,
    /// `volatile` in the source.
    pub is_volatile: bool,
    /// `pipe` in the source.
    pub is_pipe: bool,
}

/// Declares the kinds with their names in the note (AMDGPUUsage, "AMDHSA Code Object V3 Kernel
/// Argument Metadata Map" and its V5 additions).
macro_rules! argument_kinds {
    ($($(#[$documentation:meta])* $kind:ident = $name:literal,)*) => {
        /// What is passed in an argument. The hidden kinds are filled in by the runtime.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum ArgumentKind {
            $($(#[$documentation])* $kind,)*
            /// A kind that this list does not have.
            Other(String),
        }

        impl ArgumentKind {
            /// The kind that has a name in the metadata note.
            pub fn from_name(name: &str) -> ArgumentKind {
                match name {
                    $($name => ArgumentKind::$kind,)*
                    other => ArgumentKind::Other(other.to_owned()),
                }
            }

            /// Its name in the metadata note.
            pub fn name(&self) -> &str {
                match self {
                    $(ArgumentKind::$kind => $name,)*
                    ArgumentKind::Other(name) => name,
                }
            }
        }
    };
}

argument_kinds! {
    /// The value itself.
    ByValue = "by_value",
    /// Address of a buffer in global or constant memory.
    GlobalBuffer = "global_buffer",
    /// LDS offset of memory that is allocated at dispatch.
    DynamicSharedPointer = "dynamic_shared_pointer",
    /// Address of a sampler.
    Sampler = "sampler",
    /// Address of an image descriptor.
    Image = "image",
    /// Address of an OpenCL pipe.
    Pipe = "pipe",
    /// Address of an OpenCL device queue.
    Queue = "queue",
    /// Offset of the grid in x, work-items.
    HiddenGlobalOffsetX = "hidden_global_offset_x",
    /// Offset of the grid in y, work-items.
    HiddenGlobalOffsetY = "hidden_global_offset_y",
    /// Offset of the grid in z, work-items.
    HiddenGlobalOffsetZ = "hidden_global_offset_z",
    /// Unused space.
    HiddenNone = "hidden_none",
    /// Address of the buffer of `printf`.
    HiddenPrintfBuffer = "hidden_printf_buffer",
    /// Address of the buffer of host calls.
    HiddenHostcallBuffer = "hidden_hostcall_buffer",
    /// Address of the default device queue.
    HiddenDefaultQueue = "hidden_default_queue",
    /// Address of the completion action of enqueued kernels.
    HiddenCompletionAction = "hidden_completion_action",
    /// Address of the barrier of a multi-grid launch.
    HiddenMultigridSyncArg = "hidden_multigrid_sync_arg",
    /// Complete workgroups in x, 32 bits.
    HiddenBlockCountX = "hidden_block_count_x",
    /// Complete workgroups in y, 32 bits.
    HiddenBlockCountY = "hidden_block_count_y",
    /// Complete workgroups in z, 32 bits.
    HiddenBlockCountZ = "hidden_block_count_z",
    /// Work-items of a complete workgroup in x, 16 bits.
    HiddenGroupSizeX = "hidden_group_size_x",
    /// Work-items of a complete workgroup in y, 16 bits.
    HiddenGroupSizeY = "hidden_group_size_y",
    /// Work-items of a complete workgroup in z, 16 bits.
    HiddenGroupSizeZ = "hidden_group_size_z",
    /// Work-items of the partial workgroup in x, 16 bits.
    HiddenRemainderX = "hidden_remainder_x",
    /// Work-items of the partial workgroup in y, 16 bits.
    HiddenRemainderY = "hidden_remainder_y",
    /// Work-items of the partial workgroup in z, 16 bits.
    HiddenRemainderZ = "hidden_remainder_z",
    /// Dimensions of the grid: 1 to 3, 16 bits.
    HiddenGridDims = "hidden_grid_dims",
    /// Address of the device heap.
    HiddenHeapV1 = "hidden_heap_v1",
    /// LDS allocated at dispatch, bytes, 32 bits.
    HiddenDynamicLdsSize = "hidden_dynamic_lds_size",
    /// High half of the private aperture's base.
    HiddenPrivateBase = "hidden_private_base",
    /// High half of the LDS aperture's base.
    HiddenSharedBase = "hidden_shared_base",
    /// Address of the queue.
    HiddenQueuePtr = "hidden_queue_ptr",
}

impl ArgumentKind {
    /// Whether the runtime fills it in, not the caller.
    pub fn is_hidden(&self) -> bool {
        self.name().starts_with("hidden_")
    }
}

impl fmt::Display for ArgumentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
