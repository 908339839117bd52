//! Results of the matrix examples, compared with plain Rust.

use super::format::Format;
use super::inputs::{Inputs, Values};
use super::reference::{compare, product};
use super::run::unpacked;
use super::variants::variants;
use flipwave_campaigns::{Campaign, prepare};
use flipwave_tests::{buffer, examples_folder, kernels, to_values};

/// Example files with their operation and format.
const SHIPPED: [(&str, &str, Format); 3] = [
    ("mfma", "mfma_f32_16x16x16f16", Format::F16),
    ("mxfp4", "mfma_scale_f32_16x16x128_f8f6f4", Format::Fp4),
    ("wmma", "wmma_f32_16x16x16_f16_{}", Format::F16),
];

#[test]
fn matrix_examples_agree_with_plain_rust() {
    let folder = examples_folder().join("matrix");
    let files =
        std::fs::read_dir(&folder).expect("the folder").map(|entry| entry.expect("an entry"));
    let files = files.filter(|file| file.path().extension().is_some_and(|end| end == "yaml"));
    assert_eq!(files.count(), SHIPPED.len(), "an example without a reference");
    for (name, operation, format) in SHIPPED {
        let campaign = Campaign::read(&folder.join(format!("{name}.yaml")));
        let campaign = campaign.unwrap_or_else(|error| panic!("{error}"));
        let is_its = |variant: &super::Variant| {
            variant.operation == operation
                && variant.a == format
                && variant.machine.target().to_string() == campaign.target.to_string()
        };
        let variant = variants().into_iter().find(is_its).expect("its kernel");
        let codes = |name: &str, bits: u32, lines: usize| {
            let has_it = kernels(&campaign).buffers.iter().any(|buffer| buffer.name == name);
            let bytes = if has_it { buffer::<u8>(&campaign, name) } else { Vec::new() };
            unpacked(&bytes, bits, lines)
        };
        let (rows, columns) = (variant.rows(), variant.columns());
        let inputs = Inputs {
            a: codes("a", variant.a.bits(), rows),
            b: codes("b", variant.b.bits(), columns),
            c: vec![vec![0.0; columns]; rows],
            indices: Vec::new(),
            a_scales: codes("a_scales", 8, rows),
            b_scales: codes("b_scales", 8, columns),
        };
        assert!(buffer::<f32>(&campaign, "c").iter().all(|value| *value == 0.0));
        let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{error}"));
        let golden = prepared.workload.golden().unwrap_or_else(|error| panic!("{error}"));
        let expected = product(&variant, &inputs);
        let compared = compare(&variant, Values::Near, &expected, &golden.outputs[0].bytes());
        assert_eq!((compared.wrong, compared.undetermined), (0, 0), "{name}: {compared:?}");
        // Negative control: the products are not zero.
        let values: Vec<f32> = to_values(&golden.outputs[0].bytes());
        assert!(values.iter().all(|value| *value != 0.0), "{name}");
    }
}
