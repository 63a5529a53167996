//! Tasks on the job board.

use super::{Question, exactly_one, nonzero, unique_max};
use crate::{
    forms::Fields,
    jobs::{
        apply::application_number,
        postings::{Company, Job, companies, format_date, jobs},
        search::JobFilter,
    },
};

fn question(
    id: &'static str,
    difficulty: i64,
    topic: &'static str,
    text: &str,
    answer: impl Into<String>,
    criteria: &[&str],
) -> Question {
    Question {
        site: "jobs",
        domain: "Jobs",
        topic,
        id,
        difficulty,
        text: text.to_owned(),
        start: "/jobs/".to_owned(),
        criteria: criteria.iter().map(|criterion| (*criterion).to_owned()).collect(),
        answer: answer.into(),
    }
}

fn job(title: &str) -> Option<&'static Job> {
    exactly_one(jobs().iter().filter(|job| job.title == title))
}

/// Returns the jobs that the search form finds for these fields.
fn search(pairs: &[(&str, &str)]) -> Vec<&'static Job> {
    let pairs = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
    JobFilter::from_fields(&Fields(pairs.collect())).results()
}

pub(super) fn questions() -> Vec<Option<Question>> {
    vec![
        start_on_page(),
        company_of_a_job(),
        experience_needed(),
        remote_jobs(),
        jobs_in_a_city(),
        best_paid_in_healthcare(),
        newest_internship(),
        engineering_since_may(),
        founding_of_the_employer(),
        remote_at_a_small_company(),
        application(),
        contract_and_full_time(),
    ]
}

fn start_on_page() -> Option<Question> {
    let job = job("Naval architect")?;
    let text = "On which date does the job of the Naval architect start?";
    let mut task = question(
        "start-on-page",
        1,
        "Job details",
        text,
        format_date(job.starts),
        &["The start date of the job is visible."],
    );
    task.start = format!("/jobs/{}", job.number);
    Some(task)
}

fn company_of_a_job() -> Option<Question> {
    let job = job("Pastry chef")?;
    Some(question(
        "company-of-a-job",
        2,
        "Job details",
        "Which company is looking for a Pastry chef?",
        job.company,
        &["The job “Pastry chef” and its company are visible."],
    ))
}

fn experience_needed() -> Option<Question> {
    let years = job("Risk analyst")?.years_of_experience;
    let text = "How many years of experience does the job of Risk analyst ask for?";
    Some(question(
        "experience-needed",
        3,
        "Job details",
        text,
        years.to_string(),
        &["The page of the job “Risk analyst” was opened.", "The experience it asks for is visible."],
    ))
}

fn remote_jobs() -> Option<Question> {
    let count = nonzero(search(&[("workplace", "Remote")]).len())?;
    let criteria = ["The jobs were narrowed to the workplace Remote.", "The number of results is visible."];
    Some(question(
        "remote-jobs",
        4,
        "Filters",
        "How many remote jobs are listed on the job board?",
        count,
        &criteria,
    ))
}

fn jobs_in_a_city() -> Option<Question> {
    let count = nonzero(search(&[("city", "Belmar"), ("type", "Full-time")]).len())?;
    let criteria =
        ["The jobs were narrowed to the city Belmar.", "The jobs were narrowed to the type Full-time."];
    Some(question(
        "jobs-in-belmar",
        4,
        "Filters",
        "How many full-time jobs are there in Belmar?",
        count,
        &criteria,
    ))
}

fn best_paid_in_healthcare() -> Option<Question> {
    let best = unique_max(search(&[("field", "Healthcare")]), |job| job.salary_high)?;
    let criteria =
        ["The jobs were narrowed to the field Healthcare.", "The salaries of these jobs were compared."];
    Some(question(
        "best-paid-healthcare",
        5,
        "Filters",
        "Which job in the field Healthcare has the highest top salary?",
        best.title,
        &criteria,
    ))
}

fn newest_internship() -> Option<Question> {
    let newest = unique_max(search(&[("type", "Internship")]), |job| job.posted)?;
    let criteria =
        ["The jobs were narrowed to internships.", "The dates on which they were posted were compared."];
    Some(question(
        "newest-internship",
        5,
        "Filters",
        "Which internship was posted most recently?",
        newest.title,
        &criteria,
    ))
}

fn engineering_since_may() -> Option<Question> {
    let pairs = [
        ("field", "Engineering"),
        ("type", "Full-time"),
        ("salary", "75000"),
        ("posted_after", "2025-05-01"),
    ];
    let criteria = [
        "The jobs were narrowed to full-time jobs in Engineering.",
        "The jobs were narrowed to those posted on or after 1 May 2025.",
        "The jobs were narrowed to a salary of at least $75,000.",
    ];
    let text = "How many full-time jobs in Engineering were posted on or after 1 May 2025 and pay up to \
         $75,000 or more?";
    Some(question("engineering-since-may", 6, "Filters", text, nonzero(search(&pairs).len())?, &criteria))
}

fn founding_of_the_employer() -> Option<Question> {
    let employer = job("Lens designer")?.employer()?;
    let criteria = [
        "The job “Lens designer” was found.",
        "The page of its company, or the list of companies, was opened.",
    ];
    let text = "In which year was the company founded that is looking for a Lens designer?";
    Some(question("founding-of-the-employer", 6, "Companies", text, employer.founded.to_string(), &criteria))
}

fn remote_at_a_small_company() -> Option<Question> {
    let small: Vec<&Company> = companies().iter().filter(|company| company.employees < 100).collect();
    let remote = search(&[("workplace", "Remote")]);
    let job = exactly_one(
        remote.into_iter().filter(|job| small.iter().any(|company| company.name == job.company)),
    )?;
    let criteria = [
        "The companies were compared by the number of their employees.",
        "A company with fewer than 100 employees was found.",
        "Its remote job is visible.",
    ];
    let text = "Which remote job is offered by a company with fewer than 100 employees?";
    Some(question("remote-at-a-small-company", 7, "Companies", text, job.title, &criteria))
}

/// The values that the task gives, in the order of the form.
const APPLICATION: [(&str, &str); 11] = [
    ("first_name", "Mira"),
    ("last_name", "Halden"),
    ("email", "mira@example.org"),
    ("phone", "0215550123"),
    ("start", "2025-09-01"),
    ("years", "4"),
    ("education", "Master"),
    ("permit", "yes"),
    ("skill", "Teamwork"),
    ("letter", "I like trains."),
    ("consent", "yes"),
];

fn application() -> Option<Question> {
    let job = job("Train driver")?;
    let answers: Vec<_> =
        APPLICATION.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    let text = "Apply for the job of Train driver as Mira Halden, email mira@example.org, phone \
         0215550123, earliest start 1 September 2025, 4 years of experience, education Master, with a work \
         permit, the skill Teamwork only, and the sentence \"I like trains.\" about you. Agree to the \
         processing. What is the reference number of the application?";
    let criteria = [
        "The application form of the job “Train driver” was opened.",
        "The form was filled in with the details given.",
        "The page that confirms the application is visible.",
        "Its table repeats the details given.",
    ];
    Some(question("application", 8, "Application", text, application_number(job.number, &answers), &criteria))
}

fn contract_and_full_time() -> Option<Question> {
    let best = |kind| unique_max(search(&[("type", kind)]), |job| job.salary_high);
    let (contract, full_time) = (best("Contract")?, best("Full-time")?);
    let difference = full_time.salary_high.abs_diff(contract.salary_high);
    let criteria = [
        "The contract jobs were compared by salary.",
        "The full-time jobs were compared by salary.",
        "The top salaries of both are visible.",
    ];
    let text = "Compare the full-time job with the highest top salary and the contract job with the \
         highest top salary. By how many dollars do these two top salaries differ?";
    Some(question(
        "contract-and-full-time",
        9,
        "Comparison",
        text,
        format!("${},{:03}", difference / 1000, difference % 1000),
        &criteria,
    ))
}
