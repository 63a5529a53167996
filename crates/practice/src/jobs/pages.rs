//! The read-only pages: front page, search results, job details and companies.

use axum::{
    extract::{Path, Query},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use maud::{Markup, html};

use super::{
    description::{benefits, duties, requirements},
    postings::{self, Company, Job, companies, distinct, format_date, jobs},
    search::{JobFilter, PAGE_SIZE, Sort},
};
use crate::{
    forms::Fields,
    html::{self, count, pagination},
};

const NAME: &str = "Aldermark Works";

pub(super) fn page(title: &str, body: &Markup) -> Response {
    let body = html! {
        header.bar {
            a.brand href="/jobs/" { (NAME) }
            a href="/jobs/search" { "All jobs" }
            a href="/jobs/companies" { "Companies" }
        }
        main { (body) }
        footer { p.small { (NAME) " is a practice job board. Nobody is hired here." } }
    };
    html::page(&format!("{title} · {NAME}"), "jobs", &body)
}

pub(super) fn not_found(what: &str) -> Response {
    let body = html! {
        h1 { "No such " (what) }
        p { a href="/jobs/search" { "See all jobs" } }
    };
    (StatusCode::NOT_FOUND, page("Not found", &body)).into_response()
}

pub(super) async fn front() -> Response {
    let body = html! {
        section.hero {
            h1 { "Find work in Aldermark" }
            p { (jobs().len()) " open positions at " (companies().len()) " companies." }
            form.quick action="/jobs/search" role="search" {
                input type="search" name="q" id="search"
                    placeholder="Job title or company" aria-label="Job title or company";
                (select("city", "City", &distinct(|job| job.city), ""))
                button.primary type="submit" id="search-button" { "Search jobs" }
            }
        }
        h2 { "Fields" }
        ul.fields {
            @for field in distinct(|job| job.field) {
                li { a href=(JobFilter { field: field.to_owned(), ..JobFilter::default() }.url(1)) { (field) } }
            }
        }
        h2 { "Newest" }
        ul.jobs { @for job in JobFilter::default().results().into_iter().take(6) { (card(job)) } }
    };
    page("Find work", &body)
}

/// Renders a select with an option for any value.
fn select(name: &str, label: &str, values: &[&str], chosen: &str) -> Markup {
    html! {
        select id=(name) name=(name) aria-label=(label) {
            option value="" { "Any " (label.to_lowercase()) }
            @for value in values { option value=(value) selected[*value == chosen] { (value) } }
        }
    }
}

fn card(job: &Job) -> Markup {
    html! {
        li.job.card {
            h3 { a href={ "/jobs/" (job.number) } { (job.title) } }
            p { (job.company) " · " (job.city) " · " (job.workplace) }
            p.tags { span { (job.kind) } span { (job.field) } span { (job.salary()) } }
            p.small { "Posted " time datetime=(job.posted) { (format_date(job.posted)) } }
        }
    }
}

pub(super) async fn results(Query(pairs): Query<Vec<(String, String)>>) -> Response {
    let fields = Fields(pairs);
    let filter = JobFilter::from_fields(&fields);
    let results = filter.results();
    let pages = results.len().div_ceil(PAGE_SIZE).max(1);
    let current = (fields.number("page").unwrap_or(1) as usize).clamp(1, pages);
    let body = html! {
        h1 { "Jobs" }
        div.with-sidebar {
            (filter_form(&filter))
            section {
                p id="result-count" {
                    (count(results.len(), "job"))
                    @if pages > 1 { ", page " (current) " of " (pages) }
                }
                @if results.is_empty() { p { "Nothing matches. Try fewer words or wider filters." } }
                ul.jobs {
                    @for job in results.iter().skip((current - 1) * PAGE_SIZE).take(PAGE_SIZE) { (card(job)) }
                }
                (pagination(current, pages, |number| filter.url(number)))
            }
        }
    };
    page("Jobs", &body)
}

fn filter_form(filter: &JobFilter) -> Markup {
    let labelled_select = |name: &str, label: &str, values: &[&str], chosen: &str| {
        html! { label for=(name) { (label) } (select(name, label, values, chosen)) }
    };
    let salary = filter.min_salary.map(|amount| amount.to_string()).unwrap_or_default();
    html! {
        form.filters.card action="/jobs/search" id="filters" {
            label for="q" { "Words" }
            input type="search" id="q" name="q" value=(filter.query);
            (labelled_select("city", "City", &distinct(|job| job.city), &filter.city))
            (labelled_select("type", "Type", &distinct(|job| job.kind), &filter.kind))
            (labelled_select("field", "Field", &distinct(|job| job.field), &filter.field))
            (labelled_select("workplace", "Workplace", &distinct(|job| job.workplace), &filter.workplace))
            (labelled_select("company", "Company", &distinct(|job| job.company), &filter.company))
            label for="salary" { "Salary of at least ($)" }
            input type="number" id="salary" name="salary" min="0" step="1000" value=(salary);
            label for="posted-after" { "Posted on or after" }
            input type="date" id="posted-after" name="posted_after" value=(filter.posted_after);
            label for="sort" { "Sort by" }
            select id="sort" name="sort" {
                @for (sort, value, name) in Sort::ALL {
                    option value=(value) selected[filter.sort == sort] { (name) }
                }
            }
            button.primary type="submit" id="apply-filters" { "Show jobs" }
            a.small href="/jobs/search" { "Clear filters" }
        }
    }
}

pub(super) async fn job(Path(number): Path<String>) -> Response {
    let Some(job) = number.parse().ok().and_then(postings::find) else { return not_found("job") };
    page(job.title, &details(job))
}

fn details(job: &Job) -> Markup {
    html! {
        nav.crumbs aria-label="Breadcrumb" { a href="/jobs/search" { "Jobs" } " › " (job.title) }
        div.with-sidebar.reversed {
            article.card {
                h1 { (job.title) }
                p { (employer(job)) " · " (job.city) }
                h2 { "What you will do" }
                ul { @for duty in duties(job) { li { (duty) } } }
                h2 { "What you bring" }
                ul { @for requirement in requirements(job) { li { (requirement) } } }
                h2 { "What we offer" }
                ul { @for benefit in benefits(job) { li { (benefit) } } }
                a.button.primary id="apply" href={ "/jobs/" (job.number) "/apply" } { "Apply for this job" }
            }
            aside.card {
                h2 { "At a glance" }
                dl id="facts" {
                    dt { "Reference" } dd { "AW-" (job.number) }
                    dt { "Type" } dd { (job.kind) }
                    dt { "Field" } dd { (job.field) }
                    dt { "Workplace" } dd { (job.workplace) }
                    dt { "Salary" } dd { (job.salary()) }
                    dt { "Experience" } dd { (count(job.years_of_experience as usize, "year")) }
                    dt { "Posted" } dd { time datetime=(job.posted) { (format_date(job.posted)) } }
                    dt { "Starts" } dd { time datetime=(job.starts) { (format_date(job.starts)) } }
                }
            }
        }
    }
}

fn employer(job: &Job) -> Markup {
    html! {
        @match job.employer() {
            Some(company) => a href={ "/jobs/company/" (company.slug()) } { (company.name) },
            None => (job.company),
        }
    }
}

pub(super) async fn all_companies() -> Response {
    let body = html! {
        h1 { "Companies" }
        table {
            thead {
                tr {
                    @for name in ["Company", "Industry", "City", "Founded", "Employees", "Open jobs"] {
                        th { (name) }
                    }
                }
            }
            tbody {
                @for company in companies() {
                    tr {
                        td { a href={ "/jobs/company/" (company.slug()) } { (company.name) } }
                        td { (company.industry) } td { (company.city) } td { (company.founded) }
                        td { (company.employees) } td { (open_jobs(company).count()) }
                    }
                }
            }
        }
    };
    page("Companies", &body)
}

fn open_jobs(company: &Company) -> impl Iterator<Item = &'static Job> {
    jobs().iter().filter(|job| job.company == company.name)
}

pub(super) async fn company(Path(slug): Path<String>) -> Response {
    let Some(company) = companies().iter().find(|company| company.slug() == slug) else {
        return not_found("company");
    };
    let body = html! {
        h1 { (company.name) }
        p.lead { (company.about) }
        dl {
            dt { "Industry" } dd { (company.industry) }
            dt { "Head office" } dd { (company.city) }
            dt { "Founded" } dd { (company.founded) }
            dt { "Employees" } dd { (company.employees) }
        }
        h2 { "Open jobs" }
        ul.jobs { @for job in open_jobs(company) { (card(job)) } }
    };
    page(company.name, &body)
}
