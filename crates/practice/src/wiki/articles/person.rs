//! Articles on people and on what they invented.

use super::super::{
    article::{Article, Kind, variety},
    world::{CITIES, COUNTRY, INVENTIONS, Invention, MOUNTAINS, PEOPLE, Person},
};
use super::{link, listed};

pub(super) fn person(person: &Person) -> Article {
    let summary = format!(
        "{0} (born {1} in [[{2}]], died {3}) was {4} from [[{COUNTRY}]], known for {5}.",
        person.name,
        person.born,
        person.birthplace,
        person.died,
        with_article(person.occupation),
        person.known_for
    );
    Article::new(person.name, Kind::Person, summary)
        .fact("Born", format!("{} in [[{}]]", person.born, person.birthplace))
        .fact("Died", format!("{} (aged {})", person.died, person.age()))
        .fact("Occupation", person.occupation)
        .fact("Known for", person.known_for)
        .fact("Teacher", person.taught_by().map_or_else(|| "none known".to_owned(), link))
        .text("Early life", early_life(person))
        .text("Work", work(person))
        .table("Life in dates", "The main dates of a life.", &["Year", "Event"], dates(person))
        .text("Students and influence", influence(person))
        .text("Later life and memory", memory(person))
}

fn with_article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {noun}")
}

fn early_life(person: &Person) -> [String; 2] {
    let home = variety(
        person.name,
        1,
        &[
            "the third of five children of a ferryman and a seamstress",
            "the only child of two schoolteachers",
            "the youngest in a family of bakers, and the only one who rose late",
            "brought up by an aunt who kept bees and accounts",
        ],
    );
    let study = person.taught_by().map_or_else(
        || {
            format!(
                "{} had no teacher of note and later said that this had been an advantage.",
                person.pronoun
            )
        },
        |teacher| {
            format!(
                "{} learned the trade from [[{teacher}]], with whom a long friendship followed.",
                person.pronoun
            )
        },
    );
    let region = CITIES.iter().find(|city| city.name == person.birthplace).map_or("", |city| city.region);
    [
        format!(
            "{} was born in {} in [[{}]], a city in [[{region}]], {home}.",
            person.name, person.born, person.birthplace
        ),
        format!(
            "{study} The first years were spent on small commissions, most of them unpaid, and on reading \
                 whatever the town library would lend."
        ),
    ]
}

fn work(person: &Person) -> [String; 3] {
    let made: Vec<String> = INVENTIONS
        .iter()
        .filter(|invention| invention.inventor == person.name)
        .map(|invention| {
            format!("the [[{}]] in {} in [[{}]]", invention.name, invention.year, invention.place)
        })
        .collect();
    let climbed: Vec<String> = MOUNTAINS
        .iter()
        .filter(|mountain| mountain.climber == person.name)
        .map(|mountain| format!("[[{}]] in {}", mountain.name, mountain.first_ascent))
        .collect();
    let deeds = match (made.is_empty(), climbed.is_empty()) {
        (false, true) => format!("{} presented {}.", person.pronoun, listed(&made)),
        (true, false) => format!("{} was the first to climb {}.", person.pronoun, listed(&climbed)),
        (false, false) => format!(
            "{} presented {} and was the first to climb {}.",
            person.pronoun,
            listed(&made),
            listed(&climbed)
        ),
        (true, true) => format!("{} worked slowly and threw away more than was kept.", person.pronoun),
    };
    let manner = variety(
        person.name,
        2,
        &[
            "Visitors to the workshop were given a chair, an apple and something to hold.",
            "Notebooks from these years fill a shelf and are written in pencil, in a hand that grows \
                 smaller with age.",
            "Letters show a patient correspondent who answered critics first and admirers later.",
        ],
    );
    [
        format!("{} is remembered above all for {}. {deeds}", person.name, person.known_for),
        format!(
            "{manner} Contemporaries describe {} who asked many questions and was rarely content with \
             the answers.",
            with_article(person.occupation)
        ),
        "Not everything succeeded. An attempt to found a school ended after two winters, and a book \
             announced three times never appeared."
            .to_owned(),
    ]
}

fn dates(person: &Person) -> Vec<Vec<String>> {
    let mut dates = vec![
        (person.born, format!("Born in [[{}]]", person.birthplace)),
        (person.died, format!("Died at the age of {}", person.age())),
    ];
    for invention in INVENTIONS.iter().filter(|invention| invention.inventor == person.name) {
        dates.push((invention.year, format!("Presents the [[{}]]", invention.name)));
    }
    for mountain in MOUNTAINS.iter().filter(|mountain| mountain.climber == person.name) {
        dates.push((mountain.first_ascent, format!("First ascent of [[{}]]", mountain.name)));
    }
    dates.sort();
    dates.into_iter().map(|(year, event)| vec![year.to_string(), event]).collect()
}

fn influence(person: &Person) -> [String; 2] {
    let students: Vec<String> = PEOPLE
        .iter()
        .filter(|other| other.taught_by() == Some(person.name))
        .map(|other| link(other.name))
        .collect();
    let taught = if students.is_empty() {
        format!("{} took no students, at least none who became known.", person.name)
    } else {
        format!("Among the students of {} were {}.", person.name, listed(&students))
    };
    [
        taught,
        "Later generations have argued about how much was new and how much was in the air. The archives \
             settle some of these questions and raise others; most of the papers are kept in the library \
             of the birthplace and can be read there by appointment."
            .to_owned(),
    ]
}

fn memory(person: &Person) -> [String; 2] {
    let mark = variety(
        person.name,
        3,
        &[
            "A plaque marks the house, and a bakery in the same street sells a cake of that name.",
            "A statue stands by the station with its back to the trains.",
            "A prize for young people has carried the name for half a century.",
        ],
    );
    [
        format!("{} died in {} at the age of {}. {mark}", person.name, person.died, person.age()),
        format!(
            "In [[{}]] the birthday is still marked by schools with a free afternoon, which may be the \
                 most popular monument of all.",
            person.birthplace
        ),
    ]
}

pub(super) fn invention(invention: &Invention) -> Article {
    let summary = format!(
        "The {0} is an invention of [[{1}]], first shown in {2} in [[{3}]]. It serves for {4}. Its \
             principle is {5}.",
        in_a_sentence(invention),
        invention.inventor,
        invention.year,
        invention.place,
        invention.purpose,
        invention.how
    );
    let inventor_age = PEOPLE
        .iter()
        .find(|person| person.name == invention.inventor)
        .map_or(0, |person| invention.year - person.born);
    Article::new(invention.name, Kind::Invention, summary)
        .fact("Inventor", link(invention.inventor))
        .fact("Year", invention.year.to_string())
        .fact("Place", link(invention.place))
        .fact("Purpose", invention.purpose)
        .fact("Followed by", invention.successor)
        .text("How it works", how_it_works(invention))
        .text(
            "Development",
            [
                format!(
                    "[[{}]] was {inventor_age} years old when the first working example was shown in \
                 [[{}]] in {}. Two earlier models had failed, one of them in front of the mayor.",
                    invention.inventor, invention.place, invention.year
                ),
                format!(
                    "The patent was granted in {} and ran for fifteen years. Most of the money it brought \
                 went into improving it.",
                    invention.year + 2
                ),
            ],
        )
        .table(
            "Spread",
            "Examples in use, as counted by the trade office.",
            &["Year", "In use"],
            spread(invention),
        )
        .text(
            "Use and decline",
            [
                format!(
                    "Within a generation it was in use in all six regions of [[{COUNTRY}]]. It changed the \
                 work of whole towns, and not every town was grateful."
                ),
                format!(
                    "It was followed by {}, which did the same faster. Working examples are kept in \
                 several museums, and the one in [[{}]] is demonstrated on the first Sunday of the month.",
                    invention.successor, invention.place
                ),
            ],
        )
}

/// Small letters, unless it begins with its inventor's name.
fn in_a_sentence(invention: &Invention) -> String {
    let named = invention.name.split(' ').next().is_some_and(|word| invention.inventor.ends_with(word));
    if named { invention.name.to_owned() } else { invention.name.to_lowercase() }
}

fn how_it_works(invention: &Invention) -> [String; 3] {
    let care = variety(
        invention.name,
        1,
        &[
            "It wants oil every day and a new bearing every year.",
            "It is louder than one expects and slower than one fears.",
            "A child can run it; it takes a mechanic to stop it.",
        ],
    );
    [
        format!(
            "The device serves for {}. At its heart is a simple idea: {}.",
            invention.purpose, invention.how
        ),
        format!("{care} The first examples were built of wood and iron, later ones entirely of steel."),
        "Contemporary descriptions differ in detail because every workshop built it a little differently. \
             What they share is the proportion of the parts, which follows a rule that the inventor \
             published in a pamphlet of eleven pages."
            .to_owned(),
    ]
}

fn spread(invention: &Invention) -> Vec<Vec<String>> {
    let pace = 3 + invention.year % 7;
    [(5, 1), (10, 4), (20, 15), (40, 52)]
        .map(|(later, many)| vec![(invention.year + later).to_string(), (many * pace * 4).to_string()])
        .to_vec()
}
