//! Articles on regions.

use super::super::{
    article::{Article, Kind, thousands, variety},
    world::{CITIES, COUNTRY, LAKES, MOUNTAINS, REGIONS, Region},
};
use super::{link, listed};

pub(super) fn article(region: &Region) -> Article {
    let density = region.population / region.area_km2;
    let summary = format!(
        "{0} is one of the six regions of [[{COUNTRY}]]. It covers {1} square kilometres of {2} and has \
             {3} inhabitants, about {density} to the square kilometre. Its capital is [[{4}]] and its \
             emblem is the {5}.",
        region.name,
        thousands(region.area_km2),
        region.character,
        thousands(region.population),
        region.capital,
        region.emblem
    );
    Article::new(region.name, Kind::Region, summary)
        .fact("Capital", link(region.capital))
        .fact("Area", format!("{} km²", thousands(region.area_km2)))
        .fact("Population", thousands(region.population))
        .fact("Joined", region.joined.to_string())
        .fact("Emblem", region.emblem)
        .text("Geography", geography(region))
        .table(
            "Cities",
            "Cities of the region by name.",
            &["City", "Population", "Founded", "Elevation (m)"],
            cities(region),
        )
        .text("History", history(region))
        .text("Government", government(region))
        .text("Culture", culture(region))
}

fn geography(region: &Region) -> [String; 3] {
    let mountains: Vec<String> = MOUNTAINS
        .iter()
        .filter(|mountain| mountain.region == region.name)
        .map(|mountain| format!("[[{}]] ({} m)", mountain.name, thousands(mountain.elevation_m)))
        .collect();
    let lakes: Vec<String> =
        LAKES.iter().filter(|lake| lake.region == region.name).map(|lake| link(lake.name)).collect();
    let heights = if mountains.is_empty() {
        "No mountain of note rises in the region; its highest point is a hill with a water tower.".to_owned()
    } else {
        format!("Its best-known heights are {}.", listed(&mountains))
    };
    let waters = if lakes.is_empty() {
        "There are ponds and reservoirs, but no large lake.".to_owned()
    } else {
        format!("Among its lakes are {}.", listed(&lakes))
    };
    let shape = variety(
        region.name,
        1,
        &[
            "On the map the region looks like a hand with the thumb held out, and children learn its towns \
                 on their fingers.",
            "Its borders follow watersheds rather than rivers, an arrangement that has saved it many a \
                 quarrel.",
            "Two old roads cross the region and meet a day's walk from its capital.",
        ],
    );
    [
        format!("{} is a country of {}. {shape}", region.name, region.character),
        format!("{heights} {waters}"),
        "Roads and railways follow the valleys. A journey from one end of the region to the other takes \
             about half a day by train and was a matter of a week in the time of the coaches."
            .to_owned(),
    ]
}

fn cities(region: &Region) -> Vec<Vec<String>> {
    let mut cities: Vec<_> = CITIES.iter().filter(|city| city.region == region.name).collect();
    cities.sort_by_key(|city| city.name);
    cities
        .into_iter()
        .map(|city| {
            vec![
                link(city.name),
                thousands(city.population),
                city.founded.to_string(),
                city.elevation_m.to_string(),
            ]
        })
        .collect()
}

fn history(region: &Region) -> [String; 2] {
    let place = 1 + REGIONS.iter().filter(|other| other.joined < region.joined).count();
    let order = ["first", "second", "third", "fourth", "fifth", "sixth"].get(place - 1).unwrap_or(&"last");
    [
        format!(
            "Before the union the land belonged to a league of towns and abbeys that agreed on little \
                 except the price of salt. {} joined [[{COUNTRY}]] in {}, as the {order} of the six \
                 regions.",
            region.name, region.joined
        ),
        format!(
            "The treaty was signed in [[{}]], which has been the seat of the regional assembly ever since. \
                 The original can be seen there; it is mostly about bridges.",
            region.capital
        ),
    ]
}

fn government(region: &Region) -> [String; 2] {
    [
        format!(
            "The regional assembly meets in [[{}]] and has {} members, one for every twenty thousand \
             inhabitants. It decides on schools, roads and forests; everything else is a matter for the \
             republic.",
            region.capital,
            region.population / 20_000
        ),
        "Elections are held every four years in the first week of May. Members may serve three terms and \
             no more, a rule that dates from a quarrel nobody remembers."
            .to_owned(),
    ]
}

fn culture(region: &Region) -> [String; 2] {
    let custom = variety(
        region.name,
        2,
        &[
            "On the longest day of the year lanterns are set on the water, one for every child born since \
                 the last.",
            "In autumn the towns race each other with hand carts, and the slowest pays for supper.",
            "At midwinter bread is baked in the shape of the emblem and given to strangers first.",
        ],
    );
    [
        format!(
            "The {} stands on the flag of {}, on its coins and above the doors of its schools. {custom}",
            region.emblem, region.name
        ),
        "The dialect is understood everywhere in the country but imitated only by comedians. Its songs are \
             slow, have many verses and end badly for the miller."
            .to_owned(),
    ]
}
