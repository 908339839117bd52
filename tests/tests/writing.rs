//! Modified code objects run: moved code, added code, and added data that the host reads.

use flipwave_codeobj::{CodeObject, DataSymbol, Editor, MovedCode};
use flipwave_device::{ArgumentValue, Completion, Device, Dispatch, layout};
use flipwave_isa::{Isa, Pc};
use flipwave_sim::EmbeddedGpu;
use flipwave_tests::{TestProgram, assemble, compile_for, gfx90a, machines, to_bytes};

/// Moves all code to `address`, with unchanged distances between instructions.
fn moved(object: &CodeObject, address: u64) -> (Vec<u8>, MovedCode) {
    let text = object.text().next().expect("code");
    let isa = Isa::new(object.target()).expect("the instruction set");
    let mut moved = MovedCode::default();
    let mut offset = 0;
    while let Some(rest) = text.bytes().get(offset..).filter(|rest| !rest.is_empty()) {
        let old = Pc(text.address + offset as u64);
        let size = isa.decode(rest, old).map_or(4, |inst| usize::from(inst.size));
        let new = address + offset as u64..address + (offset + size) as u64;
        moved.new_addresses.insert(old, Pc(new.start));
        moved.runs.push((new, old));
        offset += size;
    }
    (text.bytes().to_vec(), moved)
}

#[test]
fn moved_kernels_compute_the_same() {
    let start: Vec<u32> = (1..=256).collect();
    for machine in machines() {
        // Optimised code does not refer to data of the code object, whose distance changes.
        for level in ["-O1", "-O3"] {
            let original = compile_for(machine, "control.cl", &[level]);
            let object = CodeObject::parse(&original).expect("a code object");
            let mut editor = Editor::new(&object);
            editor.add_data(vec![7; 100], 1000, 16, Vec::new()).expect("new data");
            let address = editor.free_address();
            let (bytes, map) = moved(&object, address);
            editor.move_text(address, bytes, map).expect("the code moves");
            let changed = editor.finish().unwrap_or_else(|error| panic!("{error}")).object;
            let entry = changed.kernel("collatz").expect("the kernel").entry();
            assert!(entry.0 >= address, "it runs in its new place");
            let outputs = |bytes: &[u8]| {
                let mut program = TestProgram::new(bytes);
                let arguments = [program.input(&start), program.output(&[0u32; 256])];
                program.launch("collatz", [256, 1, 1], [64, 1, 1], &arguments);
                program.outputs()
            };
            let expected = outputs(&original);
            assert_ne!(expected, [to_bytes(&[0u32; 256])]);
            assert!(outputs(changed.bytes()) == expected, "{level} on {machine}");
        }
    }
}

/// A branch to added code, which stores to added data and returns.
#[test]
fn host_reads_data_written_by_added_code() {
    let kernel = assemble("patched: s_nop 0\nback: global_store_dword v1, v0, s[2:3]\n");
    let object = CodeObject::parse(&kernel.code_object).expect("a code object");
    let isa = Isa::new(&gfx90a()).expect("the instruction set");
    let mut editor = Editor::new(&object);
    let symbols = vec![DataSymbol { name: "seen".to_owned(), offset: 8, size: 256 }];
    let data = editor.add_data(vec![0xee; 8], 256, 64, symbols).expect("new data");
    let added = editor.free_address();
    let back = |from: u64| (kernel.label("back").0.wrapping_sub(from + 4) as i64) / 4;
    // The offset is relative to the instruction after s_getpc.
    let distance = (data + 8).wrapping_sub(added + 4);
    let [low, high] = [distance as u32, (distance >> 32) as u32];
    let code = format!(
        "s_getpc_b64 s[10:11]\ns_add_u32 s10, s10, {low:#x}\ns_addc_u32 s11, s11, {high:#x}\n\
         v_add_u32 v2, 100, v0\nglobal_store_dword v1, v2, s[10:11]\ns_nop 0\n"
    );
    let mut code = isa.assemble(&code).expect("it assembles");
    let branch = |words: i64| isa.assemble(&format!("s_branch {}", words & 0xffff));
    let from = added + code.len() as u64;
    code.extend(branch(back(from)).expect("it assembles"));
    editor.add_text(added, code, MovedCode::default()).expect("new code");
    let patched = kernel.label("patched").0;
    let words = (added - patched - 4) as i64 / 4;
    editor.patch(patched, branch(words).expect("it assembles")).expect("the code to patch");
    let changed = editor.finish().unwrap_or_else(|error| panic!("{error}")).object;

    let mut device = EmbeddedGpu::new(gfx90a()).expect("the embedded GPU");
    let module = device.load(&changed).expect("it loads");
    let buffer = device.allocate(256).expect("memory");
    let (grid, workgroup) = ([64, 1, 1], [64, 1, 1]);
    let arguments = [ArgumentValue::Buffer(buffer)];
    let layout = layout(&changed.kernels()[0], &arguments, grid, workgroup).expect("arguments");
    let kernel = "planted".to_owned();
    let (kernarg, dynamic_lds, instruction_limit) = (layout.kernarg, layout.dynamic_lds, 1000);
    let dispatch = Dispatch {
        module,
        kernel,
        grid,
        workgroup,
        kernarg,
        dynamic_lds,
        instruction_limit,
        queued: None,
        is_cooperative: false,
    };
    let (end, violations) = device.dispatch_strict(&dispatch).expect("it starts");
    assert!(matches!(end, Completion::Completed(_)), "{end:?}");
    assert!(violations.is_empty(), "{violations:?}");

    let seen = changed.symbols().iter().find(|symbol| &*symbol.name == "seen").expect("seen");
    let [mut found, mut untouched, mut output] = [vec![0; 256], vec![0; 8], vec![0; 256]];
    let place = device.address_of(module, seen.address).expect("in the module");
    device.read(place, &mut found).expect("memory");
    assert_eq!(found, to_bytes(&(100..164u32).collect::<Vec<_>>()));
    let place = device.address_of(module, data).expect("in the module");
    device.read(place, &mut untouched).expect("memory");
    assert_eq!(untouched, [0xee; 8]);
    device.read(buffer, &mut output).expect("memory");
    assert_eq!(output, to_bytes(&(0..64u32).collect::<Vec<_>>()), "control came back");
    let error = device.address_of(module, 1 << 40).expect_err("outside");
    assert!(error.to_string().contains("0x10000000000"), "{error}");
}
