//! Tests of variants, and of errors in files with `vary`.

use super::*;

/// A campaign with all fields that these tests change.
const BASE: &str = "\
name: add
seed: 7
workload:
  kernel:
    source: add.cl
    name: add
    grid: 256
    workgroup: 64
    args:
      - {buffer: a, type: f32, count: 256, init: {uniform: [-1.0, 1.0]}}
      - {buffer: sum, type: f32, count: 256, output: true}
faults: {model: flip_one_bit, count: 100}
vary:
";

fn parse(vary: &str) -> Result<Variants, FileError> {
    match CampaignFile::parse(&format!("{BASE}{vary}"), Path::new("folder/add.yaml"), None)? {
        CampaignFile::Varied(variants) => Ok(variants),
        CampaignFile::Plain(_) => panic!("no variants"),
    }
}

fn variants(vary: &str) -> Variants {
    parse(vary).unwrap_or_else(|error| panic!("{error}"))
}

fn names(variants: &Variants) -> Vec<&str> {
    variants.all.iter().map(|variant| variant.name.as_str()).collect()
}

#[test]
fn combinations_are_in_the_order_of_the_file() {
    let variants = variants(
        "  seed: [3, 1]\n  size:\n    small: {}\n    large: {workload.kernel.grid: 512, \
         'workload.kernel.args[0].count': 512}\n",
    );
    assert_eq!(
        names(&variants),
        ["seed=3,size=small", "seed=3,size=large", "seed=1,size=small", "seed=1,size=large"]
    );
    assert_eq!(variants.dimensions, ["seed", "size"]);
    assert_eq!(variants.all[1].values, ["3", "large"]);
    let grid = |variant: &Variant| variant.campaign.kernels().expect("kernels").launches[0].grid[0];
    let grids: Vec<u32> = variants.all.iter().map(grid).collect();
    assert_eq!(grids, [256, 512, 256, 512]);
    assert_eq!(variants.all[1].campaign.kernels().expect("kernels").buffers[0].count, 512);
    let seeds: Vec<u64> = variants.all.iter().map(|variant| variant.campaign.seed).collect();
    assert_eq!(seeds, [3, 3, 1, 1]);
}

/// A variant equals the campaign of a file that contains its values.
#[test]
fn variant_equals_the_campaign_written_by_hand() {
    let by_hand = |changes: &[(&str, &str)]| {
        let base = BASE.strip_suffix("vary:\n").expect("a suffix").to_owned();
        let text = changes.iter().fold(base, |text, (from, to)| {
            assert!(text.contains(from), "{from}");
            text.replacen(from, to, 1)
        });
        Campaign::parse(&text, Path::new("folder/add.yaml"))
            .unwrap_or_else(|error| panic!("{error}"))
    };
    for (vary, changes) in [
        ("  seed: [8]\n", &[("seed: 7", "seed: 8")][..]),
        (
            "  workload.kernel.options: [[-O1, -g]]\n",
            &[("    name: add", "    options: [-O1, -g]\n    name: add")],
        ),
        (
            "  compare.sum: [{relative: 1.0e-5}]\n",
            &[("faults:", "compare: {sum: {relative: 1.0e-5}}\nfaults:")],
        ),
        (
            "  d:\n    e: {faults: {model: {flip_mask: 0x10}, exhaustive: true}, target: gfx942}\n",
            &[
                (
                    "{model: flip_one_bit, count: 100}",
                    "{model: {flip_mask: 0x10}, exhaustive: true}",
                ),
                ("seed", "target: gfx942\nseed"),
            ],
        ),
    ] {
        let mut variant = variants(vary).all.remove(0).campaign;
        let expected = by_hand(changes);
        // The digest is that of the file, which differs.
        assert_ne!(variant.digest, expected.digest);
        variant.digest.clone_from(&expected.digest);
        assert_eq!(variant, expected, "{vary}");
    }
}

#[test]
fn invalid_dimensions_are_rejected_with_their_position() {
    for (vary, at, words) in [
        ("  seed: []\n", "[]", "vary.seed: is empty"),
        ("  seed: 3\n", "3", "a list of values, or a mapping"),
        ("  seed: [1, 2, 1]\n", "1]", "duplicate value `1`"),
        ("  seed: [1, 0x1]\n", "seed:", "`seed=1` and `seed=0x1` are the same campaign"),
        ("  seed: [1]\n  seed: [2]\n", "[1]", "vary.seed: duplicate dimension"),
        ("  seed: [soon]\n", "soon", "variant `seed=soon`: seed: expected a whole number"),
        ("  target: [gfx90a, gfx9]\n", "gfx9]", "variant `target=gfx9`: target: `gfx9` is not"),
        ("  name: [x]\n", "[x]", "`name` cannot vary"),
        ("  vary.seed: [[1]]\n", "[[1]]", "`vary` cannot vary"),
        ("  outcome: {x: {seed: 3}}\n", "{x", "the name of a column"),
        ("  seed.x: [1]\n", "1]", "`seed` is a number or boolean, and has no key `x`"),
        ("  workload.kernel.args[2].count: [1]\n", "1]", "has 2 elements"),
        ("  'a[': [1]\n", "[1]", "invalid field"),
        ("  workload.kernel.gird: [512]\n", "512", "unknown key `gird`"),
        ("  workload.kernel.grid: [0]\n", "0]", "variant `grid=0`: workload.kernel.grid: is 0"),
        ("  d: {x: 3}\n", "3}", "expected a mapping from fields to values"),
        ("  d: {'x y': {}}\n", "{}}", "cannot be part of a folder name"),
        ("  d: {x: {faults: {}, faults.count: 3}}\n", "3}}", "overlaps `faults`"),
        ("  d: {x: {seed: 1}}\n  seed: [2]\n", "2]", "the dimension `d` also sets `seed`"),
        ("  d: {x: {}, y: {}}\n", "d:", "`d=x` and `d=y` are the same campaign"),
        ("  {}\n", "{}", "vary: is empty"),
    ] {
        let error = parse(vary).expect_err(vary).to_string();
        let (line, text) = vary.lines().enumerate().find(|(_, line)| line.contains(at)).expect(at);
        let (line, column) = (line + BASE.lines().count() + 1, text.find(at).expect(at) + 1);
        assert!(error.starts_with(&format!("folder/add.yaml:{line}:{column}: ")), "{vary}{error}");
        assert!(error.contains(words), "`{words}` is not in: {error}");
    }
}

#[test]
fn errors_outside_vary_keep_their_position() {
    for (from, to, at, words) in [
        ("seed: 7", "sede: 7", "2:1: ", "unknown key `sede`"),
        (
            "count: 256, output",
            "count: 0, output",
            "11:41: ",
            "variant `seed=1`: workload.kernel.args[1].count: 0 elements",
        ),
        ("add.cl", "add.cl\n    code_object: x", "5:", "either"),
    ] {
        assert!(BASE.contains(from), "{from}");
        let text = format!("{}  seed: [1]\n", BASE.replacen(from, to, 1));
        let error =
            CampaignFile::parse(&text, Path::new("x.yaml"), None).expect_err(to).to_string();
        assert!(error.starts_with(&format!("x.yaml:{at}")), "{error}");
        assert!(error.contains(words), "{error}");
    }
}

#[test]
fn too_many_variants_are_rejected_early() {
    let dimension = |name: &str, count: usize| {
        let values: Vec<String> = (0..count).map(|value| value.to_string()).collect();
        format!("  {name}: [{}]\n", values.join(", "))
    };
    assert_eq!(variants(&dimension("seed", MOST)).all.len(), MOST);
    let error = parse(&dimension("seed", MOST + 1)).expect_err("many").to_string();
    assert!(error.contains("1001 variants; at most 1000"), "{error}");
    let letters = (b'a'..=b'z').map(|letter| dimension(&format!("x.{}", char::from(letter)), 500));
    let error = parse(&letters.collect::<String>()).expect_err("many").to_string();
    assert!(error.contains("500 * 500 * ") && error.contains("at most 1000"), "{error}");
}

const MOST: usize = 1000;

#[test]
fn variant_is_selected_by_name() {
    let file = || CampaignFile::Varied(variants("  seed: [1, 2]\n"));
    assert_eq!(file().campaign(Some("seed=2")).expect("a variant").seed, 2);
    for wrong in [None, Some("seed=3")] {
        let error = file().campaign(wrong).expect_err("none").to_string();
        assert!(error.contains("seed=1\n  seed=2"), "{error}");
    }
    let error = file().choose(None, Some(5)).expect_err("both").to_string();
    assert!(error.contains("`seed` of `vary`"), "{error}");
    let plain = BASE.strip_suffix("vary:\n").expect("a suffix");
    let mut plain = CampaignFile::parse(plain, Path::new("x"), None).expect("a campaign");
    assert!(plain.choose(Some("seed=1"), None).is_err());
}

/// Names identify folders, and content digests identify campaigns for shards and `--resume`.
#[test]
fn variant_names_and_content_digests_are_fixed() {
    let vary = "  seed: [3]\n  workload.kernel.source: [a/b.cl]\n  faults.model: [zero_value]\n";
    let variants = variants(vary);
    assert_eq!(names(&variants), ["seed=3,source=a_b.cl~01c8c78d,model=zero_value"]);
    let contents: Vec<&str> =
        variants.all.iter().map(|variant| variant.campaign.content.as_str()).collect();
    assert_eq!(contents, ["0a9b29ae05acf4d46b9743e3aab49d720478c98f7204907c811d3b1355f7a20c"]);
}

#[test]
fn target_can_be_overridden() {
    let plain = BASE.strip_suffix("vary:\n").expect("a suffix");
    let campaign = |text: &str, target: Option<&str>| {
        CampaignFile::parse(text, Path::new("add.yaml"), target)?.campaign(None)
    };
    let written = campaign(&format!("{plain}target: sm_80\n"), None).expect("a campaign");
    let given = campaign(plain, Some("sm_80")).expect("a campaign");
    assert_eq!((&given.target, &given.content), (&written.target, &written.content));
    // The default, and the target of the file.
    assert_eq!(campaign(plain, Some("gfx90a")), campaign(plain, None));
    let error = campaign(plain, Some("gfx9")).expect_err("unknown").to_string();
    assert!(error.contains("--target") && error.contains("gfx9"), "{error}");
    let varied = |vary: &str| {
        CampaignFile::parse(&format!("{BASE}{vary}"), Path::new("add.yaml"), Some("gfx942"))
    };
    let CampaignFile::Varied(variants) = varied("  seed: [1, 2]\n").expect("variants") else {
        panic!("no variants")
    };
    assert!(variants.all.iter().all(|variant| variant.campaign.target.to_string() == "gfx942"));
    let error = varied("  target: [gfx90a, sm_80]\n").expect_err("twice").to_string();
    assert!(error.contains("`target` of `vary` sets the target"), "{error}");
}
