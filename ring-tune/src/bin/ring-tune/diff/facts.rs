//! What reports of all kinds come down to.

use serde::Serialize;

/// Something that two reports may both tell about.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Item {
    /// What it is, by which the two are matched.
    pub(super) what: String,
    pub(super) fact: Fact,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub(super) enum Fact {
    Figure(Figure),
    Verdict {
        verdict: String,
        actual: String,
    },
    /// What is neither good nor bad.
    Text {
        text: String,
    },
}

impl Fact {
    pub(super) fn verdict(&self) -> Option<&str> {
        match self {
            Self::Verdict { verdict, .. } => Some(verdict),
            Self::Figure(_) | Self::Text { .. } => None,
        }
    }

    /// Whether it is a figure of which less is better, and not one that is only shown.
    pub(super) fn is_judged(&self) -> bool {
        matches!(self, Self::Figure(Figure { noise: Some(_), .. }))
    }

    /// Without what goes beyond the point.
    pub(super) fn short(&self) -> String {
        match self {
            Self::Figure(figure) => figure.value.to_string(),
            Self::Verdict { verdict: text, .. } | Self::Text { text } => text.clone(),
        }
    }
}

/// A figure of which less is better.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub(super) struct Figure {
    pub(super) value: f64,
    /// What is between is noise, as far as this report alone can tell.
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) unit: &'static str,
    /// The share of the value that is noise between two runs, whatever each of them says; none if this figure is not to
    /// be judged.
    #[serde(skip)]
    pub(super) noise: Option<f64>,
}

impl Figure {
    /// A figure that is shown, and not judged.
    pub(super) fn shown(value: f64, unit: &'static str) -> Self {
        Self { value, low: value, high: value, unit, noise: None }
    }

    /// A figure with the spread that its report tells.
    pub(super) fn spread(value: f64, low: f64, high: f64, unit: &'static str, noise: f64) -> Self {
        Self { value, low: low.min(value), high: high.max(value), unit, noise: Some(noise) }
    }

    /// A figure whose report tells no spread.
    pub(super) fn bare(value: f64, unit: &'static str, noise: f64) -> Self {
        Self { noise: Some(noise), ..Self::shown(value, unit) }
    }

    /// The same, judged only where this is so.
    pub(super) fn judged_if(self, is_so: bool) -> Self {
        Self { noise: self.noise.filter(|_| is_so), ..self }
    }

    pub(super) fn named(self, what: impl Into<String>) -> Item {
        Item { what: what.into(), fact: Fact::Figure(self) }
    }

    /// Whether the other figure lies outside of this one's noise.
    pub(super) fn excludes(&self, other: f64) -> bool {
        other < self.low || other > self.high
    }
}
