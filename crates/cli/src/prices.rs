//! `--prices FILE`.

use std::path::PathBuf;

use alhena::agent::env::Environment;
use alhena::agent::prices::{self, NoPrices};
use alhena::model::Prices;

/// Another table of prices.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct PriceFile {
    /// A file with the prices of models, instead of ALHENA_PRICES and of the table that comes with Alhena.
    #[arg(long, value_name = "FILE")]
    prices: Option<PathBuf>,
}

impl PriceFile {
    /// The prices in the file, if one is given.
    pub fn given(&self) -> Result<Option<Prices>, NoPrices> {
        self.prices.is_some().then(|| self.read()).transpose()
    }

    /// The prices that count.
    pub fn read(&self) -> Result<Prices, NoPrices> {
        prices::find(self.prices.as_deref(), &Environment::of_process())
    }
}
