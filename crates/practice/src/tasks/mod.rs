//! Tasks on the practice sites, in the format of a task file. Reference answers are computed from the data that the
//! pages are rendered from, so that they always agree. Policies must not depend on this module.

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

/// Returns all tasks, easiest first, for sites served at `base_url` (see [`crate::Sites::url`]).
/// On a loopback address each site has its own host name; elsewhere sites differ by path only.
pub fn tasks(base_url: &str) -> Vec<PracticeTask> {
    let base = Base::parse(base_url);
    let mut all: Vec<_> =
        questions().into_iter().flatten().map(|question| question.into_task(&base)).collect();
    all.sort_by_key(|task| task.difficulty);
    all
}

/// Returns all tasks as the text of a task file: one JSON object per line.
pub fn task_file(base_url: &str) -> Result<String, serde_json::Error> {
    tasks(base_url).iter().map(|task| Ok(serde_json::to_string(task)? + "\n")).collect()
}

/// All questions. One is `None` if the data gives no unique answer; a test checks that none is.
fn questions() -> Vec<Option<Question>> {
    [shop::questions(), wiki::questions(), jobs::questions(), course::questions(), vault::questions()]
        .concat()
}

/// A task that is not yet bound to a base URL.
#[derive(Clone, Debug)]
struct Question {
    site: &'static str,
    domain: &'static str,
    topic: &'static str,
    id: &'static str,
    difficulty: i64,
    text: String,
    /// Path of the start page.
    start: String,
    /// What the screenshots of a solved task must show; becomes the rubric.
    criteria: Vec<String>,
    answer: String,
}

impl Question {
    fn into_task(self, base: &Base<'_>) -> PracticeTask {
        let final_criterion = format!("The final answer is {:?}.", self.answer);
        let items = self.criteria.into_iter().chain([final_criterion]);
        PracticeTask {
            task_id: format!("{}-{}", self.site, self.id),
            task_name: self.text,
            website: base.url(self.site, &self.start),
            domain: self.domain.to_owned(),
            subdomain: self.topic.to_owned(),
            difficulty: self.difficulty,
            evaluator_reference: items.map(|description| RubricItem { description, difficulty: 1 }).collect(),
            definite_answer: Some(self.answer),
        }
    }
}

/// The base URL of the sites.
struct Base<'a> {
    url: &'a str,
    /// The text after the host name (`:PORT`), if the host is a loopback address.
    loopback_port: Option<&'a str>,
}

impl<'a> Base<'a> {
    fn parse(url: &'a str) -> Self {
        let url = url.trim_end_matches('/');
        let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (host, port) = match authority.rfind(':') {
            Some(colon) if !authority[colon..].contains(']') => authority.split_at(colon),
            _ => (authority, ""),
        };
        let is_loopback = host == "localhost" || host == "[::1]" || host.starts_with("127.");
        Self { url, loopback_port: is_loopback.then_some(port) }
    }

    fn url(&self, site: &str, path: &str) -> String {
        match self.loopback_port {
            Some(port) => format!("http://{site}.localhost{port}{path}"),
            None => format!("{}{path}", self.url),
        }
    }
}

/// Returns the item with the greatest key; `None` if two items share it.
fn unique_max<T, K: Ord>(items: impl IntoIterator<Item = T>, key: impl Fn(&T) -> K) -> Option<T> {
    let mut items: Vec<T> = items.into_iter().collect();
    items.sort_by_key(|item| std::cmp::Reverse(key(item)));
    let is_unique = match items.as_slice() {
        [] => false,
        [_] => true,
        [first, second, ..] => key(first) > key(second),
    };
    is_unique.then(|| items.swap_remove(0))
}

/// Formats a count; `None` for 0.
fn nonzero(count: usize) -> Option<String> {
    (count > 0).then(|| count.to_string())
}

/// Returns the only item; `None` if there are none or several.
fn exactly_one<T>(items: impl IntoIterator<Item = T>) -> Option<T> {
    let mut items = items.into_iter();
    let first = items.next();
    if items.next().is_some() { None } else { first }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_question_has_a_unique_answer() {
        for (index, question) in questions().iter().enumerate() {
            assert!(question.is_some(), "question {index} has no unique answer");
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
    fn tasks_are_unique_and_cover_all_difficulties() {
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
            let min_items = match task.difficulty {
                ..=3 => 2,
                4..=6 => 3,
                _ => 4,
            };
            assert!(task.evaluator_reference.len() >= min_items, "{}", task.task_id);
        }
    }

    #[test]
    fn task_file_lines_have_the_expected_fields() {
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
    fn host_names_are_used_on_loopback_only() {
        let url = |base| Base::parse(base).url("shop", "/shop/");
        assert_eq!(url("http://127.0.0.1:4000"), "http://shop.localhost:4000/shop/");
        assert_eq!(url("http://localhost:4000/"), "http://shop.localhost:4000/shop/");
        assert_eq!(url("http://[::1]:4000"), "http://shop.localhost:4000/shop/");
        assert_eq!(url("http://10.0.0.7:4000/"), "http://10.0.0.7:4000/shop/");
    }

    #[test]
    fn ties_give_no_answer() {
        assert_eq!(unique_max([1, 3, 2], |n| *n), Some(3));
        assert_eq!(unique_max([3, 1, 3], |n| *n), None);
        assert_eq!(
            (exactly_one([1]), exactly_one([1, 2]), exactly_one(Vec::<i32>::new())),
            (Some(1), None, None)
        );
    }
}
