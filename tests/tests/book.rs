//! Checks the documentation: commands print what the pages show, and links lead somewhere.

use flipwave_tests::{Finished, flipwave};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

/// A command of a page, and the lines that the page shows below it.
struct Example {
    command: String,
    shown: Vec<String>,
}

/// Files and commands of a page.
#[derive(Default)]
struct Page {
    name: String,
    /// Name and content of each file that the reader writes.
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
        let mut is_output = false;
        for line in block.lines() {
            let command = line.strip_prefix("$ ").filter(|command| {
                ["flipwave ", "hipcc ", "python3 "]
                    .iter()
                    .any(|program| command.starts_with(program))
            });
            if let Some(command) = command {
                page.examples.push(Example { command: command.to_owned(), shown: Vec::new() });
                is_output = true;
            } else if let Some(example) = page.examples.last_mut().filter(|_| is_output) {
                example.shown.push(line.to_owned());
            }
        }
    }
    page
}

/// Splits a command into words; double quotes keep words together.
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

/// Runs a script of the documentation with a Python that has pandas. Returns `None` without one, with
/// a message that is shown even if the test's output is captured.
fn python_with_pandas(folder: &Path, arguments: &[String]) -> Option<Finished> {
    // The system's packages belong to its own Python, which may not be the first in PATH.
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
fn documented_commands_print_the_shown_output() {
    let root = root();
    let pages: Vec<Page> = pages().iter().map(|page| read(page)).collect();
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

/// README.md, CONTRIBUTING.md and the pages in docs/.
fn pages() -> Vec<PathBuf> {
    let root = root();
    let docs = std::fs::read_dir(root.join("docs")).expect("docs");
    let pages = docs.map(|entry| entry.expect("an entry").path());
    let mut pages: Vec<PathBuf> =
        pages.filter(|page| page.extension().is_some_and(|end| end == "md")).collect();
    pages.extend(["README.md", "CONTRIBUTING.md"].map(|name| root.join(name)));
    assert!(pages.len() > 20, "{pages:?}");
    pages
}

/// The relative links of a page.
fn links(text: &str) -> Vec<&str> {
    let links = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    links.filter(|link| !link.starts_with("https:")).collect()
}

/// The anchors of a page's headings, as GitHub makes them.
fn anchors(text: &str) -> Vec<String> {
    let prose = text.split("\n```").step_by(2);
    let headings = prose.flat_map(str::lines).filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let heading = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = |character: &char| character.is_alphanumeric() || " -_".contains(*character);
        heading.chars().filter(kept).collect::<String>().replace(' ', "-")
    };
    headings.map(anchor).collect()
}

#[test]
fn documentation_links_have_targets() {
    for page in pages() {
        let text = std::fs::read_to_string(&page).expect("a page");
        for link in links(&text) {
            let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
            let target = match file {
                "" => page.clone(),
                file => page.parent().expect("its folder").join(file),
            };
            assert!(target.exists(), "{}: {link}", page.display());
            if anchor.is_empty() {
                continue;
            }
            let target = std::fs::read_to_string(&target).expect("a page");
            assert!(
                anchors(&target).iter().any(|found| found == anchor),
                "{}: no heading for {link}",
                page.display()
            );
        }
    }
}

#[test]
fn index_lists_every_page() {
    let root = root();
    let index = std::fs::read_to_string(root.join("docs/index.md")).expect("the index");
    let listed: Vec<PathBuf> =
        links(&index).iter().map(|link| root.join("docs").join(link)).collect();
    for page in pages() {
        let is_start = page.ends_with("docs/index.md") || page.ends_with("README.md");
        let is_listed =
            listed.iter().any(|listed| listed.ends_with(page.file_name().expect("a name")));
        assert!(is_start || is_listed, "docs/index.md does not list {}", page.display());
    }
}
