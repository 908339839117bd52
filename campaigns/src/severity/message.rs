//! Messages between a campaign and its judge: lines of JSON.

use super::Judgement;
use flipwave_analysis::Severity;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Version of the protocol.
const VERSION: u32 = 1;

/// Maximum length of the measures of a run in bytes.
const MAX_MEASURES_BYTES: usize = 4096;

/// The first line. The outputs of the golden run follow, one after the other.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Greeting {
    flipwave_severity: u32,
    campaign: String,
    outputs: Vec<OutputDescription>,
}

/// Description of an output.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct OutputDescription {
    pub name: String,
    #[serde(rename = "type")]
    pub element: &'static str,
    pub count: u64,
    pub shape: Option<Vec<u64>>,
    pub bytes: usize,
}

/// The line about a faulty run. Its outputs follow, like those of the golden run.
#[derive(Debug, Serialize)]
pub(super) struct Question {
    pub index: u64,
    /// Length of each output, if a length differs from the golden run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<Vec<usize>>,
}

/// An answer of the judge: ready, a judgement, or an error.
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

    /// Returns the lengths of the outputs, if a length differs from the golden run.
    pub fn changed_lengths(&self, outputs: &[&[u8]]) -> Option<Vec<usize>> {
        let lengths: Vec<usize> = outputs.iter().map(|bytes| bytes.len()).collect();
        let is_same = self.outputs.iter().map(|output| output.bytes).eq(lengths.iter().copied());
        (!is_same).then_some(lengths)
    }
}

impl Answer {
    /// Parses an answer.
    ///
    /// # Errors
    /// Returns the invalid answer, or the error that the judge reports.
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
    /// Returns the answer if it is another one.
    pub fn ready(line: &str) -> Result<(), String> {
        match Answer::parse(line)?.ready {
            Some(true) => Ok(()),
            _ => Err(format!(
                "its first answer is `{}`; expected {{\"ready\": true}}",
                excerpt(line)
            )),
        }
    }

    /// Returns the judgement in an answer about injection `expected_index`.
    ///
    /// # Errors
    /// Returns the answer if it contains no judgement, or one of another injection.
    pub fn judgement(line: &str, expected_index: u64) -> Result<Judgement, String> {
        let Answer { severity: Some(severity), measures, index, .. } = Answer::parse(line)? else {
            return Err(format!(
                "its answer `{}` has no `severity`; expected `critical` or `tolerable`",
                excerpt(line)
            ));
        };
        if let Some(index) = index.filter(|index| *index != expected_index) {
            return Err(format!(
                "its answer is about injection {index}; expected {expected_index}"
            ));
        }
        let words: Result<Vec<String>, String> =
            measures.iter().map(|(name, value)| measure(name, value)).collect();
        let words = words?;
        let measures = (!words.is_empty()).then(|| words.join(" "));
        if measures.as_ref().is_some_and(|text| text.len() > MAX_MEASURES_BYTES) {
            return Err(format!("its measures are longer than {MAX_MEASURES_BYTES} bytes"));
        }
        Ok(Judgement { severity, measures })
    }
}

/// Formats a measure for the results: `cosine=0.98`.
fn measure(name: &str, value: &Value) -> Result<String, String> {
    let is_word = |text: &str| {
        !text.is_empty() && text.len() <= 64 && text.chars().all(|c| c.is_ascii_graphic())
    };
    let value = match value {
        Value::Number(number) => number.to_string(),
        Value::Bool(value) => u8::from(*value).to_string(),
        // Infinities and NaN, which JSON numbers cannot represent.
        Value::String(word) if word.parse::<f64>().is_ok() => word.clone(),
        invalid => {
            let (name, invalid) = (excerpt(name), excerpt(&invalid.to_string()));
            return Err(format!("the measure `{name}` is {invalid}; expected a number"));
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

/// Returns the beginning of a line without control characters.
fn excerpt(line: &str) -> String {
    const MAX_CHARS: usize = 2000;
    let printable = |c: char| if c.is_control() { ' ' } else { c };
    let mut text: String = line.trim_end().chars().take(MAX_CHARS).map(printable).collect();
    if line.trim_end().chars().count() > MAX_CHARS {
        text.push_str("...");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Users write judges, so the format must not change.
    #[test]
    fn message_texts_are_fixed() {
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
        // The tests below check the names in answers.
    }

    #[test]
    fn judgement_lists_measures_by_name() {
        let line = r#"{"severity": "critical", "measures": {"top1": false, "cosine": 0.25, "loss": "nan", "n": 3}}"#;
        let judgement = Answer::judgement(line, 3).expect("a judgement");
        assert_eq!(judgement.severity, Severity::Critical);
        assert_eq!(judgement.measures.as_deref(), Some("cosine=0.25 loss=nan n=3 top1=0"));
        let none =
            Answer::judgement(r#"{"severity": "tolerable", "index": 3}"#, 3).expect("a judgement");
        assert_eq!(none, Judgement { severity: Severity::Tolerable, measures: None });
    }

    #[test]
    fn invalid_answers_are_errors_that_say_what_was_expected() {
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
