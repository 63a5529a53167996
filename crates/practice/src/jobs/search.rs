//! Finding jobs. Pure: the page shows what this returns.

use super::board::{Job, is_date, jobs};
use crate::forms::{Fields, query};

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

/// What a visitor asked for. Values that make no sense count as not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) words: String,
    pub(crate) city: String,
    pub(crate) kind: String,
    pub(crate) field: String,
    pub(crate) workplace: String,
    pub(crate) company: String,
    pub(crate) least_salary: Option<u32>,
    pub(crate) posted_after: String,
    pub(crate) sort: Sort,
}

impl Wanted {
    pub(crate) fn read(fields: &Fields) -> Self {
        let text = |name| fields.get(name).to_owned();
        let sort = Sort::ALL.iter().find(|(_, word, _)| *word == fields.get("sort"));
        Self {
            words: text("q"),
            city: text("city"),
            kind: text("type"),
            field: text("field"),
            workplace: text("workplace"),
            company: text("company"),
            least_salary: fields.number("salary"),
            posted_after: Some(text("posted_after")).filter(|date| is_date(date)).unwrap_or_default(),
            sort: sort.map(|(sort, _, _)| *sort).unwrap_or_default(),
        }
    }

    /// The address of one page of these results.
    pub(crate) fn address(&self, page: usize) -> String {
        let sort = Sort::ALL.iter().find(|(sort, _, _)| *sort == self.sort && self.sort != Sort::default());
        let pairs = [
            ("q", self.words.clone()),
            ("city", self.city.clone()),
            ("type", self.kind.clone()),
            ("field", self.field.clone()),
            ("workplace", self.workplace.clone()),
            ("company", self.company.clone()),
            ("salary", self.least_salary.map(|amount| amount.to_string()).unwrap_or_default()),
            ("posted_after", self.posted_after.clone()),
            ("sort", sort.map(|(_, word, _)| (*word).to_owned()).unwrap_or_default()),
            ("page", if page > 1 { page.to_string() } else { String::new() }),
        ];
        format!("/jobs/search?{}", query(pairs))
    }

    pub(crate) fn results(&self) -> Vec<&'static Job> {
        let mut found: Vec<_> = jobs().iter().filter(|job| self.admits(job)).collect();
        match self.sort {
            Sort::Newest => found.sort_by_key(|job| std::cmp::Reverse(job.posted)),
            Sort::Salary => found.sort_by_key(|job| std::cmp::Reverse(job.salary_high)),
            Sort::Title => found.sort_by_key(|job| job.title),
        }
        found
    }

    fn admits(&self, job: &Job) -> bool {
        let either = |wanted: &str, is: &str| wanted.is_empty() || wanted == is;
        let text = format!("{} {} {} {}", job.title, job.company, job.city, job.field).to_lowercase();
        either(&self.city, job.city)
            && either(&self.kind, job.kind)
            && either(&self.field, job.field)
            && either(&self.workplace, job.workplace)
            && either(&self.company, job.company)
            && self.least_salary.is_none_or(|least| job.salary_high >= least)
            && job.posted >= self.posted_after.as_str()
            && self.words.split_whitespace().all(|word| text.contains(&word.to_lowercase()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(pairs: &[(&str, &str)]) -> Wanted {
        Wanted::read(&Fields(pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()))
    }

    #[test]
    fn every_filter_holds_for_every_result_and_drops_something() {
        type Holds = fn(&&Job) -> bool;
        let cases: [(&str, &str, Holds); 8] = [
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
        for (name, value, holds) in cases {
            let results = wanted(&[(name, value)]).results();
            let expected = jobs().iter().filter(holds).count();
            assert!(expected > 0 && expected < jobs().len(), "{name}");
            assert!(results.iter().all(holds) && results.len() == expected, "{name}");
        }
    }

    #[test]
    fn nonsense_counts_as_nothing() {
        assert_eq!(
            wanted(&[("salary", "lots"), ("posted_after", "yesterday"), ("sort", "?")]),
            Wanted::default()
        );
    }

    #[test]
    fn the_address_says_it_all_again() {
        let asked = wanted(&[
            ("q", "a b"),
            ("city", "Port Ellery"),
            ("salary", "40000"),
            ("posted_after", "2025-05-01"),
            ("sort", "salary"),
        ]);
        let address = asked.address(3);
        let pairs =
            form_urlencoded::parse(address.split_once('?').unwrap().1.as_bytes()).into_owned().collect();
        let fields = Fields(pairs);
        assert_eq!((Wanted::read(&fields), fields.number("page")), (asked, Some(3)));
    }

    #[test]
    fn orders_are_kept() {
        assert!(wanted(&[]).results().is_sorted_by(|a, b| a.posted >= b.posted));
        assert!(wanted(&[("sort", "salary")]).results().is_sorted_by(|a, b| a.salary_high >= b.salary_high));
    }
}
