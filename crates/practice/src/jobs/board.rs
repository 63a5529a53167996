//! What the job board lists. The tables are text files embedded in the binary; a test holds every line
//! to account.

use std::sync::LazyLock;

const JOBS: &str = include_str!("../../assets/jobs/jobs.txt");
const COMPANIES: &str = include_str!("../../assets/jobs/companies.txt");
const FIRST_NUMBER: u32 = 1001;

#[derive(Debug)]
pub(crate) struct Job {
    /// Its address on the board.
    pub(crate) number: u32,
    pub(crate) title: &'static str,
    pub(crate) company: &'static str,
    pub(crate) city: &'static str,
    pub(crate) field: &'static str,
    /// Full-time, Part-time, Contract or Internship.
    pub(crate) kind: &'static str,
    /// On site, Hybrid or Remote.
    pub(crate) workplace: &'static str,
    /// A year, in dollars.
    pub(crate) salary_low: u32,
    pub(crate) salary_high: u32,
    /// Year, month and day, so that text order is date order.
    pub(crate) posted: &'static str,
    pub(crate) starts: &'static str,
    pub(crate) years_of_experience: u32,
}

#[derive(Debug)]
pub(crate) struct Company {
    pub(crate) name: &'static str,
    pub(crate) industry: &'static str,
    pub(crate) city: &'static str,
    pub(crate) founded: u32,
    pub(crate) employees: u32,
    pub(crate) about: &'static str,
}

static ALL_JOBS: LazyLock<Vec<Job>> = LazyLock::new(|| {
    let numbered = (FIRST_NUMBER..).zip(JOBS.lines());
    numbered.filter_map(|(number, line)| read_job(number, line)).collect()
});
static ALL_COMPANIES: LazyLock<Vec<Company>> =
    LazyLock::new(|| COMPANIES.lines().filter_map(read_company).collect());

fn columns<const N: usize>(line: &'static str) -> Option<[&'static str; N]> {
    line.split('|').map(str::trim).collect::<Vec<_>>().try_into().ok()
}

fn read_job(number: u32, line: &'static str) -> Option<Job> {
    let [title, company, city, field, kind, workplace, low, high, posted, starts, years] = columns(line)?;
    Some(Job {
        number,
        title,
        company,
        city,
        field,
        kind,
        workplace,
        salary_low: low.parse().ok()?,
        salary_high: high.parse().ok()?,
        posted,
        starts,
        years_of_experience: years.parse().ok()?,
    })
}

fn read_company(line: &'static str) -> Option<Company> {
    let [name, industry, city, founded, employees, about] = columns(line)?;
    Some(Company {
        name,
        industry,
        city,
        founded: founded.parse().ok()?,
        employees: employees.parse().ok()?,
        about,
    })
}

pub(crate) fn jobs() -> &'static [Job] {
    &ALL_JOBS
}

pub(crate) fn companies() -> &'static [Company] {
    &ALL_COMPANIES
}

pub(crate) fn find(number: u32) -> Option<&'static Job> {
    jobs().iter().find(|job| job.number == number)
}

/// The different values of one column, in alphabetical order.
pub(crate) fn values(column: fn(&Job) -> &'static str) -> Vec<&'static str> {
    let mut values: Vec<_> = jobs().iter().map(column).collect();
    values.sort_unstable();
    values.dedup();
    values
}

/// `2025-05-02` is `2 May 2025`; anything else stays as it is.
pub(crate) fn readable(date: &str) -> String {
    const MONTHS: [&str; 12] = [
        "January",
        "February",
        "March",
        "April",
        "May",
        "June",
        "July",
        "August",
        "September",
        "October",
        "November",
        "December",
    ];
    let mut parts = date.split('-');
    let (year, month, day) = (parts.next(), parts.next(), parts.next());
    let month = month.and_then(|month| MONTHS.get(month.parse::<usize>().ok()?.checked_sub(1)?));
    match (year, month, day.and_then(|day| day.parse::<u32>().ok())) {
        (Some(year), Some(month), Some(day)) => format!("{day} {month} {year}"),
        _ => date.to_owned(),
    }
}

/// Year-month-day with numbers that can be a date.
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
    fn every_line_is_a_whole_job() {
        assert_eq!(jobs().len(), JOBS.lines().count());
        assert_eq!(companies().len(), COMPANIES.lines().count());
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
    fn every_company_hires() {
        assert!(companies().iter().all(|company| jobs().iter().any(|job| job.company == company.name)));
    }

    #[test]
    fn dates_are_told_from_other_words() {
        assert!(is_date("2025-05-02"));
        for bad in ["", "2025-5-2", "2025-13-01", "2025-01-32", "02.05.2025", "2025-05-02-01"] {
            assert!(!is_date(bad), "{bad}");
        }
        assert_eq!(readable("2025-05-02"), "2 May 2025");
        assert_eq!(readable("soon"), "soon");
    }
}
