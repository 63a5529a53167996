//! Tasks on the practice sites, in the format of a task file. Every reference answer is computed from the data that
//! the pages are made of, so that page and answer cannot drift apart. Nothing that plays may look in here.

mod course;
mod jobs;
mod shop;
mod vault;
mod wiki;

use proto::trajectory::RubricItem;
use serde::Serialize;

/// One line of a task file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PracticeTask {
    pub task_id: String,
    pub task_name: String,
    pub website: String,
    pub domain: String,
    pub subdomain: String,
    pub difficulty: i64,
    pub evaluator_reference: Vec<RubricItem>,
    pub definite_answer: Option<String>,
}

/// All tasks, easiest first, for sites that are served at `base_url` (as [`crate::Sites::url`] has it).
/// On a loopback address each site goes by its own host name, elsewhere by its path.
pub fn tasks(base_url: &str) -> Vec<PracticeTask> {
    let base = Base::read(base_url);
    let mut all: Vec<_> = questions().into_iter().flatten().map(|question| question.task(&base)).collect();
    all.sort_by_key(|task| task.difficulty);
    all
}

/// The same as the text of a task file.
pub fn task_file(base_url: &str) -> Result<String, serde_json::Error> {
    tasks(base_url).iter().map(|task| Ok(serde_json::to_string(task)? + "\n")).collect()
}

/// `None` where the data does not give one clear answer; a test sees to it that there is none.
fn questions() -> Vec<Option<Question>> {
    [shop::questions(), wiki::questions(), jobs::questions(), course::questions(), vault::questions()]
        .concat()
}

#[derive(Clone, Debug)]
struct Question {
    site: &'static str,
    domain: &'static str,
    topic: &'static str,
    id: &'static str,
    difficulty: i64,
    words: String,
    /// Path of the page to begin at.
    start: String,
    facts: Vec<String>,
    answer: String,
}

impl Question {
    fn task(self, base: &Base<'_>) -> PracticeTask {
        let answered = format!("The final answer is {:?}.", self.answer);
        let items = self.facts.into_iter().chain([answered]);
        PracticeTask {
            task_id: format!("{}-{}", self.site, self.id),
            task_name: self.words,
            website: base.address(self.site, &self.start),
            domain: self.domain.to_owned(),
            subdomain: self.topic.to_owned(),
            difficulty: self.difficulty,
            evaluator_reference: items.map(|description| RubricItem { description, difficulty: 1 }).collect(),
            definite_answer: Some(self.answer),
        }
    }
}

/// Where the sites are served.
struct Base<'a> {
    url: &'a str,
    /// What follows the host name, when that is one of this machine.
    loopback_port: Option<&'a str>,
}

impl<'a> Base<'a> {
    fn read(url: &'a str) -> Self {
        let url = url.trim_end_matches('/');
        let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (host, port) = match authority.rfind(':') {
            Some(colon) if !authority[colon..].contains(']') => authority.split_at(colon),
            _ => (authority, ""),
        };
        let loopback = host == "localhost" || host == "[::1]" || host.starts_with("127.");
        Self { url, loopback_port: loopback.then_some(port) }
    }

    fn address(&self, site: &str, path: &str) -> String {
        match self.loopback_port {
            Some(port) => format!("http://{site}.localhost{port}{path}"),
            None => format!("{}{path}", self.url),
        }
    }
}

/// The one with the greatest key; `None` when two share it.
fn greatest<T, K: Ord>(items: impl IntoIterator<Item = T>, key: impl Fn(&T) -> K) -> Option<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    items.sort_by_key(|item| std::cmp::Reverse(key(item)));
    let clear = match items.as_slice() {
        [] => false,
        [_] => true,
        [first, second, ..] => key(first) > key(second),
    };
    clear.then(|| items.swap_remove(0))
}

/// A number worth asking for; `None` for nothing at all.
fn counted(count: usize) -> Option<String> {
    (count > 0).then(|| count.to_string())
}

/// The only one; `None` when there are more or less.
fn only<T>(items: impl IntoIterator<Item = T>) -> Option<T> {
    let mut items = items.into_iter();
    let first = items.next();
    if items.next().is_some() { None } else { first }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_question_has_one_clear_answer() {
        for (place, question) in questions().iter().enumerate() {
            assert!(question.is_some(), "question {place} has no clear answer");
        }
        assert!(
            tasks("http://127.0.0.1:1").iter().all(|task| !task
                .definite_answer
                .as_deref()
                .unwrap()
                .is_empty())
        );
    }

    #[test]
    fn there_are_enough_of_every_difficulty_and_no_two_are_the_same() {
        let all = tasks("http://127.0.0.1:1");
        assert!(all.len() >= 36, "only {}", all.len());
        for difficulty in 1..=9 {
            let count = all.iter().filter(|task| task.difficulty == difficulty).count();
            assert!(count >= 2, "only {count} of difficulty {difficulty}");
        }
        assert_eq!(all.iter().map(|task| &task.task_id).collect::<HashSet<_>>().len(), all.len());
        assert_eq!(all.iter().map(|task| &task.task_name).collect::<HashSet<_>>().len(), all.len());
        for site in ["shop", "wiki", "jobs", "course", "vault"] {
            assert!(all.iter().filter(|task| task.website.contains(site)).count() >= 2, "{site}");
        }
    }

    #[test]
    fn harder_tasks_have_longer_rubrics() {
        for task in tasks("http://127.0.0.1:1") {
            let least = match task.difficulty {
                ..=3 => 2,
                4..=6 => 3,
                _ => 4,
            };
            assert!(task.evaluator_reference.len() >= least, "{}", task.task_id);
        }
    }

    #[test]
    fn lines_have_the_fields_of_a_task_file() {
        let file = task_file("http://127.0.0.1:4000").unwrap();
        for line in file.lines() {
            let task: serde_json::Value = serde_json::from_str(line).unwrap();
            let keys: Vec<_> = task.as_object().unwrap().keys().map(String::as_str).collect();
            let expected = [
                "task_id",
                "task_name",
                "website",
                "domain",
                "subdomain",
                "difficulty",
                "evaluator_reference",
                "definite_answer",
            ];
            assert_eq!(keys, expected);
            assert!(task["evaluator_reference"][0]["description"].is_string());
        }
        assert_eq!(file.lines().count(), tasks("x").len());
    }

    #[test]
    fn sites_go_by_host_name_on_this_machine_and_by_path_elsewhere() {
        let address = |base| Base::read(base).address("shop", "/shop/");
        assert_eq!(address("http://127.0.0.1:4000"), "http://shop.localhost:4000/shop/");
        assert_eq!(address("http://localhost:4000/"), "http://shop.localhost:4000/shop/");
        assert_eq!(address("http://[::1]:4000"), "http://shop.localhost:4000/shop/");
        assert_eq!(address("http://10.0.0.7:4000/"), "http://10.0.0.7:4000/shop/");
    }

    #[test]
    fn ties_give_no_answer() {
        assert_eq!(greatest([1, 3, 2], |n| *n), Some(3));
        assert_eq!(greatest([3, 1, 3], |n| *n), None);
        assert_eq!((only([1]), only([1, 2]), only(Vec::<i32>::new())), (Some(1), None, None));
    }
}
