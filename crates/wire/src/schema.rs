//! What the fields of a wire type are, for those who write the type in another language.

/// A field of a wire type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// The CLI's name for it.
    pub name: &'static str,
    /// Its type in Rust, as the source spells it.
    pub rust: &'static str,
    /// What is said of it, a line each.
    pub doc: &'static str,
}
