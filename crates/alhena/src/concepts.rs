//! How Alhena works, chapter by chapter.

#[doc = include_str!("concepts/truth.md")]
pub mod truth {}

#[doc = include_str!("concepts/stopping.md")]
pub mod stopping {}

#[doc = include_str!("concepts/home.md")]
pub mod home {}

#[doc = include_str!("concepts/trust.md")]
pub mod trust {}

#[doc = include_str!("concepts/permissions.md")]
pub mod permissions {}

#[doc = include_str!("concepts/answers.md")]
pub mod answers {}

#[doc = include_str!("concepts/spending.md")]
pub mod spending {}

#[doc = include_str!("concepts/warm.md")]
pub mod warm {}

#[cfg(feature = "batch")]
#[doc = include_str!("concepts/batch.md")]
pub mod batch {}

#[doc = include_str!("concepts/serve.md")]
pub mod serve {}

#[doc = include_str!("concepts/lossless.md")]
pub mod lossless {}

#[cfg(feature = "hosts")]
#[doc = include_str!("concepts/views.md")]
pub mod views {}

#[doc = include_str!("concepts/recordings.md")]
pub mod recordings {}

#[cfg(feature = "scripted")]
#[doc = include_str!("concepts/testing.md")]
pub mod testing {}

#[cfg(feature = "terminal")]
#[doc = include_str!("concepts/terminal.md")]
pub mod terminal {}
