//! What was probably meant.

/// So close two names are when one is probably meant by the other.
const CLOSE: f64 = 0.7;

/// The name that is closest to what was written, if one is close.
pub fn nearest<'a>(written: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let close = names.into_iter().map(|name| (strsim::jaro_winkler(written, name), name));
    let (closeness, name) = close.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (closeness > CLOSE).then_some(name)
}
