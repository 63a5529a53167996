//! The facts of an invented country, each written once. Articles, tables and tasks are all made from these, so that
//! they cannot contradict each other.

mod nature;
mod people;
mod places;

pub(crate) use nature::{LAKES, Lake, MOUNTAINS, Mountain, RIVERS, River};
pub(crate) use people::{INVENTIONS, Invention, PEOPLE, Person};
pub(crate) use places::{CITIES, City, REGIONS, Region};

pub(crate) const COUNTRY: &str = "Aldermark";

impl City {
    pub(crate) fn on_river(&self) -> Option<&'static str> {
        (self.river != "none").then_some(self.river)
    }

    /// Kilometres as the crow flies.
    pub(crate) fn distance_km(&self, other: &Self) -> u32 {
        let (dx, dy) = (f64::from(self.x) - f64::from(other.x), f64::from(self.y) - f64::from(other.y));
        dx.hypot(dy).round() as u32
    }

    /// Year and inhabitants, from the first census to the last; the last is today's number.
    pub(crate) fn census(&self) -> Vec<(u32, u32)> {
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

impl Person {
    /// Age at death, in full years of the calendar.
    pub(crate) fn age(&self) -> u32 {
        self.died - self.born
    }

    pub(crate) fn taught_by(&self) -> Option<&'static str> {
        (self.teacher != "none").then_some(self.teacher)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn every_name_that_a_fact_mentions_exists() {
        let city = |name| CITIES.iter().any(|city| city.name == name);
        let region = |name| REGIONS.iter().any(|region| region.name == name);
        let river = |name| RIVERS.iter().any(|river| river.name == name);
        let person = |name| PEOPLE.iter().any(|person| person.name == name);
        assert!(
            REGIONS.iter().all(|r| CITIES.iter().any(|city| city.name == r.capital && city.region == r.name))
        );
        assert!(CITIES.iter().all(|c| region(c.region) && c.on_river().is_none_or(river)));
        assert!(RIVERS.iter().all(|r| MOUNTAINS.iter().any(|mountain| mountain.name == r.source)));
        assert!(
            RIVERS.iter().all(|r| r.mouth == "the Sundersea" || river(r.mouth.trim_start_matches("the ")))
        );
        assert!(MOUNTAINS.iter().all(|m| region(m.region) && person(m.climber)));
        assert!(LAKES.iter().all(|l| region(l.region) && river(l.river)));
        assert!(PEOPLE.iter().all(|p| city(p.birthplace) && p.taught_by().is_none_or(person)));
        assert!(INVENTIONS.iter().all(|i| person(i.inventor) && city(i.place)));
    }

    #[test]
    fn lives_and_deeds_fit_together() {
        let life = |name| PEOPLE.iter().find(|person| person.name == name).unwrap();
        for invention in INVENTIONS {
            let inventor = life(invention.inventor);
            assert!((inventor.born + 15..=inventor.died).contains(&invention.year), "{}", invention.name);
        }
        for mountain in MOUNTAINS {
            let climber = life(mountain.climber);
            assert!((climber.born + 15..=climber.died).contains(&mountain.first_ascent), "{}", mountain.name);
        }
        for person in PEOPLE {
            if let Some(teacher) = person.taught_by().map(life) {
                assert!(teacher.died >= person.born + 10 && teacher.born < person.born, "{}", person.name);
            }
        }
    }

    #[test]
    fn a_region_has_more_people_than_its_cities() {
        for region in REGIONS {
            let cities: u32 =
                CITIES.iter().filter(|city| city.region == region.name).map(|city| city.population).sum();
            assert!(cities < region.population, "{}", region.name);
        }
    }

    #[test]
    fn a_census_grows_up_to_today() {
        for city in CITIES {
            let census = city.census();
            assert!(census.is_sorted_by(|a, b| a.0 < b.0 && a.1 < b.1), "{}", city.name);
            assert_eq!(census.last().unwrap().1, city.population);
        }
    }

    #[test]
    fn names_are_told_apart() {
        let mut names: Vec<&str> = REGIONS.iter().map(|r| r.name).collect();
        names.extend(CITIES.iter().map(|c| c.name).chain(RIVERS.iter().map(|r| r.name)));
        names.extend(MOUNTAINS.iter().map(|m| m.name).chain(LAKES.iter().map(|l| l.name)));
        names.extend(PEOPLE.iter().map(|p| p.name).chain(INVENTIONS.iter().map(|i| i.name)));
        assert_eq!(names.iter().collect::<HashSet<_>>().len(), names.len());
        assert!(names.len() >= 40, "only {}", names.len());
    }
}
