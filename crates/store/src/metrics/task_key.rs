//! Recognises trajectories of the same task, and tasks on the same website.

use std::hash::{DefaultHasher, Hash, Hasher};

use crate::summary::Summary;

/// Identifies a task by its name and website: trajectories with the same key belong to one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskKey(u64);

impl TaskKey {
    pub fn of(summary: &Summary) -> Self {
        Self(hash(&(&summary.task_name, site(&summary.website))))
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
fn site(website: &str) -> &str {
    let host = website.split_once("://").map_or(website, |(_, rest)| rest);
    let host = host.split(['/', '?', '#']).next().unwrap_or(host);
    host.rsplit_once(':')
        .filter(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()))
        .map_or(host, |(name, _)| name)
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
}
