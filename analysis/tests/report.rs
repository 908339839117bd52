//! Reports against an independent count of the rows, and with hostile tables.

use flipwave_analysis::{
    Aggregates, CampaignInfo, ComparedOutput, Confidence, ReportedCampaign, Row, SampleDesign,
    Sources, report_html, write_aggregates,
};
use std::collections::BTreeMap;
use std::io::Cursor;
use std::time::Instant;

/// A SplitMix64 generator: G. Steele et al., "Fast Splittable Pseudorandom Number Generators" (2014).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }
}

/// The sampling of a synthetic table.
#[derive(Clone, Copy, PartialEq)]
enum Sampling {
    Simple,
    /// Opcodes are strata, and rows have different weights.
    Stratified,
}

/// A synthetic table of `count` rows.
fn table(count: u64, sampling: Sampling) -> String {
    let mut random = Random(count);
    let mut text = Row::COLUMNS.join(",") + "\n";
    for index in 0..count {
        let instruction = random.below(600);
        let (kernel, pc) = (instruction / 200, 0x1000 + 8 * instruction);
        let opcode =
            ["v_fma_f32", "ds_read_b32", "v_add_u32", "s_mul_i32"][(instruction % 4) as usize];
        let group = ["valu", "lds", "valu", "salu"][(instruction % 4) as usize];
        let (x, y) = (random.below(100), random.below(70));
        let (lane, bit, register) = (random.below(64), random.below(32), random.below(90));
        let highest = random.below(12);
        let occurrence = random.below(1 << highest);
        let site = format!(
            "dispatch={kernel} workgroup={x},{y},0 wave=1 pc={pc:#x} occurrence={occurrence} \
             lane={lane} register=v{register} flip={:#010x}",
            1_u64 << bit
        );
        let (outcome, cause, errors) = match random.below(10) + bit / 8 {
            0..4 => ("masked", ["logical", "dead"][(index % 2) as usize], "0,0.0,0.0,,0,0"),
            4..10 => (
                "sdc",
                "",
                ["3,0.5,1e-3,row,0,0", "4096,1e9,inf,block,7,1", "1,0.1,2.5e-7,single,0,0"]
                    [(index % 3) as usize],
            ),
            10..12 => ("due", ["memory_violation", "watchdog"][(index % 2) as usize], ",,,,,"),
            _ => ("detected", "check", "20,1.0,0.5,random,0,0"),
        };
        let severity = match outcome {
            "sdc" => ["critical", "tolerable", "tolerable"][(bit % 3) as usize],
            _ => "",
        };
        let (stratum, weight) = match sampling {
            Sampling::Stratified => {
                (opcode, ["1.5", "0.25", "1.125", "0.875"][(instruction % 4) as usize])
            }
            Sampling::Simple => ("", "1.0"),
        };
        text.push_str(&format!(
            "{index},\"{site}\",kernel_{kernel},{kernel},layer{},\"{x},{y},0\",1,{lane},{pc:#x},{opcode},{group},\
             ./kernels.cl:{},{occurrence},v{register},{:#010x},0x00000000,{:#010x},1,{stratum},{weight},\
             {outcome},{cause},{severity},{errors},,,\n",
            kernel % 2,
            instruction / 5,
            1_u64 << bit,
            1_u64 << bit
        ));
    }
    text
}

fn info(name: &str) -> CampaignInfo {
    CampaignInfo {
        folder: format!("{name}.results"),
        name: name.to_owned(),
        file: Some("campaign.yaml".into()),
        seed: Some(42),
        unfinished: None,
        design: SampleDesign::simple(Confidence::P95),
        planned: Some(1000),
        sites: Some(1_000_000),
        counted: None,
        instructions: Some(1000),
        facts: vec![("Target", "gfx90a".to_owned())],
        compared: Some(Vec::new()),
    }
}

fn reported(info: CampaignInfo, table: &str) -> ReportedCampaign {
    let campaign = Aggregates::new(info, Cursor::new(table)).expect("a table");
    ReportedCampaign { campaign, sources: Sources::new(Vec::new()) }
}

fn exported(campaigns: &[ReportedCampaign]) -> String {
    let mut bytes = Vec::new();
    write_aggregates(campaigns, &mut bytes).expect("written");
    String::from_utf8(bytes).expect("text")
}

/// A number of injections and the sum of their weights.
#[derive(Clone, Copy, Default)]
struct Weighted {
    count: u64,
    weight: f64,
}

impl Weighted {
    fn add(&mut self, weight: f64) {
        self.count += 1;
        self.weight += weight;
    }
}

/// Injections with an outcome and cause, and all injections of the scope and value.
struct Counted {
    part: Weighted,
    total: Weighted,
}

/// Counts by scope, value, outcome and cause.
type Counts = BTreeMap<[String; 4], Counted>;

/// Extracts the value of a scope from a row.
type Value<'a> = dyn Fn(&csv::StringRecord) -> String + 'a;

/// Counts the rows of a table without the crate's code.
fn counted(table: &str) -> Counts {
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let header = reader.headers().expect("a header").clone();
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
    let column = |name: &str| header.iter().position(|column| column == name).expect("a column");
    let (outcome, cause, weight) = (column("outcome"), column("cause"), column("weight"));
    let severity = column("severity");
    let scopes: [(&str, Box<Value<'_>>); 11] = [
        ("label", Box::new(|row| row[column("label")].to_owned())),
        ("shape", Box::new(|row| row[column("error_pattern")].to_owned())),
        ("all", Box::new(|_| String::new())),
        ("kernel", Box::new(|row| row[column("kernel")].to_owned())),
        ("line", Box::new(|row| row[column("line")].to_owned())),
        ("opcode", Box::new(|row| row[column("opcode")].to_owned())),
        ("group", Box::new(|row| row[column("group")].to_owned())),
        ("register", Box::new(|row| row[column("location")].to_owned())),
        ("lane", Box::new(|row| row[column("lane")].to_owned())),
        (
            "bit",
            Box::new(|row| {
                let digits = row[column("flip_mask")].trim_start_matches("0x");
                let mask = u64::from_str_radix(digits, 16).expect("a mask");
                (0..64).find(|bit| mask == 1 << bit).expect("one bit").to_string()
            }),
        ),
        (
            "instruction",
            Box::new(|row| {
                ["kernel", "pc", "opcode", "line"].map(|name| &row[column(name)]).join(" ")
            }),
        ),
    ];
    let mut counts = Counts::new();
    for (scope, value) in &scopes {
        let mut totals: BTreeMap<String, Weighted> = BTreeMap::new();
        let mut parts: BTreeMap<[String; 4], Weighted> = BTreeMap::new();
        for row in &rows {
            let weight: f64 = row[weight].parse().expect("a weight");
            let value = value(row);
            // Correct outputs and outputs without dimensions have no shape.
            if *scope == "shape" && value.is_empty() {
                continue;
            }
            totals.entry(value.clone()).or_default().add(weight);
            let mut causes = vec![""];
            // SDC has a severity instead of a cause.
            let cause = if &row[outcome] == "sdc" { severity } else { cause };
            causes.extend(Some(&row[cause]).filter(|cause| !cause.is_empty()));
            for cause in causes {
                let key = [*scope, &value, &row[outcome], cause].map(str::to_owned);
                parts.entry(key).or_default().add(weight);
            }
        }
        counts.extend(parts.into_iter().map(|(key, part)| {
            let total = totals[&key[1]];
            (key, Counted { part, total })
        }));
    }
    counts
}

/// The first difference between `aggregates.csv` and the counts, if any.
fn difference(csv: &str, counts: &Counts, sampling: Sampling) -> Option<String> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let mut found = BTreeMap::new();
    for row in reader.records() {
        let row = row.expect("a row");
        let key = [&row[2], &row[3], &row[4], &row[5]].map(str::to_owned);
        found.insert(key, row);
    }
    for (key, Counted { part, total }) in counts {
        let Some(row) = found.get(key) else { return Some(format!("{key:?} is missing")) };
        let number = |column: usize| row[column].parse::<f64>().expect("a number");
        let rate = part.weight / total.weight;
        let mut expected =
            vec![(6, part.count as f64, 0.0), (7, total.count as f64, 0.0), (8, rate, 1e-6)];
        if sampling == Sampling::Simple {
            // Wilson's interval with the normal quantile for 95 %.
            let (n, z) = (total.count as f64, 1.959_963_984_540_054_f64);
            let centre = (rate + z * z / (2.0 * n)) / (1.0 + z * z / n);
            let half =
                z / (1.0 + z * z / n) * (rate * (1.0 - rate) / n + z * z / (4.0 * n * n)).sqrt();
            expected.extend([(9, centre - half, 1e-6), (10, centre + half, 1e-6)]);
        }
        for (column, expected, tolerance) in expected {
            if (number(column) - expected).abs() > tolerance {
                return Some(format!("{key:?}, column {column}: {}, not {expected}", &row[column]));
            }
        }
    }
    // The scopes have no other lines, except those of outcomes that did not occur.
    let scopes: Vec<&String> = counts.keys().map(|key| &key[0]).collect();
    let is_extra = |(key, row): &(&[String; 4], &csv::StringRecord)| {
        scopes.contains(&&key[0]) && &row[6] != "0" && !counts.contains_key(*key)
    };
    found.iter().find(is_extra).map(|(key, _)| format!("{key:?} is unexpected"))
}

#[test]
fn rates_match_an_independent_count() {
    for sampling in [Sampling::Simple, Sampling::Stratified] {
        let table = table(100_000, sampling);
        let csv = exported(&[reported(info("synthetic"), &table)]);
        let counts = counted(&table);
        assert_eq!(difference(&csv, &counts, sampling), None);

        // Negative control: one row with another outcome or opcode.
        let line = table.lines().nth(777).expect("a row");
        let changed = if line.contains(",sdc,") {
            line.replace(",sdc,", ",detected,")
        } else {
            line.replace(",v_", ",w_").replace(",s_", ",w_").replace(",ds_", ",w_")
        };
        assert_ne!(line, changed);
        let counts = counted(&table.replacen(line, &changed, 1));
        assert!(difference(&csv, &counts, sampling).is_some());
    }
}

#[test]
fn shares_of_all_sdc_add_up_to_one() {
    let csv = exported(&[reported(info("parts"), &table(5_000, Sampling::Stratified))]);
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for row in reader.records() {
        let row = row.expect("a row");
        if &row[4] == "sdc" && row[5].is_empty() {
            *sums.entry(row[2].to_owned()).or_default() += row[11].parse::<f64>().expect("a share");
        }
    }
    for scope in
        ["all", "kernel", "line", "opcode", "class", "bit", "lane", "workgroup", "instruction"]
    {
        assert!((sums[scope] - 1.0).abs() < 1e-3, "{scope}: {}", sums[scope]);
    }
}

#[test]
fn page_is_deterministic() {
    let page = || {
        let table = table(2_000, Sampling::Stratified);
        report_html(&[reported(info("a"), &table), reported(info("b"), &table)])
    };
    assert_eq!(page(), page());
}

#[test]
fn page_escapes_hostile_tables_and_records() {
    let script = "<script>alert(1)</script>'&<b onclick=x>";
    let image = "\"\"><img src=x onerror=alert(1)>";
    let field = format!("\"{script}{image}\"");
    let row = |outcome: &str| {
        format!(
            "0,{field},{field},0,{field},\"0,0,0\",1,1,0x10,{field},{field},{field},0,{field},0x00000001,\
             0x00000000,0x00000001,1,{field},1.0,{outcome},{field},,1,1.0,1.0,,,,{field},,\n"
        )
    };
    let text = Row::COLUMNS.join(",") + "\n" + &row("sdc") + &row("due") + &row("masked");
    let name = format!("{script}{image}").replace("\"\"", "\"");
    let record = CampaignInfo {
        folder: name.clone(),
        file: Some(name.clone().into()),
        unfinished: Some(name.clone()),
        facts: vec![("Target", name.clone())],
        counted: Some(name.clone()),
        compared: Some(vec![ComparedOutput {
            name: name.clone(),
            element: name.clone(),
            elements: Some(1),
            comparison: name.clone(),
            is_detector: false,
        }]),
        ..info(&name)
    };
    for campaigns in [1, 2] {
        let all: Vec<_> = (0..campaigns).map(|_| reported(record.clone(), &text)).collect();
        let page = report_html(&all);
        assert_eq!(page.matches("<script").count(), 1, "only the page's script");
        for forbidden in ["<img", "<b onclick", "alert(1)</script", "flipwave replay"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "shown as text");
    }
}

#[test]
fn page_has_no_network_addresses() {
    let page = report_html(&[reported(info("alone"), &table(500, Sampling::Simple))]);
    for forbidden in ["http:", "https:", "//cdn", "url(", "@import", " src="] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn unusual_tables_have_a_page() {
    let header = Row::COLUMNS.join(",") + "\n";
    let masked = header.clone()
        + "0,site,k,0,,\"0,0,0\",0,0,0x10,v_mov_b32,valu,,0,v0,0x00000001,0x00000000,0x00000001,1,,\
           1.0,masked,dead,,0,0.0,0.0,,0,0,,0,false\n";
    let everywhere = header.clone()
        + "0,site,,,,,,,,v_mov_b32,valu,,,destination=0,0x0,0x00000000,0x00000001,0,,1e15,sdc,,,\
           18446744073709551615,NaN,NaN,several,18446744073709551615,18446744073709551615,,-9223372036854775808,\n";
    for (table, expected) in [(&header, "no rows yet"), (&masked, "100.0 %"), (&everywhere, "NaN")]
    {
        let page = report_html(&[reported(info("odd"), table)]);
        assert!(page.contains(expected), "{expected}");
        for forbidden in ["NaN %", "inf %", "=\"NaN", "=\"inf"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
    }
}

/// A table of a million rows, and a table in which all names are different.
#[test]
#[ignore = "a million rows; prints the duration and the size of the page"]
fn page_size_is_bounded() {
    let many = table(1_000_000, Sampling::Stratified);
    let mut names = Row::COLUMNS.join(",") + "\n";
    for index in 0..300_000 {
        names.push_str(&format!(
            "{index},s{index},k{index},0,l{index},\"{index},{index},{index}\",0,0,{index:#x},o{index},g{index},\
             f{index}.cl:{index},{index},v{index},{index:#x},0x0,0x1,1,s{},1.0,sdc,c{},,1,1.0,\
             {index},,,,m{index},,\n",
            index % 4096,
            index % 256
        ));
    }
    for (name, table) in [("a million rows", many), ("300,000 names", names)] {
        let clock = Instant::now();
        let campaigns = [reported(info("large"), &table)];
        let counted = clock.elapsed().as_secs_f64();
        let (page, csv) = (report_html(&campaigns), exported(&campaigns));
        let all = clock.elapsed().as_secs_f64();
        println!(
            "{name}, {} MB: counted in {counted:.2} s, page of {} kB and table of {} kB after {all:.2} s",
            table.len() / 1_000_000,
            page.len() / 1000,
            csv.len() / 1000
        );
        assert!(page.len() < 3_000_000, "{}", page.len());
    }
}
