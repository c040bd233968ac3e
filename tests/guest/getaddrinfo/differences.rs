//! Intended differences from librdmacm, in `differences.txt`.
//!
//! ```text
//! difference NAME
//!   since RELEASE              of rdma-core, the first that differs; default: all
//!   until RELEASE              of rdma-core, the last that differs
//!   where KEY=PATTERN ...      the questions it applies to: all patterns must match
//!   word KEY C -> OURS         a word of C's answer, and this library's instead
//!   because ITEM: "SENTENCE"   a sentence of rdma_getaddrinfo(3), and the reason
//! ```
//!
//! In a pattern, `*` matches any text and `?` any character, `|` separates alternatives,
//! a leading `!` negates, `\*` is a star, and `{key}` is the question's word. The first
//! difference that matches a word must be there, and each difference must match at least
//! one word.

use std::cell::Cell;
use std::collections::BTreeMap;

use super::answer::{Answer, RESULT, is_success};

const LIST: &str = include_str!("differences.txt");

#[derive(Debug, Default)]
struct Difference {
    name: String,
    since: Option<u32>,
    until: Option<u32>,
    questions: Vec<(String, String)>,
    key: String,
    c: String,
    ours: String,
    reason: String,
    occurred: Cell<bool>,
}

/// The checked-in list, so far as it is about a release.
#[derive(Debug)]
pub(super) struct Differences(Vec<Difference>);

impl Differences {
    pub(super) fn of(release: u32) -> Self {
        let mut list = Vec::new();
        for line in LIST.lines().map(str::trim) {
            let read = read(&mut list, line);
            assert!(read.is_some(), "a line that means nothing: {line}");
        }
        for difference in &list {
            let whole = !difference.questions.is_empty()
                && !difference.key.is_empty()
                && difference.reason.matches('"').count() >= 2;
            assert!(whole, "{difference:?}");
        }
        list.retain(|difference| difference.is_of(release));
        Self(list)
    }

    /// What is wrong with an answer of ours.
    pub(super) fn judge(
        &self,
        facts: &BTreeMap<&'static str, String>,
        c: &Answer,
        ours: &Answer,
    ) -> Vec<String> {
        let both = is_success(c) && is_success(ours);
        let keys = c.keys().filter(|key| both || *key == RESULT);
        let wrong = keys.filter_map(|key| {
            let (c, ours) = (&c[key], ours.get(key).map_or("nothing", String::as_str));
            self.judge_word(facts, key, c, ours)
        });
        wrong.collect()
    }

    fn judge_word(
        &self,
        facts: &BTreeMap<&'static str, String>,
        key: &str,
        c: &str,
        ours: &str,
    ) -> Option<String> {
        let expected = self.0.iter().find(|one| one.is_about(facts, key, c));
        let Some(difference) = expected else {
            return (c != ours).then(|| format!("{key}: C has {c}, ours {ours}"));
        };
        difference.occurred.set(true);
        let fits = c != ours && matches(&filled_in(&difference.ours, facts), ours);
        (!fits).then(|| {
            let (name, listed) = (&difference.name, &difference.ours);
            format!("{key}: C has {c}, ours {ours}, which is not {name}: {listed}")
        })
    }

    /// Those that were nowhere.
    pub(super) fn missing(&self) -> Vec<String> {
        let missing = self.0.iter().filter(|one| !one.occurred.get());
        missing
            .map(|one| format!("{} is listed and occurs nowhere", one.name))
            .collect()
    }
}

impl Difference {
    fn is_of(&self, release: u32) -> bool {
        self.since.is_none_or(|since| since <= release)
            && self.until.is_none_or(|until| release <= until)
    }

    fn is_about(&self, facts: &BTreeMap<&'static str, String>, key: &str, c: &str) -> bool {
        let mut questions = self.questions.iter();
        self.key == key
            && matches(&filled_in(&self.c, facts), c)
            && questions.all(|(key, pattern)| {
                let fact = facts.get(key.as_str());
                matches(pattern, fact.unwrap_or_else(|| panic!("no fact: {key}")))
            })
    }
}

/// Reads a line; `None` if it means nothing.
fn read(list: &mut Vec<Difference>, line: &str) -> Option<()> {
    if line.is_empty() || line.starts_with('#') {
        return Some(());
    }
    let (first, rest) = line.split_once(' ').unwrap_or((line, ""));
    if first == "difference" {
        list.push(Difference {
            name: rest.to_owned(),
            ..Difference::default()
        });
        return Some(());
    }
    let difference = list.last_mut()?;
    match first {
        "since" => difference.since = Some(rest.parse().ok()?),
        "until" => difference.until = Some(rest.parse().ok()?),
        "where" => {
            for word in rest.split_ascii_whitespace() {
                let (key, pattern) = word.split_once('=')?;
                let question = (key.to_owned(), pattern.to_owned());
                difference.questions.push(question);
            }
        }
        "word" => {
            let (c, ours) = rest.split_once(" -> ")?;
            let (key, c) = c.split_once(' ')?;
            key.clone_into(&mut difference.key);
            c.clone_into(&mut difference.c);
            ours.clone_into(&mut difference.ours);
        }
        "because" => rest.clone_into(&mut difference.reason),
        _ => {
            // The reason goes on.
            if difference.reason.is_empty() {
                return None;
            }
            difference.reason.push(' ');
            difference.reason.push_str(line);
        }
    }
    Some(())
}

fn filled_in(pattern: &str, facts: &BTreeMap<&'static str, String>) -> String {
    facts.iter().fold(pattern.to_owned(), |text, (key, value)| {
        text.replace(&format!("{{{key}}}"), value)
    })
}

fn matches(pattern: &str, text: &str) -> bool {
    if let Some(other) = pattern.strip_prefix('!') {
        return !matches(other, text);
    }
    let mut alternatives = pattern.split('|');
    alternatives.any(|one| fits(one.as_bytes(), text.as_bytes()))
}

fn fits(pattern: &[u8], text: &[u8]) -> bool {
    match (pattern, text) {
        ([], []) => true,
        ([b'*', rest @ ..], _) => (0..=text.len()).any(|at| fits(rest, &text[at..])),
        ([b'?', pattern @ ..], [_, text @ ..]) => fits(pattern, text),
        ([b'\\', one, pattern @ ..] | [one, pattern @ ..], [other, text @ ..]) => {
            one == other && fits(pattern, text)
        }
        _ => false,
    }
}
