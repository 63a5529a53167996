//! The application form: validated field by field, then confirmed with all submitted values.

use axum::{
    extract::{Multipart, Path, multipart::MultipartError},
    http::StatusCode,
    response::{IntoResponse, Response},
};
use maud::{Markup, html};

use super::{
    pages::{not_found, page},
    postings::{self, Job, format_date, is_date},
};
use crate::{
    forms::{Fields, is_email, reference_number},
    html::count,
};

const EDUCATION: [&str; 5] = ["School", "Apprenticeship", "Bachelor", "Master", "Doctorate"];
const SKILLS: [&str; 6] =
    ["Teamwork", "Planning", "Languages", "Driving licence", "First aid", "Programming"];
const MAX_LETTER_CHARS: usize = 2000;

pub(super) async fn form(Path(number): Path<String>) -> Response {
    match find(&number) {
        Some(job) => page("Apply", &application(job, &Fields::default(), &[])),
        None => not_found("job"),
    }
}

fn find(number: &str) -> Option<&'static Job> {
    number.parse().ok().and_then(postings::find)
}

pub(super) async fn submit(Path(number): Path<String>, body: Multipart) -> Response {
    let Some(job) = find(&number) else { return not_found("job") };
    let fields = match read_fields(body).await {
        Ok(fields) => fields,
        Err(error) => {
            let body = html! { h1 { "That could not be read" } p { (error.body_text()) } };
            return (error.status(), page("Apply", &body)).into_response();
        }
    };
    let errors = validate(&fields);
    if errors.is_empty() {
        return page("Application received", &confirmation(job, &fields));
    }
    (StatusCode::UNPROCESSABLE_ENTITY, page("Apply", &application(job, &fields, &errors))).into_response()
}

/// Reads the fields. Of a file only the name and size are kept.
async fn read_fields(mut body: Multipart) -> Result<Fields, MultipartError> {
    let mut fields = Fields::default();
    while let Some(field) = body.next_field().await? {
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

/// Returns the invalid fields with their error messages.
fn validate(fields: &Fields) -> Vec<(&'static str, &'static str)> {
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
            fields.get("letter").chars().count() > MAX_LETTER_CHARS,
            "Please keep it under 2000 characters.",
        ),
        ("consent", !fields.has("consent"), "Please agree to the processing of your application."),
    ];
    checks
        .into_iter()
        .filter(|(_, is_invalid, _)| *is_invalid)
        .map(|(name, _, message)| (name, message))
        .collect()
}

fn is_phone(text: &str) -> bool {
    text.chars().filter(char::is_ascii_digit).count() >= 6 && !text.contains(char::is_alphabetic)
}

/// Derives the reference number from the job and the answers alone, so that it is reproducible.
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
            (row("Earliest start", &format_date(fields.get("start"))))
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

fn application(job: &Job, fields: &Fields, errors: &[(&str, &str)]) -> Markup {
    html! {
        nav.crumbs aria-label="Breadcrumb" {
            a href="/jobs/search" { "Jobs" } " › "
            a href={ "/jobs/" (job.number) } { (job.title) } " › Apply"
        }
        h1 { "Apply: " (job.title) }
        p.lead { (job.company) ", " (job.city) }
        @if !errors.is_empty() {
            p.notice role="alert" id="errors" { "Please correct " (count(errors.len(), "field")) "." }
        }
        form.application.card id="application" action={ "/jobs/" (job.number) "/apply" } method="post"
            enctype="multipart/form-data" novalidate {
            (text_inputs(fields, errors))
            (choice_inputs(fields, errors))
            label for="letter" { "About you" }
            textarea id="letter" name="letter" rows="4" { (fields.get("letter")) }
            (error_message(errors, "letter"))
            label for="cv" { "Curriculum vitae (optional)" }
            input type="file" id="cv" name="cv";
            label {
                input type="checkbox" name="consent" id="consent" value="yes" checked[fields.has("consent")];
                " I agree that my application is processed"
            }
            (error_message(errors, "consent"))
            button.primary type="submit" id="send" { "Send application" }
        }
    }
}

/// Renders the error message of a field.
fn error_message(errors: &[(&str, &str)], name: &str) -> Markup {
    let message = errors.iter().find(|(field, _)| *field == name).map(|(_, message)| *message);
    html! { @if let Some(message) = message { p.error id={ (name) "-error" } { (message) } } }
}

fn text_inputs(fields: &Fields, errors: &[(&str, &str)]) -> Markup {
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
            (error_message(errors, name))
        }
    }
}

fn choice_inputs(fields: &Fields, errors: &[(&str, &str)]) -> Markup {
    html! {
        label for="education" { "Highest education" }
        select id="education" name="education" {
            option value="" { "Choose…" }
            @for level in EDUCATION { option selected[fields.get("education") == level] { (level) } }
        }
        (error_message(errors, "education"))
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
        (error_message(errors, "permit"))
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
