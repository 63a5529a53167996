//! The job search: a filter read from the query string, applied to the postings. Has no side effects.

use super::postings::{Job, is_date, jobs};
use crate::forms::{Fields, query_string};

pub(crate) const PAGE_SIZE: usize = 10;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    #[default]
    Newest,
    Salary,
    Title,
}

impl Sort {
    pub(crate) const ALL: [(Self, &'static str, &'static str); 3] = [
        (Self::Newest, "newest", "Newest first"),
        (Self::Salary, "salary", "Highest salary"),
        (Self::Title, "title", "Job title"),
    ];
}

/// What a visitor searches for. Invalid values are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct JobFilter {
    pub(crate) query: String,
    pub(crate) city: String,
    pub(crate) kind: String,
    pub(crate) field: String,
    pub(crate) workplace: String,
    pub(crate) company: String,
    pub(crate) min_salary: Option<u32>,
    pub(crate) posted_after: String,
    pub(crate) sort: Sort,
}

impl JobFilter {
    pub(crate) fn from_fields(fields: &Fields) -> Self {
        let text = |name| fields.get(name).to_owned();
        let sort = Sort::ALL.iter().find(|(_, value, _)| *value == fields.get("sort"));
        Self {
            query: text("q"),
            city: text("city"),
            kind: text("type"),
            field: text("field"),
            workplace: text("workplace"),
            company: text("company"),
            min_salary: fields.number("salary"),
            posted_after: Some(text("posted_after")).filter(|date| is_date(date)).unwrap_or_default(),
            sort: sort.map(|(sort, _, _)| *sort).unwrap_or_default(),
        }
    }

    /// Returns the URL of one page of the results.
    pub(crate) fn url(&self, page: usize) -> String {
        let sort = Sort::ALL.iter().find(|(sort, _, _)| *sort == self.sort && self.sort != Sort::default());
        let pairs = [
            ("q", self.query.clone()),
            ("city", self.city.clone()),
            ("type", self.kind.clone()),
            ("field", self.field.clone()),
            ("workplace", self.workplace.clone()),
            ("company", self.company.clone()),
            ("salary", self.min_salary.map(|amount| amount.to_string()).unwrap_or_default()),
            ("posted_after", self.posted_after.clone()),
            ("sort", sort.map(|(_, value, _)| (*value).to_owned()).unwrap_or_default()),
            ("page", if page > 1 { page.to_string() } else { String::new() }),
        ];
        format!("/jobs/search?{}", query_string(pairs))
    }

    pub(crate) fn results(&self) -> Vec<&'static Job> {
        let mut results: Vec<_> = jobs().iter().filter(|job| self.matches(job)).collect();
        match self.sort {
            Sort::Newest => results.sort_by_key(|job| std::cmp::Reverse(job.posted)),
            Sort::Salary => results.sort_by_key(|job| std::cmp::Reverse(job.salary_high)),
            Sort::Title => results.sort_by_key(|job| job.title),
        }
        results
    }

    fn matches(&self, job: &Job) -> bool {
        let equals = |wanted: &str, actual: &str| wanted.is_empty() || wanted == actual;
        let text = format!("{} {} {} {}", job.title, job.company, job.city, job.field).to_lowercase();
        equals(&self.city, job.city)
            && equals(&self.kind, job.kind)
            && equals(&self.field, job.field)
            && equals(&self.workplace, job.workplace)
            && equals(&self.company, job.company)
            && self.min_salary.is_none_or(|min| job.salary_high >= min)
            && job.posted >= self.posted_after.as_str()
            && self.query.split_whitespace().all(|word| text.contains(&word.to_lowercase()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(pairs: &[(&str, &str)]) -> JobFilter {
        JobFilter::from_fields(&Fields(
            pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect(),
        ))
    }

    #[test]
    fn each_filter_selects_exactly_the_matching_jobs() {
        type Predicate = fn(&&Job) -> bool;
        let cases: [(&str, &str, Predicate); 8] = [
            ("q", "ENGINEER", |job| {
                (job.title.to_lowercase() + job.field).to_lowercase().contains("engineer")
            }),
            ("city", "Arnholm", |job| job.city == "Arnholm"),
            ("type", "Contract", |job| job.kind == "Contract"),
            ("field", "Design", |job| job.field == "Design"),
            ("workplace", "Remote", |job| job.workplace == "Remote"),
            ("company", "Tess Glass", |job| job.company == "Tess Glass"),
            ("salary", "70000", |job| job.salary_high >= 70_000),
            ("posted_after", "2025-06-10", |job| job.posted >= "2025-06-10"),
        ];
        for (name, value, predicate) in cases {
            let results = filter(&[(name, value)]).results();
            let expected = jobs().iter().filter(predicate).count();
            assert!(expected > 0 && expected < jobs().len(), "{name}");
            assert!(results.iter().all(predicate) && results.len() == expected, "{name}");
        }
    }

    #[test]
    fn invalid_values_are_ignored() {
        assert_eq!(
            filter(&[("salary", "lots"), ("posted_after", "yesterday"), ("sort", "?")]),
            JobFilter::default()
        );
    }

    #[test]
    fn url_round_trips_the_filter() {
        let expected = filter(&[
            ("q", "a b"),
            ("city", "Port Ellery"),
            ("salary", "40000"),
            ("posted_after", "2025-05-01"),
            ("sort", "salary"),
        ]);
        let url = expected.url(3);
        let pairs = form_urlencoded::parse(url.split_once('?').unwrap().1.as_bytes()).into_owned().collect();
        let fields = Fields(pairs);
        assert_eq!((JobFilter::from_fields(&fields), fields.number("page")), (expected, Some(3)));
    }

    #[test]
    fn results_are_sorted() {
        assert!(filter(&[]).results().is_sorted_by(|a, b| a.posted >= b.posted));
        assert!(filter(&[("sort", "salary")]).results().is_sorted_by(|a, b| a.salary_high >= b.salary_high));
    }
}
