//! Campaigns on targets other than the default: they strike all registers of the target, are
//! deterministic, and their rows can be replayed.

use flipwave_analysis::Row;
use flipwave_campaigns::{
    Campaign, Code, Compiler, InjectionPath, RunOptions, SampleSize, Silent, prepare, replay, run,
};
use flipwave_codeobj::CodeObject;
use flipwave_injector::{Fault, FaultModel, Lanes, Place};
use flipwave_isa::{Generation, Register};
use flipwave_tests::{
    MACHINES, Machine, campaign_target, cases, examples_folder, kernels_mut, machines, plan_of,
    profile_of, rows, site, timeless_rows,
};
use std::num::NonZeroUsize;

/// The quickstart on a machine.
fn campaign(machine: Machine) -> Campaign {
    let file = examples_folder().join("quickstart.yaml");
    let mut campaign = Campaign::read(&file).unwrap_or_else(|error| panic!("{error}"));
    campaign.target = campaign_target(&machine.target());
    for launch in &mut kernels_mut(&mut campaign).launches {
        if let Code::Source { options, .. } = &mut launch.code {
            options.extend(machine.options().iter().map(|&option| option.to_owned()));
        }
    }
    campaign
}

/// Bytes and rows of `results.csv`.
fn results(campaign: &Campaign, workers: usize) -> (Vec<u8>, Vec<Row>) {
    let folder = tempfile::tempdir().expect("a folder");
    let workers = NonZeroUsize::new(workers).expect("a worker");
    let options = RunOptions::new(folder.path().to_owned(), workers);
    run(campaign, &options, &mut Silent).unwrap_or_else(|error| panic!("{error}"));
    let bytes = std::fs::read(folder.path().join("results.csv")).expect("results.csv");
    (bytes, rows(folder.path()))
}

#[test]
fn campaigns_on_other_targets_are_deterministic_and_replay() {
    for machine in cases(machines().skip(1), 4) {
        println!("{machine}");
        let mut campaign = campaign(machine);
        campaign.faults.as_mut().expect("faults").sample.size = SampleSize::Count(60);
        let (one_worker, rows) = results(&campaign, 1);
        let (two_workers, _) = results(&campaign, 2);
        assert!(one_worker == two_workers, "{machine}: another results.csv on 2 workers");
        assert_eq!(rows.len(), 60);
        for row in rows.iter().step_by(7) {
            let site = site(&row.site);
            let again = replay(&campaign, &site, InjectionPath::Embedded)
                .unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(
                (again.struck.before, again.struck.after),
                (row.before, row.after),
                "{}",
                row.site
            );
            assert_eq!(again.verdict.outcome(), row.outcome, "{}", row.site);
        }
    }
}

/// gfx12 needs different waits and mitigations of hazards around hooks.
#[test]
fn faults_are_equal_with_hooks_on_gfx12() {
    let is_gfx12 = |machine: &Machine| machine.target().generation() == Generation::Gfx12;
    for machine in MACHINES.into_iter().filter(is_gfx12) {
        let mut campaign = campaign(machine);
        campaign.faults.as_mut().expect("faults").sample.size = SampleSize::Count(60);
        let [embedded, hooked] = [InjectionPath::Embedded, InjectionPath::Hook].map(|path| {
            let folder = tempfile::tempdir().expect("a folder");
            let options = RunOptions::new(folder.path().to_owned(), NonZeroUsize::MIN);
            let options = RunOptions { path: Some(path), ..options };
            run(&campaign, &options, &mut Silent).unwrap_or_else(|error| panic!("{error}"));
            timeless_rows(folder.path())
        });
        assert_eq!(embedded.len(), 60);
        assert_eq!(embedded, hooked, "{machine}");
    }
}

/// Lane masks have one bit per lane of a wave, and faults strike only existing lanes and halves of masks.
#[test]
fn faults_strike_all_registers_of_the_target() {
    for machine in machines() {
        let campaign = campaign(machine);
        let prepared = prepare(&campaign).unwrap_or_else(|error| panic!("{error}"));
        let fault = Fault::transient(FaultModel::FlipOneBit);
        let profile = profile_of(&prepared.workload, &fault, &[]);
        // A comparison writes one bit per lane.
        let comparison = |text: &str| text.starts_with("v_cmp_");
        let mut comparisons = profile.instructions.iter().filter(|entry| comparison(&entry.text));
        let entry = comparisons.next().unwrap_or_else(|| panic!("{machine}: no comparison"));
        assert_eq!(entry.sites, entry.executions * machine.lanes as u64, "{}", entry.text);
        for planned in plan_of(&prepared.workload, &profile, 5, 300) {
            if let Some(Lanes::One(lane)) = planned.site.lanes {
                assert!(usize::from(lane.0) < machine.lanes, "{}", planned.site);
            }
            let upper = [Register::VccHi, Register::ExecHi]
                .map(|register| Place::Register(register.into()));
            let upper = upper.contains(&planned.site.place);
            assert!(!upper || machine.lanes == 64, "{}", planned.site);
        }
    }
}

/// Negative control: waves of 64 lanes compute wrong results with kernels compiled for 32 lanes. (In the
/// other direction, many kernels compute correct results.)
#[test]
fn kernels_do_not_run_with_the_wrong_wave_size() {
    for machine in MACHINES.into_iter().filter(|machine| machine.lanes == 32) {
        let right = campaign(machine);
        let golden = |campaign: &Campaign| {
            prepare(campaign).unwrap_or_else(|error| panic!("{error}")).workload.golden()
        };
        let expected = golden(&right).unwrap_or_else(|error| panic!("{error}")).outputs;
        let folder = tempfile::tempdir().expect("a folder");
        let mut wrong = right.clone();
        for (index, launch) in kernels_mut(&mut wrong).launches.iter_mut().enumerate() {
            let Code::Source { path, options } = &launch.code else { continue };
            let compiler = Compiler::find().unwrap_or_else(|error| panic!("{error}"));
            let mut object = compiler
                .compile(path, options, &machine.target())
                .unwrap_or_else(|error| panic!("{error}"));
            for kernel in CodeObject::parse(&object).expect("a code object").kernels() {
                // ENABLE_WAVEFRONT_SIZE32, bit 10 of the properties at byte 56.
                object[kernel.descriptor.address as usize + 57] ^= 1 << 2;
            }
            let path = folder.path().join(format!("{index}.co"));
            std::fs::write(&path, object).expect("a code object written");
            launch.code = Code::Object { path };
        }
        match golden(&wrong) {
            Ok(golden) => assert!(golden.outputs != expected, "{machine}"),
            Err(error) => println!("{machine}: {error}"),
        }
    }
}
