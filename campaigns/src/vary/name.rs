//! Names of variants, which are names of folders: readable, the same each time, and short.

use crate::digest::hexadecimal;
use sha2::{Digest, Sha256};

/// Characters of a part of a name at most.
const LONGEST_PART: usize = 32;

/// Bytes of a name at most. File systems take 255.
const LONGEST: usize = 200;

/// Digits of a digest that make a name that was shortened the only one of its kind.
const DIGITS: usize = 8;

/// A text as a part of a name, if it can be one as it is.
pub(super) fn label(text: &str) -> Option<&str> {
    let is_plain = !text.is_empty() && text.len() <= LONGEST_PART && text.chars().all(is_safe);
    (is_plain && text.chars().any(|own| own != '.')).then_some(text)
}

fn is_safe(character: char) -> bool {
    character.is_ascii_alphanumeric() || "._+-".contains(character)
}

/// Parts of names for texts that stand beside each other, each with all that it means: as they are
/// where that says which is meant, else what can be in a name and a digest of what they mean.
pub(super) fn labels(texts: &[(String, String)]) -> Vec<String> {
    let own = |(text, meaning): &(String, String)| {
        let is_single = texts.iter().filter(|(other, _)| other == text).count() == 1;
        match label(text) {
            Some(label) if is_single => label.to_owned(),
            _ => shortened(text, LONGEST_PART - DIGITS, meaning),
        }
    };
    texts.iter().map(own).collect()
}

/// The name of a variant: its dimensions, and what each of them is.
pub(super) fn name<'a>(parts: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let parts: Vec<String> =
        parts.map(|(dimension, value)| format!("{dimension}={value}")).collect();
    let name = parts.join(",");
    match name.len() <= LONGEST {
        true => name,
        false => format!("{}~{}", &name[..LONGEST - DIGITS], digest(&name)),
    }
}

fn shortened(text: &str, length: usize, meaning: &str) -> String {
    let safe = |own: char| if is_safe(own) { own } else { '_' };
    let text: String = text.chars().take(length).map(safe).collect();
    format!("{text}~{}", digest(meaning))
}

fn digest(text: &str) -> String {
    let mut digits = hexadecimal(&Sha256::digest(text.as_bytes()));
    digits.truncate(DIGITS);
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_stay_readable_and_are_never_the_same() {
        let texts = ["gfx90a", "-O3", "a/b", "a b", "", "..", "x_y", "x_y", &"l".repeat(40)];
        let all = texts.iter().zip(0..).map(|(own, number)| (own.to_string(), number.to_string()));
        let labels = labels(&all.collect::<Vec<_>>());
        assert_eq!(labels[..2], ["gfx90a", "-O3"]);
        assert!(labels[2].starts_with("a_b~") && labels[6].starts_with("x_y~"), "{labels:?}");
        for (number, own) in labels.iter().enumerate() {
            assert!(!labels[..number].contains(own), "{own} is there twice");
            assert!(own.chars().all(|own| is_safe(own) || own == '~'), "{own}");
        }
    }

    #[test]
    fn long_names_are_cut_and_differ_all_the_same() {
        let long = |last: &str| {
            let values: Vec<String> = (0..30).map(|own| format!("value{own}")).collect();
            name(values.iter().map(|own| ("dimension", own.as_str())).chain([("last", last)]))
        };
        assert!(long("a").len() <= 255 && long("a") != long("b"));
        assert_eq!(name([("seed", "1"), ("size", "small")].into_iter()), "seed=1,size=small");
    }
}
