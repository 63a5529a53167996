//! Recognises trajectories of the same task, and tasks on the same website.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::summary::Summary;

/// Identifies a task by its id, name, difficulty and start page: trajectories with the same key belong to one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskKey(u64);

impl TaskKey {
    pub fn of(summary: &Summary) -> Self {
        let Summary { task_id, task_name, website, subdomain, difficulty, .. } = summary;
        Self(hash(&(task_id, task_name, subdomain, difficulty, site(website), path(website))))
    }
}

/// Identifies a website by its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SiteKey(u64);

impl SiteKey {
    pub fn of(summary: &Summary) -> Self {
        Self(hash(&site(&summary.website)))
    }
}

/// Returns the host of a URL without its port: practice sites get a different port in every run.
pub fn site(website: &str) -> &str {
    let host = website.split_once("://").map_or(website, |(_, rest)| rest);
    let host = host.split(['/', '?', '#']).next().unwrap_or(host);
    host.rsplit_once(':')
        .filter(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(host, |(name, _)| name)
}

/// Returns what follows the host in a URL.
fn path(website: &str) -> &str {
    let rest = website.split_once("://").map_or(website, |(_, rest)| rest);
    rest.find(['/', '?', '#']).map_or("", |start| &rest[start..]).trim_end_matches('/')
}

fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn site_is_host_without_port_and_path() {
        let table = [
            ("https://a.example", "a.example"),
            ("https://a.example:8443/x?y", "a.example"),
            ("a.example/x:1", "a.example"),
            ("http://[::1]:80/", "[::1]"),
            ("nonsense:", "nonsense:"),
            ("", ""),
        ];
        for (website, host) in table {
            assert_eq!(site(website), host, "{website}");
        }
    }

    #[test]
    fn tasks_differ_by_id_start_page_and_difficulty() {
        let task = |path: &str, id: i64, difficulty: i64| {
            let task_id = Some(proto::trajectory::TaskId::Number(id));
            let website = format!("http://shop.example:80{path}");
            TaskKey::of(&Summary {
                task_id,
                website,
                difficulty,
                task_name: "t".into(),
                ..Summary::default()
            })
        };
        assert_eq!(task("/a", 1, 2), task("/a/", 1, 2));
        for other in [task("/b", 1, 2), task("/a", 2, 2), task("/a", 1, 3)] {
            assert_ne!(task("/a", 1, 2), other);
        }
    }
}
