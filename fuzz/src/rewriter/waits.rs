//! Inserts waits for pending memory operations, as a compiler does.

use super::operations::Delivery;
use crate::choices::Choices;

/// Register file and number.
pub type Name = (char, u16);

/// VGPRs and SGPRs that an assembly text names.
pub fn named(text: &str) -> Vec<Name> {
    let mut names = Vec::new();
    let is_word = |character: char| character.is_ascii_alphanumeric() || character == '_';
    let mut before = ' ';
    for (at, character) in text.char_indices() {
        let rest = &text[at + 1..];
        if ['v', 's'].contains(&character) && !is_word(before) {
            let digits = |text: &str| {
                let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
                text[..end].parse::<u16>().ok().map(|number| (number, end))
            };
            if let Some(inside) = rest.strip_prefix('[') {
                let first = digits(inside);
                let last = first.and_then(|(_, end)| digits(inside.get(end + 1..)?));
                if let (Some((first, _)), Some((last, _))) = (first, last) {
                    names.extend((first..=last).map(|number| (character, number)));
                }
            } else if let Some((number, end)) = digits(rest)
                && !rest[end..].starts_with(is_word)
            {
                names.push((character, number));
            }
        }
        before = character;
    }
    names
}

/// Pending memory operations.
#[derive(Clone, Debug, Default)]
pub struct Waits {
    pending: Vec<Pending>,
    /// Number of vector memory loads so far.
    loads: u32,
}

#[derive(Clone, Debug)]
struct Pending {
    registers: Vec<Name>,
    counter: Counter,
    /// Number among the vector memory loads, if the number of later loads is known.
    number: Option<u32>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counter {
    Vector,
    Scalar,
}

impl Waits {
    /// Records an operation that writes `registers` when it completes.
    pub fn add(&mut self, delivery: Delivery, registers: &[String]) {
        let registers: Vec<Name> = registers.iter().flat_map(|text| named(text)).collect();
        let is_vector = matches!(delivery, Delivery::Vector | Delivery::Both);
        let is_scalar = matches!(delivery, Delivery::Scalar | Delivery::Both);
        if delivery == Delivery::Both {
            // Flat accesses return out of order, so vmcnt no longer identifies older loads.
            self.blur();
        }
        if is_vector {
            self.loads += 1;
            let number = (delivery == Delivery::Vector).then_some(self.loads);
            let counter = Counter::Vector;
            self.pending.push(Pending { registers: registers.clone(), counter, number });
        }
        if is_scalar {
            self.pending.push(Pending { registers, counter: Counter::Scalar, number: None });
        }
    }

    /// Returns the waits needed before a line, and removes the operations they complete.
    pub fn before(&mut self, line: &str, choices: &mut Choices<'_>) -> Vec<String> {
        let names = named(line);
        let is_met = |access: &&Pending| access.registers.iter().any(|name| names.contains(name));
        let mut waits = Vec::new();
        let met = || self.pending.iter().filter(is_met);
        let scalar = met().any(|access| access.counter == Counter::Scalar);
        let vector: Vec<Option<u32>> = met()
            .filter(|access| access.counter == Counter::Vector)
            .map(|access| access.number)
            .collect();
        if scalar {
            waits.push("s_waitcnt lgkmcnt(0)".to_owned());
            self.pending.retain(|access| access.counter != Counter::Scalar);
        }
        if !vector.is_empty() {
            let youngest = vector.iter().copied().collect::<Option<Vec<u32>>>();
            let youngest = youngest.and_then(|all| all.into_iter().max());
            match youngest.filter(|_| choices.chance(60)) {
                Some(number) => {
                    waits.push(format!("s_waitcnt vmcnt({})", (self.loads - number).min(60)));
                    self.pending.retain(|access| {
                        access.counter != Counter::Vector
                            || access.number.is_none_or(|pending| pending > number)
                    });
                }
                None => {
                    waits.push("s_waitcnt vmcnt(0)".to_owned());
                    self.pending.retain(|access| access.counter != Counter::Vector);
                }
            }
        }
        waits
    }

    /// Waits for everything.
    pub fn all(&mut self) -> Vec<String> {
        let was_pending = !std::mem::take(&mut self.pending).is_empty();
        was_pending.then(|| "s_waitcnt vmcnt(0) lgkmcnt(0)".to_owned()).into_iter().collect()
    }

    /// Forgets the order of pending loads, so that later waits must be for all loads.
    pub fn blur(&mut self) {
        self.pending.iter_mut().for_each(|access| access.number = None);
    }

    /// Merges the state of another control flow path.
    pub fn join(&mut self, other: Waits) {
        self.pending.extend(other.pending);
        self.loads = self.loads.max(other.loads);
        self.blur();
    }
}
