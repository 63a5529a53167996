//! The country itself and the lists that compare its parts.

use super::super::{
    article::{Article, Kind, thousands},
    world::{CITIES, COUNTRY, INVENTIONS, LAKES, MOUNTAINS, PEOPLE, REGIONS, RIVERS},
};
use super::{link, listed};

pub(super) fn articles() -> Vec<Article> {
    vec![country(), cities(), rivers(), mountains(), people(), inventions()]
}

fn country() -> Article {
    let population: u32 = REGIONS.iter().map(|region| region.population).sum();
    let area: u32 = REGIONS.iter().map(|region| region.area_km2).sum();
    let names: Vec<String> = REGIONS.iter().map(|region| link(region.name)).collect();
    let summary = format!(
        "{COUNTRY} is a republic on the Sundersea. It consists of six regions, {}, covers {} square \
             kilometres and has {} inhabitants.",
        listed(&names),
        thousands(area),
        thousands(population)
    );
    let regions = REGIONS
        .iter()
        .map(|region| {
            let area = thousands(region.area_km2);
            vec![
                link(region.name),
                link(region.capital),
                area,
                thousands(region.population),
                region.joined.to_string(),
            ]
        })
        .collect();
    Article::new(COUNTRY, Kind::Overview, summary)
        .fact("Regions", REGIONS.len().to_string())
        .fact("Area", format!("{} km²", thousands(area)))
        .fact("Population", thousands(population))
        .fact("Cities", "[[List of cities]]")
        .fact("Currency", "mark")
        .table("Regions", "The six regions and when they joined the union.", &["Region", "Capital", "Area (km²)", "Population", "Joined"], regions)
        .text("Geography", [
            "The country falls from the moors of the north to the harbours of the south-west. Its rivers \
                 are described in the [[List of rivers]], its heights in the [[List of mountains]].".to_owned(),
            format!("The largest lakes are {}.", listed(&LAKES.iter().map(|lake| link(lake.name)).collect::<Vec<_>>())),
        ])
        .text("History", [
            "The union began with a treaty between harbour towns and grew inland within one generation. It \
                 has known two constitutions, the second of which is shorter.".to_owned(),
            "The nineteenth century was the age of workshops, told by the [[List of inventions]] and by \
                 the lives collected in the [[List of people]].".to_owned(),
        ])
        .text("Government and daily life", [
            "Every region has an assembly of its own. The republic looks after the railways, the \
                 lighthouses and the weights and measures, and leaves most of the rest to the regions.".to_owned(),
            "Shops close at noon on Wednesdays, trains leave on the minute and letters posted before ten \
                 arrive the same day. Visitors remark on the number of clocks, of which no two in a town \
                 may differ by more than a minute; the inspectors are elected.".to_owned(),
            "The school year begins after the harvest. Children learn to swim, to read a map and to mend a \
                 net before they learn a second language.".to_owned(),
        ])
}

fn cities() -> Article {
    let summary = format!(
        "This list shows the {} cities of [[{COUNTRY}]] with their regions, inhabitants, ages and \
             elevations.",
        CITIES.len()
    );
    let rows = CITIES
        .iter()
        .map(|city| {
            vec![
                link(city.name),
                link(city.region),
                thousands(city.population),
                city.founded.to_string(),
                city.elevation_m.to_string(),
                city.mayor.to_owned(),
            ]
        })
        .collect();
    list("List of cities", summary)
        .table(
            "Cities",
            "A click on a heading sorts the table.",
            &["City", "Region", "Population", "Founded", "Elevation (m)", "Mayor"],
            rows,
        )
        .text(
            "Notes",
            notes(
                "a place counts as a city when it has a market, a school with two floors and \
             a clock that can be seen from the station",
            ),
        )
        .text("Sources", sources())
}

fn rivers() -> Article {
    let summary = format!(
        "This list shows the {} rivers of [[{COUNTRY}]] with their lengths, sources and mouths.",
        RIVERS.len()
    );
    let rows = RIVERS
        .iter()
        .map(|river| {
            vec![
                link(river.name),
                river.length_km.to_string(),
                link(river.source),
                river.mouth.to_owned(),
                thousands(river.basin_km2),
                river.discharge_m3s.to_string(),
            ]
        })
        .collect();
    list("List of rivers", summary)
        .table(
            "Rivers",
            "A click on a heading sorts the table.",
            &["River", "Length (km)", "Source", "Mouth", "Basin (km²)", "Discharge (m³/s)"],
            rows,
        )
        .text(
            "Notes",
            notes("a stream counts as a river when a boat of two metres can be rowed on it in August"),
        )
        .text("Sources", sources())
}

fn mountains() -> Article {
    let summary = format!(
        "This list shows the {} named mountains of [[{COUNTRY}]] with their elevations and first ascents.",
        MOUNTAINS.len()
    );
    let rows = MOUNTAINS
        .iter()
        .map(|mountain| {
            vec![
                link(mountain.name),
                thousands(mountain.elevation_m),
                link(mountain.region),
                mountain.first_ascent.to_string(),
                link(mountain.climber),
            ]
        })
        .collect();
    list("List of mountains", summary)
        .table(
            "Mountains",
            "A click on a heading sorts the table.",
            &["Mountain", "Elevation (m)", "Region", "First ascent", "Climber"],
            rows,
        )
        .text(
            "Notes",
            notes(
                "a height counts as a mountain when snow lies on it for a month and somebody \
             has quarrelled about its name",
            ),
        )
        .text("Sources", sources())
}

fn people() -> Article {
    let summary = format!(
        "This list shows the {} people of [[{COUNTRY}]] who have an article of their own.",
        PEOPLE.len()
    );
    let rows = PEOPLE
        .iter()
        .map(|person| {
            vec![
                link(person.name),
                person.occupation.to_owned(),
                person.born.to_string(),
                person.died.to_string(),
                link(person.birthplace),
            ]
        })
        .collect();
    list("List of people", summary)
        .table(
            "People",
            "A click on a heading sorts the table.",
            &["Name", "Occupation", "Born", "Died", "Birthplace"],
            rows,
        )
        .text(
            "Notes",
            notes("a person is listed when a street has been named for them in more than one town"),
        )
        .text("Sources", sources())
}

fn inventions() -> Article {
    let summary = format!(
        "This list shows the {} inventions from [[{COUNTRY}]] that have an article of their own.",
        INVENTIONS.len()
    );
    let rows = INVENTIONS
        .iter()
        .map(|invention| {
            vec![
                link(invention.name),
                link(invention.inventor),
                invention.year.to_string(),
                link(invention.place),
                invention.purpose.to_owned(),
            ]
        })
        .collect();
    list("List of inventions", summary)
        .table(
            "Inventions",
            "A click on a heading sorts the table.",
            &["Invention", "Inventor", "Year", "Place", "Purpose"],
            rows,
        )
        .text("Notes", notes("an invention is listed when it was built at least a hundred times"))
        .text("Sources", sources())
}

fn list(title: &str, summary: String) -> Article {
    Article::new(title, Kind::Overview, summary).fact("Country", link(COUNTRY))
}

fn notes(rule: &str) -> [String; 3] {
    [
        format!(
            "The rule of this list is that {rule}. Borderline cases are discussed every year and \
             decided every tenth."
        ),
        "Numbers are those of the last census or survey and are rounded as the source rounds them. Where \
             two sources differ the more recent one is given, and where they are of the same year the \
             smaller number is given, on the principle that nobody has ever complained of being pleasantly \
             surprised."
            .to_owned(),
        "Names are spelled as on the official map of the republic. Older spellings, of which some places \
             have as many as nine, are given in the articles themselves and not here."
            .to_owned(),
    ]
}

fn sources() -> [String; 3] {
    [
        "The table follows the yearbook of the statistical office, which appears every spring in a grey \
             cover and is corrected every autumn on a loose sheet."
            .to_owned(),
        "Lengths and elevations are those of the second survey. The first survey, whose numbers can still \
             be found on old signposts, measured from the wrong church."
            .to_owned(),
        "Readers who find a mistake are asked to write to the editors, who reply to every letter, and to \
             enclose evidence, which they return. In an average year the editors receive four hundred \
             letters, correct thirty entries and change their minds twice. The correspondence is kept for \
             twenty years and may be consulted by anybody who brings their own pencil."
            .to_owned(),
    ]
}
