//! Sequentialization of parallel moves between SGPRs.

use flipwave_isa::{Register, RegisterSet, Sgpr};
use std::collections::BTreeSet;

/// A move from one SGPR to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The source.
    pub from: Sgpr,
    /// The destination.
    pub to: Sgpr,
}

impl Move {
    /// Assembly of the move. The instruction does not write SCC.
    pub fn text(self) -> String {
        format!("s_mov_b32 {}, {}", Register::Sgpr(self.to), Register::Sgpr(self.from))
    }

    /// A sequence of moves with the effect of moving all words from `from` to `to` in parallel: no move
    /// overwrites a source of a later one. Cycles need a register of `spare`. Returns `None` if a cycle has
    /// no spare register, or if two words have the same destination.
    pub fn all_at_once(from: &[Sgpr], to: &[Sgpr], spare: RegisterSet) -> Option<Vec<Move>> {
        let destinations: BTreeSet<Sgpr> = to.iter().copied().collect();
        if destinations.len() < to.len() {
            return None;
        }
        let mut current = from.to_vec();
        let mut moves = Vec::new();
        loop {
            let waiting =
                || current.iter().zip(to).enumerate().filter(|(_, (current, to))| current != to);
            let Some((first, _)) = waiting().next() else { return Some(moves) };
            let free = waiting().find(|(_, (_, to))| !current.contains(to));
            let (word, to) = match free {
                Some((word, (_, to))) => (word, *to),
                None => {
                    let spare = spare.difference(set(&current)).difference(set(to));
                    (first, sgprs(spare).next()?)
                }
            };
            moves.push(Move { from: current[word], to });
            current[word] = to;
        }
    }
}

/// The set of the given SGPRs.
pub fn set(sgprs: &[Sgpr]) -> RegisterSet {
    sgprs.iter().copied().map(Register::Sgpr).collect()
}

/// The SGPRs of a set.
pub fn sgprs(set: RegisterSet) -> impl Iterator<Item = Sgpr> {
    let registers: Vec<Register> = set.intersection(RegisterSet::SGPRS).iter().collect();
    registers.into_iter().filter_map(|register| match register {
        Register::Sgpr(sgpr) => Some(sgpr),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn moves_preserve_all_words() {
        let cases: [(&[u8], &[u8], usize); 5] = [
            (&[4, 5], &[5, 4], 3),
            (&[4, 5, 6], &[5, 6, 4], 4),
            (&[4, 5], &[5, 6], 2),
            (&[4], &[4], 0),
            // One word with two destinations.
            (&[4, 4, 5], &[5, 6, 4], 4),
        ];
        for (from, to, count) in cases {
            let sgprs = |numbers: &[u8]| numbers.iter().copied().map(Sgpr).collect::<Vec<_>>();
            let (from, to) = (sgprs(from), sgprs(to));
            let moves = Move::all_at_once(&from, &to, set(&[Sgpr(9)])).expect("moves");
            assert_eq!(moves.len(), count, "{from:?} {to:?}");
            let mut values: HashMap<Sgpr, Sgpr> = from.iter().map(|sgpr| (*sgpr, *sgpr)).collect();
            for word in moves {
                values.insert(word.to, values[&word.from]);
            }
            assert!(from.iter().zip(&to).all(|(from, to)| values[to] == *from));
        }
        let cycle_without_spare =
            Move::all_at_once(&[Sgpr(4), Sgpr(5)], &[Sgpr(5), Sgpr(4)], set(&[Sgpr(4)]));
        assert_eq!(cycle_without_spare, None);
        let same_destination =
            Move::all_at_once(&[Sgpr(4), Sgpr(5)], &[Sgpr(6), Sgpr(6)], set(&[Sgpr(9)]));
        assert_eq!(same_destination, None);
    }
}
