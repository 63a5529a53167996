//! Tasks in the encyclopedia.

use std::cmp::Reverse;

use super::{Question, unique_max};
use crate::wiki::{
    article::{slug, thousands},
    world::{City, Person, world},
};

fn question(
    id: &'static str,
    difficulty: i64,
    topic: &'static str,
    text: &str,
    answer: impl Into<String>,
    articles: &[&str],
) -> Question {
    let criteria = articles
        .iter()
        .map(|title| format!("The article “{title}” was opened and the fact in question is visible."))
        .collect();
    Question {
        site: "wiki",
        domain: "Reference",
        topic,
        id,
        difficulty,
        text: text.to_owned(),
        start: "/wiki/".to_owned(),
        criteria,
        answer: answer.into(),
    }
}

fn starting_at(mut question: Question, title: &str) -> Question {
    question.start = format!("/wiki/a/{}", slug(title));
    question
}

fn city(name: &str) -> Option<&'static City> {
    world().cities.iter().find(|city| city.name == name)
}

fn person(name: &str) -> Option<&'static Person> {
    world().people.iter().find(|person| person.name == name)
}

pub(super) fn questions() -> Vec<Option<Question>> {
    vec![
        length_on_page(),
        inventor_on_page(),
        founding_of_a_city(),
        elevation_of_a_mountain(),
        mayor_of_a_city(),
        census_of_a_city(),
        smallest_region(),
        third_longest_river(),
        birthplace_of_the_teacher(),
        source_of_the_river(),
        age_of_the_inventor(),
        capital_by_mountain(),
        three_largest_cities(),
        chain_of_teachers(),
        highest_and_lowest(),
        over_75_from_the_highest_city(),
        rivers_into_the_sea(),
    ]
}

fn length_on_page() -> Option<Question> {
    let river = world().rivers.iter().find(|river| river.name == "Varrow")?;
    let answer = format!("{} km", river.length_km);
    Some(starting_at(
        question("length-of-the-varrow", 1, "Rivers", "How long is the river Varrow?", answer, &["Varrow"]),
        "Varrow",
    ))
}

fn inventor_on_page() -> Option<Question> {
    let invention = world().inventions.iter().find(|invention| invention.name == "Tide clock")?;
    Some(starting_at(
        question(
            "inventor-of-the-tide-clock",
            1,
            "Inventions",
            "Who invented the tide clock?",
            invention.inventor,
            &["Tide clock"],
        ),
        "Tide clock",
    ))
}

fn founding_of_a_city() -> Option<Question> {
    let city = city("Tessary")?;
    Some(question(
        "founding-of-tessary",
        2,
        "Cities",
        "In which year was the city of Tessary founded?",
        city.founded.to_string(),
        &["Tessary"],
    ))
}

fn elevation_of_a_mountain() -> Option<Question> {
    let mountain = world().mountains.iter().find(|mountain| mountain.name == "Stag Peak")?;
    Some(question(
        "elevation-of-stag-peak",
        2,
        "Mountains",
        "How many metres high is Stag Peak?",
        format!("{} m", thousands(mountain.elevation_m)),
        &["Stag Peak"],
    ))
}

fn mayor_of_a_city() -> Option<Question> {
    Some(question(
        "mayor-of-greywater",
        3,
        "Cities",
        "Who is the mayor of Greywater?",
        city("Greywater")?.mayor,
        &["Greywater"],
    ))
}

fn census_of_a_city() -> Option<Question> {
    let (_, inhabitants) = city("Marstow")?.census().into_iter().find(|(year, _)| *year == 1950)?;
    Some(question(
        "census-of-marstow",
        3,
        "Cities",
        "How many inhabitants did Marstow have at the census of 1950?",
        thousands(inhabitants),
        &["Marstow"],
    ))
}

fn smallest_region() -> Option<Question> {
    let region = unique_max(&world().regions, |region| Reverse(region.population))?;
    let text = "Which of the six regions of Aldermark has the fewest inhabitants?";
    Some(question("smallest-region", 4, "Regions", text, region.name, &["Aldermark", region.name]))
}

fn third_longest_river() -> Option<Question> {
    let mut rivers: Vec<_> = world().rivers.iter().collect();
    rivers.sort_by_key(|river| Reverse(river.length_km));
    let [_, second, third, fourth, ..] = rivers.as_slice() else { return None };
    (second.length_km > third.length_km && third.length_km > fourth.length_km).then_some(())?;
    Some(question(
        "third-longest-river",
        4,
        "Rivers",
        "Which is the third longest river of Aldermark?",
        third.name,
        &["List of rivers", third.name],
    ))
}

fn birthplace_of_the_teacher() -> Option<Question> {
    let teacher = person(person("Henrik Salo")?.teacher?)?;
    let text = "In which city was the teacher of the optician Henrik Salo born?";
    Some(question(
        "birthplace-of-the-teacher",
        5,
        "People",
        text,
        teacher.birthplace,
        &["Henrik Salo", teacher.name],
    ))
}

fn source_of_the_river() -> Option<Question> {
    let river = world()
        .rivers
        .iter()
        .find(|river| Some(river.name) == city("Corvane").and_then(|city| city.river))?;
    let text = "On which mountain does the river rise that flows through Corvane?";
    Some(question("source-of-the-river", 5, "Rivers", text, river.source, &["Corvane", river.name]))
}

fn age_of_the_inventor() -> Option<Question> {
    let invention = world().inventions.iter().find(|invention| invention.name == "Falk turbine")?;
    let inventor = person(invention.inventor)?;
    let text = "How many years after the birth of its inventor was the Falk turbine first shown?";
    Some(question(
        "age-of-the-inventor",
        6,
        "Inventions",
        text,
        (invention.year - inventor.born).to_string(),
        &["Falk turbine", inventor.name],
    ))
}

fn capital_by_mountain() -> Option<Question> {
    let mountain = world().mountains.iter().find(|mountain| mountain.name == "Needle Rock")?;
    let region = world().regions.iter().find(|region| region.name == mountain.region)?;
    let text = "What is the capital of the region in which Needle Rock rises?";
    Some(question("capital-by-mountain", 6, "Regions", text, region.capital, &["Needle Rock", region.name]))
}

fn three_largest_cities() -> Option<Question> {
    let mut cities: Vec<_> = world().cities.iter().collect();
    cities.sort_by_key(|city| Reverse(city.population));
    let [first, second, third, fourth, ..] = cities.as_slice() else { return None };
    (third.population > fourth.population).then_some(())?;
    let total = first.population + second.population + third.population;
    let text = "How many inhabitants do the three largest cities of Aldermark have together?";
    Some(question(
        "three-largest-cities",
        7,
        "Cities",
        text,
        thousands(total),
        &[first.name, second.name, third.name],
    ))
}

fn chain_of_teachers() -> Option<Question> {
    let mut chain = vec![person("Ines Morrow")?];
    while let Some(teacher) = chain.last().and_then(|last| last.teacher) {
        chain.push(person(teacher)?);
    }
    let names: Vec<_> = chain.iter().map(|person| person.name).collect();
    let text = "Start with the astronomer Ines Morrow and go from teacher to teacher: who is the first in \
         this chain who had no known teacher?";
    Some(question("chain-of-teachers", 8, "People", text, *names.last()?, &names))
}

fn highest_and_lowest() -> Option<Question> {
    let highest = unique_max(&world().mountains, |mountain| mountain.elevation_m)?;
    let lowest = unique_max(&world().mountains, |mountain| Reverse(mountain.elevation_m))?;
    let difference = thousands(highest.elevation_m - lowest.elevation_m);
    let text = "By how many metres is the highest mountain of Aldermark higher than the lowest of its \
         named mountains?";
    Some(question(
        "highest-and-lowest",
        8,
        "Mountains",
        text,
        format!("{difference} m"),
        &["List of mountains", highest.name, lowest.name],
    ))
}

fn over_75_from_the_highest_city() -> Option<Question> {
    let old = world().people.iter().filter(|person| person.age() > 75);
    let found = unique_max(old, |person| city(person.birthplace).map(|city| city.elevation_m))?;
    let text = "Of the people in the encyclopedia who lived longer than 75 years, who was born in the \
         city with the highest elevation?";
    Some(question(
        "old-and-from-high-up",
        9,
        "People",
        text,
        found.name,
        &["List of people", "List of cities", found.name],
    ))
}

fn rivers_into_the_sea() -> Option<Question> {
    let into_the_sea: Vec<_> = world().rivers.iter().filter(|river| river.mouth == "the Sundersea").collect();
    (into_the_sea.len() > 1).then_some(())?;
    let total: u32 = into_the_sea.iter().map(|river| river.length_km).sum();
    let names: Vec<_> = into_the_sea.iter().map(|river| river.name).collect();
    let text = "What is the total length of those rivers of Aldermark that flow directly into the Sundersea?";
    Some(question("rivers-into-the-sea", 9, "Rivers", text, format!("{total} km"), &names))
}
