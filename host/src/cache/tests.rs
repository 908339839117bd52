use super::*;
use std::sync::Mutex;

static REPORTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn reported() -> Vec<String> {
    std::mem::take(&mut *REPORTED.lock().expect("not poisoned"))
}

/// One test, as reports go to one place.
#[test]
fn only_what_the_user_wrote_is_used_and_what_is_damaged_is_reported() {
    on_damage(|damage| REPORTED.lock().expect("not poisoned").push(damage.reason.clone()));
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::at(folder.path().join("new"));
    let path = cache.path("a");
    assert_eq!(cache.get("a"), None);
    cache.put("a", b"content").expect("written");
    assert_eq!(cache.get("a").as_deref(), Some(&b"content"[..]));
    assert_eq!(fs::metadata(cache.folder()).expect("a folder").permissions().mode() & 0o777, 0o700);
    assert_eq!(reported(), [""; 0]);

    let good = fs::read(&path).expect("kept");
    let bad = |change: &dyn Fn()| {
        change();
        assert_eq!(cache.get("a"), None);
        let reported = reported();
        fs::remove_file(&path).expect("removed");
        fs::write(&path, &good).expect("written");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("a mode");
        assert!(cache.get("a").is_some(), "as it was");
        reported
    };
    for place in 0..good.len() {
        let mut changed = good.clone();
        changed[place] ^= 1;
        assert_eq!(bad(&|| fs::write(&path, &changed).expect("written")), ["its digest is wrong"]);
    }
    assert_eq!(bad(&|| fs::write(&path, b"short").expect("written")), ["its digest is wrong"]);
    cache.put("b", b"other content").expect("written");
    let renamed = || fs::rename(cache.path("b"), &path).expect("renamed");
    assert_eq!(bad(&renamed), ["its digest is wrong"]);
    let open_to_all = || fs::set_permissions(&path, Permissions::from_mode(0o666)).expect("a mode");
    assert_eq!(bad(&open_to_all), ["others may write it (mode 666)"]);
    let fifo = || {
        fs::remove_file(&path).expect("removed");
        let (kind, mode) = (rustix::fs::FileType::Fifo, Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).expect("a FIFO");
    };
    assert_eq!(bad(&fifo), ["it is a FIFO; expected a regular file"]);
    // Another user's, where files can be given away.
    if geteuid().is_root() {
        let given = || std::os::unix::fs::chown(&path, Some(1234), None).expect("given away");
        assert_eq!(bad(&given), ["it belongs to user 1234, expected 0"]);
    }
}

#[test]
fn files_for_other_programs_have_their_content_again_if_it_was_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::at(folder.path().join("new"));
    let file = || cache.file("include/header.h", b"#define A\n").expect("written");
    for change in ["", "#define B\n", "#define A\n#define B\n"] {
        fs::write(file(), change).expect("changed");
        assert_eq!(fs::read(file()).expect("there"), b"#define A\n");
    }
}

#[test]
fn a_folder_that_others_can_write_to_is_closed_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::at(folder.path().join("open"));
    let mode = || fs::metadata(cache.folder()).expect("a folder").permissions().mode() & 0o777;
    fs::create_dir(cache.folder()).expect("a folder");
    fs::set_permissions(cache.folder(), Permissions::from_mode(0o777)).expect("a mode");
    cache.put("a", b"content").expect("written");
    assert_eq!(mode(), 0o755);
    if geteuid().is_root() {
        std::os::unix::fs::chown(cache.folder(), Some(1234), None).expect("given away");
        let error = cache.put("b", b"content").expect_err("another user's");
        assert!(error.to_string().contains("belongs to user 1234"), "{error}");
        assert!(!cache.path("b").exists());
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, b"").expect("written");
    assert!(Cache::at(file).put("a", b"content").is_err());
}
