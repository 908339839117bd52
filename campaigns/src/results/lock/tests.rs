use super::*;
use std::collections::BTreeSet;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().expect("a folder")
}

fn names(folder: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(folder).expect("a folder");
    entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect()
}

/// An owner on this machine that has ended.
fn dead(token: &str) -> Owner {
    let mut child = Command::new("true").spawn().expect("true");
    let process = child.id().cast_signed();
    child.wait().expect("its end");
    Owner { process, token: token.to_owned(), ..Owner::current().expect("this process") }
}

fn write(folder: &Path, name: &str, owner: &Owner) {
    fs::write(folder.join(name), serde_json::to_vec(owner).expect("JSON")).expect("written");
}

#[test]
fn lock_is_exclusive_and_leaves_no_files() {
    let folder = folder();
    let results = folder.path().join("results");
    let lock = FolderLock::take_free(&results).expect("free");
    lock.folder().expect("held");
    for take_over in [false, true] {
        let error = FolderLock::take(&results, take_over).expect_err("held").to_string();
        let process = format!("process {} on ", std::process::id());
        assert!(error.contains("is in use") && error.contains(&process), "{error}");
        assert!(error.contains(" since 20"), "{error}");
    }
    assert_eq!(names(&results), BTreeSet::from([LOCK.to_owned()]));
    drop(lock);
    assert!(!results.exists(), "the created folder remains");
    // A folder with files is kept.
    let lock = FolderLock::take_free(&results).expect("free");
    fs::write(results.join("file"), "").expect("written");
    drop(lock);
    assert_eq!(names(&results), BTreeSet::from(["file".to_owned()]));
}

#[test]
fn dead_owners_are_succeeded_at_every_stage_of_a_takeover() {
    let folder = folder();
    let path = folder.path();
    // Owner `a` has died; `b` died while succeeding `a`, and `c` while succeeding `b`.
    write(path, LOCK, &dead("a"));
    write(path, "flipwave.lock.after-a", &dead("b"));
    write(path, "flipwave.lock.after-b", &dead("c"));
    write(path, "flipwave.lock.d", &dead("d"));
    let lock = FolderLock::take_free(path).expect("dead owners");
    assert_eq!(names(path), BTreeSet::from([LOCK.to_owned()]));
    lock.folder().expect("held");
    drop(lock);
    assert!(names(path).is_empty());
}

#[test]
fn unseen_owners_keep_the_lock_until_a_takeover() {
    let folder = folder();
    let unseen = Owner {
        host: "node17".to_owned(),
        boot: "another".to_owned(),
        since: "2026-11-22T06:35:44Z".to_owned(),
        token: "e".to_owned(),
        ..dead("e")
    };
    write(folder.path(), LOCK, &unseen);
    let error = FolderLock::take_free(folder.path()).expect_err("unseen").to_string();
    for word in ["node17", "since 2026-11-22T06:35:44Z", "--take-over", LOCK] {
        assert!(error.contains(word), "{error}");
    }
    assert_eq!(names(folder.path()), BTreeSet::from([LOCK.to_owned()]));
    drop(FolderLock::take(folder.path(), true).expect("taken over"));
    // Invalid records, as left by a process killed on a file system without links.
    for text in ["", "{", "[1]"] {
        fs::write(folder.path().join(LOCK), text).expect("written");
        let error = FolderLock::take_free(folder.path()).expect_err("unseen").to_string();
        assert!(error.contains("an unknown process"), "{error}");
        drop(FolderLock::take(folder.path(), true).expect("taken over"));
    }
}

#[test]
fn living_owners_keep_the_lock_without_a_file_lock() {
    let folder = folder();
    write(folder.path(), LOCK, &Owner::current().expect("this process"));
    assert!(matches!(FolderLock::take(folder.path(), true), Err(LockError::Held { .. })));
}

#[test]
fn lost_locks_are_detected_and_not_removed() {
    let folder = folder();
    let lock = FolderLock::take_free(folder.path()).expect("free");
    let successor = Owner { host: "node17".to_owned(), ..dead("f") };
    write(folder.path(), "successor", &successor);
    fs::rename(folder.path().join("successor"), folder.path().join(LOCK)).expect("taken over");
    let error = lock.folder().expect_err("lost").to_string();
    assert!(error.contains("node17"), "{error}");
    drop(lock);
    assert_eq!(names(folder.path()), BTreeSet::from([LOCK.to_owned()]));
}

#[test]
fn without_links_a_file_is_published_once() {
    let folder = folder();
    let claim = Claim::new(folder.path(), &dead("g")).expect("a claim");
    let name = folder.path().join(LOCK);
    let held = claim.publish_without_link(&name).expect("published").expect("the first");
    assert!(claim.publish_without_link(&name).expect("an attempt").is_none());
    assert_eq!(file_lock(&name), FileLock::Held);
    drop(held);
    assert_eq!(read(&name).expect("read").expect("an owner").token, "g");
}

/// Several threads repeatedly succeed dead owners.
#[test]
fn there_are_never_two_owners() {
    let folder = folder();
    let (path, inside, total) = (folder.path(), AtomicU32::new(0), AtomicU32::new(0));
    write(path, LOCK, &dead("h"));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (inside, total) = (&inside, &total);
            scope.spawn(move || {
                let mut taken = 0;
                while taken < 25 {
                    let Ok(lock) = FolderLock::take_free(path) else { continue };
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two owners");
                    if taken % 3 == 0 {
                        // Replaces the file by that of a dead process without a file lock.
                        let heir = dead(&format!("{thread}-{taken}"));
                        write(path, &format!("heir-{thread}"), &heir);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        fs::rename(path.join(format!("heir-{thread}")), path.join(LOCK)).unwrap();
                    } else {
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                    drop(lock);
                    taken += 1;
                }
                total.fetch_add(taken, Ordering::SeqCst);
            });
        }
    });
    assert_eq!(total.into_inner(), 100);
    assert!(names(path).iter().all(|name| name == LOCK));
}
