//! The device through AMD's runtime, with the embedded GPU below the runtime, computes the same bits as the
//! embedded GPU directly.
//!
//! A test runs itself again as an application of `flipwave exec`; the variable [`INSIDE`] marks this run.

use flipwave_codeobj::CodeObject;
use flipwave_device::{
    Address, ArgumentValue, Completion, Device, DeviceError, Dim3, Dispatch, FaultCause, layout,
};
use flipwave_rocr::RocrDevice;
use flipwave_sim::EmbeddedGpu;
use flipwave_tests::{
    Finished, assemble, compile_file, examples_folder, flipwave, gfx90a, random_words, scalar,
    to_bytes,
};
use std::path::Path;
use std::time::Duration;

/// Environment variable with the name of the test that runs under `flipwave exec`.
const INSIDE: &str = "FLIPWAVE_TEST_INSIDE";

/// Runs a test of this file under `flipwave exec`. Returns `true` if this process is that run.
fn is_inside(test: &str) -> bool {
    if std::env::var(INSIDE).is_ok_and(|inside| inside == test) {
        return true;
    }
    let program = std::env::current_exe().expect("the path of this test");
    let program = program.to_str().expect("text");
    let folder = std::env::temp_dir();
    let name = format!("rocr::{test}");
    let line = ["exec", "--", program, &name, "--exact", "--nocapture", "--test-threads=1"];
    let finished = flipwave(&folder, &line, &[(INSIDE, test)]);
    assert_eq!(finished.code, Some(0), "{}{}", finished.stdout, finished.stderr);
    assert!(finished.stdout.contains("1 passed"), "{}", finished.stdout);
    false
}

/// Compiles a kernel of the quickstart.
fn quickstart(file: &str) -> CodeObject {
    let source = examples_folder().join("kernels").join(file);
    CodeObject::parse(&compile_file(&source, &["-O3"])).expect("a code object")
}

fn buffer<D: Device>(device: &mut D, bytes: &[u8]) -> Address {
    let address = device.allocate(bytes.len() as u64).expect("memory");
    device.write(address, bytes).expect("the memory just allocated");
    address
}

fn contents<D: Device>(device: &D, address: Address, bytes: usize) -> Vec<u8> {
    let mut contents = vec![0; bytes];
    device.read(address, &mut contents).expect("memory that is allocated");
    contents
}

fn dispatch<D: Device>(
    device: &mut D,
    object: &CodeObject,
    grid: Dim3,
    workgroup: Dim3,
    arguments: &[ArgumentValue],
) -> Result<Completion, DeviceError> {
    let module = device.load(object)?;
    let kernel = &object.kernels()[0];
    let layout = layout(kernel, arguments, grid, workgroup).expect("arguments that fit");
    device.dispatch(&Dispatch {
        module,
        kernel: kernel.name.to_string(),
        grid,
        workgroup,
        kernarg: layout.kernarg,
        dynamic_lds: layout.dynamic_lds,
        instruction_limit: 1 << 32,
        queued: None,
        is_cooperative: false,
    })
}

fn complete<D: Device>(
    device: &mut D,
    object: &CodeObject,
    grid: Dim3,
    workgroup: Dim3,
    arguments: &[ArgumentValue],
) -> u64 {
    match dispatch(device, object, grid, workgroup, arguments)
        .unwrap_or_else(|error| panic!("{error}"))
    {
        Completion::Completed(statistics) => statistics.waves,
        Completion::Faulted(fault) => panic!("{fault}"),
    }
}

/// Runs the three kernels of the quickstart. Returns the contents of all buffers, and the number of waves
/// of each kernel.
fn run<D: Device>(device: &mut D, inputs: &[Vec<u8>; 3]) -> (Vec<Vec<u8>>, [u64; 3]) {
    let pointer = ArgumentValue::Buffer;
    let [a, b, right] = inputs.each_ref().map(|input| buffer(device, input));
    let size = inputs[0].len();
    let [left, product] = [(); 2].map(|()| buffer(device, &vec![0; size]));
    let (sum, maximum) = (buffer(device, &[0; 8]), buffer(device, &to_bytes(&[i32::MIN])));
    let add = [pointer(a), pointer(b), pointer(left), scalar(4096u32)];
    let multiply = [pointer(product), pointer(left), pointer(right), scalar(64i32)];
    let reduce = [pointer(product), scalar(4096u32), pointer(sum), pointer(maximum)];
    let waves = [
        complete(device, &quickstart("vector_add.cl"), [4096, 1, 1], [256, 1, 1], &add),
        complete(device, &quickstart("matmul_tiled.cl"), [64, 64, 1], [16, 16, 1], &multiply),
        complete(device, &quickstart("reduction.cl"), [1024, 1, 1], [256, 1, 1], &reduce),
    ];
    let outputs = [(left, size), (product, size), (sum, 8), (maximum, 4)];
    (outputs.map(|(address, bytes)| contents(device, address, bytes)).to_vec(), waves)
}

/// Numbers between 1 and 2.
fn numbers(seed: u64) -> Vec<u8> {
    let words = random_words(4096).into_iter().map(|word| word.wrapping_mul(seed) as u32);
    let floats: Vec<f32> = words.map(|word| f32::from_bits(0x3f80_0000 | word >> 9)).collect();
    to_bytes(&floats)
}

fn open() -> RocrDevice {
    RocrDevice::open(0).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn quickstart_is_bit_identical_through_the_runtime() {
    if !is_inside("quickstart_is_bit_identical_through_the_runtime") {
        return;
    }
    let inputs = [numbers(1), numbers(3), numbers(5)];
    let mut device = open();
    assert_eq!(device.target().processor(), "gfx90a");
    let through_the_runtime = run(&mut device, &inputs);
    let embedded = || EmbeddedGpu::new(gfx90a()).expect("the embedded GPU");
    assert!(through_the_runtime == run(&mut embedded(), &inputs), "different bits or waves");
    // Negative control: another input gives other outputs.
    let mut changed = inputs;
    changed[0][2] ^= 1;
    assert!(through_the_runtime.0 != run(&mut embedded(), &changed).0, "a bit makes no difference");
}

#[test]
fn invalid_requests_are_errors() {
    if !is_inside("invalid_requests_are_errors") {
        return;
    }
    let mut device = open();
    let address = device.allocate(16).expect("memory");
    let outside = device.write(Address(address.0 + 8), &[0; 16]);
    assert!(matches!(outside, Err(DeviceError::NotAllocated { .. })), "{outside:?}");
    device.free(address).expect("what was allocated");
    assert!(matches!(device.free(address), Err(DeviceError::NotAllocated { .. })));
    let refused = RocrDevice::open(7).expect_err("one GPU");
    assert!(refused.to_string().contains("has 1"), "{refused}");
}

/// Writes the quickstart's campaign file with `device` and `faults` into `folder`.
fn campaign(folder: &Path, device: &str, faults: &str) {
    let text = std::fs::read_to_string(examples_folder().join("quickstart.yaml")).expect("there");
    let kernels = examples_folder().join("kernels");
    let faults_before = text.lines().find(|line| line.starts_with("faults:")).expect("faults");
    let text = text
        .replace(faults_before, &format!("faults: {faults}"))
        .replace("target: gfx90a", &format!("target: gfx90a\ndevice: {device}"))
        .replace("kernels/", &format!("{}/", kernels.display()));
    std::fs::write(folder.join("campaign.yaml"), text).expect("written");
}

/// Runs the campaign file in a folder, under `flipwave exec` if `has_gpu` is set.
fn run_campaign(folder: &Path, has_gpu: bool, options: &[&str]) -> Finished {
    let program = flipwave_tests::program();
    let program = program.to_str().expect("text");
    let run = ["run", "campaign.yaml", "--out", "results", "--force", "--without", "dead-values"];
    let start: &[&str] = if has_gpu { &["exec", "--", program] } else { &[] };
    flipwave(folder, &[start, &run, options].concat(), &[])
}

fn results(folder: &Path) -> String {
    std::fs::read_to_string(folder.join("results/results.csv")).expect("results")
}

/// A campaign whose kernels run in separate processes on AMD's runtime, with hooks. All results that do
/// not depend on addresses equal those of the embedded GPU.
#[test]
fn campaign_through_the_runtime_has_the_results_of_the_embedded_gpu() {
    let folder = tempfile::tempdir().expect("a folder");
    for faults in [
        "{model: flip_one_bit, target: destination_register, opcodes: [v_fmac_f32, ds_read2_b32], \
         count: 8}",
        "{model: flip_one_bit, target: global_memory, dispatches: [2, 2], count: 4}",
    ] {
        campaign(folder.path(), "rocr", faults);
        run_campaign(folder.path(), true, &["--workers", "2"]).expect_success();
        let through_the_runtime = results(folder.path());
        campaign(folder.path(), "embedded", faults);
        run_campaign(folder.path(), false, &["--by", "hook"]).expect_success();
        assert_eq!(through_the_runtime, results(folder.path()), "{faults}");
        run_campaign(folder.path(), false, &["--by", "hook", "--seed", "1"]).expect_success();
        assert_ne!(through_the_runtime, results(folder.path()), "another seed");
    }
}

#[test]
fn campaign_through_the_runtime_reports_unsupported_options() {
    let folder = tempfile::tempdir().expect("a folder");
    campaign(folder.path(), "rocr", "{model: flip_one_bit, count: 1}");
    let without_gpu = run_campaign(folder.path(), false, &[]);
    assert!(!without_gpu.stderr.contains("exit_code"), "{without_gpu:?}");
    let advice = ["is there an AMD GPU", "/dev/kfd", "`device: embedded` needs none"];
    without_gpu.expect_refused(&[&advice[..], &["AMD's runtime"]].concat());
    for options in [&["--by", "embedded"][..], &["--self-test"]] {
        let finished = run_campaign(folder.path(), true, options);
        finished.expect_refused(&["requires the embedded GPU"]);
    }
    let file = folder.path().join("campaign.yaml");
    let text = std::fs::read_to_string(&file).expect("there");
    std::fs::write(&file, text.replace("device: rocr", "device: hip")).expect("written");
    let expected = "device: unknown value `hip`, expected one of `embedded`, `rocr`, `cuda`";
    run_campaign(folder.path(), true, &[]).expect_refused(&[expected]);
    std::fs::write(&file, text.replace("gfx90a", "gfx1030")).expect("written");
    let program = flipwave_tests::program();
    let launch = ["exec", "--", program.to_str().expect("text"), "launch", "campaign.yaml"];
    let launch = [&launch[..], &["--out", "outputs"]].concat();
    flipwave(folder.path(), &launch, &[]).expect_refused(&["the GPU is a gfx90a"]);
    std::fs::write(&file, text).expect("written");
    let launched = flipwave(folder.path(), &launch, &[]).expect_success();
    assert!(launched.stdout.starts_with("completed on gfx90a"), "{launched:?}");
    let sum = std::fs::read(folder.path().join("outputs/output-1.bin")).expect("an output");
    assert_eq!(sum.len(), 8);
}

/// The cause of the device fault that ends a kernel of `instructions`.
fn fault(device: &mut RocrDevice, instructions: &str) -> FaultCause {
    let object = CodeObject::parse(&assemble(instructions).code_object).expect("a code object");
    let argument = ArgumentValue::Buffer(buffer(device, &[0; 256]));
    match dispatch(device, &object, [64, 1, 1], [64, 1, 1], &[argument]) {
        Ok(Completion::Faulted(fault)) => fault.cause,
        end => panic!("{end:?}"),
    }
}

#[test]
fn unmapped_memory_is_a_typed_fault() {
    if !is_inside("unmapped_memory_is_a_typed_fault") {
        return;
    }
    let load = "v_mov_b32 v2, 0x5000\nv_mov_b32 v3, 16\nglobal_load_dword v4, v[2:3], off\n";
    let cause = fault(&mut open(), load);
    let FaultCause::MemoryViolation { address, .. } = cause else { panic!("{cause}") };
    assert_eq!(address, Address(0x10_0000_5000));
}

#[test]
fn an_illegal_instruction_is_a_typed_fault() {
    if !is_inside("an_illegal_instruction_is_a_typed_fault") {
        return;
    }
    let cause = fault(&mut open(), ".long 0xffffffff\n");
    assert!(matches!(cause, FaultCause::IllegalInstruction { .. }), "{cause}");
}

#[test]
fn endless_kernel_is_hung_after_the_time_limit() {
    if !is_inside("endless_kernel_is_hung_after_the_time_limit") {
        return;
    }
    let mut device = open();
    device.set_time_limit(Duration::from_millis(300));
    let cause = fault(&mut device, "again:\ns_branch again\n");
    assert_eq!(cause, FaultCause::Watchdog { executed: 0 });
}
