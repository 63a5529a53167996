//! Comparison of API keys and tokens.

use subtle::ConstantTimeEq;

/// Compares two secrets in a time that depends on their lengths only, so that a client cannot guess a secret byte by
/// byte from response times.
pub fn secrets_equal(given: &[u8], expected: &[u8]) -> bool {
    given.ct_eq(expected).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_identical_secrets_are_equal() {
        assert!(secrets_equal(b"secret", b"secret"));
        assert!(secrets_equal(b"", b""));
        for wrong in ["", "s", "secre", "secrets", "secretsecret", "Secret"] {
            assert!(!secrets_equal(wrong.as_bytes(), b"secret"), "{wrong}");
        }
    }
}
