//! Articles on cities.

use super::super::{
    article::{Article, Kind, thousands, variety},
    world::{CITIES, COUNTRY, City, INVENTIONS, PEOPLE, REGIONS},
};
use super::{link, listed};

pub(super) fn article(city: &City) -> Article {
    let capital = REGIONS.iter().any(|region| region.capital == city.name);
    let rank = if capital { "the capital" } else { "a city" };
    let water =
        city.on_river().map_or_else(|| "the Sundersea".to_owned(), |river| format!("the river [[{river}]]"));
    let summary = format!(
        "{0} is {rank} of [[{1}]], one of the six regions of [[{COUNTRY}]]. It lies on {water}, {2} metres \
             above the sea, and had {3} inhabitants at the last census. The city was founded in {4} and is \
             known throughout the country for {5}.",
        city.name,
        city.region,
        city.elevation_m,
        thousands(city.population),
        city.founded,
        city.known_for
    );
    Article::new(city.name, Kind::City, summary)
        .fact("Region", link(city.region))
        .fact("Population", format!("{} (2020)", thousands(city.population)))
        .fact("Founded", city.founded.to_string())
        .fact("Elevation", format!("{} m", city.elevation_m))
        .fact("River", city.on_river().map_or_else(|| "none".to_owned(), link))
        .fact("Mayor", city.mayor)
        .fact("Known for", city.known_for)
        .fact("Landmark", city.landmark)
        .text("Geography", geography(city))
        .table(
            "Climate",
            "Mean temperature and rainfall by season, from the city's own weather station.",
            &["Season", "Temperature (°C)", "Rainfall (mm)"],
            climate(city),
        )
        .text("History", history(city))
        .table(
            "Population",
            "Inhabitants at each census since counting began.",
            &["Year", "Inhabitants"],
            census(city),
        )
        .text("Economy", economy(city))
        .text("Sights", sights(city))
        .text("People", people(city))
        .table(
            "Distances",
            "Distances to the nearest cities as the crow flies.",
            &["City", "Distance (km)"],
            distances(city),
        )
}

fn geography(city: &City) -> [String; 2] {
    let setting = variety(
        city.name,
        1,
        &[
            "The old town stands on a low rise that the floods have never reached, and the newer quarters \
                 spread around it in rings.",
            "Streets run down to the water like the teeth of a comb, and every one of them ends in steps.",
            "Two hills shelter the town from the north wind; the space between them is taken up by gardens.",
            "The centre is small enough to be crossed on foot in a quarter of an hour, the outskirts are \
                 not.",
        ],
    );
    let water = city.on_river().map_or_else(
        || {
            "No river of any size passes the town; its water has come through a stone conduit from the \
             hills since the Middle Ages."
                .to_owned()
        },
        |river| {
            format!(
                "The [[{river}]] passes through the middle of the town and is crossed by {} \
             bridges.",
                2 + city.name.len() % 5
            )
        },
    );
    [
        format!(
            "{} lies in [[{}]] at an elevation of {} metres. {setting}",
            city.name, city.region, city.elevation_m
        ),
        format!(
            "{water} Winters are {} and summers are {}, as the table below shows.",
            if city.elevation_m > 300 { "long and snowy" } else { "short and wet" },
            if city.elevation_m > 300 { "cool" } else { "mild" }
        ),
    ]
}

fn climate(city: &City) -> Vec<Vec<String>> {
    let sea_level = [("Spring", 10_i64, 160), ("Summer", 19, 140), ("Autumn", 12, 210), ("Winter", 4, 190)];
    let colder = i64::from(city.elevation_m / 110);
    sea_level
        .map(|(season, warmth, rain)| {
            vec![
                season.to_owned(),
                (warmth - colder).to_string(),
                (rain + city.elevation_m / 5 + city.x % 30).to_string(),
            ]
        })
        .to_vec()
}

fn history(city: &City) -> [String; 3] {
    let origin = variety(
        city.name,
        2,
        &[
            "a toll station, as the first entry in its chronicle records",
            "a market that was held twice a year",
            "a chapel and eleven farms",
            "a ford with an inn on either side, whose keepers did not speak to each other",
        ],
    );
    let fire = 40 + city.founded % 53;
    [
        format!(
            "The settlement began in {} as {origin}. It received town rights {} years later, which allowed \
                 it to build a wall, keep a gate and tax whatever came through it.",
            city.founded,
            31 + city.founded % 40
        ),
        format!(
            "A fire in 17{fire} destroyed most of the wooden houses. They were rebuilt in brick along the \
                 old streets, so that the plan of the town is still that of the Middle Ages while hardly a \
                 house is older than three hundred years."
        ),
        format!(
            "The railway came in 18{} and with it the factories that made {} an industry. Since then the \
                 town has grown at every census.",
            52 + city.name.len() * 3 % 30,
            city.known_for
        ),
    ]
}

fn census(city: &City) -> Vec<Vec<String>> {
    city.census()
        .into_iter()
        .map(|(year, inhabitants)| vec![year.to_string(), thousands(inhabitants)])
        .collect()
}

fn economy(city: &City) -> [String; 2] {
    let today = variety(
        city.name,
        3,
        &[
            "Today the old workshops share their streets with a technical college and a good many small \
                 firms.",
            "Today the largest employer is the hospital, but the town still measures itself by its trade.",
            "Today much of the work is done by machines, yet every family has somebody who knows how it is \
                 done by hand.",
        ],
    );
    let made = INVENTIONS.iter().find(|invention| invention.place == city.name).map_or_else(
        String::new,
        |invention| {
            format!(" The [[{}]] was built here for the first time, in {}.", invention.name, invention.year)
        },
    );
    [
        format!(
            "The wealth of {} rests on {}. The guild that governed the trade was one of the oldest in \
                 [[{COUNTRY}]], and its house still stands on the market square.{made}",
            city.name, city.known_for
        ),
        format!(
            "{today} A fair for {} is held every second year and brings visitors from all six regions.",
            city.known_for
        ),
    ]
}

fn sights(city: &City) -> [String; 2] {
    let more = variety(
        city.name,
        4,
        &[
            "The town museum next door has a room for every century and a café in the last one.",
            "On summer evenings it is lit by lamps that the townspeople bring themselves.",
            "It appears on the seal of the city, on its manhole covers and on most of its biscuits.",
            "Visitors are told that one wish is granted there; the townspeople have stopped asking.",
        ],
    );
    [
        format!(
            "The best-known sight is {}, which appears on every postcard of {}. {more}",
            city.landmark, city.name
        ),
        format!(
            "The town hall, where mayor {} has the office with the balcony, can be visited on weekdays. \
                 From its tower one sees as far as the next town on a clear day.",
            city.mayor
        ),
    ]
}

fn people(city: &City) -> [String; 1] {
    let born: Vec<String> = PEOPLE
        .iter()
        .filter(|person| person.birthplace == city.name)
        .map(|person| format!("[[{}]] ({}, born {})", person.name, person.occupation, person.born))
        .collect();
    if born.is_empty() {
        return [format!(
            "No entry of this encyclopedia was born in {}, which its citizens regard as an oversight.",
            city.name
        )];
    }
    [format!("{} was born in {}. A street and a school keep the name alive.", listed(&born), city.name)]
}

fn distances(city: &City) -> Vec<Vec<String>> {
    let mut others: Vec<_> = CITIES.iter().filter(|other| other.name != city.name).collect();
    others.sort_by_key(|other| city.distance_km(other));
    others
        .into_iter()
        .take(5)
        .map(|other| vec![link(other.name), city.distance_km(other).to_string()])
        .collect()
}
