//! Checks docs/architecture.md against the code, and the dependencies between the files of a crate.

mod modules;

use modules::{cycles, texts};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Maximum number of files in a dependency cycle.
const MAX_CYCLE_FILES: usize = 4;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository")
}

/// Folders of the workspace's crates.
fn crates() -> Vec<PathBuf> {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).expect("the workspace");
    let members = manifest.split_once("members = [").and_then(|(_, rest)| rest.split_once(']'));
    let (members, _) = members.expect("members");
    let names = members.split(',').map(|name| name.trim().trim_matches('"'));
    names.filter(|name| !name.is_empty()).map(|name| root().join(name)).collect()
}

/// A file's text without comments and without a test module at the end.
fn product(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let lines = text.lines().map(|line| line.split("//").next().unwrap_or_default());
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn dependency_cycles_have_at_most_four_files() {
    let mut found = Vec::new();
    for folder in crates() {
        let large = cycles(&texts(&folder.join("src"))).into_iter();
        let large = large.filter(|cycle| cycle.files.len() > MAX_CYCLE_FILES);
        found.extend(large.map(|cycle| {
            let uses = cycle.uses.join("\n    ");
            format!("{}: {:?}\n    {uses}", folder.display(), cycle.files)
        }));
    }
    assert!(found.is_empty(), "cycles of more than {MAX_CYCLE_FILES} files:\n{}", found.join("\n"));
}

/// Crates of AMD's instruction set.
const AMDGPU: [&str; 8] =
    ["isa", "codeobj", "sim", "kfd", "rocr", "hooks", "tools", "injector-amdgpu"];

/// The first crate of AMD's instruction set that a text names, with `-` or `_` between words.
fn amdgpu_crate(text: &str) -> Option<&'static str> {
    let names = |name: &&str| {
        [format!("flipwave-{name}"), format!("flipwave_{}", name.replace('-', "_"))].iter().any(
            |name| {
                text.match_indices(name.as_str()).any(|(at, _)| {
                    let after = text[at + name.len()..].chars().next();
                    after
                        .is_none_or(|after| !after.is_ascii_alphanumeric() && !"-_".contains(after))
                })
            },
        )
    };
    AMDGPU.iter().copied().find(|name| names(name))
}

/// Fault injection, analysis, and what campaigns do after their program is loaded work for every
/// instruction set.
#[test]
fn faults_campaigns_and_analysis_know_no_instruction_set() {
    for folder in ["injector/core", "analysis", "hal/arch", "hal/ptx", "hal/ptx-sim"] {
        let manifest = std::fs::read_to_string(root().join(folder).join("Cargo.toml"));
        let manifest = manifest.expect("a manifest");
        let product = manifest.split("[dev-dependencies]").next().unwrap_or_default();
        assert_eq!(amdgpu_crate(product), None, "{folder}");
    }
    let texts = texts(&root().join("campaigns/src"));
    let neutral = ["outputs", "results", "run", "sample", "severity", "shards", "vary"];
    // Runners that insert hooks, and whether `shards` compiles kernels once for all.
    let others = ["run::runners::hooked", "shards::code"];
    let mut seen = 0;
    for (module, text) in &texts {
        let is_neutral = module.first().is_some_and(|first| neutral.contains(&first.as_str()));
        if is_neutral && !others.contains(&module.join("::").as_str()) {
            assert_eq!(amdgpu_crate(&product(text)), None, "campaigns: {}", module.join("::"));
            seen += 1;
        }
    }
    assert!(seen > 40, "{seen} modules");
    // Negative control: AMD's platform is found.
    let platform = &texts[&["platform", "amdgpu"].map(str::to_owned).to_vec()];
    assert_eq!(amdgpu_crate(&product(platform)), Some("isa"));
}

/// The compiler ignores files that no `mod` item names.
#[test]
fn every_source_file_belongs_to_a_module() {
    for folder in crates() {
        let texts = texts(&folder.join("src"));
        for module in texts.keys() {
            let Some((name, parent)) = module.split_last() else { continue };
            let declares = |line: &str| {
                let declared = line.trim_end_matches(';').rsplit(' ').next();
                line.trim_start().contains("mod ") && declared == Some(name)
            };
            let declared = texts.get(parent).is_some_and(|text| text.lines().any(declares));
            assert!(declared, "{}: {} belongs to no module", folder.display(), module.join("::"));
        }
    }
}

/// Negative control: known cycles are found.
#[test]
fn cycles_through_imports_paths_macros_and_re_exports_are_found() {
    let files = [
        ("", "mod a; mod b; mod c; mod d; mod e; mod f; pub use f::Six;"),
        ("a", "use crate::{\n    b::{self, Two},\n    Six,\n};"),
        ("b", "fn two() -> crate::c::Three { todo!() }"),
        ("c", "mod inner; pub use inner::Three;"),
        ("c::inner", "use super::super::d::{Four as Other, five}; pub struct Three;"),
        ("d", "pub use crate::e::*; pub struct Four;"),
        ("e", "pub fn five() { format!(\"{}\", crate::a::ONE) }"),
        ("f", "// use crate::a;\npub struct Six;\n#[cfg(test)]\nmod tests { use crate::a; }"),
    ];
    // Definitions of the items that the files above use.
    let more = [("a", "pub const ONE: u8 = 1;"), ("b", "pub struct Two;")];
    let text = |name: &str, text: &str| {
        let more = more.iter().filter(|(module, _)| *module == name).map(|(_, text)| *text);
        [text].into_iter().chain(more).collect::<Vec<_>>().join("\n")
    };
    let module = |name: &str| -> Vec<String> {
        name.split("::").filter(|part| !part.is_empty()).map(str::to_owned).collect()
    };
    let texts = files.map(|(name, content)| (module(name), text(name, content)));
    let cycles = cycles(&BTreeMap::from(texts));
    let [cycle] = &cycles[..] else { panic!("one cycle: {cycles:?}") };
    assert_eq!(cycle.files, ["a", "b", "c::inner", "e"]);
    assert_eq!(cycle.uses, ["a -> b", "b -> c::inner", "c::inner -> e", "e -> a"]);
}

#[test]
fn cycles_through_items_of_a_parent_are_found() {
    let files = [
        (vec![], "mod checker;"),
        (vec!["checker"], "mod state; mod step; pub struct Error; fn f() { step::run(); }"),
        (vec!["checker", "state"], "use super::Error; pub struct State(Error);"),
        (vec!["checker", "step"], "use super::state::State; pub fn run() { let _: State; }"),
    ];
    let texts = files
        .map(|(module, text)| (module.into_iter().map(str::to_owned).collect(), text.to_owned()));
    let cycles = cycles(&BTreeMap::from(texts));
    let files: Vec<_> = cycles.iter().map(|cycle| &cycle.files[..]).collect();
    assert_eq!(files, [["checker", "checker::state", "checker::step"]]);
}

/// Every file named on the page exists. A name is relative to the folder that the page named last, or to a
/// parent of that folder.
#[test]
fn files_named_in_architecture_page_exist() {
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

/// Crates that may open files: the crate for opening files, and crates that users do not run.
const OPENERS: [&str; 4] = ["host", "tests", "tests/depth", "fuzz"];

/// Calls that open a file without checking its type: a FIFO blocks, and a device is endless.
const OPENING: [&str; 7] = [
    "File::open(",
    "File::options(",
    "OpenOptions::new(",
    "fs::read(",
    "fs::read_to_string(",
    "fs::copy(",
    "Reader::from_path(",
];

/// Files that only open files not written by users.
const OTHERS: [(&str, &str); 3] = [
    ("hal/kfd/src/ioctl/ipc.rs", "a file of another process, found by its number"),
    ("campaigns/src/commands/doctor.rs", "the driver, to see whether it is there"),
    ("campaigns/src/application/scratch.rs", "copies what a walk found to be regular files"),
];

/// Lines of a file with calls that open files directly.
fn openings(text: &str) -> Vec<String> {
    // `MappedFile` opens files through `flipwave_host::input`.
    let text = product(text).replace("MappedFile::open(", "");
    // System files and new files.
    let is_known = |line: &str| {
        ["\"/proc", "\"/sys", "\"/dev/urandom", "create_new(true)"]
            .iter()
            .any(|known| line.contains(known))
    };
    let opens =
        |line: &&str| OPENING.iter().any(|opening| line.contains(opening)) && !is_known(line);
    text.lines().filter(opens).map(|line| line.trim().to_owned()).collect()
}

#[test]
fn files_are_opened_only_by_the_host_crate() {
    let root = root();
    let openers: Vec<PathBuf> = OPENERS.iter().map(|name| root.join(name)).collect();
    let mut seen = 0;
    for folder in crates().into_iter().filter(|folder| !openers.contains(folder)) {
        for (module, text) in texts(&folder.join("src")) {
            let file = folder.join("src").join(module.join("/")).with_extension("rs");
            let is_other = OTHERS.iter().any(|(name, _)| file == root.join(name));
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
fn direct_file_opening_is_detected() {
    let text = "fn f() {\n    let a = std::fs::read(path)?;\n    let b = File::open(\"/proc/self/maps\")?;\n    \
                let c = File::options().read(true).open(path); // fs::read(d)\n}\n\
                #[cfg(test)]\nmod tests { fs::read(e) }";
    let found = openings(text);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found[0].contains("fs::read(path)") && found[1].contains("File::options()"));
}
