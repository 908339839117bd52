//! Slots of resident workgroups, which determine the addresses of their private memory.

/// Free slots. Slots returned last are taken first, then unused ones in ascending order.
#[derive(Clone, Debug, PartialEq)]
pub struct Slots {
    returned: Vec<usize>,
    /// The lowest unused slot.
    next: usize,
    /// Distance between unused slots.
    step: usize,
    end: usize,
}

impl Slots {
    /// All of `count` slots.
    pub fn all(count: usize) -> Slots {
        Slots::part(0, 1, count)
    }

    /// A single slot.
    pub fn one(slot: usize) -> Slots {
        Slots::of(vec![slot])
    }

    /// The slots of part `part` of `parts` equal parts of `count` slots: every `parts`-th one.
    pub fn part(part: usize, parts: usize, count: usize) -> Slots {
        Slots { returned: Vec::new(), next: part, step: parts, end: count }
    }

    /// The given slots, the last of which is taken first.
    pub fn of(slots: Vec<usize>) -> Slots {
        Slots { returned: slots, next: 0, step: 1, end: 0 }
    }

    /// Takes a free slot.
    pub fn take(&mut self) -> Option<usize> {
        self.returned.pop().or_else(|| {
            let slot = self.next;
            (slot < self.end).then(|| {
                self.next += self.step;
                slot
            })
        })
    }

    /// Returns the slot of a workgroup that has ended.
    pub fn give_back(&mut self, slot: usize) {
        self.returned.push(slot);
    }
}

#[cfg(test)]
mod tests;
