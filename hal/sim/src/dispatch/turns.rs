//! How long the turns of workgroups are.

/// Workgroups that are started one by one, and have whole turns beside each other.
pub const FEW: usize = 8;
/// Rounds of the shortest turn of a workgroup: bringing its state into the host's caches takes less.
const SHORTEST_TURN: u32 = 4;

/// Rounds of a workgroup's turn beside so many others, where `whole` are those of a whole turn.
pub fn turn(whole: u32, resident: usize) -> u32 {
    if resident <= FEW {
        return whole;
    }
    let share = u64::from(whole) * FEW as u64 / resident as u64;
    whole.min(SHORTEST_TURN.max(share as u32))
}
