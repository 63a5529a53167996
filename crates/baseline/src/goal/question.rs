//! Parses a question: the kind of answer, what it asks for, and whether it asks for a sum or difference.

use crate::nlp::{Token, is_stop_word, stem, tokenize};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AnswerKind {
    Money,
    /// The number of things.
    Count,
    /// A number, with or without a unit.
    Measure,
    Year,
    Date,
    Time,
    Person,
    Name,
    /// A text that the page shows.
    PageText,
    YesNo,
    Anything,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Sum,
    Difference,
}

pub(super) struct Question {
    pub(super) kind: AnswerKind,
    pub(super) noun: Vec<String>,
    pub(super) arithmetic: Option<Arithmetic>,
}

/// Words that end the noun of a question.
const NOUN_ENDS: [&str; 24] = [
    "is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "can", "could", "will", "would",
    "should", "may", "might", "must", "be", "been", "of", "in", "that", "who",
];
const AUXILIARIES: [&str; 7] = ["is", "are", "was", "were", "do", "does", "did"];
const MONEY: [&str; 10] =
    ["price", "cost", "total", "salary", "fee", "fare", "rent", "discount", "subtotal", "charge"];
const MEASURES: [&str; 9] = ["long", "high", "tall", "far", "old", "heavy", "big", "large", "deep"];

pub(super) fn parse(question: &str) -> Question {
    let all = tokenize(question);
    let lower: Vec<String> = all.iter().map(Token::lower).collect();
    let question_word = lower
        .iter()
        .position(|word| ["which", "what", "who", "whose", "when", "where", "how"].contains(&word.as_str()));
    let noun = question_word.map(|index| noun_after(&all, &lower, index)).unwrap_or_default();
    let kind = match question_word {
        Some(index) => answer_kind(&lower, index, &noun),
        None => match lower.first().map(String::as_str) {
            Some("is" | "are" | "was" | "were" | "do" | "does" | "did" | "has" | "have" | "can")
                if question.contains('?') =>
            {
                AnswerKind::YesNo
            }
            _ => AnswerKind::Anything,
        },
    };
    Question { kind, noun, arithmetic: arithmetic(&lower) }
}

/// Returns the stems after the question word up to the verb, or after `what is the` up to `of`.
fn noun_after(all: &[Token<'_>], lower: &[String], question_word: usize) -> Vec<String> {
    let mut from = question_word + 1;
    if lower[question_word] == "how" {
        match lower.get(from).map(String::as_str) {
            Some("many" | "much") => from += 1,
            Some(_) => return lower.get(from).map(|word| stem(word)).into_iter().collect(),
            None => return Vec::new(),
        }
    }
    if lower.get(from).is_some_and(|word| AUXILIARIES.contains(&word.as_str())) {
        from += 1;
        if lower.get(from).is_some_and(|word| word == "the") {
            from += 1;
        }
    }
    let is_in_noun = |index: &usize| {
        let is_end = NOUN_ENDS.contains(&lower[*index].as_str());
        !is_end && (*index == from || !all[*index].gap.contains(','))
    };
    let indices = (from..lower.len()).take_while(is_in_noun).take(5);
    let is_content =
        |index: &usize| !is_stop_word(&lower[*index]) && !super::superlative::is_superlative(&lower[*index]);
    indices.filter(is_content).map(|index| stem(&lower[index])).collect()
}

fn answer_kind(lower: &[String], question_word: usize, noun: &[String]) -> AnswerKind {
    let has = |words: &[&str]| words.iter().any(|word| lower.iter().any(|known| known == word));
    let noun_is = |words: &[&str]| noun.iter().any(|known| words.iter().any(|word| stem(word) == *known));
    let next = lower.get(question_word + 1).map_or("", String::as_str);
    match (lower[question_word].as_str(), next) {
        ("who" | "whose", _) => AnswerKind::Person,
        ("when", _) => AnswerKind::Date,
        ("where", _) => AnswerKind::Name,
        ("how", "many") if noun_is(&["dollar", "euro", "pound"]) => AnswerKind::Money,
        ("how", "many") => AnswerKind::Count,
        ("how", "much") if has(&["weigh", "weighs"]) => AnswerKind::Measure,
        ("how", "much") => AnswerKind::Money,
        ("how", measure) if MEASURES.contains(&measure) => AnswerKind::Measure,
        ("how", _) => AnswerKind::Anything,
        _ if noun_is(&["year"]) => AnswerKind::Year,
        _ if noun_is(&["date", "day"]) => AnswerKind::Date,
        _ if noun_is(&["time", "hour"]) => AnswerKind::Time,
        _ if has(&["say", "says", "appears", "hold", "read", "reads"]) => AnswerKind::PageText,
        _ if noun_is(&MONEY) => AnswerKind::Money,
        _ => AnswerKind::Name,
    }
}

fn arithmetic(lower: &[String]) -> Option<Arithmetic> {
    let has = |word: &str| lower.iter().any(|known| known == word);
    let asks_by_how = lower.windows(2).any(|two| two[0] == "by" && two[1] == "how");
    if asks_by_how || has("differ") || has("difference") {
        return Some(Arithmetic::Difference);
    }
    let is_sum = has("together") || has("altogether") || has("combined") || has("sum");
    is_sum.then_some(Arithmetic::Sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answer_kind_and_noun_are_parsed() {
        for (question, kind, noun) in [
            ("How much does it cost?", AnswerKind::Money, ""),
            ("What is the price of the lamp?", AnswerKind::Money, "price"),
            ("Which brand makes it?", AnswerKind::Name, "brand make"),
            ("What battery life do the specifications give?", AnswerKind::Name, "battery life"),
            ("In which year was it founded?", AnswerKind::Year, "year"),
            ("On which date does it start?", AnswerKind::Date, "date"),
            ("How many years of experience are needed?", AnswerKind::Count, "years"),
            ("How long is it?", AnswerKind::Measure, "long"),
            ("Who is the mayor of Lyon?", AnswerKind::Person, "mayor"),
            ("What does the last line say?", AnswerKind::PageText, "line"),
            ("At what time does it open?", AnswerKind::Time, "time"),
            ("Is it waterproof?", AnswerKind::YesNo, ""),
        ] {
            let parsed = parse(question);
            assert_eq!(parsed.kind, kind, "{question}");
            let expected: Vec<String> = noun.split_whitespace().map(stem).collect();
            assert!(expected.iter().all(|word| parsed.noun.contains(word)), "{question} {:?}", parsed.noun);
        }
    }

    #[test]
    fn sums_and_differences_are_recognised() {
        assert_eq!(parse("By how many metres is it higher?").arithmetic, Some(Arithmetic::Difference));
        assert_eq!(parse("How many do they have together?").arithmetic, Some(Arithmetic::Sum));
        assert_eq!(parse("How many are there?").arithmetic, None);
    }
}
