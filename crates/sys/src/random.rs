//! Random names that nobody can guess.

use std::io;

/// Returns `N` random bytes of the operating system as hexadecimal digits.
pub fn hex<const N: usize>() -> io::Result<String> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::hex;

    #[test]
    fn names_have_two_digits_a_byte_and_differ() {
        let (one, other) = (hex::<32>().unwrap(), hex::<32>().unwrap());
        assert_ne!(one, other);
        assert!(one.len() == 64 && one.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one}");
    }
}
