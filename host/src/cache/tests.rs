use super::*;
use std::sync::Mutex;

static REPORTED: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn reported() -> Vec<String> {
    std::mem::take(&mut *REPORTED.lock().expect("not poisoned"))
}

/// One test, as reports are global.
#[test]
fn files_that_others_may_have_written_are_reported_and_not_used() {
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
    let reports_after = |change: &dyn Fn()| {
        change();
        assert_eq!(cache.get("a"), None);
        let reported = reported();
        fs::remove_file(&path).expect("removed");
        fs::write(&path, &good).expect("written");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("a mode");
        assert!(cache.get("a").is_some(), "restored");
        reported
    };
    for index in 0..good.len() {
        let mut changed = good.clone();
        changed[index] ^= 1;
        assert_eq!(
            reports_after(&|| fs::write(&path, &changed).expect("written")),
            ["wrong digest"]
        );
    }
    assert_eq!(reports_after(&|| fs::write(&path, b"short").expect("written")), ["wrong digest"]);
    cache.put("b", b"other content").expect("written");
    let renamed = || fs::rename(cache.path("b"), &path).expect("renamed");
    assert_eq!(reports_after(&renamed), ["wrong digest"]);
    let open_to_all = || fs::set_permissions(&path, Permissions::from_mode(0o666)).expect("a mode");
    assert_eq!(reports_after(&open_to_all), ["it is writable by others (mode 666)"]);
    let fifo = || {
        fs::remove_file(&path).expect("removed");
        let (kind, mode) = (rustix::fs::FileType::Fifo, Mode::RWXU);
        rustix::fs::mknodat(rustix::fs::CWD, &path, kind, mode, 0).expect("a FIFO");
    };
    assert_eq!(reports_after(&fifo), ["it is a FIFO; expected a regular file"]);
    // A file of another user, if this user may change owners.
    if geteuid().is_root() {
        let change_owner = || std::os::unix::fs::chown(&path, Some(1234), None).expect("an owner");
        assert_eq!(reports_after(&change_owner), ["it belongs to user 1234, expected 0"]);
    }
}

#[test]
fn changed_files_for_other_programs_are_restored() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::at(folder.path().join("new"));
    let file = || cache.file("include/header.h", b"#define A\n").expect("written");
    for change in ["", "#define B\n", "#define A\n#define B\n"] {
        fs::write(file(), change).expect("changed");
        assert_eq!(fs::read(file()).expect("there"), b"#define A\n");
    }
}

#[test]
fn a_folder_writable_by_others_is_protected_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let cache = Cache::at(folder.path().join("open"));
    let mode = || fs::metadata(cache.folder()).expect("a folder").permissions().mode() & 0o777;
    fs::create_dir(cache.folder()).expect("a folder");
    fs::set_permissions(cache.folder(), Permissions::from_mode(0o777)).expect("a mode");
    cache.put("a", b"content").expect("written");
    assert_eq!(mode(), 0o755);
    if geteuid().is_root() {
        std::os::unix::fs::chown(cache.folder(), Some(1234), None).expect("an owner");
        let error = cache.put("b", b"content").expect_err("another user's");
        assert!(error.to_string().contains("belongs to user 1234"), "{error}");
        assert!(!cache.path("b").exists());
    }
}

#[test]
fn an_unwritable_folder_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("file");
    fs::write(&file, b"").expect("written");
    assert!(Cache::at(file).put("a", b"content").is_err());
}
