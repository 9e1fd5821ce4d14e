use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

const ID: &str = "0123456789abcdef";

struct Target {
    top: tempfile::TempDir,
    place: Workspace,
}

impl Target {
    fn new() -> Self {
        let top = tempfile::tempdir().unwrap();
        let directory = top.path().join(format!("leadline-{ID}"));
        let place = Workspace::new(directory.to_str().unwrap(), None).unwrap();
        Self { top, place }
    }

    fn path(&self, name: &str) -> PathBuf {
        Path::new(&self.place.directory).join(name)
    }

    fn remove(&self) -> Outcome<bool> {
        remove_workspace(&self.place, ID, &["data.".to_owned()], None, 60.0, false)
    }

    fn is_gone(&self) -> bool {
        !Path::new(&self.place.directory).exists()
    }
}

#[test]
fn it_is_made_for_this_user_alone_marked_and_removed_with_the_mark() {
    let target = Target::new();
    make_workspace(&target.place, ID, None).unwrap();
    make_workspace(&target.place, ID, None).unwrap(); // it is there, and the study's
    let mode = Path::new(&target.place.directory)
        .metadata()
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o700);
    let mark = std::fs::read_to_string(target.path(MARK)).unwrap();
    assert_eq!(
        mark,
        format!("{{\"format\": \"leadline.workspace/1\", \"id\": \"{ID}\"}}")
    );
    std::fs::create_dir_all(target.path("data.0/deep")).unwrap();
    std::fs::write(target.path("data.1"), b"1").unwrap();
    assert_eq!(target.remove(), Ok(false));
    assert!(target.is_gone());
    assert_eq!(target.remove(), Ok(false));
}

#[test]
fn a_directory_of_somebody_else_is_neither_taken_nor_removed() {
    for (mark, words) in [
        (None, "did not make it"),
        (Some("other"), "did not make it"),
    ] {
        let target = Target::new();
        std::fs::create_dir(&target.place.directory).unwrap();
        std::fs::write(target.path("precious"), b"1").unwrap();
        if let Some(mark) = mark {
            std::fs::write(target.path(MARK), mark).unwrap();
        }
        let refusal = make_workspace(&target.place, ID, None).unwrap_err();
        assert!(refusal.message.contains(words), "{refusal:?}");
        let refusal = target.remove().unwrap_err();
        assert!(
            refusal.message.contains("does not carry this study's mark"),
            "{refusal:?}"
        );
        assert!(target.path("precious").exists());
    }
}

#[test]
fn what_is_not_the_studys_keeps_the_directory_and_its_mark() {
    let target = Target::new();
    make_workspace(&target.place, ID, None).unwrap();
    std::fs::write(target.path("theirs"), b"1").unwrap();
    std::fs::write(target.path("data.0"), b"1").unwrap();
    let refusal = target.remove().unwrap_err();
    assert!(refusal.message.contains("holds 'theirs'"), "{refusal:?}");
    assert!(target.path("theirs").exists() && target.path(MARK).exists());
    assert!(!target.path("data.0").exists());
}

#[test]
fn a_mark_that_was_only_begun_is_finished_or_removed() {
    for begun in [None, Some(&b"{\"format\""[..])] {
        let target = Target::new();
        std::fs::create_dir(&target.place.directory).unwrap();
        if let Some(begun) = begun {
            std::fs::write(target.path(MARK), begun).unwrap();
        }
        assert_eq!(target.remove(), Ok(false));
        assert!(target.is_gone());
        std::fs::create_dir(&target.place.directory).unwrap();
        make_workspace(&target.place, ID, None).unwrap();
        assert_eq!(std::fs::read(target.path(MARK)).unwrap(), mark_of(ID));
    }
}

#[test]
fn a_link_is_no_workspace_and_a_mark_with_two_names_is_nobodys() {
    let target = Target::new();
    let theirs = target.top.path().join("theirs");
    std::fs::create_dir(&theirs).unwrap();
    std::fs::write(theirs.join(MARK), mark_of(ID)).unwrap();
    symlink(&theirs, &target.place.directory).unwrap();
    assert!(make_workspace(&target.place, ID, None).is_err());
    assert!(target.remove().is_err());
    assert!(theirs.join(MARK).exists());

    let target = Target::new();
    make_workspace(&target.place, ID, None).unwrap();
    std::fs::hard_link(target.path(MARK), target.top.path().join("other")).unwrap();
    assert!(target.remove().is_err());
    assert!(!target.is_gone());
}

#[test]
fn a_directory_that_others_may_write_in_is_left_alone() {
    let target = Target::new();
    make_workspace(&target.place, ID, None).unwrap();
    std::fs::write(target.path("data.0"), b"1").unwrap();
    let open = std::fs::Permissions::from_mode(0o777);
    std::fs::set_permissions(&target.place.directory, open).unwrap();
    let refusal = target.remove().unwrap_err();
    assert!(
        refusal.message.contains("is not leadline's alone"),
        "{refusal:?}"
    );
    let refusal = remove_files(&target.place, "data", 60.0).unwrap_err();
    assert!(
        refusal.message.contains("is not leadline's alone"),
        "{refusal:?}"
    );
    assert!(target.path("data.0").exists());
}

#[test]
fn files_are_removed_by_their_prefix_and_a_dot() {
    let target = Target::new();
    make_workspace(&target.place, ID, None).unwrap();
    for name in ["a.0", "a.1", "ab.0"] {
        std::fs::write(target.path(name), b"1").unwrap();
    }
    assert_eq!(remove_files(&target.place, "a", 60.0), Ok(false));
    forget_cached(Path::new(&target.place.directory), "ab").unwrap();
    let names = target
        .place
        .open()
        .unwrap()
        .holds(&target.place.directory)
        .unwrap();
    assert_eq!(names.into_iter().collect::<Vec<_>>(), [MARK, "ab.0"]);
    for prefix in ["", ".", "..", "a/b"] {
        assert!(
            remove_files(&target.place, prefix, 60.0).is_err(),
            "{prefix}"
        );
    }
}

#[test]
fn a_target_that_is_another_one_now_is_not_taken_for_one_without_the_directory() {
    let target = Target::new();
    let was = |mount_point: &str| MountPlace {
        mount_point: mount_point.to_owned(),
        file_system: "nfs4".to_owned(),
        source: "server:/export".to_owned(),
    };
    let there = was("/nowhere");
    let refusal = remove_workspace(&target.place, ID, &[], Some(&there), 1.0, false).unwrap_err();
    assert!(
        refusal
            .message
            .contains("lay on nfs4 (server:/export) mounted on /nowhere"),
        "{refusal:?}"
    );
    let gone = Workspace::new(&format!("/nowhere/at/all/leadline-{ID}"), None).unwrap();
    let refusal = remove_workspace(&gone, ID, &[], None, 1.0, false).unwrap_err();
    assert!(
        refusal.message.contains("is no directory any more"),
        "{refusal:?}"
    );
}

#[test]
fn only_names_of_studies_are_workspaces() {
    for name in ["leadline-01234567", "leadline-0123456789abcdef-ec_pool-2"] {
        assert!(
            Workspace::new(&format!("/top/{name}"), None).is_ok(),
            "{name}"
        );
        assert!(
            Workspace::new(&format!("/{name}"), Some("null://")).is_ok(),
            "{name}"
        );
        assert!(
            Workspace::new(&format!("/top/{name}"), Some("null://")).is_err(),
            "{name}"
        );
    }
    for name in [
        "leadline-0123456",
        "leadline-0123456X",
        "leadline-01234567-",
        "leadline-01234567-A",
        "data",
        "",
    ] {
        assert!(
            Workspace::new(&format!("/top/{name}"), None).is_err(),
            "{name}"
        );
    }
    assert!(Workspace::new("leadline-01234567", None).is_err());
}

#[test]
fn the_mount_of_a_path_is_the_longest_above_it_and_the_latest() {
    let text = "20 1 8:1 / / rw - ext4 /dev/vda1 rw\n\
                30 20 0:40 / /mnt/a\\040b rw shared:1 - nfs4 server:/old rw\n\
                31 30 0:41 / /mnt/a\\040b rw - ceph 10.0.0.1:/ rw\n\
                broken line\n";
    let found = mount_above(Path::new("/mnt/a b/c"), text).unwrap();
    assert_eq!(
        (found.file_system.as_str(), found.mount_point.as_str()),
        ("ceph", "/mnt/a b")
    );
    assert_eq!(
        mount_above(Path::new("/mnt/a bc"), text)
            .unwrap()
            .mount_point,
        "/"
    );
}
