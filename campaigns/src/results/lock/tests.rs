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
    entries.map(|own| own.expect("an entry").file_name().into_string().expect("text")).collect()
}

/// A process of this machine that has ended.
fn dead(token: &str) -> Owner {
    let mut child = Command::new("true").spawn().expect("true");
    let process = child.id().cast_signed();
    child.wait().expect("its end");
    Owner { process, token: token.to_owned(), ..Owner::this().expect("this process") }
}

fn write(folder: &Path, name: &str, owner: &Owner) {
    fs::write(folder.join(name), serde_json::to_vec(owner).expect("JSON")).expect("written");
}

#[test]
fn a_folder_has_one_holder_who_is_named_and_leaves_nothing() {
    let folder = folder();
    let results = folder.path().join("results");
    let lock = FolderLock::take(&results, false).expect("free");
    lock.folder().expect("held");
    for take_over in [false, true] {
        let error = FolderLock::take(&results, take_over).expect_err("held").to_string();
        let own = format!("process {} on ", std::process::id());
        assert!(error.contains("is in use") && error.contains(&own), "{error}");
        assert!(error.contains(" since 20"), "{error}");
    }
    assert_eq!(names(&results), BTreeSet::from([LOCK.to_owned()]));
    drop(lock);
    assert!(!results.exists(), "a folder that was made for nothing stays");
    // What is in a folder stays, and so does a folder that was there.
    let lock = FolderLock::take(&results, false).expect("free");
    fs::write(results.join("file"), "").expect("written");
    drop(lock);
    assert_eq!(names(&results), BTreeSet::from(["file".to_owned()]));
}

#[test]
fn the_place_of_dead_ones_is_taken_however_far_they_came() {
    let folder = folder();
    let path = folder.path();
    // One has died, and two while they took its place, the second in the place of the first.
    write(path, LOCK, &dead("a"));
    write(path, "flipwave.lock.after-a", &dead("b"));
    write(path, "flipwave.lock.after-b", &dead("c"));
    write(path, "flipwave.lock.d", &dead("d"));
    let lock = FolderLock::take(path, false).expect("all of them are dead");
    assert_eq!(names(path), BTreeSet::from([LOCK.to_owned()]));
    lock.folder().expect("held");
    drop(lock);
    assert!(names(path).is_empty());
}

#[test]
fn an_owner_elsewhere_is_believed_until_the_user_says_otherwise() {
    let folder = folder();
    let other = Owner {
        host: "node17".to_owned(),
        boot: "another".to_owned(),
        since: "2026-11-22T06:35:44Z".to_owned(),
        token: "e".to_owned(),
        ..dead("e")
    };
    write(folder.path(), LOCK, &other);
    let error = FolderLock::take(folder.path(), false).expect_err("unseen").to_string();
    for word in ["node17", "since 2026-11-22T06:35:44Z", "--take-over", LOCK] {
        assert!(error.contains(word), "{error}");
    }
    assert_eq!(names(folder.path()), BTreeSet::from([LOCK.to_owned()]));
    drop(FolderLock::take(folder.path(), true).expect("taken over"));
    // A record that says nothing, as one that was written without links and cut off.
    for text in ["", "{", "[1]"] {
        fs::write(folder.path().join(LOCK), text).expect("written");
        let error = FolderLock::take(folder.path(), false).expect_err("unseen").to_string();
        assert!(error.contains("has not said who it is"), "{error}");
        drop(FolderLock::take(folder.path(), true).expect("taken over"));
    }
}

/// The record of an owner who lives is believed where the kernel has no lock.
#[test]
fn an_owner_who_lives_is_believed_without_a_file_lock() {
    let folder = folder();
    write(folder.path(), LOCK, &Owner::this().expect("this process"));
    assert!(matches!(FolderLock::take(folder.path(), true), Err(LockError::Held { .. })));
}

#[test]
fn who_has_lost_the_lock_learns_of_it_and_takes_nothing_away() {
    let folder = folder();
    let lock = FolderLock::take(folder.path(), false).expect("free");
    let other = Owner { host: "node17".to_owned(), ..dead("f") };
    write(folder.path(), "other", &other);
    fs::rename(folder.path().join("other"), folder.path().join(LOCK)).expect("taken over");
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
    assert!(claim.publish_without_link(&name).expect("looked at").is_none());
    assert_eq!(file_lock(&name), FileLock::Held);
    drop(held);
    assert_eq!(read(&name).expect("read").expect("there").token, "g");
}

/// Many at once, who find a dead owner each time: never are there two, and each comes to it.
#[test]
fn there_are_never_two_holders() {
    let folder = folder();
    let (path, inside, total) = (folder.path(), AtomicU32::new(0), AtomicU32::new(0));
    write(path, LOCK, &dead("h"));
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (inside, total) = (&inside, &total);
            scope.spawn(move || {
                let mut mine = 0;
                while mine < 25 {
                    let Ok(lock) = FolderLock::take(path, false) else { continue };
                    assert_eq!(inside.fetch_add(1, Ordering::SeqCst), 0, "two holders");
                    if mine % 3 == 0 {
                        // It dies: the file is that of a dead process, and nobody has it locked.
                        let heir = dead(&format!("{thread}-{mine}"));
                        write(path, &format!("heir-{thread}"), &heir);
                        inside.fetch_sub(1, Ordering::SeqCst);
                        fs::rename(path.join(format!("heir-{thread}")), path.join(LOCK)).unwrap();
                    } else {
                        inside.fetch_sub(1, Ordering::SeqCst);
                    }
                    drop(lock);
                    mine += 1;
                }
                total.fetch_add(mine, Ordering::SeqCst);
            });
        }
    });
    assert_eq!(total.into_inner(), 100);
    assert!(names(path).iter().all(|name| name == LOCK));
}
