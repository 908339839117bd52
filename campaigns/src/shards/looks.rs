//! Looks at a campaign whose rows many make. What is known after a number of injections is a
//! function of their rows: whoever sees first that they are there finds it out, and others read it.

use super::error::ShardError;
use super::layout::SharedFolder;
use super::part::gaps;
use super::plan::ShardPlan;
use super::rows::Shards;
use crate::results::folder::FolderError;
use flipwave_analysis::Look;

/// The looks that were found out so far, in their order.
pub(super) fn known(folder: &SharedFolder, plan: &ShardPlan) -> Vec<Look> {
    let sizes = plan.until.iter().flat_map(|until| &until.looks);
    let read = |size: &u64| -> Option<Look> {
        let path = folder.look(plan.count, *size);
        // What is not whole is found out again.
        serde_json::from_slice(
            &flipwave_host::input::read(&path, flipwave_host::input::RECORD).ok()?,
        )
        .ok()
    };
    sizes.map_while(read).collect()
}

/// Finds out what can be by the rows in the folder. All looks so far.
///
/// # Errors
/// [`ShardError`].
pub(super) fn look(folder: &SharedFolder, plan: &ShardPlan) -> Result<Vec<Look>, ShardError> {
    let known = known(folder, plan);
    let sizes = plan.until.iter().flat_map(|until| &until.looks);
    let next = sizes.copied().nth(known.len());
    let Some(next) = next.filter(|_| !known.last().is_some_and(Look::is_goal_met)) else {
        return Ok(known);
    };
    // Names cost a listing, and whether files are whole a call for each of them.
    if !gaps(0..next, folder.shards()?).is_empty() {
        return Ok(known);
    }
    let shards = Shards::of(folder, plan.clone())?;
    let prefix = shards.prefix();
    if prefix < next {
        return Ok(known);
    }
    let monitor = match shards.monitor(prefix) {
        // The shard that has these rows makes them again.
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
    fn looks_have_a_fixed_text() {
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
