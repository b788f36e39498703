//! What a run may spend, and what models cost.

use alhena::agent::OnRateLimit;
use alhena::{Request, RunError};

use crate::limit;
use crate::prices::PriceFile;

/// Options of all that spend.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Spending {
    /// Call no model any more once so many tokens are used; `alhena help budget` explains it.
    #[arg(long, value_name = "N")]
    max_tokens: Option<u64>,
    /// Call no model any more once it has cost so many US dollars.
    #[arg(long, value_name = "USD", value_parser = limit::dollars)]
    max_cost: Option<f64>,
    /// Make no more than so many model calls.
    #[arg(long, value_name = "N")]
    max_calls: Option<u64>,
    /// When the API limits requests: fail, wait[=TIME] as long as it says but in a row no longer than 5m, or model=NAME to go
    /// on with another model [default: fail].
    #[arg(long, value_name = "WHAT", value_parser = limit::on_rate_limit)]
    on_rate_limit: Option<OnRateLimit>,
    #[command(flatten)]
    prices: PriceFile,
}

impl Spending {
    /// Puts them into a request.
    pub fn describe(self, request: &mut Request) -> Result<(), RunError> {
        request.max_tokens = self.max_tokens;
        request.max_cost = self.max_cost;
        request.max_calls = self.max_calls;
        request.on_rate_limit = self.on_rate_limit.unwrap_or_default();
        request.prices = self.prices.given()?;
        Ok(())
    }
}
