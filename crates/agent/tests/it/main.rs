#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing, missing_docs)]

mod home_life;
mod home_untouched;
mod real_home;
mod real_install;
