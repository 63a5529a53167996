//! Full-text search over the articles.

use super::{
    article::{Article, plain},
    articles,
};

pub(crate) struct Hit {
    pub(crate) article: &'static Article,
    pub(crate) snippet: String,
}

/// Returns the articles that contain every word, best match first. Words in the title count most.
pub(crate) fn search(query: &str) -> Vec<Hit> {
    let words: Vec<String> =
        query.split_whitespace().map(normalize).filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Vec::new();
    }
    let mut hits: Vec<(usize, &'static Article)> =
        articles::all().iter().filter_map(|article| Some((score(article, &words)?, article))).collect();
    hits.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    hits.into_iter().map(|(_, article)| Hit { article, snippet: snippet(article, &words) }).collect()
}

fn normalize(word: &str) -> String {
    word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase()
}

fn score(article: &Article, words: &[String]) -> Option<usize> {
    let title = article.title.to_lowercase();
    let (summary, text) = (plain(&article.summary).to_lowercase(), article.text().to_lowercase());
    let exact_title = usize::from(title == words.join(" ")) * 100;
    words.iter().try_fold(exact_title, |total, word| {
        let occurrences = text.matches(word.as_str()).count();
        if occurrences == 0 {
            return None;
        }
        let in_title = usize::from(title.contains(word.as_str())) * 20;
        let in_summary = usize::from(summary.contains(word.as_str())) * 5;
        Some(total + in_title + in_summary + occurrences.min(4))
    })
}

/// Returns the first sentence that contains one of the words, or the beginning of the article.
fn snippet(article: &Article, words: &[String]) -> String {
    let text = article.text();
    let sentence = text
        .split_inclusive(". ")
        .find(|sentence| words.iter().any(|word| sentence.to_lowercase().contains(word.as_str())))
        .unwrap_or(&text);
    let short: String = sentence.trim().chars().take(220).collect();
    if short.len() < sentence.trim().len() { short + "…" } else { short }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn title_match_comes_first() {
        for query in ["arnholm", "Mount Hesper", "TIDE CLOCK", "list of rivers"] {
            let hits = search(query);
            assert_eq!(hits[0].article.title.to_lowercase(), query.to_lowercase());
            assert!(hits.len() > 1 || query.starts_with("list"), "{query}");
        }
    }

    #[test]
    fn all_words_are_required() {
        assert!(search("Arnholm zeppelin").is_empty() && search("  ").is_empty());
        let hits = search("comet astronomer");
        assert_eq!(hits[0].article.title, "Ines Morrow");
        assert!(hits[0].snippet.contains("astronomer"));
    }
}
