//! Checks of grid and workgroup sizes.

use flipwave_codeobj::Kernel;
use flipwave_device::{Dim3, Dispatch};

/// Maximum number of work-items of a workgroup.
pub const LARGEST_WORKGROUP: u64 = 1024;

/// Checks a launch's shape against the limits of hardware and kernel.
pub fn check_shape(dispatch: &Dispatch, kernel: &Kernel) -> Result<(), String> {
    let most = match kernel.metadata.max_flat_workgroup_size {
        Some(most) => u64::from(most).min(LARGEST_WORKGROUP),
        None => LARGEST_WORKGROUP,
    };
    check_extent(dispatch.grid, dispatch.workgroup, most)?;
    if let Some(required) = kernel.metadata.reqd_workgroup_size
        && required != dispatch.workgroup
    {
        return Err(format!(
            "it requires workgroups of {required:?}, not {:?}",
            dispatch.workgroup
        ));
    }
    Ok(())
}

/// Checks a grid against the limits of hardware, with workgroups of at most `most` work-items.
pub fn check_extent(grid: Dim3, workgroup: Dim3, most: u64) -> Result<(), String> {
    if grid.contains(&0) || workgroup.contains(&0) {
        return Err(format!("grid {grid:?} and workgroup {workgroup:?} must not have a zero"));
    }
    let items: u64 = workgroup.iter().map(|size| u64::from(*size)).product();
    if workgroup.iter().any(|size| u64::from(*size) > LARGEST_WORKGROUP) || items > most {
        return Err(format!("a workgroup has {items} work-items, at most {most} are allowed"));
    }
    let total: u128 = grid.iter().map(|size| u128::from(*size)).product();
    if total > u128::from(u32::MAX) {
        return Err(format!("the grid has {total} work-items, at most 2^32-1 are allowed"));
    }
    Ok(())
}
