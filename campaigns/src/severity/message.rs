//! What a campaign and its judge say to each other: lines of JSON.

use super::Judgement;
use flipwave_analysis::Severity;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// The version of the protocol.
const VERSION: u32 = 1;

/// Bytes of the measures of a run at most.
const MOST_MEASURES: usize = 4096;

/// The first line; the outputs of the fault-free run follow, one after the other.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Greeting {
    flipwave_severity: u32,
    campaign: String,
    outputs: Vec<OutputDescription>,
}

/// What an output is.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct OutputDescription {
    pub name: String,
    #[serde(rename = "type")]
    pub element: &'static str,
    pub count: u64,
    pub shape: Option<Vec<u64>>,
    pub bytes: usize,
}

/// The line about a run; its outputs follow as those of the fault-free run.
#[derive(Debug, Serialize)]
pub(super) struct Question {
    pub index: u64,
    /// The length of each output, where not all are as long as those of the fault-free run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Vec<usize>>,
}

/// An answer of the judge: one of three.
#[derive(Debug, Deserialize)]
pub(super) struct Answer {
    ready: Option<bool>,
    index: Option<u64>,
    severity: Option<Severity>,
    #[serde(default)]
    measures: BTreeMap<String, Value>,
    error: Option<String>,
}

impl Greeting {
    pub fn new(campaign: &str, outputs: Vec<OutputDescription>) -> Greeting {
        Greeting { flipwave_severity: VERSION, campaign: campaign.to_owned(), outputs }
    }

    /// The lengths of outputs, if they are others than those of the fault-free run.
    pub fn other_lengths(&self, outputs: &[&[u8]]) -> Option<Vec<usize>> {
        let lengths: Vec<usize> = outputs.iter().map(|own| own.len()).collect();
        let is_same = self.outputs.iter().map(|own| own.bytes).eq(lengths.iter().copied());
        (!is_same).then_some(lengths)
    }
}

impl Answer {
    /// # Errors
    /// Says what is there in the place of an answer, or what the judge said went wrong.
    fn parse(line: &str) -> Result<Answer, String> {
        let answer: Answer = serde_json::from_str(line)
            .map_err(|error| format!("its answer `{}` cannot be read: {error}", excerpt(line)))?;
        match answer.error {
            Some(error) => Err(excerpt(&error)),
            None => Ok(answer),
        }
    }

    /// Checks that the judge is ready.
    ///
    /// # Errors
    /// If it says something else.
    pub fn ready(line: &str) -> Result<(), String> {
        match Answer::parse(line)?.ready {
            Some(true) => Ok(()),
            _ => Err(format!(
                "its first answer is `{}`; expected {{\"ready\": true}}",
                excerpt(line)
            )),
        }
    }

    /// The judgement in an answer about injection `asked`.
    ///
    /// # Errors
    /// If it has none, or is about another.
    pub fn judgement(line: &str, asked: u64) -> Result<Judgement, String> {
        let Answer { severity: Some(severity), measures, index, .. } = Answer::parse(line)? else {
            return Err(format!(
                "its answer `{}` has no `severity`, which is critical or tolerable",
                excerpt(line)
            ));
        };
        if let Some(index) = index.filter(|index| *index != asked) {
            return Err(format!(
                "its answer is about injection {index}; it was asked about {asked}"
            ));
        }
        let words: Result<Vec<String>, String> =
            measures.iter().map(|(name, value)| measure(name, value)).collect();
        let words = words?;
        let measures = (!words.is_empty()).then(|| words.join(" "));
        if measures.as_ref().is_some_and(|text| text.len() > MOST_MEASURES) {
            return Err(format!("its measures take more than {MOST_MEASURES} bytes"));
        }
        Ok(Judgement { severity, measures })
    }
}

/// A measure as results have it, `cosine=0.98`.
fn measure(name: &str, value: &Value) -> Result<String, String> {
    let is_word = |text: &str| {
        !text.is_empty() && text.len() <= 64 && text.chars().all(|one| one.is_ascii_graphic())
    };
    let value = match value {
        Value::Number(number) => number.to_string(),
        Value::Bool(is_so) => u8::from(*is_so).to_string(),
        // What JSON has no numbers for.
        Value::String(word) if word.parse::<f64>().is_ok() => word.clone(),
        other => {
            let (name, other) = (excerpt(name), excerpt(&other.to_string()));
            return Err(format!("the measure `{name}` is {other}; expected a number"));
        }
    };
    if !is_word(name) || !is_word(&value) || name.contains('=') || value.contains('=') {
        return Err(format!(
            "the measure `{}` is `{}`; expected a name and a number without spaces and `=`",
            excerpt(name),
            excerpt(&value)
        ));
    }
    Ok(format!("{name}={value}"))
}

/// The beginning of a line, of what can be shown.
fn excerpt(line: &str) -> String {
    const LONGEST: usize = 2000;
    let shown = |own: char| if own.is_control() { ' ' } else { own };
    let mut text: String = line.trim_end().chars().take(LONGEST).map(shown).collect();
    if line.trim_end().chars().count() > LONGEST {
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Judges are programs of users.
    #[test]
    fn messages_have_a_fixed_text() {
        let output = OutputDescription {
            name: "logits".to_owned(),
            element: "f32",
            count: 2,
            shape: Some(vec![1, 2]),
            bytes: 8,
        };
        let greeting = Greeting::new("model", vec![output]);
        assert_eq!(
            serde_json::to_string(&greeting).expect("JSON"),
            "{\"flipwave_severity\":1,\"campaign\":\"model\",\"outputs\":[{\"name\":\"logits\",\
             \"type\":\"f32\",\"count\":2,\"shape\":[1,2],\"bytes\":8}]}"
        );
        let question = |bytes| serde_json::to_string(&Question { index: 17, bytes }).expect("JSON");
        assert_eq!(question(None), r#"{"index":17}"#);
        assert_eq!(question(Some(vec![3])), r#"{"index":17,"bytes":[3]}"#);
        // Names in answers are pinned by the tests below.
    }

    #[test]
    fn a_judgement_has_its_measures_by_name() {
        let line = r#"{"severity": "critical", "measures": {"top1": false, "cosine": 0.25, "loss": "nan", "n": 3}}"#;
        let judgement = Answer::judgement(line, 3).expect("a judgement");
        assert_eq!(judgement.severity, Severity::Critical);
        assert_eq!(judgement.measures.as_deref(), Some("cosine=0.25 loss=nan n=3 top1=0"));
        let none =
            Answer::judgement(r#"{"severity": "tolerable", "index": 3}"#, 3).expect("a judgement");
        assert_eq!(none, Judgement { severity: Severity::Tolerable, measures: None });
    }

    #[test]
    fn answers_that_are_none_are_errors_that_say_what_was_expected() {
        for (line, word) in [
            ("", "cannot be read"),
            ("true", "cannot be read"),
            (r#"{"severity": "bad"}"#, "critical"),
            (r#"{"ready": true}"#, "no `severity`"),
            (r#"{"error": "ValueError: shapes"}"#, "ValueError: shapes"),
            (r#"{"severity": "critical", "measures": {"a b": 1}}"#, "without spaces"),
            (r#"{"severity": "critical", "measures": {"a": []}}"#, "expected a number"),
            (r#"{"severity": "critical", "measures": {"a": "word"}}"#, "expected a number"),
            (r#"{"severity": "critical", "index": 4}"#, "about injection 4"),
        ] {
            let error = Answer::judgement(line, 3).expect_err(line);
            assert!(error.contains(word), "{line}: {error}");
        }
        assert_eq!(Answer::ready(r#"{"ready": true}"#), Ok(()));
        assert!(Answer::ready(r#"{"severity": "critical"}"#).is_err());
        assert_eq!(Answer::ready(r#"{"error": "no model"}"#), Err("no model".to_owned()));
    }
}
