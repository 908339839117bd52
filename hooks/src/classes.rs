//! Things that belong together (R. E. Tarjan, "Efficiency of a good but not linear set union
//! algorithm", 1975).

/// Numbers from 0, divided into classes.
#[derive(Clone, Debug)]
pub struct Classes {
    /// Of each number another of its class, or itself: none above it.
    leader: Vec<usize>,
}

impl Classes {
    /// The numbers below `count`, each in a class of its own.
    pub fn new(count: usize) -> Classes {
        Classes { leader: (0..count).collect() }
    }

    /// The least number of a class, for all of its numbers.
    pub fn find(&mut self, mut at: usize) -> usize {
        while self.leader[at] != at {
            self.leader[at] = self.leader[self.leader[at]];
            at = self.leader[at];
        }
        at
    }

    /// Makes one class of two.
    pub fn unite(&mut self, one: usize, other: usize) {
        let (one, other) = (self.find(one), self.find(other));
        self.leader[one.max(other)] = one.min(other);
    }
}
