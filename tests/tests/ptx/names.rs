//! Fault sites name registers as the module declares them.

use flipwave_analysis::Row;
use flipwave_tests::{flipwave, rows};
use std::collections::BTreeSet;
use std::path::Path;

/// The instructions, one in each line after the declarations.
const KERNEL: &str = "\
.version 8.3
.target sm_80
.address_size 64
.func (.reg .b32 %r1) scale(.reg .b32 %r2)
{
.reg .f32 %value;
mul.lo.u32 %r1, %r2, 3;
ret;
}
.visible .entry k(.param .u64 in, .param .u64 out)
{
.reg .b64 %rd<4>;
.reg .b32 %r<5>;
.reg .f32 sum;
.reg .b16 %h;
.reg .pred %p<2>;
ld.param.u64 %rd1, [in];
ld.param.u64 %rd2, [out];
mov.u32 %r1, %tid.x;
mul.wide.u32 %rd3, %r1, 4;
add.s64 %rd1, %rd1, %rd3;
add.s64 %rd2, %rd2, %rd3;
ld.global.u32 %r2, [%rd1];
setp.gt.u32 %p1, %r2, 40;
@%p1 add.u32 %r2, %r2, 7;
cvt.rn.f32.u32 sum, %r2;
cvt.rzi.u16.f32 %h, sum;
cvt.u32.u16 %r3, %h;
call (%r4), scale, (%r3);
st.global.u32 [%rd2], %r4;
ret;
}
";

const CAMPAIGN: &str = "name: k
seed: 9
target: sm_80
workload:
  kernel:
    code_object: k.ptx
    name: k
    grid: 64
    workgroup: 64
    args:
      - {buffer: in, type: u32, count: 64, init: {range: {start: 1, step: 1}}}
      - {buffer: out, type: u32, count: 64, output: true}
faults: {model: flip_one_bit, count: 120}
";

/// The instruction at an address.
fn instruction(pc: u64) -> &'static str {
    let is_instruction = |line: &&str| line.ends_with(';') && !line.starts_with('.');
    KERNEL.lines().filter(is_instruction).nth((pc / 16) as usize).expect("an instruction")
}

fn run(folder: &Path, campaign: &str, options: &[&str]) -> Vec<Row> {
    std::fs::write(folder.join("k.ptx"), KERNEL).expect("written");
    std::fs::write(folder.join("k.yaml"), campaign).expect("written");
    let arguments = [&["run", "k.yaml", "--force", "--out", "results"][..], options].concat();
    flipwave(folder, &arguments, &[]).expect_success();
    rows(&folder.join("results"))
}

#[test]
fn destinations_have_the_names_of_the_instruction() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = run(folder.path(), CAMPAIGN, &[]);
    let mut names = BTreeSet::new();
    for row in &rows {
        let (site, name) = (&row.site, &row.location);
        assert!(site.contains(&format!(" register={name} ")), "{site} {name}");
        let declared = name.trim_end_matches(".lo").trim_end_matches(".hi");
        let text = instruction(row.pc.expect("an address"));
        let destination = text.trim_start_matches("@%p1 ").split([' ', ',']).nth(1);
        let destination = destination.map(|text| text.trim_matches(['(', ')']));
        assert_eq!(destination, Some(declared), "{site}: {text}");
        let is_wide = text.contains("64") || text.contains("wide");
        assert_eq!(is_wide, declared != name, "{site}: {text}");
        names.insert(name.as_str());
    }
    for name in ["%rd1.lo", "%rd2.hi", "%r2", "sum"] {
        assert!(names.contains(name), "{names:?}");
    }
}

#[test]
fn rows_with_hooks_have_the_same_names() {
    let folder = tempfile::tempdir().expect("a folder");
    let embedded = run(folder.path(), CAMPAIGN, &[]);
    assert_eq!(run(folder.path(), CAMPAIGN, &["--by", "hook"]), embedded);
    // Registers of other functions.
    let all = CAMPAIGN.replace("flip_one_bit,", "flip_one_bit, target: register,");
    let rows = run(folder.path(), &all, &[]);
    let has = |name: &str| rows.iter().any(|row| row.location == name);
    assert!(has("scale:%r1") || has("scale:%r2") || has("scale:%value"), "{rows:?}");
    // Resuming reads the rows again.
    let arguments = ["run", "k.yaml", "--resume", "--out", "results"];
    flipwave(folder.path(), &arguments, &[]).expect_success();
}

#[test]
fn sites_are_replayed_by_name_and_number() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = run(folder.path(), CAMPAIGN, &[]);
    let replay = |site: &str| flipwave(folder.path(), &["replay", "k.yaml", "--site", site], &[]);
    for row in rows.iter().take(30) {
        let found = replay(&row.site).expect_success();
        assert!(found.stdout.contains(&row.site), "{}", found.stdout);
        assert!(found.stdout.contains(&row.outcome.to_string()), "{}", found.stdout);
        let by_hook = ["replay", "k.yaml", "--by", "hook", "--site", &row.site];
        let by_hook = flipwave(folder.path(), &by_hook, &[]);
        assert_eq!(by_hook.stdout, found.stdout);
    }
    let row = rows.iter().find(|row| row.location == "%r2").expect("a row");
    let effect = |text: &str| text.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let by_name = replay(&row.site);
    // Words of kernels come first: eight of %rd, then %r0.
    let by_number = replay(&row.site.replace("register=%r2", "register=%w10"));
    assert_eq!(effect(&by_number.stdout), effect(&by_name.stdout));
    // Negative control: another register.
    let other = replay(&row.site.replace("register=%r2", "register=%r0"));
    assert_ne!(effect(&other.stdout), effect(&by_name.stdout));
    for (name, words) in [
        ("%r9", "declares no register `%r9`"),
        ("%rd1", "declares no register `%rd1`"),
        ("nothing:%r1", "declares no register `nothing:%r1`"),
        ("1", "expected a register that the function declares"),
    ] {
        replay(&row.site.replace("register=%r2", &format!("register={name}")))
            .expect_refused(&[words]);
    }
    let arguments = ["trace", "k.yaml", "--site", &row.site, "--out", "trace"];
    let trace = flipwave(folder.path(), &arguments, &[]).expect_success();
    assert!(
        trace.stdout.contains("register=%r2") && !trace.stdout.contains("%w"),
        "{}",
        trace.stdout
    );
    assert!(trace.stdout.contains("fault: %r2 lane"), "{}", trace.stdout);
}

/// Runs the campaign with a filter of registers; returns the locations of its rows.
fn locations(folder: &Path, filter: &str, options: &[&str]) -> BTreeSet<String> {
    let faults = format!("count: 40, registers: [{filter}]}}");
    let rows = run(folder, &CAMPAIGN.replace("count: 120}", &faults), options);
    rows.into_iter().map(|row| row.location).collect()
}

#[test]
fn registers_are_selected_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    for (filter, expected) in [
        ("'%r3'", &["%r3"][..]),
        ("'%rd3'", &["%rd3.hi", "%rd3.lo"]),
        ("'%rd3.hi', sum", &["%rd3.hi", "sum"]),
        // Of both functions, of one.
        ("'%r1'", &["%r1"]),
        ("'k:%r1', 'scale:%r1'", &["%r1"]),
        // Numbers, and a predicate.
        ("'%w10'", &["%r2"]),
        ("'%p1'", &["%p1"]),
        ("'%w[6:7]'", &["%rd3.hi", "%rd3.lo"]),
    ] {
        let found = locations(folder.path(), filter, &[]);
        assert_eq!(found.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{filter}");
        assert_eq!(locations(folder.path(), filter, &["--by", "hook"]), found, "{filter}");
    }
    let scale = locations(folder.path(), "'scale:%r1'", &[]);
    let one = run(folder.path(), &CAMPAIGN.replace("120}", "8, registers: ['scale:%r1']}"), &[]);
    assert_eq!(scale, BTreeSet::from(["%r1".to_owned()]));
    assert!(
        one.iter()
            .all(|row| instruction(row.pc.expect("an address")).starts_with("mul.lo.u32 %r1"))
    );
}

#[test]
fn unknown_registers_are_refused_with_those_that_exist() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("k.ptx"), KERNEL).expect("written");
    for (name, words) in [
        (
            "'%r9'",
            "invalid faults.registers: the selected kernels' code declares no register `%r9`; it declares %h, %p0 to \
             %p1, %r0 to %r4, %rd0 to %rd3, %value, sum",
        ),
        ("'%rd1.w0'", "declares no register `%rd1.w0`"),
        ("'nothing:%r1'", "declares no register `nothing:%r1`"),
        (
            "'%r[0:3]'",
            "invalid registers `%r[0:3]`; expected names like %r12, %rd3, %rd3.lo or %p1",
        ),
    ] {
        let campaign = CAMPAIGN.replace("count: 120}", &format!("count: 4, registers: [{name}]}}"));
        std::fs::write(folder.path().join("k.yaml"), campaign).expect("written");
        flipwave(folder.path(), &["run", "k.yaml"], &[]).expect_refused(&[words]);
    }
}

#[test]
fn errors_of_injections_name_the_register() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = run(folder.path(), CAMPAIGN, &[]);
    let row = rows.iter().find(|row| row.location == "%rd3.hi").expect("a row");
    let site = row.site.replace("occurrence=0", "occurrence=7");
    for command in [&["replay"][..], &["replay", "--by", "hook"], &["trace"]] {
        let arguments = [command, &["k.yaml", "--site", &site]].concat();
        let finished = flipwave(folder.path(), &arguments, &[]);
        assert!(!finished.stderr.contains("%w"), "{}", finished.stderr);
        finished.expect_refused(&["never reached", &site]);
    }
}
