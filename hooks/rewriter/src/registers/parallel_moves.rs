//! Words in SGPRs that change their places.

use flipwave_isa::{Register, RegisterSet, Sgpr};
use std::collections::BTreeSet;

/// A word from one SGPR to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// Where it was.
    pub from: Sgpr,
    /// Where it is then.
    pub to: Sgpr,
}

impl Move {
    /// The instruction. It changes nothing else, not even SCC.
    pub fn text(self) -> String {
        format!("s_mov_b32 {}, {}", Register::Sgpr(self.to), Register::Sgpr(self.from))
    }

    /// Moves of words from places to others as if all were done at once: none overwrites what
    /// another has yet to move. Where words go round, one makes a stop in a register of `spare`;
    /// `None` where there is none, or where two words go to the same place.
    pub fn all_at_once(from: &[Sgpr], to: &[Sgpr], spare: RegisterSet) -> Option<Vec<Move>> {
        let all: BTreeSet<Sgpr> = to.iter().copied().collect();
        if all.len() < to.len() {
            return None;
        }
        let mut places = from.to_vec();
        let mut moves = Vec::new();
        loop {
            let waiting = || places.iter().zip(to).enumerate().filter(|(_, (own, to))| own != to);
            let Some((first, _)) = waiting().next() else { return Some(moves) };
            let free = waiting().find(|(_, (_, to))| !places.contains(to));
            let (word, to) = match free {
                Some((word, (_, to))) => (word, *to),
                None => {
                    let stops = spare.difference(set(&places)).difference(set(to));
                    (first, sgprs(stops).next()?)
                }
            };
            let own = &mut places[word];
            moves.push(Move { from: *own, to });
            *own = to;
        }
    }
}

/// SGPRs as a set.
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
    fn words_that_change_places_overwrite_none() {
        let cases: [(&[u8], &[u8], usize); 5] = [
            (&[4, 5], &[5, 4], 3),
            (&[4, 5, 6], &[5, 6, 4], 4),
            (&[4, 5], &[5, 6], 2),
            (&[4], &[4], 0),
            // One word to two places.
            (&[4, 4, 5], &[5, 6, 4], 4),
        ];
        for (from, to, count) in cases {
            let sgprs = |own: &[u8]| own.iter().copied().map(Sgpr).collect::<Vec<_>>();
            let (from, to) = (sgprs(from), sgprs(to));
            let moves = Move::all_at_once(&from, &to, set(&[Sgpr(9)])).expect("moves");
            assert_eq!(moves.len(), count, "{from:?} {to:?}");
            let mut values: HashMap<Sgpr, Sgpr> = from.iter().map(|own| (*own, *own)).collect();
            for own in moves {
                values.insert(own.to, values[&own.from]);
            }
            assert!(from.iter().zip(&to).all(|(from, to)| values[to] == *from));
        }
        let turned = Move::all_at_once(&[Sgpr(4), Sgpr(5)], &[Sgpr(5), Sgpr(4)], set(&[Sgpr(4)]));
        assert_eq!(turned, None);
        let met = Move::all_at_once(&[Sgpr(4), Sgpr(5)], &[Sgpr(6), Sgpr(6)], set(&[Sgpr(9)]));
        assert_eq!(met, None);
    }
}
