//! Names of kernels, as code objects have them and as people write them.

use cpp_demangle::{DemangleOptions, Symbol};
use std::borrow::Cow;

/// What a kernel is called in the source: `void scale<float>(float*, int)` of a mangled name, other names
/// as they are.
pub fn demangled_kernel(kernel: &str) -> Cow<'_, str> {
    // Names of C functions can be read as mangled types.
    if !kernel.starts_with("_Z") {
        return Cow::Borrowed(kernel);
    }
    let symbol = Symbol::new(kernel).ok();
    let text = symbol.and_then(|symbol| symbol.demangle_with_options(&DemangleOptions::new()).ok());
    text.map_or(Cow::Borrowed(kernel), Cow::Owned)
}

/// Whether a kernel is meant by a name: its own, or of a mangled name what it is in the source, with or
/// without types of parameters and of what it returns.
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
        || function.rsplit_once(' ').is_some_and(|(_, own)| own == name)
}

/// A demangled name without parameters: what is before the parenthesis that closes last.
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
    fn kernels_are_called_by_their_names_in_the_source() {
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
        // Names that are not mangled mean themselves alone.
        for kernel in ["scale", "i", "_Z", "_Zzz", "_ZN"] {
            assert_eq!(demangled_kernel(kernel), kernel);
            assert!(kernel_is_called(kernel, kernel) && !kernel_is_called(kernel, "int"));
        }
    }
}
