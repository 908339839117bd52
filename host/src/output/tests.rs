use super::*;
use rustix::fs::{CWD, Mode, mknodat};
use std::io::Read;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

/// Creates special files: a FIFO, a socket, a folder, and, if this user may, a device like
/// `/dev/full`.
fn special_files(folder: &Path) -> Vec<PathBuf> {
    let path = |name: &str| folder.join(name);
    let mode = Mode::from_raw_mode(0o600);
    mknodat(CWD, path("fifo"), rustix::fs::FileType::Fifo, mode, 0).expect("a FIFO");
    // The file stays when the listener is dropped.
    UnixListener::bind(path("socket")).expect("a socket");
    fs::create_dir(path("folder")).expect("a folder");
    let mut all = vec![path("fifo"), path("socket"), path("folder")];
    let full = rustix::fs::makedev(1, 7);
    match mknodat(CWD, path("full"), rustix::fs::FileType::CharacterDevice, mode, full) {
        Ok(()) => all.push(path("full")),
        Err(reason) => println!("cannot create a device: {reason}"),
    }
    all
}

fn kinds(all: &[PathBuf]) -> Vec<FileType> {
    all.iter().map(|path| fs::symlink_metadata(path).expect("still there").file_type()).collect()
}

#[test]
fn special_files_are_refused_and_unchanged() {
    let folder = folder();
    let special = special_files(folder.path());
    let before = kinds(&special);
    for path in &special {
        let refusals = [
            check(path).err(),
            create(path).err(),
            replace(path, b"text").err(),
            publish(path, &b"text"[..]).err(),
            remove(path).err(),
        ];
        for refusal in refusals {
            let refusal = refusal.expect("refused").to_string();
            assert!(refusal.contains("expected a regular file"), "{refusal}");
        }
    }
    assert_eq!(kinds(&special), before);
}

#[test]
fn targets_of_links_are_written_whether_they_exist_or_not() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    symlink("second", path("first")).expect("a link");
    symlink(path("file"), path("second")).expect("a link");
    for content in [&b"made"[..], b"replaced"] {
        replace(&path("first"), content).expect("written");
        assert_eq!(fs::read(path("file")).expect("there"), content);
        for link in ["first", "second"] {
            assert!(path(link).is_symlink(), "{link} is no link any more");
        }
    }
    symlink("cycle", path("cycle")).expect("a link");
    assert!(replace(&path("cycle"), b"text").is_err());
}

/// Negative control: the operations refused above succeed for regular files.
#[test]
fn regular_files_are_created_replaced_and_removed() {
    let folder = folder();
    let file = folder.path().join("file");
    replace(&file, b"first").expect("made");
    assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o600, 0o600);
    fs::set_permissions(&file, Permissions::from_mode(0o640)).expect("a mode");
    replace(&file, b"second").expect("replaced");
    assert_eq!(fs::read(&file).expect("there"), b"second");
    assert_eq!(fs::metadata(&file).expect("there").permissions().mode() & 0o777, 0o640);
    create(&file).expect("emptied").write_all(b"3").expect("written");
    assert_eq!(fs::read(&file).expect("there"), b"3");
    remove(&file).expect("removed");
    remove(&file).expect("nothing to remove");
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 0, "something is left");
}

#[test]
fn writing_through_a_link_keeps_the_link() {
    let folder = folder();
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    fs::write(&file, "old and longer").expect("written");
    symlink(&file, &link).expect("a link");
    replace(&link, b"new").expect("replaced");
    assert_eq!(fs::read(&file).expect("there"), b"new");
    create(&link).expect("emptied").write_all(b"newer").expect("written");
    assert_eq!(fs::read(&file).expect("there"), b"newer");
    assert!(fs::symlink_metadata(&link).expect("there").is_symlink());
    // A link to a special file is refused as well.
    fs::remove_file(&link).expect("removed");
    symlink(&special_files(folder.path())[0], &link).expect("a link");
    assert!(replace(&link, b"new").is_err() && create(&link).is_err());
}

#[test]
fn tables_go_through_pipes() {
    let folder = folder();
    let fifo = special_files(folder.path()).remove(0);
    let reader = std::thread::spawn({
        let fifo = fifo.clone();
        move || {
            let mut text = String::new();
            File::open(fifo).expect("the FIFO").read_to_string(&mut text).expect("read");
            text
        }
    });
    stream(&fifo).expect("opened").write_all(b"a,b\n").expect("written");
    assert_eq!(reader.join().expect("read"), "a,b\n");
    assert!(stream(&folder.path().join("socket")).is_err());
    stream(&folder.path().join("file")).expect("made");
}

#[test]
fn files_named_by_descriptors_are_appended_to_and_never_replaced() {
    use std::os::fd::AsRawFd;
    let folder = folder();
    let file = folder.path().join("file");
    let mut open = File::create(&file).expect("made");
    open.write_all(b"before\n").expect("written");
    let descriptor = PathBuf::from(format!("/proc/self/fd/{}", open.as_raw_fd()));
    for refusal in [check(&descriptor).err(), replace(&descriptor, b"new").err()] {
        let refusal = refusal.expect("refused").to_string();
        assert!(refusal.contains("file descriptor"), "{refusal}");
    }
    stream(&descriptor).expect("opened").write_all(b"table\n").expect("written");
    assert_eq!(fs::read(&file).expect("there"), b"before\ntable\n");
}
