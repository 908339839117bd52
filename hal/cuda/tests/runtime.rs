//! Programs on the runtime API, with kernels in the same file.

use crate::common::{cuda_program, output};

const PRINTED: &str = "value 40\nvalue 41\nruntime: ok\n";

#[test]
fn kernels_and_variables_of_the_program_are_used() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = cuda_program("runtime.cu", folder.path(), 1);
    for (arguments, has_fault) in [(&[][..], false), (&["fault"][..], true)] {
        let output = output(&program, folder.path(), arguments);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{errors}{}", String::from_utf8_lossy(&output.stdout));
        assert_eq!(String::from_utf8_lossy(&output.stdout), PRINTED);
        assert_eq!(
            errors.contains("kernel wild(int*): memory violation: write to 0x40"),
            has_fault,
            "{errors}"
        );
    }
}

#[test]
fn programs_with_machine_code_alone_get_a_clear_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = cuda_program("runtime.cu", folder.path(), 2);
    let output = output(&program, folder.path(), &[]);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    let expected = "flipwave: the fat binary has no PTX for sm_90, only machine code (SASS) for sm_80; compile with";
    assert!(errors.starts_with(expected), "{errors}");
}
