//! Damaged modules: parsing never panics, and errors have a position in the text.

use crate::common::{compile, source, suite};
use flipwave_depth::cases;
use flipwave_ptx::{CallGraph, ControlFlow, MAX_DEPTH, parse, resolve};

/// Parses and resolves a text. An error must lie in the text, or at its end.
fn check(text: &str) {
    let error = match parse(text) {
        Ok(module) => {
            if let Ok(code) = resolve(&module) {
                CallGraph::of(&code);
                for function in &code.functions {
                    ControlFlow::of(&code, function);
                }
            }
            return;
        }
        Err(error) => error,
    };
    let line = text.split('\n').nth(error.position.line as usize - 1);
    let line = line.unwrap_or_else(|| panic!("{error}: no such line in:\n{text}"));
    assert!(error.position.column as usize <= line.chars().count() + 1, "{error}:\n{text}");
    assert!(error.to_string().starts_with("line "), "{error}");
}

#[test]
fn truncated_modules_are_refused_without_panic() {
    let text = compile(&suite("lud"), &["-O2", "-g"]);
    let text = text.get(..20_000).unwrap_or(&text);
    for end in cases(0..text.len(), 3) {
        check(&text[..end]);
    }
    assert!(parse(&text[..text.len() - 5]).is_err());
}

#[test]
fn mutated_modules_do_not_panic() {
    let text = compile(&source("forms.cu"), &["-O1", "-g"]);
    let bytes = text.as_bytes();
    // A linear congruential generator: the same mutations in every run.
    let mut state = 1u64;
    let mut next = |below: usize| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    let symbols = b"{}[]()<>,;:.@!|+-*/%\"\\0123456789abcfdxU_$ \n\0";
    for _ in cases(0..4000, 4) {
        let mut changed = bytes.to_vec();
        for _ in 0..=next(3) {
            let at = next(changed.len());
            match next(4) {
                0 => changed[at] ^= 1 << next(8),
                1 => changed[at] = symbols[next(symbols.len())],
                2 => drop(changed.drain(at..(at + 1 + next(30)).min(changed.len()))),
                _ => {
                    let end = (at + 1 + next(60)).min(changed.len());
                    let part = changed[at..end].to_vec();
                    let to = next(changed.len());
                    changed.splice(to..to, part);
                }
            }
        }
        check(&String::from_utf8_lossy(&changed));
    }
}

#[test]
fn deep_nesting_is_refused() {
    for (open, close) in [("{", "}"), ("add.s32 r, ((", "))"), ("mov.b32 {", "};")] {
        let body = format!("{}{}", open.repeat(100_000), close.repeat(100_000));
        let text = format!(".version 8.0\n.entry k() {{ {body} }}");
        let error = parse(&text).expect_err("too deep");
        assert!(error.to_string().contains("expected") || error.to_string().contains("levels"));
    }
    let deep = |count: usize| {
        let text =
            format!(".version 8.0\n.entry k()\n{{{}{}}}", "{".repeat(count), "}".repeat(count));
        parse(&text).map(drop).map_err(|error| error.to_string())
    };
    assert_eq!(deep(MAX_DEPTH - 1), Ok(()));
    assert!(deep(MAX_DEPTH).is_err_and(|error| error.contains("more than 64 levels")));
    let signs = format!(".version 8.0\n.global .u32 a = {}1;", "-".repeat(100_000));
    assert!(parse(&signs).is_err());
    let sum = format!(".version 8.0\n.global .u32 a = 1{};", "+1".repeat(100_000));
    assert!(parse(&sum).is_err());
}

#[test]
fn errors_name_the_place_and_the_expected_token() {
    let error = |text: &str| parse(text).expect_err("invalid").to_string();
    assert_eq!(
        error(""),
        "line 1, column 1: a module begins with `.version`, found the end of the text"
    );
    assert_eq!(
        error(".version 8.0\n.visible .entry k(\n    .param .u33 a\n)\n{}"),
        "line 3, column 12: unknown type `.u33`; expected a type like .b32, .u64, .f32 or .pred"
    );
    assert_eq!(
        error(".version 8.0\n.entry k()\n{\n    add.s32 %r1, %r2 %r3;\n}"),
        "line 4, column 22: expected `;`, found `%r3`"
    );
    assert_eq!(
        error(".version 8.0\n.global .u64 a = 0x1ffffffffffffffff;"),
        "line 2, column 18: invalid number `0x1ffffffffffffffff`; expected an integer of at most 64 \
         bits, 0f and 8 or 0d and 16 hexadecimal digits, or a decimal floating-point number"
    );
}
