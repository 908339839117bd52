//! Debugging information in modules.

use flipwave_ptx::{Block, ItemKind, Module, StatementKind};

/// Returns a module without source files, source lines, sections of debugging information, and the target `debug`: with
/// it, compilers may generate other code, and modules of one source in different folders differ.
pub fn without_debug_information(module: &Module) -> Module {
    let mut module = module.clone();
    module.items.retain(|item| !matches!(item.kind, ItemKind::File(_) | ItemKind::Section(_)));
    for item in &mut module.items {
        match &mut item.kind {
            ItemKind::Target(names) => names.retain(|name| **name != *"debug"),
            ItemKind::Function(function) => {
                if let Some(body) = &mut function.body {
                    remove_locations(body);
                }
            }
            _ => {}
        }
    }
    module
}

fn remove_locations(block: &mut Block) {
    block.statements.retain(|statement| !matches!(statement.kind, StatementKind::Location(_)));
    for statement in &mut block.statements {
        if let StatementKind::Block(inner) = &mut statement.kind {
            remove_locations(inner);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
.version 7.8
.target sm_80, debug
.address_size 64
.file 1 \"PATH/kernel.cl\"
.visible .entry kernel()
{
    .loc 1 3 5
    {
        .loc 1 4 5
        ret;
    }
}
.section .debug_str
{
    .b8 1
}
";

    #[test]
    fn modules_of_sources_in_two_folders_are_equal() {
        let modules = ["a", "b"]
            .map(|folder| flipwave_ptx::parse(&TEXT.replace("PATH", folder)).expect("a module"));
        assert_ne!(modules[0].to_string(), modules[1].to_string());
        let [first, second] = modules.each_ref().map(without_debug_information);
        assert_eq!(first.to_string(), second.to_string());
        for removed in [".loc", ".file", ".section", "debug"] {
            assert!(!first.to_string().contains(removed), "{first}");
        }
        assert!(first.to_string().contains("ret;"), "{first}");
    }
}
