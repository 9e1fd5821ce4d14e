//! What a source says at a mark: values that only grow, where each was read, and why one is missing.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A source's part of a mark.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Counters {
    pub values: BTreeMap<String, Option<u64>>,
    pub sources: BTreeMap<String, String>,
    pub reasons: BTreeMap<String, String>,
}

/// One row of the series: source, subject, metric, value, unit.
pub type Row = (&'static str, String, String, f64, &'static str);

impl Counters {
    pub fn know(&mut self, name: &str, value: u64, source: impl Into<String>) {
        self.values.insert(name.to_owned(), Some(value));
        self.sources.insert(name.to_owned(), source.into());
        self.reasons.remove(name);
    }

    pub fn lack(&mut self, names: &[&str], reason: &str) {
        for name in names {
            if self.values.get(*name).is_none_or(Option::is_none) {
                self.values.insert((*name).to_owned(), None);
                self.reasons.insert((*name).to_owned(), reason.to_owned());
            }
        }
    }

    pub fn as_json(&self) -> (Value, Value, Value) {
        (json!(self.values), json!(self.sources), json!(self.reasons))
    }
}

/// Growth per second; `None` where it was not seen before or went backwards.
pub fn rate(before: Option<u64>, now: u64, seconds: f64) -> Option<f64> {
    let grown = now.checked_sub(before?)?;
    (seconds > 0.0).then(|| grown as f64 / seconds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_known_has_no_reason_to_be_missing() {
        let mut found = Counters::default();
        found.lack(&["a", "b"], "why");
        found.know("a", 1, "there");
        found.lack(&["a"], "again");
        assert_eq!(found.values["a"], Some(1));
        assert_eq!(found.values["b"], None);
        assert_eq!(found.reasons, BTreeMap::from([("b".into(), "why".into())]));
    }

    #[test]
    fn a_rate_needs_a_look_before_and_no_step_back() {
        assert_eq!(rate(Some(10), 30, 2.0), Some(10.0));
        assert_eq!(rate(None, 30, 2.0), None);
        assert_eq!(rate(Some(31), 30, 2.0), None);
        assert_eq!(rate(Some(10), 30, 0.0), None);
    }
}
