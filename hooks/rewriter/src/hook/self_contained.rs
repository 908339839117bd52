//! Sources without dependencies on other files or on the time.

/// Substrings of all directives, operators and macros through which a source depends on other files or on
/// the time.
const DEPENDENCIES: [&str; 5] = ["include", "import", "embed", "__DATE__", "__TIME"];

/// Returns `true` if the output of a compiler for a source in C or a related language, with options that name
/// no files, depends only on the text. Returns `false` in case of doubt.
pub fn is_self_contained(text: &str) -> bool {
    // A backslash or the trigraph `??/` continues a word in the next line.
    !text.contains("??/")
        && !has_continued_word(text)
        && !DEPENDENCIES.iter().any(|word| text.contains(word))
}

/// Returns `true` if a line ends with a backslash after a letter or an underscore. Spaces may follow the
/// backslash (GCC manual, "Initial processing").
fn has_continued_word(text: &str) -> bool {
    text.lines().any(|line| {
        line.trim_end()
            .strip_suffix('\\')
            .is_some_and(|rest| rest.ends_with(|last: char| last.is_alphanumeric() || last == '_'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn source_without_dependencies_is_self_contained() {
        assert!(is_self_contained(""));
        assert!(is_self_contained("#define A \\\n 1\nkernel void f(global int *a) { *a = A; }\n"));
    }

    #[test]
    fn source_with_includes_or_time_macros_is_not_self_contained() {
        for text in [
            "#include \"a.h\"",
            "#  include_next <a.h>",
            "%:include \"a.h\"",
            "#inclu\\\nde \"a.h\"",
            "#inclu\\ \r\nde \"a.h\"",
            "#inclu??/\nde \"a.h\"",
            "#import \"a.h\"",
            "#if __has_include(\"a.h\")\n#endif",
            "char a[] = {\n#embed \"a.bin\"\n};",
            "#pragma clang module import a",
            "const char *at = __TIMESTAMP__;",
            "const char *at = __TIME__;",
            "const char *at = __DATE__;",
        ] {
            assert!(!is_self_contained(text), "{text}");
        }
    }
}
