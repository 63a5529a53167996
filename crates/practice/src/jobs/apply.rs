//! The application form: checked field by field, then confirmed with everything that was sent.

use axum::{
    extract::{Multipart, Path, multipart::MultipartError},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use maud::{Markup, html};

use super::{
    board::{self, Job, is_date, readable},
    pages::{missing, page},
};
use crate::{
    forms::{Fields, is_email, reference_number},
    html::count,
};

const EDUCATION: [&str; 5] = ["School", "Apprenticeship", "Bachelor", "Master", "Doctorate"];
const SKILLS: [&str; 6] =
    ["Teamwork", "Planning", "Languages", "Driving licence", "First aid", "Programming"];
const LONGEST_LETTER: usize = 2000;

pub(super) async fn form(Path(number): Path<String>) -> Response {
    match find(&number) {
        Some(job) => page("Apply", &application(job, &Fields::default(), &[])),
        None => missing("job"),
    }
}

fn find(number: &str) -> Option<&'static Job> {
    number.parse().ok().and_then(board::find)
}

pub(super) async fn send(Path(number): Path<String>, sent: Multipart) -> Response {
    let Some(job) = find(&number) else { return missing("job") };
    let fields = match read(sent).await {
        Ok(fields) => fields,
        Err(error) => {
            let body = html! { h1 { "That could not be read" } p { (error.body_text()) } };
            return (error.status(), page("Apply", &body)).into_response();
        }
    };
    let mistakes = mistakes(&fields);
    if mistakes.is_empty() {
        return page("Application received", &confirmation(job, &fields));
    }
    (StatusCode::UNPROCESSABLE_ENTITY, page("Apply", &application(job, &fields, &mistakes))).into_response()
}

/// Of a file its name and size are kept, its content never.
async fn read(mut sent: Multipart) -> Result<Fields, MultipartError> {
    let mut fields = Fields::default();
    while let Some(field) = sent.next_field().await? {
        let name = field.name().unwrap_or_default().to_owned();
        let value = match field.file_name().map(str::to_owned) {
            Some(file) if file.is_empty() => continue,
            Some(file) => format!("{file} ({} bytes)", field.bytes().await?.len()),
            None => field.text().await?,
        };
        fields.0.push((name, value));
    }
    Ok(fields)
}

/// Field and what is wrong with it.
fn mistakes(fields: &Fields) -> Vec<(&'static str, &'static str)> {
    let checks = [
        ("first_name", fields.get("first_name").is_empty(), "Please enter your first name."),
        ("last_name", fields.get("last_name").is_empty(), "Please enter your last name."),
        ("email", !is_email(fields.get("email")), "Please enter an email address such as name@example.org."),
        ("phone", !is_phone(fields.get("phone")), "Please enter a phone number of at least six digits."),
        ("start", !is_date(fields.get("start")), "Please choose the date on which you could start."),
        (
            "years",
            fields.number("years").is_none_or(|years| years > 60),
            "Please enter your years of experience.",
        ),
        ("education", !EDUCATION.contains(&fields.get("education")), "Please choose your education."),
        (
            "permit",
            !["yes", "no"].contains(&fields.get("permit")),
            "Please say whether you have a work permit.",
        ),
        ("letter", fields.get("letter").is_empty(), "Please write a few words about yourself."),
        (
            "letter",
            fields.get("letter").chars().count() > LONGEST_LETTER,
            "Please keep it under 2000 characters.",
        ),
        ("consent", !fields.has("consent"), "Please agree to the processing of your application."),
    ];
    checks.into_iter().filter(|(_, wrong, _)| *wrong).map(|(name, _, words)| (name, words)).collect()
}

fn is_phone(text: &str) -> bool {
    text.chars().filter(char::is_ascii_digit).count() >= 6 && !text.contains(char::is_alphabetic)
}

/// The number follows from the job and the answers, and from nothing else.
pub(crate) fn application_number(job: u32, answers: &[(String, String)]) -> String {
    let answers: Vec<_> = answers.iter().map(|(name, value)| format!("{name}={}", value.trim())).collect();
    format!("APP-{}", reference_number(&format!("{job}\n{}", answers.join("\n"))))
}

fn confirmation(job: &Job, fields: &Fields) -> Markup {
    let skills: Vec<_> = fields.all("skill").collect();
    let number = application_number(job.number, &fields.0);
    let row = |name: &str, value: &str| {
        html! { tr { th { (name) } td { @if value.is_empty() { "–" } @else { (value) } } } }
    };
    html! {
        h1 { "Application received" }
        p.success { "Your reference number is " strong id="reference" { (number) } "." }
        p { "You applied as " strong { (job.title) } " at " (job.company) " in " (job.city) "." }
        table id="answers" {
            (row("Name", &format!("{} {}", fields.get("first_name"), fields.get("last_name"))))
            (row("Email", fields.get("email")))
            (row("Phone", fields.get("phone")))
            (row("Earliest start", &readable(fields.get("start"))))
            (row("Years of experience", fields.get("years")))
            (row("Education", fields.get("education")))
            (row("Work permit", fields.get("permit")))
            (row("Skills", &skills.join(", ")))
            (row("About you", fields.get("letter")))
            (row("Curriculum vitae", fields.get("cv")))
        }
        p { a.button href="/jobs/search" { "Back to the jobs" } }
    }
}

fn application(job: &Job, fields: &Fields, mistakes: &[(&str, &str)]) -> Markup {
    html! {
        nav.crumbs aria-label="Breadcrumb" {
            a href="/jobs/search" { "Jobs" } " › "
            a href={ "/jobs/" (job.number) } { (job.title) } " › Apply"
        }
        h1 { "Apply: " (job.title) }
        p.lead { (job.company) ", " (job.city) }
        @if !mistakes.is_empty() {
            p.notice role="alert" id="errors" { "Please correct " (count(mistakes.len(), "field")) "." }
        }
        form.application.card id="application" action={ "/jobs/" (job.number) "/apply" } method="post"
            enctype="multipart/form-data" novalidate {
            (person(fields, mistakes))
            (choices(fields, mistakes))
            label for="letter" { "About you" }
            textarea id="letter" name="letter" rows="4" { (fields.get("letter")) }
            (told(mistakes, "letter"))
            label for="cv" { "Curriculum vitae (optional)" }
            input type="file" id="cv" name="cv";
            label {
                input type="checkbox" name="consent" id="consent" value="yes" checked[fields.has("consent")];
                " I agree that my application is processed"
            }
            (told(mistakes, "consent"))
            button.primary type="submit" id="send" { "Send application" }
        }
    }
}

/// What is wrong with a field, below it.
fn told(mistakes: &[(&str, &str)], name: &str) -> Markup {
    let wrong = mistakes.iter().find(|(known, _)| *known == name).map(|(_, wrong)| *wrong);
    html! { @if let Some(wrong) = wrong { p.error id={ (name) "-error" } { (wrong) } } }
}

fn person(fields: &Fields, mistakes: &[(&str, &str)]) -> Markup {
    let inputs = [
        ("first_name", "First name", "text"),
        ("last_name", "Last name", "text"),
        ("email", "Email", "email"),
        ("phone", "Phone", "tel"),
        ("start", "Earliest start", "date"),
        ("years", "Years of experience", "number"),
    ];
    html! {
        @for (name, label, kind) in inputs {
            label for=(name) { (label) }
            input type=(kind) id=(name) name=(name) value=(fields.get(name));
            (told(mistakes, name))
        }
    }
}

fn choices(fields: &Fields, mistakes: &[(&str, &str)]) -> Markup {
    html! {
        label for="education" { "Highest education" }
        select id="education" name="education" {
            option value="" { "Choose…" }
            @for level in EDUCATION { option selected[fields.get("education") == level] { (level) } }
        }
        (told(mistakes, "education"))
        fieldset {
            legend { "Do you have a work permit?" }
            @for (value, label) in [("yes", "Yes"), ("no", "No")] {
                label {
                    input type="radio" name="permit" id={ "permit-" (value) } value=(value)
                        checked[fields.get("permit") == value];
                    " " (label)
                }
            }
        }
        (told(mistakes, "permit"))
        fieldset {
            legend { "Skills" }
            @for skill in SKILLS {
                label {
                    input type="checkbox" name="skill" value=(skill)
                        checked[fields.all("skill").any(|chosen| chosen == skill)];
                    " " (skill)
                }
            }
        }
    }
}
