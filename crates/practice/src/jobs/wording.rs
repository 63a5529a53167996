//! The sentences of a job's description, made from its facts.

use super::board::Job;

/// For each field: what one does, and what one should know.
const FIELDS: &[(&str, [&str; 3], [&str; 2])] = &[
    (
        "Engineering",
        [
            "Design, build and test what the next ten years will rely on",
            "Find out why it stopped, and see that it does not again",
            "Write down what you did so that others can follow",
        ],
        [
            "A degree in engineering or the practice that replaces one",
            "Patience with drawings, meters and logs",
        ],
    ),
    (
        "Design",
        [
            "Turn rough wishes into drawings that can be built",
            "Show three versions and defend one",
            "Work next to the people who make it",
        ],
        ["A portfolio with at least five finished pieces", "A steady hand and a good eye for proportion"],
    ),
    (
        "Healthcare",
        [
            "Look after patients from arrival to farewell",
            "Keep records that the next shift can trust",
            "Explain to families what is going on",
        ],
        ["A licence to practise, or the exam for it within a year", "Calm in the third hour of a long night"],
    ),
    (
        "Education",
        [
            "Prepare lessons, texts or tours that people remember",
            "Listen to questions before answering them",
            "Improve the material after every run",
        ],
        ["Joy in explaining the same thing differently", "Spelling that needs no correction"],
    ),
    (
        "Logistics",
        [
            "See that the right thing is at the right place in time",
            "Talk to drivers, harbours and customs",
            "Plan for the day on which everything is late",
        ],
        ["A head for numbers and timetables", "A driving licence or the will to get one"],
    ),
    (
        "Hospitality",
        [
            "Welcome guests as if you had been waiting for them",
            "Keep the house in order on busy days",
            "Solve small problems before they grow",
        ],
        ["Friendliness that lasts until closing time", "A second language at conversation level"],
    ),
    (
        "Finance",
        [
            "Check figures until they agree",
            "Advise customers and colleagues in plain words",
            "Prepare the monthly report",
        ],
        ["A trade school diploma in finance or accounting", "Discretion"],
    ),
    (
        "Crafts",
        [
            "Make, mend and adjust by hand and by machine",
            "Keep tools and workplace in good order",
            "Teach the apprentices what the books leave out",
        ],
        ["A finished apprenticeship or the wish to begin one", "Good hands and sturdy shoes"],
    ),
];

fn of_field(job: &Job) -> Option<&'static (&'static str, [&'static str; 3], [&'static str; 2])> {
    FIELDS.iter().find(|(field, _, _)| *field == job.field)
}

pub(super) fn duties(job: &Job) -> Vec<String> {
    let common = of_field(job).map(|(_, duties, _)| duties.as_slice()).unwrap_or_default();
    let mut duties: Vec<String> = common.iter().map(|duty| format!("{duty}.")).collect();
    duties.push(format!("Work as {} at {} in {}.", job.title.to_lowercase(), job.company, job.city));
    duties
}

pub(super) fn needs(job: &Job) -> Vec<String> {
    let common = of_field(job).map(|(_, _, needs)| needs.as_slice()).unwrap_or_default();
    let mut needs: Vec<String> = common.iter().map(|need| format!("{need}.")).collect();
    needs.push(match job.years_of_experience {
        0 => "No experience needed; we teach what is to be known.".to_owned(),
        1 => "At least one year of experience in a similar place.".to_owned(),
        years => format!("At least {years} years of experience in a similar place."),
    });
    needs
}

pub(super) fn benefits(job: &Job) -> Vec<String> {
    let days = 25 + job.number % 6;
    let place = match job.workplace {
        "Remote" => "Work from wherever there is a desk and a connection.",
        "Hybrid" => "Two days a week at home, three among colleagues.",
        _ => "A warm lunch in the canteen at a fair price.",
    };
    vec![
        format!("A yearly salary between {}.", job.salary().replace(" – ", " and ")),
        format!("{days} days of holiday a year."),
        place.to_owned(),
        "A free railway pass for all six regions.".to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::{super::board::jobs, *};

    #[test]
    fn every_field_has_its_words() {
        assert!(jobs().iter().all(|job| of_field(job).is_some()));
    }
}
