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
}
