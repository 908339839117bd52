//! What the README and the book show is what the program prints.

use flipwave_tests::flipwave;
use std::path::{Path, PathBuf};

/// A command of a page, and the lines that the page shows below it.
struct Example {
    page: String,
    command: String,
    shown: Vec<String>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository")
}

/// Commands after `$ flipwave ` in the fenced blocks of a page.
fn examples(page: &Path) -> Vec<Example> {
    let text = std::fs::read_to_string(page).expect("a page");
    let mut examples: Vec<Example> = Vec::new();
    for block in text.split("```").skip(1).step_by(2) {
        let mut within = false;
        for line in block.lines() {
            if let Some(command) = line.strip_prefix("$ flipwave ") {
                let page = page.display().to_string();
                examples.push(Example { page, command: command.to_owned(), shown: Vec::new() });
                within = true;
            } else if let (true, Some(example)) = (within, examples.last_mut()) {
                example.shown.push(line.to_owned());
            }
        }
    }
    examples
}

/// The words of a command; double quotes keep words together.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in command.split('"').enumerate() {
        match index % 2 {
            0 => words.extend(part.split_whitespace().map(str::to_owned)),
            _ => words.push(part.to_owned()),
        }
    }
    words
}

#[test]
fn every_command_of_the_book_prints_what_the_book_shows() {
    let root = root();
    let mut pages = vec![root.join("README.md")];
    let folder = std::fs::read_dir(root.join("docs")).expect("docs");
    pages.extend(folder.map(|entry| entry.expect("an entry").path()));
    pages.retain(|page| page.extension().is_some_and(|end| end == "md"));
    let examples: Vec<Example> = pages.iter().flat_map(|page| examples(page)).collect();
    assert!(!examples.is_empty(), "no command found");
    for example in &examples {
        let finished = flipwave(&root, &words(&example.command), &[]).expect_success();
        let mut printed = finished.stdout.lines();
        for line in &example.shown {
            assert!(
                printed.any(|printed| printed == line),
                "{}: `{}` does not print `{line}` (any more):\n{}",
                example.page,
                example.command,
                finished.stdout
            );
        }
    }
}

#[test]
fn every_link_of_the_book_leads_somewhere() {
    let root = root();
    let pages = ["campaigns", "embedded-gpu", "inspect", "instructions", "strict", "tools"];
    let pages = pages.map(|page| format!("docs/{page}.md"));
    for page in pages.iter().map(String::as_str).chain(["README.md"]) {
        let page = root.join(page);
        let text = std::fs::read_to_string(&page).expect("a page");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target =
                page.parent().expect("its folder").join(link.split('#').next().unwrap_or(""));
            assert!(target.exists(), "{}: {link}", page.display());
        }
    }
}
