//! What the README and the book show is what the program prints, to whichever of its outputs.

use flipwave_tests::{Finished, flipwave};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A command of a page, and the lines that the page shows below it.
struct Example {
    command: String,
    shown: Vec<String>,
}

/// What a page says is to be done.
#[derive(Default)]
struct Page {
    name: String,
    /// Files that the reader writes, and what is in them.
    files: Vec<(String, String)>,
    examples: Vec<Example>,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").canonicalize().expect("the repository")
}

/// The fenced blocks of a page: files where they begin with `file=NAME`, and commands after
/// `$ flipwave `, `$ hipcc ` and `$ python3 `.
fn read(path: &Path) -> Page {
    let text = std::fs::read_to_string(path).expect("a page");
    let mut page = Page { name: path.display().to_string(), ..Page::default() };
    for block in text.split("```").skip(1).step_by(2) {
        let (first, body) = block.split_once('\n').unwrap_or((block, ""));
        if let Some((_, name)) = first.split_once("file=") {
            page.files.push((name.to_owned(), body.to_owned()));
            continue;
        }
        let mut within = false;
        for line in block.lines() {
            let command = line.strip_prefix("$ ").filter(|command| {
                ["flipwave ", "hipcc ", "python3 "]
                    .iter()
                    .any(|program| command.starts_with(program))
            });
            if let Some(command) = command {
                page.examples.push(Example { command: command.to_owned(), shown: Vec::new() });
                within = true;
            } else if let (true, Some(example)) = (within, page.examples.last_mut()) {
                example.shown.push(line.to_owned());
            }
        }
    }
    page
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

/// A script of the book, run by a Python that has pandas; nothing where there is none, which is said
/// whether or not the test's output is shown.
fn python_with_pandas(folder: &Path, arguments: &[String]) -> Option<Finished> {
    // Packages of the system are those of its own Python, which need not be the first in PATH.
    let has_pandas = |python: &&str| {
        let imports = Command::new(python).args(["-c", "import pandas"]).output();
        imports.is_ok_and(|output| output.status.success())
    };
    let Some(python) = ["python3", "/usr/bin/python3"].into_iter().find(has_pandas) else {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: no Python here has pandas, so {} is not run; `./dependencies.sh test` installs \
             it where apt has it",
            arguments.join(" ")
        );
        return None;
    };
    let output = Command::new(python).args(arguments).current_dir(folder).output().expect("Python");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&output.stdout), text(&output.stderr));
    Some(Finished { code: output.status.code(), signal: None, stdout, stderr })
}

#[test]
fn every_command_of_the_book_prints_what_the_book_shows() {
    let root = root();
    let mut pages = vec![root.join("README.md")];
    let folder = std::fs::read_dir(root.join("docs")).expect("docs");
    pages.extend(folder.map(|entry| entry.expect("an entry").path()));
    pages.retain(|page| page.extension().is_some_and(|end| end == "md"));
    let pages: Vec<Page> = pages.iter().map(|page| read(page)).collect();
    assert!(pages.iter().any(|page| !page.examples.is_empty()), "no command found");
    for page in &pages {
        // Commands may write next to the repository's examples, but not into the repository.
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        std::os::unix::fs::symlink(root.join("examples"), folder.join("examples")).expect("a link");
        for (name, text) in &page.files {
            std::fs::write(folder.join(name), text).expect(name);
        }
        for example in &page.examples {
            let words = words(&example.command);
            let (program, arguments) = words.split_first().expect("a program");
            if program == "hipcc" {
                let status = Command::new(program).args(arguments).current_dir(folder).status();
                assert!(status.expect("hipcc").success(), "{}", example.command);
                continue;
            }
            let finished = match program.as_str() {
                "python3" => match python_with_pandas(folder, arguments) {
                    Some(finished) => finished,
                    None => continue,
                },
                _ => flipwave(folder, arguments, &[]),
            };
            let finished = finished.expect_success();
            let mut printed = finished.stdout.lines().chain(finished.stderr.lines());
            for line in &example.shown {
                assert!(
                    printed.any(|printed| printed == line),
                    "{}: `{}` does not print `{line}` (any more):\n{}{}",
                    page.name,
                    example.command,
                    finished.stdout,
                    finished.stderr
                );
            }
        }
    }
}

#[test]
fn every_link_of_the_book_leads_somewhere() {
    let root = root();
    let docs = std::fs::read_dir(root.join("docs")).expect("the book");
    let pages = docs.map(|entry| entry.expect("a page").path());
    let pages: Vec<PathBuf> =
        pages.filter(|page| page.extension() == Some("md".as_ref())).collect();
    assert!(pages.len() > 20, "{pages:?}");
    for page in pages.into_iter().chain([root.join("README.md")]) {
        let text = std::fs::read_to_string(&page).expect("a page");
        let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
        for link in links.filter(|link| !link.starts_with("https:")) {
            let target =
                page.parent().expect("its folder").join(link.split('#').next().unwrap_or(""));
            assert!(target.exists(), "{}: {link}", page.display());
        }
    }
}
