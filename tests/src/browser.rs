//! A headless browser, if installed.

use std::io::Write;
use std::path::Path;
use std::process::Command;

/// Program names of Chromium-based browsers.
const NAMES: [&str; 4] =
    ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome"];

/// Script that records errors in a page.
const WATCH: &str = "<script>window.wrong = [];\
    addEventListener('error', (event) => wrong.push(String(event.message)));\
    addEventListener('securitypolicyviolation', (event) => wrong.push('refused ' + event.blockedURI));\
    const say = console.error; console.error = (...all) => { wrong.push(all.join(' ')); say(...all); };\
    </script>";

/// A browser of this machine.
#[derive(Clone, Debug)]
pub struct Browser(&'static str);

impl Browser {
    /// Finds a browser. Returns `None` without one, with a message that is shown even if the test's output
    /// is captured.
    pub fn find() -> Option<Browser> {
        let starts = |name: &&str| Command::new(name).arg("--version").output().is_ok();
        let found = NAMES.into_iter().find(starts).map(Browser);
        if found.is_none() {
            let _ = writeln!(
                std::io::stderr(),
                "SKIPPED: there is no browser here, so no page is opened; `./dependencies.sh test` \
                 installs one where apt has it"
            );
        }
        found
    }

    /// Opens a page from disk and runs `script` in it. Returns the script's result as text, followed by the
    /// recorded errors, one per line.
    pub fn try_in(&self, page: &Path, script: &str) -> String {
        let text = std::fs::read_to_string(page).expect("a page");
        let probe = format!(
            "<script>{{ let said; try {{ said = String((() => {{ {script} }})()); }}\
             catch (error) {{ said = 'failed: ' + error; }}\
             const probe = document.createElement('pre'); probe.id = 'probe';\
             probe.textContent = [said, ...wrong].join('\\n');\
             document.body.replaceChildren(probe); }}</script></body>"
        );
        let text = text.replacen("<head>", &format!("<head>{WATCH}"), 1).replace("</body>", &probe);
        let folder = tempfile::tempdir().expect("a folder");
        let instrumented = folder.path().join("page.html");
        std::fs::write(&instrumented, text).expect("written");
        let output = Command::new(self.0)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"])
            .arg(format!("--user-data-dir={}", folder.path().join("profile").display()))
            .arg(format!("file://{}", instrumented.display()))
            .output()
            .expect("the browser starts");
        let dom = String::from_utf8_lossy(&output.stdout);
        let (_, rest) = dom.split_once("<pre id=\"probe\">").unwrap_or_else(|| {
            panic!("the browser shows no page:\n{}", String::from_utf8_lossy(&output.stderr))
        });
        let said = rest.split("</pre>").next().unwrap_or_default();
        said.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")
    }
}
