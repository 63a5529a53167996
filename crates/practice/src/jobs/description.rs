//! The description of a job: duties, requirements and benefits.

use std::sync::LazyLock;

use serde::Deserialize;

use super::postings::Job;
use crate::data;

/// What the jobs of one field have in common.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    name: &'static str,
    #[serde(borrow)]
    duties: Vec<&'static str>,
    #[serde(borrow)]
    requirements: Vec<&'static str>,
}

static FIELDS: LazyLock<Vec<Field>> = LazyLock::new(|| data::load!("jobs/fields.json"));

fn field(job: &Job) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.name == job.field)
}

fn to_strings(texts: Option<&Vec<&str>>) -> Vec<String> {
    texts.into_iter().flatten().map(|text| (*text).to_owned()).collect()
}

pub(super) fn duties(job: &Job) -> Vec<String> {
    let mut duties = to_strings(field(job).map(|field| &field.duties));
    duties.push(format!("Work as {} at {} in {}.", job.title.to_lowercase(), job.company, job.city));
    duties
}

pub(super) fn requirements(job: &Job) -> Vec<String> {
    let mut requirements = to_strings(field(job).map(|field| &field.requirements));
    requirements.push(match job.years_of_experience {
        0 => "No experience needed; we teach what is to be known.".to_owned(),
        1 => "At least one year of experience in a similar place.".to_owned(),
        years => format!("At least {years} years of experience in a similar place."),
    });
    requirements
}

pub(super) fn benefits(job: &Job) -> Vec<String> {
    let days = 25 + job.number % 6;
    let workplace = match job.workplace {
        "Remote" => "Work from wherever there is a desk and a connection.",
        "Hybrid" => "Two days a week at home, three among colleagues.",
        _ => "A warm lunch in the canteen at a fair price.",
    };
    vec![
        format!("A yearly salary between {}.", job.salary().replace(" – ", " and ")),
        format!("{days} days of holiday a year."),
        workplace.to_owned(),
        "A free railway pass for all six regions.".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::{super::postings::jobs, *};

    #[test]
    fn every_field_has_a_description() {
        assert!(jobs().iter().all(|job| field(job).is_some()));
    }
}
