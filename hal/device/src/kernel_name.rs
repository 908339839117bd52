//! Mangled and demangled kernel names.

use cpp_demangle::{DemangleOptions, Symbol};
use std::borrow::Cow;

/// Demangles the name of a kernel, for example to `void scale<float>(float*, int)`. Names that are not
/// mangled stay as they are.
pub fn demangled_kernel(kernel: &str) -> Cow<'_, str> {
    // Names of C functions could be parsed as mangled types.
    if !kernel.starts_with("_Z") {
        return Cow::Borrowed(kernel);
    }
    let symbol = Symbol::new(kernel).ok();
    let text = symbol.and_then(|symbol| symbol.demangle_with_options(&DemangleOptions::new()).ok());
    text.map_or(Cow::Borrowed(kernel), Cow::Owned)
}

/// Returns `true` if `name` denotes the kernel: its symbol name, or its demangled name with or without
/// parameter and return types.
pub fn kernel_is_called(kernel: &str, name: &str) -> bool {
    if kernel == name {
        return true;
    }
    let whole = demangled_kernel(kernel);
    if whole == kernel {
        return false;
    }
    let function = function(&whole);
    whole == name
        || function == name
        || function
            .rsplit_once(' ')
            .is_some_and(|(_, without_return_type)| without_return_type == name)
}

/// Returns `true` if `pattern` denotes the kernel, as in [`kernel_is_called`], or matches one of its names.
/// In a pattern, `*` matches any characters and `?` matches one character. A `*` after a type inside angle
/// brackets or parentheses, as in `scale<float*>`, is part of the C++ name and matches only itself.
pub fn kernel_matches(kernel: &str, pattern: &str) -> bool {
    if kernel_is_called(kernel, pattern) {
        return true;
    }
    let pattern = parse(pattern);
    if pattern.iter().all(|part| matches!(part, Part::Character(_))) {
        return false;
    }
    let whole = demangled_kernel(kernel);
    let function = function(&whole);
    let plain = function.rsplit_once(' ').map_or(function, |(_, plain)| plain);
    let is_match = |name: &str| fits(&pattern, &name.chars().collect::<Vec<_>>());
    [kernel, &whole, function, plain].into_iter().any(is_match)
}

/// Returns the indices of the kernels that `pattern` denotes or matches. If it is the symbol name of a
/// kernel, this kernel is the only one.
pub fn matching_kernels<'a>(
    kernels: impl Iterator<Item = &'a str> + Clone,
    pattern: &str,
) -> Vec<usize> {
    if let Some(index) = kernels.clone().position(|kernel| kernel == pattern) {
        return vec![index];
    }
    kernels
        .enumerate()
        .filter(|(_, kernel)| kernel_matches(kernel, pattern))
        .map(|(i, _)| i)
        .collect()
}

/// Part of a pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Character(char),
    /// Exactly one character.
    One,
    /// Any number of characters.
    Any,
}

fn parse(pattern: &str) -> Vec<Part> {
    let (mut parts, mut depth, mut last) = (Vec::new(), 0u32, None);
    for character in pattern.chars() {
        // A pointer follows a type, another pointer, or the end of template arguments.
        let follows_type = last.is_some_and(|last: char| {
            last.is_alphanumeric() || ['_', '*', '>', '&'].contains(&last)
        });
        parts.push(match character {
            '*' if depth > 0 && follows_type => Part::Character('*'),
            '*' => Part::Any,
            '?' => Part::One,
            character => Part::Character(character),
        });
        match character {
            '<' | '(' => depth += 1,
            '>' | ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        last = Some(character);
    }
    parts
}

/// Returns `true` if a name fits a pattern. The time is at most the product of both lengths.
fn fits(pattern: &[Part], name: &[char]) -> bool {
    let (mut at, mut position) = (0, 0);
    // Where to continue if the rest does not fit: after the last `Any`, one character further.
    let mut retry: Option<(usize, usize)> = None;
    while position < name.len() {
        match pattern.get(at) {
            Some(Part::Any) => {
                retry = Some((at, position));
                at += 1;
                continue;
            }
            Some(Part::One) => {}
            Some(Part::Character(character)) if *character == name[position] => {}
            _ => match retry {
                Some((any, start)) => {
                    retry = Some((any, start + 1));
                    (at, position) = (any + 1, start + 1);
                    continue;
                }
                None => return false,
            },
        }
        at += 1;
        position += 1;
    }
    pattern[at..].iter().all(|part| *part == Part::Any)
}

/// Removes the parameters from a demangled name: everything from the parenthesis that closes last.
fn function(whole: &str) -> &str {
    let mut depth = 0u32;
    for (at, character) in whole.char_indices().rev() {
        match character {
            ')' => depth += 1,
            '(' if depth == 1 => return &whole[..at],
            '(' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    whole
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn demangled_names_denote_kernels() {
        for (kernel, whole, names) in [
            ("_Z5scalePfi", "scale(float*, int)", &["scale"][..]),
            (
                "_Z5scaleIfEvPT_i",
                "void scale<float>(float*, int)",
                &["scale<float>", "void scale<float>"],
            ),
            ("_ZN3two3addEPKdS1_", "two::add(double const*, double const*)", &["two::add"]),
        ] {
            assert_eq!(demangled_kernel(kernel), whole);
            assert!(kernel_is_called(kernel, whole) && kernel_is_called(kernel, kernel));
            assert!(names.iter().all(|name| kernel_is_called(kernel, name)), "{kernel}");
            assert!(
                !kernel_is_called(kernel, "add") && !kernel_is_called(kernel, "scal"),
                "{kernel}"
            );
        }
        // Unmangled names denote only themselves.
        for kernel in ["scale", "i", "_Z", "_Zzz", "_ZN"] {
            assert_eq!(demangled_kernel(kernel), kernel);
            assert!(kernel_is_called(kernel, kernel) && !kernel_is_called(kernel, "int"));
        }
    }

    #[test]
    fn patterns_match_symbols_and_demangled_names() {
        for (pattern, kernel, expected) in [
            ("gemm_*", "gemm_f32", true),
            ("gemm_*", "my_gemm_f32", false),
            ("*gemm*", "my_gemm_f32", true),
            ("gemm_f??", "gemm_f32", true),
            ("gemm_f?", "gemm_f32", false),
            ("*", "anything", true),
            ("a*b*c", "a_b_b_c", true),
            ("a*b*c", "a_b_b_d", false),
            ("", "a", false),
            // `scale<float>(float*, int)` and `scale<double>(double*, int)`.
            ("scale<*>", "_Z5scaleIfEvPT_i", true),
            ("scale*", "_Z5scaleIfEvPT_i", true),
            ("_Z5scale*", "_Z5scaleIfEvPT_i", true),
            ("scale<d*>", "_Z5scaleIfEvPT_i", false),
            ("scale<*>(float*, int)", "_Z5scaleIdEvPT_i", false),
            // A `*` after a type is a pointer.
            ("scale(float*, int)", "_Z5scalePfi", true),
            ("scale(float*, int)", "_Z5scalePKfi", false),
            ("scale(*)", "_Z5scalePKfi", true),
        ] {
            assert_eq!(kernel_matches(kernel, pattern), expected, "{pattern} {kernel}");
        }
        // Patterns that a recursive matcher would need exponential time for.
        let name = "a".repeat(200);
        assert!(!kernel_matches(&name, &("a*".repeat(100) + "b")));
    }

    #[test]
    fn symbol_name_selects_one_kernel() {
        let kernels = ["scale", "_Z5scalePfi", "_Z5scaleIfEvPT_i", "other"];
        let found = |pattern| matching_kernels(kernels.iter().copied(), pattern);
        assert_eq!(found("scale"), [0]);
        assert_eq!(found("scale<float>"), [2]);
        assert_eq!(found("*scale*"), [0, 1, 2]);
        assert_eq!(found("none*"), [] as [usize; 0]);
    }
}
