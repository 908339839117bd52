//! One injection: a run of the workload with a fault at one site.

pub mod cell;
pub mod fault_observer;
pub mod injection;
pub mod injector;
pub mod run;
