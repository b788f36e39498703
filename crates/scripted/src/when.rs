//! Which requests a turn is for.

use serde::Deserialize;

use crate::RecordedRequest;

/// A pattern for requests; all that is given must hold.
///
/// ```
/// use alhena_scripted::{Turn, When};
///
/// let turn = Turn::say("The file is written.").when(When::new().response_of("write_file"));
/// # let _ = turn;
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct When {
    /// The model's name contains this; `a|b` for one of several.
    pub model: Option<String>,
    /// The last text of the user contains this.
    pub prompt: Option<String>,
    /// The text of any content contains this.
    pub text: Option<String>,
    /// The request brings the result of this tool (in its last content).
    pub response_of: Option<String>,
    /// The request offers this tool.
    pub offers: Option<String>,
    /// The request is the n-th of its run, from 1; requests of the same kind are counted.
    pub request: Option<usize>,
    /// The body, as it was sent, contains this.
    pub body: Option<String>,
}

impl When {
    /// Matches every request.
    pub fn new() -> Self {
        When::default()
    }

    /// Only when the model's name contains this; `a|b` for one of several.
    pub fn model(mut self, model: impl Into<String>) -> Self {
        self.model = Some(model.into());
        self
    }

    /// Only when the last text of the user contains this.
    pub fn prompt(mut self, text: impl Into<String>) -> Self {
        self.prompt = Some(text.into());
        self
    }

    /// Only when the text of any content contains this.
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = Some(text.into());
        self
    }

    /// Only when the request brings the result of this tool.
    pub fn response_of(mut self, tool: impl Into<String>) -> Self {
        self.response_of = Some(tool.into());
        self
    }

    /// Only when the request offers this tool.
    pub fn offers(mut self, tool: impl Into<String>) -> Self {
        self.offers = Some(tool.into());
        self
    }

    /// Only for the n-th request of the run, from 1.
    pub fn request(mut self, number: usize) -> Self {
        self.request = Some(number);
        self
    }

    /// Only when the body, as it was sent, contains this.
    pub fn body(mut self, text: impl Into<String>) -> Self {
        self.body = Some(text.into());
        self
    }

    /// Whether this request is meant.
    pub fn matches(&self, request: &RecordedRequest) -> bool {
        let holds = |wanted: &Option<String>, test: &dyn Fn(&str) -> bool| wanted.as_deref().is_none_or(test);
        holds(&self.model, &|names| names.split('|').any(|name| request.model.contains(name)))
            && holds(&self.prompt, &|text| request.prompt().is_some_and(|prompt| prompt.contains(text)))
            && holds(&self.text, &|text| request.texts().any(|each| each.contains(text)))
            && holds(&self.response_of, &|tool| request.responses().any(|(name, _)| name == tool))
            && holds(&self.offers, &|tool| request.tools().any(|name| name == tool))
            && holds(&self.body, &|text| request.raw_body.contains(text))
            && self.request.is_none_or(|number| number == request.number)
    }
}
