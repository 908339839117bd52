//! Interim looks of a sharded campaign. A look is a function of the rows: the first shard that sees
//! all rows before a look computes it, and the others read it.

use super::error::ShardError;
use super::layout::SharedFolder;
use super::part::gaps;
use super::plan::ShardPlan;
use super::rows::Shards;
use crate::results::folder::FolderError;
use flipwave_analysis::Look;

/// Reads the looks that have been computed, in order.
pub(super) fn published(folder: &SharedFolder, plan: &ShardPlan) -> Vec<Look> {
    let sizes = plan.until.iter().flat_map(|until| &until.looks);
    let read = |size: &u64| -> Option<Look> {
        let path = folder.look(plan.count, *size);
        // A damaged look is computed again.
        serde_json::from_slice(
            &flipwave_host::input::read(&path, flipwave_host::input::RECORD).ok()?,
        )
        .ok()
    };
    sizes.map_while(read).collect()
}

/// Computes the looks whose rows are in the folder, and returns all looks so far.
///
/// # Errors
/// [`ShardError`].
pub(super) fn update(folder: &SharedFolder, plan: &ShardPlan) -> Result<Vec<Look>, ShardError> {
    let known = published(folder, plan);
    let sizes = plan.until.iter().flat_map(|until| &until.looks);
    let next = sizes.copied().nth(known.len());
    let Some(next) = next.filter(|_| !known.last().is_some_and(Look::is_goal_met)) else {
        return Ok(known);
    };
    // Listing names is cheaper than checking that each file is complete.
    if !gaps(0..next, folder.shards()?).is_empty() {
        return Ok(known);
    }
    let shards = Shards::find(folder, plan.clone())?;
    let contiguous = shards.contiguous_rows();
    if contiguous < next {
        return Ok(known);
    }
    let monitor = match shards.monitor(contiguous) {
        // The shard of these rows creates them again.
        Err(ShardError::Damaged { .. } | ShardError::Missing { .. }) => return Ok(known),
        monitor => monitor?,
    };
    for look in &monitor.looks()[known.len().min(monitor.looks().len())..] {
        let path = folder.look(plan.count, look.injections);
        let failed = |reason| FolderError::Access { path: path.clone(), reason };
        let text = serde_json::to_vec(look).map_err(|error| failed(error.into()))?;
        flipwave_host::output::publish(&path, text.as_slice()).map_err(failed)?;
    }
    Ok(monitor.looks().to_vec())
}

#[cfg(test)]
mod tests {
    use crate::format_tests;
    use flipwave_analysis::Look;

    #[test]
    fn serialized_looks_are_fixed() {
        let look = format_tests::look();
        let text = serde_json::to_string(&look).expect("JSON");
        assert_eq!(
            text,
            "{\"injections\":500,\"rates\":4,\"narrow\":3,\"widest\":\"kernel:add sdc\",\
             \"half_width\":0.04}"
        );
        assert_eq!(serde_json::from_str::<Look>(&text).expect("a look"), look);
    }
}
