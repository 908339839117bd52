//! What is read from code objects that clang makes, against LLVM's own readers.

mod common;

use common::{compile, source, workspace};
use flipwave_codeobj::CodeObject;

#[test]
fn smoke() {
    let directory = workspace();
    for (processor, version) in
        [("gfx90a", 4), ("gfx906", 5), ("gfx942", 5), ("gfx1030", 6), ("gfx1100", 5)]
    {
        let bytes = compile(
            &source("kernels.cl"),
            processor,
            &["-g", &format!("-mcode-object-version={version}")],
            &directory.path().join("k.co"),
        );
        let object = CodeObject::parse(&bytes).unwrap();
        assert_eq!(object.version(), version);
        assert_eq!(object.target().processor(), processor);
        for kernel in object.kernels() {
            println!("{kernel:#?}");
        }
        println!("{:#?} {:#?}", object.relocations(), object.segments());
        println!("{:?}", object.load_image(0x7000_0000).unwrap().bytes.len());
    }
}
