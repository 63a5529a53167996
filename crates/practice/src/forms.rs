//! Form fields as a browser sends them, in a query string or a request body, and helpers to validate them.

/// The fields in the order in which they were sent; a name can occur several times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields(pub(crate) Vec<(String, String)>);

impl Fields {
    /// Returns the trimmed value, or an empty text if the field was not sent.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value.trim())
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(field, _)| field == name).map(|(_, value)| value.trim())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(field, _)| field == name)
    }

    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        self.get(name).parse().ok()
    }
}

/// Encodes a query string. Empty values are left out.
pub(crate) fn query_string<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    for (name, value) in pairs {
        if !value.is_empty() {
            query.append_pair(name, &value);
        }
    }
    query.finish()
}

pub(crate) fn is_email(text: &str) -> bool {
    let Some((name, host)) = text.split_once('@') else { return false };
    let inner_dot = host.trim_matches('.').len() == host.len() && host.contains('.');
    !name.is_empty() && inner_dot && !text.contains(char::is_whitespace) && !host.contains('@')
}

/// Derives a short reference number from a text. It uses no characters that look alike.
pub(crate) fn reference_number(text: &str) -> String {
    const ALPHABET: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    let mut hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash ^= hash >> 29;
    (0..7).map(|index| char::from(ALPHABET[(hash >> (5 * index)) as usize % 32])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn email_addresses_are_recognised() {
        for good in ["a@b.cd", "mira.h@post.example.org"] {
            assert!(is_email(good), "{good}");
        }
        for bad in ["", "@", "a@b", "a b@c.de", "@b.cd", "a@.cd", "a@b.cd.", "a@b@c.de"] {
            assert!(!is_email(bad), "{bad}");
        }
    }

    #[test]
    fn reference_number_depends_on_the_text() {
        assert_eq!(reference_number("lamp.1"), reference_number("lamp.1"));
        assert_ne!(reference_number("lamp.1"), reference_number("lamp.2"));
        assert_eq!(reference_number("").len(), 7);
    }

    #[test]
    fn query_string_is_encoded() {
        let query = query_string([("q", "salt & pepper=?".to_owned()), ("empty", String::new())]);
        assert_eq!(query, "q=salt+%26+pepper%3D%3F");
    }
}
