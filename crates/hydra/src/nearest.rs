//! Finds the name that a mistyped one was probably meant to be.

/// The candidate closest to `wrong`, when one is close enough to be worth naming.
pub(crate) fn nearest<'a>(wrong: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let last = |path: &'a str| path.rsplit('.').next().unwrap_or(path);
    let wrong_last = wrong.rsplit('.').next().unwrap_or(wrong);
    candidates
        .into_iter()
        .map(|candidate| {
            // The right word in the wrong section is a likelier slip than a similar whole path.
            let same_word = usize::from(last(candidate) != wrong_last);
            let words = distance(wrong_last, last(candidate));
            ((same_word, words.min(distance(wrong, candidate)), distance(wrong, candidate)), candidate)
        })
        .min()
        .filter(|((_, edits, _), _)| *edits <= 1 + wrong_last.chars().count() / 3)
        .map(|(_, candidate)| candidate)
}

/// Edits (insert, delete, replace, swap of neighbours) between two words.
fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut rows = vec![vec![0; right.len() + 1]; left.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=left.len() {
        for j in 1..=right.len() {
            let replace = rows[i - 1][j - 1] + usize::from(left[i - 1] != right[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[left.len()][right.len()]
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
