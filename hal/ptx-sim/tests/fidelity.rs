//! The exactness of executed operations, and surveys of golden runs.

use crate::common::{Bench, arguments};
use flipwave_arch::LaneMask;
use flipwave_device::Completion;
use flipwave_machine::{Doubt, Exactness, Footprints, Machine, Progress};
use std::num::NonZeroUsize;

/// Two waves; the second executes an approximation.
const MODULE: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %t, %a, %b;
    .reg .b64 %out;
    ld.param.u64 %out, [out];
    mov.u32 %t, %tid.x;
    mad.wide.u32 %out, %t, 4, %out;
    cvt.rn.f32.u32 %a, %t;
    add.rn.f32 %b, %a, 0f3F800000;
    mul.f32 %b, %b, %b;
    setp.lt.u32 %p, %t, 48;
    @%p bra END;
    ex2.approx.f32 %b, %a;
END:
    st.global.f32 [%out], %b;
    ret;
}
";

#[test]
fn surveys_count_operations_lanes_and_memory() {
    let mut bench = Bench::new(MODULE);
    let output = bench.buffer(&[0; 256]);
    let dispatch = bench.dispatch("k", 64, 64, &arguments(&[output.0]));
    assert!(!bench.gpu.has_settled_course(&dispatch, false));
    let mut execution = bench.gpu.begin(&dispatch).expect("a dispatch");
    let mut survey = bench.gpu.begin_survey(&execution, Some(LaneMask::FULL)).expect("a survey");
    let mut check = bench.gpu.fidelity_check();
    bench.gpu.begin_fidelity("k", &execution, &mut *check);
    let mut footprints = Footprints::default();
    let end = bench.gpu.advance_surveyed_divided(
        &mut execution,
        &mut *survey,
        &mut *check,
        &mut footprints,
        NonZeroUsize::MIN,
        u64::MAX,
    );
    let Ok(Progress::Ended(Completion::Completed(statistics))) = end else { panic!("{end:?}") };
    // Eleven instructions a wave, except that the first wave branches around one. In the second wave, half of
    // the lanes branch, and half compute the approximation.
    assert_eq!((statistics.waves, statistics.wave_instructions), (2, 10 + 11));
    assert_eq!(statistics.lane_operations, 32 * 10 + 32 * 9 + 16 + 16);
    let fidelity = bench.gpu.fidelity(&mut *check);
    let find = |name: &str| {
        let found = fidelity.operations.iter().find(|found| found.operation == name);
        let found = found.unwrap_or_else(|| panic!("{name}"));
        (found.exactness.clone(), found.executions)
    };
    assert_eq!(find("ex2.approx.f32"), (Exactness::WithinError("within 2 ULP".into()), 1));
    assert_eq!(find("add.rn.f32"), (Exactness::Exact, 2));
    assert!(matches!(find("mul.f32"), (Exactness::NotSettled(_), 2)));
    assert!(fidelity.decisions.iter().all(|decision| decision.doubt == Doubt::NotSettled));
    let counts = survey.counts().expect("counts");
    let waves = counts.take_ended();
    let lanes = |wave: usize, text: &str| {
        let known = waves[wave].instructions.iter();
        let found = known.filter(|(number, _)| counts.instruction(*number).text().contains(text));
        found.map(|(_, count)| (count.executions, count.lanes)).next()
    };
    assert_eq!([lanes(0, "ex2"), lanes(1, "ex2")], [None, Some((1, 16))]);
    assert_eq!(lanes(1, "bra"), Some((1, 16)));
    let footprint = footprints.get([0; 3]).expect("a workgroup");
    assert_eq!(footprint.written.runs(), [(output, 256)]);
    assert!(footprint.read.is_empty() && footprints.independent());
}
