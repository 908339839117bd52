//! Files of the kernel driver, as ordinary programs in an application see them.

use flipwave_tests::flipwave;

/// Runs a shell script under `flipwave exec` and returns its standard output.
fn inside(options: &[&str], script: &str) -> String {
    let folder = tempfile::tempdir().expect("a folder");
    let line = [&["exec"], options, &["--", "sh", "-c", script]].concat();
    flipwave(folder.path(), &line, &[]).expect_success().stdout
}

#[test]
fn driver_files_of_all_devices_exist() {
    let kinds = "stat -c '%n %F %t:%T' /dev/dri/renderD128 /dev/kfd | cut -d: -f1,2";
    let seen = inside(&[], kinds);
    assert!(seen.contains("/dev/dri/renderD128 character special file e2:80\n"), "{seen}");
    assert!(seen.contains("/dev/kfd character special file "), "{seen}");
    let two = inside(&["--gpus", "2"], "ls /dev/dri /sys/devices/virtual/kfd/kfd/topology/nodes");
    assert!(two.contains("renderD128\nrenderD129\n") && two.contains("0\n1\n2\n"), "{two}");
    let files = "cat /sys/module/amdgpu/initstate /sys/dev/char/226:128/device/device; \
                 realpath /sys/dev/char/226:128/device/drm";
    assert_eq!(inside(&[], files), "live\n0x740f\n/sys/dev/char/226:128/device/drm\n");
    let version =
        "grep gfx_target_version /sys/devices/virtual/kfd/kfd/topology/nodes/1/properties";
    assert_eq!(inside(&["--gpu", "gfx1100"], version), "gfx_target_version 110000\n");
}

#[test]
fn device_classes_lead_to_the_gpus() {
    let script = "cat /sys/class/kfd/kfd/topology/nodes/2/gpu_id; \
                  for name in card1 renderD129; do readlink /sys/class/drm/$name; \
                  cat /sys/class/drm/$name/device/device; done; \
                  cat /sys/class/drm/card1/device/hwmon/hwmon*/name; \
                  test -e /sys/class/drm/card2 || echo none";
    let seen = inside(&["--gpu", "gfx942", "--gpus", "2"], script);
    let expected = "4098\n../../devices/pci0000:00/0000:02:00.0/drm/card1\n0x74a1\n\
                    ../../devices/pci0000:00/0000:02:00.0/drm/renderD129\n0x74a1\namdgpu\nnone\n";
    assert_eq!(seen, expected);
}

#[test]
fn other_files_are_unchanged() {
    let script = "cd /sys/devices && ls -d system && stat -c %F /dev/null && cat /proc/self/comm; \
                  test -e /dev/dri/card7 || test -e /sys/module/amdgpu/none || echo none; \
                  echo written > file && cat file";
    let seen = inside(
        &[],
        &format!(
            "d=$PWD; {}",
            script.replace("> file", "> $d/file").replace("cat file", "cat $d/file")
        ),
    );
    assert_eq!(seen, "system\ncharacter special file\ncat\nnone\nwritten\n");
}
