//! Dependencies between the files of a crate: a file depends on the files whose items it uses.
//!
//! Names are resolved to the file that defines them, through imports, re-exports and globs. A use of an item
//! that a `mod.rs` re-exports is therefore a use of the item's file, and a use of an item that a `mod.rs`
//! defines is a use of that `mod.rs`. A re-export is not a use.

use petgraph::graph::NodeIndex;
use petgraph::visit::EdgeRef;
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use syn::visit::{self, Visit};
use syn::{Item, UseTree, Visibility};

/// First names of paths that are relative to a module of this crate.
const ROOTS: [&str; 3] = ["crate", "super", "self"];

/// The path of a module within its crate, `["layout", "emit"]` for example.
pub type ModulePath = Vec<String>;

/// Product code of a crate: text of each file by module, without files and folders that have `test` in
/// their names.
pub fn texts(source: &Path) -> BTreeMap<ModulePath, String> {
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
            let mut module: ModulePath =
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

/// A dependency cycle between files.
#[derive(Debug, PartialEq, Eq)]
pub struct Cycle {
    pub files: Vec<String>,
    /// Dependencies of the cycle, `user -> used`.
    pub uses: Vec<String>,
}

/// Dependency cycles between files, largest first.
///
/// # Panics
/// Panics on files that are not Rust.
pub fn cycles(texts: &BTreeMap<ModulePath, String>) -> Vec<Cycle> {
    let modules: Modules = texts
        .iter()
        .map(|(path, text)| {
            let file = syn::parse_file(text)
                .unwrap_or_else(|error| panic!("{}: {error}", path.join("::")));
            let mut module = Module { path: path.clone(), ..Module::default() };
            module.visit_file(&file);
            (path.clone(), module)
        })
        .collect();
    let mut graph = petgraph::graph::DiGraph::new();
    let nodes: BTreeMap<_, _> = modules.keys().map(|path| (path, graph.add_node(path))).collect();
    for (path, module) in &modules {
        for used in &module.uses {
            if let Some(target) = definition(&modules, &module.absolute(used), &mut BTreeSet::new())
                && target != *path
            {
                graph.update_edge(nodes[path], nodes[&target], ());
            }
        }
    }
    let name = |path: &ModulePath| if path.is_empty() { "lib".into() } else { path.join("::") };
    let cycle = |nodes: Vec<NodeIndex>| {
        let mut files: Vec<String> = nodes.iter().map(|node| name(graph[*node])).collect();
        let edges = graph.edge_references();
        let within =
            edges.filter(|edge| nodes.contains(&edge.source()) && nodes.contains(&edge.target()));
        let mut uses: Vec<String> = within
            .map(|edge| [edge.source(), edge.target()].map(|node| name(graph[node])).join(" -> "))
            .collect();
        files.sort();
        uses.sort();
        Cycle { files, uses }
    };
    let groups = petgraph::algo::tarjan_scc(&graph).into_iter().filter(|files| files.len() > 1);
    let mut cycles: Vec<Cycle> = groups.map(cycle).collect();
    cycles.sort_by_key(|cycle| std::cmp::Reverse(cycle.files.len()));
    cycles
}

type Modules = BTreeMap<ModulePath, Module>;

/// The file that defines the item at an absolute path; `None` for items of other crates and for
/// modules themselves. `seen` holds the paths followed so far, because imports may be cyclic.
fn definition(
    modules: &Modules,
    path: &[String],
    seen: &mut BTreeSet<Vec<String>>,
) -> Option<ModulePath> {
    if !seen.insert(path.to_vec()) {
        return None;
    }
    let mut module: ModulePath = Vec::new();
    for (index, name) in path.iter().enumerate() {
        let child = [&module[..], std::slice::from_ref(name)].concat();
        if modules.contains_key(&child) {
            module = child;
            continue;
        }
        let here = modules.get(&module)?;
        if here.defined.contains(name) {
            return Some(module);
        }
        let mut follow = |target: &[String]| {
            let is_here = modules.contains_key(&[&module[..], &target[..1]].concat());
            if !is_here && !ROOTS.contains(&target[0].as_str()) {
                // An item of another crate.
                return None;
            }
            let target = [here.absolute(target), path[index + 1..].to_vec()].concat();
            definition(modules, &target, seen)
        };
        if let Some(target) = here.imports.get(name) {
            return follow(target);
        }
        return here
            .globs
            .iter()
            .find_map(|glob| follow(&[glob, std::slice::from_ref(name)].concat()));
    }
    None
}

/// Definitions, imports and uses of a file.
#[derive(Default)]
struct Module {
    path: ModulePath,
    /// Names of the items that the file defines.
    defined: BTreeSet<String>,
    /// Paths of imported and re-exported names, by the name in this file.
    imports: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    /// Paths used in code and in private imports.
    uses: BTreeSet<Vec<String>>,
}

impl Module {
    /// The path relative to the crate's root; paths of other crates start with a name that no module has.
    fn absolute(&self, path: &[String]) -> Vec<String> {
        let mut from = self.path.clone();
        let mut rest = path;
        let mut is_relative = false;
        while let [first, tail @ ..] = rest {
            match first.as_str() {
                "crate" => from.clear(),
                "super" => drop(from.pop()),
                "self" => {}
                _ => break,
            }
            is_relative = true;
            rest = tail;
        }
        match rest {
            // A name of this file, or of another crate.
            [first, tail @ ..] if !is_relative => match self.imports.get(first) {
                // Imports name items from the crate's root or of other crates.
                Some(import) if ROOTS.contains(&import[0].as_str()) => {
                    [self.absolute(import), tail.to_vec()].concat()
                }
                _ => [&self.path[..], path].concat(),
            },
            _ => [&from[..], rest].concat(),
        }
    }

    fn import(&mut self, prefix: &[String], tree: &UseTree, is_private: bool) {
        let mut add = |name: String, path: Vec<String>| {
            if is_private {
                self.uses.insert(path.clone());
            }
            self.imports.insert(name, path);
        };
        let joined = |name: &syn::Ident| [prefix, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => self.import(&joined(&path.ident), &path.tree, is_private),
            UseTree::Name(name) if name.ident == "self" => {
                add(prefix.last().cloned().unwrap_or_default(), prefix.to_vec());
            }
            UseTree::Name(name) => add(name.ident.to_string(), joined(&name.ident)),
            UseTree::Rename(name) => add(name.rename.to_string(), joined(&name.ident)),
            UseTree::Glob(_) => self.globs.push(prefix.to_vec()),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.import(prefix, tree, is_private));
            }
        }
    }

    /// Paths in the arguments of macros: names joined by `::`.
    fn tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.end_path(&mut path);
                    }
                    path.push(name.to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Group(group) => {
                    self.end_path(&mut path);
                    self.tokens(group.stream());
                    colons = 0;
                }
                _ => {
                    self.end_path(&mut path);
                    colons = 0;
                }
            }
        }
        self.end_path(&mut path);
    }

    fn end_path(&mut self, path: &mut Vec<String>) {
        if !path.is_empty() {
            self.uses.insert(std::mem::take(path));
        }
    }
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) if list.path.is_ident("cfg") => list.tokens.to_string() == "test",
        _ => false,
    })
}

impl<'ast> Visit<'ast> for Module {
    fn visit_item(&mut self, item: &'ast Item) {
        let name = match item {
            Item::Const(item) => Some(&item.ident),
            Item::Enum(item) => Some(&item.ident),
            Item::Fn(item) => Some(&item.sig.ident),
            Item::Static(item) => Some(&item.ident),
            Item::Struct(item) => Some(&item.ident),
            Item::Trait(item) => Some(&item.ident),
            Item::Type(item) => Some(&item.ident),
            Item::Union(item) => Some(&item.ident),
            Item::Macro(item) => item.ident.as_ref(),
            Item::Mod(item) if is_test(&item.attrs) => return,
            Item::Mod(item) if item.content.is_some() => Some(&item.ident),
            Item::Use(item) => {
                if !is_test(&item.attrs) {
                    let is_private = matches!(item.vis, Visibility::Inherited);
                    self.import(&[], &item.tree, is_private);
                }
                return;
            }
            _ => None,
        };
        self.defined.extend(name.map(ToString::to_string));
        visit::visit_item(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        self.uses.insert(path.segments.iter().map(|part| part.ident.to_string()).collect());
        visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        self.tokens(call.tokens.clone());
        visit::visit_macro(self, call);
    }
}
