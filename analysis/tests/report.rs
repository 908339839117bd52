//! Reports against what a table says when it is counted in another way, and against tables that nobody
//! should be able to do harm with.

use flipwave_analysis::{
    About, Aggregates, ComparedOutput, Confidence, Reported, Row, SampleDesign, Sources,
    report_html, write_aggregates,
};
use std::collections::BTreeMap;
use std::io::Cursor;
use std::time::Instant;

/// Numbers that look random: G. Steele and others, "Fast Splittable Pseudorandom Number Generators"
/// (2014), SplitMix64.
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

/// A table with this many rows, with weights where they are drawn from strata.
fn table(count: u64, has_strata: bool) -> String {
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
        let (stratum, weight) = match has_strata {
            true => (opcode, ["1.5", "0.25", "1.125", "0.875"][(instruction % 4) as usize]),
            false => ("", "1.0"),
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

fn about(name: &str) -> About {
    About {
        folder: format!("{name}.results"),
        name: name.to_owned(),
        file: Some("campaign.yaml".into()),
        seed: Some(42),
        unfinished: None,
        design: SampleDesign::simple(Confidence::P95),
        planned: Some(1000),
        places: Some(1_000_000),
        counted: None,
        instructions: Some(1000),
        facts: vec![("Target", "gfx90a".to_owned())],
        compared: Some(Vec::new()),
    }
}

fn reported(about: About, table: &str) -> Reported {
    let campaign = Aggregates::new(about, Cursor::new(table)).expect("a table");
    Reported { campaign, sources: Sources::new(Vec::new()) }
}

fn exported(campaigns: &[Reported]) -> String {
    let mut bytes = Vec::new();
    write_aggregates(campaigns, &mut bytes).expect("written");
    String::from_utf8(bytes).expect("text")
}

/// Injections and their weight.
type Counted = (u64, f64);

/// By scope, value, outcome and cause: those with it, and all of the value.
type Counts = BTreeMap<[String; 4], (Counted, Counted)>;

/// What a row has of a scope.
type Key<'a> = dyn Fn(&csv::StringRecord) -> String + 'a;

/// What a table says, counted plainly: each column's values by outcome.
fn counted(table: &str) -> Counts {
    let mut reader = csv::Reader::from_reader(table.as_bytes());
    let header = reader.headers().expect("a header").clone();
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("a row")).collect();
    let column = |name: &str| header.iter().position(|own| own == name).expect("a column");
    let (outcome, cause, weight) = (column("outcome"), column("cause"), column("weight"));
    let severity = column("severity");
    let scopes: [(&str, Box<Key<'_>>); 11] = [
        ("label", Box::new(|row| row[column("label")].to_owned())),
        ("shape", Box::new(|row| row[column("shape")].to_owned())),
        ("all", Box::new(|_| String::new())),
        ("kernel", Box::new(|row| row[column("kernel")].to_owned())),
        ("line", Box::new(|row| row[column("line")].to_owned())),
        ("opcode", Box::new(|row| row[column("opcode")].to_owned())),
        ("group", Box::new(|row| row[column("group")].to_owned())),
        ("register", Box::new(|row| row[column("place")].to_owned())),
        ("lane", Box::new(|row| row[column("lane")].to_owned())),
        (
            "bit",
            Box::new(|row| {
                let digits = row[column("mask")].trim_start_matches("0x");
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
        let mut totals: BTreeMap<String, Counted> = BTreeMap::new();
        let mut parts: BTreeMap<[String; 4], Counted> = BTreeMap::new();
        for row in &rows {
            let weight: f64 = row[weight].parse().expect("a weight");
            let value = value(row);
            // Outputs that are right, or have no dimensions, have no shape.
            if *scope == "shape" && value.is_empty() {
                continue;
            }
            let total = totals.entry(value.clone()).or_default();
            *total = (total.0 + 1, total.1 + weight);
            let mut causes = vec![""];
            // How bad SDC is stands in the place of a cause.
            let own = if &row[outcome] == "sdc" { severity } else { cause };
            causes.extend(Some(&row[own]).filter(|cause| !cause.is_empty()));
            for cause in causes {
                let key = [*scope, &value, &row[outcome], cause].map(str::to_owned);
                let part = parts.entry(key).or_default();
                *part = (part.0 + 1, part.1 + weight);
            }
        }
        let with_total = |(key, part): ([String; 4], Counted)| {
            let total = totals[&key[1]];
            (key, (part, total))
        };
        counts.extend(parts.into_iter().map(with_total));
    }
    counts
}

/// The first thing in which `aggregates.csv` differs from what was counted, if any.
fn difference(csv: &str, counts: &Counts, is_even: bool) -> Option<String> {
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let mut found = BTreeMap::new();
    for row in reader.records() {
        let row = row.expect("a row");
        let key = [&row[2], &row[3], &row[4], &row[5]].map(str::to_owned);
        found.insert(key, row);
    }
    for (key, ((count, weight), (total, all))) in counts {
        let Some(row) = found.get(key) else { return Some(format!("{key:?} is missing")) };
        let number = |column: usize| row[column].parse::<f64>().expect("a number");
        let rate = weight / all;
        let mut expected = vec![(6, *count as f64, 0.0), (7, *total as f64, 0.0), (8, rate, 1e-6)];
        if is_even {
            // E. B. Wilson's interval as textbooks have it, with the quantile of the normal
            // distribution for 95 %.
            let (n, z) = (*total as f64, 1.959_963_984_540_054_f64);
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
    // What was not counted in the other way is no part of these scopes, but for outcomes without any.
    let known: Vec<&String> = counts.keys().map(|key| &key[0]).collect();
    found
        .iter()
        .find(|(key, row)| known.contains(&&key[0]) && &row[6] != "0" && !counts.contains_key(*key))
        .map(|(key, _)| format!("{key:?} is too much"))
}

#[test]
fn rates_are_those_that_another_way_of_counting_gives() {
    for has_strata in [false, true] {
        let table = table(100_000, has_strata);
        let csv = exported(&[reported(about("synthetic"), &table)]);
        let counts = counted(&table);
        assert_eq!(difference(&csv, &counts, !has_strata), None);

        // One row that came out otherwise is seen, and so is another weight.
        let line = table.lines().nth(777).expect("a row");
        let other = match line.contains(",sdc,") {
            true => line.replace(",sdc,", ",detected,"),
            false => line.replace(",v_", ",w_").replace(",s_", ",w_").replace(",ds_", ",w_"),
        };
        assert_ne!(line, other);
        let changed = counted(&table.replacen(line, &other, 1));
        assert!(difference(&csv, &changed, !has_strata).is_some());
    }
}

#[test]
fn the_parts_of_all_sdc_add_up_to_one() {
    let csv = exported(&[reported(about("parts"), &table(5_000, true))]);
    let mut reader = csv::Reader::from_reader(csv.as_bytes());
    let mut sums: BTreeMap<String, f64> = BTreeMap::new();
    for row in reader.records() {
        let row = row.expect("a row");
        if &row[4] == "sdc" && row[5].is_empty() {
            *sums.entry(row[2].to_owned()).or_default() += row[11].parse::<f64>().expect("a part");
        }
    }
    for scope in
        ["all", "kernel", "line", "opcode", "class", "bit", "lane", "workgroup", "instruction"]
    {
        assert!((sums[scope] - 1.0).abs() < 1e-3, "{scope}: {}", sums[scope]);
    }
}

#[test]
fn the_same_results_give_the_same_bytes() {
    let page = || {
        let table = table(2_000, true);
        report_html(&[reported(about("a"), &table), reported(about("b"), &table)])
    };
    assert_eq!(page(), page());
}

/// Whatever stands in a table or a record is text of the page, and no part of it.
#[test]
fn nothing_in_a_table_becomes_a_part_of_the_page() {
    let evil = "<script>alert(1)</script>'&<b onclick=x>";
    let quoted = "\"\"><img src=x onerror=alert(1)>";
    let field = format!("\"{evil}{quoted}\"");
    let row = |outcome: &str| {
        format!(
            "0,{field},{field},0,{field},\"0,0,0\",1,1,0x10,{field},{field},{field},0,{field},0x00000001,\
             0x00000000,0x00000001,1,{field},1.0,{outcome},{field},,1,1.0,1.0,,,,{field},,\n"
        )
    };
    let text = Row::COLUMNS.join(",") + "\n" + &row("sdc") + &row("due") + &row("masked");
    let hostile = |text: &str| text.replace("\"\"", "\"");
    let name = hostile(&format!("{evil}{quoted}"));
    let record = About {
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
        }]),
        ..about(&name)
    };
    for campaigns in [1, 2] {
        let all: Vec<_> = (0..campaigns).map(|_| reported(record.clone(), &text)).collect();
        let page = report_html(&all);
        assert_eq!(page.matches("<script").count(), 1, "its own alone");
        for forbidden in ["<img", "<b onclick", "alert(1)</script", "flipwave replay"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "it is shown as text");
    }
}

#[test]
fn a_page_has_no_address_of_a_network() {
    let page = report_html(&[reported(about("alone"), &table(500, false))]);
    for forbidden in ["http:", "https:", "//cdn", "url(", "@import", " src="] {
        assert!(!page.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn odd_tables_have_a_page() {
    let header = Row::COLUMNS.join(",") + "\n";
    let masked = header.clone()
        + "0,site,k,0,,\"0,0,0\",0,0,0x10,v_mov_b32,valu,,0,v0,0x00000001,0x00000000,0x00000001,1,,\
           1.0,masked,dead,,0,0.0,0.0,,0,0,,0,false\n";
    let everywhere = header.clone()
        + "0,site,,,,,,,,v_mov_b32,valu,,,destination=0,0x0,0x00000000,0x00000001,0,,1e15,sdc,,,\
           18446744073709551615,NaN,NaN,several,18446744073709551615,18446744073709551615,,-9223372036854775808,\n";
    for (table, expected) in [(&header, "no rows yet"), (&masked, "100.0 %"), (&everywhere, "NaN")]
    {
        let page = report_html(&[reported(about("odd"), table)]);
        assert!(page.contains(expected), "{expected}");
        for forbidden in ["NaN %", "inf %", "=\"NaN", "=\"inf"] {
            assert!(!page.contains(forbidden), "{forbidden}");
        }
    }
}

/// A table of a million rows, and one whose names are all different: the page stays small.
#[test]
#[ignore = "a million rows; prints how long it took and how large the page is"]
fn a_million_rows_make_a_page_of_bounded_size() {
    let many = table(1_000_000, true);
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
    for (what, table) in [("a million rows", many), ("300,000 names", names)] {
        let clock = Instant::now();
        let campaigns = [reported(about("large"), &table)];
        let counted = clock.elapsed().as_secs_f64();
        let (page, csv) = (report_html(&campaigns), exported(&campaigns));
        let all = clock.elapsed().as_secs_f64();
        println!(
            "{what}, {} MB: counted in {counted:.2} s, page of {} kB and table of {} kB after {all:.2} s",
            table.len() / 1_000_000,
            page.len() / 1000,
            csv.len() / 1000
        );
        assert!(page.len() < 3_000_000, "{}", page.len());
    }
}
