//! The facts of an invented country, loaded from `data/wiki/world.json`. Articles, tables and tasks are all made
//! from them, so that they cannot contradict each other.

use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

use crate::data;

pub(crate) const COUNTRY: &str = "Aldermark";

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields, bound(deserialize = "'de: 'static"))]
pub(crate) struct World {
    pub(crate) regions: Vec<Region>,
    pub(crate) cities: Vec<City>,
    pub(crate) rivers: Vec<River>,
    pub(crate) mountains: Vec<Mountain>,
    pub(crate) lakes: Vec<Lake>,
    pub(crate) people: Vec<Person>,
    pub(crate) inventions: Vec<Invention>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Region {
    pub(crate) name: &'static str,
    pub(crate) capital: &'static str,
    pub(crate) area_km2: u32,
    pub(crate) population: u32,
    /// The year in which it joined the country.
    pub(crate) joined: u32,
    pub(crate) emblem: &'static str,
    pub(crate) character: &'static str,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct City {
    pub(crate) name: &'static str,
    pub(crate) region: &'static str,
    pub(crate) population: u32,
    pub(crate) founded: u32,
    pub(crate) elevation_m: u32,
    #[serde(borrow)]
    pub(crate) river: Option<&'static str>,
    pub(crate) known_for: &'static str,
    pub(crate) mayor: &'static str,
    pub(crate) landmark: &'static str,
    /// Position on the map, in kilometres.
    pub(crate) x: u32,
    pub(crate) y: u32,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct River {
    pub(crate) name: &'static str,
    pub(crate) length_km: u32,
    /// The mountain on which it rises.
    pub(crate) source: &'static str,
    /// The river or sea it flows into, with the article `the`.
    pub(crate) mouth: &'static str,
    pub(crate) basin_km2: u32,
    pub(crate) discharge_m3s: u32,
    pub(crate) colour: &'static str,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Mountain {
    pub(crate) name: &'static str,
    pub(crate) elevation_m: u32,
    pub(crate) region: &'static str,
    /// The year of the first ascent, and the person who made it.
    pub(crate) first_ascent: u32,
    pub(crate) climber: &'static str,
    pub(crate) rock: &'static str,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Lake {
    pub(crate) name: &'static str,
    pub(crate) region: &'static str,
    pub(crate) area_km2: u32,
    pub(crate) depth_m: u32,
    pub(crate) river: &'static str,
    pub(crate) fish: &'static str,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Person {
    pub(crate) name: &'static str,
    pub(crate) pronoun: &'static str,
    pub(crate) born: u32,
    pub(crate) died: u32,
    pub(crate) birthplace: &'static str,
    pub(crate) occupation: &'static str,
    pub(crate) known_for: &'static str,
    #[serde(borrow)]
    pub(crate) teacher: Option<&'static str>,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Invention {
    pub(crate) name: &'static str,
    pub(crate) inventor: &'static str,
    pub(crate) year: u32,
    pub(crate) place: &'static str,
    pub(crate) purpose: &'static str,
    pub(crate) how: &'static str,
    pub(crate) successor: &'static str,
}

static WORLD: LazyLock<World> = LazyLock::new(|| data::load!("wiki/world.json"));

pub(crate) fn world() -> &'static World {
    &WORLD
}

impl City {
    /// Straight-line distance in kilometres.
    pub(crate) fn distance_km(&self, other: &Self) -> u32 {
        let (dx, dy) = (f64::from(self.x) - f64::from(other.x), f64::from(self.y) - f64::from(other.y));
        dx.hypot(dy).round() as u32
    }

    /// Year and inhabitants of each census, oldest first; the last has today's population.
    pub(crate) fn census(&self) -> Vec<(u32, u32)> {
        // Share of today's population, in thousandths.
        const SHARES: [(u32, u32); 8] = [
            (1850, 160),
            (1875, 225),
            (1900, 330),
            (1925, 455),
            (1950, 600),
            (1975, 760),
            (2000, 895),
            (2020, 1000),
        ];
        // Younger towns grew later.
        let lag = (self.founded - 1000) / 8;
        let share = |permille: u32| permille - (1000 - permille) * lag / 1000;
        SHARES.map(|(year, permille)| (year, self.population / 1000 * share(permille) / 1000 * 1000)).to_vec()
    }
}

impl River {
    /// The river it flows into; `None` when it flows into the sea.
    pub(crate) fn mouth_river(&self) -> Option<&'static str> {
        self.mouth.strip_prefix("the ").filter(|name| *name != "Sundersea")
    }
}

impl Person {
    /// Age at death: the difference of the years.
    pub(crate) fn age(&self) -> u32 {
        self.died - self.born
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn referenced_names_exist() {
        let world = world();
        let city = |name| world.cities.iter().any(|city| city.name == name);
        let region = |name| world.regions.iter().any(|region| region.name == name);
        let river = |name| world.rivers.iter().any(|river| river.name == name);
        let person = |name| world.people.iter().any(|person| person.name == name);
        let is_capital = |region: &Region| {
            world.cities.iter().any(|city| city.name == region.capital && city.region == region.name)
        };
        assert!(world.regions.iter().all(is_capital));
        assert!(world.cities.iter().all(|c| region(c.region) && c.river.is_none_or(river)));
        assert!(world.rivers.iter().all(|r| world.mountains.iter().any(|m| m.name == r.source)));
        assert!(
            world
                .rivers
                .iter()
                .all(|r| r.mouth == "the Sundersea" || river(r.mouth.trim_start_matches("the ")))
        );
        assert!(world.mountains.iter().all(|m| region(m.region) && person(m.climber)));
        assert!(world.lakes.iter().all(|l| region(l.region) && river(l.river)));
        assert!(world.people.iter().all(|p| city(p.birthplace) && p.teacher.is_none_or(person)));
        assert!(world.inventions.iter().all(|i| person(i.inventor) && city(i.place)));
    }

    #[test]
    fn events_happen_within_lifetimes() {
        let world = world();
        let life = |name| world.people.iter().find(|person| person.name == name).unwrap();
        for invention in &world.inventions {
            let inventor = life(invention.inventor);
            assert!((inventor.born + 15..=inventor.died).contains(&invention.year), "{}", invention.name);
        }
        for mountain in &world.mountains {
            let climber = life(mountain.climber);
            assert!((climber.born + 15..=climber.died).contains(&mountain.first_ascent), "{}", mountain.name);
        }
        for person in &world.people {
            if let Some(teacher) = person.teacher.map(life) {
                assert!(teacher.died >= person.born + 10 && teacher.born < person.born, "{}", person.name);
            }
        }
    }

    #[test]
    fn region_population_exceeds_its_cities() {
        let world = world();
        for region in &world.regions {
            let in_region = world.cities.iter().filter(|city| city.region == region.name);
            let cities: u32 = in_region.map(|city| city.population).sum();
            assert!(cities < region.population, "{}", region.name);
        }
    }

    #[test]
    fn census_grows_to_the_current_population() {
        for city in &world().cities {
            let census = city.census();
            assert!(census.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1), "{}", city.name);
            assert_eq!(census.last().unwrap().1, city.population);
        }
    }

    #[test]
    fn names_are_unique() {
        let world = world();
        let mut names: Vec<&str> = world.regions.iter().map(|r| r.name).collect();
        names.extend(world.cities.iter().map(|c| c.name).chain(world.rivers.iter().map(|r| r.name)));
        names.extend(world.mountains.iter().map(|m| m.name).chain(world.lakes.iter().map(|l| l.name)));
        names.extend(world.people.iter().map(|p| p.name).chain(world.inventions.iter().map(|i| i.name)));
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        assert!(names.len() >= 40, "only {}", names.len());
    }
}
