//! Rivers, mountains and lakes.

/// Where it rises, where it ends and how much it carries.
#[derive(Debug)]
pub(crate) struct River {
    pub(crate) name: &'static str,
    pub(crate) length_km: u32,
    pub(crate) source: &'static str,
    pub(crate) mouth: &'static str,
    pub(crate) basin_km2: u32,
    pub(crate) discharge_m3s: u32,
    pub(crate) colour: &'static str,
}

/// How high, and who stood on it first.
#[derive(Debug)]
pub(crate) struct Mountain {
    pub(crate) name: &'static str,
    pub(crate) elevation_m: u32,
    pub(crate) region: &'static str,
    pub(crate) first_ascent: u32,
    pub(crate) climber: &'static str,
    pub(crate) rock: &'static str,
}

/// Water that a river runs through.
#[derive(Debug)]
pub(crate) struct Lake {
    pub(crate) name: &'static str,
    pub(crate) region: &'static str,
    pub(crate) area_km2: u32,
    pub(crate) depth_m: u32,
    pub(crate) river: &'static str,
    pub(crate) fish: &'static str,
}

pub(crate) const RIVERS: &[River] = &[
    River {
        name: "Varrow",
        length_km: 412,
        source: "Mount Hesper",
        mouth: "the Sundersea",
        basin_km2: 14_200,
        discharge_m3s: 186,
        colour: "slate green",
    },
    River {
        name: "Lune",
        length_km: 268,
        source: "Grey Tor",
        mouth: "the Sundersea",
        basin_km2: 7900,
        discharge_m3s: 131,
        colour: "brown",
    },
    River {
        name: "Ashwater",
        length_km: 337,
        source: "Mount Orrin",
        mouth: "the Varrow",
        basin_km2: 9650,
        discharge_m3s: 97,
        colour: "pale grey",
    },
    River {
        name: "Skell",
        length_km: 194,
        source: "Stag Peak",
        mouth: "the Mirrow",
        basin_km2: 3880,
        discharge_m3s: 62,
        colour: "peat brown",
    },
    River {
        name: "Mirrow",
        length_km: 231,
        source: "Cold Fell",
        mouth: "the Lune",
        basin_km2: 5310,
        discharge_m3s: 74,
        colour: "clear blue",
    },
    River {
        name: "Ellery",
        length_km: 156,
        source: "Grey Tor",
        mouth: "the Sundersea",
        basin_km2: 2740,
        discharge_m3s: 38,
        colour: "milky white",
    },
    River {
        name: "Drumlin",
        length_km: 88,
        source: "Mount Hesper",
        mouth: "the Varrow",
        basin_km2: 1190,
        discharge_m3s: 21,
        colour: "rust red",
    },
    River {
        name: "Ember",
        length_km: 121,
        source: "Mount Orrin",
        mouth: "the Ashwater",
        basin_km2: 1660,
        discharge_m3s: 26,
        colour: "amber",
    },
];

pub(crate) const MOUNTAINS: &[Mountain] = &[
    Mountain {
        name: "Mount Hesper",
        elevation_m: 2914,
        region: "Norvale",
        first_ascent: 1831,
        climber: "Johanna Reik",
        rock: "granite",
    },
    Mountain {
        name: "Mount Orrin",
        elevation_m: 2471,
        region: "Eastmarch",
        first_ascent: 1846,
        climber: "Tobias Lund",
        rock: "limestone",
    },
    Mountain {
        name: "Stag Peak",
        elevation_m: 3128,
        region: "Highmoor",
        first_ascent: 1868,
        climber: "Johanna Reik",
        rock: "gneiss",
    },
    Mountain {
        name: "Grey Tor",
        elevation_m: 1602,
        region: "Saltreach",
        first_ascent: 1794,
        climber: "Emil Varga",
        rock: "basalt",
    },
    Mountain {
        name: "Cold Fell",
        elevation_m: 1987,
        region: "Lakelands",
        first_ascent: 1822,
        climber: "Emil Varga",
        rock: "slate",
    },
    Mountain {
        name: "Needle Rock",
        elevation_m: 2236,
        region: "Highmoor",
        first_ascent: 1901,
        climber: "Sigrid Vane",
        rock: "sandstone",
    },
];

pub(crate) const LAKES: &[Lake] = &[
    Lake {
        name: "Lake Tess",
        region: "Lakelands",
        area_km2: 214,
        depth_m: 162,
        river: "Mirrow",
        fish: "pike",
    },
    Lake { name: "Lake Auk", region: "Lakelands", area_km2: 88, depth_m: 47, river: "Mirrow", fish: "perch" },
    Lake { name: "Lake Morn", region: "Highmoor", area_km2: 36, depth_m: 203, river: "Skell", fish: "char" },
];
