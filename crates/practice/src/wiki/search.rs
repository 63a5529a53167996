//! Finding articles by words.

use super::{
    article::{Article, plain},
    articles,
};

pub(crate) struct Hit {
    pub(crate) article: &'static Article,
    pub(crate) snippet: String,
}

/// Articles that hold every word, best first: a word in the title counts most.
pub(crate) fn search(query: &str) -> Vec<Hit> {
    let words: Vec<String> = query.split_whitespace().map(clean).filter(|word| !word.is_empty()).collect();
    if words.is_empty() {
        return Vec::new();
    }
    let mut hits: Vec<(usize, &'static Article)> =
        articles::all().iter().filter_map(|article| Some((score(article, &words)?, article))).collect();
    hits.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
    hits.into_iter().map(|(_, article)| Hit { article, snippet: snippet(article, &words) }).collect()
}

fn clean(word: &str) -> String {
    word.trim_matches(|sign: char| !sign.is_alphanumeric()).to_lowercase()
}

fn score(article: &Article, words: &[String]) -> Option<usize> {
    let title = article.title.to_lowercase();
    let (summary, text) = (plain(&article.summary).to_lowercase(), article.words().to_lowercase());
    let whole = usize::from(title == words.join(" ")) * 100;
    words.iter().try_fold(whole, |total, word| {
        let often = text.matches(word.as_str()).count();
        if often == 0 {
            return None;
        }
        let in_title = usize::from(title.contains(word.as_str())) * 20;
        let in_summary = usize::from(summary.contains(word.as_str())) * 5;
        Some(total + in_title + in_summary + often.min(4))
    })
}

/// The sentence around the first word that was found, or the beginning.
fn snippet(article: &Article, words: &[String]) -> String {
    let text = article.words();
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
    fn the_title_comes_first() {
        for query in ["arnholm", "Mount Hesper", "TIDE CLOCK", "list of rivers"] {
            let hits = search(query);
            assert_eq!(hits[0].article.title.to_lowercase(), query.to_lowercase());
            assert!(hits.len() > 1 || query.starts_with("list"), "{query}");
        }
    }

    #[test]
    fn all_words_must_be_there() {
        assert!(search("Arnholm zeppelin").is_empty() && search("  ").is_empty());
        let hits = search("comet astronomer");
        assert_eq!(hits[0].article.title, "Ines Morrow");
        assert!(hits[0].snippet.contains("astronomer"));
    }
}
