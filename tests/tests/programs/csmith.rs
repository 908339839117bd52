//! Random C programs by `csmith` (X. Yang et al., "Finding and Understanding Bugs in C Compilers", PLDI
//! 2011), rewritten so that every lane has separate global variables and start values.

use regex_lite::{Captures, Regex};
use std::process::Command;
use std::sync::LazyLock;

/// Options for small programs that need neither a C library nor an x86 processor.
const OPTIONS: [&str; 22] = [
    "--no-argc",
    "--no-hash-value-printf",
    "--concise",
    "--builtins",
    "--disable-builtin-kinds",
    "x86",
    "--max-funcs",
    "5",
    "--max-block-depth",
    "3",
    "--max-block-size",
    "4",
    "--max-expr-complexity",
    "6",
    "--max-array-len-per-dim",
    "6",
    "--max-array-dim",
    "2",
    "--max-pointer-depth",
    "3",
    "--max-struct-fields",
    "6",
];

/// Location of a program's global variables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Globals {
    /// Variables of the code object, as csmith writes them, for one lane only.
    OfModule,
    /// Private memory of each lane.
    Private,
    /// Global memory, separate for each lane.
    InMemory,
    /// LDS, separate for each lane, if they fit; otherwise private memory.
    InLds,
}

impl Globals {
    /// All locations.
    pub const ALL: [Globals; 4] =
        [Globals::OfModule, Globals::Private, Globals::InMemory, Globals::InLds];

    /// Number of lanes that run a program.
    pub fn lanes(self) -> u32 {
        if self == Globals::OfModule { 1 } else { 64 }
    }

    /// Number of lanes in a workgroup, which is smaller if they share its LDS.
    pub fn workgroup(self) -> u32 {
        if self == Globals::InLds { 16 } else { self.lanes() }
    }

    /// Compiler option that selects the location in `csmith_entry.h`.
    pub fn definition(self) -> &'static str {
        match self {
            Globals::OfModule => "-DGLOBALS_OF_MODULE",
            Globals::Private => "-DGLOBALS_PRIVATE",
            Globals::InMemory => "-DGLOBALS_IN_MEMORY",
            Globals::InLds => "-DGLOBALS_IN_LDS",
        }
    }
}

/// The C program of a seed, for `csmith.h` and `csmith_entry.h`.
pub fn program(seed: u32, globals: Globals) -> String {
    let output = Command::new("csmith")
        .args(["--seed", &seed.to_string()])
        .args(OPTIONS)
        .output()
        .expect("csmith (Debian's package csmith) is needed by these tests");
    assert!(output.status.success(), "csmith fails for seed {seed}");
    let text = String::from_utf8(output.stdout).expect("a text");
    match globals {
        Globals::OfModule => one_lane(&text),
        Globals::Private | Globals::InMemory | Globals::InLds => many_lanes(&text),
    }
}

const RUN: &str = "static int run(struct globals *globals, struct report *report)";

fn one_lane(text: &str) -> String {
    let text = text.replace("int main (void)", RUN);
    format!("struct globals {{ char none; }};\n{text}\n#include \"csmith_entry.h\"\n")
}

macro_rules! pattern {
    ($name:ident = $pattern:expr) => {
        static $name: LazyLock<Regex> =
            LazyLock::new(|| Regex::new($pattern).expect("a regular expression"));
    };
}

// `static const int16_t *g_12[3][1] = {{&g_7},{&g_7},{&g_8}};/* VOLATILE GLOBAL g_12 */`
pattern!(GLOBAL = r"^static (.*\W)(g_\d+)((?:\[\d+\])*) = (.*);(?:/\*.*\*/)?$");
// `    const int16_t l_3 = (-1L);`
pattern!(LOCAL = r"^(\s+(?:const )?u?int\d+_t l_\d+ = )(.*);$");
pattern!(INTEGER_TYPE = r"^(?:const |volatile )*u?int\d+_t $");
pattern!(LITERAL = r"^\(?-?(?:0x)?[0-9A-F]+U?L*\)?$");
pattern!(NAME = r"\bg_\d+");
pattern!(FUNCTION = r"\b(func_\d+)\((\)|void\))?");

/// Moves the global variables to `struct globals`, which every function receives by pointer, and gives
/// scalars start values that differ between lanes.
fn many_lanes(text: &str) -> String {
    let with_globals = |text: &str| NAME.replace_all(text, "globals->$0").into_owned();
    let (mut members, mut values, mut rest) = (String::new(), String::new(), String::new());
    let mut globals_are_defined = false;
    for line in text.lines() {
        if let Some(found) = GLOBAL.captures(line) {
            let (base, name, extent, value) = (&found[1], &found[2], &found[3], &found[4]);
            members += &format!("    {base}{name}{extent};\n");
            let varies = INTEGER_TYPE.is_match(base) && extent.is_empty();
            values += &format!("    {},\n", varied(&with_globals(value), varies));
            continue;
        }
        let head = line.starts_with("static ") && FUNCTION.is_match(line);
        if head && !globals_are_defined {
            rest += &format!("struct globals {{\n{members}    char last;\n}};\n");
            globals_are_defined = true;
        }
        let argument = if head { "struct globals *globals" } else { "globals" };
        let line = FUNCTION.replace_all(line, |call: &Captures<'_>| match call.get(2) {
            Some(_) => format!("{}({argument})", &call[1]),
            None => format!("{}({argument}, ", &call[1]),
        });
        let line = match LOCAL.captures(&line) {
            Some(found) => format!("{}{};", &found[1], varied(&with_globals(&found[2]), true)),
            None => with_globals(&line),
        };
        rest += &line;
        rest.push('\n');
    }
    let start = format!(
        "{RUN}\n{{\n    struct globals initial = {{\n{values}    0\n    }};\n    \
         __builtin_memcpy(globals, &initial, sizeof initial);"
    );
    let text = rest.replace("int main (void)\n{", &start);
    format!("{text}\n#include \"csmith_entry.h\"\n")
}

fn varied(value: &str, varies: bool) -> String {
    if varies && LITERAL.is_match(value) { format!("VARY({value})") } else { value.to_owned() }
}
