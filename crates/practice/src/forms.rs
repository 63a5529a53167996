//! Names and values as a browser sends them, from an address or from a form.

/// In the order they came; a name may come several times.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Fields(pub(crate) Vec<(String, String)>);

impl Fields {
    /// The value without blanks around it; empty when it was not sent.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.0.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.trim())
    }

    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| value.trim())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    pub(crate) fn number(&self, name: &str) -> Option<u32> {
        self.get(name).parse().ok()
    }
}

/// The query of an address, encoded; empty values are left out.
pub(crate) fn query<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> String {
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

/// A short number that is the same for the same words: letters that cannot be mistaken for digits, and digits.
pub(crate) fn reference_number(words: &str) -> String {
    const SIGNS: &[u8; 32] = b"ABCDEFGHJKLMNPQRSTUVWXYZ23456789";
    let mut number = words.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    number ^= number >> 29;
    (0..7).map(|place| char::from(SIGNS[(number >> (5 * place)) as usize % 32])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn emails_are_told_from_other_words() {
        for good in ["a@b.cd", "mira.h@post.example.org"] {
            assert!(is_email(good), "{good}");
        }
        for bad in ["", "@", "a@b", "a b@c.de", "@b.cd", "a@.cd", "a@b.cd.", "a@b@c.de"] {
            assert!(!is_email(bad), "{bad}");
        }
    }

    #[test]
    fn reference_numbers_follow_the_words() {
        assert_eq!(reference_number("lamp.1"), reference_number("lamp.1"));
        assert_ne!(reference_number("lamp.1"), reference_number("lamp.2"));
        assert_eq!(reference_number("").len(), 7);
    }

    #[test]
    fn a_query_survives_its_signs() {
        let query = query([("q", "salt & pepper=?".to_owned()), ("empty", String::new())]);
        assert_eq!(query, "q=salt+%26+pepper%3D%3F");
    }
}
