//! Which prices count: those of the request, the user's file, or the table that comes with Alhena.

use std::borrow::Cow;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use alhena_model::{Hint, Prices};

use crate::env::{self, Environment};
use crate::prepare::RunError;
use crate::request::ResolvedRequest;

/// Why there are no prices.
#[derive(Debug)]
pub struct NoPrices {
    file: PathBuf,
    error: String,
}

impl fmt::Display for NoPrices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file.display(), self.error)
    }
}

impl std::error::Error for NoPrices {}

impl Hint for NoPrices {
    fn hint(&self) -> Option<Cow<'_, str>> {
        Some(
            r#"It has to look like {"date": "2026-11-15", "currency": "USD", "per_tokens": 1000000, "models": {"NAME": {"input": 0.3, "cached": 0.03, "output": 2.5}}}."#
                .into(),
        )
    }
}

/// The prices in this file, otherwise in the one that `ALHENA_PRICES` names, otherwise those that come with Alhena.
pub fn find(file: Option<&Path>, environment: &Environment) -> Result<Prices, NoPrices> {
    let file = file.or_else(|| environment.filled(env::ALHENA_PRICES).map(Path::new));
    let read = match file {
        None => Prices::shipped().map_err(|error| error.to_string()),
        Some(file) => fs::read_to_string(file)
            .map_err(|error| error.to_string())
            .and_then(|text| Prices::read(&text).map_err(|error| error.to_string())),
    };
    read.map_err(|error| NoPrices { file: file.unwrap_or(Path::new("prices")).to_owned(), error })
}

impl From<NoPrices> for RunError {
    fn from(error: NoPrices) -> Self {
        RunError::misuse(error)
    }
}

/// The same request, with the prices that count for it.
pub(crate) fn settle(
    mut request: ResolvedRequest,
    environment: &Environment,
) -> Result<ResolvedRequest, RunError> {
    if request.prices.is_none() {
        request.prices = Some(find(None, environment)?);
    }
    Ok(request)
}
