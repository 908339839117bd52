//! Compares the structures and call numbers of this crate with the kernel's headers, as a C
//! compiler sees them.

use super::abi::{self, Call};
use super::render_abi;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

/// Fields that the headers do not name: words of unions, and padding.
const UNNAMED: [(&str, &str); 7] = [
    ("drm_amdgpu_gem_mmap", "handle_or_offset"),
    ("drm_version", "pad"),
    ("drm_amdgpu_info_device", "pad"),
    ("drm_amdgpu_info", "first"),
    ("drm_amdgpu_info", "second"),
    ("drm_amdgpu_info", "third"),
    ("drm_amdgpu_info", "fourth"),
];

/// Structures that not all headers have, and calls that are defined where they are: those of
/// versions 1.12 and 1.13 of the interface, and those of AMD's own kernel (`kfd_ioctl.h` of ROCm's
/// libhsakmt).
const NEW: [(&str, &str); 4] = [
    ("kfd_ioctl_export_dmabuf_args", "EXPORT_DMABUF"),
    ("kfd_ioctl_runtime_enable_args", "RUNTIME_ENABLE"),
    ("kfd_ioctl_ipc_export_handle_args", "IPC_EXPORT_HANDLE"),
    ("kfd_ioctl_ipc_import_handle_args", "IPC_IMPORT_HANDLE"),
];

/// Returns `true` if the headers name a field.
fn is_named(field: &Field) -> bool {
    !UNNAMED.contains(&(field.0, field.1))
}

/// Structure, name, offset, size in bytes.
type Field = (&'static str, &'static str, usize, usize);

/// Offset and size of each field, and number and type of each call, as the C compiler sees them.
fn compiled(fields: &[Field], calls: &[(Call, &str)]) -> Vec<[usize; 2]> {
    let folder = tempfile::tempdir().expect("a folder");
    let in_folder = |name: &str| folder.path().join(name);
    // Some systems have DRM headers in another folder. Only types of this one are needed.
    std::fs::create_dir(in_folder("drm")).expect("a folder");
    std::fs::write(in_folder("drm/drm.h"), "#include <linux/types.h>\n").expect("written");
    let mut source = "#include <stddef.h>\n#include <stdio.h>\n#include <sys/ioctl.h>\n\
                      #include <linux/kfd_ioctl.h>\n#include <amdgpu_drm.h>\nint main(void) {\n"
        .to_owned();
    for (structure, field, offset, bytes) in fields {
        // Fields may be named as keywords of Rust.
        let field = field.trim_start_matches("r#");
        let new = NEW.iter().find(|(name, _)| name == structure);
        if let Some((_, call)) = new {
            // With an older header, prints this crate's values.
            let _ = writeln!(
                source,
                "#ifndef AMDKFD_IOC_{call}\nprintf(\"{offset} {bytes}\\n\");\n#else"
            );
        }
        let _ = writeln!(
            source,
            "printf(\"%zu %zu\\n\", offsetof(struct {structure}, {field}), \
             sizeof(((struct {structure} *)0)->{field}));"
        );
        source.push_str(if new.is_some() { "#endif\n" } else { "" });
    }
    for (number, name) in calls {
        let call = format!("AMDKFD_IOC_{name}");
        let _ =
            writeln!(source, "#ifndef {call}\n#define {call} _IO('K', {})\n#endif", *number as u8);
        let _ =
            writeln!(source, "printf(\"%d %d\\n\", (int)_IOC_NR({call}), (int)_IOC_TYPE({call}));");
    }
    source.push_str("}\n");
    std::fs::write(in_folder("layout.c"), source).expect("written");
    let run = |command: &mut Command| {
        let output = command.current_dir(folder.path()).output().expect("it starts");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("text")
    };
    let includes = ["-I", ".", "-I", "/usr/include/libdrm"];
    run(Command::new("cc").args(includes).args(["layout.c", "-o", "layout"]));
    let text = run(&mut Command::new(Path::new("./layout")));
    let numbers = |line: &str| {
        let mut numbers = line.split(' ').map(|number| number.parse().expect("a number"));
        std::array::from_fn(|_| numbers.next().expect("two numbers"))
    };
    text.lines().map(numbers).collect()
}

#[test]
fn structures_and_calls_match_the_kernel_headers() {
    let mut fields = [abi::fields(), render_abi::fields()].concat();
    fields.retain(is_named);
    let expected = compiled(&fields, &Call::ALL);
    assert_eq!(expected.len(), fields.len() + Call::ALL.len());
    for ((structure, field, offset, bytes), expected) in fields.iter().zip(&expected) {
        assert_eq!([*offset, *bytes], *expected, "{structure}.{field}");
    }
    for ((call, name), expected) in Call::ALL.iter().zip(&expected[fields.len()..]) {
        assert_eq!([*call as usize, usize::from(b'K')], *expected, "{name}");
    }
}

/// Negative control.
#[test]
fn wrong_offsets_and_call_numbers_are_detected() {
    let moved: Field = ("kfd_ioctl_create_queue_args", "ring_size", 40, 4);
    let wrong = [(Call::GetVersion, "CREATE_QUEUE")];
    let expected = compiled(&[moved], &wrong);
    assert_ne!(expected[0], [moved.2, moved.3]);
    assert_ne!(expected[1][0], wrong[0].0 as usize);
}
