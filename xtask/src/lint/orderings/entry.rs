//! One `ORDERING:` comment, taken apart.

use crate::source::ORDERINGS;

/// `Release (R1): why; pairs with A1 in Consumer::try_pop.`
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) ordering: String,
    pub(super) labels: Vec<String>,
    pub(super) partners: Vec<String>,
    /// Last parts of the paths that say where the partners are.
    pub(super) functions: Vec<String>,
    reason: String,
}

impl Entry {
    /// The entries of a comment; one reaches to the next, or to another keyword in capitals.
    pub(super) fn all_in(comment: &str) -> Vec<Self> {
        comment.split("ORDERING:").skip(1).filter_map(Self::parse).collect()
    }

    fn parse(text: &str) -> Option<Self> {
        let text = text.split("SAFETY:").next()?.trim();
        let (head, reason) = text.split_once(':').unwrap_or((text, ""));
        let ordering = words(head).next().filter(|word| ORDERINGS.contains(word))?;
        let labels =
            head.split_once('(').and_then(|(_, rest)| rest.split_once(')')).map(|(labels, _)| labels);
        let pairing = reason.split_once("pairs with").map_or("", |(_, rest)| sentence(rest));
        let is_path = |word: &&str| word.contains("::");
        let last_part = |path: &str| path.rsplit("::").next().unwrap_or_default().to_owned();
        Some(Self {
            ordering: ordering.into(),
            labels: labels.map(labels_in).unwrap_or_default(),
            partners: labels_in(pairing),
            functions: words(pairing).filter(is_path).map(last_part).collect(),
            reason: reason.trim().into(),
        })
    }

    /// What is missing in the entry itself.
    pub(super) fn objections(&self) -> Vec<String> {
        let ordering = &self.ordering;
        let mut objections = Vec::new();
        if self.reason.split_whitespace().count() < 2 {
            objections.push(format!("the ORDERING comment does not say why {ordering}, after a colon"));
        }
        if ordering != "Relaxed" {
            if self.labels.is_empty() {
                objections.push(format!("{ordering} has no label: `// ORDERING: {ordering} (R1): …`"));
            }
            if self.partners.is_empty() {
                objections.push(format!(
                    "{ordering} does not say what it pairs with: `…; pairs with A1 in Type::function.`"
                ));
            } else if self.functions.is_empty() {
                objections.push(format!(
                    "{ordering} does not say where its partner is: `pairs with {} in Type::function`",
                    self.partners[0]
                ));
            }
        } else if !self.labels.is_empty() {
            objections.push("Relaxed makes no edge, so it has no label".into());
        }
        for label in &self.labels {
            let fits = match label.as_bytes()[0] {
                b'R' => ["Release", "AcqRel", "SeqCst"].contains(&ordering.as_str()),
                b'A' => ["Acquire", "AcqRel", "SeqCst"].contains(&ordering.as_str()),
                _ => true,
            };
            if !fits {
                objections.push(format!("{label} is no label for {ordering}: R releases, A acquires"));
            }
        }
        objections
    }
}

/// Capitals and a number, as `R1`.
pub(super) fn labels_in(text: &str) -> Vec<String> {
    let is_label = |word: &&str| {
        let letters = word.trim_end_matches(|character: char| character.is_ascii_digit());
        let all_capitals = letters.bytes().all(|byte| byte.is_ascii_uppercase());
        (1..=2).contains(&letters.len()) && letters.len() < word.len() && all_capitals
    };
    words(text).filter(is_label).map(str::to_owned).collect()
}

/// Up to a semicolon, or a full stop that ends a sentence.
fn sentence(text: &str) -> &str {
    let end = [text.find(';'), text.find(". ")].into_iter().flatten().min();
    &text[..end.unwrap_or(text.len())]
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|character: char| !(character.is_alphanumeric() || matches!(character, '_' | ':')))
        .map(|word| word.trim_matches(':'))
        .filter(|word| !word.is_empty())
}
