//! Loaded into applications before all else (LD_PRELOAD): it stands before the C library's functions
//! that open, look at, ask and map files. What belongs to the kernel's driver of AMD GPUs is answered by
//! Flipwave; everything else is passed on. So are names of ranges, after they were noted.
//!
//! What programs read of the driver below `/sys` is in a folder, `FLIPWAVE_DEVICES`, to which its
//! paths lead. A device is a file in memory, so that what programs do with it, duplicating and closing,
//! needs nothing of us. It is known again by its number among the system's files.
//!
//! Each process enters itself in the table of the application's process tree when it starts.
//!
//! There is little in here, as it is in every process that an application starts. The embedded GPU
//! is in another library, which is loaded when a device is opened.

mod device;
mod directory;
mod driver;
mod open;
mod paths;
mod processes;
mod ranges;
mod real;
mod status;
