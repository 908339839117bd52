//! Sources that are what their text says.

/// Parts of all directives, operators and macros by which a source depends on more than its text,
/// its options and its compiler: on other files, or on the time.
const OUTWARD: [&str; 5] = ["include", "import", "embed", "__DATE__", "__TIME"];

/// Whether the text of a source in C or a relative of it, with options that name no files, decides
/// what a compiler makes of it. Where in doubt, it does not.
pub fn stands_alone(text: &str) -> bool {
    // A word may go on in the next line, after a backslash or, where the language still has
    // trigraphs, after `??/`.
    !text.contains("??/")
        && !continues_in_a_word(text)
        && !OUTWARD.iter().any(|word| text.contains(word))
}

/// Whether a line ends with a backslash that a letter or an underscore precedes. Blanks may follow
/// the backslash (GCC manual, "Initial processing").
fn continues_in_a_word(text: &str) -> bool {
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
    fn what_names_nothing_else_stands_alone() {
        assert!(stands_alone(""));
        assert!(stands_alone("#define A \\\n 1\nkernel void f(global int *a) { *a = A; }\n"));
    }

    #[test]
    fn what_may_depend_on_other_files_or_on_the_time_does_not_stand_alone() {
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
            assert!(!stands_alone(text), "{text}");
        }
    }
}
