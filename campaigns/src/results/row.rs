//! Creates the row of an injection.

use crate::run::outcome::Verdict;
use flipwave_analysis::{Outcome, Row, Workgroup};
use flipwave_injector::{InjectedChange, Lanes, Place, Planned};

/// Creates the row of an injection.
pub(crate) fn row(
    index: u64,
    planned: &Planned,
    stratum: &str,
    struck: &InjectedChange,
    verdict: &Verdict,
) -> Row {
    let site = &planned.site;
    let event = site.event();
    let run = verdict.run();
    let is_masked = verdict.outcome() == Outcome::Masked;
    Row {
        injection: index,
        site: site.to_string(),
        kernel: planned.kernel.clone(),
        dispatch: event.map(|event| event.dispatch),
        // The caller knows the labels of the program's dispatches.
        label: None,
        workgroup: event.map(|event| Workgroup(event.workgroup)),
        wave: event.and_then(|event| event.wave),
        lane: match site.lanes {
            Some(Lanes::One(lane)) => Some(lane.0),
            _ => None,
        },
        pc: event.map(|event| event.pc.0),
        opcode: planned.opcode.to_owned(),
        group: planned.group.to_string(),
        line: planned.line.clone(),
        occurrence: event.map(|event| event.occurrence),
        location: match site.place {
            Place::Register(register) | Place::Source(register) => register.to_string(),
            place => place.to_string(),
        },
        flip_mask: struck.mask(),
        before: struck.before,
        after: struck.after,
        words: struck.words,
        stratum: (!stratum.is_empty()).then(|| stratum.to_owned()),
        weight: planned.weight,
        outcome: verdict.outcome(),
        cause: verdict.cause().map(str::to_owned),
        severity: verdict.judgement().map(|judgement| judgement.severity),
        elements_wrong: run.map(|run| run.difference.elements_wrong),
        max_abs_error: run.map(|run| run.difference.max_abs_error),
        max_rel_error: run.map(|run| run.difference.max_rel_error),
        error_pattern: run.and_then(|run| run.difference.shape),
        nan_elements: run.map(|run| run.difference.nan),
        inf_elements: run.map(|run| run.difference.inf),
        measures: verdict.judgement().and_then(|judgement| judgement.measures.clone()),
        instructions: run.and_then(|run| run.instructions),
        timing_changed: run.filter(|_| is_masked).and_then(|run| run.timing_changed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outputs::compare::Difference;
    use crate::run::due_cause::DueCause;
    use crate::run::outcome::{CompletedRun, MaskedCause};
    use crate::severity::Judgement;
    use flipwave_analysis::{ErrorShape, Severity};
    use flipwave_device::FaultKind;
    use flipwave_injector::Group;

    fn planned() -> Planned {
        let architecture = flipwave_sim::Amdgpu::new("gfx90a".parse().expect("a target"));
        let site = "dispatch=1 workgroup=3,1,0 wave=2 pc=0x1a9c occurrence=5 lane=17 \
                    register=v4 flip=0x00000400";
        Planned {
            site: flipwave_injector::Site::parse(site, &architecture).expect("a site"),
            kernel: Some("matmul".to_owned()),
            opcode: "v_fma_f32",
            group: Group::Valu,
            line: None,
            stratum: 0,
            weight: 1.0,
            analysis: None,
        }
    }

    fn row_of(verdict: &Verdict) -> Row {
        let struck = InjectedChange { before: 0x400, after: 0, words: 1, absorbed: false };
        row(7, &planned(), "", &struck, verdict)
    }

    #[test]
    fn rows_contain_the_site_and_the_verdict() {
        let difference = Difference {
            elements_wrong: 3,
            max_abs_error: 0.5,
            max_rel_error: f64::INFINITY,
            shape: Some(ErrorShape::Row),
            nan: 2,
            inf: 1,
        };
        let run = CompletedRun { difference, instructions: Some(5), timing_changed: Some(true) };
        let judgement =
            Some(Judgement { severity: Severity::Critical, measures: Some("top1=0".to_owned()) });
        let row = row_of(&Verdict::Sdc { run, judgement });
        assert_eq!(row.severity, Some(Severity::Critical));
        assert_eq!(row.measures.as_deref(), Some("top1=0"));
        assert_eq!(row.site, planned().site.to_string());
        assert_eq!(
            (row.injection, row.dispatch, row.wave, row.lane),
            (7, Some(1), Some(2), Some(17))
        );
        assert_eq!((row.flip_mask, row.before, row.after), (0x400, 0x400, 0));
        assert_eq!((row.outcome, row.cause.as_deref()), (Outcome::Sdc, None));
        assert_eq!(row.elements_wrong, Some(3));
        assert_eq!((row.instructions, row.timing_changed), (Some(5), None), "wrong outputs");
        assert_eq!((row.max_abs_error, row.max_rel_error), (Some(0.5), Some(f64::INFINITY)));
        assert_eq!(
            (row.error_pattern, row.nan_elements, row.inf_elements),
            (Some(ErrorShape::Row), Some(2), Some(1))
        );
    }

    #[test]
    fn rows_of_stopped_runs_have_a_cause_and_no_errors() {
        let row = row_of(&Verdict::Due { cause: DueCause::Device(FaultKind::Watchdog) });
        assert_eq!((row.outcome, row.cause.as_deref()), (Outcome::Due, Some("watchdog")));
        assert_eq!((row.elements_wrong, row.max_abs_error, row.max_rel_error), (None, None, None));
        assert_eq!((row.error_pattern, row.nan_elements, row.inf_elements), (None, None, None));
        assert_eq!((row.instructions, row.timing_changed), (None, None));
        let cause = MaskedCause::Dead;
        let masked = row_of(&Verdict::Masked { cause, run: CompletedRun::default() });
        assert_eq!((masked.cause.as_deref(), masked.timing_changed), (Some("dead"), None));
        assert_eq!(
            (masked.error_pattern, masked.nan_elements, masked.inf_elements),
            (None, Some(0), Some(0))
        );
    }
}
