//! Finds the name that a mistyped one was probably meant to be.

use strsim::osa_distance;

/// The candidate closest to `wrong`, when one is close enough to be worth naming.
pub fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let last = |path: &'a str| path.rsplit('.').next().unwrap_or(path);
    let wrong_last = wrong.rsplit('.').next().unwrap_or(wrong);
    candidates
        .into_iter()
        .map(|candidate| {
            // The right word in the wrong section is a likelier slip than a similar whole path.
            let same_word = usize::from(last(candidate) != wrong_last);
            let words = osa_distance(wrong_last, last(candidate));
            (
                (same_word, words.min(osa_distance(wrong, candidate)), osa_distance(wrong, candidate)),
                candidate,
            )
        })
        .min()
        .filter(|((_, edits, _), _)| *edits <= 1 + wrong_last.chars().count() / 3)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_found_or_none_is_claimed() {
        let names =
            ["env_config.server_size", "env_config.split", "policy_config.top_k", "policy_config.top_p"];
        assert_eq!(nearest("env_config.sever_size", names), Some("env_config.server_size"));
        assert_eq!(nearest("server_size", names), Some("env_config.server_size"));
        assert_eq!(nearest("policy_config.tok_p", names), Some("policy_config.top_p"));
        assert_eq!(nearest("env_config.colour", names), None);
    }
}
