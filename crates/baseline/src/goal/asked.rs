//! Which kind of answer a question wants, and the noun it wants it of.

use crate::words::{Token, is_stop, stem, tokens};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Money,
    /// How many of something there are.
    Count,
    /// A number with or without a unit.
    Measure,
    Year,
    Date,
    Time,
    Person,
    Name,
    /// What the page says somewhere.
    Said,
    YesNo,
    Anything,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arithmetic {
    Sum,
    Difference,
}

pub(super) struct Asked {
    pub(super) kind: Kind,
    pub(super) noun: Vec<String>,
    pub(super) arithmetic: Option<Arithmetic>,
}

const HELPERS: [&str; 24] = [
    "is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "can", "could", "will", "would",
    "should", "may", "might", "must", "be", "been", "of", "in", "that", "who",
];
const AUXILIARIES: [&str; 7] = ["is", "are", "was", "were", "do", "does", "did"];
const MONEY: [&str; 10] =
    ["price", "cost", "total", "salary", "fee", "fare", "rent", "discount", "subtotal", "charge"];
const MEASURES: [&str; 9] = ["long", "high", "tall", "far", "old", "heavy", "big", "large", "deep"];

pub(super) fn read(question: &str) -> Asked {
    let all = tokens(question);
    let lower: Vec<String> = all.iter().map(Token::lower).collect();
    let wh = lower
        .iter()
        .position(|word| ["which", "what", "who", "whose", "when", "where", "how"].contains(&word.as_str()));
    let noun = wh.map(|at| noun_behind(&all, &lower, at)).unwrap_or_default();
    let kind = match wh {
        Some(at) => kind_of(&lower, at, &noun),
        None => match lower.first().map(String::as_str) {
            Some("is" | "are" | "was" | "were" | "do" | "does" | "did" | "has" | "have" | "can")
                if question.contains('?') =>
            {
                Kind::YesNo
            }
            _ => Kind::Anything,
        },
    };
    Asked { kind, noun, arithmetic: arithmetic(&lower) }
}

/// The words behind the question word up to the verb; behind `what is the` up to `of`.
fn noun_behind(all: &[Token<'_>], lower: &[String], wh: usize) -> Vec<String> {
    let mut from = wh + 1;
    if lower[wh] == "how" {
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
    let until = |place: &usize| {
        let helper = HELPERS.contains(&lower[*place].as_str());
        !helper && (*place == from || !all[*place].gap.contains(','))
    };
    let places = (from..lower.len()).take_while(until).take(5);
    let meaning =
        places.filter(|place| !is_stop(&lower[*place]) && !super::extreme::is_superlative(&lower[*place]));
    meaning.map(|place| stem(&lower[place])).collect()
}

fn kind_of(lower: &[String], wh: usize, noun: &[String]) -> Kind {
    let has = |words: &[&str]| words.iter().any(|word| lower.iter().any(|known| known == word));
    let noun_is = |words: &[&str]| noun.iter().any(|known| words.iter().any(|word| stem(word) == *known));
    let next = lower.get(wh + 1).map_or("", String::as_str);
    match (lower[wh].as_str(), next) {
        ("who" | "whose", _) => Kind::Person,
        ("when", _) => Kind::Date,
        ("where", _) => Kind::Name,
        ("how", "many") if noun_is(&["dollar", "euro", "pound"]) => Kind::Money,
        ("how", "many") => Kind::Count,
        ("how", "much") if has(&["weigh", "weighs"]) => Kind::Measure,
        ("how", "much") => Kind::Money,
        ("how", measure) if MEASURES.contains(&measure) => Kind::Measure,
        ("how", _) => Kind::Anything,
        _ if noun_is(&["year"]) => Kind::Year,
        _ if noun_is(&["date", "day"]) => Kind::Date,
        _ if noun_is(&["time", "hour"]) => Kind::Time,
        _ if has(&["say", "says", "appears", "hold", "read", "reads"]) => Kind::Said,
        _ if noun_is(&MONEY) => Kind::Money,
        _ => Kind::Name,
    }
}

fn arithmetic(lower: &[String]) -> Option<Arithmetic> {
    let has = |word: &str| lower.iter().any(|known| known == word);
    let by_how = lower.windows(2).any(|two| two[0] == "by" && two[1] == "how");
    if by_how || has("differ") || has("difference") {
        return Some(Arithmetic::Difference);
    }
    let summed = has("together") || has("altogether") || has("combined") || has("sum");
    summed.then_some(Arithmetic::Sum)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_say_what_they_want() {
        for (question, kind, noun) in [
            ("How much does it cost?", Kind::Money, ""),
            ("What is the price of the lamp?", Kind::Money, "price"),
            ("Which brand makes it?", Kind::Name, "brand make"),
            ("What battery life do the specifications give?", Kind::Name, "battery life"),
            ("In which year was it founded?", Kind::Year, "year"),
            ("On which date does it start?", Kind::Date, "date"),
            ("How many years of experience are needed?", Kind::Count, "years"),
            ("How long is it?", Kind::Measure, "long"),
            ("Who is the mayor of Lyon?", Kind::Person, "mayor"),
            ("What does the last line say?", Kind::Said, "line"),
            ("At what time does it open?", Kind::Time, "time"),
            ("Is it waterproof?", Kind::YesNo, ""),
        ] {
            let asked = read(question);
            assert_eq!(asked.kind, kind, "{question}");
            let wanted: Vec<String> = noun.split_whitespace().map(stem).collect();
            assert!(wanted.iter().all(|word| asked.noun.contains(word)), "{question} {:?}", asked.noun);
        }
    }

    #[test]
    fn sums_and_differences_are_noticed() {
        assert_eq!(read("By how many metres is it higher?").arithmetic, Some(Arithmetic::Difference));
        assert_eq!(read("How many do they have together?").arithmetic, Some(Arithmetic::Sum));
        assert_eq!(read("How many are there?").arithmetic, None);
    }
}
