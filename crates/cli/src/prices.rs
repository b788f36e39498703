//! `--prices FILE`.

use alhena_agent::env::Environment;
use alhena_agent::prices::{self, NoPrices};
use alhena_model::Prices;

use crate::commands::options::{Given, OfPrices};

impl Given<OfPrices> {
    /// The prices in the file, if one is given.
    pub fn given(&self) -> Result<Option<Prices>, NoPrices> {
        self.options.prices.is_some().then(|| self.read()).transpose()
    }

    /// The prices that count.
    pub fn read(&self) -> Result<Prices, NoPrices> {
        prices::find(self.options.prices.as_deref(), &Environment::of_process())
    }
}
