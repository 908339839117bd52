//! Emulation of an instruction that no GPU has: a Fourier transform across the wave, of one complex
//! number per lane. The kernel contains a proxy instruction that compilers never emit. A hook replaces
//! the proxy and writes the result to the proxy's destination.

mod common;

use flipwave_device::Device;
use flipwave_hooks::hook::{Argument, HookCompiler, Mask, Source};
use flipwave_hooks::rewrite::{HookCall, Instrumentation, When};
use flipwave_isa::{Inst, Value};
use flipwave_sim::EmbeddedGpu;
use std::error::Error;

/// The proxy multiplies a register pair, taken as one 64-bit number, by 1/(2 pi).
const KERNEL: &str = r#"
kernel void transform(global const double *in, global double *out)
{
    uint i = 64 * __builtin_amdgcn_workgroup_id_x() + __builtin_amdgcn_workitem_id_x();
    double result;
    __asm__ volatile("v_mul_f64 %0, 0.15915494309189532, %1" : "=v"(result) : "v"(in[i]));
    out[i] = result;
}"#;

/// Each step adds and subtracts the values of lanes at distance `half`, and rotates the differences.
/// The last exchange undoes the bit reversal.
const HOOK: &str = r#"
typedef struct { float re, im; } complex;

static float from_lane(float value, uint32_t lane)
{
    return __builtin_bit_cast(float,
        __builtin_amdgcn_ds_bpermute(4 * lane, __builtin_bit_cast(int, value)));
}

complex fft(complex x)
{
    uint32_t lane = flipwave_lane();
#pragma unroll
    for (uint32_t half = FLIPWAVE_LANES / 2; half > 0; half /= 2) {
        complex other = {from_lane(x.re, lane ^ half), from_lane(x.im, lane ^ half)};
        if (lane & half) {
            /* The hardware's sine and cosine take turns, not radians. */
            float turn = (float)(lane & (half - 1)) / (float)(2 * half);
            float cosine = __builtin_amdgcn_cosf(turn), sine = -__builtin_amdgcn_sinf(turn);
            complex difference = {other.re - x.re, other.im - x.im};
            x.re = difference.re * cosine - difference.im * sine;
            x.im = difference.re * sine + difference.im * cosine;
        } else {
            x.re += other.re;
            x.im += other.im;
        }
    }
    uint32_t reversed = __builtin_bitreverse32(lane) / (UINT32_MAX / FLIPWAVE_LANES + 1);
    complex result = {from_lane(x.re, reversed), from_lane(x.im, reversed)};
    return result;
}"#;

fn is_proxy(inst: &Inst) -> bool {
    inst.operation.name() == "v_mul_f64" && inst.text.contains("0.15915494309189532")
}

/// Runs the example.
pub fn main() -> Result<(), Box<dyn Error>> {
    let object = common::compile(KERNEL)?;
    let mut instrumentation = Instrumentation::new(&object)?;
    let compiler = HookCompiler::find()?;
    let source = Source { name: "fft.c".into(), text: HOOK.into(), ..Source::default() };
    let target = object.target();
    let hooks = compiler.read(&source, target, target.default_wave_size())?;
    let source = instrumentation.add_source(hooks);

    let proxies: Vec<_> = instrumentation
        .program()
        .executable_insts()
        .filter(|(_, inst)| is_proxy(inst))
        .filter_map(|(at, inst)| match inst.operands.first()?.value {
            Value::Register(destination) => Some((at, destination)),
            _ => None,
        })
        .collect();
    assert_eq!(proxies.len(), 1, "the kernel's proxy");
    for (at, destination) in proxies {
        let call = HookCall {
            source,
            function: "fft".into(),
            arguments: vec![Argument::Operand(2)],
            results: vec![destination],
            mask: Mask::Whole,
        };
        instrumentation.call(at, When::Instead, call);
    }
    let rewritten = instrumentation.rewrite(&compiler)?;

    let values: Vec<[f32; 2]> =
        (0..128).map(|i| [(i * i % 23) as f32 - 11.0, (i * 7 % 13) as f32 / 4.0]).collect();
    let expected: Vec<[f64; 2]> = values.chunks(64).flat_map(transformed).collect();
    let mut device = EmbeddedGpu::new(target.clone())?;
    let [original, instrumented] = [device.load(&object)?, device.load(&rewritten.object)?];
    let bytes: Vec<u8> = values.iter().flatten().flat_map(|part| part.to_le_bytes()).collect();
    for (module, is_transform) in [(instrumented, true), (original, false)] {
        let buffers = [common::upload(&mut device, &bytes)?, device.allocate(8 * 128)?];
        common::launch(&mut device, &object, module, 128, &buffers)?;
        let mut left = vec![0; 8 * 128];
        device.read(buffers[1], &mut left)?;
        let error = error(&left, &expected);
        println!("{}: largest error {error:.1e}", if is_transform { "hook" } else { "proxy" });
        // The proxy without the hook does not compute the transform.
        assert_eq!(error < 1e-3, is_transform);
    }
    Ok(())
}

/// The transform by its definition.
fn transformed(values: &[[f32; 2]]) -> Vec<[f64; 2]> {
    let count = values.len();
    let term = |k: usize, n: usize| {
        let turn = -std::f64::consts::TAU * (k * n % count) as f64 / count as f64;
        let [re, im] = values[n].map(f64::from);
        [re * turn.cos() - im * turn.sin(), re * turn.sin() + im * turn.cos()]
    };
    let sum = |k| {
        let terms = (0..count).map(|n| term(k, n));
        terms.fold([0.0, 0.0], |[re, im], term| [re + term[0], im + term[1]])
    };
    (0..count).map(sum).collect()
}

/// Largest absolute error of a real or imaginary part.
fn error(left: &[u8], expected: &[[f64; 2]]) -> f64 {
    let (words, _) = left.as_chunks();
    let parts = words.iter().map(|word| f64::from(f32::from_le_bytes(*word)));
    let distances = parts.zip(expected.iter().flatten()).map(|(part, whole)| (part - whole).abs());
    distances.fold(0.0, |most, distance| if distance <= most { most } else { distance })
}
