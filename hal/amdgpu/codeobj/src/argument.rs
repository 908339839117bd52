//! Kernel arguments.

use std::fmt;

/// A kernel argument: a range of the kernarg segment and the kind of its value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    /// The name in the source; `None` for hidden arguments.
    pub name: Option<String>,
    /// The type in the source.
    pub type_name: Option<String>,
    /// Offset in the kernarg segment, in bytes.
    pub offset: u32,
    /// Size in bytes.
    pub size: u32,
    /// The kind of value passed.
    pub kind: ArgumentKind,
    /// Address space of the pointee of a pointer.
    pub address_space: Option<String>,
    /// Access that the source permits: `read_only`, `write_only` or `read_write`.
    pub access: Option<String>,
    /// Access that the kernel performs, as for `access`.
    pub actual_access: Option<String>,
    /// Alignment of the pointee of a dynamic LDS pointer, in bytes.
    pub pointee_align: Option<u32>,
    /// Declared `const` in the source.
    pub is_const: bool,
    /// Declared `restrict` in the source.
    pub is_restrict: bool,
    /// Declared `volatile` in the source.
    pub is_volatile: bool,
    /// Declared `pipe` in the source.
    pub is_pipe: bool,
}

/// Declares the argument kinds with their names in the metadata note (AMDGPUUsage, "AMDHSA Code
/// Object V3 Kernel Argument Metadata Map" and its V5 additions).
macro_rules! argument_kinds {
    ($($(#[$documentation:meta])* $kind:ident = $name:literal,)*) => {
        /// The kind of value passed in an argument. The runtime fills in the hidden kinds.
        #[derive(Clone, Debug, PartialEq, Eq, Hash)]
        pub enum ArgumentKind {
            $($(#[$documentation])* $kind,)*
            /// An unknown kind, by its name in the metadata note.
            Other(String),
        }

        impl ArgumentKind {
            /// Returns the kind with a name of the metadata note.
            pub fn from_name(name: &str) -> ArgumentKind {
                match name {
                    $($name => ArgumentKind::$kind,)*
                    unknown => ArgumentKind::Other(unknown.to_owned()),
                }
            }

            /// The name in the metadata note.
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
    /// LDS offset of memory allocated at dispatch.
    DynamicSharedPointer = "dynamic_shared_pointer",
    /// Address of a sampler.
    Sampler = "sampler",
    /// Address of an image descriptor.
    Image = "image",
    /// Address of an OpenCL pipe.
    Pipe = "pipe",
    /// Address of an OpenCL device queue.
    Queue = "queue",
    /// Grid offset in x, in work-items.
    HiddenGlobalOffsetX = "hidden_global_offset_x",
    /// Grid offset in y, in work-items.
    HiddenGlobalOffsetY = "hidden_global_offset_y",
    /// Grid offset in z, in work-items.
    HiddenGlobalOffsetZ = "hidden_global_offset_z",
    /// Unused space.
    HiddenNone = "hidden_none",
    /// Address of the `printf` buffer.
    HiddenPrintfBuffer = "hidden_printf_buffer",
    /// Address of the hostcall buffer.
    HiddenHostcallBuffer = "hidden_hostcall_buffer",
    /// Address of the default device queue.
    HiddenDefaultQueue = "hidden_default_queue",
    /// Address of the completion action of enqueued kernels.
    HiddenCompletionAction = "hidden_completion_action",
    /// Address of the barrier of a multi-grid launch.
    HiddenMultigridSyncArg = "hidden_multigrid_sync_arg",
    /// Number of complete workgroups in x, 32 bits.
    HiddenBlockCountX = "hidden_block_count_x",
    /// Number of complete workgroups in y, 32 bits.
    HiddenBlockCountY = "hidden_block_count_y",
    /// Number of complete workgroups in z, 32 bits.
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
    /// Number of grid dimensions: 1 to 3, 16 bits.
    HiddenGridDims = "hidden_grid_dims",
    /// Address of the device heap.
    HiddenHeapV1 = "hidden_heap_v1",
    /// LDS allocated at dispatch, in bytes, 32 bits.
    HiddenDynamicLdsSize = "hidden_dynamic_lds_size",
    /// High half of the private aperture's base.
    HiddenPrivateBase = "hidden_private_base",
    /// High half of the LDS aperture's base.
    HiddenSharedBase = "hidden_shared_base",
    /// Address of the queue.
    HiddenQueuePtr = "hidden_queue_ptr",
}

impl ArgumentKind {
    /// Returns `true` if the runtime, not the caller, provides the value.
    pub fn is_hidden(&self) -> bool {
        self.name().starts_with("hidden_")
    }
}

impl fmt::Display for ArgumentKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
