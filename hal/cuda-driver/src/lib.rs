//! GPUs through NVIDIA's driver. [`Driver`] opens the driver's library at run time and calls only functions that
//! NVIDIA's "CUDA Driver API" documents; [`CudaDevice`] runs PTX on a GPU.
//!
//! The library may also be the stand-in of an application that `flipwave exec` runs.

mod capability;
mod context;
mod debug_information;
mod device;
mod driver;
mod error;
mod fault;
mod functions;
mod host_buffer;
mod library;
mod module;
mod stream;

pub use capability::{Capability, TargetError};
pub use debug_information::without_debug_information;
pub use device::CudaDevice;
pub use driver::{DeviceInfo, Driver, DriverVersion};
pub use error::CudaError;
pub use host_buffer::HostBuffer;
pub use library::{LIBRARY_VARIABLE, OpenError};
