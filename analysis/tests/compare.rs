//! Two campaigns beside each other: what is compared is what another way of counting finds.

use flipwave_analysis::{About, Comparison, Confidence, Known, Row, SampleDesign};
use std::collections::BTreeMap;
use std::io::Cursor;

fn about(name: &str) -> About {
    About {
        folder: format!("{name}.results"),
        name: name.to_owned(),
        file: None,
        seed: Some(1),
        unfinished: None,
        design: SampleDesign::simple(Confidence::P95),
        planned: None,
        places: None,
        counted: None,
        instructions: Some(if name == "a" { 1000 } else { 2310 }),
        facts: vec![("Target", "gfx90a".to_owned()), ("Fault", "flip_one_bit".to_owned())],
        compared: Some(Vec::new()),
    }
}

/// A row of campaign `name`: of the same number both inject the same fault where `salt` is the same, and
/// mostly come to the same.
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
    let campaign = |name, text: &str| (about(name), Cursor::new(text.to_owned()));
    Comparison::new(campaign("a", a), campaign("b", b)).unwrap_or_else(|error| panic!("{error}"))
}

type Line = BTreeMap<String, String>;

fn lines(comparison: &Comparison) -> Vec<Line> {
    let mut bytes = Vec::new();
    comparison.write_csv(&mut bytes).expect("written");
    let mut reader = csv::Reader::from_reader(bytes.as_slice());
    reader.deserialize().map(|line| line.expect("a line")).collect()
}

/// Whether a row comes to an outcome, or to SDC that is critical.
fn comes_to(row: &Line, outcome: &str) -> bool {
    match outcome {
        "sdc_critical" => row["severity"] == "critical",
        _ => row["outcome"] == outcome,
    }
}

/// By scope and value, those of a table with an outcome and all.
fn counted(table: &str, scope: &str, value: &str, outcome: &str) -> [u64; 2] {
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let rows = reader.deserialize().map(|row| -> Line { row.expect("a row") });
    let own: Vec<Line> = rows.filter(|row| scope == "all" || row[scope] == value).collect();
    let hits = own.iter().filter(|row| comes_to(row, outcome)).count();
    [hits as u64, own.len() as u64]
}

/// A line of the table that the tables do not bear out.
fn difference(lines: &[Line], a: &str, b: &str) -> Option<String> {
    lines.iter().find_map(|line| {
        let of = |table| counted(table, &line["scope"], &line["value"], &line["outcome"]);
        let (own, other) = (of(a), of(b));
        let number = |name: &str| line[name].parse::<u64>().ok();
        let counts = ["count_a", "total_a", "count_b", "total_b"].map(number);
        let expected = [own[0], own[1], other[0], other[1]].map(Some);
        let rate = other[0] as f64 / other[1] as f64 - own[0] as f64 / own[1] as f64;
        let found: f64 = line["difference"].parse().expect("a number");
        let is_right = counts == expected && (found - rate).abs() < 1e-6;
        (!is_right).then(|| format!("{line:?}: {expected:?}, {rate}"))
    })
}

#[test]
fn counts_and_differences_are_those_that_another_way_of_counting_gives() {
    let (a, b) = (table("a", 600, 0), table("b", 900, 5));
    let comparison = compare(&a, &b);
    let found = lines(&comparison);
    // All, a kernel, a label, five lines, two operations and two groups; four outcomes each, and SDC that
    // is critical.
    assert_eq!(found.len(), 12 * 5);
    assert_eq!(difference(&found, &a, &b), None);
    assert!(found.iter().all(|line| line["both"].is_empty() && line["test"] == "fisher"));
    assert!(comparison.verdict().contains("2.31x the instructions"), "{}", comparison.verdict());

    // A row that came out otherwise is seen.
    assert!(difference(&found, &a.replacen(",sdc,,", ",due,watchdog,", 1), &b).is_some());
}

#[test]
fn the_same_faults_are_compared_pair_by_pair() {
    let (a, b) = (table("a", 600, 0), table("b", 600, 0));
    let found = lines(&compare(&a, &b));
    assert_eq!(difference(&found, &a, &b), None);
    let rows = |table: &str| -> Vec<Line> {
        let mut reader = csv::Reader::from_reader(table.as_bytes());
        reader.deserialize().map(|row| row.expect("a row")).collect()
    };
    let pairs: Vec<(Line, Line)> = rows(&a).into_iter().zip(rows(&b)).collect();
    for line in found.iter().filter(|line| line["scope"] == "all") {
        let own = &line["outcome"];
        let count = |is_a: bool, is_b: bool| {
            let comes = |(a, b): &&(Line, Line)| (comes_to(a, own), comes_to(b, own));
            pairs.iter().filter(|pair| comes(pair) == (is_a, is_b)).count().to_string()
        };
        let expected =
            [count(true, true), count(true, false), count(false, true), count(false, false)];
        let columns = ["both", "only_a", "only_b", "neither"].map(|name| line[name].clone());
        assert_eq!(columns, expected, "{own}");
        assert_eq!(line["test"], "mcnemar");
    }
    // The interval is narrower than of the same counts without their pairs.
    let width = |lines: &[Line]| {
        let sdc = lines.iter().find(|line| line["scope"] == "all" && line["outcome"] == "sdc");
        let number = |name: &str| sdc.expect("SDC")[name].parse::<f64>().expect("a number");
        number("high") - number("low")
    };
    let other = b.replace("site ", "another site ");
    let independent = lines(&compare(&a, &other));
    assert_eq!(difference(&independent, &a, &b), None);
    assert!(width(&found) < width(&independent));

    // Of a campaign that was interrupted, as far as it went.
    let part = table("b", 200, 0);
    let some = compare(&a, &part);
    assert_eq!(difference(&lines(&some), &table("a", 200, 0), &part), None);
    assert!(some.table().contains("200 of 600 and 200"), "{}", some.table());
}

#[test]
fn where_a_test_is_not_valid_there_is_none_and_it_is_said_why() {
    let (a, b) = (table("a", 300, 0), table("b", 300, 5));
    let weighted = b.replace(",1,,1.0,", ",1,one,0.5,").replacen(",1,one,0.5,", ",1,two,1.5,", 60);
    let comparison = compare(&a, &weighted);
    assert!(lines(&comparison).iter().all(|line| line["p"].is_empty() && line["test"].is_empty()));
    assert!(comparison.table().contains("no test, as rows stand for"), "{}", comparison.table());
    let known = |design: SampleDesign| SampleDesign {
        known: BTreeMap::from([(
            "all".to_owned(),
            Known { places: 100, dead: 50, overwritten: 0 },
        )]),
        ..design
    };
    type Designed = fn(SampleDesign) -> SampleDesign;
    let designs: [(Designed, &str); 3] = [
        (|own| own.repeated(2.5), "decide when to end"),
        (|own| SampleDesign { is_finite: true, ..own }, "drawn twice"),
        (known, "known to be masked"),
    ];
    for (design, why) in designs {
        let own = About { design: design(about("b").design), ..about("b") };
        let comparison =
            Comparison::new((about("a"), Cursor::new(a.clone())), (own, Cursor::new(b.clone())));
        let table = comparison.expect("a comparison").table();
        assert!(table.contains(why), "{table}");
    }
}

#[test]
fn what_differs_besides_is_said_and_what_is_no_campaign_is_an_error() {
    let text = table("a", 20, 0);
    let mut other = about("b");
    other.facts = vec![("Target", "gfx942".to_owned()), ("Fault", "random_value".to_owned())];
    other.design = SampleDesign::simple(Confidence::P99);
    other.unfinished = Some("The campaign was interrupted.".to_owned());
    other.compared = None;
    let both = |other: About, text: &str| {
        Comparison::new(
            (about("a"), Cursor::new(table("a", 20, 0))),
            (other, Cursor::new(text.to_owned())),
        )
    };
    let comparison = both(other, &text).expect("a comparison");
    let warnings = comparison.warnings().join("\n");
    for said in
        ["interrupted", "`target`: gfx90a, and gfx942", "`fault`", "compared differently", "99 %"]
    {
        assert!(warnings.contains(said), "{said}: {warnings}");
    }
    assert!(both(about("b"), &text).expect("a comparison").warnings().is_empty());
    let header = Row::COLUMNS.join(",") + "\n";
    for (text, said) in [(header.as_str(), "has no rows"), ("no,table\n", "not the results")] {
        let error = both(about("b"), text).expect_err(said).to_string();
        assert!(error.starts_with("b.results: ") && error.contains(said), "{error}");
    }
}

/// Whatever stands in a table or a record is text of the page, and no part of it.
#[test]
fn the_page_needs_no_network_and_shows_names_as_text() {
    let text = table("a", 50, 0).replace("norm.cl", "<script>alert(1)</script>.cl");
    let comparison = compare(&text, &text);
    let page = comparison.html();
    assert_eq!(page.matches("<script").count(), 1, "its own alone");
    assert!(page.contains("&lt;script&gt;alert(1)"));
    for forbidden in ["http:", "https:", "url(", "@import", " src=", ">NaN", "=\"NaN"] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
    assert_eq!(page, compare(&text, &text).html());
}
