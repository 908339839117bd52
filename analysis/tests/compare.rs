//! Comparisons against an independent count of the rows.

use flipwave_analysis::{
    CampaignInfo, ComparedOutput, ComparedProgram, Comparison, Confidence, ProgramsComparison,
    PrunedSites, Row, SampleDesign,
};
use std::collections::BTreeMap;
use std::io::Cursor;

fn info(name: &str) -> CampaignInfo {
    CampaignInfo {
        folder: format!("{name}.results"),
        name: name.to_owned(),
        file: None,
        seed: Some(1),
        unfinished: None,
        design: SampleDesign::simple(Confidence::P95),
        planned: None,
        sites: None,
        counted: None,
        instructions: Some(if name == "a" { 1000 } else { 2310 }),
        facts: vec![("Target", "gfx90a".to_owned()), ("Fault", "flip_one_bit".to_owned())],
        compared: Some(Vec::new()),
    }
}

/// A row of campaign `name`. Rows with equal `index` and `salt` inject the same fault in both campaigns,
/// mostly with the same outcome.
fn row(name: &str, index: u64, salt: u64) -> String {
    let mix = (index + salt * 7919).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33;
    let (opcode, group) = [("v_fma_f32", "valu"), ("ds_read_b32", "lds")][(mix % 2) as usize];
    let line = mix % 5;
    let outcome = match (mix % 10, name) {
        (0..4, "a") | (0, _) => "sdc",
        (4, _) => "due",
        (1..4, _) if !mix.is_multiple_of(3) => "detected",
        _ => "masked",
    };
    let cause = match outcome {
        "sdc" => "",
        "due" => "watchdog",
        "detected" => "errors",
        _ => "logical",
    };
    let severity = match outcome {
        "sdc" => ["critical", "tolerable"][(mix / 16 % 2) as usize],
        _ => "",
    };
    format!(
        "{index},site {mix},norm,0,layer,\"0,0,0\",0,0,{:#x},{opcode},{group},norm.cl:{line},0,v0,0x1,0x0,0x1,1,,\
         1.0,{outcome},{cause},{severity},0,0.0,0.0,,0,0,,,\n",
        0x1000 + line
    )
}

fn table(name: &str, count: u64, salt: u64) -> String {
    let rows: String = (0..count).map(|index| row(name, index, salt)).collect();
    Row::COLUMNS.join(",") + "\n" + &rows
}

fn compare(a: &str, b: &str) -> Comparison {
    Comparison::new(info("a"), Cursor::new(a), info("b"), Cursor::new(b))
        .unwrap_or_else(|error| panic!("{error}"))
}

type Line = BTreeMap<String, String>;

fn lines(comparison: &Comparison) -> Vec<Line> {
    let mut bytes = Vec::new();
    comparison.write_csv(&mut bytes).expect("written");
    let mut reader = csv::Reader::from_reader(bytes.as_slice());
    reader.deserialize().map(|line| line.expect("a line")).collect()
}

fn has_outcome(row: &Line, outcome: &str) -> bool {
    match outcome {
        "sdc_critical" => row["severity"] == "critical",
        _ => row["outcome"] == outcome,
    }
}

/// Rows of a scope with an outcome, and all rows of the scope.
struct Counts {
    hits: u64,
    total: u64,
}

fn counted(table: &str, scope: &str, value: &str, outcome: &str) -> Counts {
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let rows = reader.deserialize().map(|row| -> Line { row.expect("a row") });
    let rows: Vec<Line> = rows.filter(|row| scope == "all" || row[scope] == value).collect();
    let hits = rows.iter().filter(|row| has_outcome(row, outcome)).count();
    Counts { hits: hits as u64, total: rows.len() as u64 }
}

/// The first line of `compare.csv` that disagrees with the tables `a` and `b`.
fn difference(lines: &[Line], a: &str, b: &str) -> Option<String> {
    lines.iter().find_map(|line| {
        let count = |table| counted(table, &line["scope"], &line["value"], &line["outcome"]);
        let (a, b) = (count(a), count(b));
        let number = |name: &str| line[name].parse::<u64>().ok();
        let counts = ["count_a", "total_a", "count_b", "total_b"].map(number);
        let expected = [a.hits, a.total, b.hits, b.total].map(Some);
        let rate = b.hits as f64 / b.total as f64 - a.hits as f64 / a.total as f64;
        let found: f64 = line["difference"].parse().expect("a number");
        let is_right = counts == expected && (found - rate).abs() < 1e-6;
        (!is_right).then(|| format!("{line:?}: {expected:?}, {rate}"))
    })
}

#[test]
fn counts_and_differences_match_an_independent_count() {
    let (a, b) = (table("a", 600, 0), table("b", 900, 5));
    let comparison = compare(&a, &b);
    let found = lines(&comparison);
    // All, one kernel, one label, five lines, two opcodes and two groups; four outcomes and critical SDC.
    assert_eq!(found.len(), 12 * 5);
    assert_eq!(difference(&found, &a, &b), None);
    assert!(found.iter().all(|line| line["both"].is_empty() && line["test"] == "fisher"));
    assert!(comparison.verdict().contains("2.31x the instructions"), "{}", comparison.verdict());

    // Negative control: a row with another outcome.
    assert!(difference(&found, &a.replacen(",sdc,,", ",due,watchdog,", 1), &b).is_some());
}

#[test]
fn equal_faults_are_compared_pair_by_pair() {
    let (a, b) = (table("a", 600, 0), table("b", 600, 0));
    let found = lines(&compare(&a, &b));
    assert_eq!(difference(&found, &a, &b), None);
    let rows = |table: &str| -> Vec<Line> {
        let mut reader = csv::Reader::from_reader(table.as_bytes());
        reader.deserialize().map(|row| row.expect("a row")).collect()
    };
    let pairs: Vec<(Line, Line)> = rows(&a).into_iter().zip(rows(&b)).collect();
    for line in found.iter().filter(|line| line["scope"] == "all") {
        let outcome = &line["outcome"];
        let expected =
            [(true, true), (true, false), (false, true), (false, false)].map(|expected| {
                let has_outcomes =
                    |(a, b): &&(Line, Line)| (has_outcome(a, outcome), has_outcome(b, outcome));
                pairs.iter().filter(|pair| has_outcomes(pair) == expected).count().to_string()
            });
        let columns = ["both", "only_a", "only_b", "neither"].map(|name| line[name].clone());
        assert_eq!(columns, expected, "{outcome}");
        assert_eq!(line["test"], "mcnemar");
    }
    // The interval is narrower than that of equal counts without pairing.
    let width = |lines: &[Line]| {
        let sdc = lines.iter().find(|line| line["scope"] == "all" && line["outcome"] == "sdc");
        let number = |name: &str| sdc.expect("SDC")[name].parse::<f64>().expect("a number");
        number("high") - number("low")
    };
    let independent = lines(&compare(&a, &b.replace("site ", "another site ")));
    assert_eq!(difference(&independent, &a, &b), None);
    assert!(width(&found) < width(&independent));

    // The rows of an interrupted campaign are compared as far as it went.
    let interrupted = table("b", 200, 0);
    let partial = compare(&a, &interrupted);
    assert_eq!(difference(&lines(&partial), &table("a", 200, 0), &interrupted), None);
    assert!(partial.table().contains("200 of 600 and 200"), "{}", partial.table());
}

#[test]
fn invalid_tests_are_omitted_with_a_reason() {
    let (a, b) = (table("a", 300, 0), table("b", 300, 5));
    let weighted = b.replace(",1,,1.0,", ",1,one,0.5,").replacen(",1,one,0.5,", ",1,two,1.5,", 60);
    let comparison = compare(&a, &weighted);
    assert!(lines(&comparison).iter().all(|line| line["p"].is_empty() && line["test"].is_empty()));
    let text = comparison.table();
    assert!(text.contains("No test, as rows have different weights"), "{text}");
    let pruned = |design: SampleDesign| SampleDesign {
        pruned: BTreeMap::from([(
            "all".to_owned(),
            PrunedSites { sites: 100, dead: 50, overwritten: 0 },
        )]),
        ..design
    };
    type Designed = fn(SampleDesign) -> SampleDesign;
    let designs: [(Designed, &str); 3] = [
        (|design| design.with_repeated_looks(2.5), "stopped depending on its rates"),
        (|design| SampleDesign { is_finite: true, ..design }, "without replacement"),
        (pruned, "known to be masked"),
    ];
    for (design, reason) in designs {
        let info_b = CampaignInfo { design: design(info("b").design), ..info("b") };
        let comparison = Comparison::new(info("a"), Cursor::new(&a), info_b, Cursor::new(&b));
        let table = comparison.expect("a comparison").table();
        assert!(table.contains(reason), "{table}");
    }
}

#[test]
fn other_differences_are_warnings_and_invalid_results_are_errors() {
    let text = table("a", 20, 0);
    let mut different = info("b");
    different.facts = vec![("Target", "gfx942".to_owned()), ("Fault", "random_value".to_owned())];
    different.design = SampleDesign::simple(Confidence::P99);
    different.unfinished = Some("The campaign was interrupted.".to_owned());
    different.compared = None;
    let compare_with = |info_b: CampaignInfo, table_b: &str| {
        Comparison::new(info("a"), Cursor::new(&text), info_b, Cursor::new(table_b))
    };
    let comparison = compare_with(different, &text).expect("a comparison");
    let warnings = comparison.warnings().join("\n");
    for expected in
        ["interrupted", "`target`: gfx90a and gfx942", "`fault`", "compared differently", "99 %"]
    {
        assert!(warnings.contains(expected), "{expected}: {warnings}");
    }
    assert!(compare_with(info("b"), &text).expect("a comparison").warnings().is_empty());
    // An error check of the program is not a difference; other outputs are.
    for (is_detector, count) in [(true, 0), (false, 1)] {
        let mut checked = info("b");
        let outputs = checked.compared.get_or_insert_default();
        outputs.push(ComparedOutput {
            name: "errors".to_owned(),
            element: "u32".to_owned(),
            elements: Some(1),
            comparison: "exactly".to_owned(),
            is_detector,
        });
        let comparison = compare_with(checked, &text).expect("a comparison");
        assert_eq!(comparison.warnings().len(), count, "{:?}", comparison.warnings());
    }
    let header = Row::COLUMNS.join(",") + "\n";
    for (table, expected) in [(header.as_str(), "has no rows"), ("no,table\n", "not the results")] {
        let error = compare_with(info("b"), table).expect_err(expected).to_string();
        assert!(error.starts_with("b.results: ") && error.contains(expected), "{error}");
    }
}

#[test]
fn page_needs_no_network_and_escapes_names() {
    let text = table("a", 50, 0).replace("norm.cl", "<script>alert(1)</script>.cl");
    let comparison = compare(&text, &text);
    let page = comparison.html();
    assert_eq!(page.matches("<script").count(), 1, "only the page's script");
    assert!(page.contains("&lt;script&gt;alert(1)"));
    for forbidden in ["http:", "https:", "url(", "@import", " src=", ">NaN", "=\"NaN"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert_eq!(page, compare(&text, &text).html());
}

/// Three programs, of which the second campaigns have other parts and rates.
fn programs() -> Vec<ComparedProgram> {
    let program = |name: &str, count: u64, salt: u64| ComparedProgram {
        name: name.to_owned(),
        comparison: compare(&table("a", count, salt), &table("b", count + 50, salt + 1)),
    };
    vec![program("first", 300, 1), program("second", 200, 5), program("third", 100, 9)]
}

fn rate_of(line: &Line, name: &str) -> f64 {
    line[name].parse().expect(name)
}

#[test]
fn sets_of_programs_are_compared_by_mean_composition_and_rank() {
    let all = ProgramsComparison::new(programs());
    for means in all.outcomes() {
        // Each component again, from the lines of the tables.
        let (mut means_again, mut composition, mut rates) = ([0.0; 2], 0.0, 0.0);
        for program in programs() {
            let lines = lines(&program.comparison);
            let of = |scope: &str| -> Vec<Line> {
                let is_meant = |line: &&Line| {
                    line["scope"] == scope && line["outcome"] == means.outcome.name()
                };
                lines.iter().filter(is_meant).cloned().collect()
            };
            let [overall] = &of("all")[..] else { panic!("one line") };
            means_again[0] += rate_of(overall, "rate_a") / 3.0;
            means_again[1] += rate_of(overall, "rate_b") / 3.0;
            for group in of("group") {
                let part = |side: &str| {
                    rate_of(&group, &format!("total_{side}"))
                        / rate_of(overall, &format!("total_{side}"))
                };
                let (rate_a, rate_b) = (rate_of(&group, "rate_a"), rate_of(&group, "rate_b"));
                composition += (part("b") - part("a")) * (rate_a + rate_b) / 2.0 / 3.0;
                rates += (rate_b - rate_a) * (part("a") + part("b")) / 2.0 / 3.0;
            }
        }
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-5, "{a} {b}");
        near(means.means[0], means_again[0]);
        near(means.means[1], means_again[1]);
        near(means.components.composition, composition);
        near(means.components.rates, rates);
        near(composition + rates, means_again[1] - means_again[0]);
    }
    let mut bytes = Vec::new();
    all.write_csv(&mut bytes).expect("written");
    let expected: usize = programs().iter().map(|program| lines(&program.comparison).len()).sum();
    assert_eq!(String::from_utf8(bytes).expect("text").lines().count(), expected + 1);
    let (text, page) = (all.table(), all.html());
    for name in ["first", "second", "third", "valu", "lds"] {
        assert!(
            text.contains(&format!("\n{name} ")) && page.contains(&format!(">{name}</")),
            "{text}"
        );
    }
    assert_eq!(page.matches("<circle").count(), 6);
}

/// A set compared with itself has the same order and no difference; with two programs there is no order.
#[test]
fn equal_sets_have_the_same_order() {
    let program = |name: &str, count: u64, salt: u64| ComparedProgram {
        name: name.to_owned(),
        comparison: compare(&table("a", count, salt), &table("a", count, salt)),
    };
    let mut same = vec![program("x", 10, 1), program("y", 300, 3), program("z", 13, 4)];
    let text = ProgramsComparison::new(same.split_off(1)).table();
    assert!(text.contains("SDC: too few distinct rates"), "{text}");
    let same = vec![program("x", 10, 1), program("y", 300, 3), program("z", 13, 4)];
    for means in ProgramsComparison::new(same).outcomes() {
        assert_eq!(means.means[0], means.means[1]);
        assert_eq!((means.components.composition, means.components.rates), (0.0, 0.0));
        assert!(means.correlation.is_none_or(|correlation| correlation.rho == 1.0));
    }
}

/// Groups that only one campaign has are a difference of composition.
#[test]
fn groups_of_one_campaign_count_as_composition() {
    let b = table("b", 200, 2).replace(",valu,", ",salu,");
    let programs = vec![ComparedProgram {
        name: "program".to_owned(),
        comparison: compare(&table("a", 200, 1), &b),
    }];
    for means in ProgramsComparison::new(programs).outcomes() {
        let sum = means.components.composition + means.components.rates;
        assert!((sum - (means.means[1] - means.means[0])).abs() < 1e-12);
    }
}
