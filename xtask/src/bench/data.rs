//! Generated input for the measurements, kept between runs: the same name always means the same bytes.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

use alhena_testbed::cache;
use alhena_testbed::streams::{write_deltas, write_mixed};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    Deltas,
    /// Deltas, small tool calls, and a tool output of 1 MiB now and then.
    Mixed,
}

impl Shape {
    pub fn name(self) -> &'static str {
        match self {
            Self::Deltas => "deltas",
            Self::Mixed => "mixed",
        }
    }
}

/// Raise this when the generator changes, or old files would be measured.
const GENERATION: u32 = 2;
const SEED: u64 = 61;

/// The file with a stream of about this many megabytes, generated on first use.
pub fn stream(shape: Shape, megabytes: u64) -> Result<PathBuf, String> {
    let name = format!("bench/stream-{}-{megabytes}-g{GENERATION}", shape.name());
    let directory = cache::entry(&name, |directory| {
        eprintln!("generating {name} ...");
        let mut file = BufWriter::new(File::create(directory.join("stdout"))?);
        match shape {
            Shape::Deltas => write_deltas(&mut file, megabytes * 1_000_000, SEED)?,
            Shape::Mixed => write_mixed(&mut file, megabytes * 1_000_000, SEED)?,
        }
        file.flush()
    });
    directory.map(|directory| directory.join("stdout")).map_err(|error| format!("{name}: {error}"))
}
