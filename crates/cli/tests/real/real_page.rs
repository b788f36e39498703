//! The page of `alhena serve` in a real browser, on the real CLI and the scripted API.

mod agents;
mod approvals;
mod figures;
mod hostile;
mod keyboard;
mod looks;
mod place;
mod reconnects;
mod runs;
mod windows;
