//! Finding products: words, filters, order. Pure: the page shows what this returns.

use super::catalog::{Category, Product, products};
use crate::forms::{Fields, query};

pub(crate) const PAGE_SIZE: usize = 12;

type Found = (&'static Category, &'static Product);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Sort {
    #[default]
    Relevance,
    PriceUp,
    PriceDown,
    Rating,
    Name,
}

impl Sort {
    pub(crate) const ALL: [(Self, &'static str, &'static str); 5] = [
        (Self::Relevance, "relevance", "Best match"),
        (Self::PriceUp, "price-asc", "Price: low to high"),
        (Self::PriceDown, "price-desc", "Price: high to low"),
        (Self::Rating, "rating", "Customer rating"),
        (Self::Name, "name", "Name"),
    ];

    fn read(word: &str) -> Self {
        Self::ALL.iter().find(|(_, known, _)| *known == word).map(|(sort, _, _)| *sort).unwrap_or_default()
    }

    fn word(self) -> &'static str {
        Self::ALL.iter().find(|(sort, _, _)| *sort == self).map_or("", |(_, word, _)| word)
    }
}

/// What a visitor asked for. Values that make no sense count as not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) words: String,
    pub(crate) categories: Vec<String>,
    pub(crate) brand: String,
    pub(crate) least_cents: Option<u32>,
    pub(crate) most_cents: Option<u32>,
    pub(crate) least_rating: Option<u32>,
    pub(crate) in_stock: bool,
    pub(crate) sort: Sort,
}

impl Wanted {
    pub(crate) fn read(fields: &Fields) -> Self {
        Self {
            words: fields.get("q").to_owned(),
            categories: fields.all("category").filter(|slug| !slug.is_empty()).map(str::to_owned).collect(),
            brand: fields.get("brand").to_owned(),
            least_cents: cents(fields.get("min")),
            most_cents: cents(fields.get("max")),
            least_rating: cents(fields.get("rating")).map(|hundredths| hundredths / 10),
            in_stock: fields.has("in_stock"),
            sort: Sort::read(fields.get("sort")),
        }
    }

    /// The address of one page of these results.
    pub(crate) fn address(&self, page: usize) -> String {
        let amount = |cents: Option<u32>| cents.map(plain_amount).unwrap_or_default();
        let mut pairs = vec![("q", self.words.clone())];
        pairs.extend(self.categories.iter().map(|slug| ("category", slug.clone())));
        pairs.push(("brand", self.brand.clone()));
        pairs.push(("min", amount(self.least_cents)));
        pairs.push(("max", amount(self.most_cents)));
        pairs.push(("rating", amount(self.least_rating.map(|tenths| tenths * 10))));
        pairs.push(("in_stock", if self.in_stock { "1".to_owned() } else { String::new() }));
        let sort = if self.sort == Sort::Relevance { "" } else { self.sort.word() };
        pairs.push(("sort", sort.to_owned()));
        pairs.push(("page", if page > 1 { page.to_string() } else { String::new() }));
        format!("/shop/search?{}", query(pairs))
    }

    pub(crate) fn results(&self) -> Vec<Found> {
        let words: Vec<String> = self.words.split_whitespace().map(str::to_lowercase).collect();
        let mut found: Vec<(usize, Found)> = products()
            .filter(|found| self.admits(found))
            .filter_map(|found| Some((score(&words, found)?, found)))
            .collect();
        match self.sort {
            Sort::Relevance => found.sort_by_key(|(score, _)| std::cmp::Reverse(*score)),
            Sort::PriceUp => found.sort_by_key(|(_, (_, product))| product.price_cents),
            Sort::PriceDown => found.sort_by_key(|(_, (_, product))| std::cmp::Reverse(product.price_cents)),
            Sort::Rating => found.sort_by_key(|(_, (_, product))| std::cmp::Reverse(product.rating)),
            Sort::Name => found.sort_by_key(|(_, (_, product))| product.name),
        }
        found.into_iter().map(|(_, found)| found).collect()
    }

    fn admits(&self, (category, product): &Found) -> bool {
        (self.categories.is_empty() || self.categories.iter().any(|slug| slug == category.slug))
            && (self.brand.is_empty() || self.brand == product.brand)
            && self.least_cents.is_none_or(|least| product.price_cents >= least)
            && self.most_cents.is_none_or(|most| product.price_cents <= most)
            && self.least_rating.is_none_or(|least| product.rating >= least)
            && (!self.in_stock || product.in_stock())
    }
}

/// Every word must be somewhere; in the name it counts most. `None` when one is nowhere.
fn score(words: &[String], (category, product): Found) -> Option<usize> {
    let places = [
        (product.name, 4),
        (product.brand, 3),
        (category.name, 2),
        (product.colour, 2),
        (product.description, 1),
    ];
    words.iter().try_fold(0, |total, word| {
        let best = places
            .iter()
            .filter(|(text, _)| text.to_lowercase().contains(word.as_str()))
            .map(|(_, weight)| weight);
        Some(total + best.max()?)
    })
}

/// `12`, `12.5` or `$12.50`, in cents.
fn cents(text: &str) -> Option<u32> {
    let amount: f64 = text.trim_start_matches('$').parse().ok()?;
    (0.0..=1_000_000.0).contains(&amount).then(|| (amount * 100.0).round() as u32)
}

fn plain_amount(cents: u32) -> String {
    if cents.is_multiple_of(100) {
        (cents / 100).to_string()
    } else {
        format!("{}.{:02}", cents / 100, cents % 100)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(pairs: &[(&str, &str)]) -> Wanted {
        Wanted::read(&Fields(pairs.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect()))
    }

    #[test]
    fn nothing_asked_is_everything() {
        assert_eq!(wanted(&[]).results().len(), products().count());
        assert_eq!(wanted(&[("min", "cheap"), ("sort", "sideways"), ("category", "")]), Wanted::default());
    }

    #[test]
    fn every_filter_holds_for_every_result_and_drops_something() {
        type Holds = fn(&Found) -> bool;
        let cases: [(&str, &str, Holds); 6] = [
            ("category", "audio", |(category, _)| category.slug == "audio"),
            ("brand", "Ridgeway", |(_, product)| product.brand == "Ridgeway"),
            ("min", "50", |(_, product)| product.price_cents >= 5000),
            ("max", "24.50", |(_, product)| product.price_cents <= 2450),
            ("rating", "4.5", |(_, product)| product.rating >= 45),
            ("in_stock", "1", |(_, product)| product.stock > 0),
        ];
        for (name, value, holds) in cases {
            let results = wanted(&[(name, value)]).results();
            assert!(!results.is_empty() && results.iter().all(holds), "{name}");
            assert_eq!(results.len(), products().filter(holds).count(), "{name}");
        }
    }

    #[test]
    fn the_name_counts_more_than_the_description() {
        let results = wanted(&[("q", "LAMP")]).results();
        assert!(results[0].1.name.to_lowercase().contains("lamp"));
        assert!(results.iter().any(|(_, product)| !product.name.to_lowercase().contains("lamp")));
        assert!(wanted(&[("q", "lamp zeppelin")]).results().is_empty());
    }

    #[test]
    fn orders_are_kept() {
        let prices: Vec<_> = wanted(&[("sort", "price-desc")])
            .results()
            .iter()
            .map(|(_, product)| product.price_cents)
            .collect();
        assert!(prices.is_sorted_by(|a, b| a >= b));
        assert!(wanted(&[("sort", "name")]).results().is_sorted_by_key(|(_, product)| product.name));
    }

    #[test]
    fn the_address_says_it_all_again() {
        let pairs = [
            ("q", "tea & toast"),
            ("category", "audio"),
            ("category", "toys"),
            ("max", "24.5"),
            ("rating", "4.5"),
            ("in_stock", "1"),
            ("sort", "rating"),
        ];
        let asked = wanted(&pairs);
        let address = asked.address(2);
        let query = address.split_once('?').unwrap().1;
        let pairs: Vec<(String, String)> = form_urlencoded::parse(query.as_bytes()).into_owned().collect();
        let fields = Fields(pairs);
        assert_eq!((Wanted::read(&fields), fields.number("page")), (asked, Some(2)));
    }
}
