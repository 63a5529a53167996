//! Articles on rivers, mountains and lakes.

use super::super::{
    article::{Article, Kind, thousands, variety},
    world::{CITIES, COUNTRY, LAKES, Lake, MOUNTAINS, Mountain, RIVERS, River},
};
use super::{link, listed};

fn mouth(river: &River) -> String {
    match river.mouth.strip_prefix("the ") {
        Some(other) if other != "Sundersea" => format!("the [[{other}]]"),
        _ => river.mouth.to_owned(),
    }
}

pub(super) fn river(river: &River) -> Article {
    let towns: Vec<String> = CITIES
        .iter()
        .filter(|city| city.on_river() == Some(river.name))
        .map(|city| link(city.name))
        .collect();
    let place = 1 + RIVERS.iter().filter(|other| other.length_km > river.length_km).count();
    let summary = format!(
        "The {0} is a river in [[{COUNTRY}]]. It rises on [[{1}]], runs for {2} kilometres and flows into \
             {3}. By length it is number {place} of the {4} rivers of the country. Its water is {5}.",
        river.name,
        river.source,
        river.length_km,
        mouth(river),
        RIVERS.len(),
        river.colour
    );
    Article::new(river.name, Kind::River, summary)
        .fact("Length", format!("{} km", river.length_km))
        .fact("Source", link(river.source))
        .fact("Mouth", mouth(river))
        .fact("Basin", format!("{} km²", thousands(river.basin_km2)))
        .fact("Mean discharge", format!("{} m³/s", river.discharge_m3s))
        .text("Course", course(river, &towns))
        .table(
            "Water",
            "Mean discharge by season at the last gauge before the mouth.",
            &["Season", "Discharge (m³/s)"],
            seasons(river),
        )
        .text("Tributaries", tributaries(river))
        .text("Navigation and use", river_use(river))
        .text("Wildlife", wildlife(river.name))
}

fn course(river: &River, towns: &[String]) -> [String; 3] {
    let upper = variety(
        river.name,
        1,
        &[
            "For the first kilometres it is a stream one can jump across, and many do.",
            "It leaves its spring in a hurry and drops six hundred metres before the first mill.",
            "Its spring is a basin of stone that pilgrims fill with coins and schoolchildren empty.",
        ],
    );
    let passed = if towns.is_empty() {
        "No city lies on its banks.".to_owned()
    } else {
        format!("On its way it passes {}.", listed(towns))
    };
    [
        format!("The {} rises on [[{}]]. {upper}", river.name, river.source),
        format!(
            "{passed} In its middle course the valley widens and the river begins to wander; old arms on \
                 both sides show where it used to run."
        ),
        format!(
            "After {} kilometres it reaches {}. The last stretch is embanked, and the dikes are walked \
                 once a year by everybody who lives behind them.",
            river.length_km,
            mouth(river)
        ),
    ]
}

fn seasons(river: &River) -> Vec<Vec<String>> {
    [("Spring", 150), ("Summer", 60), ("Autumn", 85), ("Winter", 105)]
        .map(|(season, percent)| vec![season.to_owned(), (river.discharge_m3s * percent / 100).to_string()])
        .to_vec()
}

fn tributaries(river: &River) -> [String; 2] {
    let into: Vec<String> = RIVERS
        .iter()
        .filter(|other| other.mouth.trim_start_matches("the ") == river.name)
        .map(|other| format!("the [[{}]] ({} km)", other.name, other.length_km))
        .collect();
    let lakes: Vec<String> =
        LAKES.iter().filter(|lake| lake.river == river.name).map(|lake| link(lake.name)).collect();
    let own = if into.is_empty() {
        format!("The {} receives many brooks but no river with an article of its own.", river.name)
    } else {
        format!("The {} receives {}.", river.name, listed(&into))
    };
    let through = if lakes.is_empty() {
        "It passes through no lake.".to_owned()
    } else {
        format!("It passes through {}.", listed(&lakes))
    };
    [
        format!("{own} {through}"),
        format!(
            "Together they drain {} square kilometres, and the mean discharge at the mouth is {} cubic \
                 metres a second.",
            thousands(river.basin_km2),
            river.discharge_m3s
        ),
    ]
}

fn river_use(river: &River) -> [String; 2] {
    let boats = if river.length_km > 200 {
        "Barges go as far up as the second weir; above it there are only rowing boats and opinions."
    } else {
        "It is too shallow for barges, but timber was floated on it until the railway came."
    };
    [
        boats.to_owned(),
        format!(
            "Mills, later turbines, have used its fall for centuries. The water board of the {} is the \
                 oldest in the country and still elects its president by a show of oars.",
            river.name
        ),
    ]
}

fn wildlife(name: &str) -> [String; 2] {
    let animal = variety(name, 5, &["otters", "kingfishers", "dippers", "grey herons", "river crayfish"]);
    [
        format!(
            "The banks are known for their {animal}, which had nearly vanished when the tanneries were \
             still working and have come back since the water was cleaned."
        ),
        "Alder and willow line most of the shore. Where cattle were kept away from it reeds have returned, \
             and with them a number of small birds that are more often heard than seen."
            .to_owned(),
    ]
}

pub(super) fn mountain(mountain: &Mountain) -> Article {
    let place = 1 + MOUNTAINS.iter().filter(|other| other.elevation_m > mountain.elevation_m).count();
    let springs: Vec<String> = RIVERS
        .iter()
        .filter(|river| river.source == mountain.name)
        .map(|river| format!("the [[{}]]", river.name))
        .collect();
    let water = if springs.is_empty() {
        "No river of note rises on it.".to_owned()
    } else {
        format!("It is the source of {}.", listed(&springs))
    };
    let summary = format!(
        "{0} is a mountain in [[{1}]], [[{COUNTRY}]]. With {2} metres it is number {place} among the named \
             mountains of the country. It consists of {3} and was first climbed in {4} by [[{5}]]. \
             {water}",
        mountain.name,
        mountain.region,
        thousands(mountain.elevation_m),
        mountain.rock,
        mountain.first_ascent,
        mountain.climber
    );
    Article::new(mountain.name, Kind::Mountain, summary)
        .fact("Elevation", format!("{} m", thousands(mountain.elevation_m)))
        .fact("Region", link(mountain.region))
        .fact("Rock", mountain.rock)
        .fact("First ascent", format!("{} by [[{}]]", mountain.first_ascent, mountain.climber))
        .text("Geology", geology(mountain))
        .text("First ascent", ascent(mountain))
        .table(
            "Routes",
            "The three usual routes to the summit.",
            &["Route", "Climb (m)", "Hours"],
            climbs(mountain),
        )
        .text("Weather and dangers", weather(mountain))
        .text("In stories", stories(mountain.name))
}

fn geology(mountain: &Mountain) -> [String; 2] {
    [
        format!(
            "{} is built of {}, which breaks into slabs on the southern side and into rubble on the \
             northern. The summit is a plateau hardly larger than a tennis court.",
            mountain.name, mountain.rock
        ),
        "Ice shaped the valleys around it. The last glacier melted some nine thousand years ago and left \
             behind moraines, tarns and the boulders that the farmers have been cursing ever since."
            .to_owned(),
    ]
}

fn ascent(mountain: &Mountain) -> [String; 2] {
    let way = variety(
        mountain.name,
        2,
        &[
            "alone, in borrowed boots, on the fourth attempt",
            "with two shepherds who had been up before and had not thought it worth mentioning",
            "by the longest and safest route, carrying a barometer that broke on the way down",
        ],
    );
    [
        format!(
            "The first recorded ascent was made in {} by [[{}]], {way}. The cairn on the summit is \
             said to date from that day.",
            mountain.first_ascent, mountain.climber
        ),
        "A hut was built below the summit a generation later. It has thirty-two beds, one stove and a \
             visitors' book in which every complaint is answered by the next guest."
            .to_owned(),
    ]
}

fn climbs(mountain: &Mountain) -> Vec<Vec<String>> {
    [("South ridge", 40), ("West gully", 48), ("North face", 55)]
        .map(|(route, percent)| {
            let climb = mountain.elevation_m * percent / 100;
            vec![route.to_owned(), thousands(climb), (climb / 300 + 1).to_string()]
        })
        .to_vec()
}

fn weather(mountain: &Mountain) -> [String; 2] {
    [
        format!(
            "Snow lies on the summit for about {} months of the year. The weather comes from the west \
             and comes quickly; the rule in [[{}]] is to turn back when the valley can no longer be seen.",
            2 + mountain.elevation_m / 500,
            mountain.region
        ),
        "Most accidents happen on the way down, in the afternoon, and to people who had been in a hurry. \
             The rescue service is run by volunteers from the villages at its foot."
            .to_owned(),
    ]
}

fn stories(name: &str) -> [String; 2] {
    let story = variety(
        name,
        3,
        &[
            "a king who was turned to stone because he would not share his bread",
            "two brothers who built a wall across the summit and forgot where they had put the gate",
            "a bell that sank into the tarn and rings before a thaw",
        ],
    );
    [
        format!("An old story tells of {story}. Guides point out the place, though not always the same one."),
        "Painters discovered the mountain in the nineteenth century, photographers a little later. It has \
             been printed on a banknote, two stamps and a great many chocolate boxes."
            .to_owned(),
    ]
}

pub(super) fn lake(lake: &Lake) -> Article {
    let summary = format!(
        "{0} is a lake in [[{1}]], [[{COUNTRY}]]. It covers {2} square kilometres, is {3} metres deep at \
             its deepest point and is fed and drained by the [[{4}]].",
        lake.name, lake.region, lake.area_km2, lake.depth_m, lake.river
    );
    Article::new(lake.name, Kind::Lake, summary)
        .fact("Region", link(lake.region))
        .fact("Area", format!("{} km²", lake.area_km2))
        .fact("Greatest depth", format!("{} m", lake.depth_m))
        .fact("River", link(lake.river))
        .fact("Best-known fish", lake.fish)
        .text("Geography", [
            format!("{} fills a basin that the ice left behind. The shores are steep in the east and \
                 marshy in the west, where the [[{}]] enters.", lake.name, lake.river),
            "Four islands are large enough for a house and one of them has one. Ferries cross the lake \
                 from April to October, more often on market days.".to_owned(),
        ])
        .table("Temperature", "Mean temperature of the water at the surface.", &["Season", "Temperature (°C)"], temperatures(lake))
        .text("Fish and fishing", [
            format!("The lake is best known for its {}. The record is disputed between two families who no \
                 longer fish on the same day.", lake.fish),
            "Nets must have a mesh of at least forty millimetres. The right to fish goes with the houses \
                 on the shore and not with their owners, a rule that has kept the price of the houses \
                 high.".to_owned(),
        ])
        .text("Ice and legends", [
            "In hard winters the whole lake freezes and the road across the ice is marked with fir trees. \
                 The first to cross on foot each year is given a ham by the innkeeper on the other side.".to_owned(),
            "A village is said to lie at the bottom. Divers have found a rowing boat, a cash box and a \
                 great deal of mud; the cash box was empty.".to_owned(),
        ])
}

fn temperatures(lake: &Lake) -> Vec<Vec<String>> {
    // Deep water is slow to warm.
    let slow = lake.depth_m / 60;
    [("Spring", 8), ("Summer", 20), ("Autumn", 12), ("Winter", 3)]
        .map(|(season, warmth)| vec![season.to_owned(), (warmth - slow.min(warmth)).to_string()])
        .to_vec()
}
