//! Agents and their memory pools.

use super::OpenError;
use crate::HsaError;
use flipwave_device::Address;
use flipwave_isa::Target;
use hsa_sys::*;
use std::ffi::c_void;
use std::ptr::null;

/// A GPU and its memory pools.
#[derive(Clone, Copy, Debug)]
pub struct Agent {
    pub gpu: hsa_agent_t,
    /// Pool of the GPU's device memory.
    pub memory: Pool,
    /// Pool of host memory for kernel arguments.
    pub kernarg: Pool,
}

/// A memory pool.
#[derive(Clone, Copy, Debug)]
pub struct Pool(hsa_amd_memory_pool_t);

impl Pool {
    /// Allocates memory accessible to the GPU.
    pub fn allocate(
        self,
        functions: &Functions,
        gpu: hsa_agent_t,
        bytes: u64,
    ) -> Result<Address, HsaError> {
        let mut address = std::ptr::null_mut();
        // SAFETY: the pool comes from the runtime, and `address` outlives the call, which writes to
        // it.
        let status = unsafe {
            (functions.hsa_amd_memory_pool_allocate)(self.0, bytes as usize, 0, &mut address)
        };
        HsaError::check("hsa_amd_memory_pool_allocate", status)?;
        // SAFETY: `address` was allocated above, and the list has one agent, `gpu`.
        let status = unsafe { (functions.hsa_amd_agents_allow_access)(1, &gpu, null(), address) };
        HsaError::check("hsa_amd_agents_allow_access", status)?;
        Ok(Address(address as u64))
    }
}

impl Agent {
    /// Finds a GPU by index, counted from 0.
    pub fn find(functions: &Functions, number: usize) -> Result<Agent, OpenError> {
        let gpus = agents_of_type(functions, HSA_DEVICE_TYPE_GPU)?;
        let missing = || OpenError::NoGpu { wanted: number, present: gpus.len() };
        let gpu = gpus.get(number).copied().ok_or_else(missing)?;
        let memory = pool(functions, gpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_COARSE_GRAINED)?;
        let mut kernarg = None;
        for cpu in agents_of_type(functions, HSA_DEVICE_TYPE_CPU)? {
            kernarg =
                kernarg.or(pool(functions, cpu, HSA_AMD_MEMORY_POOL_GLOBAL_FLAG_KERNARG_INIT)?);
        }
        Ok(Agent {
            gpu,
            memory: memory.ok_or(OpenError::NoMemory("device"))?,
            kernarg: kernarg.ok_or(OpenError::NoMemory("kernel argument"))?,
        })
    }

    /// The GPU's target: the first of its instruction sets, such as
    /// `amdgcn-amd-amdhsa--gfx90a:sramecc+:xnack-`.
    pub fn target(&self, functions: &Functions) -> Result<Target, OpenError> {
        let mut sets: Vec<hsa_isa_t> = Vec::new();
        // SAFETY: the callback's data is a vector of instruction sets.
        let status = unsafe {
            (functions.hsa_agent_iterate_isas)(
                self.gpu,
                collect::<hsa_isa_t>,
                (&raw mut sets).cast(),
            )
        };
        HsaError::check("hsa_agent_iterate_isas", status)?;
        let Some(best) = sets.first() else { return Err(OpenError::UnknownTarget("?".into())) };
        let query = |attribute, value: *mut c_void| {
            // SAFETY: `value` has the attribute's size.
            let status = unsafe { (functions.hsa_isa_get_info_alt)(*best, attribute, value) };
            HsaError::check("hsa_isa_get_info_alt", status)
        };
        let mut length = 0u32;
        query(HSA_ISA_INFO_NAME_LENGTH, (&raw mut length).cast())?;
        let mut name = vec![0u8; length as usize + 1];
        query(HSA_ISA_INFO_NAME, name.as_mut_ptr().cast())?;
        let name: Vec<u8> = name.into_iter().take_while(|byte| *byte != 0).collect();
        let name = String::from_utf8_lossy(&name);
        let processor = name.split_once("--").map_or(&*name, |(_, processor)| processor);
        processor.parse().map_err(|_| OpenError::UnknownTarget(name.clone().into_owned()))
    }
}

/// All agents of a type, `hsa_device_type_t`.
pub fn agents_of_type(
    functions: &Functions,
    wanted_type: u32,
) -> Result<Vec<hsa_agent_t>, HsaError> {
    let mut agents = Vec::new();
    // SAFETY: the callback's data is a vector of agents.
    let status =
        unsafe { (functions.hsa_iterate_agents)(collect::<hsa_agent_t>, (&raw mut agents).cast()) };
    HsaError::check("hsa_iterate_agents", status)?;
    agents.retain(|agent| device_type(functions, *agent) == Ok(wanted_type));
    Ok(agents)
}

/// Callback of iterations: appends a handle to a vector.
unsafe extern "C" fn collect<T>(handle: T, list: *mut c_void) -> hsa_status_t {
    // SAFETY: `list` is the vector that was passed with this callback.
    unsafe { (*list.cast::<Vec<T>>()).push(handle) };
    HSA_STATUS_SUCCESS
}

fn device_type(functions: &Functions, agent: hsa_agent_t) -> Result<u32, HsaError> {
    let mut device_type = u32::MAX;
    // SAFETY: this attribute has 32 bits.
    let status = unsafe {
        (functions.hsa_agent_get_info)(agent, HSA_AGENT_INFO_DEVICE, (&raw mut device_type).cast())
    };
    HsaError::check("hsa_agent_get_info", status).map(|()| device_type)
}

/// The first pool of an agent's global memory that has a flag and permits allocation.
fn pool(
    functions: &Functions,
    agent: hsa_agent_t,
    wanted_flag: u32,
) -> Result<Option<Pool>, HsaError> {
    let mut pools: Vec<hsa_amd_memory_pool_t> = Vec::new();
    // SAFETY: the callback's data is a vector of pools.
    let status = unsafe {
        (functions.hsa_amd_agent_iterate_memory_pools)(
            agent,
            collect::<hsa_amd_memory_pool_t>,
            (&raw mut pools).cast(),
        )
    };
    HsaError::check("hsa_amd_agent_iterate_memory_pools", status)?;
    for pool in pools {
        let query = |attribute, value: *mut c_void| {
            // SAFETY: `value` has the attribute's size.
            let status =
                unsafe { (functions.hsa_amd_memory_pool_get_info)(pool, attribute, value) };
            HsaError::check("hsa_amd_memory_pool_get_info", status)
        };
        let (mut segment, mut flags, mut allows_allocation) = (u32::MAX, 0u32, false);
        query(HSA_AMD_MEMORY_POOL_INFO_SEGMENT, (&raw mut segment).cast())?;
        query(HSA_AMD_MEMORY_POOL_INFO_RUNTIME_ALLOC_ALLOWED, (&raw mut allows_allocation).cast())?;
        if segment != HSA_AMD_SEGMENT_GLOBAL || !allows_allocation {
            continue;
        }
        query(HSA_AMD_MEMORY_POOL_INFO_GLOBAL_FLAGS, (&raw mut flags).cast())?;
        if flags & wanted_flag != 0 {
            return Ok(Some(Pool(pool)));
        }
    }
    Ok(None)
}
