//! The job postings and companies of the job board, loaded from `data/jobs/`.

use std::sync::LazyLock;

use jiff::civil::Date;
use serde::Deserialize;

use crate::data;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Job {
    /// Identifies the job in its URL.
    pub(crate) number: u32,
    pub(crate) title: &'static str,
    pub(crate) company: &'static str,
    pub(crate) city: &'static str,
    pub(crate) field: &'static str,
    /// Full-time, Part-time, Contract or Internship.
    pub(crate) kind: &'static str,
    /// On site, Hybrid or Remote.
    pub(crate) workplace: &'static str,
    /// Dollars per year.
    pub(crate) salary_low: u32,
    pub(crate) salary_high: u32,
    /// `YYYY-MM-DD`, so that the order of the texts is the order of the dates.
    pub(crate) posted: &'static str,
    pub(crate) starts: &'static str,
    pub(crate) years_of_experience: u32,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Company {
    pub(crate) name: &'static str,
    pub(crate) industry: &'static str,
    pub(crate) city: &'static str,
    pub(crate) founded: u32,
    pub(crate) employees: u32,
    pub(crate) about: &'static str,
}

static JOBS: LazyLock<Vec<Job>> = LazyLock::new(|| data::load!("jobs/jobs.json"));
static COMPANIES: LazyLock<Vec<Company>> = LazyLock::new(|| data::load!("jobs/companies.json"));

pub(crate) fn jobs() -> &'static [Job] {
    &JOBS
}

pub(crate) fn companies() -> &'static [Company] {
    &COMPANIES
}

pub(crate) fn find(number: u32) -> Option<&'static Job> {
    jobs().iter().find(|job| job.number == number)
}

/// Returns the distinct values of a field, in alphabetical order.
pub(crate) fn distinct(field: fn(&Job) -> &'static str) -> Vec<&'static str> {
    let mut values: Vec<_> = jobs().iter().map(field).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// Formats a date: `2025-05-02` is `2 May 2025`. Other texts are returned unchanged.
pub(crate) fn format_date(date: &str) -> String {
    let month_name = |month: i8| Some(Date::new(2000, month, 1).ok()?.strftime("%B").to_string());
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next(), parts.next(), parts.next());
    let month = month.and_then(|month| month_name(month.parse().ok()?));
    match (year, month, day.and_then(|day| day.parse::<u32>().ok())) {
        (Some(year), Some(month), Some(day)) => format!("{day} {month} {year}"),
        _ => date.to_owned(),
    }
}

/// Whether the text is a date as `YYYY-MM-DD`. Days up to 31 are accepted in every month.
pub(crate) fn is_date(text: &str) -> bool {
    let parts: Vec<_> = text.split('-').collect();
    let number =
        |text: &str, length: usize| (text.len() == length).then(|| text.parse::<u32>().ok()).flatten();
    match parts.as_slice() {
        [year, month, day] => {
            number(year, 4).is_some()
                && number(month, 2).is_some_and(|month| (1..=12).contains(&month))
                && number(day, 2).is_some_and(|day| (1..=31).contains(&day))
        }
        _ => false,
    }
}

impl Job {
    pub(crate) fn salary(&self) -> String {
        let thousands = |amount: u32| format!("${},{:03}", amount / 1000, amount % 1000);
        format!("{} – {}", thousands(self.salary_low), thousands(self.salary_high))
    }

    pub(crate) fn employer(&self) -> Option<&'static Company> {
        companies().iter().find(|company| company.name == self.company)
    }
}

impl Company {
    pub(crate) fn slug(&self) -> String {
        self.name.to_lowercase().replace(' ', "-")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_are_complete_and_numbered() {
        let numbers: Vec<u32> = jobs().iter().map(|job| job.number).collect();
        assert_eq!(numbers, (1001..).take(jobs().len()).collect::<Vec<_>>());
        assert!(jobs().len() >= 50);
        for job in jobs() {
            assert!(job.employer().is_some(), "{}", job.company);
            assert!(job.salary_low < job.salary_high, "{}", job.title);
            assert!(is_date(job.posted) && is_date(job.starts) && job.posted < job.starts, "{}", job.title);
            assert!(["Full-time", "Part-time", "Contract", "Internship"].contains(&job.kind), "{}", job.kind);
            assert!(["On site", "Hybrid", "Remote"].contains(&job.workplace), "{}", job.workplace);
        }
    }

    #[test]
    fn every_company_has_jobs() {
        assert!(companies().iter().all(|company| jobs().iter().any(|job| job.company == company.name)));
    }

    #[test]
    fn dates_are_recognised_and_formatted() {
        assert!(is_date("2025-05-02"));
        for bad in ["", "2025-5-2", "2025-13-01", "2025-01-32", "02.05.2025", "2025-05-02-01"] {
            assert!(!is_date(bad), "{bad}");
        }
        assert_eq!(format_date("2025-05-02"), "2 May 2025");
        assert_eq!(format_date("soon"), "soon");
    }
}
