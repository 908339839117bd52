//! Places of workgroups under way, which decide where their private memory lies.

/// The places that are free: those given back last are taken first, then those that nobody has had,
/// from the lowest on.
#[derive(Clone, Debug, PartialEq)]
pub struct Slots {
    returned: Vec<usize>,
    /// The lowest that nobody has had.
    next: usize,
    /// From one of these places to the next.
    step: usize,
    end: usize,
}

impl Slots {
    /// All of `count` places.
    pub fn all(count: usize) -> Slots {
        Slots::part(0, 1, count)
    }

    /// One place.
    pub fn one(slot: usize) -> Slots {
        Slots::of(vec![slot])
    }

    /// Of `count` places those of part number `part` of `parts`: each `parts`-th.
    pub fn part(part: usize, parts: usize, count: usize) -> Slots {
        Slots { returned: Vec::new(), next: part, step: parts, end: count }
    }

    /// These places, the last of which is taken first.
    pub fn of(places: Vec<usize>) -> Slots {
        Slots { returned: places, next: 0, step: 1, end: 0 }
    }

    /// A place that is free.
    pub fn take(&mut self) -> Option<usize> {
        self.returned.pop().or_else(|| {
            let slot = self.next;
            (slot < self.end).then(|| {
                self.next += self.step;
                slot
            })
        })
    }

    /// A workgroup has ended that had this place.
    pub fn give_back(&mut self, slot: usize) {
        self.returned.push(slot);
    }
}

#[cfg(test)]
mod tests;
