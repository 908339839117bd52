//! Names of variants. They are folder names, so they are readable, reproducible and short.

use crate::digest::hexadecimal;
use sha2::{Digest, Sha256};

/// Maximum number of characters of a part of a name.
const MAX_PART: usize = 32;

/// Maximum number of bytes of a name. File systems permit 255.
const MAX_NAME: usize = 200;

/// Digits of the digest that makes a shorten name unique.
const DIGITS: usize = 8;

/// Returns the text if it can be part of a name.
pub(super) fn label(text: &str) -> Option<&str> {
    let is_plain = !text.is_empty() && text.len() <= MAX_PART && text.chars().all(is_safe);
    (is_plain && text.chars().any(|c| c != '.')).then_some(text)
}

fn is_safe(character: char) -> bool {
    character.is_ascii_alphanumeric() || "._+-".contains(character)
}

/// Returns parts of names for alternatives, each given as a short text and its full meaning. A short text
/// that is valid and unique is used unchanged; otherwise it is shorten and a digest of the meaning added.
pub(super) fn labels(texts: &[(String, String)]) -> Vec<String> {
    let part = |(text, meaning): &(String, String)| {
        let is_unique = texts.iter().filter(|(candidate, _)| candidate == text).count() == 1;
        match label(text) {
            Some(label) if is_unique => label.to_owned(),
            _ => shorten(text, MAX_PART - DIGITS, meaning),
        }
    };
    texts.iter().map(part).collect()
}

/// Returns the name of a variant: its dimensions and their values.
pub(super) fn variant_name<'a>(parts: impl Iterator<Item = (&'a str, &'a str)>) -> String {
    let parts: Vec<String> =
        parts.map(|(dimension, value)| format!("{dimension}={value}")).collect();
    let name = parts.join(",");
    if name.len() <= MAX_NAME {
        name
    } else {
        format!("{}~{}", &name[..MAX_NAME - DIGITS], digest(&name))
    }
}

fn shorten(text: &str, length: usize, meaning: &str) -> String {
    let safe = |c: char| if is_safe(c) { c } else { '_' };
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
    fn labels_are_readable_and_unique() {
        let texts = ["gfx90a", "-O3", "a/b", "a b", "", "..", "x_y", "x_y", &"l".repeat(40)];
        let all =
            texts.iter().zip(0..).map(|(text, number)| (text.to_string(), number.to_string()));
        let labels = labels(&all.collect::<Vec<_>>());
        assert_eq!(labels[..2], ["gfx90a", "-O3"]);
        assert!(labels[2].starts_with("a_b~") && labels[6].starts_with("x_y~"), "{labels:?}");
        for (number, label) in labels.iter().enumerate() {
            assert!(!labels[..number].contains(label), "duplicate {label}");
            assert!(label.chars().all(|c| is_safe(c) || c == '~'), "{label}");
        }
    }

    #[test]
    fn long_names_are_shortened_and_stay_unique() {
        let long = |last: &str| {
            let values: Vec<String> = (0..30).map(|number| format!("value{number}")).collect();
            variant_name(
                values.iter().map(|value| ("dimension", value.as_str())).chain([("last", last)]),
            )
        };
        assert!(long("a").len() <= 255 && long("a") != long("b"));
        assert_eq!(
            variant_name([("seed", "1"), ("size", "small")].into_iter()),
            "seed=1,size=small"
        );
    }
}
