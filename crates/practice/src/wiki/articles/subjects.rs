//! The facts that each kind of article is rendered from: the record itself, derived numbers and related records.

use super::{
    super::world::{City, Invention, Lake, Mountain, Person, Region, River, world},
    template::Facts,
};

pub(super) fn country() -> Facts {
    let regions = &world().regions;
    Facts::default()
        .with("population", regions.iter().map(|region| region.population).sum::<u32>())
        .with("area_km2", regions.iter().map(|region| region.area_km2).sum::<u32>())
        .with("region_count", regions.len())
        .with_records("regions", regions)
        .with_records("lakes", &world().lakes)
}

/// The records of a list article.
pub(super) fn list(name: &'static str) -> Facts {
    let world = world();
    let facts = Facts::default();
    match name {
        "cities" => facts.with("count", world.cities.len()).with_records(name, &world.cities),
        "rivers" => facts.with("count", world.rivers.len()).with_records(name, &world.rivers),
        "mountains" => facts.with("count", world.mountains.len()).with_records(name, &world.mountains),
        "people" => facts.with("count", world.people.len()).with_records(name, &world.people),
        "inventions" => facts.with("count", world.inventions.len()).with_records(name, &world.inventions),
        _ => facts,
    }
}

pub(super) fn region(region: &Region) -> Facts {
    const ORDINALS: [&str; 6] = ["first", "second", "third", "fourth", "fifth", "sixth"];
    let world = world();
    let joined_before = world.regions.iter().filter(|other| other.joined < region.joined).count();
    let mut cities: Vec<_> = world.cities.iter().filter(|city| city.region == region.name).collect();
    cities.sort_by_key(|city| city.name);
    Facts::of(region)
        .with("density", region.population / region.area_km2)
        .with("order", *ORDINALS.get(joined_before).unwrap_or(&"last"))
        .with("assembly_members", region.population / 20_000)
        .with_records("cities", cities)
        .with_records("mountains", world.mountains.iter().filter(|mountain| mountain.region == region.name))
        .with_records("lakes", world.lakes.iter().filter(|lake| lake.region == region.name))
}

pub(super) fn city(city: &City) -> Facts {
    let world = world();
    let invention = world.inventions.iter().find(|invention| invention.place == city.name);
    let mut others: Vec<_> = world.cities.iter().filter(|other| other.name != city.name).collect();
    others.sort_by_key(|other| city.distance_km(other));
    let nearest =
        others.into_iter().take(5).map(|other| Facts::of(other).with("distance_km", city.distance_km(other)));
    let census = city.census().into_iter();
    Facts::of(city)
        .with("is_capital", world.regions.iter().any(|region| region.capital == city.name))
        .with("is_high", city.elevation_m > 300)
        .with("bridges", 2 + city.name.len() % 5)
        .with("years_to_town_rights", 31 + city.founded % 40)
        .with("year_of_fire", 1740 + city.founded % 53)
        .with("year_of_railway", 1852 + city.name.len() * 3 % 30)
        .with("invention", invention.map(|invention| invention.name))
        .with("invention_year", invention.map(|invention| invention.year))
        .with_records("natives", world.people.iter().filter(|person| person.birthplace == city.name))
        .with_list("seasons", climate(city))
        .with_list(
            "census",
            census.map(|(year, inhabitants)| {
                Facts::default().with("year", year).with("inhabitants", inhabitants)
            }),
        )
        .with_list("nearest_cities", nearest)
}

fn climate(city: &City) -> impl Iterator<Item = Facts> {
    const AT_SEA_LEVEL: [(&str, i64, u32); 4] =
        [("Spring", 10, 160), ("Summer", 19, 140), ("Autumn", 12, 210), ("Winter", 4, 190)];
    let (colder, wetter) = (i64::from(city.elevation_m / 110), city.elevation_m / 5 + city.x % 30);
    AT_SEA_LEVEL.into_iter().map(move |(season, temperature, rainfall)| {
        Facts::default()
            .with("season", season)
            .with("temperature", temperature - colder)
            .with("rainfall", rainfall + wetter)
    })
}

pub(super) fn river(river: &River) -> Facts {
    const SEASONS: [(&str, u32); 4] = [("Spring", 150), ("Summer", 60), ("Autumn", 85), ("Winter", 105)];
    let world = world();
    let longer = world.rivers.iter().filter(|other| other.length_km > river.length_km).count();
    let discharge = |(season, percent): (&str, u32)| {
        Facts::default().with("season", season).with("discharge", river.discharge_m3s * percent / 100)
    };
    Facts::of(river)
        .with("rank", longer + 1)
        .with("river_count", world.rivers.len())
        .with("mouth_river", river.mouth_river())
        .with("is_long", river.length_km > 200)
        .with_records("cities", world.cities.iter().filter(|city| city.river == Some(river.name)))
        .with_records("lakes", world.lakes.iter().filter(|lake| lake.river == river.name))
        .with_records(
            "tributaries",
            world.rivers.iter().filter(|other| other.mouth_river() == Some(river.name)),
        )
        .with_list("seasons", SEASONS.map(discharge))
}

pub(super) fn mountain(mountain: &Mountain) -> Facts {
    // The climb in percent of the elevation.
    const ROUTES: [(&str, u32); 3] = [("South ridge", 40), ("West gully", 48), ("North face", 55)];
    let world = world();
    let higher = world.mountains.iter().filter(|other| other.elevation_m > mountain.elevation_m).count();
    let route = |(route, percent): (&str, u32)| {
        let climb = mountain.elevation_m * percent / 100;
        Facts::default().with("route", route).with("climb_m", climb).with("hours", climb / 300 + 1)
    };
    Facts::of(mountain)
        .with("rank", higher + 1)
        .with("snow_months", 2 + mountain.elevation_m / 500)
        .with_records("springs", world.rivers.iter().filter(|river| river.source == mountain.name))
        .with_list("routes", ROUTES.map(route))
}

pub(super) fn lake(lake: &Lake) -> Facts {
    const SHALLOW_WATER: [(&str, u32); 4] = [("Spring", 8), ("Summer", 20), ("Autumn", 12), ("Winter", 3)];
    // Deep water warms slowly.
    let colder = lake.depth_m / 60;
    let season = |(season, temperature): (&str, u32)| {
        Facts::default().with("season", season).with("temperature", temperature.saturating_sub(colder))
    };
    Facts::of(lake).with_list("seasons", SHALLOW_WATER.map(season))
}

pub(super) fn person(person: &Person) -> Facts {
    let world = world();
    let birthplace = world.cities.iter().find(|city| city.name == person.birthplace);
    Facts::of(person)
        .with("age", person.age())
        .with("an_occupation", with_indefinite_article(person.occupation))
        .with("region", birthplace.map_or("", |city| city.region))
        .with_records("inventions", world.inventions.iter().filter(|i| i.inventor == person.name))
        .with_records("ascents", world.mountains.iter().filter(|mountain| mountain.climber == person.name))
        .with_records("students", world.people.iter().filter(|other| other.teacher == Some(person.name)))
        .with_list("dates", dates(person))
}

fn with_indefinite_article(noun: &str) -> String {
    let article = if noun.starts_with(['a', 'e', 'i', 'o', 'u']) { "an" } else { "a" };
    format!("{article} {noun}")
}

fn dates(person: &Person) -> impl Iterator<Item = Facts> {
    let mut dates = vec![
        (person.born, format!("Born in [[{}]]", person.birthplace)),
        (person.died, format!("Died at the age of {}", person.age())),
    ];
    for invention in world().inventions.iter().filter(|invention| invention.inventor == person.name) {
        dates.push((invention.year, format!("Presents the [[{}]]", invention.name)));
    }
    for mountain in world().mountains.iter().filter(|mountain| mountain.climber == person.name) {
        dates.push((mountain.first_ascent, format!("First ascent of [[{}]]", mountain.name)));
    }
    dates.sort();
    dates.into_iter().map(|(year, event)| Facts::default().with("year", year).with("event", event))
}

pub(super) fn invention(invention: &Invention) -> Facts {
    // Years after the invention, and a factor of the number in use.
    const SPREAD: [(u32, u32); 4] = [(5, 1), (10, 4), (20, 15), (40, 52)];
    let inventor = world().people.iter().find(|person| person.name == invention.inventor);
    let pace = 3 + invention.year % 7;
    let spread = |(later, factor): (u32, u32)| {
        Facts::default().with("year", invention.year + later).with("in_use", factor * pace * 4)
    };
    Facts::of(invention)
        .with("name_in_sentence", name_in_sentence(invention))
        .with("inventor_age", inventor.map_or(0, |person| invention.year - person.born))
        .with("patent_year", invention.year + 2)
        .with_list("spread", SPREAD.map(spread))
}

/// In lower case, unless the name begins with the inventor's surname.
fn name_in_sentence(invention: &Invention) -> String {
    let is_surname = invention.name.split(' ').next().is_some_and(|word| invention.inventor.ends_with(word));
    if is_surname { invention.name.to_owned() } else { invention.name.to_lowercase() }
}
