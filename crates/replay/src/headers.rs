//! HTTP headers in the order in which they were sent. Values are bytes, because servers send values that are not UTF-8.

/// A list of headers. Names are compared without regard to case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers(Vec<(String, Vec<u8>)>);

impl Headers {
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the first value with this name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_slice())
    }

    /// Returns the first value with this name if it is UTF-8.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(|value| std::str::from_utf8(value).ok()).map(str::trim)
    }

    pub fn contains(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    pub fn push(&mut self, name: impl Into<String>, value: impl Into<Vec<u8>>) {
        self.0.push((name.into(), value.into()));
    }

    /// Replaces all values with this name by one, at the position of the first.
    pub fn set(&mut self, name: &str, value: impl Into<Vec<u8>>) {
        match self.0.iter().position(|(found, _)| found.eq_ignore_ascii_case(name)) {
            Some(position) => {
                self.0[position].1 = value.into();
                let mut index = 0;
                self.0.retain(|(found, _)| {
                    index += 1;
                    index - 1 <= position || !found.eq_ignore_ascii_case(name)
                });
            }
            None => self.push(name, value),
        }
    }

    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(found, _)| !found.eq_ignore_ascii_case(name));
    }

    /// Keeps the values under another name, such as `X-Archive-Orig-Content-Encoding`.
    pub fn rename(&mut self, name: &str, to: &str) {
        for (found, _) in &mut self.0 {
            if found.eq_ignore_ascii_case(name) {
                to.clone_into(found);
            }
        }
    }

    pub fn retain(&mut self, mut keep: impl FnMut(&str, &[u8]) -> bool) {
        self.0.retain(|(name, value)| keep(name, value));
    }

    pub fn iter(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_slice()))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = (&str, &mut Vec<u8>)> {
        self.0.iter_mut().map(|(name, value)| (name.as_str(), value))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the media type of `Content-Type` in lower case, without parameters.
    pub fn media_type(&self) -> Option<String> {
        let value = String::from_utf8_lossy(self.get("content-type")?).to_ascii_lowercase();
        let media_type = value.split([';', ' ', ',']).next().unwrap_or_default().trim();
        (!media_type.is_empty()).then(|| media_type.to_owned())
    }
}

impl<N: Into<String>, V: Into<Vec<u8>>> FromIterator<(N, V)> for Headers {
    fn from_iter<T: IntoIterator<Item = (N, V)>>(headers: T) -> Self {
        Self(headers.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_compared_without_case_and_set_keeps_one_value() {
        let mut headers: Headers = [("A", "1"), ("b", "2"), ("a", "3")].into_iter().collect();
        assert_eq!(headers.get("a"), Some(b"1".as_slice()));
        headers.set("a", "4");
        let all: Vec<_> = headers.iter().collect();
        assert_eq!(all, [("A", b"4".as_slice()), ("b", b"2".as_slice())]);
    }

    #[test]
    fn media_type_has_no_parameters() {
        let headers: Headers = [("Content-Type", "Text/HTML; charset=utf-8")].into_iter().collect();
        assert_eq!(headers.media_type().as_deref(), Some("text/html"));
    }
}
