//! Suggests the name that was probably meant by a mistyped one.

use strsim::osa_distance;

/// Returns the candidate closest to `name` if one is close enough to suggest.
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let last = |path: &'a str| path.rsplit('.').next().unwrap_or(path);
    let name_last = name.rsplit('.').next().unwrap_or(name);
    candidates
        .into_iter()
        .map(|candidate| {
            // The right key in the wrong section is more likely than a similar whole path.
            let last_differs = usize::from(last(candidate) != name_last);
            let last_distance = osa_distance(name_last, last(candidate));
            (
                (
                    last_differs,
                    last_distance.min(osa_distance(name, candidate)),
                    osa_distance(name, candidate),
                ),
                candidate,
            )
        })
        .min()
        .filter(|((_, edits, _), _)| *edits <= 1 + name_last.chars().count() / 3)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn close_name_is_suggested() {
        let names = ["server.pool_size", "server.region", "sampling.top_k", "sampling.top_p"];
        assert_eq!(nearest("server.pol_size", names), Some("server.pool_size"));
        assert_eq!(nearest("pool_size", names), Some("server.pool_size"));
        assert_eq!(nearest("sampling.tok_p", names), Some("sampling.top_p"));
        assert_eq!(nearest("server.colour", names), None);
    }
}
