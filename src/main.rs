//! The `alhena` binary.
fn main() {}
