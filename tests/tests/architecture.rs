//! What docs/architecture.md says of the code, and how the files of a crate use each other.

use petgraph::algo::tarjan_scc;
use petgraph::graph::DiGraph;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Files of a crate that may use each other in a circle.
const MOST_IN_A_CIRCLE: usize = 4;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository")
}

/// The crates of the workspace, by folder.
fn crates() -> Vec<PathBuf> {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("the workspace");
    let members = manifest.split_once("members = [").and_then(|(_, rest)| rest.split_once(']'));
    let (members, _) = members.expect("members");
    let names = members.split(',').map(|name| name.trim().trim_matches('"'));
    names.filter(|name| !name.is_empty()).map(|name| root().join(name)).collect()
}

/// The product files of a crate by module, `layout::emit` for example: tests are left out.
fn modules(source: &Path) -> BTreeMap<Vec<String>, String> {
    let mut modules = BTreeMap::new();
    let mut folders = vec![source.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(&folder).into_iter().flatten() {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let within = path.strip_prefix(source).expect("a file of the crate").with_extension("");
            let mut module: Vec<String> =
                within.iter().map(|part| part.to_string_lossy().into_owned()).collect();
            let is_test = module.iter().any(|part| part.contains("test"));
            if is_test || path.extension().is_none_or(|extension| extension != "rs") {
                continue;
            }
            module.pop_if(|last| last == "mod" || last == "lib" || last == "main");
            modules.insert(module, std::fs::read_to_string(&path).expect("a source file"));
        }
    }
    modules
}

/// The text without comments and without a test module at its end.
fn product(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

/// The paths that a tree of imports names, `a::{b, c::{d, e}}` for example.
fn paths(prefix: &[String], tree: &str, found: &mut Vec<Vec<String>>) {
    let (head, rest) = tree.split_once('{').map_or((tree, None), |(head, rest)| (head, Some(rest)));
    let name = head.split(" as ").next().unwrap_or_default();
    let parts = name.split("::").map(str::trim).filter(|part| !part.is_empty());
    let own: Vec<String> = prefix.iter().cloned().chain(parts.map(str::to_owned)).collect();
    let Some(rest) = rest else { return found.push(own) };
    let rest = rest.rsplit_once('}').map_or(rest, |(inner, _)| inner);
    let (mut depth, mut start) = (0, 0);
    for (at, character) in rest.char_indices() {
        match character {
            '{' => depth += 1,
            '}' => depth -= 1,
            ',' if depth == 0 => {
                paths(&own, &rest[start..at], found);
                start = at + 1;
            }
            _ => {}
        }
    }
    if !rest[start..].trim().is_empty() {
        paths(&own, &rest[start..], found);
    }
}

/// The modules of its own crate that a module's text names, in imports and elsewhere.
fn named(module: &[String], text: &str) -> Vec<Vec<String>> {
    let mut trees: Vec<String> = Vec::new();
    for statement in text.split("use ").skip(1) {
        let tree = statement.split(';').next().unwrap_or_default();
        if ["crate::", "super::", "self::"].iter().any(|root| tree.starts_with(root)) {
            trees.push(tree.to_owned());
        }
    }
    for root in ["crate::", "super::"] {
        let is_part = |character: char| character.is_alphanumeric() || "_:".contains(character);
        trees.extend(text.match_indices(root).map(|(at, _)| {
            let rest = &text[at..];
            rest[..rest.find(|own| !is_part(own)).unwrap_or(rest.len())].to_owned()
        }));
    }
    let mut found = Vec::new();
    trees.iter().for_each(|tree| paths(&[], tree, &mut found));
    let absolute = |path: Vec<String>| {
        let mut from = module.to_vec();
        let mut rest = &path[..];
        while let [first, others @ ..] = rest {
            match first.as_str() {
                "crate" => from.clear(),
                "super" => drop(from.pop()),
                "self" => {}
                _ => break,
            }
            rest = others;
        }
        from.extend_from_slice(rest);
        from
    };
    found.into_iter().map(absolute).collect()
}

/// The circles of modules that use each other, longest first. That a folder's module names its
/// own files is no use of them.
fn circles(modules: &BTreeMap<Vec<String>, String>) -> Vec<Vec<String>> {
    let mut graph = DiGraph::new();
    let nodes: BTreeMap<_, _> = modules.keys().map(|own| (own, graph.add_node(own))).collect();
    for (module, text) in modules {
        for mut path in named(module, &product(text)) {
            while !path.is_empty() && !modules.contains_key(&path) {
                path.pop();
            }
            if !path.is_empty() && !module.starts_with(&path) {
                graph.update_edge(nodes[module], nodes[&path], ());
            }
        }
    }
    let parts = tarjan_scc(&graph).into_iter().filter(|part| part.len() > 1);
    let mut circles: Vec<Vec<String>> =
        parts.map(|part| part.into_iter().map(|node| graph[node].join("::")).collect()).collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles
}

#[test]
fn no_more_than_four_files_of_a_crate_use_each_other_in_a_circle() {
    for folder in crates() {
        for circle in circles(&modules(&folder.join("src"))) {
            assert!(circle.len() <= MOST_IN_A_CIRCLE, "{}: {circle:?}", folder.display());
        }
    }
}

/// A search that finds no circle anywhere would prove nothing.
#[test]
fn a_circle_is_found_through_imports_and_through_paths() {
    let file = |name: &str, text: &str| (vec![name.to_owned()], text.to_owned());
    let all = [
        file("a", "use crate::{\n    b::{self, Two},\n    f,\n};"),
        file("b", "fn two() -> crate::c::Three { todo!() }"),
        file("c", "use super::d::Four as Other;"),
        file("d", "use crate::e;"),
        file("e", "use crate::a::One;"),
        file("f", "// use crate::a;\n#[cfg(test)]\nmod tests { use crate::a; }"),
    ];
    let mut circle = circles(&BTreeMap::from(all)).pop().expect("a circle");
    circle.sort();
    assert_eq!(circle, ["a", "b", "c", "d", "e"]);
}

/// Whoever follows the page must find the file. A name is below the folder that the page named last,
/// or below one around that.
#[test]
fn every_file_that_the_page_on_architecture_names_is_there() {
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).expect("the page");
    let mut around = root();
    let mut seen = 0;
    for line in page.lines() {
        for name in line.split('`').skip(1).step_by(2).filter(|name| !name.contains(' ')) {
            let is_path = [".rs", ".md", ".cpp", "/"].iter().any(|end| name.ends_with(end));
            let folders = around.ancestors().take_while(|folder| folder.starts_with(root()));
            let mut paths =
                folders.flat_map(|folder| [folder.join(name), folder.join("src").join(name)]);
            match paths.find(|path| path.exists()) {
                Some(path) => {
                    seen += usize::from(is_path);
                    around = path;
                }
                None => assert!(!is_path, "docs/architecture.md names `{name}` in: {line}"),
            }
        }
    }
    assert!(seen > 40, "{seen} files found");
}

/// Crates whose idea is to open files, and those that users do not run.
const OPENERS: [&str; 4] = ["host", "tests", "tests/depth", "fuzz"];

/// Ways to open a file of which nobody knows what it is: a FIFO waits for ever, a device never ends.
const OPENING: [&str; 7] = [
    "File::open(",
    "File::options(",
    "OpenOptions::new(",
    "fs::read(",
    "fs::read_to_string(",
    "fs::copy(",
    "Reader::from_path(",
];

/// Files in which something else is opened than what users, or strangers, have written.
const OTHERS: [(&str, &str); 3] = [
    ("hal/kfd/src/ioctl/share.rs", "a file of another process, found by its number"),
    ("campaigns/src/doctor.rs", "the driver, to see whether it is there"),
    ("campaigns/src/application/scratch.rs", "copies what a walk found to be regular files"),
];

/// The lines of a file that open something by themselves.
fn openings(text: &str) -> Vec<String> {
    // Memory of a file, which opens it through `flipwave_host::input`.
    let text = product(text).replace("MappedFile::open(", "");
    // The system's own files, and new ones.
    let is_known = |line: &str| {
        ["\"/proc", "\"/sys", "\"/dev/urandom", "create_new(true)"]
            .iter()
            .any(|own| line.contains(own))
    };
    let opens = |line: &&str| OPENING.iter().any(|own| line.contains(own)) && !is_known(line);
    text.lines().filter(opens).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn files_are_opened_in_one_place() {
    let own = root();
    let others: Vec<PathBuf> = OPENERS.iter().map(|name| own.join(name)).collect();
    let mut seen = 0;
    for folder in crates().into_iter().filter(|folder| !others.contains(folder)) {
        for (module, text) in modules(&folder.join("src")) {
            let file = folder.join("src").join(module.join("/")).with_extension("rs");
            let is_other = OTHERS.iter().any(|(name, _)| file == own.join(name));
            let openings = if is_other { Vec::new() } else { openings(&text) };
            assert!(
                openings.is_empty(),
                "{} opens files by itself: {openings:#?}; `flipwave_host::input` and `flipwave_host::output` do",
                file.display()
            );
            seen += 1;
        }
    }
    assert!(seen > 500, "{seen} files looked at");
}

#[test]
fn a_file_that_is_opened_somewhere_else_is_found() {
    let text = "fn f() {\n    let a = std::fs::read(path)?;\n    let b = File::open(\"/proc/self/maps\")?;\n    \
                let c = File::options().read(true).open(path); // fs::read(d)\n}\n\
                #[cfg(test)]\nmod tests { fs::read(e) }";
    let found = openings(text);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("fs::read(path)") && found[1].contains("File::options()"));
}
